"""Inverse square roots in gemmlowp's fixed point, in 64 bits: of elements, and of rows for their Euclidean norms."""

from bytewright import ir
from bytewright.ir.builder import BodyBuilder, load
from bytewright.ir.scalar_functions import DOUBLE_ROUND_WIDE, HIGH_MULTIPLY_WIDE, MULTIPLY_Q31
from bytewright.lower.kernels.context import Template, elements
from bytewright.lower.kernels.softmax import Row, rows_of
from bytewright.lower.rescale import double_round, fixed_scale
from bytewright.lower.scalar import Scalar, clamped, element
from bytewright.ops.arithmetic.fixedpoint import ROOT_BITS, SQRT_HALF
from bytewright.ops.roots import FRACTIONAL_BITS, TflInverseRoot, TflL2Normalization

I8, I32, I64 = ir.DType.I8, ir.DType.I32, ir.DType.I64
# Pairs of bits that a sum of squares, 2 or more, is shifted by at most to come to [2^27, 2^29).
MOST_PAIRS = 13
# What the root of one that is not shifted is shifted by, to the right.
_UNSHIFTED = 11


def lower_l2_normalization(template: Template, operation: TflL2Normalization) -> None:
    """Writes the kernel. x: [..., C]; result: [..., C]."""
    with rows_of(template) as row:
        total = _sum_of_squares(row, operation.input_zero_point)
        multiplier, shift = _inverse_root(row.body, total)
        row.body.note("each element as a share of the norm")
        power, right = ir.const(1 << FRACTIONAL_BITS), shift
        if not operation.unsigned:
            power = row.body.let("power", ir.const(1) << ir.maximum(FRACTIONAL_BITS - shift, 0))
            right = row.body.let("right", ir.maximum(shift - FRACTIONAL_BITS, 0))
        with row.elements() as c:
            value = (row.value(c) - operation.input_zero_point) * power
            share = DOUBLE_ROUND_WIDE(value, multiplier, right)
            row.store(c, ir.cast(ir.clamp(share, *I8.bounds), I8))


def lower_inverse_root(template: Template, operation: TflInverseRoot) -> None:
    """Writes the kernel of an inverse root of each element."""
    source, body = template.input(0), template.body
    factor = fixed_scale(operation.multiplier, operation.exponent)
    low, high = ir.DType.I16.bounds
    with elements(template.kernel, template.result_type.shape) as coordinates:
        value = body.let("value", element(load(source, *coordinates)).expr)
        multiplier, places = _inverse_root(body, body.let("positive", ir.maximum(value, 1)))
        root = HIGH_MULTIPLY_WIDE(ir.const(1) << (ROOT_BITS - places), multiplier)
        root = body.let("root_of_value", root)
        scaled = clamped(
            double_round(Scalar(root, 0, 1 << ROOT_BITS), factor, template.anchor.where), low, high
        )
        template.epilogue.store(
            coordinates, Scalar(ir.select(value > 0, scaled.expr, ir.const(high)), low, high)
        )


def _sum_of_squares(row: Row, zero_point: int) -> ir.Expr:
    total = row.body.scalar("total", I32, 0)
    row.body.note("the sum of squares")
    with row.elements() as c:
        value = row.body.let("value", row.value(c) - zero_point)
        row.body.add_to(total, (), value * value)
    return row.body.let("sum", load(total))


def _inverse_root(body: BodyBuilder, total: ir.Expr) -> tuple[ir.Expr, ir.Expr]:
    """1/sqrt(total) times 2^(31 + shift), and the shift, which is not negative: `inverse_square_root`, step by step."""
    is_large = total >= 2**29
    scaled = body.scalar("scaled", I32, ir.select(is_large, total >> 2, total))
    shift = body.scalar("shift", I32, ir.select(is_large, ir.const(_UNSHIFTED + 1), ir.const(_UNSHIFTED)))
    body.note("shift the sum by pairs of bits to [2^27, 2^29)")
    with body.for_("pair", 0, MOST_PAIRS), body.if_(load(scaled) < 2**27):
        body.store(scaled, (), load(scaled) * 4)
        body.add_to(shift, (), -1)
    half = body.let("half", ir.cast(((load(scaled) >> 1) + 1) >> 1, I64))
    root = body.scalar("root", I64, 2**28)
    body.note("the inverse of its root, by Newton's method")
    with body.for_("step", 0, 5):
        square = MULTIPLY_Q31(load(root), load(root))
        cube = body.let("cube", _saturated(MULTIPLY_Q31(square, load(root)) * 2**6))
        nearer = MULTIPLY_Q31(ir.const(3 << 27, I64), load(root)) - MULTIPLY_Q31(half, cube)
        body.store(root, (), _saturated(nearer * 2**3))
    found = body.let("found", MULTIPLY_Q31(load(root), ir.const(SQRT_HALF, I64)))
    left = body.let("beyond", ir.cast(ir.maximum(0 - load(shift), 0), I64))
    # Of 0 and 1 the inverse is 1.
    is_small = total <= 1
    multiplier = ir.select(is_small, ir.const(I32.bounds[1]), ir.cast(found << left, I32))
    return body.let("multiplier", multiplier), body.let(
        "places", ir.select(is_small, ir.const(0), ir.maximum(load(shift), 0))
    )


def _saturated(value: ir.Expr) -> ir.Expr:
    return ir.clamp(value, *I32.bounds)
