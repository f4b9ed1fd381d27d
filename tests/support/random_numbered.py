"""Makers of random models for `random_models`: StableHLO's windows, those with numbers and those that are reduced."""

from __future__ import annotations

from typing import TYPE_CHECKING

import hypothesis.strategies as st
import numpy as np

from support.forms.numbered import COMBINED, FUNCTIONS
from support.forms.sketch import of_pairs

if TYPE_CHECKING:
    from support.random_models import Draft, RandomModel

Shape = tuple[int, ...]
_NUMBERS = ("int8", "int16", "float32", "int32", "int64")


def _shape(draft: Draft, low: int, high: int, most: int = 5) -> Shape:
    return tuple(draft.draw(st.integers(1, most)) for _ in range(draft.draw(st.integers(low, high))))


def _some_of(draft: Draft, rank: int, count: int) -> Shape:
    """Some of so many axes, in any order."""
    return tuple(draft.draw(st.permutations(range(rank)))[:count])


def _windows(draft: Draft) -> RandomModel:
    """Numbers, some of which are outside; windows along any axes, of which some of one element are left out."""
    shape, batch = _shape(draft, 1, 4), _shape(draft, 0, 2, 3)
    rank, is_gather = len(shape), draft.kind == "STABLEHLO_GATHER"
    placed = _some_of(draft, rank, draft.draw(st.integers(1, rank)))
    sizes = tuple(draft.draw(st.sampled_from((1, extent, max(1, extent - 1)))) for extent in shape)
    dropped = tuple(axis for axis in range(rank) if sizes[axis] == 1 and draft.draw(st.booleans()))
    lies_at = draft.draw(st.integers(0, len(batch)))
    of_numbers = (*batch[:lies_at], len(placed), *batch[lies_at:])
    along = tuple(sorted(_some_of(draft, len(batch) + rank - len(dropped), rank - len(dropped))))
    extents = [iter(batch), iter(sizes[axis] for axis in range(rank) if axis not in dropped)]
    windows = tuple(next(extents[n in along]) for n in range(len(batch) + rank - len(dropped)))
    affine = draft.affine()
    x = draft.input(shape, affine)
    if draft.draw(st.booleans()):
        numbers = draft.index_input(of_numbers, 6)
    else:
        numbers = draft.integers("numbers", draft.generator.integers(-3, 7, of_numbers))
    facts = {"x": shape, "sizes": sizes, "placed": placed, "along": along, "numbers": of_numbers}
    if is_gather:
        y = draft.output(windows, affine)
        options = {"offset_dims": along, "collapsed_slice_dims": dropped, "start_index_map": placed}
        options |= {"index_vector_dim": lies_at, "slice_sizes": sizes}
        draft.builder.operator(draft.kind, [x, numbers], [y], **options)
        return draft.finish([y], **facts)
    body = draft.draw(st.sampled_from(COMBINED))
    draft.others = [of_pairs(body, draft.dtype)]
    updates, y = draft.input(windows, affine), draft.output(shape, affine)
    options = {"update_window_dims": along, "inserted_window_dims": dropped}
    options |= {"scatter_dims_to_operand_dims": placed, "index_vector_dim": lies_at}
    draft.builder.operator(
        draft.kind, [x, numbers, updates], [y], update_computation_subgraph_index=1, **options
    )
    return draft.finish([y], body=body, **facts)


def _reduce_window(draft: Draft) -> RandomModel:
    shape, is_plain = _shape(draft, 1, 4), draft.kind == "REDUCE_WINDOW"
    steps = tuple(1 if is_plain else draft.draw(st.integers(1, 2)) for _ in shape)
    around = tuple(0 if is_plain else draft.draw(st.integers(0, 2)) for _ in (*shape, *shape))
    wide = [
        (extent - 1) * step + 1 + around[2 * n] + around[2 * n + 1]
        for n, (extent, step) in enumerate(zip(shape, steps, strict=True))
    ]
    window = tuple(draft.draw(st.integers(1, min(3, extent))) for extent in wide)
    dilations = tuple(
        draft.draw(st.integers(1, max(1, (extent - 1) // max(1, own - 1))))
        for extent, own in zip(wide, window, strict=True)
    )
    strides = tuple(draft.draw(st.integers(1, 3)) for _ in shape)
    result = tuple(
        (extent - (own - 1) * dilation - 1) // stride + 1
        for extent, own, stride, dilation in zip(wide, window, strides, dilations, strict=True)
    )
    functions = ("ALL", "ANY") if draft.dtype == "bool" else ("ADD", "MUL", "MAXIMUM", "MINIMUM")
    function, start = draft.draw(st.sampled_from(functions)), draft.draw(st.integers(0, 2))
    affine = draft.affine()
    x, y = draft.input(shape, affine), draft.output(result, affine)
    first = draft.builder.constant("start", np.array(min(start, 1), draft.dtype))
    facts = {"x": shape, "window": window, "strides": strides, "steps": steps, "dilations": dilations}
    if is_plain:
        numbers = [draft.builder.constant("n", np.array(each)) for each in (window, strides, dilations)]
        draft.builder.operator(draft.kind, [x, first, *numbers], [y], reduce_function=function)
        return draft.finish([y], function=function, start=start, **facts)
    draft.builder.operator(
        draft.kind,
        [x, first],
        [y],
        window_dimensions=window,
        window_strides=strides,
        base_dilations=steps,
        window_dilations=dilations,
        padding=around,
        body_subgraph_index=1,
    )
    draft.others = [of_pairs(FUNCTIONS[function], draft.dtype)]
    return draft.finish([y], function=function, start=start, around=around, **facts)


MAKERS = {
    **dict.fromkeys(("STABLEHLO_GATHER", "STABLEHLO_SCATTER"), _windows),
    **dict.fromkeys(("STABLEHLO_REDUCE_WINDOW", "REDUCE_WINDOW"), _reduce_window),
}
TYPES = {
    "STABLEHLO_GATHER": _NUMBERS,
    **dict.fromkeys(("STABLEHLO_SCATTER", "STABLEHLO_REDUCE_WINDOW", "REDUCE_WINDOW"), (*_NUMBERS, "bool")),
}
