"""Write MobileNetV2 as an int8 .tflite file with random weights: a network of real size, whose memory is known.

    content = mobilenet_v2("1.0", 224)

The layers are those of the paper (Sandler and others, 2018, table 2), the widths by its rule, rounded to multiples
of eight; what TFLite's converter makes of them: CONV_2D and DEPTHWISE_CONV_2D with SAME padding, ReLU6 fused into
them, scales for each channel, ADD for the residuals, MEAN, FULLY_CONNECTED, SOFTMAX.

Weights are random, so a scale from nowhere would let the values saturate or vanish after a few layers. Each layer is
carried out on a calibration image as soon as its weights are drawn, and its scales and biases are chosen such that
its values have a usual spread: what batch normalisation does for trained ones. The sums are integers, exact in
float64 in any order, so the same call gives the same bytes on every machine.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from tflite_writer import ModelBuilder

Values = NDArray[np.float64]
Images = NDArray[np.int8]

# Expansion, channels before the width multiplier, repeats, stride of the first: one row for each row of the paper.
_BLOCKS = (
    (1, 16, 1, 1),
    (6, 24, 2, 2),
    (6, 32, 3, 2),
    (6, 64, 4, 2),
    (6, 96, 3, 1),
    (6, 160, 3, 2),
    (6, 320, 1, 1),
)
_FIRST_CHANNELS, _LAST_CHANNELS, _NUM_CLASSES = 32, 1280, 1000
_SIX_STEPS = (float(np.float32(6.0 / 255.0)), -128)
_IMAGE_STEPS = (float(np.float32(1.0 / 127.5)), -1)
_SPREAD_BEFORE_RELU6 = 1.6
_SPREAD_OF_LOGITS = 2.0


def divisible_by_8(channels: Fraction | int) -> int:
    """The multiple of eight nearest to a number of channels, and not less than nine tenths of it."""
    rounded = max(8, int(channels + 4) // 8 * 8)
    return rounded + 8 if rounded < channels * 9 / 10 else rounded


def random_image(size: int, seed: int) -> Images:
    """An image as a camera has them more than noise would be: large patches, smaller ones, and some noise."""
    generator = np.random.default_rng(seed)
    total = np.zeros((size, size, 3), np.int64)
    for patch, amplitude in ((32, 70), (8, 40), (1, 20)):
        count = -(-size // patch)
        coarse = generator.integers(-amplitude, amplitude + 1, (count, count, 3))
        total += coarse.repeat(patch, axis=0).repeat(patch, axis=1)[:size, :size]
    return np.clip(total, -128, 127).astype(np.int8)[np.newaxis]


def mobilenet_v2(width: str, size: int, *, seed: int = 0) -> bytes:
    """The file of MobileNetV2 for square images.

    Args:
        width: The width multiplier as a decimal number, "1.0" or "0.35".
        size: Rows and columns of the image, as the layers halve them five times, rounded up.
        seed: Of the weights.
    """
    multiplier = Fraction(width)
    network = _Network(seed, size)
    value = network.image(size)
    value = network.convolution("conv", value, divisible_by_8(_FIRST_CHANNELS * multiplier), 3, 2)
    number = 0
    for expansion, base, repeats, first_stride in _BLOCKS:
        channels = divisible_by_8(base * multiplier)
        for turn in range(repeats):
            stride = first_stride if turn == 0 else 1
            value = network.block(f"block_{number}", value, expansion, channels, stride)
            number += 1
    last = divisible_by_8(_LAST_CHANNELS * max(multiplier, Fraction(1)))
    value = network.convolution("last_conv", value, last, 1, 1)
    value = network.mean("pool", value)
    return network.classes("logits", value)


@dataclass(frozen=True, slots=True)
class _Tensor:
    """A tensor of the file, and what it holds for the calibration image: int8 values as float64, without batch."""

    index: int
    scale: float
    zero_point: int
    values: Values

    @property
    def centred(self) -> Values:
        """The values less their zero point."""
        return self.values - self.zero_point

    @property
    def real(self) -> Values:
        """What the values stand for."""
        return self.centred * self.scale


class _Network:
    """A network under construction."""

    def __init__(self, seed: int, size: int) -> None:
        self._generator = np.random.default_rng(seed)
        self._builder = ModelBuilder("MobileNetV2 with random weights")
        self._inputs: list[int] = []
        self._calibration = random_image(size, seed)

    def image(self, size: int) -> _Tensor:
        scale, zero_point = _IMAGE_STEPS
        index = self._builder.tensor("image", [1, size, size, 3], "int8", scale=scale, zero_point=zero_point)
        self._inputs.append(index)
        return _Tensor(index, scale, zero_point, self._calibration[0].astype(np.float64))

    def block(self, name: str, source: _Tensor, expansion: int, channels: int, stride: int) -> _Tensor:
        """An inverted residual: expand, filter, project, and add where the shapes are the same."""
        depth = source.values.shape[2]
        value = source
        if expansion > 1:
            value = self.convolution(f"{name}/expand", value, depth * expansion, 1, 1)
        value = self.depthwise(f"{name}/depthwise", value, stride)
        value = self.convolution(f"{name}/project", value, channels, 1, 1, relu6=False)
        if stride == 1 and depth == channels:
            value = self._add(f"{name}/add", source, value)
        return value

    def convolution(
        self, name: str, source: _Tensor, channels: int, extent: int, stride: int, *, relu6: bool = True
    ) -> _Tensor:
        """CONV_2D with a square window."""
        weights = self._weights((channels, extent, extent, source.values.shape[2]))
        sums = sum(
            tap @ weights[:, row, column].astype(np.float64).T
            for (row, column), tap in _taps(source.centred, extent, stride)
        )
        assert isinstance(sums, np.ndarray)
        return self._weighted("CONV_2D", name, source, weights, 0, sums, stride, relu6)

    def depthwise(self, name: str, source: _Tensor, stride: int) -> _Tensor:
        """DEPTHWISE_CONV_2D with a window of three by three."""
        weights = self._weights((1, 3, 3, source.values.shape[2]))
        sums = sum(
            tap * weights[0, row, column].astype(np.float64)
            for (row, column), tap in _taps(source.centred, 3, stride)
        )
        assert isinstance(sums, np.ndarray)
        return self._weighted("DEPTHWISE_CONV_2D", name, source, weights, 3, sums, stride, True)

    def mean(self, name: str, source: _Tensor) -> _Tensor:
        axes = self._builder.constant(f"{name}/axes", np.array([1, 2], np.int32))
        real = source.centred.sum(axis=(0, 1)) / source.values[..., 0].size * source.scale
        result = self._ranged(name, real)
        self._builder.operator("MEAN", [source.index, axes], [result.index], keep_dims=False)
        return result

    def classes(self, name: str, source: _Tensor) -> bytes:
        """FULLY_CONNECTED and SOFTMAX, which end the network: its file."""
        weights = self._weights((_NUM_CLASSES, source.values.size))
        sums = weights.astype(np.float64) @ source.centred
        scale, bias = _normalised(sums[:, np.newaxis], source.scale, _SPREAD_OF_LOGITS)
        offsets = np.full(_NUM_CLASSES, bias[0], np.int32)
        operands = [
            source.index,
            self._builder.constant(f"{name}/weights", weights, scale=float(scale[0])),
            self._builder.constant(f"{name}/bias", offsets, scale=source.scale * float(scale[0])),
        ]
        logits = self._ranged(name, (sums + bias) * scale * source.scale)
        self._builder.operator("FULLY_CONNECTED", operands, [logits.index])
        result = self._builder.tensor(
            "classes", [1, _NUM_CLASSES], "int8", scale=1.0 / 256.0, zero_point=-128
        )
        self._builder.operator("SOFTMAX", [logits.index], [result])
        return self._builder.build(self._inputs, [result])

    def _add(self, name: str, first: _Tensor, second: _Tensor) -> _Tensor:
        result = self._ranged(name, first.real + second.real)
        self._builder.operator("ADD", [first.index, second.index], [result.index])
        return result

    def _weights(self, shape: tuple[int, ...]) -> NDArray[np.int8]:
        """Weights in the whole range, those near zero more often."""
        return self._generator.integers(-42, 43, (3, *shape)).sum(axis=0).astype(np.int8)

    def _weighted(
        self,
        kind: str,
        name: str,
        source: _Tensor,
        weights: NDArray[np.int8],
        axis: int,
        sums: Values,
        stride: int,
        relu6: bool,
    ) -> _Tensor:
        """The operator with scales and biases that give its result a usual spread, and that result."""
        spread = _SPREAD_BEFORE_RELU6 if relu6 else 1.0
        scales, bias = _normalised(sums, source.scale, spread)
        # Eighths: a mean of 0 to 3 before ReLU6, one of -0.5 to 0.5 elsewhere.
        eighths = self._generator.integers(*((0, 25) if relu6 else (-4, 5)), scales.size)
        bias = bias + np.rint(eighths / 8.0 / (scales * source.scale)).astype(np.int32)
        operands = [
            source.index,
            self._builder.constant(f"{name}/weights", weights, scale=scales, quantized_dimension=axis),
            self._builder.constant(f"{name}/bias", bias, scale=scales * source.scale),
        ]
        real = (sums + bias) * scales * source.scale
        result = self._tensor(name, real, *_SIX_STEPS) if relu6 else self._ranged(name, real)
        self._builder.operator(
            kind,
            operands,
            [result.index],
            padding="SAME",
            stride_h=stride,
            stride_w=stride,
            activation="RELU6" if relu6 else "NONE",
        )
        return result

    def _ranged(self, name: str, real: Values) -> _Tensor:
        """A tensor whose range is that of its values, and a tenth more for other images."""
        low, high = min(float(real.min()), 0.0) * 1.1, max(float(real.max()), 0.0) * 1.1
        scale = float(np.float32((high - low) / 255.0))
        return self._tensor(name, real, scale, int(np.rint(-128.0 - low / scale)))

    def _tensor(self, name: str, real: Values, scale: float, zero_point: int) -> _Tensor:
        index = self._builder.tensor(name, [1, *real.shape], "int8", scale=scale, zero_point=zero_point)
        values = np.clip(np.rint(real / scale) + zero_point, -128.0, 127.0)
        return _Tensor(index, scale, zero_point, values)


def _taps(values: Values, extent: int, stride: int) -> list[tuple[tuple[int, int], Values]]:
    """For each position in a window, what the windows of all results have there; SAME padding with zeros."""
    rows, columns, _ = values.shape
    outputs = (-(-rows // stride), -(-columns // stride))
    missing = [
        max((count - 1) * stride + extent - size, 0)
        for count, size in zip(outputs, (rows, columns), strict=True)
    ]
    padded = np.pad(values, [*((total // 2, total - total // 2) for total in missing), (0, 0)])
    return [
        (
            (row, column),
            padded[
                row : row + (outputs[0] - 1) * stride + 1 : stride,
                column : column + (outputs[1] - 1) * stride + 1 : stride,
            ],
        )
        for row in range(extent)
        for column in range(extent)
    ]


def _normalised(
    sums: Values, input_scale: float, spread: float
) -> tuple[NDArray[np.float64], NDArray[np.int32]]:
    """Scales of weights, and biases, one for each channel: the mean becomes 0, the mean distance from it `spread`.

    Sums and distances are integers below 2^53, so no order of adding them matters.
    """
    flat = sums.reshape(-1, sums.shape[-1])
    means: Values = np.rint(flat.sum(axis=0) / len(flat))
    distances: Values = np.abs(flat - means).sum(axis=0) / len(flat)
    scales: Values = spread / (np.maximum(distances, 1.0) * input_scale)
    return scales.astype(np.float32).astype(np.float64), (-means).astype(np.int32)
