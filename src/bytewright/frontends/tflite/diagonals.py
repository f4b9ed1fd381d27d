"""MATRIX_DIAG and MATRIX_SET_DIAG: choices by what lies on a diagonal, of raw values."""

import numpy as np

from bytewright import ir
from bytewright.frontends.tflite.conversion import Conversion
from bytewright.frontends.tflite.logic import emit_choice
from bytewright.frontends.tflite.unsigned import UNSIGNED


def convert_matrix_diag(at: Conversion) -> None:
    """MATRIX_DIAG: rows become diagonals of square matrices of zeros."""
    at.require_counts((1,))
    source = at.operand(0, "input")
    at.require_same_dtype(source)
    at.require(len(source.shape) >= 1, "a single value is no diagonal")
    least = ir.DType.I8.bounds[0] if source.tensor.element_type == UNSIGNED else 0
    zero = at.constant("zero", np.array(least, source.dtype.numpy), source.dtype)
    extent = source.shape[-1]
    diagonal = at.reshape(at.value_of(source), (*source.shape[:-1], 1, extent), "diagonal")
    at.define(_with_diagonal(at, (extent, extent), diagonal, zero))


def convert_matrix_set_diag(at: Conversion) -> None:
    """MATRIX_SET_DIAG: matrices with other diagonals."""
    at.require_counts((2,))
    source, diagonal = at.operand(0, "input"), at.operand(1, "diagonal")
    at.require_same_dtype(source, diagonal)
    at.require(len(source.shape) >= 2, f"an input {list(source.shape)} has no matrices")
    *outer, rows, columns = source.shape
    expected = (*outer, min(rows, columns))
    at.require(diagonal.shape == expected, f"diagonals {list(diagonal.shape)}, not {list(expected)}")
    along = (*outer, 1, columns) if columns <= rows else (*outer, rows, 1)
    values = at.reshape(at.value_of(diagonal, "diagonal"), along, "along")
    at.define(_with_diagonal(at, (rows, columns), values, at.value_of(source)))


def _with_diagonal(at: Conversion, shape: tuple[int, int], diagonal: str, rest: str) -> str:
    """Matrices of two values."""
    places = at.constant("places", np.eye(*shape, dtype=np.bool_), ir.DType.BOOL)
    return emit_choice(at, places, diagonal, rest)
