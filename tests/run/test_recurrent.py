"""Recurrent operators, each alone, step after step against the references, which keep their states too."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import bytewright
from bytewright.diagnostics import CompileError
from bytewright.execute.run import run_batch
from bytewright.frontends.tflite.importer import import_content
from bytewright.ir.module import Module
from bytewright.ops.arithmetic.numerics import Numerics
from support.c_program import WARNINGS
from support.compilers import host_build
from support.evaluate.evaluate_graph import evaluate_graph
from support.recurrent_models import bidirectional_model, lstm_model
from support.reference import LiteRt, TfLiteMicro
from support.tiers import THOROUGH, some

pytestmark = pytest.mark.run

Array = NDArray[Any]
SEEDS = range(200) if THOROUGH else some(range(40), every=4)
STEPS = 6
LITERT_FORMS: dict[str, Callable[[int], bytes]] = {
    **{form: partial(lstm_model, form=form) for form in ("float32", "hybrid", "int8")},
    "both ways": partial(bidirectional_model, form="float32"),
    "both ways, hybrid": partial(bidirectional_model, form="hybrid"),
}


def drawn(details: dict[str, Any], random: np.random.Generator) -> Array:
    if details["dtype"] is np.float32:
        return random.normal(0, 2, details["shape"]).astype(np.float32)
    bounds = np.iinfo(details["dtype"])
    low = bounds.min if random.integers(3) else bounds.max - 1
    return random.integers(low, bounds.max, details["shape"], endpoint=True).astype(details["dtype"])


def sequence(content: bytes, steps: int = STEPS) -> tuple[list[Array], list[list[Array]]]:
    """Inputs of runs one after the other, and what LiteRT gives."""
    model, random = LiteRt(content), np.random.default_rng(len(content))
    inputs = [drawn(model.inputs[0], random) for _ in range(steps)]
    return inputs, [model.run(array) for array in inputs]


def evaluated(module: Module, inputs: Sequence[Array]) -> list[list[Array]]:
    """What the module's graph gives, run after run."""
    states: list[Array] = [
        np.zeros(port.type.fixed_shape, port.type.dtype.numpy) if port.initial is None else port.initial.array
        for port in module.state
    ]
    found: list[list[Array]] = []
    for array in inputs:
        results = evaluate_graph(module, [array, *states])
        count = len(results) - len(states)
        found.append(list(results[:count]))
        states = list(results[count:])
    return found


def assert_all_equal(found: Sequence[Array], wanted: Sequence[Array]) -> None:
    for own, expected in zip(found, wanted, strict=True):
        assert_equal(own, expected)


def assert_equal(found: Array, wanted: Array) -> None:
    if wanted.dtype == np.float32:
        np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-5 * max(float(np.abs(wanted).max()), 1e-3))
    else:
        np.testing.assert_array_equal(found, wanted, strict=True)


@pytest.mark.parametrize("form", LITERT_FORMS)
@pytest.mark.parametrize("seed", SEEDS)
def test_a_layer_equals_litert_run_after_run(seed: int, form: str) -> None:
    content = LITERT_FORMS[form](seed)
    inputs, wanted = sequence(content)
    module = import_content(content, "lstm.tflite")
    for found, expected in zip(evaluated(module, inputs), wanted, strict=True):
        assert_all_equal(found, expected)


MICRO_FORMS = ("float32", "int8", "int16")


def of_micro(content: bytes) -> tuple[list[Array], list[list[Array]]]:
    """Inputs of runs one after the other, and what TensorFlow Lite Micro gives."""
    module = import_content(content, "lstm.tflite", numerics=Numerics.TFLM)
    model, random = TfLiteMicro(content), np.random.default_rng(len(content))
    kind = module.inputs[0].type
    details = {"dtype": kind.dtype.numpy.type, "shape": kind.fixed_shape}
    inputs = [drawn(details, random) for _ in range(STEPS)]
    return inputs, [model.run(array) for array in inputs]


@pytest.mark.parametrize("form", MICRO_FORMS)
@pytest.mark.parametrize("seed", SEEDS)
def test_a_layer_equals_micro_run_after_run(seed: int, form: str) -> None:
    content = lstm_model(seed, form=form)
    inputs, wanted = of_micro(content)
    module = import_content(content, "lstm.tflite", numerics=Numerics.TFLM)
    for found, expected in zip(evaluated(module, inputs), wanted, strict=True):
        assert_all_equal(found, expected)


def test_litert_has_no_layer_of_int16() -> None:
    with pytest.raises(CompileError, match="LiteRT does not have it for int16"):
        import_content(lstm_model(1, form="int16"), "lstm.tflite")


@pytest.mark.parametrize("seed", some(range(8), every=4))
@pytest.mark.parametrize("form", ["int8", "int16"])
def test_the_c_of_a_layer_equals_micro(seed: int, form: str, tmp_path: Path) -> None:
    content = lstm_model(seed, form=form)
    inputs, wanted = of_micro(content)
    assert_the_c_gives(content, inputs, wanted, tmp_path, Numerics.TFLM)


@pytest.mark.parametrize("seed", some(range(8), every=4))
@pytest.mark.parametrize("form", LITERT_FORMS)
def test_the_c_of_a_layer_keeps_its_state(seed: int, form: str, tmp_path: Path) -> None:
    content = LITERT_FORMS[form](seed)
    inputs, wanted = sequence(content)
    assert_the_c_gives(content, inputs, wanted, tmp_path, Numerics.LITERT_REF)


def assert_the_c_gives(
    content: bytes, inputs: Sequence[Array], wanted: Sequence[list[Array]], folder: Path, numerics: Numerics
) -> None:
    """Run after run, with sanitizers."""
    path = folder / "lstm.tflite"
    path.write_bytes(content)
    bytewright.compile(path, numerics=numerics.value).write(folder / "bundle")
    options = host_build(flags=WARNINGS, sanitize=True)
    batch = [[array] for array in inputs]
    found = run_batch(folder / "bundle", batch, keep_state=True, options=options).outputs
    for own, expected in zip(found, wanted, strict=True):
        assert_all_equal(own, expected)


def test_a_cell_whose_scale_is_no_power_of_two_is_refused() -> None:
    with pytest.raises(CompileError, match="is no power of two"):
        import_content(lstm_model(1, form="int8", cell_scale=3e-4), "lstm.tflite")


def test_both_ways_have_as_many_units() -> None:
    with pytest.raises(CompileError, match="3 units forwards and 2 backwards"):
        import_content(bidirectional_model(1, form="hybrid", units=(3, 2)), "lstm.tflite")


@pytest.mark.parametrize(
    ("content", "code"),
    [(lstm_model(1, form="hybrid"), "BW108"), (bidirectional_model(1, form="float32"), "BW107")],
)
def test_micro_has_no_such_layer(content: bytes, code: str) -> None:
    with pytest.raises(CompileError) as caught:
        import_content(content, "lstm.tflite", numerics=Numerics.TFLM)
    assert [found.code for found in caught.value.diagnostics] == [code]


@pytest.mark.parametrize("form", ["hybrid", "both ways, hybrid"])
def test_integer_weights_can_be_widened(form: str) -> None:
    """To the layer of float32 that has the weights which they stand for."""
    content = LITERT_FORMS[form](4)
    inputs, wanted = sequence(content)
    module = import_content(content, "lstm.tflite", expands_weights=True)
    assert "tfl_lstm" in {node.operation.name for node in module.graph.nodes}
    for found, expected in zip(evaluated(module, inputs), wanted, strict=True):
        for own, other in zip(found, expected, strict=True):
            assert 0 < np.abs(own - other).max() < 0.05 * np.abs(other).max()
