"""DIV int8: one integer algorithm for both numerics sets.

The references shift by more than 31 bits where the quotient is small, which C leaves undefined, and both then give
anything; here such a quotient is zero, to which it rounds. A divisor of zero ends LiteRT's run, and gives anything in
TensorFlow Lite Micro; here it is taken for one step.
"""

import numpy as np
from numpy.typing import NDArray

from bytewright.ops.arithmetic import multiplier
from bytewright.ops.arithmetic.fixedpoint import num_leading_zeros, one_over_one_plus
from bytewright.ops.arithmetic.rescale import Int64, high_multiply, rounding_shift_right

LARGEST_SHIFT = 31
_MOST_EXPONENT = 23
"""Beyond it the last shift would be to the left: a numerator has 23 leading sign bits at least."""


def headrooms() -> Int64:
    """Leading sign bits of 0 to 255 in 32 bits, less the sign's."""
    return np.append(31, num_leading_zeros(np.arange(1, 256)) - 1)


def reciprocals() -> Int64:
    """1/(1 + a) in Q0.31 for divisors 0 to 255 as a power of two times 1 + a; of 0 as of 1."""
    divisors = np.maximum(np.arange(256), 1)
    normalised = divisors << num_leading_zeros(divisors)
    return one_over_one_plus(normalised - (1 << 31))


def prepare_quotient(first: float, second: float, output: float) -> multiplier.Multiplier:
    """The factor s1/(s2*s_out), in float32 with a rounding after each operation; the two numerics sets agree.

    Raises:
        UnsupportedQuantizationError: The references' last shift would be to the left, which they do not do.
    """
    real = multiplier.single_quotient(
        multiplier.single(first),
        multiplier.single_product(multiplier.single(second), multiplier.single(output)),
    )
    factor = multiplier.quantize_multiplier(real)
    if factor.exponent > _MOST_EXPONENT:
        raise multiplier.UnsupportedQuantizationError(
            "DIV: the output's scale is too small for those of the operands"
        )
    return factor


def quotient(first: NDArray[np.integer], second: NDArray[np.integer], factor: multiplier.Multiplier) -> Int64:
    """Of operands without zero points, before the output's zero point."""
    numerator = np.where(second < 0, -first.astype(np.int64), first.astype(np.int64))
    divisor = np.maximum(np.abs(second.astype(np.int64)), 1)
    own = headrooms()
    headroom = own[np.where(numerator < 0, -1 - numerator, numerator)]
    unscaled = high_multiply(numerator << headroom, reciprocals()[divisor])
    shift = 30 - own[divisor] + headroom - factor.exponent
    scaled = rounding_shift_right(
        high_multiply(unscaled, factor.multiplier), np.minimum(shift, LARGEST_SHIFT)
    )
    return np.where(shift > LARGEST_SHIFT, 0, scaled)
