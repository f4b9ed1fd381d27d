"""Tensors that lost channels: each channel is compared with its own, whatever others look like."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from bytewright.compiler.pipeline import compile_model
from bytewright.execute.step_tensors import WrittenTensor
from bytewright.target.registry import load_target
from bytewright.validate.layers import compare_tensors
from support.narrowed_models import written

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
