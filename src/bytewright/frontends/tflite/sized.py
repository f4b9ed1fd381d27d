"""Numbers that the run computes where a file states how large something is: each becomes a size that the data decides.

A shape is put together of parts, so each of its numbers is looked at by itself: it is known, or so many times a number
that the run computes, and more. What is made of one such number has one extent, whichever operators it comes to.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from bytewright import ir
from bytewright.base.c_names import unique_name
from bytewright.frontends.tflite.bounds import SIZE as SAID
from bytewright.frontends.tflite.conversion import Conversion
from bytewright.frontends.tflite.kernels_of import refuse_kernel
from bytewright.frontends.tflite.logic import emit_choice, emit_either, emit_equal
from bytewright.ops.arithmetic.numerics import Numerics
from bytewright.ops.cast import TflCast
from bytewright.ops.checks import WIDE
from bytewright.ops.data import Concat, Gather, Identity, Reshape, Slice, Tile, Transpose
from bytewright.ops.elementwise import WrappingAdd, WrappingMul, WrappingSub
from bytewright.ops.sizes import SIZE, StatedSize

# Operators behind a number, and elements of what it is taken from, that are looked through.
_MOST_BEHIND = 32
_MOST_ELEMENTS = 4096

Element = tuple[str, int]
"""A value of the graph, and the number of one of its elements."""


@dataclass(frozen=True, slots=True)
class Number:
    """So many times an element of a value that the run computes, and more; known where that is no time at all.

    Attributes:
        own: The element that the number itself is.
    """

    factor: int
    offset: int
    of: Element | None = None
    own: Element | None = field(default=None, compare=False)

    @property
    def is_known(self) -> bool:
        """Whether it is the same in every run."""
        return self.of is None

    def plus(self, other: "Number", sign: int = 1) -> "Number | None":
        """The sum, or the difference; None if it is no such number."""
        if None not in (self.of, other.of) and self.of != other.of:
            return None
        return _number(
            self.factor + sign * other.factor, self.offset + sign * other.offset, self.of or other.of
        )

    def times(self, other: "Number") -> "Number | None":
        """The product; None if it is no such number."""
        by, own = (self, other) if self.is_known else (other, self)
        return _number(by.offset * own.factor, by.offset * own.offset, own.of) if by.is_known else None


def _number(factor: int, offset: int, of: Element | None) -> Number | None:
    return None if factor < 0 else Number(factor, offset, of if factor else None)


def numbers_operand(at: Conversion, position: int, role: str) -> list[Number]:
    """What is known of the numbers of an operand, int32 or int64."""
    operand = at.index_operand(position, role)
    if operand.data is not None:
        return [Number(0, number) for number in at.integers_operand(position, role)]
    if at.numerics is Numerics.TFLM:
        refuse_kernel(at, f" with a {role} that the run computes", (Numerics.LITERT_REF,))
    return numbers_of(at, at.value_of(operand, role))


def number_of(name: str) -> Number:
    """The one element of a value, whatever it is computed of."""
    return Number(1, 0, (name, 0))


def numbers_of(at: Conversion, name: str) -> list[Number]:
    """What is known of the elements of a value, int32 or int64."""
    found = _Looking(at).numbers(name, 0)
    return [replace(number, own=(name, place)) for place, number in enumerate(found)]


class _Looking:
    """One look through the operators behind a value."""

    def __init__(self, at: Conversion) -> None:
        self.at = at
        self.found: dict[str, list[Number]] = {}

    def numbers(self, name: str, depth: int) -> list[Number]:
        if name not in self.found:
            self.found[name] = self._numbers(name, depth)
        return self.found[name]

    def _numbers(self, name: str, depth: int) -> list[Number]:
        data, node = self.at.data_of(name), self.at.graph.producers.get(name)
        if data is not None:
            return [Number(0, int(each)) for each in data.array.reshape(-1)]
        own = [Number(1, 0, (name, n)) for n in range(self.at.type_of(name).num_elements)]
        if node is None or depth >= _MOST_BEHIND or not all(map(self._is_small, node.inputs)):
            return own
        match node.operation:
            case Concat() | Identity() | Reshape() | Slice() | Transpose():
                return self._moved(node, node.inputs, depth)
            case Gather() if self.at.data_of(node.inputs[1]) is not None:
                return self._moved(node, node.inputs[:1], depth)
            case TflCast() if self.at.type_of(node.inputs[0]).dtype in WIDE:
                return self.numbers(node.inputs[0], depth + 1)
            case WrappingAdd() | WrappingSub() | WrappingMul():
                found = self._computed(node, depth)
                return [computed or each for computed, each in zip(found, own, strict=True)]
            case _:
                return own

    def _is_small(self, name: str) -> bool:
        type_ = self.at.type_of(name)
        return type_.dtype in WIDE and type_.num_elements <= _MOST_ELEMENTS

    def _places(self, names: Sequence[str], depth: int) -> tuple[list[Number], list[np.ndarray]]:
        """The numbers of some values one behind the other, and in place of each element the place of its own."""
        numbers: list[Number] = []
        places: list[np.ndarray] = []
        for name in names:
            own = self.numbers(name, depth + 1)
            first = len(numbers)
            shape = self.at.type_of(name).fixed_shape
            places.append(np.arange(first, first + len(own), dtype=np.int64).reshape(shape))
            numbers += own
        return numbers, places

    def _moved(self, node: ir.Node, names: Sequence[str], depth: int) -> list[Number]:
        numbers, places = self._places(names, depth)
        others = (self.at.data_of(name) for name in node.inputs[len(names) :])
        (moved,) = node.operation.evaluate((*places, *(each.array for each in others if each is not None)))
        return [numbers[place] for place in moved.reshape(-1)]

    def _computed(self, node: ir.Node, depth: int) -> list[Number | None]:
        numbers, places = self._places(node.inputs, depth)
        pairs = zip(*(each.reshape(-1) for each in np.broadcast_arrays(*places)), strict=True)
        operands = [(numbers[first], numbers[second]) for first, second in pairs]
        if isinstance(node.operation, WrappingMul):
            return [first.times(second) for first, second in operands]
        sign = 1 if isinstance(node.operation, WrappingAdd) else -1
        return [first.plus(second, sign) for first, second in operands]


def sized(
    at: Conversion, number: Number, what: str, most: int | None = None, *, is_sure: bool = False
) -> int:
    """What a number that states an extent is in this graph.

    Args:
        at: The operator.
        number: Known, or of an element of which the extent is a size that the data decides.
        what: It says, for people.
        most: The most that is possible, as shapes say it,
        is_sure: and whether data cannot ask for more or less.
    """
    if number.of is None:
        return number.offset
    number, roots = root_of(number), at.graph.bounds.roots
    assert number.of is not None
    if number.of not in roots:
        roots[number.of] = unique_name(at.prefix, {*roots.values()})
    name = roots[number.of]
    natural = None if most is None else (most - number.offset) // number.factor
    at.require(natural is None or natural >= 0, f"{number.offset} elements or more, of {most}")
    count = at.size(what, natural, is_sure=is_sure, name=name)
    if f"{name}/{SAID}" not in at.graph.types and f"{name}/{SAID}" not in at.types:
        at.emit_size(name, StatedSize(count), element(at, *number.of), SIZE)
    return number.factor * count + number.offset


def demand(at: Conversion, condition: str, what: str) -> None:
    """Refuses runs in which a truth value of shape [1] does not hold: a size says 1 in all others.

    Args:
        at: The operator.
        condition: The truth value.
        what: The run alone knows, for people.
    """
    roots = at.graph.bounds.roots
    if (condition, 0) not in roots:
        roots[condition, 0] = unique_name(f"{at.prefix}_fits", {*roots.values()})
    name = roots[condition, 0]
    count = at.size(what, 1, name=name, least=1)
    yes, no = (at.constant("fits", np.array([each], np.int32), ir.DType.I32) for each in (1, -1))
    at.emit_size(name, StatedSize(count), emit_choice(at, condition, yes, no), SIZE)


def demand_extent(at: Conversion, axis: int, *allowed: int) -> None:
    """Refuses runs in which a number of a shape, the second operand, is none of these."""
    stated = element(at, at.value_of(at.operand(1, "shape"), "shape"), axis)
    stated = at.reshape(stated, (1,), "stated")
    first, *others = (emit_equal(at, stated, wide_constant(at, stated, each), "is_it") for each in allowed)
    for other in others:
        first = emit_either(at, first, other, "fits")
    demand(at, first, "whether the shape fits")


def is_size(at: Conversion, number: Number) -> bool:
    """Whether a number of the run is one of a size that other operators have."""
    return root_of(number).of in at.graph.bounds.roots


def is_joined(at: Conversion, number: Number) -> bool:
    """Whether all sizes that are made of a number of the run are taken for one: the number itself."""
    return root_of(number).of in at.graph.bounds.joined


def number_made(
    at: Conversion, of: Number | None, key: tuple[object, ...], emit: Callable[[], str]
) -> Number:
    """What `emit` makes of numbers of the run, once for all operators that make the same.

    Args:
        at: The operator.
        of: The number that it is in runs in which nothing is cut off, if there is one.
        key: What it is made of, and how.
        emit: Gives a value of shape [1].
    """
    element = None if of is None else root_of(of).of
    if element is not None:
        at.graph.bounds.made.setdefault(element, set()).add(key)
    if key not in at.graph.made:
        at.graph.made[key] = emit()
    return number_of(at.graph.made[key])


def root_of(number: Number) -> Number:
    """The number as extents are made of it: what is less than another is one of its own."""
    return Number(1, 0, number.own) if number.offset < 0 and number.own is not None else number


def most_of(at: Conversion, number: Number) -> int:
    """The most that an extent is in any graph, behind `sized`."""
    number, bounds = root_of(number), at.graph.bounds
    if number.of is None:
        return number.offset
    return number.factor * bounds.counted[bounds.roots[number.of]].extent.upper + number.offset


def element(at: Conversion, name: str, place: int) -> str:
    """One element of a value, of shape [1]; the value where it has no other."""
    count = at.type_of(name).num_elements
    return at.slice(at.reshape(name, (count,), "numbers"), (place,), (1,), "number") if count > 1 else name


def wide_constant(at: Conversion, like: str, number: int) -> str:
    """A number beside one of the graph."""
    dtype = at.type_of(like).dtype
    return at.constant("number", np.array([number], dtype.numpy), dtype)


def sizes_operand(at: Conversion, position: int, role: str) -> tuple[int, ...]:
    """An operand of extents in this graph, of which the run may compute some."""
    return sizes_of(at, numbers_operand(at, position, role), role)


def sizes_of(at: Conversion, numbers: Sequence[Number], role: str) -> tuple[int, ...]:
    """Extents in this graph, of which the run computes some."""
    return tuple(sized(at, number, f"the {role}") for number in numbers)


def cut(
    at: Conversion,
    name: str,
    size: Sequence[int],
    role: str,
    start: tuple[int, ...] = (),
    stride: tuple[int, ...] = (),
) -> str:
    """Elements along each axis, the first ones in order unless said otherwise, as many as the data decides."""
    part = Slice(start or (0,) * len(size), tuple(size), stride or (1,) * len(size))
    return at.emit_all(part, (name,), (role,))[0]


def repeated(at: Conversion, name: str, multiples: Sequence[int]) -> str:
    """A value as often along each axis as sizes say that the data decides."""
    return at.emit_all(Tile(tuple(multiples)), (name,), ("repeated",))[0]
