"""Which rows along time an operator reads for a row of its result, and what it is on some of the rows.

Each family of operators has a function here, and `READINGS` is the table of all. An operator that has none reads rows
otherwise than by a window that slides, or nobody has said so yet: it cannot run frame by frame.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any

from bytewright import ir
from bytewright.ops.convolution import Conv2d, DepthwiseConv2d, GroupedConv2d
from bytewright.ops.data import Concat, Gather, Identity, Pad, Reshape, Slice, Tile, Transpose
from bytewright.ops.dynamic_quantization import OPERATIONS as DYNAMIC_QUANTIZATION
from bytewright.ops.interpolation import Interpolate, TflSigmoid16, TflSoftmax16
from bytewright.ops.lstm import OPERATIONS as RECURRENT
from bytewright.ops.matmul import TflBatchMatMul
from bytewright.ops.places import ArgMax, ArgMin, CumulativeSum, TopKPlaces
from bytewright.ops.pooling import OPERATIONS as REDUCTIONS
from bytewright.ops.pooling import MaxPool2d, TflAveragePool2d
from bytewright.ops.quantization import Table
from bytewright.ops.registry import ELEMENTWISE
from bytewright.ops.roots import TflInverseRoot, TflL2Normalization
from bytewright.ops.softmax import TflLogSoftmax, TflSoftmax
from bytewright.ops.window import reach_of

Axes = tuple[int | None, ...]
# The operator for so many rows of its result; None where these are the rows that it reads.
ForRows = Callable[[int], ir.Operation | None]


class UnreadableError(ValueError):
    """An operator cannot run on some of the rows; the text says why, with the operator as its subject."""


@dataclass(frozen=True, slots=True)
class Reading:
    """Row r of the result reads rows `stride * r + first` and the `reach - 1` behind it, of each operand over time.

    Attributes:
        axis: Of rows in the result.
        operation: The operator on some of the rows.
        fill: What it reads in place of rows before the first; None if it reads none there.
        keeps_fill: Whether it makes of rows that are `fill` throughout such rows.
        is_border: Whether it puts something around rows, which are kept without it.
        goes_on: Whether it begins with the first row and keeps, by itself, what it goes on with; its other results are
            no rows.
    """

    axis: int
    operation: ForRows
    first: int = 0
    stride: int = 1
    reach: int = 1
    fill: int | float | None = None
    keeps_fill: bool = False
    is_border: bool = False
    goes_on: bool = False


@dataclass(frozen=True, slots=True)
class Whole:
    """The operator reads all rows, and its result has none."""


@dataclass(frozen=True, slots=True)
class Operands:
    """What an operator is given.

    Attributes:
        types: With all rows.
        axes: Of rows; None for what has none.
        result: The type of the first result, with all rows.
    """

    types: tuple[ir.TensorType, ...]
    axes: Axes
    result: ir.TensorType

    @property
    def axis(self) -> int:
        """That of the first operand over time."""
        return next(axis for axis in self.axes if axis is not None)


def _same(operation: ir.Operation) -> ForRows:
    """An operator that states no number of rows."""
    return lambda _: operation


def _replaced(values: Sequence[Any], position: int, value: Any) -> tuple[Any, ...]:
    return (*values[:position], value, *values[position + 1 :])


def _elementwise(operation: ir.Operation, at: Operands) -> Reading:
    rank = len(at.result.shape)
    found: set[int] = set()
    for number, (type_, axis) in enumerate(zip(at.types, at.axes, strict=True)):
        shift = rank - len(type_.shape)
        if axis is not None:
            found.add(axis + shift)
        elif not (number and isinstance(operation, Table | Interpolate)):
            own = at.axis + rank - len(at.types[at.axes.index(at.axis)].shape) - shift
            if own >= 0 and type_.shape[own] != 1:
                raise UnreadableError("is given a constant that differs from row to row")
    if len(found) > 1:
        raise UnreadableError("is given operands with rows along different axes")
    return Reading(found.pop(), _same(operation))


def _reshape(operation: Reshape, at: Operands) -> Reading | Whole:
    """Rows stay blocks of elements, or several become one, or all."""
    source, result, axis = at.types[0].fixed_shape, at.result.fixed_shape, at.axis
    outer = prod(source[:axis])
    for own in range(len(result)):
        taken, rest = divmod(source[axis], result[own])
        if prod(result[:own]) == outer and rest == 0 and result[own] > 1:

            def for_rows(results: int, own: int = own) -> ir.Operation:
                return Reshape(_replaced(operation.shape, own, results))

            return Reading(own, for_rows, stride=taken, reach=taken, keeps_fill=True)
    return Whole()


def _transpose(operation: Transpose, at: Operands) -> Reading:
    return Reading(operation.permutation.index(at.axis), _same(operation), keeps_fill=True)


def _pad(operation: Pad, at: Operands) -> Reading:
    """Rows before the first are those that came before; the other axes are padded as they were."""
    axis = at.axis
    before = operation.before[axis]
    rest = replace(
        operation, before=_replaced(operation.before, axis, 0), after=_replaced(operation.after, axis, 0)
    )
    is_of_time = not any((*rest.before, *rest.after))
    return Reading(
        axis,
        lambda _: None if is_of_time else rest,
        first=-before,
        fill=operation.value if before else None,
        keeps_fill=is_of_time or before > 0,
        is_border=True,
    )


def _slice(operation: Slice, at: Operands) -> Reading:
    axis = at.axis
    first, stride = operation.start[axis], operation.stride[axis]
    assert isinstance(first, int)  # axes are opened later
    if stride < 1:
        raise UnreadableError("takes rows backwards")

    def for_rows(results: int) -> ir.Operation:
        start = _replaced(operation.start, axis, 0)
        return replace(operation, start=start, size=_replaced(operation.size, axis, results))

    return Reading(axis, for_rows, first, stride, keeps_fill=True)


def _window_axis(at: Operands) -> int:
    """Which of rows and columns of an image counts time."""
    if at.axes[0] not in (1, 2) or any(axis is not None for axis in at.axes[1:]):
        raise UnreadableError("slides over other axes than that of time")
    return at.axes[0] - 1


def _dense(operation: Conv2d, at: Operands) -> Reading | Whole:
    """A layer that is fully connected has time among its channels where it reads all of it."""
    return Whole() if at.axes == (3, None, None) else _convolution(operation, at)


def _convolution(operation: Conv2d | DepthwiseConv2d | GroupedConv2d, at: Operands) -> Reading:
    axis = _window_axis(at)
    before, padding = _without_padding(operation.padding, axis)
    reach = reach_of(operation.kernel(at.types[1].fixed_shape)[axis], operation.dilation[axis])
    return Reading(
        at.axis,
        _same(replace(operation, padding=padding)),
        first=-before,
        stride=operation.stride[axis],
        reach=reach,
        fill=operation.input_zero_point if before else None,
    )


def _pool(operation: MaxPool2d | TflAveragePool2d, at: Operands) -> Reading:
    axis = _window_axis(at)
    before, padding = _without_padding(operation.padding, axis)
    if before:
        raise UnreadableError("has a window that is smaller where it would begin before the first row")
    own = _same(replace(operation, padding=padding))
    return Reading(at.axis, own, stride=operation.stride[axis], reach=operation.kernel[axis])


def _without_padding(padding: tuple[int, int, int, int], axis: int) -> tuple[int, tuple[int, int, int, int]]:
    """What is padded before the first row or column; and the padding along the other axis alone."""
    top, bottom, left, right = padding
    return (top, (0, 0, left, right)) if axis == 0 else (left, (top, bottom, 0, 0))


def _reduction(operation: Any, at: Operands) -> Reading | Whole:
    if at.axis in operation.axes:
        return Whole()
    gone = 0 if operation.keep_dims else sum(axis < at.axis for axis in operation.axes)
    return Reading(at.axis - gone, _same(operation))


def _concat(operation: Concat, at: Operands) -> Reading:
    if None in at.axes or len({*at.axes}) > 1:
        raise UnreadableError("puts rows beside what has none")
    if operation.axis == at.axis:
        raise UnreadableError("puts rows behind other rows")
    return Reading(at.axis, _same(operation))


def _of_last_axis(operation: ir.Operation, at: Operands) -> Reading:
    if at.axis == len(at.types[0].shape) - 1:
        raise UnreadableError("reads all rows for each row of its result")
    return Reading(at.axis, _same(operation))


def _arg_extremum(operation: ArgMax | ArgMin, at: Operands) -> Reading | Whole:
    if operation.axis == at.axis:
        return Whole()
    return Reading(at.axis - (operation.axis < at.axis), _same(operation))


def _cumulative_sum(operation: CumulativeSum, at: Operands) -> Reading:
    if operation.axis == at.axis:
        raise UnreadableError("goes along all rows")
    return Reading(at.axis, _same(operation))


def _recurrent(operation: ir.Operation, at: Operands) -> Reading:
    if at.axes[0] != 1:
        raise UnreadableError("goes along another axis than that of time")
    return Reading(1, _same(operation), goes_on=True)


def _gather(operation: Gather, at: Operands) -> Reading:
    if at.axes[0] is None or at.axes[1] is not None or operation.axis == at.axis or operation.batch_axes:
        raise UnreadableError("takes rows by their numbers")
    more = len(at.types[1].shape) - 1 if operation.axis < at.axis else 0
    return Reading(at.axis + more, _same(operation))


def _tile(operation: Tile, at: Operands) -> Reading:
    if operation.multiples[at.axis] != 1:
        raise UnreadableError("repeats rows")
    return Reading(at.axis, _same(operation))


def _matmul(operation: TflBatchMatMul, at: Operands) -> Reading | Whole:
    rank = len(at.types[0].shape)
    contracted = rank - 2 if operation.adjoint_first else rank - 1
    if at.axes == (contracted, None):
        return Whole()
    is_of_rows = at.axes == (rank - 2, None) and not operation.adjoint_first
    if not is_of_rows or rank < len(at.types[1].shape):
        raise UnreadableError("multiplies rows by other rows")
    return Reading(at.axis, _same(operation))


_Rule = Callable[[Any, Operands], Reading | Whole]
_POOLS = (MaxPool2d, TflAveragePool2d)
READINGS: dict[type[ir.Operation], _Rule] = {
    **dict.fromkeys(
        (*ELEMENTWISE, *DYNAMIC_QUANTIZATION, Interpolate, TflInverseRoot, TflSigmoid16, Identity),
        _elementwise,
    ),
    **dict.fromkeys((DepthwiseConv2d, GroupedConv2d), _convolution),
    **{each: _pool if each in _POOLS else _reduction for each in REDUCTIONS},
    **dict.fromkeys((TflSoftmax, TflLogSoftmax, TflSoftmax16, TflL2Normalization, TopKPlaces), _of_last_axis),
    **dict.fromkeys((ArgMax, ArgMin), _arg_extremum),
    **dict.fromkeys(RECURRENT, _recurrent),
    Concat: _concat,
    Conv2d: _dense,
    CumulativeSum: _cumulative_sum,
    Gather: _gather,
    Pad: _pad,
    Reshape: _reshape,
    Slice: _slice,
    TflBatchMatMul: _matmul,
    Tile: _tile,
    Transpose: _transpose,
}


def reading_of(operation: ir.Operation, at: Operands) -> Reading | Whole:
    """How an operator reads rows.

    Raises:
        UnreadableError: Not by a window that slides, nor all of them for a result that has no rows.
    """
    rule = READINGS.get(type(operation))
    if rule is None:
        raise UnreadableError("is not known to read rows by a window that slides")
    return rule(operation, at)
