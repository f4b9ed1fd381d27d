"""Forms of StableHLO's operators on windows: those with numbers, and those that are reduced."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np

from support.forms.sketch import AFFINES, BOOL, F32, I8, I32, I64, Form, Sketch, of_pairs

# Input, indices, axis of a row of indices, axes with numbers, windows, axes that are left out, axes of windows.
_GATHERS = (
    ((5, 4), (3, 1), 1, (0,), (1, 4), (0,), (1,)),
    ((5, 4), (2, 3, 1), 2, (1,), (5, 1), (1,), (0,)),
    ((3, 6, 4), (2, 2), 0, (2, 1), (3, 2, 3), (), (0, 2, 3)),
    ((3, 6, 4), (5, 2), 1, (0, 1), (1, 2, 2), (0,), (1, 2)),
    ((4, 3), (2,), 0, (0, 1), (2, 2), (), (0, 1)),
    ((4, 3), (1,), 0, (1,), (4, 2), (), (0, 1)),
)


def gather(kind: str, dtype: str) -> Iterator[Form]:
    """Numbers from which a window leaves the tensor are among them."""
    for case, constant, index_type in product(_GATHERS, (False, True), (I32, I64)):
        if index_type == I64 and (constant or dtype not in (F32, I8)):
            continue
        shape, indices, lies_at, placed, sizes, dropped, offsets = case
        sketch = Sketch(kind, dtype)
        x = sketch.input(shape)
        numbers = sketch.generator.integers(-2, 7, indices)
        i = (
            sketch.integers(numbers, index_type)
            if constant
            else sketch.input(indices, dtype=index_type, indices=7)
        )
        batch = [extent for axis, extent in enumerate(indices) if axis != lies_at]
        window = [extent for axis, extent in enumerate(sizes) if axis not in dropped]
        result = [(window if n in offsets else batch).pop(0) for n in range(len(batch) + len(window))]
        yield sketch.form(
            f"{case}{' constant' * constant} {index_type}",
            [x, i],
            [sketch.output(result)],
            offset_dims=offsets,
            collapsed_slice_dims=dropped,
            start_index_map=placed,
            index_vector_dim=lies_at,
            slice_sizes=sizes,
        )


# Input, indices, axis of a row of indices, axes with numbers, updates, axes that are inserted, axes of windows.
_SCATTERS = (
    ((6, 3), (4, 1), 1, (0,), (4, 3), (0,), (1,)),
    ((3, 6), (4, 1), 1, (1,), (4, 3), (1,), (1,)),
    ((5, 6, 2), (3, 2), 1, (1, 0), (2, 3, 2, 2), (), (0, 2, 3)),
    ((5, 6), (2, 3), 0, (0, 1), (2, 3), (0,), (0,)),
    ((7,), (1,), 0, (0,), (3,), (), (0,)),
)
COMBINED = ("", "STABLEHLO_ADD", "STABLEHLO_MULTIPLY", "STABLEHLO_MAXIMUM", "STABLEHLO_MINIMUM")


def scatter(kind: str, dtype: str) -> Iterator[Form]:
    """Numbers outside are among them, and some are there twice."""
    for case, body, index_type in product(_SCATTERS, COMBINED, (I32, I64)):
        shape, indices, lies_at, placed, updates, inserted, along = case
        if index_type == I64 and (body or dtype not in (F32, I8)):
            continue
        sketch = Sketch(kind, dtype)
        x = sketch.input(shape)
        i = sketch.input(indices, dtype=index_type, indices=7)
        u = sketch.input(updates)
        sketch.others = [of_pairs(body, dtype)]
        yield sketch.form(
            f"{case} {body} {index_type}",
            [x, i, u],
            [sketch.output(shape)],
            update_window_dims=along,
            inserted_window_dims=inserted,
            scatter_dims_to_operand_dims=placed,
            index_vector_dim=lies_at,
            update_computation_subgraph_index=1,
        )


# Input, window, strides, steps between elements, dilations, paddings.
_REDUCED = (
    ((2, 6, 5, 3), (1, 2, 3, 1), (1, 2, 1, 1), (1, 1, 1, 1), (1, 1, 1, 1), (0, 0, 0, 0, 0, 0, 0, 0)),
    ((7,), (3,), (2,), (2,), (2,), (1, -2)),
    ((3, 4), (3, 4), (1, 1), (1, 1), (1, 1), (1, 2, 0, 0)),
    ((4, 5), (1, 1), (2, 3), (1, 1), (1, 1), (0, 0, -1, 0)),
)
FUNCTIONS = {
    "ADD": "STABLEHLO_ADD",
    "MUL": "MUL",
    "MAXIMUM": "STABLEHLO_MAXIMUM",
    "MINIMUM": "MINIMUM",
    "ALL": "LOGICAL_AND",
    "ANY": "LOGICAL_OR",
}


def reduce_window(kind: str, dtype: str) -> Iterator[Form]:
    """From what changes nothing on, and from another number."""
    for case, (function, body), start in product(_REDUCED, FUNCTIONS.items(), (0, 1)):
        shape, window, strides, steps, dilations, around = case
        is_plain = kind == "REDUCE_WINDOW"
        if (is_plain and (any(around) or max(steps) > 1)) or (dtype == BOOL) != (function in ("ALL", "ANY")):
            continue
        sketch = Sketch(kind, dtype)
        x = sketch.input(shape)
        first = sketch.builder.constant("start", np.array(start, dtype), **sketch.keywords(dtype, AFFINES[0]))
        wide = [
            (extent - 1) * step + 1 + around[2 * n] + around[2 * n + 1]
            for n, (extent, step) in enumerate(zip(shape, steps, strict=True))
        ]
        result = [
            (extent - (own - 1) * dilation - 1) // stride + 1
            for extent, own, stride, dilation in zip(wide, window, strides, dilations, strict=True)
        ]
        label, y = f"{case} {function} {start}", sketch.output(result)
        if is_plain:
            numbers = [sketch.integers(each, I64) for each in (window, strides, dilations)]
            yield sketch.form(label, [x, first, *numbers], [y], reduce_function=function)
            continue
        sketch.others = [of_pairs(body, dtype)]
        yield sketch.form(
            label,
            [x, first],
            [y],
            window_dimensions=window,
            window_strides=strides,
            base_dilations=steps,
            window_dilations=dilations,
            padding=around,
            body_subgraph_index=1,
        )
