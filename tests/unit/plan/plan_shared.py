"""Access to the shared planner instances."""

from __future__ import annotations

from pathlib import Path

import pytest

from bytewright.plan.problem import Pool, Problem
from bytewright.plan.table import read_buffers

FOLDER = Path(__file__).parents[4] / "shared" / "planner"
CAPACITY = 1048576


def load_instance(letter: str, capacity: int | None) -> Problem:
    path = FOLDER / f"{letter}.{CAPACITY}.csv"
    if not path.exists():
        pytest.skip(f"{path.name} is not there")
    return Problem(read_buffers(path).buffers, (Pool("p", capacity),))
