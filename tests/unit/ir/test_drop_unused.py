"""drop_unused: statements without effect are gone, the others stay as they are."""

from __future__ import annotations

from collections import ChainMap

import pytest

from bytewright.ir.builder import BodyBuilder, load, region
from bytewright.ir.drop_unused import drop_unused
from bytewright.ir.expr import Buffer
from bytewright.ir.prim import Allocate, BufferParameter, InstructionCall, Seq
from bytewright.ir.text.primfuncs import format_statement
from bytewright.ir.types import DType
from bytewright.ir.walk import walk_statements
from bytewright.lower.isa.mve.convolve import sum_block

I32 = DType.I32
SOURCE = Buffer("source", (4,), I32, 4)
TARGET = Buffer("target", (4,), I32, 4)


def kept(b: BodyBuilder) -> list[str]:
    """What stands in the body afterwards, one line a statement."""
    body = drop_unused(b.finish())
    assert drop_unused(body) == body
    return [format_statement(s, ChainMap()) for s in walk_statements(body) if not isinstance(s, Seq)]


def test_a_sum_that_nobody_reads_goes_with_its_loop_and_its_names() -> None:
    b = BodyBuilder()
    accumulator = b.scalar("acc", I32, 0)
    with b.for_("k", 0, 4) as k:
        value = b.let("value", load(SOURCE, k) * 2)
        b.add_to(accumulator, (), value)
    b.let("unused", load(accumulator) + 1)
    b.store(TARGET, 0, 5)
    assert kept(b) == ["target[0] = 5"]


def test_what_reaches_a_parameter_stays() -> None:
    b = BodyBuilder()
    accumulator = b.scalar("acc", I32, 0)
    with b.for_("k", 0, 4) as k:
        b.add_to(accumulator, (), load(SOURCE, k))
    b.store(TARGET, 0, load(accumulator))
    body = b.finish()
    assert drop_unused(body) == body


def test_a_view_counts_only_while_it_is_read() -> None:
    b = BodyBuilder()
    scratch = b.scalar("first", I32, 1)
    view = b.view("seen", region(SOURCE, load(scratch)), I32, 2)
    b.let("unused", load(view, 0))
    b.store(TARGET, 0, 5)
    assert kept(b) == ["target[0] = 5"]


def test_empty_branches_go() -> None:
    b = BodyBuilder()
    with b.for_("y", 0, 4) as y:
        with b.if_(y < 2):
            b.let("unused", y + 1)
        with b.block():
            b.let("other", y + 2)
    b.store(TARGET, 1, 6)
    assert kept(b) == ["target[1] = 6"]


def test_buffers_that_only_feed_each_other_go() -> None:
    b = BodyBuilder()
    first, second = b.scalar("first", I32, 0), b.scalar("second", I32, 0)
    b.store(first, (), load(second))
    b.store(TARGET, 1, 6)
    assert kept(b) == ["target[1] = 6"]


@pytest.mark.parametrize("num_pixels", [1, 2])
@pytest.mark.parametrize("num_read", [0, 1])
def test_an_instruction_whose_results_nobody_reads_goes_with_its_registers(
    num_pixels: int, num_read: int
) -> None:
    """It has registers of its own, which are no effect; of several results one that is read keeps all."""
    b = BodyBuilder()
    instruction = sum_block(num_pixels, 8)
    shapes = [
        parameter.buffer for parameter in instruction.parameters if isinstance(parameter, BufferParameter)
    ]
    given = [Buffer(f"given{i}", (64,), each.dtype, 4) for i, each in enumerate(shapes[num_pixels:])]
    totals = [b.register(f"totals{i}", 4, I32, "int32x4_t") for i in range(num_pixels)]
    b.execute(instruction, *totals, *(region(buffer, 0) for buffer in given))
    b.store(TARGET, 1, load(totals[-1], 0) if num_read else 6)
    statements = list(walk_statements(drop_unused(b.finish())))
    registers = [s for s in statements if isinstance(s, Allocate) and s.buffer in totals]
    calls = [s for s in statements if isinstance(s, InstructionCall)]
    assert (len(registers), len(calls)) == ((num_pixels, 1) if num_read else (0, 0))
