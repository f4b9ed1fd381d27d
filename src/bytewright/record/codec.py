"""Frozen dataclasses as JSON and back, by the types of their fields alone.

A field is a member of the JSON object under its name, or under the `key` of its metadata. A member may be missing
where the field has a default, and is where it has `omit_empty` in its metadata and nothing in it. A mapping of records
that carry their own `name` is a list of them. A lone `int` is a natural number, as sizes, offsets and counts are,
unless its type is `Signed`.
"""

import sys
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from enum import Enum
from functools import cache, reduce
from operator import or_
from types import NoneType, UnionType
from typing import Any, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from bytewright.base.frozen_mapping import FrozenMapping
from bytewright.base.signed import Signed
from bytewright.diagnostics import InternalError
from bytewright.target.dump import dump
from bytewright.target.load import load_description
from bytewright.target.model import Target

_Record = TypeVar("_Record")


def encode(record: object) -> dict[str, Any]:
    """The JSON object of a dataclass."""
    return _form_of(type(record)).write(record)


def decode(kind: type[_Record], value: object, where: str) -> _Record:
    """The dataclass that a value from JSON stands for; messages call it `where`.

    Raises:
        ValueError: Something is missing, of a wrong type, or twice.
        CompileError: BW202, for the description of a target.
    """
    form = _form_of(kind)
    if not form.accepts(value):
        raise ValueError(f"{where} is not {form.what}")
    return form.read(value, where)


@dataclass(frozen=True, slots=True)
class _Form:
    """How the values of one type look in JSON.

    Attributes:
        what, plural: For messages: "'x' is not a text", "'x' is not a list of texts".
        accepts: Whether a value from JSON has the form; what is inside of objects is left to `read`.
        read: From a value that is accepted, and its name for messages.
        write: Back.
    """

    what: str
    plural: str
    accepts: Callable[[Any], bool]
    read: Callable[[Any, str], Any] = lambda value, _: value
    write: Callable[[Any], Any] = lambda value: value

    def member(self, value: object, where: str, key: str) -> Any:
        """Reads a member of the object `where`."""
        if not self.accepts(value):
            raise ValueError(f"{where}: '{key}' is not {self.what}")
        return self.read(value, f"{where}: {key}")


def _is_integer(value: object) -> bool:
    return type(value) is int


def _is_finite(value: object) -> bool:
    return isinstance(value, int | float) and type(value) is not bool and abs(value) <= sys.float_info.max


def _is_object(value: object) -> bool:
    return isinstance(value, dict)


def _is_pair(value: object) -> bool:
    return isinstance(value, list) and [type(item) for item in cast("list[object]", value)] == [int, int]


_FORMS: dict[object, _Form] = {
    str: _Form("a text", "texts", lambda value: isinstance(value, str)),
    bool: _Form("true or false", "truth values", lambda value: isinstance(value, bool)),
    int: _Form("a natural number", "natural numbers", lambda value: _is_integer(value) and value >= 0),
    Signed: _Form("a number", "numbers", _is_integer),
    float: _Form("a number", "numbers", _is_finite),
    int | str: _Form("a number or a name", "integers and names", lambda value: type(value) in (int, str)),
    Signed | str: _Form("a number or a name", "integers and names", lambda value: type(value) in (int, str)),
    tuple[int, int]: _Form("two integers", "pairs of integers", _is_pair, lambda v, _: tuple(v), list),
    Target: _Form("an object", "objects", _is_object, load_description, dump),
}


@cache
def _form_of(kind: Any) -> _Form:
    if kind in _FORMS:
        return _FORMS[kind]
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType) and NoneType in arguments:
        return _optional(_form_of(reduce(or_, [a for a in arguments if a is not NoneType])))
    if origin is tuple and arguments[1:] == (...,):
        return _list(_form_of(arguments[0]))
    if origin is Mapping:
        item = _form_of(arguments[1])
        return (
            _by_name(item) if "name" in getattr(arguments[1], "__dataclass_fields__", ()) else _mapping(item)
        )
    if isinstance(kind, type) and issubclass(kind, Enum):
        return _enum(kind)
    if is_dataclass(kind):
        return _record(cast("type[Any]", kind))
    raise InternalError(f"{kind} has no form in JSON")


def _optional(item: _Form) -> _Form:
    return _Form(
        item.what,
        item.plural,
        lambda value: value is None or item.accepts(value),
        lambda value, where: None if value is None else item.read(value, where),
        lambda value: None if value is None else item.write(value),
    )


def _list(item: _Form) -> _Form:
    return _Form(
        f"a list of {item.plural}",
        f"lists of {item.plural}",
        lambda value: isinstance(value, list) and all(map(item.accepts, cast("list[object]", value))),
        lambda value, where: tuple(item.read(v, f"{where}[{index}]") for index, v in enumerate(value)),
        lambda values: [item.write(value) for value in values],
    )


def _by_name(item: _Form) -> _Form:
    """A mapping of records by the names that they carry."""
    form = _list(item)

    def read(value: Any, where: str) -> Any:
        records = form.read(value, where)
        named = {record.name: record for record in records}
        for record in records:
            if named[record.name] is not record:
                raise ValueError(f"two {where.rpartition(': ')[2]} are named '{record.name}'")
        return FrozenMapping(named)

    return _Form(form.what, form.plural, form.accepts, read, lambda named: form.write(named.values()))


def _mapping(item: _Form) -> _Form:
    return _Form(
        "an object",
        "objects",
        _is_object,
        lambda value, where: FrozenMapping({name: item.member(v, where, name) for name, v in value.items()}),
        lambda named: {name: item.write(value) for name, value in named.items()},
    )


def _enum(kind: type[Enum]) -> _Form:
    members = {member.value: member for member in kind}
    what = f"one of {', '.join(members)}"
    return _Form(
        what,
        f"texts that are each {what}",
        lambda value: isinstance(value, str) and value in members,
        lambda value, _: members[value],
        lambda member: member.value,
    )


def _record(kind: type[Any]) -> _Form:
    hints = get_type_hints(kind, include_extras=True)
    members = [(f, str(f.metadata.get("key", f.name)), _form_of(hints[f.name])) for f in fields(kind)]

    def read(value: Any, where: str) -> Any:
        found: dict[str, Any] = {}
        for field, key, form in members:
            if key in value:
                found[field.name] = form.member(value[key], where, key)
            elif field.default is MISSING and field.default_factory is MISSING:
                raise ValueError(f"{where} has no '{key}'")
        return kind(**found)

    def write(record: Any) -> dict[str, Any]:
        return {
            key: form.write(getattr(record, field.name))
            for field, key, form in members
            if getattr(record, field.name) or not field.metadata.get("omit_empty")
        }

    return _Form("an object", "objects", _is_object, read, write)
