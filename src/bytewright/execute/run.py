"""The entry of this stage: runs a bundle from arrays or a seed, on the host or on its board under QEMU."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace
from os import PathLike
from typing import Literal, TypedDict, Unpack

from bytewright.diagnostics import compile_error
from bytewright.execute.boards.counts import FunctionCount, RegionTraffic
from bytewright.execute.build import BuildOptions
from bytewright.execute.description import Bundle, read_bundle
from bytewright.execute.host import HostModel, run_program
from bytewright.execute.qemu import run_on_board
from bytewright.execute.tensors import Array, random_inputs

MOST_REPETITIONS = 1_000_000  # each has a time, which is kept
TIMEOUT_SECONDS = 300.0
Machine = Literal["host", "qemu"]


@dataclass(frozen=True, slots=True, eq=False)
class BatchResult:
    """What running a batch showed.

    Attributes:
        outputs: By inference, in the model's order.
        on: "host" or "qemu".
        target: The target's name.
        workspace_bytes: All workspace pools together.
        board: The emulated board; `None` on the host.
        microseconds: Host time of each inference and repetition; empty under QEMU.
        instructions: Executed instructions of each inference and repetition; empty on the host.
        stack_bytes: The deepest stack of the model's run function; `None` on the host.
        flash_bytes: Code, constants and data of the bundle's objects on the board; `None` on the host.
        functions: Instructions of the last inference by function, largest first.
        traffic: Memory traffic of the last inference, if it was asked for.
    """

    outputs: tuple[tuple[Array, ...], ...]
    on: Machine
    target: str
    workspace_bytes: int
    board: str | None = None
    microseconds: tuple[float, ...] = ()
    instructions: tuple[int, ...] = ()
    stack_bytes: int | None = None
    flash_bytes: int | None = None
    functions: tuple[FunctionCount, ...] = ()
    traffic: tuple[RegionTraffic, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class RunResult:
    """What running one inference showed; `None` where it does not apply.

    Attributes:
        outputs: In the model's order.
        on: "host" or "qemu".
        target: The target's name.
        instructions: Executed instructions of one inference (QEMU).
        microseconds: The median time of one inference (host).
        workspace_bytes: All workspace pools together.
        stack_bytes: The deepest stack (QEMU).
        details: Everything else that was measured.
    """

    outputs: tuple[Array, ...]
    on: str
    target: str
    instructions: int | None
    microseconds: float | None
    workspace_bytes: int
    stack_bytes: int | None
    details: BatchResult


class RunOptions(TypedDict, total=False):
    """How to run; every key may be left out.

    Attributes:
        on: The host, or the board of the bundle's target under QEMU; else the host.
        repeat: How often an inference runs, for times; else once.
        options: How to compile.
        measure_memory: Also count loads and stores by memory (QEMU).
        timeout_seconds: Limit of the run; else `TIMEOUT_SECONDS`.
    """

    on: Machine
    repeat: int
    options: BuildOptions | None
    measure_memory: bool
    timeout_seconds: float


def run_bundle(
    directory: str | PathLike[str],
    inputs: Sequence[Array] | None = None,
    *,
    seed: int | None = None,
    **how: Unpack[RunOptions],
) -> RunResult:
    """Runs one inference.

    Args:
        directory: A bundle.
        inputs: One array for each input of the model, of its shape and type; `None` for random inputs.
        seed: Seed of random inputs; 0 if not given.
        how: The rest.

    Raises:
        CompileError: BW204, BW205, BW207, BW402, BW501 or BW502.
    """
    bundle = read_bundle(directory)
    batch = _run(bundle, [random_inputs(bundle.plan, seed or 0) if inputs is None else inputs], **how)
    return RunResult(
        outputs=batch.outputs[0],
        on=batch.on,
        target=batch.target,
        instructions=batch.instructions[-1] if batch.instructions else None,
        microseconds=statistics.median(batch.microseconds) if batch.microseconds else None,
        workspace_bytes=batch.workspace_bytes,
        stack_bytes=batch.stack_bytes,
        details=batch,
    )


def run_batch(
    directory: str | PathLike[str], batch: Sequence[Sequence[Array]], **how: Unpack[RunOptions]
) -> BatchResult:
    """Runs many inferences in one process or image; arguments and errors are those of `run_bundle`."""
    return _run(read_bundle(directory), batch, **how)


def _run(
    bundle: Bundle,
    batch: Sequence[Sequence[Array]],
    on: Machine = "host",
    repeat: int = 1,
    options: BuildOptions | None = None,
    measure_memory: bool = False,
    timeout_seconds: float = TIMEOUT_SECONDS,
) -> BatchResult:
    if not 1 <= repeat <= MOST_REPETITIONS:
        limits = f"1 to {MOST_REPETITIONS} times"
        raise compile_error("BW204", f"an inference can run {limits}, not {repeat}")
    nothing = BatchResult((), on, bundle.plan.hardware.name, bundle.plan.workspace_bytes)
    if on == "qemu":
        run = run_on_board(
            bundle,
            batch,
            repeat=repeat,
            options=options,
            measure_memory=measure_memory,
            timeout_seconds=timeout_seconds,
        )
        return replace(
            nothing,
            outputs=run.outputs,
            board=run.board,
            instructions=run.counts.instructions,
            stack_bytes=run.stack_bytes,
            flash_bytes=run.flash_bytes,
            functions=run.counts.functions,
            traffic=run.counts.traffic,
        )
    if options is not None and options.sanitize:
        program = run_program(bundle, batch, repeat=repeat, options=options, timeout_seconds=timeout_seconds)
        outputs, nanoseconds = program.outputs, program.nanoseconds
    else:
        context = HostModel.build(bundle.directory, options).open()
        runs = [context.run(inputs, repeat) for inputs in batch]
        outputs = tuple(tuple(arrays) for arrays, _ in runs)
        nanoseconds = [time for _, times in runs for time in times]
    return replace(nothing, outputs=outputs, microseconds=tuple(time / 1000 for time in nanoseconds))
