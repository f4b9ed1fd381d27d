"""Operators that find out how large an extent is: types, and their numpy references."""

from __future__ import annotations

import numpy as np
import pytest

from bytewright import ir
from bytewright.ops.sizes import SIZE, DistinctValues, StatedSize, TruePlaces

ROWS = ir.Symbol("rows", 0, 3)
I32, I64, F32, BOOL = ir.DType.I32, ir.DType.I64, ir.DType.F32, ir.DType.BOOL


def kind(dtype: ir.DType, *shape: ir.Extent) -> ir.TensorType:
    return ir.TensorType(shape, dtype)


def test_results_have_the_extent_and_the_last_says_it() -> None:
    assert TruePlaces(ROWS).infer((kind(BOOL, 4, 2),)) == (kind(I64, ROWS, 2), SIZE)
    assert StatedSize(ROWS).infer((kind(I64, 1),)) == (SIZE,)
    assert DistinctValues(ROWS, I32).infer((kind(F32, 7),)) == (kind(F32, ROWS), kind(I32, 7), SIZE)
    assert ir.counted_extent(TruePlaces(ROWS)) == ROWS
    assert ir.counted_extent(TruePlaces(3)) is None


@pytest.mark.parametrize(
    ("operation", "operands", "message"),
    [
        (TruePlaces(ROWS), (kind(F32, 4),), "not bool"),
        (TruePlaces(ROWS), (kind(BOOL),), "no places"),
        (StatedSize(ROWS), (kind(F32),), "not i32 or i64"),
        (StatedSize(ROWS), (kind(I32, 2),), r"a size of shape \[2\]"),
        (DistinctValues(ROWS, I32), (kind(F32, 2, 2),), "no list"),
        (DistinctValues(ROWS, F32), (kind(F32, 2),), "not counted in f32"),
    ],
)
def test_what_does_not_fit_is_refused(
    operation: ir.Operation, operands: tuple[ir.TensorType, ...], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        operation.infer(operands)


def test_references_cut_what_there_is_no_room_for_and_say_how_much_there_is() -> None:
    truths = np.array([[True, False], [True, True], [False, True]])
    places, size = TruePlaces(ROWS).evaluate((truths,))
    assert (places.tolist(), size.tolist()) == ([[0, 0], [1, 0], [1, 1]], [4])
    values, own, size = DistinctValues(ROWS, I64).evaluate((np.array([5, 2, 5, 9, 2, 1]),))
    assert (values.tolist(), own.tolist(), size.tolist()) == ([5, 2, 9], [0, 1, 0, 2, 1, 3], [4])
    values, own, size = DistinctValues(4, I32).evaluate((np.array([np.nan, 1, np.nan, 1], np.float32),))
    assert (own.tolist(), size.tolist()) == ([0, 1, 2, 1], [3])
    assert np.array_equal(values, [np.nan, 1, np.nan], equal_nan=True)
    for number, said in ((0, 0), (2, 2), (7, 7), (-5, -1), (1 << 40, (1 << 31) - 1)):
        (size,) = StatedSize(ROWS).evaluate((np.array(number, np.int64),))
        assert size.tolist() == [said]
