"""Layers of float32 activations and integer weights, bit for bit as LiteRT's hybrid kernels compute them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from arithmetic_models import Array, meaning

from bytewright.diagnostics import CompileError
from bytewright.frontends.tflite.importer import import_content
from bytewright.ops.arithmetic.numerics import Numerics
from support.hybrid_layers import EXACT, Layer, convolution, inputs, layer
from support.reference import run_litert, run_tflm
from tflite_writer import OPTIONAL, ModelBuilder

LITERT = Numerics.LITERT_REF
# One below a half, which LiteRT for x86 rounds up, and LiteRT for Arm does not (docs/numerics.md).
BELOW_HALF = np.nextafter(np.float32(0.5), np.float32(0))


@pytest.mark.parametrize("name", EXACT)
def test_results_are_litert_s(name: str) -> None:
    for seed, x in enumerate(inputs(EXACT[name].source, 7)):
        model = EXACT[name].model(seed)
        np.testing.assert_array_equal(meaning(LITERT, model, x), run_litert(model, [x])[0])


@pytest.mark.parametrize("channels", [None, 0])
@pytest.mark.parametrize(("padding", "size"), [("SAME", 10), ("VALID", 11)])
def test_transposed_convolutions(channels: int | None, padding: str, size: int) -> None:
    """LiteRT rounds every product to float32; the sum of all is rounded once here."""
    options = {"padding": padding, "stride_h": 2, "stride_w": 2, "activation": "RELU"}
    case = Layer("TRANSPOSE_CONV", (2, 5, 5, 3), (4, 3, 3, 3), (2, size, size, 4), channels, options=options)
    for seed, x in enumerate(inputs(case.source, 3)):
        model = case.model(seed)
        found, wanted = meaning(LITERT, model, x), run_litert(model, [x])[0]
        assert np.abs(found - wanted).max() <= 1e-6 * np.abs(wanted).max()


@pytest.mark.parametrize("is_asymmetric", [False, True])
def test_every_value_is_quantised_as_litert_does_it(is_asymmetric: bool) -> None:
    """A matrix with one 1 in each row shows what became of each value: on ties and beside them, too."""
    depth = 256
    builder = ModelBuilder()
    x, y = builder.tensor("x", (4, depth), "float32"), builder.tensor("y", (4, depth), "float32")
    w = builder.constant("w", np.eye(depth, dtype=np.int8), scale=1.0)
    builder.operator("FULLY_CONNECTED", [x, w, OPTIONAL], [y], asymmetric_quantize_inputs=is_asymmetric)
    model = builder.build([x], [y])
    for seed in range(12):
        values = beside_ties(seed, depth, is_asymmetric)
        found, wanted = meaning(LITERT, model, values), run_litert(model, [values])[0]
        assert len(np.unique(wanted[0])) > 60
        differs = found != wanted
        # What LiteRT does differently on other machines.
        step = np.abs(wanted[differs])
        np.testing.assert_array_equal(found[differs], 0)
        assert np.all(np.abs(np.abs(values[differs]) / step - BELOW_HALF) <= 1e-6)
        assert differs.sum() <= 8


def beside_ties(seed: int, depth: int, is_asymmetric: bool) -> Array:
    """Rows of which most values lie next to the middle of two steps."""
    generator = np.random.default_rng(seed)
    ends = generator.uniform(0.1, 1, (4, 2)).astype(np.float32) * np.float32(10.0) ** generator.integers(
        -3, 4
    )
    low, high = -ends[:, :1], ends[:, 1:]
    scale = (high - low) / 255 if is_asymmetric else np.maximum(-low, high) / 127
    middles = (generator.integers(-120, 120, (4, depth)) + 0.5) * scale
    moved = np.nextafter(middles.astype(np.float32), generator.choice(np.float32([-9e9, 9e9]), (4, depth)))
    values = np.clip(np.where(generator.random((4, depth)) < 0.5, moved, middles), low, high)
    return np.concatenate((low, high, values[:, 2:]), axis=1).astype(np.float32)


@pytest.mark.parametrize(("dtype", "rows"), [("int8", False), ("int8", True), ("int4", True)])
def test_rows_of_an_integer_table(dtype: str, rows: bool) -> None:
    generator = np.random.default_rng(1)
    most = 7 if dtype == "int4" else 127
    scales = generator.uniform(0.01, 1, 9 if rows else 1).astype(np.float32)
    values = generator.integers(-most, most + 1, (9, 6))
    builder = ModelBuilder()
    table = builder.tensor("table", (9, 6), dtype, data=values, scale=scales)
    x, y = builder.tensor("x", (5,), "int32"), builder.tensor("y", (5, 6), "float32")
    builder.operator("EMBEDDING_LOOKUP", [x, table], [y])
    model, numbers = builder.build([x], [y]), np.array([8, 0, 3, 3, 7], np.int32)
    wanted = run_litert(model, [numbers])[0]
    np.testing.assert_array_equal(meaning(LITERT, model, numbers), wanted)
    if dtype == "int8" and not rows:
        np.testing.assert_array_equal(run_tflm(model, [numbers])[0], wanted)
        np.testing.assert_array_equal(meaning(Numerics.TFLM, model, numbers), wanted)
    else:
        with pytest.raises(CompileError, match="TensorFlow Lite Micro"):
            import_content(model, "m.tflite", numerics=Numerics.TFLM)


@pytest.mark.parametrize("numerics", list(Numerics))
@pytest.mark.parametrize("kind", ["CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED"])
def test_int4_weights_under_int8(numerics: Numerics, kind: str) -> None:
    """The same results as of the weights in int8, by both libraries."""
    generator = np.random.default_rng(2)
    shapes: dict[str, Sequence[tuple[int, ...]]] = {
        "CONV_2D": ((1, 4, 4, 3), (5, 3, 3, 3), (1, 4, 4, 5)),
        "DEPTHWISE_CONV_2D": ((1, 4, 4, 5), (1, 3, 3, 5), (1, 4, 4, 5)),
        "FULLY_CONNECTED": ((2, 7), (5, 7), (2, 5)),
    }
    source, weights, result = shapes[kind]
    builder = ModelBuilder()
    x = builder.tensor("x", source, "int8", scale=0.05, zero_point=3)
    axis = 3 if kind == "DEPTHWISE_CONV_2D" else 0
    values = generator.integers(-8, 8, weights)
    scale = [0.1] * 5 if kind != "FULLY_CONNECTED" else 0.1
    w = builder.tensor("w", weights, "int4", data=values, scale=scale, quantized_dimension=axis)
    b = builder.constant("b", generator.integers(-99, 99, 5).astype(np.int32), scale=0.005)
    y = builder.tensor("y", result, "int8", scale=0.2, zero_point=-4)
    builder.operator(kind, [x, w, b], [y], version={"CONV_2D": 7, "FULLY_CONNECTED": 10}.get(kind, 6))
    model = builder.build([x], [y])
    data = generator.integers(-128, 128, source).astype(np.int8)
    runner = run_litert if numerics is LITERT else run_tflm
    np.testing.assert_array_equal(meaning(numerics, model, data), runner(model, [data])[0])


@pytest.mark.parametrize("numerics", list(Numerics))
@pytest.mark.parametrize(
    "name", ["layer", "convolution", "depthwise", "product of matrices", "layer of int4"]
)
def test_expanded_weights_are_those_of_a_dequantize(name: str, numerics: Numerics) -> None:
    """The witness is the float32 layer of weights that a DEQUANTIZE widens."""
    case = EXACT[name]
    model = case.model()
    module = import_content(model, "m.tflite", numerics=numerics, expands_weights=True)
    assert {constant.data.type.dtype.value for constant in module.constants} <= {"f32", "i32"}
    (x, *_) = inputs(case.source, 5)
    found = meaning(numerics, model, x, expands_weights=True)
    wanted = run_litert(case.model(is_dequantised=True), [x])[0]
    assert np.abs(found - wanted).max() <= 1e-6 * np.abs(wanted).max()
    hybrid = run_litert(model, [x])[0]
    assert np.abs(found - hybrid).max() > 1e-5 * np.abs(hybrid).max()


@pytest.mark.parametrize("widths", [((0, 0), (1, 1), (2, 0), (0, 0)), ((1, 0), (0, 1), (0, 0), (0, 2))])
@pytest.mark.parametrize("channels", [None, 0])
def test_pads_before_a_convolution(widths: tuple[tuple[int, int], ...], channels: int | None) -> None:
    """Of the image, and of samples: these have a range of their own, of zeros alone."""
    padded = tuple(extent + sum(pads) for extent, pads in zip((2, 4, 5, 3), widths, strict=True))
    case = convolution(padded, (4, 3, 3, padded[3]), "VALID", channels=channels)
    generator = np.random.default_rng(4)
    builder = ModelBuilder()
    x, between = builder.tensor("x", (2, 4, 5, 3), "float32"), builder.tensor("between", padded, "float32")
    builder.operator("PAD", [x, builder.constant("widths", np.array(widths, np.int32))], [between])
    scales = generator.uniform(0.01, 0.1, 1 if channels is None else 4).astype(np.float32)
    w = builder.constant("w", generator.integers(-127, 128, case.weights).astype(np.int8), scale=scales)
    b = builder.constant("b", generator.normal(size=4).astype(np.float32))
    y = builder.tensor("y", case.result, "float32")
    builder.operator("CONV_2D", [between, w, b], [y], padding="VALID")
    model = builder.build([x], [y])
    for sample in inputs((2, 4, 5, 3), 8):
        np.testing.assert_array_equal(meaning(LITERT, model, sample), run_litert(model, [sample])[0])


@pytest.mark.parametrize(
    ("name", "numerics"),
    [
        ("layer of one scale", LITERT),
        ("layer of one scale", Numerics.TFLM),  # which takes the first scale for all channels, and no int4
        ("layer of int4", LITERT),
        ("convolution", LITERT),
        ("convolution of a channel a group", LITERT),
        ("depthwise", LITERT),
    ],
)
def test_dequantised_weights_may_stay_integers(name: str, numerics: Numerics) -> None:
    """Sums of floats are scaled then, and no weight is: as near to LiteRT's as any order of adding."""
    model = EXACT[name].model(is_dequantised=True)
    module = import_content(model, "m.tflite", numerics=numerics, keeps_weights=True)
    weights = [c.data for c in module.constants if c.data.type.num_elements == np.prod(EXACT[name].weights)]
    assert [data.type.dtype.value for data in weights] == ["i8"]
    for x in inputs(EXACT[name].source, 6):
        found = meaning(numerics, model, x, keeps_weights=True)
        wanted = run_litert(model, [x])[0]
        assert np.abs(found - wanted).max() <= 1e-6 * np.abs(wanted).max()


def test_weights_with_scales_of_another_axis_are_widened() -> None:
    case = layer(channels=1)
    model = case.model(is_dequantised=True)
    module = import_content(model, "m.tflite", keeps_weights=True)
    assert {constant.data.type.dtype.value for constant in module.constants} == {"f32"}
    (x, *_) = inputs(case.source, 6)
    wanted = run_litert(model, [x])[0]
    found = meaning(LITERT, model, x, keeps_weights=True)
    assert np.abs(found - wanted).max() <= 1e-6 * np.abs(wanted).max()


def test_rows_of_a_dequantised_table_may_stay_integers() -> None:
    generator = np.random.default_rng(1)
    values, scales = generator.integers(-7, 8, (9, 6)), generator.uniform(0.01, 1, 9)
    builder = ModelBuilder()
    stored = builder.tensor("stored", (9, 6), "int4", data=values, scale=scales)
    table = builder.tensor("table", (9, 6), "float32")
    builder.operator("DEQUANTIZE", [stored], [table], version=6)
    x, y = builder.tensor("x", (5,), "int32"), builder.tensor("y", (5, 6), "float32")
    builder.operator("EMBEDDING_LOOKUP", [x, table], [y])
    model, numbers = builder.build([x], [y]), np.array([8, 0, 3, 3, 7], np.int32)
    module = import_content(model, "m.tflite", keeps_weights=True)
    assert "i8" in {constant.data.type.dtype.value for constant in module.constants}
    found = meaning(LITERT, model, numbers, keeps_weights=True)
    np.testing.assert_array_equal(found, run_litert(model, [numbers])[0])
