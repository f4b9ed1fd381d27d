"""Results as arrays of the type and shape that operators state.

numpy turns arrays without axes into scalars, and stretches them to one axis where a parameter has one.
"""

from typing import Any

import numpy as np

from bytewright import ir


def shaped_like(operand: ir.Array, values: Any) -> tuple[ir.Array]:
    """The values as the one result, in the operand's shape."""
    return (np.asarray(values).reshape(operand.shape),)


def saturate(values: ir.Array, dtype: ir.DType) -> ir.Array:
    """The values limited to the range of an integer type, in that type."""
    return np.clip(values, *dtype.bounds).astype(dtype.numpy)
