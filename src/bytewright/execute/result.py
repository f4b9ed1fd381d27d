"""What a run showed: of a batch of inferences, as host and boards return it, and of one inference."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass

from bytewright.execute.machine import Machine
from bytewright.execute.tensors import Array
from bytewright.target.size import format_size


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
class StepWork:
    """What a device did for one call of a step.

    Attributes:
        step: Index of the step; None for what is done for none of them.
        address: Of what was called.
        began_at: Instructions that the entry's device had executed before.
        instructions: Of the device.
        loaded_bytes: By memory.
        stored_bytes: The same.
    """

    step: int | None
    address: int
    began_at: int
    instructions: int
    loaded_bytes: Mapping[str, int]
    stored_bytes: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class DeviceWork:
    """What a device did in one inference.

    Attributes:
        device: Its name.
        instructions: All of them, also of the entry itself.
        loaded_bytes: By memory.
        stored_bytes: The same.
        calls: Those of steps, in the order in which they ended.
    """

    device: str
    instructions: int
    loaded_bytes: Mapping[str, int]
    stored_bytes: Mapping[str, int]
    calls: tuple[StepWork, ...]


@dataclass(frozen=True, slots=True)
class TimedRun:
    """When things happened in a run, in units of some clock.

    Attributes:
        marks: Steps, each with when it began; the number of all steps stands for the end of the last.
    """

    began_at: int
    ended_at: int
    marks: tuple[tuple[int, int], ...]


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


@dataclass(frozen=True, slots=True)
class Move:
    """A memory of the target that is elsewhere on the board.

    Attributes:
        memory: Its name.
        size_bytes: What it has on the board.
        base: Its address in the target; None if none is known.
        moved_to: Its address on the board.
        board_memory: The board's memory that it is in.
    """

    memory: str
    size_bytes: int
    base: int | None
    moved_to: int
    board_memory: str


@dataclass(frozen=True, slots=True)
class StandIn:
    """An emulated board that stands for the target's own.

    Attributes:
        board: Its name.
        core: What it has.
        isa: What the code is for.
        moves: The memories that hold something and have other addresses there.
    """

    board: str
    core: str
    isa: str
    moves: tuple[Move, ...]

    @property
    def text(self) -> str:
        """What was moved where, in one line."""
        core = "" if self.core == self.isa else f", whose {self.core} runs the code for {self.isa}"
        moved = ", ".join(
            f"{move.memory} ({format_size(move.size_bytes)}"
            f"{'' if move.base is None else f' at {move.base:#010x}'}) to {move.moved_to:#010x} in {move.board_memory}"
            for move in self.moves
        )
        return f"{self.board}{core}{f'; moved: {moved}' if moved else ''}"

    @property
    def document(self) -> dict[str, object]:
        """What programs are told."""
        return {"board": self.board, "core": self.core, "moved": [asdict(move) for move in self.moves]}


@dataclass(frozen=True, slots=True, eq=False)
class BatchResult:
    """What running a batch showed.

    Attributes:
        outputs: By inference, in the model's order.
        on: Where it ran.
        target: The target's name.
        workspace_bytes: All workspace pools together.
        board: The emulated board; `None` elsewhere.
        stand_in: What differs from the target there; `None` where nothing does.
        microseconds: Host time of each inference and repetition; empty under QEMU.
        instructions: Executed instructions of each inference and repetition; empty but under QEMU.
        cycles: Of the core's own counter, of each inference and repetition; empty but on boards that have one.
        stack_bytes: The deepest stack of the model's run function; `None` but under QEMU.
        flash_bytes: Code, constants and data of the bundle's objects on the board; `None` but under QEMU.
        functions: Instructions of the last inference by function, largest first.
        traffic: Memory traffic of the last inference, if it was asked for.
        devices: What each other device did (QEMU).
        work: What each device did in the last inference step by step, the entry's first, if it was asked for (QEMU).
        timed_runs: When each step was come to in each inference and repetition, if it was asked for: in nanoseconds on
            the host, in cycles on a board.
        num_resent_frames: Frames over a serial line that were damaged or lost, and sent again.
    """

    outputs: tuple[tuple[Array, ...], ...]
    on: Machine
    target: str
    workspace_bytes: int
    board: str | None = None
    stand_in: StandIn | None = None
    microseconds: tuple[float, ...] = ()
    instructions: tuple[int, ...] = ()
    cycles: tuple[int, ...] = ()
    stack_bytes: int | None = None
    flash_bytes: int | None = None
    functions: tuple[FunctionCount, ...] = ()
    traffic: tuple[RegionTraffic, ...] = ()
    devices: tuple[DeviceRun, ...] = ()
    work: tuple[DeviceWork, ...] = ()
    timed_runs: tuple[TimedRun, ...] = ()
    num_resent_frames: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class RunResult:
    """What running one inference showed; `None` where it does not apply.

    Attributes:
        outputs: In the model's order.
        on: Where it ran.
        target: The target's name.
        instructions: Executed instructions of one inference (QEMU).
        cycles: Of one inference (a board on a serial line, if it counts them).
        microseconds: The median time of one inference (host).
        workspace_bytes: All workspace pools together.
        stack_bytes: The deepest stack (QEMU).
        details: Everything else that was measured.
    """

    outputs: tuple[Array, ...]
    on: Machine
    target: str
    instructions: int | None
    cycles: int | None
    microseconds: float | None
    workspace_bytes: int
    stack_bytes: int | None
    details: BatchResult
