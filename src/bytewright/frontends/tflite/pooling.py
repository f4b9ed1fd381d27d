"""AVERAGE_POOL_2D, MAX_POOL_2D, L2_POOL_2D, and LOCAL_RESPONSE_NORMALIZATION, whose window is over channels."""

from dataclasses import replace
from math import prod

from bytewright.frontends.tflite.accumulator import clamp_activation, clamp_float
from bytewright.frontends.tflite.conversion import Conversion
from bytewright.frontends.tflite.elementwise import (
    emit_divided_by_power,
    emit_moved,
    emit_root,
    emit_scaled,
    emit_square,
)
from bytewright.frontends.tflite.graph_builder import Operand
from bytewright.frontends.tflite.options import WindowOptions, pool_options
from bytewright.frontends.tflite.unsigned import UNSIGNED
from bytewright.frontends.tflite.windows import follows_rows, spatial_padding
from bytewright.ops.arithmetic.multiplier import INT32_MAX, Affine
from bytewright.ops.arithmetic.numerics import Numerics
from bytewright.ops.data import Pad
from bytewright.ops.pooling import MaxPool2d, TflAveragePool2d

_SCALE_TOLERANCE = 1e-6
# A window over channels is padded by as many on each side.
_MOST_CHANNELS_AROUND = 1 << 10


def _read_pool(at: Conversion) -> tuple[WindowOptions, Operand]:
    """The options of a pool and its input, both checked."""
    at.require_counts((1,))
    options = pool_options(at)
    source = at.activation_operand(0, "input")
    at.require_same_dtype(source)
    at.require(len(source.shape) == 4, f"the input {list(source.shape)} does not have 4 axes")
    at.require(min(options.kernel) >= 1, f"the window {options.kernel} has no element")
    at.require(min(options.stride) >= 1, f"stride {options.stride} is not positive")
    return options, source


def convert_pool(at: Conversion, kind: type[MaxPool2d | TflAveragePool2d]) -> None:
    """AVERAGE_POOL_2D and MAX_POOL_2D."""
    options, source = _read_pool(at)
    _check_partial_sums(at, options.kernel, source)
    padding = spatial_padding(options, source.shape, options.kernel)
    operation = kind(options.kernel, options.stride, padding, is_same=follows_rows(at, options))
    if isinstance(operation, TflAveragePool2d) and source.tensor.element_type == UNSIGNED:
        operation = replace(operation, rounds_up=True)
    pooled = at.emit(operation, (at.value_of(source),), "pooled")
    if source.is_float:
        at.define(clamp_float(at, pooled, options.activation))
        return
    target = at.affine(at.output_tensor())
    _require_one_quantization(at, at.affine(source.tensor), target)
    at.define(clamp_activation(at, pooled, options.activation, target))


def convert_l2_pool(at: Conversion) -> None:
    """L2_POOL_2D of floats: the root of the mean of the squares in each window."""
    options, source = _read_pool(at)
    padding = spatial_padding(options, source.shape, options.kernel)
    value = at.value_of(source)
    is_same = follows_rows(at, options)
    operation = TflAveragePool2d(options.kernel, options.stride, padding, is_same=is_same)
    means = at.emit(operation, (emit_square(at, value),), "means")
    at.define(clamp_float(at, emit_root(at, means), options.activation))


def convert_local_response_normalization(at: Conversion) -> None:
    """LOCAL_RESPONSE_NORMALIZATION: each channel by a power of the squares of those around it."""
    at.require_counts((1,))
    source = at.activation_operand(0, "input")
    at.require_same_dtype(source)
    at.require(len(source.shape) == 4, f"the input {list(source.shape)} does not have 4 axes")
    radius, (bias, alpha, beta) = at.options.integer(0), (at.options.real(slot) for slot in (1, 2, 3))
    at.require(0 <= radius < _MOST_CHANNELS_AROUND, f"a radius of {radius} channels")
    value, channels = at.value_of(source), source.shape[3]
    rows = at.reshape(emit_square(at, value), (1, prod(source.shape[:3]), channels, 1), "squares")
    around, window = (0, 0, radius, 0), 2 * radius + 1
    padded = at.emit(Pad(around, around, 0.0), (rows,), "padded")
    mean = at.emit(TflAveragePool2d((1, window), (1, 1), (0, 0, 0, 0)), (padded,), "means")
    total = emit_moved(at, emit_scaled(at, mean, alpha * window), bias)
    at.define(emit_divided_by_power(at, value, at.reshape(total, source.shape), beta))


def _check_partial_sums(at: Conversion, kernel: tuple[int, int], source: Operand) -> None:
    """The sum over one window fits 32 bits."""
    seen = min(kernel[0], source.shape[1]) * min(kernel[1], source.shape[2])
    reach = 0 if source.is_float else 1 - source.dtype.bounds[0]
    if seen * reach > INT32_MAX:
        at.fail(f"the sum over a window of {seen} elements can leave 32 bits", code="BW110")


def _require_one_quantization(at: Conversion, source: Affine, target: Affine) -> None:
    """TensorFlow Lite Micro refuses a pool between two scales; LiteRT takes the raw values."""
    if at.numerics is Numerics.TFLM:
        close = abs(source.scale - target.scale) <= _SCALE_TOLERANCE
        at.require(
            close and source.zero_point == target.zero_point,
            f"the input has {source}, the output {target}; they must be equal",
        )
