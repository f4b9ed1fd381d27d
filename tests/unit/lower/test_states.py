"""What survives runs, from graphs to planned programs: each run finds what the last one left, whatever lies where."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from bytewright.compiler.pipeline import plan_model
from bytewright.ir.border import border_buffers
from bytewright.ir.data import TensorData
from bytewright.ir.graph import Constant, Function, Node, Value
from bytewright.ir.module import Module, Port
from bytewright.ir.storage import Border
from bytewright.ir.types import DType, TensorType
from bytewright.ir.walk import calls
from bytewright.ir.where import Where
from bytewright.lower.lower_graph import lower_graph
from bytewright.ops.data import Concat, Slice
from bytewright.ops.elementwise import Maximum
from bytewright.place.plan_devices import plan_devices
from bytewright.target.registry import load_target
from support.evaluate.evaluate import Evaluator
from support.state_programs import stateful_graph
from support.tiers import THOROUGH, some

HOST = load_target("host")
ROW = TensorType((1, 4), DType.I32)
SEEDS = range(400) if THOROUGH else some(range(100), every=4)


def values(evaluator: Evaluator, module: Module, inputs: list[np.ndarray]) -> list[np.ndarray]:
    """One run of a planned module."""
    given = border_buffers(module.main, Border.INPUT)
    arguments = {buffer.name: array for buffer, array in zip(given, inputs, strict=True)}
    return [*evaluator.run(module.main.name, arguments).values()]


@pytest.mark.parametrize("seed", SEEDS)
def test_a_planned_graph_keeps_what_it_gives(seed: int, tmp_path: Path) -> None:
    graph = stateful_graph(seed)
    if graph is None:
        pytest.skip("nothing to tie")
    module = plan_model(graph.write(tmp_path / "random.bw"), HOST).module
    evaluator = Evaluator(module)
    given, expected = graph.steps(4)
    for _ in range(2):
        for inputs, wanted in zip(given, expected, strict=True):
            for value, other in zip(values(evaluator, module, inputs), wanted, strict=True):
                np.testing.assert_array_equal(value, other, strict=True)
        evaluator.reset()


def lowered(
    *nodes: Node, states: tuple[str, ...], results: tuple[str, ...], outputs: tuple[str, ...]
) -> Module:
    """A graph of one input x and some states, lowered."""
    ports = tuple(Port(name, ROW) for name in states)
    function = Function(
        "main", tuple(Value(name, ROW) for name in ("x", *states)), nodes, (*outputs, *results)
    )
    one = Constant("one", TensorData.from_array(np.ones((1, 4), np.int32), DType.I32))
    module = Module(
        "m",
        (function,),
        (one,),
        inputs=(Port("x", ROW),),
        outputs=tuple(Port(f"y{number}", ROW) for number in range(len(outputs))),
        state=ports,
        numerics="tflm",
    )
    return lower_graph(plan_devices(module, HOST), HOST)


def larger(left: str, right: str, result: str) -> Node:
    return Node(Maximum(), (left, right), (Value(result, ROW),), Where("m"))


def steps(module: Module) -> int:
    return len(list(calls(module.main)))


def test_a_state_that_nothing_reads_any_more_is_written_at_once() -> None:
    wide = TensorType((1, 8), DType.I32)
    joined = Node(Concat(1), ("h", "x"), (Value("joined", wide),), Where("m"))
    shifted = Node(Slice((0, 4), (1, 4), (1, 1)), ("joined",), (Value("shifted", ROW),), Where("m"))
    module = lowered(joined, shifted, states=("h",), results=("shifted",), outputs=("shifted",))
    assert steps(module) == 3  # the output is a copy


def test_a_state_that_its_own_kernel_reads_is_copied_at_the_end() -> None:
    module = lowered(larger("h", "x", "most"), states=("h",), results=("most",), outputs=("most",))
    assert steps(module) == 3


def test_states_that_change_places_take_a_detour() -> None:
    module = lowered(larger("a", "x", "y"), states=("a", "b"), results=("b", "a"), outputs=("y",))
    evaluator = Evaluator(module)
    first, second = np.full((1, 4), 7, np.int32), np.full((1, 4), 9, np.int32)
    evaluator.reset({"a": first.tobytes(), "b": second.tobytes()})
    zeros = np.zeros((1, 4), np.int32)
    found = [int(values(evaluator, module, [zeros])[0][0, 0]) for _ in range(4)]
    assert found == [7, 9, 7, 9]


def test_a_state_may_become_a_constant_and_an_input() -> None:
    module = lowered(larger("a", "b", "y"), states=("a", "b"), results=("one", "x"), outputs=("y",))
    evaluator = Evaluator(module)
    given = [np.full((1, 4), number, np.int32) for number in (5, 6, 7)]
    found = [int(values(evaluator, module, [array])[0][0, 0]) for array in given]
    assert found == [0, 5, 6]


def test_a_state_that_stays_as_it_is_is_written_by_nobody() -> None:
    module = lowered(larger("a", "x", "y"), states=("a",), results=("a",), outputs=("y",))
    assert steps(module) == 1
