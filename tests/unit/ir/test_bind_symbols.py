"""A callee's extents at a call: constants, the caller's symbols, and the largest value of anything else."""

from __future__ import annotations

from itertools import product
from math import prod

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bytewright.ir.analyses.bind_symbols import Known, always_holds, binding_at, bound_buffer
from bytewright.ir.builder import BodyBuilder
from bytewright.ir.expr import Buffer, Expr, Var, const
from bytewright.ir.prim import Access, BufferParameter, Call, For, PrimFunc, Region, ScalarParameter
from bytewright.ir.scope import GLOBAL
from bytewright.ir.types import DType, Extent, Symbol

ROWS = Symbol("rows", 1, 8)
MINE = Symbol("mine", 2, 6)
DATA = Buffer("data", (ROWS, 3), DType.I8, 1)
ROWS_V, MINE_V, OTHER_V = (Var(name, DType.I32) for name in ("rows", "mine", "other"))
CALLEE = PrimFunc(
    "k", (ScalarParameter(ROWS_V), BufferParameter(DATA, Access.READ, scope=GLOBAL)), BodyBuilder().finish()
)
GIVEN = Buffer("given", (MINE, 3), DType.I8, 1)


def caller(argument: Expr) -> tuple[PrimFunc, Call]:
    call = Call("k", (argument, Region(GIVEN)))
    body = BodyBuilder()
    with body.for_("i", 2, 5):
        body.emit(call)
    parameters = (
        BufferParameter(GIVEN, Access.READ, scope=GLOBAL),
        ScalarParameter(MINE_V),
        ScalarParameter(OTHER_V),
    )
    return PrimFunc("main", parameters, body.finish()), call


@pytest.mark.parametrize(
    ("argument", "extent"),
    [
        (const(5), 5),
        (MINE_V, MINE),
        (Var("i", DType.I32), 4),  # of a loop from 2 to before 5
        (MINE_V + 1, 7),
        (OTHER_V, 8),  # nothing is known of it but what the callee says
    ],
    ids=str,
)
def test_each_kind_of_argument(argument: Expr, extent: Extent) -> None:
    function, call = caller(argument)
    assert isinstance(function.body.statements[0], For)
    binding = binding_at(Known(CALLEE), call, Known(function))
    assert binding == {"rows": extent}
    assert bound_buffer(DATA, binding).shape == (extent, 3)


def test_a_callee_without_symbols_binds_nothing() -> None:
    plain = PrimFunc("k", (ScalarParameter(ROWS_V),), BodyBuilder().finish())
    function, call = caller(const(5))
    assert binding_at(Known(plain), call, Known(function)) == {}


EXTENTS = st.lists(
    st.one_of(st.integers(1, 6), st.sampled_from([Symbol("a", 1, 3), Symbol("b", 2, 4)])), max_size=4
)


@given(EXTENTS, EXTENTS)
def test_always_holds_means_for_all_values(available: list[Extent], needed: list[Extent]) -> None:
    symbols = sorted({e for e in (*available, *needed) if isinstance(e, Symbol)}, key=str)

    def elements(extents: list[Extent], values: dict[Symbol, int]) -> int:
        return prod(values[e] if isinstance(e, Symbol) else e for e in extents)

    choices = [
        dict(zip(symbols, numbers, strict=True))
        for numbers in product(*(range(s.lower, s.upper + 1) for s in symbols))
    ]
    truth = all(elements(available, values) >= elements(needed, values) for values in choices)
    if always_holds(available, needed):
        assert truth
    if not set(available) & set(symbols) or not set(needed) & set(symbols):
        assert always_holds(available, needed) == truth
