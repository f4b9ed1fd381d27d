"""What grew between two bundles, and what each memory holds."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from bytewright import compile as compile_model
from bytewright.cli.main import bytewright
from bytewright.record.buffers import Place, PlaceKind, PlannedStack
from bytewright.record.plan import Plan
from bytewright.report.by_memory import use_by_memory
from bytewright.report.compare import Change, Side, compare, comparison_view
from bytewright.show.as_html import html_text
from bytewright.show.view import Beside
from support.digits_bundle import digits_plan
from support.entry_programs import WAKE
from support.views import comparison_document, text_of


def _grown(plan: Plan) -> Plan:
    """The plan with its first tensor 100 bytes larger, the second elsewhere, the third gone."""
    names = [name for name, buffer in plan.buffers.items() if buffer.role == "tensor"][:3]
    buffers = dict(plan.buffers)
    first, second = buffers[names[0]], buffers[names[1]]
    buffers[names[0]] = dataclasses.replace(first, size_bytes=first.size_bytes + 100)
    buffers[names[1]] = dataclasses.replace(second, place=Place(PlaceKind.PLANNED, "elsewhere", 0))
    del buffers[names[2]]
    return dataclasses.replace(plan, buffers=buffers, plan_hash="1" * 64)


def test_buffers_that_grew_moved_and_went() -> None:
    old = digits_plan()
    new = _grown(old)
    comparison = compare(Side(old), Side(new))
    names = [name for name, buffer in old.buffers.items() if buffer.role == "tensor"][:3]
    changes = {change.name: change for change in comparison.buffers}
    assert set(changes) == {names[0], names[2]}
    assert changes[names[0]].growth_bytes == 100
    gone = old.buffers[names[2]].size_bytes
    assert changes[names[2]] == Change(names[2], gone, None)
    assert changes[names[2]].growth_bytes == -gone
    assert [name for name, _, _ in comparison.moved] == [names[1]]
    assert [change.name for change in comparison.buffers] == sorted(
        changes, key=lambda name: -abs(changes[name].growth_bytes)
    )


def test_equal_plans_differ_in_nothing() -> None:
    plan = digits_plan()
    comparison = compare(Side(plan), Side(plan))
    assert not any(change.has_changed for change in comparison.totals)
    assert (comparison.pools, comparison.memories, comparison.buffers, comparison.moved) == ((), (), (), ())
    assert text_of(comparison_view(Side(plan, "a"), Side(plan, "b"))) == "a and b: the plans are the same\n"


def test_a_memory_holds_pools_stack_and_reserve() -> None:
    plan = digits_plan()
    uses = {use.name: use for use in use_by_memory(plan)}
    context = plan.hardware.contexts[0]
    stack = plan.stack[context.name]
    in_memory = uses[context.memory]
    assert in_memory.stack_bytes == stack.size_bytes + context.stack_reserve_bytes
    pools = [pool for pool in plan.pools.values() if pool.memory == context.memory]
    assert in_memory.workspace_bytes == sum(p.used_bytes for p in pools if p.role == "workspace")
    assert in_memory.size_bytes is not None
    assert in_memory.free_bytes == in_memory.size_bytes - in_memory.used_bytes
    grown = dataclasses.replace(
        plan, stack={context.name: PlannedStack(64, stack.size_bytes + 64, None, ("main",))}
    )
    assert {use.name: use for use in use_by_memory(grown)}[context.memory].stack_bytes == (
        in_memory.stack_bytes + 64
    )


@pytest.mark.parametrize("as_json", [False, True])
def test_the_command_compares_two_bundles(tmp_path: Path, as_json: bool) -> None:
    model = Path(__file__).parents[3] / "examples" / "digits" / "digits.tflite"
    runner = CliRunner()
    for name, options in (("old", []), ("new", ["--workspace", "isram"])):
        arguments = ["compile", str(model), "-o", str(tmp_path / name), "--target", "mps3-an547", *options]
        assert runner.invoke(bytewright, arguments).exit_code == 0
    flags = ["--json"] if as_json else []
    result = runner.invoke(bytewright, ["report", str(tmp_path / "old"), str(tmp_path / "new"), *flags])
    assert result.exit_code == 0
    if as_json:
        document = json.loads(result.stdout)
        moved = {row["new"] for row in document["moved"]}
        assert moved == {"planned isram"}
        assert document["totals"][0]["growth_bytes"] == 0
    else:
        assert "Buffers that moved" in result.stdout
        assert "planned isram" in result.stdout


def test_the_document_has_every_change() -> None:
    old = digits_plan()
    document = comparison_document(old, _grown(old))
    assert {"totals", "pools", "memories", "buffers", "moved"} == set(document)


def test_pools_of_both_are_drawn_on_one_scale() -> None:
    old = digits_plan()
    new = _grown(old)
    pairs = [each for each in comparison_view(Side(old), Side(new)).sections if isinstance(each, Beside)]
    assert [pair.old.name for pair in pairs if pair.old is not None] == [
        pool.name for pool in old.workspaces if pool.used_bytes
    ]
    for pair in pairs:
        assert pair.old is not None
        assert pair.new is not None
        ends = [block.end for chart in (pair.old, pair.new) for block in chart.blocks]
        assert pair.old.scale == pair.new.scale == max(ends)
        assert [band.name for band in pair.old.bands] == [band.name for band in pair.new.bands]
    assert not any(isinstance(each, Beside) for each in comparison_view(Side(old), Side(old)).sections)


def test_what_survives_runs_is_drawn_beside_what_does_not_have_it(tmp_path: Path) -> None:
    (tmp_path / "wake.bw").write_text(WAKE, encoding="utf-8")
    wake = compile_model(tmp_path / "wake.bw").plan
    view = comparison_view(Side(digits_plan()), Side(wake))
    pairs = [each for each in view.sections if isinstance(each, Beside)]
    (kept,) = [pair for pair in pairs if pair.new is not None and pair.new.name == "kept"]
    assert kept.old is None
    assert kept.new is not None
    assert {block.name for block in kept.new.blocks} == {"ring", "pushed"}
    assert "nothing lies in it" in html_text(view)
