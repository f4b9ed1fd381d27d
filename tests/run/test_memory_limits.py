"""Bytes of workspace and planned stack that models may need at most, and what a compile may take."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from bytewright.compiler.pipeline import compile_model
from bytewright.ir.border import Io
from bytewright.options import Options
from bytewright.record.plan import Plan
from bytewright.target.model import Role
from bytewright.target.registry import load_target
from mobilenet_v2 import mobilenet_v2
from support.shared_models import AD01, KWS, RESNET8, VWW, model_path
from support.tiers import covering

# The bounds of plans with overlaps and rows, with room for kernels' scratch and rounding.
LIMITS = {
    (KWS, Io.CALLER): 8_700,
    (VWW, Io.CALLER): 14_700,
    (RESNET8, Io.CALLER): 16_400,
    (AD01, Io.CALLER): 256,
    (KWS, Io.WORKSPACE): 8_700,
    (VWW, Io.WORKSPACE): 30_400,
    (RESNET8, Io.WORKSPACE): 19_400,
    (AD01, Io.WORKSPACE): 832,
}
# What lies under the windows of a pair of pixels, in 16 bits each, where instructions multiply them.
WIDENED = {KWS: 400, VWW: 0, RESNET8: 800, AD01: 1_200}
MOBILENETS = {("1.0", 224): 147_000, ("0.35", 144): 34_500}
MOST_SECONDS = 20.0


def needed_bytes(plan: Plan) -> int:
    return plan.workspace_bytes + sum(stack.planned_bytes for stack in plan.stack.values())


@pytest.mark.parametrize(
    ("name", "io", "target"),
    covering([KWS, VWW, RESNET8, AD01], [Io.CALLER, Io.WORKSPACE], ["host", "mps3-an547", "mps2-an386"]),
)
def test_models_keep_their_limits(name: str, io: Io, target: str) -> None:
    plan = compile_model(model_path(name), load_target(target), Options(io=io)).plan
    assert needed_bytes(plan) <= LIMITS[name, io] + (0 if target == "host" else WIDENED[name])
    assert all(pool.optimal for pool in plan.pools_of(Role.WORKSPACE))


@pytest.mark.slow
@pytest.mark.parametrize(("width", "size"), MOBILENETS)
def test_mobilenets_keep_their_limits_in_seconds(width: str, size: int, tmp_path: Path) -> None:
    path = tmp_path / "mobilenet.tflite"
    path.write_bytes(mobilenet_v2(width, size))
    began = time.process_time()
    plan = compile_model(path, load_target("host")).plan
    assert time.process_time() - began < MOST_SECONDS
    assert needed_bytes(plan) <= MOBILENETS[width, size]
