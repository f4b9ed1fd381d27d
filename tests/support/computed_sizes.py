"""Models whose sizes and places the run computes, as converters write them."""

from __future__ import annotations

from typing import Any

import numpy as np

from tflite_writer import ModelBuilder

Part = int | tuple[int, ...]
"""A tensor of no axes, or a number that the file has."""


class Writer:
    """One model: what it is given, and operators one after the other."""

    def __init__(self) -> None:
        self.builder = ModelBuilder()
        self.inputs: list[int] = []

    def input(self, name: str, shape: tuple[int, ...], dtype: str = "float32") -> int:
        self.inputs.append(self.builder.tensor(name, shape, dtype))
        return self.inputs[-1]

    def constant(self, value: Any, dtype: type[np.generic] = np.int32) -> int:
        return self.builder.constant("constant", np.array(value, dtype))

    def add(
        self, kind: str, operands: list[int], shape: tuple[int, ...], dtype: str = "float32", **how: Any
    ) -> int:
        """The result of an operator; -1 in a shape is what the file leaves open."""
        stated = tuple(max(extent, 1) for extent in shape)
        result = self.builder.tensor(kind.lower(), stated, dtype, shape_signature=shape)
        self.builder.operator(kind, operands, [result], **how)
        return result

    def numbers(self, *parts: Part) -> int:
        """A shape, put together of parts."""
        tensors = [self.constant(part[0]) if isinstance(part, tuple) else part for part in parts]
        return self.add("PACK", tensors, (len(parts),), "int32", values_count=len(parts), axis=0)

    def scalar(self, kind: str, first: int, second: int) -> int:
        """A number made of one of the run and one of the file."""
        return self.add(kind, [first, self.constant(second)], (), "int32")

    def strided(
        self, x: int, begin: int, end: int, shape: tuple[int, ...], steps: Part = (1,), **masks: Any
    ) -> int:
        """STRIDED_SLICE of the first axes."""
        strides = self.constant(steps)
        return self.add("STRIDED_SLICE", [x, begin, end, strides], shape, **masks)

    def content(self, *results: int) -> bytes:
        return self.builder.build(self.inputs, list(results))


ROWS, WIDTH = 10, 4
LENGTH = 3


def rows_up_to(x: Writer) -> tuple[int, ...]:
    """x[:n], and what is computed of it; and every third of these."""
    rows, n = x.input("x", (ROWS, WIDTH)), x.input("n", (), "int32")
    taken = x.strided(rows, x.constant([0]), x.numbers(n), (-1, WIDTH))
    some = x.strided(rows, x.constant([0]), x.numbers(n), (-1, WIDTH), (3,))
    return x.add("ADD", [taken, taken], (-1, WIDTH)), some


def one_number_in_several_operators(x: Writer) -> tuple[int, ...]:
    """x[:n] + range(n) + fill([n]), in a shape that is made of n again, and the shape of that."""
    rows, n = x.input("x", (ROWS,)), x.input("n", (), "int32")
    taken = x.strided(rows, x.constant([0]), x.numbers(n), (-1,))
    counted = x.add("RANGE", [x.constant(0), n, x.constant(1)], (-1,), "int32")
    filled = x.add("FILL", [x.numbers(n), x.constant(2.5, np.float32)], (-1,))
    total = x.add("ADD", [x.add("ADD", [taken, x.add("CAST", [counted], (-1,))], (-1,)), filled], (-1,))
    column = x.add("RESHAPE", [total, x.numbers(n, (1,))], (-1, 1))
    return column, x.add("SHAPE", [column], (2,), "int32", out_type="INT32")


def odd_rows(x: Writer) -> tuple[int, ...]:
    """x[:2n + 1] as pairs."""
    rows, n = x.input("x", (ROWS, WIDTH)), x.input("n", (), "int32")
    count = x.scalar("ADD", x.scalar("MUL", n, 2), 1)
    taken = x.strided(rows, x.constant([0]), x.numbers(count), (-1, WIDTH))
    return (x.add("RESHAPE", [taken, x.numbers(count, (2,), (2,))], (-1, 2, 2)),)


def rows_before(x: Writer) -> tuple[int, ...]:
    """zeros([n - 3, WIDTH])."""
    n = x.scalar("SUB", x.input("n", (), "int32"), 3)
    return (x.add("FILL", [x.numbers(n, (WIDTH,)), x.constant(0.0, np.float32)], (-1, WIDTH)),)


def filled(x: Writer) -> tuple[int, ...]:
    """fill([n, m], v)."""
    shape, value = x.input("shape", (2,), "int32"), x.input("value", (), "int64")
    return (x.add("FILL", [shape, value], (-1, -1), "int64"),)


def repeated(x: Writer) -> tuple[int, ...]:
    """tile(x, [n, 2]) and broadcast_to(x[:1], [n, 3]), one below the other."""
    rows, n = x.input("x", (2, 3)), x.input("n", (), "int32")
    tiled = x.add("TILE", [rows, x.numbers(n, (2,))], (-1, 6))
    first = x.add("SLICE", [rows, x.constant([0, 0]), x.constant([1, 3])], (1, 3))
    wide = x.add("BROADCAST_TO", [first, x.numbers(n, (3,))], (-1, 3))
    return x.add("ADD", [tiled, tiled], (-1, 6)), wide


def sequence_mask(x: Writer) -> tuple[int, ...]:
    """tf.sequence_mask(lengths): as long as the longest."""
    lengths = x.input("lengths", (3,), "int32")
    longest = x.add("REDUCE_MAX", [lengths, x.constant([0])], (), "int32")
    counted = x.add("RANGE", [x.constant(0), longest, x.constant(1)], (-1,), "int32")
    column = x.add("EXPAND_DIMS", [lengths, x.constant(1)], (3, 1), "int32")
    return (x.add("CAST", [x.add("LESS", [counted, column], (3, -1), "bool")], (3, -1)),)


def part(x: Writer) -> tuple[int, ...]:
    """slice(x, begin, size), both of the run."""
    rows = x.input("x", (ROWS, WIDTH))
    begin, size = x.input("begin", (2,), "int32"), x.input("size", (2,), "int32")
    return (x.add("SLICE", [rows, begin, size], (-1, -1)),)


def rest(x: Writer) -> tuple[int, ...]:
    """slice(x, begin, [-1, -1])."""
    rows, begin = x.input("x", (ROWS, WIDTH)), x.input("begin", (2,), "int32")
    return (x.add("SLICE", [rows, begin, x.constant([-1, -1])], (-1, -1)),)


def window(x: Writer) -> tuple[int, ...]:
    """slice(x, [n, 1], [3, 2])."""
    rows, n = x.input("x", (ROWS, WIDTH)), x.input("n", (), "int32")
    return (x.add("SLICE", [rows, x.numbers(n, (1,)), x.constant([3, 2])], (3, 2)),)


def window_of_rows(x: Writer) -> tuple[int, ...]:
    """x[n:n + 3], and every second row of them."""
    rows, n = x.input("x", (ROWS, WIDTH)), x.input("n", (), "int32")
    begin, end = x.numbers(n), x.numbers(x.scalar("ADD", n, 3))
    return x.strided(rows, begin, end, (3, WIDTH)), x.strided(rows, begin, end, (2, WIDTH), (2,))


def rows_in_a_shape(x: Writer) -> tuple[int, ...]:
    """reshape(x[:m], [n, 2]), and broadcast_to(x, [2, k, 4])."""
    rows = x.input("x", (ROWS, WIDTH))
    n, m, k = (x.input(name, (), "int32") for name in "nmk")
    taken = x.strided(rows, x.constant([0]), x.numbers(m), (-1, WIDTH))
    wide = x.add("BROADCAST_TO", [rows, x.numbers((2,), k, (WIDTH,))], (2, -1, WIDTH))
    return x.add("RESHAPE", [taken, x.numbers(n, (2,))], (-1, 2)), wide


def ends_that_are_sizes(x: Writer) -> tuple[int, ...]:
    """x[2:2 + n], the end written as a size."""
    rows, n = x.input("x", (ROWS, WIDTH)), x.input("n", (), "int32")
    return (x.strided(rows, x.constant([2]), x.numbers(n), (-1, WIDTH), offset=True),)


def all_rows_and_more(x: Writer) -> tuple[int, ...]:
    """x[:n + 10]."""
    rows, n = x.input("x", (ROWS, WIDTH)), x.input("n", (), "int32")
    return (x.strided(rows, x.constant([0]), x.numbers(x.scalar("ADD", n, ROWS)), (-1, WIDTH)),)


def rows_behind_the_last(x: Writer) -> tuple[int, ...]:
    """x[10:n]."""
    rows, n = x.input("x", (ROWS, WIDTH)), x.input("n", (), "int32")
    return (x.strided(rows, x.constant([ROWS]), x.numbers(n), (-1, WIDTH)),)


def rows_beside_a_number(x: Writer) -> tuple[int, ...]:
    """x[:n] and fill([n], 1)."""
    rows, n = x.input("x", (ROWS, WIDTH)), x.input("n", (), "int32")
    taken = x.strided(rows, x.constant([0]), x.numbers(n), (-1, WIDTH))
    return taken, x.add("FILL", [x.numbers(n), x.constant(1.0, np.float32)], (-1,))


def row(x: Writer) -> tuple[int, ...]:
    """x[n], and x[:, n]."""
    rows, n = x.input("x", (ROWS, WIDTH)), x.input("n", (), "int32")
    behind = x.scalar("ADD", n, 1)
    own = x.strided(rows, x.numbers(n), x.numbers(behind), (WIDTH,), shrink_axis_mask=1)
    begin, end = x.numbers((0,), n), x.numbers((0,), behind)
    return own, x.strided(rows, begin, end, (ROWS,), (1, 1), begin_mask=1, end_mask=1, shrink_axis_mask=2)


def rows_from(x: Writer) -> tuple[int, ...]:
    """x[n:]."""
    rows, n = x.input("x", (ROWS, WIDTH)), x.input("n", (), "int32")
    return (x.strided(rows, x.numbers(n), x.constant([0]), (-1, WIDTH), end_mask=1),)


def rows_between(x: Writer) -> tuple[int, ...]:
    """x[2:n], and x[n:m]."""
    rows, n, m = x.input("x", (ROWS, WIDTH)), x.input("n", (), "int32"), x.input("m", (), "int32")
    return (
        x.strided(rows, x.constant([2]), x.numbers(n), (-1, WIDTH)),
        x.strided(rows, x.numbers(n), x.numbers(m), (-1, WIDTH)),
    )


def spans(step: int, x: Writer) -> tuple[int, ...]:
    """x[:n:step], x[n::step], x[1:n:step], x[n:1:step] and x[n:m:step]."""
    rows, n, m = x.input("x", (LENGTH,)), x.input("n", (), "int32"), x.input("m", (), "int32")
    first, last = x.numbers(n), x.numbers(m)
    return (
        x.strided(rows, x.constant([0]), first, (-1,), (step,), begin_mask=1),
        x.strided(rows, first, x.constant([0]), (-1,), (step,), end_mask=1),
        x.strided(rows, x.constant([1]), first, (-1,), (step,)),
        x.strided(rows, first, x.constant([1]), (-1,), (step,)),
        x.strided(rows, first, last, (-1,), (step,)),
    )


def spans_of_several_axes(x: Writer) -> tuple[int, ...]:
    """x[n, ..., new, m::-2, :n] and x[..., m:n]."""
    rows, n, m = x.input("x", (2, 2, LENGTH, 3)), x.input("n", (1,), "int32"), x.input("m", (1,), "int32")
    none = x.constant([0])

    def joined(*parts: int) -> int:
        return x.add("CONCATENATION", [*parts], (len(parts),), "int32", axis=0)

    first = x.add(
        "STRIDED_SLICE",
        [
            rows,
            joined(n, none, none, m, none),
            joined(none, none, none, none, n),
            x.constant([1, 1, 1, -2, 1]),
        ],
        (2, 1, -1, -1),
        begin_mask=0b10000,
        end_mask=0b01000,
        ellipsis_mask=0b00010,
        new_axis_mask=0b00100,
        shrink_axis_mask=0b00001,
    )
    return first, x.add(
        "STRIDED_SLICE",
        [rows, joined(none, m), joined(none, n), x.constant([1, 1])],
        (2, 2, LENGTH, -1),
        ellipsis_mask=1,
    )


def counted_mask(x: Writer) -> tuple[int, ...]:
    """Rows by a mask, in a shape of how many are true, as tf.boolean_mask and tf.reduce_sum count them."""
    rows, mask = x.input("x", (ROWS, WIDTH)), x.input("mask", (ROWS,), "bool")
    places = x.add("WHERE", [mask], (-1, 1), "int64")
    taken = x.add("GATHER_ND", [rows, places], (-1, WIDTH))
    ones = x.add("CAST", [mask], (ROWS,), "int32")
    count = x.add("SUM", [ones, x.constant([0])], (), "int32")
    shape = x.add("SHAPE", [taken], (2,), "int32", out_type="INT32")
    number = x.add(
        "STRIDED_SLICE",
        [shape, x.constant([0]), x.constant([1]), x.constant([1])],
        (),
        "int32",
        shrink_axis_mask=1,
    )
    ends = x.add("FILL", [x.numbers(number), x.constant(1.0, np.float32)], (-1,))
    return x.add("RESHAPE", [taken, x.numbers(count, (2,), (2,))], (-1, 2, 2)), ends


def rows_of_a_mask_and_up_to_a_number(x: Writer) -> tuple[int, ...]:
    """x[mask] and x[:n], of int32, and the greatest of each row of the latter."""
    rows, mask = x.input("x", (ROWS, WIDTH), "int32"), x.input("mask", (ROWS,), "bool")
    n = x.input("n", (), "int32")
    places = x.add("WHERE", [mask], (-1, 1), "int64")
    first = x.add(
        "STRIDED_SLICE", [rows, x.constant([0]), x.numbers(n), x.constant([1])], (-1, WIDTH), "int32"
    )
    greatest = x.add("REDUCE_MAX", [first, x.constant([1])], (-1,), "int32")
    return x.add("GATHER_ND", [rows, places], (-1, WIDTH), "int32"), first, greatest


def best_boxes(x: Writer) -> tuple[int, ...]:
    """As many of the best boxes as the run says: NON_MAX_SUPPRESSION_V5."""
    boxes, scores, most = x.input("boxes", (9, 4)), x.input("scores", (9,)), x.input("most", (), "int32")
    limits = [x.constant(value, np.float32) for value in (0.5, 0.2, 0.0)]
    results = [
        x.builder.tensor("numbers", (1,), "int32", shape_signature=(-1,)),
        x.builder.tensor("kept", (1,), "float32", shape_signature=(-1,)),
        x.builder.tensor("number", (), "int32"),
    ]
    x.builder.operator("NON_MAX_SUPPRESSION_V5", [boxes, scores, most, *limits], results)
    return tuple(results)
