"""Random models, compiled to C, equal the references: bit for bit for int8, within 1e-5 of the largest for float32.

Operators alone are drawn by hypothesis (`random_models`); large convolutions and networks come from seeds
(`random_networks`). A fifth of the operators runs with
sanitizers, another one each day. BYTEWRIGHT_TESTS=thorough takes four times as many.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest

from bytewright.ir.border import Io
from bytewright.ops.arithmetic.numerics import Numerics
from support.against_reference import assert_equals_reference, differences, drawn
from support.kernel_cells import WITH_VECTORS
from support.many_models import SANITIZERS, compiler_is_there
from support.random_models import CASES, TFLM_CASES, RandomModel, num_examples, operator_models
from support.random_networks import random_convolution, random_network
from support.tiers import TIMES, some, turn
from tflite_writer import ModelBuilder

TARGETS = ("host", "mps3-an547")
ALL_TARGETS = ("host", *WITH_VECTORS)
SANITIZED = ("-O0", *SANITIZERS)
FASTEST = ("-O3", "-march=native")


# All of int8, the form that is used, and of the others every second one.
TODAY = some(CASES, every=4, always=[case for case in CASES if case[1] == "int8"])


@pytest.mark.parametrize(("kind", "dtype"), TODAY)
def test_operator(kind: str, dtype: str, tmp_path: Path) -> None:
    number = CASES.index((kind, dtype))
    models = drawn(operator_models(kind, dtype), num_examples(kind, 4) * TIMES)
    target = ALL_TARGETS[(number + turn()) % len(ALL_TARGETS)]
    if TIMES > 1 or (number + turn()) % 4 == 0:
        assert_equals_reference(models, tmp_path, target=target, flags=SANITIZED, every=4)
    else:
        assert_equals_reference(models, tmp_path, target=target)


def test_no_negative_value_is_shifted_left(tmp_path: Path) -> None:
    """L2_NORMALIZATION of int8 once shifted elements below their zero point, which C leaves undefined."""
    models = drawn(operator_models("L2_NORMALIZATION", "int8"), 4)
    assert_equals_reference(models, tmp_path, flags=SANITIZED, every=4)


@pytest.mark.parametrize(
    ("kind", "dtype"), some([case for case in TFLM_CASES if case[1] != "float32"], every=2)
)
def test_operator_of_tflm(kind: str, dtype: str, tmp_path: Path) -> None:
    models = drawn(operator_models(kind, dtype), 2 * TIMES, first_seed=50)
    assert_equals_reference(models, tmp_path, numerics=Numerics.TFLM)


def _convolutions(count: int, dtype: str, first: int = 0) -> list[RandomModel]:
    numbers = some(range(first, first + count * TIMES), every=4)
    return [random_convolution(number, dtype) for number in numbers]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", ["int8", "float32"])
def test_convolutions_of_any_size(target: str, dtype: str, tmp_path: Path) -> None:
    count = 24 if dtype == "int8" else 8
    assert_equals_reference(_convolutions(count, dtype), tmp_path, target=target)


@pytest.mark.parametrize("target", TARGETS)
def test_convolutions_with_sanitizers(target: str, tmp_path: Path) -> None:
    assert_equals_reference(
        _convolutions(10, "int8", 5000), tmp_path, target=target, flags=SANITIZED, every=3
    )


@pytest.mark.parametrize("target", TARGETS)
def test_convolutions_at_full_speed(target: str, tmp_path: Path) -> None:
    assert_equals_reference(_convolutions(8, "int8", 9000), tmp_path, target=target, flags=FASTEST, every=4)


def _networks(count: int, dtype: str, first: int = 0, *, is_tflm: bool = False) -> list[RandomModel]:
    numbers = some(range(first, first + count * TIMES), every=4)
    return [random_network(number, dtype, is_tflm=is_tflm) for number in numbers]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", ["int8", "uint8", "float32"])
def test_networks(target: str, dtype: str, tmp_path: Path) -> None:
    assert_equals_reference(_networks(16 if dtype == "int8" else 8, dtype), tmp_path, target=target)


@pytest.mark.parametrize("target", TARGETS)
def test_networks_with_sanitizers(target: str, tmp_path: Path) -> None:
    assert_equals_reference(_networks(8, "int8", 5000), tmp_path, target=target, flags=SANITIZED, every=3)


def test_networks_with_inputs_and_outputs_in_the_workspace(tmp_path: Path) -> None:
    assert_equals_reference(
        _networks(12, "int8", 3000), tmp_path / "int8", io=Io.WORKSPACE, flags=SANITIZED, every=4
    )
    assert_equals_reference(_networks(6, "float32", 3000), tmp_path / "float", io=Io.WORKSPACE)


def test_networks_with_clang(tmp_path: Path) -> None:
    if not compiler_is_there("clang"):
        pytest.skip("there is no clang")
    assert_equals_reference(_networks(8, "int8", 7000), tmp_path, compiler="clang", flags=("-O2",), every=4)


def test_networks_of_tflm(tmp_path: Path) -> None:
    models = _networks(8, "int8", 11000, is_tflm=True)
    assert_equals_reference(models, tmp_path, numerics=Numerics.TFLM)


def _one_operator(
    kind: str,
    dtype: str,
    shapes: Sequence[Sequence[int]],
    result: Sequence[int],
    *constants: object,
    **options: bool,
) -> RandomModel:
    """An operator on tensors of one quantisation, with constant int32 operands."""
    builder = ModelBuilder()
    affine = {"scale": 0.5, "zero_point": 3} if dtype == "int8" else {}
    sources = [builder.tensor(f"x{i}", shape, dtype, **affine) for i, shape in enumerate(shapes)]
    output = builder.tensor("y", result, dtype, **affine)
    numbers = [builder.constant(f"k{i}", np.array(c, np.int32)) for i, c in enumerate(constants)]
    builder.operator(kind, [*sources, *numbers], [output], **options)
    content = builder.build(sources, [output])
    return RandomModel(content, f"{kind} {dtype} {shapes}", tuple(tuple(shape) for shape in shapes), dtype)


@pytest.mark.parametrize("dtype", ["int8", "float32"])
def test_all_permutations_of_four_axes(dtype: str, tmp_path: Path) -> None:
    shape = (2, 3, 4, 5)
    models = [
        _one_operator("TRANSPOSE", dtype, [shape], [shape[axis] for axis in order], order)
        for order in permutations(range(4))
    ]
    assert_equals_reference(models, tmp_path)


@pytest.mark.parametrize("dtype", ["int8", "float32"])
def test_tensors_of_no_axis_and_of_five(dtype: str, tmp_path: Path) -> None:
    five = (2, 3, 2, 4, 3)
    widths = [[1, 0], [0, 0], [1, 1], [0, 1], [2, 0]]
    models = [
        _one_operator("TRANSPOSE", dtype, [five], (4, 2, 3, 2, 3), (3, 0, 4, 2, 1)),
        _one_operator("SLICE", dtype, [five], (1, 2, 2, 2, 2), (1, 1, 0, 1, 0), (1, 2, 2, 2, 2)),
        _one_operator("STRIDED_SLICE", dtype, [five], (2, 2, 1, 2, 2), [0] * 5, five, (1, 2, 2, 2, 2)),
        _one_operator("PAD", dtype, [five], (3, 3, 4, 5, 5), widths),
        _one_operator("MEAN", dtype, [five], (2, 2, 3), (1, 3), keep_dims=False),
        _one_operator("MEAN", dtype, [five[:4]], (), (0, 1, 2, 3), keep_dims=False),
        _one_operator("MEAN", dtype, [(5,)], (1,), (0,), keep_dims=True),
        _one_operator("ADD", dtype, [five, (3,)], five),
        _one_operator("MUL", dtype, [(1, 3, 1, 4, 3), (2, 1, 2, 1, 1)], five),
        _one_operator("SUB", dtype, [five, ()], five),
        _one_operator("SUB", dtype, [(), ()], ()),
        _one_operator("RELU", dtype, [()], ()),
    ]
    assert_equals_reference(models, tmp_path, flags=SANITIZED)


# Cases that were wrong once


def _all_zero_points(results: Sequence[str]) -> RandomModel:
    """A convolution whose scale is so small that every output is the zero point."""
    builder = ModelBuilder()
    x = builder.tensor("x", [1, 4, 4, 2], "int8", scale=0.5, zero_point=3)
    weights = np.arange(-36, 36, dtype=np.int8).reshape(4, 3, 3, 2)
    w = builder.constant("w", weights, scale=2.0**-60)
    b = builder.constant("b", np.arange(4, dtype=np.int32), scale=2.0**-61)
    y = builder.tensor("y", [1, 4, 4, 4], "int8", scale=0.5, zero_point=-7)
    builder.operator("CONV_2D", [x, w, b], [y], activation="RELU")
    content = builder.build([x], [{"x": x, "y": y}[name] for name in results])
    return RandomModel(content, f"zero points -> {results}", ((1, 4, 4, 2),), "int8")


@pytest.mark.parametrize("target", TARGETS)
def test_an_output_that_is_always_the_zero_point(target: str, tmp_path: Path) -> None:
    """Sums without effect are gone, as compilers warn of them."""
    assert_equals_reference([_all_zero_points(["y"])], tmp_path, target=target, flags=SANITIZED)


def test_outputs_that_are_inputs_or_stated_twice(tmp_path: Path) -> None:
    models = [_all_zero_points(names) for names in (["y", "y"], ["x", "y"], ["y", "x", "x", "y"])]
    assert_equals_reference(models, tmp_path, flags=SANITIZED)


def test_both_halves_of_a_split_are_kernels_of_their_own(tmp_path: Path) -> None:
    builder = ModelBuilder()
    x = builder.tensor("x", [1, 3, 4], "int8", scale=0.5, zero_point=3)
    axis = builder.tensor("axis", [], "int32", data=np.array(2, dtype=np.int32))
    halves = [builder.tensor(f"half_{i}", [1, 3, 2], "int8", scale=0.5, zero_point=3) for i in range(2)]
    y = builder.tensor("y", [1, 3, 2], "int8", scale=0.5, zero_point=3)
    builder.operator("SPLIT", [axis, x], halves, num_splits=2)
    builder.operator("CONCATENATION", [halves[1]], [y], axis=0)
    content = builder.build([x], [y, *halves])
    assert_equals_reference([RandomModel(content, "split", ((1, 3, 4),), "int8")], tmp_path)


def test_bounds_of_scaled_values_that_are_never_zero(tmp_path: Path) -> None:
    """Sums of one sign, whose least output was once taken to be greater than it is, and so never to occur."""
    assert_equals_reference(_networks(1, "int8", 28005), tmp_path / "litert")
    model = random_network(18504, "int8", is_tflm=True)
    assert_equals_reference([model], tmp_path / "tflm", numerics=Numerics.TFLM)


def test_a_pad_that_is_vectorised_with_masks(tmp_path: Path) -> None:
    """GCC 12 got it wrong for AVX-512 when each element asked whether it lies in the padding."""
    builder = ModelBuilder()
    x = builder.tensor("x", [7, 6], "float32")
    p = builder.tensor("p", [9, 6], "float32")
    y = builder.tensor("y", [9, 6], "float32")
    builder.operator("PAD", [x, builder.constant("widths", np.array([[2, 0], [0, 0]], np.int32))], [p])
    builder.operator("HARD_SWISH", [p], [y])
    model = RandomModel(builder.build([x], [y]), "PAD, HARD_SWISH", ((7, 6),), "float32")
    assert_equals_reference([model], tmp_path, flags=FASTEST)


def _fully_connected(scale: float, zero_point: int, num_scales: int) -> RandomModel:
    """Accumulators that are multiples of 105, so that many of their products with 1/scale are ties."""
    builder = ModelBuilder()
    x = builder.tensor("x", [1, 8], "int8", scale=1.0, zero_point=0)
    scales = [1.0, 0.75, 1.5, 2.0, 1.0, 0.5, 0.3, 1.0][:num_scales]
    w = builder.constant("w", np.diag(np.full(8, 105)).astype(np.int8), scale=scales)
    b = builder.constant("b", np.zeros(8, np.int32), scale=scales)
    y = builder.tensor("y", [1, 8], "int8", scale=scale, zero_point=zero_point)
    builder.operator("FULLY_CONNECTED", [x, w, b], [y])
    description = f"FULLY_CONNECTED over {scale}, {num_scales} scales, zero point {zero_point}"
    return RandomModel(builder.build([x], [y]), description, ((1, 8),), "int8")


@pytest.mark.parametrize("scale", [30.0, 98.0, 1470.0])
def test_ties_that_double_precision_rounds_this_way_and_that(scale: float, tmp_path: Path) -> None:
    """There is no line of integers through the steps for 98 and 1470."""
    models = [
        _fully_connected(scale, zero_point, num_scales)
        for zero_point in (0, -128, 100)
        for num_scales in (1, 8)
    ]
    assert_equals_reference(models, tmp_path, flags=SANITIZED, num_inputs=40)


@pytest.mark.parametrize("dtype", ["int8", "float32"])
def test_groups_of_one_channel_as_many_as_taps(dtype: str, tmp_path: Path) -> None:
    """Weights in the layout of a depthwise convolution then have the shape that those of the file have."""
    generator, builder = np.random.default_rng(2), ModelBuilder()
    values = generator.integers(-100, 100, (3, 3, 3, 1)).astype(dtype)
    scaled = [{}, {}, {}] if dtype != "int8" else [{"scale": each} for each in (0.5, [0.02, 0.03, 0.01], 4.0)]
    x, y = (builder.tensor(name, (1, 6, 5, 3), dtype, **scaled[at]) for name, at in (("x", 0), ("y", 2)))
    bias = builder.constant("b", np.arange(3, dtype=np.int32 if dtype == "int8" else np.float32))
    builder.operator("CONV_2D", [x, builder.constant("w", values, **scaled[1]), bias], [y], padding="SAME")
    model = RandomModel(builder.build([x], [y]), f"three groups {dtype}", ((1, 6, 5, 3),), dtype)
    assert_equals_reference([model], tmp_path)


# The comparison itself


def test_a_difference_is_told() -> None:
    one = np.zeros(3, np.int8)
    assert differences([one], [one]) == []
    assert differences([one], [np.array([0, 1, 0], np.int8)]) == ["output 0: 1 of 3 differ: [0], not [1]"]
    assert differences([one], [np.zeros((3, 1), np.int8)]) == ["output 0: int8(3,), not int8(3, 1)"]
    wanted = np.array([1.0, 100.0], np.float32)
    assert differences([wanted + np.float32(5e-4)], [wanted]) == []
    assert "is allowed" in differences([wanted + np.float32(2e-3)], [wanted])[0]
    assert "off by nan" in differences([wanted * np.float32(np.nan)], [wanted])[0]
