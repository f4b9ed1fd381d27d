"""Forms of element-wise operators and of conversions between types."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np

from support.forms.sketch import (
    ACTIVATIONS,
    AFFINES,
    BOOL,
    F32,
    I8,
    I16,
    I32,
    I64,
    QUANTISED,
    U8,
    Affine,
    Form,
    Sketch,
    affines_of,
)


def unary(kind: str, dtype: str) -> Iterator[Form]:
    domain = "positive" if kind in ("LOG", "RSQRT", "SQRT") else "any"
    for number, affine in enumerate(affines_of(dtype)):
        source, target = affine, affine
        if kind in ("LOG", "RSQRT", "SQRT") and dtype == I8:
            source = (affine[0], -128)
        if kind in ("EXP", "GELU"):
            # The greatest value of int16 has an exponential in float32.
            source = (min(affine[0], 2.0**-9 if (kind, dtype) == ("EXP", I16) else 2.0**-5), affine[1])
        if kind == "LOGISTIC":
            target = (1 / 256, -128) if dtype == I8 else (2.0**-15, 0)
        if kind == "TANH":
            target = (1 / 128, 0) if dtype == I8 else (2.0**-15, 0)
        for shape in ((2, 3, 4, 5), (7,), (3, 1, 2)) if number == 0 else ((6, 50),):
            for options in _unary_options(kind):
                sketch = Sketch(kind, dtype, domain)
                x, y = sketch.input(shape, source), sketch.output(shape, target)
                yield sketch.form(f"{list(shape)} {affine} {options or ''}", [x], [y], **options)


def _unary_options(kind: str) -> tuple[dict[str, Any], ...]:
    if kind == "LEAKY_RELU":
        return {"alpha": 0.1}, {"alpha": -0.5}
    return ({"approximate": False}, {"approximate": True}) if kind == "GELU" else ({},)


def _result_scale(kind: str, first: float, second: float) -> float:
    """A scale with which results are neither all alike nor all at an end; DIV shifts by no more than is defined."""
    if kind == "DIV":
        return first / second / 128
    return max(4 * first**2, first) if kind == "SQUARED_DIFFERENCE" else 2 * first


def _taken(kind: str, dtype: str) -> list[Affine]:
    """Quantisations that an operator takes: comparisons want scales below 1."""
    most = 0.9 if kind in COMPARISONS else 2.0
    return [(min(scale, most), zero_point) for scale, zero_point in affines_of(dtype)]


def binary(kind: str, dtype: str) -> Iterator[Form]:
    is_truth = kind in COMPARISONS or dtype == BOOL
    domain = {"DIV": "not zero", "FLOOR_DIV": "not zero", "FLOOR_MOD": "not zero", "POW": "positive"}.get(
        kind, "any"
    )
    shapes = (
        ((2, 3, 4, 5), (2, 3, 4, 5)),
        ((4, 5), (5,)),
        ((2, 1, 4, 1), (3, 1, 5)),
        ((2, 3, 4), ()),
    )
    for number, affine in enumerate(_taken(kind, dtype)):
        for first, second in shapes if number == 0 else shapes[1:2]:
            for constant in (False, True) if number == 0 and second else (False,):
                activations = (
                    ACTIVATIONS
                    if kind in FUSED and (first, second) == shapes[1] and not constant
                    else ("NONE",)
                )
                for activation in activations:
                    sketch = Sketch(kind, dtype, domain)
                    is_divisor = domain == "not zero" and dtype != F32
                    other = (affine[0] / 3, 0 if is_divisor else affine[1] // 2)
                    # Powers of such numbers fit 32 bits.
                    least, most = (6, 36) if (kind, dtype) == ("POW", I32) else (None, None)
                    a = sketch.input(first, affine, indices=most)
                    b = (
                        sketch.constant(second, other, below=least)
                        if constant or is_divisor
                        else sketch.input(second, other, indices=least)
                    )
                    result = np.broadcast_shapes(first, second)
                    y = sketch.output(
                        result,
                        (_result_scale(kind, affine[0], other[0]), affine[1]),
                        BOOL if is_truth else "",
                    )
                    options = {"activation": activation} if kind in FUSED else {}
                    facts = f"{list(first)} {list(second)} {'constant ' * constant}{affine} {activation}"
                    yield sketch.form(facts, [a, b], [y], **options)


COMPARISONS = ("EQUAL", "NOT_EQUAL", "GREATER", "GREATER_EQUAL", "LESS", "LESS_EQUAL")
FUSED = ("ADD", "SUB", "MUL", "DIV")


def alike(kind: str, dtype: str) -> Iterator[Form]:
    """Operators of two tensors of one shape, without options."""
    for shape in ((2, 3, 4, 5), (7,)):
        sketch = Sketch(kind, dtype)
        operands = [sketch.input(shape), sketch.input(shape)]
        yield sketch.form(f"{list(shape)}", operands, [sketch.output(shape)])


def shift(kind: str, dtype: str) -> Iterator[Form]:
    """Counts of bits among which are some that no number has."""
    for first, second in (((2, 3, 40), (2, 3, 40)), ((3, 40), (40,))):
        sketch = Sketch(kind, dtype)
        operands = [sketch.input(first), sketch.constant(second, below=40)]
        yield sketch.form(f"{list(first)} {list(second)}", operands, [sketch.output(first)])


def left_shift(kind: str, dtype: str) -> Iterator[Form]:
    """All counts of bits that a number of 32 has."""
    sketch = Sketch(kind, dtype)
    operands = [
        sketch.input((20, 32)),
        sketch.builder.constant("counts", np.tile(np.arange(32), 20).reshape(20, 32).astype(dtype)),
    ]
    yield sketch.form("every count", operands, [sketch.output((20, 32))])


def bucketize(kind: str, dtype: str) -> Iterator[Form]:
    for boundaries in ((0.0,), (-1.5, 0.25, 0.25), (-100.0, -2.0, -1.0, 0.5, 1.0, 2.0, 40.0, 1e9)):
        sketch = Sketch(kind, dtype)
        x, y = sketch.input((3, 50)), sketch.output((3, 50), dtype=I32)
        yield sketch.form(f"{boundaries}", [x], [y], boundaries=boundaries)


def fake_quant(kind: str, dtype: str) -> Iterator[Form]:
    for low, high, bits in ((-1.0, 1.5, 8), (0.0, 6.0, 4), (-3.0, 0.0, 16), (-0.4, 7.1, 2)):
        sketch = Sketch(kind, dtype)
        x, y = sketch.input((3, 50)), sketch.output((3, 50))
        yield sketch.form(f"{low} {high} {bits}", [x], [y], min=low, max=high, num_bits=bits)


def add_n(kind: str, dtype: str) -> Iterator[Form]:
    for count in (2, 4):
        sketch = Sketch(kind, dtype)
        operands = [sketch.input((2, 3, 4)) for _ in range(count)]
        yield sketch.form(f"{count} operands", operands, [sketch.output((2, 3, 4))])


def prelu(kind: str, dtype: str) -> Iterator[Form]:
    for affine, slopes in product(affines_of(dtype), ((5,), (1, 1, 5), (3, 4, 5))):
        sketch = Sketch(kind, dtype)
        x, slope = (
            sketch.input((2, 3, 4, 5), affine),
            sketch.constant(slopes, (0.01, 5), I8 if dtype == I16 else ""),
        )
        yield sketch.form(
            f"slopes {list(slopes)} {affine}", [x, slope], [sketch.output((2, 3, 4, 5), affine)]
        )


def select(kind: str, dtype: str) -> Iterator[Form]:
    conditions = [((2, 3, 4), (2, 3, 4)), ((2,), (2, 3, 4)), ((), (2, 3))]
    if kind == "SELECT_V2":
        conditions = [((2, 3, 4), (2, 3, 4)), ((2, 1, 4), (3, 4)), ((3, 4), (2, 3, 4)), ((1,), (2, 3))]
    for condition, shape in conditions:
        sketch = Sketch(kind, dtype)
        operands = [sketch.input(condition, dtype=BOOL), sketch.input(shape), sketch.input(shape)]
        result = shape if kind == "SELECT" else np.broadcast_shapes(condition, shape)
        yield sketch.form(f"{list(condition)} {list(shape)}", operands, [sketch.output(result)])


def cast(kind: str, dtype: str) -> Iterator[Form]:
    for target in (F32, I8, I16, I32, I64, BOOL, U8):
        if target != dtype:
            sketch = Sketch(kind, dtype)
            x = sketch.builder.tensor("x", (2, 3, 5), dtype)
            sketch.inputs.append(x)
            sketch.ports.append(((2, 3, 5), dtype))
            yield sketch.form(f"to {target}", [x], [sketch.builder.tensor("y", (2, 3, 5), target)])


def quantize(kind: str, dtype: str) -> Iterator[Form]:
    targets = (I8, U8, I16, I32) if dtype in (F32, *QUANTISED) else (I8, I16)
    for target, affine in product(targets, AFFINES):
        sketch = Sketch(kind, dtype)
        x = sketch.builder.tensor(
            "x",
            (4, 33),
            dtype,
            **({} if dtype == F32 else {"scale": 0.03, "zero_point": {U8: 100, I8: -7}.get(dtype, 0)}),
        )
        sketch.inputs.append(x)
        sketch.ports.append(((4, 33), dtype))
        zero_point = {U8: affine[1] + 128, I8: affine[1]}.get(target, 0)
        y = sketch.builder.tensor("y", (4, 33), target, scale=affine[0], zero_point=zero_point)
        yield sketch.form(f"to {target} {affine}", [x], [y])


def dequantize(kind: str, dtype: str) -> Iterator[Form]:
    for affine in AFFINES:
        sketch = Sketch(kind, dtype)
        yield sketch.form(f"{affine}", [sketch.input((4, 33), affine)], [sketch.output((4, 33), dtype=F32)])
