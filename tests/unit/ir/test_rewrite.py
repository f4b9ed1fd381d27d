"""Rewriting: substitution folds, definitions rename, unrolled loops become copies without clashing names."""

from __future__ import annotations

import pytest

from bytewright.diagnostics import InternalError
from bytewright.ir.builder import BodyBuilder, load, region
from bytewright.ir.expr import (
    Binary,
    BinaryOperator,
    Buffer,
    Load,
    Select,
    Var,
    cast,
    const,
    equal,
    select,
)
from bytewright.ir.prim import (
    Access,
    Allocate,
    BufferParameter,
    Call,
    For,
    If,
    Let,
    LoopKind,
    PrimFunc,
    Region,
    Seq,
    Store,
    View,
)
from bytewright.ir.rewrite import (
    Rewriting,
    expand_unrolled,
    rewrite_sequence,
    substitute,
    substitute_expression,
    substitute_in_function,
)
from bytewright.ir.scalar_functions import EXP
from bytewright.ir.scope import WORKSPACE
from bytewright.ir.types import DType
from bytewright.ir.walk import walk_statements

A = Buffer("a", (4, 8), DType.I32, 4)
B = Buffer("b", (4, 8), DType.I32, 4)
X = Var("x", DType.I32)
Y = Var("y", DType.I32)


def test_substitution_reaches_every_kind_of_expression_and_folds():
    loaded = Load(A, (X, X + 1))
    before = select(X < 3, loaded, cast(EXP(cast(X, DType.F32)), DType.I32))
    after = substitute_expression(before, {X: Y}, {A: B})
    assert after == Select(Y < 3, Load(B, (Y, Y + 1)), cast(EXP(cast(Y, DType.F32)), DType.I32))
    assert substitute_expression(before, {X: const(1)}) == Load(A, (const(1), const(2)))


def test_side_of_select_that_never_runs_is_not_folded():
    expression = select(equal(X, 0), const(1), (const(1) << X) + (2**31 - 1))
    assert substitute_expression(expression, {X: const(0)}) == const(1)


def test_substitution_of_another_type_is_refused():
    with pytest.raises(InternalError, match="'x' of i32 cannot become i64"):
        substitute_expression(X, {X: const(1, DType.I64)})


def test_substitution_reaches_every_kind_of_statement():
    def body(buffer: Buffer, variable: Var) -> Seq:
        b = BodyBuilder()
        with b.for_("i", variable, 4):
            b.store(buffer, (variable, 0), variable)
        with b.if_(variable < 2):
            b.let("t", variable)
        with b.else_():
            b.call("f", region(buffer, variable, 0), variable)
        b.view("v", region(buffer, variable, 0), DType.I32, 8, variable < 3, region(buffer))
        with b.block():
            b.store(buffer, (0, 0), load(buffer, variable, 1))
        return b.finish()

    assert substitute(body(A, X), {X: Y}, {A: B}) == body(B, Y)


def test_constant_conditions_resolve():
    b = BodyBuilder()
    with b.if_(X < 2):
        b.store(A, (0, 0), 1)
    with b.else_():
        b.store(A, (0, 0), 2)
    b.view("v", region(A, X, 0), DType.I32, 8, X < 2, region(B))
    view = Buffer("v", (8,), DType.I32, 4)
    zero = const(0)
    assert substitute(b.finish(), {X: const(3)}).statements == (
        Seq((Store(A, (zero, zero), const(2)),)),
        View(view, Region(B)),
    )
    assert substitute(Seq((If(X < 2, Seq((Let(Y, X),))),)), {X: const(3)}) == Seq(())


def test_defined_variable_can_be_renamed_but_not_replaced():
    loop = Seq((For(X, const(0), const(4), Seq((Store(A, (X, X), X),))),))
    assert substitute(loop, {X: Y}) == Seq((For(Y, const(0), const(4), Seq((Store(A, (Y, Y), Y),))),))
    with pytest.raises(InternalError, match="'x' is defined where it is to be replaced"):
        substitute(loop, {X: const(1)})


def test_statement_rewriting_can_remove_and_multiply():
    store = Store(A, (X, X), X)
    sequence = Seq((store, Let(Y, X)))
    twice = Rewriting(statement=lambda s: (s, s) if isinstance(s, Store) else ())
    assert rewrite_sequence(sequence, twice) == Seq((store, store))


def test_substitute_in_function_reaches_parameters():
    function = PrimFunc(
        "f", (BufferParameter(A, Access.WRITE, scope=WORKSPACE),), Seq((Store(A, (X, X), X),))
    )
    expected = PrimFunc(
        "f", (BufferParameter(B, Access.WRITE, scope=WORKSPACE),), Seq((Store(B, (X, X), X),))
    )
    assert substitute_in_function(function, {A: B}) == expected


def test_unrolled_loop_without_definitions_becomes_flat_copies():
    b = BodyBuilder()
    with b.for_("i", 1, 4, kind=LoopKind.UNROLLED) as i:
        b.store(A, (0, i), i * 2)
    zero = const(0)
    expected = tuple(Store(A, (zero, const(n)), const(2 * n)) for n in (1, 2, 3))
    assert expand_unrolled(b.finish()) == Seq(expected)


def test_unrolled_definitions_get_names_of_their_own_in_blocks_of_their_own():
    b = BodyBuilder()
    b.let("t_0", 7)
    with b.for_("i", 0, 2, kind=LoopKind.UNROLLED) as i:
        t = b.let("t", load(A, 0, i))
        b.scalar("s", DType.I32, init=t)
    result = expand_unrolled(b.finish(), taken=("s_1",))
    first, second = result.statements[1:]
    assert isinstance(first, Seq)
    assert isinstance(second, Seq)
    names = [
        s.variable.name if isinstance(s, Let) else s.buffer.name
        for s in walk_statements(result)
        if isinstance(s, Let | Allocate)
    ]
    assert names == ["t_0", "t_0_1", "s_0", "t_1", "s_1_1"]
    renamed = Buffer("s_1_1", (), DType.I32, 4)
    assert second.statements[-1] == Store(renamed, (), Var("t_1", DType.I32))


def test_nested_unrolled_loops_expand_and_others_stay():
    b = BodyBuilder()
    with (
        b.for_("i", 0, 2, kind=LoopKind.UNROLLED) as i,
        b.for_("k", 0, 5) as k,
        b.for_("j", 0, 3, kind=LoopKind.UNROLLED) as j,
    ):
        b.store(A, (i, j), k)
    result = expand_unrolled(b.finish())
    assert [type(s) for s in result.statements] == [For, For]
    stores = [s for s in walk_statements(result) if isinstance(s, Store)]
    assert [s.indices for s in stores] == [(const(y), const(x)) for y in (0, 1) for x in (0, 1, 2)]
    loops = [s.variable.name for s in walk_statements(result) if isinstance(s, For)]
    assert loops == ["k_0", "k_1"]


def test_unrolled_loop_needs_constant_bounds():
    b = BodyBuilder()
    with b.for_("i", 0, X, kind=LoopKind.UNROLLED):
        pass
    with pytest.raises(InternalError, match="unrolled loop over 'i' has a bound that is not constant"):
        expand_unrolled(b.finish())


def test_empty_sequence_and_call_without_arguments_survive():
    sequence = Seq((Seq(()), Call("f", ())))
    assert expand_unrolled(sequence) == sequence


def test_what_overflows_is_not_folded():
    x, large = Var("x", DType.I32), const(2**30)
    assert x * large * large == Binary(BinaryOperator.MUL, x * large, large)
    assert large * 2 == Binary(BinaryOperator.MUL, large, const(2))
    assert large << 1 == Binary(BinaryOperator.SHL, large, const(1))
    assert large << 10**9 == Binary(BinaryOperator.SHL, large, const(10**9))
    assert large >> -1 == Binary(BinaryOperator.SHR, large, const(-1))
