"""CONV_2D, DEPTHWISE_CONV_2D, TRANSPOSE_CONV, that of MediaPipe, and FULLY_CONNECTED.

Each becomes a convolution whose result has the type of its sums, then a rescale and a clamp. FULLY_CONNECTED is a
convolution with a 1x1 window over rows of an image of height 1, as in TOSA. A CONV_2D whose weights read a part of the
channels is one in groups; of one channel a group it is a depthwise one.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import prod
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from bytewright import ir
from bytewright.frontends.tflite.accumulator import (
    MOST_OF_64_BITS,
    Reach,
    accumulator_reach,
    clamp_float,
    limited,
    require_reach,
    rescale_accumulator,
)
from bytewright.frontends.tflite.bias import layer_bias
from bytewright.frontends.tflite.blocks import block_product
from bytewright.frontends.tflite.conversion import Conversion
from bytewright.frontends.tflite.elementwise import emit_wrapped_difference
from bytewright.frontends.tflite.graph_builder import Operand
from bytewright.frontends.tflite.hybrid import (
    FormOf,
    HybridLayer,
    convolution_form,
    depthwise_form,
    layer_sums,
    matrix_form,
    transposed_form,
    weights_operand,
)
from bytewright.frontends.tflite.options import (
    Pair,
    WindowOptions,
    biased_transpose_options,
    conv2d_options,
    depthwise_options,
    fused_activation,
    stated_bias_type,
    transpose_options,
)
from bytewright.frontends.tflite.quantization import blocks_of
from bytewright.frontends.tflite.unsigned import UNSIGNED
from bytewright.frontends.tflite.windows import (
    MAX_STEP,
    follows_rows,
    padding_around,
    spatial_padding,
    transposed_extents,
    windows_of,
)
from bytewright.ops.arithmetic.multiplier import INT32_MAX
from bytewright.ops.arithmetic.numerics import Numerics
from bytewright.ops.convolution import SUMS, Conv2d, DepthwiseConv2d, GroupedConv2d, TransposeConv2d

_Convolution = Conv2d | DepthwiseConv2d | GroupedConv2d | TransposeConv2d
_Sliding = TypeVar("_Sliding", Conv2d, DepthwiseConv2d, GroupedConv2d)


@dataclass(frozen=True, slots=True)
class _Layer:
    """Operands of a convolution.

    Attributes:
        weights: In the layout of the graph's operator.
        bias: One value a channel, of the type of the sums.
        weight_scales: Of integers.
        reach: How far sums of integers go.
        is_wide: Whether the references keep them in 64 bits.
        hybrid: Of integer weights under floats.
        offsets: Where a zero point of the weights is still to be taken off: as many weights of one channel, each the
            zero point.
    """

    source: Operand
    weights: str
    bias: str
    weight_scales: Sequence[float] = ()
    reach: Reach | None = None
    is_wide: bool = False
    hybrid: HybridLayer | None = None
    offsets: str | None = None


def are_of_layer(activations: ir.DType, weights: ir.DType) -> bool:
    """Whether the libraries have layers of these types; weights of int16 are those of an SVDF alone."""
    return (activations, weights) in SUMS and weights is not ir.DType.I16


def convert_conv2d(at: Conversion) -> None:
    """CONV_2D: weights [OC,KH,KW,IC], as in the graph; the input has IC channels, or those of several groups."""
    options = conv2d_options(at)
    source, weights, array = _image_operands(at)
    channels, *kernel, depth = weights.shape
    groups, rest = divmod(source.shape[3], depth) if depth else (0, 0)
    at.require(
        groups >= 1 and rest == 0 and channels % groups == 0,
        f"{source.shape[3]} input channels and {channels} output channels do not fit weights of {depth} "
        "input channels, for one group or several",
    )
    taps = array.reshape(channels, -1)
    if groups > 1 and depth == 1:
        array = array.reshape(channels, -1).T.reshape(*kernel, groups, channels // groups)
    layer = _layer(
        at, source, weights, array, taps, axis=0, bias_type=options.bias_type, is_dense=groups == 1
    )
    operation: _Convolution
    if groups == 1:
        operation = _sliding(at, Conv2d, options, source, weights.shape[1:3])
    elif depth == 1:
        operation = _sliding(at, DepthwiseConv2d, options, source, weights.shape[1:3])
    else:
        operation = replace(_sliding(at, GroupedConv2d, options, source, weights.shape[1:3]), groups=groups)
    form_of = partial(convolution_form, are_dense=isinstance(operation, Conv2d))
    at.define(_computed(at, layer, at.value_of(source), operation, options.activation, form_of))


def convert_depthwise(at: Conversion) -> None:
    """DEPTHWISE_CONV_2D: weights [1,KH,KW,C*M] become [KH,KW,C,M], the same bytes.

    Of one channel the same sums are a convolution's, for which kernels are quicker.
    """
    options = depthwise_options(at)
    source, weights, array = _image_operands(at, axis=3)
    one, height, width, channels = weights.shape
    depth = source.shape[3]
    fits = one == 1 and channels % depth == 0
    at.require(fits, f"weights {list(weights.shape)} do not fit {depth} input channels")
    multiplier = channels // depth
    stated = options.depth_multiplier
    at.require(stated in (0, multiplier), f"depth multiplier {stated} is stated, shapes give {multiplier}")
    taps = array.reshape(-1, channels).T
    operation: _Convolution
    if depth == 1 < multiplier:
        array = taps.reshape(channels, height, width, 1)
        operation = _sliding(at, Conv2d, options, source, (height, width))
    else:
        array = array.reshape(height, width, depth, multiplier)
        operation = _sliding(at, DepthwiseConv2d, options, source, (height, width))
    layer = _layer(at, source, weights, array, taps, axis=3, is_dense=isinstance(operation, Conv2d))
    at.define(_computed(at, layer, at.value_of(source), operation, options.activation, depthwise_form))


def convert_transpose_conv(at: Conversion) -> None:
    """TRANSPOSE_CONV: the result's shape, weights [OC,KH,KW,IC], input, and perhaps a bias."""
    at.require_counts((3, 4))
    _convert_transposed(at, transpose_options(at), 2, 3, lambda _, __: _result_shape(at))


def convert_biased_transpose_conv(at: Conversion) -> None:
    """Convolution2DTransposeBias of MediaPipe: input, weights [OC,KH,KW,IC] and bias; the result's shape follows."""
    options = biased_transpose_options(at)
    at.require_counts((3,))

    def result_shape(source: Operand, weights: Operand) -> tuple[int, ...]:
        _check_steps(at, options)
        extents = transposed_extents(options, source.shape[1:3], (weights.shape[1], weights.shape[2]))
        return source.shape[0], *extents, weights.shape[0]

    _convert_transposed(at, options, 0, 2, result_shape)


def _convert_transposed(
    at: Conversion,
    options: WindowOptions,
    input_at: int,
    bias_at: int,
    result_shape: Callable[[Operand, Operand], tuple[int, ...]],
) -> None:
    """A transposed convolution whose weights are its second operand, of a shape that input and weights have."""
    source = at.activation_operand(input_at, "input")
    weights, array = weights_operand(at, under_floats=source.is_float, axis=0)
    at.require(len(source.shape) == 4 and len(weights.shape) == 4, "input or weights do not have 4 axes")
    channels, height, width, depth = weights.shape
    at.require(source.shape[3] == depth, f"{source.shape[3]} input channels do not fit weights of {depth}")
    stated = result_shape(source, weights)
    fits = len(stated) == 4 and stated[3] == channels and min(stated[1:3]) >= 1
    at.require(fits, f"an output shape {list(stated)} for {channels} channels")
    at.require(
        at.graph.has_open_batch or stated[0] == source.shape[0],
        f"an output shape {list(stated)} for an input {list(source.shape)}",
    )
    _check_steps(at, options)
    if at.numerics is Numerics.LITERT_REF:
        going_back = windows_of(options, stated[1:3], (height, width))
        at.require(
            going_back == source.shape[1:3],
            f"a result of {stated[1]}x{stated[2]} is of an input of {going_back[0]}x{going_back[1]}, "
            f"not of {source.shape[1]}x{source.shape[2]}",
        )
    taps, bias_type = array.reshape(channels, -1), options.bias_type
    layer = _layer(at, source, weights, array, taps, axis=0, bias_at=bias_at, bias_type=bias_type)
    padding = padding_around(options, stated[1:3], source.shape[1:3], (height, width))
    operation = TransposeConv2d(options.stride, padding, _input_zero_point(at, source))
    at.define(_computed(at, layer, at.value_of(source), operation, options.activation, transposed_form))


def _result_shape(at: Conversion) -> tuple[int, ...]:
    """What the first operand says. TensorFlow Lite Micro does not read it, and has the shape that the file declares."""
    if at.numerics is Numerics.TFLM and at.operand(0, "output shape").data is None:
        return at.output_tensor().shape
    return at.extents_operand(0, "output shape")[0]


@dataclass(frozen=True, slots=True)
class FullyConnectedForm:
    """What a FULLY_CONNECTED makes of its input: rows of `depth` elements, and of each row `channels` results."""

    activation: str
    rows: int
    depth: int
    channels: int
    result_shape: tuple[int, ...]


def fully_connected_form(at: Conversion, source: Operand, weights: Operand) -> FullyConnectedForm:
    """The form for weights [OC,K]: all axes of the input but K are rows."""
    activation = fused_activation(at, 0)
    at.require(at.options.integer(1, "b") == 0, "shuffled weights are not supported")
    keep_num_dims = at.options.boolean(2)
    at.require(len(weights.shape) == 2, f"weights {list(weights.shape)} do not have 2 axes")
    at.require(weights.type.num_elements > 0, "the weights have no elements")
    channels, depth = weights.shape
    elements = prod(source.shape)
    at.require(elements % depth == 0, f"an input of {elements} elements does not fill rows of {depth}")
    if keep_num_dims:
        fits = len(source.shape) >= 1 and source.shape[-1] == depth
        at.require(fits, f"an input {list(source.shape)} does not keep its axes with rows of {depth}")
    rows = elements // depth
    result_shape = (*source.shape[:-1], channels) if keep_num_dims else (rows, channels)
    return FullyConnectedForm(activation, rows, depth, channels, result_shape)


def convert_layer(at: Conversion) -> None:
    """FULLY_CONNECTED with weights that are known: [OC,K] become [OC,1,1,K]."""
    source, weights, array = _operands(at)
    form = fully_connected_form(at, source, weights)
    blocks = blocks_of(at, weights) if source.is_float and not weights.is_float else None
    if blocks is not None:
        at.require(form.activation == "NONE", f"LiteRT leaves out the fused activation {form.activation}")
        bias = layer_bias(at, source, form.channels, 2, None)
        value = at.constant("bias", bias.values, ir.DType.F32) if bias.values.any() else None
        product = block_product(at, source, weights, blocks, rows=form.rows, bias=value)
        at.define(at.reshape(product, form.result_shape))
        return
    window, bias_type = array.reshape(form.channels, 1, 1, form.depth), stated_bias_type(at, 4)
    layer = _layer(at, source, weights, window, array, axis=0, bias_type=bias_type)
    image = at.reshape(at.value_of(source), (1, form.rows, 1, form.depth), "rows")
    operation = Conv2d((1, 1), (0, 0, 0, 0), (1, 1), _input_zero_point(at, source))
    form_of = partial(matrix_form, slot=3)
    result = _computed(at, layer, image, operation, form.activation, form_of)
    at.define(at.reshape(result, form.result_shape))


def product_with_matrix(
    at: Conversion, value: str, matrix: NDArray[Any], zero_point: int, sums: ir.DType = ir.DType.I32
) -> str:
    """Rows of a value times a constant [OC,K], as in a layer without a bias, [1,rows,1,OC]: of floats in float32."""
    (channels, depth), given = matrix.shape, at.type_of(value)
    dtype = sums if given.dtype.is_integer else ir.DType.F32
    operands = (
        at.reshape(value, (1, given.num_elements // depth, 1, depth), "rows"),
        at.constant("weights", matrix.reshape(channels, 1, 1, depth), ir.DType.of(matrix.dtype)),
        at.constant("bias", np.zeros(channels, dtype.numpy), dtype),
    )
    return at.emit(Conv2d((1, 1), (0, 0, 0, 0), (1, 1), zero_point), operands, "product")


def _operands(at: Conversion, axis: int = 0) -> tuple[Operand, Operand, NDArray[Any]]:
    """Input and weights, with a channel for each element of an axis, and the weights' values."""
    at.require_counts((2, 3))
    source = at.activation_operand(0, "input")
    return source, *weights_operand(at, under_floats=source.is_float, axis=axis)


def _image_operands(at: Conversion, axis: int = 0) -> tuple[Operand, Operand, NDArray[Any]]:
    """As `_operands`, of 4 axes each."""
    source, weights, array = _operands(at, axis)
    at.require(len(source.shape) == 4 and len(weights.shape) == 4, "input or weights do not have 4 axes")
    return source, weights, array


def emit_convolution(at: Conversion, image: str, operands: tuple[str, str], options: WindowOptions) -> str:
    """Sums of floats: an image by weights [OC,KH,KW,IC], with a bias."""
    _check_steps(at, options)
    _, height, width, _ = at.type_of(operands[0]).fixed_shape
    padding = spatial_padding(options, at.type_of(image).fixed_shape, (height, width))
    is_same = follows_rows(at, options)
    operation = Conv2d(options.stride, padding, options.dilation, is_same=is_same)
    return at.emit(operation, (image, *operands), "sums")


def emit_transposed_convolution(
    at: Conversion, image: str, operands: tuple[str, str], options: WindowOptions, out: Pair
) -> str:
    """Sums of floats: an image spread over one of other rows and columns, by weights [OC,KH,KW,IC], with a bias."""
    _, height, width, _ = at.type_of(operands[0]).fixed_shape
    padding = padding_around(options, out, at.type_of(image).fixed_shape[1:3], (height, width))
    return at.emit(TransposeConv2d(options.stride, padding), (image, *operands), "sums")


def emit_whole_window(at: Conversion, operands: tuple[str, str, str], zero_point: int) -> str:
    """Sums of each channel over all of an image, by weights [H,W,C,1] and with a bias: [N,1,1,C]."""
    return at.emit(DepthwiseConv2d((1, 1), (0, 0, 0, 0), (1, 1), zero_point), operands, "sums")


def _sliding(
    at: Conversion,
    kind: type[_Sliding],
    options: WindowOptions,
    source: Operand,
    kernel: tuple[int, ...],
) -> _Sliding:
    """The operation, with padding around the input for the option's scheme."""
    _check_steps(at, options)
    padding = spatial_padding(options, source.shape, (kernel[0], kernel[1]))
    zero_point, is_same = _input_zero_point(at, source), follows_rows(at, options)
    return kind(options.stride, padding, options.dilation, zero_point, is_same=is_same)


def _check_steps(at: Conversion, options: WindowOptions) -> None:
    """Strides and dilations are what the references take."""
    at.require(min(options.stride) >= 1, f"stride {options.stride} is not positive")
    at.require(min(options.dilation) >= 1, f"dilation {options.dilation} is not positive")
    steps = (*options.stride, *options.dilation)
    at.require(
        max(steps) <= MAX_STEP, f"a stride or dilation is {max(steps)}, the references take {MAX_STEP}"
    )


def _input_zero_point(at: Conversion, source: Operand) -> int:
    """What padded taps see; 0 for float32."""
    return 0 if source.is_float else at.affine(source.tensor).zero_point


def _layer(
    at: Conversion,
    source: Operand,
    weights: Operand,
    array: NDArray[Any],
    taps: NDArray[Any],
    axis: int,
    bias_at: int = 2,
    bias_type: str | None = None,
    is_dense: bool = True,
) -> _Layer:
    """Weights and bias as constants; `array` has the graph's layout, `taps` is [channels, taps].

    `is_dense` says that every channel of the result reads all of the input's.
    """
    is_hybrid = source.is_float and not weights.is_float
    fits = are_of_layer(ir.DType.I8 if is_hybrid else source.dtype, weights.dtype)
    at.require(fits, f"the weights are {weights.tensor.element_type}")
    at.require_same_dtype(source)
    at.require(weights.type.num_elements > 0, "the weights have no elements")
    channels = taps.shape[0]
    scales = () if weights.is_float else at.weight_scales(weights.tensor, channels, axis)
    bias = layer_bias(at, source, channels, bias_at, bias_type)
    if scales and bias.operand is not None and not is_hybrid:
        check_bias_scale(at, source, scales, bias.operand)
    array, taps, offsets = _centred(at, weights, array, taps, is_dense=is_dense)
    # Layers that share a tensor in the graph's layout share the constant.
    is_shared = weights.data is not None and np.array_equal(array, weights.data.array)
    value = (
        at.value_of(weights, "weights")
        if is_shared
        else at.constant("weights", array, ir.DType.of(array.dtype), of=weights.tensor)
    )
    tensor = None if bias.operand is None else bias.operand.tensor
    if source.is_float:
        bias_value = at.constant("bias", bias.values, ir.DType.F32, of=tensor)
        real_bias = bias_value if bias.values.any() else None
        own = HybridLayer(value, taps, scales, real_bias, are_real=weights.is_real)
        return _Layer(source, value, bias_value, hybrid=own if is_hybrid else None)
    reach = accumulator_reach(taps, bias.values.astype(np.int64), at.affine(source.tensor))
    sums = ir.DType.I32 if reach.fits_32_bits or not bias.is_wide else ir.DType.I64
    require_reach(at, reach, MOST_OF_64_BITS if bias.is_wide else INT32_MAX)
    bias_value = at.constant("bias", bias.values, sums, of=tensor)
    return _Layer(source, value, bias_value, scales, reach, bias.is_wide, offsets=offsets)


def _centred(
    at: Conversion, weights: Operand, array: NDArray[Any], taps: NDArray[Any], *, is_dense: bool
) -> tuple[NDArray[Any], NDArray[Any], str | None]:
    """Weights as they are multiplied, `taps` without their zero point, and what is still to be taken off.

    uint8 weights without their zero point, which need not be in the middle, may be of 9 bits. Then a dense layer keeps
    them in 8, and takes off of all channels what the zero point is of the sum of the input under the window; of a
    channel of the input alone that would be as much work as the layer, so that there weights have 16 bits.
    """
    if weights.tensor.element_type != UNSIGNED:
        return array, taps, None
    (zero_point,) = at.zero_points(weights.tensor)
    wide, taps = (each.astype(np.int16) - np.int16(zero_point) for each in (array, taps))
    low, high = ir.DType.I8.bounds
    if low <= int(wide.min()) and int(wide.max()) <= high:
        return wide.astype(np.int8), taps, None
    if not is_dense:
        return wide, taps, None
    offsets = np.full((1, *array.shape[1:]), zero_point, np.int8)
    return array, taps, at.constant("zero_points", offsets, ir.DType.I8)


def check_bias_scale(at: Conversion, source: Operand, scales: Sequence[float], bias: Operand) -> None:
    """LiteRT refuses a FULLY_CONNECTED of one scale whose bias has another than input times weights.

    Other operators, and files without a bias scale, take the bias as it is.
    """
    stated = bias.tensor.quantization.scales
    looks = at.operator.kind == "FULLY_CONNECTED" and at.numerics is Numerics.LITERT_REF
    if not looks or len(scales) != 1 or len(stated) != 1:
        return
    expected = at.affine(source.tensor).scale * scales[0]
    difference = abs(expected - stated[0]) / at.affine(at.output_tensor()).scale
    at.require(difference <= 0.02, f"the bias has scale {stated[0]}, input times weights is {expected}")


def _computed(
    at: Conversion,
    layer: _Layer,
    image: str,
    operation: _Convolution,
    activation: str,
    form_of: FormOf,
) -> str:
    """The operation on an image, from accumulator to result; `form_of` is for integer weights under floats."""
    if layer.hybrid is not None:
        sums = layer_sums(at, layer.hybrid, form_of, image, operation)
        return clamp_float(at, sums, activation)
    accumulator = at.emit(operation, (image, layer.weights, layer.bias), "accumulator")
    if layer.offsets is not None:
        nothing = at.constant("no_bias", np.zeros(1, np.int32), ir.DType.I32)
        offset = at.emit(operation, (image, layer.offsets, nothing), "offset")
        accumulator = emit_wrapped_difference(at, accumulator, offset)
    if layer.reach is None:
        return clamp_float(at, accumulator, activation)
    source, target = at.affine(layer.source.tensor), at.affine(at.output_tensor())
    reach = layer.reach.greatest
    if (known := at.data_of(accumulator)) is not None:
        # A recurrent layer's first state: whatever else it could have reached.
        reach = np.abs(known.array.astype(np.int64)).reshape(-1, len(reach)).max(axis=0)
    if layer.offsets is not None and 2 * source.scale * max(layer.weight_scales) > target.scale:
        # A left shift may follow, which the sums of both parts alone do not prove to stay within 32 bits.
        most = int(reach.max())
        accumulator = limited(at, accumulator, -most, most, "within_reach")
    scales = (source, layer.weight_scales, target)
    return rescale_accumulator(at, accumulator, reach, scales, activation, is_wide=layer.is_wide)
