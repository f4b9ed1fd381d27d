"""Convolutions of which bounds prove each output to be the zero point: what the kernel computed before is dropped."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from bytewright.compiler.pipeline import plan_model
from bytewright.compiler.run_passes import Runner
from bytewright.options import Options
from bytewright.target.registry import load_target
from support.evaluate.evaluate import Evaluator
from support.reference import LiteRt
from tflite_writer import ModelBuilder


def saturated(width: int, kernel: int, residual: bool) -> bytes:
    """RELU above an output zero point of 127 leaves one value; the scale makes the multiplier more than 1."""
    generator, builder = np.random.default_rng(width), ModelBuilder()
    shape = [1, 3, width, 8]
    x = builder.tensor("x", [1, 3, width, 3], "int8", scale=0.5, zero_point=3)
    weights = generator.integers(-127, 128, (8, kernel, kernel, 3), dtype=np.int8)
    w = builder.constant("w", weights, scale=np.full(8, 0.5, np.float32))
    bias = generator.integers(-900, 900, 8, dtype=np.int32)
    b = builder.constant("b", bias, scale=np.full(8, 0.25, np.float32))
    y = builder.tensor("y", shape, "int8", scale=0.5 if residual else 0.1, zero_point=127)
    options = {"padding": "SAME", "stride_h": 1, "stride_w": 1, "activation": "RELU"}
    builder.operator("CONV_2D", [x, w, b], [y], **options)
    if not residual:
        return builder.build(inputs=[x], outputs=[y])
    other = builder.tensor("other", shape, "int8", scale=0.3, zero_point=-5)
    z = builder.tensor("z", shape, "int8", scale=0.4, zero_point=2)
    builder.operator("ADD", [y, other], [z])
    return builder.build(inputs=[x, other], outputs=[z])


@pytest.mark.parametrize(
    ("target", "width", "kernel", "residual"),
    [
        ("mps3-an547", 1, 5, False),
        ("mps3-an547", 3, 1, True),
        ("mps3-an547", 4, 3, False),
        ("mps3-an547", 2, 11, True),
        ("mps2-an386", 3, 5, False),
        ("aarch64", 3, 5, False),
        ("x86-64-v3", 3, 5, True),
        ("x86-64-v4-vnni", 3, 5, False),
    ],
)
def test_what_was_computed_for_outputs_that_are_constant_is_dropped(
    target: str, width: int, kernel: int, residual: bool, tmp_path: Path
) -> None:
    """On a core with MVE it was an internal error: the sums were dropped, and what computes them was not."""
    content, path = saturated(width, kernel, residual), tmp_path / "m.tflite"
    path.write_bytes(content)
    found = plan_model(path, load_target(target), Options(), Runner(load_target(target), None, None))
    reference, generator = LiteRt(content), np.random.default_rng(1)
    names = [parameter.name for parameter in found.module.main.buffer_parameters]
    inputs = [
        generator.integers(-128, 128, tuple(detail["shape"]), dtype=np.int8) for detail in reference.inputs
    ]
    given = dict(zip(names, inputs, strict=False))
    (y,) = Evaluator(found.module).run(found.module.main.name, given).values()
    assert np.array_equal(np.asarray(y).ravel(), reference.run(*inputs)[0].ravel())
