"""CONV_3D: a convolution of images, whose channels are those of all slices that a window sees.

The window's slices of the depth are put side by side as channels, so that one `conv2d` does it all.
"""

import numpy as np

from bytewright import ir
from bytewright.frontends.tflite.accumulator import clamp_float
from bytewright.frontends.tflite.conversion import Conversion
from bytewright.frontends.tflite.convolution import emit_convolution
from bytewright.frontends.tflite.options import WindowOptions, conv3d_options
from bytewright.frontends.tflite.shape import emit_joined, emit_padded, emit_slice
from bytewright.frontends.tflite.windows import MAX_STEP, spatial_padding

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
    flat = np.ascontiguousarray(array.transpose(4, 1, 2, 0, 3)).reshape(channels, *kernel, size * depth)
    bias = at.fixed_operand(2, "bias") if at.is_present(2) else np.zeros(channels, np.float32)
    at.require(bias.shape == (channels,), f"a bias {list(bias.shape)} for {channels} channels")
    operands = (at.constant("weights", flat, ir.DType.F32), at.constant("bias", bias, ir.DType.F32))
    sums = emit_convolution(at, image, operands, options)
    result = (batch, count, *at.type_of(sums).fixed_shape[1:])
    at.define(at.reshape(clamp_float(at, sums, options.activation), result))


def _slices(at: Conversion, name: str, options: WindowOptions, size: int) -> tuple[str, int]:
    """For each window along the depth the slices that it sees, side by side as channels; and how many windows."""
    step, spread = options.stride[0], options.dilation[0]
    before, after, *_ = spatial_padding(options, (1, at.type_of(name).fixed_shape[1], 1), (size, 1))
    name = emit_padded(at, name, (0, before, 0, 0, 0), (0, after, 0, 0, 0), 0.0)
    batch, extent, *rest = at.type_of(name).fixed_shape
    count = (extent - (size - 1) * spread - 1) // step + 1
    at.require(count >= 1, f"a window of {size} slices does not fit {extent}")
    shape, stride = (batch, count, *rest), (1, step, 1, 1, 1)
    parts = [emit_slice(at, name, (0, tap * spread, 0, 0, 0), shape, stride) for tap in range(size)]
    return emit_joined(at, _AXES - 1, parts, "side_by_side"), count
