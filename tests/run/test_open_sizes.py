"""Networks that compute with the extent of an open axis itself, beside LiteRT at every extent."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from test_open_windows import Net, refused

from support.every_extent import check
from tflite_writer import ModelBuilder

ROWS = 12
Sizes = Callable[["Sized"], int]


class Sized(ModelBuilder):
    """A network over time [1, ROWS, 4], and integers without axes that it computes from its extent."""

    def __init__(self) -> None:
        super().__init__()
        self.x = self.tensor("x", [1, ROWS, 4], "float32")
        self.num_values = 0

    def put(
        self, kind: str, inputs: list[int], shape: list[int], dtype: str = "int32", **options: int
    ) -> int:
        self.num_values += 1
        result = self.tensor(f"v{self.num_values}", shape, dtype)
        self.operator(kind, inputs, [result], **options)
        return result

    def number(self, *values: int) -> int:
        """A number, or a list of them."""
        self.num_values += 1
        return self.constant(
            f"c{self.num_values}", np.array(values if len(values) > 1 else values[0], np.int32)
        )

    def rows(self) -> int:
        shape = self.put("SHAPE", [self.x], [3])
        return self.put("GATHER", [shape, self.number(1)], [])

    def of(self, kind: str, one: int, other: int) -> int:
        return self.put(kind, [one, self.number(other)], [])

    def scaled(self, number: int, kind: str = "MUL", of: int | None = None) -> bytes:
        """The input times a number, or by it."""
        as_float = self.put("CAST", [number], [], "float32")
        source, shape = (self.x, [1, ROWS, 4]) if of is None else (of, [1, 4])
        return self.build([self.x], [self.put(kind, [source, as_float], shape, "float32")])

    def padded(self) -> int:
        """The input with so many rows behind it that there are eight."""
        missing = self.of("MAXIMUM", self.put("SUB", [self.number(8), self.rows()], []), 0)
        zero = self.number(0)
        flat = self.put("PACK", [zero, zero, zero, missing, zero, zero], [6], values_count=6, axis=0)
        paddings = self.put("RESHAPE", [flat, self.number(3, 2)], [3, 2])
        return self.put("PAD", [self.x, paddings], [1, ROWS, 4], "float32")


NUMBERS: dict[str, Sizes] = {
    "the extent": Sized.rows,
    "at most three": lambda net: net.of("MINIMUM", net.rows(), 3),
    "what is above three": lambda net: net.of("MAXIMUM", net.of("SUB", net.rows(), 3), 0),
    "half": lambda net: net.of("FLOOR_DIV", net.rows(), 2),
    "a square": lambda net: net.put("MUL", [rows := net.rows(), rows], []),
}


@pytest.mark.parametrize("upper", [3, 9])
@pytest.mark.parametrize("name", NUMBERS)
def test_a_number_is_that_of_each_extent(tmp_path: Path, name: str, upper: int) -> None:
    net = Sized()
    check(tmp_path, net.scaled(NUMBERS[name](net)), 1, upper)


def test_a_mean_is_a_sum_by_the_extent(tmp_path: Path) -> None:
    net = Sized()
    total = net.put("SUM", [net.x, net.number(1)], [1, 4], "float32", keep_dims=0)
    check(tmp_path, net.scaled(net.rows(), "DIV", total), 1, 9)


def test_what_some_extents_alone_have_is_refused(tmp_path: Path) -> None:
    """Nothing is padded from eight rows on, so that the operator is there for fewer alone."""
    padded = Sized()
    result = padded.put("SUM", [padded.padded(), padded.number(1)], [1, 4], "float32", keep_dims=0)
    content = padded.build([padded.x], [result])
    found = refused(tmp_path, content, 1, 20)
    assert "the file has other operators for some extents, and" in found
    assert "follows from no extent for time=7" in found
    check(tmp_path, content, 8, 20)


def test_a_bend_of_a_long_range_is_found(tmp_path: Path) -> None:
    net = Sized()
    found = refused(tmp_path, net.scaled(net.of("MINIMUM", net.rows(), 100)), 1, 200)
    assert "does not grow by the same with each extent" in found


def test_a_file_of_many_weights_is_read_for_each_extent(tmp_path: Path) -> None:
    """A limit to how often its bytes are decoded is one for each reading."""
    content = Net(channels=40).image().conv(64, (1, 15)).conv(40, (1, 1)).content()
    check(tmp_path, content, 1, 64, extents=(1, 2, 33, 63, 64))


def test_a_long_range_is_read_at_some_extents(tmp_path: Path) -> None:
    net = Sized()
    check(tmp_path, net.scaled(net.rows()), 1, 200, extents=(1, 2, 3, 33, 40, 100, 199, 200))
