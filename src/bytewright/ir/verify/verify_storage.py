"""Checks what storage decides of allocations and constants: candidates, requests, offsets, the model's border."""

from collections.abc import Iterator, Mapping

from bytewright import ir
from bytewright.ir.verify.violation import Context, word_for


def constant_faults(context: Context, constant: ir.ConstantBuffer) -> Iterator[str]:
    """What is wrong with a constant: its place, and its values against its buffer."""
    buffer, data = constant.buffer, constant.data
    what = f"constant buffer '{buffer.name}'"
    yield from _constant_offset_faults(context, constant, what)
    yield from _candidate_faults(context, constant, what)
    yield from ir.misused(constant.annotations, buffer.name)
    if data.dtype is not buffer.dtype or data.type.num_elements != ir.num_elements(buffer):
        found = f"{data.type.num_elements} elements of {data.dtype.value}"
        yield f"{what} holds {found}, not {ir.num_elements(buffer)} of {buffer.dtype.value}"
    if ir.num_elements(buffer) < 1:
        yield f"{what} has no elements"
    yield from context.scope_faults(constant.scope, None, what)


def _constant_offset_faults(context: Context, constant: ir.ConstantBuffer, what: str) -> Iterator[str]:
    buffer, offset = constant.buffer, constant.storage.offset
    if not context.rules.offsets:
        if offset is not None:
            yield f"{what} has an offset before planning"
    elif constant.storage.pool is None or offset is None or offset < 0:
        yield f"{what} has no offset in a pool: scope '{constant.scope}', {offset}"
    elif offset % buffer.alignment:
        yield f"{what}: offset {offset} is not a multiple of {buffer.alignment}"


def _candidate_faults(
    context: Context, definition: ir.Allocate | ir.ConstantBuffer, what: str
) -> Iterator[str]:
    for pool in definition.storage.candidates or ():
        if context.target is not None and context.target.find_pool(pool) is None:
            yield f"candidate pool '{pool}' of {what} does not exist in target '{context.target.name}'"


def allocation_faults(
    context: Context, function: ir.PrimFunc, statement: ir.Allocate, allocated: Mapping[str, ir.Allocate]
) -> Iterator[str]:
    """What is wrong with the storage of an allocation.

    Args:
        context: The module.
        function: The function that it stands in.
        statement: The allocation.
        allocated: What is allocated before it and still there, by name.
    """
    buffer, scope, storage, rules = statement.buffer, statement.scope, statement.storage, context.rules
    is_entry = word_for(context.module, function) == "entry"
    keys = [key for key, _ in statement.annotations]
    if len(set(keys)) != len(keys):
        yield f"an annotation of '{buffer.name}' stands twice"
    yield from ir.misused(statement.annotations, buffer.name)
    is_for_the_planner = is_entry and storage.candidates is not None and not rules.offsets
    if scope in rules.undecided and not is_for_the_planner:
        yield f"storage of '{buffer.name}' is undecided: scope '{scope}'"
    if rules.undecided and scope == ir.STACK and not ir.has_constant_size(buffer):
        yield f"'{buffer.name}' is on the stack, so its size must be constant"
    if storage.candidates is not None and scope is not None and scope.rank is not ir.Rank.GLOBAL:
        yield f"{ir.CANDIDATE_POOLS} of '{buffer.name}' needs rank 'global', not '{scope}'"
    yield from _candidate_faults(context, statement, f"'{buffer.name}'")
    if storage.arena is not None:
        yield from _request_faults(context, statement, is_entry, allocated.get(storage.arena))
    yield from _offset_faults(context, statement, is_entry)
    if storage.border is not None:
        yield from _border_faults(function, statement, storage.border, is_entry)


def _request_faults(
    context: Context, statement: ir.Allocate, is_entry: bool, arena: ir.Allocate | None
) -> Iterator[str]:
    """What is requested at run time names an arena of constant size, and is where the arena is."""
    what = f"'{statement.buffer.name}' is requested from '{statement.storage.arena}'"
    if not is_entry:
        yield f"{what} by a kernel; the entry requests what kernels need"
    if arena is None:
        yield f"{what}, which is not allocated here"
    elif arena.storage.arena is not None or not ir.has_constant_size(arena.buffer):
        yield f"{what}, which is no arena of constant size"
    elif context.rules.offsets and statement.scope != arena.scope:
        yield f"{what}: scope '{statement.scope}' is not the arena's, '{arena.scope}'"


def _offset_faults(context: Context, statement: ir.Allocate, is_entry: bool) -> Iterator[str]:
    buffer, offset, pool = statement.buffer, statement.storage.offset, statement.storage.pool
    if not context.rules.offsets:
        if offset is not None:
            yield f"'{buffer.name}' has a {ir.POOL_OFFSET} before planning"
        return
    if pool is not None and not is_entry:
        yield f"'{buffer.name}' is allocated in pool '{pool}' by a kernel; it must be a parameter"
    is_planned = pool is not None and statement.storage.arena is None
    if is_planned and (offset is None or offset < 0):
        yield f"'{buffer.name}' in pool '{pool}' has no {ir.POOL_OFFSET}"
    if not is_planned and offset is not None:
        yield f"'{buffer.name}' has a {ir.POOL_OFFSET} without being planned in a pool"
    if offset is not None and offset % buffer.alignment:
        yield f"offset {offset} of '{buffer.name}' is not a multiple of {buffer.alignment}"


def _border_faults(
    function: ir.PrimFunc, statement: ir.Allocate, border: ir.Border, is_entry: bool
) -> Iterator[str]:
    name = statement.buffer.name
    what = "a state" if border is ir.Border.STATE else "an input or output"
    if not is_entry:
        yield f"'{name}' is {what} of the model, allocated by a kernel"
        return
    if statement not in function.body.statements:
        yield f"'{name}' is {what} of the model, allocated within a loop, branch or block"
    if border is ir.Border.STATE:
        if not ir.has_constant_size(statement.buffer):
            yield f"'{name}' is a state of the model, so its size must be constant"
        return
    for parameter in function.buffer_parameters:
        yield (
            f"'{name}' is an {border.value} of the model that the entry allocates, and "
            f"'{parameter.buffer.name}' is a parameter: all inputs and outputs are the application's, or none is"
        )
