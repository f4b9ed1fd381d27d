"""Addresses: row-major, folded, through rings; checked against numpy."""

from __future__ import annotations

import numpy as np
import pytest

from bytewright.diagnostics import InternalError
from bytewright.ir.address import flat_index, has_constant_size, num_elements, region_index, size_bytes
from bytewright.ir.expr import Buffer, Const, Expr, RingRows, Var, const
from bytewright.ir.prim import Region
from bytewright.ir.rewrite import substitute_expression
from bytewright.ir.types import DType, Symbol

Y, X, C = (Var(name, DType.I32) for name in "yxc")


def value_of(expression: Expr, **values: int) -> int:
    variables = {Var(name, DType.I32): const(value) for name, value in values.items()}
    result = substitute_expression(expression, variables)
    assert isinstance(result, Const)
    return int(result.value)


def test_horner_form():
    buffer = Buffer("a", (10, 64, 8), DType.I8)
    assert flat_index(buffer, (Y, X, C)) == (Y * 64 + X) * 8 + C


def test_constants_fold_away():
    buffer = Buffer("a", (1, 10, 64), DType.I8)
    assert flat_index(buffer, (const(0), const(0), C)) == C
    assert flat_index(buffer, (const(0), const(2), const(3))) == const(131)


def test_agrees_with_numpy_on_every_element():
    shape = (3, 4, 5)
    expression = flat_index(Buffer("a", shape, DType.I32), (Y, X, C))
    for y, x, c in np.ndindex(*shape):
        assert value_of(expression, y=y, x=x, c=c) == np.ravel_multi_index((y, x, c), shape)


def test_ring_reuses_slots_and_shrinks_the_storage():
    buffer = Buffer("a", (2, 10, 4), DType.I16, rows=RingRows(axis=1, num_rows=3))
    expression = flat_index(buffer, (Y, X, C))
    assert expression == (Y * 3 + X % 3) * 4 + C
    assert value_of(expression, y=1, x=7, c=2) == (1 * 3 + 1) * 4 + 2
    assert (num_elements(buffer), size_bytes(buffer)) == (24, 48)


def test_ring_of_impossible_axis_is_refused():
    with pytest.raises(InternalError, match="ring of 3 rows on axis 2"):
        num_elements(Buffer("a", (2, 4), DType.I8, rows=RingRows(2, 3)))


def test_symbolic_extent_is_its_variable_and_counts_at_its_upper_bound():
    buffer = Buffer("a", (4, Symbol("N", 1, 8)), DType.I32)
    assert flat_index(buffer, (Y, X)) == Y * Var("N", DType.I32) + X
    assert size_bytes(buffer) == 4 * 8 * 4
    assert not has_constant_size(buffer)
    assert has_constant_size(Buffer("r", (Symbol("N", 1, 8), 2), DType.I8, rows=RingRows(0, 3)))


def test_scalar_has_one_element():
    scalar = Buffer("s", (), DType.I64)
    assert (flat_index(scalar, ()), size_bytes(scalar)) == (const(0), 8)


def test_region_without_indices_starts_at_the_first_element():
    buffer = Buffer("a", (4, 4), DType.I8)
    assert region_index(Region(buffer)) == const(0)
    assert region_index(Region(buffer, (Y, const(1)))) == Y * 4 + 1


def test_wrong_number_of_indices_is_refused():
    with pytest.raises(InternalError, match="2 axes, 1 indices"):
        flat_index(Buffer("a", (4, 4), DType.I8), (Y,))
