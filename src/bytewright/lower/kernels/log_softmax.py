"""The logarithm of a softmax along the last axis.

Of int8 it shares the sum of exponentials with the softmax. Its logarithm is gemmlowp's fixed point, once a row, in 64
bits; then each element is its scaled difference from the greatest less that logarithm.
"""

from bytewright import ir
from bytewright.ir.builder import BodyBuilder, load
from bytewright.ir.scalar_functions import DOUBLE_ROUND_WIDE, EXP, HIGH_MULTIPLY_WIDE, LOG, MULTIPLY_Q31
from bytewright.lower.kernels.context import Template
from bytewright.lower.kernels.softmax import (
    Row,
    exponential_table,
    reciprocal_of_half,
    rows_of,
    sum_of_exponentials,
)
from bytewright.ops.arithmetic import fixedpoint
from bytewright.ops.arithmetic.softmax import LOG_OUTPUT_ZERO_POINT
from bytewright.ops.softmax import TflLogSoftmax

I8, I32, I64, F32 = ir.DType.I8, ir.DType.I32, ir.DType.I64, ir.DType.F32
# From Q5.26 to sixteenths.
OUTPUT_SHIFT = 22
# The sum lies in [2^19, 2^31): at most this many doublings bring it, or its product with sqrt(1/2), to [2^30, 2^31).
MAX_HEADROOM = 12
# 1 in Q6.25.
_ONE = 1 << 25
_MOST = 2**31 - 1


def lower_log_softmax(template: Template, operation: TflLogSoftmax) -> None:
    """Writes the kernel. x: [..., C]; result: [..., C]."""
    with rows_of(template) as row:
        if row.source.dtype.is_integer:
            _write_fixed(row, operation)
        else:
            _write_float(row)


def _write_float(row: Row) -> None:
    body = row.body
    greatest = row.greatest()
    total = body.scalar("total", F32, 0.0)
    body.note("the sum of exponentials, and its logarithm")
    with row.elements() as c:
        body.add_to(total, (), EXP(row.value(c) - greatest))
    logarithm = body.let("logarithm", LOG(load(total)))
    with row.elements() as c:
        row.store(c, row.value(c) - greatest - logarithm)


def _write_fixed(row: Row, operation: TflLogSoftmax) -> None:
    body = row.body
    table = row.template.kernel.constant("exponentials", exponential_table(operation), I32)
    greatest = body.let("most", row.greatest())
    logarithm = _logarithm(body, sum_of_exponentials(row, greatest, table))
    body.note("elements too far from the greatest are -128; the others are differences of logarithms")
    back = DOUBLE_ROUND_WIDE(logarithm - _MOST - 1, operation.back_multiplier, operation.back_shift)
    least = body.let("least", ir.maximum(back, operation.difference_min - 1))
    with row.elements() as c:
        row.store(c, I8.bounds[0])
        difference = body.let("difference", row.value(c) - greatest)
        with body.if_(difference > least):
            scaled = _scaled(difference, operation)
            # It is not positive, so rounding half away from zero is rounding half down.
            share = body.let("share", (scaled - logarithm + ((1 << OUTPUT_SHIFT - 1) - 1)) >> OUTPUT_SHIFT)
            row.store(c, ir.cast(ir.clamp(share + LOG_OUTPUT_ZERO_POINT, *I8.bounds), I8))


def _scaled(difference: ir.Expr, operation: TflLogSoftmax) -> ir.Expr:
    """A difference that is not too far down, in Q5.26."""
    if operation.left_shift > 30:  # then the greatest element alone is near
        return ir.const(0)
    return HIGH_MULTIPLY_WIDE(difference * (1 << operation.left_shift), operation.multiplier)


def _normalised(
    body: BodyBuilder, decides: ir.Expr, name: str, doubled: ir.Expr | None = None
) -> tuple[ir.Expr, ir.Expr]:
    """How often a positive number is doubled to come to [2^30, 2^31), and another number, or it, as often doubled."""
    own = body.scalar(name, I64, decides)
    count = body.scalar("doublings", I64, 0)
    result = own if doubled is None else body.scalar(f"{name}_doubled", I64, doubled)
    with body.for_("bit", 0, MAX_HEADROOM), body.if_(load(own) < 2**30):
        for number in dict.fromkeys((own, result)):
            body.store(number, (), load(number) * 2)
        body.add_to(count, (), 1)
    return load(count), load(result)


def _logarithm(body: BodyBuilder, total: ir.Expr) -> ir.Expr:
    """The logarithm of a sum with 12 integer bits in Q5.26, I32: `log_of_one_and_more`, step by step, in 64 bits."""
    wide = body.let("sum", ir.cast(total, I64))
    body.note("two ways to split off a power of two; the rest is the less")
    headroom, normalised = _normalised(body, wide, "normalised")
    root = body.let("root", MULTIPLY_Q31(wide, fixedpoint.SQRT_HALF))
    root_headroom, other = _normalised(body, root, "other", wide)
    times_root = ir.minimum(MULTIPLY_Q31(normalised, fixedpoint.SQRT_HALF) * 2, _MOST)
    rest = body.let("rest", ir.minimum(times_root, ir.minimum(other, _MOST)))
    powers = headroom * -_ONE + (11 * _ONE + _ONE // 4), root_headroom * -_ONE + (12 * _ONE - _ONE // 4)
    power = body.let("power", ir.maximum(*powers))
    body.note("the logarithm of the rest as a quotient of polynomials")
    middle = body.let("middle", (rest + fixedpoint.FOURTH_ROOT_OF_HALF + 1) >> 1)
    twice = body.let("twice", (rest - fixedpoint.FOURTH_ROOT_OF_HALF) * 2)
    square = body.let("square", MULTIPLY_Q31(twice, twice))
    cubic = MULTIPLY_Q31(MULTIPLY_Q31(twice, square), fixedpoint.LOG_NUMERATOR)
    numerator = body.let("numerator", MULTIPLY_Q31(twice, rest) + cubic)
    inner = body.let(
        "inner",
        twice + fixedpoint.LOG_DENOMINATOR_CONSTANT + MULTIPLY_Q31(square, fixedpoint.LOG_DENOMINATOR_SQUARE),
    )
    denominator = MULTIPLY_Q31(middle, inner) + MULTIPLY_Q31(twice, fixedpoint.LOG_DENOMINATOR_LINEAR)
    reciprocal = reciprocal_of_half(body, body.let("half", (denominator + _MOST + 1) >> 1))
    # Half away from zero: of what is below zero, half down.
    sign = ir.select(numerator < 0, ir.const(1, I64), ir.const(0, I64))
    scaled = body.let("scaled", (numerator + 32 - sign) >> 6)
    result = (MULTIPLY_Q31(power, fixedpoint.LOG_2) + MULTIPLY_Q31(scaled, reciprocal)) * 2
    return body.let("logarithm", ir.cast(ir.minimum(result, _MOST), I32))
