"""CONV_3D and CONV_3D_TRANSPOSE: of images, whose channels are those of all slices that a window sees.

The window's slices of the depth are put side by side as channels, so that one `conv2d` does it all.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bytewright import ir
from bytewright.frontends.tflite.accumulator import clamp_float
from bytewright.frontends.tflite.conversion import Conversion
from bytewright.frontends.tflite.convolution import emit_convolution, emit_transposed_convolution
from bytewright.frontends.tflite.options import WindowOptions, conv3d_options
from bytewright.frontends.tflite.shape import emit_joined, emit_padded, emit_slice
from bytewright.frontends.tflite.spread import emit_spread
from bytewright.frontends.tflite.windows import MAX_STEP, padding_around, spatial_padding, windows_of

_AXES = 5


def convert_conv3d(at: Conversion) -> None:
    """CONV_3D of floats: weights [KD,KH,KW,IC,OC] over [N,D,H,W,IC]."""
    options, (step, spread) = conv3d_options(at)
    at.require_counts((2, 3))
    source = at.activation_operand(0, "input")
    weights, array = at.constant_operand(1, "weights")
    at.require_same_dtype(source, weights)
    at.require(source.is_float, f"the input is {source.tensor.element_type}, not FLOAT32")
    at.require(len(source.shape) == _AXES == len(weights.shape), f"input or weights do not have {_AXES} axes")
    batch, _, height, width, depth = source.shape
    size, *kernel, taken, channels = weights.shape
    at.require(taken == depth, f"{depth} input channels do not fit weights of {taken}")
    steps = (step, spread, *options.stride, *options.dilation)
    at.require(all(1 <= each <= MAX_STEP for each in steps), f"strides and dilations {list(steps)}")
    image, count = _slices(
        at, at.value_of(source), WindowOptions(options.padding, (step, 1), (spread, 1), ""), size
    )
    image = at.reshape(image, (batch * count, height, width, size * depth), "images")
    flat = array.transpose(4, 1, 2, 0, 3).reshape(channels, *kernel, size * depth)
    sums = emit_convolution(at, image, _weights_and_bias(at, flat, bias_at=2), options)
    result = (batch, count, *at.type_of(sums).fixed_shape[1:])
    at.define(at.reshape(clamp_float(at, sums, options.activation), result))


def convert_conv3d_transpose(at: Conversion) -> None:
    """CONV_3D_TRANSPOSE of floats: the result's shape, weights [KD,KH,KW,OC,IC], input [N,D,H,W,IC].

    Slices are spread out along the depth, between them zeros; windows over those are of a convolution, whose taps are
    in reverse.
    """
    options, (step, spread) = conv3d_options(at)
    at.require_counts((3, 4))
    stated = at.integers_operand(0, "output shape")
    source = at.activation_operand(2, "input")
    weights, array = at.constant_operand(1, "weights")
    at.require_same_dtype(source, weights)
    at.require(source.is_float, f"the input is {source.tensor.element_type}, not FLOAT32")
    at.require(
        len(source.shape) == _AXES == len(weights.shape) == len(stated),
        f"input, weights or output shape do not have {_AXES} axes",
    )
    at.require((spread, *options.dilation) == (1, 1, 1), "dilations are not supported")
    at.require(
        all(1 <= each <= MAX_STEP for each in (step, *options.stride)), "a stride that is not positive"
    )
    batch, slices, height, width, depth = source.shape
    size, *kernel, channels, taken = weights.shape
    fits = taken == depth and (stated[0], stated[4]) == (batch, channels) and min(stated) >= 1
    at.require(fits, f"{list(weights.shape)} weights of {list(source.shape)} do not give {list(stated)}")
    along = WindowOptions(options.padding, (step, 1), (1, 1), "")
    going_back = (
        *windows_of(along, (stated[1], 1), (size, 1))[:1],
        *windows_of(options, stated[2:4], (kernel[0], kernel[1])),
    )
    at.require(
        going_back == (slices, height, width),
        f"a result {list(stated)} is of {list(going_back)} elements, not of {list(source.shape[1:4])}",
    )
    before, after, *_ = padding_around(along, (stated[1], 1), (slices, 1), (size, 1))
    name = emit_spread(at, at.value_of(source), 1, step, 0.0)
    around = (size - 1 + before, size - 1 + after)
    name = emit_padded(at, name, (0, around[0], 0, 0, 0), (0, around[1], 0, 0, 0), 0.0)
    image, count = _side_by_side(at, name, size, 1, 1)
    image = at.reshape(image, (batch * count, height, width, size * depth), "images")
    flat = np.flip(array, 0).transpose(3, 1, 2, 0, 4).reshape(channels, *kernel, size * depth)
    operands = _weights_and_bias(at, flat, bias_at=3)
    sums = emit_transposed_convolution(at, image, operands, options, (stated[2], stated[3]))
    at.define(at.reshape(clamp_float(at, sums, options.activation), stated))


def _weights_and_bias(at: Conversion, flat: NDArray[Any], bias_at: int) -> tuple[str, str]:
    """Weights [OC,KH,KW,IC] and the bias, zeros where the file has none."""
    channels = len(flat)
    bias = at.fixed_operand(bias_at, "bias") if at.is_present(bias_at) else np.zeros(channels, np.float32)
    at.require(bias.shape == (channels,), f"a bias {list(bias.shape)} for {channels} channels")
    weights = at.constant("weights", np.ascontiguousarray(flat), ir.DType.F32)
    return weights, at.constant("bias", bias, ir.DType.F32)


def _slices(at: Conversion, name: str, options: WindowOptions, size: int) -> tuple[str, int]:
    """For each window along the depth the slices that it sees, side by side as channels; and how many windows."""
    step, spread = options.stride[0], options.dilation[0]
    before, after, *_ = spatial_padding(options, (1, at.type_of(name).fixed_shape[1], 1), (size, 1))
    name = emit_padded(at, name, (0, before, 0, 0, 0), (0, after, 0, 0, 0), 0.0)
    return _side_by_side(at, name, size, step, spread)


def _side_by_side(at: Conversion, name: str, size: int, step: int, spread: int) -> tuple[str, int]:
    """The same, of slices among which are those of the padding."""
    batch, extent, *rest = at.type_of(name).fixed_shape
    count = (extent - (size - 1) * spread - 1) // step + 1
    at.require(count >= 1, f"a window of {size} slices does not fit {extent}")
    shape, stride = (batch, count, *rest), (1, step, 1, 1, 1)
    parts = [emit_slice(at, name, (0, tap * spread, 0, 0, 0), shape, stride) for tap in range(size)]
    return emit_joined(at, _AXES - 1, parts, "side_by_side"), count
