"""Bytes that a kernel reads and writes, counted from its loops."""

from __future__ import annotations

from bytewright.ir.analyses.traffic import Traffic, entry_traffic
from bytewright.ir.builder import BodyBuilder, load, region
from bytewright.ir.expr import Buffer, Var, const, maximum, minimum
from bytewright.ir.prim import Access, BufferParameter, PrimFunc, ScalarParameter
from bytewright.ir.scope import GLOBAL
from bytewright.ir.types import DType

I32 = DType.I32


def _entry(kernel: PrimFunc, *arguments: object) -> dict[str, Traffic]:
    x, y = Buffer("x", (8, 4), I32), Buffer("y", (8, 4), I32)
    body = BodyBuilder(("x", "y"))
    body.call(kernel.name, region(x), region(y), *arguments)
    main = PrimFunc(
        "main",
        (BufferParameter(x, Access.READ, scope=GLOBAL), BufferParameter(y, Access.WRITE, scope=GLOBAL)),
        body.finish(),
    )
    return entry_traffic(main, {kernel.name: kernel})


def _kernel(write, *scalars: Var) -> PrimFunc:
    source, result = Buffer("source", (8, 4), I32), Buffer("result", (8, 4), I32)
    body = BodyBuilder(("source", "result", *(scalar.name for scalar in scalars)))
    write(body, source, result)
    parameters = (
        BufferParameter(source, Access.READ, scope=GLOBAL),
        BufferParameter(result, Access.WRITE, scope=GLOBAL),
        *(ScalarParameter(scalar) for scalar in scalars),
    )
    return PrimFunc("kernel", parameters, body.finish())


def test_loops_multiply() -> None:
    def write(body: BodyBuilder, source: Buffer, result: Buffer) -> None:
        with body.for_("y", 0, 8) as y, body.for_("x", 0, 4) as x:
            body.store(result, (y, x), load(source, y, x) + load(source, y, 0))

    assert _entry(_kernel(write)) == {"x": Traffic(2 * 32 * 4, 0), "y": Traffic(0, 32 * 4)}


def test_bounds_that_the_caller_passes() -> None:
    first, last = Var("first", I32), Var("last", I32)

    def write(body: BodyBuilder, source: Buffer, result: Buffer) -> None:
        begin = body.let("begin", maximum(first, 2))
        with body.for_("y", begin, last) as y:
            body.store(result, (y, 0), load(source, y, 0))

    assert _entry(_kernel(write, first, last), 0, 7) == {"x": Traffic(5 * 4, 0), "y": Traffic(0, 5 * 4)}


def test_views_count_as_their_source() -> None:
    def write(body: BodyBuilder, source: Buffer, result: Buffer) -> None:
        with body.for_("y", 0, 8) as y:
            row = body.view("row", region(source, y, 0), I32, 4, y < 4, region(result, y, 0))
            with body.for_("x", 0, 4) as x:
                body.store(result, (y, x), load(row, x))

    assert _entry(_kernel(write))["x"] == Traffic(32 * 4, 0)


def test_of_two_branches_the_costlier() -> None:
    def write(body: BodyBuilder, source: Buffer, result: Buffer) -> None:
        with body.for_("y", 0, 8) as y:
            with body.if_(y < 4):
                body.store(result, (y, 0), load(source, y, 0) + load(source, y, 1))
            with body.else_():
                body.store(result, (y, 0), load(source, y, 0))

    assert _entry(_kernel(write)) == {"x": Traffic(8 * 2 * 4, 0), "y": Traffic(0, 8 * 4)}


def test_a_loop_whose_bounds_are_data_counts_once() -> None:
    """What its bounds read counts, too."""

    def write(body: BodyBuilder, source: Buffer, result: Buffer) -> None:
        with body.for_("y", 0, load(source, 0, 0)) as y:
            body.store(result, (y, 0), const(1))

    assert _entry(_kernel(write)) == {"x": Traffic(4, 0), "y": Traffic(0, 4)}


def test_a_loop_whose_bounds_follow_from_another_counts_as_often_as_it_can_turn() -> None:
    def write(body: BodyBuilder, source: Buffer, result: Buffer) -> None:
        with body.for_("y", 0, 8) as y, body.for_("x", 0, minimum(y, 3)) as x:
            body.store(result, (y, x), load(source, y, x))

    assert _entry(_kernel(write)) == {"x": Traffic(8 * 3 * 4, 0), "y": Traffic(0, 8 * 3 * 4)}
