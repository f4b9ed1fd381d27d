"""The text of a target file: what it says, and on which line it says it.

`tomllib` and `json` drop positions, and an error about a board file must name its line. After a text was
parsed, which proves that it is well formed, a second walk over it notes the line of every key and array
element. That walk can be short because it need not find mistakes.
"""

import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import cast

from bytewright.diagnostics import CompileError, compile_error

Path = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Source:
    """A description as plain values, with the place of each.

    Attributes:
        file: The name to show.
        values: The top-level table.
        lines: The line of each key, table and array element, by path; empty if there was no text.
    """

    file: str
    values: Mapping[str, object]
    lines: Mapping[Path, int] = field(default_factory=dict[Path, int])

    def where(self, path: Path) -> str:
        """The file, the line of the nearest known ancestor, and the key."""
        line = self.line_of(path)
        place = self.file if line is None else f"{self.file}:{line}"
        return f"{place}, key {format_path(path)}" if path else place

    def line_of(self, path: Path) -> int | None:
        """The line of a key, or of the nearest table around it; `None` if there was no text."""
        for length in range(len(path), 0, -1):
            if path[:length] in self.lines:
                return self.lines[path[:length]]
        return None


def format_path(path: Path) -> str:
    """A path as people write it: `memory.dtcm.size`, `workspace[0].name`."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            name = part if part.isprintable() and len(part) <= 80 else repr(part[:80])
            text += f".{name}" if text else name
    return text


def parse_source(text: str, file: str) -> Source:
    """Parses TOML, or JSON if the text begins with a brace.

    The codes are those of target files; who reads another kind of file gives the refusal its own.

    Raises:
        CompileError: BW202 for text that is neither.
    """
    try:
        if text.lstrip().startswith("{"):
            values: dict[str, object] = json.loads(
                text, object_pairs_hook=lambda pairs: _without_repetitions(pairs, file)
            )
            return Source(file, values, _LineWalk(text).json_document())
        if _LONG_KEY.search(_STRING_OR_COMMENT.sub("s", text)):
            raise _malformed(file, None, f"a key has more than {_MOST_KEY_PARTS} parts")
        values = tomllib.loads(text)
        return Source(file, values, _LineWalk(text.replace("\r\n", "\n")).toml_document())
    except json.JSONDecodeError as error:
        raise _malformed(file, error.lineno, f"not valid JSON: {error.msg}") from None
    except tomllib.TOMLDecodeError as error:
        message, line = _split_position(str(error), text)
        raise _malformed(file, line, f"not valid TOML: {message}") from None
    except ValueError as error:
        if "integer string conversion" not in str(error):
            raise
        raise _malformed(file, None, "an integer has more than 4300 digits") from None
    except RecursionError:
        raise _malformed(file, None, "the values are nested too deeply") from None


def refuse_vast_integers(source: Source) -> None:
    """Refuses integers far beyond every size and address, which Python cannot even print.

    Raises:
        CompileError: BW202 with the place of the first one.
    """
    waiting: list[tuple[Path, object]] = [((), source.values)]
    while waiting:
        path, value = waiting.pop()
        if isinstance(value, int) and value.bit_length() > _MOST_BITS:
            message = f"an integer has {value.bit_length()} bits, but nothing here needs more than 64"
            raise compile_error("BW202", message, where=source.where(path))
        if isinstance(value, Mapping):
            members = cast("Mapping[str, object]", value).items()
        elif isinstance(value, list):
            members = enumerate(cast("list[object]", value))
        else:
            continue
        if len(path) >= _MOST_DEPTH:
            raise compile_error("BW202", "the values are nested too deeply", where=source.file)
        waiting.extend(((*path, key), member) for key, member in reversed([*members]))


def _without_repetitions(pairs: list[tuple[str, object]], file: str) -> dict[str, object]:
    values: dict[str, object] = {}
    for key, value in pairs:
        if key in values:
            raise _malformed(file, None, f"not valid JSON: the key {key!r} stands twice")
        values[key] = value
    return values


def _malformed(file: str, line: int | None, message: str) -> CompileError:
    return compile_error("BW202", message, where=file if line is None else f"{file}:{line}")


def _split_position(message: str, text: str) -> tuple[str, int]:
    """Takes tomllib's "(at line 3, column 5)" or "(at end of document)" off its message."""
    match = re.fullmatch(r"(.*) \(at (?:line (\d+), column \d+|end of document)\)", message, re.DOTALL)
    last_line = text.rstrip("\n").count("\n") + 1
    if match is None:
        return message, last_line
    return match.group(1), int(match.group(2)) if match.group(2) else last_line


_MOST_BITS = 128
_MOST_DEPTH = 64
_MOST_KEY_PARTS = 64  # tomllib's memory grows with the square of them
_STRING_OR_COMMENT = re.compile(
    r'"""(?:[^\\]|\\.)*?"{3,5}|\'\'\'.*?\'{3,5}|"(?:[^"\\\n]|\\.)*"|\'[^\'\n]*\'|#[^\n]*', re.DOTALL
)
_LONG_KEY = re.compile(rf"(?<![\w-])(?:[\w-]++[ \t]*+\.[ \t]*+){{{_MOST_KEY_PARTS},}}")
_TOKEN = re.compile(_STRING_OR_COMMENT.pattern + r"|[\[\]{}=,.:]|[^\s\[\]{}=,.:#\"']+", re.DOTALL)


class _LineWalk:
    """One walk over the tokens of a well-formed text. TOML values contain JSON values, so `_value` is of both."""

    def __init__(self, text: str) -> None:
        self._tokens = self._read(text)
        self._token, self._line = next(self._tokens)  # the next one; empty at the end
        self._lines: dict[Path, int] = {}
        self._num_tables: dict[Path, int] = {}  # length so far of each array of tables

    @staticmethod
    def _read(text: str) -> Iterator[tuple[str, int]]:
        line, seen = 1, 0
        for match in _TOKEN.finditer(text):
            line += text.count("\n", seen, match.start())
            seen = match.start()
            if not match.group().startswith("#"):
                yield match.group(), line
        yield "", 0

    def _take(self) -> str:
        token = self._token
        self._token, self._line = next(self._tokens)
        return token

    def json_document(self) -> dict[Path, int]:
        """The lines of a JSON object."""
        self._value(())
        return self._lines

    def toml_document(self) -> dict[Path, int]:
        """The lines of a TOML document."""
        table: Path = ()
        while self._token:
            line = self._line
            if self._token == "[":
                table = self._header(line)
            else:
                path = table + self._key()
                self._note_all(path, len(table), line)
                self._take()  # the equals sign
                self._value(path)
        return self._lines

    def _header(self, line: int) -> Path:
        """`[a.b]` or `[[a.b]]`, as a path in which each array of tables is followed by its current index."""
        self._take()
        is_array = self._token == "["
        if is_array:
            self._take()
        names = self._key()
        path: Path = ()
        for position, name in enumerate(names):
            path = (*path, name)
            if is_array and position == len(names) - 1:
                self._num_tables[path] = self._num_tables.get(path, 0) + 1
            if path in self._num_tables:
                self._lines.setdefault(path, line)
                path = (*path, self._num_tables[path] - 1)
        self._lines.setdefault(path, line)
        while self._token == "]":
            self._take()
        return path

    def _key(self) -> tuple[str, ...]:
        """A key, dotted or not; leaves the position after it."""
        parts = [_key_text(self._take())]
        while self._token == ".":
            self._take()
            parts.append(_key_text(self._take()))
        return tuple(parts)

    def _value(self, path: Path) -> None:
        """A value; one that is no array and no table ends with its line, a string after its token."""
        if self._token in ("[", "{"):
            self._items(path)
            return
        line = self._line
        while self._line == line and self._token not in (",", "]", "}"):
            self._take()

    def _items(self, path: Path) -> None:
        """The elements of an array, or the members of an inline table or JSON object."""
        is_array = self._take() == "["
        index = 0
        while self._token not in ("]", "}"):
            line = self._line
            item: Path = (*path, index)
            if not is_array:
                item = path + self._key()
                self._take()  # the equals sign or colon
            self._note_all(item, len(path), line)
            self._value(item)
            index += 1
            if self._token == ",":
                self._take()
        self._take()

    def _note_all(self, path: Path, known_length: int, line: int) -> None:
        """Notes a dotted key and the tables that it creates on the way."""
        for length in range(known_length + 1, len(path) + 1):
            self._lines.setdefault(path[:length], line)


def _key_text(token: str) -> str:
    """What a token means as a key; JSON and TOML share most of the escapes in their strings, not all."""
    if token[0] not in "\"'":
        return token
    try:
        return cast("str", json.loads(token))
    except json.JSONDecodeError:
        return cast("str", tomllib.loads(f"value = {token}")["value"])
