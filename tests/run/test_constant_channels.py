"""Networks without their constant channels, compiled to C, equal LiteRT; and what that saves on vww."""

from __future__ import annotations

from pathlib import Path

import pytest

from bytewright.compiler.pipeline import compile_model
from bytewright.record.buffers import BufferRole
from bytewright.record.plan_file import document_of, plan_of
from bytewright.target.registry import load_target
from support.against_reference import assert_equals_reference
from support.many_models import SANITIZERS
from support.random_networks import random_network
from support.shared_models import VWW, model_path

TARGETS = ("host", "mps3-an547", "mps2-an386")
SMALL = "mps2-an386"
# The vww model: multiply-accumulates, and bytes of weights.
ALL_MACS, ALL_WEIGHT_BYTES = 7_489_664, 208_112


@pytest.mark.parametrize(("target", "first"), [("host", 0), ("mps3-an547", 100), (SMALL, 200)])
def test_networks_with_empty_channels(target: str, first: int, tmp_path: Path) -> None:
    models = [random_network(seed, "int8", size=10, has_gaps=True) for seed in range(first, first + 20)]
    assert_equals_reference(models, tmp_path, target=target, flags=("-O0", *SANITIZERS), every=4)


def test_float_networks_with_empty_channels(tmp_path: Path) -> None:
    models = [random_network(seed, "float32", size=10, has_gaps=True) for seed in range(12)]
    assert_equals_reference(models, tmp_path)


@pytest.mark.parametrize("target", TARGETS)
def test_vww_loses_half_of_its_work_and_three_quarters_of_its_weights(target: str) -> None:
    plan = compile_model(model_path(VWW), load_target(target)).plan
    assert plan.narrowed is not None
    assert (plan.narrowed.macs_before, plan.narrowed.weight_bytes_before) == (ALL_MACS, ALL_WEIGHT_BYTES)
    assert plan.narrowed.macs <= 0.51 * ALL_MACS
    assert plan.narrowed.weight_bytes <= 0.25 * ALL_WEIGHT_BYTES
    weights = [
        b for b in plan.buffers.values() if b.role is BufferRole.PARAMETER and b.name.endswith("/weights")
    ]
    # Zeros fill up what instructions take at once.
    most = 1.0 if target == "host" else 1.25
    packed_bytes = sum(buffer.size_bytes for buffer in weights)
    assert plan.narrowed.weight_bytes <= packed_bytes <= most * plan.narrowed.weight_bytes
    assert any(buffer.shape_before == (256, 1, 1, 256) for buffer in weights)
    assert plan.buffers["conv2d_16/out"].shape_before == (1, 6, 6, 128)
    assert plan_of(document_of(plan)) == plan
