"""gemmlowp's logistic and tanh in 16 bits, as the gates of quantised LSTMs have them.

The operations are those of `fixedpoint.py`, on numbers of half the width: each constant is the 32-bit one, rounded.
"""

from bytewright.ops.arithmetic import fixedpoint
from bytewright.ops.arithmetic.fixedpoint import Width
from bytewright.ops.arithmetic.rescale import Int64

GATE_BITS = 3
"""Integer bits of what a gate is before its activation: Q3.12."""


def _multiply(left: Int64, right: Int64 | int) -> Int64:
    """The product of two numbers in Q0.15, rounded half up; never of two that are -1."""
    return (left * right + (1 << 14)) >> 15


_NARROW = Width(15, _multiply)
HIGH = _NARROW.greatest
LOW = -HIGH - 1
narrow, saturate = _NARROW.constant, _NARROW.saturate


def logistic(values: Int64) -> Int64:
    """The logistic function, Q3.12 to Q0.15."""
    return fixedpoint.logistic(values, GATE_BITS, _NARROW)


def tanh(values: Int64, integer_bits: int) -> Int64:
    """The hyperbolic tangent, Q(integer_bits).(15-integer_bits) to Q0.15."""
    return fixedpoint.tanh(values, integer_bits, _NARROW)
