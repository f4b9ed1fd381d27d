"""Forms of operators that move elements, or make them of nothing."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np

from support.forms.sketch import AFFINES, F32, I8, I32, I64, Form, Shape, Sketch


def move(kind: str, dtype: str) -> Iterator[Form]:
    """Operators of an input, constants and options that copy elements."""
    for label, shape, result, constants, options in MOVES[kind]:
        sketch = Sketch(kind, dtype)
        results = result if isinstance(result, list) else [result]
        x = sketch.input(shape)
        operands = [x, *(sketch.integers(values) for values in constants)]
        operands = operands[::-1] if kind == "SPLIT" else operands
        outputs = [sketch.output(each) for each in results]
        yield sketch.form(label, operands, outputs, **options)


_S = (2, 3, 4, 5)
MOVES: dict[str, list[tuple[str, Shape, Any, list[Any], dict[str, Any]]]] = {
    "RESHAPE": [
        ("to two axes", _S, (6, 20), [(6, 20)], {"new_shape": (6, 20)}),
        ("with -1", _S, (3, 40), [(3, -1)], {"new_shape": (3, -1)}),
        ("by option", _S, (120,), [], {"new_shape": (120,)}),
    ],
    "SQUEEZE": [
        ("one axis", (2, 1, 4, 1), (2, 4, 1), [], {"squeeze_dims": (1,)}),
        ("all", (2, 1, 4, 1), (2, 4), [], {"squeeze_dims": ()}),
    ],
    "EXPAND_DIMS": [(f"axis {a}", (2, 3), r, [a], {}) for a, r in ((0, (1, 2, 3)), (-1, (2, 3, 1)))],
    "TRANSPOSE": [
        ("2 axes", (4, 5), (5, 4), [(1, 0)], {}),
        ("3 axes", (2, 3, 4), (4, 2, 3), [(2, 0, 1)], {}),
        ("4 axes", _S, (2, 5, 3, 4), [(0, 3, 1, 2)], {}),
        ("5 axes", (2, 1, 3, 2, 4), (4, 2, 3, 1, 2), [(4, 3, 2, 1, 0)], {}),
    ],
    "SLICE": [
        ("all axes", _S, (1, 2, 2, 3), [(1, 1, 0, 2), (1, 2, 2, 3)], {}),
        ("to the end", (4, 5), (3, 4), [(1, 1), (-1, -1)], {}),
    ],
    "STRIDED_SLICE": [
        ("strides", _S, (2, 2, 2, 2), [(0, 0, 1, 0), (2, 3, 4, 4), (1, 2, 2, 2)], {}),
        ("backwards", (4, 5), (4, 3), [(3, 4), (-5, -6), (-1, -2)], {}),
        (
            "masks",
            (4, 5),
            (5,),
            [(1, 0), (2, 0), (1, 1)],
            {"shrink_axis_mask": 1, "begin_mask": 2, "end_mask": 2},
        ),
    ],
    "PAD": [
        ("4 axes", _S, (2, 6, 7, 5), [((0, 0), (1, 2), (2, 1), (0, 0))], {}),
        ("2 axes", (3, 4), (5, 4), [((1, 1), (0, 0))], {}),
    ],
    "MIRROR_PAD": [
        (mode, (3, 4), (7, 6), [((2, 2), (1, 1))], {"mode": mode}) for mode in ("REFLECT", "SYMMETRIC")
    ],
    "SPLIT": [
        ("axis 3", (2, 3, 4), [(2, 3, 2)] * 2, [2], {"num_splits": 2}),
        ("axis 0", (6, 4), [(2, 4)] * 3, [0], {"num_splits": 3}),
    ],
    "SPLIT_V": [
        ("axis 1", (2, 6), [(2, 1), (2, 3), (2, 2)], [(1, 3, 2), 1], {"num_splits": 3}),
        ("with -1", (6, 3), [(2, 3), (4, 3)], [(2, -1), 0], {"num_splits": 2}),
    ],
    "UNPACK": [
        ("axis 0", (3, 4), [(4,)] * 3, [], {"num": 3, "axis": 0}),
        ("axis -1", (2, 3), [(2,)] * 3, [], {"num": 3, "axis": -1}),
    ],
    "TILE": [("2 axes", (2, 3), (4, 9), [(2, 3)], {}), ("4 axes", _S, (2, 6, 8, 5), [(1, 2, 2, 1)], {})],
    "REVERSE_V2": [("axis 1", (3, 4, 5), (3, 4, 5), [(1,)], {}), ("last", (3, 4), (3, 4), [(1,)], {})],
    "BROADCAST_TO": [
        ("a row", (1, 5), (4, 5), [(4, 5)], {}),
        ("more axes", (3, 1), (2, 3, 4), [(2, 3, 4)], {}),
    ],
    "DEPTH_TO_SPACE": [("block 2", (1, 2, 3, 8), (1, 4, 6, 2), [], {"block_size": 2})],
    "SPACE_TO_DEPTH": [("block 2", (1, 4, 6, 2), (1, 2, 3, 8), [], {"block_size": 2})],
    "SPACE_TO_BATCH_ND": [
        ("4 axes", (1, 4, 6, 2), (4, 2, 3, 2), [(2, 2), ((0, 0), (0, 0))], {}),
        ("padded", (1, 3, 5, 2), (4, 2, 3, 2), [(2, 2), ((0, 1), (1, 0))], {}),
        ("3 axes", (2, 6, 3), (4, 3, 3), [(2,), ((0, 0),)], {}),
    ],
    "BATCH_TO_SPACE_ND": [
        ("4 axes", (4, 2, 3, 2), (1, 4, 6, 2), [(2, 2), ((0, 0), (0, 0))], {}),
        ("cropped", (4, 2, 3, 2), (1, 3, 5, 2), [(2, 2), ((0, 1), (1, 0))], {}),
    ],
}


def several(kind: str, dtype: str) -> Iterator[Form]:
    """CONCATENATION and PACK."""
    if kind == "PACK":
        for axis, count in product((0, 1, -1), (2, 3)):
            sketch = Sketch(kind, dtype)
            result = np.stack([np.zeros((3, 4))] * count, axis).shape
            operands = [sketch.input((3, 4)) for _ in range(count)]
            yield sketch.form(
                f"{count} axis {axis}", operands, [sketch.output(result)], axis=axis, values_count=count
            )
        return
    for axis, rank in ((0, 1), (1, 2), (-1, 4), (1, 4)):
        sketch = Sketch(kind, dtype)
        shapes = [list((2, 3, 4, 5)[:rank]) for _ in range(3)]
        shapes[1][axis] = 1
        result = np.concatenate([np.zeros(each) for each in shapes], axis).shape
        yield sketch.form(
            f"{rank} axes {axis}", [sketch.input(s) for s in shapes], [sketch.output(result)], axis=axis
        )


def spread(kind: str, dtype: str) -> Iterator[Form]:
    """DILATE, and STABLEHLO_PAD, which pads and crops besides."""
    cases = (
        ((3, 4), (2, 3), (0, 0), (0, 0)),
        ((2, 1, 3), (1, 4, 2), (1, 0, 2), (0, 3, 1)),
        ((5,), (2,), (-2,), (1,)),
    )
    for shape, steps, before, after in cases:
        sketch = Sketch(kind, dtype)
        x, is_dilate = sketch.input(shape), kind == "DILATE"
        value = sketch.builder.constant(
            "value", sketch.values((), dtype), **sketch.keywords(dtype, AFFINES[0])
        )
        result = [(extent - 1) * step + 1 for extent, step in zip(shape, steps, strict=True)]
        if is_dilate:
            operands, options = [x, sketch.integers(steps), value], {}
        else:
            operands = [x, value]
            result = [sum(each) for each in zip(result, before, after, strict=True)]
            between = tuple(step - 1 for step in steps)
            options = {"edge_padding_low": before, "edge_padding_high": after, "interior_padding": between}
        facts = f"{list(shape)} by {steps} {before} {after}"
        yield sketch.form(facts, operands, [sketch.output(result)], **options)


def padv2(kind: str, dtype: str) -> Iterator[Form]:
    sketch = Sketch(kind, dtype)
    x, y = sketch.input((1, 3, 4, 2)), sketch.output((1, 5, 5, 2))
    value = sketch.builder.constant("value", sketch.values((), dtype), **sketch.keywords(dtype, AFFINES[0]))
    yield sketch.form("4 axes", [x, sketch.integers(((0, 0), (1, 1), (1, 0), (0, 0))), value], [y])


def gather(kind: str, dtype: str) -> Iterator[Form]:
    for axis, indices, batch in ((0, (2,), 0), (1, (2, 3), 0), (-1, (), 0), (1, (2, 3), 1)):
        for constant, index_type in product((False, True), (I32, I64)):
            if not constant and index_type == I64 and dtype not in (F32, I8):
                continue
            sketch = Sketch(kind, dtype)
            shape = (2, 5, 4)
            own = axis % 3
            result = (*shape[:own], *indices[batch:], *shape[own + 1 :])
            x = sketch.input(shape)
            numbers = sketch.generator.integers(0, shape[own], indices)
            i = (
                sketch.integers(numbers, index_type)
                if constant
                else sketch.input(indices, dtype=index_type, indices=shape[own])
            )
            facts = f"axis {axis} {list(indices)} batch {batch} {index_type}{' constant' * constant}"
            yield sketch.form(facts, [x, i], [sketch.output(result)], axis=axis, batch_dims=batch)


def gather_nd(kind: str, dtype: str) -> Iterator[Form]:
    for indices, constant in product(((4, 1), (2, 3, 2), (3,)), (False, True)):
        sketch = Sketch(kind, dtype)
        shape = (3, 3, 3)
        numbers = sketch.generator.integers(0, 3, indices)
        x = sketch.input(shape)
        i = sketch.integers(numbers) if constant else sketch.input(indices, dtype=I32, indices=3)
        result = (*indices[:-1], *shape[indices[-1] :])
        yield sketch.form(f"{list(indices)}{' constant' * constant}", [x, i], [sketch.output(result)])


def scatter_nd(kind: str, dtype: str) -> Iterator[Form]:
    sketch = Sketch(kind, dtype)
    indices = sketch.integers(((1,), (4,), (1,)))
    yield sketch.form(
        "repeated", [indices, sketch.input((3, 2)), sketch.integers((6, 2))], [sketch.output((6, 2))]
    )
    for rows, count, shape in (((4,), 1, (6,)), ((2, 3), 2, (4, 5, 3)), ((3,), 3, (4, 4, 4))):
        sketch = Sketch(kind, dtype)
        numbers = sketch.input((*rows, count), dtype=I32, indices=min(shape[:count]))
        updates = sketch.input((*rows, *shape[count:]))
        operands = [numbers, updates, sketch.integers(shape)]
        yield sketch.form(f"{[*rows, count]} of {list(shape)}", operands, [sketch.output(shape)])


def diagonal(kind: str, dtype: str) -> Iterator[Form]:
    """MATRIX_DIAG and MATRIX_SET_DIAG."""
    for shape in ((4,), (2, 3)) if kind == "MATRIX_DIAG" else ((3, 3), (2, 3, 5), (2, 2, 4, 3)):
        sketch = Sketch(kind, dtype)
        x = sketch.input(shape)
        if kind == "MATRIX_DIAG":
            yield sketch.form(f"{list(shape)}", [x], [sketch.output((*shape, shape[-1]))])
        else:
            values = sketch.input((*shape[:-2], min(shape[-2:])))
            yield sketch.form(f"{list(shape)}", [x, values], [sketch.output(shape)])


def reverse_sequence(kind: str, dtype: str) -> Iterator[Form]:
    for shape, steps, samples in (((3, 5, 2), 1, 0), ((5, 3), 0, 1), ((2, 3, 4, 5), 3, 1), ((4, 2, 3), 0, 2)):
        for constant, index_type in product((False, True), (I32, I64)):
            sketch = Sketch(kind, dtype)
            numbers = sketch.generator.integers(0, shape[steps] + 1, shape[samples])
            x = sketch.input(shape)
            lengths = (
                sketch.integers(numbers, index_type)
                if constant
                else sketch.input((shape[samples],), dtype=index_type, indices=shape[steps] + 1)
            )
            facts = f"{list(shape)} {steps} {samples} {index_type}{' constant' * constant}"
            options = {"seq_dim": steps, "batch_dim": samples}
            yield sketch.form(facts, [x, lengths], [sketch.output(shape)], **options)


def sparse_to_dense(kind: str, dtype: str) -> Iterator[Form]:
    """Some places are there twice: the last value stays."""
    cases = (((5, 2), (3, 4), True), ((4,), (6,), True), ((), (6,), False), ((3, 4), (2, 3, 2, 2), False))
    for (indices, shape, is_row), index_type in product(cases, (I32, I64)):
        sketch = Sketch(kind, dtype)
        numbers = sketch.input(indices, dtype=index_type, indices=min(shape))
        values = sketch.input(indices[:1] if is_row else ())
        rest = sketch.builder.constant("rest", sketch.values((), dtype), **sketch.keywords(dtype, AFFINES[0]))
        operands = [numbers, sketch.integers(shape, index_type), values, rest]
        yield sketch.form(f"{list(indices)} of {list(shape)} {index_type}", operands, [sketch.output(shape)])


def segment_sum(kind: str, dtype: str) -> Iterator[Form]:
    for shape, numbers in (((5, 2, 3), (0, 0, 1, 2, 2)), ((3,), (0, 0, 0))):
        sketch = Sketch(kind, dtype)
        result = (numbers[-1] + 1, *shape[1:])
        operands = [sketch.input(shape), sketch.integers(numbers)]
        yield sketch.form(f"{list(shape)} {numbers}", operands, [sketch.output(result)])


def unsorted_segment(kind: str, dtype: str) -> Iterator[Form]:
    """One segment is always empty; where the numbers are constant, one element is of none."""
    for shape, axes, constant in (((6, 3), 1, False), ((2, 3, 4), 2, False), ((5,), 1, True)):
        sketch = Sketch(kind, dtype)
        x, extents = sketch.input(shape), shape[:axes]
        numbers = (3, -1, 0, 3, 2)
        where = sketch.integers(numbers) if constant else sketch.input(extents, dtype=I32, indices=3)
        facts = f"{list(shape)} by {list(extents)}{' constant' * constant}"
        yield sketch.form(facts, [x, where, sketch.integers(4)], [sketch.output((4, *shape[axes:]))])


def embedding(kind: str, dtype: str) -> Iterator[Form]:
    for result in (dtype, F32) if dtype == I8 else (dtype,):
        sketch = Sketch(kind, dtype)
        i = sketch.input((4,), dtype=I32, indices=10)
        table = sketch.constant((10, 6), (0.05, 0))
        yield sketch.form(f"to {result}", [i, table], [sketch.output((4, 6), (0.05, 0), dtype=result)])


def one_hot(kind: str, dtype: str) -> Iterator[Form]:
    for axis in (-1, 0):
        sketch = Sketch(kind, dtype)
        i = sketch.input((2, 3), dtype=I32, indices=5)
        on, off = (sketch.builder.constant(n, np.array(v, dtype)) for n, v in (("on", 1), ("off", 0)))
        result = (2, 3, 5) if axis == -1 else (5, 2, 3)
        yield sketch.form(
            f"axis {axis}", [i, sketch.integers(5), on, off], [sketch.output(result)], axis=axis
        )


def fill(kind: str, dtype: str) -> Iterator[Form]:
    sketch = Sketch(kind, dtype)
    x = sketch.input(())
    yield sketch.form("of an input", [sketch.integers((2, 3)), x], [sketch.output((2, 3))])


def zeros_like(kind: str, dtype: str) -> Iterator[Form]:
    sketch = Sketch(kind, dtype)
    yield sketch.form("3 axes", [sketch.input((2, 3, 4))], [sketch.output((2, 3, 4))])


def dynamic_update(kind: str, dtype: str) -> Iterator[Form]:
    for constant in (False, True):
        sketch = Sketch(kind, dtype)
        x, update = sketch.input((4, 5)), sketch.input((2, 3))
        start = sketch.integers((1, 2)) if constant else sketch.input((2,), dtype=I32, indices=3)
        yield sketch.form(
            "constant" if constant else "start is an input", [x, update, start], [sketch.output((4, 5))]
        )


def shape_of(kind: str, dtype: str) -> Iterator[Form]:
    sketch = Sketch(kind, dtype)
    yield sketch.form("4 axes", [sketch.input(_S)], [sketch.output((4,), dtype=I32)])
