"""`make bench`: the models of ../shared/models, beside LiteRT, in one process and one run.

Host time is taken by turns: a round runs every contender once, so that noise hits all alike; what counts is the
ratio of medians. Instructions on the Cortex-M55 are exact. The table goes to standard output, and with `--write`
between the marks in docs/benchmarks.md.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from ai_edge_litert.interpreter import Interpreter, OpResolverType
from common import FLOAT_MODELS, HOST_FLAGS, INT8_MODELS, MODELS, ROUNDS, by_turns, has_models, show

from bytewright.bundle.write import write_bundle
from bytewright.execute.build import BuildOptions
from bytewright.execute.description import read_bundle
from bytewright.execute.host import HostModel
from bytewright.execute.run import run_batch
from bytewright.execute.tensors import random_inputs
from bytewright.pipeline import Compiled, compile_model
from bytewright.target.registry import load_target

NAMES = {**INT8_MODELS, **FLOAT_MODELS}
RESOLVERS = {
    "ref": OpResolverType.BUILTIN_REF,
    "opt": OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES,
    "XNNPACK": OpResolverType.AUTO,
}


@dataclass(frozen=True, slots=True)
class Row:
    """One model's figures; times in microseconds."""

    name: str
    bytewright: float
    peers: dict[str, float]
    instructions: int | None
    ram_bytes: int
    flash_bytes: int | None
    compile_seconds: float


def main() -> int:
    """Runs the benchmark."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("models", nargs="*", help=f"some of {', '.join(NAMES)}; all if none")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="at least 11")
    parser.add_argument("--write", action="store_true", help="put the table into docs/benchmarks.md")
    parser.add_argument("--no-board", action="store_true", help="leave out the emulated board")
    arguments = parser.parse_args()
    if not has_models():
        return 1
    chosen = arguments.models or list(NAMES)
    rows = [measure(name, max(arguments.rounds, 11), not arguments.no_board) for name in chosen]
    show(table(rows), "models", write=arguments.write)
    return 0


def measure(name: str, rounds: int, board: bool) -> Row:
    """Compiles a model and times it beside its peers."""
    path = MODELS / NAMES[name]
    began = time.perf_counter()
    compiled = compile_model(path, load_target("host"))
    compile_seconds = time.perf_counter() - began
    with tempfile.TemporaryDirectory() as temporary:
        bundle = Path(temporary) / "host"
        write_bundle(compiled.files, bundle)
        inputs = random_inputs(read_bundle(bundle).plan, 1)
        context = HostModel.build(bundle, BuildOptions(flags=HOST_FLAGS)).open()
        contenders: dict[str, Callable[[], float]] = {"bytewright": lambda: context.run(inputs)[1][0] / 1e3}
        for label, resolver in RESOLVERS.items():
            contenders[label] = peer(path, resolver, inputs[0])
        times = by_turns(contenders, rounds)
        for_board = compile_model(path, load_target("mps3-an547"))
        instructions, flash = (
            on_board(for_board, Path(temporary) / "board", inputs) if board else (None, None)
        )
    return Row(
        name, times.pop("bytewright"), times, instructions, ram_bytes(for_board), flash, compile_seconds
    )


def peer(path: Path, resolver: OpResolverType, sample: np.ndarray[Any, Any]) -> Callable[[], float]:
    """One inference of LiteRT on one thread, in microseconds."""
    interpreter = Interpreter(str(path), experimental_op_resolver_type=resolver, num_threads=1)
    interpreter.allocate_tensors()
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], sample)

    def run() -> float:
        began = time.perf_counter_ns()
        interpreter.invoke()
        return (time.perf_counter_ns() - began) / 1e3

    return run


def on_board(
    compiled: Compiled, bundle: Path, inputs: list[np.ndarray[Any, Any]]
) -> tuple[int | None, int | None]:
    """Executed instructions of the second inference on mps3-an547, and bytes of code and constants."""
    write_bundle(compiled.files, bundle)
    result = run_batch(bundle, [inputs, inputs], on="qemu")
    return result.instructions[-1], result.flash_bytes


def ram_bytes(compiled: Compiled) -> int:
    """As `bytewright report` counts it: workspace, stack as promised, parameters in memory that can be written."""
    return compiled.plan.ram_bytes


def table(rows: list[Row]) -> str:
    """The figures as a Markdown table."""
    head = (
        "| model | Bytewright, us | LiteRT ref | LiteRT opt | LiteRT XNNPACK | M55 instructions "
        "| RAM on M55, B | flash on M55, B | compile, s |"
    )
    lines = [head, "|---" * 9 + "|"]
    for row in rows:
        ratios = " | ".join(f"{value:.1f} ({row.bytewright / value:.2f})" for value in row.peers.values())
        board = f"{row.instructions:,}" if row.instructions else "-"
        flash = f"{row.flash_bytes:,}" if row.flash_bytes else "-"
        lines.append(
            f"| {row.name} | {row.bytewright:.1f} | {ratios} | {board} | {row.ram_bytes:,} | {flash} "
            f"| {row.compile_seconds:.2f} |"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
