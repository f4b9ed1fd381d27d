"""SVDF in float32 and int8: each filter a sum over the input, and one over what the last inputs gave it.

Both sums are convolutions that the graph has. What the filters gave is an image of frames [B,M,R,U], whose last row is
the newest; units are its channels, and the filters of a unit its columns, so that the sums over time and over the
filters of a unit are depthwise windows. Between two runs M-1 frames are kept: the oldest is read for the last time in
the run whose inputs give the newest. Inputs may be fewer bytes; then the last ones are kept in place of their frames,
as many as `svdf_states` says, and frames computed again: one at a time is in memory.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bytewright import ir
from bytewright.frontends.tflite.accumulator import (
    MOST_OF_64_BITS,
    Reach,
    accumulator_reach,
    checked_multiplier,
    clamp_float,
    require_reach,
    rescale,
)
from bytewright.frontends.tflite.cast import emit_cast
from bytewright.frontends.tflite.conversion import Conversion, Kept, Operand
from bytewright.frontends.tflite.convolution import emit_whole_window, product_with_matrix
from bytewright.frontends.tflite.elementwise import emit_wrapped_offset, emit_wrapped_sum
from bytewright.frontends.tflite.graph_builder import OwnKey
from bytewright.frontends.tflite.hybrid import hybrid_product, weights_operand
from bytewright.frontends.tflite.model import TensorRecord
from bytewright.frontends.tflite.options import activation_name, fused_activation
from bytewright.frontends.tflite.quantization import dequantised
from bytewright.frontends.tflite.svdf_states import inputs_kept
from bytewright.ops.arithmetic.multiplier import (
    INT32_MAX,
    Affine,
    quantize_multiplier,
    single,
    single_quotient,
)
from bytewright.ops.arithmetic.numerics import Numerics
from bytewright.ops.data import ShiftIn

_INPUT, _FEATURES, _TIME, _BIAS, _STATE = range(5)
_RANK, _ACTIVATION, _ASYMMETRIC = range(3)
# How far the bias's scale may be from the product that both libraries compute with.
_BIAS_TOLERANCE = 1e-5


@dataclass(frozen=True, slots=True)
class _Layer:
    """Sizes and constants.

    Attributes:
        features: [R*U,I], the filters of all units in the order of a frame.
        time: [M,R,U].
        bias: [U].
        frames: [B,F,R,U] of the runs before, the oldest first; None if none are kept.
        inputs: [B,M-1-F,I] of the runs behind these; None likewise.
    """

    source: Operand
    features: NDArray[Any]
    time: NDArray[Any]
    bias: NDArray[Any]
    frames: Kept | None
    inputs: Kept | None

    @property
    def row(self) -> tuple[int, ...]:
        """[B,1,I], the input of one run."""
        return (self.source.shape[0], 1, self.source.shape[1])

    @property
    def frame(self) -> tuple[int, ...]:
        """[B,1,R,U], what one run adds."""
        return (self.source.shape[0], 1, *self.time.shape[1:])


def convert_svdf(at: Conversion) -> None:
    """The layer; its frames survive runs."""
    at.require_counts((5,))
    source = at.activation_operand(_INPUT, "input")
    features, over_input = weights_operand(at, under_floats=source.is_float, axis=None)
    time, over_time = at.constant_operand(_TIME, "weights over time")
    fits = (
        len(source.shape) == len(features.shape) == len(time.shape) == 2
        and features.shape[1] == source.shape[1]
        and time.shape[0] == features.shape[0]
        and min(*features.shape, *time.shape) >= 1
    )
    shapes = [list(each.shape) for each in (source, features, time)]
    at.require(fits, f"input, features and weights over time of {shapes} do not fit each other")
    rank, filters = at.options.integer(_RANK), features.shape[0]
    at.require(rank >= 1 and filters % rank == 0, f"{filters} filters are not of units of {rank}")
    units, frames = filters // rank, time.shape[1]
    if source.is_float and not time.is_float:
        over_time = dequantised(at, time, over_time)
    layer = _Layer(
        source,
        over_input.reshape(units, rank, -1).swapaxes(0, 1).reshape(filters, -1),
        over_time.reshape(units, rank, frames).transpose(2, 1, 0),
        _bias(at, source, units),
        *_states(at, source, (source.shape[0], frames, rank, units)),
    )
    result = (
        _float_layer(at, layer, features) if source.is_float else _integer_layer(at, layer, features, time)
    )
    at.define(at.reshape(result, (source.shape[0], units)))


def _bias(at: Conversion, source: Operand, units: int) -> NDArray[Any]:
    """One value a unit; zeros where there is none, which TensorFlow Lite Micro does not take."""
    dtype = ir.DType.F32 if source.is_float else ir.DType.I32
    if not at.is_present(_BIAS):
        at.require(at.numerics is not Numerics.TFLM, "TensorFlow Lite Micro has no SVDF without a bias")
        return np.zeros(units, dtype.numpy)
    bias, values = at.constant_operand(_BIAS, "bias")
    at.require(bias.dtype is dtype, f"the bias is {bias.tensor.element_type}")
    at.require(bias.shape == (units,), f"a bias {list(bias.shape)} for {units} units")
    return values


def _states(
    at: Conversion, source: Operand, shape: tuple[int, int, int, int]
) -> tuple[Kept | None, Kept | None]:
    """The frames before the newest one, of a variable that lies filter by filter in the file, and inputs in place of
    the last of them.
    """
    graph, index = at.graph, at.operator.inputs[_STATE]
    tensor = graph.model.tensors[index]
    at.require(tensor.is_variable, "the state is no variable")
    is_taken = any((graph.number, key) in graph.kept for key in _keys(index))
    at.require(not is_taken, "two operators keep their states in one variable")
    samples, memory, rank, units = shape
    stated = (samples, memory * rank * units)
    at.require(tensor.shape == stated, f"the state is {list(tensor.shape)}, not {list(stated)}")
    dtype = _state_type(at, source)
    if graph.inputs_kept is None:
        graph.inputs_kept = inputs_kept(graph.model, graph.recomputed)
    num_inputs = graph.inputs_kept.get(at.operator.index, 0)
    note = f"import_tflite: {num_inputs} inputs are kept in place of their frames" if num_inputs else ""
    frames = ir.TensorType((samples, memory - 1 - num_inputs, rank, units), dtype)
    inputs = ir.TensorType((samples, num_inputs, source.shape[1]), source.dtype)
    frames_key, inputs_key = _keys(index)
    return (
        _kept(at, frames_key, "frames", tensor, frames, note),
        _kept(at, inputs_key, "inputs", source.tensor, inputs, note),
    )


def _keys(index: int) -> tuple[int, OwnKey]:
    """Of frames and inputs that a variable stands for."""
    return index, (index, "inputs")


def _kept(
    at: Conversion, key: int | OwnKey, role: str, tensor: TensorRecord, kind: ir.TensorType, note: str
) -> Kept | None:
    """What is quantised as `tensor`; before the first run it is zeros, and none if it has no elements."""
    if not kind.num_elements:
        return None
    initial = None
    if kind.dtype is ir.DType.I8 and (zero_point := at.affine(tensor).zero_point):
        initial = ir.TensorData.from_array(np.full(kind.fixed_shape, zero_point, np.int8), kind.dtype)
    return at.graph.keep(key, f"svdf_{at.operator.index}_{role}", tensor, kind, initial, note)


def _state_type(at: Conversion, source: Operand) -> ir.DType:
    """Of a filter's results, as the file keeps them."""
    tensor = at.graph.model.tensors[at.operator.inputs[_STATE]]
    dtypes = {"FLOAT32": ir.DType.F32} if source.is_float else {"INT16": ir.DType.I16, "INT8": ir.DType.I8}
    if tensor.element_type not in dtypes:
        at.fail(f"the state is {tensor.element_type}", code="BW105", tensor=tensor)
    return dtypes[tensor.element_type]


_Window = Callable[[str, NDArray[Any], NDArray[Any]], str]
"""Sums of each unit over some frames, given weights [frames,R,U] and a bias: float32 or int32, [B,1,1,U]."""


_Filter = Callable[[str], str]
"""What the filters give of an input: a frame."""


def _over_time(at: Conversion, layer: _Layer, filtered: _Filter, window: _Window) -> str:
    """Sums over the frames before and the newest one.

    The first frame that is computed is found behind those that are kept by the next run; the oldest is gone then.
    """
    value, frames, inputs = at.value_of(layer.source), layer.frames, layer.inputs
    num_frames, no_bias = _count(frames), np.zeros_like(layer.bias)
    sums = window(frames.current, layer.time[:num_frames], no_bias) if frames else ""
    for number, taps in enumerate(layer.time[num_frames:, np.newaxis]):
        is_newest = number == _count(inputs)
        row = (
            at.slice(inputs.current, (0, number, 0), layer.row, "row") if inputs and not is_newest else value
        )
        frame = at.reshape(filtered(row), layer.frame, "frame")
        if frames and number == 0:
            at.keep(frames, at.emit(ShiftIn(1), (frames.current, frame), "kept"))
        own = window(frame, taps, layer.bias if is_newest else no_bias)
        sums = emit_wrapped_sum(at, sums, own) if sums else own
    if inputs:
        newest = at.reshape(value, layer.row, "row")
        at.keep(inputs, at.emit(ShiftIn(1), (inputs.current, newest), "kept"))
    return sums


def _count(kept: Kept | None) -> int:
    """How many frames or inputs are kept."""
    return kept.parameter.type.fixed_shape[1] if kept else 0


def _window_operands(
    at: Conversion, frames: str, taps: NDArray[Any], bias: NDArray[Any], dtype: ir.DType
) -> tuple[str, str, str]:
    """Of `emit_whole_window`, whose weights have the type of the frames and whose sums are of `dtype`."""
    weights = at.constant("time", np.ascontiguousarray(taps)[..., np.newaxis], at.type_of(frames).dtype)
    return frames, weights, at.constant("bias", bias, dtype)


def _float_layer(at: Conversion, layer: _Layer, features: Operand) -> str:
    """Sums of floats, the first of which LiteRT's hybrid kernel forms in integers."""
    activation = fused_activation(at, _ACTIVATION)

    def filtered(value: str) -> str:
        if features.is_float:
            return product_with_matrix(at, value, layer.features, 0)
        scales = at.weight_scales(features.tensor, 1, 0)
        return hybrid_product(at, value, layer.features, scales, _ASYMMETRIC)

    def window(frames: str, taps: NDArray[Any], bias: NDArray[Any]) -> str:
        return emit_whole_window(at, _window_operands(at, frames, taps, bias, ir.DType.F32), 0)

    return clamp_float(at, _over_time(at, layer, filtered, window), activation)


def _integer_layer(at: Conversion, layer: _Layer, features: Operand, time: Operand) -> str:
    """Sums in 32 bits, rescaled to the state, and to the result; neither library applies the activation."""
    kind = _state_type(at, layer.source)
    tensor = at.graph.model.tensors[at.operator.inputs[_STATE]]
    at.require(features.dtype is ir.DType.I8, f"the features are {features.tensor.element_type}")
    at.require(
        time.dtype is kind,
        f"the state is {tensor.element_type}, the weights over time {time.tensor.element_type}",
    )
    at.require(
        kind is ir.DType.I16 or at.numerics is Numerics.TFLM,
        "LiteRT has no SVDF whose state is INT8: --numerics tflm",
    )
    activation = activation_name(at, _ACTIVATION)
    at.require(
        activation == "RELU" or at.numerics is Numerics.TFLM,
        f"the activation is {activation}; LiteRT has an int8 SVDF for RELU alone, which it does not apply",
    )
    given, state, target = at.affine(layer.source.tensor), at.affine(tensor), at.affine(at.output_tensor())
    (feature_scale,), (time_scale,) = (at.weight_scales(each.tensor, 1, 0) for each in (features, time))
    _check_bias_scale(at, single(state.scale * time_scale))
    to_state = single_quotient(single(given.scale * feature_scale), state.scale)
    reach = _reach_of(at, layer.features, np.zeros(len(layer.features), np.int64), given)

    def filtered(value: str) -> str:
        product = product_with_matrix(at, value, layer.features, given.zero_point)
        frame = _rescaled(at, product, to_state, reach, (0, kind, "newest"))
        # What is added behind the saturation wraps.
        return emit_wrapped_offset(at, frame, state.zero_point) if state.zero_point else frame

    def window(frames: str, taps: NDArray[Any], bias: NDArray[Any]) -> str:
        sum_type = ir.DType.I32 if _time_reach(at, taps, bias, state).fits_32_bits else ir.DType.I64
        sums = emit_whole_window(at, _window_operands(at, frames, taps, bias, sum_type), state.zero_point)
        # Both libraries keep 32 bits of it.
        return sums if sum_type is ir.DType.I32 else emit_cast(at, sums, ir.DType.I32, "low_half")

    factor = single_quotient(single(state.scale * time_scale), target.scale)
    most = min(int(_time_reach(at, layer.time, layer.bias, state).greatest.max()), INT32_MAX)
    sums = _over_time(at, layer, filtered, window)
    return _rescaled(at, sums, factor, most, (target.zero_point, layer.source.dtype, "result"))


def _time_reach(at: Conversion, taps: NDArray[Any], bias: NDArray[Any], state: Affine) -> Reach:
    """How far sums of each unit go, over the frames that the weights are of."""
    reach = accumulator_reach(taps.reshape(-1, taps.shape[2]).T, bias.astype(np.int64), state)
    require_reach(at, reach, MOST_OF_64_BITS)
    return reach


def _rescaled(at: Conversion, sums: str, factor: float, reach: int, target: tuple[int, ir.DType, str]) -> str:
    """Of at most the magnitude `reach`; `target` has zero point, type and role."""
    zero_point, dtype, role = target
    multiplier = checked_multiplier(at, quantize_multiplier(factor), reach, zero_point)
    return rescale(at, sums, [multiplier], 0, zero_point, dtype, role)


def _reach_of(at: Conversion, weights: NDArray[Any], bias: NDArray[np.int64], source: Affine) -> int:
    """The greatest magnitude of sums that fit 32 bits."""
    reach: Reach = accumulator_reach(weights, bias, source)
    require_reach(at, reach)
    return int(reach.greatest.max())


def _check_bias_scale(at: Conversion, scale: float) -> None:
    """TensorFlow Lite Micro refuses another scale of the bias than that of the sums."""
    if at.is_present(_BIAS) and at.numerics is Numerics.TFLM:
        stated = at.affine(at.graph.model.tensors[at.operator.inputs[_BIAS]]).scale
        is_near = abs(stated - scale) < _BIAS_TOLERANCE
        at.require(is_near, f"the bias's scale is {stated:g}, sums are in units of {scale:g}")
