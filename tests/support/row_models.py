"""Small chains of windows over an image, in int8, whose values stay alive: what images by rows are tried with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from support.random_models import RandomModel
from tflite_writer import ModelBuilder

_SCALE = 1.0 / 32


@dataclass(frozen=True)
class Layer:
    """A convolution: its window, stride of rows, result's channels, and padding."""

    rows: int
    columns: int = 3
    stride: int = 1
    channels: int = 4
    padding: str = "SAME"

    def result(self, shape: Sequence[int]) -> tuple[int, ...]:
        """The shape that it makes of one."""
        extents = [
            -(-extent // stride) if self.padding == "SAME" else (extent - window) // stride + 1
            for extent, window, stride in zip(
                shape[1:3], (self.rows, self.columns), (self.stride, 1), strict=True
            )
        ]
        return (1, *extents, self.channels)


def chain(shape: tuple[int, int, int], *layers: Layer, seed: int = 0, tail: bool = False) -> RandomModel:
    """A model of these layers over an image of rows, columns and channels.

    Args:
        shape: Of the image.
        layers: One behind the other.
        seed: Of the weights.
        tail: Whether a fully connected layer comes last.
    """
    generator, builder = np.random.default_rng(seed), ModelBuilder()
    extents: tuple[int, ...] = (1, *shape)
    at = image = builder.tensor("image", extents, "int8", scale=_SCALE, zero_point=3)
    for number, layer in enumerate(layers):
        window = (layer.channels, layer.rows, layer.columns, extents[3])
        extents = layer.result(extents)
        result = builder.tensor(f"layer_{number}", extents, "int8", scale=_SCALE, zero_point=number - 2)
        sources = [at, *_weights(builder, generator, f"{number}", window)]
        strides = {"stride_h": layer.stride, "stride_w": 1}
        builder.operator("CONV_2D", sources, [result], padding=layer.padding, **strides)
        at = result
    if tail:
        window = (5, int(np.prod(extents)))
        flat = builder.tensor("flat", (1, window[1]), "int8", scale=_SCALE, zero_point=len(layers) - 3)
        form = builder.constant("form", np.array([1, window[1]], np.int32))
        builder.operator("RESHAPE", [at, form], [flat], new_shape=[1, window[1]])
        result = builder.tensor("classes", (1, 5), "int8", scale=_SCALE)
        builder.operator("FULLY_CONNECTED", [flat, *_weights(builder, generator, "tail", window)], [result])
        at = result
    story = f"chain over {shape}: {layers}"
    return RandomModel(builder.build([image], [at]), story, ((1, *shape),), "int8")


def _weights(
    builder: ModelBuilder, generator: np.random.Generator, name: str, shape: tuple[int, ...]
) -> tuple[int, int]:
    """Weights that keep the deviation of the values, and a bias."""
    scale = 1.0 / 64 / float(np.sqrt(np.prod(shape[1:])))
    values: NDArray[Any] = generator.integers(-127, 128, shape, np.int8)
    bias = generator.integers(-500, 500, shape[0]).astype(np.int32)
    return (
        builder.constant(f"{name}_weights", values, scale=scale),
        builder.constant(f"{name}_bias", bias, scale=scale * _SCALE),
    )
