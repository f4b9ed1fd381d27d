"""The tests that were measured to be slow: which of them `make check` leaves out, and which files run first.

`tests/slow_tests.txt` has a line for each, seconds of processor time and the test's name; `make update-slow` measures
and writes it anew. A line of a test that is gone means nothing, a slow test without one is in `make check`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path

LIST = Path(__file__).resolve().parent.parent / "slow_tests.txt"
LEAST_SECONDS = 1.0
# `make check` has to stay within two minutes, and most of its tests take a few hundredths of a second.
CHECKED = ("tests/unit/", "tests/golden/")
LEAST_SECONDS_CHECKED = 0.3


def read(path: Path = LIST) -> dict[str, float]:
    """Seconds by test."""
    if not path.is_file():
        return {}
    lines = (line.split("\t") for line in path.read_text(encoding="utf-8").splitlines())
    return {name: float(seconds) for seconds, name in lines}


def update(measured: Mapping[str, float], path: Path = LIST) -> None:
    """Takes over what was measured; lines of files in which nothing was stay as they are."""
    files = {file_of(name) for name in measured}
    kept = {name: seconds for name, seconds in read(path).items() if file_of(name) not in files}
    kept |= {name: seconds for name, seconds in measured.items() if seconds >= _least(name)}
    lines = [f"{seconds:.1f}\t{name}\n" for name, seconds in sorted(kept.items())]
    path.write_text("".join(lines), encoding="utf-8")


def _least(test: str) -> float:
    return LEAST_SECONDS_CHECKED if test.startswith(CHECKED) else LEAST_SECONDS


def file_of(test: str) -> str:
    """The file that a test is in."""
    return test.partition("::")[0]


def by_file(costs: Iterable[tuple[str, float]]) -> dict[str, float]:
    """The sums of files, of pairs of test and seconds."""
    sums: dict[str, float] = defaultdict(float)
    for name, seconds in costs:
        sums[file_of(name)] += seconds
    return sums
