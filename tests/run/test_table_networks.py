"""The networks of the table in docs/benchmarks.md equal their references, run after run, states and all."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import bytewright
from bytewright.execute.run import run_batch
from bytewright.inspect.check import check_bundle
from support.against_reference import differences
from support.compilers import QUICK
from support.table_networks import NETWORKS
from support.tiers import some

pytestmark = pytest.mark.run

KINDS = (
    "MobileNetV3", "EfficientNet-Lite", "YOLO", "U-Net", "DTLN", "keyword transformer", "GRU denoiser", "TCN", "DS-CNN",
    "micro_speech", "wake word",
)  # fmt: skip


@pytest.mark.parametrize("name", some(NETWORKS, every=6))
def test_a_network_equals_its_reference(name: str, tmp_path: Path) -> None:
    network = NETWORKS[name]
    (tmp_path / "net.tflite").write_bytes(network.content)
    model = bytewright.compile(tmp_path / "net.tflite", **network.options)
    folder = model.write(tmp_path / "bundle")
    check_bundle(folder)
    found = run_batch(folder, network.given, keep_state=True, options=QUICK).outputs
    assert len(network.wanted) == network.num_runs
    for run, (own, wanted) in enumerate(zip(found, network.wanted, strict=True)):
        assert differences(own, wanted) == [], run


@pytest.mark.parametrize("name", some(NETWORKS, every=6))
def test_values_are_alive_to_the_end(name: str) -> None:
    """Where nearly all outputs are one number, a wrong one would not be seen."""
    wanted = NETWORKS[name].wanted
    assert max(len(np.unique([outputs[port] for outputs in wanted])) for port in range(len(wanted[0]))) >= 15


def test_the_table_has_the_networks_that_were_asked_for() -> None:
    missing = [kind for kind in KINDS if not any(name.startswith(kind) for name in NETWORKS)]
    assert missing == []
