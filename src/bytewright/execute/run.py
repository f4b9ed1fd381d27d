"""The entry of this stage: runs a bundle from arrays or a seed, on the host, on its board under QEMU, or on a board."""

import statistics
from collections.abc import Sequence
from os import PathLike
from typing import Unpack

from bytewright.diagnostics import compile_error
from bytewright.execute.build import BuildOptions
from bytewright.execute.description import Bundle, read_bundle
from bytewright.execute.host import run_library, run_program
from bytewright.execute.machine import Machine, SerialPort
from bytewright.execute.options import MOST_RUNS, RunOptions, check_repetitions
from bytewright.execute.result import BatchResult, RunResult
from bytewright.execute.serial.run import run_on_serial
from bytewright.execute.settings import Settings
from bytewright.execute.tensors import Array, random_inputs
from bytewright.execute.tools import TIMEOUT_SECONDS
from bytewright.execute.user_mode import run_in_qemu


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
    given = random_inputs(bundle.plan, seed or 0, how.get("entries")) if inputs is None else inputs
    batch = _run(bundle, [given], **how)
    return RunResult(
        outputs=batch.outputs[0],
        on=batch.on,
        target=batch.target,
        instructions=batch.instructions[-1] if batch.instructions else None,
        cycles=batch.cycles[-1] if batch.cycles else None,
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
    keep_state: bool = False,
    entries: Sequence[str] | None = None,
) -> BatchResult:
    check_repetitions("an inference can run", repeat, MOST_RUNS)
    if keep_state and repeat > 1:
        raise compile_error("BW204", "an inference that goes on from the last one runs once", help="repeat 1")
    settings = Settings(
        options or BuildOptions(), repeat, timeout_seconds, keep_state, entries, measure_memory=measure_memory
    )
    if isinstance(on, SerialPort):
        return run_on_serial(bundle, batch, on, settings)
    if on == "qemu":
        return run_in_qemu(bundle, batch, settings)
    if settings.build.sanitize:
        return run_program(bundle, batch, settings)
    return run_library(bundle, batch, settings)
