"""The logistic function in float32, by an exponential that never overflows."""

from bytewright import ir
from bytewright.ir.builder import BodyBuilder
from bytewright.ir.scalar_functions import EXP

_ONE = ir.const(1.0, ir.DType.F32)
_IS_EXPONENTIAL_BELOW = -9.0


def sigmoid(body: BodyBuilder, value: ir.Expr) -> ir.Expr:
    """1 / (1 + exp(-x)) of a value."""
    decay = _decay(body, value)
    return ir.select(value < 0.0, decay, _ONE) / (decay + 1.0)


def logistic(body: BodyBuilder, value: ir.Expr) -> ir.Expr:
    """The same, and below -9 exp(x) itself, as in LiteRT; what is above zero is not compared with that."""
    decay = _decay(body, value)
    below = ir.select(value < _IS_EXPONENTIAL_BELOW, decay, decay / (decay + 1.0))
    return ir.select(value < 0.0, below, _ONE / (decay + 1.0))


def _decay(body: BodyBuilder, value: ir.Expr) -> ir.Expr:
    """exp(-|x|)."""
    return body.let("decay", EXP(ir.select(value < 0.0, value, 0.0 - value)))
