"""The shipped example: the committed model is what the committed scripts make of the committed weights."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from support.reference import LiteRt, TfLiteMicro

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "digits"
sys.path.insert(0, str(EXAMPLE))

import network  # noqa: E402
import quantise  # noqa: E402

Array = NDArray[Any]


@pytest.fixture(scope="module")
def weights() -> dict[str, Array]:
    with np.load(network.WEIGHTS_FILE) as stored:
        return dict(stored)


@pytest.fixture(scope="module")
def held_out() -> network.Digits:
    with np.load(network.HELD_OUT_FILE) as stored:
        return network.Digits(stored["images"], stored["labels"])


@pytest.fixture(scope="module")
def litert_outputs(held_out: network.Digits) -> Array:
    model = LiteRt(network.MODEL_FILE)
    return np.stack([model.run(image[np.newaxis])[0][0] for image in held_out.images])


def num_right(scores: Array, digits: network.Digits) -> int:
    return int(np.count_nonzero(scores.argmax(axis=1) == digits.labels))


def test_the_example_is_small() -> None:
    shipped = (network.MODEL_FILE, network.HELD_OUT_FILE, network.WEIGHTS_FILE)
    assert sum(path.stat().st_size for path in shipped) < 100_000
    assert network.WEIGHTS_FILE.stat().st_size < 50_000


def test_quantising_gives_the_committed_bytes(weights: dict[str, Array]) -> None:
    training, _ = network.load_digits()
    content = quantise.quantise(weights, training.images)
    assert content == network.MODEL_FILE.read_bytes()
    assert content == quantise.quantise(weights, training.images)


def test_other_weights_give_other_bytes(weights: dict[str, Array]) -> None:
    training, _ = network.load_digits()
    changed = {**weights, "reduce": weights["reduce"] * np.float32(1.5)}
    assert quantise.quantise(changed, training.images) != network.MODEL_FILE.read_bytes()


def test_calibration_does_not_depend_on_the_last_bits_of_sums(weights: dict[str, Array]) -> None:
    training, _ = network.load_digits()
    expected = quantise.calibrate(weights, training.images)
    nudged = {name: value.astype(np.float64) * (1 + 1e-9) for name, value in weights.items()}
    assert quantise.calibrate(nudged, training.images) == expected
    # A change that is no rounding error is seen.
    larger = {name: value * np.float32(1.05) for name, value in weights.items()}
    assert quantise.calibrate(larger, training.images) != expected


def test_the_split_is_stratified_and_disjoint(held_out: network.Digits) -> None:
    training, again = network.load_digits()
    assert (len(training.labels), len(again.labels)) == (1437, 360)
    np.testing.assert_array_equal(again.images, held_out.images)
    np.testing.assert_array_equal(again.labels, held_out.labels)
    shares = np.bincount(held_out.labels) / (np.bincount(training.labels) + np.bincount(held_out.labels))
    assert shares.min() > 0.18
    assert shares.max() < 0.22
    assert not {image.tobytes() for image in training.images} & {i.tobytes() for i in held_out.images}


def test_the_float_network_is_accurate(weights: dict[str, Array], held_out: network.Digits) -> None:
    logits = network.forward(weights, network.as_float(held_out.images))["logits"]
    assert num_right(logits, held_out) >= 0.97 * 360


def test_the_int8_model_is_nearly_as_accurate(
    weights: dict[str, Array], held_out: network.Digits, litert_outputs: Array
) -> None:
    logits = network.forward(weights, network.as_float(held_out.images))["logits"]
    assert num_right(litert_outputs, held_out) >= 0.965 * 360
    assert abs(num_right(litert_outputs, held_out) - num_right(logits, held_out)) <= 0.01 * 360


def test_each_layer_of_the_int8_model_follows_the_float_network(
    weights: dict[str, Array], held_out: network.Digits
) -> None:
    training, _ = network.load_digits()
    layers = quantise.calibrate(weights, training.images)
    model = LiteRt(network.MODEL_FILE, keep_all_tensors=True)
    for image in held_out.images[:20]:
        model.run(image[np.newaxis])
        for name, real in network.forward(weights, network.as_float(image[np.newaxis])).items():
            stored = model.tensor(name).astype(np.float64).reshape(real.shape)
            error = np.abs((stored - layers[name].zero_point) * layers[name].scale - real).max()
            # Errors of a few steps pile up from layer to layer; a wrong scale or padding is far above.
            assert error <= 5 * layers[name].scale + 1e-6, name


def test_litert_and_tflm_agree_on_nearly_all_answers(held_out: network.Digits, litert_outputs: Array) -> None:
    model = TfLiteMicro(network.MODEL_FILE)
    answers = [int(model.run(image[np.newaxis])[0].argmax()) for image in held_out.images]
    assert np.count_nonzero(litert_outputs.argmax(axis=1) == answers) >= 356


def test_gradients_equal_difference_quotients() -> None:
    random = np.random.default_rng(7)
    weights: dict[str, Array] = {}
    for name, shape in network.WEIGHT_SHAPES.items():
        weights[name] = random.normal(0, 0.4, shape)
        weights[f"{name}_bias"] = random.normal(0, 0.2, shape[-1] if name == "depthwise" else shape[0])
    images = random.random((4, 8, 8, 1))
    labels = np.array([3, 1, 4, 9])

    def loss() -> float:
        return network.gradients(weights, network.forward(weights, images), labels)[0]

    _, by = network.gradients(weights, network.forward(weights, images), labels)
    assert sorted(by) == sorted(weights)
    for name, values in weights.items():
        assert by[name].shape == values.shape
        for index in random.integers(0, values.size, size=4):
            kept, step = values.flat[index], 1e-6
            values.flat[index] = kept + step
            above = loss()
            values.flat[index] = kept - step
            below = loss()
            values.flat[index] = kept
            assert by[name].flat[index] == pytest.approx((above - below) / (2 * step), rel=1e-3, abs=1e-6), (
                name
            )
