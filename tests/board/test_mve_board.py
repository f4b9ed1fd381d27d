"""MVE's own kernels on a Cortex-M55: random convolutions equal LiteRT and TensorFlow Lite Micro, by gcc and clang."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import bytewright
from bytewright import ir
from bytewright.execute.build import BuildOptions
from bytewright.execute.profile.measure import profile_bundle
from bytewright.execute.run import run_batch, run_bundle
from bytewright.lower.isa.mve.convolve import convolve
from bytewright.lower.isa.mve.scaling import Kind
from bytewright.lower.isa.mve.tap_sums import Taps, sum_taps
from bytewright.ops.arithmetic.numerics import Numerics
from support.against_reference import differences
from support.random_models import RandomModel
from support.random_networks import (
    random_convolution,
    random_elements,
    random_network,
    random_reduction,
    random_transposed,
)
from support.reference import LiteRt, TfLiteMicro
from support.scaled_instructions import ScaledProgram
from support.tiers import THOROUGH, some, turn
from tflite_writer import ModelBuilder

pytestmark = [
    pytest.mark.board,
    pytest.mark.skipif(shutil.which("clang") is None, reason="clang is not installed"),
]
TARGET = "mps3-an547"
LEVELS = ("-O1", "-O2", "-O3", "-Os")
COMPILERS = ("gcc", "clang")
# Levels change from one day to the next, compilers every other day: each meets each within four days.
KINDS = [
    (kind, compiler)
    for number, kind in enumerate(Kind)
    for compiler in (COMPILERS if THOROUGH else (COMPILERS[(number + turn() // 2) % 2],))
]
# Depth and channels: one chunk of each width, ragged ones, loops of them; whole blocks, parts of one, one alone.
CONVOLUTIONS = [(4, 1), (7, 6), (8, 4), (13, 9), (16, 4), (27, 8), (144, 5), (150, 4), (208, 8), (455, 3)]


# Taps as [row, offset], the groups that they are summed in, those outside the input, and channels.
SQUARE = tuple((ky, kx) for ky in range(3) for kx in range(3))
DEPTHWISE = [
    (Taps(3, tuple((ky, 16 * kx) for ky, kx in SQUARE), ((0, 1, 2), (3, 4), (5, 6, 7), (8,))), 16),
    (Taps(3, tuple((ky, 40 * kx) for ky, kx in SQUARE), ((0, 4, 8), (1, 2), (3, 5, 6), (7,))), 40),
    (Taps(3, tuple((ky, 130 * kx) for ky, kx in SQUARE), ((0, 2, 3), (1, 4, 5), (6, 7, 8))), 130),
    (Taps(3, tuple((ky, 8 * kx) for ky, kx in SQUARE), ((0, 1), (2, 3), (4, 5), (6, 7), (8,))), 16),
    (Taps(1, ((0, 0), (0, 48)), ((0, 1),)), 48),
    (Taps(2, ((0, 0), (1, 0)), ((1,), (0,))), 21),
    (Taps(1, ((0, 0),), ((0,),)), 17),
    (Taps(2, ((0, 0), (0, 0), (1, 0), (1, 0)), ((0, 1), (2, 3)), frozenset((0, 2)), -128), 32),
    (Taps(1, ((0, 0), (0, 20), (0, 0)), ((0, 1, 2),), frozenset((2,)), 5), 20),
]

DEPTHWISE_OF_16_BITS = [
    replace(taps, element=ir.DType.I16, zero_point=0, groups=(tuple(range(len(taps.places))),))
    for taps, _ in DEPTHWISE
]


def options(compiler: str, level: str) -> BuildOptions:
    return BuildOptions(flags=(level,), compiler=None if compiler == "gcc" else compiler)


def assert_equals_evaluated(program: ScaledProgram, folder: Path, compiler: str) -> None:
    """At every level, by turns."""
    bytewright.compile(program.write(folder), target=TARGET).write(folder / "m")
    expected = program.evaluated()
    for level in some(LEVELS, every=2):
        how = options(compiler, level)
        found = run_bundle(folder / "m", list(program.inputs.values()), on="qemu", options=how).outputs
        for name, output, wanted in zip(program.outputs, found, expected, strict=True):
            assert np.array_equal(output, wanted), (name, level)


@pytest.mark.parametrize(("kind", "compiler"), KINDS)
def test_whole_pixels(tmp_path: Path, kind: Kind, compiler: str) -> None:
    instructions = [convolve(num_pixels, *each, kind) for num_pixels in (1, 2) for each in CONVOLUTIONS]
    instructions += [convolve(1, *each, kind, is_uniform=True) for each in CONVOLUTIONS[::3]]
    program = ScaledProgram(instructions, least_shift=int(kind is Kind.SINGLE))
    assert_equals_evaluated(program, tmp_path, compiler)


@pytest.mark.parametrize(("kind", "compiler"), KINDS)
def test_whole_pixels_of_16_bits(tmp_path: Path, kind: Kind, compiler: str) -> None:
    """Weights of -1 to 1, so that sums are as far from the ends of 32 bits as those of bytes."""
    sizes = [(num_pixels, *each) for num_pixels in (1, 2) for each in CONVOLUTIONS[::2]]
    instructions = [convolve(*size, kind, element=ir.DType.I16) for size in sizes]
    instructions += [convolve(1, 13, 9, kind, is_uniform=True, element=ir.DType.I16)]
    program = ScaledProgram(instructions, most_weight=1, least_shift=int(kind is Kind.SINGLE))
    assert_equals_evaluated(program, tmp_path, compiler)


@pytest.mark.parametrize(("kind", "compiler"), KINDS)
def test_whole_pixels_of_depthwise(tmp_path: Path, kind: Kind, compiler: str) -> None:
    instructions = [sum_taps(*each, kind, has_limits=i % 2 == 0) for i, each in enumerate(DEPTHWISE)]
    program = ScaledProgram(instructions, most_weight=85, least_shift=int(kind is Kind.SINGLE))
    assert_equals_evaluated(program, tmp_path, compiler)


@pytest.mark.parametrize(("kind", "compiler"), KINDS)
def test_whole_pixels_of_depthwise_of_16_bits(tmp_path: Path, kind: Kind, compiler: str) -> None:
    """Weights of -1 to 1, as above."""
    channels = (8, 9, 15, 16, 33, 40, 130, 8, 20)
    pairs = zip(DEPTHWISE_OF_16_BITS, channels, strict=True)
    instructions = [sum_taps(*each, kind, has_limits=i % 2 == 0) for i, each in enumerate(pairs)]
    program = ScaledProgram(instructions, most_weight=1, least_shift=int(kind is Kind.SINGLE))
    assert_equals_evaluated(program, tmp_path, compiler)


def assert_equals_on_board(model: RandomModel, folder: Path, number: int, numerics: Numerics) -> None:
    """By each compiler, at a level that is another for each model."""
    folder.mkdir(parents=True)
    path = folder / "m.tflite"
    path.write_bytes(model.content)
    bundle = bytewright.compile(path, target=TARGET, numerics=numerics).write(folder / "m")
    reference = LiteRt(model.content) if numerics is Numerics.LITERT_REF else TfLiteMicro(model.content)
    batch = [model.inputs(i) for i in range(4)]
    wanted = [[np.array(array) for array in reference.run(*inputs)] for inputs in batch]
    for i, compiler in enumerate(COMPILERS):
        how = options(compiler, LEVELS[(number + i) % len(LEVELS)])
        found = run_batch(bundle, batch, on="qemu", options=how).outputs
        for own, expected in zip(found, wanted, strict=True):
            assert not differences(own, expected), (model.description, compiler, how.flags)


@pytest.mark.parametrize("number", some(range(8), every=3))
def test_convolutions(tmp_path: Path, number: int) -> None:
    assert_equals_on_board(random_convolution(number, "int8"), tmp_path / "m", number, Numerics.LITERT_REF)


@pytest.mark.parametrize("number", some(range(60, 72), every=4))
def test_floats(tmp_path: Path, number: int) -> None:
    forms = (random_convolution, random_reduction, random_network, random_transposed)
    model = forms[number % len(forms)](number, "float32")
    assert_equals_on_board(model, tmp_path / "m", number, Numerics.LITERT_REF)


@pytest.mark.parametrize("number", some(range(40, 52), every=4))
def test_networks_of_16_bits(tmp_path: Path, number: int) -> None:
    model = (random_convolution, random_reduction, random_network)[number % 3](number, "int16")
    assert_equals_on_board(model, tmp_path / "m", number, Numerics.LITERT_REF)


# Units of a fully connected layer of 16 bits that are no whole blocks of channels.
@pytest.mark.parametrize("units", [2, 10])
def test_channels_that_fill_no_block(tmp_path: Path, units: int) -> None:
    """The last ones are stored one by one; it was 2.57 instructions a product where all were scalar."""
    builder, random = ModelBuilder(), np.random.default_rng(units)
    x = builder.tensor("x", (1, 640), "int16", scale=0.0002, zero_point=0)
    y = builder.tensor("y", (1, units), "int16", scale=0.006, zero_point=0)
    weights = builder.constant("w", random.integers(-20, 21, (units, 640)).astype(np.int8), scale=0.01)
    bias = builder.constant("b", random.integers(-(2**20), 2**20, units), scale=0.0002 * 0.01)
    builder.operator("FULLY_CONNECTED", [x, weights, bias], [y])
    content, path = builder.build([x], [y]), tmp_path / "m.tflite"
    path.write_bytes(content)
    folder = bytewright.compile(path, target=TARGET).write(tmp_path / "m")
    values = random.integers(-(2**15), 2**15, (1, 640)).astype(np.int16)
    for compiler in COMPILERS:
        profile = profile_bundle(folder, [values], on="qemu", options=options(compiler, "-O2"))
        assert sum(line.cost.amount for line in profile.steps) <= 0.7 * 640 * units
        (found,) = run_bundle(folder, [values], on="qemu", options=options(compiler, "-O2")).outputs
        np.testing.assert_array_equal(found, LiteRt(content).run(values)[0])


# Kernel, stride and padding; and how many rows and columns less than the most the result has.
SPREAD = (
    ((2, 2), (2, 2), "VALID", (1, 1)),
    ((3, 3), (2, 2), "SAME", (0, 1)),
    ((4, 4), (2, 2), "SAME", (1, 0)),
    ((3, 5), (1, 3), "VALID", (0, 2)),
)


def transposed_convolutions(dtype: str, depth: int, channels: int) -> tuple[bytes, np.ndarray]:
    """All of them, of one input, with a value of it."""
    builder, random = ModelBuilder(), np.random.default_rng(depth)
    is_int8, shape = dtype == "int8", (2, 3, 5, depth)
    scale, zero_point = (0.02, 7) if is_int8 else (0.0002, 0)
    x, results = builder.tensor("x", shape, dtype, scale=scale, zero_point=zero_point), list[int]()
    for number, (kernel, stride, padding, less) in enumerate(SPREAD):
        extents = [
            extent * step + (0 if padding == "SAME" else size - 1) - fewer
            for extent, step, size, fewer in zip(shape[1:3], stride, kernel, less, strict=True)
        ]
        result = (shape[0], *extents, channels)
        weights = random.integers(-127, 128, (channels, *kernel, depth)).astype(np.int8)
        scales = random.uniform(0.005, 0.02, channels).astype(np.float32)
        ports = [
            builder.constant(f"shape{number}", np.array(result, np.int32)),
            builder.constant(f"w{number}", weights, scale=scales, quantized_dimension=0),
            x,
        ]
        name, output = f"y{number}", (0.5, -9) if is_int8 else (0.002, 0)
        results.append(builder.tensor(name, result, dtype, scale=output[0], zero_point=output[1]))
        options = {"padding": padding, "stride_h": stride[0], "stride_w": stride[1]}
        builder.operator("TRANSPOSE_CONV", ports, results[-1:], **options)
    bounds = np.iinfo(dtype)
    return builder.build([x], results), random.integers(bounds.min, bounds.max + 1, shape).astype(dtype)


@pytest.mark.parametrize(("depth", "channels"), [(9, 5), (32, 16)])
@pytest.mark.parametrize("dtype", ["int8", "int16"])
def test_transposed_convolutions(tmp_path: Path, dtype: str, depth: int, channels: int) -> None:
    """Cells of which the result lacks a side among them, and phases that different numbers of taps reach."""
    (content, values), path = transposed_convolutions(dtype, depth, channels), tmp_path / "m.tflite"
    path.write_bytes(content)
    model = bytewright.compile(path, target=TARGET)
    assert {step.template for step in model.plan.steps} == {"mve.transpose_conv2d"}
    wanted, folder = LiteRt(content).run(values), model.write(tmp_path / "m")
    for compiler in COMPILERS:
        found = run_bundle(folder, [values], on="qemu", options=options(compiler, "-O2")).outputs
        assert not differences(found, wanted), compiler


@pytest.mark.parametrize(("dtype", "most"), [("int8", 0.35), ("int16", 0.55)])
def test_transposed_convolutions_are_as_quick_as_others(tmp_path: Path, dtype: str, most: float) -> None:
    """Instructions a product of the first, with all that is around it; it was 3 where it was scalar."""
    content, values = transposed_convolutions(dtype, 32, 16)
    path = tmp_path / "m.tflite"
    path.write_bytes(content)
    folder = bytewright.compile(path, target=TARGET).write(tmp_path / "m")
    profile = profile_bundle(folder, [values], on="qemu", options=options("gcc", "-O2"))
    assert profile.steps[0].cost.amount <= most * values.size * 16 * 4


@pytest.mark.parametrize("number", some(range(16), every=3))
def test_pools_and_means(tmp_path: Path, number: int) -> None:
    assert_equals_on_board(random_reduction(number, "int8"), tmp_path / "m", number, Numerics.LITERT_REF)


@pytest.mark.parametrize("number", some(range(26000, 26016), every=4))
def test_elements(tmp_path: Path, number: int) -> None:
    assert_equals_on_board(random_elements(number), tmp_path / "m", number, Numerics.LITERT_REF)


@pytest.mark.parametrize("number", some(range(2), every=3))
def test_networks(tmp_path: Path, number: int) -> None:
    assert_equals_on_board(random_network(number, "int8"), tmp_path / "l", number, Numerics.LITERT_REF)
    assert_equals_on_board(
        random_network(number, "int8", is_tflm=True), tmp_path / "t", number, Numerics.TFLM
    )
