"""A mean by a multiplication: equal to the division for every sum there is."""

from __future__ import annotations

import numpy as np
import pytest

from bytewright import ir
from bytewright.lower.kernels.pooling import reciprocal
from bytewright.ops.arithmetic.rescale import double_round

COUNTS = [*range(2, 130), 255, 256, 257, 625, 1000, 1023, 1025, 4095, 4096, 12544]


def value_of(expression: ir.Expr | None) -> int:
    assert isinstance(expression, ir.Const)
    return int(expression.value)


@pytest.mark.parametrize("count", COUNTS)
def test_every_sum(count: int) -> None:
    scale = reciprocal(count, 128)
    assert scale is not None
    sums = np.arange(-128 * count, 127 * count + 1)
    values = sums * value_of(scale.left)
    assert abs(values).max() < 2**30
    found = double_round(values, value_of(scale.multiplier), 0, value_of(scale.shift))
    nearest = np.sign(sums) * ((2 * abs(sums) + count) // (2 * count))  # halves away from zero
    assert np.array_equal(found, nearest)


def test_where_there_is_none() -> None:
    assert reciprocal(1, 128) is None
    assert reciprocal(2**20, 128) is not None
    assert reciprocal(2**20 + 1, 128) is None
