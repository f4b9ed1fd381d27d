"""The planned stack: explicit arrays along the worst call path, entry to leaf, on each context's stack.

Only arrays count. Scalars and saved registers are the compiler's, and the target states an allowance for them per
call level; `<MODEL>_STACK_SIZE` is the sum of both. A packed call is a level more, and the two arrays that it packs its
arguments in are the caller's. A kernel on another device than its caller begins a path of its own, on that device's
stack, below the bundle's function that takes jobs there. Nothing says which of a device's contexts runs a kernel, so
each of them must have room.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from bytewright import ir
from bytewright.diagnostics import Diagnostic
from bytewright.ir.analyses.hand_over import (
    c_names_of_devices,
    devices_of,
    execute_function,
    num_spans,
    obtains_memory,
)
from bytewright.ir.backend import backend_functions
from bytewright.ir.packed import (
    most_packed_arguments,
    packed_bytes,
    packed_calls,
    packed_entry_names,
    packed_name,
)
from bytewright.ir.prim import LEAVES
from bytewright.ir.walk import allocations, blocks, calls
from bytewright.target.model import Device, ExecutionContext, Target


@dataclass(frozen=True, slots=True)
class Above:
    """A function of the C that runs above an entry, with what it takes of the stack, its call included."""

    entry: str
    name: str
    num_bytes: int


@dataclass(frozen=True, slots=True)
class StackUse:
    """The stack of one execution context.

    Attributes:
        planned_bytes: Explicit arrays on the worst path.
        size_bytes: That, and the target's allowance for each call level: the largest sum of all paths.
        limit_bytes: What the target admits, its reserve subtracted; None for no limit.
        path: Functions on the worst path, the first to run first.
        above: What of them may run above an entry.
    """

    context: str
    planned_bytes: int
    size_bytes: int
    limit_bytes: int | None
    path: tuple[str, ...]
    above: tuple[Above, ...] = ()

    @property
    def excess_bytes(self) -> int:
        """Bytes over the limit; 0 if it is kept."""
        return 0 if self.limit_bytes is None else max(0, self.size_bytes - self.limit_bytes)


@dataclass(frozen=True, slots=True)
class _Worst:
    planned_bytes: int
    total_bytes: int
    path: tuple[str, ...]


_NOTHING = _Worst(0, 0, ())
POINTER_BYTES = 8  # at most
STACK_ALIGNMENT = 8  # of every device, at a call; frames with stricter arrays are padded


def stack_refusals(uses: tuple[StackUse, ...], module: ir.Module, target: Target) -> list[Diagnostic]:
    """One for each context where the limit is not kept; what would keep it depends on pools too."""
    return [_refusal(use, module, target) for use in uses if use.excess_bytes > 0]


def _refusal(use: StackUse, module: ir.Module, target: Target) -> Diagnostic:
    functions = {function.name: function for function in (*module.kernels, *module.entries)}
    callers = {packed_name(module.name, kernel): kernel.device for kernel in module.kernels}
    callers |= {_dispatcher(module, name): name for name in c_names_of_devices(module)}
    steps: list[str] = []
    above = {each.name: each for each in use.above}
    for name in use.path:
        if name in above:
            steps.append(f"{name} {above[name].num_bytes} B")
        elif name in callers:
            steps.append(f"{name} {target.device(callers[name]).stack_allowance_per_call_bytes} B")
        elif name in functions and functions[name].external is None:
            allowance = target.device(functions[name].device).stack_allowance_per_call_bytes
            more = _hand_over_bytes(module, target) if functions[name] in module.entries else 0
            steps.append(
                f"{name} {array_bytes(functions[name]) + _padding_bytes(functions[name])} B + {allowance} B"
                + (f" + {more} B to hand work over" if more else "")
            )
        else:
            steps.append(f"{name} {_external_bytes(name, module, target)} B")
    reserve, limit = target.context(use.context).stack_reserve_bytes, use.limit_bytes or 0
    kept = f", of which {reserve} B are its reserve" if reserve else ""
    return Diagnostic(
        "BW302",
        f"the stack of '{use.context}' needs {use.size_bytes} B; its limit is {limit + reserve} B{kept}: "
        f"{use.excess_bytes} B too few",
        notes=(f"worst path, arrays + allowance: {' -> '.join(steps)}",),
    )


def stack_uses(module: ir.Module, target: Target, above: tuple[Above, ...] = ()) -> tuple[StackUse, ...]:
    """Adds up the stack along every path, whatever the limits; the contexts of the entry's device come first.

    Args:
        module: Lowered.
        target: What it is for.
        above: What runs above entries, of each at most one function.
    """
    device_of = {function.name: function.device for function in (*module.kernels, *module.entries)}
    worst: dict[str, _Worst] = {}
    # Kernels stand callees first, so each function finds its callees finished; no recursion can be expressed.
    for function in (*module.kernels, *module.entries):
        if function.job is not None and function.device != module.entries[0].device:
            worst[function.name] = _NOTHING  # no compiled code carries it out
            continue
        if function.external is not None:
            worst[function.name] = _of_external(function.symbol, module, target)
            continue
        callees = [
            worst[name] if name in worst else _of_external(name, module, target)
            for name in (*_callees(function), *_requesters(function, module))
            if device_of.get(name, function.device) == function.device  # others are on another stack
        ]
        packed = [_through_packed_form(call, worst, module, target) for call in packed_calls(function)]
        worst[function.name] = _worst_of(function, [*callees, *packed], target)
        if function in module.entries:
            handing = worst[function.name].total_bytes + _hand_over_bytes(module, target)
            worst[function.name] = replace(worst[function.name], total_bytes=handing)
        for each in (each for each in above if each.entry == function.name):
            worst[function.name] = _below(each.name, each.num_bytes, worst[function.name])
    return tuple(_uses_of_contexts(worst, module, target, above))


def _uses_of_contexts(
    worst: Mapping[str, _Worst], module: ir.Module, target: Target, above: tuple[Above, ...]
) -> Iterator[StackUse]:
    own = target.device(module.entries[0].device)
    for device in (own, *(device for device in target.devices if device is not own)):
        firsts = _first_on(device, module)
        if firsts:
            paths = [worst[name] for name in firsts]
            if device is not own:
                allowance = device.stack_allowance_per_call_bytes
                paths = [_below(_dispatcher(module, device.name), allowance, path) for path in paths]
            for context in device.contexts:
                yield _use(context, paths, above if device is own else ())


def _hand_over_bytes(module: ir.Module, target: Target) -> int:
    """What the entry needs to have work done elsewhere, beside what the drivers use: spans, and two calls.

    The steps are a function of their own there, and a kernel or the function that hands a job over is called by it.
    """
    if not devices_of(module):
        return 0
    device = target.device(module.entries[0].device)
    span_bytes = 2 * device.address_bits // 8 if device.address_bits > 32 else 12
    if obtains_memory(module, target):
        span_bytes += 8  # which memory it is, and the offset there
    return num_spans(module, target) * span_bytes + 2 * device.stack_allowance_per_call_bytes


def _dispatcher(module: ir.Module, device: str) -> str:
    """The function of the bundle that a device calls with a job, and that calls the kernel."""
    return execute_function(module.name, c_names_of_devices(module)[device])


def _use(context: ExecutionContext, paths: list[_Worst], above: tuple[Above, ...]) -> StackUse:
    largest = max(paths, key=lambda path: path.total_bytes)
    return StackUse(
        context.name,
        largest.planned_bytes,
        largest.total_bytes,
        context.available_stack_bytes,
        largest.path,
        above,
    )


def packed_entries(module: ir.Module, target: Target) -> tuple[Above, ...]:
    """The packed form of each entry, whose frame holds the structures of inputs and outputs."""
    allowance = target.device(module.entry_device).stack_allowance_per_call_bytes
    return tuple(
        Above(entry.name, name, allowance + POINTER_BYTES * len(entry.buffer_parameters))
        for entry, name in zip(module.entries, packed_entry_names(module), strict=True)
    )


def calling_entries(module: ir.Module, target: Target, function: str) -> tuple[Above, ...]:
    """A function of the form of the entry, which calls the one with the steps."""
    allowance = target.device(module.entry_device).stack_allowance_per_call_bytes
    return (Above(module.main.name, f"{module.name}_{function}", allowance),)


def limited(uses: Iterable[StackUse], target: Target) -> tuple[StackUse, ...]:
    """The same with the limits that a target's contexts have, which may be others."""
    return tuple(replace(use, limit_bytes=target.context(use.context).available_stack_bytes) for use in uses)


def _first_on(device: Device, module: ir.Module) -> list[str]:
    """Functions where a path on a device's stack begins: entries, and kernels called from another device."""
    functions = (*module.kernels, *module.entries)
    device_of = {function.name: function.device for function in functions if function.job is None}
    firsts = [entry.name for entry in module.entries if entry.device == device.name]
    for function in functions:
        if function.device != device.name:
            firsts.extend(name for name in _callees(function) if device_of.get(name) == device.name)
    return list(dict.fromkeys(firsts))


def _requesters(function: ir.PrimFunc, module: ir.Module) -> tuple[str, ...]:
    """What an entry requests memory with: functions of the application where it declares them, or of the bundle."""
    if all(allocation.storage.arena is None for allocation in allocations(function)):
        return ()
    return backend_functions(module.name)


def _through_packed_form(
    call: ir.Call, worst: dict[str, _Worst], module: ir.Module, target: Target
) -> _Worst:
    """The path of a packed call, which begins in the packed form of what it calls."""
    kernel = module.kernel(call.callee)
    if kernel is None:
        return _of_external(call.callee, module, target)
    allowance = target.device(kernel.device).stack_allowance_per_call_bytes
    return _below(packed_name(module.name, kernel), allowance, worst[kernel.name])


def _below(name: str, num_bytes: int, path: _Worst) -> _Worst:
    """The path with a function without arrays above it."""
    return _Worst(path.planned_bytes, num_bytes + path.total_bytes, (name, *path.path))


def _of_external(name: str, module: ir.Module, target: Target) -> _Worst:
    return _Worst(0, _external_bytes(name, module, target), (name,))


def _external_bytes(name: str, module: ir.Module, target: Target) -> int:
    """The stack of a C function that is no kernel: as declared; else one of the bundle has the allowance."""
    declared = target.external_stack_bytes(name)
    if declared is None and name in backend_functions(module.name):
        return target.device(module.entries[0].device).stack_allowance_per_call_bytes
    return declared or 0


def _worst_of(function: ir.PrimFunc, callees: list[_Worst], target: Target) -> _Worst:
    own, allowance = array_bytes(function), target.device(function.device).stack_allowance_per_call_bytes
    deepest = max(callees, key=lambda callee: callee.total_bytes, default=_NOTHING)
    return _Worst(
        own + deepest.planned_bytes,
        own + _padding_bytes(function) + allowance + deepest.total_bytes,
        (function.name, *deepest.path),
    )


def _callees(function: ir.PrimFunc) -> list[str]:
    return [call.callee for call in calls(function)]


def array_bytes(function: ir.PrimFunc) -> int:
    """Bytes of a function's arrays that exist at once; those of its packed calls do as long as it runs."""
    arguments = packed_bytes(most_packed_arguments(function))
    return arguments + sum(ir.size_bytes(allocation.buffer) for allocation in worst_arrays(function))


def _padding_bytes(function: ir.PrimFunc) -> int:
    """What it takes to align a function's arrays where they ask for more than a stack has."""
    alignments = (allocation.buffer.alignment for allocation in worst_arrays(function))
    return sum(alignment for alignment in alignments if alignment > STACK_ALIGNMENT)


def worst_arrays(function: ir.PrimFunc, moved: Collection[str] = ()) -> tuple[ir.Allocate, ...]:
    """The arrays of a function that exist at once and take the most bytes, where those named take none."""
    return _worst_arrays(function.body, moved)[1] if allocations(function) else ()


def _worst_arrays(statement: ir.Statement, moved: Collection[str]) -> tuple[int, tuple[ir.Allocate, ...]]:
    """Those of a sequence together, those of separate blocks in turn; with the bytes that count."""
    if isinstance(statement, ir.Allocate):
        is_array = statement.buffer.shape and not statement.buffer.register
        if not is_array or not ir.is_on_stack(statement.scope):
            return 0, ()
        return 0 if statement.buffer.name in moved else ir.size_bytes(statement.buffer), (statement,)
    inside = [_worst_of_sequence(block, moved) for block in blocks(statement)]
    return max(inside, key=lambda worst: worst[0], default=(0, ()))


def _worst_of_sequence(sequence: ir.Seq, moved: Collection[str]) -> tuple[int, tuple[ir.Allocate, ...]]:
    own = [_worst_arrays(s, moved) for s in sequence.statements if type(s) is ir.Allocate]
    nested = [_worst_arrays(s, moved) for s in sequence.statements if type(s) not in LEAVES]
    together = [*own, max(nested, key=lambda worst: worst[0], default=(0, ()))]
    return sum(num for num, _ in together), tuple(array for _, arrays in together for array in arrays)
