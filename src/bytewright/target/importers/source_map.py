"""Where things stand in a devicetree's source, which the parsed tree does not say.

The text is that of the main file after the C preprocessor, whose line markers name the original files, with each
`/include/` put in its place. One walk over its braces notes the line of each node and property. The text was
parsed before, or the parser's own message is the first to be shown, so the walk need not find mistakes.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bytewright.target.text_file import read_text

_MARKER = re.compile(r'#(?:line)?[ \t]+([0-9]+)[ \t]+"([^"]+)"')
_INCLUDE = re.compile(r'[ \t]*/include/[ \t]+"([^"]+)"')
_HIDDEN = re.compile(r'/\*.*?(?:\*/|\Z)|//[^\n]*|"(?:[^"\\\n]|\\.)*"', re.DOTALL)
_EVENT = re.compile(
    r"&(?P<reference>\{[^}]*\}|[\w]+)\s*\{"
    r"|(?P<node>/|[\w,.+?#@-]+)\s*\{"
    r"|(?P<property>[\w,.+?#-]+)\s*[=;]"
    r"|(?P<close>\})"
)
_MOST_INCLUDED_FILES = 1000


@dataclass(frozen=True, slots=True)
class _Line:
    where: str
    text: str


class SourceMap:
    """Lines of nodes and properties; nodes are named by path, or by `&label` where the source does so."""

    def __init__(self, path: Path, text: str, include: Sequence[Path]) -> None:
        self.file = str(path)
        self._num_files = 0
        self._lines = self._read(str(path), text, (path.parent, *include))
        self._places: dict[tuple[str, str | None], str] = {}
        self._walk()

    def _read(self, file: str, text: str, folders: Sequence[Path]) -> list[_Line]:
        lines: list[_Line] = []
        number = 1
        self._num_files += 1
        for line in text.splitlines():
            marker = _MARKER.match(line)
            included = _INCLUDE.match(line)
            if marker:
                number, file = int(marker.group(1)), marker.group(2)
                lines.append(_Line(file, ""))
                continue
            lines.append(_Line(f"{file}:{number}", "" if included else line))
            number += 1
            found = [folder / included.group(1) for folder in folders] if included else []
            found = [other for other in found if other.is_file()]
            if found and self._num_files < _MOST_INCLUDED_FILES:
                lines += self._read(str(found[0]), read_text(found[0]), folders)
        return lines

    def _walk(self) -> None:
        text = "\n".join(line.text for line in self._lines)
        text = _HIDDEN.sub(lambda hidden: re.sub(r"[^\n]", " ", hidden.group()), text)
        stack: list[str] = []
        line, seen = 0, 0
        for event in _EVENT.finditer(text):
            line += text.count("\n", seen, event.start())
            seen = event.start()
            where = self._lines[line].where
            if event["close"]:
                if stack:
                    stack.pop()
            elif event["property"]:
                if stack:
                    self._places[stack[-1], event["property"]] = where  # the last one counts
            else:
                stack.append(self._node(event["reference"], event["node"], stack))
                self._places.setdefault((stack[-1], None), where)

    @staticmethod
    def _node(reference: str | None, name: str | None, stack: list[str]) -> str:
        if reference is not None:
            return reference[1:-1] if reference.startswith("{") else f"&{reference}"
        if not stack:
            return name or "/"
        return f"{stack[-1].rstrip('/')}/{name}"

    def place(self, nodes: Sequence[str], name: str | None = None) -> str:
        """File and line of a node's property, or of the node; the main file if neither is in the text.

        Args:
            nodes: All that the source may call the node: its path, or a path from a label (`&flash0/partitions`).
            name: The property; `None` for the node.
        """
        for key in (name, None):
            for node in nodes:
                if (node, key) in self._places:
                    return self._places[node, key]
        return self.file

    def first(self, pattern: str) -> str:
        """File and line of the first line with a match; the main file if there is none."""
        return next((line.where for line in self._lines if re.search(pattern, line.text)), self.file)
