"""Tensors without elements: constants without bytes where they add nothing, a help that fits where not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from bytewright.diagnostics import CompileError, Diagnostic
from bytewright.frontends.tflite import import_content
from support.evaluation import evaluate_function
from support.reference import LiteRt
from tflite_writer import ModelBuilder

CASE = Path(__file__).resolve().parents[4] / "shared" / "cases" / "keras3" / "empty_concat.tflite"
SHAPE = (1, 4, 4, 2)


class Draft(ModelBuilder):
    """Values of one quantisation, and one input."""

    def __init__(self) -> None:
        super().__init__()
        self.x = self.value("x", SHAPE)

    def value(self, name: str, shape: tuple[int, ...]) -> int:
        return self.tensor(name, shape, "int8", scale=0.5, zero_point=3)

    def integers(self, name: str, *values: int) -> int:
        return self.constant(name, np.array(values, np.int32))

    def empty_slice(self) -> int:
        empty = self.value("empty", (1, 4, 4, 0))
        begin, size = self.integers("begin", 0, 0, 0, 2), self.integers("size", 1, 4, 4, 0)
        self.operator("SLICE", [self.x, begin, size], [empty])
        return empty

    def joined(self, *operands: int, axis: int = 3) -> bytes:
        y = self.value("y", SHAPE)
        self.operator("CONCATENATION", operands, [y], axis=axis)
        return self.build([self.x], [y])


def constant_operand(draft: Draft) -> bytes:
    return draft.joined(draft.value("nothing", (1, 4, 4, 0)), draft.x)


def sliced(draft: Draft) -> bytes:
    return draft.joined(draft.x, draft.empty_slice())


def sliced_by_strides(draft: Draft) -> bytes:
    empty = draft.value("empty", (1, 4, 0, 2))
    bounds = [draft.integers(f"i{i}", 0, 0, value, 0) for i, value in enumerate((2, 2))]
    draft.operator(
        "STRIDED_SLICE",
        [draft.x, *bounds, draft.integers("one", 1, 1, 1, 1)],
        [empty],
        begin_mask=11,
        end_mask=11,
    )
    return draft.joined(empty, draft.x, axis=-2)


def through_operators(draft: Draft) -> bytes:
    """What is computed of nothing is nothing, and needs no step."""
    active, flat = draft.value("active", (1, 4, 4, 0)), draft.value("flat", (1, 4, 0, 4))
    back = draft.value("back", (1, 4, 4, 0))
    draft.operator("RELU", [draft.empty_slice()], [active])
    draft.operator("RESHAPE", [active, draft.integers("s", 1, 4, 0, 4)], [flat])
    draft.operator("TRANSPOSE", [flat, draft.integers("p", 0, 1, 3, 2)], [back])
    return draft.joined(back, draft.x)


MODELS: tuple[Callable[[Draft], bytes], ...] = (
    constant_operand,
    sliced,
    sliced_by_strides,
    through_operators,
)


@pytest.mark.parametrize("build", MODELS)
@pytest.mark.parametrize("batch_max", [None, 3])
def test_operands_without_elements_add_nothing(
    build: Callable[[Draft], bytes], batch_max: int | None
) -> None:
    content = build(Draft())
    module = import_content(content, "model.tflite", batch_max=batch_max)
    assert module.graph.nodes == (), "the one operand that has elements is the result"
    x = np.random.default_rng(0).integers(-128, 128, SHAPE).astype(np.int8)
    (result,) = module.graph.results
    found = evaluate_function(module.graph, module.constants, (x,))[result]
    np.testing.assert_array_equal(found, LiteRt(content).run(x)[0])


def test_the_case_that_was_called_damaged() -> None:
    if not CASE.exists():
        pytest.skip(f"{CASE} is missing")
    assert import_content(CASE.read_bytes(), CASE.name).outputs[0].type.shape == (1, 8, 8, 3)


def refused(content: bytes) -> Diagnostic:
    with pytest.raises(CompileError) as caught:
        import_content(content, "model.tflite")
    (diagnostic,) = caught.value.diagnostics
    return diagnostic


def test_an_output_without_elements() -> None:
    draft = Draft()
    diagnostic = refused(draft.build([draft.x], [draft.empty_slice()]))
    assert (diagnostic.code, diagnostic.where) == ("BW107", "model.tflite")
    assert diagnostic.message == "output tensor 1 ('empty') has no elements: its shape is [1x4x4x0]"
    assert "leave it out of the model's outputs" in (diagnostic.help or "")


def test_an_input_without_elements() -> None:
    draft = Draft()
    nothing = draft.value("nothing", (1, 0))
    y = draft.value("y", SHAPE)
    draft.operator("RELU", [draft.x], [y])
    diagnostic = refused(draft.build([draft.x, nothing], [y]))
    assert diagnostic.code == "BW107"
    assert diagnostic.notes == ("input tensor 1 ('nothing') has the shape [1, 0]",)


def test_a_mean_of_nothing_is_refused_where_it_is_taken() -> None:
    draft = Draft()
    mean = draft.value("mean", (1, 2))
    empty = draft.value("empty", (1, 4, 0, 2))
    size = draft.integers("size", 1, 4, 0, 2)
    draft.operator("SLICE", [draft.x, draft.integers("begin", 0, 0, 0, 0), size], [empty])
    draft.operator("MEAN", [empty, draft.integers("axes", 1, 2)], [mean])
    diagnostic = refused(draft.build([draft.x], [mean]))
    assert diagnostic.code == "BW107"
    assert diagnostic.where == "model.tflite, operator 1 (MEAN), tensor 'mean'"
    assert diagnostic.message == "MEAN: nothing is reduced"


def test_a_product_of_nothing_is_refused() -> None:
    draft = Draft()
    rows = draft.value("rows", (1, 5))
    weights = draft.constant("w", np.zeros((5, 0), np.int8), scale=0.5)
    flat = draft.value("flat", (1, 0))
    draft.operator("RESHAPE", [draft.empty_slice(), draft.integers("s", 1, 0)], [flat])
    draft.operator("FULLY_CONNECTED", [flat, weights, -1], [rows])
    diagnostic = refused(draft.build([draft.x], [rows]))
    assert diagnostic.code == "BW107"
    assert diagnostic.where == "model.tflite, operator 2 (FULLY_CONNECTED), tensor 'rows'"


def test_shapes_beside_the_axis_must_agree_of_what_adds_nothing_too() -> None:
    draft = Draft()
    diagnostic = refused(draft.joined(draft.x, draft.value("nothing", (1, 4, 3, 0))))
    assert "differ beside axis 3" in diagnostic.message
