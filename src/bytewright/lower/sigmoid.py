"""The logistic function in float32, by an exponential that never overflows."""

from bytewright import ir
from bytewright.ir.builder import BodyBuilder
from bytewright.ir.scalar_functions import EXP


def sigmoid(body: BodyBuilder, value: ir.Expr) -> tuple[ir.Expr, ir.Expr]:
    """1 / (1 + exp(-x)) of a value, and exp(-|x|), which is beside it."""
    one = ir.const(1.0, ir.DType.F32)
    decay = body.let("decay", EXP(ir.select(value < 0.0, value, 0.0 - value)))
    return ir.select(value < 0.0, decay, one) / (decay + 1.0), decay
