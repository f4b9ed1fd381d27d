"""Unary operators, SOFTMAX and LOG_SOFTMAX.

On int8 a unary operator is a table of 256 values, or a clamp where it is one.
"""

from collections.abc import Callable
from functools import partial
from math import isfinite

from bytewright import ir
from bytewright.frontends.tflite.activation16 import (
    Int16,
    interpolated16,
    leaky_relu16,
    relu16,
    softmax16,
)
from bytewright.frontends.tflite.conversion import Conversion
from bytewright.frontends.tflite.lookup import emit_table
from bytewright.ops.arithmetic import interpolation, tables
from bytewright.ops.arithmetic.multiplier import ACTIVATIONS
from bytewright.ops.arithmetic.softmax import (
    log_softmax_output_is_valid,
    prepare_log_softmax,
    prepare_softmax,
    softmax_output_is_valid,
)
from bytewright.ops.arithmetic.tables import Int8Function
from bytewright.ops.checks import WIDE
from bytewright.ops.elementwise import Clamp
from bytewright.ops.float_functions import TflGelu, TflLeakyRelu
from bytewright.ops.softmax import TflLogSoftmax, TflSoftmax


def convert_unary(
    at: Conversion,
    operation: ir.Operation,
    int8: Int8Function | None = None,
    int16: Int16 | None = None,
    integers: Callable[[Conversion, str], str] | None = None,
) -> None:
    """A function of one operand: an operator on float32, and what it is on int8, int16 and wider integers."""
    at.require_counts((1,))
    source = at.activation_operand(0, "input", *(WIDE if integers is not None else ()))
    at.require_same_dtype(source)
    if integers is not None and source.dtype in WIDE:
        at.define(integers(at, at.value_of(source)))
    elif source.dtype is ir.DType.I8 and int8 is not None:
        at.define(emit_table(at, source, int8))
    elif source.dtype is ir.DType.I16 and int16 is not None:
        at.define(int16(at, source))
    else:
        at.define(at.emit(operation, (at.value_of(source),), "result"))


def convert_relu(at: Conversion) -> None:
    """RELU, RELU6, RELU_N1_TO_1, RELU_0_TO_1."""
    kind = at.operator.kind
    convert_unary(at, Clamp(*ACTIVATIONS[kind]), partial(tables.relu, kind), relu16)


def convert_gelu(at: Conversion) -> None:
    """GELU, as it is defined or by its approximation."""
    is_approximate = at.options.boolean(0)
    int16 = interpolated16(partial(interpolation.gelu, is_approximate))
    convert_unary(at, TflGelu(is_approximate), partial(tables.gelu, is_approximate), int16)


def convert_leaky_relu(at: Conversion) -> None:
    """LEAKY_RELU."""
    alpha = at.options.real(0)
    at.require(isfinite(alpha), f"the slope {alpha} is not a number")
    convert_unary(at, TflLeakyRelu(alpha), partial(tables.leaky_relu, alpha), leaky_relu16(alpha))


def convert_softmax(at: Conversion) -> None:
    """SOFTMAX over the last axis."""
    at.require_counts((1,))
    beta = at.options.real(0)
    source = at.activation_operand(0, "input")
    dtype = at.output_dtype()
    is_wider = source.dtype is ir.DType.I8 and dtype is ir.DType.I16
    if not is_wider:
        at.require_same_dtype(source)
    at.require(isfinite(beta), f"beta {beta} is not a number")
    if source.is_float:
        at.define(at.emit(TflSoftmax(beta), (at.value_of(source),), "result"))
        return
    at.require(beta > 0, f"beta {beta} is not positive")
    if source.dtype is ir.DType.I16:
        at.define(softmax16(at, source, beta))
        return
    target = at.affine(at.output_tensor(), is_symmetric=False)
    is_valid = softmax_output_is_valid(target.scale, target.zero_point, dtype.numpy, at.numerics)
    wanted = (
        "int16 result has scale 1/65536 and zero point -32768"
        if is_wider
        else ("int8 result has scale 1/256 and zero point -128")
    )
    at.require(is_valid, f"an {wanted}")
    operation = TflSoftmax(beta, *prepare_softmax(at.affine(source.tensor).scale, beta), dtype)
    at.define(at.emit(operation, (at.value_of(source),), "result"))


def convert_log_softmax(at: Conversion) -> None:
    """LOG_SOFTMAX over the last axis."""
    at.require_counts((1,))
    source = at.activation_operand(0, "input")
    at.require_same_dtype(source)
    operation = TflLogSoftmax()
    if not source.is_float:
        target = at.affine(at.output_tensor())
        is_valid = log_softmax_output_is_valid(target.scale, target.zero_point)
        at.require(is_valid, "an int8 result has scale 1/16 and zero point 127")
        operation = TflLogSoftmax(*prepare_log_softmax(at.affine(source.tensor).scale))
    at.define(at.emit(operation, (at.value_of(source),), "result"))
