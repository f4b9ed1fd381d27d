"""Unary operators and SOFTMAX. On int8 a unary operator is a table of 256 values, or a clamp where it is one."""

from functools import partial
from math import isfinite

import numpy as np

from bytewright import ir
from bytewright.frontends.tflite.conversion import Conversion, Operand
from bytewright.ops.arithmetic import tables
from bytewright.ops.arithmetic.multiplier import ACTIVATIONS, INT8_MAX, INT8_MIN
from bytewright.ops.arithmetic.numerics import Numerics
from bytewright.ops.arithmetic.softmax import prepare_softmax, softmax_output_is_valid
from bytewright.ops.arithmetic.tables import Int8Function, int8_table
from bytewright.ops.elementwise import Clamp, Table, TflLeakyRelu
from bytewright.ops.softmax import TflSoftmax


def convert_unary(at: Conversion, operation: ir.Operation, int8: Int8Function) -> None:
    """A function of one operand: an operator on float32, and what it is on int8."""
    at.require_counts((1,))
    source = at.activation_operand(0, "input")
    at.require_same_dtype(source)
    if source.is_float:
        at.define(at.emit(operation, (at.value_of(source),), "result"))
    else:
        at.define(emit_table(at, source, int8))


def convert_relu(at: Conversion) -> None:
    """RELU, RELU6, RELU_N1_TO_1."""
    kind = at.operator.kind
    absent = kind == "RELU_N1_TO_1" and at.numerics is Numerics.TFLM
    at.require(not absent, "TensorFlow Lite Micro does not have it, so there is nothing to be exact to")
    convert_unary(at, Clamp(*ACTIVATIONS[kind]), partial(tables.relu, kind))


def convert_leaky_relu(at: Conversion) -> None:
    """LEAKY_RELU."""
    alpha = at.options.real(0)
    at.require(isfinite(alpha), f"the slope {alpha} is not a number")
    convert_unary(at, TflLeakyRelu(alpha), partial(tables.leaky_relu, alpha))


def emit_table(at: Conversion, source: Operand, int8: Int8Function, value: str | None = None) -> str:
    """An int8 unary operator: the value itself, a clamp, or a table, whichever says the same with least.

    `value` is the operand in int8, where it is another than the operand itself.
    """
    table = int8_table(int8, at.affine(source.tensor), at.affine(at.output_tensor()), at.numerics)
    inputs = np.arange(INT8_MIN, INT8_MAX + 1)
    low, high = int(table[0]), int(table[-1])
    value = value if value is not None else at.value_of(source)
    if low <= high and np.array_equal(table, np.clip(inputs, low, high)):
        return value if (low, high) == (INT8_MIN, INT8_MAX) else at.emit(Clamp(low, high), (value,), "result")
    return at.emit(Table(), (value, at.constant("table", table, ir.DType.I8)), "result")


def convert_softmax(at: Conversion) -> None:
    """SOFTMAX over the last axis."""
    at.require_counts((1,))
    beta = at.options.real(0)
    source = at.activation_operand(0, "input")
    at.require_same_dtype(source)
    at.require(isfinite(beta), f"beta {beta} is not a number")
    if source.is_float:
        at.define(at.emit(TflSoftmax(beta), (at.value_of(source),), "result"))
        return
    is_valid = softmax_output_is_valid(*at.affine(at.output_tensor()), at.numerics)
    at.require(is_valid, "an int8 result has scale 1/256 and zero point -128")
    at.require(beta > 0, f"beta {beta} is not positive")
    operation = TflSoftmax(beta, *prepare_softmax(at.affine(source.tensor).scale, beta))
    at.define(at.emit(operation, (at.value_of(source),), "result"))
