"""State in the IR: its text, what is refused, its lifetime, and what the evaluator keeps from run to run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from bytewright.diagnostics import CompileError
from bytewright.ir.analyses.clock import read_clock
from bytewright.ir.border import border_buffers
from bytewright.ir.data import TensorData
from bytewright.ir.module import Module
from bytewright.ir.storage import Border
from bytewright.ir.text.modules import module_data, print_module
from bytewright.ir.types import DType, Symbol, TensorType
from bytewright.ir.verify.admit import admit
from bytewright.ir.verify.stages import Stage, find_violations
from bytewright.target.registry import load_target
from support.evaluate.evaluate import Evaluator
from support.parsing import parse_module
from support.state_programs import ACCUMULATOR, accumulated

HOST = load_target("host")


def program() -> Module:
    return parse_module(ACCUMULATOR, {}, {})


def draw(count: int) -> list[np.ndarray]:
    random = np.random.default_rng(3)
    return [random.integers(-9, 9, 8).astype(np.int32) for _ in range(count)]


def run(evaluator: Evaluator, inputs: np.ndarray) -> np.ndarray:
    return evaluator.run("main", {"x": inputs})["y"]


def test_its_text_is_read_back() -> None:
    module = program()
    text = print_module(module)
    assert "state %runs : tensor<4xi8> = data<4xi8> " in text
    assert parse_module(text, module_data(module), {}) == module
    assert [port.name for port in module.ports(Border.STATE)] == ["total", "runs"]
    assert [buffer.name for buffer in border_buffers(module.main, Border.STATE)] == ["total", "runs"]


def test_it_lives_from_the_start_to_the_end() -> None:
    timeline = read_clock(program(), HOST)
    lives = {live.buffer.name: (live.lower, live.upper) for live in timeline.buffers}
    assert lives["total"] == lives["runs"] == (0, timeline.num_ticks)


def test_the_evaluator_keeps_it_resets_it_and_restores_it() -> None:
    evaluator, inputs = Evaluator(program()), draw(6)
    expected = accumulated(inputs)
    saved: list[dict[str, bytes]] = []
    for array, wanted in zip(inputs, expected, strict=True):
        saved.append(evaluator.saved())
        np.testing.assert_array_equal(run(evaluator, array), wanted)
    for number in (4, 1, 3):
        evaluator.reset(saved[number])
        np.testing.assert_array_equal(run(evaluator, inputs[number]), expected[number])
    evaluator.reset()
    np.testing.assert_array_equal(run(evaluator, inputs[0]), expected[0])


def test_two_evaluators_share_nothing() -> None:
    first, second, inputs = Evaluator(program()), Evaluator(program()), draw(4)
    for array, other, one, two in zip(
        inputs, inputs[::-1], accumulated(inputs), accumulated(inputs[::-1]), strict=True
    ):
        np.testing.assert_array_equal(run(first, array), one)
        np.testing.assert_array_equal(run(second, other), two)


def _one_less(module: Module) -> Module:
    return replace(module, state=module.state[:1])


def _of_another_type(module: Module) -> Module:
    port = replace(module.state[0], type=TensorType((8,), DType.I8))
    return replace(module, state=(port, *module.state[1:]))


def _of_an_open_size(module: Module) -> Module:
    port = replace(module.state[0], type=TensorType((Symbol("n", 1, 8),), DType.I32))
    return replace(module, state=(port, *module.state[1:]))


def _begun_otherwise(module: Module) -> Module:
    port = replace(module.state[0], initial=TensorData((2,), DType.I32, bytes(8)))
    return replace(module, state=(port, *module.state[1:]))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (_one_less, "the module has 1 states, and allocates 2"),
        (_of_another_type, "state 'total' is tensor<8xi8>, what it allocates is tensor<8xi32>"),
        (_of_an_open_size, "so its size would change from run to run"),
        (_begun_otherwise, "state 'total' is tensor<8xi32>, and begins as tensor<2xi32>"),
    ],
)
def test_a_state_that_is_tied_to_nothing_is_refused(change: Callable[[Module], Module], message: str) -> None:
    violations = find_violations(change(program()), Stage.OPEN, HOST)
    assert message in " ".join(violation.text for violation in violations)


def test_a_kernel_allocates_none() -> None:
    text = ACCUMULATOR.replace(
        "  for i : i32 in 0 .. 8 {\n    total",
        '  allocate k : buffer<8xi8> {io="state"}\n  for i : i32 in 0 .. 8 {\n    total',
    )
    violations = find_violations(parse_module(text, {}, {}), Stage.OPEN, HOST)
    assert "'k' is a state of the model, allocated by a kernel" in [
        violation.text for violation in violations
    ]


def test_a_loop_allocates_none() -> None:
    loop = '  for t : i32 in 0 .. 1 {\n    allocate other : buffer<8xi32> {io="state"}\n  }\n'
    text = ACCUMULATOR.replace(
        '  allocate total : buffer<8xi32> {io="state"}\n', f"{loop}  allocate total : buffer<8xi32>\n"
    )
    violations = find_violations(parse_module(text, {}, {}), Stage.OPEN, HOST)
    assert any("allocated within a loop" in violation.text for violation in violations)


def test_a_parameter_of_the_entry_that_is_read_and_written_is_refused_with_the_way_out() -> None:
    text = ACCUMULATOR.replace("main(x : buffer<8xi32> r", "main(x : buffer<8xi32> rw")
    with pytest.raises(CompileError, match='io = "state"'):
        admit(parse_module(text, {}, {}), HOST)
