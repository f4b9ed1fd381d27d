"""lower_graph keeps the meaning of every operator: the entry, evaluated, equals the numpy references of the graph."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from bytewright.diagnostics import CompileError
from bytewright.frontends.tflite import import_content
from bytewright.ir.module import Module
from bytewright.ir.prim import Access, Allocate, Call
from bytewright.ir.scope import WORKSPACE
from bytewright.ir.types import DType
from bytewright.lower.lower_graph import lower_graph
from bytewright.ops.convolution import Conv2d
from bytewright.ops.data import Reshape, Slice
from bytewright.ops.elementwise import Clamp
from bytewright.ops.pooling import MaxPool2d
from bytewright.place.plan_devices import plan_devices
from bytewright.target.registry import load_target
from support.lowering import TARGETS, Draft, assert_same_meaning, lowered, random_inputs, run_main
from support.random_graphs import RandomGraph, graphs
from support.random_models import CASES, RandomModel, num_examples, operator_models
from support.random_networks import random_network

I8, I32, F32 = DType.I8, DType.I32, DType.F32


@pytest.mark.parametrize(("kind", "dtype"), CASES)
def test_operators_keep_their_meaning(kind: str, dtype: str) -> None:
    target = TARGETS[CASES.index((kind, dtype)) % 2]

    @settings(
        max_examples=num_examples(kind, 6),
        deadline=None,
        suppress_health_check=list(HealthCheck),
        database=None,
    )
    @given(model=operator_models(kind, dtype))
    def check(model: RandomModel) -> None:
        module = import_content(model.content, "random.tflite")
        assert_same_meaning(module, target, [model.inputs(seed) for seed in (0, 2)])

    check()


@pytest.mark.parametrize("dtype", ["int8", "float32"])
@pytest.mark.parametrize("number", range(6))
def test_networks_keep_their_meaning(number: int, dtype: str) -> None:
    model = random_network(200 + number, dtype, size=4)
    module = import_content(model.content, "random.tflite")
    assert_same_meaning(module, TARGETS[number % 2], [model.inputs(2)])


def _two_pools() -> Draft:
    draft = Draft()
    draft.parameter("x", (1, 4, 4, 2), I8)
    draft.node("a/out", MaxPool2d((2, 2), (1, 1), (0, 0, 0, 0)), "x")
    draft.node("b/out", MaxPool2d((2, 2), (1, 1), (0, 0, 0, 0)), "a/out")
    return draft


def test_the_entry_calls_kernels_in_order_on_workspace_buffers() -> None:
    module = lower_graph(_placed(_two_pools(), "b/out"), load_target("host"))
    allocation, first, second = module.main.body.statements
    assert isinstance(allocation, Allocate)
    assert isinstance(first, Call)
    assert isinstance(second, Call)
    assert (allocation.buffer.name, allocation.scope, allocation.buffer.alignment) == (
        "a/out",
        WORKSPACE,
        16,
    )
    assert (first.callee, second.callee) == ("hand_a", "hand_b")
    assert (first.operators, second.operators) == (("a/out",), ("b/out",))
    accesses = [(p.buffer.name, p.access) for p in module.main.buffer_parameters]
    assert accesses == [("x", Access.READ), ("b/out", Access.WRITE)]
    assert module.functions == ()
    assert module.constants == ()


def _placed(draft: Draft, *results: str) -> Module:
    return plan_devices(draft.module(*results), load_target("host"))


def test_a_reshape_costs_nothing() -> None:
    draft = _two_pools()
    draft.node("flat", Reshape((4, 2)), "b/out")
    draft.node("c/out", Clamp(-5, 5), "flat")
    module = assert_same_meaning(draft.module("c/out"))
    assert len(module.kernels) == 3
    allocated = [s.buffer.name for s in module.main.body.statements if isinstance(s, Allocate)]
    assert allocated == ["a/out", "b/out"]


@pytest.mark.parametrize(
    "results",
    [
        ("b/out", "a/out"),
        ("b/out", "b/out"),
        ("x", "b/out"),
        ("x", "x"),
        ("flat", "a/out", "flat"),
        ("three", "b/out", "three"),
        ("raw", "x"),
    ],
    ids="-".join,
)
def test_results_of_every_kind(results: tuple[str, ...]) -> None:
    """A tensor that later operators read, one twice, an input, a reshape, a constant."""
    draft = _two_pools()
    draft.node("flat", Reshape((4, 2)), "b/out")
    draft.node("raw", Reshape((32,)), "x")
    draft.constant("three", [1, 2, 3], I8)
    module = assert_same_meaning(draft.module(*results))
    names = [p.buffer.name for p in module.main.buffer_parameters]
    assert len(names) == len(set(names))


def test_equal_constants_are_stored_once() -> None:
    draft = Draft()
    draft.parameter("x", (1, 3, 3, 1), I8)
    for name, source in (("a", "x"), ("b", "a_clamped")):
        draft.constant(f"{name}_w", np.arange(9).reshape(1, 3, 3, 1), I8)
        draft.constant(f"{name}_b", [5], I32)
        operation = Conv2d((1, 1), (1, 1, 1, 1), (1, 1), 0)
        draft.node(f"{name}", operation, source, f"{name}_w", f"{name}_b")
        draft.rescale(f"{name}_clamped", f"{name}", 0.01)
    module = assert_same_meaning(draft.module("b_clamped"))
    names = sorted(constant.buffer.name for constant in module.constant_buffers)
    assert names == ["a/bias", "a/weights", "a/zero_points"]


def test_parts_of_one_operator_have_kernels_of_different_names() -> None:
    draft = Draft()
    draft.parameter("x", (4,), I8)
    draft.node("split_0/out_0", Slice((0,), (2,), (1,)), "x")
    draft.node("split_0/out_1", Slice((2,), (2,), (1,)), "x")
    module = lowered(draft.module("split_0/out_0", "split_0/out_1"))
    assert [kernel.name for kernel in module.kernels] == ["hand_split_0", "hand_split_0_part1"]
    first, second = run_main(module, random_inputs(draft.module("x"), 3))
    x = random_inputs(draft.module("x"), 3)[0]
    assert [*first, *second] == [*x]


def test_all_operators_that_overflow_are_told_at_once() -> None:
    draft = Draft()
    draft.parameter("x", (1, 2, 2, 1), I8)
    for name in ("a", "b"):
        draft.constant(f"{name}_w", np.full((1, 2, 2, 1), 127), I8)
        draft.constant(f"{name}_b", [2**31 - 1], I32)
        draft.node(name, Conv2d((1, 1), (0, 0, 0, 0), (1, 1), 0), "x", f"{name}_w", f"{name}_b")
        draft.rescale(f"{name}_out", name, 0.01)
    with pytest.raises(CompileError) as caught:
        lowered(draft.module("a_out", "b_out"))
    assert [diagnostic.code for diagnostic in caught.value.diagnostics] == ["BW110", "BW110"]
    first = caught.value.diagnostics[0]
    assert first.message.startswith("the accumulator ranges from")
    assert first.where == "hand.tflite, operator a"


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck), database=None)
@given(graphs())
def test_functions_conditionals_and_loops_keep_their_meaning(graph: RandomGraph) -> None:
    """The entry, by the evaluator of PrimFuncs, computes what numpy does."""
    module = lowered(graph.module)
    for inputs in graph.inputs(2):
        for found, wanted in zip(run_main(module, inputs), graph.expected(inputs), strict=True):
            np.testing.assert_array_equal(found, wanted, strict=True)
