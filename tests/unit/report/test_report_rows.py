"""Reports of bundles by rows: what segments saved, why a ring has so many rows, and why a tensor is none."""

from __future__ import annotations

from bytewright.options import Rows
from bytewright.record.buffers import PlannedBuffer
from bytewright.report.find_named import find_named
from bytewright.report.rows import row_reasons
from support.row_bundle import compiled_by_rows, row_plan
from support.views import comparison_document, explanation_lines, report_document, report_text


def lines(name: str) -> str:
    return "\n".join(explanation_lines(row_plan(), name))


def test_a_ring_says_why_it_has_so_many_rows() -> None:
    assert "rows     3 of 18 rows, 2016 B if it were whole: step 1 needs 3 at once" in lines("conv2d_0/out")
    assert "rows     1 of 9 rows, 504 B if it were whole: step 3 needs 1 at once" in lines(
        "depthwise_conv2d_2/out"
    )


def test_a_ring_says_which_step_comes_late() -> None:
    """The step with the sum needs row r when the window of the other one is a row further."""
    plan = row_plan()
    ring = plan.buffers["depthwise_conv2d_1/out"]
    assert row_reasons(plan, ring) == ["3 of 9 rows, 504 B if it were whole: step 2 needs 3 at once"]


def test_a_whole_tensor_says_why_it_is_no_ring() -> None:
    assert "whole: step 6 reads it, outside of the segment of steps 0 to 5 that makes it" in lines(
        "conv2d_6/out"
    )
    assert "whole: the application reads all of it" in lines("mean_7/out")


def test_a_plan_without_segments_says_nothing_of_rows() -> None:
    plan = compiled_by_rows(rows=Rows.OFF).plan
    assert [reason for buffer in plan.buffers.values() for reason in row_reasons(plan, buffer)] == []
    assert report_document(plan)["segments"] == []


def test_the_report_shows_segments_and_rings() -> None:
    text = report_text(row_plan(), width=200)
    (segment,) = row_plan().segments
    (row,) = (line.split() for line in text.splitlines() if line.strip().startswith("0..5"))
    assert row == ["0..5", "6", "72", "5", str(segment.alive_bytes), str(segment.plain_alive_bytes)]
    assert f"{row_plan().plain_workspace_bytes} B without rows" in text
    assert "3 of 18" in text


def test_the_report_as_json_has_segments_and_rings() -> None:
    document = report_document(row_plan())
    (segment,) = document["segments"]
    assert (segment["steps"], segment["num_calls"]) == ([0, 5], 72)
    assert 0 < segment["alive_bytes"] < segment["plain_alive_bytes"]
    kept = {b["name"]: b["rows"] for b in document["buffers"] if b["rows"]}
    assert kept["conv2d_0/out"] == "3 of 18"


def test_a_comparison_says_which_tensors_became_rings() -> None:
    whole, by_rows = compiled_by_rows(rows=Rows.OFF).plan, row_plan()
    changes = {c["name"]: c["growth_bytes"] for c in comparison_document(whole, by_rows)["buffers"]}
    assert changes["conv2d_0/out"] == 336 - 2016


def test_a_buffer_is_known_by_what_the_models_file_calls_its_tensor() -> None:
    plan = row_plan()
    named = [buffer for buffer in plan.buffers.values() if buffer.tensor not in (None, *plan.buffers)]
    tensors = [buffer.tensor for buffer in named]
    named = [buffer for buffer in named if tensors.count(buffer.tensor) == 1]
    assert named
    for buffer in named:
        assert buffer.tensor is not None
        found = find_named(plan, buffer.tensor)
        assert isinstance(found, PlannedBuffer)
        assert found.tensor == buffer.tensor
