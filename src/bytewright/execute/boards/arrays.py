"""The arrays of an image by the names that a user knows: where each lies, and whether a run may write it.

The linker script finds arrays by section and name, so flags that change either could leave one elsewhere without an
error; whether all lie where the target wants them is checked on the linked image.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from bytewright.diagnostics import compile_error
from bytewright.execute.arrays import ArrayKind, planned_arrays
from bytewright.execute.boards.counts import AddressRange, ImageSymbol
from bytewright.record.plan import Plan


@dataclass(frozen=True, slots=True)
class ImageArray:
    """One array with bytes, guards that the harness put round it included.

    Attributes:
        pool: The pool that it is the array of, if it is one.
        memory: Where the target wants it; None if anywhere.
    """

    kind: ArrayKind
    place: AddressRange
    is_writable: bool
    pool: str | None = None
    memory: str | None = None


def image_arrays(plan: Plan, symbols: Sequence[ImageSymbol]) -> tuple[ImageArray, ...]:
    """The arrays that the image has, of the harness and of the bundle.

    Inputs and outputs that lie in the workspace are the harness's copies here, which a run does not know.
    """
    by_name = {symbol.name: symbol for symbol in symbols}
    arrays: list[ImageArray] = []
    for planned in planned_arrays(plan):
        symbol = by_name.get(planned.symbol)
        if symbol is None or symbol.size_bytes == 0 or not planned.has_bytes:
            continue
        is_copy = plan.io_in_workspace and planned.kind is ArrayKind.OUTPUT
        name = f"{planned.kind.value} {planned.name}".rstrip()
        place = AddressRange(name, symbol.address, symbol.address + symbol.size_bytes - 1)
        pool = None if planned.pool is None else planned.pool.name
        is_writable = planned.is_written and not is_copy
        arrays.append(ImageArray(planned.kind, place, is_writable, pool, planned.memory))
    return tuple(arrays)


def check_places(
    plan: Plan, symbols: Sequence[ImageSymbol], memories: Sequence[AddressRange], board_name: str
) -> None:
    """Every array of a pool lies in the memory that the target gave it. Those that no code refers to are not linked.

    Args:
        plan: Of the bundle.
        symbols: Of the image.
        memories: Address ranges by the memory's name; a memory may have several.
        board_name: For the message.

    Raises:
        CompileError: BW405 with each array that lies elsewhere.
    """
    by_name = {symbol.name: symbol for symbol in symbols}
    faults: list[str] = []
    wanted: list[str] = []
    for named in planned_arrays(plan):
        if named.pool is None or named.memory is None or not named.has_bytes:
            continue
        symbol = by_name.get(named.symbol)
        fault = None if symbol is None else _fault_of_place(symbol, named.memory, memories)
        if fault is not None:
            faults.append(f"pool '{named.pool.name}': {fault}")
            wanted.append(named.memory)
    if faults:
        names = " and ".join(f"'{name}'" for name in dict.fromkeys(wanted))
        raise compile_error(
            "BW405",
            f"the image of model '{plan.model}' for {board_name} is not what its plan says",
            tuple(faults),
            help=f"build without flags of your own, or give a `section` to memory {names} in the target file",
        )


def _fault_of_place(symbol: ImageSymbol, memory: str, memories: Sequence[AddressRange]) -> str | None:
    first, last = symbol.address, symbol.address + max(symbol.size_bytes, 1) - 1
    found = [entry.name for entry in memories if entry.first <= first and last <= entry.last]
    if memory in found:
        return None
    place = f"in memory '{found[0]}'" if found else "in no memory of the target"
    return f"'{symbol.name}' is at {first:#010x}..{last:#010x}, {place}, not in '{memory}'"
