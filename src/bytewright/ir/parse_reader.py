"""Reads the tokens that all of printed IR consists of: words, names, numbers, types, places, attribute values."""

from __future__ import annotations

import dataclasses
import json
import re
import typing
from collections.abc import Callable, Mapping
from dataclasses import is_dataclass
from enum import Enum
from typing import Any, NoReturn, TypeVar

from bytewright.ir.data import TensorData
from bytewright.ir.scope import Scope, parse_scope
from bytewright.ir.text import GRAPH_NAME, KEYWORDS, PRIM_NAME, parse_where
from bytewright.ir.types import DType, Extent, Symbol, TensorType, VirtualDevice
from bytewright.ir.where import NOWHERE, Where

Item = TypeVar("Item")

_SPACE = re.compile(r"\s*")
_STRING = re.compile(r'"(?:\\.|[^"\\])*"')
_NUMBER = re.compile(r"-?(?:(?:inf|nan)(?![\w/])|\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)")
_EXTENT = re.compile(r"(?:(\d+)|([A-Za-z_]\w*)\[(-?\d+)\.\.(-?\d+)\])x")
_DTYPE = re.compile("|".join(sorted((dtype.value for dtype in DType), key=lambda name: (-len(name), name))))
_WORD = re.compile(r"[A-Za-z_]\w*")
_PLACE_WORD = re.compile(r'[^\s">,]+')
_DIGEST = re.compile(r"[0-9a-f]{12}")


class ParseError(ValueError):
    """The text is not printed IR; the message gives line and column."""


class Reader:
    """A text and how far it was read.

    Args:
        text: Printed IR.
        data: Constants by digest.
    """

    def __init__(self, text: str, data: Mapping[str, TensorData]) -> None:
        self._text = text
        self._data = data
        self.position = 0
        self._skip()

    def _skip(self) -> None:
        found = _SPACE.match(self._text, self.position)
        assert found is not None
        self.position = found.end()

    def fail(self, expected: str) -> NoReturn:
        """Refuses what stands at the present position."""
        before = self._text[: self.position]
        line, column = before.count("\n") + 1, self.position - (before.rfind("\n") + 1) + 1
        rest = self._text[self.position : self.position + 30].partition("\n")[0]
        raise ParseError(f"line {line}, column {column}: expected {expected}, found '{rest}'")

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

    def accept(self, token: str) -> bool:
        """Reads the token if it stands here."""
        if not self.sees(token):
            return False
        self.position += len(token)
        self._skip()
        return True

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

    def string(self) -> str:
        """A quoted text."""
        found = self.match(_STRING) or self.fail("a text in quotes")
        return str(json.loads(found[0]))

    def word(self) -> str:
        """A bare word."""
        found = self.match(_WORD) or self.fail("a word")
        return found[0]

    def integer(self) -> int:
        """A whole number."""
        value = self.number()
        return value if isinstance(value, int) else self.fail("a whole number")

    def number(self) -> int | float:
        """A number; it is a float if it is written like one."""
        found = self.match(_NUMBER) or self.fail("a number")
        return int(found[0]) if re.fullmatch(r"-?\d+", found[0]) else float(found[0])

    # Names

    def prim_name(self) -> str:
        """A name of a PrimFunc, buffer or variable."""
        if self.sees('"'):
            return self.string()
        found = PRIM_NAME.match(self._text, self.position)
        if found is None or found[0] in KEYWORDS:
            self.fail("a name")
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

    def dtype(self) -> DType:
        """An element type."""
        found = self.match(_DTYPE) or self.fail("an element type")
        return DType(found[0])

    def shape_and_dtype(self) -> tuple[tuple[Extent, ...], DType]:
        """`1x64xi8`."""
        shape: list[Extent] = []
        while found := self.match(_EXTENT):
            plain, name, lower, upper = found.groups()
            shape.append(int(plain) if plain is not None else Symbol(name, int(lower), int(upper)))
        return tuple(shape), self.dtype()

    def scope(self) -> Scope:
        """A scope in quotes."""
        text = self.string()
        try:
            return parse_scope(text)
        except ValueError:
            self.fail("a scope before this")

    def tensor_type(self) -> TensorType:
        """`tensor<1x64xi8, @cpu "global.sram">`."""
        self.expect("tensor<")
        shape, dtype = self.shape_and_dtype()
        place = VirtualDevice()
        if self.accept(","):
            self.expect("@")
            device = None if self.accept("?") else self._place_word()
            target = self._place_word() if self.accept("target=") else None
            place = VirtualDevice(device, target, self.scope() if self.sees('"') else None)
        self.expect(">")
        return TensorType(shape, dtype, place)

    def _place_word(self) -> str:
        found = self.match(_PLACE_WORD) or self.fail("a device or a target")
        return found[0]

    def tensor_data(self) -> TensorData:
        """`data<64xi32> 0123456789ab`, looked up by its digest."""
        self.expect("data<")
        shape, dtype = self.shape_and_dtype()
        self.expect(">")
        digest = (self.match(_DIGEST) or self.fail("a digest"))[0]
        if digest not in self._data:
            self.fail(f"something after the digest '{digest}' of a known constant")
        fixed = tuple(extent for extent in shape if isinstance(extent, int))
        return TensorData(fixed, dtype, self._data[digest].content)

    def where(self) -> Where:
        """The place at the end of a line, if there is one."""
        if not self.accept("@"):
            return NOWHERE
        if not self.accept("("):
            return parse_where(self.string())
        model, operator, tensor = self.items(")", self._optional_string)
        return Where(model or "", operator, tensor)

    def _optional_string(self) -> str | None:
        return None if self.accept("none") else self.string()

    # Attribute values

    def value(self, classes: Mapping[str, type[Any]]) -> Any:
        """An attribute's value.

        Args:
            classes: Enums and dataclasses that it may name, by their names.
        """
        if self.sees('"'):
            return self.string()
        if self.accept("("):
            return self.items(")", lambda: self.value(classes))
        for text, constant in (("none", None), ("true", True), ("false", False)):
            if self.accept(text):
                return constant
        if self.sees("data<"):
            return self.tensor_data()
        if (found := self.match(_NUMBER)) is not None:
            return int(found[0]) if re.fullmatch(r"-?\d+", found[0]) else float(found[0])
        name = self.word()
        if name not in classes:
            self.fail(f"something after '{name}', which names no class here")
        return self._instance(classes[name], classes)

    def _instance(self, cls: type[Any], classes: Mapping[str, type[Any]]) -> Any:
        if issubclass(cls, Enum):
            self.expect(".")
            member = self.word()
            return cls[member] if member in cls.__members__ else self.fail(f"a member of {cls.__name__}")
        self.expect("(")
        return cls(**self.keywords(")", classes))

    def keywords(self, close: str, classes: Mapping[str, type[Any]]) -> dict[str, Any]:
        """`name=value` pairs up to the closing token."""

        def pair() -> tuple[str, Any]:
            name = self.string() if self.sees('"') else self.word()
            self.expect("=")
            return name, self.value(classes)

        return dict(self.items(close, pair))


def classes_in_fields(cls: type[Any]) -> dict[str, type[Any]]:
    """Enums and dataclasses that the fields of a dataclass mention, through unions and tuples, by name."""
    found: dict[str, type[Any]] = {}

    def visit(hint: Any) -> None:
        for argument in typing.get_args(hint):
            visit(argument)
        if not isinstance(hint, type) or hint.__name__ in found:
            return
        if issubclass(hint, Enum):
            found[hint.__name__] = hint
        elif is_dataclass(hint):
            found[hint.__name__] = hint
            visit_fields(hint)

    def visit_fields(dataclass: type[Any]) -> None:
        hints = typing.get_type_hints(dataclass)
        for field in dataclasses.fields(dataclass):
            visit(hints[field.name])

    visit_fields(cls)
    return found
