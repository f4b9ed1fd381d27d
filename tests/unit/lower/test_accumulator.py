"""fold_zero_point: the bias takes in the zero point, and bounds hold for every input."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bytewright import ir
from bytewright.diagnostics import CompileError
from bytewright.ir.where import Where
from bytewright.lower.kernels.accumulator import fold_zero_point

WHERE = Where("m.tflite", "0 (CONV_2D)")
I8, I16, I32 = ir.DType.I8, ir.DType.I16, ir.DType.I32
BYTES = st.integers(-128, 127)


@given(
    st.lists(st.lists(BYTES, min_size=3, max_size=3), min_size=1, max_size=3),
    BYTES,
    st.sampled_from([0, 128]),
    st.lists(st.integers(-(2**20), 2**20), min_size=3, max_size=3),
)
def test_the_sum_and_its_bounds(
    rows: list[list[int]], zero_point: int, offset: int, biases: list[int]
) -> None:
    weights = np.array(rows, np.int64)
    bias = np.array(biases[: len(rows)], np.int64)
    folded = fold_zero_point(weights, bias, zero_point, offset, (I8, I32), WHERE)
    sums: list[int] = []
    for x in itertools.product((-128, -1, 0, 127), repeat=3):
        activations = np.array(x)
        wanted = bias + weights @ (activations - zero_point)
        assert (folded.bias + weights @ (activations + offset) == wanted).all()
        sums += wanted.tolist()
    # The extremes are among the corners, so the bounds are as narrow as they can be.
    assert (folded.low, folded.high) == (min(sums), max(sums))


@pytest.mark.parametrize(("sign", "limit"), [(1, 2**31 - 1 - 25400), (-1, 2**31 - 25400)])
def test_a_sum_that_leaves_32_bits_is_refused(sign: int, limit: int) -> None:
    """Two products of 100 and 127 bring the sum to the last number of 32 bits; one more is refused."""
    weights = np.full((1, 2), sign * 100, np.int64)
    folded = fold_zero_point(weights, np.array([sign * limit]), 0, 0, (I8, I32), WHERE)
    assert (folded.high if sign > 0 else folded.low) == (2**31 - 1 if sign > 0 else -(2**31))
    with pytest.raises(CompileError) as caught:
        fold_zero_point(weights, np.array([sign * (limit + 1)]), 0, 0, (I8, I32), WHERE)
    assert caught.value.diagnostics[0].code == "BW110"
    assert caught.value.diagnostics[0].message.startswith("the accumulator ranges from")
