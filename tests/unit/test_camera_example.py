"""The camera example's model: the committed bytes, what its first layers make of a frame, and what it reads."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from support.reference import LiteRt

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
sys.path[:0] = [str(EXAMPLES / "digits"), str(EXAMPLES / "camera")]

import network  # noqa: E402
import recording  # noqa: E402
import write_model  # noqa: E402

Array = NDArray[Any]


@pytest.fixture(scope="module")
def weights() -> dict[str, Array]:
    with np.load(network.WEIGHTS_FILE) as stored:
        return dict(stored)


def test_the_script_writes_the_committed_bytes(weights: dict[str, Array]) -> None:
    training, _ = network.load_digits()
    assert write_model.build(weights, training.images) == write_model.MODEL_FILE.read_bytes()
    changed = {**weights, "reduce": weights["reduce"] * np.float32(1.5)}
    assert write_model.build(changed, training.images) != write_model.MODEL_FILE.read_bytes()


def test_the_first_layers_find_the_digit_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without noise, the image of 8x8 is the one that was photographed, pixel by pixel."""
    monkeypatch.setattr(recording, "NOISE", 0)
    model = LiteRt(write_model.MODEL_FILE, keep_all_tensors=True)
    for number, image in enumerate(recording.held_out()[0][:40]):
        model.run(recording.square_of(recording.photograph(image, number)))
        np.testing.assert_array_equal(model.tensor("image")[0, :, :, 0], image)


def test_it_reads_photographs_as_the_digits_example_reads_digits() -> None:
    images, labels = recording.held_out()
    model = LiteRt(write_model.MODEL_FILE)
    answers = [
        int(model.run(recording.square_of(recording.photograph(image, number)))[0].argmax())
        for number, image in enumerate(images)
    ]
    assert np.count_nonzero(answers == labels) == 359


def test_a_pixel_is_stored_by_the_models_scale() -> None:
    """What the references of the other tests are given is what the model says of its input."""
    frame = np.arange(recording.WIDTH * recording.HEIGHT).reshape(recording.HEIGHT, recording.WIDTH) % 256
    square = recording.square_of(frame.astype(np.uint8))
    inside = frame[:, 20:140] / 255 / write_model.UNIT.scale + write_model.UNIT.zero_point
    np.testing.assert_array_equal(square[0, :, :, 0], np.rint(inside))
