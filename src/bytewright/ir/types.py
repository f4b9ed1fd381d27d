"""Element types, extents and tensor types: what both intermediate representations agree on."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from math import gcd, lcm, prod

import numpy as np

from bytewright.ir.scope import Scope, join_scopes

# Letters of the module `struct`, by numpy's kind of a type, in the order of its bytes: 1, 2, 4 and 8.
_FORMATS = {"b": "?", "i": "bhiq", "u": "BHIQ", "f": " efd"}


class DType(Enum):
    """Element types, by the spelling that printed IR uses.

    Attributes:
        numpy: The numpy type of the same width, little-endian.
        format: What the module `struct` calls it.
        size_bytes: Bytes of one element.
        is_integer: True for the integer types that arithmetic is defined on.
        bounds: Least and greatest value of an integer type; others have none.
    """

    BOOL = "bool"
    I8 = "i8"
    U8 = "u8"
    I16 = "i16"
    I32 = "i32"
    U32 = "u32"
    I64 = "i64"
    U64 = "u64"
    F32 = "f32"
    F64 = "f64"

    def __init__(self, spelling: str) -> None:
        # A compile asks for these some hundred thousand times, so they are no properties.
        kind = "|b1" if spelling == "bool" else f"<{spelling[0]}{int(spelling[1:]) // 8}"
        self.numpy: np.dtype[np.generic] = np.dtype(kind)
        self.size_bytes: int = self.numpy.itemsize
        self.format: str = _FORMATS[self.numpy.kind][self.size_bytes.bit_length() - 1]
        self.is_integer: bool = self.numpy.kind in "iu"
        if self.is_integer:
            self.bounds: tuple[int, int] = int(np.iinfo(kind).min), int(np.iinfo(kind).max)

    @staticmethod
    def of(dtype: np.dtype[np.generic]) -> "DType":
        """The member that an array's type is."""
        return next(each for each in DType if each.numpy == dtype)

    # Nodes are hashed in great numbers. Members exist once; `Enum` would hash their names, in Python.
    __hash__ = object.__hash__


EXPRESSION_TYPES = (DType.I16, DType.I32, DType.I64, DType.F32, DType.F64)
"""Types that expressions compute in; what is narrower is widened first."""


@dataclass(frozen=True, slots=True)
class Symbol:
    """An extent that is known only at run time, with the bounds that planning relies on."""

    name: str
    lower: int
    upper: int

    def __str__(self) -> str:
        return f"{self.name}[{self.lower}..{self.upper}]"


@dataclass(frozen=True, slots=True)
class Quotient:
    """floor((scale * of + offset) / divisor): an extent that follows from one which is known only at run time.

    It is never less for more of the symbol. `quotient` and `multiple` make it. It is of a quotient where that is
    rounded and then taken several times, with an offset of 0 or more that is less than the scale.
    """

    of: "Symbol | Quotient"
    scale: int
    offset: int
    divisor: int

    @property
    def symbol(self) -> Symbol:
        """The extent that is known only at run time."""
        return self.of.symbol if isinstance(self.of, Quotient) else self.of

    def at(self, value: int) -> int:
        """The extent where the symbol has this value."""
        return (self.scale * extent_at(self.of, value) + self.offset) // self.divisor

    @property
    def lower(self) -> int:
        """The least value."""
        return self.at(self.symbol.lower)

    @property
    def upper(self) -> int:
        """The greatest value."""
        return self.at(self.symbol.upper)

    @property
    def period(self) -> int:
        """After so many more of the symbol it has grown by the same, from wherever that begins."""
        return self.divisor * (self.of.period if isinstance(self.of, Quotient) else 1)

    @property
    def is_in_lowest_terms(self) -> bool:
        """Whether it is what `quotient` makes of it: divided by at least 1, and not the same in every run."""
        return self.scale >= 1 <= self.divisor and quotient(self) == self

    @property
    def fits_i32(self) -> bool:
        """Whether C computes one that is at least 1 in 32 bits: each product, and that with the offset."""
        most = self.scale * self.of.upper + max(self.offset, 0)
        return most <= DType.I32.bounds[1] and (isinstance(self.of, Symbol) or self.of.fits_i32)

    def text(self, called: str) -> str:
        """`(2*called-3)/4`, with what the symbol is called; so C reads it as well."""
        of = f"({self.of.text(called)})" if isinstance(self.of, Quotient) else called
        scale = "" if self.scale == 1 else f"{self.scale}*"
        offset = f"{self.offset:+d}" if self.offset else ""
        divisor = "" if self.divisor == 1 else f"/{self.divisor}"
        return f"({scale}{of}{offset}){divisor}"

    def __str__(self) -> str:
        return self.text(str(self.symbol))


OpenExtent = Symbol | Quotient
Extent = int | OpenExtent
# Of one tensor: kernels count elements in 32 bits.
MAX_ELEMENTS = (1 << 31) - 1


def upper_bound(extent: Extent) -> int:
    """The largest value that an extent can take."""
    return extent if isinstance(extent, int) else extent.upper


def lower_bound(extent: Extent) -> int:
    """The least value that an extent can take."""
    return extent if isinstance(extent, int) else extent.lower


def symbol_in(extent: Extent) -> Symbol | None:
    """The symbol that an extent depends on."""
    return extent.symbol if isinstance(extent, Quotient) else extent if isinstance(extent, Symbol) else None


def symbols_in(extents: Iterable[Extent]) -> tuple[Symbol, ...]:
    """The symbols that some extents depend on, each once."""
    found = map(symbol_in, extents)
    return tuple(dict.fromkeys(symbol for symbol in found if symbol is not None))


def extent_at(extent: Extent, value: int) -> int:
    """The extent where its symbol, if it has one, has this value."""
    if isinstance(extent, Quotient):
        return extent.at(value)
    return value if isinstance(extent, Symbol) else extent


def extreme_values(*extents: Extent) -> Iterator[tuple[int, ...]]:
    """What the extents are together in the first runs and in the last.

    What is linear in them grows by the same with each period of their divisors, so that it is least, or greatest, here.

    Raises:
        ValueError: They depend on several symbols.
    """
    symbols = {symbol for each in extents if (symbol := symbol_in(each)) is not None}
    if len(symbols) > 1:
        raise ValueError(f"[{format_shape(extents)}] depend on several open extents")
    for symbol in symbols or {Symbol("", 1, 1)}:
        period = lcm(*(each.period for each in extents if isinstance(each, Quotient)))
        first = range(symbol.lower, min(symbol.lower + period, symbol.upper + 1))
        last = range(max(symbol.upper - period + 1, first.stop), symbol.upper + 1)
        for value in (*first, *last):
            yield tuple(extent_at(each, value) for each in extents)


def extent_text(extent: Extent, called: Callable[[str], str] = str) -> int | str:
    """The extent as C has it, with what symbols are called there."""
    if isinstance(extent, Quotient):
        return extent.text(called(extent.symbol.name))
    return called(extent.name) if isinstance(extent, Symbol) else extent


def quotient(extent: Extent, offset: int = 0, divisor: int = 1) -> Extent:
    """floor((extent + offset) / divisor), in lowest terms; a number where that is the same in every run."""
    if isinstance(extent, int):
        return (extent + offset) // divisor
    known = extent if isinstance(extent, Quotient) else Quotient(extent, 1, 0, 1)
    # floor((floor(a / d) + b) / e) is floor((a + b * d) / (d * e)), and a common factor of scale and divisor leaves no
    # other floor of the offset.
    offset, divisor = known.offset + offset * known.divisor, known.divisor * divisor
    common = gcd(known.scale, divisor)
    return _of(known.of, known.scale // common, offset // common, divisor // common)


def _of(extent: OpenExtent, scale: int, offset: int, divisor: int) -> Extent:
    """floor((scale * extent + offset) / divisor) in lowest terms, where scale and divisor have no common one."""
    if isinstance(extent, Quotient):
        if scale == 1:
            return quotient(extent, offset, divisor)
        # What is a multiple of the scale is so much more of the extent.
        more, offset = divmod(offset, scale)
        moved = quotient(extent, more)
        assert isinstance(moved, Quotient)
        extent = moved
    found = Quotient(extent, scale, offset, divisor)
    if found.lower == found.upper:
        return found.lower
    return extent if found == Quotient(extent, 1, 0, 1) else found


def multiple(extent: Extent, factor: int) -> Extent:
    """So many times the extent, at least once."""
    if isinstance(extent, int):
        return extent * factor
    known = extent if isinstance(extent, Quotient) else Quotient(extent, 1, 0, 1)
    if known.divisor > 1:
        return _of(known, factor, 0, 1)
    return _of(known.of, known.scale * factor, known.offset * factor, 1)


def total(first: Extent, second: Extent) -> Extent | None:
    """The sum; None where that is no quotient."""
    if isinstance(second, int):
        return quotient(first, second)
    if isinstance(first, int):
        return quotient(second, first)
    (one, scale, offset), (other, more, behind) = map(_as_sum, (first, second))
    return _of(one, scale + more, offset + behind, 1) if one == other else None


def _as_sum(extent: OpenExtent) -> tuple[OpenExtent, int, int]:
    """An extent, how often it is there, and what is added, that come to this one."""
    if isinstance(extent, Symbol):
        return extent, 1, 0
    one, scale, behind = _as_sum(extent.of)
    offset = extent.offset + extent.scale * behind
    if extent.divisor == 1:
        return one, extent.scale * scale, offset
    more, rest = divmod(offset, extent.divisor)
    found = quotient(multiple(one, extent.scale * scale), rest, extent.divisor)
    assert not isinstance(found, int)
    return found, 1, more


def elements_of(shape: Sequence[Extent]) -> tuple[int, list[Extent]]:
    """How many there are: a number, times the open extents in their order; one of them with the number in it."""
    number, opened = 1, list[Extent]()
    for extent in shape:
        match extent:
            case int():
                number *= extent
            case Quotient(of=of, scale=scale, offset=0, divisor=1):
                number *= scale
                opened.append(of)
            case _:
                opened.append(extent)
    return (1, [multiple(opened[0], number)]) if len(opened) == 1 and number else (number, opened)


def replace_symbol(extent: Extent, by: Extent) -> Extent:
    """The extent with another in place of its symbol."""
    if not isinstance(extent, Quotient):
        return by if isinstance(extent, Symbol) else extent
    return quotient(multiple(replace_symbol(extent.of, by), extent.scale), extent.offset, extent.divisor)


def format_shape(shape: tuple[Extent, ...]) -> str:
    """`1x25x5x64`, as in printed types."""
    return "x".join(str(extent) for extent in shape)


@dataclass(frozen=True, slots=True)
class VirtualDevice:
    """Where a value is meant to be: device, target and memory scope, each part possibly still unknown."""

    device: str | None = None
    target: str | None = None
    scope: Scope | None = None

    def __str__(self) -> str:
        parts = [f"@{self.device or '?'}"]
        if self.target is not None:
            parts.append(f"target={self.target}")
        if self.scope is not None:
            parts.append(f'"{self.scope}"')
        return " ".join(parts)


UNPLACED = VirtualDevice()


def join_places(first: VirtualDevice, second: VirtualDevice) -> VirtualDevice:
    """The place that is both: an open part takes the other's, equal parts join, scopes join by intersection.

    Raises:
        ValueError: There is none; the message names the parts that contradict each other.
    """
    for what, a, b in (
        ("devices", first.device, second.device),
        ("targets", first.target, second.target),
    ):
        if None not in (a, b) and a != b:
            raise ValueError(f"{what} '{a}' and '{b}' are not the same")
    scope = join_scopes(first.scope, second.scope)
    return VirtualDevice(first.device or second.device, first.target or second.target, scope)


@dataclass(frozen=True, slots=True)
class TensorType:
    """Shape, element type and, once placed, virtual device of a value."""

    shape: tuple[Extent, ...]
    dtype: DType
    place: VirtualDevice = UNPLACED

    @property
    def num_elements(self) -> int:
        """Number of elements, with every symbolic extent at its upper bound."""
        return prod(upper_bound(extent) for extent in self.shape)

    @property
    def sample_elements(self) -> int:
        """Number of elements of one sample, where the batch is open."""
        return prod(extent for extent in self.shape if isinstance(extent, int))

    @property
    def size_bytes(self) -> int:
        """Bytes of the tensor, with every symbolic extent at its upper bound."""
        return self.num_elements * self.dtype.size_bytes

    @property
    def fixed_shape(self) -> tuple[int, ...]:
        """The shape with every symbolic extent at its upper bound."""
        return tuple(upper_bound(extent) for extent in self.shape)

    def __str__(self) -> str:
        dims = format_shape(self.shape) + "x" if self.shape else ""
        place = "" if self.place == UNPLACED else f", {self.place}"
        return f"tensor<{dims}{self.dtype.value}{place}>"
