"""Makers of random models for `random_models`: operators that find places or take them, and running sums."""

from __future__ import annotations

from typing import TYPE_CHECKING

import hypothesis.strategies as st
import numpy as np

if TYPE_CHECKING:
    from support.random_models import Draft, RandomModel

Shape = tuple[int, ...]
_OF_ANY_TYPE = ("int8", "int16", "float32", "int32", "int64", "bool")


def _shape(draft: Draft, low: int, high: int) -> Shape:
    return tuple(draft.draw(st.integers(1, 5)) for _ in range(draft.draw(st.integers(low, high))))


def _axis(draft: Draft, rank: int) -> tuple[int, int]:
    """An axis, and the same as the file says it."""
    axis = draft.draw(st.integers(0, rank - 1))
    return axis, axis - rank if draft.draw(st.booleans()) else axis


def _arg(draft: Draft) -> RandomModel:
    shape = _shape(draft, 1, 4)
    axis, stated = _axis(draft, len(shape))
    x = draft.input(shape, draft.affine())
    y = draft.builder.tensor("output", (*shape[:axis], *shape[axis + 1 :]), "int32")
    number = draft.builder.constant("axis", np.array(stated, np.int32))
    draft.builder.operator(draft.kind, [x, number], [y])
    return draft.finish([y], x=shape, axis=stated)


def _cumsum(draft: Draft) -> RandomModel:
    shape = _shape(draft, 1, 4)
    _, stated = _axis(draft, len(shape))
    x, y = draft.input(shape, draft.affine()), draft.output(shape, draft.affine())
    options = {"exclusive": draft.draw(st.booleans()), "reverse": draft.draw(st.booleans())}
    number = draft.builder.constant("axis", np.array(stated, np.int32))
    draft.builder.operator(draft.kind, [x, number], [y], **options)
    return draft.finish([y], x=shape, axis=stated, **options)


def _update_slice(draft: Draft) -> RandomModel:
    shape = _shape(draft, 1, 4)
    part = tuple(draft.draw(st.integers(1, extent)) for extent in shape)
    affine = draft.affine()
    x, update = draft.input(shape, affine), draft.input(part, affine)
    start = draft.index_input((len(shape),), 4)
    y = draft.output(shape, affine)
    draft.builder.operator(draft.kind, [x, update, start], [y])
    return draft.finish([y], x=shape, part=part)


def _fill(draft: Draft) -> RandomModel:
    shape = _shape(draft, 1, 4)
    affine = draft.affine()
    x, y = draft.input((), affine), draft.output(shape, affine)
    draft.builder.operator(draft.kind, [draft.integers("shape", shape), x], [y])
    return draft.finish([y], shape=shape)


def _gather_nd(draft: Draft) -> RandomModel:
    shape = _shape(draft, 1, 4)
    least = min(shape)
    count = draft.draw(st.integers(1, len(shape)))
    rows = (*_shape(draft, 0, 2), count)
    affine = draft.affine()
    x = draft.input(shape, affine)
    if draft.draw(st.booleans()):
        indices = draft.index_input(rows, least)
    else:
        indices = draft.integers("indices", draft.generator.integers(0, least, rows))
    y = draft.output((*rows[:-1], *shape[count:]), affine)
    draft.builder.operator(draft.kind, [x, indices], [y])
    return draft.finish([y], x=shape, rows=rows)


def _scatter_nd(draft: Draft) -> RandomModel:
    """Some rows at one place, at computed or constant ones."""
    shape = _shape(draft, 1, 4)
    count = draft.draw(st.integers(1, len(shape)))
    rows, least = (*_shape(draft, 1, 2), count), min(shape[:count])
    affine = draft.affine()
    if draft.draw(st.booleans()):
        indices = draft.index_input(rows, least)
    else:
        indices = draft.integers("indices", draft.generator.integers(0, least, rows))
    updates = draft.input((*rows[:-1], *shape[count:]), affine)
    y = draft.output(shape, affine)
    draft.builder.operator(draft.kind, [indices, updates, draft.integers("shape", shape)], [y])
    return draft.finish([y], shape=shape, rows=rows)


def _one_hot(draft: Draft) -> RandomModel:
    shape = _shape(draft, 0, 3)
    depth, axis = draft.draw(st.integers(1, 6)), draft.draw(st.integers(-1, len(shape)))
    own = len(shape) if axis == -1 else axis
    indices = draft.index_input(shape, depth + 1)
    number = draft.builder.constant("depth", np.array(depth, np.int32))
    on = draft.weights(())
    off = (
        np.logical_not(on) if draft.dtype == "bool" else draft.weights(())
    )  # which tcc confuses where they are equal
    values = [draft.builder.constant(name, value) for name, value in (("on", on), ("off", off))]
    y = draft.output((*shape[:own], depth, *shape[own:]), None)
    draft.builder.operator(draft.kind, [indices, number, *values], [y], axis=axis)
    return draft.finish([y], x=shape, depth=depth, axis=axis)


def _top_k(draft: Draft) -> RandomModel:
    shape = (*_shape(draft, 0, 2), draft.draw(st.integers(1, 12)))
    count = draft.draw(st.integers(1, shape[-1]))
    affine = draft.affine()
    x, y = draft.input(shape, affine), draft.output((*shape[:-1], count), affine)
    places = draft.builder.tensor("places", (*shape[:-1], count), "int32")
    draft.builder.operator(draft.kind, [x, draft.integers("count", [count])], [y, places])
    return draft.finish([y, places], x=shape, count=count)


MAKERS = {
    **dict.fromkeys(("ARG_MAX", "ARG_MIN"), _arg),
    "CUMSUM": _cumsum,
    "DYNAMIC_UPDATE_SLICE": _update_slice,
    "FILL": _fill,
    "GATHER_ND": _gather_nd,
    "ONE_HOT": _one_hot,
    "SCATTER_ND": _scatter_nd,
    "TOPK_V2": _top_k,
}
TYPES = {
    **dict.fromkeys(("ARG_MAX", "ARG_MIN"), ("int8", "uint8", "float32", "int32", "bool")),
    "CUMSUM": ("int8", "float32", "int32", "int64"),
    "TOPK_V2": ("int8", "int16", "float32", "int32", "int64"),
    **dict.fromkeys(("DYNAMIC_UPDATE_SLICE", "FILL", "GATHER_ND"), _OF_ANY_TYPE),
    **dict.fromkeys(("ONE_HOT", "SCATTER_ND"), ("int8", "float32", "int32", "int64", "bool")),
}
