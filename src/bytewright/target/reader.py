"""Typed access to one table of a description, which collects what is wrong instead of stopping.

Each accessor names its key once; asking for a key is what makes it known, so `finish` can report every other
key of the table, and no list of keys has to be kept in step with the code that reads them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from enum import Enum
from types import NoneType
from typing import TypeVar, cast

from bytewright.target.addresses import END_OF_ADDRESSES
from bytewright.target.mistake import Mistake, closest, listing, shown
from bytewright.target.model import UNLIMITED, Unlimited
from bytewright.target.size import SizeError, parse_size
from bytewright.target.source import Path

_Choice = TypeVar("_Choice", bound=Enum)
_Value = TypeVar("_Value")

NAME_PATTERN = re.compile(r"[A-Za-z][A-Za-z0-9_-]*", re.ASCII)
NAME_FORM = "a letter, then letters, digits, '_' and '-'"
SYMBOL_PATTERN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_HEXADECIMAL = re.compile(r"0x[0-9A-Fa-f]{1,16}", re.ASCII)
_MOST_ENTRIES = 256  # of memories, devices, pools and every array: no machine has as many
_MOST_UNKNOWN_KEYS = 20


_KINDS: tuple[tuple[type, str], ...] = (
    (NoneType, "null"),
    (bool, "a boolean"),  # before the integers, of which it is one
    (int, "an integer"),
    (float, "a float"),
    (str, "a string"),
    (list, "an array"),
    (Mapping, "a table"),
)


def kind_of(value: object) -> str:
    """What a TOML or JSON value is, in the words of those formats."""
    return next((words for kind, words in _KINDS if isinstance(value, kind)), "a date")


class TomlTable:
    """One table, its path in the description, and the list that problems go to."""

    def __init__(self, values: Mapping[str, object], path: Path, problems: list[Mistake]) -> None:
        self._values = values
        self._problems = problems
        self._known: set[str] = set()
        self.path = path
        self.has_failed = False

    def has(self, key: str) -> bool:
        """Whether the table has the key; asking makes it known."""
        self._known.add(key)
        return key in self._values

    def fail(self, key: str | None, message: str, *notes: str, suggestion: str | None = None) -> None:
        """Reports a problem with a key, or with the table."""
        self.has_failed = True
        path = self.path if key is None else (*self.path, key)
        self._problems.append(Mistake(path, message, notes, suggestion))

    def finish(self) -> None:
        """Reports every key that no accessor asked for."""
        known = sorted(self._known)
        unknown = [key for key in self._values if key not in self._known]
        for key in unknown[:_MOST_UNKNOWN_KEYS]:
            note = listing("keys of this table", known)
            self.fail(key, f"unknown key {shown(key)}", note, suggestion=closest(key, known))
        if len(unknown) > _MOST_UNKNOWN_KEYS:
            self.fail(None, f"and {len(unknown) - _MOST_UNKNOWN_KEYS} more unknown keys")

    def require(self, *keys: str) -> None:
        """Reports each of these keys that is missing."""
        for key in keys:
            if not self.has(key):
                self.fail(None, f"the key {key!r} is missing")

    def _typed(self, key: str, kind: type[_Value], what: str) -> _Value | None:
        """The value of a key, where there is one of this type; a truth value is no integer."""
        if not self.has(key):
            return None
        value = self._values[key]
        if isinstance(value, kind) and (kind is bool or not isinstance(value, bool)):
            return value
        self.fail(key, f"{key!r} must be {what}, not {kind_of(value)}")
        return None

    def boolean(self, key: str, default: bool) -> bool:
        """True or false."""
        value = self._typed(key, bool, "true or false")
        return default if value is None else value

    def text(self, key: str, default: str, pattern: re.Pattern[str] | None, what: str) -> str:
        """A string that matches a pattern; without one, any printable text on one line."""
        value = self._typed(key, str, "a string")
        if value is None:
            return default
        if pattern.fullmatch(value) if pattern else value.isprintable():
            return value
        self.fail(key, f"{shown(value)} is not {what}")
        return default

    def formula(self, key: str) -> str | None:
        """A string, or an integer as one: what is to be worked out later."""
        if self.has(key) and type(self._values[key]) is int:
            return str(self._values[key])
        return self._typed(key, str, "a formula: a string or an integer")

    def name(self, key: str, default: str = "") -> str:
        """A name."""
        return self.text(key, default, NAME_PATTERN, f"a name: {NAME_FORM}")

    def integer(self, key: str, default: int, smallest: int, largest: int | None = None) -> int:
        """An integer that is not too small, nor too large."""
        value = self._typed(key, int, "an integer")
        if value is None:
            return default
        if value < smallest:
            self.fail(key, f"{key!r} is {value}, but the smallest allowed is {smallest}")
        elif largest is not None and value > largest:
            self.fail(key, f"{key!r} is {value}, but the largest allowed is {largest}")
        else:
            return value
        return default

    def address(self, key: str) -> int | None:
        """An address: an integer, or a string of hexadecimal digits because JSON has only decimal."""
        return self._address(key, self._values[key]) if self.has(key) else None

    def addresses(self, key: str) -> tuple[int, ...]:
        """An array of addresses."""
        values = [self._address(key, value) for value in self.array(key)]
        return tuple(value for value in values if value is not None)

    def _address(self, key: str, value: object) -> int | None:
        if isinstance(value, str) and _HEXADECIMAL.fullmatch(value):
            value = int(value, 16)
        if isinstance(value, bool) or not isinstance(value, int):
            self.fail(key, f"{key!r} must hold addresses such as 0x20000000, not {kind_of(value)}")
        elif not 0 <= value < END_OF_ADDRESSES:
            self.fail(key, f"{value} is not an address: it is negative or needs more than 64 bits")
        else:
            return value
        return None

    def size(self, key: str, default: int, *, zero_allowed: bool = False) -> int:
        """A size in bytes."""
        if not self.has(key):
            return default
        try:
            return parse_size(self._values[key], zero_allowed=zero_allowed)
        except SizeError as error:
            self.fail(key, f"{key!r}: {error}")
            return default

    def limit(self, key: str, default: int | Unlimited, *, zero_allowed: bool = False) -> int | Unlimited:
        """A size in bytes, or "unlimited"."""
        if not self.has(key):
            return default
        is_unlimited = self._values[key] == UNLIMITED.value
        return UNLIMITED if is_unlimited else self.size(key, 0, zero_allowed=zero_allowed)

    def choice(self, key: str, default: _Choice) -> _Choice:
        """One of the values of an enumeration."""
        value = self._values[key] if self.has(key) else default.value
        for member in type(default):
            if member.value == value and isinstance(value, str):
                return member
        allowed = [str(member.value) for member in type(default)]
        found = shown(value) if isinstance(value, str) else kind_of(value)
        self.fail(key, f"{key!r} cannot be {found}", listing("allowed", allowed))
        return default

    def array(self, key: str) -> Sequence[object]:
        """An array of anything; empty if it is missing."""
        values: list[object] = self._typed(key, list, "an array") or []
        return values if self._has_few(key, len(values)) else []

    def _has_few(self, key: str, count: int) -> bool:
        if count > _MOST_ENTRIES:
            self.fail(key, f"{key!r} has {count} entries, but {_MOST_ENTRIES} are the most that are allowed")
        return count <= _MOST_ENTRIES

    def texts(self, key: str) -> tuple[str, ...]:
        """An array of strings without repetitions."""
        texts: list[str] = []
        for value in self.array(key):
            if not isinstance(value, str):
                self.fail(key, f"{key!r} must hold strings, not {kind_of(value)}")
            elif value in texts:
                self.fail(key, f"{shown(value)} stands twice in {key!r}")
            else:
                texts.append(value)
        return tuple(texts)

    def inner_table(self, value: object, path: Path, expected: str) -> TomlTable | None:
        """The table that a value inside of this one is; None, with what was expected, where it is none."""
        path = (*self.path, *path)
        if isinstance(value, Mapping):
            return TomlTable(cast("Mapping[str, object]", value), path, self._problems)
        self.has_failed = True
        self._problems.append(Mistake(path, f"{expected}, not {kind_of(value)}"))
        return None

    def named_tables(self, key: str) -> dict[str, TomlTable]:
        """The tables inside a table, by name: `[memory.dtcm]`."""
        tables: dict[str, TomlTable] = {}
        members = self.subtable(key)
        for name in members.keys if self._has_few(key, len(members.keys)) else ():
            if not NAME_PATTERN.fullmatch(name):
                members.fail(name, f"{shown(name)} is not a name; names are {NAME_FORM}")
            elif table := members.inner_table(members._values[name], (name,), f"{name!r} must be a table"):
                tables[name] = table
        return tables

    def listed_tables(self, key: str) -> list[TomlTable]:
        """The tables of an array of tables: `[[workspace]]`."""
        values = enumerate(self.array(key))
        tables = (
            self.inner_table(value, (key, index), f"{key!r} must hold tables") for index, value in values
        )
        return [table for table in tables if table is not None]

    def subtable(self, key: str) -> TomlTable:
        """The table inside this one at a key; empty if it is missing."""
        values: Mapping[str, object] = self._typed(key, Mapping, "a table") or {}
        return TomlTable(values, (*self.path, key), self._problems)

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys that the table has."""
        return tuple(self._values)
