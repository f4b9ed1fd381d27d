"""Layers that go from step to step over an axis of open extent equal LiteRT's, or TensorFlow Lite Micro's."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.every_extent import check, check_by_files
from support.model_files import DATA
from support.recurrent_models import bidirectional_model, lstm_model
from support.tiers import some

pytestmark = pytest.mark.run

# By seed, the axis that counts steps.
LAYERS = [(form, seed, 0 if seed == 4 else 1) for form in ("float32", "hybrid", "int8") for seed in (1, 4)]
BOTH_WAYS = [(form, seed, axis) for form in ("float32", "hybrid") for seed, axis in ((0, 1), (4, 0))]
KERAS = sorted((DATA / "keras_over_time").glob("*.tflite"))


@pytest.mark.parametrize(("form", "seed", "axis"), some(LAYERS, 2))
def test_an_lstm_takes_sequences_of_each_length(tmp_path: Path, form: str, seed: int, axis: int) -> None:
    content = lstm_model(seed, form=form, sizes=(2, 6, 5, 4))
    model = check(tmp_path, content, 1, 13, axis)
    assert len(model.plan.states) == 2


@pytest.mark.parametrize(("form", "seed", "axis"), some(BOTH_WAYS, 2))
def test_an_lstm_goes_both_ways(tmp_path: Path, form: str, seed: int, axis: int) -> None:
    check(tmp_path, bidirectional_model(seed, form=form), 1, 9, axis)


def test_an_lstm_of_16_bits_equals_files_of_each_length(tmp_path: Path) -> None:
    lengths = (1, 2, 3, 7)
    files = {n: lstm_model(2, form="int16", sizes=(1, n, 5, 4), one_hidden_scale=True) for n in lengths}
    check_by_files(tmp_path, files)


@pytest.mark.parametrize("file", some(KERAS, 3), ids=lambda file: file.stem)
def test_a_network_of_keras_takes_sequences_of_each_length(tmp_path: Path, file: Path) -> None:
    check(tmp_path, file.read_bytes(), 1, 12)
