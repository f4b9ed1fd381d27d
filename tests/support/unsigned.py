"""The uint8 twin of an int8 model: each int8 tensor as the uint8 one that means the same.

Values and zero points are 128 more; but for the zero point of weights, which may be any: they mean something else then.
"""

from __future__ import annotations

import struct
from typing import Any


def unsigned_twin(content: bytes, weights_zero_point: int = 128) -> bytes:
    """The file with every int8 tensor as uint8; each must state its zero point, if it has a scale.

    Args:
        content: The file.
        weights_zero_point: Of constants that are called "weights".
    """
    import tflite

    twin = bytearray(content)
    model: Any = tflite.Model.GetRootAs(twin, 0)
    flipped: set[int] = set()
    for position in range(model.SubgraphsLength()):
        graph = model.Subgraphs(position)
        for index in range(graph.TensorsLength()):
            tensor = graph.Tensors(index)
            if tensor.Type() != tflite.TensorType.INT8:
                continue
            _set_field(twin, tensor._tab, 6, "<b", tflite.TensorType.UINT8)
            quantization: Any = tensor.Quantization()
            if quantization is not None and quantization.ScaleLength():
                zero_points = quantization._tab
                assert quantization.ZeroPointLength() == quantization.ScaleLength(), tensor.Name()
                start = zero_points.Vector(zero_points.Offset(10))
                for channel in range(quantization.ZeroPointLength()):
                    place = start + 8 * channel
                    (value,) = struct.unpack_from("<q", twin, place)
                    is_weights = tensor.Name() == b"weights"
                    struct.pack_into("<q", twin, place, weights_zero_point if is_weights else value + 128)
            flipped.add(tensor.Buffer())
    for number in sorted(flipped):
        buffer = model.Buffers(number)
        if buffer.DataLength():
            start = buffer._tab.Vector(buffer._tab.Offset(4))
            for place in range(start, start + buffer.DataLength()):
                twin[place] ^= 0x80
    return bytes(twin)


def _set_field(content: bytearray, table: Any, slot: int, form: str, value: int) -> None:
    offset = table.Offset(slot)
    assert offset, f"the field at slot {slot} is not there"
    struct.pack_into(form, content, table.Pos + offset, value)
