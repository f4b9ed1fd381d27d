"""Touch: which devices reach for each buffer, computed from the program.

A kernel touches its parameters, and the constants that it names, on its own device. What it passes on is touched by
the callee's device too, and by those of the callee's callees, to any depth, and under whatever name a view gives it.
A function that the module does not hold is opaque: its call declares the devices that touch each argument, and one
that declares none may reach for them from every device of the target. Each device keeps the reason why it counts.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from bytewright import ir
from bytewright.ir.analyses.arguments import buffer_arguments
from bytewright.ir.walk import allocations, calls, condition_buffer, free_buffers, regions, statements_of
from bytewright.target.model import Target


@dataclass(frozen=True, slots=True)
class Touch:
    """A device that touches a buffer, and why it counts: a sentence for provenance and refusals."""

    device: str
    reason: str


Touches = tuple[Touch, ...]


@dataclass(slots=True)
class TouchTable:
    """What is known of the kernels so far; callees are added before their callers."""

    target: Target
    entry_names: tuple[str, ...] = ()
    parameters: dict[str, tuple[Touches, ...]] = field(default_factory=dict[str, tuple[Touches, ...]])

    def add(self, kernel: ir.PrimFunc) -> None:
        """Learns who touches what a kernel is given; a function of the application stays opaque."""
        if kernel.external is not None:
            return
        passed_on = self.of_buffers(kernel)
        self.parameters[kernel.name] = tuple(
            united((_by_itself(kernel),), _inside(kernel, passed_on.get(parameter.buffer.name, ())))
            if isinstance(parameter, ir.BufferParameter)
            else ()
            for parameter in kernel.parameters
        )

    def of_argument(self, call: ir.Call, index: int) -> Touches:
        """Who touches an argument of a call."""
        if call.callee in self.parameters:
            return self.parameters[call.callee][index]
        if call.touched_by is not None:
            devices = call.touched_by[index]
            reason = f"opaque call '{call.callee}' declares that it is touched by {', '.join(devices)}"
        else:
            devices = tuple(device.name for device in self.target.devices)
            reason = (
                f"opaque call '{call.callee}' touches it and declares no devices: "
                f"every device of the target ({', '.join(devices)})"
            )
        return tuple(Touch(device, reason) for device in devices)

    def of_lent(self, function: ir.PrimFunc, call: ir.Call, index: int) -> Touches:
        """Who is lent an argument of a call by that call: the entry lends all, a kernel what other devices touch.

        What it was lent itself, and parts of that, a kernel passes on to those of its own device as it likes.
        """
        touches = self.of_argument(call, index)
        if function.name in self.entry_names:
            return touches
        return tuple(touch for touch in touches if touch.device != function.device)

    def of_buffers(self, function: ir.PrimFunc) -> dict[str, Touches]:
        """Who touches each buffer of a function by way of its calls, by name; what a view shows counts with it."""
        found: dict[str, Touches] = {}
        shown: dict[str, tuple[str, ...]] = {}
        for statement in statements_of(function):
            match statement:
                case ir.Call():
                    for index, argument in enumerate(statement.arguments):
                        if isinstance(argument, ir.Region):
                            touches = self.of_argument(statement, index)
                            for name in (argument.buffer.name, *shown.get(argument.buffer.name, ())):
                                found[name] = united(found.get(name, ()), touches)
                case ir.View():
                    names = (region.buffer.name for region in regions(statement))
                    shown[statement.buffer.name] = tuple(
                        n for name in names for n in (name, *shown.get(name, ()))
                    )
                case ir.If() if (condition := condition_buffer(statement)) is not None:
                    found[condition.name] = united(found.get(condition.name, ()), (branches_on(function),))
                case _:
                    pass
        return found


def touch_table(module: ir.Module, target: Target) -> TouchTable:
    """The table with all kernels of a module."""
    table = TouchTable(target, tuple(entry.name for entry in module.entries))
    for kernel in module.kernels:  # callees stand before their callers
        table.add(kernel)
    return table


def constant_touches(module: ir.Module, target: Target) -> dict[str, Touches]:
    """Who touches each constant, by name: what it is passed to, and kernels that name it themselves."""
    table = touch_table(module, target)
    found: dict[str, Touches] = {constant.buffer.name: () for constant in module.constant_buffers}
    for function in module.entries:
        _unite(found, table.of_buffers(function))
    for kernel in module.kernels:
        own = (_by_itself(kernel),)
        _unite(found, {buffer.name: own for buffer in free_buffers(kernel.body)})
        _unite(found, table.of_buffers(kernel))
    return found


def _unite(found: dict[str, Touches], others: Mapping[str, Touches]) -> None:
    """Adds who touches the buffers that are among those found."""
    for name, touches in others.items():
        if name in found:
            found[name] = united(found[name], touches)


def united(first: Touches, second: Touches) -> Touches:
    """The devices of both, each once, with the reason that was known first."""
    known: dict[str, Touch] = {}
    for touch in (*first, *second):
        known.setdefault(touch.device, touch)
    return tuple(known.values())


def holders(entry: ir.PrimFunc, module: ir.Module) -> dict[str, Touches]:
    """The entry's device for each buffer whose address its code has, by name, though it may touch no byte.

    That is what it passes to functions of its own device, what it requests at run time, and inputs and outputs, which
    the application writes and reads. A job has no addresses.
    """
    found: dict[str, Touches] = {}
    kernels = {kernel.name: kernel for kernel in module.kernels}
    requested = {
        allocation.buffer
        for allocation in allocations(entry)
        if allocation.storage.on_request is not None or not ir.has_constant_size(allocation.buffer)
    }

    def hold(buffer: ir.Buffer, what: str) -> None:
        reason = f"'{entry.name}' on device '{entry.device}' {what}"
        found.setdefault(buffer.name, (Touch(entry.device, reason),))

    for allocation in allocations(entry):
        if allocation.storage.border is not None:
            hold(allocation.buffer, "returns its address to the application")
    for call in calls(entry):
        kernel = kernels.get(call.callee)
        if kernel is None or kernel.device == entry.device:
            regions = (argument for argument in call.arguments if isinstance(argument, ir.Region))
            for region in regions:
                hold(region.buffer, f"passes its address to '{call.callee}'")
            continue
        for parameter, region in buffer_arguments(kernel, call):
            if parameter.role is ir.ParameterRole.SCRATCH and region.buffer in requested:
                hold(region.buffer, f"requests it at run time, for '{call.callee}'")
    return found


def reasons_beside(device: str, touches: Touches) -> tuple[str, ...]:
    """Why other devices than this one count, each reason once."""
    return tuple(dict.fromkeys(touch.reason for touch in touches if touch.device != device))


def branches_on(function: ir.PrimFunc) -> Touch:
    """A function reads a truth value to choose a branch."""
    return Touch(function.device, f"'{function.name}' on device '{function.device}' branches on it")


def touch_alignment(touches: Touches, target: Target) -> int:
    """What the first byte is aligned to of what these devices touch."""
    return max((target.device(touch.device).touch_alignment for touch in touches), default=1)


def alignment_reason(touches: Touches, target: Target) -> str:
    """Which device asks for `touch_alignment`, and why it counts."""
    alignment = touch_alignment(touches, target)
    strictest = next(t for t in touches if target.device(t.device).touch_alignment == alignment)
    return f"device '{strictest.device}' touches it, which asks for an alignment of {alignment}: {strictest.reason}"


def _by_itself(kernel: ir.PrimFunc) -> Touch:
    return Touch(kernel.device, f"kernel '{kernel.name}' of device '{kernel.device}' touches it")


def _inside(kernel: ir.PrimFunc, touches: Touches) -> Touches:
    return tuple(Touch(t.device, f"in kernel '{kernel.name}', {t.reason}") for t in touches)
