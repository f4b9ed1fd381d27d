"""Reductions (MEAN, SUM, REDUCE_MAX and their kin) over constant axes, which may count from the end and repeat."""

from math import prod

from bytewright import ir
from bytewright.frontends.tflite.accumulator import checked_multiplier, require_sum, rescale
from bytewright.frontends.tflite.conversion import Conversion
from bytewright.frontends.tflite.graph_builder import Operand
from bytewright.ops import pooling
from bytewright.ops.arithmetic.factors import (
    divided_by,
    prepare_float_sum,
    prepare_mean,
    prepare_reduced_product,
)
from bytewright.ops.arithmetic.multiplier import (
    INT32_MAX,
    quantize_multiplier,
    round_half_away,
)
from bytewright.ops.arithmetic.numerics import Numerics
from bytewright.ops.checks import WIDE
from bytewright.ops.rescale import TflFloatRescale


def convert_mean(at: Conversion) -> None:
    """MEAN; of int32 and int64 truncated."""
    source, axes, keep = _operands(at, *WIDE)
    if source.dtype in WIDE:
        _num_reduced(at, source, axes)
        at.define(at.emit(pooling.TflIntegerMean(axes, keep), (at.value_of(source),), "mean"))
        return
    if source.is_float:
        at.define(at.emit(pooling.TflMean(axes, keep), (at.value_of(source),), "mean"))
        return
    count = _num_summed(at, source, axes)
    own, target = at.affine(source.tensor), at.affine(at.output_tensor())
    scale = prepare_mean(own.scale, target.scale, count, own.bounds[1] - own.bounds[0])
    checked_multiplier(at, divided_by(scale, count), count * own.reach, target.zero_point)
    zero_points = own.zero_point, target.zero_point
    operation = pooling.TflMean(axes, keep, *zero_points, scale.multiplier, scale.exponent)
    at.define(at.emit(operation, (at.value_of(source),), "mean"))


def convert_sum(at: Conversion) -> None:
    """SUM: of int8 and int16, a rescale of the sum, in float32 by LiteRT, by a factor in double by `tflm`."""
    source, axes, keep = _operands(at, *WIDE)
    if source.dtype in WIDE:
        at.define(at.emit(pooling.WrappingReduceSum(axes, keep), (at.value_of(source),), "sum"))
        return
    total = at.emit(pooling.ReduceSum(axes, keep), (at.value_of(source),), "sum")
    if source.is_float:
        at.define(total)
        return
    count = _num_summed(at, source, axes)
    own, target = at.affine(source.tensor), at.affine(at.output_tensor())
    reach = count * own.reach
    if at.numerics is Numerics.LITERT_REF:
        scale, addend = prepare_float_sum(own.scale, own.zero_point, target.scale)
        greatest = round_half_away(reach * scale + 1)
        require_sum(at, -greatest, greatest, target.zero_point)
        operation = TflFloatRescale(scale, addend, target.zero_point, source.dtype, count)
        at.define(at.emit(operation, (total,), "rescaled"))
        return
    factor = checked_multiplier(at, quantize_multiplier(own.scale / target.scale), reach, target.zero_point)
    zero_points = own.zero_point * count
    at.define(rescale(at, total, [factor], zero_points, target.zero_point, source.dtype, "rescaled"))


def convert_extremum(at: Conversion, kind: type[pooling.ReduceMax | pooling.ReduceMin]) -> None:
    """REDUCE_MAX and REDUCE_MIN, of raw values: the references refuse two quantisations."""
    source, axes, keep = _operands(at, *WIDE, ir.DType.BOOL)
    _num_reduced(at, source, axes)
    if source.dtype is ir.DType.BOOL:
        _define_truth(
            at, pooling.ReduceAny if kind is pooling.ReduceMax else pooling.ReduceAll, source, axes, keep
        )
        return
    if source.dtype is ir.DType.I8:
        own, target = at.affine(source.tensor), at.affine(at.output_tensor())
        at.require(own == target, f"the input has {own}, the output {target}; they must be equal")
    at.define(at.emit(kind(axes, keep), (at.value_of(source),), "extremum"))


def convert_truths(at: Conversion, kind: type[pooling.ReduceAll | pooling.ReduceAny]) -> None:
    """REDUCE_ALL and REDUCE_ANY."""
    source, axes, keep = _operands(at, ir.DType.BOOL)
    _num_reduced(at, source, axes)
    _define_truth(at, kind, source, axes, keep)


def _define_truth(
    at: Conversion,
    kind: type[pooling.ReduceAll | pooling.ReduceAny],
    source: Operand,
    axes: tuple[int, ...],
    keep: bool,
) -> None:
    """Makes whether all values, or one, along axes are true the result."""
    at.define(at.emit(kind(axes, keep), (at.value_of(source),), "truth"))


def convert_product(at: Conversion) -> None:
    """REDUCE_PROD: of int8 and int16 scaled at each step; of truth values whether all are true."""
    source, axes, keep = _operands(at, *WIDE, ir.DType.BOOL)
    count = _num_reduced(at, source, axes)
    if source.dtype is ir.DType.BOOL:
        _define_truth(at, pooling.ReduceAll, source, axes, keep)
        return
    operation: ir.Operation = pooling.ReduceProduct(axes, keep)
    if source.is_quantised:
        own, target = at.affine(source.tensor), at.affine(at.output_tensor())
        factor = prepare_reduced_product(own.scale, target.scale, count)
        numbers = own.zero_point, target.zero_point, factor.multiplier, factor.exponent
        operation = pooling.TflQuantizedProduct(axes, keep, *numbers)
    at.define(at.emit(operation, (at.value_of(source),), "product"))


def _operands(at: Conversion, *more: ir.DType) -> tuple[Operand, tuple[int, ...], bool]:
    """The input, the axes in ascending order, and whether they stay."""
    at.require_counts((2,))
    keep = at.options.boolean(0)
    source = at.activation_operand(0, "input", *more)
    at.require_same_dtype(source)
    return source, at.axes(at.integers_operand(1, "axes"), len(source.shape)), keep


def _num_reduced(at: Conversion, source: Operand, axes: tuple[int, ...]) -> int:
    """How many elements one result is of."""
    count = prod(source.shape[axis] for axis in axes)
    at.require(count >= 1, "nothing is reduced")
    return count


def _num_summed(at: Conversion, source: Operand, axes: tuple[int, ...]) -> int:
    """The same, of int8 or int16, whose sum 32 bits hold."""
    count = _num_reduced(at, source, axes)
    low, high = source.dtype.bounds
    if count * (high - low + 1) > INT32_MAX:
        at.fail(f"the sum over {count} elements can leave 32 bits", code="BW110")
    return count
