"""Layers of float32 activations and integer weights as C: each form, against LiteRT's hybrid kernels bit for bit."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from bytewright.compiler.pipeline import compile_model
from bytewright.target.registry import load_target
from support.against_reference import assert_equals_reference
from support.hybrid_layers import EXACT, convolution, inputs
from support.many_models import SANITIZERS, Job, build
from support.random_networks import random_network
from support.reference import run_litert
from support.tiers import some


def test_results_of_c_are_litert_s(tmp_path: Path) -> None:
    jobs: list[Job] = []
    for number, layer in enumerate(EXACT.values()):
        path = tmp_path / f"m{number}.tflite"
        path.write_bytes(layer.model(number))
        compiled = compile_model(path, load_target("host"))
        jobs.append(Job(compiled.files, compiled.document, [[x] for x in inputs(layer.source, number)]))
    results = build(jobs, tmp_path / "build", ("-O2",)).run()
    for (number, (name, layer)), found in zip(enumerate(EXACT.items()), results, strict=True):
        model = layer.model(number)
        for x, (y,) in zip(inputs(layer.source, number), found, strict=True):
            wanted = run_litert(model, [x])[0]
            np.testing.assert_array_equal(y.reshape(wanted.shape), wanted, err_msg=name)


@pytest.mark.parametrize("first", some(range(0, 80, 8), every=5))
def test_networks_with_other_operators_between(first: int, tmp_path: Path) -> None:
    """Pads, residuals, pools and moves around hybrid layers, of several samples at a time."""
    models = [random_network(seed, "float32", is_hybrid=True) for seed in range(first, first + 8)]
    assert_equals_reference(models, tmp_path)


def test_the_quantised_image_is_never_whole(tmp_path: Path) -> None:
    """Only the range needs all of the input: what is quantised by it goes row by row into the convolution."""
    size, channels = 40, 8
    layer = convolution((1, size, size, channels), (channels, 3, 3, channels))
    path = tmp_path / "m.tflite"
    path.write_bytes(layer.model())
    compiled = compile_model(path, load_target("host"))
    (quantised,) = [b for b in compiled.document["buffers"] if b["name"] == "conv2d_0/quantised"]
    assert quantised["size_bytes"] == 3 * (size + 2) * channels
    batch = [[x] for x in inputs(layer.source, 0)]
    (results,) = build([Job(compiled.files, compiled.document, batch)], tmp_path / "build", ("-O2",)).run()
    for (x,), (y,) in zip(batch, results, strict=True):
        np.testing.assert_array_equal(y, run_litert(layer.model(), [x])[0])


def test_rows_that_are_not_finite_are_no_undefined_behaviour(tmp_path: Path) -> None:
    """The references convert what does not fit an integer; here it is limited before, and other rows do not see it."""
    jobs: list[Job] = []
    names = ("layer", "layer with zero points", "convolution", "depthwise")
    strange = np.array([np.nan, np.inf, -np.inf, 3e38, -3e38, 1e-45, -1e-45], np.float32)
    batches: list[list[np.ndarray]] = []
    for number, name in enumerate(names):
        path = tmp_path / f"m{number}.tflite"
        path.write_bytes(EXACT[name].model())
        compiled = compile_model(path, load_target("host"))
        (x, *_) = inputs(EXACT[name].source, 1)
        batches.append([x.copy() for _ in strange])
        for sample, value in zip(batches[-1], strange, strict=True):
            sample[-1].flat[1::3] = value
        jobs.append(Job(compiled.files, compiled.document, [[sample] for sample in batches[-1]]))
    results = build(jobs, tmp_path / "build", (*SANITIZERS, "-fsanitize=float-cast-overflow")).run()
    for name, batch, found in zip(names, batches, results, strict=True):
        wanted = run_litert(EXACT[name].model(), [inputs(EXACT[name].source, 1)[0]])[0]
        for (y,), sample in zip(found, batch, strict=True):
            np.testing.assert_array_equal(
                y.reshape(wanted.shape)[:-1], wanted[:-1], err_msg=f"{name} {sample[-1]}"
            )
