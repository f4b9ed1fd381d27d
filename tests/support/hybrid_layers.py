"""Layers of float32 activations and integer weights, and inputs for them whose rows have ranges of their own."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tflite_writer import OPTIONAL, ModelBuilder

Array = NDArray[Any]


@dataclass(frozen=True)
class Layer:
    """An operator of float32 with integer weights.

    Attributes:
        channels: The axis of the weights along which there are several scales; None for one.
        most: Of the magnitude of the weights.
    """

    kind: str
    source: tuple[int, ...]
    weights: tuple[int, ...]
    result: tuple[int, ...]
    channels: int | None = None
    dtype: str = "int8"
    has_bias: bool = True
    options: dict[str, Any] = field(default_factory=dict[str, Any])

    def model(self, seed: int = 0, *, is_dequantised: bool = False) -> bytes:
        """The file; on request with a DEQUANTIZE of the weights, so that the operator itself is one of float32."""
        generator = np.random.default_rng(seed)
        most = 7 if self.dtype == "int4" else 127
        values = generator.integers(-most, most + 1, self.weights)
        count = 1 if self.channels is None else self.weights[self.channels]
        scales = (0.01 * 2.0 ** generator.uniform(-2, 2, count)).astype(np.float32)
        builder = ModelBuilder()
        x, y = builder.tensor("x", self.source, "float32"), builder.tensor("y", self.result, "float32")
        w = builder.tensor(
            "w",
            self.weights,
            self.dtype,
            data=values,
            scale=scales,
            quantized_dimension=self.channels or 0,
        )
        if is_dequantised:
            wide = builder.tensor("wide", self.weights, "float32")
            builder.operator("DEQUANTIZE", [w], [wide], version=6)
            w = wide
        bias = OPTIONAL
        if self.has_bias:
            bias = builder.constant("b", generator.normal(size=self.result[-1]).astype(np.float32))
        operands = [x, w, bias]
        if self.kind == "TRANSPOSE_CONV":
            operands = [builder.constant("shape", np.array(self.result, np.int32)), w, x]
            operands += [bias] if self.has_bias else []
        elif self.kind == "BATCH_MATMUL":
            operands = operands[:2]
        builder.operator(self.kind, operands, [y], **self.options)
        return builder.build([x], [y])


def convolution(
    source: tuple[int, ...],
    weights: tuple[int, ...],
    padding: str = "SAME",
    channels: int | None = 0,
    **more: Any,
) -> Layer:
    """CONV_2D of stride 1."""
    height, width = source[1:3]
    if padding == "VALID":
        height, width = height - weights[1] + 1, width - weights[2] + 1
    dtype = more.pop("dtype", "int8")
    options = {"padding": padding, **more}
    return Layer(
        "CONV_2D", source, weights, (source[0], height, width, weights[0]), channels, dtype, options=options
    )


def layer(channels: int | None = 0, dtype: str = "int8", *, has_bias: bool = True, **options: Any) -> Layer:
    """FULLY_CONNECTED of 3 rows."""
    return Layer("FULLY_CONNECTED", (3, 21), (5, 21), (3, 5), channels, dtype, has_bias, options)


ASYMMETRIC = {"asymmetric_quantize_inputs": True}
EXACT = {
    "layer": layer(),
    "layer of one scale": layer(None),
    "layer without a bias": layer(has_bias=False, activation="RELU6"),
    "layer with zero points": layer(**ASYMMETRIC, activation="RELU"),
    "layer of one scale with zero points": layer(None, **ASYMMETRIC),
    "layer of int4": layer(dtype="int4"),
    "convolution": convolution((2, 6, 5, 3), (4, 3, 3, 3)),
    "convolution without padding": convolution((2, 6, 5, 3), (4, 3, 3, 3), "VALID", activation="RELU"),
    "convolution of one scale": convolution((2, 6, 5, 3), (4, 3, 3, 3), channels=None),
    "convolution of one scale, dilated": convolution(
        (1, 9, 8, 3), (4, 3, 3, 3), channels=None, dilation_h_factor=2, dilation_w_factor=3
    ),
    "convolution, dilated": convolution((1, 9, 8, 3), (4, 3, 3, 3), dilation_h_factor=2, dilation_w_factor=3),
    "convolution in groups": convolution((2, 5, 5, 6), (4, 3, 3, 3)),
    "convolution of a channel a group": convolution((2, 5, 5, 4), (8, 3, 3, 1)),
    "convolution of int4": convolution((1, 6, 5, 3), (3, 2, 3, 3), dtype="int4"),
    "depthwise": Layer(
        "DEPTHWISE_CONV_2D", (2, 6, 5, 3), (1, 3, 3, 6), (2, 3, 3, 6), 3,
        options={"stride_h": 2, "stride_w": 2, "depth_multiplier": 2},
    ),
    "product of matrices": Layer("BATCH_MATMUL", (2, 3, 9), (9, 4), (2, 3, 4), has_bias=False),
    "product with zero points": Layer(
        "BATCH_MATMUL", (2, 3, 9), (4, 9), (2, 3, 4), has_bias=False, options={**ASYMMETRIC, "adj_y": True}
    ),
}  # fmt: skip


def inputs(shape: tuple[int, ...], seed: int) -> list[Array]:
    """Samples of ranges far apart, some of one sign, some all zero."""
    generator = np.random.default_rng(seed)
    rows = generator.normal(size=shape) * 10.0 ** generator.integers(
        -3, 4, (shape[0], *(1 for _ in shape[1:]))
    )
    shifted = rows + np.abs(rows).max()
    zeros = rows.copy()
    zeros[-1] = 0
    return [array.astype(np.float32) for array in (rows, shifted, -shifted, zeros, 0 * rows)]
