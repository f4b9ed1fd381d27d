"""What a run showed: of a batch of inferences, as host and boards return it, and of one inference."""

from dataclasses import dataclass
from typing import Literal

from bytewright.execute.tensors import Array

Machine = Literal["host", "qemu"]


@dataclass(frozen=True, slots=True)
class FunctionCount:
    """Executed instructions of one function in one inference, without those of its callees."""

    name: str
    instructions: int


@dataclass(frozen=True, slots=True)
class RegionTraffic:
    """Memory accesses of one inference in one range; the addresses are the outermost bytes written."""

    name: str
    loads: int
    stores: int
    loaded_bytes: int
    stored_bytes: int
    lowest_written: int | None
    highest_written: int | None


@dataclass(frozen=True, slots=True)
class DeviceRun:
    """What a device besides the entry's did on a board.

    Attributes:
        name: The target's name for it.
        instructions: Executed instructions of each inference and repetition, from each ring to its reply.
        stack_bytes: Its deepest stack.
        functions: Instructions of the last inference by function, largest first.
    """

    name: str
    instructions: tuple[int, ...]
    stack_bytes: int
    functions: tuple[FunctionCount, ...]


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
        devices: What each other device did (QEMU).
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
    devices: tuple[DeviceRun, ...] = ()


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
