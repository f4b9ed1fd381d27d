"""Quantises the trained network to int8 and writes digits.tflite.

    python examples/digits/quantise.py [OUTPUT]

Post-training quantisation in the form that TFLite's own converter gives: activations are asymmetric with one
scale for a tensor, weights of convolutions symmetric with one scale for an output channel, those of the fully
connected layer symmetric with one scale, biases int32 with the scale of the product. The ranges of the
activations are those of the training digits (from scikit-learn); the held-out digits are not looked at.

The same weights.npz gives the same bytes on every machine, see `calibrate`.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from network import LARGEST_PIXEL, MODEL_FILE, WEIGHTS_FILE, Array, Weights, as_float, forward, load_digits

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))

RANGE_STEPS = 64
"""The ranges of activations are multiples of 1 / RANGE_STEPS."""


@dataclass(frozen=True, slots=True)
class Activation:
    """A real number r is stored as the int8 number r / scale + zero_point."""

    scale: float
    zero_point: int


IMAGE = Activation(1 / LARGEST_PIXEL, 0)
"""The model takes the pixels as they are, 0 to 16."""
PROBABILITY = Activation(1 / 256, -128)
"""What TFLite demands of an int8 softmax."""


def calibrate(weights: Weights, images: Array) -> dict[str, Activation]:
    """The scale and zero point of each layer's output, from its smallest and largest value on `images`.

    Ranges are widened to multiples of 1/64: the last bits of floating-point sums differ between machines, and
    this keeps them out of the file.
    """
    wide = {name: value.astype(np.float64) for name, value in weights.items()}
    layers: dict[str, Activation] = {}
    for name, values in forward(wide, as_float(images, np.float64)).items():
        lowest = min(np.floor(values.min() * RANGE_STEPS) / RANGE_STEPS, 0.0)
        highest = max(np.ceil(values.max() * RANGE_STEPS) / RANGE_STEPS, 0.0)
        scale = float(np.float32((highest - lowest) / 255))
        layers[name] = Activation(scale, round(-128 - lowest / scale))
    # Pooling averages the stored numbers, so TFLite wants one scale on both sides of it.
    pool = layers["reduce"]
    return {**layers, "image": IMAGE, "pool": pool, "flat": pool, "probabilities": PROBABILITY}


def weight_scales(weights: Array, channel_axis: int | None) -> Array:
    """One scale for each slice along `channel_axis`, or one for all; the largest weight becomes 127."""
    if channel_axis is None:
        largest = np.abs(weights).max(keepdims=True)
    else:
        axes = tuple(axis for axis in range(weights.ndim) if axis != channel_axis)
        largest = np.abs(weights).max(axis=axes, keepdims=True)
    return (largest / np.float32(127)).astype(np.float32)


class ModelWriter:
    """Adds the network's layers, one after the other, to a TFLite model."""

    def __init__(
        self,
        weights: Weights,
        activations: Mapping[str, Activation],
        description: str = "scikit-learn's 8x8 digits, int8",
    ) -> None:
        from tflite_writer import ModelBuilder  # pyright: ignore[reportMissingImports]

        self._weights = weights
        self._activations = activations
        self._tensors: dict[str, int] = {}
        self._builder: Any = ModelBuilder(description=description)

    def activation(self, name: str, shape: tuple[int, ...]) -> int:
        """A tensor that a layer computes, or the image."""
        layer = self._activations[name]
        self._tensors[name] = self._builder.tensor(
            name, shape, "int8", scale=layer.scale, zero_point=layer.zero_point
        )
        return self._tensors[name]

    def weighted(
        self,
        operator: str,
        name: str,
        source: str,
        shape: tuple[int, ...],
        channel_axis: int | None = 0,
        **options: Any,
    ) -> None:
        """A layer with weights and bias."""
        weights = self._weights[name].astype(np.float32)
        scales = weight_scales(weights, channel_axis)
        axis = channel_axis or 0
        stored = np.clip(np.rint(weights / scales), -127, 127).astype(np.int8)
        kernel = self._builder.constant(
            f"{name}/weights", stored, scale=scales.ravel(), quantized_dimension=axis
        )
        bias_scales = scales.ravel().astype(np.float64) * self._activations[source].scale
        stored_bias = np.rint(self._weights[f"{name}_bias"] / bias_scales).astype(np.int32)
        bias = self._builder.constant(f"{name}/bias", stored_bias, scale=bias_scales)
        inputs = [self._tensors[source], kernel, bias]
        self._builder.operator(operator, inputs, [self.activation(name, shape)], **options)

    def plain(self, operator: str, inputs: list[int], output: int, **options: Any) -> None:
        """A layer without weights."""
        self._builder.operator(operator, inputs, [output], **options)

    def layers(self) -> int:
        """All layers of network.py behind the image, and a softmax; returns the last tensor."""
        tensors = self._tensors
        spatial: dict[str, Any] = {"padding": "SAME", "stride_h": 1, "stride_w": 1}
        self.weighted("CONV_2D", "stem", "image", (1, 8, 8, 16), activation="RELU", **spatial)
        self.weighted(
            "DEPTHWISE_CONV_2D", "depthwise", "stem", (1, 8, 8, 16), 3, activation="RELU", **spatial
        )
        self.weighted("CONV_2D", "pointwise", "depthwise", (1, 8, 8, 16), **spatial)
        residual = self.activation("sum", (1, 8, 8, 16))
        self.plain("ADD", [tensors["stem"], tensors["pointwise"]], residual, activation="RELU")
        halved = {**spatial, "stride_h": 2, "stride_w": 2}
        self.weighted("CONV_2D", "reduce", "sum", (1, 4, 4, 32), activation="RELU", **halved)
        pool = self.activation("pool", (1, 2, 2, 32))
        window = {"filter_height": 2, "filter_width": 2, "stride_h": 2, "stride_w": 2}
        self.plain("AVERAGE_POOL_2D", [tensors["reduce"]], pool, padding="VALID", **window)
        shape = self._builder.constant("flat/shape", np.array([1, 128], dtype=np.int32))
        flat = self.activation("flat", (1, 128))
        self.plain("RESHAPE", [pool, shape], flat, new_shape=(1, 128))
        self.weighted("FULLY_CONNECTED", "logits", "flat", (1, 10), None)
        probabilities = self.activation("probabilities", (1, 10))
        self.plain("SOFTMAX", [tensors["logits"]], probabilities, beta=1.0)
        return probabilities

    def build(self, source: int, result: int) -> bytes:
        """The file of what was added."""
        return self._builder.build([source], [result])

    def model(self) -> bytes:
        """The file: the network of network.py and a softmax."""
        image = self.activation("image", (1, 8, 8, 1))
        return self.build(image, self.layers())


def quantise(weights: Weights, training_images: Array) -> bytes:
    """The model file for these weights; `training_images` give the ranges of the activations."""
    return ModelWriter(weights, calibrate(weights, training_images)).model()


def main() -> None:
    """Writes the file named on the command line, or the one beside this script."""
    output = Path(sys.argv[1]) if len(sys.argv) > 1 else MODEL_FILE
    training, _ = load_digits()
    with np.load(WEIGHTS_FILE) as weights:
        content = quantise(dict(weights), training.images)
    output.write_bytes(content)
    print(f"{output}: {len(content)} bytes")


if __name__ == "__main__":
    main()
