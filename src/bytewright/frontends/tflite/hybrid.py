"""Layers of float activations and integer weights: as LiteRT's hybrid kernels compute them, or in floats.

The input is quantised by its own range, row by row: a row is a sample, or a row of a matrix. Sums are integers, and
are scaled back by what the row and the channel were scaled with. The float bias comes last.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bytewright import ir
from bytewright.frontends.tflite.conversion import Conversion
from bytewright.frontends.tflite.graph_builder import Operand
from bytewright.frontends.tflite.quantization import dequantised
from bytewright.ops.arithmetic.dynamic import SYMMETRIC_STEPS
from bytewright.ops.cast import TflCast
from bytewright.ops.comparisons import Equal
from bytewright.ops.convolution import Conv2d, DepthwiseConv2d, GroupedConv2d, TransposeConv2d
from bytewright.ops.data import Pad
from bytewright.ops.dynamic_quantization import TflDynamicQuantize, TflDynamicScale, TflDynamicZeroPoint
from bytewright.ops.elementwise import Add, Maximum, Mul, Select, Sub, TflDiv
from bytewright.ops.float_functions import Negate
from bytewright.ops.pooling import ReduceMax, ReduceMin

_Convolution = Conv2d | DepthwiseConv2d | GroupedConv2d | TransposeConv2d
_ROW_OF_MATRIX, _SAMPLE = (3,), (1, 2, 3)


def weights_operand(
    at: Conversion, *, under_floats: bool, axis: int | None, role: str = "weights"
) -> tuple[Operand, NDArray[Any]]:
    """The constant second operand, and its values.

    Under float activations integers are widened to float32 if that is asked for; and what a DEQUANTIZE widened is the
    integers again, if they are to be kept.

    Args:
        at: The operator.
        under_floats: Whether activations are floats.
        axis: The one along which there may be a scale for each result; None if there may be one scale.
        role: What to call it.
    """
    weights, values = at.constant_operand(1, role)
    if under_floats and at.graph.keeps_weights and weights.is_float:
        kept = at.graph.dequantised.get(weights.tensor.index)
        if kept is not None and kept.data is not None and _has_scales(kept, axis):
            return replace(kept, is_real=True), kept.data.array
    return expanded(at, weights, values) if under_floats else (weights, values)


def expanded(at: Conversion, weights: Operand, values: NDArray[Any]) -> tuple[Operand, NDArray[Any]]:
    """Integers under float activations as what they stand for, where `--weights expand` asks for that."""
    if weights.is_float or not at.graph.expands_weights:
        return weights, values
    values = dequantised(at, weights, values)
    data = ir.TensorData.from_array(values, ir.DType.F32)
    return Operand(weights.tensor, data.type, data, is_expanded=True), values


def _has_scales(weights: Operand, axis: int | None) -> bool:
    """Whether there is no zero point, and one scale, or one for each element of the axis."""
    record = weights.tensor.quantization
    by_axis = axis is not None and record.axis == axis and len(record.scales) == weights.shape[axis]
    return (
        weights.dtype is ir.DType.I8 and not any(record.zero_points) and (len(record.scales) == 1 or by_axis)
    )


@dataclass(frozen=True, slots=True)
class HybridForm:
    """How one of LiteRT's hybrid kernels quantises its input, and scales its sums.

    Attributes:
        is_symmetric: Whether the zero point is 0; else it follows from the range.
        row_axes: Those of an image whose elements are quantised alike.
        by_channel_first: Whether a sum is multiplied with the channel's scale, and then with the row's; else with the
            product of both.
    """

    is_symmetric: bool
    row_axes: tuple[int, ...] = _SAMPLE
    by_channel_first: bool = False


@dataclass(frozen=True, slots=True)
class HybridLayer:
    """Constants of a layer.

    Attributes:
        weights: Their value in the graph, int8; `taps` are the same as [channels, taps].
        scales: Of the weights: one, or one a channel.
        bias: Its value in the graph, float32, if there is one.
        are_real: Whether activations stay floats: the weights stand for floats that a DEQUANTIZE makes of them.
    """

    weights: str
    taps: NDArray[Any]
    scales: Sequence[float]
    bias: str | None
    are_real: bool = False


FormOf = Callable[[Conversion, HybridLayer], HybridForm]
"""Which form the kernel of an operator has for a layer."""


def matrix_form(at: Conversion, layer: HybridLayer, *, slot: int) -> HybridForm:
    """Of products of matrices, whose options say at `slot` whether there are zero points."""
    del layer
    return HybridForm(not at.options.boolean(slot), _ROW_OF_MATRIX)


def convolution_form(at: Conversion, layer: HybridLayer, *, are_dense: bool) -> HybridForm:
    """Of CONV_2D, whose dense weights may all have one scale."""
    if are_dense and len(set(layer.scales)) == 1:
        return HybridForm(is_symmetric=True)
    _require_scales(at, layer)
    return HybridForm(is_symmetric=False, by_channel_first=True)


def depthwise_form(at: Conversion, layer: HybridLayer) -> HybridForm:
    """Of DEPTHWISE_CONV_2D."""
    _require_scales(at, layer)
    return HybridForm(is_symmetric=False)


def transposed_form(at: Conversion, layer: HybridLayer) -> HybridForm:
    """Of TRANSPOSE_CONV."""
    del at, layer
    return HybridForm(is_symmetric=False, by_channel_first=True)


def _require_scales(at: Conversion, layer: HybridLayer) -> None:
    """The reference reads a scale for each channel, whatever there are."""
    channels = len(layer.taps)
    at.require(
        len(layer.scales) == channels,
        f"weights of {channels} channels have {len(layer.scales)} scales, and LiteRT reads one for each",
    )


@dataclass(frozen=True, slots=True)
class _Rows:
    """Parameters of quantised rows: values in the graph that are broadcast over the image.

    Attributes:
        scale: What a step stands for; `inverse` is what values are multiplied with.
        zero_point: int8; None if it is 0.
    """

    scale: str
    inverse: str
    zero_point: str | None


def layer_sums(
    at: Conversion, layer: HybridLayer, form_of: FormOf, image: str, operation: _Convolution
) -> str:
    """The operation on an image of floats, scaled, with the bias; the fused activation is left to do."""
    scales = at.constant("scales", np.array(layer.scales, np.float32), ir.DType.F32)
    if layer.are_real:
        operands = (image, layer.weights, _no_bias(at, layer, ir.DType.F32))
        real = at.emit(Mul(), (at.emit(operation, operands, "accumulator"), scales), "real")
    else:
        real = _hybrid_sums(at, layer, form_of(at, layer), scales, image, operation)
    return real if layer.bias is None else at.emit(Add(), (real, layer.bias), "with_bias")


def _no_bias(at: Conversion, layer: HybridLayer, dtype: ir.DType) -> str:
    return at.constant("no_bias", np.zeros(len(layer.taps), dtype.numpy), dtype)


def _hybrid_sums(
    at: Conversion, layer: HybridLayer, form: HybridForm, scales: str, image: str, operation: _Convolution
) -> str:
    """Of quantised rows, scaled."""
    rows = _parameters(at, form, image)
    if isinstance(operation, TransposeConv2d):
        real = _spread(at, layer, rows, image, operation)
    else:
        real = _slid(at, layer, rows, image, operation)
    if form.by_channel_first:
        return at.emit(Mul(), (at.emit(Mul(), (real, scales), "of_channel"), rows.scale), "real")
    factor = at.emit(Mul(), (rows.scale, scales), "factor")
    return at.emit(Mul(), (real, factor), "real")


def hybrid_product(
    at: Conversion, value: str, matrix: NDArray[Any], scales: Sequence[float], slot: int
) -> str:
    """Rows of a value times a constant [OC,K] of int8: float32, [1,rows,1,OC]; `slot` as for `matrix_form`."""
    channels, depth = matrix.shape
    image = at.reshape(value, (1, at.type_of(value).num_elements // depth, 1, depth), "rows")
    weights = at.constant("weights", matrix.reshape(channels, 1, 1, depth), ir.DType.I8)
    layer = HybridLayer(weights, matrix, scales, bias=None)
    window = Conv2d((1, 1), (0, 0, 0, 0), (1, 1))
    return layer_sums(at, layer, partial(matrix_form, slot=slot), image, window)


def real_values(at: Conversion, steps: str, scale: str) -> str:
    """Integers without a zero point as what they stand for."""
    return at.emit(Mul(), (at.emit(TflCast(ir.DType.F32), (steps,), "steps"), scale), "scaled")


def _parameters(at: Conversion, form: HybridForm, image: str) -> _Rows:
    """By the least and the greatest value of each row."""
    source = _before_zeros(at, form, image)
    least = at.emit(ReduceMin(form.row_axes, True), (source,), "least")
    greatest = at.emit(ReduceMax(form.row_axes, True), (source,), "greatest")
    if not form.is_symmetric:
        scale = at.emit(TflDynamicScale(), (least, greatest), "scale")
        zero_point = at.emit(TflDynamicZeroPoint(), (least, greatest), "zero_point")
        return _Rows(scale, at.emit(TflDiv(), (_number(at, 1.0), scale), "inverse"), zero_point)
    steps = _number(at, float(SYMMETRIC_STEPS))
    reach = at.emit(Maximum(), (greatest, at.emit(Negate(), (least,), "lowest")), "reach")
    is_zero = at.emit(Equal(), (reach, _number(at, 0.0)), "is_zero")
    reach = at.emit(Select(), (is_zero, steps, reach), "reach")
    scale = at.emit(TflDiv(), (reach, steps), "scale")
    return _Rows(scale, at.emit(TflDiv(), (steps, reach), "inverse"), None)


def _before_zeros(at: Conversion, form: HybridForm, image: str) -> str:
    """What was padded with zeros within its rows to become the image: the same range, as zero is in every one."""
    producer = at.graph.producers.get(image)
    if producer is None or not isinstance(producer.operation, Pad) or producer.operation.value != 0:
        return image
    widths = zip(producer.operation.before, producer.operation.after, strict=True)
    grown = {axis for axis, pads in enumerate(widths) if any(pads)}
    return producer.inputs[0] if grown <= set(form.row_axes) else image


def _quantised(at: Conversion, rows: _Rows, image: str) -> str:
    scaled = at.emit(Mul(), (image, rows.inverse), "scaled")
    zero_point = rows.zero_point or at.constant("zero", np.zeros((), np.int8), ir.DType.I8)
    return at.emit(TflDynamicQuantize(), (scaled, zero_point), "quantised")


def _slid(
    at: Conversion,
    layer: HybridLayer,
    rows: _Rows,
    image: str,
    operation: Conv2d | DepthwiseConv2d | GroupedConv2d,
) -> str:
    """Sums of a sliding window as float32.

    Zero points are known at run time only. So that padding has them, the image is padded with zeros first; and what
    they add to every sum of a channel is subtracted after.
    """
    if rows.zero_point is not None and any(operation.padding):
        top, bottom, left, right = operation.padding
        pad = Pad((0, top, left, 0), (0, bottom, right, 0), 0.0)
        if operation.is_same and max(operation.stride) > 1:
            at.fail(
                f"rows are padded before a stride of {operation.stride}, as many as the file has",
                code="BW121",
            )
        operation = replace(operation, padding=(0, 0, 0, 0), is_same=False)
        image = at.emit(pad, (image,), "padded")
    operands = (_quantised(at, rows, image), layer.weights, _no_bias(at, layer, ir.DType.I32))
    total = at.emit(operation, operands, "accumulator")
    if rows.zero_point is not None:
        sums = at.constant("weight_sums", layer.taps.sum(axis=1, dtype=np.int32), ir.DType.I32)
        zero_point = at.emit(TflCast(ir.DType.I32), (rows.zero_point,), "wide_zero_point")
        excess = at.emit(Mul(), (zero_point, sums), "excess")
        total = at.emit(Sub(), (total, excess), "centred")
    return at.emit(TflCast(ir.DType.F32), (total,), "sums")


def _spread(at: Conversion, layer: HybridLayer, rows: _Rows, image: str, operation: TransposeConv2d) -> str:
    """Sums of spread windows; those of as many values as reach an element, so zero points are subtracted before.

    The reference adds in float32 as well.
    """
    values = at.emit(TflCast(ir.DType.F32), (_quantised(at, rows, image),), "steps")
    if rows.zero_point is not None:
        zero_point = at.emit(TflCast(ir.DType.F32), (rows.zero_point,), "real_zero_point")
        values = at.emit(Sub(), (values, zero_point), "centred")
    return at.emit(operation, (values, layer.weights, _no_bias(at, layer, ir.DType.F32)), "accumulator")


def _number(at: Conversion, value: float) -> str:
    return at.constant("number", np.array(value, np.float32), ir.DType.F32)
