"""uint8 of files, which is int8 inside of a graph: 128 less, with its zero point, so that both mean the same.

So integers have one arithmetic, that of int8; the upper bit changes at inputs and outputs, in constants, and where an
operator reads or gives values as they are (CAST).
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bytewright import ir
from bytewright.base.c_names import unique_name
from bytewright.frontends.tflite.conversion import Conversion
from bytewright.frontends.tflite.graph_builder import GraphBuilder, Operand
from bytewright.frontends.tflite.model import TensorRecord
from bytewright.ir.where import Where
from bytewright.ops.elementwise import BitwiseXor
from bytewright.ops.quantization import Recentre

UNSIGNED = "UINT8"
_SIDES = {ir.DType.I8: "signed", ir.DType.U8: "unsigned"}


def recentred(graph: GraphBuilder, name: str, tensor: TensorRecord, dtype: ir.DType) -> str:
    """The value of an input or output on the other side of the border: uint8 outside, int8 inside; else itself."""
    if tensor.element_type != UNSIGNED:
        return name
    producer = graph.producers.get(name)
    if producer is not None and isinstance(producer.operation, Recentre):
        return producer.inputs[0]
    kind = ir.TensorType(graph.types[name].shape, dtype)
    value = ir.Value(unique_name(f"{name}/{_SIDES[dtype]}", {*graph.types}), kind)
    graph.types[value.name] = kind
    operation, known = Recentre(dtype), graph.constants.get(name)
    if known is not None:
        (array,) = operation.evaluate((known.array,))
        graph.constants[value.name] = ir.TensorData.from_array(array, dtype)
        return value.name
    node = ir.Node(operation, (name,), (value,), Where(graph.file_name, tensor=tensor.name or None))
    graph.nodes.append(node)
    graph.producers[value.name] = node
    return value.name


def signed_value(at: Conversion, value: str) -> str:
    """What stands for a u8 value."""
    return at.emit(Recentre(ir.DType.I8), (value,), "signed")


def raw_value(at: Conversion, operand: Operand) -> str:
    """The operand's value as the file has it: u8 where that is uint8."""
    value = at.value_of(operand)
    if operand.tensor.element_type != UNSIGNED:
        return value
    producer = at.graph.producers.get(value)
    if producer is not None and isinstance(producer.operation, Recentre):
        return producer.inputs[0]
    return at.emit(Recentre(ir.DType.U8), (value,), "unsigned")


def bits_of(at: Conversion, value: str) -> str:
    """The i8 value with the bits of the uint8 that another stands for, and what stands for the uint8 of such bits."""
    upper = at.constant("upper_bit", np.array(ir.DType.I8.bounds[0], np.int8), ir.DType.I8)
    return at.emit(BitwiseXor(), (value, upper), "bits")


def without_sign(array: NDArray[Any]) -> NDArray[np.uint8]:
    """int8 values as the uint8 of the file that they stand for."""
    return np.bitwise_xor(array.view(np.uint8), np.uint8(0x80))


def with_sign(array: NDArray[Any]) -> NDArray[np.int8]:
    """uint8 values as the int8 that stand for them."""
    return np.bitwise_xor(array, np.uint8(0x80)).view(np.int8)
