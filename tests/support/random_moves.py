"""Random models of one operator that moves elements, drawn by `random_models` with the others."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

import hypothesis.strategies as st
import numpy as np

if TYPE_CHECKING:
    from support.random_models import Draft, RandomModel

Shape = tuple[int, ...]
_NUMBERS = ("int8", "int16", "float32", "int32", "int64")
_OF_ANY_TYPE = (
    *(
        "BATCH_TO_SPACE_ND",
        "BROADCAST_TO",
        "CONCATENATION",
        "EMBEDDING_LOOKUP",
        "EXPAND_DIMS",
        "GATHER",
        "MIRROR_PAD",
        "PAD",
        "PADV2",
    ),
    *("RESHAPE", "REVERSE_V2", "SLICE", "SPACE_TO_BATCH_ND", "SQUEEZE", "STRIDED_SLICE", "TILE", "TRANSPOSE"),
)
TYPES = {
    **dict.fromkeys(_OF_ANY_TYPE, (*_NUMBERS, "bool")),
    **dict.fromkeys(("DEPTH_TO_SPACE", "SPACE_TO_DEPTH"), ("int8", "float32", "int32", "int64")),
    **dict.fromkeys(("PACK", "SPLIT", "SPLIT_V"), _NUMBERS),
    "UNPACK": ("int8", "int16", "float32", "int32", "bool"),
}


def _extents(draft: Draft, low: int, high: int, maximum: int = 5) -> Shape:
    rank = draft.draw(st.integers(low, high))
    return tuple(draft.draw(st.integers(1, maximum)) for _ in range(rank))


def _signed(draft: Draft, axis: int, rank: int) -> int:
    return axis - rank if draft.draw(st.booleans()) else axis


def pack(draft: Draft) -> RandomModel:
    shape, count = _extents(draft, 1, 3), draft.draw(st.integers(1, 4))
    axis = draft.draw(st.integers(0, len(shape)))
    affine = draft.affine()
    sources = [draft.input(shape, affine) for _ in range(count)]
    if draft.draw(st.booleans()):
        sources[-1] = sources[0]
        draft.inputs, draft.input_shapes = draft.inputs[: max(1, count - 1)], [shape] * max(1, count - 1)
        draft.dtypes = draft.dtypes[: max(1, count - 1)]
    output = draft.output((*shape[:axis], count, *shape[axis:]), affine)
    stated = _signed(draft, axis, len(shape) + 1)
    draft.builder.operator(draft.kind, sources, [output], values_count=count, axis=stated)
    return draft.finish([output], x=shape, count=count, axis=stated)


def unpack(draft: Draft) -> RandomModel:
    shape = _extents(draft, 1, 4, 4)
    axis = draft.draw(st.integers(0, len(shape) - 1))
    affine = draft.affine()
    source = draft.input(shape, affine)
    part = (*shape[:axis], *shape[axis + 1 :])
    outputs = [draft.tensor(f"output_{index}", part, affine) for index in range(shape[axis])]
    stated = _signed(draft, axis, len(shape))
    draft.builder.operator(draft.kind, [source], outputs, num=shape[axis], axis=stated)
    return draft.finish(outputs, x=shape, axis=stated)


def split_v(draft: Draft) -> RandomModel:
    sizes = draft.draw(st.lists(st.integers(1, 4), min_size=1, max_size=4))
    rest = _extents(draft, 0, 3)
    axis = draft.draw(st.integers(0, len(rest)))
    affine = draft.affine()
    shape = (*rest[:axis], sum(sizes), *rest[axis:])
    source = draft.input(shape, affine)
    outputs = [
        draft.tensor(f"output_{index}", (*rest[:axis], size, *rest[axis:]), affine)
        for index, size in enumerate(sizes)
    ]
    stated = list(sizes)
    if draft.draw(st.booleans()):
        stated[draft.draw(st.integers(0, len(sizes) - 1))] = -1
    signed = _signed(draft, axis, len(shape))
    axis_tensor = draft.builder.tensor("axis", [], "int32", data=np.array(signed, dtype=np.int32))
    operands = [source, draft.integers("sizes", stated), axis_tensor]
    draft.builder.operator(draft.kind, operands, outputs, num_splits=len(sizes))
    return draft.finish(outputs, x=shape, sizes=stated, axis=signed)


def tile(draft: Draft) -> RandomModel:
    shape = _extents(draft, 1, 4, 4)
    multiples = [draft.draw(st.sampled_from([1, 1, 2, 3])) for _ in shape]
    affine = draft.affine()
    source = draft.input(shape, affine)
    output = draft.output(np.multiply(shape, multiples).tolist(), affine)
    draft.builder.operator(draft.kind, [source, draft.integers("multiples", multiples)], [output])
    return draft.finish([output], x=shape, multiples=multiples)


def broadcast_to(draft: Draft) -> RandomModel:
    result = _extents(draft, 1, 5, 4)
    shape = tuple(1 if draft.draw(st.booleans()) else extent for extent in result)
    shape = shape[draft.draw(st.integers(0, len(shape) - 1)) :]
    affine = draft.affine()
    source, output = draft.input(shape, affine), draft.output(result, affine)
    draft.builder.operator(draft.kind, [source, draft.integers("shape", result)], [output])
    return draft.finish([output], x=shape, shape=result)


def gather(draft: Draft) -> RandomModel:
    shape = _extents(draft, 1, 4)
    axis = draft.draw(st.integers(0, len(shape) - 1))
    extent = shape[axis]
    form = draft.draw(st.sampled_from(["any", "any", "spaced", "single", "batches"]))
    batch_dims = draft.draw(st.integers(0, axis)) if form == "batches" else 0
    own: Shape
    if form == "single":
        own, numbers = (), np.array(draft.draw(st.integers(0, extent - 1)), np.int32)
    elif form == "spaced":
        first, last = draft.draw(st.integers(0, extent - 1)), draft.draw(st.integers(0, extent - 1))
        step = draft.draw(st.integers(1, 2)) * (1 if last >= first else -1)
        numbers = np.arange(first, last + (1 if step > 0 else -1), step, dtype=np.int32)
        own = numbers.shape
    else:
        own = _extents(draft, 1, 2, 4)
        full = (*shape[:batch_dims], *own)
        numbers = draft.generator.integers(0, extent, full).astype(np.int32)
    affine = draft.affine()
    source = draft.input(shape, affine)
    output = draft.output((*shape[:axis], *own, *shape[axis + 1 :]), affine)
    if own and form != "spaced" and draft.draw(st.booleans()):
        indices = draft.index_input(numbers.shape, extent)
    else:
        indices = draft.builder.tensor("indices", list(numbers.shape), "int32", data=numbers)
    stated = _signed(draft, axis, len(shape))
    draft.builder.operator(draft.kind, [source, indices], [output], axis=stated, batch_dims=batch_dims)
    return draft.finish([output], x=shape, indices=numbers.tolist(), axis=stated, batch_dims=batch_dims)


def embedding_lookup(draft: Draft) -> RandomModel:
    """Of float32, or of raw values."""
    shape, count = _extents(draft, 2, 3), draft.draw(st.integers(1, 6))
    indices = draft.index_input((count,), shape[0])
    affine = draft.affine() if draft.is_quantised else None
    keywords = {} if affine is None else {"scale": affine[0], "zero_point": affine[1]}
    table = draft.builder.constant("table", draft.weights(shape), **keywords)
    output = draft.output((count, *shape[1:]), affine)
    draft.builder.operator(draft.kind, [indices, table], [output])
    return draft.finish([output], table=shape, count=count)


def reverse(draft: Draft) -> RandomModel:
    """The references take axes that follow each other."""
    shape = _extents(draft, 1, 5, 4)
    first = draft.draw(st.integers(0, len(shape) - 1))
    last = draft.draw(st.integers(first, len(shape) - 1))
    axes = [_signed(draft, axis, len(shape)) for axis in range(first, last + 1)]
    affine = draft.affine()
    source, output = draft.input(shape, affine), draft.output(shape, affine)
    draft.builder.operator(draft.kind, [source, draft.integers("axes", axes)], [output])
    return draft.finish([output], x=shape, axes=axes)


def depth_and_space(draft: Draft) -> RandomModel:
    block = draft.draw(st.integers(1, 3))
    batch, height, width, depth = _extents(draft, 4, 4, 3)
    small = (batch, height, width, depth * block * block)
    large = (batch, height * block, width * block, depth)
    taken, given = (small, large) if draft.kind == "DEPTH_TO_SPACE" else (large, small)
    affine = draft.affine()
    source, output = draft.input(taken, affine), draft.output(given, affine)
    draft.builder.operator(draft.kind, [source], [output], block_size=block)
    return draft.finish([output], x=taken, block=block)


def space_and_batch(draft: Draft) -> RandomModel:
    draw = draft.draw
    num_axes, batch, depth = draw(st.integers(1, 2)), draw(st.integers(1, 2)), draw(st.integers(1, 3))
    sides = [draw(st.integers(1, 3)) for _ in range(num_axes)]
    extents = [draw(st.integers(1, 3)) for _ in range(num_axes)]
    widths: list[list[int]] = []
    spatial: list[int] = []
    for side, extent in zip(sides, extents, strict=True):
        total = draw(st.integers(0, side * extent - 1))
        before = draw(st.integers(0, total))
        widths.append([before, total - before])
        spatial.append(side * extent - total)
    image, samples = (batch, *spatial, depth), (batch * prod(sides), *extents, depth)
    taken, given = (image, samples) if draft.kind == "SPACE_TO_BATCH_ND" else (samples, image)
    affine = draft.affine()
    source, output = draft.input(taken, affine), draft.output(given, affine)
    operands = [source, draft.integers("sides", sides), draft.integers("widths", widths)]
    draft.builder.operator(draft.kind, operands, [output])
    return draft.finish([output], x=taken, sides=sides, widths=widths)


def mirror_pad(draft: Draft) -> RandomModel:
    mode = draft.draw(st.sampled_from(["REFLECT", "SYMMETRIC"]))
    shape = _extents(draft, 1, 4, 4)
    most = [extent - (mode == "REFLECT") for extent in shape]
    widths = [[draft.draw(st.integers(0, m)), draft.draw(st.integers(0, m))] for m in most]
    affine = draft.affine()
    source = draft.input(shape, affine)
    output = draft.output([e + sum(w) for e, w in zip(shape, widths, strict=True)], affine)
    draft.builder.operator(draft.kind, [source, draft.integers("paddings", widths)], [output], mode=mode)
    return draft.finish([output], x=shape, widths=widths, mode=mode)
