"""How bundles are run and profiled: the options of both, and how often an inference may run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypedDict

from bytewright.diagnostics import compile_error

if TYPE_CHECKING:
    from bytewright.execute.build import BuildOptions
    from bytewright.execute.machine import Machine

MOST_RUNS = 1_000_000  # each has a time, which is kept
MOST_PROFILED = 10_000  # the times of all steps are kept of each


class MachineOptions(TypedDict, total=False):
    """Where an inference runs; every key may be left out.

    Attributes:
        on: The host, or the board of the bundle's target under QEMU; else the host.
        options: How to compile.
        timeout_seconds: Limit of the run; else `TIMEOUT_SECONDS`.
    """

    on: Machine
    options: BuildOptions | None
    timeout_seconds: float


class RunOptions(MachineOptions, total=False):
    """How to run; every key may be left out.

    Attributes:
        repeat: How often an inference runs, for times; else once.
        measure_memory: Also count loads and stores by memory (QEMU).
        keep_state: What survives runs does so from one inference to the next; else each begins like the first.
        entries: The entry of each inference, by its name; else all of them run, in their order.
    """

    repeat: int
    measure_memory: bool
    keep_state: bool
    entries: Sequence[str] | None


class ProfileOptions(MachineOptions, total=False):
    """How to profile; every key may be left out.

    Attributes:
        repeat: How many inferences run: the one with the median time is shown, or the last one on a board; else 31, or
            2 on a board.
    """

    repeat: int | None


def check_repetitions(who: str, repeat: int, most: int) -> None:
    """Refuses a number of runs that is not 1 to `most`.

    Raises:
        CompileError: BW204, which begins with `who`: "an inference can run".
    """
    if not 1 <= repeat <= most:
        raise compile_error("BW204", f"{who} 1 to {most} times, not {repeat}")
