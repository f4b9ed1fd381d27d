"""What one inference may cost on boards whose instructions kernels use: instructions executed, and flash.

The peers are TensorFlow Lite Micro with CMSIS-NN on the same emulated cores: figures of the project's design notes.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest

import bytewright
from bytewright.bundle.write import write_bundle
from bytewright.compiler.pipeline import compile_model
from bytewright.execute.build import BuildOptions
from bytewright.execute.profile.measure import profile_bundle
from bytewright.execute.run import run_batch, run_bundle
from bytewright.target.registry import load_target
from support.against_reference import differences
from support.shared_models import AD01, KWS, RESNET8, VWW, model_path, random_inputs
from support.single_operators import write_single_operators
from support.table_networks import NETWORKS
from support.word_operators import write_operators_of

pytestmark = [
    pytest.mark.board,
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("clang") is None, reason="clang is not installed"),
]


@dataclass(frozen=True)
class Limits:
    """Instructions of an inference by the better of two compilers, and bytes of code and constants."""

    m55: int
    m4: int
    flash_kb: int
    peer_m55: int
    peer_m4: int


LIMITS = {
    KWS: Limits(1_250_000, 5_300_000, 60, 1_730_599, 7_845_352),
    VWW: Limits(2_550_000, 11_700_000, 125, 6_265_491, 24_720_564),
    RESNET8: Limits(3_150_000, 19_200_000, 115, 4_588_919, 29_877_198),
    AD01: Limits(53_000, 495_000, 285, 64_280, 582_355),
}
MOST_OF_GCC = 1.25
# A third of what portable C of float32 took on the Cortex-M55 by gcc: 20,443,047, 28,048,761 and 563,628.
FLOATS = {"vww_96_float": 6_800_000, "pretrainedResnet": 9_300_000, "ad01_fp32": 300_000}


def measured(name: str, target: str, folder: Path, compilers: tuple[str, ...]) -> list[tuple[int, int]]:
    """Instructions and bytes of flash, by each compiler."""
    write_bundle(compile_model(model_path(name), load_target(target)).files, folder / "b")
    (inputs,) = random_inputs(name, 1, seed=3)
    found: list[tuple[int, int]] = []
    for compiler in compilers:
        options = BuildOptions(compiler=None if compiler == "gcc" else compiler)
        result = run_bundle(folder / "b", inputs, on="qemu", repeat=2, options=options)
        assert result.instructions is not None
        assert result.details.flash_bytes is not None
        found.append((result.instructions, result.details.flash_bytes))
    return found


@pytest.mark.parametrize("name", LIMITS)
def test_cortex_m55(name: str, tmp_path: Path) -> None:
    limits = LIMITS[name]
    (gcc, gcc_bytes), (clang, clang_bytes) = measured(name, "mps3-an547", tmp_path, ("gcc", "clang"))
    assert min(gcc, clang) <= limits.m55 < limits.peer_m55
    assert gcc <= MOST_OF_GCC * limits.m55
    assert min(gcc_bytes, clang_bytes) <= limits.flash_kb * 1000


@pytest.mark.parametrize("name", FLOATS)
def test_floats_on_cortex_m55(name: str, tmp_path: Path) -> None:
    found = measured(name, "mps3-an547", tmp_path, ("gcc", "clang"))
    assert all(instructions <= FLOATS[name] for instructions, _ in found), found


@pytest.mark.parametrize("name", LIMITS)
def test_cortex_m4(name: str, tmp_path: Path) -> None:
    limits = LIMITS[name]
    ((gcc, _),) = measured(name, "mps2-an386", tmp_path, ("gcc",))
    assert gcc <= limits.m4 < limits.peer_m4


# Eight tenths of what TensorFlow Lite Micro with CMSIS-NN takes on the M4: 419,662, 393,134, 538,510, 8,471,193 and
# 18,485,507 (docs/benchmarks.md).
NETWORKS_M4 = {
    "DTLN, first half, int16": 335_000,
    "GRU denoiser (RNNoise), int16": 314_000,
    "GRU denoiser (RNNoise), float32": 430_000,
    "TCN, 98x40, int16": 6_770_000,
    "TCN, 98x40, float32": 14_780_000,
}


@pytest.mark.parametrize("name", NETWORKS_M4)
def test_networks_of_words_and_floats_on_cortex_m4(name: str, tmp_path: Path) -> None:
    network = NETWORKS[name]
    path = tmp_path / "m.tflite"
    path.write_bytes(network.content)
    folder = bytewright.compile(path, target="mps2-an386", **network.options).write(tmp_path / "b")
    for compiler in (None, "clang"):
        options = BuildOptions(compiler=compiler)
        found = run_batch(folder, network.given[:2], on="qemu", keep_state=True, options=options)
        for outputs, wanted in zip(found.outputs, network.wanted, strict=False):
            assert differences(outputs, wanted) == []
        assert found.instructions is not None
        assert found.instructions[-1] <= NETWORKS_M4[name], compiler


# Of single operators: instructions by gcc. Before they had vectors, they took 126,666, 81,074, 533,762 and 441,998 on
# the Cortex-M55; 4,203,458, 4,397,048 and 712,308 on the M4.
SINGLE = {
    "mps3-an547": {"add": 40_000, "mul": 30_000, "average_pool": 400_000, "max_pool": 200_000}
    | {"squared_difference": 36_000, "mean": 8_000},
    "mps2-an386": {
        "average_pool": 1_500_000,
        "max_pool": 800_000,
        "mean": 20_000,
        "fully_connected": 240_000,
    },
}


# Of activations of 16 bits, with weights of int8: instructions on the Cortex-M55 over those of int8.
MOST_OF_BYTES = {"depthwise": 1.6, "conv2d_1": 2.1, "fully_connected": 2.1, "add": 1.2, "mul": 1.2}


def costs_of(model: Path, target: str, folder: Path) -> dict[str, int]:
    """Instructions of each kernel."""
    write_bundle(compile_model(model, load_target(target)).files, folder)
    profile = profile_bundle(folder, seed=1, on="qemu")
    return {profile.plan.steps[line.step].kernel: line.cost.amount for line in profile.steps}


def costs_with(name: str, costs: dict[str, int]) -> int:
    """The sum over kernels whose names have a part."""
    return sum(cost for kernel, cost in costs.items() if name in kernel)


@pytest.mark.parametrize("target", SINGLE)
def test_single_operators(target: str, tmp_path: Path) -> None:
    costs = costs_of(write_single_operators(tmp_path), target, tmp_path / "b")
    found = {name: costs_with(name, costs) for name in SINGLE[target]}
    assert all(found[name] <= most for name, most in SINGLE[target].items()), found


def test_operators_of_16_bits(tmp_path: Path) -> None:
    """Of the same sizes as those of bytes."""
    halves, of_bytes = (
        costs_of(write_operators_of(element, tmp_path), "mps3-an547", tmp_path / f"bundle of {element}")
        for element in ("int16", "int8")
    )
    found = {name: costs_with(name, halves) / costs_with(name, of_bytes) for name in MOST_OF_BYTES}
    assert all(0 < found[name] <= most for name, most in MOST_OF_BYTES.items()), found
