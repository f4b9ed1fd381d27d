"""Chooses the board that runs a bundle, and where in its memories those of the target lie.

A target is at home on a board that has all its memories at their addresses. Of any other target those memories count
that hold bytes of the image. They keep size and access, and their address where the board has it; else they are moved.
One that is moved begins at the same distance from a multiple of 4 KiB, or of what its pools are aligned to, so that
everything in it lies as it would at home.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from bytewright.diagnostics import InternalError, compile_error
from bytewright.execute.arrays import ArrayKind, planned_arrays
from bytewright.execute.boards.facts import BOARDS, Board
from bytewright.execute.result import Move, StandIn
from bytewright.record.plan import Plan
from bytewright.target.isa.isa import Isa
from bytewright.target.model import Memory

DEFAULT_STACK_BYTES = 64 << 10
_PAGE_BYTES = 4 << 10
_CODE_BYTES = 256 << 10  # what is left for code, besides the memories that are moved
_GUARD_BYTES = 64 << 10  # beside the arrays of a memory without a size
_HARNESS_BYTES = 128 << 10  # the same for the harness's data, besides inputs, outputs and blobs


@dataclass(frozen=True, slots=True)
class Place:
    """Where a memory of the target is on a board.

    Attributes:
        memory: As the target has it.
        size_bytes: Its size; of one without a limit, room for what is in it.
        base: Its address on the board.
        board_memory: The board's memory that it is in.
        offset: From the first byte of that.
        is_moved: Whether it has another address on the board.
    """

    memory: Memory
    size_bytes: int
    base: int
    board_memory: str
    offset: int
    is_moved: bool = False

    @property
    def end(self) -> int:
        """The offset behind its last byte."""
        return self.offset + self.size_bytes


@dataclass(frozen=True, slots=True)
class Placement:
    """A board for a bundle, and where on it everything lies.

    Attributes:
        isa: What the code is compiled for: the target's, which the board's core runs.
        places: Of memories, in the target's order.
        stand_in: What differs from the target; None where it is at home.
    """

    board: Board
    isa: Isa
    places: tuple[Place, ...]
    stand_in: StandIn | None


def place_on_board(plan: Plan) -> Placement:
    """The board of the plan's core, or else the nearest whose core runs its code, and whose memories hold its own.

    Raises:
        CompileError: BW204 if there is none, with the reason for each board.
    """
    obstacles: dict[str, str] = {}
    for board in sorted(BOARDS.values(), key=lambda each: _distance(plan, each)):
        found = _places(plan, board)
        if not isinstance(found, str):
            isa = plan.device.isa if plan.device.isa.flags else board.isa
            return Placement(board, isa, found, _stand_in(plan, board, found))
        obstacles[board.name] = found
    raise compile_error(
        "BW204",
        f"no board that QEMU emulates can run a bundle for target '{plan.hardware.name}'",
        notes=tuple(f"{name}: {obstacles[name]}" for name in BOARDS),
        help=_other_ways(plan),
    )


def _distance(plan: Plan, board: Board) -> tuple[bool, bool, int, int]:
    """How far a board is from the target: by its core, by its name, and by what its core has besides."""
    isa = plan.device.isa
    more = [len({*has} - {*needs}) for has, needs in _instructions(board.isa, isa)]
    return (isa != board.isa, board.name != plan.hardware.name, more[0], more[1])


def _instructions(board: Isa, isa: Isa) -> tuple[tuple[Sequence[str], Sequence[str]], ...]:
    return ((board.architectures, isa.architectures), (board.features, isa.features))


def _other_ways(plan: Plan) -> str:
    """What runs instead: less memory where a board has the core, or the host."""
    suited = [board for board in BOARDS.values() if board.isa.lacks(plan.device.isa) == ()]
    if not suited:
        return f"no board has the core of device '{plan.device.name}': run it on the host, --on host"
    return (
        "give the memories that are used a smaller size in the target file, or run it on the host: --on host"
    )


def stack_bytes(plan: Plan) -> int:
    """The size of the model's stack."""
    limit = plan.device.contexts[0].max_stack_size_bytes
    return (DEFAULT_STACK_BYTES if limit is None else limit) // 8 * 8


def _held_bytes(plan: Plan) -> dict[str, int]:
    """Of each memory that holds bytes of an image, room for them."""
    held: dict[str, int] = {}
    for array in planned_arrays(plan):
        if not array.has_bytes:
            continue
        size_bytes = stack_bytes(plan) if array.kind is ArrayKind.STACK else 0
        if array.pool is not None:
            size_bytes = array.pool.used_bytes + array.pool.alignment
        for memory in (array.memory, array.load_memory):
            if memory is not None:
                held[memory] = held.get(memory, 0) + size_bytes
    return held


def _harness_bytes(plan: Plan) -> int:
    """Room for the harness's data."""
    tensors = sum(tensor.size_bytes for tensor in (*plan.inputs, *plan.outputs))
    return _HARNESS_BYTES + tensors + sum(pool.used_bytes for pool in plan.caller_parameters)


def _places(plan: Plan, board: Board) -> tuple[Place, ...] | str:
    """Where the memories are on a board; or why it cannot run the bundle."""
    target, isa = plan.hardware, plan.device.isa
    missing = board.isa.lacks(isa)
    if missing is None:
        return f"it has a {board.isa.name}, device '{plan.device.name}' is a {isa.name}"
    if missing:
        return f"its {board.isa.name} lacks {', '.join(missing)} of the {isa.name} of device '{plan.device.name}'"
    at_home = [_at_home(board, memory) for memory in target.memories]
    kept = tuple(place for place in at_home if place is not None)
    held = _held_bytes(plan)
    is_own = board.name == target.name
    if len(kept) == len(at_home) and (is_own or not any(_is_crowded(plan, board, p, held) for p in kept)):
        return kept
    if plan.devices:
        names = ", ".join(f"'{name}'" for name in plan.devices)
        return (
            f"it has not all memories of the target at their addresses, at which {names} would look for them"
        )
    return _moved(plan, board, held, [p for p in kept if not _is_crowded(plan, board, p, held)])


def _at_home(board: Board, memory: Memory) -> Place | None:
    """The place of a memory that the board has at its address."""
    if memory.base is None or memory.size_bytes is None:
        return None
    for whole in board.target.memories:
        offset = whole.offset_of(memory.base, memory.size_bytes)
        if offset is not None:
            # Where the code is, every address must be one that the processor can fetch from.
            base = board.code_base + offset if whole.name == board.code_memory else memory.base
            return Place(memory, memory.size_bytes, base, whole.name, offset)
    return None


def _is_crowded(plan: Plan, board: Board, place: Place, held: dict[str, int]) -> bool:
    """Whether too little is left for code or harness, which begin where their memory does."""
    needed = {board.code_memory: _CODE_BYTES, board.harness_memory: _harness_bytes(plan)}
    if place.board_memory not in needed:
        return False
    left = place.size_bytes - held.get(place.memory.name, 0) if place.offset == 0 else place.offset
    return left < needed[place.board_memory]


def _moved(plan: Plan, board: Board, held: dict[str, int], kept: Iterable[Place]) -> tuple[Place, ...] | str:
    """Places of the memories that are used: the largest first, each in the smallest piece that holds it."""
    used = [memory for memory in plan.hardware.memories if memory.name in held]
    places = {place.memory.name: place for place in kept if place.memory.name in held}
    waiting = [memory for memory in used if memory.name not in places]
    for memory in sorted(waiting, key=lambda each: -_size_bytes(each, held)):
        size_bytes, grain = _size_bytes(memory, held), _grain(plan, memory)
        pieces = _free_pieces(plan, board, places.values(), is_written=memory.is_writable)
        within = (memory.base or 0) % grain
        for name, first, end in pieces:
            base = _base(board, name)
            last = base + end - size_bytes  # where it ends with the piece
            offset = last - (last - within) % grain - base
            if first <= offset:
                places[memory.name] = Place(memory, size_bytes, base + offset, name, offset, is_moved=True)
                break
        else:
            largest = max((end - first for _, first, end in pieces), default=0)
            return (
                f"memory '{memory.name}' needs {size_bytes} B in one piece, and {largest} B are free: "
                f"{max(1, size_bytes - largest)} B are missing"
            )
    return tuple(places[memory.name] for memory in used)


def _size_bytes(memory: Memory, held: dict[str, int]) -> int:
    """The size that a memory keeps; one without a limit has room for guards besides."""
    if memory.size_bytes is not None:
        return memory.size_bytes
    return held[memory.name] + -held[memory.name] % _PAGE_BYTES + _GUARD_BYTES


def _grain(plan: Plan, memory: Memory) -> int:
    """A multiple of all alignments in a memory."""
    return max((_PAGE_BYTES, *(pool.alignment for pool in plan.hardware.pools_in(memory.name))))


def _base(board: Board, name: str) -> int:
    """The first address of a board's memory, as the linker has it."""
    base = board.code_base if name == board.code_memory else board.target.memory(name).base
    if base is None:
        raise InternalError(f"memory {name!r} of {board.name} has no address")
    return base


def _free_pieces(
    plan: Plan, board: Board, places: Iterable[Place], *, is_written: bool
) -> list[tuple[str, int, int]]:
    """What is free of the board's memories, as offsets: the smallest first, and those of code and harness last."""
    kept_free = {board.harness_memory: _harness_bytes(plan), board.code_memory: _CODE_BYTES}
    taken = sorted((place.board_memory, place.offset, place.end) for place in places)
    pieces: list[tuple[str, int, int]] = []
    for whole in board.target.memories:
        if is_written and not whole.is_writable:
            continue
        first = kept_free.get(whole.name, 0)
        for name, begin, end in [*taken, (whole.name, whole.size_bytes or 0, whole.size_bytes or 0)]:
            if name == whole.name:
                pieces.append((name, first, begin))
                first = max(first, end)
    order = list(kept_free)
    return sorted(
        (piece for piece in pieces if piece[1] < piece[2]),
        key=lambda piece: (order.index(piece[0]) if piece[0] in order else -1, piece[2] - piece[1]),
    )


def _stand_in(plan: Plan, board: Board, places: Iterable[Place]) -> StandIn | None:
    moves = tuple(
        Move(place.memory.name, place.size_bytes, place.memory.base, place.base, place.board_memory)
        for place in places
        if place.is_moved
    )
    isa = plan.device.isa
    if not moves and isa == board.isa:
        return None
    return StandIn(board.name, board.isa.name, isa.name, moves)
