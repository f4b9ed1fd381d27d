"""Paranoid runs of networks by rows: rows are poisoned as they die, and schedules broken on purpose are caught.

A ring that is a row too small, and a step that comes a call too late, are built into the network itself: plan and C
agree about them, and the plan is as good as any to whoever does not go through its loops.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bytewright.bundle.write import write_bundle
from bytewright.compiler import pipeline, store
from bytewright.diagnostics import CompileError
from bytewright.execute.paranoid import run_paranoid
from bytewright.execute.watch_rows import watched_rows
from bytewright.ir.verify import admit
from bytewright.options import Options, Rows
from bytewright.storage.rows.choose_segments import choose_segments
from bytewright.storage.rows.segment import Segment
from bytewright.target.registry import load_target
from support.compilers import QUICK
from support.digits_bundle import change_file
from support.part_models import stacked_twice
from support.ring_program import CLAMPED, GUARDED, TURNS, ring_program
from support.row_bundle import row_model, row_plan, write_by_rows

RING = "depthwise_conv2d_1/out"


def notes(folder: Path) -> str:
    with pytest.raises(CompileError) as caught:
        run_paranoid(folder, options=QUICK)
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code == "BW404"
    return "\n".join(diagnostic.notes)


def test_a_network_by_rows_keeps_to_its_plan(tmp_path: Path) -> None:
    assert run_paranoid(write_by_rows(tmp_path / "b"), options=QUICK).num_steps == 7


def test_rows_that_other_steps_wrote_before_are_there(tmp_path: Path) -> None:
    path = tmp_path / "model.tflite"
    path.write_bytes(stacked_twice().content)
    made = pipeline.compile_model(path, load_target("host"), Options(rows=Rows.MAX))
    whole = [s["writes"] for s in made.document["steps"] if s.get("rows") and "rest" in s["kernel"]]
    assert whole == [
        ["concatenation_4/out"]
    ]  # by rows, into a buffer of which another step has written a part
    write_bundle(made.files, tmp_path / "b")
    assert run_paranoid(tmp_path / "b", options=QUICK).num_steps == 10


def test_rows_die_one_by_one() -> None:
    """Each row of a ring is poisoned once, after all of it was before the first call."""
    plan = row_plan()
    ring = plan.buffers[RING]
    assert ring.ring is not None
    assert ring.place.offset is not None
    row_bytes = ring.size_bytes // ring.ring.num_rows
    dead = [entry for entry in watched_rows(plan, ["ram"]) if entry.buffer == RING and not entry.is_still]
    assert (dead[0].first, dead[0].end) == (ring.place.offset, ring.place.offset + ring.size_bytes)
    assert {entry.end - entry.first for entry in dead[1:]} == {row_bytes}
    slots = [(entry.first - ring.place.offset) // row_bytes for entry in dead[1:]]
    assert slots == [row % 3 for row in range(len(slots))]
    assert len(slots) == 9


Damage = Callable[[Segment], Segment]


def broken(folder: Path, damage: Damage, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The network with segments that were damaged before they became loops."""

    def damaged(*given: Any, **options: Any) -> tuple[Segment, ...]:
        return tuple(map(damage, choose_segments(*given, **options)))

    monkeypatch.setattr(store, "choose_segments", damaged)
    folder.mkdir()
    (folder / "rows.tflite").write_bytes(row_model())
    write_bundle(pipeline.compile_model(folder / "rows.tflite", load_target("host")).files, folder / "b")
    return folder / "b"


def smaller(name: str) -> Damage:
    return lambda segment: replace(segment, rings={**segment.rings, name: segment.rings[name] - 1})


def later(step: int) -> Damage:
    def delayed(segment: Segment) -> Segment:
        leads = [lead - (number == step) for number, lead in enumerate(segment.schedule.leads)]
        return replace(segment, schedule=replace(segment.schedule, leads=tuple(leads)))

    return delayed


@pytest.mark.parametrize("name", ["conv2d_0/out", RING, "add_4/out"])
def test_a_ring_that_is_a_row_too_small_is_caught(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    found = notes(broken(tmp_path / "m", smaller(name), monkeypatch))
    assert f"of '{name}' lies, which is still read" in found


@pytest.mark.parametrize("step", range(5))
def test_a_step_that_comes_a_call_too_late_is_caught(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    found = notes(broken(tmp_path / "m", later(step), monkeypatch))
    # Its consumer reads what is not made yet, and what it reads itself is made over.
    expected = "depends on bytes that the plan calls dead" if step == 0 else "lies, which is still read"
    assert expected in found


def test_a_kernel_that_goes_through_a_ring_by_another_number_is_caught(tmp_path: Path) -> None:
    folder = write_by_rows(tmp_path / "b")
    change_file(folder, "src/rows_kernels.c", "% 3", "% 2")
    assert "(rows_conv2d_0_rows) changed ram+" in notes(folder)


def test_a_loop_that_ends_too_early_is_caught(tmp_path: Path) -> None:
    folder = write_by_rows(tmp_path / "b")
    change_file(folder, "src/rows.c", "turn < 6", "turn < 5")
    assert "does not make the calls that the plan has" in notes(folder)


@pytest.mark.parametrize("clamped", [False, True])
def test_a_ring_by_hand_that_is_a_row_too_small_is_caught(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clamped: bool
) -> None:
    """Which a compile refuses: here nobody looks. Rows that are kept within numbers are rows of a window."""
    monkeypatch.setattr(admit, "row_violations", lambda _: ())
    text = ring_program(", ring=0:2", body=CLAMPED if clamped else GUARDED)
    (tmp_path / "m.bw").write_text(text, encoding="utf-8")
    write_bundle(pipeline.compile_model(tmp_path / "m.bw", load_target("host")).files, tmp_path / "b")
    assert "of 't' lies, which is still read" in notes(tmp_path / "b")


def test_rows_of_a_ring_by_hand_are_watched_again_in_every_loop(tmp_path: Path) -> None:
    text = ring_program(turns=f"for again : i32 in 0 .. 2 {{ {TURNS} }}", body=CLAMPED)
    (tmp_path / "m.bw").write_text(text, encoding="utf-8")
    write_bundle(pipeline.compile_model(tmp_path / "m.bw", load_target("host")).files, tmp_path / "b")
    assert run_paranoid(tmp_path / "b", options=QUICK).num_steps == 2
