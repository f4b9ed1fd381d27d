"""DILATE and STABLEHLO_PAD: elements with others between them, and around them."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from bytewright.frontends.tflite.conversion import Conversion
from bytewright.frontends.tflite.graph_builder import Operand
from bytewright.frontends.tflite.shape import emit_padded, emit_slice


def convert_dilate(at: Conversion) -> None:
    """DILATE by constant steps, with a constant between."""
    at.require_counts((3,))
    source, value = source_and_value(at, 2)
    steps = at.integers_operand(1, "dilations")
    fits = len(steps) == len(source.shape) and min(steps, default=0) >= 1
    at.require(fits, f"dilations {list(steps)} of a tensor {list(source.shape)}")
    name = at.value_of(source)
    for axis, step in enumerate(steps):
        name = emit_spread(at, name, axis, step, value)
    at.define(name)


def convert_stablehlo_pad(at: Conversion) -> None:
    """STABLEHLO_PAD with a constant, between elements and around them; fewer than none are cut off."""
    at.require_counts((2,))
    source, value = source_and_value(at, 1)
    before, after, between = (at.options.numbers(slot, "<i8") for slot in range(3))
    rank = len(source.shape)
    fits = len(before) == rank == len(after) == len(between) and min(between, default=0) >= 0
    at.require(fits, f"paddings {list(before)}, {list(after)} and {list(between)} for {rank} axes")
    borders = Borders(before, after, tuple(number + 1 for number in between))
    at.define(emit_spread_and_padded(at, at.value_of(source), borders, value))


@dataclass(frozen=True, slots=True)
class Borders:
    """Elements around those of a tensor, and between them, along each of its axes.

    Attributes:
        before, after: How many; those below zero are cut off.
        steps: How far elements are apart.
    """

    before: Sequence[int]
    after: Sequence[int]
    steps: Sequence[int]


def source_and_value(at: Conversion, position: int) -> tuple[Operand, int | float]:
    """What is padded, and the constant that it is padded with."""
    source, filler = at.operand(0, "input"), at.fixed_operand(position, "padding value")
    at.require_same_dtype(source, at.operand(position, "padding value"))
    at.require(filler.size == 1, f"{filler.size} padding values")
    return source, filler.reshape(()).item()


def emit_spread_and_padded(at: Conversion, name: str, borders: Borders, value: int | float) -> str:
    """Elements with others between them and around them, or less of them."""
    for axis, step in enumerate(borders.steps):
        name = emit_spread(at, name, axis, step, value)
    before, after = borders.before, borders.after
    first = tuple(max(-number, 0) for number in before)
    last = (max(-number, 0) for number in after)
    extents = at.type_of(name).fixed_shape
    size = tuple(extent - cut - rest for extent, cut, rest in zip(extents, first, last, strict=True))
    at.require(min(size, default=1) >= 1, f"paddings {list(before)} and {list(after)} leave nothing")
    name = emit_slice(at, name, first, size, (1,) * len(size))
    front, back = (tuple(max(number, 0) for number in numbers) for numbers in (before, after))
    return emit_padded(at, name, front, back, value)


def emit_spread(at: Conversion, name: str, axis: int, step: int, value: int | float) -> str:
    """Elements `step` apart along an axis, with a constant between them."""
    shape = at.type_of(name).fixed_shape
    extent, rest = shape[axis], prod(shape[axis + 1 :])
    if step == 1 or extent == 1:
        return name
    outer = prod(shape[:axis])
    blocks = emit_padded(
        at, at.reshape(name, (outer * extent, 1, rest), "single"), (0, 0, 0), (0, step - 1, 0), value
    )
    result = (extent - 1) * step + 1
    rows = at.reshape(blocks, (outer, extent * step, rest), "rows")
    taken = emit_slice(at, rows, (0, 0, 0), (outer, result, rest), (1, 1, 1))
    return at.reshape(taken, (*shape[:axis], result, *shape[axis + 1 :]), "spread")
