"""WHILE and IF: subgraphs that loops and branches run, in C as in LiteRT."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from bytewright.diagnostics import CompileError
from bytewright.frontends.tflite import import_content
from support.against_reference import assert_equals_reference
from support.many_models import SANITIZERS
from support.random_models import RandomModel
from tflite_writer import ModelBuilder

SANITIZED = ("-O0", *SANITIZERS)
SHAPE = (2, 3)
Part = Callable[[ModelBuilder], tuple[list[int], list[int]]]


def _scalar(builder: ModelBuilder, name: str, value: int) -> int:
    return builder.tensor(name, (), "int32", data=np.array(value, np.int32))


def _below(limit: int | None) -> Part:
    """Whether the counter is below a constant, or below what the loop hands on."""

    def write(builder: ModelBuilder) -> tuple[list[int], list[int]]:
        counter, x, other = _operands(builder)
        end = _scalar(builder, "end", limit) if limit is not None else other
        holds = builder.tensor("holds", (), "bool")
        builder.operator("LESS", [counter, end], [holds])
        return [counter, x, other], [holds]

    return write


def _operands(builder: ModelBuilder) -> tuple[int, int, int]:
    """A counter, floats that change, and a number that does not."""
    shapes = (("counter", (), "int32"), ("x", SHAPE, "float32"), ("other", (), "int32"))
    counter, x, other = (builder.tensor(name, shape, dtype) for name, shape, dtype in shapes)
    return counter, x, other


def _step(by: int) -> Part:
    """The counter and a step more; the floats halved, and one more."""

    def write(builder: ModelBuilder) -> tuple[list[int], list[int]]:
        counter, x, other = _operands(builder)
        after = builder.tensor("after", (), "int32")
        builder.operator("ADD", [counter, _scalar(builder, "by", by)], [after])
        half = builder.constant("half", np.full((1,), 0.5, np.float32))
        halved, more = (builder.tensor(name, SHAPE, "float32") for name in ("halved", "more"))
        builder.operator("MUL", [x, half], [halved])
        builder.operator("ADD", [halved, builder.constant("one", np.ones((3,), np.float32))], [more])
        return [counter, x, other], [after, more, other]

    return write


def _with_parts(builder: ModelBuilder, inputs: list[int], outputs: list[int], *parts: Part) -> bytes:
    written = []
    for part in parts:
        own = ModelBuilder(subgraph_name=f"part_{len(written)}")
        written.append(own.subgraph(*part(own)))
    return builder.build(inputs, outputs, *written)


def loop(limit: int | None, *, by: int = 1, other: int = 5, is_input: bool = False) -> bytes:
    """A WHILE over a counter; `is_input` makes what it is compared with an input."""
    builder = ModelBuilder()
    x = builder.tensor("x", SHAPE, "float32")
    end = builder.tensor("end", (), "int32") if is_input else _scalar(builder, "end", other)
    outputs = [builder.tensor("count", (), "int32"), builder.tensor("y", SHAPE, "float32")]
    kept = builder.tensor("kept", (), "int32")
    builder.operator(
        "WHILE",
        [_scalar(builder, "start", 0), x, end],
        [*outputs, kept],
        cond_subgraph_index=1,
        body_subgraph_index=2,
    )
    inputs = [x, end] if is_input else [x]
    return _with_parts(builder, inputs, [*outputs, kept], _below(limit), _step(by))


@pytest.mark.parametrize(
    ("limit", "by", "other"),
    [(7, 1, 5), (7, 3, 5), (0, 1, 5), (None, 1, 4), (-3, 1, 5), (1, 1, 5)],
)
def test_a_loop_takes_the_turns_that_constants_say(
    limit: int | None, by: int, other: int, tmp_path: Path
) -> None:
    model = RandomModel(loop(limit, by=by, other=other), f"WHILE {limit} {by} {other}", (SHAPE,), "float32")
    assert_equals_reference([model], tmp_path, flags=SANITIZED)


def _arm(kind: str) -> Part:
    def write(builder: ModelBuilder) -> tuple[list[int], list[int]]:
        x, z = builder.tensor("x", SHAPE, "float32"), builder.tensor("z", SHAPE, "float32")
        result = builder.tensor("result", SHAPE, "float32")
        builder.operator(kind, [x, z], [result])
        return [x, z], [result, z]

    return write


def _handed_on(builder: ModelBuilder) -> tuple[list[int], list[int]]:
    """An arm without an operator: a constant, and an operand."""
    x, z = builder.tensor("x", SHAPE, "float32"), builder.tensor("z", SHAPE, "float32")
    return [x, z], [builder.constant("twos", np.full(SHAPE, 2, np.float32)), x]


@pytest.mark.parametrize("otherwise", [_arm("SUB"), _handed_on], ids=["computed", "handed on"])
def test_one_of_two_branches_runs(otherwise: Part, tmp_path: Path) -> None:
    builder = ModelBuilder()
    condition = builder.tensor("condition", (1,), "bool")
    x, z = builder.tensor("x", SHAPE, "float32"), builder.tensor("z", SHAPE, "float32")
    outputs = [builder.tensor(name, SHAPE, "float32") for name in ("first", "second")]
    builder.operator("IF", [condition, x, z], outputs, then_subgraph_index=1, else_subgraph_index=2)
    content = _with_parts(builder, [condition, x, z], outputs, _arm("MUL"), otherwise)
    model = RandomModel(content, "IF", ((1,), SHAPE, SHAPE), "float32", dtypes=("bool", "float32", "float32"))
    assert_equals_reference([model], tmp_path, flags=SANITIZED)


def _nested(builder: ModelBuilder) -> tuple[list[int], list[int]]:
    """A body with a loop in it, which begins again in each turn."""
    counter, x, other = _operands(builder)
    after, more = builder.tensor("after", (), "int32"), builder.tensor("more", SHAPE, "float32")
    ignored = [builder.tensor(name, (), "int32") for name in ("inner", "kept")]
    builder.operator(
        "WHILE",
        [_scalar(builder, "again", 2), x, other],
        [ignored[0], more, ignored[1]],
        cond_subgraph_index=3,
        body_subgraph_index=4,
    )
    builder.operator("ADD", [counter, _scalar(builder, "one", 1)], [after])
    return [counter, x, other], [after, more, other]


def test_a_loop_in_a_loop(tmp_path: Path) -> None:
    builder = ModelBuilder()
    x, y = builder.tensor("x", SHAPE, "float32"), builder.tensor("y", SHAPE, "float32")
    counts = [builder.tensor(name, (), "int32") for name in ("count", "kept")]
    operands = [_scalar(builder, "start", 0), x, _scalar(builder, "other", 9)]
    builder.operator(
        "WHILE", operands, [counts[0], y, counts[1]], cond_subgraph_index=1, body_subgraph_index=2
    )
    content = _with_parts(builder, [x], [y], _below(3), _nested, _below(4), _step(1))
    assert_equals_reference([RandomModel(content, "nested", (SHAPE,), "float32")], tmp_path, flags=SANITIZED)


def _refusal(content: bytes) -> str:
    with pytest.raises(CompileError) as caught:
        import_content(content, "model.tflite")
    (diagnostic,) = caught.value.diagnostics
    return f"{diagnostic.code} {diagnostic.message}"


def test_turns_that_an_input_says_are_refused() -> None:
    text = _refusal(loop(None, is_input=True))
    assert text.startswith("BW107")
    assert "the number of turns depends on operand 2, which is not constant" in text


def test_a_loop_without_an_end_is_refused() -> None:
    assert "its condition holds for more than 65536 turns" in _refusal(loop(3, by=0))


def test_a_subgraph_that_runs_itself_is_damage() -> None:
    builder = ModelBuilder()
    x, y = builder.tensor("x", SHAPE, "float32"), builder.tensor("y", SHAPE, "float32")
    builder.operator("WHILE", [x], [y], cond_subgraph_index=0, body_subgraph_index=0)
    assert "subgraph 0 runs itself" in _refusal(builder.build([x], [y]))
    builder = ModelBuilder()
    x, y = builder.tensor("x", SHAPE, "float32"), builder.tensor("y", SHAPE, "float32")
    builder.operator("WHILE", [x], [y], cond_subgraph_index=7, body_subgraph_index=0)
    assert "runs subgraph 7 of 1" in _refusal(builder.build([x], [y]))


def test_operators_of_subgraphs_are_surveyed_with_the_others() -> None:
    def step(builder: ModelBuilder) -> tuple[list[int], list[int]]:
        inputs, outputs = _step(1)(builder)
        more = builder.tensor("unique", SHAPE, "float32")
        builder.operator("READ_VARIABLE", [outputs[1]], [more])
        return inputs, [outputs[0], more, outputs[2]]

    builder = ModelBuilder()
    x, y = builder.tensor("x", SHAPE, "float32"), builder.tensor("y", SHAPE, "float32")
    counts = [builder.tensor(name, (), "int32") for name in ("count", "kept")]
    operands = [_scalar(builder, "start", 0), x, _scalar(builder, "other", 9)]
    builder.operator(
        "WHILE", operands, [counts[0], y, counts[1]], cond_subgraph_index=1, body_subgraph_index=2
    )
    content = _with_parts(builder, [x], [y], _below(3), step)
    assert "READ_VARIABLE" in _refusal(content)
