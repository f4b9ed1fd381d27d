"""Which classes the fields of an operator may hold, and whether values that were read are of the fields' types."""

import dataclasses
import types
import typing
from collections.abc import Mapping
from dataclasses import is_dataclass
from enum import Enum
from typing import Any


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


def attribute_faults(cls: type[Any], attributes: Mapping[str, Any]) -> list[str]:
    """What keeps the attributes from being the fields of a dataclass, one sentence each."""
    fields = {field.name: field for field in dataclasses.fields(cls)} if is_dataclass(cls) else {}
    hints = typing.get_type_hints(cls) if fields else {}
    known = f"its attributes are {', '.join(fields)}" if fields else "it has none"
    faults = [
        f"'{cls.__name__}' has no attribute '{name}'; {known}" for name in attributes if name not in fields
    ]
    for name, field in fields.items():
        has_default = (field.default, field.default_factory) != (dataclasses.MISSING, dataclasses.MISSING)
        if name not in attributes:
            if not has_default:
                faults.append(f"'{cls.__name__}' needs the attribute '{name}'")
        elif not _admits(hints[name], attributes[name]):
            faults.append(
                f"'{name}' of '{cls.__name__}' is {_described(hints[name])}, not {attributes[name]!r}"
            )
    return faults


def _admits(hint: Any, value: Any) -> bool:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (types.UnionType, typing.Union):
        return any(_admits(argument, value) for argument in arguments)
    if origin is tuple:
        if not isinstance(value, tuple):
            return False
        items = typing.cast("tuple[Any, ...]", value)
        if len(arguments) == 2 and arguments[1] is Ellipsis:
            return all(_admits(arguments[0], item) for item in items)
        return len(items) == len(arguments) and all(map(_admits, arguments, items))
    if hint is float:
        return type(value) in (int, float)
    if isinstance(hint, type) and hint in (int, bool, str):
        return type(value) is hint
    return (
        value is None
        if hint in (None, types.NoneType)
        else isinstance(hint, type) and isinstance(value, hint)
    )


def _described(hint: Any) -> str:
    return (
        hint.__name__
        if isinstance(hint, type) and not typing.get_args(hint)
        else str(hint).replace("typing.", "")
    )
