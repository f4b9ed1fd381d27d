"""Random models of one operator, as hypothesis strategies, and inputs for them.

`operator_models(kind, dtype)` draws a `RandomModel`; every one of them is a file that both references accept and
whose arithmetic is defined (no overflow of 32 bits). Quantisations are drawn in several tempers: typical ones,
powers of two (every second accumulator is a tie), factors above one, factors so small that everything
becomes the zero point, and fine ones, with which one unit of an accumulator is about one of the output.
Floats are small multiples of 1/8, so that sums are exact in any order and a difference
is a mistake, not a rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

import hypothesis.strategies as st
import numpy as np
from hypothesis.strategies import DrawFn, SearchStrategy
from numpy.typing import NDArray

from bytewright.frontends.tflite.against import tflm
from support import random_elements, random_moves, random_places
from tflite_writer import OPTIONAL, ModelBuilder

DTYPES = ("int8", "float32")
WITH_INT16 = ("int8", "int16", "float32")
ACTIVATIONS = ("NONE", "RELU", "RELU6", "RELU_N1_TO_1")
FINE = "fine"  # a temper of quantisations


@dataclass(frozen=True)
class RandomModel:
    """One file.

    Attributes:
        description: What it is, in one line, for a failing test's message.
        input_shapes, dtype: Of its inputs, in order.
        indices: Of the inputs that are int32 and count elements, by position: how many there are.
        dtypes: Their types, where these are not one.
        domain: What float inputs are: "any", "positive" or "not zero".
    """

    content: bytes
    description: str
    input_shapes: tuple[tuple[int, ...], ...]
    dtype: str
    indices: Mapping[int, int] = field(default_factory=dict[int, int])
    dtypes: tuple[str, ...] = ()
    domain: str = "any"

    def inputs(self, seed: int) -> list[NDArray[Any]]:
        """Inputs for one run: random for most seeds, all the same extreme for the first two."""
        generator = np.random.default_rng(seed)
        dtypes = self.dtypes or (self.dtype,) * len(self.input_shapes)
        return [
            generator.integers(0, self.indices[position], shape).astype(dtype)
            if position in self.indices
            else _array(generator, shape, dtype, seed, self.domain)
            for position, (shape, dtype) in enumerate(zip(self.input_shapes, dtypes, strict=True))
        ]

    def __repr__(self) -> str:
        return f"RandomModel({self.description})"


def _integers(generator: np.random.Generator, shape: tuple[int, ...], dtype: str) -> NDArray[Any]:
    """Any numbers of a type, or small ones, of which some are equal."""
    bounds = np.iinfo(dtype)
    anything = generator.integers(bounds.min, bounds.max, shape, dtype, endpoint=True)
    small = generator.integers(-3, 4, shape).astype(dtype)
    return np.asarray(np.where(generator.integers(0, 2, shape) == 0, anything, small), dtype)


def _array(
    generator: np.random.Generator, shape: tuple[int, ...], dtype: str, seed: int, domain: str
) -> NDArray[Any]:
    if dtype == "bool":
        return (
            np.full(shape, bool(seed)) if seed in (0, 1) else generator.integers(0, 2, shape).astype(np.bool_)
        )
    if dtype != "float32":
        bounds = np.iinfo(dtype)
        # The zero point of int16 is 0; that of int8 is drawn so that all is positive.
        least = 1 if (dtype, domain) == ("int16", "positive") else bounds.min
        if seed in (0, 1) and dtype != "uint8":
            return np.full(shape, least if seed == 0 else bounds.max, dtype)
        if bounds.bits <= 16:
            return generator.integers(least, bounds.max, shape, endpoint=True).astype(dtype)
        return _integers(generator, shape, dtype)
    values = (generator.integers(-64, 65, shape) / 8).astype(np.float32)
    if domain == "positive":
        return np.abs(values) + np.float32(0.125)
    return np.where(values == 0, np.float32(0.25), values) if domain == "not zero" else values


class Draft:
    """A model under construction, with the drawing of quantisations."""

    def __init__(self, draw: DrawFn, kind: str, dtype: str) -> None:
        self.draw = draw
        self.kind = kind
        self.dtype = dtype
        self.builder = ModelBuilder()
        self.inputs: list[int] = []
        self.input_shapes: list[tuple[int, ...]] = []
        self.generator = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
        self.dtypes: list[str] = []
        self.domain = "any"
        self.facts: list[str] = []
        self.indices: dict[int, int] = {}

    @property
    def is_int8(self) -> bool:
        return self.dtype == "int8"

    @property
    def is_quantised(self) -> bool:
        return self.dtype in ("int8", "int16")

    def affine(self, dtype: str = "") -> tuple[float, int]:
        """A scale and a zero point; of int16 that is 0, and the scale 2^8 times finer."""
        if dtype == "int32":  # finer than any other type, or a reference leaves 32 bits
            return self.draw(st.floats(2.0**-40, 2.0**-17, width=32)), 0
        if (dtype or self.dtype) == "int16":
            exact = st.sampled_from([2.0**power for power in range(-16, -5)])
            return self.draw(st.one_of(exact, st.floats(2.0**-16, 2.0**-6, width=32))), 0
        scale = self.draw(
            st.one_of(
                st.sampled_from([2.0**power for power in range(-8, 3)]),
                st.floats(2.0**-8, 2.0, width=32),
            )
        )
        zero_point = self.draw(st.one_of(st.sampled_from([-128, 0, 127]), st.integers(-128, 127)))
        return scale, zero_point

    def tensor(self, name: str, shape: Sequence[int], affine: tuple[float, int] | None) -> int:
        is_scaled = self.dtype in ("int8", "int16", "uint8") or self.kind == "QUANTIZE"
        if not is_scaled or affine is None:
            return self.builder.tensor(name, shape, self.dtype)
        return self.quantised(name, shape, self.dtype, affine)

    def quantised(self, name: str, shape: Sequence[int], dtype: str, affine: tuple[float, int]) -> int:
        """A tensor whose zero point is drawn for int8."""
        zero_point = affine[1] + (128 if dtype == "uint8" else 0)
        return self.builder.tensor(name, shape, dtype, scale=affine[0], zero_point=zero_point)

    def input(self, shape: Sequence[int], affine: tuple[float, int] | None, dtype: str = "") -> int:
        """An input of the draft's type, or of another that is not quantised."""
        name = f"input_{len(self.inputs)}"
        index = self.builder.tensor(name, shape, dtype) if dtype else self.tensor(name, shape, affine)
        self.inputs.append(index)
        self.input_shapes.append(tuple(shape))
        self.dtypes.append(dtype or self.dtype)
        return index

    def index_input(self, shape: Sequence[int], count: int) -> int:
        """An input that counts elements of an axis of this extent."""
        self.indices[len(self.inputs)] = count
        self.dtypes.append("int32")
        index = self.builder.tensor(f"input_{len(self.inputs)}", shape, "int32")
        self.inputs.append(index)
        self.input_shapes.append(tuple(shape))
        return index

    def output(self, shape: Sequence[int], affine: tuple[float, int] | None) -> int:
        return self.tensor("output", shape, affine)

    def integers(self, name: str, values: Sequence[int] | NDArray[Any]) -> int:
        return self.builder.constant(name, np.asarray(values, dtype=np.int32))

    def weights(self, shape: Sequence[int]) -> NDArray[Any]:
        if self.is_int8:
            return self.generator.integers(-127, 128, shape).astype(np.int8)
        if self.dtype == "int16":
            return self.generator.integers(-32767, 32768, shape).astype(np.int16)
        if self.dtype in ("int32", "int64"):
            return _integers(self.generator, tuple(shape), self.dtype)
        if self.dtype == "bool":
            return self.generator.integers(0, 2, shape).astype(np.bool_)
        return (self.generator.integers(-16, 17, shape) / 8).astype(np.float32)

    def finish(self, outputs: Sequence[int], **facts: object) -> RandomModel:
        text = ", ".join(f"{key}={value}" for key, value in facts.items())
        content = self.builder.build(self.inputs, outputs)
        description = f"{self.kind} {self.dtype} {text}"
        shapes, dtypes = tuple(self.input_shapes), tuple(self.dtypes)
        return RandomModel(content, description, shapes, self.dtype, self.indices, dtypes, self.domain)


def _shape(draft: Draft, rank: int, maximum: int = 6) -> tuple[int, ...]:
    return tuple(draft.draw(st.integers(1, maximum)) for _ in range(rank))


def _any_shape(draft: Draft, low: int = 1, high: int = 4, maximum: int = 6) -> tuple[int, ...]:
    return _shape(draft, draft.draw(st.integers(low, high)), maximum)


# Sliding windows


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
    count = draw(st.sampled_from([1, channels]))
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
    extents, depth, channels = _shape(draft, 3, 5), draw(st.integers(1, 4)), draw(st.integers(1, 4))
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
    source_shape = (draw(st.sampled_from([1, 1, 2])), *_shape(draft, 3, 7))
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
    batches = _shape(draft, draw(st.integers(0, 2)), 3)
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
    leading = _shape(draft, draw(st.integers(1, 3)), 3)
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
    shape = _any_shape(draft, 2, 4)
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


# Elements


def _binary(draft: Draft) -> RandomModel:
    draw = draft.draw
    shape = _any_shape(draft)
    form = draw(st.sampled_from(["same", "same", "broadcast", "constant", "scalar", "twice"]))
    first_shape = second_shape = shape
    if form == "broadcast":
        first_shape = tuple(1 if draw(st.booleans()) else extent for extent in shape)
        second_shape = tuple(
            extent if one == 1 or draw(st.booleans()) else 1
            for extent, one in zip(shape, first_shape, strict=True)
        )
        second_shape = second_shape[draw(st.integers(0, len(shape) - 1)) :]
    elif form == "scalar":
        second_shape = (1,)
    shape = tuple(np.broadcast_shapes(first_shape, second_shape))
    one, two, target = draft.affine(), draft.affine(), draft.affine()
    options: dict[str, Any] = {}
    if draft.dtype == "int16" and draft.kind == "MUL":
        target = (max(target[0], float(np.float32(1.01 * one[0] * two[0]))), 0)
    elif draft.dtype == "int16":
        options["pot_scale_int16"] = False
    first = draft.input(first_shape, one)
    if form == "twice":
        two, second = one, first
    elif form in ("constant", "scalar"):
        values = draft.weights(second_shape)
        keywords = {"scale": two[0], "zero_point": two[1]} if draft.is_quantised else {}
        second = draft.builder.constant("second", values, **keywords)
    else:
        second = draft.input(second_shape, two)
    operands = [second, first] if form != "twice" and draw(st.booleans()) else [first, second]
    output = draft.output(shape, target)
    activation = draw(st.sampled_from(ACTIVATIONS))
    draft.builder.operator(draft.kind, operands, [output], activation=activation, **options)
    facts = {"form": form, "a": first_shape, "b": second_shape, "activation": activation}
    return draft.finish([output], **facts, quantisation=(one, two, target))


def _unary(draft: Draft) -> RandomModel:
    shape = _any_shape(draft)
    source_affine = draft.affine()
    target = source_affine if draft.draw(st.booleans()) else draft.affine()
    if draft.kind in ("LOGISTIC", "TANH") and draft.dtype == "int16":
        target = (1.0 / 32768, 0)
    elif draft.kind == "LOGISTIC":
        target = (1.0 / 256, -128)
    elif draft.kind == "TANH":
        target = (1.0 / 128, 0)
    elif draft.kind == "HARD_SWISH" and source_affine[0] > 64 * target[0]:
        target = source_affine
    options: dict[str, Any] = {}
    if draft.kind == "LEAKY_RELU":
        options["alpha"] = draft.draw(
            st.sampled_from([0.0, 0.1, 0.25, 1.0, 1.5, -0.3 if draft.is_int8 else 0.3])
        )
    source = draft.input(shape, source_affine)
    output = draft.output(shape, target)
    draft.builder.operator(draft.kind, [source], [output], **options)
    return draft.finish([output], x=shape, quantisation=(source_affine, target), **options)


def _softmax(draft: Draft) -> RandomModel:
    shape = _any_shape(draft, 1, 4, 9)
    affine = draft.affine()
    beta = draft.draw(st.sampled_from([1.0, 1.0, 0.25, 2.0]))
    source = draft.input(shape, affine)
    output = draft.output(shape, (1.0 / 32768, 0) if draft.dtype == "int16" else (1.0 / 256, -128))
    draft.builder.operator(draft.kind, [source], [output], beta=beta)
    return draft.finish([output], x=shape, beta=beta, quantisation=affine)


def _quantize(draft: Draft) -> RandomModel:
    shape = _any_shape(draft)
    # Both references have uint8 on one side alone, and not beside float32 or int16.
    results = {"int8": ["int8", "uint8", "int16"], "uint8": ["int8"], "int16": ["int8", "int16", "int32"]}
    dtype = draft.draw(st.sampled_from(results.get(draft.dtype, ["int8", "int16"])))
    affine, target = draft.affine(draft.dtype), draft.affine(dtype)
    source = draft.input(shape, None if draft.dtype == "float32" else affine)
    output = draft.quantised("output", shape, dtype, target)
    draft.builder.operator(draft.kind, [source], [output])
    return draft.finish([output], x=shape, result=dtype, quantisation=(affine, target))


def _dequantize(draft: Draft) -> RandomModel:
    """Of an input, or of a constant of a type that is stored only, to which an input is added."""
    shape = _any_shape(draft)
    if draft.dtype in ("int4", "float16"):
        if draft.dtype == "int4":
            values = draft.generator.integers(-8, 8, shape)
            stored = draft.builder.tensor("stored", shape, "int4", data=values, scale=0.3)
        else:
            stored = draft.builder.constant("stored", draft.generator.normal(0, 4, shape).astype(np.float16))
        wide = draft.builder.tensor("wide", shape, "float32")
        draft.builder.operator(draft.kind, [stored], [wide], version=3 if draft.dtype == "float16" else 6)
        source = draft.input(shape, None, dtype="float32")
        output = draft.builder.tensor("output", shape, "float32")
        draft.builder.operator("ADD", [wide, source], [output])
        return draft.finish([output], x=shape)
    affine = draft.affine()
    source = draft.input(shape, affine)
    output = draft.builder.tensor("output", shape, "float32")
    draft.builder.operator(draft.kind, [source], [output])
    return draft.finish([output], x=shape, quantisation=affine)


# Moves


def _pad(draft: Draft) -> RandomModel:
    shape = _any_shape(draft, 1, 4, 5)
    widths = [[draft.draw(st.integers(0, 3)), draft.draw(st.integers(0, 3))] for _ in shape]
    affine = draft.affine()
    source = draft.input(shape, affine)
    result = [extent + sum(width) for extent, width in zip(shape, widths, strict=True)]
    output = draft.output(result, affine)
    operands = [source, draft.integers("paddings", widths)]
    if draft.kind == "PADV2":
        keywords = {"scale": affine[0], "zero_point": affine[1]} if draft.is_quantised else {}
        operands.append(draft.builder.constant("value", draft.weights((1,)), **keywords))
    draft.builder.operator(draft.kind, operands, [output])
    return draft.finish([output], x=shape, widths=widths, quantisation=affine)


def _reshape(draft: Draft) -> RandomModel:
    shape = _any_shape(draft)
    target = list(draft.draw(st.permutations(shape)))
    if draft.draw(st.booleans()):
        target = [prod(target[:2]), *target[2:]]
    affine = draft.affine()
    source = draft.input(shape, affine)
    output = draft.output(target, affine)
    stated = list(target)
    if draft.draw(st.booleans()):
        stated[draft.draw(st.integers(0, len(stated) - 1))] = -1
    as_operand = draft.draw(st.booleans())
    operands = [source, draft.integers("shape", stated)] if as_operand else [source]
    draft.builder.operator(draft.kind, operands, [output], new_shape=stated)
    return draft.finish([output], x=shape, shape=stated, as_operand=as_operand)


def _squeeze(draft: Draft) -> RandomModel:
    shape = tuple(draft.draw(st.sampled_from([1, 1, 2, 3])) for _ in range(draft.draw(st.integers(2, 4))))
    ones = [axis for axis, extent in enumerate(shape) if extent == 1]
    stated = [axis for axis in ones if draft.draw(st.booleans())]
    removed = stated or ones
    if len(removed) == len(shape):
        stated = removed = ones[1:]
    result = [extent for axis, extent in enumerate(shape) if axis not in removed]
    affine = draft.affine()
    source, output = draft.input(shape, affine), draft.output(result, affine)
    draft.builder.operator(draft.kind, [source], [output], squeeze_dims=stated)
    return draft.finish([output], x=shape, axes=stated)


def _expand_dims(draft: Draft) -> RandomModel:
    shape = _any_shape(draft, 1, 3)
    axis = draft.draw(st.integers(-len(shape) - 1, len(shape)))
    position = axis % (len(shape) + 1)
    affine = draft.affine()
    source = draft.input(shape, affine)
    output = draft.output((*shape[:position], 1, *shape[position:]), affine)
    draft.builder.operator(draft.kind, [source, draft.integers("axis", [axis])], [output])
    return draft.finish([output], x=shape, axis=axis)


def _concatenation(draft: Draft) -> RandomModel:
    shape = _any_shape(draft)
    axis = draft.draw(st.integers(0, len(shape) - 1))
    affine = draft.affine()
    extents = draft.draw(st.lists(st.integers(1, 4), min_size=1, max_size=4))
    sources = [draft.input((*shape[:axis], extent, *shape[axis + 1 :]), affine) for extent in extents]
    output = draft.output((*shape[:axis], sum(extents), *shape[axis + 1 :]), affine)
    signed = axis - len(shape) if draft.draw(st.booleans()) else axis
    draft.builder.operator(draft.kind, sources, [output], axis=signed)
    return draft.finish([output], shape=shape, extents=extents, axis=signed)


def _slice(draft: Draft) -> RandomModel:
    shape = _any_shape(draft)
    begin = [draft.draw(st.integers(0, extent - 1)) for extent in shape]
    size = [draft.draw(st.integers(1, extent - b)) for extent, b in zip(shape, begin, strict=True)]
    stated = [
        -1 if b + s == extent and draft.draw(st.booleans()) else s
        for extent, b, s in zip(shape, begin, size, strict=True)
    ]
    affine = draft.affine()
    source, output = draft.input(shape, affine), draft.output(size, affine)
    operands = [source, draft.integers("begin", begin), draft.integers("size", stated)]
    draft.builder.operator(draft.kind, operands, [output])
    return draft.finish([output], x=shape, begin=begin, size=stated)


def _strided_slice(draft: Draft) -> RandomModel:
    draw = draft.draw
    shape = _any_shape(draft)
    rank = len(shape)
    affine = draft.affine()
    probe = np.empty(shape, dtype=np.int8)
    begin, end, stride = ([] for _ in range(3))
    masks = {"begin_mask": 0, "end_mask": 0, "shrink_axis_mask": 0}
    keys: list[Any] = []
    for axis, extent in enumerate(shape):
        step = draw(st.sampled_from([1, 1, 2, 3, -1, -2]))
        first, last = draw(st.integers(-extent - 1, extent + 1)), draw(st.integers(-extent - 1, extent + 1))
        shrinks = axis > 0 and draw(st.sampled_from([False, False, True]))
        if shrinks:
            first, step = draw(st.integers(-extent, extent - 1)), 1
            last = first + 1
            masks["shrink_axis_mask"] |= 1 << axis
            keys.append(first)
        else:
            key = slice(first, last, step)
            if len(range(*key.indices(extent))) == 0 or draw(st.booleans()):
                masks["begin_mask"] |= 1 << axis
                masks["end_mask"] |= 1 << axis
                key = slice(None, None, step)
            keys.append(key)
        begin.append(first)
        end.append(last)
        stride.append(step)
    result = probe[tuple(keys)].shape
    source, output = draft.input(shape, affine), draft.output(result, affine)
    operands = [draft.integers(n, v) for n, v in (("begin", begin), ("end", end), ("strides", stride))]
    draft.builder.operator(draft.kind, [source, *operands], [output], **masks)
    return draft.finish([output], x=shape, rank=rank, begin=begin, end=end, stride=stride, **masks)


def _split(draft: Draft) -> RandomModel:
    draw = draft.draw
    parts, each = draw(st.integers(1, 4)), draw(st.integers(1, 3))
    rest = _any_shape(draft, 1, 3)
    axis = draw(st.integers(0, len(rest)))
    shape, part = (*rest[:axis], parts * each, *rest[axis:]), (*rest[:axis], each, *rest[axis:])
    affine = draft.affine()
    source = draft.input(shape, affine)
    outputs = [draft.tensor(f"output_{index}", part, affine) for index in range(parts)]
    signed = axis - len(shape) if draw(st.booleans()) else axis
    axis_tensor = draft.builder.tensor("axis", [], "int32", data=np.array(signed, dtype=np.int32))
    draft.builder.operator(draft.kind, [axis_tensor, source], outputs, num_splits=parts)
    return draft.finish(outputs, x=shape, axis=signed, parts=parts)


def _transpose(draft: Draft) -> RandomModel:
    shape = _any_shape(draft)
    permutation = list(draft.draw(st.permutations(range(len(shape)))))
    affine = draft.affine()
    source = draft.input(shape, affine)
    output = draft.output([shape[axis] for axis in permutation], affine)
    draft.builder.operator(draft.kind, [source, draft.integers("permutation", permutation)], [output])
    return draft.finish([output], x=shape, permutation=permutation)


_MAKERS: dict[str, Callable[[Draft], RandomModel]] = {
    **random_elements.MAKERS,
    **random_places.MAKERS,
    "CONV_3D": _volumes,
    "L2_POOL_2D": _pool,
    "ADD": _binary,
    "AVERAGE_POOL_2D": _pool,
    "BATCH_TO_SPACE_ND": random_moves.space_and_batch,
    "BROADCAST_TO": random_moves.broadcast_to,
    "BATCH_MATMUL": _batch_matmul,
    "CONCATENATION": _concatenation,
    "CONV_2D": _convolution,
    "DEPTHWISE_CONV_2D": _convolution,
    "DEPTH_TO_SPACE": random_moves.depth_and_space,
    "DEQUANTIZE": _dequantize,
    "EMBEDDING_LOOKUP": random_moves.embedding_lookup,
    "EXPAND_DIMS": _expand_dims,
    "FULLY_CONNECTED": _fully_connected,
    "GATHER": random_moves.gather,
    "HARD_SWISH": _unary,
    "LEAKY_RELU": _unary,
    "LOGISTIC": _unary,
    "MAX_POOL_2D": _pool,
    "MEAN": _mean,
    "MIRROR_PAD": random_moves.mirror_pad,
    "MUL": _binary,
    "PACK": random_moves.pack,
    "PAD": _pad,
    "PADV2": _pad,
    "QUANTIZE": _quantize,
    "RELU": _unary,
    "RELU6": _unary,
    "RELU_N1_TO_1": _unary,
    "RESHAPE": _reshape,
    "REVERSE_V2": random_moves.reverse,
    "RESIZE_BILINEAR": _resize,
    "RESIZE_NEAREST_NEIGHBOR": _resize,
    "SLICE": _slice,
    "SOFTMAX": _softmax,
    "SPACE_TO_BATCH_ND": random_moves.space_and_batch,
    "SPACE_TO_DEPTH": random_moves.depth_and_space,
    "SPLIT": _split,
    "SPLIT_V": random_moves.split_v,
    "SQUEEZE": _squeeze,
    "STRIDED_SLICE": _strided_slice,
    "SUB": _binary,
    "TANH": _unary,
    "TILE": random_moves.tile,
    "TRANSPOSE": _transpose,
    "UNPACK": random_moves.unpack,
    "TRANSPOSE_CONV": _transposed,
}
OPERATORS = tuple(sorted(_MAKERS))
_OF_INT16 = (
    *("AVERAGE_POOL_2D", "BATCH_MATMUL", "CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED", "LEAKY_RELU"),
    *("LOGISTIC", "MAX_POOL_2D", "MEAN", "RELU", "RELU6", "RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR"),
    *("SOFTMAX", "TANH", "TRANSPOSE_CONV"),
)
_TYPES = {
    **dict.fromkeys(OPERATORS, DTYPES),
    **dict.fromkeys(_OF_INT16, WITH_INT16),
    **random_moves.TYPES,
    **dict.fromkeys(("ADD", "MEAN", "MUL", "SUB"), random_elements.NUMBERS),
    **random_elements.TYPES,
    **random_places.TYPES,
    **dict.fromkeys(("CONV_3D", "L2_POOL_2D"), ("float32",)),
    "DEQUANTIZE": ("int8", "uint8", "int16", "int4", "float16"),
    "EMBEDDING_LOOKUP": ("float32",),
    "QUANTIZE": (*WITH_INT16, "uint8", "int32"),
}
ONLY_IN_TFLM = (("CUMSUM", "int8"),)
_ALL_CASES = tuple((kind, dtype) for kind in OPERATORS for dtype in _TYPES[kind])
CASES = tuple(case for case in _ALL_CASES if case not in ONLY_IN_TFLM)
"""Every operator with every element type of its inputs that it takes, but for those that LiteRT lacks."""
_IN_TFLM = {(row.name, dtype) for row in tflm().operators for dtype in row.types}
_NOT_AS_DRAWN_IN_TFLM = {
    *(("SPACE_TO_BATCH_ND", dtype) for dtype in DTYPES),  # what it pads with is never set
    *(("FILL", dtype) for dtype in ("int8", "float32", "int32")),  # of a constant alone
    ("ADD", "int32"),  # with a fused activation, which it leaves out
    ("DEQUANTIZE", "uint8"),
    ("QUANTIZE", "uint8"),
    ("GREATER", "int16"),  # it runs, and gives values of no use
    *random_elements.NOT_AS_DRAWN_IN_TFLM,
}
TFLM_CASES = tuple(case for case in _ALL_CASES if case in _IN_TFLM - _NOT_AS_DRAWN_IN_TFLM)
"""Those that TensorFlow Lite Micro has."""
_TAKEN_FOR_ANOTHER_TYPE_BY_TFLM = {("RSQRT", "int16")}  # it runs, and gives values of no use
NOT_IN_TFLM = tuple(case for case in CASES if case not in _IN_TFLM | _TAKEN_FOR_ANOTHER_TYPE_BY_TFLM)
"""Those that it refuses to run."""


def num_examples(kind: str, usual: int) -> int:
    """How many models of a kind to try: fewer of those whose int8 forms other tests see on all pairs of inputs."""
    return max(2, usual // 3) if kind in random_elements.MAKERS else usual


def operator_models(kind: str, dtype: str) -> SearchStrategy[RandomModel]:
    """Models with one operator of a kind, on inputs of an element type."""

    @st.composite
    def models(draw: DrawFn) -> RandomModel:
        return _MAKERS[kind](Draft(draw, kind, dtype))

    return models()


def any_models() -> SearchStrategy[RandomModel]:
    """Models with one operator of any kind."""
    return st.sampled_from(CASES).flatmap(lambda case: operator_models(*case))
