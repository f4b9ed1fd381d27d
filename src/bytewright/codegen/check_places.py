"""The last look at storage: what the module says of its buffers is what the plan says."""

from bytewright import ir
from bytewright.diagnostics import InternalError
from bytewright.ir.walk import allocations
from bytewright.record.plan import Plan


def check_places(module: ir.Module, plan: Plan) -> None:
    """Refuses a module with a tensor or a constant that has no place, or not that of the plan, and a plan with more.

    Raises:
        InternalError: A pass of storage or the verifier behind it is wrong.
    """
    definitions = (*(a for entry in module.entries for a in allocations(entry)), *module.constant_buffers)
    for definition in definitions:
        buffer, storage = definition.buffer, definition.storage
        if storage.offset is None and storage.arena is None:
            what = "" if isinstance(definition, ir.Allocate) else "constant "
            raise InternalError(f"{what}'{buffer.name}' has no offset")
        planned = plan.buffers.get(buffer.name)
        place = None if planned is None else (planned.place.name, planned.place.offset)
        if place != (storage.pool, storage.offset):
            raise InternalError(f"storage of '{buffer.name}' ({storage.scope}) was not decided")
    defined = {definition.buffer.name for definition in definitions}
    for planned in plan.buffers.values():
        if planned.has_offset and planned.name not in defined:
            raise InternalError(f"the plan has '{planned.name}', which the module has not")
