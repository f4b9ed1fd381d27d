"""What expressions are for many values of their variables at once."""

from __future__ import annotations

import numpy as np
import pytest

from bytewright import ir
from bytewright.ir.analyses.values import evaluate


@pytest.mark.parametrize(
    ("dtype", "wanted"),
    [
        (ir.DType.U8, [255, 0, 127, 128]),
        (ir.DType.I16, [-1, 0, 127, -128]),
        (ir.DType.U32, [2**32 - 1, 0, 127, 2**32 - 128]),
        (ir.DType.I64, [-1, 0, 127, -128]),
    ],
)
def test_what_a_type_does_not_have_wraps_in_it_however_wide_it_is(dtype: ir.DType, wanted: list[int]) -> None:
    value = ir.cast(ir.Var("x", ir.DType.I8), dtype)
    found = evaluate(value, {"x": np.array([-1, 0, 127, -128])})
    np.testing.assert_array_equal(found, wanted)
