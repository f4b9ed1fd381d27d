"""int16 activations with int8 weights in C: networks, large convolutions, vectors, rows, and poisoned runs.

Operators alone are in `test_random_operators.py`, and files that exporters wrote in `test_exported_models.py`.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import bytewright
from bytewright.bundle.write import write_bundle
from bytewright.compiler.pipeline import compile_model
from bytewright.diagnostics import CompileError
from bytewright.execute.paranoid import run_paranoid
from bytewright.execute.run import run_bundle
from bytewright.ir.border import Io
from bytewright.ir.types import DType
from bytewright.ops.arithmetic.numerics import Numerics
from bytewright.options import Options, Rows
from bytewright.target.registry import load_target
from support.against_reference import assert_equals_reference
from support.compilers import UNOPTIMISED
from support.many_models import SANITIZERS
from support.model_files import EXPORTS, ModelFile
from support.random_models import RandomModel
from support.random_networks import random_convolution, random_network, random_reduction
from support.reference import LiteRt
from support.tiers import TIMES, some
from tflite_writer import ModelBuilder

SANITIZED = ("-O0", *SANITIZERS)
TARGETS = ("host", "mps3-an547", "mps2-an386", "x86-64-v3", "x86-64-v4-vnni")
ROWS = [EXPORTS / "litert_torch" / f"{name}_i16.tflite" for name in ("mbv2", "resnet", "unet", "yolo")]
needs_files = pytest.mark.skipif(
    not ROWS[0].exists(), reason="the data that is not part of the project is missing: ../shared/models"
)


def models(first: int, count: int = 6) -> list[RandomModel]:
    numbers = some(range(first, first + count * TIMES), every=2)
    return [
        make(number, "int16")
        for number in numbers
        for make in (random_network, random_convolution, random_reduction)
    ]


@pytest.mark.parametrize(("number", "target"), list(enumerate(TARGETS)))
def test_networks(number: int, target: str, tmp_path: Path) -> None:
    """The plain C of each target's kernels, under sanitizers."""
    assert_equals_reference(models(1000 * number), tmp_path, target=target, flags=SANITIZED, every=2)


def test_networks_of_tflm(tmp_path: Path) -> None:
    networks = [random_network(number, "int16", is_tflm=True) for number in some(range(6 * TIMES), every=2)]
    assert_equals_reference(networks, tmp_path, numerics=Numerics.TFLM)


def wide(operator: str) -> RandomModel:
    """A layer whose sums leave 32 bits: 1,200 products of the greatest numbers."""
    generator = np.random.default_rng(3)
    builder = ModelBuilder()
    shapes = {
        "FULLY_CONNECTED": ((1, 1200), (5, 1200), (1, 5)),
        "CONV_2D": ((1, 4, 4, 200), (5, 3, 2, 200), (1, 4, 4, 5)),
        "TRANSPOSE_CONV": ((1, 2, 2, 600), (5, 2, 2, 600), (1, 3, 3, 5)),
    }
    source, weights, result = shapes[operator]
    x = builder.tensor("x", source, "int16", scale=2.0**-12, zero_point=0)
    w = builder.constant("w", generator.integers(100, 128, weights).astype(np.int8), scale=0.01)
    b = builder.constant("b", generator.integers(-(2**35), 2**35, 5), scale=2.0**-12 * 0.01)
    y = builder.tensor("y", result, "int16", scale=0.05, zero_point=0)
    operands, options = [x, w, b], {}
    if operator == "TRANSPOSE_CONV":
        operands = [builder.constant("shape", np.array(result, np.int32)), w, x, b]
        options = {"padding": "VALID"}
    builder.operator(operator, operands, [y], **options)
    return RandomModel(builder.build([x], [y]), f"wide {operator}", (source,), "int16")


@pytest.mark.parametrize(
    ("numerics", "target", "total"),
    [*((each, "host", "acc0") for each in Numerics), (Numerics.LITERT_REF, "mps2-an386", "total0_0")],
)
def test_sums_that_leave_32_bits(numerics: Numerics, target: str, total: str, tmp_path: Path) -> None:
    layers = [wide(operator) for operator in ("FULLY_CONNECTED", "CONV_2D", "TRANSPOSE_CONV")]
    (tmp_path / "wide.tflite").write_bytes(layers[0].content)
    files = compile_model(tmp_path / "wide.tflite", load_target(target)).files
    assert any(f"int64_t {total}".encode() in content for content in files.values())
    assert_equals_reference(layers, tmp_path, target=target, numerics=numerics, flags=SANITIZED)


SUMS = """module sums {{numerics="litert-ref"}}
input %x : tensor<1x1x4x{depth}xi16> quant(0.5, 0)
output %y : tensor<1x1x4x1x{dtype}> quant(4.0, 0)
constant %w = data<1x1x1x{depth}xi8> {weights}
constant %b = data<1xi64> [-5]
constant %s = data<1xf64> [{scale}]
func main(%x : tensor<1x1x4x{depth}xi16> quant(0.5, 0)) -> (%y) {{
  %acc : tensor<1x1x4x1xi64> = conv2d(%x, %w, %b)
      {{stride=(1, 1), padding=(0, 0, 0, 0), dilation=(1, 1), input_zero_point=0}}
  %y : tensor<1x1x4x1x{dtype}> = tfl_real_rescale(%acc, %s) {{output_zero_point=0, dtype=DType.{name}}}
}}
"""


@pytest.mark.parametrize("depth", [516, 900])
@pytest.mark.parametrize(("dtype", "scale"), [(np.int16, 1.5e-5), (np.int8, 1.23e-5)])
@pytest.mark.parametrize("target", ["host", "mps2-an386", "mps2-an521"])
def test_sums_of_64_bits_within_32_and_beyond(
    depth: int, dtype: type[np.signedinteger], scale: float, target: str, tmp_path: Path
) -> None:
    """Sums of 64 bits of a program; of 516 products at most they fit 32 bits."""
    weights = np.resize([127, -127], depth)
    bits = 8 * np.dtype(dtype).itemsize
    path = tmp_path / "sums.bw"
    path.write_text(
        SUMS.format(depth=depth, dtype=f"i{bits}", name=f"I{bits}", weights=weights.tolist(), scale=scale)
    )
    bundle = bytewright.compile(path, target=target).write(tmp_path / "b")
    greatest = np.where(weights > 0, 32767, -32768)
    drawn = np.random.default_rng(depth).integers(-32768, 32768, depth)
    x = np.stack([greatest, -1 - greatest, drawn, drawn // 200])
    real = (x @ weights - 5) * scale
    expected = np.clip(np.copysign(np.floor(abs(real) + 0.5), real), *DType(f"i{bits}").bounds)
    values = x.astype(np.int16).reshape(1, 1, 4, depth)
    (found,) = run_bundle(bundle, [values], options=UNOPTIMISED).outputs
    np.testing.assert_array_equal(found.reshape(-1), expected)


def test_lines_that_leave_16_bits(tmp_path: Path) -> None:
    """LOG from its least output at zero to more than zero within one line."""
    builder = ModelBuilder()
    x = builder.tensor("x", (1, 64), "int16", scale=2.0**-7, zero_point=0)
    y = builder.tensor("y", (1, 64), "int16", scale=2.0**-16, zero_point=0)
    builder.operator("LOG", [x], [y])
    model = RandomModel(builder.build([x], [y]), "lines that wrap", ((1, 64),), "int16", domain="positive")
    assert_equals_reference([model], tmp_path, flags=SANITIZED)


@needs_files
@pytest.mark.parametrize("io", [Io.WORKSPACE, Io.CALLER, Io.ROWS])
def test_rows(io: Io, tmp_path: Path) -> None:
    """Every net keeps rows in rings, whose workspace is twice that of int8, as its elements are."""
    files = [ModelFile(path) for path in some(ROWS, every=4)]
    assert_equals_reference(files, tmp_path, io=io, options=Options(rows=Rows.MAX))


@needs_files
def test_rows_keep_twice_the_bytes_of_int8() -> None:
    for path in some(ROWS[:2], every=2):
        int8 = path.with_name(path.name.replace("_i16", "_i8"))
        both = [compile_model(each, load_target("host"), Options(rows=Rows.MAX)) for each in (int8, path)]
        sizes = [sum(pool["used_bytes"] for pool in each.document["pools"]) for each in both]
        assert sizes[1] <= 2.05 * sizes[0], (path.name, sizes)
        assert both[1].document["loops"]


@needs_files
def test_dead_bytes_are_not_read(tmp_path: Path) -> None:
    for path in some(ROWS, every=4):
        compiled = compile_model(path, load_target("host"), Options(rows=Rows.MAX))
        write_bundle(compiled.files, tmp_path / path.stem)
        run_paranoid(tmp_path / path.stem, options=UNOPTIMISED)


def test_zeros_may_have_the_scale_0(tmp_path: Path) -> None:
    """As TensorFlow's quantiser writes a first state of zeros: stored, and made by a FILL, before a layer."""
    builder = ModelBuilder()
    x, y, sums, total = (
        builder.tensor(name, [1, 4], "int16", scale=0.001) for name in ("x", "y", "sums", "total")
    )
    stored = builder.constant("stored", np.zeros((1, 4), np.int16), scale=0.0)
    builder.operator("MUL", [x, stored], [y])
    filled = builder.tensor("filled", [1, 4], "int16", scale=0.0)
    value = builder.constant("value", np.zeros((), np.int16), scale=0.0)
    builder.operator("FILL", [builder.constant("extents", np.array([1, 4], np.int32)), value], [filled])
    weights = builder.constant("weights", np.arange(16, dtype=np.int8).reshape(4, 4), scale=0.01)
    builder.operator("FULLY_CONNECTED", [filled, weights, -1], [sums])
    builder.operator("ADD", [x, sums], [total])
    path = tmp_path / "model.tflite"
    path.write_bytes(builder.build([x], [y, total]))
    write_bundle(compile_model(path, load_target("host")).files, tmp_path / "bundle")
    values = np.array([[-32768, 5, -1, 32767]], np.int16)
    found = run_bundle(tmp_path / "bundle", [values], options=UNOPTIMISED).outputs
    for own, wanted in zip(found, LiteRt(path).run(values), strict=True):
        np.testing.assert_array_equal(own, wanted)


def test_what_is_taken_from_itself_is_zero_at_any_scale(tmp_path: Path) -> None:
    """IsFinite of a logsumexp, as TensorFlow's quantiser writes it: x - x, of which it has only seen zeros."""
    builder = ModelBuilder()
    x = builder.tensor("x", [1, 4], "int16", scale=6.8e-5)
    y = builder.tensor("y", [1, 4], "int16", scale=3.6e-43)
    builder.operator("SUB", [x, x], [y])
    assert_equals_reference([RandomModel(builder.build([x], [y]), "x - x", ((1, 4),), "int16")], tmp_path)


def test_no_other_value_has_the_scale_0(tmp_path: Path) -> None:
    builder = ModelBuilder()
    x, y = (builder.tensor(name, [1, 4], "int16", scale=0.001) for name in "xy")
    builder.operator("MUL", [x, builder.constant("c", np.array([0, 0, 1, 0], np.int16), scale=0.0)], [y])
    path = tmp_path / "model.tflite"
    path.write_bytes(builder.build([x], [y]))
    with pytest.raises(CompileError, match=r"'c' has scale 0\.0, which is not positive"):
        compile_model(path, load_target("host"))
