"""The epilogue: element-wise operators in the kernel of their producer, on operands of every form."""

from __future__ import annotations

import math

import numpy as np
import pytest

from bytewright.ir.drop_unused import drop_unused
from bytewright.ir.types import DType
from bytewright.ops.data import Transpose
from bytewright.ops.elementwise import Add, Clamp, Mul, Sub
from bytewright.ops.float_functions import Sigmoid, Tanh, TflHardSwish, TflLeakyRelu
from bytewright.ops.quantization import Table, TflDequantize, TflQuantize
from bytewright.ops.rescale import TflRealRescale
from support.lowering import TARGETS, Draft, assert_same_meaning

I8, I32, F32, F64 = DType.I8, DType.I32, DType.F32, DType.F64


@pytest.mark.parametrize("kind", [Add, Sub, Mul])
@pytest.mark.parametrize(
    ("first", "second"),
    [((2, 3, 4), (2, 3, 4)), ((2, 3, 4), (4,)), ((2, 1, 4), (3, 1)), ((2, 3, 4), ()), ((1,), (2, 3, 4))],
    ids=str,
)
def test_broadcasting_of_tensors(kind: type, first: tuple[int, ...], second: tuple[int, ...]) -> None:
    draft = Draft()
    draft.parameter("x", first, F32)
    draft.parameter("y", second, F32)
    draft.node("z", kind(), "x", "y")
    assert_same_meaning(draft.module("z"))


@pytest.mark.parametrize("kind", [Add, Sub, Mul])
@pytest.mark.parametrize("shape", [(2, 3), (3,), (1,), ()], ids=str)
@pytest.mark.parametrize("is_first", [False, True])
def test_constant_operands(kind: type, shape: tuple[int, ...], is_first: bool) -> None:
    """Integers, whose bounds come from the constant's values."""
    draft = Draft()
    draft.parameter("x", (2, 3), I32)
    draft.constant("c", np.random.default_rng(3).integers(-1000, 1000, shape), I32)
    draft.node("small", Clamp(-77, 60), "x")
    draft.node("z", kind(), *(("c", "small") if is_first else ("small", "c")))
    draft.rescale("y", "z", 2.0**-9, 3)
    inputs = [[np.full((2, 3), value, np.int32)] for value in (-(2**31), -76, -1, 1, 59, 2**31 - 1)]
    assert_same_meaning(draft.module("y"), inputs=inputs)


@pytest.mark.parametrize(
    "operation",
    [
        Clamp(-1.0, 2.5),
        Clamp(0.0, math.inf),
        Clamp(-math.inf, 1.5),
        Sigmoid(),
        Tanh(),
        TflHardSwish(),
        TflLeakyRelu(0.1),
        TflLeakyRelu(-0.3),
        TflQuantize(0.0625, -3),
    ],
    ids=lambda operation: f"{operation.name} {operation!r}"[:40],
)
def test_float_operators_after_an_anchor(operation) -> None:
    draft = Draft()
    draft.parameter("x", (2, 3, 4), F32)
    draft.node("t", Transpose((2, 0, 1)), "x")
    draft.node("y", operation, "t")
    module = assert_same_meaning(draft.module("y"))
    assert len(module.kernels) == 1


def test_quantising_saturates_whatever_the_float() -> None:
    draft = Draft()
    draft.parameter("x", (12,), F32)
    draft.node("y", TflQuantize(0.5, 100), "x")
    edges = [np.inf, -np.inf, np.nan]
    x = np.array([0.25, -0.25, 0.75, 13.75, 13.25, 1e30, -1e30, -114.0, 3e9, *edges], np.float32)
    assert_same_meaning(draft.module("y"), inputs=[[x]])


def test_every_byte_through_table_and_dequantise() -> None:
    draft = Draft()
    draft.parameter("x", (256,), I8)
    draft.constant("t", np.random.default_rng(1).integers(-128, 128, 256), I8)
    draft.node("mapped", Table(), "x", "t")
    draft.node("y", TflDequantize(0.375, -7), "mapped")
    assert_same_meaning(draft.module("y"), inputs=[[np.arange(-128, 128, dtype=np.int8)]])


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    "scales",
    [[0.0117], [1 / 30], [1 / 98], [1 / 1470], [1 / 98, 0.01, 1 / 1470], [0.01, 0.02, 0.03], [1e-9], [3.7]],
    ids=str,
)
@pytest.mark.parametrize("zero_point", [0, -128, 127])
def test_real_rescale_on_every_sum_of_two_bytes(target: str, scales: list[float], zero_point: int) -> None:
    """105 * (x + y) visits the ties of 1/30, 1/98 and 1/1470, for the last two of which no line of integers exists."""
    draft = Draft()
    draft.constant("sums", 105 * np.arange(-255, 255).reshape(170, 3), I32)
    draft.parameter("x", (170, 3), I32)
    draft.constant("s", scales, F64)
    draft.node("both", Add(), "sums", draft.node("none", Clamp(-3, 3), "x"))
    draft.node("y", TflRealRescale(zero_point, I8), "both", "s")
    inputs = [[np.full((170, 3), value, np.int32)] for value in (0, -1, 1)]
    assert_same_meaning(draft.module("y"), target, inputs)


@pytest.mark.parametrize("zero_point", [-128, 127])
def test_a_sum_next_to_the_ends_of_32_bits_saturates(zero_point: int) -> None:
    """The zero point is added to a scaled value that 32 bits barely hold."""
    draft = Draft()
    draft.parameter("x", (4,), I32)
    draft.rescale("y", "x", 0.9999999, zero_point)
    x = np.array([2**31 - 1, -(2**31), 2**31 - 100, 5], np.int32)
    module = assert_same_meaning(draft.module("y"), inputs=[[x]])
    assert drop_unused(module.kernels[0].body) == module.kernels[0].body


def test_an_output_that_is_constant_reads_nothing() -> None:
    draft = Draft()
    draft.parameter("x", (4,), I8)
    draft.node("y", Clamp(-128, -128), "x")
    module = assert_same_meaning(draft.module("y"))
    assert [p.buffer.name for p in module.kernels[0].buffer_parameters] == ["output"]
