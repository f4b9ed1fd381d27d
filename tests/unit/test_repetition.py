"""How much of the source says again what another place says: runs of lines alike but for names, texts and numbers.

Only what is done counts. Declarations are alike wherever two records have as many fields, or two calls are given as
many arguments, and there is nothing to share in them: classes, fields, also those that a constructor is given or names
by a text, parameters, arguments by name, rows of tables, imports.
"""

import keyword
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from itertools import combinations
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[2] / "src" / "bytewright"
SHORTEST = 6
LONGEST = 12
MOST_PLACES = 8  # a run that stands in more of them is an idiom
MOST_PAIRS = 6  # before the kernels had templates in common it was 29, and the longest run 13 lines

_DECLARED = re.compile(
    r"""@ | class\ .*:$ | import\ | from\ .*import | \w+:\ [^"]*$ | \*?\w+,$ | [A-Z]\w*\ =\ ["\d].*$
    | \w+=([\w.]+|f?"[^"]*"),?$ | [\w.]+:\ [A-Za-z_]\w*\(.*\),$ | \(".*\),$ | self\.\w+\ =\ (\w+|f?"[^"]*")$""",
    re.VERBOSE,
)
_TEXT = re.compile(r'[a-z]*"(?:[^"\\]|\\.)*"')
_NAME = re.compile(r"[A-Za-z_]\w*|\d[\w.]*")
_NOTHING_DONE = re.compile(r"[N.,:)}\]\s]*|[(\[{)\]},: ]*")  # names, texts, punctuation
_QUOTES = '"""'


@cache
def _shape(line: str) -> str:
    """A line without names, texts and numbers; empty where it only declares, or is punctuation."""
    if _DECLARED.match(line):
        return ""
    shape = _NAME.sub(lambda found: found[0] if keyword.iskeyword(found[0]) else "N", _TEXT.sub("N", line))
    return "" if _NOTHING_DONE.fullmatch(shape) else shape


def _code(path: Path) -> Iterator[tuple[int, str]]:
    """Numbers and shapes of the lines that do something; texts over several lines are none of them."""
    is_text = False
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        stripped = line.strip()
        if stripped.count(_QUOTES) % 2:
            is_text = not is_text
        elif not is_text and not stripped.startswith(("#", _QUOTES)) and (shape := _shape(stripped)):
            yield number, shape


def _runs() -> dict[tuple[str, str], int]:
    """For each two files, or a file with itself, that share a run: the lines of the longest."""
    lines = {
        path.relative_to(PACKAGE).as_posix(): list(_code(path)) for path in sorted(PACKAGE.rglob("*.py"))
    }
    places: dict[tuple[str, ...], list[tuple[str, int]]] = defaultdict(list)
    for file, code in lines.items():
        shapes = [shape for _, shape in code]
        for i in range(len(shapes) - SHORTEST + 1):
            places[tuple(shapes[i : i + SHORTEST])].append((file, i))
    starts: dict[tuple[str, str, int], set[int]] = defaultdict(set)
    for found in places.values():
        for (file, i), (other, j) in combinations(found, 2) if len(found) <= MOST_PLACES else ():
            if file != other or j - i >= SHORTEST:
                starts[file, other, j - i].add(i)
    longest: dict[tuple[str, str], int] = defaultdict(int)
    for (file, other, _), begins in starts.items():
        for begin in begins:
            if begin - 1 not in begins:
                end = begin
                while end in begins:
                    end += 1
                longest[file, other] = max(longest[file, other], end - begin + SHORTEST - 1)
    return longest


@pytest.fixture(scope="module")
def runs() -> dict[tuple[str, str], int]:
    return _runs()


def test_few_places_say_what_another_says(runs: dict[tuple[str, str], int]) -> None:
    """Whoever makes one place less lowers the number."""
    assert len(runs) <= MOST_PAIRS, "\n".join(f"{size} {pair}" for pair, size in sorted(runs.items()))


def test_no_two_places_say_more_than_a_dozen_lines_alike(runs: dict[tuple[str, str], int]) -> None:
    assert {pair: size for pair, size in runs.items() if size > LONGEST} == {}
