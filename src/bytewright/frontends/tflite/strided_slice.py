"""STRIDED_SLICE: Python's slices, written as numbers and bit masks, of which the run may compute begins and ends."""

from dataclasses import dataclass, field, replace

from bytewright.frontends.tflite.accumulator import limited
from bytewright.frontends.tflite.conversion import Conversion
from bytewright.frontends.tflite.elementwise import emit_wrapped_difference, emit_wrapped_sum
from bytewright.frontends.tflite.logic import emit_both, emit_choice, emit_equal, emit_greater
from bytewright.frontends.tflite.sized import (
    Number,
    demand,
    is_joined,
    number_made,
    numbers_operand,
    wide_constant,
)
from bytewright.frontends.tflite.slices import BEGIN, Part, counted_part, emit_parts, stated_number
from bytewright.ops.elementwise import IntDiv

_END = 2


@dataclass(frozen=True, slots=True)
class _Masks:
    """Positions in begin, end and strides, which StridedSliceOptions has as bit masks in this order."""

    begin: frozenset[int]
    end: frozenset[int]
    ellipsis: frozenset[int]
    new_axis: frozenset[int]
    shrink_axis: frozenset[int]


@dataclass(slots=True)
class _Selection:
    """What is taken of each axis, and the shape in the end: shrunk axes are gone, new ones have extent 1.

    Attributes:
        whole_to: Axes that are taken whole up to an extent, with that.
    """

    taken: list[Part] = field(default_factory=list[Part])
    shape: list[int] = field(default_factory=list[int])
    whole_to: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])

    def take(self, *taken: Part) -> None:
        """The next axes of the input, which stay."""
        self.taken += taken
        self.shape += (part.size for part in taken)


def convert_strided_slice(at: Conversion) -> None:
    """STRIDED_SLICE of constant strides."""
    at.require_counts((4,))
    stated = [at.options.integer(slot) for slot in range(5)]
    source, strides = at.operand(0, "input"), at.integers_operand(3, "strides")
    begin = numbers_operand(at, BEGIN, "begin")
    if all(number.is_known for number in begin) and at.operand(_END, "end").data is not None:
        starts = [number.offset for number in begin]
        end = [Number(0, each) for each in at.ends_operand(_END, "end", 0, starts, strides)]
    else:
        end = numbers_operand(at, _END, "end")
    positions = len(begin)
    at.require(positions == len(end) == len(strides), "begin, end and strides differ in length")
    at.require(0 not in strides, "a stride is 0")
    masks = _Masks(*(frozenset(i for i in range(positions) if mask >> i & 1) for mask in stated))
    if at.options.boolean(5):  # the ends are sizes
        known = all(number.is_known for number in (*begin, *end))
        at.require(known, "sizes in place of ends, and numbers that the run computes")
        sums = [first.plus(size) for first, size in zip(begin, end, strict=True)]
        end = [each for each in sums if each is not None]
    selection = _select(at, source.shape, masks, begin, end, strides)
    sliced = emit_parts(at, at.value_of(source), selection.taken, selection.whole_to)
    at.define(at.reshape(sliced, tuple(selection.shape)))


def _select(
    at: Conversion,
    shape: tuple[int, ...],
    masks: _Masks,
    begin: list[Number],
    end: list[Number],
    strides: tuple[int, ...],
) -> _Selection:
    """Walks the positions of begin, end and strides along the input's axes."""
    at.require(len(masks.ellipsis) <= 1, "there is more than one ellipsis")
    named = len(begin) - len(masks.new_axis | masks.ellipsis)
    at.require(named <= len(shape), f"{named} positions for {len(shape)} axes")
    selection, axis = _Selection(), 0
    whole = [Part(extent) for extent in shape]
    for i, span in enumerate(zip(begin, end, strides, strict=True)):
        if i in masks.ellipsis:
            after = axis + len(shape) - named
            at.require(
                after > axis or i == len(begin) - 1,
                "an ellipsis before its last position stands for no axis, where LiteRT takes one",
            )
            selection.take(*whole[axis:after])
            axis = after
        elif i in masks.new_axis:
            selection.shape.append(1)
        elif i in masks.shrink_axis:
            first = Number(0, 0) if i in masks.begin else span[0]
            selection.taken.append(_one_element(at, i, shape[axis], first, span[2]))
            selection.whole_to.append((axis, 1))
            axis += 1
        else:
            first = None if i in masks.begin else span[0]
            last = None if i in masks.end else span[1]
            ends = (
                None if number is None or not number.is_known else number.offset for number in (first, last)
            )
            selection.whole_to += ((axis, most) for most in _whole_to(*ends, stride=span[2]))
            selection.take(_taken(at, i, shape[axis], first, last, span[2]))
            axis += 1
    selection.take(*whole[axis:])
    return selection


def _whole_to(first: int | None, last: int | None, *, stride: int) -> list[int]:
    """The largest extent of which a slice that takes all of the file's takes all, in order; none if there is none."""
    most = [] if stride == 1 else [1]
    most += [-first] if first is not None and first < 0 else []
    most += [last] if last is not None else []
    return [min(most)] if most else []


def _one_element(at: Conversion, position: int, extent: int, index: Number, stride: int) -> Part:
    """The element of an axis that shrinks."""
    at.require(stride > 0, "an axis shrinks with a negative stride")
    if not index.is_known:
        return Part(1, None, first=_from_front(at, BEGIN, position, extent))
    number = index.offset
    at.require(-extent <= number < extent, f"element {number} of an axis of extent {extent}")
    return Part(1, number % extent)


def _taken(
    at: Conversion, position: int, extent: int, first: Number | None, last: Number | None, stride: int
) -> Part:
    """What is taken along an axis that stays."""
    begins = first is None or first.is_known
    if begins and (last is None or last.is_known):
        ends = [None if number is None else number.offset for number in (first, last)]
        taken = range(extent)[ends[0] : ends[1] : stride]
        return Part(len(taken), taken.start, taken.step)
    length = None if first is None or last is None else last.plus(first, -1)
    if stride > 0 and not begins and length and length.is_known and 0 < length.offset <= extent:
        begin = _from_front(at, BEGIN, position, extent)
        part = Part(len(range(0, length.offset, stride)), None, stride, begin)
        _demand_whole(at, position, extent, part, length.offset)
        return part
    return _between(at, position, extent, first, last, stride)


def _demand_whole(at: Conversion, position: int, extent: int, part: Part, length: int) -> None:
    """Refuses runs in which the end cuts the part off: it is behind the extent, or that of a begin before 0 is not."""
    number = stated_number(at, BEGIN, position)
    last = extent - 1 - (part.size - 1) * part.stride
    nearest = limited(at, part.first, 0, last, "nearest")
    is_crossing = emit_both(
        at,
        emit_greater(at, wide_constant(at, number, 0), number, "is_from_end"),
        emit_greater(at, number, wide_constant(at, number, -length - 1), "is_to_front"),
        "is_crossing",
    )
    outside = wide_constant(at, number, -1)
    inside = emit_choice(at, is_crossing, outside, part.first)
    demand(at, emit_equal(at, inside, nearest, "is_whole"), "whether all of the elements are there")


def _between(
    at: Conversion, position: int, extent: int, first: Number | None, last: Number | None, stride: int
) -> Part:
    """From one element to another, of which the run computes one or both: those that Python's slice has."""
    known = [None if each is None or not each.is_known else each.offset for each in (first, last)]
    taken = range(extent)[known[0] : known[1] : stride]
    low, high = (0, extent) if stride > 0 else (-1, extent - 1)
    begin, end = (
        None
        if number is None or number.is_known
        else limited(at, _from_front(at, operand, position, extent), low, high, role)
        for operand, number, role in ((BEGIN, first, "begin"), (_END, last, "end"))
    )
    start = taken.start if begin is None else None
    if last is not None and start == 0 < stride and is_joined(at, last):
        part = counted_part(at, last, extent)
        size, most = (None if each is None else -(-each // stride) for each in (part.size, part.most))
        return replace(part, size=size or 0, stride=stride, most=most)

    def emit_count() -> str:
        like = begin or end or ""
        span = [begin or wide_constant(at, like, taken.start), end or wide_constant(at, like, taken.stop)]
        length = emit_wrapped_difference(at, *(reversed(span) if stride > 0 else span))
        return limited(at, _emit_steps(at, length, abs(stride)), 0, len(taken), "length")

    count = number_made(at, last if start == 0 < stride else None, (first, last, extent, stride), emit_count)
    part = counted_part(at, count, len(taken), is_sure=True)
    return replace(part, begin=start, stride=stride, first=begin or "")


def _emit_steps(at: Conversion, length: str, stride: int) -> str:
    """How many steps reach over a length, the last of them over its end."""
    if stride == 1:
        return length
    reach = emit_wrapped_sum(at, length, wide_constant(at, length, stride - 1))
    return at.emit(IntDiv(), (reach, wide_constant(at, length, stride)), "steps")


def _from_front(at: Conversion, operand: int, position: int, extent: int) -> str:
    """A number of the run, which may count from the end, from the front."""
    number = stated_number(at, operand, position)
    is_behind = emit_greater(at, wide_constant(at, number, 0), number, "is_from_end")
    return emit_choice(at, is_behind, emit_wrapped_sum(at, number, wide_constant(at, number, extent)), number)
