"""STRIDED_SLICE: Python's slices, written as constants and bit masks."""

from dataclasses import dataclass, field

from bytewright.frontends.tflite.conversion import Conversion
from bytewright.frontends.tflite.shape import emit_slice


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

    taken: list[range] = field(default_factory=list[range])
    shape: list[int] = field(default_factory=list[int])
    whole_to: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])

    def take(self, *taken: range) -> None:
        """The next axes of the input, which stay."""
        self.taken += taken
        self.shape += map(len, taken)


def convert_strided_slice(at: Conversion) -> None:
    """STRIDED_SLICE with constant begin, end and strides."""
    at.require_counts((4,))
    stated = [at.options.integer(slot) for slot in range(5)]
    end_is_size = at.options.boolean(5)
    source = at.operand(0, "input")
    begin, strides = at.integers_operand(1, "begin"), at.integers_operand(3, "strides")
    ranges = [begin, at.ends_operand(2, "end", 0, begin, strides), strides]
    positions = len(ranges[0])
    at.require(len(set(map(len, ranges))) == 1, "begin, end and strides differ in length")
    at.require(0 not in ranges[2], "a stride is 0")
    if end_is_size:
        ranges[1] = tuple(begin + size for begin, size in zip(ranges[0], ranges[1], strict=True))
    masks = _Masks(*(frozenset(i for i in range(positions) if mask >> i & 1) for mask in stated))
    selection = _select(at, source.shape, masks, ranges)
    size = [len(taken) for taken in selection.taken]
    start = tuple(taken.start for taken in selection.taken)
    stride = tuple(taken.step for taken in selection.taken)
    sliced = emit_slice(at, at.value_of(source), start, tuple(size), stride, selection.whole_to)
    at.define(at.reshape(sliced, tuple(selection.shape)))


def _select(
    at: Conversion, shape: tuple[int, ...], masks: _Masks, ranges: list[tuple[int, ...]]
) -> _Selection:
    """Walks the positions of begin, end and strides along the input's axes."""
    begin, end, strides = ranges
    at.require(len(masks.ellipsis) <= 1, "there is more than one ellipsis")
    named = len(begin) - len(masks.new_axis | masks.ellipsis)
    at.require(named <= len(shape), f"{named} positions for {len(shape)} axes")
    selection, axis = _Selection(), 0
    whole = [range(extent) for extent in shape]
    for i, span in enumerate(zip(begin, end, strides, strict=True)):
        if i in masks.ellipsis:
            after = axis + len(shape) - named
            selection.take(*whole[axis:after])
            axis = after
        elif i in masks.new_axis:
            selection.shape.append(1)
        elif i in masks.shrink_axis:
            selection.taken.append(_one_element(at, shape[axis], 0 if i in masks.begin else span[0], span[2]))
            selection.whole_to.append((axis, 1))
            axis += 1
        else:
            first = None if i in masks.begin else span[0]
            last = None if i in masks.end else span[1]
            selection.whole_to += ((axis, most) for most in _whole_to(first, last, span[2]))
            selection.take(whole[axis][first : last : span[2]])
            axis += 1
    selection.take(*whole[axis:])
    return selection


def _whole_to(first: int | None, last: int | None, stride: int) -> list[int]:
    """The largest extent of which a slice that takes all of the file's takes all, in order; none if there is none."""
    most = [] if stride == 1 else [1]
    most += [-first] if first is not None and first < 0 else []
    most += [last] if last is not None else []
    return [min(most)] if most else []


def _one_element(at: Conversion, extent: int, index: int, stride: int) -> range:
    """The element of an axis that shrinks."""
    at.require(stride > 0, "an axis shrinks with a negative stride")
    at.require(-extent <= index < extent, f"element {index} of an axis of extent {extent}")
    return range(index % extent, index % extent + 1)
