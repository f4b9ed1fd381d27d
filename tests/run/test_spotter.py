"""Samples in, classes out: a front end and a classifier as one bundle, run after run against TensorFlow Lite Micro."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import bytewright
from bytewright.execute.run import run_batch
from bytewright.frontends.tflite.importer import import_content
from support.c_program import WARNINGS
from support.compilers import host_build
from support.reference import TfLiteMicro
from support.spotter import FEATURES, FRAME, FRAMES, STEP, classifier, front_end, joined, sound

pytestmark = pytest.mark.run

Array = NDArray[Any]
VARIABLE = "BYTEWRIGHT_TFLITE_MICRO"
SECONDS = 1.2


def of_micro_speech() -> bytes:
    """The two models of the example of that name."""
    folder = os.environ.get(VARIABLE)
    if not folder:
        pytest.skip(f"{VARIABLE} does not name a copy of github.com/tensorflow/tflite-micro")
    names = ("audio_preprocessor_int8.tflite", "micro_speech_quantized.tflite")
    first, second = (next(Path(folder).rglob(name)).read_bytes() for name in names)
    return joined(first, second)


def runs(seed: int = 0) -> list[Array]:
    samples = sound(SECONDS, seed)
    return [samples[first : first + STEP][None] for first in range(0, len(samples), STEP)]


SPOTTERS: dict[str, Callable[[], bytes]] = {
    "own": lambda: joined(front_end(), classifier()),
    "micro_speech": of_micro_speech,
}


@pytest.mark.parametrize("name", SPOTTERS)
def test_a_second_of_sound_is_classified_as_micro_does(name: str, tmp_path: Path) -> None:
    content = SPOTTERS[name]()
    inputs, model = runs(), TfLiteMicro(content)
    wanted = [model.run(array)[0] for array in inputs]
    assert len({result.tobytes() for result in wanted}) > FRAMES // 2
    path = tmp_path / "spotter.tflite"
    path.write_bytes(content)
    compiled = bytewright.compile(path, numerics="tflm")
    compiled.write(tmp_path / "bundle")
    options = host_build(flags=WARNINGS, sanitize=True)
    batch = [[array] for array in inputs]
    found = run_batch(tmp_path / "bundle", batch, keep_state=True, options=options).outputs
    np.testing.assert_array_equal([result for (result,) in found], wanted)


def test_a_front_end_and_a_classifier_apart_are_the_same_pipeline() -> None:
    """What the framer and the circular buffer do is done by hand."""
    first, second = TfLiteMicro(front_end()), TfLiteMicro(classifier())
    spotter, inputs = TfLiteMicro(SPOTTERS["own"]()), runs(1)
    samples = np.concatenate([np.zeros((1, FRAME - STEP), np.int16), *inputs], axis=1)
    features = np.full((FRAMES, FEATURES), -128, np.int8)
    for number, array in enumerate(inputs):
        frame = samples[:, number * STEP : number * STEP + FRAME]
        features = np.concatenate([features[1:], first.run(frame)[0][None]])
        expected = second.run(features.reshape(1, -1))[0]
        np.testing.assert_array_equal(spotter.run(array)[0], expected)


def test_a_depthwise_convolution_of_one_channel_is_a_convolution() -> None:
    """Portable kernels and those of sets are many times as quick for it."""
    names = {node.operation.name for node in import_content(classifier(), "classifier.tflite").graph.nodes}
    assert "conv2d" in names
    assert "depthwise_conv2d" not in names
