"""SVDF layers, run after run against the references, which keep their states too; and what is refused of them."""

from __future__ import annotations

import math
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import bytewright
from bytewright.compiler.pipeline import compile_model
from bytewright.diagnostics import CompileError
from bytewright.execute.run import run_batch
from bytewright.frontends.tflite.importer import import_content
from bytewright.ops.arithmetic.numerics import Numerics
from bytewright.options import Optimize, Options
from bytewright.target.registry import load_target
from run.test_recurrent import assert_equal, assert_the_c_gives, drawn, evaluated
from support.compilers import host_build
from support.many_models import SANITIZERS, Job, build
from support.recurrent_models import Writer, schema, svdf_model
from support.reference import LiteRt, TfLiteMicro
from support.tiers import THOROUGH, some
from support.wake_word import wake_word_net

pytestmark = pytest.mark.run

Array = NDArray[Any]
LITERT, TFLM = Numerics.LITERT_REF, Numerics.TFLM
RELU = 1
# More runs than frames are kept of.
RUNS = 13
FORMS: dict[str, tuple[Numerics, dict[str, Any]]] = {
    "litert-float32": (LITERT, {"form": "float32"}),
    "litert-hybrid": (LITERT, {"form": "hybrid"}),
    "litert-int16": (LITERT, {"form": "int16", "activation": RELU}),
    "tflm-float32": (TFLM, {"form": "float32"}),
    "tflm-int16": (TFLM, {"form": "int16"}),
    "tflm-int8": (TFLM, {"form": "int8"}),
    "tflm-int8-offset": (TFLM, {"form": "int8", "has_state_offset": True}),
}
SEEDS = range(60) if THOROUGH else some(range(40), every=4)


def inputs_of(content: bytes, numerics: Numerics) -> list[Array]:
    kind = import_content(content, "svdf.tflite", numerics=numerics).inputs[0].type
    details = {"dtype": kind.dtype.numpy.type, "shape": kind.fixed_shape}
    random = np.random.default_rng(len(content))
    return [drawn(details, random) for _ in range(RUNS)]


def wanted_of(content: bytes, numerics: Numerics, inputs: list[Array]) -> list[list[Array]]:
    model = LiteRt(content) if numerics is LITERT else TfLiteMicro(content)
    return [model.run(array) for array in inputs]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("seed", SEEDS)
def test_a_layer_equals_its_reference_run_after_run(seed: int, form: str) -> None:
    numerics, options = FORMS[form]
    content = svdf_model(seed, **options)
    inputs = inputs_of(content, numerics)
    module = import_content(content, "svdf.tflite", numerics=numerics)
    wanted = wanted_of(content, numerics, inputs)
    # A single result may be what is left of sums of floats that cancel.
    assert_equal(np.stack(evaluated(module, inputs)), np.stack(wanted))


@pytest.mark.parametrize("form", FORMS)
def test_the_c_of_a_layer_keeps_its_frames(form: str, tmp_path: Path) -> None:
    numerics, options = FORMS[form]
    content = svdf_model(3, **options)
    inputs = inputs_of(content, numerics)
    assert_the_c_gives(content, inputs, wanted_of(content, numerics, inputs), tmp_path, numerics)


@pytest.mark.parametrize(
    "form", [form for form, (_, options) in FORMS.items() if options["form"].startswith("int")]
)
@pytest.mark.parametrize("seed", SEEDS)
def test_a_layer_that_keeps_inputs_equals_its_reference(seed: int, form: str) -> None:
    """Where they are fewer bytes than frames: in place of some, which each run computes, or of all."""
    numerics, options = FORMS[form]
    content = svdf_model(seed, **options)
    inputs = inputs_of(content, numerics)
    wanted = np.stack(wanted_of(content, numerics, inputs))
    (graph,) = schema.ModelT.InitFromPackedBuf(content, 0).subgraphs
    source, _, time, *_ = (graph.tensors[index].shape for index in graph.operators[0].inputs)
    frame_bytes = source[0] * time[0] * (1 if options["form"] == "int8" else 2)
    input_bytes, most = source[0] * source[1], time[1] - 1
    for share in (0.0, 1.0, 3.5, math.inf):
        module = import_content(content, "svdf.tflite", numerics=numerics, recomputed=share)
        assert_equal(np.stack(evaluated(module, inputs)), wanted)
        num = int(min(most, share)) if input_bytes < frame_bytes else 0
        wanted_bytes = num * input_bytes + (most - num) * frame_bytes
        assert sum(each.type.size_bytes for each in module.state) == wanted_bytes, share


def test_50_runs_with_states_saved_between_them(tmp_path: Path) -> None:
    """A net whose layers keep inputs in place of no frame, of some and of all; each run has memory of its own."""
    content = wake_word_net()
    (tmp_path / "net.tflite").write_bytes(content)
    kind = import_content(content, "net.tflite").inputs[0].type
    random = np.random.default_rng(4)
    inputs = [random.integers(-128, 128, kind.fixed_shape).astype(np.int8) for _ in range(50)]
    compiled = [
        compile_model(
            tmp_path / "net.tflite", load_target("mps3-an547"), Options(name=each.value, optimize=each)
        )
        for each in (Optimize.BALANCED, Optimize.SIZE)
    ]
    jobs = [Job(each.files, each.document, [[array] for array in inputs]) for each in compiled]
    wanted = wanted_of(content, LITERT, inputs)
    for found in build(jobs, tmp_path, ("-O0", *SANITIZERS)).run():
        np.testing.assert_array_equal(np.stack(found), np.stack(wanted))


@pytest.mark.parametrize("form", FORMS)
def test_a_layer_keeps_every_frame_but_the_newest(form: str) -> None:
    """The oldest is read for the last time in the run that computes the newest."""
    numerics, options = FORMS[form]
    for seed in range(20):
        content = svdf_model(seed, **options)
        (graph,) = schema.ModelT.InitFromPackedBuf(content, 0).subgraphs
        _, _, time, _, state = (graph.tensors[index] for index in graph.operators[0].inputs)
        filters, frames = time.shape
        kept = import_content(content, "svdf.tflite", numerics=numerics).state
        sizes = [each.type.num_elements for each in kept]
        assert sizes == ([state.shape[0] * filters * (frames - 1)] if frames > 1 else []), seed


def test_a_sequence_begins_anew_after_a_reset(tmp_path: Path) -> None:
    """What is left of a sequence is gone in the next one: each inference of a plain batch is a sequence."""
    path = tmp_path / "svdf.tflite"
    path.write_bytes(svdf_model(3, form="int16", activation=RELU))
    bytewright.compile(path).write(tmp_path / "bundle")
    array = inputs_of(path.read_bytes(), LITERT)[0]
    options, batch = host_build(sanitize=True), [[array]] * RUNS
    again = run_batch(tmp_path / "bundle", batch, options=options).outputs
    kept = run_batch(tmp_path / "bundle", batch, keep_state=True, options=options).outputs
    assert all(np.array_equal(a, b) for (a,), (b,) in pairwise(again))
    assert any(not np.array_equal(a, b) for (a,), (b,) in pairwise(kept))


REFUSED: dict[str, tuple[dict[str, Any], Numerics, str]] = {
    "rank": ({"form": "float32", "rank": 0}, LITERT, "filters are not of units of 0"),
    "state": ({"form": "float32", "state_shape": (1, 1)}, LITERT, r"the state is \[1, 1\], not \["),
    "int8 state": (
        {"form": "int8", "activation": RELU},
        LITERT,
        "no SVDF whose state is INT8: --numerics tflm",
    ),
    "activation": (
        {"form": "int16", "activation": 0},
        LITERT,
        "the activation is NONE; LiteRT has an int8 SVDF",
    ),
    "tanh": ({"form": "float32", "activation": 4}, LITERT, "the fused activation TANH is not supported"),
    "hybrid": ({"form": "hybrid"}, TFLM, "has no kernels for these weights with float activations"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_a_reference_does_not_have_is_refused(case: str) -> None:
    options, numerics, message = REFUSED[case]
    with pytest.raises(CompileError, match=message):
        import_content(svdf_model(3, **options), "svdf.tflite", numerics=numerics)


def test_weights_of_int16_are_of_no_other_layer() -> None:
    """The convolutions that an SVDF becomes take them; LiteRT has no convolution that does."""
    builder = Writer()
    source, result = (builder.tensor((1, 4, 4, 2), "int16", (0.1, 0)) for _ in range(2))
    weights = builder.tensor((2, 1, 1, 2), "int16", (0.1, 0), np.ones((2, 1, 1, 2), np.int16))
    options = {"strideH": 1, "strideW": 1}
    builder.operator("CONV_2D", [source, weights], [result], ("Conv2DOptions", options))
    with pytest.raises(CompileError, match="the weights are INT16"):
        import_content(builder.build([source], [result]), "conv.tflite")
