"""Calls are replaced by what they call, and each arm and body is met at one place."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from random import Random

import numpy as np
import pytest
from hypothesis import example, given

from bytewright.diagnostics import CompileError
from bytewright.graph.inline_calls import MAX_NESTING, inline_calls
from bytewright.ir.data import TensorData
from bytewright.ir.graph import Constant, ControlOperation, Function, Node, Operation, Value
from bytewright.ir.module import Module
from bytewright.ir.scope import parse_scope
from bytewright.ir.types import DType, TensorType, VirtualDevice
from bytewright.ir.verify.stages import Stage, verify
from bytewright.ir.where import NOWHERE
from bytewright.ops.control import Call, CondIf, Loop
from bytewright.ops.data import Identity, Reshape
from bytewright.ops.elementwise import Add, Mul
from support.evaluate.evaluate_graph import evaluate_graph
from support.random_graphs import RandomGraph, graphs, random_graph

I32, BOOL = DType.I32, DType.BOOL
FOUR, FLAG = TensorType((4,), I32), TensorType((1,), BOOL)


@given(graphs())
def test_the_evaluator_computes_what_numpy_does_before_and_after(graph: RandomGraph) -> None:
    verify(graph.module, Stage.IMPORTED)
    inlined = inline_calls(graph.module)
    verify(inlined, Stage.IMPORTED, previous=graph.module, pass_name="inline_calls")
    for inputs in graph.inputs(2):
        wanted = graph.expected(inputs)
        for module in (graph.module, inlined):
            found = evaluate_graph(module, inputs)
            assert len(found) == len(wanted)
            for own, other in zip(found, wanted, strict=True):
                np.testing.assert_array_equal(own, other, strict=True)


@given(graphs())
@example(random_graph(Random(6096)))  # that a body gives a constant on is seen when its conditional is gone
def test_what_is_left_is_met_once_and_stays_as_it_is(graph: RandomGraph) -> None:
    inlined = inline_calls(graph.module)
    met = Counter(
        name
        for function in inlined.functions
        for node in function.nodes
        if isinstance(node.operation, ControlOperation)
        for name in node.operation.callees
    )
    assert set(met.values()) <= {1}
    assert sorted(met) == sorted(function.name for function in inlined.functions[:-1])
    assert not any(isinstance(n.operation, Call) for f in inlined.functions for n in f.nodes)
    assert inline_calls(inlined) == inlined


def value(name: str, type_: TensorType = FOUR) -> Value:
    return Value(name, type_)


def node(operation: Operation, inputs: str, *outputs: Value | str) -> Node:
    values = tuple(value(o) if isinstance(o, str) else o for o in outputs)
    return Node(operation, tuple(inputs.split()), values, NOWHERE)


def function(name: str, parameters: str, *nodes: Node, results: str) -> Function:
    return Function(name, tuple(map(value, parameters.split())), nodes, tuple(results.split()))


def main(*nodes: Node, results: str = "y") -> Function:
    return Function("main", (value("flag", FLAG), value("x"), value("z")), nodes, tuple(results.split()))


def inlined(*functions: Function) -> Module:
    ones = Constant("ones", TensorData.from_array(np.ones(4, np.int32), I32))
    true, false = (
        Constant(n, TensorData.from_array(np.array([n == "true"]), BOOL)) for n in ("true", "false")
    )
    module = Module("m", functions, (ones, true, false))
    verify(module, Stage.IMPORTED)
    result = inline_calls(module)
    verify(result, Stage.IMPORTED, previous=module, pass_name="inline_calls")
    return result


DOUBLE = function("double", "d", node(Add(), "d d", "twice"), results="twice")
SQUARE = function("square", "s", node(Mul(), "s s", "squared"), results="squared")
SWAP = function("swap", "l r", results="r l")


def lines(module: Module, number: int = -1) -> list[str]:
    return [
        f"{' '.join(v.name for v in node.outputs)} = {node.operation.name} {' '.join(node.inputs)}"
        for node in module.functions[number].nodes
    ]


def test_a_call_becomes_what_it_calls_under_the_names_of_the_place() -> None:
    twice = function("fourth", "a", node(Mul(), "a a", "b"), node(Mul(), "b b", "c"), results="c")
    module = inlined(
        twice, main(node(Call("fourth"), "x", "y"), node(Call("fourth"), "y", "w"), results="y w")
    )
    assert lines(module) == ["y/b = mul x x", "y = mul y/b y/b", "w/b = mul y y", "w = mul w/b w/b"]


def test_a_function_that_is_met_once_keeps_its_names() -> None:
    fourth = function("fourth", "a", node(Mul(), "a a", "b"), node(Mul(), "b b", "c"), results="c")
    assert lines(inlined(fourth, main(node(Call("fourth"), "x", "y")))) == ["b = mul x x", "y = mul b b"]


def test_names_that_are_taken_get_a_number() -> None:
    fourth = function("fourth", "a", node(Mul(), "a a", "b"), node(Mul(), "b b", "c"), results="c")
    taken = node(Add(), "x x", "y/b")
    calls = (node(Call("fourth"), "x", "y"), node(Call("fourth"), "y", "w"))
    assert lines(inlined(fourth, main(taken, *calls)))[:2] == ["y/b = add x x", "y/b_1 = mul x x"]


def test_results_that_are_parameters_or_one_value_twice_are_other_names() -> None:
    module = inlined(
        SWAP, main(node(Call("swap"), "x z", "y", "w"), node(Add(), "y ones", "v"), results="v w")
    )
    assert lines(module) == ["v = add z ones"]
    assert module.graph.results == ("v", "x")
    both = function("both", "b", node(Mul(), "b b", "c"), results="c c")
    module = inlined(both, main(node(Call("both"), "x", "y", "w"), node(Add(), "y w", "v"), results="v w"))
    assert lines(module) == ["y = mul x x", "v = add y y"]
    assert module.graph.results == ("v", "y")


@pytest.mark.parametrize(("condition", "wanted"), [("true", "add"), ("false", "mul")])
def test_a_condition_that_is_known_is_decided(condition: str, wanted: str) -> None:
    module = inlined(DOUBLE, SQUARE, main(node(CondIf("double", "square"), f"{condition} x", "y")))
    assert lines(module) == [f"y = {wanted} x x"]
    assert len(module.functions) == 1


def test_a_condition_that_is_a_constant_in_another_shape_is_decided() -> None:
    flag = TensorType((), BOOL)
    shape = node(Reshape(()), "true", value("on", flag))
    module = inlined(DOUBLE, SQUARE, main(shape, node(CondIf("double", "square"), "on x", "y")))
    assert lines(module)[1:] == ["y = add x x"]


def test_arms_that_are_one_function_and_a_loop_of_one_turn_are_calls() -> None:
    assert lines(inlined(DOUBLE, main(node(CondIf("double", "double"), "flag x", "y")))) == ["y = add x x"]
    assert lines(inlined(DOUBLE, main(node(Loop("double", 1), "x", "y")))) == ["y = add x x"]


def test_a_loop_of_no_turn_is_nothing() -> None:
    module = inlined(DOUBLE, main(node(Loop("double", 0), "x", "y")))
    assert (lines(module), module.graph.results) == ([], ("x",))


def test_what_has_no_results_is_left_out() -> None:
    nothing = function("nothing", "n", node(Mul(), "n n", "m"), results="")
    none = main(
        node(Call("nothing"), "x"),
        node(CondIf("nothing", "nothing"), "flag x"),
        node(Loop("nothing", 3), ""),
        results="x",
    )
    none = replace(none, nodes=none.nodes[:2])
    assert lines(inlined(nothing, none)) == []


def test_arms_and_bodies_get_functions_of_their_own() -> None:
    module = inlined(
        DOUBLE,
        SQUARE,
        main(
            node(CondIf("double", "square"), "flag x", "y"),
            node(CondIf("square", "double"), "flag x", "w"),
            node(Loop("double", 4), "w", "v"),
            results="y v",
        ),
    )
    names = [function.name for function in module.functions]
    assert names == ["v/double", "w/double", "w/square", "y/square", "y/double", "main"]
    assert [v.name for v in module.functions[0].parameters] == ["v/d"]
    assert module.functions[0].results == ("v/twice",)


def test_constants_that_are_given_become_the_functions_own() -> None:
    weigh = function("weigh", "a by", node(Mul(), "a by", "b"), results="b by")
    module = inlined(weigh, main(node(Loop("weigh", 3), "x ones", "y", "w"), results="y w"))
    assert lines(module) == ["y = loop x"]
    assert lines(module, 0) == ["b = mul a ones"]
    assert module.graph.results == ("y", "ones")
    add = function("add", "p q", node(Add(), "p q", "r"), results="r")
    mul = function("mul", "t u", node(Mul(), "t u", "v"), results="v")
    module = inlined(add, mul, main(node(CondIf("add", "mul"), "flag x ones", "y")))
    assert lines(module) == ["y = cond_if flag x"]
    assert [lines(module, 0), lines(module, 1)] == [["v = mul t ones"], ["r = add p ones"]]


def test_a_constant_that_a_loop_begins_with_is_carried() -> None:
    module = inlined(DOUBLE, main(node(Loop("double", 3), "ones", "y")))
    assert lines(module) == ["y = loop ones"]
    assert len(module.functions[0].parameters) == 1


def placed(scope: str | None, device: str = "cpu") -> TensorType:
    return replace(FOUR, place=VirtualDevice(device, scope=parse_scope(scope) if scope else None))


def test_a_result_that_must_lie_elsewhere_is_copied() -> None:
    sram, dtcm = placed("global.sram"), placed("global.dtcm")
    give = Function("give", (value("g", sram),), (node(Mul(), "g g", value("h", sram)),), ("h",))
    whole = Function("main", (value("x", dtcm),), (node(Call("give"), "x", value("y", dtcm)),), ("y",))
    module = inlined(give, whole)
    assert lines(module) == ["g = identity x", "h = mul g g", "y = identity h"]
    assert [n.outputs[0].type for n in module.graph.nodes] == [sram, sram, dtcm]
    narrowed = Function(
        "main", (value("x", sram),), (node(Call("give"), "x", value("y", placed(None))),), ("y",)
    )
    module = inlined(give, narrowed)
    assert lines(module) == ["y = mul x x"]
    assert module.graph.nodes[0].outputs[0].type == sram


def test_arms_copy_what_must_lie_elsewhere() -> None:
    sram, dtcm = placed("global.sram"), placed("global.dtcm")
    arms = [
        Function(
            f"f{i}", (value(f"g{i}", sram),), (node(Mul(), f"g{i} g{i}", value(f"h{i}", sram)),), (f"h{i}",)
        )
        for i in (0, 1)
    ]
    flag = value("flag", replace(FLAG, place=VirtualDevice("cpu")))
    chooses = node(CondIf("f0", "f1"), "flag x", value("y", dtcm))
    module = inlined(*arms, Function("main", (flag, value("x", dtcm)), (chooses,), ("y",)))
    assert lines(module, 1) == ["g0 = identity g0/given", "h0 = mul g0 g0", "y/placed = identity h0"]
    assert [v.type for v in module.functions[1].parameters] == [dtcm]


def test_the_example_of_the_document() -> None:
    with pytest.raises(CompileError, match="the model has 1572862 operators, 1048576 are the most"):
        inline_calls(doubling(20))


def doubling(levels: int) -> Module:
    functions = [function("f0", "p0", node(Identity(), "p0", "r0"), results="r0")]
    for level in range(1, levels):
        calls = (
            node(Call(f"f{level - 1}"), f"p{level}", f"m{level}"),
            node(Call(f"f{level - 1}"), f"m{level}", f"r{level}"),
        )
        functions.append(function(f"f{level}", f"p{level}", *calls, results=f"r{level}"))
    return Module("doubling", tuple(functions))


@pytest.mark.parametrize("levels", [22, 2000])
def test_a_model_that_doubles_at_each_level_is_refused(levels: int) -> None:
    module = doubling(levels)
    with pytest.raises(CompileError) as caught:
        inline_calls(module)
    assert caught.value.diagnostics[0].code == "BW118"


def nested(levels: int) -> Module:
    functions = [DOUBLE]
    for level in range(levels):
        inside = functions[-1].name
        runs = node(Loop(inside, 2), f"p{level}", f"r{level}")
        functions.append(function(f"f{level}", f"p{level}", runs, results=f"r{level}"))
    return Module("deep", tuple(functions))


def test_what_nests_too_deeply_is_refused() -> None:
    inline_calls(nested(MAX_NESTING))
    with pytest.raises(CompileError, match="101 levels inside each other, 100 are the most") as caught:
        inline_calls(nested(MAX_NESTING + 1))
    assert caught.value.diagnostics[0].code == "BW119"


def test_long_chains_of_operators_and_of_functions_are_followed() -> None:
    nodes = [node(Identity(), "x" if i == 0 else f"v{i - 1}", f"v{i}") for i in range(100_000)]
    calls = [function("g0", "q0", node(Identity(), "q0", "w0"), results="w0")]
    for number in range(1, 5000):
        runs = node(Call(f"g{number - 1}"), f"q{number}", f"w{number}")
        calls.append(function(f"g{number}", f"q{number}", runs, results=f"w{number}"))
    last = node(Call("g4999"), "v99999", "y")
    module = inlined(*calls, main(*nodes, last))
    assert len(module.graph.nodes) == 100_001
    assert module.graph.nodes[-1].outputs[0].name == "y"
