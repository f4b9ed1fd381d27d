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
    """floor((scale * symbol + offset) / divisor): an extent that follows from one which is known only at run time.

    It is never less for more of the symbol. `quotient` makes it.
    """

    symbol: Symbol
    scale: int
    offset: int
    divisor: int

    def at(self, value: int) -> int:
        """The extent where the symbol has this value."""
        return (self.scale * value + self.offset) // self.divisor

    @property
    def lower(self) -> int:
        """The least value."""
        return self.at(self.symbol.lower)

    @property
    def upper(self) -> int:
        """The greatest value."""
        return self.at(self.symbol.upper)

    @property
    def is_in_lowest_terms(self) -> bool:
        """Whether it is what `quotient` makes of it: divided by at least 1, and not the same in every run."""
        return self.scale >= 1 <= self.divisor and quotient(self) == self

    @property
    def fits_i32(self) -> bool:
        """Whether C computes one that is at least 1 in 32 bits: the product, and that with the offset."""
        return self.scale * self.symbol.upper + max(self.offset, 0) <= DType.I32.bounds[1]

    def text(self, of: str) -> str:
        """`(2*of-3)/4`, with what the symbol is called; so C reads it as well."""
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
        period = lcm(*(each.divisor for each in extents if isinstance(each, Quotient)))
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
    found = Quotient(known.symbol, known.scale // common, offset // common, divisor // common)
    if found.lower == found.upper:
        return found.lower
    return found.symbol if found == Quotient(found.symbol, 1, 0, 1) else found


def multiple(extent: Extent, factor: int) -> Extent | None:
    """So many times the extent; None where that is no quotient."""
    if isinstance(extent, int):
        return extent * factor
    known = extent if isinstance(extent, Quotient) else Quotient(extent, 1, 0, 1)
    if factor == 1:
        return extent
    if known.divisor > 1:
        return None
    return Quotient(known.symbol, known.scale * factor, known.offset * factor, 1)


def total(first: Extent, second: Extent) -> Extent | None:
    """The sum; None where that is no quotient."""
    if isinstance(second, int):
        return quotient(first, second)
    if isinstance(first, int):
        return quotient(second, first)
    one, other = (each if isinstance(each, Quotient) else Quotient(each, 1, 0, 1) for each in (first, second))
    if one.symbol != other.symbol or (one.divisor, other.divisor) != (1, 1):
        return None
    return quotient(Quotient(one.symbol, one.scale + other.scale, one.offset + other.offset, 1))


def elements_of(shape: Sequence[Extent]) -> tuple[int, list[Extent]]:
    """How many there are: a number, times the open extents in their order; one of them with the number in it."""
    number, opened = 1, list[Extent]()
    for extent in shape:
        match extent:
            case int():
                number *= extent
            case Quotient(symbol=symbol, scale=scale, offset=0, divisor=1):
                number *= scale
                opened.append(symbol)
            case _:
                opened.append(extent)
    whole = multiple(opened[0], number) if len(opened) == 1 and number else None
    return (number, opened) if whole is None else (1, [whole])


def replace_symbol(extent: Extent, by: Extent) -> Extent | None:
    """The extent with another in place of its symbol; None where that is no quotient."""
    if not isinstance(extent, Quotient):
        return by if isinstance(extent, Symbol) else extent
    scaled = multiple(by, extent.scale)
    return None if scaled is None else quotient(scaled, extent.offset, extent.divisor)


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
