"""Two multiplications of 32 bits that equal scaling in double precision: compared at every step, and between them."""

from __future__ import annotations

import numpy as np
import pytest

from bytewright.ops.arithmetic.fit_symmetric import SymmetricRescale, fit_symmetric

LIMIT = 2**15


def rounded(magnitudes: np.ndarray, scale: float) -> np.ndarray:
    """As C does: a product in double precision, then `round`, half away from zero."""
    product = magnitudes.astype(np.float64) * scale
    whole = np.floor(product)
    return (whole + (product - whole >= 0.5)).astype(np.int64)


def assert_equal(fit: SymmetricRescale, scale: float, most: int, seed: int) -> None:
    halves = np.ceil((np.arange(1, LIMIT + 2) - 0.5) / scale).astype(np.int64)
    near = np.concatenate(
        [halves - 1, halves, halves + 1, np.random.default_rng(seed).integers(0, most, 5000)]
    )
    magnitudes = np.append(np.unique(np.clip(near, 0, most)), most)
    found, wanted = fit.scaled(magnitudes), rounded(magnitudes, scale)
    assert np.array_equal(np.minimum(found, LIMIT), np.minimum(wanted, LIMIT)), (scale, most)
    assert found.max() < 2**31


@pytest.mark.parametrize("seed", range(30))
def test_equals_scaling_in_double_precision(seed: int) -> None:
    random = np.random.default_rng(seed)
    scale, most = float(2.0 ** random.uniform(-20, -1.01)), int(2 ** random.uniform(10, 31)) - 1
    fit = fit_symmetric(scale, most, LIMIT)
    assert fit is not None
    assert_equal(fit, scale, most, seed)


@pytest.mark.parametrize("scale", [0.25, 3 * 2.0**-9, 2.0**-31])
def test_halves_are_exact(scale: float) -> None:
    fit = fit_symmetric(scale, 2**31 - 1, LIMIT)
    assert fit is not None
    assert fit.low == 0
    assert_equal(fit, scale, 2**31 - 1, 1)


def test_products_that_become_halves() -> None:
    """Next to 1/n for even n: a product just below a half is one in double precision."""
    scales = [1.0 / even for even in range(4, 2000, 2)]
    fits = [(scale, fit_symmetric(scale, 2**20, LIMIT)) for scale in scales]
    found = [(scale, fit) for scale, fit in fits if fit is not None]
    raised = [fit for _, fit in found if fit.addend > 1 << (31 + fit.shift)]
    assert len(found) > 900
    assert len(raised) > 10
    for seed, (scale, fit) in enumerate(found[::20]):
        assert_equal(fit, scale, 2**20, seed)


@pytest.mark.parametrize("scale", [0.5, 0.7, 3.0, 2.0**-33, 0.5 - 2.0**-40])
def test_there_is_none_for_other_scales(scale: float) -> None:
    assert fit_symmetric(scale, 1000, LIMIT) is None
