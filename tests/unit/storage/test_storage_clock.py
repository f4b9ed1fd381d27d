"""The clock: three ticks a call, lifetimes of inputs, results and scratch, loops widened."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bytewright.diagnostics import InternalError
from bytewright.ir.analyses.clock import Timeline, read_clock
from bytewright.ir.builder import BodyBuilder, load, region
from bytewright.ir.expr import const
from bytewright.ir.module import Module
from bytewright.ir.prim import LoopKind
from bytewright.ir.scope import WORKSPACE
from bytewright.ir.storage import Storage
from bytewright.storage.place_scratch import place_scratch
from bytewright.target.registry import load_target
from support.hand_built import WHERE, chain, module_of, reverse_kernel, tensor

SIZE = 8
HOST = load_target("host")
KERNEL = reverse_kernel("k", SIZE, num_scratch=0)


def lifetimes(timeline: Timeline) -> dict[str, tuple[int, int]]:
    return {live.buffer.name: (live.lower, live.upper) for live in timeline.buffers}


def test_three_ticks_a_call() -> None:
    timeline = read_clock(chain("m", [KERNEL] * 3, SIZE), HOST)
    assert [step.ticks for step in timeline.steps] == [(0, 3), (3, 6), (6, 9)]
    assert timeline.num_ticks == 9
    assert [step.index for step in timeline.steps] == [0, 1, 2]
    assert timeline.steps[1].touched == ("t0/out", "t1/out")


def test_inputs_die_after_the_body_and_results_are_born_in_it() -> None:
    """So a call's input and result coexist in its body, and what was read before it is free for its result."""
    found = lifetimes(read_clock(chain("m", [KERNEL] * 3, SIZE), HOST))
    assert found == {"x": (0, 2), "y": (7, 9), "t0/out": (1, 5), "t1/out": (4, 8)}


def test_scratch_lives_in_the_body_alone() -> None:
    kernel = reverse_kernel("k", SIZE, WORKSPACE)
    module = place_scratch(chain("m", [kernel] * 2, SIZE), load_target("host"))
    found = lifetimes(read_clock(module, HOST))
    assert (found["t0/scratch0"], found["y/scratch0"]) == ((1, 3), (5, 7))


def test_a_buffer_lives_from_its_first_to_its_last_call() -> None:
    body = BodyBuilder(("x", "y"))
    early, late = (
        body.allocate(tensor("early", SIZE), Storage(WORKSPACE)),
        body.allocate(tensor("late", SIZE), Storage(WORKSPACE)),
    )
    first, last = tensor("x", SIZE), tensor("y", SIZE)
    for source, result in ((first, early), (early, late), (late, last), (early, last)):
        body.call("k", region(source), region(result), where=WHERE)
    timeline = read_clock(module_of("m", [KERNEL], body.finish(), first, last), HOST)
    assert lifetimes(timeline)["early"] == (1, 11)
    assert timeline.steps_touching()["early"] == (0, 3)


def test_outputs_live_to_the_end_and_inputs_from_the_start() -> None:
    body = BodyBuilder(("x", "y"))
    a, b = (
        body.allocate(tensor("a", SIZE), Storage(WORKSPACE)),
        body.allocate(tensor("b", SIZE), Storage(WORKSPACE)),
    )
    first, last = tensor("x", SIZE), tensor("y", SIZE)
    for source, result in ((a, b), (first, last), (a, b)):
        body.call("k", region(source), region(result), where=WHERE)
    found = lifetimes(read_clock(module_of("m", [KERNEL], body.finish(), first, last), HOST))
    assert (found["x"], found["y"]) == ((0, 5), (4, 9))


def looped(kind: LoopKind = LoopKind.SERIAL, inside: bool = True) -> Module:
    """A call before, a loop of two calls, a call after; `outer` is used in the loop, `inner` born in it."""
    body = BodyBuilder(("x", "y"))
    first, last = tensor("x", SIZE), tensor("y", SIZE)
    outer, before, after = (
        body.allocate(tensor(name, SIZE), Storage(WORKSPACE)) for name in ("outer", "before", "after")
    )
    body.call("k", region(first), region(before), where=WHERE)
    with body.for_("turn", 0, 4, kind):
        inner = body.allocate(tensor("inner", SIZE), Storage(WORKSPACE)) if inside else before
        body.call("k", region(before), region(inner), where=WHERE)
        body.call("k", region(inner), region(outer), where=WHERE)
    body.call("k", region(before), region(after), where=WHERE)
    body.call("k", region(after), region(last), where=WHERE)
    return module_of("m", [KERNEL], body.finish(), first, last)


def test_what_a_loop_uses_lives_for_the_whole_loop() -> None:
    found = lifetimes(read_clock(looped(), HOST))
    assert found["outer"] == (3, 9)  # first touched at tick 7, but another turn may come round
    assert found["before"] == (1, 11)
    assert found["inner"] == (4, 8)  # born inside: each turn has its own
    assert found["after"] == (10, 14)


def test_what_a_loop_does_not_touch_is_not_widened() -> None:
    body = BodyBuilder(("x", "y"))
    first, last = tensor("x", SIZE), tensor("y", SIZE)
    early = body.allocate(tensor("early", SIZE), Storage(WORKSPACE))
    body.call("k", region(first), region(early), where=WHERE)
    with body.for_("turn", 0, 4):
        body.call("k", region(first), region(last), where=WHERE)
    found = lifetimes(read_clock(module_of("m", [KERNEL], body.finish(), first, last), HOST))
    assert found["early"] == (1, 2)
    assert found["x"] == (0, 6)


def test_nested_loops_widen_to_the_outermost() -> None:
    body = BodyBuilder(("x", "y"))
    first, last = tensor("x", SIZE), tensor("y", SIZE)
    held = body.allocate(tensor("held", SIZE), Storage(WORKSPACE))
    with body.for_("slow", 0, 2):
        body.call("k", region(first), region(last), where=WHERE)
        with body.for_("quick", 0, 2):
            body.call("k", region(first), region(held), where=WHERE)
        body.call("k", region(first), region(last), where=WHERE)
    found = lifetimes(read_clock(module_of("m", [KERNEL], body.finish(), first, last), HOST))
    assert found["held"] == (0, 9)


def test_allocations_in_a_parallel_loop_are_refused() -> None:
    with pytest.raises(InternalError, match="inside the parallel loop 'turn'"):
        read_clock(looped(LoopKind.PARALLEL), HOST)
    assert lifetimes(read_clock(looped(LoopKind.PARALLEL, inside=False), HOST))["outer"] == (3, 9)


def test_both_branches_of_a_condition_take_time() -> None:
    body = BodyBuilder(("x", "y"))
    first, last = tensor("x", SIZE), tensor("y", SIZE)
    a, b = (
        body.allocate(tensor("a", SIZE), Storage(WORKSPACE)),
        body.allocate(tensor("b", SIZE), Storage(WORKSPACE)),
    )
    with body.for_("turn", 0, 2) as turn:
        with body.if_(turn < 1):
            body.call("k", region(first), region(a), where=WHERE)
        with body.else_():
            body.call("k", region(first), region(b), where=WHERE)
    body.call("k", region(a), region(last), where=WHERE)
    found = lifetimes(read_clock(module_of("m", [KERNEL], body.finish(), first, last), HOST))
    assert (found["a"], found["b"]) == ((0, 8), (0, 6))


def test_arguments_of_an_unknown_function_live_throughout_the_call() -> None:
    body = BodyBuilder(("x", "y"))
    first, last = tensor("x", SIZE), tensor("y", SIZE)
    held = body.allocate(tensor("held", SIZE), Storage(WORKSPACE))
    body.call("k", region(first), region(held), where=WHERE)
    body.call("elsewhere", region(held), region(last), where=WHERE)
    timeline = read_clock(module_of("m", [KERNEL], body.finish(), first, last), HOST)
    assert lifetimes(timeline)["held"] == (1, 6)
    assert lifetimes(timeline)["y"] == (3, 6)


def test_an_opaque_call_says_who_touches_its_arguments() -> None:
    body = BodyBuilder(("x", "y"))
    first, last = tensor("x", SIZE), tensor("y", SIZE)
    touched = (("cpu", "npu"), ("npu",))
    body.call("elsewhere", region(first), region(last), touched_by=touched, where=WHERE)
    timeline = read_clock(module_of("m", [], body.finish(), first, last), HOST)
    devices = {live.buffer.name: live.devices for live in timeline.buffers}
    assert devices["x"] == ("cpu", "npu")


def test_a_kernel_touches_its_arguments_on_its_own_device() -> None:
    kernels = [replace(KERNEL, name="a"), replace(KERNEL, name="b", device="npu")]
    timeline = read_clock(chain("m", kernels, SIZE), HOST)
    devices = {live.buffer.name: live.devices for live in timeline.buffers}
    assert devices["t0/out"] == ("cpu", "npu")
    assert [step.device for step in timeline.steps] == ["cpu", "npu"]


def test_an_allocation_that_nothing_uses_has_no_lifetime() -> None:
    body = BodyBuilder(("x", "y"))
    first, last = tensor("x", SIZE), tensor("y", SIZE)
    body.allocate(tensor("unused", SIZE), Storage(WORKSPACE))
    body.call("k", region(first), region(last), where=WHERE)
    assert "unused" not in lifetimes(read_clock(module_of("m", [KERNEL], body.finish(), first, last), HOST))


def test_the_entry_touches_memory_only_in_calls() -> None:
    body = BodyBuilder(("x", "y"))
    first, last = tensor("x", SIZE), tensor("y", SIZE)
    body.store(last, const(0), load(first, 0))
    with pytest.raises(InternalError, match="outside of a call"):
        read_clock(module_of("m", [], body.finish(), first, last), HOST)
