"""The devices of a plan, proved from its steps and its target: who takes part, as what, with which kernels."""

from collections.abc import Iterator

from bytewright.ir.prim import Job
from bytewright.record.base_pointers import contradicting_ports
from bytewright.record.devices import DeviceKind, PlannedDevice
from bytewright.record.plan import Plan
from bytewright.target.isa.find import find_isa


def faults_of_devices(plan: Plan) -> Iterator[str]:
    """The devices that take part are those of the steps, with the kernels that these hand them."""
    handed: dict[str, dict[str, None]] = {}
    for step in plan.steps:
        if step.device != plan.device.name:
            handed.setdefault(step.device, {})[step.kernel] = None
    for name in handed:
        if name not in plan.devices:
            yield f"steps run on device '{name}', which does not take part"
    for device in plan.devices.values():
        known = plan.hardware.find_device(device.name)
        if known is None or known.isa != find_isa(device.isa) or device.name == plan.device.name:
            yield f"device '{device.name}' ({device.isa}) is none that the target has beside the entry's"
            continue
        names = [kernel.name for kernel in device.kernels]
        if [kernel.number for kernel in device.kernels] != list(range(len(names))):
            yield f"the kernels of device '{device.name}' are not numbered from 0"
        if set(names) != set(handed.get(device.name, ())):
            yield f"device '{device.name}' has the kernels {names}, its steps {list(handed.get(device.name, ()))}"
        kind = _kind_of(device, known.runs_c)
        if device.kind is not kind:
            yield f"device '{device.name}' is of kind '{device.kind}', its kernels make it '{kind}'"
    for what, one, other in contradicting_ports(plan):
        yield f"{what}, and '{one.buffer}' is behind '{one.port}', '{other.buffer}' behind '{other.port}'"


def _kind_of(device: PlannedDevice, runs_c: bool) -> DeviceKind:
    """What the kernels of a device make it."""
    if not device.kernels:
        return DeviceKind.CONTEXT
    if runs_c or any(kernel.job is None for kernel in device.kernels):
        return DeviceKind.C
    streams = any(kernel.job is Job.STREAM for kernel in device.kernels)
    return DeviceKind.STREAM if streams else DeviceKind.COPY
