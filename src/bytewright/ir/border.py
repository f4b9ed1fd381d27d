"""The model's border in the entry: which of its buffers are the model's inputs, outputs and states.

Inputs and outputs are parameters where the application provides them, and allocations marked `io` where they lie in a
workspace. States are allocations marked so.
"""

from dataclasses import replace
from enum import StrEnum

from bytewright.diagnostics import InternalError
from bytewright.ir.expr import Buffer
from bytewright.ir.module import Module, Port
from bytewright.ir.prim import Access, Allocate, BufferParameter, PrimFunc
from bytewright.ir.remember import Remembered
from bytewright.ir.storage import SIDES, Border
from bytewright.ir.walk import definitions


class Io(StrEnum):
    """How inputs and outputs come and go.

    CALLER: The application provides their memory at each run.
    WORKSPACE: They lie in a workspace.
    ROWS: The application provides the outputs' memory, and hands over the input a few rows at a time.
    """

    CALLER = "caller"
    WORKSPACE = "workspace"
    ROWS = "rows"


def border_of(definition: BufferParameter | Allocate) -> Border | None:
    """What a parameter or an allocation of the entry is at the border; None for what is inside the model."""
    if isinstance(definition, BufferParameter):
        return Border.INPUT if definition.access is Access.READ else Border.OUTPUT
    return definition.storage.border


def allocates_border(entry: PrimFunc) -> bool:
    """Whether inputs and outputs lie in a workspace already: allocations of the entry are marked so."""
    return any(isinstance(s, Allocate) and border_of(s) in SIDES for s in entry.body.statements)


def border_buffers(entry: PrimFunc, border: Border) -> tuple[Buffer, ...]:
    """The entry's inputs, outputs or states, in the model's order."""
    return tuple(definition.buffer for definition in definitions(entry) if border_of(definition) is border)


def state_buffers(module: Module) -> tuple[Buffer, ...]:
    """The states, which all entries allocate alike."""
    return border_buffers(module.entries[0], Border.STATE) if module.entries else ()


_ALONE: Remembered[tuple[Module, ...]] = Remembered()


def entries_alone(module: Module) -> tuple[Module, ...]:
    """The module once for each of its entries, with the ports of that entry; the last has all that are left.

    A module is taken apart once: what is remembered of its parts serves all who ask for them.
    """
    if len(module.entries) == 1:
        return (module,)
    found = _ALONE.get(module)
    if found is None:
        found = _taken_apart(module)
        _ALONE.put(module, found)
    return found


def _taken_apart(module: Module) -> tuple[Module, ...]:
    found: list[Module] = []
    left = {side: module.ports(side) for side in SIDES}
    for entry in module.entries:
        own: dict[Border, tuple[Port, ...]] = {}
        for side in SIDES:
            count = len(left[side]) if entry is module.entries[-1] else len(border_buffers(entry, side))
            own[side], left[side] = left[side][:count], left[side][count:]
        found.append(replace(module, entries=(entry,), inputs=own[Border.INPUT], outputs=own[Border.OUTPUT]))
    return tuple(found)


def border_ports(module: Module) -> dict[str, tuple[Border, Port]]:
    """What each of the entries' buffers at the border is, and its port: of each inputs, outputs, then states."""
    found: dict[str, tuple[Border, Port]] = {}
    for alone in entries_alone(module):
        for border in Border:
            ports, buffers = alone.ports(border), border_buffers(alone.main, border)
            if len(buffers) != len(ports):
                raise InternalError(f"the entry has {len(buffers)} {border.value}s, the model {len(ports)}")
            found |= {buffer.name: (border, port) for buffer, port in zip(buffers, ports, strict=True)}
    return found
