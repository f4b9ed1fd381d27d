"""Operators of two operands and more, with broadcasting: arithmetic, greatest and least values, slopes, choices.

Operators with fused activations are the first ones. What int8 needs is written in rescales and int32 arithmetic.
"""

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bytewright import ir
from bytewright.frontends.tflite.accumulator import (
    checked_multiplier,
    clamp_activation,
    clamp_float,
    clamp_integer,
    rescale,
    saturated,
)
from bytewright.frontends.tflite.cast import emit_cast
from bytewright.frontends.tflite.conversion import Conversion
from bytewright.frontends.tflite.graph_builder import Operand
from bytewright.frontends.tflite.options import fused_activation
from bytewright.frontends.tflite.unsigned import UNSIGNED
from bytewright.ops.arithmetic.division import prepare_quotient
from bytewright.ops.arithmetic.factors import (
    DIFFERENCE_LEFT_SHIFT,
    LEFT_SHIFTS,
    prepare_prelu,
    prepare_product,
    prepare_squared_difference,
    prepare_sum,
)
from bytewright.ops.arithmetic.interpolation import is_power_of_two
from bytewright.ops.arithmetic.multiplier import INT8, INT16, Affine, Multiplier
from bytewright.ops.arithmetic.numerics import Numerics
from bytewright.ops.arithmetic.rescale import double_round_by
from bytewright.ops.checks import WIDE
from bytewright.ops.elementwise import (
    Add,
    Bucketize,
    IntDiv,
    Maximum,
    Minimum,
    Mul,
    Pow,
    Sub,
    TflDiv,
    TflFloorDiv,
    TflIntegerDiv,
    TflIntegerPower,
    TflPrelu,
    WrappingAdd,
    WrappingMul,
    WrappingSub,
)
from bytewright.ops.float_functions import TflSqrt
from bytewright.ops.pooling import ReduceSum
from bytewright.ops.roots import TflL2Normalization

# What both references have of L2_NORMALIZATION.
_LEAST_NORM = 1e-6
_MOST_AXES_OF_ROWS = 4
_NEARLY_WHOLE = 1e-5
_IDENTITY = Multiplier(1 << 30, 1)
"""A rescale by this changes nothing but the zero point."""


@dataclass(frozen=True, slots=True)
class _Form:
    """An operation on int32: how operands come to it and how its result becomes int8.

    Attributes:
        factors: Of the operands, which lose their zero points and gain `left_shift` bits first.
        reach: The greatest magnitude of the result, from those of the operands.
    """

    factors: tuple[Multiplier, Multiplier]
    left_shift: int
    output: Multiplier
    reach: Callable[[int, int], int]
    role: str


QuantisedForm = Callable[[Conversion, Affine, Affine, Affine], _Form]
"""The form of an operator whose two operands and result are quantised so."""


def sum_form(at: Conversion, first: Affine, second: Affine, output: Affine) -> _Form:
    """ADD or SUB, at a common scale with 20 more bits, of int16 with 15.

    What is taken from itself is zero at any scale of int16: in IsFinite, `x - x == 0`, it is a denormal number. Of int8
    LiteRT shifts to the right by less than nothing then, which is undefined.
    """
    one, other, *_ = at.operator.inputs
    if output.bounds == INT16:
        if at.operator.kind == "SUB" and one == other:
            output = output._replace(scale=first.scale)
        _require_general_scales(at, first, second, output)
    scales = first.scale, second.scale, output.scale
    *factors, factor = prepare_sum(at.operator.kind, *scales, output.bounds)
    return _Form((factors[0], factors[1]), LEFT_SHIFTS[output.bounds], factor, operator.add, "sum")


def _require_general_scales(at: Conversion, *operands: Affine) -> None:
    """LiteRT has a formula of its own for int16 whose scales are powers of two, unless an option forbids it.

    Between equal scales both are the same.
    """
    says_otherwise = at.options.integer(1, "B", default=1) == 0
    if at.numerics is Numerics.TFLM or says_otherwise:
        return
    powers = [is_power_of_two(operand.scale) for operand in operands]
    if all(is_power for is_power, _ in powers) and len({exponent for _, exponent in powers}) > 1:
        at.fail(
            "int16 operands whose scales are powers of two are shifted where the option pot_scale_int16 is set, "
            "which is not supported",
            help="convert the model again, as converters clear the option, or compile for --numerics tflm",
        )


def product_form(at: Conversion, first: Affine, second: Affine, output: Affine) -> _Form:
    """MUL, of both operands without their zero points."""
    span = first.bounds[1] - first.bounds[0]
    reach = span * span if first.bounds == INT8 else first.reach * second.reach
    factor = prepare_product(first.scale, second.scale, output.scale, at.numerics, reach)
    return _Form((_IDENTITY, _IDENTITY), 0, factor, operator.mul, "product")


def convert_binary(
    at: Conversion,
    operation: ir.Operation,
    wrapping: ir.Operation,
    quantised: QuantisedForm,
) -> None:
    """An operator of two operands with a fused activation; its form on int8 and int16 depends on the scales.

    On int32 and int64 it is `wrapping`, as an application's numbers may be any.
    """
    activation = fused_activation(at, 0)
    first, second = two_operands(at, dtypes=WIDE)
    if not first.is_quantised:
        compute, clamp = (operation, clamp_float) if first.is_float else (wrapping, clamp_integer)
        operands = (at.value_of(first, "first"), at.value_of(second, "second"))
        at.define(clamp(at, at.emit(compute, operands, "unclamped"), activation))
        return
    one, two, target = at.affine(first.tensor), at.affine(second.tensor), at.affine(at.output_tensor())
    form = quantised(at, one, two, target)
    left, left_reach = _widened(at, first, form.factors[0], form.left_shift, "first")
    right, right_reach = _widened(at, second, form.factors[1], form.left_shift, "second")
    result = at.emit(operation, (left, right), form.role)
    reach = form.reach(left_reach, right_reach)
    factor = checked_multiplier(at, form.output, reach, target.zero_point)
    rescaled = rescale(at, result, [factor], 0, target.zero_point, first.dtype, "rescaled")
    at.define(clamp_activation(at, rescaled, activation, target))


def _widened(
    at: Conversion, operand: Operand, factor: Multiplier, left_shift: int, role: str
) -> tuple[str, int]:
    """An operand in int32 without its zero point, and its greatest magnitude."""
    own = at.affine(operand.tensor)
    zero_point = own.zero_point
    extremes = [end << left_shift for end in own.ends]
    scaled = double_round_by(extremes, factor)
    value = at.value_of(operand, role)
    widened = rescale(at, value, [factor], zero_point, 0, ir.DType.I32, f"{role}_widened", left_shift)
    return widened, int(abs(scaled).max())


def convert_add_n(at: Conversion, operation: ir.Operation) -> None:
    """ADD_N: tensors of one shape, added one after the other; int32 wraps, int8 has 20 more bits."""
    count = len(at.operator.inputs)
    at.require(count >= 2, f"{count} operands, 2 are needed")
    at.require_counts((count,))
    operands = [at.activation_operand(position, "operand", ir.DType.I32) for position in range(count)]
    at.require_same_dtype(*operands)
    shapes = {operand.shape for operand in operands}
    at.require(len(shapes) == 1, f"operands of different shapes: {sorted(shapes)}")
    if operands[0].is_quantised:
        at.define(_sum_of_many(at, operands, operation))
        return
    operation = operation if operands[0].is_float else WrappingAdd()
    at.define(_added(at, [at.value_of(operand) for operand in operands], operation))


def _added(at: Conversion, values: Sequence[str], operation: ir.Operation) -> str:
    """The values, added one after the other."""
    total, *rest = values
    for value in rest:
        total = at.emit(operation, (total, value), "sum")
        if at.type_of(total).dtype is ir.DType.F32:
            total = clamp_float(at, total, "NONE")
    return total


def _sum_of_many(at: Conversion, operands: Sequence[Operand], operation: ir.Operation) -> str:
    """Of int8. The kernel of TensorFlow Lite Micro begins at the zero point's negative, as if it were an operand."""
    quantisations = {at.affine(operand.tensor) for operand in operands}
    at.require(len(quantisations) == 1, "operands of different quantisations")
    (own,), target = quantisations, at.affine(at.output_tensor())
    half, _, factor = prepare_sum(at.operator.kind, own.scale, own.scale, target.scale)
    left_shift = LEFT_SHIFTS[own.bounds]
    widened = [_widened(at, operand, half, left_shift, "operand")[0] for operand in operands]
    total = _added(at, widened, operation)
    reach = (len(operands) * own.reach + abs(own.zero_point)) << left_shift - 1
    factor = checked_multiplier(at, factor, reach, target.zero_point)
    beginning = own.zero_point << left_shift - 1
    return rescale(at, total, [factor], beginning, target.zero_point, ir.DType.I8, "rescaled")


def convert_squared_difference(at: Conversion) -> None:
    """SQUARED_DIFFERENCE: of int8 at a common scale with 7 more bits."""
    first, second = two_operands(at, dtypes=(ir.DType.I32,))
    if not first.is_quantised:
        subtract, multiply = (Sub(), Mul()) if first.is_float else (WrappingSub(), WrappingMul())
        operands = (at.value_of(first, "first"), at.value_of(second, "second"))
        difference = at.emit(subtract, operands, "difference")
        at.define(at.emit(multiply, (difference, difference), "square"))
        return
    one, two, target = at.affine(first.tensor), at.affine(second.tensor), at.affine(at.output_tensor())
    *factors, factor = prepare_squared_difference(one.scale, two.scale, target.scale)
    left, left_reach = _widened(at, first, factors[0], DIFFERENCE_LEFT_SHIFT, "first")
    right, right_reach = _widened(at, second, factors[1], DIFFERENCE_LEFT_SHIFT, "second")
    difference = emit_difference(at, left, right)
    square = at.emit(Mul(), (difference, difference), "square")
    factor = checked_multiplier(at, factor, (left_reach + right_reach) ** 2, target.zero_point)
    at.define(rescale(at, square, [factor], 0, target.zero_point, ir.DType.I8, "rescaled"))


def convert_square(at: Conversion) -> None:
    """SQUARE of floats."""
    at.require_counts((1,))
    source = at.activation_operand(0, "input")
    at.require_same_dtype(source)
    value = at.value_of(source)
    at.define(emit_square(at, value))


def emit_square(at: Conversion, value: str) -> str:
    """Floats times themselves."""
    return at.emit(Mul(), (value, value), "square")


def emit_scaled(at: Conversion, value: str, factor: np.floating[Any] | float) -> str:
    """Floats times one number."""
    return at.emit(
        Mul(), (value, at.constant("factor", np.array(factor, np.float32), ir.DType.F32)), "scaled"
    )


def emit_moved(at: Conversion, value: str, offset: np.floating[Any] | float) -> str:
    """Floats plus one number."""
    return emit_sum(at, value, at.constant("offset", np.array(offset, np.float32), ir.DType.F32))


def emit_divided_by_power(at: Conversion, value: str, base: str, exponent: float) -> str:
    """Floats over the powers of others."""
    power = at.constant("exponent", np.array(-exponent, np.float32), ir.DType.F32)
    return at.emit(Mul(), (value, at.emit(Pow(), (base, power), "power")), "divided")


def emit_difference(at: Conversion, first: str, second: str) -> str:
    """Of integers whose type holds it."""
    return at.emit(Sub(), (first, second), "difference")


def emit_root(at: Conversion, value: str) -> str:
    """Square roots of floats."""
    return at.emit(TflSqrt(), (value,), "root")


def convert_div(at: Conversion) -> None:
    """DIV. An infinite quotient of floats becomes the greatest float, as in the references."""
    activation = fused_activation(at, 0)
    first, second = two_operands(at, dtypes=(ir.DType.I32,))
    operands = (at.value_of(first, "first"), at.value_of(second, "second"))
    if first.dtype is ir.DType.I32:
        at.define(clamp_integer(at, at.emit(IntDiv(), operands, "unclamped"), activation))
        return
    if not first.is_float:
        one, two, target = at.affine(first.tensor), at.affine(second.tensor), at.affine(at.output_tensor())
        factor = prepare_quotient(one.scale, two.scale, target.scale)
        zero_points = (one.zero_point, two.zero_point, target.zero_point)
        operation = TflIntegerDiv(*zero_points, factor.multiplier, factor.exponent)
        at.define(clamp_activation(at, at.emit(operation, operands, "unclamped"), activation, target))
        return
    quotient = at.emit(TflDiv(), operands, "unclamped")
    at.define(clamp_float(at, quotient, activation, is_infinite=True))


def emit_negated(at: Conversion, value: str) -> str:
    """NEG of wide integers, of which the least is its own negative."""
    dtype = at.type_of(value).dtype
    zero = at.constant("zero", np.zeros((), dtype.numpy), dtype)
    return at.emit(WrappingSub(), (zero, value), "negated")


def emit_wrapped_offset(at: Conversion, value: str, offset: int) -> str:
    """Narrow integers and an offset, modulo what their type holds."""
    wide = emit_cast(at, value, ir.DType.I32, "wide")
    operands = (wide, at.constant("offset", np.array(offset, np.int32), ir.DType.I32))
    moved = at.emit(WrappingAdd(), operands, "moved")
    return emit_cast(at, moved, at.type_of(value).dtype, "wrapped")


def emit_sum(at: Conversion, first: str, second: str) -> str:
    """Of floats, or of integers that the type of the sum holds."""
    return at.emit(Add(), (first, second), "sum")


def emit_wrapped_sum(at: Conversion, first: str, second: str) -> str:
    """Of floats, or of int32 and int64 modulo what their type holds."""
    is_integer = at.type_of(first).dtype.is_integer
    return at.emit(WrappingAdd(), (first, second), "sum") if is_integer else emit_sum(at, first, second)


def emit_least(at: Conversion, first: str, second: str, role: str) -> str:
    """The lesser one of two values, element by element."""
    return at.emit(Minimum(), (first, second), role)


def emit_wrapped_difference(at: Conversion, first: str, second: str) -> str:
    """The difference of two integers modulo the size of their type."""
    return at.emit(WrappingSub(), (first, second), "difference")


def emit_saturated_sum(at: Conversion, first: str, second: str) -> str:
    """Of floats, or of narrow integers, saturating at what their type holds."""
    dtype = at.type_of(first).dtype
    if not dtype.is_integer:
        return emit_sum(at, first, second)
    wide = [emit_cast(at, value, ir.DType.I32, "wide") for value in (first, second)]
    return emit_cast(at, saturated(at, emit_wrapped_sum(at, *wide), dtype), dtype, "narrow")


def emit_shifted_product(at: Conversion, value: str, factors: NDArray[np.int32], shift: int) -> str:
    """Integers of int32 times constants, divided by 2^shift and rounded down."""
    operands = (value, at.constant("factors", factors, ir.DType.I32))
    product = at.emit(Mul(), operands, "product")
    divisor = at.constant("divisor", np.array(1 << shift, np.int32), ir.DType.I32)
    return at.emit(TflFloorDiv(), (product, divisor), "shifted") if shift else product


def emit_magnitude(at: Conversion, value: str) -> str:
    """ABS of wide integers, of which the least is itself."""
    return at.emit(Maximum(), (value, emit_negated(at, value)), "magnitude")


def emit_sign(at: Conversion, value: str) -> str:
    """SIGN of wide integers."""
    dtype = at.type_of(value).dtype
    least = at.constant("least", np.array(-1, dtype.numpy), dtype)
    greatest = at.constant("greatest", np.array(1, dtype.numpy), dtype)
    return emit_least(at, at.emit(Maximum(), (value, least), "raised"), greatest, "sign")


def convert_pow(at: Conversion) -> None:
    """POW. LiteRT multiplies floats where the exponent is one constant that is nearly whole, and limits products."""
    first, second = two_operands(at, dtypes=(ir.DType.I32,))
    base, exponent = at.value_of(first, "first"), at.value_of(second, "second")
    if not first.is_float:
        at.define(at.emit(TflIntegerPower(), (base, exponent), "result"))
        return
    whole = _whole_exponent(second)
    if whole is None:
        at.define(at.emit(Pow(), (base, exponent), "result"))
        return
    exponent = at.constant("exponent", np.full(second.shape, whole, np.float32), ir.DType.F32)
    power = at.emit(Pow(), (base, exponent), "power")
    at.define(power if whole == 1 else clamp_float(at, power, "NONE"))


def _whole_exponent(operand: Operand) -> float | None:
    """The whole number from 1 on that a constant is at most 1e-5 away from, as LiteRT takes it."""
    if operand.data is None or operand.type.num_elements != 1:
        return None
    exponent = np.float32(operand.data.array.reshape(-1)[0])
    whole = np.round(exponent)
    return float(whole) if whole >= 1 and abs(exponent - whole) < _NEARLY_WHOLE else None


def convert_bucketize(at: Conversion) -> None:
    """BUCKETIZE by boundaries among the options: integers are compared as floats."""
    at.require_counts((1,))
    source = at.typed_operand(0, "input", (ir.DType.F32, *WIDE))
    at.require_result("INT32")
    boundaries = np.array(at.options.numbers(0, "<f4"), np.float32)
    at.require(boundaries.size >= 1, "there are no boundaries")
    at.require(bool((boundaries[1:] >= boundaries[:-1]).all()), "the boundaries do not ascend")
    value = at.value_of(source)
    value = value if source.is_float else emit_cast(at, value, ir.DType.F32, "as_float")
    table = at.constant("boundaries", boundaries, ir.DType.F32)
    at.define(at.emit(Bucketize(), (value, table), "bucket"))


def convert_plain_binary(at: Conversion, operation: ir.Operation, dtypes: tuple[ir.DType, ...] = ()) -> None:
    """A function of two raw values or floats, whatever the quantisations, without a fused activation."""
    first, second = two_operands(at, dtypes=dtypes)
    operands = (at.value_of(first, "first"), at.value_of(second, "second"))
    at.define(at.emit(operation, operands, "result"))


def convert_unquantised_binary(at: Conversion, operation: ir.Operation, wrapping: ir.Operation) -> None:
    """A function of floats, or of integers with another operation, of two tensors of one shape."""
    operands, is_float = _two_of_one_shape(at)
    at.define(at.emit(operation if is_float else wrapping, operands, "result"))


def convert_unquantised_extremum(at: Conversion, operation: ir.Operation) -> None:
    """One of two tensors of one shape: where neither is beyond the other the first, as std::max and std::min."""
    (first, second), _ = _two_of_one_shape(at)
    at.define(at.emit(operation, (second, first), "result"))


def convert_alike(
    at: Conversion,
    operation: ir.Operation,
    dtypes: tuple[ir.DType, ...],
    of_truths: ir.Operation | None = None,
) -> None:
    """A function of two raw values, or of truth values another, of two tensors of one shape."""
    operands, _ = _two_of_one_shape(at, dtypes)
    is_truth = at.type_of(operands[0]).dtype is ir.DType.BOOL
    at.define(at.emit(of_truths if of_truths and is_truth else operation, operands, "result"))


def _two_of_one_shape(at: Conversion, dtypes: tuple[ir.DType, ...] = WIDE) -> tuple[tuple[str, str], bool]:
    """Both operands, of 32 or 64 bits unless other types are given, and whether they are floats."""
    first, second = two_operands(at, dtypes=dtypes)
    at.require(first.shape == second.shape, f"shapes {list(first.shape)} and {list(second.shape)}")
    return (at.value_of(first, "first"), at.value_of(second, "second")), first.is_float


def convert_prelu(at: Conversion) -> None:
    """PRELU: of int8, two rescales, of what is above zero and of what is below times the slope.

    The slope of int16 is int8, which LiteRT reads there whatever the file says.
    """
    at.require_counts((2,))
    source, slope = at.activation_operand(0, "input"), at.activation_operand(1, "slope")
    at.require_same_dtype(source)
    expected = ir.DType.I8 if source.dtype is ir.DType.I16 else source.dtype
    at.require(slope.dtype is expected, f"the slope is {slope.tensor.element_type}")
    operation, slopes = TflPrelu(), at.value_of(slope, "slope")
    if slope.dtype is not source.dtype:
        slopes = emit_cast(at, slopes, source.dtype, "slopes")
    if not source.is_float:
        own, alpha, target = at.affine(source.tensor), at.affine(slope.tensor), at.affine(at.output_tensor())
        above, below = prepare_prelu(own.scale, alpha.scale, target.scale, at.numerics)
        low, high = own.ends
        above = checked_multiplier(at, above, high, target.zero_point)
        below = checked_multiplier(at, below, -low * alpha.reach, target.zero_point)
        operation = TflPrelu(
            *(own.zero_point, alpha.zero_point, target.zero_point),
            *((factor.multiplier, factor.exponent) for factor in (above, below)),
        )
    at.define(at.emit(operation, (at.value_of(source), slopes), "result"))


def convert_l2_normalization(at: Conversion) -> None:
    """L2_NORMALIZATION: rows of the last axis, divided by their Euclidean norms, of float32 by 1e-6 at least."""
    at.require_counts((1,))
    activation = fused_activation(at, 0)
    at.require(activation == "NONE", f"the fused activation {activation} is not supported")
    source = at.activation_operand(0, "input")
    at.require_same_dtype(source)
    rank = len(source.shape)
    at.require(
        1 <= rank <= _MOST_AXES_OF_ROWS, f"an input of {rank} axes; 1 to {_MOST_AXES_OF_ROWS} are supported"
    )
    value = at.value_of(source)
    if not source.is_float:
        at.define(at.emit(_normalisation(at, source), (value,), "normalised"))
        return
    total = at.emit(ReduceSum((rank - 1,), True), (emit_square(at, value),), "sum")
    root = emit_root(at, total)
    least = at.constant("least", np.full((1,) * rank, _LEAST_NORM, np.float32), ir.DType.F32)
    norm = at.emit(Maximum(), (least, root), "norm")
    at.define(at.emit(TflDiv(), (value, norm), "normalised"))


def _normalisation(at: Conversion, source: Operand) -> TflL2Normalization:
    """Of int8; TensorFlow Lite Micro does not look at the quantisation of the result, and takes it for the same."""
    target = at.affine(at.output_tensor())
    at.require(
        (target.scale, target.zero_point) == (1 / 128, 0),
        "an int8 result has scale 1/128 and zero point 0, of uint8 128",
    )
    return TflL2Normalization(at.affine(source.tensor).zero_point, source.tensor.element_type == UNSIGNED)


def two_operands(at: Conversion, dtypes: tuple[ir.DType, ...] = ()) -> tuple[Operand, Operand]:
    """Both operands, of the result's type: int8, float32, or one of `dtypes`."""
    at.require_counts((2,))
    operands = (
        at.activation_operand(0, "first operand", *dtypes),
        at.activation_operand(1, "second operand", *dtypes),
    )
    at.require_same_dtype(*operands)
    return operands
