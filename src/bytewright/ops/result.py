"""Results as arrays of the type and shape that operators state.

numpy turns arrays without axes into scalars, and stretches them to one axis where a parameter has one.
"""

from typing import Any

import numpy as np

from bytewright import ir


def shaped_like(operand: ir.Array, values: Any) -> tuple[ir.Array]:
    """The values as the one result, in the operand's shape."""
    return (np.asarray(values).reshape(operand.shape),)


def in_integers(values: ir.Array, dtype: np.dtype[Any], what: str) -> ir.Array:
    """The values, integers, in an integer type.

    Raises:
        OverflowError: One does not fit; importing proves of its own operators that this cannot happen.
    """
    bounds = np.iinfo(dtype)
    if values.size and (values.min() < bounds.min or values.max() > bounds.max):
        raise OverflowError(f"{what} does not fit {bounds.bits} bits")
    return values.astype(dtype)


def in_32_bits(values: ir.Array, what: str) -> ir.Array:
    """As `in_integers`, in int32."""
    return in_integers(values, np.dtype(np.int32), what)


def saturate(values: ir.Array, dtype: ir.DType) -> ir.Array:
    """The values limited to the range of an integer type, in that type."""
    return np.clip(values, *dtype.bounds).astype(dtype.numpy)
