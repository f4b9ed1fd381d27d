"""uint8 at the border of int8 networks, and in whole networks, as TensorFlow 1 quantised them: exact for LiteRT."""

from __future__ import annotations

from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import bytewright
from bytewright.compiler.pipeline import compile_model
from bytewright.diagnostics import CompileError
from bytewright.frontends.tflite import import_content
from bytewright.ir.border import Io
from bytewright.ops.arithmetic.numerics import Numerics
from bytewright.options import Options, Rows
from bytewright.target.registry import load_target
from support.against_reference import assert_equals_reference, drawn
from support.kernel_cells import WITH_VECTORS
from support.random_models import RandomModel, operator_models
from support.reference import LiteRt
from support.tiers import some
from support.unsigned_networks import deeplab, mobilenet, ssd
from tflite_writer import ModelBuilder

SHARED = Path(__file__).resolve().parents[3] / "shared" / "models"
IMAGE = (1, 7, 9, 3)


def bordered(seed: int, *, equal_scales: bool = False) -> RandomModel:
    """uint8 -> int8 -> convolution -> int8 -> uint8, as converters write it with inference types of uint8."""
    generator = np.random.default_rng(seed)
    builder = ModelBuilder()
    scale = 0.25
    inner = scale if equal_scales else float(generator.uniform(0.1, 0.6))
    zero = int(generator.integers(0, 256))
    inner_zero = zero - 128 if equal_scales else int(generator.integers(-128, 128))
    x = builder.tensor("x", IMAGE, "uint8", scale=scale, zero_point=zero)
    a = builder.tensor("a", IMAGE, "int8", scale=inner, zero_point=inner_zero)
    w = builder.constant("w", generator.integers(-127, 128, (4, 3, 3, 3)).astype(np.int8), scale=0.02)
    bias = builder.constant("bias", generator.integers(-500, 500, 4).astype(np.int32), scale=inner * 0.02)
    b = builder.tensor("b", (1, 7, 9, 4), "int8", scale=0.3, zero_point=5)
    y = builder.tensor("y", (1, 7, 9, 4), "uint8", scale=0.3 if equal_scales else 0.4, zero_point=133)
    builder.operator("QUANTIZE", [x], [a])
    builder.operator("CONV_2D", [a, w, bias], [b], padding="SAME")
    builder.operator("QUANTIZE", [b], [y])
    return RandomModel(builder.build([x], [y]), f"bordered {seed}", (IMAGE,), "uint8")


NETWORKS = [*(bordered(seed) for seed in range(3)), bordered(3, equal_scales=True)]


@pytest.mark.parametrize("numerics", list(Numerics))
def test_random_operators(numerics: Numerics, tmp_path: Path) -> None:
    models = [
        *drawn(operator_models("QUANTIZE", "uint8"), 6),
        *drawn(operator_models("QUANTIZE", "int8"), 6, first_seed=20),
        *drawn(operator_models("DEQUANTIZE", "uint8"), 4),
    ]
    assert_equals_reference(models, tmp_path, numerics=numerics)


@pytest.mark.parametrize("numerics", list(Numerics))
@pytest.mark.parametrize("target", ["host", "mps3-an547"])
def test_networks_with_uint8_at_the_border(numerics: Numerics, target: str, tmp_path: Path) -> None:
    assert_equals_reference(NETWORKS, tmp_path, target=target, numerics=numerics)


@pytest.mark.parametrize("io", [Io.WORKSPACE, Io.CALLER])
def test_rows_and_planned_borders(io: Io, tmp_path: Path) -> None:
    assert_equals_reference(NETWORKS[:2], tmp_path, io=io, options=Options(rows=Rows.MAX))


def litert_only(source: str, target: str) -> bytes:
    builder = ModelBuilder()
    quantised: dict[str, Any] = {"scale": 0.5, "zero_point": 100}
    x = builder.tensor("x", (1, 300), source, **(quantised if source == "uint8" else {}))
    y = builder.tensor("y", (1, 300), target, scale=0.75, zero_point=7)
    builder.operator("QUANTIZE", [x], [y], version=1)
    return builder.build([x], [y])


def sample(dtype: str) -> NDArray[Any]:
    if dtype == "uint8":
        return np.arange(300, dtype=np.int64).astype(np.uint8).reshape(1, 300)
    return np.linspace(-40, 200, 300, dtype=np.float32).reshape(1, 300)


@pytest.mark.parametrize("source", ["float32", "uint8"])
def test_forms_that_litert_alone_has(source: str, tmp_path: Path) -> None:
    content = litert_only(source, "uint8")
    path = tmp_path / "m.tflite"
    path.write_bytes(content)
    x = sample(source)
    np.testing.assert_array_equal(bytewright.compile(path).run(x), LiteRt(content).run(x)[0])
    with pytest.raises(CompileError) as caught:
        import_content(content, "m.tflite", numerics=Numerics.TFLM)
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code == "BW107"
    assert "TensorFlow Lite Micro does not have it" in diagnostic.message


def test_bytes_that_mean_the_same_take_no_table() -> None:
    """Where scales agree and zero points are 128 apart, a bit is flipped and nothing is looked up."""
    module = import_content(NETWORKS[3].content, "m.tflite")
    names = [node.operation.name for node in module.graph.nodes]
    assert names[0] == names[-1] == "recentre"
    assert "table" not in names


def chained(*kinds: str, dtype: str = "uint8", zero_point: int = 9) -> bytes:
    """Operators of one operand, one after the other."""
    builder = ModelBuilder()
    tensors = [
        builder.tensor(f"t{number}", (1, 4), dtype, scale=0.5, zero_point=zero_point)
        for number in range(len(kinds) + 1)
    ]
    for kind, source, target in zip(kinds, tensors, tensors[1:], strict=False):
        builder.operator(kind, [source], [target])
    return builder.build([tensors[0]], [tensors[-1]])


def test_what_litert_has_not_is_refused_and_explained() -> None:
    with pytest.raises(CompileError) as caught:
        import_content(chained("RELU", "NEG"), "m.tflite")
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code == "BW105"
    assert diagnostic.notes == (
        "tensor 1 ('t1') is UINT8, which NEG does not have",
        "tensor 2 ('t2') is UINT8, which NEG does not have",
    )


def test_tensorflow_lite_micro_has_few_kernels() -> None:
    with pytest.raises(CompileError) as caught:
        import_content(chained("RELU"), "m.tflite", numerics=Numerics.TFLM)
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code == "BW107"
    assert "TensorFlow Lite Micro does not have it for uint8" in diagnostic.message
    assert "--numerics litert-ref" in (diagnostic.help or "")


def test_messages_name_the_zero_point_of_the_file() -> None:
    with pytest.raises(CompileError) as caught:
        import_content(chained("RELU", zero_point=300), "m.tflite")
    assert "has zero point 300, which is no uint8 value" in caught.value.diagnostics[0].message


def weighted(
    kind: str,
    zero_point: int,
    weights_zero_point: int,
    seed: int,
    pad: str = "SAME",
    scale: float = 0.4,
    depth: int = IMAGE[-1],
) -> RandomModel:
    """A layer whose weights fill all of uint8; a depthwise one of few channels makes two of each."""
    generator = np.random.default_rng(seed)
    builder, image, multiplier = ModelBuilder(), (*IMAGE[:3], depth), 2 if depth == IMAGE[-1] else 1
    x = builder.tensor("x", image, "uint8", scale=0.3, zero_point=zero_point)
    shape = {
        "CONV_2D": (5, 3, 3, depth),
        "DEPTHWISE_CONV_2D": (1, 3, 3, depth * multiplier),
        "FULLY_CONNECTED": (5, prod(image)),
    }[kind]
    values = generator.integers(0, 256, shape).astype(np.uint8)
    values.reshape(-1)[:2] = 0, 255
    w = builder.tensor("w", shape, "uint8", data=values, scale=0.01, zero_point=weights_zero_point)
    channels = shape[-1] if kind == "DEPTHWISE_CONV_2D" else shape[0]
    bias = builder.constant("b", generator.integers(-900, 900, channels).astype(np.int32), scale=0.003)
    extents = (7, 9) if pad == "SAME" else (5, 7)
    result = (1, channels) if kind == "FULLY_CONNECTED" else (1, *extents, channels)
    y = builder.tensor("y", result, "uint8", scale=scale, zero_point=255 - zero_point)
    options: dict[str, Any] = {} if kind == "FULLY_CONNECTED" else {"padding": pad}
    if kind == "DEPTHWISE_CONV_2D":
        options["depth_multiplier"] = multiplier
    builder.operator(kind, [x, w, bias], [y], activation="RELU6" if seed % 2 else "NONE", **options)
    name = f"{kind} {zero_point} {weights_zero_point} {pad} {seed} {depth}"
    return RandomModel(builder.build([x], [y]), name, (image,), "uint8")


def biased(kind: str) -> RandomModel:
    """A layer of biases alone, which lie around ties and are so large that the last bits of a multiplier count."""
    generator, channels = np.random.default_rng(17), 400
    single = np.float32
    scale, weights_scale, real = single(0.03), single(0.00413), 1.7e-6
    target = single(float(scale) * float(weights_scale) / real)
    ties = (generator.integers(0, 250, channels) + 0.5) / real
    biases = np.rint(ties + generator.integers(-9, 10, channels)).astype(np.int32)
    builder, is_dense = ModelBuilder(), kind == "FULLY_CONNECTED"
    shape, result = ((1, 1), (1, channels)) if is_dense else ((1, 1, 1, 1), (1, 1, 1, channels))
    x = builder.tensor("x", shape, "uint8", scale=float(scale), zero_point=0)
    taps = (1, 1, 1, channels) if kind == "DEPTHWISE_CONV_2D" else (channels, *shape[1:])
    data = np.ones(taps, np.uint8)  # zeros, so that no input moves a sum away from its tie
    w = builder.tensor("w", taps, "uint8", data=data, scale=float(weights_scale), zero_point=1)
    b = builder.constant("b", biases, scale=float(scale * weights_scale))
    y = builder.tensor("y", result, "uint8", scale=float(target), zero_point=3)
    options: dict[str, Any] = {} if is_dense else {"padding": "VALID"}
    operands = [x, w, b]
    if kind == "DEPTHWISE_CONV_2D":
        options["depth_multiplier"] = channels
    elif kind == "TRANSPOSE_CONV":
        operands.insert(0, builder.constant("shape", np.array(result, np.int32)))
        operands[1:3] = w, x
    builder.operator(kind, operands, [y], **options)
    return RandomModel(builder.build([x], [y]), f"biases of {kind}", (shape,), "uint8")


@pytest.mark.parametrize("kind", ["CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED", "TRANSPOSE_CONV"])
def test_scales_of_layers_at_ties(kind: str, tmp_path: Path) -> None:
    """Of input and weights they are multiplied in float32, but by FULLY_CONNECTED."""
    assert_equals_reference([biased(kind)], tmp_path, num_inputs=4)


@pytest.mark.parametrize("dtype", ["uint8", "int8"])
@pytest.mark.parametrize("scale", [3e-35, 1e-6])
def test_products_of_which_each_saturates(dtype: str, scale: float, tmp_path: Path) -> None:
    """As trained networks have them in branches that died; what LiteRT does with these shifts C++ does not define."""
    builder, size = ModelBuilder(), 4096
    least, greatest = np.iinfo(dtype).min, np.iinfo(dtype).max
    zero_points = [least + 3, least + 131, least + 128]
    a, b, y = (
        builder.tensor(name, (1, size), dtype, scale=each, zero_point=zero_point)
        for name, each, zero_point in zip("aby", (0.0235, 0.0039, scale), zero_points, strict=True)
    )
    builder.operator("MUL", [a, b], [y])
    path = tmp_path / "m.tflite"
    path.write_bytes(builder.build([a, b], [y]))
    generator = np.random.default_rng(5)
    first, second = (generator.integers(least, greatest + 1, (1, size)).astype(dtype) for _ in "ab")
    product = (first.astype(np.int64) - zero_points[0]) * (second.astype(np.int64) - zero_points[1])
    wanted = np.select([product < 0, product > 0], [least, greatest], zero_points[2])
    assert (product == 0).any()
    np.testing.assert_array_equal(bytewright.compile(path).run(first, second), wanted)


WEIGHTED = [
    *(
        weighted(kind, zero_point, weights, seed, pad)
        for kind, pad in (
            *(("CONV_2D", pad) for pad in ("SAME", "VALID")),
            *(("DEPTHWISE_CONV_2D", pad) for pad in ("SAME", "VALID")),
            ("FULLY_CONNECTED", ""),
        )
        for seed, (zero_point, weights) in enumerate([(0, 0), (255, 255), (0, 255), (128, 151)])
    ),
    # whose sums are shifted to the left
    *(weighted(kind, 128, 151, 9, scale=0.0012) for kind in ("CONV_2D", "FULLY_CONNECTED")),
    # whose channels fill vectors
    *(
        weighted(kind, 3, 21, 10 + seed, depth=32)
        for seed, kind in enumerate(("CONV_2D", "DEPTHWISE_CONV_2D"))
    ),
]


@pytest.mark.parametrize("target", ["host", *WITH_VECTORS])
def test_layers_whose_weights_have_any_zero_point(target: str, tmp_path: Path) -> None:
    assert_equals_reference(WEIGHTED, tmp_path, target=target)


def test_weights_of_a_dense_layer_stay_bytes() -> None:
    """Those of a depthwise one take two where they leave eight bits without their zero point."""
    for model, dtype in ((WEIGHTED[0], "i8"), (WEIGHTED[8], "i16")):
        module = import_content(model.content, "m.tflite")
        (weights,) = (each for each in module.constants if each.name.endswith("/weights"))
        assert weights.data.dtype.value == dtype


def test_what_a_zero_point_takes_off_is_vectors(tmp_path: Path) -> None:
    """As the epilogue behind it: lane by lane they cost twice what the products do on the Cortex-M55."""
    path = tmp_path / "m.tflite"
    path.write_bytes(mobilenet().content)
    text = compile_model(path, load_target("mps3-an547")).files["src/m_kernels.c"].decode()
    _, kernel = text.split("void m_conv2d_4_part1", 1)
    kernel = kernel.partition("\n}\n")[0]
    assert "mve_sub_i32_wrapping(totals0, " in kernel
    assert "mve_double_round" in kernel
    assert "lane" not in kernel


def test_the_header_and_the_plan_say_uint8(tmp_path: Path) -> None:
    path = tmp_path / "m.tflite"
    path.write_bytes(NETWORKS[0].content)
    compiled = compile_model(path, load_target("host"))
    header = compiled.files["include/m.h"].decode()
    assert "const uint8_t *x;" in header
    assert "uint8_t *y;" in header
    (tensor,) = compiled.document["inputs"]
    assert (tensor["dtype"], tensor["scale"]) == ("u8", 0.25)


@pytest.mark.parametrize("name", ["cnn", "se"])
def test_keras_with_uint8_at_the_border(name: str) -> None:
    path = SHARED / "exports" / "keras" / f"{name}_u8io.tflite"
    if not path.exists():
        pytest.skip(f"{path} is missing")
    arrays = np.load(path.with_suffix(".npz"))
    model = bytewright.compile(path)
    for x, y in zip(arrays["x"], arrays["y"], strict=True):
        np.testing.assert_array_equal(model.run(x), y)


def joined(seed: int) -> RandomModel:
    """Values of several quantisations, one after the other."""
    generator = np.random.default_rng(seed)
    builder = ModelBuilder()
    exact = [2.0**power for power in range(-4, 4)]
    scales = [
        float(generator.choice(exact) if seed % 2 else np.float32(generator.uniform(0.01, 2)))
        for _ in range(4)
    ]
    zero_points = [0, 255, *(int(each) for each in generator.integers(0, 256, 2))]
    sources = [
        builder.tensor(f"x{place}", (1, 64 + place), "uint8", scale=scale, zero_point=zero_point)
        for place, (scale, zero_point) in enumerate(zip(scales[:3], zero_points[1:], strict=True))
    ]
    y = builder.tensor("y", (1, 195), "uint8", scale=scales[3], zero_point=zero_points[seed % 4])
    builder.operator("CONCATENATION", sources, [y], axis=1)
    shapes = tuple((1, 64 + place) for place in range(3))
    return RandomModel(builder.build(sources, [y]), f"joined {seed}", shapes, "uint8")


def test_joined_values_are_scaled(tmp_path: Path) -> None:
    assert_equals_reference([joined(seed) for seed in range(6)], tmp_path, num_inputs=8)


@pytest.mark.parametrize("target", some(["host", *WITH_VECTORS], every=3))
def test_whole_networks(target: str, tmp_path: Path) -> None:
    assert_equals_reference([mobilenet(), ssd(), deeplab()], tmp_path, target=target, num_inputs=3)


def test_whole_networks_row_by_row(tmp_path: Path) -> None:
    assert_equals_reference(
        [mobilenet(2), deeplab(3)], tmp_path, options=Options(rows=Rows.MAX), num_inputs=3
    )
