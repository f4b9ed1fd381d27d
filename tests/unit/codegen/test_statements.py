"""Statements as C: each kind of statement, and the refusal of storage that nobody decided (requirement S17)."""

from __future__ import annotations

import pytest

from bytewright.codegen.statements import StatementWriter
from bytewright.codegen.writer import Writer
from bytewright.diagnostics import InternalError
from bytewright.ir.builder import BodyBuilder, load, region
from bytewright.ir.expr import Buffer, RingRows, cast
from bytewright.ir.prim import Access, CallKind, Seq
from bytewright.ir.scope import GLOBAL, LOCAL, STACK, WORKSPACE, Scope, pool_scope
from bytewright.ir.storage import Storage
from bytewright.ir.types import DType

I8, I16, I32 = DType.I8, DType.I16, DType.I32
SOURCE = Buffer("source", (4, 8), I8, 1)
TARGET = Buffer("target", (4, 8), I32, 4)


def text(b: BodyBuilder) -> list[str]:
    writer = Writer()
    StatementWriter(writer).sequence(b.finish())
    return writer.text().splitlines()


def test_loops_names_and_branches() -> None:
    b = BodyBuilder()
    with b.for_("y", 0, 4) as y:
        twice = b.let("twice", y * 2)
        with b.if_(twice < 5):
            b.store(TARGET, (y, 0), twice)
        with b.else_():
            b.store(TARGET, (y, 1), 7)
    assert text(b) == [
        "for (int32_t y = 0; y < 4; ++y) {",
        "    const int32_t twice = y * 2;",
        "    if (twice < 5) {",
        "        target[y * 8] = twice;",
        "    } else {",
        "        target[(y * 8) + 1] = 7;",
        "    }",
        "}",
    ]


def test_a_scalar_is_declared_with_its_first_value() -> None:
    b = BodyBuilder()
    accumulator = b.scalar("acc", I32, 5)
    later = b.scalar("later", I32)
    b.add_to(accumulator, (), cast(load(SOURCE, 1, 2), I32))
    b.store(later, (), load(accumulator))
    b.add_to(TARGET, (0, 3), load(later) * 2)
    assert text(b) == [
        "int32_t acc = 5;",
        "int32_t later;",
        "acc += source[10];",
        "later = acc;",
        "target[3] += later * 2;",
    ]


def test_views_and_blocks() -> None:
    b = BodyBuilder()
    with b.for_("y", 0, 4) as y, b.block():
        plain = b.view("row", region(SOURCE, y, 0), I8, 8)
        b.store(TARGET, (y, 0), cast(load(plain, 3), I32))
        chosen = b.view("tap", region(SOURCE, y, 1), I8, 2, y < 2, region(SOURCE))
        b.store(TARGET, (y, 1), cast(load(chosen, 0), I32))
    assert text(b) == [
        "for (int32_t y = 0; y < 4; ++y) {",
        "    {",
        "        const int8_t *const row = &source[y * 8];",
        "        target[y * 8] = row[3];",
        "        const int8_t *const tap = (y < 2) ? &source[(y * 8) + 1] : source;",
        "        target[(y * 8) + 1] = tap[0];",
        "    }",
        "}",
    ]


def test_arrays_and_calls() -> None:
    b = BodyBuilder()
    patch = b.allocate(Buffer("patch", (3, 2), I16, 2), Storage(LOCAL))
    stack = b.allocate(Buffer("rows", (4,), I8, 1), Storage(STACK))
    b.call("m_f", region(patch), region(stack, 2), region(SOURCE, 1, 1), 9)
    assert text(b) == ["int16_t patch[6];", "int8_t rows[4];", "m_f(patch, &rows[2], &source[9], 9);"]


def test_regions() -> None:
    ring = Buffer("ring", (9, 4), I8, 1, RingRows(0, 3))
    statements = StatementWriter(Writer())
    assert statements.region(region(SOURCE), Access.READ) == "source"
    assert statements.region(region(ring, 7, 2), Access.READ) == "&ring[6]"


@pytest.mark.parametrize(
    "scope",
    [None, GLOBAL, WORKSPACE, pool_scope("dtcm"), Scope(GLOBAL.rank, "texture")],
    ids=str,
)
def test_storage_that_nobody_decided_has_no_text(scope: Scope | None) -> None:
    """S17: an allocation inside a kernel that is neither private nor on the stack never reaches C."""
    b = BodyBuilder()
    b.allocate(Buffer("scratch", (16,), I8, 1), Storage(scope))
    with pytest.raises(InternalError, match=r"storage of 'scratch' .* was not decided"):
        text(b)


@pytest.mark.parametrize("kind", [CallKind.CPACKED, CallKind.PACKED])
def test_calls_without_a_form_in_c_are_refused(kind: CallKind) -> None:
    b = BodyBuilder()
    b.call("f", region(SOURCE), kind=kind)
    with pytest.raises(InternalError, match=kind.value):
        text(b)


def test_an_empty_sequence_is_no_text() -> None:
    writer = Writer()
    StatementWriter(writer).sequence(Seq(()))
    assert writer.text().strip() == ""
