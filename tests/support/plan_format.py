"""The format of plan.json: every key with the form of its value, and what the hash of the plan leaves out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from enum import Enum
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from bytewright.record.plan import Plan
from bytewright.record.plan_file import (
    UNHASHED_KEYS,
    UNHASHED_KEYS_OF_BUFFERS,
    UNHASHED_KEYS_OF_STEPS,
)
from bytewright.target.isa.isa import Isa


def format_lines() -> list[str]:
    """Lines such as `buffers[].place.offset: int or None, may be missing`, in the order of plan.json."""
    unhashed = {"": UNHASHED_KEYS, "buffers[].": UNHASHED_KEYS_OF_BUFFERS, "steps[].": UNHASHED_KEYS_OF_STEPS}
    left_out = [f"not in plan_hash: {front}{key}" for front, keys in unhashed.items() for key in keys]
    return [*_record("", Plan), *left_out]


def _record(front: str, kind: type[Any]) -> Iterator[str]:
    hints = get_type_hints(kind, include_extras=True)
    for field in fields(kind):
        key = f"{front}{field.metadata.get('key', field.name)}"
        has_default = field.default is not MISSING or field.default_factory is not MISSING
        yield f"{key}: {_text(hints[field.name])}{_default(field) if has_default else ''}"
        yield from _members(key, hints[field.name])


def _default(field: Field[Any]) -> str:
    return ", not there if empty" if field.metadata.get("omit_empty") else ", may be missing"


def _members(key: str, kind: Any) -> Iterator[str]:
    """The keys of the records that a value is, or has in it; of an instruction set there is the name."""
    if kind is Isa:
        return
    if is_dataclass(kind) and isinstance(kind, type):
        yield from _record(f"{key}.", kind)
    for part in get_args(kind):
        yield from _members(f"{key}[]" if get_origin(kind) in (tuple, Mapping) else key, part)


def _text(kind: Any) -> str:
    """The form of a value: of an enumeration what it may be, of types with parts each of these."""
    if get_origin(kind) is not None or get_args(kind):
        parts = [*map(_text, get_args(kind))]
        if get_origin(kind) in (Union, UnionType):
            return " or ".join(parts)
        return f"{getattr(get_origin(kind), '__name__', '')}({', '.join(parts)})"
    if isinstance(kind, type) and issubclass(kind, Enum):
        return f"one of {'/'.join(str(member.value) for member in kind)}"
    return "..." if kind is ... else getattr(kind, "__name__", str(kind)).replace("NoneType", "None")
