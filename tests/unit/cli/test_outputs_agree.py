"""What `check`, `report`, `explain` and pages say of one bundle: steps in the same words, and one count of buffers.

In which steps a buffer is alive, and which use it, is worked out here from plan.json, step by step.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from bytewright.bundle.write import write_bundle
from bytewright.cli.main import bytewright
from bytewright.compiler.pipeline import Compiled, compile_model
from bytewright.record.plan_file import PLAN_FILE
from bytewright.target.registry import load_target
from support import device_memory, two_devices
from support.digits_bundle import DIGITS
from support.pages import Page
from support.part_models import branches
from support.plan_bundles import BUNDLES
from support.views import explanation_document, explanation_lines


def with_parts(folder: Path) -> Compiled:
    model = folder / "branches.tflite"
    model.write_bytes(branches().content)
    return compile_model(model, load_target("host"))


MADE: Mapping[str, Callable[[Path], Compiled]] = {
    **{name: lambda _, make=make: make() for name, make in BUNDLES.items()},
    "parts": with_parts,
    "memory of a device": lambda _: two_devices.compiled(device_memory.PROGRAM, device_memory.TARGET),
}


def invoke(*arguments: object) -> Result:
    return CliRunner().invoke(bytewright, [str(argument) for argument in arguments])


def document_of(*arguments: object) -> dict[str, Any]:
    result = invoke(*arguments, "--json")
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


def used_in(buffer: Mapping[str, Any], steps: list[dict[str, Any]]) -> list[int]:
    if buffer["place"]["kind"] == "stack":
        return [step["index"] for step in steps if step["kernel"] == buffer["name"].partition("/")[0]]
    return [s["index"] for s in steps if buffer["name"] in (*s["reads"], *s["writes"], *s["scratch"])]


def alive_in(buffer: Mapping[str, Any], steps: list[dict[str, Any]]) -> list[int] | None:
    """The first step that needs its bytes, and the last one."""
    if buffer["live"] is None:
        return None
    first, end = buffer["live"]
    alive = [step["index"] for step in steps if step["ticks"][0] < end and first < step["ticks"][1]]
    return [alive[0], alive[-1]] if alive else None


def words(steps: list[int]) -> str:
    """`steps 0, 2..5`."""
    if not steps:
        return "in no step"
    runs: list[list[int]] = []
    for step in steps:
        if runs and step == runs[-1][-1] + 1:
            runs[-1].append(step)
        else:
            runs.append([step])
    assert len(runs) <= 4
    texts = [str(run[0]) if len(run) == 1 else f"{run[0]}..{run[-1]}" for run in runs]
    return f"in step{'s' if len(steps) > 1 else ''} {', '.join(texts)}"


def life(buffer: Mapping[str, Any], alive: list[int] | None) -> str:
    if buffer["live"] is None:
        return "inside the kernel, for one call"
    if buffer["place"]["kind"] == "constant" or buffer["role"] == "state":
        return "always"
    return words(list(range(alive[0], alive[1] + 1)) if alive else [])


@pytest.mark.parametrize("kind", MADE)
def test_steps_mean_the_same_in_every_output(kind: str, tmp_path: Path) -> None:
    compiled, folder = MADE[kind](tmp_path), tmp_path / "out"
    write_bundle(compiled.files, folder)
    plan = json.loads((folder / PLAN_FILE).read_text("utf-8"))
    buffers = {buffer["name"]: buffer for buffer in plan["buffers"]}
    uses = {name: used_in(buffer, plan["steps"]) for name, buffer in buffers.items()}
    lives = {name: alive_in(buffer, plan["steps"]) for name, buffer in buffers.items()}
    said = {name: (life(buffers[name], lives[name]), words(uses[name])) for name in buffers}
    reported = document_of("report", folder)["buffers"]
    assert {b["name"]: (b["alive_steps"], b["used_steps"]) for b in reported} == {
        name: (lives[name], uses[name]) for name in buffers
    }
    text = invoke("report", folder).stdout
    table = text[text.index("\nLargest buffers") : text.index("\nSteps")]
    rows = {name: line for line in table.splitlines() for name in line.split()[:1] if name in buffers}
    assert len(rows) == min(10, len(buffers))
    for name, line in rows.items():
        assert re.search(rf" {re.escape(said[name][0])} +{re.escape(said[name][1])} *$", line), line
    for name, buffer in buffers.items():
        explained = explanation_document(compiled.plan, name)
        assert (explained["alive_steps"], explained["used_steps"]) == (lives[name], uses[name])
        lines = [line.strip() for line in explanation_lines(compiled.plan, name)]
        assert any(re.fullmatch(rf"alive    {re.escape(said[name][0])}(, ticks .*)?", line) for line in lines)
        assert f"used     {said[name][1]}" in lines
        if uses[name] and buffer["place"]["kind"] != "stack":
            assert (buffer["first_step"], buffer["last_step"]) == (uses[name][0], uses[name][-1])
    page = tmp_path / "page.html"
    assert invoke("report", folder, "--html", page).exit_code == 0
    drawn = 0
    for name, summary, *known in (row for chart in Page(page.read_text("utf-8")).known() for row in chart):
        if name in buffers and buffers[name]["place"]["kind"] == "planned":
            drawn += 1
            assert summary.endswith(f", alive {said[name][0]}")
            assert known[known.index("used") + 1] == said[name][1]
    assert drawn >= sum(b["place"]["kind"] == "planned" and b["role"] != "state" for b in buffers.values())


@pytest.mark.parametrize("kind", MADE)
def test_commands_count_buffers_alike(kind: str, tmp_path: Path) -> None:
    compiled, folder = MADE[kind](tmp_path), tmp_path / "out"
    write_bundle(compiled.files, folder)
    kinds = [b["place"]["kind"] for b in json.loads(compiled.files[PLAN_FILE])["buffers"]]
    num_in_pools = sum(kind in ("planned", "constant") for kind in kinds)
    counted = f"{num_in_pools} in pools"
    counted += f" and {len(kinds) - num_in_pools} elsewhere" if num_in_pools < len(kinds) else ""
    page = tmp_path / "page.html"
    assert invoke("report", folder, "--html", page).exit_code == 0
    assert f"  buffers, {counted}: in bounds" in invoke("check", folder).stdout
    assert f"Largest buffers ({min(10, len(kinds))} of {counted})" in invoke("report", folder).stdout
    assert any(f" of {counted})" in text for text in Page(page.read_text("utf-8")).texts)
    assert f"it has buffers, {counted}, such as" in invoke("explain", folder, "@@").stderr
    assert {document_of(command, folder)["num_buffers"] for command in ("check", "report")} == {num_in_pools}


def test_a_refusal_has_the_steps_of_the_report(tmp_path: Path) -> None:
    """What is alive at the peak has the same steps where it does not fit, and where it does."""
    options = ("--target", "mps3-an547", "--rows", "off")
    assert invoke("compile", DIGITS, "-o", tmp_path / "whole", *options).exit_code == 0
    reported = {b["name"]: b for b in document_of("report", tmp_path / "whole")["buffers"]}
    refused = invoke("compile", DIGITS, "-o", tmp_path / "out", *options, "--workspace", "dtcm=1KiB")
    named = re.findall(r"'([^']+)' \(\d+ B, alive (in [^()]*), used (in [^()]*)\)", refused.stderr)
    assert len(named) >= 3
    for name, alive, used in named:
        first, last = reported[name]["alive_steps"]
        assert (alive, used) == (words(list(range(first, last + 1))), words(reported[name]["used_steps"]))
