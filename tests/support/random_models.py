"""Random models of one operator, as hypothesis strategies, and inputs for them.

`operator_models(kind, dtype)` draws a `RandomModel`; every one of them is a file that both references accept and
whose arithmetic is defined (no overflow of 32 bits). Quantisations are drawn in several tempers: typical ones,
powers of two (every second accumulator is a tie), factors above one, factors so small that everything
becomes the zero point, and fine ones, with which one unit of an accumulator is about one of the output.
Floats are small multiples of 1/8, so that sums are exact in any order and a difference
is a mistake, not a rounding.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import hypothesis.strategies as st
import numpy as np
from hypothesis.strategies import DrawFn, SearchStrategy

from bytewright.frontends.tflite.against import tflm
from bytewright.frontends.tflite.table import OPERATORS as TABLE
from support import (
    random_elements,
    random_moves,
    random_numbered,
    random_places,
    random_segments,
    random_windows,
)
from support.random_draft import (
    ACTIVATIONS,
    DTYPES,
    TWIN,
    WITH_INT16,
    Draft,
    RandomModel,
    any_shape,
)

# Elements


def _binary(draft: Draft) -> RandomModel:
    draw = draft.draw
    shape = any_shape(draft)
    form = draw(st.sampled_from(["same", "same", "broadcast", "constant", "scalar", "twice"]))
    first_shape = second_shape = shape
    if form == "broadcast":
        first_shape = tuple(1 if draw(st.booleans()) else extent for extent in shape)
        second_shape = tuple(
            extent if one == 1 or draw(st.booleans()) else 1
            for extent, one in zip(shape, first_shape, strict=True)
        )
        second_shape = second_shape[draw(st.integers(0, len(shape) - 1)) :]
    elif form == "scalar":
        second_shape = (1,)
    shape = tuple(np.broadcast_shapes(first_shape, second_shape))
    one, two, target = draft.affine(), draft.affine(), draft.affine()
    two = one if form == "twice" else two
    options: dict[str, Any] = {}
    if draft.dtype == "int16" and draft.kind == "MUL":
        target = (max(target[0], float(np.float32(1.01 * one[0] * two[0]))), 0)
    elif draft.dtype == "int16":
        options["pot_scale_int16"] = False
    first = draft.input(first_shape, one)
    if form == "twice":
        second = first
    elif form in ("constant", "scalar"):
        values = draft.weights(second_shape)
        keywords = {"scale": two[0], "zero_point": two[1]} if draft.is_quantised else {}
        second = draft.builder.constant("second", values, **keywords)
    else:
        second = draft.input(second_shape, two)
    operands = [second, first] if form != "twice" and draw(st.booleans()) else [first, second]
    output = draft.output(shape, target)
    activation = draw(st.sampled_from(ACTIVATIONS))
    draft.builder.operator(draft.kind, operands, [output], activation=activation, **options)
    facts = {"form": form, "a": first_shape, "b": second_shape, "activation": activation}
    return draft.finish([output], **facts, quantisation=(one, two, target))


def _unary(draft: Draft) -> RandomModel:
    shape = any_shape(draft)
    source_affine = draft.affine()
    target = source_affine if draft.draw(st.booleans()) else draft.affine()
    if draft.kind in ("LOGISTIC", "TANH") and draft.dtype == "int16":
        target = (1.0 / 32768, 0)
    elif draft.kind == "LOGISTIC":
        target = (1.0 / 256, -128)
    elif draft.kind == "TANH":
        target = (1.0 / 128, 0)
    elif draft.kind == "HARD_SWISH" and source_affine[0] > 64 * target[0]:
        target = source_affine
    options: dict[str, Any] = {}
    if draft.kind == "LEAKY_RELU":
        options["alpha"] = draft.draw(st.sampled_from([0.0, 0.1, 0.25, 1.0, 1.5, -0.3]))
    source = draft.input(shape, source_affine)
    output = draft.output(shape, target)
    draft.builder.operator(draft.kind, [source], [output], **options)
    return draft.finish([output], x=shape, quantisation=(source_affine, target), **options)


def _softmax(draft: Draft) -> RandomModel:
    shape = any_shape(draft, 1, 4, 9)
    affine = draft.affine()
    beta = draft.draw(st.sampled_from([1.0, 1.0, 0.25, 2.0]))
    source = draft.input(shape, affine)
    if draft.dtype == "int8" and draft.draw(st.integers(0, 4)) == 0:
        output = draft.quantised("output", shape, "int16", (1.0 / 65536, -32768))
    else:
        output = draft.output(shape, (1.0 / 32768, 0) if draft.dtype == "int16" else (1.0 / 256, -128))
    draft.builder.operator(draft.kind, [source], [output], beta=beta)
    return draft.finish([output], x=shape, beta=beta, quantisation=affine)


def _quantize(draft: Draft) -> RandomModel:
    shape = any_shape(draft)
    # Both references have uint8 on one side alone, and not beside float32 or int16.
    results = {"int8": ["int8", "uint8", "int16"], "uint8": ["int8"], "int16": ["int8", "int16", "int32"]}
    dtype = draft.draw(st.sampled_from(results.get(draft.dtype, ["int8", "int16"])))
    affine, target = draft.affine(draft.dtype), draft.affine(dtype)
    if (draft.dtype, dtype) == ("int16", "int8") and draft.draw(st.booleans()):
        affine = (affine[0], draft.draw(st.sampled_from([-32768, -7, 100])))
    if dtype == "int32":  # a finer scale takes values beyond 32 bits, which is refused
        target = (affine[0] / draft.draw(st.sampled_from([0.3, 1.0, 7.5, 3e4])), target[1])
    source = draft.input(shape, None if draft.dtype == "float32" else affine)
    output = draft.quantised("output", shape, dtype, target)
    draft.builder.operator(draft.kind, [source], [output])
    return draft.finish([output], x=shape, result=dtype, quantisation=(affine, target))


def _dequantize(draft: Draft) -> RandomModel:
    """Of an input, or of a constant of a type that is stored only, to which an input is added."""
    shape = any_shape(draft)
    if draft.dtype in ("int4", "float16"):
        if draft.dtype == "int4":
            values = draft.generator.integers(-8, 8, shape)
            stored = draft.builder.tensor("stored", shape, "int4", data=values, scale=0.3)
        else:
            stored = draft.builder.constant("stored", draft.generator.normal(0, 4, shape).astype(np.float16))
        wide = draft.builder.tensor("wide", shape, "float32")
        draft.builder.operator(draft.kind, [stored], [wide], version=3 if draft.dtype == "float16" else 6)
        source = draft.input(shape, None, dtype="float32")
        output = draft.builder.tensor("output", shape, "float32")
        draft.builder.operator("ADD", [wide, source], [output])
        return draft.finish([output], x=shape)
    affine = draft.affine()
    source = draft.input(shape, affine)
    output = draft.builder.tensor("output", shape, "float32")
    draft.builder.operator(draft.kind, [source], [output])
    return draft.finish([output], x=shape, quantisation=affine)


# Moves


def _pad(draft: Draft) -> RandomModel:
    shape = any_shape(draft, 1, 4, 5)
    widths = [[draft.draw(st.integers(0, 3)), draft.draw(st.integers(0, 3))] for _ in shape]
    affine = draft.affine()
    source = draft.input(shape, affine)
    result = [extent + sum(width) for extent, width in zip(shape, widths, strict=True)]
    output = draft.output(result, affine)
    operands = [source, draft.integers("paddings", widths)]
    if draft.kind == "PADV2":
        keywords = {"scale": affine[0], "zero_point": affine[1]} if draft.is_quantised else {}
        operands.append(draft.builder.constant("value", draft.weights((1,)), **keywords))
    draft.builder.operator(draft.kind, operands, [output])
    return draft.finish([output], x=shape, widths=widths, quantisation=affine)


def _reshape(draft: Draft) -> RandomModel:
    shape = any_shape(draft)
    target = list(draft.draw(st.permutations(shape)))
    if draft.draw(st.booleans()):
        target = [prod(target[:2]), *target[2:]]
    affine = draft.affine()
    source = draft.input(shape, affine)
    output = draft.output(target, affine)
    stated = list(target)
    if draft.draw(st.booleans()):
        stated[draft.draw(st.integers(0, len(stated) - 1))] = -1
    as_operand = draft.draw(st.booleans())
    operands = [source, draft.integers("shape", stated)] if as_operand else [source]
    draft.builder.operator(draft.kind, operands, [output], new_shape=stated)
    return draft.finish([output], x=shape, shape=stated, as_operand=as_operand)


def _squeeze(draft: Draft) -> RandomModel:
    shape = tuple(draft.draw(st.sampled_from([1, 1, 2, 3])) for _ in range(draft.draw(st.integers(2, 4))))
    ones = [axis for axis, extent in enumerate(shape) if extent == 1]
    stated = [axis for axis in ones if draft.draw(st.booleans())]
    removed = stated or ones
    if len(removed) == len(shape):
        stated = removed = ones[1:]
    result = [extent for axis, extent in enumerate(shape) if axis not in removed]
    affine = draft.affine()
    source, output = draft.input(shape, affine), draft.output(result, affine)
    draft.builder.operator(draft.kind, [source], [output], squeeze_dims=stated)
    return draft.finish([output], x=shape, axes=stated)


def _expand_dims(draft: Draft) -> RandomModel:
    shape = any_shape(draft, 1, 3)
    axis = draft.draw(st.integers(-len(shape) - 1, len(shape)))
    position = axis % (len(shape) + 1)
    affine = draft.affine()
    source = draft.input(shape, affine)
    output = draft.output((*shape[:position], 1, *shape[position:]), affine)
    draft.builder.operator(draft.kind, [source, draft.integers("axis", [axis])], [output])
    return draft.finish([output], x=shape, axis=axis)


def _concatenation(draft: Draft) -> RandomModel:
    shape = any_shape(draft)
    axis = draft.draw(st.integers(0, len(shape) - 1))
    affine = draft.affine()
    extents = draft.draw(st.lists(st.integers(1, 4), min_size=1, max_size=4))
    sources = [draft.input((*shape[:axis], extent, *shape[axis + 1 :]), affine) for extent in extents]
    output = draft.output((*shape[:axis], sum(extents), *shape[axis + 1 :]), affine)
    signed = axis - len(shape) if draft.draw(st.booleans()) else axis
    draft.builder.operator(draft.kind, sources, [output], axis=signed)
    return draft.finish([output], shape=shape, extents=extents, axis=signed)


def _slice(draft: Draft) -> RandomModel:
    shape = any_shape(draft)
    begin = [draft.draw(st.integers(0, extent - 1)) for extent in shape]
    size = [draft.draw(st.integers(1, extent - b)) for extent, b in zip(shape, begin, strict=True)]
    stated = [
        -1 if b + s == extent and draft.draw(st.booleans()) else s
        for extent, b, s in zip(shape, begin, size, strict=True)
    ]
    affine = draft.affine()
    source, output = draft.input(shape, affine), draft.output(size, affine)
    operands = [source, draft.integers("begin", begin), draft.integers("size", stated)]
    draft.builder.operator(draft.kind, operands, [output])
    return draft.finish([output], x=shape, begin=begin, size=stated)


def _strided_slice(draft: Draft) -> RandomModel:
    draw = draft.draw
    shape = any_shape(draft)
    rank = len(shape)
    affine = draft.affine()
    probe = np.empty(shape, dtype=np.int8)
    begin, end, stride = ([] for _ in range(3))
    masks = {"begin_mask": 0, "end_mask": 0, "shrink_axis_mask": 0}
    keys: list[Any] = []
    for axis, extent in enumerate(shape):
        step = draw(st.sampled_from([1, 1, 2, 3, -1, -2]))
        first, last = draw(st.integers(-extent - 1, extent + 1)), draw(st.integers(-extent - 1, extent + 1))
        shrinks = axis > 0 and draw(st.sampled_from([False, False, True]))
        if shrinks:
            first, step = draw(st.integers(-extent, extent - 1)), 1
            last = first + 1
            masks["shrink_axis_mask"] |= 1 << axis
            keys.append(first)
        else:
            key = slice(first, last, step)
            if len(range(*key.indices(extent))) == 0 or draw(st.booleans()):
                masks["begin_mask"] |= 1 << axis
                masks["end_mask"] |= 1 << axis
                key = slice(None, None, step)
            keys.append(key)
        begin.append(first)
        end.append(last)
        stride.append(step)
    result = probe[tuple(keys)].shape
    source, output = draft.input(shape, affine), draft.output(result, affine)
    operands = [draft.integers(n, v) for n, v in (("begin", begin), ("end", end), ("strides", stride))]
    draft.builder.operator(draft.kind, [source, *operands], [output], **masks)
    return draft.finish([output], x=shape, rank=rank, begin=begin, end=end, stride=stride, **masks)


def _split(draft: Draft) -> RandomModel:
    draw = draft.draw
    parts, each = draw(st.integers(1, 4)), draw(st.integers(1, 3))
    rest = any_shape(draft, 1, 3)
    axis = draw(st.integers(0, len(rest)))
    shape, part = (*rest[:axis], parts * each, *rest[axis:]), (*rest[:axis], each, *rest[axis:])
    affine = draft.affine()
    source = draft.input(shape, affine)
    outputs = [draft.tensor(f"output_{index}", part, affine) for index in range(parts)]
    signed = axis - len(shape) if draw(st.booleans()) else axis
    axis_tensor = draft.builder.tensor("axis", [], "int32", data=np.array(signed, dtype=np.int32))
    draft.builder.operator(draft.kind, [axis_tensor, source], outputs, num_splits=parts)
    return draft.finish(outputs, x=shape, axis=signed, parts=parts)


def _transpose(draft: Draft) -> RandomModel:
    shape = any_shape(draft)
    permutation = list(draft.draw(st.permutations(range(len(shape)))))
    affine = draft.affine()
    source = draft.input(shape, affine)
    output = draft.output([shape[axis] for axis in permutation], affine)
    draft.builder.operator(draft.kind, [source, draft.integers("permutation", permutation)], [output])
    return draft.finish([output], x=shape, permutation=permutation)


_MAKERS: dict[str, Callable[[Draft], RandomModel]] = {
    **random_elements.MAKERS,
    **random_numbered.MAKERS,
    **random_places.MAKERS,
    **random_segments.MAKERS,
    **random_windows.MAKERS,
    "ADD": _binary,
    "BATCH_TO_SPACE_ND": random_moves.space_and_batch,
    "BROADCAST_TO": random_moves.broadcast_to,
    "CONCATENATION": _concatenation,
    "DEPTH_TO_SPACE": random_moves.depth_and_space,
    "DEQUANTIZE": _dequantize,
    "EMBEDDING_LOOKUP": random_moves.embedding_lookup,
    "EXPAND_DIMS": _expand_dims,
    "GATHER": random_moves.gather,
    "HARD_SWISH": _unary,
    "LEAKY_RELU": _unary,
    "LOGISTIC": _unary,
    "MIRROR_PAD": random_moves.mirror_pad,
    "MUL": _binary,
    "PACK": random_moves.pack,
    "PAD": _pad,
    "PADV2": _pad,
    "QUANTIZE": _quantize,
    "RELU": _unary,
    "RELU6": _unary,
    "RELU_N1_TO_1": _unary,
    "RESHAPE": _reshape,
    "REVERSE_V2": random_moves.reverse,
    "SLICE": _slice,
    "SOFTMAX": _softmax,
    "SPACE_TO_BATCH_ND": random_moves.space_and_batch,
    "SPACE_TO_DEPTH": random_moves.depth_and_space,
    "SPLIT": _split,
    "SPLIT_V": random_moves.split_v,
    "SQUEEZE": _squeeze,
    "STRIDED_SLICE": _strided_slice,
    "SUB": _binary,
    "TANH": _unary,
    "TILE": random_moves.tile,
    "TRANSPOSE": _transpose,
    "UNPACK": random_moves.unpack,
}
OPERATORS = tuple(sorted(_MAKERS))
_OF_INT16 = (
    *("AVERAGE_POOL_2D", "BATCH_MATMUL", "CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED", "LEAKY_RELU"),
    *("LOGISTIC", "MAX_POOL_2D", "MEAN", "RELU", "RELU6", "RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR"),
    *("SOFTMAX", "TANH", "TRANSPOSE_CONV"),
)
_TYPES = {
    **dict.fromkeys(OPERATORS, DTYPES),
    **dict.fromkeys(_OF_INT16, WITH_INT16),
    **random_moves.TYPES,
    **dict.fromkeys(("ADD", "MEAN", "MUL", "SUB"), random_elements.NUMBERS),
    **random_elements.TYPES,
    **random_numbered.TYPES,
    **random_places.TYPES,
    **random_segments.TYPES,
    **dict.fromkeys(("CONV_3D", "L2_POOL_2D"), ("float32",)),
    "DEQUANTIZE": ("int8", "uint8", "int16", "int4", "float16"),
    "RESIZE_NEAREST_NEIGHBOR": (*WITH_INT16, "int32", "bool"),
    "QUANTIZE": (*WITH_INT16, "uint8", "int32"),
}
ONLY_IN_TFLM = (("ADD_N", "int8"), ("CUMSUM", "int8"))
OF_TWINS = tuple(kind for kind in OPERATORS if "uint8" not in _TYPES[kind] and "uint8" in TABLE[kind].types)
"""Operators of which models in uint8 are drawn as such in int8."""
_ALL_CASES = tuple(
    (kind, dtype)
    for kind in OPERATORS
    for dtype in (*_TYPES[kind], *(("uint8",) if kind in OF_TWINS else ()))
)
CASES = tuple(case for case in _ALL_CASES if case not in ONLY_IN_TFLM)
"""Every operator with every element type of its inputs that it takes, but for those that LiteRT lacks."""
_TAKEN_BY_TFLM = {(row.name, dtype) for row in tflm().operators for dtype in row.types}
_IN_TFLM = _TAKEN_BY_TFLM - {(row.name, dtype) for row in tflm().operators for dtype in row.wrong_types}
_NOT_AS_DRAWN_IN_TFLM = {
    *(("SPACE_TO_BATCH_ND", dtype) for dtype in DTYPES),  # what it pads with is never set
    ("ADD", "int32"),  # with a fused activation, which it leaves out
    ("DEQUANTIZE", "uint8"),
    ("QUANTIZE", "uint8"),
    *random_elements.NOT_AS_DRAWN_IN_TFLM,
}
TFLM_CASES = tuple(case for case in _ALL_CASES if case in _IN_TFLM - _NOT_AS_DRAWN_IN_TFLM)
"""Those that TensorFlow Lite Micro has."""
NOT_IN_TFLM = tuple(case for case in CASES if case not in _TAKEN_BY_TFLM)
"""Those that it refuses to run."""


def num_examples(kind: str, usual: int) -> int:
    """How many models of a kind to try: fewer of those whose int8 forms other tests see on all pairs of inputs."""
    return max(2, usual // 3) if kind in random_elements.MAKERS else usual


def operator_models(kind: str, dtype: str) -> SearchStrategy[RandomModel]:
    """Models with one operator of a kind, on inputs of an element type."""

    @st.composite
    def models(draw: DrawFn) -> RandomModel:
        is_twin = dtype == "uint8" and kind in OF_TWINS
        return _MAKERS[kind](Draft(draw, kind, TWIN if is_twin else dtype))

    return models()


def any_models() -> SearchStrategy[RandomModel]:
    """Models with one operator of any kind."""
    return st.sampled_from(CASES).flatmap(lambda case: operator_models(*case))
