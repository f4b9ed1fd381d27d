"""Constant tensors: immutable bytes with a digest, so that modules compare and print without showing weights."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import cast

import numpy as np
from numpy.typing import NDArray

from bytewright.diagnostics import InternalError
from bytewright.ir.types import DType, TensorType

DIGEST_DIGITS = 12


@dataclass(frozen=True, slots=True)
class TensorData:
    """The values of a constant, row-major and little-endian. Equality and hash go by content."""

    shape: tuple[int, ...]
    dtype: DType
    content: bytes = field(repr=False)

    @staticmethod
    def from_array(array: NDArray[np.generic], dtype: DType) -> TensorData:
        """Takes the values of `array`; bytes that it shows as a whole are shared.

        Raises:
            InternalError: Integers, of which some are none of `dtype`.
        """
        converted = np.ascontiguousarray(array, dtype=dtype.numpy)
        if (
            dtype.is_integer
            and converted.dtype != array.dtype
            and not (converted.reshape(array.shape) == array).all()
        ):
            raise InternalError(f"values from {array.min()} to {array.max()} are no {dtype.value}")
        content = _bytes_shown(converted)
        return TensorData(
            tuple(int(n) for n in array.shape), dtype, converted.tobytes() if content is None else content
        )

    @property
    def array(self) -> NDArray[np.generic]:
        """A read-only numpy view of the values."""
        return np.frombuffer(self.content, dtype=self.dtype.numpy).reshape(self.shape)

    @property
    def type(self) -> TensorType:
        """Shape and element type."""
        return TensorType(self.shape, self.dtype)

    @property
    def digest(self) -> str:
        """The first 12 digits of the sha256 of the bytes: what printed IR shows instead of weights."""
        return hashlib.sha256(self.content).hexdigest()[:DIGEST_DIGITS]


def _bytes_shown(array: NDArray[np.generic]) -> bytes | None:
    """The bytes object whose bytes, all and in order, are those of a contiguous array; None if there is none."""
    owner: object = array
    while isinstance(owner, np.ndarray):
        owner = cast(object, owner.base)
    return owner if isinstance(owner, bytes) and len(owner) == array.nbytes else None
