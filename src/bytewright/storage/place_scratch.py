"""Stack or workspace, for each allocation inside a kernel.

`local` stays private to the kernel. `global` becomes a local array where the device's limits admit it, so that the
C compiler may keep it in registers; otherwise, like anything that asks for a workspace, it becomes a parameter of
the kernel and an allocation of the entry at each call, which the planner then places among the tensors. A kernel that
calls another one is given such scratch for each of its calls and passes it on; so what the calls of one body need may
share bytes. What was allocated in a loop stays private to its turns. Arrays that only `global` put on the stack move
away again where the worst call path of a context exceeds its limit, as few bytes as suffice (`choose_moves.py`). What
carries a tag that some pass lowers is that pass's business and stays as it is. The scopes say afterwards what was
decided, the provenance why.

Scratch whose size is known only at run time has at each call the size that the call gives it: a constant one where the
call passes constants, else one of the entry's symbols, which `make_arenas.py` deals with. So it does with `global`
scratch of a device that has `use-backend-alloc-workspace`: nothing asks for a static plan of it.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from bytewright import ir
from bytewright.base.c_names import unique_name
from bytewright.diagnostics import Collector, CompileError, compile_error
from bytewright.ir.analyses.bind_symbols import Binding, Known, binding_at, bound_buffer
from bytewright.ir.analyses.body_clock import BodyClock, body_clock
from bytewright.ir.analyses.stack import Above, StackUse, stack_uses, worst_arrays
from bytewright.ir.analyses.touch import Touch, Touches, TouchTable, alignment_reason, touch_alignment
from bytewright.ir.definitions import redefined
from bytewright.ir.remember import Remembered
from bytewright.ir.rewrite import Rewriting, rewrite_sequence, with_body
from bytewright.ir.walk import allocations, blocks, names_in, statements_of, walk_statements
from bytewright.storage.choose_moves import Array, Demand, choose_moves
from bytewright.storage.share_scratch import share_scratch
from bytewright.target.mistake import in_target_file
from bytewright.target.model import Device, Target

SCRATCH_ALIGNMENT = 16
MAX_NAME = 60
_CHANGE_THE_SCOPE = "in the kernel: use the scope global or global.workspace for it"
_USE_BACKEND = "use-backend-alloc-workspace"
_Inner = TypeVar("_Inner", ir.Allocate, ir.Call)


def place_scratch(module: ir.Module, target: Target, above: tuple[Above, ...] = ()) -> ir.Module:
    """Decides every allocation of every kernel.

    Args:
        module: Lowered.
        target: What it is for.
        above: What runs above the entry, if the C has such a function.

    Raises:
        CompileError: BW302 for what asks for the stack by name, or is private, and cannot be there.
    """
    _check_locals(module, target)
    whole = placed = _place(module, target, {})
    demands: list[Demand] = []
    moved: dict[Array, str] = {}
    while exceeded := [use for use in stack_uses(placed, target, above) if use.excess_bytes > 0]:
        found = [_demand(module, whole, use, moved) for use in exceeded]
        demands += [demand for demand in found if demand.can_be_met]
        hopeless = [demand for demand in found if not demand.can_be_met]
        chosen = {*choose_moves(demands), *(array for demand in hopeless for array in demand.arrays)}
        if chosen <= set(moved):
            break
        moved = _reasons(sorted(chosen), [*demands, *hopeless])
        placed = _place(module, target, moved)
    return placed


def _demand(module: ir.Module, whole: ir.Module, use: StackUse, moved: Collection[Array]) -> Demand:
    """What a path asks for that is too long although some arrays have moved, in terms of the program without moves."""
    arrays: dict[Array, int] = {}
    back_bytes = 0
    for name in use.path:
        before, kernel = module.kernel(name), whole.kernel(name)
        if before is None or kernel is None:
            continue
        movable = _movable(before)
        for allocation in worst_arrays(kernel, {array for owner, array in moved if owner == name}):
            array = (name, allocation.buffer.name)
            if array[1] in movable and allocation.scope == ir.STACK:
                arrays[array] = ir.size_bytes(allocation.buffer)
            if array in moved:
                back_bytes += ir.size_bytes(allocation.buffer)
    needed = use.excess_bytes + back_bytes
    reason = (
        f"{' -> '.join(use.path)} would take {use.size_bytes + back_bytes} B of the stack of '{use.context}', "
        f"{needed} B more than its limit"
    )
    return Demand(arrays, needed, reason)


def _movable(kernel: ir.PrimFunc) -> set[str]:
    """Arrays of a kernel that no scope asked to have on the stack, and that are not one for each thread."""
    per_thread = {allocation.buffer.name for allocation in _in_parallel_loops(kernel, ir.Allocate)}
    return {a.buffer.name for a in allocations(kernel) if a.scope in (None, ir.GLOBAL)} - per_thread


def _reasons(chosen: Sequence[Array], demands: Sequence[Demand]) -> dict[Array, str]:
    """Each array that moves, with the first path that asks for it, and what moves for that one altogether."""
    reasons: dict[Array, str] = {}
    for array in chosen:
        demand = next(demand for demand in demands if array in demand.arrays)
        together = [demand.arrays[other] for other in chosen if other in demand.arrays]
        least = ", the fewest that suffice" if demand.can_be_met else ", all that may move"
        reasons[array] = f"{demand.reason}; of its arrays {sum(together)} B move{least}"
    return reasons


def _place(module: ir.Module, target: Target, moved: Mapping[Array, str]) -> ir.Module:
    hoisted: dict[str, _Hoisted] = {}
    touched, clocks = TouchTable(target, tuple(e.name for e in module.entries)), dict[str, BodyClock]()
    for kernel in module.kernels:  # callees stand before their callers
        received = _receive_scratch(kernel, hoisted, touched)
        given, scratch = _hoist(received, target, moved, touched.of_buffers(received))
        clock = body_clock(given, target, clocks)
        shared, scratch = share_scratch(given, scratch, clock)
        hoisted[kernel.name] = _Hoisted(Known(shared), scratch)
        touched.add(shared)
        clocks[kernel.name] = clock if shared is given else body_clock(shared, target, clocks)
    kernels = tuple(hoisted[kernel.name].kernel for kernel in module.kernels)
    for entry in module.entries:
        _check_entry(entry)
    entries = tuple(_pass_scratch(entry, hoisted, touched) for entry in module.entries)
    return replace(module, kernels=kernels, entries=entries)


@dataclass(frozen=True, slots=True)
class _Hoisted:
    """A kernel whose workspace scratch became parameters."""

    known: Known
    scratch: tuple[ir.Allocate, ...]

    @property
    def kernel(self) -> ir.PrimFunc:
        """The kernel itself."""
        return self.known.function


def _receive_scratch(kernel: ir.PrimFunc, hoisted: dict[str, _Hoisted], touched: TouchTable) -> ir.PrimFunc:
    """Allocates what the kernel's callees need right before each call, and passes it."""
    known = Known(kernel)
    for call in _in_parallel_loops(kernel, ir.Call):
        for allocation in _scratch_of(call, known, hoisted):
            raise _shared_by_threads(allocation.buffer, kernel, f"'{call.callee}' asks for it")

    def name_of(call: ir.Call, buffer: ir.Buffer) -> str:
        name = f"{call.callee}_{buffer.name}"
        return name if len(name) <= MAX_NAME else f"{call.callee}_scratch"  # each level would add to it

    return _with_own_scratch(known, hoisted, touched, name_of, lambda own, call: (*own, call))


def _with_own_scratch(
    known: Known,
    hoisted: dict[str, _Hoisted],
    touched: TouchTable,
    name_of: Callable[[ir.Call, ir.Buffer], str],
    arrange: Callable[[tuple[ir.Allocate, ...], ir.Call], tuple[ir.Statement, ...]],
    alignment: int = 1,
) -> ir.PrimFunc:
    """The function that allocates, at each of its calls, what the callee needs, and passes it."""
    taken = set(names_in(known.function))

    def expand(statement: ir.Statement) -> tuple[ir.Statement, ...]:
        if not isinstance(statement, ir.Call) or not (scratch := _scratch_of(statement, known, hoisted)):
            return (statement,)
        own: list[ir.Allocate] = []
        for allocation in scratch:
            buffer = allocation.buffer
            name = unique_name(name_of(statement, buffer), taken)
            aligned = replace(buffer, name=name, alignment=max(alignment, buffer.alignment))
            own.append(replace(allocation, buffer=aligned))
        own = _lent(own, known.function, _with_scratch(statement, own), touched)
        return arrange(tuple(own), _with_scratch(statement, own))

    return with_body(known.function, rewrite_sequence(known.function.body, Rewriting(statement=expand)))


def _lent(
    scratch: Sequence[ir.Allocate], function: ir.PrimFunc, call: ir.Call, touched: TouchTable
) -> list[ir.Allocate]:
    """Scratch that a call ends with, aligned as the devices ask that are lent it, with the reason."""
    found: list[ir.Allocate] = []
    for index, own in enumerate(scratch, start=len(call.arguments) - len(scratch)):
        touches = touched.of_lent(function, call, index)
        alignment = touch_alignment(touches, touched.target)
        if alignment <= own.buffer.alignment:
            found.append(own)
            continue
        reason = f"place_scratch: {alignment_reason(touches, touched.target)}"
        aligned = replace(own.buffer, alignment=alignment)
        found.append(replace(own, buffer=aligned, storage=own.storage.narrowed(reason)))
    return found


def _with_scratch(call: ir.Call, scratch: Sequence[ir.Allocate]) -> ir.Call:
    """The call with scratch; of an opaque one, whoever touches any argument may touch the scratch."""
    touched_by = call.touched_by
    if touched_by is not None:
        devices = tuple(dict.fromkeys(device for devices in touched_by for device in devices))
        touched_by = (*touched_by, *(devices for _ in scratch))
    arguments = (*call.arguments, *(ir.Region(allocation.buffer) for allocation in scratch))
    return replace(call, arguments=arguments, touched_by=touched_by)


def _hoist(
    kernel: ir.PrimFunc, target: Target, moved: Mapping[Array, str], touched: dict[str, Touches]
) -> tuple[ir.PrimFunc, tuple[ir.Allocate, ...]]:
    """The kernel whose workspace scratch became its last parameters, and that scratch."""
    device = target.device(kernel.device)
    per_thread = {allocation.buffer.name for allocation in _in_parallel_loops(kernel, ir.Allocate)}
    placed: dict[str, ir.Storage] = {}
    for allocation in allocations(kernel):
        buffer, storage = allocation.buffer, allocation.storage
        if buffer.register or ir.lowering_pass(storage.scope, target) is not None:
            continue  # a register is no memory
        other = next((t for t in touched.get(buffer.name, ()) if t.device != kernel.device), None)
        scope, reason = _decide(allocation, device, kernel, moved.get((kernel.name, buffer.name)), other)
        if not ir.is_on_stack(scope):
            if buffer.name in per_thread:
                raise _shared_by_threads(buffer, kernel, reason)
            storage = _with_reason(storage, reason)
            if _is_requested(allocation, device):
                storage = storage.narrowed(on_request=_USE_BACKEND)
        elif buffer.shape:
            storage = storage.narrowed(f"place_scratch: {reason}")
        placed[buffer.name] = storage.narrowed(scope=scope)
    return _decided(kernel, placed)


# By kernel: what was decided of its allocations, and what came of it. A search decides the same again and again.
_known: Remembered[list[tuple[Mapping[str, ir.Storage], tuple[ir.PrimFunc, tuple[ir.Allocate, ...]]]]] = (
    Remembered()
)


def _decided(
    kernel: ir.PrimFunc, placed: Mapping[str, ir.Storage]
) -> tuple[ir.PrimFunc, tuple[ir.Allocate, ...]]:
    """The kernel whose allocations have these records; those in the workspace became parameters, and are beside it."""
    known = _known.get(kernel) or []
    for before, found in known:
        if before == placed:
            return found
    changed = redefined(kernel, placed)
    scratch = tuple(
        a for a in allocations(changed) if a.buffer.name in placed and not ir.is_on_stack(a.scope)
    )
    result = (_given(changed, scratch), scratch) if scratch else (changed, scratch)
    if result[0] is not kernel:
        _known.put(kernel, [*known, (placed, result)])
    return result


def _given(kernel: ir.PrimFunc, scratch: Sequence[ir.Allocate]) -> ir.PrimFunc:
    """The kernel that is given what it allocated; loops say what of it carries nothing from turn to turn."""
    given, private = {a.buffer for a in scratch}, dict[str, list[ir.Buffer]]()
    for buffer, loop in _innermost_loops(kernel.body):
        if buffer in given:
            private.setdefault(loop, []).append(buffer)

    def drop(statement: ir.Statement) -> tuple[ir.Statement, ...]:
        if isinstance(statement, ir.For):
            own = private.get(statement.variable.name, [])
            return (replace(statement, private=(*statement.private, *own)),)
        return () if isinstance(statement, ir.Allocate) and statement.buffer in given else (statement,)

    parameters = (
        ir.BufferParameter(a.buffer, ir.Access.READ_WRITE, ir.ParameterRole.SCRATCH, a.scope) for a in scratch
    )
    body = rewrite_sequence(kernel.body, Rewriting(statement=drop))
    return replace(kernel, parameters=(*kernel.parameters, *parameters), body=body)


def _with_reason(storage: ir.Storage, reason: str) -> ir.Storage:
    """What a callee asks for has the callee's reason already, which is often the same at each level."""
    line = f"place_scratch: {reason}"
    return storage if line in storage.provenance else storage.narrowed(line)


def _innermost_loops(statement: ir.Statement, loop: str | None = None) -> Iterator[tuple[ir.Buffer, str]]:
    """What is allocated in loops, each with the variable of the innermost one: every turn has it anew."""
    if isinstance(statement, ir.Allocate) and loop is not None:
        yield statement.buffer, loop
    inside = statement.variable.name if isinstance(statement, ir.For) else loop
    for block in blocks(statement):
        for inner in block.statements:
            yield from _innermost_loops(inner, inside)


def _in_parallel_loops(kernel: ir.PrimFunc, kind: type[_Inner]) -> list[_Inner]:
    """Statements of one kind that each thread of a parallel loop executes for itself."""
    return [
        inner
        for statement in statements_of(kernel)
        if isinstance(statement, ir.For) and statement.kind is ir.LoopKind.PARALLEL
        for inner in walk_statements(statement.body)
        if isinstance(inner, kind)
    ]


def _shared_by_threads(buffer: ir.Buffer, kernel: ir.PrimFunc, reason: str) -> CompileError:
    return _refused(
        kernel,
        f"'{buffer.name}' of kernel '{kernel.name}' is allocated inside a parallel loop, so each thread needs its "
        f"own, but it goes to the workspace ({reason}), where there would be one",
        "in the kernel: use the scope local or global.stack for it, or allocate it outside of the loop",
    )


def _is_requested(asked: ir.Allocate, device: Device) -> bool:
    """Whether scratch that goes to the workspace is requested at run time: no scope and no list names a pool."""
    is_plain = asked.scope in (None, ir.GLOBAL) and asked.storage.candidates is None
    return is_plain and device.use_backend_alloc_workspace


def _decide(
    allocation: ir.Allocate, device: Device, kernel: ir.PrimFunc, why_moved: str | None, other: Touch | None
) -> tuple[ir.Scope, str]:
    """The scope that says where the buffer goes, and why; `other` is another device that touches it, if any."""
    buffer, scope = allocation.buffer, allocation.scope or ir.GLOBAL
    pools = allocation.storage.candidates
    if ir.is_local(scope):
        return scope, "private to the kernel"
    if scope == ir.STACK:
        _check_stack(buffer, device, kernel, other, pools)
        return scope, "asks for the stack by name"
    if scope != ir.GLOBAL:
        return scope, f"asks for {scope}"
    if kernel.external is not None:
        return ir.WORKSPACE, "a function of the application is given its scratch"
    if not ir.has_constant_size(buffer):
        return ir.WORKSPACE, "its size is known only at run time"
    if other is not None:
        return (
            ir.WORKSPACE,
            f"{other.reason}, and device '{other.device}' reaches no stack of '{device.name}'",
        )
    if pools is not None:
        return ir.WORKSPACE, f"its candidate pools are {', '.join(pools)}, and no stack is one"
    if why_moved is not None:
        return ir.WORKSPACE, why_moved
    if device.use_backend_alloc_workspace:
        return (
            ir.WORKSPACE,
            f"{_USE_BACKEND} keeps scratch off the stack, and nothing asks for a place in a pool",
        )
    if device.admits_stack_allocation(ir.size_bytes(buffer)):
        return ir.STACK, f"scratch of {ir.size_bytes(buffer)} B, within max-stack-alloca-size"
    return ir.WORKSPACE, f"scratch of {ir.size_bytes(buffer)} B, over max-stack-alloca-size"


def _check_locals(module: ir.Module, target: Target) -> None:
    """Private arrays are small, or all of them that are not are refused at once."""
    private = [
        (kernel, allocation.buffer)
        for kernel in module.kernels
        for allocation in allocations(kernel)
        if ir.is_local(allocation.scope) and not allocation.buffer.register
    ]
    largest: dict[str, int] = {}
    for kernel, buffer in private:
        if ir.has_constant_size(buffer):
            largest[kernel.device] = max(largest.get(kernel.device, 0), ir.size_bytes(buffer))
    collector = Collector()
    for kernel, buffer in private:
        device, is_constant = target.device(kernel.device), ir.has_constant_size(buffer)
        if is_constant and ir.size_bytes(buffer) <= device.max_local_size_bytes:
            continue
        with collector.catch():
            raise _refused(
                kernel,
                f"'{buffer.name}' of kernel '{kernel.name}' is private ('local') and takes {ir.size_bytes(buffer)} B; "
                f"device '{device.name}' admits {device.max_local_size_bytes} B of constant size",
                in_target_file(f"[device.{device.name}] max-local-size = {largest[device.name]}")
                if is_constant
                else _CHANGE_THE_SCOPE,
            )
    collector.stop_if_any()


def _check_stack(
    buffer: ir.Buffer, device: Device, kernel: ir.PrimFunc, other: Touch | None, pools: tuple[str, ...] | None
) -> None:
    """Refuses what asks for the stack by name and cannot be there."""
    what, help_text = f"'{buffer.name}' of kernel '{kernel.name}' asks for global.stack", _CHANGE_THE_SCOPE
    if pools is not None:
        why = f", and its {ir.CANDIDATE_POOLS} are {', '.join(pools)}: a list of pools leaves no stack"
        help_text = f"in the kernel: leave out one of the two, the scope or {ir.CANDIDATE_POOLS}"
    elif other is not None:
        its = f"the stack of '{device.name}' is that device's alone"
        why = f", but device '{other.device}' touches it, and {its}: {other.reason}"
    elif not ir.has_constant_size(buffer):
        why = ", but its size is known only at run time"
    elif not device.runs_c:
        why = f", but device '{device.name}' has no stack"
    elif device.use_backend_alloc_workspace:
        why = f", and device '{device.name}' has {_USE_BACKEND}, which keeps every allocation off the stack"
        help_text = f"--no-{_USE_BACKEND}"
    else:
        return
    raise _refused(kernel, f"{what}{why}", help_text)


def _check_entry(entry: ir.PrimFunc) -> None:
    """The entry has no arrays of its own: what it allocates, the planner places in pools."""
    for allocation in allocations(entry):
        if allocation.scope == ir.STACK:
            raise _refused(
                entry,
                f"'{allocation.buffer.name}' of the entry asks for global.stack, but what the entry allocates is "
                "passed from kernel to kernel and placed by the planner, in workspace pools alone",
                "in the program: use the scope global or global.workspace for it, or allocate it in the kernel",
            )


def _refused(kernel: ir.PrimFunc, message: str, help_text: str) -> CompileError:
    return compile_error("BW302", message, help=help_text, where=str(kernel.where))


def _pass_scratch(entry: ir.PrimFunc, hoisted: dict[str, _Hoisted], touched: TouchTable) -> ir.PrimFunc:
    """Allocates each call's scratch right before the call and passes it."""

    def in_block(own: tuple[ir.Allocate, ...], call: ir.Call) -> tuple[ir.Statement, ...]:
        return (ir.Seq((*own, call)),)

    return _with_own_scratch(
        Known(entry),
        hoisted,
        touched,
        lambda call, b: f"{_call_stem(call)}/{b.name}",
        in_block,
        SCRATCH_ALIGNMENT,
    )


def _scratch_of(call: ir.Call, caller: Known, hoisted: dict[str, _Hoisted]) -> tuple[ir.Allocate, ...]:
    """What the callee needs, in the sizes that one call gives it."""
    if call.callee not in hoisted or not hoisted[call.callee].scratch:
        return ()
    callee = hoisted[call.callee]
    binding = binding_at(callee.known, call, caller)
    return tuple(_bound(allocation, binding, call) for allocation in callee.scratch)


def _bound(allocation: ir.Allocate, binding: Binding, call: ir.Call) -> ir.Allocate:
    symbols = ir.symbols_in(allocation.buffer.shape)
    if not symbols:
        return allocation
    given = " and ".join(f"{symbol.name} = {binding[symbol.name]}" for symbol in symbols)
    bound = replace(allocation, buffer=bound_buffer(allocation.buffer, binding))
    reason = f"place_scratch: '{call.callee}' is called with {given}"
    return replace(bound, storage=bound.storage.narrowed(reason))


def _call_stem(call: ir.Call) -> str:
    """A name for one call: that of the operator whose tensor it writes."""
    regions = [argument for argument in call.arguments if isinstance(argument, ir.Region)]
    return regions[-1].buffer.name.partition("/")[0]
