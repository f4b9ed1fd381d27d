"""A wake-word net of SVDF layers, as TensorFlow Lite Micro's hotword detector is built: features of a frame to classes.

Layers of rank 2 and a memory of ten frames, each with a state of int16. Each is carried out on random frames as soon as
its weights are drawn, and its scales are chosen such that its values have a usual spread.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from support.recurrent_models import Affine, Writer

Array = NDArray[Any]
FEATURES, CLASSES, RANK, MEMORY = 40, 3, 2, 10
UNITS = (64, 48, 48, 32)
_FRAMES = 60


def wake_word_net() -> bytes:
    """The file: int8 [1,40] to int8 [1,3]."""
    writer, random = Writer(), np.random.default_rng(11)
    frames = random.normal(0, 1, (_FRAMES, FEATURES))
    source = value = writer.tensor((1, FEATURES), "int8", (0.03, 3))
    for units in UNITS:
        value, frames = _svdf(writer, random, value, frames, units)
    weights, scale = _weights(random, (CLASSES, UNITS[-1]), "int8")
    logits = writer.tensor((1, CLASSES), "int8", _range(frames @ (weights * scale).T))
    full = writer.tensor(weights.shape, "int8", (scale, 0), weights)
    writer.operator("FULLY_CONNECTED", [value, full, -1], [logits], ("FullyConnectedOptions", {}))
    result = writer.tensor((1, CLASSES), "int8", (1 / 256, -128))
    writer.operator("SOFTMAX", [logits], [result], ("SoftmaxOptions", {"beta": 1.0}))
    return writer.build([source], [result])


def _svdf(
    writer: Writer, random: np.random.Generator, source: int, frames: Array, units: int
) -> tuple[int, Array]:
    """A layer with ReLU behind a value: its result, and what it is of the frames."""
    filters = units * RANK
    features, feature_scale = _weights(random, (filters, frames.shape[1]), "int8")
    time, time_scale = _weights(random, (filters, MEMORY), "int16")
    seen = frames @ (features * feature_scale).T
    state_scale = float(np.float32(np.abs(seen).max() * 1.2 / 32767))
    windows = np.lib.stride_tricks.sliding_window_view(seen, MEMORY, axis=0)
    sums = (windows * (time * time_scale)).sum(axis=2).reshape(-1, units, RANK).sum(axis=2)
    given = np.maximum(sums, 0.0)
    result = writer.tensor((1, units), "int8", _range(given))
    bias = random.integers(-999, 1000, units).astype(np.int32)
    over = float(np.float32(state_scale) * np.float32(time_scale))
    inputs = [
        source,
        writer.tensor(features.shape, "int8", (feature_scale, 0), features),
        writer.tensor(time.shape, "int16", (time_scale, 0), time),
        writer.tensor((units,), "int32", (over, 0), bias),
        writer.tensor((1, filters * MEMORY), "int16", (state_scale, 0), is_variable=True),
    ]
    writer.operator("SVDF", inputs, [result], ("SVDFOptions", {"rank": RANK, "fusedActivationFunction": 1}))
    return result, given


def _weights(random: np.random.Generator, shape: tuple[int, int], dtype: str) -> tuple[Array, float]:
    most = np.iinfo(dtype).max
    values = random.integers(-most, most + 1, shape).astype(dtype)
    return values, float(np.float32(1.7 / (most * shape[1] ** 0.5)))


def _range(values: Array) -> Affine:
    """Of int8, for these values and a tenth more."""
    low, high = min(float(values.min()), 0.0) * 1.1, max(float(values.max()), 0.0) * 1.1
    scale = float(np.float32((high - low) / 255.0))
    return scale, int(np.rint(-128.0 - low / scale))
