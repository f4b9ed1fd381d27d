"""Makers of random models for `random_models`: parts by their numbers, diagonals, angles, buckets, steps of a range."""

from __future__ import annotations

from typing import TYPE_CHECKING

import hypothesis.strategies as st
import numpy as np

if TYPE_CHECKING:
    from support.random_models import Draft, RandomModel

Shape = tuple[int, ...]
_NUMBERS = ("int8", "int16", "float32", "int32", "int64")
_STABLEHLO = ("STABLEHLO_ADD", "STABLEHLO_MAXIMUM", "STABLEHLO_MINIMUM", "STABLEHLO_MULTIPLY")
_SEGMENTS = tuple(f"UNSORTED_SEGMENT_{kind}" for kind in ("MAX", "MIN", "PROD", "SUM"))


def _shape(draft: Draft, low: int, high: int) -> Shape:
    return tuple(draft.draw(st.integers(1, 5)) for _ in range(draft.draw(st.integers(low, high))))


def _alike(draft: Draft) -> RandomModel:
    shape = _shape(draft, 1, 4)
    x, y = draft.input(shape, None), draft.output(shape, None)
    second = x if draft.draw(st.booleans()) else draft.input(shape, None)
    draft.builder.operator(draft.kind, [x, second], [y])
    return draft.finish([y], x=shape)


def _shifted(draft: Draft) -> RandomModel:
    """By numbers of bits that 32 have; what C++ makes of others is not defined."""
    shape = _shape(draft, 1, 4)
    x, y = draft.input(shape, None), draft.output(shape, None)
    counts = draft.generator.integers(0, 32, shape).astype(draft.dtype)
    draft.builder.operator(draft.kind, [x, draft.builder.constant("counts", counts)], [y])
    return draft.finish([y], x=shape)


def _bucketize(draft: Draft) -> RandomModel:
    shape, count = _shape(draft, 1, 4), draft.draw(st.integers(1, 9))
    boundaries = np.sort(draft.generator.integers(-30, 31, count) / 4).tolist()
    x, y = draft.input(shape, None), draft.builder.tensor("output", shape, "int32")
    draft.builder.operator(draft.kind, [x], [y], boundaries=boundaries)
    return draft.finish([y], x=shape, boundaries=boundaries)


def _fake_quant(draft: Draft) -> RandomModel:
    shape, bits = _shape(draft, 1, 4), draft.draw(st.integers(2, 16))
    low, high = -draft.draw(st.integers(0, 40)) / 8, draft.draw(st.integers(1, 40)) / 8
    x, y = draft.input(shape, None), draft.output(shape, None)
    draft.builder.operator(draft.kind, [x], [y], min=low, max=high, num_bits=bits)
    return draft.finish([y], x=shape, low=low, high=high, bits=bits)


def _local_response(draft: Draft) -> RandomModel:
    shape = tuple(draft.draw(st.integers(1, 6)) for _ in range(4))
    options = {
        "radius": draft.draw(st.integers(0, 4)),
        "bias": draft.draw(st.sampled_from((0.5, 1.0, 2.0))),
        "alpha": draft.draw(st.sampled_from((0.25, 1.0))),
        "beta": draft.draw(st.sampled_from((0.5, 0.75, 1.0))),
    }
    x, y = draft.input(shape, None), draft.output(shape, None)
    draft.builder.operator(draft.kind, [x], [y], **options)
    return draft.finish([y], x=shape, **options)


def _diagonal(draft: Draft) -> RandomModel:
    affine = draft.affine()
    if draft.kind == "MATRIX_DIAG":
        shape = _shape(draft, 1, 3)
        operands, result = [draft.input(shape, affine)], (*shape, shape[-1])
    else:
        result = shape = _shape(draft, 2, 4)
        operands = [draft.input(shape, affine), draft.input((*shape[:-2], min(shape[-2:])), affine)]
    y = draft.output(result, affine)
    draft.builder.operator(draft.kind, operands, [y])
    return draft.finish([y], x=shape)


def _reverse_sequence(draft: Draft) -> RandomModel:
    shape = _shape(draft, 2, 4)
    steps, samples = draft.draw(st.permutations(range(len(shape))))[:2]
    affine = draft.affine()
    x, y = draft.input(shape, affine), draft.output(shape, affine)
    if draft.draw(st.booleans()):
        lengths = draft.index_input((shape[samples],), shape[steps] + 1)
    else:
        lengths = draft.integers("lengths", draft.generator.integers(0, shape[steps] + 1, shape[samples]))
    draft.builder.operator(draft.kind, [x, lengths], [y], seq_dim=steps, batch_dim=samples)
    return draft.finish([y], x=shape, steps=steps, samples=samples)


def _sparse_to_dense(draft: Draft) -> RandomModel:
    """Of some places there are several values, the last of which stays."""
    shape, affine = _shape(draft, 1, 4), draft.affine()
    count, is_single = draft.draw(st.integers(1, 7)), draft.draw(st.booleans())
    rows = (count, len(shape))
    if draft.draw(st.booleans()):
        indices = draft.index_input(rows, min(shape))
    else:
        indices = draft.integers("indices", draft.generator.integers(0, min(shape), rows))
    values = draft.input(() if is_single else (count,), affine)
    keywords = {"scale": affine[0], "zero_point": affine[1]} if draft.is_quantised else {}
    rest = draft.builder.constant("rest", draft.weights(()), **keywords)
    y = draft.output(shape, affine)
    draft.builder.operator(draft.kind, [indices, draft.integers("shape", shape), values, rest], [y])
    return draft.finish([y], shape=shape, count=count, is_single=is_single)


def _segments(draft: Draft) -> RandomModel:
    """Numbers below zero are of no segment; those of SEGMENT_SUM are constant, and grow."""
    if draft.kind == "SEGMENT_SUM":
        shape = _shape(draft, 1, 3)
        steps = draft.generator.integers(0, 2, shape[0])
        numbers = np.cumsum(steps) - steps[0]
        operands, result = [draft.integers("segments", numbers)], (int(numbers[-1]) + 1, *shape[1:])
    else:
        shape, count = _shape(draft, 1, 3), draft.draw(st.integers(1, 5))
        extents = shape[: draft.draw(st.integers(1, min(2, len(shape))))]
        if draft.draw(st.booleans()):
            where = draft.index_input(extents, count)
        else:
            where = draft.integers("segments", draft.generator.integers(-1, count, extents))
        operands, result = [where, draft.integers("count", count)], (count, *shape[len(extents) :])
    x, y = draft.input(shape, None), draft.output(result, None)
    draft.builder.operator(draft.kind, [x, *operands], [y])
    return draft.finish([y], x=shape, result=result)


def _spread(draft: Draft) -> RandomModel:
    """Elements with others between them; of STABLEHLO_PAD around them too, or some cut off."""
    shape, affine = _shape(draft, 1, 4), draft.affine()
    steps = tuple(draft.draw(st.integers(1, 3)) for _ in shape)
    result = tuple((extent - 1) * step + 1 for extent, step in zip(shape, steps, strict=True))
    x = draft.input(shape, affine)
    keywords = {"scale": affine[0], "zero_point": affine[1]} if draft.is_quantised else {}
    value = draft.builder.constant("value", draft.weights(()), **keywords)
    operands, options = [x, draft.integers("steps", steps), value], {}
    if draft.kind == "STABLEHLO_PAD":
        before, after = (
            tuple(draft.draw(st.integers(-(extent > 2), 2)) for extent in result) for _ in range(2)
        )
        between = tuple(step - 1 for step in steps)
        options = {"edge_padding_low": before, "edge_padding_high": after, "interior_padding": between}
        result = tuple(sum(each) for each in zip(result, before, after, strict=True))
        operands = [x, value]
    y = draft.output(result, affine)
    draft.builder.operator(draft.kind, operands, [y], **options)
    return draft.finish([y], x=shape, steps=steps, **options)


def _conv3d_transpose(draft: Draft) -> RandomModel:
    shape = tuple(draft.draw(st.integers(1, 4)) for _ in range(5))
    kernel = tuple(draft.draw(st.integers(1, 3)) for _ in range(3))
    strides = tuple(draft.draw(st.integers(1, 3)) for _ in range(3))
    padding, channels = draft.draw(st.sampled_from(["SAME", "VALID"])), draft.draw(st.integers(1, 5))
    result = tuple(
        extent * step if padding == "SAME" else (extent - 1) * step + size
        for extent, step, size in zip(shape[1:4], strides, kernel, strict=True)
    )
    x = draft.input(shape, None)
    weights = draft.builder.constant("weights", draft.weights((*kernel, channels, shape[4])))
    stated = draft.integers("shape", (shape[0], *result, channels))
    y = draft.output((shape[0], *result, channels), None)
    options = {"padding": padding, **dict(zip(("stride_d", "stride_h", "stride_w"), strides, strict=True))}
    draft.builder.operator(draft.kind, [stated, weights, x], [y], **options)
    return draft.finish([y], x=shape, kernel=kernel, channels=channels, **options)


MAKERS = {
    "CONV_3D_TRANSPOSE": _conv3d_transpose,
    **dict.fromkeys(("DILATE", "STABLEHLO_PAD"), _spread),
    **dict.fromkeys(("ATAN2", "STABLEHLO_AND", *_STABLEHLO), _alike),
    "STABLEHLO_SHIFT_LEFT": _shifted,
    "BUCKETIZE": _bucketize,
    "FAKE_QUANT": _fake_quant,
    "LOCAL_RESPONSE_NORMALIZATION": _local_response,
    **dict.fromkeys(("MATRIX_DIAG", "MATRIX_SET_DIAG"), _diagonal),
    "REVERSE_SEQUENCE": _reverse_sequence,
    **dict.fromkeys(("SEGMENT_SUM", *_SEGMENTS), _segments),
    "SPARSE_TO_DENSE": _sparse_to_dense,
}
TYPES = {
    **dict.fromkeys(
        ("ATAN2", "CONV_3D_TRANSPOSE", "FAKE_QUANT", "LOCAL_RESPONSE_NORMALIZATION"), ("float32",)
    ),
    **dict.fromkeys(("DILATE", "STABLEHLO_PAD"), (*_NUMBERS, "bool")),
    **dict.fromkeys((*_STABLEHLO, "BUCKETIZE"), ("float32", "int32", "int64")),
    **dict.fromkeys(("MATRIX_DIAG", "MATRIX_SET_DIAG"), _NUMBERS),
    "REVERSE_SEQUENCE": ("int16", "float32", "int32", "int64"),
    **dict.fromkeys(("SEGMENT_SUM", *_SEGMENTS), ("float32", "int32")),
    "STABLEHLO_AND": ("int8", "int16", "int32", "int64", "bool"),
    "STABLEHLO_SHIFT_LEFT": ("int8", "int16", "int32"),
    "SPARSE_TO_DENSE": ("int8", "float32", "int32", "int64"),
}
