"""What is drawn for random models of one operator: a model file under construction, its tensors and quantisations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import hypothesis.strategies as st
import numpy as np
from hypothesis.strategies import DrawFn
from numpy.typing import NDArray

from support.unsigned import unsigned_twin
from tflite_writer import ModelBuilder, Subgraph

DTYPES = ("int8", "float32")
WITH_INT16 = ("int8", "int16", "float32")
ACTIVATIONS = ("NONE", "RELU", "RELU6", "RELU_N1_TO_1")
FINE = "fine"  # a temper of quantisations
TWIN = "twin"  # drawn as of int8, and written as uint8

FLOAT_TOLERANCE = 1e-5


@dataclass(frozen=True)
class RandomModel:
    """One file.

    Attributes:
        description: What it is, in one line, for a failing test's message.
        input_shapes, dtype: Of its inputs, in order.
        indices: Of the inputs that are int32 and count elements, by position: how many there are.
        dtypes: Their types, where these are not one.
        domain: What float inputs are: "any", "positive" or "not zero".
        tolerance: How far floats may be from the reference, as a part of the largest.
    """

    content: bytes
    description: str
    input_shapes: tuple[tuple[int, ...], ...]
    dtype: str
    indices: Mapping[int, int] = field(default_factory=dict[int, int])
    dtypes: tuple[str, ...] = ()
    domain: str = "any"
    tolerance: float = FLOAT_TOLERANCE

    def inputs(self, seed: int) -> list[NDArray[Any]]:
        """Inputs for one run: random for most seeds, all the same extreme for the first two."""
        generator = np.random.default_rng(seed)
        dtypes = self.dtypes or (self.dtype,) * len(self.input_shapes)
        return [
            generator.integers(0, self.indices[position], shape).astype(dtype)
            if position in self.indices
            else array(generator, shape, dtype, seed, self.domain)
            for position, (shape, dtype) in enumerate(zip(self.input_shapes, dtypes, strict=True))
        ]

    def __repr__(self) -> str:
        return f"RandomModel({self.description})"


def integers(generator: np.random.Generator, shape: tuple[int, ...], dtype: str) -> NDArray[Any]:
    """Any numbers of a type, or small ones, of which some are equal."""
    bounds = np.iinfo(dtype)
    anything = generator.integers(bounds.min, bounds.max, shape, dtype, endpoint=True)
    small = generator.integers(-3, 4, shape).astype(dtype)
    return np.asarray(np.where(generator.integers(0, 2, shape) == 0, anything, small), dtype)


def array(
    generator: np.random.Generator, shape: tuple[int, ...], dtype: str, seed: int, domain: str
) -> NDArray[Any]:
    if dtype == "bool":
        return (
            np.full(shape, bool(seed)) if seed in (0, 1) else generator.integers(0, 2, shape).astype(np.bool_)
        )
    if dtype != "float32":
        bounds = np.iinfo(dtype)
        # The zero point of int16 is 0; that of int8 is drawn so that all is positive.
        least = 1 if (dtype, domain) == ("int16", "positive") else bounds.min
        if seed in (0, 1) and dtype != "uint8":
            return np.full(shape, least if seed == 0 else bounds.max, dtype)
        if bounds.bits <= 16:
            return generator.integers(least, bounds.max, shape, endpoint=True).astype(dtype)
        return integers(generator, shape, dtype)
    values = (generator.integers(-64, 65, shape) / 8).astype(np.float32)
    if domain == "positive":
        return np.abs(values) + np.float32(0.125)
    return np.where(values == 0, np.float32(0.25), values) if domain == "not zero" else values


class Draft:
    """A model under construction, with the drawing of quantisations."""

    def __init__(self, draw: DrawFn, kind: str, dtype: str) -> None:
        self.draw = draw
        self.kind = kind
        self.is_unsigned = dtype == TWIN
        self.dtype = "int8" if self.is_unsigned else dtype
        self.builder = ModelBuilder()
        self.inputs: list[int] = []
        self.input_shapes: list[tuple[int, ...]] = []
        self.generator = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
        self.dtypes: list[str] = []
        self.domain = "any"
        self.facts: list[str] = []
        self.indices: dict[int, int] = {}
        self.others: list[Subgraph] = []  # which the operator names, from number 1 on

    @property
    def is_int8(self) -> bool:
        return self.dtype == "int8"

    @property
    def is_quantised(self) -> bool:
        return self.dtype in ("int8", "int16")

    def affine(self, dtype: str = "") -> tuple[float, int]:
        """A scale and a zero point; of int16 that is 0, and the scale 2^8 times finer."""
        if dtype == "int32":  # finer than any other type, or a reference leaves 32 bits
            return self.draw(st.floats(2.0**-40, 2.0**-17, width=32)), 0
        if (dtype or self.dtype) == "int16":
            exact = st.sampled_from([2.0**power for power in range(-16, -5)])
            return self.draw(st.one_of(exact, st.floats(2.0**-16, 2.0**-6, width=32))), 0
        scale = self.draw(
            st.one_of(
                st.sampled_from([2.0**power for power in range(-8, 3)]),
                st.floats(2.0**-8, 2.0, width=32),
            )
        )
        zero_point = self.draw(st.one_of(st.sampled_from([-128, 0, 127]), st.integers(-128, 127)))
        return scale, zero_point

    def tensor(self, name: str, shape: Sequence[int], affine: tuple[float, int] | None) -> int:
        is_scaled = self.dtype in ("int8", "int16", "uint8") or self.kind == "QUANTIZE"
        if not is_scaled or affine is None:
            return self.builder.tensor(name, shape, self.dtype)
        return self.quantised(name, shape, self.dtype, affine)

    def quantised(self, name: str, shape: Sequence[int], dtype: str, affine: tuple[float, int]) -> int:
        """A tensor whose zero point is drawn for int8."""
        zero_point = affine[1] + (128 if dtype == "uint8" else 0)
        return self.builder.tensor(name, shape, dtype, scale=affine[0], zero_point=zero_point)

    def input(self, shape: Sequence[int], affine: tuple[float, int] | None, dtype: str = "") -> int:
        """An input of the draft's type, or of another that is not quantised."""
        name = f"input_{len(self.inputs)}"
        index = self.builder.tensor(name, shape, dtype) if dtype else self.tensor(name, shape, affine)
        self.inputs.append(index)
        self.input_shapes.append(tuple(shape))
        self.dtypes.append(dtype or self.dtype)
        return index

    def index_input(self, shape: Sequence[int], count: int) -> int:
        """An input that counts elements of an axis of this extent."""
        self.indices[len(self.inputs)] = count
        self.dtypes.append("int32")
        index = self.builder.tensor(f"input_{len(self.inputs)}", shape, "int32")
        self.inputs.append(index)
        self.input_shapes.append(tuple(shape))
        return index

    def output(self, shape: Sequence[int], affine: tuple[float, int] | None) -> int:
        return self.tensor("output", shape, affine)

    def integers(self, name: str, values: Sequence[int] | NDArray[Any]) -> int:
        return self.builder.constant(name, np.asarray(values, dtype=np.int32))

    def weights(self, shape: Sequence[int]) -> NDArray[Any]:
        if self.is_int8:
            return self.generator.integers(-127, 128, shape).astype(np.int8)
        if self.dtype == "int16":
            return self.generator.integers(-32767, 32768, shape).astype(np.int16)
        if self.dtype in ("int32", "int64"):
            return integers(self.generator, tuple(shape), self.dtype)
        if self.dtype == "bool":
            return self.generator.integers(0, 2, shape).astype(np.bool_)
        return (self.generator.integers(-16, 17, shape) / 8).astype(np.float32)

    def finish(self, outputs: Sequence[int], **facts: object) -> RandomModel:
        text = ", ".join(f"{key}={value}" for key, value in facts.items())
        content = self.builder.build(self.inputs, outputs, *self.others)
        shapes, dtypes, dtype = tuple(self.input_shapes), tuple(self.dtypes), self.dtype
        if self.is_unsigned:
            zero_point = self.draw(st.sampled_from([0, 255, 128, 104, 151]))
            content, text = unsigned_twin(content, zero_point), f"{text}, weights' zero point={zero_point}"
            dtype = "uint8"
            dtypes = tuple(dtype if each == "int8" else each for each in dtypes)
        description = f"{self.kind} {dtype} {text}"
        return RandomModel(content, description, shapes, dtype, self.indices, dtypes, self.domain)


def some_shape(draft: Draft, rank: int, maximum: int = 6) -> tuple[int, ...]:
    return tuple(draft.draw(st.integers(1, maximum)) for _ in range(rank))


def any_shape(draft: Draft, low: int = 1, high: int = 4, maximum: int = 6) -> tuple[int, ...]:
    return some_shape(draft, draft.draw(st.integers(low, high)), maximum)
