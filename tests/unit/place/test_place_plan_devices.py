"""Every value of the graph gets a device; what is placed already keeps its place."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from bytewright.frontends.tflite import import_tflite
from bytewright.ir.graph import Function
from bytewright.ir.module import Module
from bytewright.ir.scope import pool_scope
from bytewright.ir.types import VirtualDevice
from bytewright.ir.verify.stages import Stage, verify
from bytewright.ops.arithmetic.numerics import Numerics
from bytewright.place.plan_devices import plan_devices
from bytewright.target.registry import load_target
from support.three_devices import three_devices

DIGITS = Path(__file__).resolve().parents[3] / "examples" / "digits" / "digits.tflite"


def imported() -> Module:
    return import_tflite(DIGITS, name=None, numerics=Numerics.LITERT_REF)


def places(function: Function) -> list[VirtualDevice]:
    values = [*function.parameters, *(value for node in function.nodes for value in node.outputs)]
    return [value.type.place for value in values]


def test_every_value_is_placed() -> None:
    target = load_target("mps3-an547")
    module = plan_devices(imported(), target)
    assert set(places(module.graph)) == {VirtualDevice("cpu", "mps3-an547", None)}
    verify(module, Stage.PLACED, target)


def test_what_has_a_place_keeps_it() -> None:
    module = imported()
    graph = module.graph
    first = graph.nodes[0]
    place = VirtualDevice("dsp", None, pool_scope("shared"))
    value = replace(first.outputs[0], type=replace(first.outputs[0].type, place=place))
    graph = replace(graph, nodes=(replace(first, outputs=(value,)), *graph.nodes[1:]))
    placed = plan_devices(replace(module, functions=(graph,)), three_devices())
    found = {value.name: value.type.place for node in placed.graph.nodes for value in node.outputs}
    assert found[value.name] == VirtualDevice("dsp", "three", pool_scope("shared"))
    (second,) = graph.nodes[1].outputs
    assert found[second.name] == VirtualDevice("cpu", "three", None)


def test_placing_again_changes_nothing_and_the_input_is_left_alone() -> None:
    module, target = imported(), load_target("host")
    placed = plan_devices(module, target)
    assert plan_devices(placed, target) == placed
    assert set(places(module.graph)) == {VirtualDevice()}
