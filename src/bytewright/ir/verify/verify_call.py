"""Checks calls: arguments against the callee's parameters, so that a kernel may rely on what it states.

The scope of an argument must lie within the parameter's, because a kernel is compiled once for the places that its
parameters name. A buffer that its function allocates without a scope is `global`. Private memory is never passed at
all. What a view shows counts, not the view. What is passed for an extent must be known to lie within its bounds, and
arguments have enough elements for every value that it may take.
"""

from collections.abc import Callable, Iterator
from math import prod

from bytewright import ir
from bytewright.ir.analyses.arguments import scalar_arguments
from bytewright.ir.analyses.bind_symbols import (
    Binding,
    Known,
    always_holds,
    binding_at,
    bound_extents,
)
from bytewright.ir.analyses.ranges import range_of
from bytewright.ir.verify.violation import Context

# The scopes of what the name of a buffer may denote in a function.
ScopesOf = Callable[[str], tuple[ir.Scope | None, ...]]
_KINDS = {ir.BufferParameter: "a buffer", ir.ScalarParameter: "a scalar", ir.ContextParameter: "a context"}


def call_faults(
    context: Context,
    caller: ir.PrimFunc,
    call: ir.Call,
    is_read_only: Callable[[str], bool],
    denoted: ScopesOf,
) -> Iterator[str]:
    """What is wrong with a call.

    Args:
        context: The module.
        caller: The function that the call stands in.
        call: The call.
        is_read_only: Whether the caller may not have the buffer of a name written.
        denoted: The scopes of what names stand for in the caller.
    """
    for argument in call.arguments:
        scopes = denoted(argument.buffer.name) if isinstance(argument, ir.Region) else ()
        if isinstance(argument, ir.Region) and any(map(ir.is_local, scopes)):
            yield f"'{argument.buffer.name}' is local and cannot be passed to '{call.callee}'"
    yield from _touched_by_faults(context, call)
    known = context.index.known
    order_fault = _order_fault(context, caller, call)
    if order_fault is not None:
        yield order_fault
    if order_fault is not None or call.callee not in known:
        return
    callee = known[call.callee].function
    if callee.external is not None and callee.external.returns_status and caller in context.module.kernels:
        yield f"'{callee.name}' returns a status, which the entry alone can act on: call it from there"
    if len(callee.parameters) != len(call.arguments):
        expected, found = len(callee.parameters), len(call.arguments)
        yield f"'{callee.name}' takes {expected} arguments, {found} are given"
        return
    yield from _extent_faults(known[callee.name], call, known[caller.name])
    yield from _argument_faults(context, caller, call, is_read_only, denoted)


def _argument_faults(
    context: Context,
    caller: ir.PrimFunc,
    call: ir.Call,
    is_read_only: Callable[[str], bool],
    denoted: ScopesOf,
) -> Iterator[str]:
    """What is wrong with single arguments, of which there are as many as parameters."""
    known, is_kernel = context.index.known, caller.name not in context.index.entries
    callee = known[call.callee].function
    binding = binding_at(known[callee.name], call, known[caller.name])
    for parameter, argument in zip(callee.parameters, call.arguments, strict=True):
        if isinstance(argument, ir.ContextArgument) and is_kernel and not _has_context(caller, argument):
            yield f"'{caller.name}' passes on a context of device '{argument.device}', but is given none"
        if isinstance(parameter, ir.ContextParameter) and isinstance(argument, ir.ContextArgument):
            if parameter.device != argument.device:
                what = f"'{parameter.name}' of '{callee.name}' is the context of device '{parameter.device}'"
                yield f"{what}, the argument that of '{argument.device}'"
        elif isinstance(parameter, ir.BufferParameter) and isinstance(argument, ir.Region):
            yield from _buffer_faults(callee, parameter, argument, is_read_only, binding)
            if not context.rules.open_scopes:
                yield from _scope_faults(callee, parameter, argument, denoted)
            given, wanted = argument.buffer, parameter.buffer
            if (
                context.rules.undecided and given.alignment < wanted.alignment
            ):  # stored: alignments are joined
                what = f"'{given.name}' is aligned to {given.alignment}, '{wanted.name}' of '{callee.name}'"
                yield f"{what} asks for {wanted.alignment}"
        elif isinstance(parameter, ir.ScalarParameter) and isinstance(argument, ir.Expr):
            expected, found = parameter.variable.dtype, argument.dtype
            if found is not expected:
                what = f"'{parameter.variable.name}' of '{callee.name}'"
                yield f"{what} is {expected.value}, the argument is {found.value}"
        else:
            yield f"an argument of '{callee.name}' is not {_KINDS[type(parameter)]}"


def _has_context(caller: ir.PrimFunc, argument: ir.ContextArgument) -> bool:
    return any(given.device == argument.device for given in caller.context_parameters)


def _touched_by_faults(context: Context, call: ir.Call) -> Iterator[str]:
    """Only opaque calls declare devices: for others they are computed from the callee."""
    if call.touched_by is None:
        return
    if len(call.touched_by) != len(call.arguments):
        yield f"touched_by names {len(call.touched_by)} arguments of {len(call.arguments)}"
    callee = context.module.kernel(call.callee)
    if callee is not None and callee.external is None:
        yield f"touched_by is for opaque calls, and '{call.callee}' is a kernel"
    for device in dict.fromkeys(device for devices in call.touched_by for device in devices):
        for fault in context.device_faults(device):
            yield f"touched_by of '{call.callee}': {fault}"


def _order_fault(context: Context, caller: ir.PrimFunc, call: ir.Call) -> str | None:
    """Callees are kernels that stand before their callers, so nothing recurs."""
    positions = context.index.positions
    if call.callee in context.index.entries:
        return f"entry '{call.callee}' is called"
    if positions.get(call.callee, -1) >= positions.get(caller.name, len(context.module.kernels)):
        return f"'{call.callee}' does not stand before its caller '{caller.name}'"
    return None


def _buffer_faults(
    callee: ir.PrimFunc,
    parameter: ir.BufferParameter,
    argument: ir.Region,
    is_read_only: Callable[[str], bool],
    binding: Binding,
) -> Iterator[str]:
    given, wanted = argument.buffer, parameter.buffer
    names = f"'{given.name}' is passed to '{wanted.name}' of '{callee.name}'"
    if given.dtype is not wanted.dtype:
        yield f"{names}: {given.dtype.value} is not {wanted.dtype.value}"
    if parameter.access is not ir.Access.READ and is_read_only(given.name):
        yield f"{names}, which writes it, but it is only to be read"
    fault = _size_fault(argument, bound_extents(ir.storage_shape(wanted), binding))
    if fault is not None:
        yield f"{names}: {fault}"


def _scope_faults(
    callee: ir.PrimFunc, parameter: ir.BufferParameter, argument: ir.Region, denoted: ScopesOf
) -> Iterator[str]:
    names = f"'{argument.buffer.name}' is passed to '{parameter.name}' of '{callee.name}'"
    for scope in denoted(argument.buffer.name):
        if not ir.is_within(scope, parameter.scope):
            yield f"{names}: scope '{scope}' does not satisfy scope '{parameter.scope}'"


def _size_fault(argument: ir.Region, needed: tuple[ir.Extent, ...]) -> str | None:
    """What an argument lacks in elements, from the region's first one on."""
    given = argument.buffer
    available, skipped = ir.storage_shape(given), 0
    if len(argument.indices) == len(given.shape):
        first = ir.region_index(argument)
        skipped = int(first.value) if isinstance(first, ir.Const) else 0
    if all(isinstance(extent, int) for extent in (*available, *needed)):
        left, num_needed = ir.num_elements(given) - skipped, prod(map(ir.upper_bound, needed))
        return None if left >= num_needed else f"{left} elements, {num_needed} expected"
    if always_holds(available, needed) and not skipped:
        return None
    after = f", from element {skipped} on" if skipped else ""
    return f"the elements of {ir.format_shape(available)}{after} are not always those of {ir.format_shape(needed)}"


def _extent_faults(callee: Known, call: ir.Call, caller: Known) -> Iterator[str]:
    """What is passed for the callee's extents, against their bounds."""
    for parameter, argument in scalar_arguments(callee.function, call):
        name = parameter.variable.name
        symbol = callee.symbols.get(name)
        if symbol is None:
            continue
        known = range_of(argument, caller.ranges)
        given = "anything" if known is None else f"{known[0]} to {known[1]}"
        if known is None or known[0] < symbol.lower or known[1] > symbol.upper:
            bounds = f"{symbol.lower} to {symbol.upper}"
            yield f"'{name}' of '{callee.function.name}' is the extent {bounds}, the argument may be {given}"
