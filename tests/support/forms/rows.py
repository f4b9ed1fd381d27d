"""Forms of reductions, and of operators on rows."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from support.forms.sketch import AFFINES, I8, I16, I32, I64, Form, Sketch, affines_of


def reduction(kind: str, dtype: str) -> Iterator[Form]:
    for axes, keep in product(((1,), (1, 2), (-1,), (0, 1, 2, 3)), (False, True)):
        for affine in affines_of(dtype) if axes == (1, 2) and not keep else AFFINES[:1]:
            sketch = Sketch(kind, dtype)
            # Products of more floats leave their range.
            shape = (2, 3, 2, 2) if kind == "REDUCE_PROD" else (2, 3, 4, 5)
            own = [axis % 4 for axis in axes]
            reduced = [1 if axis in own else extent for axis, extent in enumerate(shape)]
            result = reduced if keep else [e for axis, e in enumerate(shape) if axis not in own]
            target = (affine[0] * 12, affine[1]) if kind == "SUM" else affine
            y = sketch.output(result, target)
            facts = f"{list(axes)} keep={keep} {affine}"
            yield sketch.form(
                facts, [sketch.input(shape, affine), sketch.integers(axes)], [y], keep_dims=keep
            )


def arg(kind: str, dtype: str) -> Iterator[Form]:
    for axis, output in product((0, 1, -1), (I32, I64)):
        sketch = Sketch(kind, dtype)
        shape = (3, 4, 7)
        result = tuple(extent for i, extent in enumerate(shape) if i != axis % 3)
        x, y = sketch.input(shape), sketch.output(result, dtype=output)
        yield sketch.form(
            f"axis {axis} {output}", [x, sketch.integers(axis)], [y], output_type=output.upper()
        )


def softmax(kind: str, dtype: str) -> Iterator[Form]:
    target = {I8: (1 / 256, -128), I16: (2.0**-15, 0)}.get(dtype, AFFINES[0])
    if kind == "LOG_SOFTMAX":
        target = (1 / 16, 127)
    for shape, affine in product(((2, 9), (7,), (2, 3, 5), (1, 2, 3, 4)), affines_of(dtype)):
        for beta in (1.0, 0.5) if kind == "SOFTMAX" and shape == (2, 9) else (1.0,):
            sketch = Sketch(kind, dtype)
            options = {"beta": beta} if kind == "SOFTMAX" else {}
            x, y = sketch.input(shape, affine), sketch.output(shape, target)
            yield sketch.form(f"{list(shape)} {affine} beta {beta}", [x], [y], **options)


def norm(kind: str, dtype: str) -> Iterator[Form]:
    for shape, affine in product(((2, 9), (1, 2, 3, 4)), affines_of(dtype)):
        sketch = Sketch(kind, dtype)
        x, y = sketch.input(shape, affine), sketch.output(shape, (1 / 128, 0))
        yield sketch.form(f"{list(shape)} {affine}", [x], [y])


def cumsum(kind: str, dtype: str) -> Iterator[Form]:
    for axis, exclusive, reverse in product((0, 1, -1), (False, True), (False, True)):
        for affine in affines_of(dtype) if axis == 1 and not exclusive and not reverse else AFFINES[:1]:
            sketch = Sketch(kind, dtype)
            x, y = sketch.input((3, 4, 5), affine), sketch.output((3, 4, 5), (affine[0] * 2, affine[1]))
            options = {"exclusive": exclusive, "reverse": reverse}
            facts = f"axis {axis} exclusive={exclusive} reverse={reverse} {affine}"
            yield sketch.form(facts, [x, sketch.integers(axis)], [y], **options)


def topk(kind: str, dtype: str) -> Iterator[Form]:
    for shape, count in (((9,), 3), ((2, 3, 8), 8), ((4, 5), 1)):
        sketch = Sketch(kind, dtype)
        result = (*shape[:-1], count)
        outputs = [sketch.output(result), sketch.output((*result, 1)[:-1], dtype=I32)]
        yield sketch.form(f"{list(shape)} {count}", [sketch.input(shape), sketch.integers(count)], outputs)


def spectrum(kind: str, dtype: str) -> Iterator[Form]:
    """Floats of the spectra of images, which are cut, filled with zeros, or whole."""
    cases = (((3, 8), (1, 8)), ((2, 4, 16), (4, 16)), ((2, 1, 6, 9), (8, 4)), ((1, 2, 5), (2, 32)))
    for shape, lengths in cases:
        sketch = Sketch(kind, dtype)
        found = (*shape[:-2], lengths[0], lengths[1] // 2 + 1)
        x, y = sketch.input(shape), sketch.output(found, dtype="complex64")
        sketch.builder.operator("RFFT2D", [x, sketch.integers(lengths)], [y])
        yield sketch.form(f"{list(shape)} by {list(lengths)}", [y], [sketch.output(found)])
