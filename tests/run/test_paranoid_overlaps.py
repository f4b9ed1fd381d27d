"""Bundles whose buffers overlap within a step: they hold, and one that overlaps too far is found."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from bytewright.bundle.write import write_bundle
from bytewright.compiler.pipeline import compile_model
from bytewright.diagnostics import CompileError
from bytewright.execute.paranoid import run_paranoid
from bytewright.execute.watch import watch_plan
from bytewright.inspect.check import check_bundle
from bytewright.ir.analyses.overlap import Distances, overlap_distances
from bytewright.options import Options, Rows
from bytewright.record.plan_file import read_plan
from bytewright.storage import find_overlaps
from bytewright.target.registry import load_target
from support import shared_models as models
from support.compilers import QUICK
from support.digits_bundle import write_document


def bundle(folder: Path) -> Path:
    """kws, every tensor whole."""
    compiled = compile_model(models.model_path(models.KWS), load_target("host"), Options(rows=Rows.OFF))
    write_bundle(compiled.files, folder)
    return folder


def test_overlaps_hold(tmp_path: Path) -> None:
    folder = bundle(tmp_path / "kws")
    plan = read_plan(folder)
    shared = [plan.shared_bytes(p.source, p.output) for step in plan.steps for p in step.overlaps]
    assert sum(num_bytes > 7000 for num_bytes in shared) >= 6
    assert {step.runs_down for step in plan.steps} == {True, False}
    check_bundle(folder)
    run_paranoid(folder, options=QUICK, seed=5)


def test_a_contract_that_is_too_generous_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One byte is as much as what alignment makes of it: 16. The plan is proved against the wrong contract."""

    def generous(*arguments: object) -> Distances | None:
        found = overlap_distances(*arguments)  # type: ignore[arg-type]
        return found and Distances(
            max(found.below_bytes - 1, 0) // 16 * 16, max(found.above_bytes - 1, 0) // 16 * 16
        )

    monkeypatch.setattr(find_overlaps, "overlap_distances", generous)
    folder = bundle(tmp_path / "kws")
    check_bundle(folder)
    with pytest.raises(CompileError) as caught:
        run_paranoid(folder, options=QUICK, seed=5)
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code == "BW404"
    assert "depends on bytes that two buffers share within a step" in diagnostic.notes[0]


def test_check_refuses_offsets_nearer_than_the_contract(tmp_path: Path) -> None:
    folder = bundle(tmp_path / "kws")
    document = json.loads((folder / "plan.json").read_text(encoding="utf-8"))
    step = next(s for s in document["steps"] if s.get("runs_down"))
    (pair,) = step["overlaps"]
    offset = {b["name"]: b["place"]["offset"] for b in document["buffers"] if "offset" in b["place"]}
    pair["above_bytes"] = offset[pair["output"]] - offset[pair["source"]] + 1
    write_document(folder, document)
    with pytest.raises(CompileError) as caught:
        check_bundle(folder)
    notes = [note for d in caught.value.diagnostics for note in d.notes]
    assert any("nearer than their contract allows" in note for note in notes)


@pytest.mark.parametrize(
    ("member", "value", "text"),
    [
        ("source", "conv2d_0/weights", "which is no buffer that it only reads"),
        ("output", "average_pool2d_9/out", "does not only write it"),
    ],
)
def test_check_refuses_pairs_that_cannot_overlap(tmp_path: Path, member: str, value: str, text: str) -> None:
    folder = bundle(tmp_path / "kws")
    document = json.loads((folder / "plan.json").read_text(encoding="utf-8"))
    step = next(s for s in document["steps"] if s.get("runs_down"))
    step["overlaps"][0][member] = value
    write_document(folder, document)
    with pytest.raises(CompileError) as caught:
        check_bundle(folder)
    assert any(text in note for d in caught.value.diagnostics for note in d.notes)


@pytest.mark.parametrize("nearer_bytes", [0, 1])
def test_offsets_nearer_than_the_contract_are_found_at_the_step(tmp_path: Path, nearer_bytes: int) -> None:
    """Each look between the steps finds them, so a board does too, where no build without overlaps is compared."""
    folder = bundle(tmp_path / "kws")
    plan = read_plan(folder)
    step = next(s for s in plan.steps if s.runs_down)
    (pair,) = step.overlaps
    source, output = plan.buffers[pair.source], plan.buffers[pair.output]
    assert source.place.offset is not None
    distance = (output.place.offset or 0) - source.place.offset
    assert distance >= pair.above_bytes
    changed = replace(pair, above_bytes=distance + nearer_bytes)
    steps = tuple(replace(s, overlaps=(changed,)) if s is step else s for s in plan.steps)
    watch = watch_plan(replace(plan, steps=steps), 64)
    first = output.place.offset or 0
    end = source.place.offset + source.size_bytes
    found = [r for r in watch.still if r.step == step.index and r.buffer == source.name]
    assert found[-1].end == (end if nearer_bytes else first)
