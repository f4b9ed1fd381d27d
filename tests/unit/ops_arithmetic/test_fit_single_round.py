"""A multiplier and a shift that equal scaling in double precision: compared on every accumulator of the range."""

from __future__ import annotations

import numpy as np
import pytest

from bytewright.ops.arithmetic.fit import fit_single_round
from bytewright.ops.arithmetic.rescale import real_round

OUTPUTS = [(-128, 127), (0, 255), (-100, 155), (3, 17)]


@pytest.mark.parametrize("seed", range(40))
def test_equals_real_scaling_everywhere(seed: int) -> None:
    random = np.random.default_rng(seed)
    scale = float(2.0 ** random.uniform(-14, -1.5))
    low, high = -int(random.integers(100, 1 << 20)), int(random.integers(100, 1 << 20))
    outputs = OUTPUTS[seed % len(OUTPUTS)]
    fit = fit_single_round(lambda sums: real_round(sums, scale), scale, (low, high), outputs)
    assert fit is not None
    sums = np.arange(low, high + 1, dtype=np.int64)
    found = (sums * fit.multiplier + (1 << (30 + fit.shift))) >> (31 + fit.shift)
    assert np.array_equal(np.clip(found, *outputs), np.clip(real_round(sums, scale), *outputs))


def test_halves_that_round_away_from_zero() -> None:
    # Half up would take -1/2 to 0; a multiplier that is a little more takes it to -1, and 1/2 still to 1.
    fit = fit_single_round(lambda sums: real_round(sums, 0.25), 0.25, (-400, 400), (-128, 127))
    assert fit is not None
    sums = np.arange(-400, 401)
    found = (sums * fit.multiplier + (1 << (30 + fit.shift))) >> (31 + fit.shift)
    assert np.array_equal(found, real_round(sums, 0.25))


def test_there_is_none_for_scales_that_are_not_small() -> None:
    assert fit_single_round(lambda sums: real_round(sums, 0.75), 0.75, (-400, 400), (-128, 127)) is None


def test_a_constant() -> None:
    fit = fit_single_round(lambda sums: real_round(sums, 1e-3), 1e-3, (-9, 9), (-128, 127))
    assert fit is not None
    assert fit.multiplier == 0
    assert fit_single_round(lambda sums: real_round(sums, 1e-3) + 5, 1e-3, (-9, 9), (-128, 127)) is None
