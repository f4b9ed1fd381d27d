"""Calls of an NPU share a scratch where it is proved that nothing in it is lost; else each has its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from bytewright import ir
from bytewright.frontends.tflite.importer import import_content
from bytewright.graph.inline_calls import inline_calls
from bytewright.ir.walk import walk_statements
from bytewright.lower.lower_graph import lower_graph
from bytewright.ops.arithmetic.numerics import Numerics
from bytewright.ops.data import Identity
from bytewright.ops.ethos_u import EthosU
from bytewright.target.registry import load_target
from support.ethos_u import ADD_ON_CPU, SHARED, U55, needs_vela, vela
from support.shared_models import RESNET8, model_path

pytestmark = needs_vela
Change = Callable[[ir.Function], ir.Function]


def scratches(change: Change) -> list[int]:
    """The sizes of the scratches of ResNet8 with its additions on the CPU, its graph changed before."""
    content = vela(model_path(RESNET8).read_bytes(), U55, SHARED, *ADD_ON_CPU)
    module = import_content(content, "m.tflite", numerics=Numerics.TFLM)
    module = replace(module, functions=(change(module.graph),))
    lowered = lower_graph(inline_calls(module), load_target("corstone-300-u55"))
    found = [each for each in walk_statements(lowered.main.body) if isinstance(each, ir.Allocate)]
    return [ir.extent_bytes(each.buffer) for each in found if each.buffer.name.endswith("scratch")]


def calls(graph: ir.Function) -> list[int]:
    return [number for number, node in enumerate(graph.nodes) if isinstance(node.operation, EthosU)]


def with_node(graph: ir.Function, number: int, node: ir.Node) -> ir.Function:
    return replace(graph, nodes=(*graph.nodes[:number], node, *graph.nodes[number + 1 :]))


def with_input_at(offset: int, call: int) -> Change:
    """The input of a call lies elsewhere."""

    def change(graph: ir.Function) -> ir.Function:
        number = calls(graph)[call]
        node = graph.nodes[number]
        assert isinstance(node.operation, EthosU)
        return with_node(
            graph, number, replace(node, operation=replace(node.operation, input_offsets=(offset,)))
        )

    return change


def read_again(result: int) -> Change:
    """A result of the first call is read after all calls, too."""

    def change(graph: ir.Function) -> ir.Function:
        value = graph.nodes[calls(graph)[0]].outputs[result]
        again = ir.Node(Identity(), (value.name,), (replace(value, name="again"),), graph.nodes[0].where)
        return replace(graph, nodes=(*graph.nodes, again), results=(*graph.results, "again"))

    return change


def test_calls_share_a_scratch_of_what_the_largest_needs() -> None:
    assert scratches(lambda graph: graph) == [51840]


@pytest.mark.parametrize(
    "change",
    [
        with_input_at(0, call=1),  # the addition would write over its first operand
        with_input_at(32768 - 16, call=1),  # or over some bytes of its second
        read_again(0),  # results of the second call lie over it
        read_again(1),  # what the second call works with goes over it
    ],
)
def test_where_bytes_would_be_lost_each_call_has_its_own(change: Change) -> None:
    assert len(scratches(change)) == 4
