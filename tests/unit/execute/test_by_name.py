"""Inputs and outputs by name, in whatever order."""

from __future__ import annotations

import pytest

from bytewright.diagnostics import CompileError
from bytewright.execute.by_name import in_order

NAMES = ("gyro", "accel")


def test_what_is_not_named_stays_as_it_stands() -> None:
    assert in_order(NAMES, [(None, 1), (None, 2), (None, 3)], "input") == [1, 2, 3]
    assert in_order(NAMES, [], "input") == []


def test_names_bring_the_model_s_order() -> None:
    assert in_order(NAMES, [("accel", 2), ("gyro", 1)], "input") == [1, 2]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([("accel", 2), (None, 1)], "some outputs are given by name and some are not"),
        ([("accel", 2), ("x", 1)], "there is no output 'x'"),
        ([("accel", 2), ("gyro", 1), ("accel", 1)], "output 'accel' is given twice"),
        ([("accel", 2)], "output 'gyro' is not given"),
    ],
)
def test_names_that_do_not_fit(given: list[tuple[str | None, int]], message: str) -> None:
    with pytest.raises(CompileError) as caught:
        in_order(NAMES, given, "output")
    (diagnostic,) = caught.value.diagnostics
    assert (diagnostic.code, diagnostic.message) == ("BW205", message)
    assert diagnostic.notes == ("the model's outputs are 'gyro', 'accel'",)
