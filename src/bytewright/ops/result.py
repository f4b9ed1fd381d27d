"""Results as arrays of the type and shape that operators state.

numpy turns arrays without axes into scalars, and stretches them to one axis where a parameter has one.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bytewright.ir.graph import Array
from bytewright.ir.types import DType


def shaped_like(operand: Array, values: Any) -> tuple[Array]:
    """The values as the one result, in the operand's shape."""
    return (np.asarray(values).reshape(operand.shape),)


def saturate(values: Array, dtype: DType) -> Array:
    """The values limited to the range of an integer type, in that type."""
    return np.clip(values, *dtype.bounds).astype(dtype.numpy)
