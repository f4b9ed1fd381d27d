"""Paranoid runs: the plan is tried, not only proved.

A bundle is built with a watcher that stands between the kernels (`watch.py`, `harness/paranoid.c`). Bytes that the
plan calls dead are poisoned before each step, and whatever a step may not write must be what it was after it. Then
the bundle runs as usual, and the outputs must be the same, for each of two poisons: a kernel that reads a dead byte
shows even though reading leaves no trace. Where an output overlaps an input within a step, no look between the kernels
can judge it; so on the host the outputs must also be those of a build in which no two buffers share a byte, which
`apart.py` makes.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Unpack

from bytewright.diagnostics import CompileError, compile_error
from bytewright.execute.apart import needs_comparison, spread
from bytewright.execute.build import BuildOptions
from bytewright.execute.description import Bundle, read_bundle
from bytewright.execute.host import run_program
from bytewright.execute.machine import Machine, SerialPort
from bytewright.execute.options import RunOptions
from bytewright.execute.result import RunResult
from bytewright.execute.run import run_bundle
from bytewright.execute.settings import Settings
from bytewright.execute.tensors import Array, random_inputs
from bytewright.execute.tools import TIMEOUT_SECONDS, CrashError, ViolationError
from bytewright.execute.user_mode import run_in_qemu
from bytewright.execute.watch import Watch, WatchedRange, parse_findings, watch_plan
from bytewright.record.plan_file import read_plan

NUM_POISONS = 2
# What outputs may not depend on.
_POISON = "the plan calls dead"
_OVERLAPS = "two buffers share within a step"
# Large enough that a write past a pool ends in a guard, where there is memory to spare.
GUARD_BYTES = {"host": 65536, "qemu": 64}


@dataclass(frozen=True, slots=True, eq=False)
class ParanoidRun:
    """A run that held.

    Attributes:
        result: Of the plain run.
        num_steps: Steps after which every workspace byte was looked at.
        watched_bytes: Bytes of the pools and their guards.
    """

    result: RunResult
    num_steps: int
    watched_bytes: int


def run_paranoid(
    directory: Path,
    inputs: Sequence[Array] | None = None,
    *,
    seed: int | None = None,
    **how: Unpack[RunOptions],
) -> ParanoidRun:
    """Runs one inference with each poison, and then plainly; arguments are those of `run_bundle`.

    Raises:
        CompileError: BW204 for one entry alone, or a board on a serial line; BW404 if a step changed what the plan does
            not let it change, or if the outputs differ; and all that `run_bundle` raises.
    """
    on = how.get("on", "host")
    if isinstance(on, SerialPort):
        raise compile_error("BW204", "a paranoid run is of a build of its own", help="--on host or --on qemu")
    if how.get("entries"):
        raise compile_error(
            "BW204", "a paranoid run is of all entries, in their order", help="leave out --entry"
        )
    bundle, watch = read_bundle(directory), watch_plan(read_plan(directory), GUARD_BYTES[on])
    arrays = random_inputs(bundle.plan, seed or 0) if inputs is None else inputs
    try:
        outputs = _run_watched(bundle, watch, arrays, **how)
    # After either a plain run of this bundle may do anything, in this very process.
    except CrashError as error:
        notes = [line for d in error.diagnostics for line in (d.message, *d.notes)]
        raise _violation(bundle, on, notes) from error
    except ViolationError as error:
        notes = [_describe(watch, finding) for finding in parse_findings(watch, str(error))]
        raise _violation(bundle, on, notes) from error
    result = run_bundle(directory, arrays, **how)
    notes = [note for poisoned in outputs for note in _differences(bundle, result.outputs, poisoned)]
    if not notes and on == "host" and needs_comparison(bundle.plan):  # dead bytes would differ there too
        notes = _differences(bundle, result.outputs, _run_apart(bundle, arrays, **how), _OVERLAPS)
    if notes:
        raise _violation(bundle, on, notes)
    watched_bytes = sum(entry.pool.used_bytes + 2 * entry.guard_bytes for entry in watch.pools)
    return ParanoidRun(result, len(watch.plan.steps), watched_bytes)


def _violation(bundle: Bundle, on: Machine, notes: Sequence[str]) -> CompileError:
    place = "the host" if on == "host" else "its board"
    return compile_error(
        "BW404",
        f"model '{bundle.plan.model}' does not keep to its plan on {place}",
        notes=tuple(dict.fromkeys(notes)),
        help=f"bytewright check {bundle.directory}",
    )


def _run_watched(
    bundle: Bundle, watch: Watch, inputs: Sequence[Array], **how: Unpack[RunOptions]
) -> tuple[tuple[Array, ...], ...]:
    """The outputs under each poison."""
    settings = replace(_settings(**how), watch=watch if watch.pools else None)
    batch = [inputs] * NUM_POISONS
    if how.get("on") == "qemu":
        return run_in_qemu(bundle, batch, settings).outputs
    if bundle.plan.own_workspaces:  # no guard of the harness lies beside an array of the bundle's own
        settings = replace(settings, build=replace(settings.build, sanitize=True))
    return run_program(bundle, batch, settings).outputs


def _run_apart(bundle: Bundle, inputs: Sequence[Array], **how: Unpack[RunOptions]) -> tuple[Array, ...]:
    """The outputs where no two buffers share a byte: looks between the steps cannot judge what overlaps within one."""
    with TemporaryDirectory() as folder:
        apart = spread(bundle, Path(folder))
        return run_program(apart, [inputs], _settings(**how)).outputs[0]


def _settings(**how: Unpack[RunOptions]) -> Settings:
    """Those of one inference, as it is compiled and limited for a plain run."""
    return Settings(
        how.get("options") or BuildOptions(), timeout_seconds=how.get("timeout_seconds", TIMEOUT_SECONDS)
    )


def _describe(watch: Watch, found: WatchedRange) -> str:
    """`step 3 (kws_conv2d_2) changed ram+8000..8063 (64 B), where 'conv2d_0/out' lies`."""
    step, pool = watch.plan.steps[found.step], watch.pools[found.pool].pool
    if found.first == found.end:
        return f"the loop of step {step.index} ({step.kernel}) does not make the calls that the plan has"
    if found.end <= 0:
        what = f"{-found.first} B before pool '{pool.name}' and on"
    elif found.first >= pool.used_bytes:
        what = f"{found.end - pool.used_bytes} B past pool '{pool.name}' of {pool.used_bytes} B"
    else:
        where = f"{pool.name}+{found.first}..{found.end - 1} ({found.end - found.first} B)"
        lies = "which the plan calls dead" if found.buffer is None else f"where '{found.buffer}' lies"
        if found.row is not None:
            lies = f"where row {found.row} of '{found.buffer}' lies, which is still read"
        what = f"{where}, {lies}"
    return f"step {step.index} ({step.kernel}) changed {what}"


def _differences(
    bundle: Bundle, plain: Sequence[Array], others: Sequence[Array], why: str = _POISON
) -> list[str]:
    """Outputs whose bytes are others in another run, and why they can be."""
    notes: list[str] = []
    for tensor, expected, actual in zip(bundle.plan.outputs, plain, others, strict=True):
        before, after = expected.tobytes(), actual.tobytes()
        if before != after:
            num_bytes = sum(a != b for a, b in zip(before, after, strict=True))
            notes.append(
                f"output '{tensor.name}' depends on bytes that {why}: {num_bytes} of its "
                f"{tensor.size_bytes} B change with them"
            )
    return notes
