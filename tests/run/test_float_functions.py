"""Float functions over all of float32 against LiteRT: every exponent, both signs, denormals, infinities, no number."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bytewright.bundle.write import write_bundle
from bytewright.compiler.pipeline import compile_model
from bytewright.execute.run import run_bundle
from bytewright.ops.float_functions import Sigmoid
from bytewright.target import load_target
from support.reference import run_litert
from support.tiers import THOROUGH
from tflite_writer import ModelBuilder

pytestmark = pytest.mark.run

RELATIVE = 1e-5
SMALLEST = float(np.finfo(np.float32).smallest_subnormal)
NUM_POINTS = 200_000 if THOROUGH else 20_000
Array = np.ndarray[Any, Any]


def points() -> Array:
    """The same number of every exponent, densely where the functions bend, and every special value."""
    generator = np.random.RandomState(3)
    bits = generator.randint(0, 1 << 32, NUM_POINTS // 2, dtype=np.uint64).astype(np.uint32)
    bends = generator.uniform(-110, 110, NUM_POINTS // 2).astype(np.float32)
    borders = np.array(
        [-9, -3, 0, 3, 9, 16.619047, 88.72, -87.33, -88.72, -89, -103.9, -104.5, -126], np.float32
    )
    near = np.concatenate(
        [borders, np.nextafter(borders, np.float32(-1e9)), np.nextafter(borders, np.float32(1e9))]
    )
    special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, SMALLEST, -SMALLEST, 3.4e38, -3.4e38], np.float32)
    return np.concatenate([bits.view(np.float32), bends, near, special])


def model(kind: str, shape: tuple[int, ...], **options: object) -> bytes:
    builder = ModelBuilder()
    x, y = (builder.tensor(name, list(shape), "float32") for name in ("x", "y"))
    builder.operator(kind, [x], [y], **options)
    return builder.build([x], [y])


def compiled_outputs(content: bytes, values: Array, folder: Path) -> Array:
    (folder / "m.tflite").write_bytes(content)
    write_bundle(compile_model(folder / "m.tflite", load_target("host")).files, folder / "out")
    (result,) = run_bundle(folder / "out", [values]).outputs
    return result


def assert_close(found: Array, wanted: Array, values: Array) -> None:
    """1e-5 relative; of denormals two units, times the value as GELU multiplies by it; infinities and NaN alike."""
    with np.errstate(all="ignore"):
        difference = np.abs(found.astype(np.float64) - wanted.astype(np.float64))
        units = 2 * SMALLEST * np.clip(np.nan_to_num(np.abs(values.astype(np.float64))), 1, 32)
        allowed = np.maximum(np.abs(wanted.astype(np.float64)) * RELATIVE, units)
        fine = (found == wanted) | (np.isnan(found) & np.isnan(wanted)) | (difference <= allowed)
    wrong = np.flatnonzero(~fine)
    shown = [(values.flat[i], found.flat[i], wanted.flat[i]) for i in wrong[:5]]
    assert not wrong.size, f"{wrong.size} of {values.size} differ: {shown}"


OTHERS = ("EXP", "LOG", "ELU", "SQRT", "RSQRT", "SIN", "COS", "GELU", "ROUND", "SIGN")


@pytest.mark.parametrize("kind", ["LOGISTIC", "TANH", "HARD_SWISH"])
def test_functions_of_one_value(tmp_path: Path, kind: str) -> None:
    values = points()[None, :]
    content = model(kind, values.shape)
    (wanted,) = run_litert(content, [values])
    assert_close(compiled_outputs(content, values, tmp_path), wanted, values)
    if kind == "LOGISTIC":  # below -9 the reference takes exp(x), which is 1e-4 more at most
        with np.errstate(all="ignore"):
            (found,) = Sigmoid().evaluate((values,))
        is_exact = ~(values < -9)
        assert_close(found[is_exact], wanted[is_exact], values[is_exact])


def test_other_functions_of_one_value(tmp_path: Path) -> None:
    """All in one model, which compiles once."""
    values = points()[None, :]
    builder = ModelBuilder()
    x, *results = (builder.tensor(name, values.shape, "float32") for name in ("x", *OTHERS))
    for kind, result in zip(OTHERS, results, strict=True):
        builder.operator(kind, [x], [result])
    content = builder.build([x], results)
    (tmp_path / "m.tflite").write_bytes(content)
    write_bundle(compile_model(tmp_path / "m.tflite", load_target("host")).files, tmp_path / "out")
    found = run_bundle(tmp_path / "out", [values]).outputs
    for own, wanted in zip(found, run_litert(content, [values]), strict=True):
        assert_close(own, wanted, values)


@pytest.mark.parametrize("beta", [1.0, 0.01, 30.0])
def test_softmax(tmp_path: Path, beta: float) -> None:
    generator = np.random.RandomState(5)
    spread = generator.choice(np.array([1e-3, 1, 30, 90, 1e4, 1e30]), (NUM_POINTS // 8, 1))
    values = (generator.uniform(-1, 1, (NUM_POINTS // 8, 8)) * spread).astype(np.float32)
    content = model("SOFTMAX", values.shape, beta=beta)
    (wanted,) = run_litert(content, [values])
    assert_close(compiled_outputs(content, values, tmp_path), wanted, values)


@pytest.mark.parametrize(("value", "expected"), [(-9.1, 1.116658e-4), (-89.0, 2.227364e-39), (-104.5, 0.0)])
def test_logistic_far_below_zero(tmp_path: Path, value: float, expected: float) -> None:
    """By hand: exp(x), which the reference takes from -9 on."""
    values = np.array([[value]], np.float32)
    (found,) = compiled_outputs(model("LOGISTIC", (1, 1)), values, tmp_path).flat
    assert found == pytest.approx(expected, rel=1e-5, abs=2 * SMALLEST)


@pytest.mark.parametrize("half_pixel_centers", [False, True])
def test_bilinear_resizes_are_the_reference_s(half_pixel_centers: bool, tmp_path: Path) -> None:
    """To the last bit: networks put a dozen of them one after the other, and subtract their results."""
    builder = ModelBuilder()
    x, y = builder.tensor("x", (1, 9, 7, 5), "float32"), builder.tensor("y", (1, 20, 13, 5), "float32")
    size = builder.constant("size", np.array((20, 13), np.int32))
    builder.operator("RESIZE_BILINEAR", [x, size], [y], half_pixel_centers=half_pixel_centers)
    content = builder.build([x], [y])
    values = np.random.default_rng(6).normal(size=(1, 9, 7, 5)).astype(np.float32)
    found = compiled_outputs(content, values, tmp_path)
    np.testing.assert_array_equal(found, run_litert(content, [values])[0])
