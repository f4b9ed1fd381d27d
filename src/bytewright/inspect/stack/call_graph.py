"""Call graphs as gcc's `-fcallgraph-info=su` writes them, read and joined, and the worst path through them.

A function that a source declares and another one defines has the same title in both files; a static function's
title begins with its file. What no file defines is external.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from types import MappingProxyType

INDIRECT = "__indirect_call"
_NODE = re.compile(r'^node: \{ title: "([^"]*)" label: "([^"]*)"( shape : ellipse)? \}$')
_EDGE = re.compile(r'^edge: \{ sourcename: "([^"]*)" targetname: "([^"]*)"')
_USAGE = re.compile(r"^(\d+) bytes \(([a-z,]+)\)$")


@dataclass(frozen=True, slots=True)
class Frame:
    """A function that the generated code defines.

    Attributes:
        stack_bytes: Its frame, the return address included where a call pushes it.
        is_bounded: False if the compiler could not bound it.
        callees: Titles, in the order of their first call.
    """

    stack_bytes: int
    is_bounded: bool
    callees: tuple[str, ...]


CallGraph = Mapping[str, Frame]


@dataclass(frozen=True, slots=True)
class WorstPath:
    """Functions from a root to a leaf with the stack of each."""

    steps: tuple[tuple[str, int], ...]

    @property
    def total_bytes(self) -> int:
        """All of them together."""
        return sum(size for _, size in self.steps)

    def __str__(self) -> str:
        return " -> ".join(f"{name} {size} B" for name, size in self.steps)


def read_call_graph(texts: Iterable[str]) -> CallGraph:
    """The functions that the files define, by title.

    Raises:
        ValueError: A text is not of the form that gcc writes.
    """
    frames: dict[str, tuple[int, bool]] = {}
    callees: dict[str, list[str]] = {}
    for text in texts:
        for line in text.splitlines():
            if match := _NODE.match(line):
                title, label, is_external = match.groups()
                if is_external is None:
                    frames[_plain(title)] = _usage(title, label)
            elif match := _EDGE.match(line):
                callees.setdefault(_plain(match[1]), []).append(_plain(match[2]))
            elif line.startswith(("node:", "edge:")):
                raise ValueError(f"'{line}' is no line of a call graph")
    return MappingProxyType(
        {
            title: Frame(size, is_bounded, tuple(dict.fromkeys(callees.get(title, ()))))
            for title, (size, is_bounded) in frames.items()
        }
    )


def _plain(title: str) -> str:
    """The title without the folder of its file, which is nobody's business; sources of a bundle differ in name."""
    return title.rpartition("/")[2]


def _usage(title: str, label: str) -> tuple[int, bool]:
    """Bytes and whether they are bounded; the label's lines are name, place and usage."""
    for line in label.split("\\n"):  # as gcc writes the end of a line
        if match := _USAGE.match(line):
            return int(match[1]), match[2] != "dynamic"
    raise ValueError(f"the stack of '{title}' is not stated in '{label}'")


def reachable(graph: CallGraph, roots: Iterable[str]) -> tuple[str, ...]:
    """Every title that the roots lead to, external ones too, in the order of the fewest calls from a root."""
    found: dict[str, None] = {}
    waiting = list(roots)
    while waiting:
        title = waiting.pop(0)
        if title not in found:
            found[title] = None
            waiting.extend(graph[title].callees if title in graph else ())
    return tuple(found)


def find_cycle(graph: CallGraph, roots: Iterable[str]) -> tuple[str, ...] | None:
    """A path that comes back to where it began; None if nothing recurs."""
    reached = reachable(graph, roots)
    try:
        _callees_first(graph, reached)
    except CycleError as error:
        turn: list[str] = error.args[1][:0:-1]  # there callees come first, and the first again at the end
        start = turn.index(min(turn, key=reached.index))
        return (*turn[start:], *turn[:start], turn[start])
    return None


def worst_path(graph: CallGraph, root: str, external_bytes: Mapping[str, int]) -> WorstPath:
    """The path from a root that needs the most stack; the graph has no cycle.

    Args:
        graph: The call graph.
        root: Where paths begin.
        external_bytes: Of functions that the graph does not define; what is missing counts as nothing.
    """
    worst: dict[str, WorstPath] = {}
    for title in _callees_first(graph, reachable(graph, [root])):
        if title not in graph:
            worst[title] = WorstPath(((title, external_bytes.get(title, 0)),))
            continue
        frame = graph[title]
        deepest = max((worst[c] for c in frame.callees), key=lambda p: p.total_bytes, default=WorstPath(()))
        worst[title] = WorstPath(((title, frame.stack_bytes), *deepest.steps))
    return worst[root]


def _callees_first(graph: CallGraph, titles: Iterable[str]) -> list[str]:
    callees = {title: graph[title].callees if title in graph else () for title in titles}
    return list(TopologicalSorter(callees).static_order())
