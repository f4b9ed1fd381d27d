"""Random graphs with functions, conditionals and loops, annotated at random, for devices that reach memory in parts."""

from __future__ import annotations

from random import Random

import numpy as np
from hypothesis import assume, example, given
from hypothesis import strategies as st

from bytewright.diagnostics import CompileError
from bytewright.ir import Io
from bytewright.ir.analyses.homes import missing_copies
from bytewright.ir.module import Module
from bytewright.ir.scope import is_within
from bytewright.ir.verify.stages import Stage, verify
from bytewright.ops.placement import DeviceCopy, OnDevice
from bytewright.place.plan_devices import plan_devices
from support.evaluate.evaluate_graph import evaluate_graph
from support.placed_graphs import form_of, shuffled, values_of, without_each_copy
from support.random_calls import random_calls
from support.random_graphs import RandomGraph, random_graph
from support.three_devices import annotated, three_devices

SEEDS = st.integers(0, 1 << 32)
BORDERS = st.sampled_from((Io.CALLER, Io.WORKSPACE))
MACHINES = {
    "narrow": three_devices(),
    "wide": three_devices(wide=True),
    "hops": three_devices(mover=False),  # CPU and NPU copy to each other by way of the DSP's memory alone
}
NAMES = st.sampled_from(sorted(MACHINES))


def drawn(
    seed: int, *, copies: bool = True, scopes: bool = True, is_large: bool = False
) -> tuple[RandomGraph, Module, Random]:
    random = Random(seed)
    graph = random_graph(random, most_families=6, most_nodes=8) if is_large else random_graph(random)
    often = random.choice((0.1, 0.3, 0.6))
    return graph, annotated(graph.module, random, often=often, copies=copies, scopes=scopes), random


def placed_or_refused(module: Module, machine: str, io: Io) -> Module | None:
    """None where annotations contradict each other; nothing else may be wrong with these graphs."""
    try:
        return plan_devices(module, MACHINES[machine], io=io)
    except CompileError as error:
        if {diagnostic.code for diagnostic in error.diagnostics} <= {"BW701", "BW702"}:
            return None
        raise


def test_most_random_graphs_can_be_placed() -> None:
    """So that what the properties say is said of something: with copies, on several devices, of functions."""
    placed = [
        placed_or_refused(drawn(seed)[1], "wide" if seed % 2 else "narrow", Io.CALLER) for seed in range(80)
    ]
    found = [module for module in placed if module is not None]
    assert len(found) > 60
    operations = [node.operation for module in found for f in module.functions for node in f.nodes]
    assert sum(isinstance(operation, DeviceCopy) for operation in operations) > 60
    assert not any(isinstance(operation, OnDevice) for operation in operations)
    devices = {v.type.place.device for module in found for f in module.functions for v in values_of(f)}
    assert devices == {"cpu", "dsp", "npu"}


@given(SEEDS, NAMES, BORDERS)
def test_a_placed_graph_verifies_and_computes_the_same(seed: int, machine: str, io: Io) -> None:
    graph, module, _ = drawn(seed)
    placed = placed_or_refused(module, machine, io)
    assume(placed is not None)
    assert placed is not None
    verify(placed, Stage.PLACED, MACHINES[machine], module, "plan_devices")
    for inputs in graph.inputs(2):
        for own, wanted in zip(evaluate_graph(placed, inputs), graph.expected(inputs), strict=True):
            np.testing.assert_array_equal(own, wanted)


@given(SEEDS, NAMES, BORDERS)
@example(1798, "narrow", Io.CALLER)  # what a function gives twice is the application's, as is said later
def test_placing_again_changes_nothing(seed: int, machine: str, io: Io) -> None:
    """But where the application is told where it may have what no device copies: then what it is told is found anew."""
    io = Io.WORKSPACE if machine == "hops" else io
    placed = placed_or_refused(drawn(seed)[1], machine, io)
    assume(placed is not None)
    assert placed is not None
    assert plan_devices(placed, MACHINES[machine], io=io) == placed


@given(SEEDS, st.booleans(), NAMES, BORDERS)
@example(5273, True, "narrow", Io.CALLER)  # two functions pass their first parameters on to a third one
def test_names_and_order_change_nothing_but_names(seed: int, is_large: bool, machine: str, io: Io) -> None:
    _, module, random = drawn(seed, is_large=is_large)
    assert_names_and_order_change_nothing(module, random, machine, io)


@given(SEEDS, BORDERS)
@example(75, Io.CALLER)
@example(490, Io.CALLER)
@example(3109, Io.CALLER)  # told apart by what else reads what they are passed
@example(3904, Io.CALLER)
def test_names_and_order_do_not_decide_between_functions_that_are_alike(seed: int, io: Io) -> None:
    random = Random(seed)
    assert_names_and_order_change_nothing(random_calls(random), random, "hops" if seed % 2 else "narrow", io)


def test_functions_that_are_alike_compete() -> None:
    """So that the property says something: parameters that could not be one memory with what is passed."""
    placed = [placed_or_refused(random_calls(Random(seed)), "narrow", Io.CALLER) for seed in range(80)]
    inner = [f for module in placed if module is not None for f in module.functions[:-1]]
    assert sum(any(isinstance(n.operation, DeviceCopy) for n in f.nodes) for f in inner) > 5


def assert_names_and_order_change_nothing(module: Module, random: Random, machine: str, io: Io) -> None:
    placed = placed_or_refused(module, machine, io)
    other, back = shuffled(module, random)
    given_names = frozenset(value.name for function in module.functions for value in values_of(function))
    again = placed_or_refused(other, machine, io)
    assert (placed is None) == (again is None)
    if placed is not None and again is not None:
        assert form_of(placed, {}, given_names) == form_of(again, back, given_names)


@given(SEEDS, st.booleans(), NAMES, BORDERS)
@example(236, True, "narrow", Io.CALLER)  # an explicit copy between devices that share a pool
@example(675, False, "wide", Io.CALLER)  # a loop whose function gives a constant, which is nobody's memory
@example(2059, False, "hops", Io.CALLER)  # an input in memory of the application that not all devices reach
def test_no_copy_can_be_taken_away(seed: int, copies: bool, machine: str, io: Io) -> None:
    """But one of a result out of a pool to the application, which the application asks for by having no such pool.

    The application is told where it may have the rest: a copy that is there only where it is not told is one too many.
    An explicit copy is asked for, too; it cannot be another name of what it copies.
    """
    _, module, _ = drawn(seed, copies=copies, scopes=False)
    placed = placed_or_refused(module, machine, io)
    assume(placed is not None)
    assert placed is not None
    explicit = frozenset(value.name for function in module.functions for value in values_of(function))
    operations = {v.name: n.operation for f in placed.functions for n in f.nodes for v in n.outputs}
    for name, without in without_each_copy(placed, explicit):
        operation = operations[name]
        assert isinstance(operation, DeviceCopy)
        source = operation.source.scope
        if name in placed.graph.results and source is not None and io is Io.CALLER:
            continue
        assert list(missing_copies(without, MACHINES[machine], is_told=io is Io.CALLER))


@given(SEEDS, NAMES)
def test_places_only_narrow(seed: int, machine: str) -> None:
    """What an annotation of an operator's result asks for holds: the device, and a pool within the scope."""
    _, module, _ = drawn(seed, copies=False)
    placed = placed_or_refused(module, machine, Io.CALLER)
    assume(placed is not None)
    assert placed is not None
    places = {value.name: value.type.place for function in placed.functions for value in values_of(function)}
    for function in module.functions:
        computed = {v.name for n in function.nodes if hasattr(n.operation, "evaluate") for v in n.outputs}
        for node in function.nodes:
            operation, (name, *_) = node.operation, (*node.inputs, "")
            control = next((n for n in function.nodes if name in [v.name for v in n.outputs]), None)
            if not isinstance(operation, OnDevice) or control is None or name not in computed:
                continue
            if isinstance(control.operation, OnDevice) or hasattr(control.operation, "callees"):
                continue
            assert operation.device in (None, places[name].device)
            assert is_within(places[name].scope, operation.place.scope)
