"""Pools and means: which of them are in lanes of vectors, and what is said of the others."""

from __future__ import annotations

from pathlib import Path

import pytest

import bytewright
from support.digits_bundle import DIGITS
from support.random_networks import random_convolution, random_reduction
from support.tiers import THOROUGH

TARGETS = {
    "mps3-an547": "mve.pool2d_of_bytes",
    "aarch64": "neon.pool2d_of_bytes",
    "rv64gcv": "rvv.pool2d_of_bytes",
    "x86-64-v3": "avx2.pool2d_of_bytes",
    "x86-64-v4-vnni": "avx512vnni.pool2d_of_bytes",
    "mps2-an386": "dsp.pool2d_of_bytes",
    "host": "",
}


@pytest.mark.parametrize("target", TARGETS)
def test_a_pool_of_32_channels(target: str) -> None:
    model = bytewright.compile(DIGITS, target=target)
    (step,) = [step for step in model.plan.steps if "average_pool2d" in step.kernel]
    assert step.template == TARGETS[target]
    assert step.remarks == ()


DEPTHWISE = {
    ("mps3-an547", "int8"): {"mve.depthwise_conv2d", "mve.depthwise_lanes", ""},
    ("aarch64", "int8"): {"neon.depthwise_taps", ""},
    ("aarch64", "float32"): {"neon.depthwise_lanes", ""},
    ("rv64gcv", "int8"): {"rvv.depthwise_taps", ""},
    ("rv64gcv", "float32"): {"rvv.depthwise_lanes", ""},
    ("x86-64-v3", "int8"): {"avx2.depthwise_lanes", ""},
    ("x86-64-v3", "float32"): {"avx2.depthwise_lanes", ""},
    ("x86-64-v4-vnni", "int8"): {"avx512vnni.depthwise_i8", ""},
    ("x86-64-v4-vnni", "float32"): {"avx512vnni.depthwise_lanes", "avx2.depthwise_lanes", ""},
}


@pytest.mark.parametrize(("target", "dtype"), DEPTHWISE)
def test_depthwise_convolutions(tmp_path: Path, target: str, dtype: str) -> None:
    """The best template for each: those of the set itself before those of its lanes."""
    found: set[str] = set()
    for model in (random_convolution(number, dtype) for number in range(60)):
        if found == DEPTHWISE[target, dtype] and not THOROUGH:
            break
        if "DEPTHWISE" not in model.description.upper():
            continue
        path = tmp_path / "m.tflite"
        path.write_bytes(model.content)
        steps = bytewright.compile(path, target=target).plan.steps
        found |= {step.template for step in steps if "depthwise" in step.kernel}
    assert found == DEPTHWISE[target, dtype]


def test_what_has_no_vectors_says_why(tmp_path: Path) -> None:
    remarks: set[str] = set()
    templates: set[str] = set()
    for number in range(40):
        path = tmp_path / f"m{number}.tflite"
        path.write_bytes(random_reduction(number, ("int8", "float32")[number % 2]).content)
        for step in bytewright.compile(path, target="mps3-an547").plan.steps:
            remarks |= {remark for remark in step.remarks if "mve.pool2d" in remark or "mve.mean" in remark}
            templates.add(step.template)
    assert {"mve.pool2d", "mve.mean"} <= templates
    assert "not by mve.pool2d: there is no vector of f32" in remarks
    assert "not by mve.mean: it is over the last axis" in remarks
    assert "not by mve.pool2d: it has 3 channels, fewer than the 4 of a vector" in remarks
