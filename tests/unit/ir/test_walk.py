"""Reading bodies: order of walks, free names."""

from __future__ import annotations

from bytewright.ir.builder import BodyBuilder, load
from bytewright.ir.expr import Binary, Buffer, Const, Load, Var
from bytewright.ir.prim import For, If, Seq, Store
from bytewright.ir.types import DType
from bytewright.ir.walk import (
    free_buffers,
    free_variables,
    walk_expression,
    walk_statements,
)

A, B, C = (Buffer(name, (4, 8), DType.I32, 4) for name in "abc")
N = Var("n", DType.I32)


def test_walks_outer_nodes_first():
    expression = load(A, N, 1) + 2
    assert [type(e) for e in walk_expression(expression)] == [Binary, Load, Var, Const, Const]
    b = BodyBuilder()
    with b.for_("i", 0, 4), b.if_(N < 1):
        b.store(A, (0, 0), 1)
    assert [type(s) for s in walk_statements(b.finish())] == [Seq, For, Seq, If, Seq, Store]


def test_free_variables_and_buffers_exclude_what_is_defined_inside():
    b = BodyBuilder()
    scratch = b.allocate(Buffer("scratch", (4,), DType.I32))
    with b.for_("i", 0, N) as i:
        t = b.let("t", load(B, i, 0))
        b.store(scratch, i, t)
        b.store(A, (0, i), load(scratch, i))
    assert free_variables(b.finish()) == (N,)
    assert free_buffers(b.finish()) == (B, A)
