"""Tensors that lost channels: each channel is compared with its own, whatever others look like."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from bytewright.compiler.pipeline import compile_model
from bytewright.execute.step_tensors import WrittenTensor
from bytewright.ir import DType
from bytewright.target.registry import load_target
from bytewright.validate.layers import compare_tensors
from support.narrowed_models import written
from support.unsigned_networks import mobilenet

REFERENCE = np.arange(16, dtype=np.int8).reshape(1, 2, 2, 4)


def test_a_channel_that_equals_one_that_was_removed_is_wrong(tmp_path: Path) -> None:
    plan = compile_model(written(tmp_path / "m.tflite", empty=(0, 2)), load_target("generic-cortex-m")).plan
    buffer = plan.buffers["conv2d_0/out"]
    assert (buffer.shape, buffer.shape_before, buffer.kept_channels) == ((1, 2, 2, 2), (1, 2, 2, 4), (1, 3))
    found = {}
    for channels in ((1, 3), (0, 3), (2, 3)):
        own = WrittenTensor("inner", 0, buffer, (REFERENCE[..., list(channels)].tobytes(),))
        (compared,) = compare_tensors(plan, [own], {"inner": REFERENCE})
        np.testing.assert_array_equal(compared.reference, REFERENCE[..., [1, 3]])
        found[channels] = compared.num_different
    assert found == {(1, 3): 0, (0, 3): 4, (2, 3): 4}


def test_uint8_of_the_file_is_beside_int8_of_the_kernels(tmp_path: Path) -> None:
    path = tmp_path / "m.tflite"
    path.write_bytes(mobilenet().content)
    plan = compile_model(path, load_target("generic-cortex-m")).plan
    buffer = plan.buffers["conv2d_16/out"]
    assert (buffer.dtype, buffer.shape) == (DType.I8, (1, 1, 1, 10))
    reference = np.array([0, 1, 127, 128, 255, 3, 4, 5, 6, 7], np.uint8).reshape(1, 1, 1, 10)
    content = (reference.astype(np.int16) - 128).astype(np.int8).tobytes()
    (same,) = compare_tensors(plan, [WrittenTensor("x", 0, buffer, (content,))], {"x": reference})
    assert same.num_different == 0
    (raw,) = compare_tensors(plan, [WrittenTensor("x", 0, buffer, (reference.tobytes(),))], {"x": reference})
    assert raw.num_different == reference.size
