"""The networks of the table in docs/benchmarks.md equal their references, run after run, states and all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

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

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "benchmarks.md"
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


def _cells() -> dict[str, list[str]]:
    """The rows of the document behind title and type."""
    _, rest = DOCUMENT.read_text(encoding="utf-8").split("<!-- networks: begin -->")
    lines = rest.split("<!-- networks: end -->")[0].strip().splitlines()[2:]
    rows = [[cell.strip(" *") for cell in line.strip("| ").split("|")] for line in lines]
    return {f"{row[0]}, {row[1]}": row[2:] for row in rows}


def test_the_document_says_what_it_must() -> None:
    """All networks are there, none differs from its witness, and RAM is at most 0.6 of the arena."""
    cells = _cells()
    assert list(cells) == list(NETWORKS)
    shares = {name: float(row[3].split("(")[1].rstrip(")*")) for name, row in cells.items() if row[2] != "-"}
    assert {row[1] for row in cells.values()} == {"0"}
    assert {name for name, share in shares.items() if share > 0.6} == set()
    assert len(cells) - len(shares) == 1  # which TensorFlow Lite Micro with CMSIS-NN does not run


@pytest.mark.parametrize("name", some(NETWORKS, every=9))
def test_ram_is_what_the_document_says(name: str, tmp_path: Path) -> None:
    network = NETWORKS[name]
    (tmp_path / "net.tflite").write_bytes(network.content)
    options: dict[str, Any] = {**network.options, "io": "workspace"}
    plan = bytewright.compile(tmp_path / "net.tflite", target="mps3-an547", **options).plan
    stated = int(_cells()[name][3].split()[0].replace(",", ""))
    assert plan.ram_bytes <= 1.02 * stated


def test_the_table_has_the_networks_that_were_asked_for() -> None:
    missing = [kind for kind in KINDS if not any(name.startswith(kind) for name in NETWORKS)]
    assert missing == []
