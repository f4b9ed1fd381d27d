"""A model of one operator under construction, and what forms are made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from support.random_draft import ACTIVATIONS, RandomModel
from tflite_writer import ModelBuilder, Subgraph

__all__ = ["ACTIVATIONS"]
Shape = Sequence[int]
Affine = tuple[float, int]
# Usual ones, and those at the ends of scales and zero points.
AFFINES = ((0.05, 3), (2.0**-8, -128), (1.5, 127))
QUANTISED = ("int8", "uint8", "int16")
F32, I8, I16, I32, I64, BOOL, U8 = "float32", "int8", "int16", "int32", "int64", "bool", "uint8"
ALL = (F32, I8, I16, I32, I64, BOOL)
NUMBERS = (F32, I8, I16, I32, I64)


@dataclass(frozen=True)
class Form:
    """One form: its operator, the element type of its data, and what else tells it from others."""

    kind: str
    dtype: str
    label: str
    model: RandomModel

    @property
    def name(self) -> str:
        """Unique in the list."""
        return f"{self.kind} {self.dtype} {self.label}"


class Sketch:
    """A model of one operator under construction."""

    def __init__(self, kind: str, dtype: str, domain: str = "any") -> None:
        self.kind, self.dtype, self.domain = kind, dtype, domain
        self.builder = ModelBuilder()
        self.inputs: list[int] = []
        self.ports: list[tuple[tuple[int, ...], str]] = []
        self.indices: dict[int, int] = {}
        self.others: list[Subgraph] = []  # which the operator names, from number 1 on
        self.generator = np.random.default_rng(len(kind) * 1000 + len(dtype))

    def keywords(self, dtype: str, affine: Affine) -> dict[str, Any]:
        if dtype not in QUANTISED:
            return {}
        zero_point = {I16: 0, U8: affine[1] + 128}.get(dtype, affine[1])
        return {"scale": affine[0], "zero_point": zero_point}

    def input(
        self, shape: Shape, affine: Affine = AFFINES[0], dtype: str = "", *, indices: int | None = None
    ) -> int:
        """An input, of the sketch's type unless another is given; `indices` is how many elements it counts."""
        dtype = dtype or self.dtype
        name = f"x{len(self.inputs)}"
        index = self.builder.tensor(name, shape, dtype, **self.keywords(dtype, affine))
        if indices is not None:
            self.indices[len(self.inputs)] = indices
        self.inputs.append(index)
        self.ports.append((tuple(shape), dtype))
        return index

    def output(self, shape: Shape, affine: Affine = AFFINES[0], dtype: str = "") -> int:
        """A result."""
        dtype = dtype or self.dtype
        return self.builder.tensor(f"y{shape}", shape, dtype, **self.keywords(dtype, affine))

    def integers(self, values: Any, dtype: str = I32) -> int:
        """A constant that says where or how many."""
        return self.builder.constant("numbers", np.array(values, dtype))

    def constant(
        self, shape: Shape, affine: Affine = AFFINES[0], dtype: str = "", *, below: int | None = None
    ) -> int:
        """Constant data, of counts below a number if one is given."""
        dtype = dtype or self.dtype
        counts = None if below is None else self.generator.integers(0, below, shape).astype(dtype)
        values = self.values(shape, dtype) if counts is None else counts
        return self.builder.constant("constant", values, **self.keywords(dtype, affine))

    def values(self, shape: Shape, dtype: str) -> NDArray[Any]:
        """Any values of a type; floats are small and not zero."""
        if dtype == F32:
            values = self.generator.integers(1, 33, shape) / 8
            return (values if self.domain == "positive" else values - 4.0625).astype(np.float32)
        if dtype == BOOL:
            return self.generator.integers(0, 2, shape).astype(np.bool_)
        low, high = (1, 100) if self.domain == "positive" else (-100, 101)
        values = self.generator.integers(0 if dtype == U8 else low, high, shape).astype(dtype)
        # The least number over -1 ends the references' process.
        return np.where(np.abs(values) <= 1, values + 7, values) if self.domain == "not zero" else values

    def form(self, label: str, operands: Sequence[int], outputs: Sequence[int], **options: Any) -> Form:
        """The finished form."""
        self.builder.operator(self.kind, operands, outputs, **options)
        content = self.builder.build(self.inputs, outputs, *self.others)
        shapes, dtypes = tuple(s for s, _ in self.ports), tuple(d for _, d in self.ports)
        name = f"{self.kind} {self.dtype} {label}"
        model = RandomModel(content, name, shapes, self.dtype, self.indices, dtypes, self.domain)
        return Form(self.kind, self.dtype, label, model)


def of_pairs(kind: str, dtype: str) -> Subgraph:
    """A subgraph of one operator on two elements; without one it gives the second."""
    builder = ModelBuilder(subgraph_name="body")
    first, second = (builder.tensor(name, (), dtype) for name in ("first", "second"))
    if not kind:
        return builder.subgraph([first, second], [second])
    result = builder.tensor("result", (), dtype)
    builder.operator(kind, [first, second], [result])
    return builder.subgraph([first, second], [result])


def affines_of(dtype: str) -> tuple[Affine, ...]:
    return AFFINES if dtype in (I8, I16) else AFFINES[:1]
