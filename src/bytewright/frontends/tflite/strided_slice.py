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
    """What is taken of each axis, and the shape in the end: shrunk axes are gone, new ones have extent 1."""

    start: list[int] = field(default_factory=list[int])
    size: list[int] = field(default_factory=list[int])
    stride: list[int] = field(default_factory=list[int])
    shape: list[int] = field(default_factory=list[int])

    def take(self, start: int, size: int, stride: int, *, keep_axis: bool = True) -> None:
        """The next axis of the input."""
        self.start.append(start)
        self.size.append(size)
        self.stride.append(stride)
        if keep_axis:
            self.shape.append(size)


def convert_strided_slice(at: Conversion) -> None:
    """STRIDED_SLICE with constant begin, end and strides."""
    at.require_counts((4,))
    stated = [at.options.integer(slot) for slot in range(5)]
    end_is_size = at.options.boolean(5)
    source = at.operand(0, "input")
    ranges = [at.integers_operand(i + 1, role) for i, role in enumerate(("begin", "end", "strides"))]
    positions = len(ranges[0])
    at.require(len(set(map(len, ranges))) == 1, "begin, end and strides differ in length")
    at.require(0 not in ranges[2], "a stride is 0")
    if end_is_size:
        ranges[1] = tuple(begin + size for begin, size in zip(ranges[0], ranges[1], strict=True))
    masks = _Masks(*(frozenset(i for i in range(positions) if mask >> i & 1) for mask in stated))
    selection = _select(at, source.shape, masks, ranges)
    at.require(min(selection.size, default=1) >= 1, f"the slice {selection.size} has no elements")
    sliced = emit_slice(
        at, at.value_of(source), tuple(selection.start), tuple(selection.size), tuple(selection.stride)
    )
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
    for i in range(len(begin)):
        if i in masks.ellipsis:
            for extent in shape[axis : axis + len(shape) - named]:
                selection.take(0, extent, 1)
            axis += len(shape) - named
        elif i in masks.new_axis:
            selection.shape.append(1)
        else:
            _take_range(at, selection, shape[axis], masks, i, (begin[i], end[i], strides[i]))
            axis += 1
    for extent in shape[axis:]:
        selection.take(0, extent, 1)
    return selection


def _take_range(
    at: Conversion,
    selection: _Selection,
    extent: int,
    masks: _Masks,
    position: int,
    span: tuple[int, int, int],
) -> None:
    """One axis: begin, end and stride as Python's slices have them, or one element where the axis shrinks."""
    begin, end, stride = span
    if position in masks.shrink_axis:
        begin = 0 if position in masks.begin else begin
        at.require(stride > 0, "an axis shrinks with a negative stride")
        at.require(-extent <= begin < extent, f"element {begin} of an axis of extent {extent}")
        selection.take(begin % extent, 1, 1, keep_axis=False)
        return
    first = None if position in masks.begin else begin
    last = None if position in masks.end else end
    taken = range(*slice(first, last, stride).indices(extent))
    selection.take(taken.start if taken else 0, len(taken), stride)
