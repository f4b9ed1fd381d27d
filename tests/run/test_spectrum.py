"""Customs of TensorFlow Lite Micro over spectra, run after run against it; and what is refused of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import bytewright
from bytewright.diagnostics import CompileError
from bytewright.execute.run import run_batch
from bytewright.frontends.tflite.importer import import_content
from bytewright.ir import Module
from bytewright.ops.arithmetic.numerics import Numerics
from support.audio_models import (
    auto_scale,
    energy,
    filter_bank,
    fixed_log,
    framer,
    gain_control,
    gains,
    spectral_subtraction,
    square_root,
    stacker,
    transform,
)
from support.c_program import WARNINGS
from support.compilers import host_build
from support.evaluate.evaluate_graph import evaluate_graph
from support.reference import TfLiteMicro
from support.tiers import some

pytestmark = pytest.mark.run

Array = NDArray[Any]
RUNS = 12


def drawn(shape: tuple[int, ...], dtype: np.dtype[Any], turn: int, random: np.random.Generator) -> Array:
    """Silence, both ends of the type, steps between them, and numbers of all sizes."""
    if dtype.kind == "f":
        return (random.normal(0, 1, shape) * 10.0 ** random.integers(-3, 4)).astype(dtype)
    bounds = np.iinfo(dtype)
    anything = random.integers(bounds.min, bounds.max, shape, dtype, endpoint=True)
    match turn:
        case 0:
            return np.zeros(shape, dtype)
        case 1 | 2:
            return np.full(shape, bounds.max if turn == 1 else bounds.min, dtype)
        case 3:
            return np.where(anything >> 3 & 1, bounds.max, bounds.min).astype(dtype)
        case _:
            sizes = random.integers(0, bounds.bits, shape if turn % 2 else ()).astype(dtype)
            return np.asarray(anything >> sizes, dtype)


def sequence(content: bytes, runs: int = RUNS) -> tuple[Module, list[list[Array]], list[list[Array]]]:
    """The model, inputs of runs one after the other, and what the witness gives."""
    module = import_content(content, "spectrum.tflite", numerics=Numerics.TFLM)
    random, model = np.random.default_rng(len(content)), TfLiteMicro(content)
    inputs: list[list[Array]] = []
    for turn in range(runs):
        own = [
            drawn(port.type.fixed_shape, np.dtype(port.type.dtype.numpy), turn, random)
            for port in module.inputs
        ]
        if module.inputs[-1].type.shape == ():
            own[-1] = np.array(turn % 16, np.int32)
        inputs.append(own)
    return module, inputs, [model.run(*own) for own in inputs]


def evaluated(module: Module, inputs: Sequence[list[Array]]) -> list[list[Array]]:
    """What the module's graph gives, run after run."""
    states: list[Array] = [np.zeros(p.type.fixed_shape, p.type.dtype.numpy) for p in module.state]
    found: list[list[Array]] = []
    for own in inputs:
        results = evaluate_graph(module, [*own, *states])
        count = len(results) - len(states)
        found.append(list(results[:count]))
        states = list(results[count:])
    return found


def assert_alike(found: Sequence[list[Array]], wanted: Sequence[list[Array]]) -> None:
    for own, expected in zip(found, wanted, strict=True):
        for each, value in zip(own, expected, strict=True):
            np.testing.assert_array_equal(each, value, strict=True)


def assert_alike_where_valid(found: Sequence[list[Array]], wanted: Sequence[list[Array]]) -> None:
    """What is gathered is of use where the second result says so."""
    assert any(valid for _, valid in wanted)
    for (own, own_valid), (expected, valid) in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(own_valid, valid, strict=True)
        if valid:
            np.testing.assert_array_equal(own, expected, strict=True)


def run_in_c(content: bytes, inputs: Sequence[list[Array]], folder: Path) -> list[list[Array]]:
    """Run after run, with sanitizers."""
    path = folder / "spectrum.tflite"
    path.write_bytes(content)
    bytewright.compile(path, numerics="tflm").write(folder / "bundle")
    options = host_build(flags=WARNINGS, sanitize=True)
    found = run_batch(folder / "bundle", inputs, keep_state=True, options=options).outputs
    return [list(results) for results in found]


SAMPLES = {
    "int16, 480 of 512": lambda: transform((480,), 512, "int16"),
    "int16, rows of 8": lambda: transform((3, 2, 8), 8, "int16"),
    "int32, 16": lambda: transform((16,), 16, "int32"),
    "float32, 5 of 32": lambda: transform((2, 5), 32, "float32"),
    "int16, 4": lambda: transform((4,), 4, "int16"),
    "int16, 480": lambda: transform((480,), 480, "int16"),
    "int16, back from 64": lambda: transform((66,), 64, "int16", is_inverse=True),
    "int32, back from 30": lambda: transform((2, 32), 30, "int32", is_inverse=True),
    "float32, back from 40": lambda: transform((42,), 40, "float32", is_inverse=True),
    "scale": lambda: auto_scale(5),
    "scale of one": lambda: auto_scale(1),
    "scale of many": lambda: auto_scale(61),
    "energy": lambda: energy(34, 3, 15),
    "energy of all": lambda: energy(6, 0, 3),
    "filters": lambda: filter_bank(20, (3, 0, 7, 1, 5), (2, 0, 4, 19, 9)),
    "greatest filters": lambda: filter_bank(9, (9, 9), (0, 0), np.full(18, 2**15 - 1)),
    "roots": lambda: square_root(23),
    "subtraction": lambda: spectral_subtraction(9),
    "subtraction, clamped": lambda: spectral_subtraction(8, clamping=1, smoothing_bits=3),
    "subtraction, great factors": lambda: spectral_subtraction(
        3, smoothing=2**30, one_minus_smoothing=2**30 - 1, smoothing_bits=31, min_signal_remaining=2**31 - 1
    ),
    "gains": lambda: gain_control(40, gains(), 6),
    "gains, no shift": lambda: gain_control(7, np.append(gains(0.4, 2.0, 13), 7), 0),
    "logarithm": lambda: fixed_log(64, 64, 3),
    "logarithm, great scale": lambda: fixed_log(33, 2**31 - 1, 0),
    "logarithm, great shift": lambda: fixed_log(9, 1600, 31),
}


GATHERED: dict[str, Callable[[], bytes]] = {
    "frames, filled": lambda: framer((4,), 11, 4, is_filled=True),
    "frames": lambda: framer((4,), 11, 4, is_filled=False),
    "frames of whole steps": lambda: framer((3,), 9, 3, is_filled=False),
    "several frames of several rows": lambda: framer((2, 3, 12), 7, 3, is_filled=False),
    "several frames, filled": lambda: framer((2, 10), 5, 2, is_filled=True),
    "frames of less than a step": lambda: framer((10,), 3, 5, is_filled=False),
    "frames of a step": lambda: framer((5,), 5, 5, is_filled=True),
    "stacks": lambda: stacker(4, 3, 0, 1),
    "stacks, step 2": lambda: stacker(3, 1, 2, 2),
    "stacks of later frames": lambda: stacker(5, 0, 3, 4),
    "stacks of one": lambda: stacker(2, 0, 0, 1),
    "stacks, long before": lambda: stacker(2, 4, 1, 6),
}


@pytest.mark.parametrize("name", GATHERED)
def test_what_is_gathered_equals_micro_where_it_is_valid(name: str) -> None:
    module, inputs, wanted = sequence(GATHERED[name]())
    assert_alike_where_valid(evaluated(module, inputs), wanted)


@pytest.mark.parametrize("name", some(GATHERED, every=3))
def test_the_c_gathers_what_micro_does(name: str, tmp_path: Path) -> None:
    content = GATHERED[name]()
    _, inputs, wanted = sequence(content)
    assert_alike_where_valid(run_in_c(content, inputs, tmp_path), wanted)


@pytest.mark.parametrize("name", SAMPLES)
def test_an_operator_equals_micro_run_after_run(name: str) -> None:
    module, inputs, wanted = sequence(SAMPLES[name]())
    assert_alike(evaluated(module, inputs), wanted)


@pytest.mark.parametrize("name", some(SAMPLES, every=3, always=("int16, 480 of 512",)))
def test_the_c_equals_micro_run_after_run(name: str, tmp_path: Path) -> None:
    content = SAMPLES[name]()
    _, inputs, wanted = sequence(content)
    assert_alike(run_in_c(content, inputs, tmp_path), wanted)


LENGTHS = [
    2 * 2**a * 3**b * 5**c
    for a in range(12)
    for b in range(7)
    for c in range(5)
    if 1 < 2**a * 3**b * 5**c <= 2048
]


@pytest.mark.parametrize("length", some(sorted(LENGTHS), every=16, always=(512,)))
@pytest.mark.parametrize("dtype", ["int16", "int32", "float32"])
def test_transforms_of_every_length_equal_micro(length: int, dtype: str) -> None:
    for is_inverse in (False, True):
        shape = (length + 2,) if is_inverse else (length,)
        module, inputs, wanted = sequence(transform(shape, length, dtype, is_inverse=is_inverse), 6)
        assert_alike(evaluated(module, inputs), wanted)


NEGATIVE = np.array([-1, 2, 3, 4])
REFUSED: dict[str, Callable[[], bytes]] = {
    "a transform of 2 samples, which is no even number from 4 to 32768": lambda: transform((2,), 2, "int16"),
    "a transform of 15 samples": lambda: transform((15,), 15, "int16"),
    "a transform of 32770 samples": lambda: transform((4,), 32770, "int16"),
    "7 complex numbers, which is no product of 4, 2, 3, 5": lambda: transform((14,), 14, "int16"),
    "17 samples in a transform of 16": lambda: transform((17,), 16, "float32"),
    "a spectrum of 16 elements for 16 samples": lambda: transform((16,), 16, "int32", is_inverse=True),
    "the numbers 2 to 6 of 5": lambda: energy(10, 2, 6),
    "the numbers 3 to 2 of 5": lambda: energy(10, 3, 2),
    "weights below zero": lambda: filter_bank(9, (1, 3), (0, 0), NEGATIVE),
    "bands that leave 9 energies or 4 weights": lambda: filter_bank(9, (1, 3), (0, 7), NEGATIVE + 1),
    "bands that leave 9 energies or 3 weights": lambda: filter_bank(9, (4, -1), (0, 1), np.arange(3)),
    r"bands \[3, 3, 3\] of 3 channels": lambda: filter_bank(9, (1, 1, 1), (0, 0, 0), num_channels=3),
    "shifts that leave the numbers": lambda: spectral_subtraction(2, smoothing_bits=32),
    "factors of 2147483649 in all": lambda: spectral_subtraction(
        2, smoothing=2**30 + 1, one_minus_smoothing=2**30
    ),
    "2 signals of 3 channels": lambda: spectral_subtraction(2, num_channels=3),
    "a gain of -3, below zero": lambda: gain_control(2, np.append(-3, gains()[1:]), 6),
    "124 gains, where the greatest estimate has its at 124": lambda: gain_control(2, gains()[:124], 6),
    "a shift of 63": lambda: gain_control(2, gains(), 63),
    "an output scale of -1": lambda: fixed_log(2, -1, 3),
    "10 samples in steps of 4": lambda: framer((10,), 4, 4, is_filled=False),
    "10 samples in steps of 0": lambda: framer((10,), 4, 0, is_filled=False),
    "33 frames a run, beyond 32": lambda: framer((33,), 4, 1, is_filled=False),
    "frames of 3, filled before a step of 5": lambda: framer((5,), 3, 5, is_filled=True),
    r"an input \[3\] of 4 channels": lambda: stacker(3, 1, 1, 1, num_channels=4),
    "a step of 4 in stacks of 1 frames, one and 1": lambda: stacker(3, 1, 1, 4),
    "a step of 0 in stacks": lambda: stacker(3, 1, 1, 0),
    "a shift of 32": lambda: fixed_log(2, 64, 32),
}


@pytest.mark.parametrize("message", REFUSED)
def test_what_is_not_computed_as_micro_does_is_refused(message: str) -> None:
    with pytest.raises(CompileError, match=message) as caught:
        import_content(REFUSED[message](), "spectrum.tflite")
    assert {found.code for found in caught.value.diagnostics} == {"BW107"}
