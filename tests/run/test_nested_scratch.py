"""Kernels that call each other to some depth, with scratch that shares parameters, in C."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from support.ir_program import assert_c_is_the_module, read_module, write_module
from support.nested_calls import LENGTH, called_in_two_loops, called_twice, in_turn

INPUT = np.arange(5, 5 + LENGTH, dtype=np.int32)


@pytest.mark.parametrize(
    "text", [called_twice(8), called_in_two_loops(8), in_turn(45)], ids=["twice", "loops", "turn"]
)
def test_values_are_those_of_the_evaluator(text: str, tmp_path: Path) -> None:
    assert_c_is_the_module(text, tmp_path, [INPUT])


def test_sixty_levels_compile(tmp_path: Path) -> None:
    """To run them would take 2^60 calls."""
    write_module(read_module(called_twice(60)), tmp_path / "bundle")
