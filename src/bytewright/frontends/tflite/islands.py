"""Islands of floats: functions of one float between a DEQUANTIZE and a QUANTIZE of int8.

Exporters leave operators in float that their quantiser has no integers for: EXP, LOG, ELU, LEAKY_RELU. What such an
island makes of an int8 value it makes of each of the 256, so it is a table.
"""

import numpy as np

from bytewright import ir
from bytewright.frontends.tflite.conversion import Conversion
from bytewright.frontends.tflite.lookup import emit_lookup
from bytewright.ops import float_functions
from bytewright.ops.data import Reshape
from bytewright.ops.elementwise import Clamp
from bytewright.ops.quantization import TflDequantize, TflQuantize

_OF_ONE_FLOAT = (*float_functions.OPERATIONS, Clamp)


def emit_quantized(at: Conversion, value: str, operation: TflQuantize) -> str:
    """A float as an integer; where it is a function of one int8 value, from a table of all of them."""
    steps: list[ir.Operation] = [operation]
    name = value
    while (node := at.graph.producers.get(name)) is not None:
        if isinstance(node.operation, _OF_ONE_FLOAT):
            steps.append(node.operation)
        elif isinstance(node.operation, TflDequantize) and _is_of_bytes(at, node, operation):
            return _tabulated(at, node, steps, at.type_of(value).fixed_shape)
        elif not isinstance(node.operation, Reshape):
            break
        name = node.inputs[0]
    return at.emit(operation, (value,), "result")


def _is_of_bytes(at: Conversion, first: ir.Node, last: TflQuantize) -> bool:
    """Whether the island is from int8 to int8; int16 has too many values for a table."""
    return at.type_of(first.inputs[0]).dtype is last.dtype is ir.DType.I8


def _tabulated(at: Conversion, first: ir.Node, steps: list[ir.Operation], shape: tuple[int, ...]) -> str:
    """What the steps, the last one first, make of each int8 value; in float32, as they are computed."""
    (source,) = first.inputs
    least, most = ir.DType.I8.bounds
    values: ir.Array = np.arange(least, most + 1).astype(np.int8)
    for step in (first.operation, *reversed(steps)):
        (values,) = step.evaluate((values,))
    return at.reshape(emit_lookup(at, values, source), shape)
