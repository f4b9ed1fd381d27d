"""Rescales in float32: equal to the operator's own definition on every accumulator of a range, or refused."""

from __future__ import annotations

import numpy as np
import pytest

from bytewright import ir
from bytewright.ops.arithmetic.fit_float import FloatRescale, fit_float, fit_float_sum
from bytewright.ops.arithmetic.numerics import Rounding
from bytewright.ops.rescale import Rescale, TflRealRescale

RANGE = 60_000


def computed(fit: FloatRescale, accumulators: np.ndarray) -> np.ndarray:
    """What hardware computes: the product in double is exact, and their sum is rounded once to float32."""
    wide = accumulators.astype(np.float32).astype(np.float64)
    offset = fit.offset if fit.below is None else np.where(accumulators < 0, fit.below, fit.offset)
    scaled = (wide * fit.scale.astype(np.float64) + offset.astype(np.float64)).astype(np.float32)
    return np.clip(np.rint(scaled), -128, 127).astype(np.int8)


@pytest.mark.parametrize("zero_point", [-128, -7, 4, 127])
@pytest.mark.parametrize("exponent", [1, 0, -6, -8, -9])
def test_double_round_on_every_accumulator(zero_point: int, exponent: int) -> None:
    random = np.random.default_rng(zero_point * 100 + exponent + 100_000)
    multiplier = random.integers(2**30, 2**31, 6, dtype=np.int64).astype(np.int32)
    shift = np.full(6, exponent, np.int8)
    operation = Rescale(Rounding.DOUBLE_ROUND, 0, zero_point, 0, ir.DType.I8)
    low, high = np.full(6, -RANGE), random.integers(-10, RANGE, 6)

    def staircases(accumulators: np.ndarray) -> np.ndarray:
        return operation.evaluate((accumulators.astype(np.int32), multiplier, shift))[0]

    fit = fit_float(staircases, low, high, multiplier * 2.0 ** (exponent - 31))
    assert fit is not None
    every = np.minimum(np.arange(-RANGE, RANGE + 1)[:, None], high)
    assert np.array_equal(computed(fit, every), staircases(every))


def test_real_round_and_constant_channels() -> None:
    scale = np.array([0.0037, 1 / 512, 0.0])
    operation = TflRealRescale(11, ir.DType.I8)
    low, high = np.array([-RANGE, 2**30, -5]), np.array([RANGE, 2**30, 5])

    def staircases(accumulators: np.ndarray) -> np.ndarray:
        return operation.evaluate((accumulators.astype(np.int32), scale))[0]

    fit = fit_float(staircases, low, high, scale)
    assert fit is not None
    every = np.clip(np.arange(-RANGE, RANGE + 1)[:, None], low, high)
    assert np.array_equal(computed(fit, every), staircases(every))


def test_scales_too_small_to_be_exact_are_refused() -> None:
    def staircases(accumulators: np.ndarray) -> np.ndarray:
        return np.clip(accumulators >> 24, -128, 127).astype(np.int8)

    assert fit_float(staircases, np.array([-(2**31)]), np.array([2**31 - 1]), np.array([2.0**-24])) is None


def test_sums_of_bytes() -> None:
    every = np.arange(-128, 128)
    exact = np.rint(every[:, None] * 0.7310585786 + every[None, :] * 0.2890573291 + 5.1371)
    sums = np.clip(exact, -128, 127).astype(np.int8)
    fit = fit_float_sum(sums, (0.7310585786, 0.2890573291, 5.1371))
    assert fit is not None
    wide = every.astype(np.float64)
    shifted = (wide * float(fit.right_scale) + float(fit.offset)).astype(np.float32).astype(np.float64)
    found = np.rint((wide[:, None] * float(fit.left_scale) + shifted).astype(np.float32))
    assert np.array_equal(np.clip(found, -128, 127), sums)


def test_sums_that_are_no_plane_are_refused() -> None:
    every = np.arange(-128, 128)
    odd = np.where((every[:, None] + every[None, :]) % 2 == 0, 3, -3).astype(np.int8)
    assert fit_float_sum(odd, (0.0, 0.0, 0.0)) is None


@pytest.mark.parametrize("about", [(0.5, 0.25, 0.0012345), (0.5, -0.25, 300.0012345)])
def test_offsets_of_sums_are_exact_in_double(about: tuple[float, float, float]) -> None:
    every = np.arange(-128, 128)
    exact = np.rint(every[:, None] * about[0] + every[None, :] * about[1] + about[2])
    fit = fit_float_sum(np.clip(exact, -128, 127).astype(np.int8), about)
    assert fit is not None
    assert (float(fit.offset) * 2.0**30).is_integer()


@pytest.mark.parametrize("about", [(2.0**-21, 0.5, 0.25), (0.5, -(2.0**-21), 0.25), (0.5, 0.5, 2.0**10)])
def test_sums_that_double_does_not_hold_are_refused(about: tuple[float, float, float]) -> None:
    every = np.arange(-128, 128)
    exact = np.rint(every[:, None] * about[0] + every[None, :] * about[1] + about[2])
    assert fit_float_sum(np.clip(exact, -128, 127).astype(np.int8), about) is None
