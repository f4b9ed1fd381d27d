"""Convolutions whose weights are all large, so that the sum of a channel's leaves 16 bits."""

from __future__ import annotations

import numpy as np

from support.random_models import RandomModel
from tflite_writer import ModelBuilder

SCALE = 1.0 / 64


def heavy_convolution(seed: int, shape: tuple[int, int, int], kernel: int, channels: int) -> RandomModel:
    """CONV_2D of int8, [H, W, C], with weights of at least 64 and one sign in each channel, or of both.

    The largest bias there is comes first.
    """
    generator = np.random.default_rng(seed)
    height, width, depth = shape
    builder = ModelBuilder()
    x = builder.tensor("x", (1, *shape), "int8", scale=SCALE, zero_point=int(generator.integers(-128, 128)))
    weights = generator.integers(64, 128, (channels, kernel, kernel, depth))
    signs = generator.choice([-1, 1], (channels, 1, 1, 1) if seed % 2 else weights.shape)
    bias = generator.integers(-(2**20), 2**20, channels).astype(np.int32)
    bias[0] = 2**30
    taps = kernel * kernel * depth
    reach = taps if seed % 2 else float(np.sqrt(taps))
    scales = [SCALE] * channels
    w = builder.constant("weights", (weights * signs).astype(np.int8), scale=scales, quantized_dimension=0)
    b = builder.constant("bias", bias, scale=[SCALE * scale for scale in scales])
    y = builder.tensor("y", (1, height, width, channels), "int8", scale=SCALE * reach, zero_point=-5)
    builder.operator("CONV_2D", [x, w, b], [y], padding="SAME", stride_h=1, stride_w=1)
    story = f"heavy {shape}, kernel {kernel}, {channels} channels, seed {seed}"
    return RandomModel(builder.build([x], [y]), story, ((1, *shape),), "int8")
