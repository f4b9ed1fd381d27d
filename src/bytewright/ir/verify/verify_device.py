"""Checks what kernels are to devices: jobs that no compiled code carries out, and contexts of other devices."""

from collections.abc import Iterator

from bytewright import ir
from bytewright.ir.copy import is_whole_copy
from bytewright.ir.verify.violation import Context


def device_context_faults(
    context: Context, function: ir.PrimFunc, parameter: ir.ContextParameter
) -> Iterator[str]:
    """What is wrong with a parameter that is a context.

    A driver lives with the entry, so the contexts of devices do, and only what runs there can be given one.
    """
    yield from context.device_faults(parameter.device)
    what = f"'{parameter.name}' of '{function.name}' is the context of device '{parameter.device}'"
    entries = context.module.entries
    if parameter.device == function.device:
        yield f"{what}, which runs it: only another device's driver has a context to give"
    elif entries and function.device != entries[0].device:
        yield f"{what}, but stays with the entry on device '{entries[0].device}', not on '{function.device}'"
    if sum(other.device == parameter.device for other in function.context_parameters) > 1:
        yield f"{what}, and so is another parameter"


def job_faults(context: Context, function: ir.PrimFunc, is_entry: bool) -> Iterator[str]:
    """What is wrong with a kernel that is a job of its device."""
    if function.job is None:
        return
    if is_entry or function.external is not None:
        what = "the entry" if is_entry else "a function of the application"
        yield f"'{function.name}' is {what}, and no job of a device"
    match function.job:
        case ir.Job.STREAM:
            yield from _stream_faults(context, function)
        case ir.Job.COPY:
            if not is_whole_copy(function):
                yield (
                    f"'{function.name}' is a copy, so it has two buffers of one shape and type, r and w, and copies "
                    "each element of the first to its place in the second"
                )


def _stream_faults(context: Context, function: ir.PrimFunc) -> Iterator[str]:
    name, parameters = function.name, function.parameters
    if function.body.statements:
        yield f"'{name}' is a command stream, so it has no body"
    for parameter in parameters:
        if not isinstance(parameter, ir.BufferParameter):
            yield f"'{name}' is a command stream, so '{parameter.name}' must be a buffer"
    first = parameters[0] if parameters else None
    if not (
        isinstance(first, ir.BufferParameter)
        and first.role is ir.ParameterRole.PARAMETER
        and first.access is ir.Access.READ
    ):
        yield f"'{name}' is a command stream: its first parameter holds the commands, 'r parameter'"
    if any(not ir.has_constant_size(parameter.buffer) for parameter in function.buffer_parameters):
        yield f"'{name}' is a command stream, so its buffers have constant sizes"
    device = None if context.target is None else context.target.find_device(function.device)
    if device is not None and device.runs_c:
        yield f"'{name}' is a command stream, but device '{device.name}' runs C"
