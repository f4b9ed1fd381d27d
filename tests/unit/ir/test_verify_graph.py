"""Operators that run functions: one test per rule of the verifier, their text, and what they compute."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bytewright.ir.data import TensorData
from bytewright.ir.graph import Array, Constant, Function, Node, Operation, Value
from bytewright.ir.module import Module
from bytewright.ir.text.modules import module_data, print_module
from bytewright.ir.types import DType, TensorType
from bytewright.ir.verify.stages import Stage, find_violations
from bytewright.ir.where import NOWHERE
from bytewright.ops.control import Call, CondIf, Loop
from bytewright.ops.data import Identity, Reshape
from bytewright.ops.elementwise import Add, Clamp, Mul
from bytewright.ops.registry import OPERATIONS
from support.evaluate.evaluate_graph import evaluate_graph
from support.parsing import parse_module

I32, BOOL = DType.I32, DType.BOOL
FOUR = TensorType((4,), I32)
FLAG = TensorType((1,), BOOL)


def value(name: str, type_: TensorType = FOUR) -> Value:
    return Value(name, type_)


def node(operation: Operation, inputs: str, *outputs: Value) -> Node:
    return Node(operation, tuple(inputs.split()), outputs, NOWHERE)


DOUBLE = Function("double", (value("d"),), (node(Add(), "d d", value("twice")),), ("twice",))
SQUARE = Function("square", (value("s"),), (node(Mul(), "s s", value("squared")),), ("squared",))
SWAP = Function("swap", (value("l"), value("r")), (), ("r", "l"))
FLAT = Function("flat", (value("f", TensorType((2, 2), I32)),), (), ("f",))


def main(*nodes: Node, results: str = "y") -> Function:
    return Function("main", (value("flag", FLAG), value("x"), value("z")), nodes, tuple(results.split()))


def module(*functions: Function) -> Module:
    return Module("m", functions)


def faults(*functions: Function) -> list[str]:
    return [violation.text for violation in find_violations(module(*functions), Stage.IMPORTED)]


def of_one(operation: Operation, inputs: str = "x", *outputs: Value) -> list[str]:
    return faults(DOUBLE, SQUARE, SWAP, FLAT, main(node(operation, inputs, *(outputs or (value("y"),)))))


def test_functions_that_run_functions_keep_to_the_rules():
    assert of_one(Call("double")) == []
    assert of_one(CondIf("double", "square"), "flag x") == []
    assert of_one(Loop("swap", 3), "x z", value("y"), value("w")) == []
    assert of_one(Loop("double", 0)) == []


def test_a_callee_exists():
    assert of_one(Call("ghost")) == ["there is no function 'ghost'"]
    assert of_one(CondIf("double", "ghost"), "flag x") == ["there is no function 'ghost'"]


def test_a_callee_stands_before_its_caller():
    first = Function("first", (value("a"),), (node(Call("double"), "a", value("b")),), ("b",))
    assert faults(first, DOUBLE, main(results="x")) == [
        "function 'double' stands behind 'first', which runs it"
    ]


@pytest.mark.parametrize("operation", [Call("main"), Loop("main", 2)])
def test_a_function_does_not_run_itself(operation: Operation):
    assert of_one(operation) == ["'main' runs itself"]


def test_arguments_are_as_many_as_parameters():
    assert of_one(Call("double"), "x z") == ["operands do not fit: 2 arguments, but 1 parameters of 'double'"]
    assert of_one(CondIf("double", "square"), "flag") == [
        "operands do not fit: 0 arguments, but 1 parameters of 'double'"
    ]


def test_arguments_have_the_types_of_parameters():
    assert of_one(Call("flat")) == [
        "operands do not fit: argument 0 is tensor<4xi32>, parameter 0 of 'flat' is tensor<2x2xi32>"
    ]
    assert of_one(Call("double"), "flag") == [
        "operands do not fit: argument 0 is tensor<1xbool>, parameter 0 of 'double' is tensor<4xi32>"
    ]


def test_results_are_as_stated():
    assert of_one(Call("double"), "x", value("y", FLAG)) == [
        "'y' is stated as tensor<1xbool>, inferred as tensor<4xi32>"
    ]
    assert of_one(Call("swap"), "x z") == ["the operator has 2 results, not 1"]


def test_a_condition_is_one_truth_value():
    assert of_one(CondIf("double", "square"), "x z") == [
        "operands do not fit: the condition is i32, not bool"
    ]
    wide = Function("main", (value("many", TensorType((2,), BOOL)), value("x")), (), ("x",))
    wide = replace(wide, nodes=(node(CondIf("double", "square"), "many x", value("y")),))
    assert faults(DOUBLE, SQUARE, wide) == [
        "operands do not fit: the condition has shape [2], not one element"
    ]
    assert of_one(CondIf("double", "square"), "") == ["operands do not fit: the condition is missing"]


@pytest.mark.parametrize("shape", [(), (1,), (1, 1, 1)])
def test_a_condition_may_have_any_number_of_axes(shape: tuple[int, ...]):
    flag = value("flag", TensorType(shape, BOOL))
    chooses = node(CondIf("double", "square"), "flag x", value("y"))
    assert faults(DOUBLE, SQUARE, Function("main", (flag, value("x")), (chooses,), ("y",))) == []


def test_both_arms_take_and_give_the_same():
    assert of_one(CondIf("double", "flat"), "flag x") == [
        "operands do not fit: argument 0 is tensor<4xi32>, parameter 0 of 'flat' is tensor<2x2xi32>"
    ]
    nothing = Function("nothing", (value("n"),), (), ())
    text = "operands do not fit: 0 results of 'nothing', but 1 results of 'double'"
    chooses = node(CondIf("double", "nothing"), "flag x", value("y"))
    assert faults(DOUBLE, nothing, main(chooses)) == [text]


def test_a_body_takes_what_it_gives():
    shape = Function(
        "shape", (value("p"),), (node(Reshape((2, 2)), "p", value("q", TensorType((2, 2), I32))),), ("q",)
    )
    assert faults(shape, main(node(Loop("shape", 2), "x", value("y", TensorType((2, 2), I32))))) == [
        "operands do not fit: result 0 of 'shape' is tensor<2x2xi32>, parameter 0 of 'shape' is tensor<4xi32>"
    ]


@pytest.mark.parametrize("count", [-1, 1 << 31])
def test_a_number_of_iterations_is_a_number_of_turns(count: int):
    assert of_one(Loop("double", count)) == [
        f"operands do not fit: {count} iterations are not possible, but 0 to 2147483647"
    ]


def test_names_are_unique_in_the_whole_module():
    again = replace(SQUARE, name="double")
    assert "function 'double' exists 2 times" in faults(DOUBLE, again, main(results="x"))
    other = Function("other", (value("d"),), (), ("d",))
    assert faults(DOUBLE, other, main(results="x")) == ["value 'd' exists 2 times"]


def test_a_function_sees_constants_and_no_values_of_others():
    peeks = Function("peeks", (), (node(Identity(), "d", value("e")),), ("e",))
    assert faults(DOUBLE, peeks, main(results="x")) == ["'d' is used before it is defined"]


def data(*numbers: int) -> Array:
    return np.array(numbers, np.int32)


def evaluated(*functions: Function, flag: bool = True) -> list[list[int]]:
    three = Constant("three", TensorData.from_array(data(3, 3, 3, 3), I32))
    whole = replace(module(*functions), constants=(three,))
    assert find_violations(whole, Stage.IMPORTED) == ()
    inputs = (np.array([flag]), data(1, 2, 3, -4), data(5, 6, 7, 8))
    return [result.tolist() for result in evaluate_graph(whole, inputs)]


def test_a_call_gives_the_results_of_its_function():
    assert evaluated(SQUARE, main(node(Call("square"), "x", value("y")))) == [[1, 4, 9, 16]]
    both = main(node(Call("swap"), "x z", value("y"), value("w")), results="y w")
    assert evaluated(SWAP, both) == [[5, 6, 7, 8], [1, 2, 3, -4]]


@pytest.mark.parametrize(("flag", "wanted"), [(True, [2, 4, 6, -8]), (False, [1, 4, 9, 16])])
def test_a_conditional_gives_the_results_of_one_arm(flag: bool, wanted: list[int]):
    chooses = main(node(CondIf("double", "square"), "flag x", value("y")))
    assert evaluated(DOUBLE, SQUARE, chooses, flag=flag) == [wanted]


@pytest.mark.parametrize(("count", "wanted"), [(0, [1, 2, 3, -4]), (1, [2, 4, 6, -8]), (3, [8, 16, 24, -32])])
def test_a_loop_carries_its_values(count: int, wanted: list[int]):
    assert evaluated(DOUBLE, main(node(Loop("double", count), "x", value("y")))) == [wanted]


@pytest.mark.parametrize(("count", "wanted"), [(2, [1, 2, 3, -4]), (3, [5, 6, 7, 8])])
def test_carried_values_may_change_places(count: int, wanted: list[int]):
    assert evaluated(SWAP, main(node(Loop("swap", count), "x z", value("y"), value("w")))) == [wanted]


def test_a_loop_in_an_arm_in_a_loop():
    add = Function("add", (value("a"),), (node(Add(), "a three", value("b")),), ("b",))
    twice = Function("twice", (value("c"),), (node(Loop("add", 2), "c", value("e")),), ("e",))
    step = Function(
        "step",
        (value("on", FLAG), value("g")),
        (node(CondIf("twice", "double"), "on g", value("h")), node(Clamp(-50, 20), "h", value("i"))),
        ("on", "i"),
    )
    whole = main(node(Loop("step", 3), "flag x", value("on2", FLAG), value("y")))
    assert evaluated(add, twice, DOUBLE, step, whole, flag=True) == [[19, 20, 20, 14]]
    assert evaluated(add, twice, DOUBLE, step, whole, flag=False) == [[8, 16, 20, -32]]


def test_ten_thousand_functions_in_a_chain_are_followed():
    functions = [DOUBLE]
    for number in range(10_000):
        runs = node(Call(functions[-1].name), f"p{number}", value(f"r{number}"))
        functions.append(Function(f"f{number}", (value(f"p{number}"),), (runs,), (f"r{number}",)))
    assert evaluated(*functions, main(node(Call("f9999"), "x", value("y")))) == [[2, 4, 6, -8]]


def test_text_of_operators_that_run_functions_is_read_back():
    whole = module(
        DOUBLE,
        SQUARE,
        main(
            node(CondIf("double", "square"), "flag x", value("a")),
            node(Loop("double", 5), "a", value("b")),
            node(Call("square"), "b", value("y")),
        ),
    )
    text = print_module(whole)
    assert '%a : tensor<4xi32> = cond_if(%flag, %x) {then_branch="double", else_branch="square"}' in text
    assert '%b : tensor<4xi32> = loop(%a) {body="double", num_iterations=5}' in text
    assert '%y : tensor<4xi32> = call(%b) {callee="square"}' in text
    assert parse_module(text, module_data(whole), OPERATIONS) == whole
