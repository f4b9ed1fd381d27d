"""Writes into each allocation of the entry, and each constant, which pools it may end in, before any is chosen.

    candidates = resolve(scope) ∩ pools of its role ∩ pools of every device that touches it ∩ its annotation

Touch is computed from the program (`touch.py`), and what narrows a buffer because of another device is written down
with it. Where one pool remains, the scope says so. Inputs and outputs that the application brings have no pools to
choose from: the application may have them in the memories that every device reaches that touches them.
"""

from collections.abc import Iterable
from dataclasses import replace

from bytewright import ir
from bytewright.diagnostics import Collector
from bytewright.ir.analyses.clock import LiveBuffer, buffers_by_entry
from bytewright.ir.analyses.touch import Touch, Touches, constant_touches, holders, reasons_beside
from bytewright.ir.definitions import Definition, redefined, redefined_constants
from bytewright.scopes.candidates import Wanted, candidate_pools, check_memory_of_caller
from bytewright.target.model import Role, Target


def attach_candidates(module: ir.Module, target: Target) -> ir.Module:
    """Returns the module with candidate pools on every constant and on the entries' allocations that are used.

    What carries a tag that some pass lowers stays as it is.

    Raises:
        CompileError: BW301 for buffers that no pool may hold, all at once, with what each pool fails, and for inputs
            and outputs that the application can have nowhere that all devices reach who touch them.
    """
    collector = Collector()
    clocks = zip(module.entries, buffers_by_entry(module, target), strict=True)
    allocated = [_of_entry(entry, buffers, module, target, collector) for entry, buffers in clocks]
    touches, device = constant_touches(module, target), module.entries[0].device
    owner = (Touch(device, f"the program has its bytes, which runs on device '{device}'"),)
    constants: dict[str, ir.Storage] = {}
    for constant in module.constant_buffers:
        name = constant.buffer.name
        with collector.catch():
            constants[name] = _attached(constant, touches[name], device, target, owner)
    collector.stop_if_any()
    return replace(
        module,
        entries=tuple(redefined(e, own) for e, own in zip(module.entries, allocated, strict=True)),
        constant_buffers=redefined_constants(module, constants),
    )


def _of_entry(
    entry: ir.PrimFunc,
    buffers: Iterable[LiveBuffer],
    module: ir.Module,
    target: Target,
    collector: Collector,
) -> dict[str, ir.Storage]:
    """What is decided of the entry's allocations, by name, with their candidates."""
    found: dict[str, ir.Storage] = {}
    given = {parameter.buffer.name: parameter for parameter in entry.buffer_parameters}
    held = holders(entry, module)
    for live in buffers:
        name = live.buffer.name
        with collector.catch():
            if live.allocation is None:
                check_memory_of_caller(live, given[name], entry.device, target)
            else:
                found[name] = _attached(
                    live.allocation, live.touches, entry.device, target, held.get(name, ())
                )
    return found


def _attached(
    definition: Definition, touches: Touches, device: str, target: Target, held: Touches
) -> ir.Storage:
    """What is decided of it with its candidates, and why they are these; unchanged where nothing was narrowed."""
    storage, before = definition.storage, definition.scope
    if ir.lowering_pass(before, target) is not None:
        return storage
    wanted = Wanted(definition, touches, held)
    pools = tuple(pool.name for pool in candidate_pools(wanted, target))
    scope = before
    if len(pools) == 1:
        scope = ir.join_scopes(before, ir.pool_scope(pools[0]))
    elif wanted.role is Role.WORKSPACE:
        scope = ir.join_scopes(before, ir.WORKSPACE)
    if storage.candidates == pools and scope == before:
        return storage
    reasons = (
        *reasons_beside(device, touches),
        f"{wanted.scope}, touched by {', '.join(wanted.devices)}: {{{', '.join(pools)}}}",
    )
    lines = (f"attach_candidates: {reason}" for reason in reasons)
    return storage.narrowed(*lines, scope=scope, candidates=pools)
