"""Values of constants are of the type that they are said to have."""

import numpy as np
import pytest

from bytewright.diagnostics import InternalError
from bytewright.ir import DType, TensorData


@pytest.mark.parametrize("value", [-129, 128, 226])
def test_values_that_a_type_has_not_are_refused(value: int) -> None:
    """Weights of nine bits once lost one on the way to a kernel for bytes."""
    with pytest.raises(InternalError, match=f"values from .*{value}.* are no i8"):
        TensorData.from_array(np.array([0, value], np.int16), DType.I8)


def test_values_of_a_wider_type_that_fit_are_taken() -> None:
    data = TensorData.from_array(np.array([-128, 127], np.int64), DType.I8)
    assert data.array.tolist() == [-128, 127]
