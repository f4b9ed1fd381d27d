"""The planned stack: explicit arrays along the worst call path, entry to leaf, on each context's stack.

Only arrays count. Scalars and saved registers are the compiler's, and the target states an allowance for them per
call level; `<MODEL>_STACK_SIZE` is the sum of both. A kernel on another device than its caller begins a path of its
own, on that device's stack. Nothing says which of a device's contexts runs a kernel, so each of them must have room.
"""

from collections.abc import Collection
from dataclasses import dataclass

from bytewright import ir
from bytewright.diagnostics import Diagnostic
from bytewright.ir.backend import backend_functions
from bytewright.ir.walk import allocations, blocks, calls
from bytewright.target.model import Device, ExecutionContext, Target


@dataclass(frozen=True, slots=True)
class StackUse:
    """The stack of one execution context.

    Attributes:
        planned_bytes: Explicit arrays on the worst path.
        size_bytes: That, and the target's allowance for each call level: the largest sum of all paths.
        limit_bytes: What the target admits, its reserve subtracted; None for no limit.
        path: Functions on the worst path, the first to run first.
    """

    context: str
    planned_bytes: int
    size_bytes: int
    limit_bytes: int | None
    path: tuple[str, ...]

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
STACK_ALIGNMENT = 8  # of every device, at a call; frames with stricter arrays are padded


def stack_refusals(uses: tuple[StackUse, ...], module: ir.Module, target: Target) -> list[Diagnostic]:
    """One for each context where the limit is not kept; what would keep it depends on pools too."""
    return [_refusal(use, module, target) for use in uses if use.excess_bytes > 0]


def _refusal(use: StackUse, module: ir.Module, target: Target) -> Diagnostic:
    functions = {function.name: function for function in (*module.kernels, *module.entries)}
    steps: list[str] = []
    for name in use.path:
        if name in functions and functions[name].external is None:
            allowance = target.device(functions[name].device).stack_allowance_per_call_bytes
            steps.append(f"{name} {array_bytes(functions[name])} B + {allowance} B")
        else:
            steps.append(f"{name} {_external_bytes(name, module, target)} B")
    return Diagnostic(
        "BW302",
        f"the stack of '{use.context}' needs {use.size_bytes} B; its limit is {use.limit_bytes} B: "
        f"{use.excess_bytes} B too few",
        notes=(f"worst path, arrays + allowance: {' -> '.join(steps)}",),
    )


def stack_uses(module: ir.Module, target: Target) -> tuple[StackUse, ...]:
    """Adds up the stack along every path, whatever the limits; the contexts of the entry's device come first."""
    device_of = {function.name: function.device for function in (*module.kernels, *module.entries)}
    worst: dict[str, _Worst] = {}
    # Kernels stand callees first, so each function finds its callees finished; no recursion can be expressed.
    for function in (*module.kernels, *module.entries):
        if function.external is not None:
            worst[function.name] = _of_external(function.name, module, target)
            continue
        callees = [
            worst[name] if name in worst else _of_external(name, module, target)
            for name in (*_callees(function), *_requesters(function, module))
            if device_of.get(name, function.device) == function.device  # others are on another stack
        ]
        worst[function.name] = _worst_of(function, callees, target)
    own = target.device(module.entries[0].device)
    uses: list[StackUse] = []
    for device in (own, *(device for device in target.devices if device is not own)):
        firsts = _first_on(device, module)
        if firsts:
            uses.extend(_use(context, [worst[name] for name in firsts]) for context in device.contexts)
    return tuple(uses)


def _use(context: ExecutionContext, paths: list[_Worst]) -> StackUse:
    largest = max(paths, key=lambda path: path.total_bytes)
    return StackUse(
        context.name,
        largest.planned_bytes,
        largest.total_bytes,
        context.available_stack_bytes,
        largest.path,
    )


def _first_on(device: Device, module: ir.Module) -> list[str]:
    """Functions where a path on a device's stack begins: entries, and kernels called from another device."""
    functions = (*module.kernels, *module.entries)
    device_of = {function.name: function.device for function in functions}
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
    """Bytes of a function's arrays that exist at once."""
    return sum(ir.size_bytes(allocation.buffer) for allocation in worst_arrays(function))


def _padding_bytes(function: ir.PrimFunc) -> int:
    """What it takes to align a function's arrays where they ask for more than a stack has."""
    alignments = (allocation.buffer.alignment for allocation in worst_arrays(function))
    return sum(alignment for alignment in alignments if alignment > STACK_ALIGNMENT)


def worst_arrays(function: ir.PrimFunc, moved: Collection[str] = ()) -> tuple[ir.Allocate, ...]:
    """The arrays of a function that exist at once and take the most bytes, where those named take none."""
    return _worst_arrays(function.body, moved)[1]


def _worst_arrays(statement: ir.Statement, moved: Collection[str]) -> tuple[int, tuple[ir.Allocate, ...]]:
    """Those of a sequence together, those of separate blocks in turn; with the bytes that count."""
    if isinstance(statement, ir.Allocate):
        if not statement.buffer.shape or not ir.is_on_stack(statement.scope):
            return 0, ()
        return 0 if statement.buffer.name in moved else ir.size_bytes(statement.buffer), (statement,)
    inside = [_worst_of_sequence(block, moved) for block in blocks(statement)]
    return max(inside, key=lambda worst: worst[0], default=(0, ()))


def _worst_of_sequence(sequence: ir.Seq, moved: Collection[str]) -> tuple[int, tuple[ir.Allocate, ...]]:
    own = [_worst_arrays(s, moved) for s in sequence.statements if isinstance(s, ir.Allocate)]
    nested = [_worst_arrays(s, moved) for s in sequence.statements if not isinstance(s, ir.Allocate)]
    together = [*own, max(nested, key=lambda worst: worst[0], default=(0, ()))]
    return sum(num for num, _ in together), tuple(array for _, arrays in together for array in arrays)
