"""Operators that keep channels apart, in lanes of vectors: templates for every instruction set that has a unit."""

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from math import prod
from typing import Any

from bytewright import ir
from bytewright.lower.isa.instruction_set import IsaTemplate
from bytewright.lower.isa.narrow import MOST_SUMMED, NarrowLanes, NarrowReducer
from bytewright.lower.isa.range import lower_range
from bytewright.lower.isa.registers import RegisterReducer
from bytewright.lower.isa.taps import TapProducts, TapReducer
from bytewright.lower.isa.vector_unit import VectorUnit
from bytewright.lower.kernels.context import Template
from bytewright.lower.kernels.depthwise import lower_depthwise_by_blocks, only_low_halves
from bytewright.lower.kernels.matmul import lower_batch_matmul
from bytewright.lower.kernels.pooling import lower_pool
from bytewright.lower.kernels.reduction import Reduction, lower_reduction, num_reduced
from bytewright.lower.kernels.side_by_side import ArrayReducer
from bytewright.lower.scalar import computed_on
from bytewright.ops.convolution import DepthwiseConv2d
from bytewright.ops.matmul import TflBatchMatMul
from bytewright.ops.pooling import MaxPool2d, ReduceMax, ReduceMin, ReduceSum, TflAveragePool2d, TflMean

_ADD, _MUL = ir.BinaryOperator.ADD, ir.BinaryOperator.MUL
_MAX, _MIN = ir.BinaryOperator.MAX, ir.BinaryOperator.MIN
# Vectors of a full block: several where a turn of the window's loops would do little more than count.
_OF_POOLS, _OF_DEPTHWISE = 4, 1
_OF_ONE_LANE = 8

Decline = Callable[[Template, Any], str | None]


Templates = Mapping[type[ir.Operation], tuple[IsaTemplate, ...]]


def with_reductions(
    name: str, unit: VectorUnit | None, templates: Templates, narrow: Sequence[NarrowLanes] = ()
) -> Templates:
    """Templates of an instruction set of some name, and after them, for what they decline, those of its lanes.

    Args:
        name: Of the set.
        unit: Its vectors, if it has any.
        templates: Its own.
        narrow: Its lanes for results of bytes, which are tried before the unit, in order.
    """
    found = [_narrow_reductions(name, each, unit) for each in narrow]
    if unit is not None:
        found.append(_reductions(name, unit))
    keys = {key: None for each in (templates, *found) for key in each}
    return {key: tuple(t for each in (templates, *found) for t in each.get(key, ())) for key in keys}


# What is reduced by which operation; a sum of more than `MOST_SUMMED` bytes leaves 16 bits.
_POOLS = {MaxPool2d: _MAX, TflAveragePool2d: _ADD}
_OVER_AXES = {ReduceMax: _MAX, ReduceMin: _MIN, ReduceSum: _ADD, TflMean: _ADD}


def _narrow_reductions(name: str, narrow: NarrowLanes, unit: VectorUnit | None) -> Templates:
    """Those of int8 in lanes of as few bits as results take."""
    rest = ArrayReducer() if unit is None else _in_registers(unit, _OF_POOLS)
    reducer = NarrowReducer(narrow, _OF_POOLS, unit, rest)
    pool, over_axes = partial(lower_pool, reducer=reducer), partial(lower_reduction, reducer=reducer)
    return {
        **{
            key: (IsaTemplate(f"{name}.pool2d_of_bytes", pool, _narrow_declines(narrow, _num_taps)),)
            for key, operator in _POOLS.items()
            if operator in narrow.combines
        },
        **{
            key: (IsaTemplate(f"{name}.reduce_bytes", over_axes, _narrow_declines(narrow, num_reduced)),)
            for key, operator in _OVER_AXES.items()
            if operator in narrow.combines
        },
    }


def _num_taps(template: Template, operation: MaxPool2d | TflAveragePool2d) -> int:
    del template
    return prod(operation.kernel)


def _narrow_declines(narrow: NarrowLanes, count: Callable[[Template, Any], int]) -> Decline:
    """Why results of so many elements each are not in these lanes."""

    def why(template: Template, operation: ir.Operation) -> str | None:
        if template.type(0).dtype is not ir.DType.I8:
            return "its elements are not int8"
        if isinstance(operation, Reduction) and (reason := _last_axis_declines(template, operation)):
            return reason
        if narrow.dtype is ir.DType.I16 and (num := count(template, operation)) > MOST_SUMMED:
            return f"16 bits do not hold a sum of {num} bytes"
        return _few_channels(template, narrow.lanes, "register")

    return why


def _few_channels(template: Template, lanes: int, what: str) -> str | None:
    channels = template.result_type.shape[-1]
    if not isinstance(channels, int) or channels < lanes:
        return f"it has {channels} channels, fewer than the {lanes} of a {what}"
    return None


def _in_registers(unit: VectorUnit, num_vectors: int) -> RegisterReducer:
    return RegisterReducer(unit, num_vectors if unit.lanes > 1 else _OF_ONE_LANE)


def depthwise_lanes(name: str, unit: VectorUnit) -> IsaTemplate:
    """Depthwise convolutions by the lanes of a unit."""
    reducer = _in_registers(unit, _OF_DEPTHWISE)

    def write(template: Template, operation: DepthwiseConv2d) -> None:
        are_low = template.result_type.dtype is ir.DType.I64
        lower_depthwise_by_blocks(template, operation, reducer, are_low=are_low)

    return IsaTemplate(f"{name}.depthwise_lanes", write, _depthwise_declines(unit))


def depthwise_taps(name: str, unit: VectorUnit, products: TapProducts) -> IsaTemplate:
    """Depthwise convolutions by products of 16 bits."""
    write = partial(lower_depthwise_by_blocks, reducer=TapReducer(products, unit))

    def why(template: Template, operation: DepthwiseConv2d) -> str | None:
        kept = template.result_type.dtype
        if kept is not ir.DType.I32:
            return f"its sums are {kept.value}, not i32"
        for operand in range(2):
            if (dtype := template.type(operand).dtype) not in products.loads:
                return f"there is no register of {dtype.value}"
        lanes = _few_channels(template, products.lanes, "register")
        return lanes or _depthwise_declines(unit)(template, operation)

    return IsaTemplate(f"{name}.depthwise_taps", write, why)


def matmul_lanes(name: str, unit: VectorUnit, *left_out: ir.DType) -> Templates:
    """Products of two tensors by the lanes of a unit, but of types of which C compilers make as few instructions."""
    write = partial(lower_batch_matmul, reducer=_in_registers(unit, _OF_POOLS))
    return {TflBatchMatMul: (IsaTemplate(f"{name}.matmul", write, _matmul_declines(unit, left_out)),)}


def _matmul_declines(unit: VectorUnit, left_out: Collection[ir.DType]) -> Decline:
    def why(template: Template, operation: TflBatchMatMul) -> str | None:
        dtype = template.type(0).dtype
        if dtype in left_out:
            return f"C compilers make vectors of {dtype.value}"
        if operation.adjoint_second and dtype.is_integer:
            return "both operands lie along the inner axis: C compilers make dot products of that"
        if operation.adjoint_second and template.result_type.shape[-2] == 1:
            return "columns that lie one after another are not copied for one row"
        depth = template.type(0).shape[-2 if operation.adjoint_first else -1]
        if not isinstance(template.result_type.shape[-1], int) or not isinstance(depth, int):
            return "how many columns there are is not known, or how many products a sum has"
        return _declines(unit, _ADD, _MUL)(template, operation)

    return why


def ranges(name: str, unit: VectorUnit) -> Templates:
    """Least and greatest values of the last axes, for sets that compare floats in lanes."""
    return {
        key: (IsaTemplate(f"{name}.range", partial(lower_range, unit=unit), _range_declines(unit)),)
        for key in (ReduceMax, ReduceMin)
    }


def _range_declines(unit: VectorUnit) -> Decline:
    def why(template: Template, operation: Reduction) -> str | None:
        shape = template.type(0).shape
        axes = sorted(operation.axes)
        if template.type(0).dtype is not ir.DType.F32:
            return "its elements are not float32"
        if axes != list(range(len(shape) - len(axes), len(shape))) or not axes:
            return "it is not over the last axes"
        if not all(isinstance(shape[axis], int) for axis in axes):
            return "how many elements it is over is not known"
        if num_reduced(template, operation) < unit.lanes:
            return f"it is over fewer than {unit.lanes} elements"
        return None

    return why


def _reductions(name: str, unit: VectorUnit) -> Templates:
    pools = _in_registers(unit, _OF_POOLS)
    pool = partial(lower_pool, reducer=pools)
    over_axes = partial(lower_reduction, reducer=pools)
    return {
        MaxPool2d: (IsaTemplate(f"{name}.pool2d", pool, _declines(unit, _MAX)),),
        TflAveragePool2d: (IsaTemplate(f"{name}.pool2d", pool, _declines(unit, _ADD)),),
        ReduceMax: (IsaTemplate(f"{name}.reduce", over_axes, _axes_decline(unit, _MAX)),),
        ReduceMin: (IsaTemplate(f"{name}.reduce", over_axes, _axes_decline(unit, _MIN)),),
        ReduceSum: (IsaTemplate(f"{name}.reduce", over_axes, _axes_decline(unit, _ADD)),),
        TflMean: (IsaTemplate(f"{name}.mean", over_axes, _axes_decline(unit, _ADD)),),
        # Of one channel at a time the portable kernel has the sums in registers, too.
        **({DepthwiseConv2d: (depthwise_lanes(name, unit),)} if unit.lanes > 1 else {}),
    }


def _axes_decline(unit: VectorUnit, operator: ir.BinaryOperator) -> Decline:
    def why(template: Template, operation: Reduction) -> str | None:
        return _last_axis_declines(template, operation) or _declines(unit, operator)(template, operation)

    return why


def _last_axis_declines(template: Template, operation: Reduction) -> str | None:
    return "it is over the last axis" if len(template.type(0).shape) - 1 in operation.axes else None


def _depthwise_declines(unit: VectorUnit) -> Decline:
    def why(template: Template, operation: DepthwiseConv2d) -> str | None:
        multiplier = template.constant(1).shape[-1]
        if multiplier != 1:
            return f"each channel of the input has {multiplier} of the result"
        if template.type(1).dtype not in unit.loads:
            return f"there is no vector of {template.type(1).dtype.value}"
        if template.type(1).dtype.is_integer and not template.result_type.dtype.is_integer:
            return "its integer weights become floats one by one"
        if template.result_type.dtype is ir.DType.I64:
            if _ADD not in unit.wrapping or not only_low_halves(template):
                return "there is no vector of i64"
            return _few_channels(template, unit.lanes, "vector")
        return _declines(unit, _ADD, _MUL)(template, operation)

    return why


def _declines(unit: VectorUnit, *operators: ir.BinaryOperator) -> Decline:
    """Why the results of a reduction by some operations are no vectors."""

    def why(template: Template, operation: ir.Operation) -> str | None:
        dtype = template.type(0).dtype
        are_products = isinstance(operation, DepthwiseConv2d | TflBatchMatMul)
        kept = template.result_type.dtype if are_products else computed_on(dtype)
        if dtype not in unit.loads or kept not in unit.broadcasts:
            return f"there is no vector of {dtype.value}"
        for operator in operators:
            if (operator, kept) not in unit.binaries:
                return f"there is no vector for {operator.value} of {dtype.value}"
        return _few_channels(template, unit.lanes, "vector")

    return why
