"""`make bench-rows`: what it costs that layers run row by row, beside the same with tensors whole (`--rows off`).

Host time is taken by turns, in one process and one run; instructions and code on the Cortex-M55 are exact. The table
goes to standard output, and with `--write` between the marks in docs/benchmarks.md.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from common import HOST_FLAGS, INT8_MODELS, MODELS, ROUNDS, by_turns, has_models, show
from numpy.typing import NDArray

from bytewright.bundle.write import write_bundle
from bytewright.compiler.pipeline import compile_model
from bytewright.execute.build import BuildOptions
from bytewright.execute.description import read_bundle
from bytewright.execute.host import HostModel
from bytewright.execute.run import run_batch
from bytewright.execute.tensors import random_inputs
from bytewright.options import Options, Rows
from bytewright.target.model import Role
from bytewright.target.registry import load_target

KINDS = (Rows.OFF, Rows.AUTO, Rows.MAX)
Inputs = list[NDArray[Any]]


def main() -> int:
    """Runs the benchmark."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("models", nargs="*", help=f"some of {', '.join(INT8_MODELS)}; all if none")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="at least 11")
    parser.add_argument("--write", action="store_true", help="put the table into docs/benchmarks.md")
    arguments = parser.parse_args()
    if not has_models():
        return 1
    lines = [
        "| model | `--rows` | workspace, B | host, us | M55 instructions | code on M55, B |",
        "|---|---|---|---|---|---|",
    ]
    for name in arguments.models or INT8_MODELS:
        lines += measured(name, max(arguments.rounds, 11))
    show("\n".join(lines), "rows", write=arguments.write)
    return 0


def measured(name: str, rounds: int) -> list[str]:
    """Lines of the table; what is in brackets is in relation to whole tensors."""
    path = MODELS / INT8_MODELS[name]
    with tempfile.TemporaryDirectory() as temporary:
        contenders: dict[str, Callable[[], float]] = {}
        found: dict[Rows, list[float]] = {}
        for kind in KINDS:
            folder = Path(temporary) / kind.value
            compiled = compile_model(path, load_target("host"), Options(rows=kind))
            write_bundle(compiled.files, folder / "host")
            inputs = random_inputs(read_bundle(folder / "host").plan, 1)
            context = HostModel.build(folder / "host", BuildOptions(flags=HOST_FLAGS)).open()
            contenders[kind.value] = partial(run_once, context, inputs)
            found[kind] = [compiled.plan.workspace_bytes, *on_board(path, kind, folder / "board", inputs)]
        times = by_turns(contenders, rounds)
    lines: list[str] = []
    for kind in KINDS:
        workspace, instructions, code = found[kind]
        cells = [f"{workspace:,}", ratio(times[kind.value], times["off"], 1)]
        cells += [ratio(instructions, found[Rows.OFF][1]), ratio(code, found[Rows.OFF][2])]
        lines.append(f"| {name} | {kind.value} | {' | '.join(cells)} |")
    return lines


def run_once(context: Any, inputs: Inputs) -> float:
    """Microseconds of one inference."""
    return context.run(inputs)[1][0] / 1e3


def on_board(path: Path, rows: Rows, bundle: Path, inputs: Inputs) -> tuple[int, int]:
    """Instructions of the second inference on mps3-an547, and bytes of code without parameters."""
    compiled = compile_model(path, load_target("mps3-an547"), Options(rows=rows))
    write_bundle(compiled.files, bundle)
    result = run_batch(bundle, [inputs, inputs], on="qemu")
    instructions, flash = result.instructions[-1], result.flash_bytes
    assert instructions is not None
    assert flash is not None
    return instructions, flash - sum(pool.used_bytes for pool in compiled.plan.pools_of(Role.PARAMETERS))


def ratio(value: float, whole: float, digits: int = 0) -> str:
    """A figure, and what it is of that with tensors whole."""
    return f"{value:,.{digits}f} ({value / whole:.4f})"


if __name__ == "__main__":
    sys.exit(main())
