"""Pools and means: which of them are in lanes of vectors, and what is said of the others."""

from __future__ import annotations

import pytest

import bytewright
from support.digits_bundle import DIGITS
from support.random_networks import random_reduction

TARGETS = {
    "mps3-an547": "mve.pool2d",
    "aarch64": "neon.pool2d",
    "x86-64-v3": "avx2.pool2d",
    "x86-64-v4-vnni": "avx512vnni.pool2d",
    "mps2-an386": "",
    "host": "",
}


@pytest.mark.parametrize("target", TARGETS)
def test_a_pool_of_32_channels(target: str) -> None:
    model = bytewright.compile(DIGITS, target=target)
    (step,) = [step for step in model.plan.steps if "average_pool2d" in step.kernel]
    assert step.template == TARGETS[target]
    assert step.remarks == ()


def test_what_has_no_vectors_says_why(tmp_path) -> None:  # type: ignore[no-untyped-def]
    remarks: set[str] = set()
    templates: set[str] = set()
    for number in range(40):
        path = tmp_path / f"m{number}.tflite"
        path.write_bytes(random_reduction(number, ("int8", "float32")[number % 2]).content)
        for step in bytewright.compile(path, target="mps3-an547").plan.steps:
            remarks |= {remark for remark in step.remarks if "mve.pool2d" in remark or "mve.mean" in remark}
            templates.add(step.template)
    assert {"mve.pool2d", "mve.mean"} <= templates
    assert "not by mve.pool2d: there is no vector for + of f32" in remarks
    assert "not by mve.mean: it is over the last axis" in remarks
    assert "not by mve.pool2d: it has 3 channels, fewer than the 4 of a vector" in remarks
