"""QUANTIZE and DEQUANTIZE: between float32 and int8, and between two int8 quantisations."""

from __future__ import annotations

from bytewright.frontends.tflite.activation import emit_table
from bytewright.frontends.tflite.conversion import Conversion
from bytewright.ir.types import DType
from bytewright.ops.elementwise import TflDequantize, TflQuantize


def convert_quantize(at: Conversion) -> None:
    """QUANTIZE of float32 or int8 to int8."""
    at.require_counts((1,))
    source = at.activation_operand(0, "input")
    at.require(at.output_dtype() is DType.I8, f"the result is {at.output_tensor().element_type}, not INT8")
    if source.is_float:
        operation = TflQuantize(*at.affine(at.output_tensor()))
        at.define(at.emit(operation, (at.value_of(source),), "result"))
    else:
        at.define(emit_table(at, source))


def convert_dequantize(at: Conversion) -> None:
    """DEQUANTIZE of int8 to float32."""
    at.require_counts((1,))
    source = at.activation_operand(0, "input")
    at.require(source.dtype is DType.I8, "the input is float32 already")
    at.require(
        at.output_dtype() is DType.F32, f"the result is {at.output_tensor().element_type}, not FLOAT32"
    )
    operation = TflDequantize(*at.affine(source.tensor))
    at.define(at.emit(operation, (at.value_of(source),), "result"))
