"""One multiplication and one addition in float32 that equal a rescale on every accumulator of a range.

A rescale to 8 bits is a staircase with at most 255 steps, and so is `rint(fma(float(accumulator), scale, offset))`:
conversion, multiply-add and rounding never fall. Two staircases that rise at the same accumulators are equal
everywhere, so the steps alone are compared: for each level the first accumulator that reaches it, and the one before.

The multiply-add is computed here in double, where it is exact: the product of two numbers of 24 bits has 48, and the
offset is a multiple of 2**-30. So one rounding to float32 gives what hardware gives.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bytewright.ops.arithmetic.rescale import Int64

Float32 = NDArray[np.float32]
# Accumulators [levels, channels] -> outputs with zero point, saturated to 8 bits.
Staircases = Callable[[Int64], NDArray[np.generic]]

_LEVELS = np.arange(-127, 128, dtype=np.int64)[:, None]
_LEAST_SCALE, _MOST_SCALE = 2.0**-20, 2.0**8
_NEIGHBOURS = (0, 1, -1, 2, -2, 3, -3, 4, -4, 6, -6, 8, -8, 12, -12)
_FRACTIONS = (0.5, 0.35, 0.65, 0.2, 0.8, 0.05, 0.95)
_GUESS = 8
# Tried before the others: where one line does not do for a channel, it does for hardly any.
_FIRST_CHANNELS = 4


_MOST_TRIES = 200
# Beside it all digits of a product by the least scale fit a double.
_MOST_SUM_OFFSET = 2.0**9
_BYTES = np.arange(-128, 128, dtype=np.float64)


@dataclass(frozen=True, slots=True)
class FloatRescale:
    """`rint(fma(float(accumulator), scale, offset))`, by channel; the zero point is in the offset.

    Attributes:
        below: The offsets of accumulators below zero, where they differ.
    """

    scale: Float32
    offset: Float32
    below: Float32 | None = None


@dataclass(frozen=True, slots=True)
class FloatSum:
    """`rint(fma(float(left), left_scale, fma(float(right), right_scale, offset)))`."""

    left_scale: np.float32
    right_scale: np.float32
    offset: np.float32


def fit_float(
    staircases: Staircases, low: Int64, high: Int64, ratio: NDArray[np.float64]
) -> FloatRescale | None:
    """A FloatRescale equal to the staircases on all accumulators, after saturation to 8 bits; None if none was found.

    Args:
        staircases: The rescale; it never falls.
        low: The least accumulator of each channel.
        high: The greatest one.
        ratio: What each channel is scaled by, about.
    """
    first = staircases(low[None])[0]
    is_constant = first == staircases(high[None])[0]
    scale = np.where(is_constant, 0.0, ratio).astype(np.float32)
    if np.any(~is_constant & ((scale < _LEAST_SCALE) | (scale > _MOST_SCALE))):
        return None
    constant = np.where(is_constant, first, 0).astype(np.float32)
    whole = _fit_ranges(staircases, [(low, high)], ratio, scale, constant)
    if whole is not None:
        return FloatRescale(*whole)
    # DOUBLE_ROUND rounds ties away from zero: of most ratios its steps are no line through zero, but two halves are.
    above = (np.where(high < 0, low, np.maximum(low, 0)), high)
    below = (low, np.where(low >= 0, high, np.minimum(high, -1)))
    halves = _fit_ranges(staircases, [above, below], ratio, scale, constant)
    return None if halves is None else FloatRescale(*halves)


def fit_float_sum(sums: NDArray[np.int8], about: tuple[float, float, float]) -> FloatSum | None:
    """A FloatSum equal to `sums[left + 128, right + 128]` for all pairs; None if none was found.

    Args:
        sums: i8[256, 256], saturated.
        about: What its numbers are, about: scales and offset.
    """
    wanted = sums.astype(np.float64)
    random = np.random.default_rng(1)
    for attempt in range(_MOST_TRIES):
        moved = random.integers(-4, 5, 2) * 2.0**-24 if attempt else np.zeros(2)
        left, right = (np.array(about[:2]) * (1 + moved)).astype(np.float32)
        if not all(_LEAST_SCALE <= abs(scale) <= _MOST_SCALE for scale in (left, right)):
            return None
        offset = np.float32(
            np.rint((about[2] + (random.normal() * 2.0**-16 if attempt else 0)) * 2.0**30) / 2.0**30
        )
        if abs(offset) > _MOST_SUM_OFFSET:
            return None
        shifted = (_BYTES * np.float64(right) + np.float64(offset)).astype(np.float32).astype(np.float64)
        found = np.rint((_BYTES[:, None] * np.float64(left) + shifted).astype(np.float32))
        if np.array_equal(np.clip(found, -128, 127), wanted):
            return FloatSum(left, right, offset)
    return None


def _fit_ranges(
    staircases: Staircases,
    ranges: list[tuple[Int64, Int64]],
    ratio: NDArray[np.float64],
    scale: Float32,
    constant: Float32,
) -> tuple[Float32, ...] | None:
    """Scales, and offsets for each range of accumulators; where a scale is 0, the output is constant."""
    scale, offsets = scale.copy(), [constant.copy() for _ in ranges]
    steps = [_steps(staircases, low, high, ratio) for low, high in ranges]
    channels = np.flatnonzero(scale)
    for pending in (channels[:_FIRST_CHANNELS], channels[_FIRST_CHANNELS:]):
        if not _fit_channels(pending, steps, ranges, scale, offsets):
            return None
    return (scale, *offsets)


def _fit_channels(
    pending: NDArray[np.intp],
    steps: list[Int64],
    ranges: list[tuple[Int64, Int64]],
    scale: Float32,
    offsets: list[Float32],
) -> bool:
    """Finds the scales and offsets of some channels, in place; False if one has none."""
    for neighbour in _NEIGHBOURS:
        if not pending.size:
            break
        tried = (scale[pending].view(np.int32) + np.int32(neighbour)).view(np.float32)
        found = [
            _offsets(own[:, pending], low[pending], high[pending], tried)
            for own, (low, high) in zip(steps, ranges, strict=True)
        ]
        is_found = ~np.isnan(np.stack(found)).any(axis=0)
        chosen = pending[is_found]
        scale[chosen] = tried[is_found]
        for offset, own in zip(offsets, found, strict=True):
            offset[chosen] = own[is_found]
        pending = pending[~is_found]
    return not pending.size


def _steps(staircases: Staircases, low: Int64, high: Int64, ratio: NDArray[np.float64]) -> Int64:
    """For each level the first accumulator of each channel's range that reaches it; one past the range if none does.

    Nearly all are where the ratio says that they are; bisection finds the others.
    """
    shape = (len(_LEVELS), len(low))
    lowest, past = np.broadcast_to(low, shape), np.broadcast_to(high + 1, shape)
    at_zero = staircases(np.clip(0, low, high)[None])[0].astype(np.int64)
    with np.errstate(divide="ignore", invalid="ignore"):
        guess = np.nan_to_num((_LEVELS - 0.5 - at_zero) / ratio, nan=0.0, posinf=0.0, neginf=0.0)
    likely = np.clip(np.ceil(np.clip(guess, -(2.0**40), 2.0**40)).astype(np.int64), lowest, past)
    is_reached = _reaches(staircases, _LEVELS, likely, lowest, past)
    is_before = ~_reaches(staircases, _LEVELS, likely - 1, lowest, past)
    missed = ~(is_reached & is_before)
    if not missed.any():
        return likely
    # What was missed in each channel, moved to its first rows.
    rows = np.argsort(~missed, axis=0, kind="stable")[: missed.sum(axis=0).max()]
    bounds = (lowest[: len(rows)], past[: len(rows)])
    found = _bisected(staircases, _LEVELS[:, 0][rows], np.take_along_axis(likely, rows, axis=0), *bounds)
    np.put_along_axis(likely, rows, found, axis=0)
    return likely


def _reaches(
    staircases: Staircases, levels: Int64, points: Int64, lowest: Int64, past: Int64
) -> NDArray[np.bool_]:
    """Whether a level is reached at a point; nothing is before a range, and everything past it."""
    inside = staircases(np.clip(points, lowest, past - 1)).astype(np.int64) >= levels
    return (inside | (points >= past)) & (points >= lowest)


def _bisected(
    staircases: Staircases, levels: Int64, likely: Int64, lowest: Int64, past: Int64
) -> NDArray[np.int64]:
    """The first accumulators that reach levels, from a window around where they are likely to be."""
    below, reached = np.clip(likely - _GUESS, lowest - 1, past), np.clip(likely + _GUESS, lowest - 1, past)
    below = np.where(_reaches(staircases, levels, below, lowest, past), lowest - 1, below)
    reached = np.where(_reaches(staircases, levels, reached, lowest, past), reached, past)
    while np.any(reached - below > 1):
        middle = (below + reached) >> 1
        is_reached = _reaches(staircases, levels, middle, lowest, past)
        reached = np.where(is_reached, middle, reached)
        below = np.where(is_reached, below, middle)
    return reached


def _offsets(steps: Int64, low: Int64, high: Int64, scale: Float32) -> Float32:
    """An offset for each channel with which every step is where it should be; NaN where none was found."""
    is_reached, has_before = steps <= high, steps > low
    with np.errstate(invalid="ignore"):
        at = _products(steps, scale)
        before = _products(steps - 1, scale)
        least = np.where(is_reached, _LEVELS - 0.5 - at, -np.inf).max(axis=0)
        most = np.where(has_before, _LEVELS - 0.5 - before, np.inf).min(axis=0)
    # Of one condition alone, a step's half beside it; of none, anything.
    with np.errstate(invalid="ignore"):
        least, most = (
            np.where(np.isinf(least), most - 1, least),
            np.where(np.isinf(most), least + 1, most),
        )
        width = np.nan_to_num(most - least, nan=0.0)
    least = np.nan_to_num(least, nan=0.0, posinf=0.0, neginf=0.0)
    found = np.full(len(low), np.nan, np.float32)
    pending = np.arange(len(low))
    for fraction in _FRACTIONS:
        middle = least[pending] + width[pending] * fraction
        offset = (np.rint(middle * 2.0**30) / 2.0**30).astype(np.float32)
        rounds_up = np.rint((at[:, pending] + offset).astype(np.float32)) >= _LEVELS
        stays_below = np.rint((before[:, pending] + offset).astype(np.float32)) < _LEVELS
        is_equal = (rounds_up | ~is_reached[:, pending]).all(axis=0)
        is_equal &= (stays_below | ~has_before[:, pending]).all(axis=0) & (np.abs(offset) < 2.0**20)
        found[pending[is_equal]] = offset[is_equal]
        pending = pending[~is_equal]
        if not pending.size:
            break
    return found


def _products(accumulators: Int64, scale: Float32) -> NDArray[np.float64]:
    return accumulators.astype(np.float32).astype(np.float64) * scale.astype(np.float64)
