"""`make bench`: the models of ../shared/models on this machine and on emulated boards, beside other runtimes.

On this machine a round runs every contender once, Bytewright for each target that the processor has and LiteRT, so that
noise hits all alike; what counts is the ratio of medians. XNNPACK runs twice: as it is, and with AVX-512 hidden from
it, where the processor can do that; beside the latter code for AVX2 is compared. On boards what counts is the exact
number of instructions of the second inference, by gcc and by clang. The tables go to standard output, and with
`--write` between the marks in docs/benchmarks.md.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from common import FLOAT_MODELS, INT8_MODELS, MODELS, ROUNDS, by_turns, has_models, show
from model_tables import WITHOUT_AVX512, BoardRun, Row, tables
from peers import RESOLVERS, inference, without_avx512

from bytewright.bundle.write import write_bundle
from bytewright.compiler.pipeline import Compiled, compile_model
from bytewright.execute.build import BuildOptions
from bytewright.execute.host import HostModel
from bytewright.execute.run import run_batch
from bytewright.execute.tensors import random_inputs
from bytewright.target.isa.this_machine import this_machine
from bytewright.target.registry import BUILTIN_TARGETS, load_target

NAMES = {**INT8_MODELS, **FLOAT_MODELS}
BOARDS = ("mps3-an547", "mps2-an386")
COMPILERS = ("gcc", "clang")
# Code for `host` is portable; the others are compiled for what their names say.
PORTABLE_FLAGS = ("-O3", "-march=native")
FLAGS = ("-O3",)


def main() -> int:
    """Runs the benchmark."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("models", nargs="*", help=f"some of {', '.join(NAMES)}; all if none")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="at least 11")
    parser.add_argument("--compiler", help="of this machine's code: gcc, clang or a command")
    parser.add_argument("--write", action="store_true", help="put the tables into docs/benchmarks.md")
    parser.add_argument("--no-host", action="store_true", help="leave out this machine")
    parser.add_argument("--no-board", action="store_true", help="leave out the emulated boards")
    arguments = parser.parse_args()
    if not has_models():
        return 1
    unknown = [name for name in arguments.models if name not in NAMES]
    if unknown:
        parser.error(f"there is no model {', '.join(unknown)}: {', '.join(NAMES)}")
    rows: list[Row] = []
    for name in arguments.models or NAMES:
        _, seconds = _compiled_for("host", MODELS / NAMES[name])
        times, peers = (
            ({}, {}) if arguments.no_host else time_here(name, arguments.rounds, arguments.compiler)
        )
        boards = {} if arguments.no_board else on_boards(name)
        rows.append(Row(name, name in FLOAT_MODELS, times, peers, boards, seconds))
    show(tables(rows), "models", write=arguments.write)
    return 0


def targets_here() -> list[str]:
    """The targets of which this machine runs the code."""
    machine = this_machine()
    isas = {name: load_target(name).default_device.isa for name in BUILTIN_TARGETS}
    return [
        name
        for name, isa in isas.items()
        if isa.is_host or (machine.executes(isa) and not machine.lacks(isa))
    ]


def time_here(name: str, rounds: int, compiler: str | None) -> tuple[dict[str, float], dict[str, float]]:
    """Microseconds of an inference, by target and by peer, taken by turns in this process."""
    path = MODELS / NAMES[name]
    contenders: dict[str, Callable[[], float]] = {}
    inputs: list[np.ndarray[Any, Any]] = []
    with tempfile.TemporaryDirectory() as temporary:
        for target in targets_here():
            compiled, _ = _compiled_for(target, path)
            bundle = Path(temporary) / target
            write_bundle(compiled.files, bundle)
            inputs = random_inputs(compiled.plan, 1)
            flags = PORTABLE_FLAGS if load_target(target).default_device.isa.is_host else FLAGS
            contenders[target] = _own(bundle, inputs, BuildOptions(flags, compiler=compiler))
    for label, resolver in RESOLVERS.items():
        contenders[label] = inference(path, resolver, inputs[0])
    with (
        tempfile.TemporaryDirectory() as temporary,
        without_avx512(path, inputs[0], Path(temporary)) as restricted,
    ):
        if restricted:
            contenders[WITHOUT_AVX512] = restricted
        times = by_turns(contenders, max(rounds, 11))
    peers = {label: times.pop(label) for label in (*RESOLVERS, WITHOUT_AVX512) if label in times}
    return times, peers


def _compiled_for(target: str, path: Path) -> tuple[Compiled, float]:
    """A model compiled, and the seconds that it took."""
    began = time.perf_counter()
    return compile_model(path, load_target(target)), time.perf_counter() - began


def _own(bundle: Path, inputs: list[np.ndarray[Any, Any]], options: BuildOptions) -> Callable[[], float]:
    """One inference of a bundle, in microseconds."""
    context = HostModel.build(bundle, options).open()
    return lambda: context.run(inputs)[1][0] / 1e3


def on_boards(name: str) -> dict[str, BoardRun]:
    """By board: executed instructions of the second inference and bytes of code and constants, by compiler."""
    found: dict[str, BoardRun] = {}
    for board in BOARDS:
        compiled, _ = _compiled_for(board, MODELS / NAMES[name])
        inputs = random_inputs(compiled.plan, 1)
        with tempfile.TemporaryDirectory() as temporary:
            write_bundle(compiled.files, Path(temporary) / "bundle")
            results = {
                compiler: run_batch(
                    Path(temporary) / "bundle",
                    [inputs, inputs],
                    on="qemu",
                    options=BuildOptions(compiler=compiler),
                )
                for compiler in COMPILERS
            }
        found[board] = BoardRun(
            {compiler: result.instructions[-1] for compiler, result in results.items()},
            {compiler: result.flash_bytes or 0 for compiler, result in results.items()},
            compiled.plan.ram_bytes,
        )
    return found


if __name__ == "__main__":
    sys.exit(main())
