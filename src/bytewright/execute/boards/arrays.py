"""The arrays of an image by the names that a user knows: where each lies, and whether a run may write it.

The linker script finds arrays by section and name, so flags that change either could leave one elsewhere without an
error; whether all lie where the target wants them is checked on the linked image.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from bytewright.diagnostics import compile_error
from bytewright.elf.image import ElfSymbol
from bytewright.execute.arrays import ArrayKind, PlannedArray, planned_arrays
from bytewright.execute.boards.counts import AddressRange
from bytewright.record.plan import Plan


@dataclass(frozen=True, slots=True)
class ImageArray:
    """One array with bytes, guards that the harness put round it included."""

    planned: PlannedArray
    place: AddressRange
    is_writable: bool


def image_arrays(plan: Plan, symbols: Sequence[ElfSymbol]) -> tuple[ImageArray, ...]:
    """The arrays that the image has, of the harness and of the bundle. Those that no code refers to are not linked.

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
        arrays.append(ImageArray(planned, place, planned.is_written and not is_copy))
    return tuple(arrays)


def check_places(
    plan: Plan, arrays: Sequence[ImageArray], memories: Sequence[AddressRange], board_name: str
) -> None:
    """Every array of a pool lies in the memory that the target gave it.

    Args:
        plan: Of the bundle.
        arrays: Of the image.
        memories: Address ranges by the memory's name; a memory may have several.
        board_name: For the message.

    Raises:
        CompileError: BW405 with each array that lies elsewhere.
    """
    faults: list[str] = []
    wanted: list[str] = []
    for array in arrays:
        pool, memory, place = array.planned.pool, array.planned.memory, array.place
        found = [entry.name for entry in memories if entry.first <= place.first and place.last <= entry.last]
        if pool is None or memory is None or memory in found:
            continue
        where = f"in memory '{found[0]}'" if found else "in no memory of the target"
        addresses = f"{place.first:#010x}..{place.last:#010x}"
        faults.append(
            f"pool '{pool.name}': '{array.planned.symbol}' is at {addresses}, {where}, not in '{memory}'"
        )
        wanted.append(memory)
    if faults:
        names = " and ".join(f"'{name}'" for name in dict.fromkeys(wanted))
        raise compile_error(
            "BW405",
            f"the image of model '{plan.model}' for {board_name} is not what its plan says",
            tuple(faults),
            help=f"build without flags of your own, or give a `section` to memory {names} in the target file",
        )
