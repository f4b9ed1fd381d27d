"""blocks_of: what a loop carries, what it copies at the end of a turn, and in which order."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bytewright.compiler.pipeline import plan_model
from bytewright.graph.inline_calls import inline_calls
from bytewright.inspect.check_plan import faults_of_plan
from bytewright.ir.module import Module
from bytewright.ir.prim import Allocate, For, If
from bytewright.ir.verify.stages import Stage, verify
from bytewright.ir.verify.written import unwritten
from bytewright.ir.walk import walk_statements
from bytewright.lower.blocks import Body, blocks_of
from bytewright.ops.registry import OPERATIONS
from bytewright.target.registry import load_target
from support.evaluate.evaluate_graph import evaluate_graph
from support.lowering import lowered, run_main
from support.parsing import parse_module

TYPE = "tensor<4xi8>"


def looped(parameters: str, nodes: str, results: str, count: int = 3) -> Module:
    """A model that is a loop: its inputs are what is carried, its outputs what is carried out."""
    names = parameters.split()
    typed = ", ".join(f"%{name} : {TYPE}" for name in names)
    inputs = ", ".join(f"%in_{name} : {TYPE}" for name in names)
    given = ", ".join(f"%in_{name}" for name in names)
    outputs = ", ".join(f"%out_{name} : {TYPE}" for name in names)
    text = (
        f"module m func body({typed}) -> ({', '.join('%' + name for name in results.split())}) {{ {nodes} }}\n"
        f"func main({inputs}) -> ({', '.join(f'%out_{name}' for name in names)}) "
        f'{{ {outputs} = loop({given}) {{body="body", num_iterations={count}}} }}'
    )
    module = parse_module(text, {}, OPERATIONS)
    verify(module, Stage.IMPORTED)
    return module


def step(result: str, operand: str, low: int = -128) -> str:
    return f"%{result} : {TYPE} = clamp(%{operand}) {{minimum={low}, maximum=127}}"


def body_of(module: Module) -> Body:
    body = blocks_of(inline_calls(module), set())["body"].body
    assert body is not None
    kernels = lowered(module)
    assert unwritten(kernels) == ()
    inputs = [
        np.array([1, 2, 3, 4], np.int8) * (number + 1) for number in range(len(module.graph.parameters))
    ]
    for found, wanted in zip(run_main(kernels, inputs), evaluate_graph(module, inputs), strict=True):
        np.testing.assert_array_equal(found, wanted)
    return body


def moves(body: Body) -> list[tuple[str, int | None]]:
    return [(move.source, move.number) for move in body.moves]


def test_a_value_that_is_computed_from_the_old_one_is_copied_at_the_end() -> None:
    body = body_of(looped("a", step("b", "a", 2), "b"))
    assert moves(body) == [("b", 0)]
    assert [(c.number, c.is_read, c.written) for c in body.carried] == [(0, True, None)]


def test_a_value_is_written_at_once_where_nothing_reads_the_old_one_any_more() -> None:
    pool = f"%p : {TYPE} = identity(%a) %q : {TYPE} = identity(%p)"
    body = body_of(looped("a", pool, "q"))
    assert moves(body) == []
    assert [c.written for c in body.carried] == ["q"]


def test_a_value_that_the_body_ignores_does_not_enter() -> None:
    module = looped("a b", step("c", "b", 2), "c c")
    body = body_of(module)
    assert [(c.number, c.is_read) for c in body.carried] == [(0, False), (1, True)]


def test_what_every_turn_gives_on_is_not_carried() -> None:
    body = body_of(looped("a b", step("c", "b", 2), "a c"))
    assert [c.number for c in body.carried] == [1]
    assert body_of(looped("a b", "", "a b")) == Body((), ())


@pytest.mark.parametrize("count", [2, 3])
def test_two_values_that_change_places_take_a_detour(count: int) -> None:
    body = body_of(looped("a b", "", "b a", count))
    assert moves(body) == [("a", None), ("b", 0), ("a/kept", 1)]


def test_three_values_in_a_ring_and_one_that_follows() -> None:
    body = body_of(looped("a b c d", "", "b c a a"))
    assert moves(body)[0] == ("a", 3), "nothing reads d, so it is first"
    assert len(moves(body)) == 5


def test_values_that_move_up_need_no_detour() -> None:
    body = body_of(looped("a b c", step("n", "c", 2), "b c n"))
    assert moves(body) == [("b", 0), ("c", 1), ("n", 2)]


def test_one_value_for_two_results() -> None:
    body = body_of(looped("a b", step("n", "a", 2), "n n"))
    assert sorted(number for _, number in moves(body) if number is not None) in ([0], [0, 1])


def conditional() -> Module:
    text = (
        f"module m input %k0 : tensor<1xi32> input %x0 : {TYPE} output %z : {TYPE}\n"
        f"func low(%a : {TYPE}) -> (%b) {{ {step('b', 'a', 2)} }}\n"
        f"func same(%c : {TYPE}) -> (%c) {{}}\n"
        f"func turn(%k : tensor<1xi32>, %x : {TYPE}) -> (%k, %y) {{\n"
        "%f : tensor<1xbool> = greater(%k, %k)\n"
        f'%y : {TYPE} = cond_if(%f, %x) {{then_branch="low", else_branch="same"}} }}\n'
        f"func main(%k0 : tensor<1xi32>, %x0 : {TYPE}) -> (%z) {{\n"
        f'%k1 : tensor<1xi32>, %z : {TYPE} = loop(%k0, %x0) {{body="turn", num_iterations=2}} }}'
    )
    return parse_module(text, {}, OPERATIONS)


def test_an_arm_does_nothing_for_what_it_gives_on_in_its_place() -> None:
    blocks = blocks_of(inline_calls(conditional()), set())
    low, same = blocks["low"], blocks["same"]
    assert low.tied == same.tied == ((0, 0),)
    assert (same.function.nodes, same.body) == ((), Body((), ()))
    assert moves(low.body) == [("b", 0)]


def arms(then: str, results: str, then_of: str = "") -> Module:
    """A loop whose turns run one of two arms over two values: the first is given, the second gives them on."""
    two = f"{TYPE}, %{{}} : {TYPE}"
    text = (
        f"module m input %k0 : tensor<1xi32> input %x0 : {TYPE} input %y0 : {TYPE}\n"
        f"output %z : {TYPE} output %w : {TYPE}\n"
        f"func then(%a : {two.format('b')}) -> ({results}) {{ {then} }}\n"
        f"func same(%c : {two.format('d')}) -> (%c, %d) {{}}\n"
        f"func turn(%k : tensor<1xi32>, %x : {two.format('y')}) -> (%k, %p, %q) {{\n"
        "%f : tensor<1xbool> = greater(%k, %k)\n"
        f'%p : {two.format("q")} = cond_if(%f, %x, %y) {{then_branch="then", else_branch="same"}} {then_of} }}\n'
        f"func main(%k0 : tensor<1xi32>, %x0 : {two.format('y0')}) -> (%z, %w) {{\n"
        f"%k1 : tensor<1xi32>, %z : {two.format('w')} = "
        'loop(%k0, %x0, %y0) {body="turn", num_iterations=3} }'
    )
    return parse_module(text, {}, OPERATIONS)


@pytest.mark.parametrize(
    ("results", "wanted"),
    [
        ("%b, %a", [("a", None), ("b", 0), ("a/kept", 1)]),
        ("%b, %b", [("b", 0)]),
        ("%n, %a", [("a", 1), ("n", 0)]),
        ("%n, %n", [("n", 0)]),  # and is written where the other was, which nothing reads
        ("%n, %b", [("n", 0)]),
    ],
)
def test_an_arm_moves_what_changes_places(results: str, wanted: list[tuple[str, int | None]]) -> None:
    """As a turn of a loop does."""
    module = arms(step("n", "a", 2), results)
    assert sorted(moves(blocks_of(inline_calls(module), set())["then"].body), key=str) == sorted(
        wanted, key=str
    )
    inputs = [np.array([5], np.int32), *(np.array([1, 2, 3, 4], np.int8) * factor for factor in (1, -2))]
    for found, expected in zip(
        run_main(lowered(module), inputs), evaluate_graph(module, inputs), strict=True
    ):
        np.testing.assert_array_equal(found, expected)


def test_a_result_whose_operand_is_read_again_lies_beside_it() -> None:
    module = arms(step("n", "a", 2), "%n, %b", step("again", "x", 1))
    module = replace(
        module,
        functions=tuple(
            replace(f, results=("k", "p", "again")) if f.name == "turn" else f for f in module.functions
        ),
    )
    blocks = blocks_of(inline_calls(module), set())
    assert blocks["then"].tied == ()
    assert len(blocks["same"].function.nodes) == len(blocks["same"].function.results)


def test_a_branch_reads_its_condition_in_a_tick_of_its_own() -> None:
    module = lowered(conditional())
    kinds = [type(statement) for statement in walk_statements(module.main.body)]
    assert kinds.count(If) == kinds.count(For) == 1
    assert [s.buffer.name for s in walk_statements(module.main.body) if isinstance(s, Allocate)] == ["f", "b"]
    plan = plan_model(module, load_target("host")).plan
    (condition,) = plan.conditions
    step_before = next(step for step in plan.steps if "f" in step.writes)
    assert condition.tick == step_before.ticks[1]
    assert (condition.buffer, condition.device, condition.loop) == ("f", "cpu", (1, 3))
    live = plan.buffers["f"].live
    assert live is not None
    assert live[1] == condition.tick + 1
    assert faults_of_plan(plan) == []


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"tick": 0}, "step 0 has the ticks 0 to 3, after tick 1"),
        ({"tick": 1}, "a branch has tick 1, in a step or after the end"),
        ({"buffer": "ghost"}, "a branch is on 'ghost', which is no buffer of one byte"),
        ({"buffer": "y"}, "a branch is on 'y', which is no buffer of one byte"),
        ({"device": "npu"}, "a branch is taken by 'npu', which the target does not have"),
        ({"loop": (0, 1)}, "a branch is in a loop of steps 0 to 1, which does not exist"),
    ],
)
def test_a_plan_whose_branches_are_wrong_is_refused(change: dict[str, object], fault: str) -> None:
    plan = plan_model(lowered(conditional()), load_target("host")).plan
    (condition,) = plan.conditions
    changed = replace(plan, conditions=(replace(condition, **change),))  # type: ignore[arg-type]
    assert fault in faults_of_plan(changed)


def test_a_branch_on_what_is_dead_or_not_written_is_refused() -> None:
    plan = plan_model(lowered(conditional()), load_target("host")).plan
    buffer = plan.buffers["f"]
    tick = plan.conditions[0].tick
    lower, upper = buffer.live or (0, 0)
    dead = {**plan.buffers, "f": replace(buffer, live=(lower, upper - 1))}
    fault = f"a branch in tick {tick} is on 'f', which is not alive then"
    assert fault in faults_of_plan(replace(plan, buffers=dead))
    steps = tuple(
        replace(s, writes=tuple(n for n in s.writes if n != "f"), reads=(*s.reads,)) for s in plan.steps
    )
    steps = tuple(
        replace(s, scratch=(*s.scratch, "f")) if "f" in s.alive and "f" not in s.reads else s for s in steps
    )
    fault = f"a branch in tick {tick} is on 'f', which no step before it has written"
    assert fault in faults_of_plan(replace(plan, steps=steps))
