"""Refuses buffers that cannot be addressed: by the devices that touch them, or by the indices of the C.

An index in C is an `int32_t`, and so is every sum on the way to it: no buffer has more elements than that
counts. And no array is larger than half of what a device's addresses count, because C subtracts pointers with a sign.
"""

from bytewright import ir
from bytewright.diagnostics import Collector, compile_error
from bytewright.ir.symbols import buffers_of
from bytewright.target.model import Device, Target

LARGEST_INDEX = (1 << 31) - 1


def check_addresses(module: ir.Module, target: Target) -> None:
    """Looks at every parameter, allocation and constant.

    Raises:
        CompileError: BW301 for each buffer that is too large.
    """
    collector = Collector()
    devices = {device.name: device for device in target.devices}
    narrowest = min(target.devices, key=lambda device: device.address_bits)
    seen: set[str] = set()
    for function in (*module.entries, *module.kernels):
        for buffer in buffers_of(function):
            place = f"{function.name}: {buffer.name}"
            if place not in seen:
                seen.add(place)
                with collector.catch():
                    _check(buffer, devices.get(function.device, narrowest))
    for constant in module.constant_buffers:
        with collector.catch():
            _check(constant.buffer, narrowest)
    collector.stop_if_any()


def _check(buffer: ir.Buffer, device: Device) -> None:
    elements, total_bytes = ir.num_elements(buffer), ir.size_bytes(buffer)
    what = f"'{buffer.name}'" if ir.has_constant_size(buffer) else f"'{buffer.name}', at its largest,"
    if total_bytes > device.largest_object_bytes:
        message = (
            f"{what} has {total_bytes} B, but device '{device.name}' has {device.address_bits}-bit addresses, so the "
            f"largest array has {device.largest_object_bytes} B"
        )
    elif elements > LARGEST_INDEX:
        message = f"{what} has {elements} elements, but an index in C counts no more than {LARGEST_INDEX}"
    else:
        return
    help_text = (
        "take a smaller model" if ir.has_constant_size(buffer) else "give --batch-max a smaller number"
    )
    raise compile_error("BW301", message, help=help_text)
