"""Kernels of Arm's DSP extension in plain C, on this machine: exact for layers and networks of any size.

The target is a Cortex-M4, whose bundles have for every instruction what it means.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import bytewright
from bytewright import ir
from bytewright.compiler.pipeline import compile_model
from bytewright.execute.run import run_bundle
from bytewright.lower.isa.dsp.pairing import PAIRINGS
from bytewright.ops.arithmetic.numerics import Numerics
from bytewright.options import Optimize, Options
from bytewright.target.registry import load_target
from support.against_reference import assert_equals_reference
from support.compilers import UNOPTIMISED
from support.many_models import SANITIZERS, compiler_is_there
from support.matrix_products import random_product
from support.random_networks import random_convolution, random_network, random_transposed
from support.tiers import some

TARGET = "mps2-an386"
SANITIZED = ("-O0", *SANITIZERS)
WORDS = """module words {numerics="tflm"}
input %x : tensor<1x8x8x2xi8> quant(0.5, 0)
output %y : tensor<1x8x8x2xi16> quant(4.0, -128)
constant %w = data<2x1x1x2xi8> [8, -12, 16, 24]
constant %b = data<2xi32> [0, 0]
constant %m = data<2xi32> [1073741824, 1073741824]
constant %s = data<2xi8> [-1, -2]
func main(%x : tensor<1x8x8x2xi8> quant(0.5, 0)) -> (%y) {
  %acc : tensor<1x8x8x2xi32> = conv2d(%x, %w, %b)
      {stride=(1, 1), padding=(0, 0, 0, 0), dilation=(1, 1), input_zero_point=0}
  %y : tensor<1x8x8x2xi16> = rescale(%acc, %m, %s) {rounding=Rounding.DOUBLE_ROUND, input_zero_point=0,
      output_zero_point=-128, left_shift=0, dtype=DType.I16}
}
"""


@pytest.mark.parametrize(("first", "dtype"), [(20000, "int8"), (20030, "int8"), (26000, "int16")])
def test_random_convolutions(tmp_path: Path, first: int, dtype: str) -> None:
    models = [random_convolution(number, dtype) for number in range(first, first + 30)]
    assert_equals_reference(models, tmp_path, target=TARGET, flags=SANITIZED, every=5)


@pytest.mark.parametrize("dtype", ["int8", "int16"])
def test_random_transposed_convolutions_and_products(tmp_path: Path, dtype: str) -> None:
    numbers = some(range(27000, 27020), every=2)
    models = [model(number, dtype) for number in numbers for model in (random_transposed, random_product)]
    assert_equals_reference(models, tmp_path, target=TARGET, flags=SANITIZED, every=5)


def test_random_convolutions_of_tflm(tmp_path: Path) -> None:
    models = [random_convolution(number, "int8") for number in range(21000, 21024)]
    assert_equals_reference(models, tmp_path, target=TARGET, numerics=Numerics.TFLM)


def test_random_convolutions_with_clang(tmp_path: Path) -> None:
    if not compiler_is_there("clang"):
        pytest.skip("there is no clang")
    models = [random_convolution(number, "int8") for number in range(22000, 22024)]
    assert_equals_reference(models, tmp_path, target=TARGET, compiler="clang", flags=("-O2",), every=4)


def test_random_convolutions_for_speed(tmp_path: Path) -> None:
    models = [random_convolution(number, "int8") for number in range(25000, 25020)]
    fast = Options(optimize=Optimize.SPEED)
    assert_equals_reference(models, tmp_path, target=TARGET, flags=SANITIZED, every=5, options=fast)


def test_random_networks(tmp_path: Path) -> None:
    models = [random_network(number, "int8") for number in range(23000, 23030)]
    assert_equals_reference(models, tmp_path, target=TARGET, flags=SANITIZED, every=5)


@pytest.mark.parametrize(("dtype", "least"), [("int8", (25, 4)), ("int16", (25, 4))])
def test_most_convolutions_are_taken(tmp_path: Path, dtype: str, least: tuple[int, int]) -> None:
    templates: list[str] = []
    for number in range(20000, 20060):
        path = tmp_path / f"m{number}.tflite"
        path.write_bytes(random_convolution(number, dtype).content)
        kernels = compile_model(path, load_target(TARGET)).module.kernels
        templates += [kernel.template for kernel in kernels if "conv2d" in kernel.name]
    assert templates.count("dsp.conv2d") >= least[0]
    assert templates.count("dsp.depthwise_conv2d") >= least[1]


def test_packed_weights_are_those_of_two_channels() -> None:
    weights = np.random.default_rng(3).integers(-127, 128, (5, 11))
    packed = PAIRINGS[ir.DType.I8].packed(weights)
    assert packed is not None
    assert packed.shape == (3, 6)
    padded = np.pad(weights, ((0, 1), (0, 1)))
    for pair, words in enumerate(packed):
        for k in range(12):
            word = int(words[k // 4 * 2 + k % 2])
            half = (word >> (16 if k % 4 >= 2 else 0)) & 0xFFFF
            half -= (half & 0x8000) << 1
            low = (half & 0xFF) - ((half & 0x80) << 1)
            assert (low, (half - low) // 256) == (padded[2 * pair, k], padded[2 * pair + 1, k])


def test_packed_weights_beside_words_are_those_of_one_channel_each() -> None:
    weights = np.random.default_rng(4).integers(-128, 128, (3, 6))
    packed = PAIRINGS[ir.DType.I16].packed(weights)
    assert packed is not None
    padded = np.pad(weights, ((0, 1), (0, 2))).astype(np.int8)
    for pair, words in enumerate(packed):
        for number, word in enumerate(words):
            k, channel = number // 2 * 4, 2 * pair + number % 2
            octets = np.frombuffer(int(word).to_bytes(4, "little", signed=True), np.int8)
            assert octets[[0, 2, 1, 3]].tolist() == padded[channel, k : k + 4].tolist()


def test_weights_that_share_no_half_are_not_packed() -> None:
    assert PAIRINGS[ir.DType.I8].packed(np.array([[-1], [-128]])) is None
    assert PAIRINGS[ir.DType.I8].packed(np.array([[0], [-128]])) is not None


def test_words_of_the_least_byte_as_zero_point_are_not_cut_off(tmp_path: Path) -> None:
    """An int16 result with the zero point -128, as no file of TensorFlow Lite has it."""
    path = tmp_path / "words.bw"
    path.write_text(WORDS)
    bundle = bytewright.compile(path, target=TARGET).write(tmp_path / "b")
    values = np.arange(-128, 128, 2, dtype=np.int8).reshape(1, 8, 8, 2)
    (found,) = run_bundle(bundle, [values], options=UNOPTIMISED).outputs
    # Sums are multiples of the divisors, 4 and 8.
    expected = values.astype(np.int64) @ np.array([[8, 16], [-12, 24]]) // [4, 8] - 128
    np.testing.assert_array_equal(found, expected)
