"""Segments: which steps may run together, and that they compute then what they computed one after the other."""

from __future__ import annotations

from collections import Counter

import pytest

from bytewright import ir
from bytewright.storage.rows.fuse_rows import fuse_rows
from bytewright.storage.rows.segment import Segment, segment_of
from bytewright.storage.rows.steps import read_rows
from support.ir_program import read_module
from support.row_programs import RowText, results, row_program
from support.tiers import TIMES


@pytest.mark.parametrize("odd", [False, True])
def test_any_segment_computes_the_same(odd: bool) -> None:
    found = Counter[int]()
    for seed in range(60):
        module = row_program(seed, odd=odd).module
        program, wanted = read_rows(module), results(module)
        for first in range(program.num_steps):
            for end in range(first + 2, program.num_steps + 1):
                segment = segment_of(program, first, end)
                if segment is not None:
                    assert results(fuse_rows(module, [segment])) == wanted, (seed, first, end)
                    found[segment.num_steps] += 1
    assert sum(found.values()) > 60
    assert sum(found[size] for size in (4, 5, 6)) > 8


def test_segments_with_steps_that_rise_compute_the_same() -> None:
    """All of up to five steps; some of them make two or three rows of one, with borders inside or beyond."""
    rising = 0
    for seed in range(200, 200 + 40 * TIMES):
        module = row_program(seed, odd=seed % 4 == 0, rises=True).module
        program, wanted = read_rows(module), results(module)
        for first in range(program.num_steps):
            for end in range(first + 2, min(program.num_steps, first + 5) + 1):
                segment = segment_of(program, first, end)
                if segment is not None and len(set(segment.schedule.rates)) > 1:
                    assert results(fuse_rows(module, [segment])) == wanted, (seed, first, end)
                    windows = [w for n in range(first, end) for w in program.steps[n].reads.values()]
                    rising += any(window.divisor > 1 for window in windows)
    assert rising > 40


def test_several_segments_compute_the_same() -> None:
    """Each beginning where the one before it ends, as long as possible."""
    num_segments = 0
    for seed in range(100, 140):
        module = row_program(seed, 9).module
        segments = longest_segments(module)
        num_segments += len(segments) > 1
        assert results(fuse_rows(module, segments)) == results(module), seed
    assert num_segments > 5


def longest_segments(module: ir.Module) -> list[Segment]:
    program, first = read_rows(module), 0
    segments: list[Segment] = []
    while first < program.num_steps:
        found = (
            segment_of(program, first, end) for end in range(min(first + 4, program.num_steps), first + 1, -1)
        )
        segment = next((s for s in found if s is not None), None)
        segments.extend([] if segment is None else [segment])
        first = first + 1 if segment is None else segment.end
    return segments


def segment(program: RowText, first: int, end: int) -> Segment | None:
    return segment_of(read_rows(program.module), first, end)


def three_steps(last: str = "window", middle: str = "") -> RowText:
    """x -> a -> b -> y; the last step reads b, and `a` too if that is asked for."""
    program = RowText()
    program.parameter("x", 8, "r")
    program.allocate("a", 8)
    program.allocate("b", 8)
    program.parameter("y", 8, "w")
    first = program.kernel(["x"], "a", [program.window("x", 0, 1, 1, 1, 0)])
    program.statements.append(program.call(first, ["x"], "a"))
    second = program.kernel(["a"], "b", [program.window("a", 0, 1, 3, 1, -1)])
    program.statements += [middle] * bool(middle) + [program.call(second, ["a"], "b")]
    sources, reads = ["b"], [program.window("b", 0, 1, 1, 1, 0)]
    if last != "window":
        sources.append("a")
        reads.append(program.window("a", 1, 1, 1, 1, 0) if last == "both" else program.whole("a", 1))
    third = program.kernel(sources, "y", reads)
    program.statements.append(program.call(third, sources, "y"))
    return program


def test_a_chain() -> None:
    found = segment(three_steps(), 0, 3)
    assert found is not None
    assert found.rings == {"a": 3, "b": 1}
    assert (found.num_steps, found.schedule.leads) == (3, (1, 0, 0))
    part = segment(three_steps(), 0, 2)
    assert part is not None
    assert part.rings == {"a": 3}


def test_two_readers() -> None:
    found = segment(three_steps("both"), 0, 3)
    assert found is not None
    assert found.rings == {"a": 3, "b": 1}
    assert segment(three_steps("both"), 0, 2) is None  # `a` is needed later, so nothing becomes smaller


def test_a_step_that_needs_all_of_what_another_one_makes() -> None:
    assert segment(three_steps("whole"), 0, 3) is None
    rest = segment(three_steps("whole"), 1, 3)
    assert rest is not None
    assert rest.rings == {"b": 1}


@pytest.mark.parametrize(
    "middle", ["for t : i32 in 0 .. 2 { call_extern k0(&x, &c, 0, 8) }", "let n : i32 = 3"]
)
def test_nothing_stands_between(middle: str) -> None:
    program = three_steps(middle=middle)
    program.statements.insert(0, "allocate c : buffer<1x8x3xi32>")
    number = 1 + middle.startswith("for")
    assert segment(program, 0, number + 2) is None
    assert segment(program, number, number + 2) is not None


def test_allocations_may_stand_between() -> None:
    assert segment(three_steps(middle="allocate c : buffer<1x8x3xi32>"), 0, 3) is not None


def test_calls_of_some_rows_are_no_steps() -> None:
    program = three_steps()
    program.statements[-1] = program.statements[-1].replace("0, 8)", "0, 7)")
    assert set(read_rows(program.module).steps) == {0, 1}


def test_a_tensor_that_is_made_twice() -> None:
    program = three_steps()
    program.statements.insert(3, program.call("k0", ["x"], "a"))
    assert not read_rows(program.module).tensors.keys() & {"a"}
    assert segment(program, 0, 2) is None
    assert segment(program, 0, 4) is None


def test_rows_that_are_columns_to_the_reader() -> None:
    """A row of four elements, by its elements."""
    text = """
module m
kernel k0(x : buffer<1x1x4xi32> r, y : buffer<1x1x4xi32> w, row_begin : i32, row_end : i32) on cpu {
  for y0 : i32 in row_begin .. row_end { for c : i32 in 0 .. 4 { y[0, y0, c] = x[0, y0, c] + 1 } }
}
kernel k1(x : buffer<1x1x4xi32> r, y : buffer<1x4x1xi32> w, row_begin : i32, row_end : i32) on cpu {
  for y0 : i32 in row_begin .. row_end { y[0, y0, 0] = x[0, 0, y0] * 2 }
}
kernel k2(x : buffer<1x4x1xi32> r, y : buffer<1x4x1xi32> w, row_begin : i32, row_end : i32) on cpu {
  for y0 : i32 in row_begin .. row_end { y[0, y0, 0] = x[0, y0, 0] * 2 }
}
entry main(x : buffer<1x1x4xi32> r, a : buffer<1x1x4xi32> w, y : buffer<1x4x1xi32> w) on cpu {
  allocate b : buffer<1x4x1xi32>
  call_extern k0(&x, &a, 0, 1)
  call_extern k1(&a, &b, 0, 4)
  call_extern k2(&b, &y, 0, 4)
}
"""
    program = read_rows(read_module(text))
    assert set(program.steps) == {0, 1, 2}
    assert segment_of(program, 0, 3) is None
    assert segment_of(program, 1, 3) is not None


def test_kernels_of_other_devices_are_steps_as_well() -> None:
    module = three_steps().module
    moved = tuple(
        ir.PrimFunc(k.name, k.parameters, k.body, device="npu") if k.name == "k1" else k
        for k in module.kernels
    )
    changed = ir.Module("m", kernels=moved, entries=module.entries)
    assert set(read_rows(changed).steps) == {0, 1, 2}
    assert set(read_rows(changed).tensors) == {"a", "b"}


def test_a_kernel_is_made_for_each_way_it_is_called() -> None:
    """One kernel in three places of the entry: in a segment with two rings, at its end, and outside."""
    program = RowText()
    program.parameter("x", 8, "r")
    for name in "abc":
        program.allocate(name, 8)
    program.parameter("y", 8, "w")
    kernel = program.kernel(["x"], "a", [program.window("x", 0, 1, 3, 1, -1)])
    for source, result in ("xa", "ab", "bc", "cy"):
        program.statements.append(program.call(kernel, [source], result))
    module = program.module
    found = segment_of(read_rows(module), 0, 3)
    assert found is not None
    fused = fuse_rows(module, [found])
    assert [kernel.name for kernel in fused.kernels] == ["k0", "k0_rows", "k0_rows_1", "k0_rows_2"]
    assert results(fused) == results(module)
    everything = segment_of(read_rows(module), 0, 4)
    assert everything is not None
    assert fuse_rows(module, [everything]).kernels[0].name == "k0_rows"  # nobody calls k0 any more


def test_no_segments_leave_the_module_as_it_is() -> None:
    module = three_steps().module
    assert fuse_rows(module, []) is module
