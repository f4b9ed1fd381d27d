"""Unary operators and SOFTMAX. On int8 a unary operator is a table of 256 values, or a clamp where it is one."""

from __future__ import annotations

import numpy as np

from bytewright.frontends.tflite.conversion import Conversion, Operand
from bytewright.frontends.tflite.options import leaky_relu_alpha, softmax_beta
from bytewright.ir.graph import Operation
from bytewright.ir.types import DType
from bytewright.ops.arithmetic.multiplier import INT8_MAX, INT8_MIN, float_activation_range
from bytewright.ops.arithmetic.numerics import Numerics
from bytewright.ops.arithmetic.softmax import prepare_softmax, softmax_output_is_valid
from bytewright.ops.arithmetic.tables import int8_table_for
from bytewright.ops.elementwise import Clamp, Sigmoid, Table, Tanh, TflHardSwish, TflLeakyRelu
from bytewright.ops.softmax import TflSoftmax


def convert_unary(at: Conversion) -> None:
    """LOGISTIC, TANH, RELU, RELU6, RELU_N1_TO_1, LEAKY_RELU, HARD_SWISH."""
    at.require_counts((1,))
    source = at.activation_operand(0, "input")
    at.require_same_dtype(source)
    absent = at.operator.kind == "RELU_N1_TO_1" and at.numerics is Numerics.TFLM
    at.require(not absent, "TensorFlow Lite Micro does not have it, so there is nothing to be exact to")
    alpha = leaky_relu_alpha(at.operator) if at.operator.kind == "LEAKY_RELU" else 0.0
    at.require(bool(np.isfinite(alpha)), f"the slope {alpha} is not a number")
    if source.is_float:
        at.define(at.emit(_float_operation(at.operator.kind, alpha), (at.value_of(source),), "result"))
    else:
        at.define(emit_table(at, source, alpha))


def _float_operation(kind: str, alpha: float) -> Operation:
    """The graph's operator on float32."""
    match kind:
        case "LOGISTIC":
            return Sigmoid()
        case "TANH":
            return Tanh()
        case "HARD_SWISH":
            return TflHardSwish()
        case "LEAKY_RELU":
            return TflLeakyRelu(alpha)
        case _:
            return Clamp(*float_activation_range(kind))


def emit_table(at: Conversion, source: Operand, alpha: float = 0.0) -> str:
    """An int8 unary operator: the value itself, a clamp, or a table, whichever says the same with least."""
    input_affine, output_affine = at.affine(source.tensor), at.affine(at.output_tensor())
    table = int8_table_for(at.operator.kind, input_affine, output_affine, at.numerics, alpha=alpha)
    inputs = np.arange(INT8_MIN, INT8_MAX + 1)
    low, high = int(table[0]), int(table[-1])
    value = at.value_of(source)
    if low <= high and np.array_equal(table, np.clip(inputs, low, high)):
        return value if (low, high) == (INT8_MIN, INT8_MAX) else at.emit(Clamp(low, high), (value,), "result")
    return at.emit(Table(), (value, at.constant("table", table, DType.I8)), "result")


def convert_softmax(at: Conversion) -> None:
    """SOFTMAX over the last axis."""
    at.require_counts((1,))
    beta = softmax_beta(at.operator)
    source = at.activation_operand(0, "input")
    at.require_same_dtype(source)
    at.require(bool(np.isfinite(beta)), f"beta {beta} is not a number")
    if source.is_float:
        at.define(at.emit(TflSoftmax(beta), (at.value_of(source),), "result"))
        return
    is_valid = softmax_output_is_valid(*at.affine(at.output_tensor()), at.numerics)
    at.require(is_valid, "an int8 result has scale 1/256 and zero point -128")
    at.require(beta > 0, f"beta {beta} is not positive")
    prepared = prepare_softmax(at.affine(source.tensor)[0], beta)
    operation = TflSoftmax(beta, prepared.multiplier, prepared.left_shift, prepared.difference_min)
    at.define(at.emit(operation, (at.value_of(source),), "result"))
