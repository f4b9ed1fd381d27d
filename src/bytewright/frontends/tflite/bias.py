"""Biases of layers, and in how many bits the references keep their sums.

Under int8 activations a bias is int32, under float32 it is float32. Under int16 it is int64 or int32, which decides how
sums are rounded (docs/numerics.md). LiteRT goes by an option, and reads the other type's bytes as if they were its own;
TensorFlow Lite Micro goes by the tensor, and by the option where there is none.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bytewright import ir
from bytewright.frontends.tflite.conversion import Conversion
from bytewright.frontends.tflite.graph_builder import Operand
from bytewright.ops.arithmetic.numerics import Numerics

# Whose kernels take an int64 bias alone under int16 activations.
_WIDE_ALONE = {
    Numerics.LITERT_REF: ("DEPTHWISE_CONV_2D",),
    Numerics.TFLM: ("DEPTHWISE_CONV_2D", "TRANSPOSE_CONV"),
}


@dataclass(frozen=True, slots=True)
class LayerBias:
    """The bias of a layer.

    Attributes:
        operand: None if the file has none.
        values: One a channel, zeros where the file has none.
        is_wide: Whether the references keep the layer's sums in 64 bits.
    """

    operand: Operand | None
    values: NDArray[Any]
    is_wide: bool = False


def layer_bias(
    at: Conversion, source: Operand, channels: int, position: int, stated: str | None
) -> LayerBias:
    """The bias at a position of the operands, checked against the type of the input, and that which is `stated`."""
    stated = None if at.operator.kind in _WIDE_ALONE[at.numerics] else stated
    is_wide = source.dtype is ir.DType.I16
    needed = ir.DType.F32 if source.is_float else ir.DType.I32
    if not at.is_present(position):
        is_wide = is_wide and stated != "INT32"
        return LayerBias(None, np.zeros(channels, dtype=needed.numpy), is_wide)
    bias, values = at.constant_operand(position, "bias")
    if is_wide:
        needed = _type_under_int16(at, bias, stated)
    at.require(bias.dtype is needed, f"the bias is {bias.tensor.element_type}")
    at.require(values.size == channels, f"{values.size} biases for {channels} channels")
    return LayerBias(bias, values.reshape(channels), needed is ir.DType.I64)


def _type_under_int16(at: Conversion, bias: Operand, stated: str | None) -> ir.DType:
    """int64, or int32 where the kernels take it."""
    found = bias.tensor.element_type
    if at.operator.kind in _WIDE_ALONE[at.numerics]:
        return ir.DType.I64
    if at.numerics is Numerics.LITERT_REF and found in ("INT32", "INT64") and found != (stated or "INT64"):
        at.fail(
            f"the bias is {found}, and the option quantized_bias_type says {stated or 'nothing, which means INT64'}: "
            "LiteRT would take its bytes for the other type's",
            tensor=bias.tensor,
            help="convert the model again with a converter that sets the option, or compile for --numerics tflm",
        )
    return ir.DType.I32 if found == "INT32" else ir.DType.I64
