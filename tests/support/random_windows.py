"""Makers of random models for `random_models`: operators whose results are sums or means of many elements."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import Any

import hypothesis.strategies as st
import numpy as np
from numpy.typing import NDArray

from support.random_draft import (
    ACTIVATIONS,
    FINE,
    Draft,
    RandomModel,
    any_shape,
    some_shape,
)
from tflite_writer import OPTIONAL


@dataclass(frozen=True)
class _Window:
    kernel: tuple[int, int]
    stride: tuple[int, int]
    dilation: tuple[int, int]
    padding: str
    outputs: tuple[int, int]


def _window(draft: Draft, spatial: tuple[int, int], *, dilated: bool) -> _Window:
    """A window that fits; output extents by TFLite's rules, computed here anew."""
    draw = draft.draw
    padding = draw(st.sampled_from(["SAME", "VALID"]))
    kernel: list[int] = []
    stride: list[int] = []
    dilation: list[int] = []
    outputs: list[int] = []
    for extent in spatial:
        step = draw(st.integers(1, 3))
        spread = draw(st.sampled_from([1, 1, 2, 3])) if dilated else 1
        largest = 5 if padding == "SAME" else min(5, (extent - 1) // spread + 1)
        size = draw(st.integers(1, largest))
        reach = (size - 1) * spread + 1
        taken = extent if padding == "SAME" else extent - reach + 1
        kernel.append(size)
        stride.append(step)
        dilation.append(spread)
        outputs.append((taken + step - 1) // step)
    pairs = [(values[0], values[1]) for values in (kernel, stride, dilation, outputs)]
    return _Window(pairs[0], pairs[1], pairs[2], padding, pairs[3])


def _channel_scales(
    draft: Draft, channels: int, input_scale: float, reach: float
) -> tuple[list[float], float]:
    """Weight scales and an output scale; `reach` is what accumulators typically come to."""
    draw = draft.draw
    count = 1 if draft.is_unsigned else draw(st.sampled_from([1, channels]))
    tempers = ["typical", "typical", "power of two", "large", "tiny", FINE, FINE, FINE]
    if draft.dtype == "int16":
        tempers.remove("large")  # scaled accumulators beyond 32 bits are refused
    temper = draw(st.sampled_from(tempers))
    if temper == "power of two":
        scales = [2.0 ** draw(st.integers(-9, -3)) for _ in range(count)]
        output = input_scale * scales[0] * 2.0 ** draw(st.integers(1, 12))
    elif temper == "large":
        scales = [float(draw(st.floats(2.0**-7, 2.0**-6, width=32))) for _ in range(count)]
        output = input_scale * 0.01 / draw(st.sampled_from([1.0, 1.5, 2.0, 7.3]))
    elif temper == "tiny":
        scales = [2.0 ** draw(st.integers(-44, -24)) for _ in range(count)]
        output = input_scale
    elif temper == FINE:
        first = float(draw(st.floats(2.0**-8, 2.0**-5, width=32)))
        scales = [first * draw(st.sampled_from([1.0, 1.0, 0.8, 1.25])) for _ in range(count)]
        output = input_scale * first * draw(st.floats(1, 2))
    else:
        scales = [float(draw(st.floats(2.0**-10, 2.0**-4, width=32))) for _ in range(count)]
        output = input_scale * scales[0] * max(reach, 1.0) / draw(st.floats(10, 100))
    draft.facts.append(temper)
    return [float(np.float32(scale)) for scale in scales], float(np.float32(output))


def _fine_weights(draft: Draft, weights: NDArray[Any], taps: int) -> NDArray[Any]:
    """Of -1, 0 and 1, about four of a channel not 0, so that accumulators stay within some int8 of the zero point."""
    kept = draft.generator.random(weights.shape) < min(1.0, 4 / taps)
    return np.where(kept, np.where(weights < 0, -1, 1), 0).astype(np.int8)


def _weighted(
    draft: Draft,
    source_shape: tuple[int, ...],
    weights_shape: tuple[int, ...],
    output_shape: tuple[int, ...],
    channels: int,
    axis: int,
    bias_may_be_absent: bool,
    options: dict[str, Any],
) -> RandomModel:
    """CONV_2D, DEPTHWISE_CONV_2D, FULLY_CONNECTED, or TRANSPOSE_CONV, which is given the shape of its result."""
    draw, builder = draft.draw, draft.builder
    weights = draft.weights(weights_shape)
    weights = (weights >> 8).astype(np.int8) if draft.dtype == "int16" else weights
    taps = weights.size // channels
    has_bias = not bias_may_be_absent or draw(st.booleans())
    activation = draw(st.sampled_from(ACTIVATIONS))
    bias_index = OPTIONAL
    if draft.is_quantised:
        affine = draft.affine()
        scales, output_scale = _channel_scales(draft, channels, affine[0], 70 * 70 * float(np.sqrt(taps)))
        is_fine = FINE in draft.facts
        has_bias = has_bias or is_fine
        weights = _fine_weights(draft, weights, taps) if is_fine else weights
        source = draft.input(source_shape, affine)
        weights_index = builder.constant("weights", weights, scale=scales, quantized_dimension=axis)
        if has_bias:
            bias_dtype = _bias_dtype(draft)
            most = 1 << (5 if is_fine else 14 if draft.is_int8 else 22)
            bias = draft.generator.integers(-most, most, channels).astype(bias_dtype)
            if draft.dtype == "int16" and bias_dtype is np.int32:
                options = {**options, "quantized_bias_type": "INT32"}
            bias_scales = [affine[0] * scale for scale in scales]
            bias_index = builder.constant("bias", bias, scale=bias_scales)
        zero_point = draw(st.integers(-64, 64)) if is_fine and draft.is_int8 else draft.affine()[1]
        output = draft.output(output_shape, (output_scale, zero_point))
    else:
        source = draft.input(source_shape, None)
        weights_index = builder.constant("weights", weights)
        if has_bias:
            bias_index = builder.constant("bias", draft.weights((channels,)))
        output = draft.output(output_shape, None)
    operands = [source, weights_index, bias_index]
    if draft.kind == "TRANSPOSE_CONV":
        operands = [draft.integers("shape", output_shape), weights_index, source, bias_index]
        operands = operands if has_bias else operands[:3]
    builder.operator(draft.kind, operands, [output], activation=activation, **options)
    facts = {**options, "x": source_shape, "w": weights_shape, "activation": activation}
    return draft.finish([output], **facts, bias=has_bias, temper=draft.facts)


def _bias_dtype(draft: Draft) -> type[np.int32 | np.int64]:
    """int64 or int32 under int16, where all kernels have both."""
    if draft.is_int8 or (draft.kind in ("CONV_2D", "FULLY_CONNECTED") and draft.draw(st.booleans())):
        return np.int32
    return np.int64


def _convolution(draft: Draft) -> RandomModel:
    draw = draft.draw
    spatial = (draw(st.integers(1, 9)), draw(st.integers(1, 9)))
    batch, depth = draw(st.sampled_from([1, 1, 1, 2])), draw(st.integers(1, 9))
    window = _window(draft, spatial, dilated=True)
    options = {
        "padding": window.padding,
        "stride_h": window.stride[0],
        "stride_w": window.stride[1],
        "dilation_h_factor": window.dilation[0],
        "dilation_w_factor": window.dilation[1],
    }
    if draft.kind == "CONV_2D":
        groups = draw(st.sampled_from([1, 1, 1, 2, 3]))
        channels = draw(st.integers(1, 9 if groups == 1 else 4)) * groups
        weights_shape = (channels, *window.kernel, depth)
        depth *= groups
    else:
        multiplier = draw(st.sampled_from([1, 1, 2, 3]))
        channels = depth * multiplier
        weights_shape = (1, *window.kernel, channels)
        options["depth_multiplier"] = multiplier
    axis = 0 if draft.kind == "CONV_2D" else 3
    source = (batch, *spatial, depth)
    return _weighted(
        draft, source, weights_shape, (batch, *window.outputs, channels), channels, axis, False, options
    )


def _transposed(draft: Draft) -> RandomModel:
    """Results of any size of which the windows of a convolution are the input."""
    draw = draft.draw
    spatial = (draw(st.integers(1, 6)), draw(st.integers(1, 6)))
    batch, depth, channels = (
        draw(st.sampled_from([1, 1, 2])),
        draw(st.integers(1, 9)),
        draw(st.integers(1, 9)),
    )
    padding = draw(st.sampled_from(["SAME", "VALID"]))
    kernel, stride = (tuple(draw(st.integers(1, most)) for _ in range(2)) for most in (5, 3))
    outputs: list[int] = []
    for extent, size, step in zip(spatial, kernel, stride, strict=True):
        whole = extent * step if padding == "SAME" else extent * step + size - 1
        outputs.append(whole - draw(st.integers(0, step - 1)))
    options = {"padding": padding, "stride_h": stride[0], "stride_w": stride[1]}
    source, result = (batch, *spatial, depth), (batch, *outputs, channels)
    return _weighted(draft, source, (channels, *kernel, depth), result, channels, 0, True, options)


def _volumes(draft: Draft) -> RandomModel:
    """A convolution of three axes, by LiteRT's rules for each."""
    draw = draft.draw
    extents, depth, channels = some_shape(draft, 3, 5), draw(st.integers(1, 4)), draw(st.integers(1, 4))
    padding, activation = draw(st.sampled_from(["SAME", "VALID"])), draw(st.sampled_from(ACTIVATIONS))
    kernel = tuple(draw(st.integers(1, min(3, extent))) for extent in extents)
    stride = tuple(draw(st.integers(1, 2)) for _ in extents)
    taken = [e if padding == "SAME" else e - k + 1 for e, k in zip(extents, kernel, strict=True)]
    result = tuple((extent + step - 1) // step for extent, step in zip(taken, stride, strict=True))
    batch = draw(st.integers(1, 2))
    x, y = draft.input((batch, *extents, depth), None), draft.output((batch, *result, channels), None)
    weights = draft.builder.constant("weights", draft.weights((*kernel, depth, channels)))
    bias = [draft.builder.constant("bias", draft.weights((channels,)))] if draw(st.booleans()) else []
    options = dict(zip(("stride_d", "stride_h", "stride_w"), stride, strict=True))
    facts = {"padding": padding, "activation": activation}
    draft.builder.operator(draft.kind, [x, weights, *bias], [y], **facts, **options)
    return draft.finish([y], x=extents, kernel=kernel, stride=stride, **facts)


def _resize(draft: Draft) -> RandomModel:
    draw = draft.draw
    source_shape = (draw(st.sampled_from([1, 1, 2])), *some_shape(draft, 3, 7))
    forms = st.sampled_from(["twice", "thrice", "half", "any", "any"])
    size: list[int] = []
    for extent, form in zip(source_shape[1:3], (draw(forms), draw(forms)), strict=True):
        known = {"twice": 2 * extent, "thrice": 3 * extent, "half": (extent + 1) // 2}
        size.append(known[form] if form in known else draw(st.integers(1, 15)))
    mode = draw(st.sampled_from(["", "align_corners", "half_pixel_centers"]))
    options = {mode: True} if mode else {}
    affine = draft.affine()
    source = draft.input(source_shape, affine)
    output = draft.output((source_shape[0], *size, source_shape[3]), affine)
    draft.builder.operator(draft.kind, [source, draft.integers("size", size)], [output], **options)
    return draft.finish([output], x=source_shape, size=size, mode=mode)


def _batch_matmul(draft: Draft) -> RandomModel:
    draw = draft.draw
    height, depth, width = draw(st.integers(1, 7)), draw(st.integers(1, 20)), draw(st.integers(1, 20))
    batches = some_shape(draft, draw(st.integers(0, 2)), 3)
    form = draw(st.sampled_from(["both", "both", "broadcast", "weights", "first"]))
    outer = [batches, batches]
    if form == "broadcast":
        outer = [tuple(1 if draw(st.booleans()) else extent for extent in batches) for _ in range(2)]
        outer[1] = outer[1][draw(st.integers(0, len(batches))) :]
    elif form == "weights":
        outer[1] = ()
    adjoint = draw(st.booleans()), draw(st.booleans())
    shapes = [
        (*outer[0], *((depth, height) if adjoint[0] else (height, depth))),
        (*outer[1], *((width, depth) if adjoint[1] else (depth, width))),
    ]
    affines = [draft.affine(), draft.affine()]
    if draw(st.booleans()):
        affines[1] = (affines[1][0], 0)
    operands: list[int] = []
    for number, (shape, affine) in enumerate(zip(shapes, affines, strict=True)):
        if (form, number) in (("weights", 1), ("first", 0)):
            keywords = {"scale": affine[0], "zero_point": affine[1]} if draft.is_quantised else {}
            operands.append(draft.builder.constant("constant", draft.weights(shape), **keywords))
        else:
            operands.append(draft.input(shape, affine))
    less = draw(st.one_of(st.sampled_from([2.0**power for power in (1, 6, 12, 40)]), st.floats(2.0, 2.0**14)))
    less *= 1 if draft.is_int8 else 2.0**8
    target = float(np.float32(affines[0][0] * affines[1][0] * less)), draft.affine()[1]
    result = (*np.broadcast_shapes(*outer), height, width)
    output = draft.output(result, target)
    options = {"adj_x": adjoint[0], "adj_y": adjoint[1]}
    draft.builder.operator(draft.kind, operands, [output], **options)
    return draft.finish(
        [output], a=shapes[0], b=shapes[1], form=form, quantisation=(affines, target), **options
    )


def _fully_connected(draft: Draft) -> RandomModel:
    draw = draft.draw
    depth, channels = draw(st.integers(1, 40)), draw(st.integers(1, 9))
    leading = some_shape(draft, draw(st.integers(1, 3)), 3)
    keep = draw(st.booleans())
    output = (*leading, channels) if keep else (prod(leading), channels)
    options = {"keep_num_dims": keep}
    return _weighted(draft, (*leading, depth), (channels, depth), output, channels, 0, True, options)


def _pool(draft: Draft) -> RandomModel:
    draw = draft.draw
    spatial = (draw(st.integers(1, 9)), draw(st.integers(1, 9)))
    batch, depth = draw(st.sampled_from([1, 1, 2])), draw(st.integers(1, 9))
    window = _window(draft, spatial, dilated=False)
    affine = draft.affine()
    source = draft.input((batch, *spatial, depth), affine)
    output = draft.output((batch, *window.outputs, depth), affine)
    options = {
        "padding": window.padding,
        "stride_h": window.stride[0],
        "stride_w": window.stride[1],
        "filter_height": window.kernel[0],
        "filter_width": window.kernel[1],
        "activation": draw(st.sampled_from(ACTIVATIONS)),
    }
    draft.builder.operator(draft.kind, [source], [output], **options)
    return draft.finish([output], x=(batch, *spatial, depth), quantisation=affine, **options)


def _mean(draft: Draft) -> RandomModel:
    shape = any_shape(draft, 2, 4)
    rank = len(shape)
    axes = draft.draw(st.lists(st.integers(0, rank - 1), min_size=1, max_size=rank - 1, unique=True))
    keep = draft.draw(st.booleans())
    reduced = [1 if axis in axes else extent for axis, extent in enumerate(shape)]
    result = reduced if keep else [extent for axis, extent in enumerate(shape) if axis not in axes]
    signed = [axis - rank if draft.draw(st.booleans()) else axis for axis in axes]
    affine = draft.affine()
    other = affine if draft.draw(st.booleans()) else draft.affine()
    source = draft.input(shape, affine)
    output = draft.output(result, other)
    draft.builder.operator(draft.kind, [source, draft.integers("axes", signed)], [output], keep_dims=keep)
    return draft.finish([output], x=shape, axes=signed, keep=keep, quantisation=(affine, other))


MAKERS: dict[str, Callable[[Draft], RandomModel]] = {
    "AVERAGE_POOL_2D": _pool,
    "BATCH_MATMUL": _batch_matmul,
    "CONV_2D": _convolution,
    "CONV_3D": _volumes,
    "DEPTHWISE_CONV_2D": _convolution,
    "FULLY_CONNECTED": _fully_connected,
    "L2_POOL_2D": _pool,
    "MAX_POOL_2D": _pool,
    "MEAN": _mean,
    "RESIZE_BILINEAR": _resize,
    "RESIZE_NEAREST_NEIGHBOR": _resize,
    "TRANSPOSE_CONV": _transposed,
}
