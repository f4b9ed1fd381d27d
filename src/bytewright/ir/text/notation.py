"""What printing and parsing share: names, quoting, wrapping, places in the model, attribute values.

Whitespace outside quotes means nothing, so lines wrap at any space. Names are bare where they can be and quoted
where they cannot.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from enum import Enum

from bytewright import ir
from bytewright.diagnostics import InternalError
from bytewright.ir.text.words import RESERVED, Word
from bytewright.ir.where import NOWHERE, Where

LINE_LENGTH = 110
INDENT = "  "

PRIM_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:/[A-Za-z_][A-Za-z0-9_]*)*")
GRAPH_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_./-]*")

# Notes of the verifier: by identity of a statement, node or function, what is wrong with it.
Notes = Mapping[int, Sequence[str]]


def quoted(text: str) -> str:
    """The text between quotes, with escapes."""
    return json.dumps(text, ensure_ascii=False)


def prim_name(name: str) -> str:
    """A name in a PrimFunc, of a function or of a module."""
    return name if PRIM_NAME.fullmatch(name) and name not in RESERVED else quoted(name)


def attribute_name(name: str) -> str:
    """The key of an attribute or annotation."""
    return name if re.fullmatch(r"[A-Za-z_]\w*", name) else quoted(name)


def graph_name(name: str) -> str:
    """A name of a value or constant of the graph."""
    return f"%{name if GRAPH_NAME.fullmatch(name) else quoted(name)}"


def wrapped(text: str, indent: str) -> list[str]:
    """The text in lines of a bounded length, broken at spaces outside quotes."""
    words = re.findall(r'(?:(?:@ )?"(?:\\.|[^"\\])*"|[^\s"])+', text)
    lines: list[str] = []
    current = indent
    for word in words:
        if len(current) + len(word) > LINE_LENGTH and current.strip():
            lines.append(current.rstrip())
            current = indent + 2 * INDENT
        current += word + " "
    lines.append(current.rstrip())
    return lines


_WHERE = re.compile(
    r"(?P<model>.*?)(?:, operator (?P<operator>.*?))?(?:, tensor '(?P<value>.*)')?", re.DOTALL
)


def parse_where(text: str) -> Where:
    """The place that a text of the usual form names."""
    found = _WHERE.fullmatch(text)
    assert found is not None
    return Where(found["model"], found["operator"], found["value"])


def where_suffix(where: Where) -> str:
    """` @ "model.tflite, operator 3 (CONV_2D)"`; nothing for what was built by hand; three texts if one confuses."""
    if where == NOWHERE:
        return ""
    if parse_where(str(where)) == where:
        return f" @ {quoted(str(where))}"
    parts = (
        Word.NONE if part is None else quoted(part) for part in (where.model, where.operator, where.tensor)
    )
    return f" @ ({', '.join(parts)})"


def format_data(data: ir.TensorData) -> str:
    """Shape, type and digest of a constant: weights themselves are never printed."""
    return f"{Word.DATA}<{str(data.type)[len(f'{Word.TENSOR}<') :]} {data.digest}"


def format_value(value: object) -> str:
    """An attribute's value. Floats print exactly; enums and dataclasses by the name of their class."""
    match value:
        case None:
            return Word.NONE
        case Enum():
            return f"{type(value).__name__}.{value.name}"
        case bool():
            return Word.TRUE if value else Word.FALSE
        case int() | float():
            return repr(value)
        case str():
            return quoted(value)
        case ir.TensorData():
            return format_data(value)
        case tuple():
            items = [format_value(item) for item in value]
            return f"({items[0]},)" if len(items) == 1 else f"({', '.join(items)})"
        case _ if is_dataclass(value) and not isinstance(value, type):
            return f"{type(value).__name__}({format_fields(value)})"
        case _:
            raise InternalError(f"a value of type {type(value).__name__} cannot be an attribute")


def format_fields(value: object) -> str:
    """`name=value` for each field of a dataclass, in the order of the class."""
    assert is_dataclass(value)
    pairs = ((field, getattr(value, field.name)) for field in fields(value))
    return ", ".join(
        f"{field.name}={format_value(own)}"
        for field, own in pairs
        if not (field.metadata.get("omit_default") and own == field.default)
    )


def note_lines(node: object, notes: Notes, indent: str) -> list[str]:
    """The verifier's remarks on a node, to stand under its line."""
    return [f"{indent}^ {note}" for note in notes.get(id(node), ())]
