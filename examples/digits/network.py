"""The network of this example, in numpy: its data, its arithmetic in floating point, and its gradients.

    image [8,8,1]
      -> stem       3x3 convolution, 16 channels, relu          [8,8,16] --+
      -> depthwise  3x3 depthwise convolution, relu             [8,8,16]   |
      -> pointwise  1x1 convolution                             [8,8,16]   |
      -> sum        residual addition with stem, relu           [8,8,16] <-+
      -> reduce     3x3 convolution, stride 2, 32 channels, relu  [4,4,32]
      -> pool       2x2 average                                 [2,2,32]
      -> logits     fully connected                             [10]

The residual addition keeps `stem` alive over two other layers, which makes the memory plan worth a look.
Weights have TFLite's layouts, and "same" padding is TFLite's: where it is odd, the larger half is at the end.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Weights = Mapping[str, Array]

HERE = Path(__file__).resolve().parent
WEIGHTS_FILE = HERE / "weights.npz"
HELD_OUT_FILE = HERE / "heldout.npz"
MODEL_FILE = HERE / "digits.tflite"

LARGEST_PIXEL = 16
NUM_CLASSES = 10
NUM_HELD_OUT = 360

WEIGHT_SHAPES: dict[str, tuple[int, ...]] = {
    "stem": (16, 3, 3, 1),
    "depthwise": (1, 3, 3, 16),
    "pointwise": (16, 1, 1, 16),
    "reduce": (32, 3, 3, 16),
    "logits": (NUM_CLASSES, 128),
}
"""Layer to the shape of its weights: [out, height, width, in], depthwise [1, height, width, channels]."""


@dataclass(frozen=True, slots=True, eq=False)
class Digits:
    """Images are int8 [n,8,8,1] with pixels of 0 (paper) to 16 (ink); labels are 0 to 9."""

    images: Array
    labels: Array


def load_digits() -> tuple[Digits, Digits]:
    """scikit-learn's bundled digits (1797), split for good into 1437 for training and 360 held out.

    The split is stratified and uses no library's shuffle, so that it never changes: of each digit's images
    every fifth is held out, until there are 360.
    """
    from sklearn import datasets

    data: Any = datasets.load_digits()
    images = data.images.astype(np.int8)[..., np.newaxis]
    labels = data.target.astype(np.int8)
    rank_in_class = np.zeros(len(labels), dtype=np.int64)
    for digit in range(NUM_CLASSES):
        rank_in_class[labels == digit] = np.arange(np.count_nonzero(labels == digit))
    held_out = np.zeros(len(labels), dtype=bool)
    held_out[np.flatnonzero(rank_in_class % 5 == 0)[:NUM_HELD_OUT]] = True
    return Digits(images[~held_out], labels[~held_out]), Digits(images[held_out], labels[held_out])


def as_float(images: Array, dtype: Any = np.float32) -> Array:
    """Pixels as the network sees them, from 0 to 1."""
    return images.astype(dtype) / dtype(LARGEST_PIXEL)


def forward(weights: Weights, inputs: Array) -> dict[str, Array]:
    """All activations by the name of their layer, `image` included; computed in the type of `inputs`."""
    values: dict[str, Array] = {"image": inputs}

    def layer(kind: Any, name: str, source: str, **options: int) -> Array:
        return kind(values[source], weights[name], **options) + weights[f"{name}_bias"]

    values["stem"] = _relu(layer(_convolution, "stem", "image"))
    values["depthwise"] = _relu(layer(_depthwise, "depthwise", "stem"))
    values["pointwise"] = layer(_convolution, "pointwise", "depthwise")
    values["sum"] = _relu(values["stem"] + values["pointwise"])
    values["reduce"] = _relu(layer(_convolution, "reduce", "sum", stride=2))
    values["pool"] = values["reduce"].reshape(-1, 2, 2, 2, 2, 32).mean(axis=(2, 4))
    flat = values["pool"].reshape(len(inputs), -1)
    values["logits"] = flat @ weights["logits"].T + weights["logits_bias"]
    return values


def gradients(weights: Weights, values: Weights, labels: Array) -> tuple[float, dict[str, Array]]:
    """The mean cross-entropy of a batch and its gradient by each weight; `values` come from `forward`."""
    probabilities = softmax(values["logits"])
    rows = np.arange(len(labels))
    loss = float(-np.log(probabilities[rows, labels] + 1e-12).mean())
    by: dict[str, Array] = {}

    d_logits = probabilities.copy()
    d_logits[rows, labels] -= 1
    d_logits /= len(labels)
    by["logits"] = d_logits.T @ values["pool"].reshape(len(labels), -1)
    by["logits_bias"] = d_logits.sum(axis=0)
    d_pool = (d_logits @ weights["logits"]).reshape(-1, 2, 1, 2, 1, 32) / 4

    d_reduce = np.broadcast_to(d_pool, (len(labels), 2, 2, 2, 2, 32)).reshape(-1, 4, 4, 32)
    d_reduce = d_reduce * (values["reduce"] > 0)
    by["reduce_bias"] = d_reduce.sum(axis=(0, 1, 2))
    by["reduce"], d_sum = _convolution_gradients(values["sum"], weights["reduce"], d_reduce, stride=2)

    d_sum = d_sum * (values["sum"] > 0)
    by["pointwise_bias"] = d_sum.sum(axis=(0, 1, 2))
    by["pointwise"], d_depthwise = _convolution_gradients(values["depthwise"], weights["pointwise"], d_sum)

    d_depthwise = d_depthwise * (values["depthwise"] > 0)
    by["depthwise_bias"] = d_depthwise.sum(axis=(0, 1, 2))
    by["depthwise"], d_stem = _depthwise_gradients(values["stem"], weights["depthwise"], d_depthwise)

    d_stem = (d_stem + d_sum) * (values["stem"] > 0)
    by["stem_bias"] = d_stem.sum(axis=(0, 1, 2))
    by["stem"], _ = _convolution_gradients(values["image"], weights["stem"], d_stem)
    return loss, by


def softmax(logits: Array) -> Array:
    """Probabilities along the last axis."""
    powers = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def _relu(values: Array) -> Array:
    return np.maximum(values, values.dtype.type(0))


def _same_padding(extent: int, kernel: int, stride: int) -> tuple[int, int]:
    total = max((-(-extent // stride) - 1) * stride + kernel - extent, 0)
    return total // 2, total - total // 2


def _taps(images: Array, kernel: int, stride: int) -> Array:
    """The window under each output: [n, rows, columns, channels, kernel, kernel], a view."""
    pad = _same_padding(images.shape[1], kernel, stride)
    padded = np.pad(images, ((0, 0), pad, pad, (0, 0)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (kernel, kernel), axis=(1, 2))
    return windows[:, ::stride, ::stride]


def _spread(tap_gradients: Array, extent: int, stride: int) -> Array:
    """The inverse of `_taps` for gradients: adds up what each pixel gave to the windows it was in."""
    count, rows, columns, channels, kernel, _ = tap_gradients.shape
    before, after = _same_padding(extent, kernel, stride)
    size = extent + before + after
    padded = np.zeros((count, size, size, channels), dtype=tap_gradients.dtype)
    for y in range(kernel):
        for x in range(kernel):
            part = padded[:, y : y + rows * stride : stride, x : x + columns * stride : stride]
            part += tap_gradients[..., y, x]
    return padded[:, before : before + extent, before : before + extent]


def _convolution(images: Array, kernel: Array, stride: int = 1) -> Array:
    taps = _taps(images, kernel.shape[1], stride)
    return np.tensordot(taps, kernel, axes=((4, 5, 3), (1, 2, 3)))


def _convolution_gradients(
    images: Array, kernel: Array, d_output: Array, stride: int = 1
) -> tuple[Array, Array]:
    taps = _taps(images, kernel.shape[1], stride)
    d_kernel = np.tensordot(d_output, taps, axes=((0, 1, 2), (0, 1, 2))).transpose(0, 2, 3, 1)
    d_taps = np.tensordot(d_output, kernel.transpose(0, 3, 1, 2), axes=((3,), (0,)))
    return d_kernel, _spread(d_taps, images.shape[1], stride)


def _depthwise(images: Array, kernel: Array) -> Array:
    return np.einsum("nhwcyx,yxc->nhwc", _taps(images, kernel.shape[1], 1), kernel[0])


def _depthwise_gradients(images: Array, kernel: Array, d_output: Array) -> tuple[Array, Array]:
    taps = _taps(images, kernel.shape[1], 1)
    d_kernel = np.einsum("nhwcyx,nhwc->yxc", taps, d_output)[np.newaxis]
    d_taps = np.einsum("nhwc,yxc->nhwcyx", d_output, kernel[0])
    return d_kernel, _spread(d_taps, images.shape[1], 1)
