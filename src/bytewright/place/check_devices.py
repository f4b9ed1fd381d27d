"""That every operator is on a device that can run it: a device without a stack runs none that is still to be compiled.

Here, since whoever asked for the device is known; lowering would only see a kernel that nobody can be handed.
"""

from bytewright import ir
from bytewright.diagnostics import Collector, Diagnostic
from bytewright.place.flows import Program
from bytewright.place.infer_devices import Devices
from bytewright.target.isa.find import find_isa
from bytewright.target.model import Device, Target


def can_run(device: Device, operation: ir.Operation) -> bool:
    """Whether an operator may be on a device: its kernel, if it becomes one, is run there."""
    needs_no_kernel = operation.is_view or isinstance(operation, ir.ControlOperation | ir.CopyOperation)
    return needs_no_kernel or device.runs_c or _is_made_for(operation, device)


def _is_made_for(operation: ir.Operation, device: Device) -> bool:
    return operation.isa is not None and find_isa(operation.isa) == device.isa


def why_not(device: Device) -> str:
    """What a device runs that cannot run an operator."""
    return f"device '{device.name}' has no stack, so it runs no C: only copies and streams made for '{device.isa.name}'"


def able_devices(target: Target, operations: list[ir.Operation]) -> list[str]:
    """The devices that can run all of some operators, the default device last: that is where they are unasked."""
    able = [device.name for device in target.devices if all(can_run(device, o) for o in operations)]
    return sorted(able, key=lambda name: name == target.default_device_name)


def check_devices(program: Program, devices: Devices) -> None:
    """Refuses operators on devices that cannot run them.

    Raises:
        CompileError: BW704, one for each that asks for the device, with the first of its operators; all at once.
    """
    target, collector = program.target, Collector()
    idle = {device.name: device for device in target.devices if not device.runs_c}
    refused: set[tuple[str, str | None]] = set()
    for node in (node for function in program.module.functions for node in function.nodes if idle):
        item = program.items.get(node.outputs[0].name) if node.outputs else None
        device = None if item is None else idle.get(devices.of(item))
        if item is None or device is None or can_run(device, node.operation):
            continue
        reason = devices.reason_of(item)
        if (device.name, reason) in refused:
            continue
        refused.add((device.name, reason))
        message = f"'{node.outputs[0].name}' ({node.operation.name}) is on device '{device.name}', which cannot run it"
        notes = (*(() if reason is None else (reason,)), why_not(device))
        able = ", ".join(able_devices(target, [node.operation]))
        help_text = f"put it on a device that can: {able}"
        collector.add(Diagnostic("BW704", message, notes, help_text, str(node.where)))
    collector.stop_if_any()
