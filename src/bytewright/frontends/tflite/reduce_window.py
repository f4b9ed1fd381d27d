"""STABLEHLO_REDUCE_WINDOW and REDUCE_WINDOW: what a function of two makes of the elements of each window.

Windows are reduced along one axis after the other, which gives the same but for the rounding of sums of floats.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, prod

import numpy as np

from bytewright import ir
from bytewright.frontends.tflite.cast import emit_cast
from bytewright.frontends.tflite.conversion import Conversion
from bytewright.frontends.tflite.moves import emit_gathered
from bytewright.frontends.tflite.shape import emit_slice
from bytewright.frontends.tflite.spread import Borders, emit_spread_and_padded, source_and_value
from bytewright.ops import pooling
from bytewright.ops.checks import ARITHMETIC, QUANTISED
from bytewright.ops.comparisons import LogicalAnd, LogicalOr
from bytewright.ops.elementwise import Add, Maximum, Minimum, Mul, WrappingAdd, WrappingMul
from bytewright.ops.window import reach_of

_Reduction = (
    type[pooling.ReduceAll]
    | type[pooling.ReduceAny]
    | type[pooling.ReduceMax]
    | type[pooling.ReduceMin]
    | type[pooling.ReduceProduct]
    | type[pooling.ReduceSum]
    | type[pooling.WrappingReduceSum]
)


@dataclass(frozen=True, slots=True)
class _Function:
    """What windows are reduced by.

    Attributes:
        reduction: Of the elements of a window.
        pair: Of that and what the operator begins with.
        neutral: What changes nothing, to begin with.
    """

    reduction: _Reduction
    pair: ir.Operation
    neutral: int | float


_NAMES = {
    "ADD": ("ADD", "STABLEHLO_ADD"),
    "MUL": ("MUL", "STABLEHLO_MULTIPLY"),
    "MAXIMUM": ("MAXIMUM", "STABLEHLO_MAXIMUM"),
    "MINIMUM": ("MINIMUM", "STABLEHLO_MINIMUM"),
    "ALL": ("LOGICAL_AND", "STABLEHLO_AND"),
    "ANY": ("LOGICAL_OR", "STABLEHLO_OR"),
}
_OF_BODIES = {kind: name for name, kinds in _NAMES.items() for kind in kinds}
# The schema's numbers of the functions of REDUCE_WINDOW.
_OF_NUMBERS = dict(enumerate(("ADD", "MUL", "MINIMUM", "MAXIMUM", "ALL", "ANY"), 1))


def convert_stablehlo_reduce_window(at: Conversion) -> None:
    """STABLEHLO_REDUCE_WINDOW: with elements between those of the input, and around them."""
    at.require_counts((2,))
    source, start = source_and_value(at, 1)
    window, strides, spread, dilations, around = (at.options.numbers(slot, "<i8") for slot in range(5))
    rank = len(source.shape)
    fits = all(len(each) == rank and min(each) >= 1 for each in (window, strides, spread, dilations))
    at.require(rank >= 1 and fits, f"windows {list(window)} of {rank} axes")
    at.require(len(around) == 2 * rank, f"paddings {list(around)} for {rank} axes")
    kinds = at.graph.model.bodies[at.operator.subgraphs[0]]
    at.require(len(kinds) == 1 and kinds[0] in _OF_BODIES, f"windows are reduced by {', '.join(kinds)}")
    function = _function(at, _OF_BODIES[kinds[0]], source.dtype)
    borders = Borders(around[::2], around[1::2], spread)
    name = emit_spread_and_padded(at, at.value_of(source), borders, start)
    at.define(_reduced(at, name, function, start, (window, strides, dilations)))


def convert_reduce_window(at: Conversion) -> None:
    """REDUCE_WINDOW, whose windows are operands, as TensorFlow 2.14 wrote it."""
    at.require_counts((5,))
    source, start = source_and_value(at, 1)
    window, strides, dilations = (
        at.integers_operand(position, role)
        for position, role in ((2, "window"), (3, "strides"), (4, "dilations"))
    )
    rank, number = len(source.shape), at.options.integer(0)
    fits = all(len(each) == rank and min(each) >= 1 for each in (window, strides, dilations))
    at.require(rank >= 1 and fits, f"windows {list(window)} of {rank} axes")
    at.require(number in _OF_NUMBERS, f"the function {number} is none that windows are reduced by")
    function = _function(at, _OF_NUMBERS[number], source.dtype)
    at.define(_reduced(at, at.value_of(source), function, start, (window, strides, dilations)))


def _function(at: Conversion, name: str, dtype: ir.DType) -> _Function:
    """Sums and products of integers wrap; of truth values the greatest is whether there is a true one."""
    is_truth, is_float = dtype is ir.DType.BOOL, dtype is ir.DType.F32
    if name == "ALL" or (is_truth and name == "MINIMUM"):
        function = _Function(pooling.ReduceAll, LogicalAnd(), 1)
    elif name == "ANY" or (is_truth and name == "MAXIMUM"):
        function = _Function(pooling.ReduceAny, LogicalOr(), 0)
    elif name == "MAXIMUM":
        function = _Function(pooling.ReduceMax, Maximum(), -inf if is_float else dtype.bounds[0])
    elif name == "MINIMUM":
        function = _Function(pooling.ReduceMin, Minimum(), inf if is_float else dtype.bounds[1])
    elif name == "ADD":
        function = (
            _Function(pooling.ReduceSum, Add(), 0)
            if is_float
            else _Function(pooling.WrappingReduceSum, WrappingAdd(), 0)
        )
    else:
        function = _Function(pooling.ReduceProduct, Mul() if is_float else WrappingMul(), 1)
    of_truths = function.reduction in (pooling.ReduceAll, pooling.ReduceAny)
    at.require(is_truth == of_truths, f"{name} of {dtype.value}")
    return function


def _reduced(
    at: Conversion,
    name: str,
    function: _Function,
    start: int | float,
    windows: tuple[Sequence[int], Sequence[int], Sequence[int]],
) -> str:
    """Windows of so many elements, by their strides, and by the distances of their elements."""
    dtype = at.type_of(name).dtype
    # Integers wrap in their own type, whatever they are computed in.
    is_widened = dtype in QUANTISED and function.reduction in (
        pooling.ReduceProduct,
        pooling.WrappingReduceSum,
    )
    value = emit_cast(at, name, ir.DType.I32, "wide") if is_widened else name
    for axis, (extent, stride, dilation) in enumerate(zip(*windows, strict=True)):
        value = _along(at, value, axis, function, (extent, stride, dilation))
    if start != function.neutral:
        kind = at.type_of(value).dtype
        first = at.constant("start", np.array(start, kind.numpy), kind)
        value = at.emit(function.pair, (first, value), "from_start")
    return emit_cast(at, value, dtype, "narrow") if is_widened else value


def _along(at: Conversion, value: str, axis: int, function: _Function, window: tuple[int, int, int]) -> str:
    """Windows along one axis. The greatest of elements beside each other is a pool; else a window's are taken first."""
    (extent, stride, dilation), kind = window, at.type_of(value)
    shape = kind.fixed_shape
    reach = reach_of(extent, dilation)
    at.require(reach <= shape[axis], f"windows of {reach} along an axis of {shape[axis]}")
    count = (shape[axis] - reach) // stride + 1
    result = (*shape[:axis], count, *shape[axis + 1 :])
    if extent == 1:
        start = tuple(0 for _ in shape)
        return emit_slice(
            at, value, start, result, tuple(stride if n == axis else 1 for n in range(len(shape)))
        )
    if function.reduction is pooling.ReduceMax and dilation == 1 and kind.dtype in ARITHMETIC:
        image = at.reshape(value, (prod(shape[:axis]), shape[axis], 1, prod(shape[axis + 1 :])), "image")
        pool = pooling.MaxPool2d((extent, 1), (stride, 1), (0, 0, 0, 0))
        return at.reshape(at.emit(pool, (image,), "greatest"), result)
    numbers = stride * np.arange(count)[:, None] + dilation * np.arange(extent)
    table = at.constant("numbers", numbers.astype(np.int32), ir.DType.I32)
    return at.emit(
        function.reduction((axis + 1,), False), (emit_gathered(at, value, table, axis),), "reduced"
    )
