"""Random networks of a convolution, then functions of elements, comparisons and choices, then a reduction.

They show fusion, vectors and instruction sets what `random_elements` shows one operator at a time. What LiteRT's
reference resolver lacks (ELU, SUM in int8) is left out, as its default one rounds convolutions otherwise.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from support.random_models import RandomModel
from tflite_writer import ModelBuilder

_DEPTHS = (3, 4, 8, 15, 16, 17, 23, 32, 33, 48)
_TFLM = ("ABS", "MAXIMUM", "MINIMUM", "SQUARED_DIFFERENCE", "PRELU", "SELECT_V2")
_ANY = (*_TFLM, "GELU", "NEG", "RELU_0_TO_1", "SELECT")


class _Mixture:
    def __init__(self, seed: int, dtype: str) -> None:
        self.generator = np.random.default_rng(seed)
        self.dtype = dtype
        self.builder = ModelBuilder()
        self.kinds: list[str] = []
        self.depth = int(self.generator.choice(_DEPTHS))
        self.shape = (1, *(int(n) for n in self.generator.integers(1, 8, 2)), self.depth)

    def tensor(self, shape: tuple[int, ...], scale: float = 0.0) -> int:
        if self.dtype != "int8":
            return self.builder.tensor(f"t{len(self.kinds)}", shape, self.dtype)
        own = scale or float(np.float32(2.0 ** self.generator.uniform(-6, -2)))
        zero_point = int(self.generator.integers(-30, 30))
        return self.builder.tensor(f"t{len(self.kinds)}", shape, "int8", scale=own, zero_point=zero_point)

    def constant(self, shape: tuple[int, ...], name: str) -> int:
        if self.dtype == "int8":
            values = self.generator.integers(-127, 128, shape).astype(np.int8)
            return self.builder.constant(f"{name}{len(self.kinds)}", values, scale=0.015625, zero_point=0)
        values = (self.generator.integers(-16, 17, shape) / 8).astype(np.float32)
        return self.builder.constant(f"{name}{len(self.kinds)}", values)

    def apply(self, kind: str, operands: list[int], result: int, **options: Any) -> int:
        self.builder.operator(kind, operands, [result], **options)
        self.kinds.append(kind)
        return result

    def convolution(self, source: int) -> int:
        weights = self.constant((self.depth, 1, 1, self.depth), "w")
        dtype = np.int32 if self.dtype == "int8" else np.float32
        bias = self.builder.constant("bias", np.arange(self.depth).astype(dtype), scale=0.001)
        return self.apply("CONV_2D", [source, weights, bias], self.tensor(self.shape, 0.25), padding="SAME")

    def step(self, kind: str, value: int, other: int) -> int:
        """An operator of a kind on a value, and on another one or a constant where it takes two."""
        first = value
        if kind in ("SELECT", "SELECT_V2"):
            truth = self.builder.tensor(f"truth{len(self.kinds)}", self.shape, "bool")
            compare = str(self.generator.choice(["GREATER", "LESS_EQUAL", "NOT_EQUAL"]))
            condition = self.apply(compare, [value, self.constant((self.depth,), "k")], truth)
            return self.apply(kind, [condition, value, other], self.tensor(self.shape))
        if kind in ("MAXIMUM", "MINIMUM", "SQUARED_DIFFERENCE"):
            second = self.constant((self.depth,), "k") if self.generator.integers(2) else other
            return self.apply(kind, [first, second], self.tensor(self.shape, 0.125))
        if kind == "PRELU":
            return self.apply(
                kind, [first, self.constant((1, 1, self.depth), "slope")], self.tensor(self.shape)
            )
        return self.apply(kind, [first], self.tensor(self.shape))

    def reduction(self, value: int, kind: str) -> int:
        axes = [[1, 2], [1], [2], [-1], [1, 2, 3]][int(self.generator.integers(5))]
        keep = bool(self.generator.integers(2))
        positive = {axis % 4 for axis in axes}
        extents = [1 if axis in positive else extent for axis, extent in enumerate(self.shape)]
        shape = [extent for axis, extent in enumerate(extents) if keep or axis not in positive]
        result = self.alike(value, tuple(shape))
        operands = [value, self.builder.constant(f"axes{len(self.kinds)}", np.array(axes, np.int32))]
        return self.apply(kind, operands, result, keep_dims=keep)

    def alike(self, value: int, shape: tuple[int, ...]) -> int:
        """A tensor quantised as another one is."""
        own = self.builder._tensors[value]
        keywords = {"scale": own.scales, "zero_point": own.zero_points} if own.scales else {}
        return self.builder.tensor(f"t{len(self.kinds)}", shape, self.dtype, **keywords)


def random_mixture(seed: int, dtype: str, *, is_tflm: bool = False) -> RandomModel:
    """One network; with `is_tflm` of operators that TensorFlow Lite Micro has too."""
    mixture = _Mixture(seed, dtype)
    source = mixture.tensor(mixture.shape)
    value = mixture.convolution(source) if mixture.generator.integers(3) else source
    for _ in range(int(mixture.generator.integers(1, 4))):
        kinds = _TFLM if is_tflm else _ANY
        value = mixture.step(str(mixture.generator.choice(kinds)), value, source)
    if mixture.generator.integers(3):
        value = mixture.reduction(value, str(mixture.generator.choice(["REDUCE_MAX", "REDUCE_MIN"])))
    content = mixture.builder.build([source], [value])
    description = f"{dtype} {mixture.shape}: {', '.join(mixture.kinds)} (seed {seed})"
    return RandomModel(content, description, (mixture.shape,), dtype)


def random_reduction_of(kind: str, seed: int, dtype: str) -> RandomModel:
    """One reduction of an input, with the depth that vectors like or not."""
    mixture = _Mixture(seed, dtype)
    source = mixture.tensor(mixture.shape)
    result = mixture.reduction(source, kind)
    content = mixture.builder.build([source], [result])
    return RandomModel(content, f"{kind} {dtype} {mixture.shape} (seed {seed})", (mixture.shape,), dtype)
