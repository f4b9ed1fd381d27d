"""QUANTIZE and DEQUANTIZE: between float32 and int8, and between two int8 quantisations."""

import numpy as np

from bytewright import ir
from bytewright.frontends.tflite.activation import emit_table
from bytewright.frontends.tflite.conversion import Conversion
from bytewright.ops.arithmetic import tables
from bytewright.ops.arithmetic.numerics import Numerics
from bytewright.ops.elementwise import TflDequantize, TflQuantize


def convert_quantize(at: Conversion) -> None:
    """QUANTIZE of float32 or int8 to int8."""
    at.require_counts((1,))
    source = at.activation_operand(0, "input")
    at.require_result("INT8")
    if source.is_float:
        operation = TflQuantize(*at.affine(at.output_tensor()))
        at.define(at.emit(operation, (at.value_of(source),), "result"))
    else:
        at.define(emit_table(at, source, tables.quantize))


def convert_dequantize(at: Conversion) -> None:
    """DEQUANTIZE of int8 to float32."""
    at.require_counts((1,))
    source = at.activation_operand(0, "input")
    at.require(source.dtype is ir.DType.I8, "the input is float32 already")
    at.require_result("FLOAT32")
    if len(source.tensor.quantization.scales) > 1:
        at.define(_dequantized_channels(at))
        return
    operation = TflDequantize(*at.affine(source.tensor))
    at.define(at.emit(operation, (at.value_of(source),), "result"))


def _dequantized_channels(at: Conversion) -> str:
    """Constant weights with a scale a channel, as float constants.

    TensorFlow Lite Micro takes the first scale and zero point for all channels, which nobody can mean.
    """
    operand, values = at.constant_operand(0, "input with several scales")
    record, rank = operand.tensor.quantization, len(operand.shape)
    parameters = set(zip(record.scales, record.zero_points, strict=True))
    if at.numerics is Numerics.TFLM and len(parameters) > 1:
        at.fail(
            f"'{operand.tensor.name}' has {len(record.scales)} scales, of which TensorFlow Lite Micro takes the first "
            "for all channels",
            tensor=operand.tensor,
            help="quantise the weights with one scale, or compile for --numerics litert-ref",
        )
    fits = 0 <= record.axis < rank and operand.shape[record.axis] == len(record.scales)
    at.require(fits, f"{len(record.scales)} scales along axis {record.axis} of {list(operand.shape)}")
    along = tuple(-1 if axis == record.axis else 1 for axis in range(rank))
    scales = np.array(record.scales, dtype=np.float32).reshape(along)
    # As exact as integers, and shorter.
    zero_points = np.array(record.zero_points, dtype=np.float32).reshape(along)
    real = (values.astype(np.float32) - zero_points) * scales
    return at.constant("result", real, ir.DType.F32)
