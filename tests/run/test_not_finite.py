"""Constants and inputs that are infinite or not a number: what LiteRT computes, is computed.

What is compared is every value, the sign of zeros included; one NaN is as good as another.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

import bytewright
from bytewright.bundle.write import write_bundle
from bytewright.compiler.pipeline import compile_model
from bytewright.diagnostics import CompileError
from bytewright.execute.build import BuildOptions
from bytewright.execute.run import run_bundle
from bytewright.ops.places import TopKPlaces
from bytewright.target.registry import load_target
from support.c_program import LANGUAGE, WARNINGS, run_command
from support.forms.sketch import of_pairs
from support.reference import LiteRt
from support.tiers import THOROUGH
from tflite_writer import ModelBuilder

Array = NDArray[np.float32]
SPECIAL = np.array([[1.5, -2.0, 0.0, -0.0, np.inf, -np.inf, np.nan, 1e-42]], np.float32)
SANITIZED = BuildOptions(flags=("-O0",), sanitize=True)


def assert_as_litert(content: bytes, folder: Path, *inputs: Array) -> None:
    model = folder / "model.tflite"
    model.write_bytes(content)
    write_bundle(compile_model(model, load_target("host")).files, folder / "bundle")
    flags = (*LANGUAGE, *WARNINGS, "-pedantic", "-fsyntax-only", "-Iinclude")
    for compiler in ("gcc", "clang"):
        run_command([compiler, *flags, "src/model_kernels.c", "src/model.c"], folder / "bundle")
    actual = run_bundle(folder / "bundle", list(inputs), options=SANITIZED).outputs
    for ours, theirs in zip(actual, LiteRt(content).run(*inputs), strict=True):
        np.testing.assert_array_equal(ours, theirs)
        if ours.dtype.kind == "f":
            known = ~np.isnan(theirs)
            np.testing.assert_array_equal(np.signbit(ours[known]), np.signbit(theirs[known]))


def pad_then(operator: str | None, value: float) -> bytes:
    """PADV2 of a 3x3 image, and a window over it."""
    builder = ModelBuilder()
    x = builder.tensor("x", [1, 3, 3, 2], "float32")
    p = builder.tensor("p", [1, 5, 5, 2], "float32")
    widths = builder.constant("widths", np.array([[0, 0], [1, 1], [1, 1], [0, 0]], np.int32))
    fill = builder.constant("fill", np.array([value], np.float32))
    builder.operator("PADV2", [x, widths, fill], [p])
    if operator is None:
        return builder.build([x], [p])
    y = builder.tensor("y", [1, 3, 3, 2], "float32")
    inputs, options = [p], {"filter_width": 3, "filter_height": 3}
    if operator in ("CONV_2D", "DEPTHWISE_CONV_2D"):
        shape = (2, 3, 3, 2) if operator == "CONV_2D" else (1, 3, 3, 2)
        weights = np.linspace(-1, 1, int(np.prod(shape)), dtype=np.float32).reshape(shape)
        inputs += [builder.constant("w", weights), builder.constant("b", np.zeros(2, np.float32))]
        options = {}
    builder.operator(operator, inputs, [y], padding="VALID", **options)
    return builder.build([x], [y])


WINDOWS = (None, "MAX_POOL_2D", "AVERAGE_POOL_2D", "CONV_2D", "DEPTHWISE_CONV_2D")
IMAGE = np.array([1.5, -2.0, 3.0, 0.25, -7.5, 8.0, 0.5, -0.75, 2.0] * 2, np.float32).reshape(1, 3, 3, 2)


@pytest.mark.parametrize("value", [-np.inf, np.inf, -0.0, np.nan])
@pytest.mark.parametrize("operator", [None, "MAX_POOL_2D", "AVERAGE_POOL_2D", "CONV_2D", "DEPTHWISE_CONV_2D"])
def test_padding_with(operator: str | None, value: float, tmp_path: Path) -> None:
    assert_as_litert(pad_then(operator, value), tmp_path, IMAGE)


def with_constant(operator: str, values: Array, activation: str = "NONE") -> bytes:
    """An operator of an input and a constant, a scalar or one number a column."""
    builder = ModelBuilder()
    x, y = (builder.tensor(name, [1, 8], "float32") for name in "xy")
    options = {} if operator in ("MAXIMUM", "MINIMUM") else {"activation": activation}
    builder.operator(operator, [x, builder.constant("c", values)], [y], **options)
    return builder.build([x], [y])


SCALARS = [np.array([v], np.float32) for v in (np.inf, -np.inf, np.nan, -0.0)] + [SPECIAL.reshape(8)[::-1]]


@pytest.mark.parametrize("operator", ["ADD", "SUB", "MUL", "DIV", "MAXIMUM", "MINIMUM"])
@pytest.mark.parametrize("values", SCALARS if THOROUGH else SCALARS[-2:], ids=str)
def test_constants_of(operator: str, values: Array, tmp_path: Path) -> None:
    inputs = SPECIAL if not np.isfinite(values).all() else np.where(np.isfinite(SPECIAL), SPECIAL, 3)
    assert_as_litert(with_constant(operator, np.ascontiguousarray(values)), tmp_path, inputs)


@pytest.mark.parametrize("activation", ["RELU", "RELU6", "RELU_N1_TO_1"])
def test_fused_activations_of_infinities(activation: str, tmp_path: Path) -> None:
    content = with_constant("ADD", SPECIAL.reshape(8)[::-1].copy(), activation)
    assert_as_litert(content, tmp_path, SPECIAL)


def test_extrema_of_pairs(tmp_path: Path) -> None:
    """Of ties and of what is not a number one operator takes its first operand, the other its second."""
    builder = ModelBuilder()
    kinds = ("MAXIMUM", "MINIMUM", "STABLEHLO_MAXIMUM", "STABLEHLO_MINIMUM")
    x, y, *results = (builder.tensor(name, [8, 8], "float32") for name in ("x", "y", *kinds))
    for kind, result in zip(kinds, results, strict=True):
        builder.operator(kind, [x, y], [result])
    first, second = (np.ascontiguousarray(each) for each in np.broadcast_arrays(SPECIAL.T, SPECIAL))
    assert_as_litert(builder.build([x, y], results), tmp_path, first, second)


@pytest.mark.parametrize("exponent", [1.0, 2.000008, 0.999995, 3.0, 2.00002])
def test_powers_by_one_nearly_whole_constant(exponent: float, tmp_path: Path) -> None:
    """LiteRT multiplies by the whole one, of negative numbers as well, and limits products as it does others."""
    builder = ModelBuilder()
    x, y, z = (builder.tensor(name, [1, 8], "float32") for name in "xyz")
    builder.operator("POW", [x, builder.constant("exponent", np.array([exponent], np.float32))], [y])
    builder.operator("ADD", [y, builder.constant("infinite", np.array([np.inf], np.float32))], [z])
    content = builder.build([x], [y, z])
    given = np.array([[1.5, -2.0, 0.0, 0.5, np.inf, -np.inf, np.nan, 3e38]], np.float32)
    model = tmp_path / "model.tflite"
    model.write_bytes(content)
    own, _ = bytewright.compile(model).run(given)
    wanted, _ = LiteRt(content).run(given)
    np.testing.assert_allclose(own, wanted, rtol=1e-6)


def test_greatest_ones_are_places_of_the_row_whatever_is_no_number(tmp_path: Path) -> None:
    """Numbers come first, and of each place comes one: a GATHER follows what is found."""
    nan, infinity = np.nan, np.inf
    rows = [[nan, 1, 2, 3], [1, nan, 2, 3], [2, nan, nan, 3], [nan] * 4, [nan, -infinity, infinity, nan]]
    builder = ModelBuilder()
    x, values = builder.tensor("x", [5, 4], "float32"), builder.tensor("values", [5, 3], "float32")
    places = builder.tensor("places", [5, 3], "int32")
    builder.operator("TOPK_V2", [x, builder.constant("k", np.array(3, np.int32))], [values, places])
    assert_as_litert(builder.build([x], [values, places]), tmp_path, np.array(rows, np.float32))
    whole = np.random.default_rng(1).choice(np.array([nan, -infinity, 0, 1], np.float32), (40, 7))
    (found,) = TopKPlaces(7).evaluate((whole,))
    by_hand = [
        sorted(range(7), key=lambda n: (np.isnan(row[n]), -np.nan_to_num(row[n], nan=0, neginf=-9), n))
        for row in whole
    ]
    np.testing.assert_array_equal(found, by_hand)


@pytest.mark.parametrize(("kind", "sign"), [("STABLEHLO_MAXIMUM", -1), ("STABLEHLO_MINIMUM", 1)])
def test_a_scatter_leaves_infinities_that_no_update_is_beyond(tmp_path: Path, kind: str, sign: int) -> None:
    """Where there is no update, an infinite one, and a finite one."""
    builder = ModelBuilder()
    x, y = (builder.tensor(name, [4], "float32") for name in "xy")
    places = builder.constant("places", np.array([[1], [3]], np.int32))
    updates = builder.tensor("updates", [2], "float32")
    options = {"update_window_dims": (), "inserted_window_dims": (0,), "index_vector_dim": 1}
    builder.operator(
        "STABLEHLO_SCATTER",
        [x, places, updates],
        [y],
        **options,
        scatter_dims_to_operand_dims=(0,),
        update_computation_subgraph_index=1,
    )
    infinite = np.float32(sign * np.inf)
    given = np.array([infinite, infinite, 3, infinite], np.float32), np.array([infinite, 2], np.float32)
    assert_as_litert(builder.build([x, updates], [y], of_pairs(kind, "float32")), tmp_path, *given)


def leaky_relu(alpha: float) -> bytes:
    builder = ModelBuilder()
    x, y = (builder.tensor(name, [1, 8], "float32") for name in "xy")
    builder.operator("LEAKY_RELU", [x], [y], alpha=alpha)
    return builder.build([x], [y])


@pytest.mark.parametrize("alpha", [-0.0, 0.0, -2.5])
def test_leaky_relu_with(alpha: float, tmp_path: Path) -> None:
    assert_as_litert(leaky_relu(alpha), tmp_path, SPECIAL)


@pytest.mark.parametrize("alpha", [np.inf, -np.inf, np.nan])
def test_leaky_relu_has_a_slope(alpha: float, tmp_path: Path) -> None:
    (tmp_path / "model.tflite").write_bytes(leaky_relu(alpha))
    with pytest.raises(CompileError, match=r"the slope -?(inf|nan) is not a number"):
        compile_model(tmp_path / "model.tflite", load_target("host"))


@pytest.mark.parametrize("operator", ["RELU", "RELU6", "RELU_N1_TO_1", "TANH", "LOGISTIC", "HARD_SWISH"])
def test_inputs_of(operator: str, tmp_path: Path) -> None:
    builder = ModelBuilder()
    x, y = (builder.tensor(name, [1, 8], "float32") for name in "xy")
    builder.operator(operator, [x], [y])
    assert_as_litert(builder.build([x], [y]), tmp_path, SPECIAL)


def test_inputs_of_many(tmp_path: Path) -> None:
    """In one model, which compiles once."""
    builder = ModelBuilder()
    kinds = (
        "RELU_0_TO_1",
        "ABS",
        "CEIL",
        "ELU",
        "EXP",
        "FLOOR",
        "LOG",
        "NEG",
        "SQRT",
        "RSQRT",
        "L2_NORMALIZATION",
    )
    x, *results = (builder.tensor(name, [1, 8], "float32") for name in ("x", *kinds))
    for kind, result in zip(kinds, results, strict=True):
        builder.operator(kind, [x], [result])
    assert_as_litert(builder.build([x], results), tmp_path, SPECIAL)


def test_weights_and_biases(tmp_path: Path) -> None:
    builder = ModelBuilder()
    x, y = builder.tensor("x", [1, 8], "float32"), builder.tensor("y", [1, 4], "float32")
    weights = np.ones((4, 8), np.float32)
    weights[0, 3], weights[1, 2], weights[2, 7] = np.inf, -np.inf, np.nan
    bias = np.array([-np.inf, 1.0, 2.0, np.inf], np.float32)
    operands = [x, builder.constant("w", weights), builder.constant("b", bias)]
    builder.operator("FULLY_CONNECTED", operands, [y])
    assert_as_litert(builder.build([x], [y]), tmp_path, np.arange(1, 9, dtype=np.float32).reshape(1, 8))


def test_infinities_that_functions_make(tmp_path: Path) -> None:
    """Of finite inputs: softplus as it is exported, a product behind moves, sums of many, and a layer of logarithms."""
    builder = ModelBuilder()
    x = builder.tensor("x", [1, 8], "float32")
    sums = [builder.tensor(name, [1, 8], "float32") for name in ("many", "root", "power", "floor")]
    p, q, d = (builder.tensor(name, [1, 8], "float32") for name in "pqd")
    e, f, g, h, m, n = (builder.tensor(name, [1, 8], "float32") for name in "efghmn")
    r, t, y = (
        builder.tensor("r", [8], "float32"),
        builder.tensor("t", [8], "float32"),
        builder.tensor("y", [1, 2], "float32"),
    )
    one = builder.constant("one", np.ones(1, np.float32))
    builder.operator("EXP", [x], [e])
    builder.operator("ADD", [e, one], [f])
    builder.operator("LOG", [f], [g])
    builder.operator("RESHAPE", [e, builder.constant("shape", np.array([8], np.int32))], [r])
    builder.operator("MUL", [r, builder.constant("c", np.full(8, -0.25, np.float32))], [t])
    builder.operator("RELU", [x], [m])
    builder.operator("LOG", [m], [n])
    builder.operator("SUB", [n, one], [h])
    builder.operator("RSQRT", [x], [p])
    builder.operator("POW", [x, builder.constant("third", np.full(1, -3, np.float32))], [q])
    builder.operator("FLOOR_DIV", [x, builder.constant("half", np.full(1, 0.5, np.float32))], [d])
    for kind, value, result in zip(("ADD_N", "ADD", "ADD", "ADD"), (e, p, q, d), sums, strict=True):
        builder.operator(kind, [value, x if kind == "ADD_N" else one], [result])
    weights = builder.constant("w", np.linspace(0.5, 1, 16, dtype=np.float32).reshape(2, 8))
    builder.operator("FULLY_CONNECTED", [n, weights, builder.constant("b", np.ones(2, np.float32))], [y])
    values = np.array([[1.5, -2.0, 0.0, -0.0, 88.0, 300.0, -300.0, 3e38]], np.float32)
    assert_as_litert(builder.build([x], [f, t, h, *sums, y]), tmp_path, values)
    softplus = builder.build([x], [g])
    model = tmp_path / "softplus.tflite"
    model.write_bytes(softplus)
    write_bundle(compile_model(model, load_target("host")).files, tmp_path / "softplus")
    (ours,) = run_bundle(tmp_path / "softplus", [values], options=SANITIZED).outputs
    np.testing.assert_allclose(ours, LiteRt(softplus).run(values)[0], rtol=1e-6)
