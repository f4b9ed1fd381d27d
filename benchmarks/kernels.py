"""`make bench-kernels`: what serves each operator and type on each set of instructions, and what it takes there.

Each operator is a model of its own. Sets that QEMU emulates are counted, by instructions of the second inference, what
the C library computes for it included; on AVX-512, which it does not, a clock is read. The table goes to standard
output, and with `--write` between the marks in docs/kernels.md.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from math import nan
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "benchmarks"), str(ROOT / "tools"), str(ROOT / "tests")]

from common import show  # noqa: E402

import bytewright  # noqa: E402
from bytewright.execute.build import BuildOptions  # noqa: E402
from bytewright.execute.profile.measure import profile_bundle  # noqa: E402
from bytewright.execute.run import run_bundle  # noqa: E402
from bytewright.execute.tools import CrashError  # noqa: E402
from support.kernel_cells import (  # noqa: E402
    SETS,
    TYPES,
    WORK,
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
    parser.add_argument("operators", nargs="*", help="some of the operators; all if none")
    parser.add_argument("--write", action="store_true", help="put the table into docs/kernels.md")
    arguments = parser.parse_args()
    lines = [
        f"| operator | type | {' | '.join(f'`{each}`' for each in SETS)} |",
        "|---" * (len(SETS) + 2) + "|",
    ]
    for name in arguments.operators or WORK:
        for kind in TYPES:
            if name in operators_of(kind):
                lines.append(row_of(name, kind, [measured(name, kind, target) for target in SETS]))
    show("\n".join(lines), "kernels", write=arguments.write, document=DOCUMENT)
    return 0


def measured(name: str, kind: str, target: str) -> str:
    """A cell of the table."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        compiled = bytewright.compile(write_cells(kind, folder, [name]), target=target)
        bundle = compiled.write(folder / "bundle")
        template = templates_of(compiled.plan, [name])[name]
        options = BuildOptions(flags=LEVEL, compiler="clang-19" if target in CLANG else None)
        if target == ON_A_CLOCK:
            profile = profile_bundle(bundle, seed=1, repeat=101, options=options)
            figure = f"{1e3 * profile.devices[0].total.amount / WORK[name]:.0f} ps"
        else:
            figure = f"{_instructions(bundle, options) / WORK[name]:.2f}"
    return f"{figure} {template}".rstrip()


def _instructions(bundle: Path, options: BuildOptions) -> float:
    """Of the last inference; no number where QEMU itself fails, as version 7.2 does now and then with vectors."""
    try:
        found = run_bundle(bundle, seed=1, on="qemu", options=options).instructions
    except CrashError as error:
        if "qemu" not in str(error):
            raise
        return nan
    assert found is not None
    return float(found)


if __name__ == "__main__":
    sys.exit(main())
