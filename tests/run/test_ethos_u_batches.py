"""Compiled bundles for an Ethos-U, over many inputs: generated C in one process, the NPU in another.

A softmax of random inputs is mostly one class, so the models are run without it too. BYTEWRIGHT_TESTS=thorough takes
100 inputs each.
"""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pytest

from bytewright.execute.run import run_batch
from support.ethos_u import (
    ADD_ON_CPU,
    ONLY,
    SHARED,
    U55,
    U65,
    assert_equal_to_tflm,
    needs_vela,
    npu_bundle,
    vela,
    vela_operators,
)
from support.reference import TfLiteMicro
from support.shared_models import INT8, RESNET8, WITH_SOFTMAX, model_content, random_inputs
from support.tiers import THOROUGH, covering, some

pytestmark = needs_vela
NUM_INPUTS = 100 if THOROUGH else 2


def assert_batch_equals_tflm(name: str, folder: Path, accelerator: str, mode: str, *options: str) -> None:
    """Compares all outputs for random inputs, of the model and of what stands before its softmax."""
    for logits in (False, True) if name in WITH_SOFTMAX else (False,):
        original = model_content(name, logits)
        own = folder / ("logits" if logits else "whole")
        own.mkdir()
        directory = npu_bundle(own, vela(original, accelerator, mode, *options), accelerator)
        inputs = random_inputs(name, NUM_INPUTS, seed=17)
        reference = TfLiteMicro(original)
        expected = [reference.run(*arrays)[0].ravel() for arrays in inputs]
        found = run_batch(directory, inputs).outputs
        assert len(found) == NUM_INPUTS
        assert_equal_to_tflm([output for (output,) in found], expected)
        if logits or name not in WITH_SOFTMAX:
            assert len({right.tobytes() for right in expected}) > NUM_INPUTS // 4


@pytest.mark.parametrize(("name", "accelerator", "mode"), covering(INT8, [U55, U65], [SHARED, ONLY]))
def test_a_bundle_equals_tflm(name: str, accelerator: str, mode: str, tmp_path: Path) -> None:
    assert_batch_equals_tflm(name, tmp_path, accelerator, mode)


@pytest.mark.parametrize(("accelerator", "mode"), some(product([U55, U65], [SHARED, ONLY])))
def test_a_bundle_of_both_processors_equals_tflm(accelerator: str, mode: str, tmp_path: Path) -> None:
    assert len(vela_operators(vela(model_content(RESNET8), accelerator, mode, *ADD_ON_CPU))) == 4
    assert_batch_equals_tflm(RESNET8, tmp_path, accelerator, mode, *ADD_ON_CPU)
