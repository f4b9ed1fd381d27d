"""Unary operators and SOFTMAX on int16: rescales where the function is linear, else tables with lines between.

A table of every value, as int8 has it, would take 128 KiB.
"""

from collections.abc import Callable

import numpy as np

from bytewright import ir
from bytewright.frontends.tflite.accumulator import checked_multiplier, clamp_activation, limited, rescale
from bytewright.frontends.tflite.cast import emit_cast
from bytewright.frontends.tflite.conversion import Conversion
from bytewright.frontends.tflite.elementwise import emit_difference, emit_negated, emit_root
from bytewright.frontends.tflite.graph_builder import Operand
from bytewright.ops.arithmetic.interpolation import (
    prepare_sigmoid,
    prepare_softmax16,
    reciprocal_square_root,
    sigmoid_output_is_valid,
    softmax16_output_is_valid,
    softmax16_tables,
    unary_table,
)
from bytewright.ops.arithmetic.multiplier import Multiplier
from bytewright.ops.arithmetic.numerics import Numerics
from bytewright.ops.arithmetic.tables import prepare_inverse_root, rescale_factor, slope_factor
from bytewright.ops.elementwise import TflDiv, TflPrelu
from bytewright.ops.interpolation import Interpolate, TflSigmoid16, TflSoftmax16
from bytewright.ops.quantization import TflDequantize
from bytewright.ops.roots import TflInverseRoot

I16 = ir.DType.I16
Int16 = Callable[[Conversion, Operand], str]
"""What an operator is on int16: the value, from the operand."""
_IDENTITY = Multiplier(1 << 30, 1)


def _factor(at: Conversion, source: Operand) -> Multiplier:
    return rescale_factor(at.numerics, at.affine(source.tensor).scale, at.affine(at.output_tensor()).scale)


def relu16(at: Conversion, source: Operand) -> str:
    """RELU and RELU6: a rescale and a clamp; RELU6 of `tflm` clamps the raw input by its own quantisation."""
    value, kind = at.value_of(source), at.operator.kind
    target = at.affine(at.output_tensor())
    if kind == "RELU6" and at.numerics is Numerics.TFLM:
        target = at.affine(source.tensor)
    else:
        checked = checked_multiplier(at, _factor(at, source), at.affine(source.tensor).reach)
        value = rescale(at, value, [checked], 0, 0, I16, "rescaled")
    return clamp_activation(at, value, kind, target)


def leaky_relu16(alpha: float) -> Int16:
    """LEAKY_RELU: a PRELU whose slope is 1 before its scale, unless the slope is negative."""

    def emit(at: Conversion, source: Operand) -> str:
        scales = at.affine(source.tensor).scale, alpha, at.affine(at.output_tensor()).scale
        factors = _factor(at, source), slope_factor(at.numerics, *scales)
        return _sloped(at, source, *factors, 1) if alpha >= 0 else _folded(at, source, *factors)

    return emit


def absolute16(at: Conversion, source: Operand) -> str:
    """ABS: a PRELU whose slope is -1; between equal scales nothing is rescaled."""
    is_same = at.affine(source.tensor).scale == at.affine(at.output_tensor()).scale
    factor = _IDENTITY if is_same else _factor(at, source)
    return _sloped(at, source, factor, factor, -1)


def negated16(at: Conversion, source: Operand) -> str:
    """NEG of raw values, of which the least is its own negative."""
    wide = emit_cast(at, at.value_of(source), ir.DType.I32, "wide")
    return emit_cast(at, emit_negated(at, wide), I16, "result")


def _sloped(at: Conversion, source: Operand, above: Multiplier, below: Multiplier, slope: int) -> str:
    """Values times one factor, or, of those below zero, times another and the slope, 1 or -1."""
    reach = at.affine(source.tensor).reach
    factors = [checked_multiplier(at, factor, reach) for factor in (above, below)]
    operation = TflPrelu(
        above=(factors[0].multiplier, factors[0].exponent), below=(factors[1].multiplier, factors[1].exponent)
    )
    alpha = at.constant("slope", np.full(1, slope, np.int16), I16)
    return at.emit(operation, (at.value_of(source), alpha), "result")


def _folded(at: Conversion, source: Operand, above: Multiplier, below: Multiplier) -> str:
    """Values times one factor, less those below zero times the magnitude of another, which is negative.

    The product with a negative factor would have its ties rounded the other way.
    """
    own = at.affine(source.tensor)
    factors = above, Multiplier(-below.multiplier, below.exponent)
    sides = (0, own.bounds[1]), (own.bounds[0], 0)
    parts = [
        rescale(
            at,
            limited(at, at.value_of(source), *bounds, "side"),
            [checked_multiplier(at, factor, own.reach)],
            *(0, 0, ir.DType.I32, "part"),
        )
        for bounds, factor in zip(sides, factors, strict=True)
    ]
    return rescale(at, emit_difference(at, *parts), [_IDENTITY], 0, 0, I16, "result")


def sigmoid16(at: Conversion, source: Operand) -> str:
    """LOGISTIC and TANH: by one table of the logistic function."""
    scale = at.affine(at.output_tensor()).scale
    is_valid = sigmoid_output_is_valid(scale, at.numerics)
    at.require(is_valid, f"an int16 result has scale 1/32768, not {scale}")
    multiplier, shift = prepare_sigmoid(at.affine(source.tensor).scale)
    operation = TflSigmoid16(multiplier, shift, at.operator.kind == "TANH")
    return at.emit(operation, (at.value_of(source),), "result")


def interpolated16(function: Callable[[float, float], float]) -> Int16:
    """A function by its values at every 128th input; LiteRT alone has such."""

    def emit(at: Conversion, source: Operand) -> str:
        table = unary_table(function, at.affine(source.tensor), at.affine(at.output_tensor()))
        return at.emit(Interpolate(), (at.value_of(source), at.constant("table", table, I16)), "result")

    return emit


def inverse_root16(at: Conversion, source: Operand) -> str:
    """RSQRT: LiteRT's table, or as of int8 in TensorFlow Lite Micro."""
    if at.numerics is Numerics.LITERT_REF:
        return interpolated16(reciprocal_square_root)(at, source)
    scales = at.affine(source.tensor).scale, at.affine(at.output_tensor()).scale
    factor = prepare_inverse_root(*scales, at.numerics)
    operation = TflInverseRoot(factor.multiplier, factor.exponent)
    return at.emit(operation, (at.value_of(source),), "result")


def root16(at: Conversion, source: Operand) -> str:
    """SQRT: the quotient of a root in float32 and the output's scale, truncated; of what is below zero, zero."""
    own, target = at.affine(source.tensor), at.affine(at.output_tensor())
    positive = limited(at, at.value_of(source), 0, own.bounds[1], "positive")
    real = at.emit(TflDequantize(own.scale, 0), (positive,), "real")
    root = emit_root(at, real)
    divisor = at.constant("scale", np.array(target.scale, np.float32), ir.DType.F32)
    return emit_cast(at, at.emit(TflDiv(), (root, divisor), "quotient"), I16, "result")


def softmax16(at: Conversion, source: Operand, beta: float) -> str:
    """SOFTMAX over the last axis."""
    is_valid = softmax16_output_is_valid(at.affine(at.output_tensor()).scale)
    at.require(is_valid, "an int16 result has scale 1/32768")
    own = at.affine(source.tensor)
    factor = prepare_softmax16(own.scale, beta, at.numerics)
    checked = checked_multiplier(at, factor, own.bounds[1] - own.bounds[0], own.bounds[1])
    tables = softmax16_tables(at.numerics)
    operands = [
        at.constant(role, table, I16)
        for role, table in zip(("exponentials", "reciprocals"), tables, strict=True)
    ]
    operation = TflSoftmax16(checked.multiplier, checked.exponent)
    return at.emit(operation, (at.value_of(source), *operands), "result")
