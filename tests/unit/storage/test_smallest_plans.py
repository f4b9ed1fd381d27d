"""What comes of `--rows auto` beside `off` and `max`, each compiled: it needs no more, and its figures are theirs."""

from __future__ import annotations

from pathlib import Path

import pytest

from bytewright.compiler.pipeline import plan_model
from bytewright.options import Options, Rows
from bytewright.record.plan import Plan
from bytewright.target.registry import load_target
from support.spatial_networks import spatial_model, spatial_network
from support.tiers import some

# Where the cut of the least sum has a plan of 8,520 B and that of `max` one of 8,408 B.
FEWER_BYTES = 101


def plans(seed: int, folder: Path) -> dict[Rows, Plan]:
    network = spatial_network(seed, rises=seed % 2 == 0, num_operators=(6, 22), extents=(8, 40))
    return plans_of(network.written(None), folder)


def plans_of(content: bytes, folder: Path) -> dict[Rows, Plan]:
    path = folder / "m.tflite"
    path.write_bytes(content)
    target = load_target("host")
    return {rows: plan_model(path, target, Options(rows=rows)).plan for rows in Rows}


@pytest.mark.parametrize("seed", some(range(90, 130), every=8, always=[FEWER_BYTES]))
def test_auto_needs_no_more_than_off_and_max(seed: int, tmp_path: Path) -> None:
    found = plans(seed, tmp_path)
    auto, off, most = (found[rows] for rows in (Rows.AUTO, Rows.OFF, Rows.MAX))
    assert auto.workspace_bytes <= min(off.workspace_bytes, most.workspace_bytes)
    assert bool(auto.segments) == (auto.workspace_bytes < off.workspace_bytes)
    for plan in (auto, most):
        assert plan.plain_workspace_bytes == (off.workspace_bytes if plan.segments else None)


def test_the_cut_of_max_is_taken_where_its_plan_is_smaller(tmp_path: Path) -> None:
    found = plans(FEWER_BYTES, tmp_path)
    assert found[Rows.AUTO].workspace_bytes < found[Rows.OFF].workspace_bytes


@pytest.mark.parametrize("seed", [60_061, 60_078])
def test_what_is_said_of_no_rows_is_what_comes_of_asking_for_none(seed: int, tmp_path: Path) -> None:
    """Parts that do not pay with rows pay without."""
    found = plans_of(spatial_model(seed).content, tmp_path)
    assert found[Rows.AUTO].segments
    assert found[Rows.AUTO].plain_workspace_bytes == found[Rows.OFF].workspace_bytes
    assert found[Rows.MAX].plain_workspace_bytes == found[Rows.OFF].workspace_bytes
