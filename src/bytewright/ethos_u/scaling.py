"""The NPU's rounding: a product of a sum and a multiplier, divided by a power of two in one of two ways.

Numbers are int64, and a product that it would not hold is refused.
"""

import numpy as np
import numpy.typing as npt

from bytewright.ethos_u.faults import unsupported
from bytewright.ethos_u.operations import Rounding

Integers = npt.NDArray[np.int64]
_LIMIT = 1 << 62


def scaled(
    values: Integers, multiplier: Integers | int, shift: Integers | int, rounding: Rounding
) -> Integers:
    """Scales: values * multiplier / 2^shift, rounded; both are one number, or one for each of the last axis."""
    factor, places = np.asarray(multiplier, np.int64), np.asarray(shift, np.int64)
    greatest = int(np.abs(values).max(initial=0)) * int(np.abs(factor).max(initial=0))
    if greatest >= _LIMIT:
        raise unsupported(f"a product of {greatest} is beyond 62 bits")
    product = values * factor
    half = np.where(places > 0, np.left_shift(np.int64(1), np.maximum(places - 1, 0)), 0)
    if rounding is Rounding.DOUBLE:
        # Of more than 31 places, the first 31 are rounded by themselves, half up, and the rest half away from zero.
        half = half + np.where(places > 31, np.where(values * np.sign(factor) >= 0, 1 << 30, -(1 << 30)), 0)
    return (product + half) >> places


def shifted_right(values: Integers, places: Integers, rounding: Rounding) -> Integers:
    """Divides: values / 2^places, places from 0 to 31."""
    half = np.where(places > 0, np.left_shift(np.int64(1), np.maximum(places - 1, 0)), 0)
    if rounding is Rounding.NATURAL:
        return (values + half) >> places
    return (values + half - ((values < 0) & (places > 0))) >> places
