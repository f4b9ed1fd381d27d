"""How a batch runs, as one value that all ways to run it read: as a library, as a program, emulated, on a board."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from bytewright.execute.build import BuildOptions
from bytewright.execute.tools import TIMEOUT_SECONDS
from bytewright.execute.watch import Watch


@dataclass(frozen=True, slots=True)
class Settings:
    """How the inferences of a batch run. A library in this process heeds no limit, and what stands from `watch` on.

    Attributes:
        build: How the bundle is compiled; `sanitize` does not apply under QEMU.
        repeat: How often each inference runs.
        timeout_seconds: Limit of the run, in host time.
        keep_state: Each inference goes on from where the last one ended; else each begins like the first.
        entries: The entry of each inference; None for all entries in each, in their order.
        watch: What a paranoid run watches; None for a usual run.
        by_step: Says of each step when it began; on a board, its instructions and memory traffic.
        measure_memory: Attributes loads and stores to memory ranges, at half the speed; on boards alone.
    """

    build: BuildOptions = field(default_factory=BuildOptions)
    repeat: int = 1
    timeout_seconds: float = TIMEOUT_SECONDS
    keep_state: bool = False
    entries: Sequence[str] | None = None
    watch: Watch | None = None
    by_step: bool = False
    measure_memory: bool = False
