"""Which cases of a sweep run: a part that changes from day to day by default, all of them in `make test-thorough`.

The default part is taken by turns, so that each case runs once in a few days, and the same all day on every machine.
Cases that pin a fault which was found once are no sweep: they are tests of their own, or given as `always`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import TypeVar

Case = TypeVar("Case")

THOROUGH = os.environ.get("BYTEWRIGHT_TESTS") == "thorough"
TURN_VARIABLE = "BYTEWRIGHT_TESTS_TURN"


def turn() -> int:
    """The number that says which part of each sweep runs: the day, unless BYTEWRIGHT_TESTS_TURN says another.

    The first who asks sets the variable, so that the processes of one run agree past midnight.
    """
    return int(os.environ.setdefault(TURN_VARIABLE, str(datetime.now(UTC).toordinal() % 1000)))


def some(cases: Iterable[Case], every: int = 4, always: Sequence[Case] = ()) -> list[Case]:
    """One of `every` so many cases, at least one, and those that always run; all of them in the thorough tier.

    Case i runs in turn t if i + t is a multiple of `every`; of fewer cases than that, one does.
    """
    whole = list(cases)
    if THOROUGH or not whole:
        return whole
    step = min(every, len(whole))
    return [case for index, case in enumerate(whole) if (index + turn()) % step == 0 or case in always]


def fewer(count: int, thorough: int) -> int:
    """How many of something: `count`, or as many as the thorough tier takes."""
    return thorough if THOROUGH else count
