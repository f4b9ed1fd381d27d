"""Scales of float32 whose quotient is given as a multiplier and a shift, as fixed-point test data state it.

Both libraries make a multiplier of 31 bits and a shift of `a * b / c` in float64, where a is an input's scale, b a
weight's and c a result's. Few such multipliers are a float32 themselves, so the three are searched for.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
_ONE, _DOUBLE = 1 << 23, 1 << 24
_CHUNK = 1 << 18


def quantized_multiplier(values: Array) -> tuple[Array, Array]:
    """Multipliers of 31 bits and shifts of real numbers, as `QuantizeMultiplier` rounds them."""
    fractions, shifts = np.frexp(values)
    whole = np.floor(np.abs(fractions) * 2.0**31 + 0.5)
    is_over = whole == 2.0**31
    return np.where(is_over, 2.0**30, whole).astype(np.int64), shifts + is_over


def exact_scales(
    multipliers: Sequence[int], shifts: Sequence[int]
) -> tuple[float, list[float], float] | None:
    """An input's scale, one for each channel, and a result's; None if no float32 numbers give these multipliers."""
    goals, exponents = np.array(multipliers, np.float64), np.array(shifts)
    for first in range(_ONE, _DOUBLE, _CHUNK):
        mantissas = np.arange(first, first + _CHUNK, dtype=np.float64)
        low, high = (goals[0] - 0.5) / mantissas, (goals[0] + 0.5) / mantissas
        for goal in goals[1:]:
            low, high = _narrowed(goal, low, high)
            keep = low < high
            low, high = low[keep], high[keep]
            if not low.size:
                break
        for ratio in ((low + high) / 2)[:8]:
            found = _split(float(ratio), goals, exponents)
            if found is not None:
                return found
    return None


def _narrowed(goal: float, low: Array, high: Array) -> tuple[Array, Array]:
    """Which ratios of an interval each make a multiplier of a mantissa of 24 bits."""
    middle = (low + high) / 2
    mantissas = np.rint(goal / middle)
    # A ratio is one up to a power of two.
    steps = np.where(mantissas >= _DOUBLE, 2.0, np.where(mantissas < _ONE, 0.5, 1.0))
    mantissas = np.rint(goal / middle / steps) * steps
    return np.maximum(low, (goal - 0.5) / mantissas), np.minimum(high, (goal + 0.5) / mantissas)


def _split(ratio: float, goals: Array, exponents: Array) -> tuple[float, list[float], float] | None:
    """Numbers whose quotient is so near to a ratio that all multipliers are exact."""
    random = np.random.default_rng(1)
    results = random.integers(_ONE, _DOUBLE, 1 << 15).astype(np.float32) / np.float32(_ONE)
    inputs = (ratio * results.astype(np.float64)).astype(np.float32)
    weights = (goals / ratio).astype(np.float32)
    scaled = np.ldexp(weights.astype(np.float64), exponents - 31).astype(np.float32)
    is_exact = np.ones(results.shape, bool)
    for weight, goal, exponent in zip(scaled, goals, exponents, strict=True):
        product = inputs.astype(np.float64) * np.float64(weight) / results.astype(np.float64)
        multiplier, shift = quantized_multiplier(product)
        is_exact &= (multiplier == goal) & (shift == exponent)
    if not is_exact.any():
        return None
    index = int(np.argmax(is_exact))
    power = 2.0 ** np.floor(np.log2(float(inputs[index])))  # so that no scale is far from the others
    return float(inputs[index]) / power, [float(w) * power for w in scaled], float(results[index])


def exact_quotient(multiplier: int, shift: int) -> tuple[float, float] | None:
    """Two float32 numbers whose quotient makes a multiplier and a shift, the second from one to two; or None."""
    random = np.random.default_rng(1)
    seconds = (random.integers(_ONE, _DOUBLE, 1 << 15) / _ONE).astype(np.float32)
    firsts = (np.ldexp(float(multiplier), shift - 31) * seconds.astype(np.float64)).astype(np.float32)
    found, shifts = quantized_multiplier(firsts.astype(np.float64) / seconds.astype(np.float64))
    is_exact = (found == multiplier) & (shifts == shift)
    if not is_exact.any():
        return None
    index = int(np.argmax(is_exact))
    return float(firsts[index]), float(seconds[index])
