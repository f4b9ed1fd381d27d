"""Tensors that lost channels: each channel is compared with its own, whatever others look like."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from bytewright.compiler.pipeline import compile_model
from bytewright.execute.step_tensors import WrittenTensor
from bytewright.target.registry import load_target
from bytewright.validate.layers import compare_tensors
from tflite_writer import ModelBuilder

REFERENCE = np.arange(16, dtype=np.int8).reshape(1, 2, 2, 4)


def model(path: Path) -> Path:
    """x [1,2,2,1] -> 4 channels, of which the first and the third have weights of zero -> 1 channel."""
    builder = ModelBuilder()
    x = builder.tensor("x", (1, 2, 2, 1), "int8", scale=0.5, zero_point=3)
    inner = builder.tensor("inner", (1, 2, 2, 4), "int8", scale=0.5, zero_point=-4)
    y = builder.tensor("y", (1, 2, 2, 1), "int8", scale=2.0, zero_point=1)
    shapes = {"w1": [0, 20, 0, 40], "w2": [1, 2, 3, 4]}
    first = builder.constant(
        "w1", np.array(shapes["w1"], np.int8).reshape(4, 1, 1, 1), scale=0.25, zero_point=0
    )
    second = builder.constant(
        "w2", np.array(shapes["w2"], np.int8).reshape(1, 1, 1, 4), scale=0.25, zero_point=0
    )
    bias = builder.constant("b1", np.zeros(4, np.int32), scale=0.125, zero_point=0)
    bias2 = builder.constant("b2", np.zeros(1, np.int32), scale=0.125, zero_point=0)
    options = {"padding": "VALID", "stride_h": 1, "stride_w": 1}
    builder.operator("CONV_2D", [x, first, bias], [inner], **options)
    builder.operator("CONV_2D", [inner, second, bias2], [y], **options)
    path.write_bytes(builder.build([x], [y]))
    return path


def test_a_channel_that_equals_one_that_was_removed_is_wrong(tmp_path: Path) -> None:
    plan = compile_model(model(tmp_path / "m.tflite"), load_target("generic-cortex-m")).plan
    buffer = plan.buffers["conv2d_0/out"]
    assert (buffer.shape, buffer.shape_before, buffer.kept_channels) == ((1, 2, 2, 2), (1, 2, 2, 4), (1, 3))
    found = {}
    for channels in ((1, 3), (0, 3), (2, 3)):
        written = WrittenTensor("inner", 0, buffer, (REFERENCE[..., list(channels)].tobytes(),))
        (compared,) = compare_tensors(plan, [written], {"inner": REFERENCE})
        np.testing.assert_array_equal(compared.reference, REFERENCE[..., [1, 3]])
        found[channels] = compared.num_different
    assert found == {(1, 3): 0, (0, 3): 4, (2, 3): 4}
