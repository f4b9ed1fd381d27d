"""The result of an operator that works element by element, as an array of its operand's shape.

numpy turns arrays without axes into scalars, and stretches them to one axis where a parameter has one.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bytewright.ir.graph import Array


def shaped_like(operand: Array, values: Any) -> tuple[Array]:
    """The values as the one result, in the operand's shape."""
    return (np.asarray(values).reshape(operand.shape),)
