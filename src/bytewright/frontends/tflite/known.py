"""Values that are known at import, and how they grow with the batch.

A model with an open batch computes shapes from the shape of its input. With `--batch-max N` they differ from batch to
batch, so each number is kept as what it is for one sample and what it grows by with each sample more. Whatever is no
sum of the two is UNKNOWN, and refused where it is used: it would be right for one batch only.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Growth = NDArray[np.int64]
UNKNOWN = int(np.iinfo(np.int64).min)
"""Growth of a number that depends on the batch, but not by the same amount for each sample."""
# Beyond this, sums and products could leave 64 bits.
_FARTHEST = float(1 << 60)


@dataclass(frozen=True, slots=True)
class Known:
    """An operand that is known: `array + growth * (batch - 1)`.

    Attributes:
        array: The values for one sample.
        growth: In the same shape; 0 where a value does not depend on the batch.
    """

    array: NDArray[Any]
    growth: Growth

    @property
    def is_fixed(self) -> bool:
        """Whether it is the same for every batch."""
        return not self.growth.any()

    def at(self, batch: int) -> NDArray[Any]:
        """The values for a batch, in double precision or 64 bits; of no use where the growth is UNKNOWN."""
        grown = np.where(self.growth == UNKNOWN, 0, self.growth) * (batch - 1)
        return self.array.astype(np.float64 if self.array.dtype.kind == "f" else np.int64) + grown


def fixed(array: NDArray[Any]) -> Known:
    """Values that are the same for every batch."""
    return Known(array, no_growth(array.shape))


def no_growth(shape: tuple[int, ...]) -> Growth:
    """That of values which do not depend on the batch: one zero for all, as weights are many."""
    return np.broadcast_to(np.int64(0), shape)


def moved(move: Callable[..., NDArray[Any]], *operands: Known) -> Known:
    """What only moves elements moves their growth with them."""
    return Known(move(*(each.array for each in operands)), move(*(each.growth for each in operands)))


def _combined(exact: NDArray[Any], estimate: NDArray[Any], *operands: Growth) -> Growth:
    """`exact` where no operand's growth is UNKNOWN and the estimate in double precision fits."""
    is_unknown = np.abs(estimate) > _FARTHEST
    for growth in operands:
        is_unknown |= growth == UNKNOWN
    return np.where(is_unknown, UNKNOWN, exact)


def _any_growth(result: NDArray[Any], *operands: Known) -> Growth:
    """UNKNOWN wherever an operand depends on the batch."""
    grows = np.zeros(result.shape, bool)
    for operand in operands:
        grows |= np.broadcast_to(operand.growth != 0, result.shape)
    return np.where(grows, UNKNOWN, np.int64(0))


def computed(function: Callable[..., NDArray[Any]], *operands: Known) -> Known:
    """Any function of elements, or of elements that broadcast."""
    result = function(*(operand.array for operand in operands))
    return Known(result, _any_growth(result, *operands))


def added(first: Known, second: Known) -> Known:
    """The sum; of integers its growth is the sum of growths."""
    return _linear(np.add, first, second)


def subtracted(first: Known, second: Known) -> Known:
    """The difference."""
    return _linear(np.subtract, first, second)


def _linear(function: np.ufunc, first: Known, second: Known) -> Known:
    result = function(first.array, second.array)
    if result.dtype.kind == "f":
        return Known(result, _any_growth(result, first, second))
    with np.errstate(all="ignore"):
        exact = function(first.growth, second.growth)
        estimate = np.asarray(function(first.growth.astype(float), second.growth.astype(float)))
    return Known(result, _combined(exact, estimate, first.growth, second.growth))


def multiplied(first: Known, second: Known) -> Known:
    """The product; where both factors depend on the batch it grows with its square, which is UNKNOWN."""
    result = first.array * second.array
    if result.dtype.kind == "f":
        return Known(result, _any_growth(result, first, second))
    with np.errstate(all="ignore"):
        a, b = first.array.astype(np.int64), second.array.astype(np.int64)
        exact = a * second.growth + b * first.growth
        estimate = np.abs(a.astype(float) * second.growth) + np.abs(b.astype(float) * first.growth)
    both = (first.growth != 0) & (second.growth != 0)
    return Known(
        result, np.where(both, UNKNOWN, _combined(exact, estimate, *_aligned(first.growth, second.growth)))
    )


def _aligned(*arrays: NDArray[Any]) -> list[NDArray[Any]]:
    return list(np.broadcast_arrays(*arrays))


def divided(divide: Callable[..., NDArray[Any]], first: Known, second: Known) -> Known:
    """A quotient; of what grows by a multiple of the divisor, and stays on one side of zero, it grows evenly."""
    result = divide(first.array, second.array)
    if result.dtype.kind == "f":
        return Known(result, _any_growth(result, first, second))
    array, growth, divisor, change = _aligned(first.array, first.growth, second.array, second.growth)
    wide = divisor.astype(np.int64)
    is_even = (array >= 0) & (growth >= 0) & (wide > 0) & (change == 0)
    is_even &= growth % np.where(wide == 0, 1, wide) == 0
    even = np.where(is_even, growth // np.where(wide == 0, 1, wide), UNKNOWN)
    return Known(result, np.where((growth == 0) & (change == 0), np.int64(0), even))


def remainder(modulo: Callable[..., NDArray[Any]], first: Known, second: Known) -> Known:
    """A remainder; of what grows by a multiple of the divisor, it does not depend on the batch."""
    result = modulo(first.array, second.array)
    quotient = divided(np.floor_divide, first, second)
    is_fixed = (quotient.growth != UNKNOWN) & (np.broadcast_to(second.growth, result.shape) == 0)
    return Known(result, np.where(is_fixed, np.int64(0), _any_growth(result, first, second)))


def compared(function: Callable[..., NDArray[Any]], first: Known, second: Known, batch_max: int) -> Known:
    """A comparison; what has one answer for the least and the greatest batch has it for all between."""
    result = function(first.array, second.array)
    known = (first.growth != UNKNOWN) & (second.growth != UNKNOWN)
    ends = [np.sign(first.at(batch) - second.at(batch)) for batch in (1, batch_max)]
    return Known(
        result, np.where(known & (ends[0] == ends[1]), np.int64(0), _any_growth(result, first, second))
    )


def chosen(condition: Known, first: Known, second: Known) -> Known:
    """Of two values, the first where the condition holds; it depends on the batch as the one that is taken does."""
    result = np.where(condition.array, first.array, second.array)
    growth = np.where(condition.array, first.growth, second.growth)
    return Known(result, np.where(np.broadcast_to(condition.growth != 0, result.shape), UNKNOWN, growth))
