"""One multiplication, one addition and one shift that equal another rescale on every accumulator of a range.

REAL_ROUND is defined in double precision, which a small target does slowly or not at all. On the accumulators
that a layer can produce it is a staircase with at most 255 steps, and so is
`(accumulator*multiplier + addend) >> shift`. Two staircases that rise at the same accumulators are equal
everywhere, so comparing the steps proves equality for the whole range, without trying its values.

For each output k the step is the smallest accumulator t with output >= k. The line has to satisfy
`multiplier*t + addend >= k*2**shift` and `multiplier*(t - 1) + addend < k*2**shift`: linear inequalities in two
unknowns, whose slopes are bounded by each pair of one lower and one upper condition.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from bytewright.ops.arithmetic.rescale import Int64

Staircase = Callable[[Int64], Int64]

_MAXIMUM_SHIFT = 62


@dataclass(frozen=True, slots=True)
class LinearRescale:
    """`(accumulator*multiplier + addend) >> shift`, in 64 bits.

    Attributes:
        multiplier: At least 0.
        shift: 0 to 62.
    """

    multiplier: int
    addend: int
    shift: int


@dataclass(frozen=True, slots=True)
class SingleRescale:
    """`(accumulator*multiplier + 2**(30 + shift)) >> (31 + shift)`, with multiplier < 2**31 and 1 <= shift <= 31."""

    multiplier: int
    shift: int


@dataclass(frozen=True, slots=True)
class _Conditions:
    """Rows of points and values: the line is at least the values of `low` at its points, and below those of `high`."""

    low: Int64
    high: Int64


def fit_linear(
    staircase: Staircase, accumulators: tuple[int, int], outputs: tuple[int, int]
) -> LinearRescale | None:
    """A LinearRescale equal to `staircase` on all `accumulators`, after both are clamped to `outputs`.

    `staircase` maps arrays of accumulators to outputs, never falls, and is evaluated at the steps alone; ranges
    are inclusive, outputs are before the zero point. The multiplier is below 2**31 where such a line exists.
    None where no line that fits 64-bit arithmetic equals the staircase.
    """
    conditions = _conditions(staircase, accumulators, outputs)
    if isinstance(conditions, int):
        return LinearRescale(0, conditions, 0)
    slope = _slope(conditions)
    if slope is None:
        return None
    bound = max(abs(accumulators[0]), abs(accumulators[1]), 1)
    shift = max(0, min(_MAXIMUM_SHIFT, 31 - math.frexp(slope)[1]))
    if shift > 0 and round(slope * 2.0**shift) >= 1 << 31:
        shift -= 1
    while shift <= _MAXIMUM_SHIFT:
        multiplier = round(slope * 2.0**shift)
        if multiplier * bound >= 1 << 62:
            return None
        addend = _addend(conditions, multiplier, shift)
        if addend is not None and abs(addend) < 1 << 62:
            return LinearRescale(multiplier, addend, shift)
        shift += 1
    return None


def fit_single_round(
    staircase: Staircase, scale: float, accumulators: tuple[int, int], outputs: tuple[int, int]
) -> SingleRescale | None:
    """A SingleRescale equal to `staircase` on all `accumulators`, after both are clamped to `outputs`.

    Args:
        staircase: As for `fit_linear`; about `accumulator * scale`.
        scale: The slope.
        accumulators: Least and greatest.
        outputs: Likewise, before the zero point.
    """
    conditions = _conditions(staircase, accumulators, outputs)
    if isinstance(conditions, int):
        return SingleRescale(0, 1) if conditions == 0 else None
    shift = -math.frexp(scale)[1]
    if not 1 <= shift <= 31:
        return None
    total, half = 31 + shift, 1 << (30 + shift)
    least, most = 0, (1 << 31) - 1
    # multiplier * point >= (value << total) - half for the conditions of `low`, and less for those of `high`
    for points, is_low in ((conditions.low, True), (conditions.high, False)):
        for point, value in points.T.tolist():
            bound = (value << total) - half
            if point == 0:
                if (bound > 0) == is_low:
                    return None
            elif is_low == (point > 0):
                least = max(least, -(-bound // point) if is_low else bound // point + 1)
            else:
                most = min(most, bound // point if is_low else -(-bound // point) - 1)
    if least > most:
        return None
    return SingleRescale(min(max(round(math.ldexp(scale, total)), least), most), shift)


def _conditions(
    staircase: Staircase, accumulators: tuple[int, int], outputs: tuple[int, int]
) -> _Conditions | int:
    """The inequalities for the steps and for both ends, or the output itself where it is constant."""
    ends = np.clip(staircase(np.array(accumulators, np.int64)), *outputs)
    first, last = int(ends[0]), int(ends[1])
    if first == last:
        return first
    levels = np.arange(first + 1, last + 1, dtype=np.int64)
    steps = _steps(staircase, accumulators, levels)
    low, high = np.stack((steps, levels)), np.stack((steps - 1, levels))
    if first > outputs[0]:
        low = np.append(low, [[accumulators[0]], [first]], axis=1)
    if last < outputs[1]:
        high = np.append(high, [[accumulators[1]], [last + 1]], axis=1)
    return _Conditions(low, high)


def _steps(staircase: Staircase, accumulators: tuple[int, int], levels: Int64) -> Int64:
    """For each level the smallest accumulator that reaches it, by bisection of all levels at once."""
    below = np.full(levels.shape, accumulators[0], np.int64)
    reached = np.full(levels.shape, accumulators[1], np.int64)
    while np.any(reached - below > 1):
        middle = (below + reached) >> 1
        is_reached = staircase(middle) >= levels
        reached = np.where(is_reached, middle, reached)
        below = np.where(is_reached, below, middle)
    return reached


def _slope(conditions: _Conditions) -> float | None:
    """The middle of the slopes that meet every pair of conditions; None if there are none."""
    distance, rise = conditions.low[:, :, None] - conditions.high[:, None, :]
    ahead, behind = distance > 0, distance < 0
    lower = max(0.0, float(np.max(rise[ahead] / distance[ahead], initial=0.0)))
    if not np.any(behind):
        return max(2 * lower, 1.0)
    upper = float(np.min(rise[behind] / distance[behind]))
    return (lower + upper) / 2 if lower <= upper else None


def _addend(conditions: _Conditions, multiplier: int, shift: int) -> int | None:
    """An addend that meets all conditions for this multiplier, checked in exact integers."""
    lowest = max((value << shift) - multiplier * point for point, value in conditions.low.T.tolist())
    highest = min((value << shift) - multiplier * point for point, value in conditions.high.T.tolist()) - 1
    return (lowest + highest) // 2 if lowest <= highest else None
