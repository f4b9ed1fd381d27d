"""Ranges of integer expressions: from symbols, loops and names, through arithmetic; unknown where nothing is said."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bytewright.ir.analyses.ranges import range_of, ranges_of
from bytewright.ir.builder import BodyBuilder, load, region
from bytewright.ir.expr import Buffer, Expr, Var, const, maximum, minimum
from bytewright.ir.prim import Access, BufferParameter, PrimFunc, ScalarParameter
from bytewright.ir.scope import GLOBAL
from bytewright.ir.types import DType, Symbol

N, M = Var("n", DType.I32), Var("m", DType.I32)
DATA = Buffer("data", (Symbol("n", 2, 5),), DType.I32, 4)


def test_symbols_loops_and_names_have_ranges_and_other_parameters_none() -> None:
    body = BodyBuilder(("data", "n", "m"))
    with body.for_("i", 1, N) as i:
        body.let("next", i + 1)
        body.let("loaded", load(DATA, i))
        body.call("external", region(DATA), i)
    with body.for_("j", N, M):
        pass
    function = PrimFunc(
        "k",
        (BufferParameter(DATA, Access.READ, scope=GLOBAL), ScalarParameter(N), ScalarParameter(M)),
        body.finish(),
    )
    assert ranges_of(function) == {"n": (2, 5), "i": (1, 4), "next": (2, 5)}


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        (const(7), (7, 7)),
        (N + 3, (1, 7)),
        (3 - N, (-1, 5)),
        (N * M, (-12, 12)),
        (minimum(N, M), (-3, 3)),
        (maximum(N, const(0)), (0, 4)),
        (N / const(2), None),
        (N + Var("other", DType.I32), None),
    ],
    ids=str,
)
def test_arithmetic(expression: Expr, expected: tuple[int, int] | None) -> None:
    assert range_of(expression, {"n": (-2, 4), "m": (-3, 3)}) == expected


@given(st.lists(st.integers(-6, 6), min_size=4, max_size=4), st.integers(-3, 3), st.integers(-3, 3))
def test_ranges_hold_every_value_and_only_what_is_between_the_least_and_the_greatest(
    bounds: list[int], factor: int, addend: int
) -> None:
    n, m = ((min(ends), max(ends)) for ends in (bounds[:2], bounds[2:]))
    found = range_of(maximum(N * factor + M, minimum(M - N, const(addend))), {"n": n, "m": m})
    assert found is not None
    values = [
        max(a * factor + b, min(b - a, addend))
        for a, b in product(range(n[0], n[1] + 1), range(m[0], m[1] + 1))
    ]
    assert found[0] <= min(values)
    assert max(values) <= found[1]
    product_range = range_of(N * M, {"n": n, "m": m})
    products = [a * b for a, b in product(n, m)]
    assert product_range == (min(products), max(products))
