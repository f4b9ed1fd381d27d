"""Operators that are computed at import: the arithmetic that exporters write to find shapes.

A model whose batch is open asks for the shape of a value, takes numbers out of it, multiplies and joins them, and
reshapes by the result. All of it is known once the inputs' shapes are, so none of it is left in the graph. Each row of
`FOLDED` computes one operator on values that are known, as LiteRT's reference does; nothing here runs on activations.
What only moves elements, and has a converter, is computed by that (`Conversion.emit`).
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial, reduce
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bytewright import ir
from bytewright.frontends.tflite import known as growing
from bytewright.frontends.tflite.cast import convert_cast
from bytewright.frontends.tflite.conversion import Conversion
from bytewright.frontends.tflite.graph_builder import DTYPES
from bytewright.frontends.tflite.known import Known, fixed, moved
from bytewright.frontends.tflite.model import ModelRecord
from bytewright.frontends.tflite.moves import convert_pack, convert_reverse, convert_unpack
from bytewright.frontends.tflite.options import fused_activation
from bytewright.frontends.tflite.unsigned import UNSIGNED
from bytewright.ops.checks import WIDE

# What one step of a reduction costs, beside its elements: each is a call of numpy.
_MOVES_A_STEP = 1024
_NUMBERS = (ir.DType.I32, ir.DType.I64, ir.DType.F32)


@dataclass(frozen=True, slots=True)
class FoldedOperator:
    """An operator that is computed at import.

    Attributes:
        compute: Reads operands that are known, and defines the results.
        options: The schema's name of its table of options; empty where none is read.
        reads_shape: It looks at the shape of its operand alone, which is known of every value.
        of_any_type: It is computed so whatever its type, although there is a converter for what the run computes.
    """

    compute: Callable[[Conversion], None]
    options: str = ""
    reads_shape: bool = False
    of_any_type: bool = False


def _numbers(at: Conversion, position: int, role: str, dtypes: Iterable[ir.DType] = _NUMBERS) -> Known:
    """A known operand of one of some element types."""
    at.typed_operand(position, role, dtypes)
    return at.known_operand(position, role)


def _positions(at: Conversion, position: int, role: str) -> NDArray[np.int64]:
    """A known operand that says where elements are; it must be the same for every batch."""
    at.integers_operand(position, role)
    return at.known_operand(position, role).array.astype(np.int64)


# What is read from shapes


def _shape(at: Conversion) -> None:
    """SHAPE, whose first extent grows with the batch if the value depends on an input."""
    at.require_counts((1,))
    extents = np.array(at.operand(0, "input").shape, DTYPES[at.output_tensor().element_type].numpy)
    at.define_known(Known(extents, np.array(at.extent_growth(0), np.int64)))


def _rank(at: Conversion) -> None:
    at.require_counts((1,))
    at.define_known(fixed(np.array(len(at.operand(0, "input").shape), np.int32)))


def _zeros_like(at: Conversion) -> None:
    at.require_counts((1,))
    source = at.operand(0, "input")
    least = ir.DType.I8.bounds[0] if source.tensor.element_type == UNSIGNED else 0
    zero = np.full((), least, source.dtype.numpy)
    _define_uniform(at, source.shape, at.extent_growth(0), zero)


# What moves elements


def _gather(at: Conversion) -> None:
    """GATHER of whole slices along an axis, by indices that are not negative."""
    at.require_counts((2,))
    source, indices = at.known_operand(0, "input"), _positions(at, 1, "indices")
    axis = at.axis(at.options.integer(0), source.array.ndim)
    at.require(at.options.integer(1) == 0, "batch dimensions are not supported")
    extent = source.array.shape[axis]
    at.require(bool(((indices >= 0) & (indices < extent)).all()), f"indices outside of the extent {extent}")
    at.charge(indices.size * source.array.size // max(extent, 1))
    at.define_known(moved(partial(np.take, indices=indices, axis=axis), source))


# What states a shape


def _define_uniform(
    at: Conversion, shape: tuple[int, ...], growth: tuple[int, ...], value: NDArray[Any]
) -> None:
    """A result of extents of which the first may be the batch."""
    at.charge(prod(shape))
    dtype = DTYPES[at.output_tensor().element_type]
    name = at.constant("value", np.broadcast_to(value, shape), dtype)
    at.follow_batch(name, growth)
    at.define(name)


def _fill(at: Conversion) -> None:
    at.require_counts((2,))
    shape, growth = at.extents_operand(0, "shape")
    at.require(min(shape, default=0) >= 0, f"the shape {list(shape)} has a negative extent")
    value = at.known_operand(1, "value")
    at.require(value.array.ndim == 0 and value.is_fixed, "the value is no single number")
    _define_uniform(at, shape, growth, value.array)


def _broadcast_to(at: Conversion) -> None:
    at.require_counts((2,))
    shape, growth = at.extents_operand(1, "shape")
    at.require(min(shape, default=0) >= 0, f"the shape {list(shape)} has a negative extent")
    _define_uniform(at, shape, growth, at.fixed_operand(0, "input"))


def _broadcast_args(at: Conversion) -> None:
    """BROADCAST_ARGS: the shape that values of two shapes have together. An extent of one gives way."""
    at.require_counts((2,))
    shapes = [_numbers(at, position, "shape", WIDE) for position in (0, 1)]
    at.require(all(shape.array.ndim == 1 for shape in shapes), "an operand is not a list of extents")
    at.require(len({shape.array.dtype for shape in shapes}) == 1, "operands of different types")
    rank = max(shape.array.size for shape in shapes)
    first, second = (
        [
            *[(1, 0)] * (rank - shape.array.size),
            *zip(shape.array.tolist(), shape.growth.tolist(), strict=True),
        ]
        for shape in shapes
    )
    joined: list[tuple[int, int]] = []
    for one, other in zip(first, second, strict=True):
        if one != other and (1, 0) not in (one, other):
            at.require(
                one[0] == other[0] or 1 in (one[0], other[0]), f"{one[0]} and {other[0]} do not broadcast"
            )
            if one[1] or other[1]:
                at.refuse_batch("which shape two shapes have together depends on the batch")
        joined.append(other if one == (1, 0) else one)
    array = np.array([extent for extent, _ in joined], shapes[0].array.dtype)
    at.define_known(Known(array, np.array([growth for _, growth in joined], np.int64)))


def _tile(at: Conversion) -> None:
    at.require_counts((2,))
    multiples, growth = at.extents_operand(1, "multiples")
    at.require(min(multiples, default=0) >= 0, f"the multiples {list(multiples)} are negative")
    if any(growth):
        source = at.fixed_operand(0, "input")
        shape = tuple(extent * n for extent, n in zip(source.shape, multiples, strict=True))
        at.charge(prod(shape))
        _define_uniform(at, shape, (source.shape[0] * growth[0], *growth[1:]), np.tile(source, multiples))
        return
    source = at.known_operand(0, "input")
    at.require(source.array.ndim == len(multiples), f"{len(multiples)} multiples of {source.array.ndim} axes")
    at.charge(source.array.size * prod(multiples))
    at.define_known(moved(partial(np.tile, reps=multiples), source))


def _range(at: Conversion) -> None:
    """RANGE: as many numbers as are before the limit."""
    at.require_counts((3,))
    numbers = [at.fixed_operand(i, role) for i, role in enumerate(("start", "limit", "delta"))]
    at.require(all(each.size == 1 for each in numbers), "start, limit and delta are no single numbers")
    start, limit, delta = (each.reshape(()) for each in numbers)
    at.require(delta != 0, "delta is 0")
    at.require(len({each.dtype for each in numbers}) == 1, "start, limit and delta have different types")
    is_float = start.dtype.kind == "f"
    if is_float:
        at.require(all(bool(np.isfinite(each)) for each in numbers), "start, limit or delta is no number")
        count = int(np.ceil(abs((limit - start) / delta)))
    else:
        count = -(-abs(int(limit) - int(start)) // abs(int(delta)))
    if (limit > start) != (delta > 0):
        at.require(limit == start, "delta leads away from the limit")
    at.charge(count)
    # One is added to the other, each sum rounded.
    steps = np.full(count, delta, start.dtype)
    steps[:1] = start
    at.define_known(fixed(np.cumsum(steps, dtype=start.dtype)))


# Arithmetic


def _elementwise(
    at: Conversion,
    function: Callable[..., Known],
    dtypes: tuple[ir.DType, ...] = _NUMBERS,
    num_operands: int = 2,
    activation_slot: int | None = None,
) -> None:
    """A function of operands of one type that broadcast."""
    at.require_counts((num_operands,))
    if activation_slot is not None:
        activation = fused_activation(at, activation_slot)
        at.require(activation == "NONE", f"the fused activation {activation} is not supported on integers")
    operands = [_numbers(at, i, "operand", dtypes) for i in range(num_operands)]
    at.require(len({each.array.dtype for each in operands}) == 1, "operands have different types")
    shapes = [operand.array.shape for operand in operands]
    try:
        shape = np.broadcast_shapes(*shapes)
    except ValueError:
        at.fail(f"shapes {' and '.join(str(list(each)) for each in shapes)} do not broadcast")
    at.charge(prod(shape))
    at.define_known(function(*operands))


def _divide(
    at: Conversion,
    by: Callable[..., Known],
    divide: Callable[..., NDArray[Any]],
    dtypes: tuple[ir.DType, ...] = _NUMBERS,
) -> None:
    """A division, which integers have no answer for where the divisor is 0."""
    divisor = _numbers(at, 1, "divisor", dtypes)
    if divisor.array.dtype.kind != "f":
        at.require(bool(divisor.array.all()), "a division by 0")
    slot = 0 if at.operator.kind == "DIV" else None
    _elementwise(at, partial(by, divide), dtypes, activation_slot=slot)


def _truncated(first: NDArray[Any], second: NDArray[Any]) -> NDArray[Any]:
    """C's division."""
    if first.dtype.kind == "f":
        return np.divide(first, second)
    quotient = np.abs(first) // np.abs(second) * np.sign(first) * np.sign(second)
    return quotient.astype(first.dtype)


def _floored(first: NDArray[Any], second: NDArray[Any]) -> NDArray[Any]:
    """Division towards minus infinity; of floats, the quotient is rounded first."""
    return np.floor(np.divide(first, second)) if first.dtype.kind == "f" else first // second


def _power(at: Conversion) -> None:
    exponent = at.fixed_operand(1, "exponent")
    negative = exponent.dtype.kind != "f" and bool((exponent < 0).any())
    at.require(not negative, "an integer to a negative power")
    _elementwise(at, partial(growing.computed, np.power))


def _compare(at: Conversion, function: Callable[..., NDArray[Any]]) -> None:
    dtypes = (*_NUMBERS, ir.DType.BOOL) if at.operator.kind in ("EQUAL", "NOT_EQUAL") else _NUMBERS
    _elementwise(at, partial(growing.compared, function, batch_max=at.graph.batch_max or 1), dtypes)


def _extreme(at: Conversion, function: Callable[..., NDArray[Any]]) -> None:
    """MAXIMUM or MINIMUM: the one of two for which a comparison holds."""

    def take(first: Known, second: Known) -> Known:
        condition = growing.compared(function, first, second, at.graph.batch_max or 1)
        return growing.chosen(condition, *_alike(first, second))

    _elementwise(at, take)


def _alike(*operands: Known) -> tuple[Known, ...]:
    """Operands broadcast to one shape."""
    arrays = np.broadcast_arrays(*(operand.array for operand in operands))
    growths = np.broadcast_arrays(*(operand.growth for operand in operands))
    return tuple(map(Known, arrays, growths))


def _select(at: Conversion) -> None:
    """SELECT and SELECT_V2; a condition of one axis chooses whole rows in the former."""
    at.require_counts((3,))
    condition = _numbers(at, 0, "condition", (ir.DType.BOOL,))
    first, second = at.known_operand(1, "first value"), at.known_operand(2, "second value")
    at.require(first.array.dtype == second.array.dtype, "values have different types")
    rank = first.array.ndim
    if at.operator.kind == "SELECT" and condition.array.ndim == 1 < rank:
        along = (-1, *(1,) * (rank - 1))
        condition = moved(partial(np.reshape, shape=along), condition)
    try:
        np.broadcast_shapes(condition.array.shape, first.array.shape, second.array.shape)
    except ValueError:
        at.fail("condition and values do not broadcast")
    condition, first, second = _alike(condition, first, second)
    at.charge(first.array.size)
    at.define_known(growing.chosen(condition, first, second))


def _reduce(at: Conversion, combine: Callable[[Known, Known], Known], start: int | bool | None) -> None:
    """A reduction over axes by a function of two; `start` is what nothing at all gives."""
    at.require_counts((2,))
    is_logical = isinstance(start, bool)
    source = _numbers(at, 0, "input", (ir.DType.BOOL,) if is_logical else WIDE)
    array = source.array
    axes = at.axes(at.integers_operand(1, "axes"), array.ndim)
    kept = tuple(axis for axis in range(array.ndim) if axis not in axes)
    shape = tuple(array.shape[axis] for axis in kept)
    count = prod(array.shape[axis] for axis in axes)
    at.charge(array.size + count * _MOVES_A_STEP)
    rows = moved(partial(_rows, axes=(*axes, *kept), shape=(count, *shape)), source)
    parts = [Known(rows.array[i], rows.growth[i]) for i in range(count)]
    if start is not None:
        parts.insert(0, fixed(np.full(shape, start, array.dtype)))
    at.require(bool(parts), "the greatest or least of no values at all")
    result = reduce(combine, parts)
    if at.options.boolean(0):
        shape = tuple(1 if axis in axes else extent for axis, extent in enumerate(array.shape))
    at.define_known(moved(partial(np.reshape, shape=shape), result))


def _rows(array: NDArray[Any], axes: tuple[int, ...], shape: tuple[int, ...]) -> NDArray[Any]:
    return np.transpose(array, axes).reshape(shape)


def _reduce_extreme(at: Conversion, function: Callable[..., NDArray[Any]]) -> None:
    def take(first: Known, second: Known) -> Known:
        condition = growing.compared(function, first, second, at.graph.batch_max or 1)
        return growing.chosen(condition, first, second)

    _reduce(at, take, None)


def _logical(at: Conversion, function: Callable[..., NDArray[Any]], num_operands: int = 2) -> None:
    _elementwise(at, partial(growing.computed, function), (ir.DType.BOOL,), num_operands)


def _unary(
    at: Conversion, function: Callable[..., NDArray[Any]], dtypes: tuple[ir.DType, ...] = _NUMBERS
) -> None:
    _elementwise(at, partial(growing.computed, function), dtypes, 1)


def _negate(at: Conversion) -> None:
    def negative(operand: Known) -> Known:
        return growing.subtracted(fixed(np.zeros_like(operand.array)), operand)

    _elementwise(at, negative, num_operands=1)


def _integers_only(function: Callable[..., Known], slot: int = 0) -> Callable[[Conversion], None]:
    return partial(_elementwise, function=function, dtypes=_NUMBERS, activation_slot=slot)


_FLOATS = (ir.DType.F32,)

FOLDED: dict[str, FoldedOperator] = {
    "ABS": FoldedOperator(partial(_unary, function=np.abs)),
    "ADD": FoldedOperator(_integers_only(growing.added), "AddOptions"),
    "BROADCAST_ARGS": FoldedOperator(_broadcast_args),
    "BROADCAST_TO": FoldedOperator(_broadcast_to),
    "CAST": FoldedOperator(convert_cast),
    "CEIL": FoldedOperator(partial(_unary, function=np.ceil, dtypes=_FLOATS)),
    "DIV": FoldedOperator(partial(_divide, by=growing.divided, divide=_truncated), "DivOptions"),
    "EQUAL": FoldedOperator(partial(_compare, function=np.equal)),
    "FILL": FoldedOperator(_fill),
    "FLOOR": FoldedOperator(partial(_unary, function=np.floor, dtypes=_FLOATS)),
    "FLOOR_DIV": FoldedOperator(partial(_divide, by=growing.divided, divide=_floored)),
    "FLOOR_MOD": FoldedOperator(partial(_divide, by=growing.remainder, divide=np.mod, dtypes=WIDE)),
    "GATHER": FoldedOperator(_gather, "GatherOptions"),
    "GREATER": FoldedOperator(partial(_compare, function=np.greater)),
    "GREATER_EQUAL": FoldedOperator(partial(_compare, function=np.greater_equal)),
    "LESS": FoldedOperator(partial(_compare, function=np.less)),
    "LESS_EQUAL": FoldedOperator(partial(_compare, function=np.less_equal)),
    "LOGICAL_AND": FoldedOperator(partial(_logical, function=np.logical_and)),
    "LOGICAL_NOT": FoldedOperator(partial(_logical, function=np.logical_not, num_operands=1)),
    "LOGICAL_OR": FoldedOperator(partial(_logical, function=np.logical_or)),
    "MAXIMUM": FoldedOperator(partial(_extreme, function=np.greater)),
    "MINIMUM": FoldedOperator(partial(_extreme, function=np.less)),
    "MUL": FoldedOperator(_integers_only(growing.multiplied), "MulOptions"),
    "NEG": FoldedOperator(_negate),
    "NOT_EQUAL": FoldedOperator(partial(_compare, function=np.not_equal)),
    "PACK": FoldedOperator(convert_pack, "PackOptions"),
    "POW": FoldedOperator(_power),
    "RANGE": FoldedOperator(_range, of_any_type=True),
    "RANK": FoldedOperator(_rank, reads_shape=True),
    "REDUCE_ALL": FoldedOperator(
        partial(_reduce, combine=partial(growing.computed, np.logical_and), start=True), "ReducerOptions"
    ),
    "REDUCE_ANY": FoldedOperator(
        partial(_reduce, combine=partial(growing.computed, np.logical_or), start=False), "ReducerOptions"
    ),
    "REDUCE_MAX": FoldedOperator(partial(_reduce_extreme, function=np.greater), "ReducerOptions"),
    "REDUCE_MIN": FoldedOperator(partial(_reduce_extreme, function=np.less), "ReducerOptions"),
    "REDUCE_PROD": FoldedOperator(partial(_reduce, combine=growing.multiplied, start=1), "ReducerOptions"),
    "REVERSE_V2": FoldedOperator(convert_reverse),
    "SELECT": FoldedOperator(_select),
    "SELECT_V2": FoldedOperator(_select),
    "SHAPE": FoldedOperator(_shape, reads_shape=True),
    "SUB": FoldedOperator(_integers_only(growing.subtracted), "SubOptions"),
    "SUM": FoldedOperator(partial(_reduce, combine=growing.added, start=0), "ReducerOptions"),
    "TILE": FoldedOperator(_tile),
    "UNPACK": FoldedOperator(convert_unpack, "UnpackOptions"),
    "ZEROS_LIKE": FoldedOperator(_zeros_like, reads_shape=True),
}
"""By the schema's name. Where an operator has a converter too, that one computes int8 and float32 results."""


@dataclass(frozen=True, slots=True)
class KnownAtImport:
    """What import will know: indices of tensors, and of operators that rows of `FOLDED` may compute."""

    tensors: frozenset[int]
    operators: frozenset[int]


def known_at_import(model: ModelRecord) -> KnownAtImport:
    """Constants, and what operators compute of constants and of shapes alone."""
    tensors = {tensor.index for tensor in model.tensors if tensor.has_values}
    operators: set[int] = set()
    for operator in model.operators:
        row = FOLDED.get(operator.kind)
        are_known = bool(operator.operands) and tensors.issuperset(operator.operands)
        if row is not None and (are_known or row.reads_shape):
            operators.add(operator.index)
        if are_known or operator.index in operators:
            tensors.update(operator.outputs)
    return KnownAtImport(frozenset(tensors), frozenset(operators))
