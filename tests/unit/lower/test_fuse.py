"""fuse: which operators become one kernel."""

from __future__ import annotations

import numpy as np

from bytewright.ir.types import DType
from bytewright.lower.blocks import blocks_of
from bytewright.lower.elements import ELEMENTS
from bytewright.lower.fuse import FusedGraph
from bytewright.lower.kernels.registry import TEMPLATES
from bytewright.ops.arithmetic.numerics import Rounding
from bytewright.ops.control import Call as CallOperation
from bytewright.ops.control import CondIf, Loop
from bytewright.ops.convolution import Conv2d
from bytewright.ops.data import Reshape, Transpose
from bytewright.ops.elementwise import Add, Clamp
from bytewright.ops.ethos_u import EthosU
from bytewright.ops.placement import OnDevice
from bytewright.ops.quantization import Table
from bytewright.ops.registry import OPERATIONS
from bytewright.ops.rescale import Rescale
from bytewright.ops.softmax import TflSoftmax
from support.lowering import Draft, assert_same_meaning

I8, I32, F32 = DType.I8, DType.I32, DType.F32


def groups(draft: Draft, *results: str) -> list[list[str]]:
    """The names of the operators' results, group by group."""
    return [[node.outputs[0].name for node in group.nodes] for group in fused(draft, *results).groups]


def fused(draft: Draft, *results: str) -> FusedGraph:
    return blocks_of(draft.module(*results), set())["main"].fused


def test_every_operator_is_lowered_in_one_way() -> None:
    assert not set(ELEMENTS) & set(TEMPLATES)
    no_kernels = {CallOperation, CondIf, Loop, OnDevice, EthosU}
    assert {*ELEMENTS, *TEMPLATES, Reshape} == set(OPERATIONS.values()) - no_kernels


def convolution(draft: Draft, name: str, source: str) -> str:
    """1x1 over two channels, with its rescale: `<name>` is the int8 result."""
    draft.constant(f"{name}_w", np.array([[3, -2], [5, 7]]).reshape(2, 1, 1, 2), I8)
    draft.constant(f"{name}_b", [10, -20], I32)
    operation = Conv2d((1, 1), (0, 0, 0, 0), (1, 1), 0)
    draft.node(f"{name}_sum", operation, source, f"{name}_w", f"{name}_b")
    return draft.rescale(name, f"{name}_sum", [0.1, 0.25])


def widened(draft: Draft, name: str, source: str) -> str:
    draft.constant(f"{name}_m", [2**30], I32)
    draft.constant(f"{name}_s", [0], I8)
    return draft.node(name, Rescale(Rounding.DOUBLE_ROUND, 3, 0, 20, I32), source, f"{name}_m", f"{name}_s")


def start() -> Draft:
    draft = Draft()
    draft.parameter("x", (1, 2, 3, 2), I8)
    return draft


def test_a_convolution_takes_its_rescale_and_clamp() -> None:
    draft = start()
    draft.node("y", Clamp(-10, 10), convolution(draft, "c", "x"))
    assert groups(draft, "y") == [["c_sum", "c", "y"]]
    assert_same_meaning(draft.module("y"))


def test_what_has_two_readers_is_stored() -> None:
    draft = start()
    convolution(draft, "c", "x")
    draft.node("y", Clamp(-10, 10), "c")
    draft.node("z", Transpose((0, 2, 1, 3)), "c")
    assert groups(draft, "y", "z") == [["c_sum", "c"], ["y"], ["z"]]


def test_a_result_is_a_reader() -> None:
    draft = start()
    draft.node("y", Clamp(-10, 10), convolution(draft, "c", "x"))
    assert groups(draft, "y", "c") == [["c_sum", "c"], ["y"]]


def test_one_operand_may_be_read_twice_by_one_operator() -> None:
    draft = start()
    widened(draft, "w", "x")
    draft.node("y", Add(), "w", "w")
    draft.rescale("z", "y", 2.0**-21)
    assert groups(draft, "z") == [["w", "y", "z"]]
    assert_same_meaning(draft.module("z"))


def test_a_residual_joins_the_latest_convolution() -> None:
    draft = start()
    convolution(draft, "a", "x")
    convolution(draft, "b", "a")
    widened(draft, "wa", "a")
    widened(draft, "wb", "b")
    draft.node("sum", Add(), "wa", "wb")
    draft.rescale("y", "sum", 2.0**-21)
    assert groups(draft, "y") == [["a_sum", "a"], ["b_sum", "b", "wa", "wb", "sum", "y"]]
    assert_same_meaning(draft.module("y"))


def test_of_two_branches_one_is_stored() -> None:
    draft = start()
    convolution(draft, "a", "x")
    convolution(draft, "b", "x")
    widened(draft, "wa", "a")
    widened(draft, "wb", "b")
    draft.node("sum", Add(), "wa", "wb")
    draft.rescale("y", "sum", 2.0**-21)
    found = groups(draft, "y")
    assert found[0] == ["a_sum", "a"]
    assert sorted(found[1]) == ["b", "b_sum", "sum", "wa", "wb", "y"]
    assert_same_meaning(draft.module("y"))


def test_what_widens_waits_for_its_reader() -> None:
    """The int8 tensor is the one that is stored, not the int32 one."""
    draft = start()
    widened(draft, "w", convolution(draft, "c", "x"))
    draft.node("t", Transpose((0, 2, 1, 3)), "w")
    assert groups(draft, "t") == [["c_sum", "c"], ["w"], ["t"]]


def test_a_reshape_is_another_name() -> None:
    draft = start()
    draft.node("flat", Reshape((12,)), convolution(draft, "c", "x"))
    draft.node("row", Reshape((1, 12)), "flat")
    draft.node("y", Clamp(-10, 10), "row")
    found = fused(draft, "y")
    assert groups(draft, "y") == [["c_sum", "c"], ["y"]]
    assert (found.root("row"), found.root("flat"), found.root("c"), found.root("x")) == ("c", "c", "c", "x")
    assert_same_meaning(draft.module("y"))


def test_an_operand_that_is_broadcast_is_stored() -> None:
    """The anchor's loop runs over its own elements, so a group has one shape."""
    draft = Draft()
    draft.parameter("x", (1, 1, 2), F32)
    draft.parameter("y", (1, 3, 2), F32)
    draft.node("t", Transpose((1, 0, 2)), "x")
    draft.node("z", Add(), "t", "y")
    assert groups(draft, "z") == [["t"], ["z"]]
    assert_same_meaning(draft.module("z"))


def test_softmax_stands_alone() -> None:
    draft = Draft()
    draft.parameter("x", (2, 5), F32)
    draft.node("s", TflSoftmax(1.0), "x")
    draft.node("y", Clamp(0.0, 0.5), "s")
    assert groups(draft, "y") == [["s"], ["y"]]
    assert_same_meaning(draft.module("y"))


def test_element_wise_operators_alone_form_a_chain() -> None:
    draft = Draft()
    draft.parameter("x", (7,), I8)
    draft.constant("t", np.arange(127, -129, -1), I8)
    draft.node("a", Clamp(-50, 60), "x")
    draft.node("b", Table(), "a", "t")
    draft.node("c", Clamp(-40, 10), "b")
    found = fused(draft, "c")
    assert groups(draft, "c") == [["a", "b", "c"]]
    assert found.groups[0].anchor is None
    assert found.groups[0].output.name == "c"
    assert_same_meaning(draft.module("c"))


def test_groups_stand_where_their_last_operator_stood() -> None:
    """A group that reads two branches comes after both."""
    draft = start()
    convolution(draft, "a", "x")
    convolution(draft, "b", "x")
    draft.node("later", Transpose((0, 2, 1, 3)), "b")
    draft.node("y", Clamp(-10, 10), "a")
    assert groups(draft, "y", "later") == [["b_sum", "b"], ["later"], ["a_sum", "a", "y"]]
    assert_same_meaning(draft.module("y", "later"))
