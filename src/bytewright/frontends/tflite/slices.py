"""Parts of tensors whose begin or size the run may compute: SLICE, and what STRIDED_SLICE takes of each axis."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from bytewright.frontends.tflite.accumulator import limited
from bytewright.frontends.tflite.conversion import Conversion
from bytewright.frontends.tflite.elementwise import emit_wrapped_difference, emit_wrapped_sum
from bytewright.frontends.tflite.logic import emit_choice, emit_either, emit_equal, emit_greater
from bytewright.frontends.tflite.moves import emit_gathered
from bytewright.frontends.tflite.shape import emit_slice
from bytewright.frontends.tflite.sized import (
    Number,
    cut,
    demand,
    element,
    is_joined,
    most_of,
    number_made,
    numbers_operand,
    sized,
    wide_constant,
)
from bytewright.ops.checks import WIDE

BEGIN, _SIZE = 1, 2
"""Operands that say where a part begins, and how large it is."""
_HOW_MANY = "how many elements are taken"


@dataclass(frozen=True, slots=True)
class Part:
    """What is taken along an axis.

    Attributes:
        size: How many elements, in this graph.
        begin: The first of them; None where that is of `first`.
        stride: From one to the next.
        first: The number of the first, i32 or i64 [1], which the run computes.
        most: How many elements there are in any graph, where the run says how many.
    """

    size: int
    begin: int | None = 0
    stride: int = 1
    first: str = ""
    most: int | None = None


def convert_slice(at: Conversion) -> None:
    """SLICE; size -1 means all that remains."""
    at.require_counts((3,))
    source = at.operand(0, "input")
    operands = [at.operand(position, role) for position, role in ((1, "begin"), (2, "size"))]
    if all(operand.data is not None for operand in operands):
        at.define(_constant_slice(at))
        return
    begin, size = numbers_operand(at, 1, "begin"), numbers_operand(at, 2, "size")
    rank = len(source.shape)
    at.require(
        len(begin) == rank == len(size), f"begin of {len(begin)} and size of {len(size)} axes for rank {rank}"
    )
    parts = [_part(at, axis, *each) for axis, each in enumerate(zip(source.shape, begin, size, strict=True))]
    numbers = (
        (axis, number.offset) for axis, number in enumerate(size) if number.is_known and number.offset != -1
    )
    at.define(emit_parts(at, at.value_of(source), parts, numbers))


def _constant_slice(at: Conversion) -> str:
    source = at.operand(0, "input")
    begin = at.integers_operand(1, "begin")
    rank = len(source.shape)
    stated = at.ends_operand(2, "size", 0, begin, (1,) * rank)
    at.require(
        len(begin) == rank == len(stated), f"begin {list(begin)} and size {list(stated)} for rank {rank}"
    )
    size = tuple(
        extent - first if length == -1 else length
        for extent, first, length in zip(source.shape, begin, stated, strict=True)
    )
    for first, length, extent in zip(begin, size, source.shape, strict=True):
        _require_within(at, first, length, extent)
    numbers = ((axis, length) for axis, length in enumerate(stated) if length != -1)
    return emit_slice(at, at.value_of(source), begin, size, (1,) * rank, numbers)


def _require_within(at: Conversion, first: int, length: int, extent: int) -> None:
    at.require(0 <= first <= extent - length, f"{length} elements from {first} on leave the extent {extent}")


def _part(at: Conversion, axis: int, extent: int, begin: Number, size: Number) -> Part:
    """What SLICE takes along an axis."""
    is_rest = size == Number(0, -1)
    first = begin.offset if begin.is_known else 0
    if begin.is_known and size.is_known:
        count = extent - first if is_rest else size.offset
        _require_within(at, first, count, extent)
        return Part(count, first)
    number = "" if begin.is_known else stated_number(at, BEGIN, axis)
    kept = (first, "") if begin.is_known else (None, number)
    if size.is_known and not is_rest:
        at.require(0 <= size.offset <= extent, f"{size.offset} elements leave the extent {extent}")
        if at.may_count:
            nearest = limited(at, number, 0, extent - size.offset, "nearest")
            demand(at, emit_equal(at, number, nearest, "is_whole"), "whether all of the elements are there")
        return Part(size.offset, None, first=number)
    at.require(0 <= first <= extent, f"element {first} of an axis of extent {extent}")
    if begin.is_known and is_joined(at, size):
        return counted_part(at, size, extent - first, *kept)

    def emit_count() -> str:
        asked = "" if is_rest else stated_number(at, _SIZE, axis)
        like = number or asked
        begins = number or wide_constant(at, like, first)
        rest = emit_wrapped_difference(at, wide_constant(at, like, extent), begins)
        return _emit_asked(at, asked, rest, number)

    asked = number_made(at, size if begin.is_known else None, (begin, size, extent), emit_count)
    return counted_part(at, asked, extent - first, *kept)


def _emit_asked(at: Conversion, size: str, rest: str, begin: str) -> str:
    """How many elements are asked for: of a size of -1, or none, all that remain; -1 where they are not all there."""
    outside = wide_constant(at, rest, -1)
    asked, misfits = rest, list[str]()
    if size:
        asked = emit_choice(at, emit_equal(at, size, outside, "is_rest"), rest, size)
        misfits.append(emit_greater(at, asked, rest, "is_beyond"))
    if begin:
        misfits.append(emit_greater(at, wide_constant(at, rest, 0), begin, "is_before"))
    leaves, *others = misfits
    for other in others:
        leaves = emit_either(at, leaves, other, "leaves")
    return emit_choice(at, leaves, outside, asked)


def counted_part(
    at: Conversion,
    asked: Number,
    extent: int,
    begin: int | None = 0,
    first: str = "",
    *,
    is_sure: bool = False,
) -> Part:
    """As many elements of an axis as the run says, of at most so many that there are."""
    count = sized(at, asked, _HOW_MANY, extent, is_sure=is_sure)
    return Part(count, begin, first=first, most=most_of(at, asked))


def stated_number(at: Conversion, operand: int, position: int) -> str:
    """A number of the run as it is, of shape [1]."""
    value = at.value_of(at.operand(operand, "number"), "number")
    return at.reshape(element(at, value, position), (1,), "number")


def emit_parts(
    at: Conversion, name: str, parts: Sequence[Part], whole_to: Iterable[tuple[int, int]] = ()
) -> str:
    """The elements of a tensor that are taken along each axis; `whole_to` as of `emit_slice`."""
    extents = at.type_of(name).fixed_shape
    kept = [
        (0, extent, 1) if part.begin is None else (part.begin, part.size, part.stride)
        for part, extent in zip(parts, extents, strict=True)
    ]
    start, size, stride = (tuple(each[n] for each in kept) for n in range(3))
    if any(part.most is not None and part.begin is not None for part in parts):
        name = cut(at, name, size, "sliced", start, stride)
    else:
        name = emit_slice(at, name, start, size, stride, whole_to)
    for axis, part in enumerate(parts):
        if part.begin is None:
            name = emit_gathered(at, name, _numbers(at, part, extents[axis]), axis)
    return name


def _numbers(at: Conversion, part: Part, extent: int) -> str:
    """The numbers of elements from one on that the run computes; from the nearest from which they all are there."""
    dtype = at.type_of(part.first).dtype
    assert dtype in WIDE
    most = part.size if part.most is None else part.most
    steps = at.constant("steps", np.arange(most, dtype=dtype.numpy) * part.stride, dtype)
    first = part.first
    if part.most is None:
        last = max(extent - 1 - (part.size - 1) * part.stride, 0)
        return emit_wrapped_sum(at, limited(at, first, 0, last, "first"), steps)
    return emit_wrapped_sum(at, first, cut(at, steps, (part.size,), "steps"))
