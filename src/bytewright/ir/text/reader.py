"""Reads the tokens that all of printed IR consists of: words, names, numbers, types, places, attribute values.

A comment begins with `#` and ends with its line. The reader remembers where the nodes that it was told of began.
"""

import json
import re
from bisect import bisect_right
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, NoReturn, TypeVar

import numpy as np

from bytewright import ir
from bytewright.ir.analyses.depth import MAX_DEPTH
from bytewright.ir.text.attribute_types import attribute_faults
from bytewright.ir.text.notation import GRAPH_NAME, PRIM_NAME, parse_where
from bytewright.ir.text.words import RESERVED, Word
from bytewright.ir.where import NOWHERE, Where

Item = TypeVar("Item")

_MOST_DIGITS = 400

SPACE = re.compile(r"(?:\s+|#[^\n]*)*")
STRING = re.compile(r'"(?:\\.|[^"\\])*"')
NUMBER = re.compile(r"-?(?:(?:inf|nan)(?![\w/])|\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)")
_FIXED_EXTENT = re.compile(r"(\d+)x")
_SYMBOL = re.compile(r"([A-Za-z_]\w*)\[(-?\d+)\.\.(-?\d+)\]")
_QUOTIENT = re.compile(r"\((?:(\d+)\*)?")
_QUOTIENT_END = re.compile(r"([+-]\d+)?\)(?:/(\d+))?")
_TIMES = re.compile("x")
_DTYPE = re.compile(
    "|".join(sorted((dtype.value for dtype in ir.DType), key=lambda name: (-len(name), name)))
)
_WORD = re.compile(r"[A-Za-z_]\w*")
_PLACE_WORD = re.compile(r'[^\s">,]+')
_DIGEST = re.compile(r"[0-9a-f]{12}")


@dataclass(frozen=True, slots=True)
class Position:
    """A place in a text; both count from 1."""

    line: int
    column: int

    def __str__(self) -> str:
        return f"line {self.line}, column {self.column}"


class ParseError(ValueError):
    """The text is not IR.

    Attributes:
        position: Where.
        reason: Why, without the position.
        help: What to write instead, if that is known.
    """

    def __init__(self, position: Position, reason: str, help_text: str | None = None) -> None:
        super().__init__(f"{position}: {reason}")
        self.position = position
        self.reason = reason
        self.help = help_text


@dataclass(frozen=True, slots=True)
class Constants:
    """The values that a text refers to, by the digest of their bytes or by a name."""

    by_digest: Mapping[str, ir.TensorData] = field(default_factory=dict[str, ir.TensorData])
    by_name: Mapping[str, ir.TensorData] = field(default_factory=dict[str, ir.TensorData])


class Reader:
    """A text and how far it was read.

    Args:
        text: IR.
        constants: What the text refers to.
    """

    def __init__(self, text: str, constants: Constants) -> None:
        self._text = text
        self._constants = constants
        self._starts: dict[int, tuple[object, int]] = {}
        self._lines = [0, *(found.end() for found in re.finditer(r"\n", text))]
        self._depth = 0
        self.position = 0
        self._skip()

    def _skip(self) -> None:
        found = SPACE.match(self._text, self.position)
        assert found is not None
        self.position = found.end()

    # Places in the text

    def place(self, offset: int) -> Position:
        """Line and column of an offset."""
        line = bisect_right(self._lines, offset)
        return Position(line, offset - self._lines[line - 1] + 1)

    def mark(self, start: int, node: Item) -> Item:
        """Remembers where a node began."""
        self._starts[id(node)] = (node, start)
        return node

    def place_of(self, node: object) -> Position | None:
        """Where a node that was marked began; None for any other."""
        known, start = self._starts.get(id(node), (None, 0))
        return self.place(start) if known is node else None

    def fail(self, expected: str) -> NoReturn:
        """Refuses what stands at the present position."""
        rest = self._text[self.position : self.position + 30].partition("\n")[0]
        found = f"'{rest}'" if rest else "the end of the text"
        self.refuse(f"expected {expected}, found {found}")

    def refuse(self, reason: str, start: int | None = None, help_text: str | None = None) -> NoReturn:
        """Refuses what was read from an offset on, or what stands at the present position."""
        raise ParseError(self.place(self.position if start is None else start), reason, help_text)

    @contextmanager
    def nested(self) -> Generator[None, None, None]:
        """What is read inside is one level deeper."""
        self._depth += 1
        if self._depth > MAX_DEPTH:
            self.refuse(f"this is more than {MAX_DEPTH} levels deep")
        yield
        self._depth -= 1

    @property
    def at_end(self) -> bool:
        """True if nothing is left."""
        return self.position == len(self._text)

    # Tokens

    def match(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """What the pattern matches here, read; or None, with nothing read."""
        found = pattern.match(self._text, self.position)
        if found is not None:
            self.position = found.end()
            self._skip()
        return found

    def sees(self, token: str) -> bool:
        """True if the token stands here; a word must end with it."""
        end = self.position + len(token)
        if not self._text.startswith(token, self.position):
            return False
        is_word = token[-1].isalnum() or token[-1] == "_"
        return not (is_word and re.match(r"[\w/]", self._text[end : end + 1]))

    def sees_match(self, pattern: re.Pattern[str]) -> bool:
        """True if the pattern matches here."""
        return pattern.match(self._text, self.position) is not None

    def accept(self, token: str) -> bool:
        """Reads the token if it stands here."""
        if not self.sees(token):
            return False
        self.position += len(token)
        self._skip()
        return True

    def start_of(self, token: str) -> int | None:
        """Reads the token and tells where it began; None if another stands here."""
        start = self.position
        return start if self.accept(token) else None

    def expect(self, token: str) -> None:
        """Reads the token."""
        if not self.accept(token):
            self.fail(f"'{token}'")

    def items(self, close: str, read: Callable[[], Item]) -> tuple[Item, ...]:
        """Items separated by commas, up to and with the closing token; a comma may stand before it."""
        found: list[Item] = []
        while not self.accept(close):
            found.append(read())
            if not self.accept(","):
                self.expect(close)
                break
        return tuple(found)

    def parenthesised(self, read: Callable[[], Item]) -> tuple[Item, ...]:
        """Items in parentheses."""
        self.expect("(")
        return self.items(")", read)

    def string(self) -> str:
        """A quoted text."""
        start = self.position
        found = self.match(STRING) or self.fail("a text in quotes")
        try:
            text = str(json.loads(found[0]))
            text.encode()
        except ValueError:
            self.refuse("this text in quotes has an escape or a character that JSON does not admit", start)
        return text

    def word(self) -> str:
        """A bare word."""
        found = self.match(_WORD) or self.fail("a word")
        return found[0]

    def integer(self) -> int:
        """A whole number."""
        start = self.position
        value = self.number()
        return value if isinstance(value, int) else self.refuse(f"{value} is not a whole number", start)

    def number(self) -> int | float:
        """A number; it is a float if it is written like one."""
        start = self.position
        found = self.match(NUMBER) or self.fail("a number")
        return self.value_of(found[0], start)

    def value_of(self, text: str, start: int) -> int | float:
        """The number that was read as a text from an offset on."""
        if len(text) > _MOST_DIGITS:
            self.refuse(f"a number has at most {_MOST_DIGITS} digits, not {len(text)}", start)
        return int(text) if re.fullmatch(r"-?\d+", text) else float(text)

    # Names

    def prim_name(self) -> str:
        """A name of a PrimFunc, buffer or variable."""
        if self.sees('"'):
            return self.string()
        found = PRIM_NAME.match(self._text, self.position)
        if found is None:
            self.fail("a name")
        if found[0] in RESERVED:
            self.refuse(f"'{found[0]}' is a word of the language", help_text=f'as a name, write "{found[0]}"')
        self.match(PRIM_NAME)
        return found[0]

    def graph_name(self) -> str:
        """A name of the graph, with its percent sign."""
        if not self._text.startswith("%", self.position):
            self.fail("'%' and a name")
        self.position += 1
        if self.sees('"'):
            return self.string()
        found = self.match(GRAPH_NAME) or self.fail("a name")
        return found[0]

    # Types and places

    def dtype(self) -> ir.DType:
        """An element type."""
        found = self.match(_DTYPE) or self.fail("an element type")
        return ir.DType(found[0])

    def shape_and_dtype(self) -> tuple[tuple[ir.Extent, ...], ir.DType]:
        """`1x64xi8`."""
        shape: list[ir.Extent] = []
        while True:
            if found := self.match(_FIXED_EXTENT):
                shape.append(self._in_extent(found, 1))
            elif self.sees_match(_SYMBOL) or self.sees("("):
                shape.append(self._open_extent())
                if self.match(_TIMES) is None:
                    self.fail("'x'")
            else:
                return tuple(shape), self.dtype()

    def _open_extent(self) -> ir.OpenExtent:
        """`time[1..200]`, or `(2*time[1..200]-3)/4`, with another such one in parentheses in place of the symbol."""
        if found := self.match(_SYMBOL):
            return ir.Symbol(found[1], self._in_extent(found, 2), self._in_extent(found, 3))
        begin = self.match(_QUOTIENT) or self.fail("an extent")
        with self.nested():
            is_of_quotient = self.accept("(")
            of = self._open_extent()
        if is_of_quotient:
            self.expect(")")
        end = self.match(_QUOTIENT_END) or self.fail("')'")
        extent = ir.Quotient(
            of, self._in_extent(begin, 1, 1), self._in_extent(end, 1, 0), self._in_extent(end, 2, 1)
        )
        if not extent.is_in_lowest_terms:
            self.refuse(f"'{extent}' is not in lowest terms", begin.start())
        return extent

    def _in_extent(self, found: re.Match[str], group: int, otherwise: int = 0) -> int:
        """The number that a group has; the other one where there is none."""
        return otherwise if found[group] is None else int(self.value_of(found[group], found.start()))

    def scope(self) -> ir.Scope:
        """A scope in quotes."""
        start = self.position
        text = self.string()
        try:
            return ir.parse_scope(text)
        except ValueError as error:
            self.refuse(str(error), start)

    def tensor_type(self) -> ir.TensorType:
        """`tensor<1x64xi8, @cpu "global.sram">`."""
        self.expect(f"{Word.TENSOR}<")
        shape, dtype = self.shape_and_dtype()
        place = ir.VirtualDevice()
        if self.accept(","):
            self.expect("@")
            device = None if self.accept("?") else self._place_word()
            target = self._place_word() if self.accept(f"{Word.TARGET}=") else None
            place = ir.VirtualDevice(device, target, self.scope() if self.sees('"') else None)
        self.expect(">")
        return ir.TensorType(shape, dtype, place)

    def _place_word(self) -> str:
        found = self.match(_PLACE_WORD) or self.fail("a device or a target")
        return found[0]

    def tensor_data(self) -> ir.TensorData:
        """`data<64xi32>`, then the digest of its bytes, a name in quotes, or the values: `[1, -2, 3]`, row by row."""
        start = self.position
        self.expect(f"{Word.DATA}<")
        shape, dtype = self.shape_and_dtype()
        self.expect(">")
        fixed = tuple(extent for extent in shape if isinstance(extent, int))
        if fixed != shape:
            self.refuse("the extents of a constant are numbers", start)
        if self.accept("["):
            return self._values(fixed, dtype, start)
        if self.sees('"'):
            return self._named(fixed, dtype)
        place = self.position
        digest = (self.match(_DIGEST) or self.fail("a digest, a name in quotes, or '['"))[0]
        found = self._constants.by_digest.get(digest)
        if found is None:
            self.refuse(f"no constant with the digest {digest} was given", place)
        wanted = ir.TensorData(fixed, dtype, found.content)
        if wanted.type.size_bytes != len(found.content):
            size = f"{wanted.type.size_bytes} B, the bytes of {digest} are {len(found.content)}"
            self.refuse(f"{wanted.type} has {size}", place)
        return wanted

    def _named(self, shape: tuple[int, ...], dtype: ir.DType) -> ir.TensorData:
        place = self.position
        name = self.string()
        found = self._constants.by_name.get(name)
        if found is None:
            self.refuse(f"no constant with the name '{name}' was given", place)
        if (found.shape, found.dtype) != (shape, dtype):
            self.refuse(f"'{name}' is {found.type}, not {ir.TensorType(shape, dtype)}", place)
        return found

    def _values(self, shape: tuple[int, ...], dtype: ir.DType, start: int) -> ir.TensorData:
        def value() -> int | float:
            begin = self.position
            if dtype is ir.DType.BOOL:
                return int(self.accept(Word.TRUE) or (self.expect(Word.FALSE) or False))
            number = self.number()
            low, high = dtype.bounds if dtype.is_integer else (number, number)
            if dtype.is_integer and not (isinstance(number, int) and low <= number <= high):
                self.refuse(f"{number} is no {dtype.value}", begin)
            return number

        values = self.items("]", value)
        type_ = ir.TensorType(shape, dtype)
        if len(values) != type_.num_elements:
            self.refuse(f"{type_} has {type_.num_elements} elements, {len(values)} are given", start)
        return ir.TensorData(shape, dtype, np.array(values, dtype=dtype.numpy).tobytes())

    def where(self) -> Where:
        """The place at the end of a line, if there is one."""
        if not self.accept("@"):
            return NOWHERE
        if not self.accept("("):
            return parse_where(self.string())
        model, operator, tensor = self.items(")", self._optional_string)
        return Where(model or "", operator, tensor)

    def _optional_string(self) -> str | None:
        return None if self.accept(Word.NONE) else self.string()

    # Attribute values

    def value(self, classes: Mapping[str, type[Any]]) -> Any:
        """An attribute's value.

        Args:
            classes: Enums and dataclasses that it may name, by their names.
        """
        if self.sees('"'):
            return self.string()
        if self.accept("("):
            with self.nested():
                return self.items(")", lambda: self.value(classes))
        for text, constant in ((Word.NONE, None), (Word.TRUE, True), (Word.FALSE, False)):
            if self.accept(text):
                return constant
        if self.sees(f"{Word.DATA}<"):
            return self.tensor_data()
        if NUMBER.match(self._text, self.position):
            return self.number()
        start = self.position
        name = self.word()
        if name not in classes:
            self.refuse(f"'{name}' is no value of an attribute", start)
        return self._instance(classes[name], classes, start)

    def _instance(self, cls: type[Any], classes: Mapping[str, type[Any]], start: int) -> Any:
        if issubclass(cls, Enum):
            self.expect(".")
            place = self.position
            member = self.word()
            if member not in cls.__members__:
                known = ", ".join(cls.__members__)
                self.refuse(f"{cls.__name__} has no member '{member}', only {known}", place)
            return cls[member]
        self.expect("(")
        return self.build(cls, self.keywords(")", classes), start)

    def build(self, cls: type[Item], attributes: Mapping[str, Any], start: int) -> Item:
        """A dataclass from what stands in the text from an offset on; each field must have a value of its type."""
        faults = attribute_faults(cls, attributes)
        if faults:
            self.refuse(faults[0], start)
        return cls(**attributes)

    def keywords(self, close: str, classes: Mapping[str, type[Any]]) -> dict[str, Any]:
        """`name=value` pairs up to the closing token; a name stands once."""
        found: dict[str, Any] = {}

        def pair() -> None:
            start = self.position
            name = self.string() if self.sees('"') else self.word()
            if name in found:
                self.refuse(f"'{name}' stands twice", start)
            self.expect("=")
            found[name] = self.value(classes)

        self.items(close, pair)
        return found
