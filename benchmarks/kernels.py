"""`make bench-kernels`: what serves each operator and type on each set of instructions, and what it takes there.

The operators of a type are one model, each alone. Sets that QEMU emulates are counted: instructions of an operator's
kernels, without the C library's functions that they call; on AVX-512, which QEMU has not, a clock is read. The table
goes to standard output, and with `--write` between the marks in docs/kernels.md.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from math import isnan, nan
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "benchmarks"), str(ROOT / "tools"), str(ROOT / "tests")]

from common import show  # noqa: E402

import bytewright  # noqa: E402
from bytewright.execute.build import BuildOptions  # noqa: E402
from bytewright.execute.profile.measure import profile_bundle  # noqa: E402
from bytewright.execute.run import run_bundle  # noqa: E402
from bytewright.execute.tools import CrashError  # noqa: E402
from bytewright.record.plan import Plan  # noqa: E402
from support.kernel_cells import (  # noqa: E402
    SETS,
    TYPES,
    WORK,
    number_of,
    operators_of,
    row_of,
    templates_of,
    write_cells,
)

DOCUMENT = ROOT / "docs" / "kernels.md"
CLANG = ("rv64gcv",)  # gcc 12 has no intrinsics of it
ON_A_CLOCK = "x86-64-v4-vnni"
LEVEL = ("-O2",)


def main() -> int:
    """Runs the benchmark."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--write", action="store_true", help="put the table into docs/kernels.md")
    arguments = parser.parse_args()
    cells = {(kind, target): measured(kind, target, operators_of(kind)) for kind in TYPES for target in SETS}
    lines = [
        f"| operator | type | {' | '.join(f'`{each}`' for each in SETS)} |",
        "|---" * (len(SETS) + 2) + "|",
    ]
    for name in WORK:
        lines += [
            row_of(name, kind, [cells[kind, target][name] for target in SETS])
            for kind in TYPES
            if name in operators_of(kind)
        ]
    show("\n".join(lines), "kernels", write=arguments.write, document=DOCUMENT)
    return 0


def measured(kind: str, target: str, names: Sequence[str]) -> dict[str, str]:
    """The cells of a type, by operator; each operator by itself where QEMU fails at one of them."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        compiled = bytewright.compile(write_cells(kind, folder, names), target=target)
        bundle = compiled.write(folder / "bundle")
        costs = _nanoseconds(bundle) if target == ON_A_CLOCK else _instructions(bundle, compiled.plan, target)
    if any(map(isnan, costs)) and len(names) > 1:
        return {name: cell for each in names for name, cell in measured(kind, target, [each]).items()}
    found = dict.fromkeys(names, 0.0)
    for step, cost in zip(compiled.plan.steps, costs, strict=True):
        for operator in step.operators:
            found[names[number_of(operator)]] += cost
    templates = templates_of(compiled.plan, names)
    unit, factor, digits = (" ps", 1000.0, 0) if target == ON_A_CLOCK else ("", 1.0, 2)
    return {
        name: f"{factor * cost / WORK[name]:.{digits}f}{unit} {templates[name]}".rstrip()
        for name, cost in found.items()
    }


def _nanoseconds(bundle: Path) -> list[float]:
    """Of each step, the median of many inferences."""
    profile = profile_bundle(bundle, seed=1, repeat=101, options=BuildOptions(flags=LEVEL))
    costs = {line.step: float(line.cost.amount) for line in profile.steps}
    return [costs[step.index] for step in profile.plan.steps]


def _instructions(bundle: Path, plan: Plan, target: str) -> list[float]:
    """Of each step; no numbers where QEMU itself fails, as version 7.2 does now and then with vectors."""
    options = BuildOptions(flags=LEVEL, compiler="clang-19" if target in CLANG else None)
    try:
        functions = run_bundle(bundle, seed=1, on="qemu", options=options).details.functions
    except CrashError as error:
        if "qemu" not in str(error):
            raise
        return [nan] * len(plan.steps)
    costs = {each.name: float(each.instructions) for each in functions}
    calls = Counter(step.kernel for step in plan.steps)
    return [costs[step.kernel] / calls[step.kernel] for step in plan.steps]


if __name__ == "__main__":
    sys.exit(main())
