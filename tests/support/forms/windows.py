"""Forms of convolutions, products of matrices, pools and resizes."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from math import prod

import numpy as np

from support.forms.sketch import ACTIVATIONS, F32, I8, I16, I32, I64, Form, Shape, Sketch
from tflite_writer import OPTIONAL


def _windowed(shape: Shape, kernel: Shape, stride: Shape, dilation: Shape, padding: str) -> tuple[int, ...]:
    """The extents of a result of windows, by TFLite's rules."""
    taken = [
        extent if padding == "SAME" else extent - (size - 1) * spread
        for extent, size, spread in zip(shape, kernel, dilation, strict=True)
    ]
    return tuple((extent + step - 1) // step for extent, step in zip(taken, stride, strict=True))


def _weighted(sketch: Sketch, shape: Shape, channels: int, axis: int, per_channel: bool) -> tuple[int, int]:
    """Weights and bias, with one scale or one a channel."""
    if sketch.dtype == F32:
        return sketch.constant(shape), sketch.constant((channels,))
    scales = [0.02 * (1 + i / 3) for i in range(channels)] if per_channel else [0.02]
    weights = sketch.values(shape, I8)
    bias = sketch.generator.integers(-2000, 2000, channels).astype(I64 if sketch.dtype == I16 else I32)
    w = sketch.builder.constant("w", weights, scale=scales, quantized_dimension=axis)
    return w, sketch.builder.constant("b", bias, scale=[0.05 * s for s in scales])


def convolution(kind: str, dtype: str) -> Iterator[Form]:
    image, depth = (7, 6), 4
    cases = product(("SAME", "VALID"), ((1, 1), (2, 2)), ((1, 1), (2, 2)), (False, True))
    for padding, stride, dilation, per_channel in cases:
        if (dtype == F32 and per_channel) or (stride != (1, 1) and dilation != (1, 1)):
            continue
        for activation in (
            ACTIVATIONS if (padding, stride, dilation) == ("SAME", (1, 1), (1, 1)) else ("NONE",)
        ):
            sketch = Sketch(kind, dtype)
            x = sketch.input((1, *image, depth))
            channels = 8 if kind == "DEPTHWISE_CONV_2D" else 5
            is_depthwise = kind == "DEPTHWISE_CONV_2D"
            shape, axis = ((1, 3, 2, channels), 3) if is_depthwise else ((channels, 3, 2, depth), 0)
            w, b = _weighted(sketch, shape, channels, axis, per_channel)
            y = sketch.output((1, *_windowed(image, (3, 2), stride, dilation, padding), channels), (0.4, -5))
            options = {
                "padding": padding,
                "stride_h": stride[0],
                "stride_w": stride[1],
                "activation": activation,
            }
            options |= {"dilation_h_factor": dilation[0], "dilation_w_factor": dilation[1]}
            options |= {"depth_multiplier": 2} if is_depthwise else {}
            facts = f"{padding} stride {stride} dilation {dilation} {'per channel' if per_channel else ''} {activation}"
            yield sketch.form(facts, [x, w, b], [y], **options)


def convolution_and_groups(kind: str, dtype: str) -> Iterator[Form]:
    """CONV_2D, also with fewer channels in the weights than in the input."""
    yield from convolution(kind, dtype)
    sketch = Sketch(kind, dtype)
    x = sketch.input((1, 5, 5, 6))
    w, b = _weighted(sketch, (4, 3, 3, 3), 4, 0, False)
    yield sketch.form("groups", [x, w, b], [sketch.output((1, 5, 5, 4), (0.4, -5))], padding="SAME")


def conv3d(kind: str, dtype: str) -> Iterator[Form]:
    for padding, stride in product(("SAME", "VALID"), (1, 2)):
        sketch = Sketch(kind, dtype)
        x, w = sketch.input((1, 4, 5, 6, 3)), sketch.constant((2, 3, 2, 3, 4))
        spatial = _windowed((4, 5, 6), (2, 3, 2), (stride,) * 3, (1, 1, 1), padding)
        options = {"padding": padding, "stride_d": stride, "stride_h": stride, "stride_w": stride}
        y = sketch.output((1, *spatial, 4))
        yield sketch.form(f"{padding} stride {stride}", [x, w, sketch.constant((4,))], [y], **options)


def conv3d_transpose(kind: str, dtype: str) -> Iterator[Form]:
    for padding, stride, has_bias in product(("SAME", "VALID"), (1, 2, 3), (False, True)):
        sketch = Sketch(kind, dtype)
        kernel = (2, 3, 2)
        result = tuple(
            extent * stride if padding == "SAME" else (extent - 1) * stride + size
            for extent, size in zip((3, 2, 4), kernel, strict=True)
        )
        shape, x = sketch.integers((2, *result, 5)), sketch.input((2, 3, 2, 4, 3))
        operands = [shape, sketch.constant((*kernel, 5, 3)), x]
        operands += [sketch.constant((5,))] if has_bias else []
        y = sketch.output((2, *result, 5))
        options = {"padding": padding, "stride_d": stride, "stride_h": stride, "stride_w": stride}
        facts = f"{padding} stride {stride}{' bias' * has_bias}"
        yield sketch.form(facts, operands, [y], activation="RELU" if has_bias else "NONE", **options)


def transposed(kind: str, dtype: str) -> Iterator[Form]:
    for padding, stride, has_bias in product(("SAME", "VALID"), (1, 2), (False, True)):
        sketch = Sketch(kind, dtype)
        result = tuple(e * stride if padding == "SAME" else (e - 1) * stride + 3 for e in (4, 5))
        shape = sketch.integers((1, *result, 5))
        x = sketch.input((1, 4, 5, 3))
        w, b = _weighted(sketch, (5, 3, 3, 3), 5, 0, True)
        y = sketch.output((1, *result, 5), (0.4, -5))
        options = {"padding": padding, "stride_h": stride, "stride_w": stride}
        operands = [shape, w, x, b] if has_bias else [shape, w, x]
        yield sketch.form(f"{padding} stride {stride}{' bias' * has_bias}", operands, [y], **options)


def fully_connected(kind: str, dtype: str) -> Iterator[Form]:
    for shape, keep, per_channel in product(
        ((3, 12), (2, 3, 12), (1, 1, 1, 12)), (False, True), (False, True)
    ):
        if dtype == F32 and per_channel:
            continue
        for activation in ACTIVATIONS if shape == (3, 12) and not keep else ("NONE",):
            sketch = Sketch(kind, dtype)
            x = sketch.input(shape)
            w, b = _weighted(sketch, (7, 12), 7, 0, per_channel)
            result = (*shape[:-1], 7) if keep else (prod(shape[:-1]), 7)
            facts = f"{list(shape)} keep={keep} {'per channel' if per_channel else ''} {activation}"
            y = sketch.output(result, (0.6, 9))
            yield sketch.form(facts, [x, w, b], [y], keep_num_dims=keep, activation=activation)
    sketch = Sketch(kind, dtype)
    x = sketch.input((3, 12))
    w, _ = _weighted(sketch, (7, 12), 7, 0, False)
    yield sketch.form("no bias", [x, w, OPTIONAL], [sketch.output((3, 7), (0.6, 9))])


def matmul(kind: str, dtype: str) -> Iterator[Form]:
    for (a, b), (x, y) in product((((), ()), ((2,), (2,)), ((2, 3), (3,))), product((False, True), repeat=2)):
        sketch = Sketch(kind, dtype)
        first = sketch.input((*a, *((6, 4) if x else (4, 6))))
        second = sketch.input((*b, *((5, 6) if y else (6, 5))), (0.03, -4))
        result = sketch.output((*np.broadcast_shapes(a, b), 4, 5), (0.4, 7))
        facts = f"{list(a)} {list(b)} adj_x={x} adj_y={y}"
        yield sketch.form(facts, [first, second], [result], adj_x=x, adj_y=y)
    if dtype == I16:
        yield from _int8_under_int16(kind)


def _int8_under_int16(kind: str) -> Iterator[Form]:
    for shape, constant, adjoint in product(((5, 6), (2, 5, 6)), (False, True), (False, True)):
        sketch = Sketch(kind, I16)
        own = shape if adjoint else (*shape[:-2], 6, 5)
        first = sketch.input((2, 4, 6))
        make = sketch.constant if constant else sketch.input
        second = make(own, (0.03, 0), dtype="int8")
        result = sketch.output((2, 4, 5), (0.4, 0))
        facts = f"int8 {list(own)}{' constant' * constant} adj_y={adjoint}"
        yield sketch.form(facts, [first, second], [result], adj_y=adjoint)


def pool(kind: str, dtype: str) -> Iterator[Form]:
    for padding, stride, kernel in product(("SAME", "VALID"), ((1, 1), (2, 3)), ((2, 3), (3, 3))):
        is_plain = (padding, stride, kernel) == ("SAME", (1, 1), (3, 3))
        for activation in ACTIVATIONS if is_plain else ("NONE",):
            sketch = Sketch(kind, dtype)
            x = sketch.input((2, 7, 6, 5))
            y = sketch.output((2, *_windowed((7, 6), kernel, stride, (1, 1), padding), 5))
            options = {
                "padding": padding,
                "stride_h": stride[0],
                "stride_w": stride[1],
                "activation": activation,
            }
            options |= {"filter_height": kernel[0], "filter_width": kernel[1]}
            yield sketch.form(f"{padding} {stride} {kernel} {activation}", [x], [y], **options)


def resize(kind: str, dtype: str) -> Iterator[Form]:
    for size, mode in product(((8, 10), (3, 2)), ("", "align_corners", "half_pixel_centers")):
        sketch = Sketch(kind, dtype)
        x, y = sketch.input((1, 4, 5, 3)), sketch.output((1, *size, 3))
        yield sketch.form(f"{size} {mode}", [x, sketch.integers(size)], [y], **({mode: True} if mode else {}))


def local_response(kind: str, dtype: str) -> Iterator[Form]:
    for shape, radius, beta in (((2, 3, 4, 7), 2, 0.75), ((1, 2, 2, 3), 5, 1.0), ((1, 1, 3, 9), 0, 0.5)):
        sketch = Sketch(kind, dtype)
        options = {"radius": radius, "bias": 1.5, "alpha": 0.25, "beta": beta}
        yield sketch.form(
            f"{list(shape)} {options}", [sketch.input(shape)], [sketch.output(shape)], **options
        )
