"""Results as arrays of the type and shape that operators state.

numpy turns arrays without axes into scalars, and stretches them to one axis where a parameter has one.
"""

from typing import Any

import numpy as np

from bytewright import ir


def shaped_like(operand: ir.Array, values: Any) -> tuple[ir.Array]:
    """The values as the one result, in the operand's shape."""
    return (np.asarray(values).reshape(operand.shape),)


def in_32_bits(values: ir.Array, refusal: str) -> ir.Array:
    """The values as int32.

    Raises:
        OverflowError: One does not fit; importing proves of its own operators that this cannot happen.
    """
    bounds = np.iinfo(np.int32)
    if values.size and (values.min() < bounds.min or values.max() > bounds.max):
        raise OverflowError(refusal)
    return values.astype(np.int32)


def saturate(values: ir.Array, dtype: ir.DType) -> ir.Array:
    """The values limited to the range of an integer type, in that type."""
    return np.clip(values, *dtype.bounds).astype(dtype.numpy)
