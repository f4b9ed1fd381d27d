"""Which cases of a sweep run: a part that changes from day to day by default, all of them in `make test-thorough`.

The default part is taken by turns, so that each case runs once in a few days, and the same all day on every machine.
Cases that pin a fault which was found once are no sweep: they are tests of their own, or given as `always`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from itertools import combinations, product
from typing import Any, TypeVar

Case = TypeVar("Case")

THOROUGH = os.environ.get("BYTEWRIGHT_TESTS") == "thorough"
TIMES = 4 if THOROUGH else 1
"""How many times as many random cases as by default: more of the same draw say little."""
TURN_VARIABLE = "BYTEWRIGHT_TESTS_TURN"
LIMIT_VARIABLE = "PYTEST_TIMEOUT"
MOST_WAITING_SECONDS = 3000 if THOROUGH else 300


def turn() -> int:
    """The number that says which part of each sweep runs: the day, unless BYTEWRIGHT_TESTS_TURN says another.

    The first who asks sets the variable, so that the processes of one run agree past midnight.
    """
    return int(os.environ.setdefault(TURN_VARIABLE, str(datetime.now(UTC).toordinal() % 1000)))


def limit_waiting() -> None:
    """Ends a test that hangs, in Python or waiting for a process, with a traceback (pytest-timeout reads the variable).

    By the clock, and therefore generous: under load a test takes several times its processor time. Who has set
    the variable keeps it.
    """
    os.environ.setdefault(LIMIT_VARIABLE, str(MOST_WAITING_SECONDS))


def some(cases: Iterable[Case], every: int = 4, always: Sequence[Case] = ()) -> list[Case]:
    """One of `every` so many cases, at least one, and those that always run; all of them in the thorough tier.

    Case i runs in turn t if i + t is a multiple of `every`; of fewer cases than that, one does.
    """
    whole = list(cases)
    return whole if THOROUGH else share(whole, every, always)


def share(cases: Iterable[Case], every: int, always: Sequence[Case] = ()) -> list[Case]:
    """What `some` is in the default tier, in both: for what each case adds little to, as another compiler does."""
    whole = list(cases)
    step = min(every, max(1, len(whole)))
    return [case for index, case in enumerate(whole) if (index + turn()) % step == 0 or case in always]


def covering(*parameters: Sequence[Any]) -> list[tuple[Any, ...]]:
    """Cells of a grid so that each pair of values of two parameters is in one of them; all cells if thorough.

    Which cells differs from turn to turn, so that all of them run in the end.
    """
    cells = list(product(*(range(len(values)) for values in parameters)))
    if not THOROUGH:
        first = turn() * 7 % len(cells)
        cells = _pairwise(cells[first:] + cells[:first])
    return [tuple(values[index] for values, index in zip(parameters, cell, strict=True)) for cell in cells]


def _pairwise(cells: Sequence[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """Of these cells, one after the other the first that holds most pairs that none before it does."""

    def pairs(cell: tuple[int, ...]) -> set[tuple[tuple[int, int], ...]]:
        return set(combinations(enumerate(cell), min(2, len(cell))))

    missing = set[tuple[tuple[int, int], ...]]().union(*map(pairs, cells))
    chosen: list[tuple[int, ...]] = []
    while missing:
        chosen.append(max(cells, key=lambda cell: len(pairs(cell) & missing)))
        missing -= pairs(chosen[-1])
    return chosen
