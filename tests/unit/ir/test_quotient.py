"""Extents that follow from a symbol: arithmetic beside that of numbers, for every value."""

from __future__ import annotations

from fractions import Fraction
from math import trunc
from operator import add, mul, sub

from hypothesis import given
from hypothesis import strategies as st

from bytewright.ir.address import extent_expr
from bytewright.ir.analyses.ranges import range_of
from bytewright.ir.expr import Binary, BinaryOperator, Const, Expr, Var
from bytewright.ir.types import Extent, Quotient, Symbol, extent_at, multiple, quotient, replace_symbol, total
from bytewright.record.extents import read_extent

N = Symbol("n", 3, 40)
Steps = list[tuple[int, int, int]]
STEPS = st.lists(st.tuples(st.integers(1, 4), st.integers(-3, 9), st.integers(1, 4)), max_size=5)


def made(steps: Steps, start: Extent = N) -> Extent:
    for factor, offset, divisor in steps:
        start = quotient(multiple(start, factor), offset, divisor)
    return start


def value_of(steps: Steps, value: int) -> int:
    for factor, offset, divisor in steps:
        value = (factor * value + offset) // divisor
    return value


def value_in_c(expression: Expr, value: int) -> int:
    """What C computes, where the symbol has this value."""
    match expression:
        case Const():
            return int(expression.value)
        case Var():
            return value
        case Binary(operator=BinaryOperator.DIV, left=left, right=right):
            return trunc(Fraction(value_in_c(left, value), value_in_c(right, value)))
        case Binary(operator=operator, left=left, right=right):
            of = {BinaryOperator.ADD: add, BinaryOperator.SUB: sub, BinaryOperator.MUL: mul}[operator]
            return of(value_in_c(left, value), value_in_c(right, value))
        case _:
            raise AssertionError(expression)


@given(STEPS, st.integers(1, 6))
def test_steps_make_one_quotient_that_has_their_values(steps: Steps, more: int) -> None:
    extent = made(steps)
    for value in range(N.lower, N.upper + 1):
        wanted = value_of(steps, value)
        assert extent_at(extent, value) == wanted
        if extent_at(extent, N.lower) >= 1:  # C's division is toward zero, and so of no other extent
            assert value_in_c(extent_expr(extent), value) == wanted
    if isinstance(extent, Quotient):
        later = N.upper + extent.period
        growth = extent.at(later) - extent.at(N.upper)
        assert all(extent.at(n + extent.period) - extent.at(n) == growth for n in range(N.lower, later))
        assert read_extent(extent.text("n"), {"n": N}) in {extent, None if extent.lower < 1 else extent}
        both = total(extent, quotient(extent, more))
        assert both is not None
        assert all(extent_at(both, n) == 2 * extent.at(n) + more for n in range(N.lower, N.upper + 1))
        assert quotient(extent) == extent, "in lowest terms"
        assert range_of(extent_expr(extent), {"n": (N.lower, N.upper)}) == (extent.lower, extent.upper) or (
            extent.lower < 0
        )


@given(STEPS, STEPS)
def test_a_symbol_is_replaced_by_what_stands_for_it(outer: Steps, inner: Steps) -> None:
    extent, own = made(outer), made(inner)
    found = replace_symbol(extent, own)
    if not isinstance(extent, int):
        for value in range(N.lower, N.upper + 1):
            assert extent_at(found, value) == extent_at(extent, extent_at(own, value))
