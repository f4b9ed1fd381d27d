"""Makers of random models for `random_models`: functions of elements, comparisons, choices, and reductions.

Each takes a draft and the kind of operator that it says. What a reference has no result for is not drawn: roots and
logarithms of what is below zero, quotients by zero, exponentials beyond 32 bits.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

import hypothesis.strategies as st
import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from support.random_models import Draft, RandomModel

Shape = tuple[int, ...]
INT8_AND_FLOAT = ("int8", "float32")
BUT_INT16 = (*INT8_AND_FLOAT, "int32", "int64")
NUMBERS = (*BUT_INT16, "int16")
FLOAT = ("float32",)
BOOL = ("bool",)
# Of which TensorFlow Lite Micro has no kernel for some types that are drawn.
NOT_AS_DRAWN_IN_TFLM = frozenset(("CAST", dtype) for dtype in (*NUMBERS, "uint8", "uint32", "bool"))


def _any_shape(draft: Draft, low: int = 1, high: int = 4, maximum: int = 6) -> Shape:
    rank = draft.draw(st.integers(low, high))
    return tuple(draft.draw(st.integers(1, maximum)) for _ in range(rank))


def _unary(draft: Draft) -> RandomModel:
    """A function of one element."""
    shape = _any_shape(draft)
    source, target = draft.affine(), draft.affine()
    if draft.kind == "EXP":
        source = (min(source[0], 2.0**-5 if draft.is_int8 else 2.0**-10), source[1])
    if draft.kind in ("SQRT", "RSQRT") and draft.is_int8:
        source = (source[0], -128)
    if draft.kind in ("SQRT", "RSQRT", "LOG"):
        draft.domain = "positive"
    options = {"approximate": draft.draw(st.booleans())} if draft.kind == "GELU" else {}
    x, y = draft.input(shape, source), draft.output(shape, target)
    draft.builder.operator(draft.kind, [x], [y], **options)
    return draft.finish([y], x=shape, quantisation=(source, target), **options)


def _power(draft: Draft) -> RandomModel:
    """Of int32, of such numbers as have powers in 32 bits."""
    if draft.dtype == "float32":
        return _binary(draft)
    first, second = _two_shapes(draft, draft.draw(st.sampled_from(["same", "broadcast", "scalar"])))
    operands = [draft.index_input(first, 36), draft.index_input(second, 6)]
    y = draft.output(np.broadcast_shapes(first, second), None)
    draft.builder.operator(draft.kind, operands, [y])
    return draft.finish([y], a=first, b=second)


def _constant(draft: Draft, shape: Shape) -> NDArray[Any]:
    if draft.dtype == "bool":
        return draft.generator.integers(0, 2, shape).astype(np.bool_)
    values = draft.weights(shape)
    if draft.domain == "positive":
        values = np.abs(values) + np.float32(0.125)
    elif draft.domain == "not zero":
        values = np.where(values == 0, np.float32(0.25), values)
    return values


def _two_shapes(draft: Draft, form: str) -> tuple[Shape, Shape]:
    """Shapes that broadcast."""
    draw = draft.draw
    shape = _any_shape(draft)
    if form == "broadcast":
        first = tuple(1 if draw(st.booleans()) else extent for extent in shape)
        second = tuple(
            extent if one == 1 or draw(st.booleans()) else 1 for extent, one in zip(shape, first, strict=True)
        )
        return first, second[draw(st.integers(0, len(shape) - 1)) :]
    return shape, (1,) if form == "scalar" else shape


def _binary(draft: Draft) -> RandomModel:
    """A function of two elements: inputs, an input and a constant on either side, or one input twice."""
    draw = draft.draw
    is_comparison = draft.kind.split("_")[0] in ("EQUAL", "NOT", "GREATER", "LESS")
    if draft.kind in ("DIV", "FLOOR_DIV", "FLOOR_MOD", "POW"):
        draft.domain = "positive" if draft.kind == "POW" else "not zero"
    form = draw(st.sampled_from(["same", "same", "broadcast", "constant", "scalar", "twice"]))
    first_shape, second_shape = _two_shapes(draft, form)
    shape = tuple(np.broadcast_shapes(first_shape, second_shape))
    one, two, target = _quantisations(draft, is_comparison)
    first = draft.input(first_shape, one)
    if form == "twice":
        second = first
    elif form in ("constant", "scalar"):
        keywords = {"scale": two[0], "zero_point": two[1]} if draft.is_quantised else {}
        second = draft.builder.constant("second", _constant(draft, second_shape), **keywords)
    else:
        second = draft.input(second_shape, two)
    operands = [second, first] if draw(st.booleans()) else [first, second]
    is_truth = is_comparison or draft.dtype == "bool"
    y = draft.builder.tensor("output", shape, "bool") if is_truth else draft.output(shape, target)
    activations = st.sampled_from(("NONE", "RELU", "RELU6", "RELU_N1_TO_1"))
    options = {"activation": draw(activations)} if draft.kind == "DIV" else {}
    draft.builder.operator(draft.kind, operands, [y], **options)
    facts = {"form": form, "a": first_shape, "b": second_shape, **options}
    return draft.finish([y], **facts, quantisation=(one, two, target))


def _div(draft: Draft) -> RandomModel:
    """Of int8, by constants that are not zero, with quotients so large that the references' shifts are defined."""
    if not draft.is_int8:
        return _binary(draft)
    shape = _any_shape(draft)
    divisors = shape[-1:] if draft.draw(st.booleans()) else (1,)
    one, two, target = draft.affine(), draft.affine(), draft.affine()
    least = one[0] / two[0] / 2.0 ** draft.draw(st.floats(6.1, 12))
    target = (float(np.float32(least)), target[1])
    values = draft.weights(divisors)
    values = np.where(values == two[1], values ^ np.int8(1), values)
    x = draft.input(shape, one)
    divisor = draft.builder.constant("divisor", values, scale=two[0], zero_point=two[1])
    y = draft.output(shape, target)
    activation = draft.draw(st.sampled_from(("NONE", "RELU", "RELU6", "RELU_N1_TO_1")))
    draft.builder.operator(draft.kind, [x, divisor], [y], activation=activation)
    facts = {"x": shape, "divisors": divisors, "activation": activation}
    return draft.finish([y], **facts, quantisation=(one, two, target))


def _quantisations(draft: Draft, is_comparison: bool) -> list[tuple[float, int]]:
    """Of two operands and a result that the references take: comparisons want scales below 1."""
    one, two, target = draft.affine(), draft.affine(), draft.affine()
    if is_comparison:
        one, two = ((min(scale, 0.99), zero_point) for scale, zero_point in (one, two))
        two = one if draft.draw(st.booleans()) else two
    if draft.kind == "SQUARED_DIFFERENCE":
        least = (2 * max(one[0], two[0])) ** 2 / 2**13
        target = (float(np.float32(max(target[0], least))), target[1])
    return [one, two, target]


def _quotient(draft: Draft) -> RandomModel:
    """Of integers by constants that are neither 0 nor -1, with which the references end the process."""
    if draft.dtype == "float32" or (draft.kind == "DIV" and draft.is_int8):
        return _div(draft) if draft.kind == "DIV" else _binary(draft)
    shape = _any_shape(draft)
    divisors = shape[-1:] if draft.draw(st.booleans()) else (1,)
    values = draft.weights(divisors)
    values = np.where(np.abs(values.astype(np.float64)) <= 1, values.dtype.type(7), values)
    affine = draft.affine()
    keywords = {"scale": affine[0], "zero_point": affine[1]} if draft.is_int8 else {}
    x, y = draft.input(shape, affine), draft.output(shape, affine)
    divisor = draft.builder.constant("divisor", values, **keywords)
    draft.builder.operator(draft.kind, [x, divisor], [y])
    return draft.finish([y], x=shape, divisors=divisors)


def _prelu(draft: Draft) -> RandomModel:
    """Slopes for each channel, as Keras shares them, for each element, or one for all."""
    shape = _any_shape(draft, 2, 4)
    kept = draft.draw(st.integers(0, len(shape) - 1))
    slopes = shape[kept:] if draft.draw(st.booleans()) else (*(1,) * (len(shape) - 1 - kept), *shape[-1:])
    source, alpha, target = draft.affine(), draft.affine(), draft.affine()
    x, y = draft.input(shape, source), draft.output(shape, target)
    values, keywords = draft.weights(slopes), {"scale": alpha[0], "zero_point": alpha[1]}
    if draft.dtype == "int16":  # whose slopes are int8
        values = draft.generator.integers(-127, 128, slopes).astype(np.int8)
    slope = draft.builder.constant("slope", values, **(keywords if draft.is_quantised else {}))
    draft.builder.operator(draft.kind, [x, slope], [y])
    return draft.finish([y], x=shape, slopes=slopes, quantisation=(source, alpha, target))


def _logical_not(draft: Draft) -> RandomModel:
    shape = _any_shape(draft)
    x, y = draft.input(shape, None), draft.output(shape, None)
    draft.builder.operator(draft.kind, [x], [y])
    return draft.finish([y], x=shape)


def _select(draft: Draft) -> RandomModel:
    """SELECT by a condition of the choices' shape, of their first axis, or alone; SELECT_V2 with broadcasting."""
    draw = draft.draw
    shape = _any_shape(draft)
    conditions, others = [shape, shape[:1], ()], (shape, shape)
    if draft.kind == "SELECT_V2":
        conditions = [tuple(1 if draw(st.booleans()) else extent for extent in shape), shape]
        others = shape, tuple(1 if draw(st.booleans()) else extent for extent in shape)
    affine = draft.affine()
    condition = draft.input(draw(st.sampled_from(conditions)), None, dtype="bool")
    first, second = (draft.input(other, affine) for other in others)
    y = draft.output(shape, affine)
    draft.builder.operator(draft.kind, [condition, first, second], [y])
    return draft.finish([y], shapes=draft.input_shapes)


def _cast(draft: Draft) -> RandomModel:
    """To any of the types that are cast, of values of any quantisation."""
    target = draft.draw(
        st.sampled_from(("int8", "int16", "float32", "int32", "int64", "uint8", "uint32", "bool"))
    )
    shape = _any_shape(draft)
    x = draft.input(shape, None)
    y = draft.builder.tensor("output", shape, target)
    draft.builder.operator(draft.kind, [x], [y])
    return draft.finish([y], x=shape, target=target)


def _reduction(draft: Draft) -> RandomModel:
    """Over some axes, which may count from the end; a sum's scale grows with what it is of."""
    draw = draft.draw
    # Products of more floats leave their range.
    shape = _any_shape(draft, 2, 4, 2 if draft.kind == "REDUCE_PROD" else 6)
    rank = len(shape)
    axes = draw(st.lists(st.integers(0, rank - 1), min_size=1, max_size=rank - 1, unique=True))
    keep = draw(st.booleans())
    reduced = [1 if axis in axes else extent for axis, extent in enumerate(shape)]
    result = reduced if keep else [extent for axis, extent in enumerate(shape) if axis not in axes]
    signed = [axis - rank if draw(st.booleans()) else axis for axis in axes]
    source = target = draft.affine()
    if draft.kind == "REDUCE_PROD":
        target = draft.affine()
    elif draft.kind == "SUM":
        count = prod(shape[axis] for axis in axes)
        wide = float(np.float32(source[0] * count * draw(st.floats(0.1, 2.0))))
        target = (wide if draw(st.booleans()) else draft.affine()[0], draft.affine()[1])
    x, y = draft.input(shape, source), draft.output(result, target)
    draft.builder.operator(draft.kind, [x, draft.integers("axes", signed)], [y], keep_dims=keep)
    return draft.finish([y], x=shape, axes=signed, keep=keep, quantisation=(source, target))


def _rows(draft: Draft) -> RandomModel:
    """LOG_SOFTMAX and L2_NORMALIZATION, with the quantisations that they have."""
    shape = _any_shape(draft, 1, 4, 9)
    affine = draft.affine()
    target = (1.0 / 16, 127) if draft.kind == "LOG_SOFTMAX" else (1.0 / 128, 0)
    x, y = draft.input(shape, affine), draft.output(shape, target)
    draft.builder.operator(draft.kind, [x], [y])
    return draft.finish([y], x=shape, quantisation=affine)


def _add_n(draft: Draft) -> RandomModel:
    shape = _any_shape(draft, 1, 4)
    count = draft.draw(st.integers(2, 5))
    affine = draft.affine()
    operands = [draft.input(shape, affine) for _ in range(count)]
    y = draft.output(shape, draft.affine())
    draft.builder.operator(draft.kind, operands, [y])
    return draft.finish([y], x=shape, count=count)


MAKERS = {
    **dict.fromkeys(("ABS", "ELU", "EXP", "GELU", "LOG", "NEG", "RELU_0_TO_1", "RSQRT", "SQRT"), _unary),
    **dict.fromkeys(("CEIL", "COS", "FLOOR", "ROUND", "SIGN", "SIN", "SQUARE"), _unary),
    **dict.fromkeys(("EQUAL", "GREATER", "GREATER_EQUAL", "LESS", "LESS_EQUAL", "NOT_EQUAL"), _binary),
    **dict.fromkeys(("MAXIMUM", "MINIMUM", "SQUARED_DIFFERENCE"), _binary),
    **dict.fromkeys(("LOGICAL_AND", "LOGICAL_OR"), _binary),
    **dict.fromkeys(
        ("REDUCE_ALL", "REDUCE_ANY", "REDUCE_MAX", "REDUCE_MIN", "REDUCE_PROD", "SUM"), _reduction
    ),
    **dict.fromkeys(("SELECT", "SELECT_V2"), _select),
    "CAST": _cast,
    "ADD_N": _add_n,
    **dict.fromkeys(("DIV", "FLOOR_DIV", "FLOOR_MOD"), _quotient),
    "LOGICAL_NOT": _logical_not,
    "L2_NORMALIZATION": _rows,
    "LOG_SOFTMAX": _rows,
    **dict.fromkeys(("BITWISE_XOR", "RIGHT_SHIFT"), _binary),
    "POW": _power,
    "PRELU": _prelu,
}
TYPES = {
    **dict.fromkeys(MAKERS, INT8_AND_FLOAT),
    **dict.fromkeys(("CEIL", "COS", "FLOOR", "ROUND", "SIGN", "SIN", "SQUARE"), FLOAT),
    **dict.fromkeys(("LOGICAL_AND", "LOGICAL_NOT", "LOGICAL_OR"), BOOL),
    **dict.fromkeys(("GREATER", "GREATER_EQUAL", "LESS", "LESS_EQUAL"), NUMBERS),
    **dict.fromkeys(("MAXIMUM", "MINIMUM"), NUMBERS),
    "SQUARED_DIFFERENCE": (*INT8_AND_FLOAT, "int32"),
    **dict.fromkeys(("EQUAL", "NOT_EQUAL"), (*NUMBERS, "bool")),
    **dict.fromkeys(("SELECT", "SELECT_V2"), (*NUMBERS, "bool")),
    **dict.fromkeys(("EXP", "GELU", "LOG", "RSQRT", "SQRT"), (*INT8_AND_FLOAT, "int16")),
    "ABS": (*INT8_AND_FLOAT, "int16", "int32"),
    "ADD_N": (*INT8_AND_FLOAT, "int32"),
    "DIV": (*INT8_AND_FLOAT, "int32"),
    "FLOOR_DIV": (*INT8_AND_FLOAT, "int16", "int32"),
    "FLOOR_MOD": NUMBERS,
    "NEG": NUMBERS,
    "PRELU": (*INT8_AND_FLOAT, "int16"),
    **dict.fromkeys(("BITWISE_XOR", "RIGHT_SHIFT"), ("int8", "int16", "int32")),
    **dict.fromkeys(("POW", "SIGN"), ("float32", "int32")),
    **dict.fromkeys(("REDUCE_ALL", "REDUCE_ANY"), BOOL),
    **dict.fromkeys(("REDUCE_MAX", "REDUCE_MIN", "REDUCE_PROD"), (*NUMBERS, "bool")),
    "SUM": NUMBERS,
    "CAST": (*NUMBERS, "uint8", "uint32", "bool"),
}
