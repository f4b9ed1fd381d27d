"""Element-wise operators without an anchor: which of them are vectors of the core, and what is said of the others."""

from __future__ import annotations

from pathlib import Path

import pytest

import bytewright
from support.single_operators import write_single_operators
from tflite_writer import ModelBuilder

TEMPLATES = {
    "mps3-an547": "mve.elementwise",
    "x86-64-v3": "avx2.elementwise",
    "x86-64-v4-vnni": "avx512vnni.elementwise",
    "rv64gcv": "rvv.elementwise",
    "aarch64": "",
    "mps2-an386": "",
}


@pytest.mark.parametrize("target", TEMPLATES)
def test_what_rescales_is_made_of_vectors(tmp_path: Path, target: str) -> None:
    plan = bytewright.compile(write_single_operators(tmp_path), target=target).plan
    found = {step.template for step in plan.steps if step.operators[0].split("(")[-1] in ("ADD)", "MUL)")}
    assert found == {TEMPLATES[target]}


@pytest.mark.parametrize(
    ("kind", "shape", "dtype", "reason"),
    [
        ("MAXIMUM", (1, 4, 4, 8), "int8", "C compilers make vectors of narrower elements of it"),
        ("ADD", (1, 4, 2, 4), "float32", "C compilers make vectors of narrower elements of it"),
        ("ADD", (1, 3), "int8", "fewer than 8 elements lie side by side"),
        ("DIV", (1, 4, 4, 8), "int8", "there is no vector instruction for something in it"),
    ],
)
def test_what_is_not_says_why(
    tmp_path: Path, kind: str, shape: tuple[int, ...], dtype: str, reason: str
) -> None:
    builder = ModelBuilder()
    affine = {"scale": 0.05} if dtype == "int8" else {}
    x, y, z = (builder.tensor(name, shape, dtype, **affine) for name in "xyz")
    builder.operator(kind, [x, y], [z])
    path = tmp_path / "m.tflite"
    path.write_bytes(builder.build([x, y], [z]))
    (step,) = bytewright.compile(path, target="x86-64-v3").plan.steps
    assert step.template == ""
    assert step.remarks == (f"not by avx2.elementwise: {reason}",)
