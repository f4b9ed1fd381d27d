"""Softmax of int16 along the last axis: exponentials and the reciprocal of their sum by tables with lines between.

Exponentials wait in the output until their sum is known.
"""

from bytewright import ir
from bytewright.ir.builder import load
from bytewright.lower.interpolate import interpolated_at
from bytewright.lower.kernels.context import Template
from bytewright.lower.kernels.softmax import Row, rows_of
from bytewright.lower.rescale import double_round, fixed_scale
from bytewright.lower.scalar import Scalar
from bytewright.ops.interpolation import TflSoftmax16

I16, I32 = ir.DType.I16, ir.DType.I32
LOW, HIGH = I16.bounds
# The greatest exponential is 2^15 - 1, so that as many doublings bring the sum to [2^30, 2^31).
MAX_DOUBLINGS = 16


def lower_softmax16(template: Template, operation: TflSoftmax16) -> None:
    """Writes the kernel of an int16 softmax. x: [..., C]; result: [..., C]."""
    with rows_of(template) as row:
        _write_row(row, operation)


def _write_row(row: Row, operation: TflSoftmax16) -> None:
    body, kernel, where = row.body, row.template.kernel, row.template.anchor.where
    exponentials = kernel.constant("exponentials", row.template.constant(1), I16)
    scale = fixed_scale(operation.multiplier, operation.exponent)
    greatest = row.greatest()
    total = body.scalar("total", I32, 0)
    body.note("exponentials of distances from it, and their sum")
    with row.elements() as c:
        difference = Scalar(row.value(c) - greatest, LOW - HIGH, 0)
        scaled = body.let("scaled", double_round(difference, scale, where).expr)
        power = body.let("power", interpolated_at(body, exponentials, ir.clamp(scaled + HIGH, LOW, HIGH)))
        row.store(c, ir.cast(power, I16))
        body.add_to(total, (), power)
    reciprocal, shift = _reciprocal(row, load(total))
    half = body.let("half", ir.const(1) << (shift - 1))
    body.note("shares of the sum")
    with row.elements() as c:
        share = (ir.cast(row.result(c), I32) * reciprocal + half) >> shift
        row.store(c, ir.cast(ir.clamp(share, 0, HIGH), I16))


def _reciprocal(row: Row, total: ir.Expr) -> tuple[ir.Expr, ir.Expr]:
    """1 / total in 15 bits, and the shift that takes the product with an exponential to 1/32768ths."""
    body = row.body
    reciprocals = row.template.kernel.constant("reciprocals", row.template.constant(2), I16)
    normalised = body.scalar("normalised", I32, total)
    shift = body.scalar("shift", I32, 30)
    body.note("normalise the sum to [2^30, 2^31)")
    with body.for_("bit", 0, MAX_DOUBLINGS), body.if_(load(normalised) < 2**30):
        body.store(normalised, (), load(normalised) * 2)
        body.add_to(shift, (), -1)
    # From [2^16, 2^17], half up without leaving 32 bits, to what the table is of.
    behind = (((load(normalised) >> 13) + 1) >> 1) - ((1 << 15) + (1 << 16))
    value = interpolated_at(body, reciprocals, ir.clamp(behind, LOW, HIGH))
    return body.let("reciprocal", value), body.let("bits", load(shift))
