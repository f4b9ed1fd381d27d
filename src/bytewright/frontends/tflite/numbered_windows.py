"""STABLEHLO_GATHER and STABLEHLO_SCATTER: windows of a tensor, whose places are computed numbers.

Axes along which a window has a place are put before those that it covers, and are one axis of rows; a window is so many
rows of it. The numbers of the rows are arithmetic of int32.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from math import prod

import numpy as np

from bytewright import ir
from bytewright.frontends.tflite.cast import emit_cast
from bytewright.frontends.tflite.conversion import Conversion
from bytewright.frontends.tflite.elementwise import emit_wrapped_sum
from bytewright.frontends.tflite.graph_builder import Operand
from bytewright.frontends.tflite.logic import emit_choice
from bytewright.frontends.tflite.moves import emit_gathered
from bytewright.ops.checks import FLOATS, WIDE
from bytewright.ops.comparisons import Greater, LogicalAnd
from bytewright.ops.elementwise import Add, Clamp, Maximum, Minimum, Mul, WrappingAdd, WrappingMul
from bytewright.ops.places import (
    Scatter,
    ScatterLast,
    ScatterMax,
    ScatterMin,
    ScatterNd,
    ScatterProduct,
)

_BATCH = -1
"""What an axis of the numbers is called beside the axes of the tensor."""
_TAKEN = -2


@dataclass(frozen=True, slots=True)
class _Combination:
    """What a scatter does with an element and an update.

    Attributes:
        scatter: Combines updates of one element, of a tensor of a shape.
        of_floats, of_integers: Combine that with the element; both None where the last update takes its place.
    """

    scatter: Callable[[tuple[int, ...]], ScatterMax | ScatterMin | ScatterNd | ScatterProduct]
    of_floats: ir.Operation
    of_integers: ir.Operation


_COMBINATIONS = {
    "STABLEHLO_ADD": _Combination(ScatterNd, Add(), WrappingAdd()),
    "STABLEHLO_MULTIPLY": _Combination(ScatterProduct, Mul(), WrappingMul()),
    "STABLEHLO_MAXIMUM": _Combination(partial(ScatterMax, is_from_infinity=True), Maximum(), Maximum()),
    "STABLEHLO_MINIMUM": _Combination(partial(ScatterMin, is_from_infinity=True), Minimum(), Minimum()),
}


@dataclass(frozen=True, slots=True)
class _Windows:
    """Windows of a tensor.

    Attributes:
        shape: Of the tensor.
        extents: Of a window, along each axis of the tensor.
        placed: The axes that a row of numbers is of, in its order.
        named, whole: The axes along which windows have places, and those that they cover.
        batch: The extents of the numbers, but for the axis along which a row of them lies.
    """

    shape: tuple[int, ...]
    extents: tuple[int, ...]
    placed: tuple[int, ...]
    named: tuple[int, ...]
    whole: tuple[int, ...]
    batch: tuple[int, ...]

    @property
    def num_rows(self) -> int:
        """Of the tensor."""
        return prod(self.shape[axis] for axis in self.named)

    @property
    def row_elements(self) -> int:
        """Of the tensor's rows."""
        return prod(self.shape[axis] for axis in self.whole)

    def of_window(self) -> tuple[int, ...]:
        """How far windows reach along the axes where they have places."""
        return tuple(self.extents[axis] for axis in self.named)

    def labels(self, at: Conversion, window_axes: Sequence[int], dropped: Sequence[int]) -> tuple[int, ...]:
        """The tensor's axis that each axis of windows beside each other is of; `_BATCH` of those of the numbers."""
        kept = [axis for axis in range(len(self.shape)) if axis not in dropped]
        rank = len(self.batch) + len(kept)
        fits = list(window_axes) == sorted(set(window_axes)) and len(window_axes) == len(kept)
        at.require(
            fits and all(0 <= axis < rank for axis in window_axes),
            f"windows of {len(kept)} axes along {list(window_axes)} of {rank}",
        )
        left = iter(kept)
        return tuple(next(left) if axis in window_axes else _BATCH for axis in range(rank))


def convert_stablehlo_gather(at: Conversion) -> None:
    """STABLEHLO_GATHER; a place from which a window leaves means the nearest."""
    at.require_counts((2,))
    source, numbers = at.operand(0, "input"), at.index_operand(1, "indices")
    at.require_same_dtype(source)
    offsets, dropped, placed, extents = (at.options.numbers(slot, "<i8") for slot in (0, 1, 2, 4))
    lies_at = at.options.integer(3, "q")
    windows = _windows(at, source.shape, extents, placed, numbers, lies_at)
    labels = windows.labels(at, offsets, dropped)
    _require_single(at, extents, dropped)
    rows = _rows(at, windows, numbers, lies_at, is_nearest=True)
    flat = at.reshape(_by_rows(at, windows, at.value_of(source)), (windows.num_rows, windows.row_elements))
    taken = emit_gathered(at, flat, rows, 0)
    kept = tuple(axis for axis in (*windows.named, *windows.whole) if axis not in dropped)
    inner = (_BATCH,) * len(windows.batch) + kept
    shape = (*windows.batch, *(extents[axis] for axis in kept))
    order = _order(labels, inner)
    at.define(_transposed(at, at.reshape(taken, shape), order))


def convert_stablehlo_scatter(at: Conversion) -> None:
    """STABLEHLO_SCATTER; what an update has outside of the tensor is left out."""
    at.require_counts((3,))
    source, numbers, updates = (
        at.operand(0, "input"),
        at.index_operand(1, "indices"),
        at.operand(2, "updates"),
    )
    at.require_same_dtype(source, updates)
    window_axes, inserted, placed = (at.options.numbers(slot, "<i8") for slot in (1, 2, 3))
    lies_at = at.options.integer(4, "q")
    kept = [axis for axis in range(len(source.shape)) if axis not in inserted]
    fits = len(kept) == len(window_axes) and all(0 <= axis < len(updates.shape) for axis in window_axes)
    at.require(fits, f"windows along {list(window_axes)} of updates {list(updates.shape)}")
    along = dict(zip(kept, (updates.shape[axis] for axis in window_axes), strict=True))
    extents = tuple(along.get(axis, 1) for axis in range(len(source.shape)))
    windows = _windows(at, source.shape, extents, placed, numbers, lies_at)
    labels = windows.labels(at, window_axes, inserted)
    expected = list(windows.batch)
    shape = tuple(expected.pop(0) if label == _BATCH else extents[label] for label in labels)
    at.require(updates.shape == shape, f"updates {list(updates.shape)}, not {list(shape)}")
    rows = _rows(at, windows, numbers, lies_at, is_nearest=False)
    # One after the other as the file has them: where two meet, the last one stays.
    named = tuple(axis for axis in windows.named if axis not in inserted)
    outer = tuple(label for label in labels if label not in windows.whole)
    grid = at.reshape(rows, (*windows.batch, *(extents[axis] for axis in named)))
    grid = _transposed(at, grid, _order(outer, (_BATCH,) * len(windows.batch) + named))
    whole = tuple(axis for axis in windows.whole if axis not in inserted)
    moved = _transposed(at, at.value_of(updates, "updates"), _order((*outer, *whole), labels))
    count = at.type_of(grid).num_elements
    places = at.reshape(grid, (count, 1))
    parts = at.reshape(moved, (count, windows.row_elements))
    flat = at.reshape(_by_rows(at, windows, at.value_of(source)), (windows.num_rows, windows.row_elements))
    result = _combined(at, flat, places, parts)
    named_first = (*windows.named, *windows.whole)
    unfolded = at.reshape(result, tuple(source.shape[axis] for axis in named_first))
    at.define(_transposed(at, unfolded, _order(range(len(source.shape)), named_first)))


def _windows(
    at: Conversion,
    shape: tuple[int, ...],
    extents: tuple[int, ...],
    placed: tuple[int, ...],
    numbers: Operand,
    lies_at: int,
) -> _Windows:
    """Windows of so many elements, with a number along some axes, which lie along an axis of the numbers."""
    rank, of_numbers = len(shape), numbers.shape
    fits = len(extents) == rank and all(1 <= own <= whole for own, whole in zip(extents, shape, strict=False))
    at.require(fits, f"windows {list(extents)} of {list(shape)}")
    is_known = len(set(placed)) == len(placed) and all(0 <= axis < rank for axis in placed)
    at.require(
        is_known and 0 <= lies_at <= len(of_numbers), f"numbers of axes {list(placed)} along {lies_at}"
    )
    found = of_numbers[lies_at] if lies_at < len(of_numbers) else 1
    at.require(found == len(placed), f"rows of {found} numbers for {len(placed)} axes")
    partial = (axis for axis in range(rank) if extents[axis] < shape[axis])
    named = tuple(sorted({*placed, *partial}))
    whole = tuple(axis for axis in range(rank) if axis not in named)
    batch = (*of_numbers[:lies_at], *of_numbers[lies_at + 1 :])
    return _Windows(shape, extents, placed, named, whole, batch)


def _require_single(at: Conversion, extents: Sequence[int], dropped: Sequence[int]) -> None:
    """Axes that the result does not have are of one element in each window."""
    longer = [axis for axis in dropped if extents[axis] != 1]
    at.require(not longer, f"windows {list(extents)} without axes {longer}")


def _rows(at: Conversion, windows: _Windows, numbers: Operand, lies_at: int, *, is_nearest: bool) -> str:
    """The numbers of the rows of each window, int32 [windows, rows of one].

    One that is outside of the tensor is that of the row behind the last one, unless windows are to be moved inside.
    """
    count, reach = prod(windows.batch), windows.of_window()
    value = at.value_of(numbers, "indices")
    order = (*(axis for axis in range(len(numbers.shape)) if axis != lies_at), lies_at)
    table = at.reshape(_transposed(at, value, order), (count, len(windows.placed)))
    offsets = np.indices(reach).reshape(len(reach), 1, -1)
    strides = [prod(windows.shape[axis] for axis in windows.named[n + 1 :]) for n in range(len(reach))]
    rows: str | None = None
    inside: str | None = None
    for axis, offset, stride in zip(windows.named, offsets, strides, strict=True):
        first = _first(at, windows, table, axis, is_nearest=is_nearest)
        place = emit_wrapped_sum(at, first, _number(at, offset)) if offset.any() else first
        if not is_nearest:
            extent = windows.shape[axis]
            for greater, less in ((place, _number(at, -1)), (_number(at, extent), place)):
                own = at.emit(Greater(), (greater, less), "is_inside")
                inside = own if inside is None else at.emit(LogicalAnd(), (inside, own), "is_inside")
        own = place if stride == 1 else at.emit(WrappingMul(), (place, _number(at, stride)), "rows")
        rows = own if rows is None else emit_wrapped_sum(at, rows, own)
    if rows is None:  # the tensor is one row
        rows = _number(at, np.zeros((count, 1)))
    return rows if inside is None else emit_choice(at, inside, rows, _number(at, windows.num_rows))


def _first(at: Conversion, windows: _Windows, table: str, axis: int, *, is_nearest: bool) -> str:
    """Where windows begin along an axis, int32 [windows, 1]; so near to the tensor that sums stay in 32 bits."""
    count, extent = prod(windows.batch), windows.shape[axis]
    if axis not in windows.placed:
        return _number(at, np.zeros((count, 1)))
    column = at.slice(table, (0, windows.placed.index(axis)), (count, 1), "column")
    low, high = (0, extent - windows.extents[axis]) if is_nearest else (-extent, extent)
    clamped = at.emit(Clamp(low, high), (column,), "near")
    is_wide = at.type_of(clamped).dtype is ir.DType.I64
    return emit_cast(at, clamped, ir.DType.I32, "first") if is_wide else clamped


def _combined(at: Conversion, flat: str, places: str, parts: str) -> str:
    """Rows of a tensor after their updates, as the operator's subgraph says; the row behind the last is none."""
    num_rows, width = at.type_of(flat).fixed_shape
    kinds = at.graph.model.bodies[at.operator.subgraphs[0]]
    dtype, shape = at.type_of(flat).dtype, (num_rows + 1, width)

    def scattered(operation: Scatter, of: str) -> str:
        size = (num_rows, operation.shape[1])
        return at.slice(at.emit(operation, (places, of), "scattered"), (0, 0), size, "updated")

    if not kinds:
        is_there = at.constant("is_there", np.ones((at.type_of(parts).fixed_shape[0], 1)), ir.DType.BOOL)
        is_new = scattered(ScatterLast((num_rows + 1, 1), 0), is_there)
        return emit_choice(at, is_new, scattered(ScatterLast(shape, 0), parts), flat)
    at.require(len(kinds) == 1 and kinds[0] in _COMBINATIONS, f"updates are combined by {', '.join(kinds)}")
    combination = _COMBINATIONS[kinds[0]]
    # Integers wrap in their own type, whatever they are computed in.
    is_narrow = dtype not in (*WIDE, *FLOATS)
    if is_narrow:
        flat, parts = (emit_cast(at, each, ir.DType.I32, "wide") for each in (flat, parts))
    found = scattered(combination.scatter(shape), parts)
    operation = combination.of_floats if dtype is ir.DType.F32 else combination.of_integers
    result = at.emit(operation, (flat, found), "combined")
    return emit_cast(at, result, dtype, "narrow") if is_narrow else result


def _by_rows(at: Conversion, windows: _Windows, value: str) -> str:
    """The tensor with the axes first along which windows have places."""
    return _transposed(at, value, (*windows.named, *windows.whole))


def _order(wanted: Sequence[int], found: Sequence[int]) -> tuple[int, ...]:
    """The permutation that puts axes in another order; those of the numbers stay in theirs."""
    left = list(found)
    order: list[int] = []
    for label in wanted:
        position = left.index(label)
        order.append(position)
        left[position] = _TAKEN
    return tuple(order)


def _transposed(at: Conversion, value: str, order: Sequence[int]) -> str:
    """The value with its axes in another order; the value itself if that is theirs."""
    return value if list(order) == sorted(order) else at.transpose(value, tuple(order), "in_order")


def _number(at: Conversion, value: object) -> str:
    return at.constant("number", np.asarray(value, np.int32), ir.DType.I32)
