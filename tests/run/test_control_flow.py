"""WHILE and IF: subgraphs that loops and branches run, in C as in LiteRT."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import bytewright
from bytewright.diagnostics import CompileError
from bytewright.frontends.tflite import import_content
from bytewright.inspect.check import check_bundle
from support.against_reference import assert_equals_reference
from support.many_models import SANITIZERS
from support.random_models import RandomModel
from support.reference import LiteRt
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


@pytest.mark.parametrize("parts", [("MUL",), ("MUL", "SUB", "ADD", "MAXIMUM")])
def test_a_number_chooses_one_of_the_branches(parts: tuple[str, ...], tmp_path: Path) -> None:
    """One that is no branch's means the last."""
    builder = ModelBuilder()
    number = builder.tensor("number", (1,), "int32")
    x, z = builder.tensor("x", SHAPE, "float32"), builder.tensor("z", SHAPE, "float32")
    outputs = [builder.tensor(name, SHAPE, "float32") for name in ("first", "second")]
    indices = range(1, 1 + len(parts))
    builder.operator("STABLEHLO_CASE", [number, x, z], outputs, branch_subgraph_indices=tuple(indices))
    content = _with_parts(builder, [number, x, z], outputs, *map(_arm, parts))
    (tmp_path / "case.tflite").write_bytes(content)
    compiled, reference = bytewright.compile(tmp_path / "case.tflite"), LiteRt(content)
    random = np.random.default_rng(0)
    x, z = (random.normal(size=SHAPE).astype(np.float32) for _ in range(2))
    seen = set()
    for choice in (-1, 0, 1, 2, 3, 4, 1 << 30):
        given = (np.array([choice], np.int32), x, z)
        expected = reference.run(*given)
        seen.add(expected[0].tobytes())
        for found, wanted in zip(compiled.run(*given), expected, strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-6)
    assert len(seen) == len(parts)


def test_branches_give_the_same_types() -> None:
    def longer(builder: ModelBuilder) -> tuple[list[int], list[int]]:
        x, z = builder.tensor("x", SHAPE, "float32"), builder.tensor("z", SHAPE, "float32")
        y = builder.tensor("y", (4, 3), "float32")
        builder.operator("CONCATENATION", [x, z], [y], axis=0)
        return [x, z], [y, x]

    builder = ModelBuilder()
    number = builder.tensor("number", (1,), "int32")
    x, z = builder.tensor("x", SHAPE, "float32"), builder.tensor("z", SHAPE, "float32")
    outputs = [builder.tensor(name, SHAPE, "float32") for name in ("first", "second")]
    builder.operator("STABLEHLO_CASE", [number, x, z], outputs, branch_subgraph_indices=(1, 2))
    content = _with_parts(builder, [number, x, z], outputs, _handed_on, longer)
    with pytest.raises(
        CompileError, match="result 0 is tensor<2x3xf32> of case_0, and tensor<4x3xf32> of case_1"
    ):
        import_content(content, "case.tflite")


def test_a_variable_begins_as_what_a_loop_makes(tmp_path: Path) -> None:
    """Computed at import: five turns of a loop, in a subgraph that runs once."""
    builder, once = ModelBuilder(), ModelBuilder(subgraph_name="once")
    builder.operator("CALL_ONCE", [], [], init_subgraph_index=1)
    x, before, after = (builder.tensor(name, SHAPE, "float32") for name in ("x", "before", "after"))
    handle, own = (each.tensor("handle", (), "resource") for each in (builder, once))
    for each, resource in ((builder, handle), (once, own)):
        each.operator("VAR_HANDLE", [], [resource], shared_name="v")
    builder.operator("READ_VARIABLE", [handle], [before])
    builder.operator("ADD", [x, before], [after])
    builder.operator("ASSIGN_VARIABLE", [handle, after], [])
    start = once.constant("start", np.arange(6, dtype=np.float32).reshape(SHAPE))
    results = [once.tensor("count", (), "int32"), once.tensor("made", SHAPE, "float32")]
    results.append(once.tensor("kept", (), "int32"))
    operands = [_scalar(once, "zero", 0), start, _scalar(once, "five", 5)]
    once.operator("WHILE", operands, results, cond_subgraph_index=2, body_subgraph_index=3)
    once.operator("ASSIGN_VARIABLE", [own, results[1]], [])
    parts = []
    for part in (_below(5), _step(1)):
        writer = ModelBuilder(subgraph_name=f"part_{len(parts)}")
        parts.append(writer.subgraph(*part(writer)))
    content = builder.build([x], [after], once.subgraph([], []), *parts)
    (tmp_path / "once.tflite").write_bytes(content)
    compiled, reference = bytewright.compile(tmp_path / "once.tflite"), LiteRt(content)
    given = np.random.default_rng(1).normal(size=SHAPE).astype(np.float32)
    (expected,) = reference.run(given)
    np.testing.assert_allclose(compiled.run(given), expected, rtol=1e-6)


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
    with pytest.raises(CompileError, match="--bound while__0=N, N being the most turns that it takes"):
        import_content(loop(None, is_input=True), "model.tflite")


def test_a_loop_without_an_end_is_refused() -> None:
    assert "its condition holds for more than 65536 turns" in _refusal(loop(3, by=0))


def _compiled(folder: Path, content: bytes, *bounds: str) -> bytewright.CompiledModel:
    path = folder / "loop.tflite"
    path.write_bytes(content)
    return bytewright.compile(path, bounds=bounds)


def test_the_run_says_how_many_turns_there_are(tmp_path: Path) -> None:
    """As often as the condition says, none included, up to the bound; what is beyond it is left out."""
    content = loop(None, is_input=True)
    model, reference = _compiled(tmp_path, content, "while__0=6"), LiteRt(content)
    check_bundle(model.write(tmp_path / "bundle"))
    x = np.random.default_rng(1).normal(size=SHAPE).astype(np.float32)
    for turns in (-3, 0, 1, 5, 6):
        found = model.run(x, np.array(turns, np.int32))
        for own, wanted in zip(found, reference.run(x, np.array(turns, np.int32)), strict=True):
            np.testing.assert_array_equal(own, wanted)
    found, wanted = model.run(x, np.array(9, np.int32)), reference.run(x, np.array(6, np.int32))
    assert found[0] == 6
    flat = " ".join(model.files["include/loop.h"].decode().replace(" * ", " ").split())
    assert "Loops end after so many turns, whatever their conditions say: while__0=6." in flat
    np.testing.assert_array_equal(found[1], wanted[1])


def test_a_condition_of_floats_ends_a_loop(tmp_path: Path) -> None:
    """Newton's method, until two steps agree: nothing of it is known before the run."""

    def unequal(builder: ModelBuilder) -> tuple[list[int], list[int]]:
        last, x, a = (builder.tensor(name, (1,), "float32") for name in ("last", "x", "a"))
        holds = builder.tensor("holds", (1,), "bool")
        builder.operator("NOT_EQUAL", [last, x], [holds])
        return [last, x, a], [holds]

    def step(builder: ModelBuilder) -> tuple[list[int], list[int]]:
        last, x, a, quotient, total, result = (
            builder.tensor(name, (1,), "float32")
            for name in ("last", "x", "a", "quotient", "total", "result")
        )
        builder.operator("DIV", [a, x], [quotient])
        builder.operator("ADD", [quotient, x], [total])
        builder.operator("MUL", [total, builder.constant("half", np.full((1,), 0.5, np.float32))], [result])
        return [last, x, a], [x, result, a]

    builder = ModelBuilder()
    a, first, x = (builder.tensor(name, (1,), "float32") for name in ("a", "first", "x"))
    results = [builder.tensor(name, (1,), "float32") for name in ("before", "root", "same")]
    builder.operator("WHILE", [first, x, a], results, cond_subgraph_index=1, body_subgraph_index=2)
    content = _with_parts(builder, [first, x, a], results, unequal, step)
    model, reference = _compiled(tmp_path, content, "WHILE=40"), LiteRt(content)
    check_bundle(model.write(tmp_path / "bundle"))
    for number in (2.0, 9.0, 1e-6, 12345.0):
        given = [np.array([value], np.float32) for value in (0.0, 1.0, number)]
        for own, wanted in zip(model.run(*given), reference.run(*given), strict=True):
            np.testing.assert_array_equal(own, wanted)


def test_an_open_loop_in_an_open_loop(tmp_path: Path) -> None:
    builder = ModelBuilder()
    x, y = builder.tensor("x", SHAPE, "float32"), builder.tensor("y", SHAPE, "float32")
    end = builder.tensor("end", (), "int32")
    counts = [builder.tensor(name, (), "int32") for name in ("count", "kept")]
    operands = [_scalar(builder, "start", 0), x, end]
    builder.operator(
        "WHILE", operands, [counts[0], y, counts[1]], cond_subgraph_index=1, body_subgraph_index=2
    )
    content = _with_parts(builder, [x, end], [y], _below(None), _nested, _below(None), _step(1))
    model, reference = _compiled(tmp_path, content, "*=5"), LiteRt(content)
    value = np.random.default_rng(1).normal(size=SHAPE).astype(np.float32)
    for turns in (0, 3, 5):
        (wanted,) = reference.run(value, np.array(turns, np.int32))
        np.testing.assert_array_equal(model.run(value, np.array(turns, np.int32)), wanted)


@pytest.mark.parametrize(
    ("bound", "said"),
    [
        (
            "while__1=6",
            "--bound while__1=6 matches no loop, and no size that the data decides; there are 'while__0'",
        ),
        ("conv*=6", "matches no loop"),
    ],
)
def test_a_bound_of_no_loop_is_refused(bound: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(CompileError) as caught:
        _compiled(tmp_path, loop(None, is_input=True), "WHILE=3", bound)
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code == "BW204"
    assert said in diagnostic.message


def test_a_bound_of_a_model_without_loops_is_left_out(tmp_path: Path) -> None:
    builder = ModelBuilder()
    x, y = builder.tensor("x", SHAPE, "float32"), builder.tensor("y", SHAPE, "float32")
    builder.operator("ABS", [x], [y])
    with pytest.raises(CompileError) as caught:
        _compiled(tmp_path, builder.build([x], [y]), "*=3")
    (diagnostic,) = caught.value.diagnostics
    assert (diagnostic.message, diagnostic.help) == (
        "--bound *=3 matches no loop, and no size that the data decides; the model has none",
        "leave out --bound",
    )


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
