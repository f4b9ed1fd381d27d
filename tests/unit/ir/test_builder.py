"""The builder: blocks nest and close, names are unique, numbers take types."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bytewright.diagnostics import InternalError
from bytewright.ir.builder import BodyBuilder, load, region
from bytewright.ir.expr import FALSE, TRUE, Buffer, Const, Load, Var, const
from bytewright.ir.prim import Allocate, Call, For, If, Let, LoopKind, Region, Seq, Store, View
from bytewright.ir.scope import LOCAL, WORKSPACE
from bytewright.ir.storage import Storage
from bytewright.ir.types import DType

A = Buffer("a", (4, 8), DType.I32, 4)


def test_loop_with_store_becomes_for():
    b = BodyBuilder()
    with b.for_("y", 0, 4, kind=LoopKind.UNROLLED) as y:
        b.store(A, (y, 3), y + 1)
    variable = Var("y", DType.I32)
    store = Store(A, (variable, const(3)), variable + 1)
    assert b.finish() == Seq((For(variable, const(0), const(4), Seq((store,)), LoopKind.UNROLLED),))


def test_names_are_unique_in_the_function_and_against_reserved_ones():
    b = BodyBuilder(reserved=("x",))
    with b.for_("x", 0, 2) as first:
        pass
    with b.for_("x", 0, 2) as second:
        inner = b.let("x", 5)
    assert [first.name, second.name, inner.name] == ["x_1", "x_2", "x_3"]


def test_if_and_else():
    b = BodyBuilder()
    x = b.let("x", 1)
    with b.if_(x < 2):
        b.store(A, (0, 0), 1)
    with b.else_():
        b.store(A, (0, 1), 2)
    zero, one = const(0), const(1)
    assert b.finish().statements[1] == If(
        x < 2, Seq((Store(A, (zero, zero), one),)), Seq((Store(A, (zero, one), const(2)),))
    )


@pytest.mark.parametrize("prepare", ["nothing", "twice"])
def test_else_without_if_is_refused(prepare: str):
    b = BodyBuilder()
    if prepare == "twice":
        with b.if_(TRUE):
            pass
        with b.else_():
            pass
    with pytest.raises(InternalError, match="does not follow"), b.else_():
        pass


def test_scalar_is_a_local_buffer_without_axes():
    b = BodyBuilder()
    accumulator = b.scalar("acc", DType.I64, init=7)
    b.add_to(accumulator, (), 5)
    assert accumulator == Buffer("acc", (), DType.I64, 8)
    assert b.finish().statements == (
        Allocate(accumulator, Storage(LOCAL)),
        Store(accumulator, (), Const(7, DType.I64)),
        Store(accumulator, (), Load(accumulator, ()) + 5),
    )


def test_allocate_renames_and_keeps_what_is_decided():
    b = BodyBuilder(reserved=("a",))
    got = b.allocate(A, Storage(WORKSPACE, candidates=("sram",), offset=16))
    assert got == replace(A, name="a_1")
    assert b.finish().statements == (Allocate(got, Storage(WORKSPACE, candidates=("sram",), offset=16)),)


def test_view_folds_its_condition():
    b = BodyBuilder()
    other = Buffer("zeros", (8,), DType.I32, 4)
    row = b.view("row", region(A, 2, 0), DType.I32, 8)
    folded = b.view("tap", region(A, 2, 0), DType.I32, 8, FALSE, region(other))
    x = b.let("x", 3)
    chosen = b.view("tap", region(A, 2, 0), DType.I32, 8, x < 4, region(other))
    source = Region(A, (const(2), const(0)))
    assert b.finish().statements == (
        View(row, source),
        View(folded, Region(other)),
        Let(x, const(3)),
        View(chosen, source, x < 4, Region(other)),
    )


def test_view_condition_needs_its_alternative():
    with pytest.raises(InternalError, match="an alternative"):
        BodyBuilder().view("v", region(A), DType.I32, 8, TRUE)


def test_call_converts_integers():
    b = BodyBuilder()
    b.call("kernel", region(A), 5, operators=("conv2d",))
    assert b.finish().statements == (Call("kernel", (Region(A), const(5)), operators=("conv2d",)),)


def test_wrong_element_type_and_wrong_rank_are_refused():
    b = BodyBuilder()
    with pytest.raises(InternalError, match="i64 is stored to 'a' of i32"):
        b.store(A, (0, 0), const(1, DType.I64))
    with pytest.raises(InternalError, match="2 axes, 1 indices"):
        load(A, 0)
    with pytest.raises(InternalError, match="2 axes, 1 indices"):
        b.store(A, 0, 1)


def test_finish_refuses_open_blocks():
    b = BodyBuilder()
    with b.block(), pytest.raises(InternalError, match="1 blocks are still open"):
        b.finish()
