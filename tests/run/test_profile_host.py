"""Profiles on the host: a clock between the kernels, and the plan's bytes."""

from __future__ import annotations

import json
import shutil
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import bytewright
from bytewright.cli.main import bytewright as command
from bytewright.diagnostics import CompileError
from bytewright.execute.options import MOST_PROFILED
from bytewright.execute.profile.measure import profile_bundle
from bytewright.execute.profile.result import total_of
from bytewright.execute.profile.trace import trace_document
from support import cost_program, flow_program, two_devices
from support.digits_bundle import DIGITS

pytestmark = pytest.mark.run


@pytest.fixture(scope="module")
def digits(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return bytewright.compile(DIGITS, target="mps3-an547").write(tmp_path_factory.mktemp("digits") / "bundle")


@pytest.fixture(scope="module")
def flow(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return cost_program.write_flow(tmp_path_factory.mktemp("flow"), "host")


def refusal(folder: Path, **how: int) -> str:
    with pytest.raises(CompileError) as caught:
        profile_bundle(folder, **how)
    return str(caught.value)


def test_all_lines_make_up_the_total(digits: Path) -> None:
    profile = profile_bundle(digits, seed=3, repeat=9)
    (device,) = profile.devices
    assert total_of([device.entry, *(line.cost for line in profile.steps)]) == device.total
    assert all(line.cost.amount > 0 and (line.median or 0) > 0 for line in profile.steps)
    assert profile.num_repetitions == 9
    assert profile.cycles(device.total) is None


def test_steps_take_as_long_as_they_have_to_do(tmp_path: Path) -> None:
    """The same kernel with 20, 200 and 2000 turns."""
    found = []
    for times in (20, 200, 2000):
        profile = profile_bundle(cost_program.write_alone(tmp_path / str(times), "host", times))
        found.append(profile.steps[0].median or 0)
    assert 3 * found[0] < found[1] < found[2] / 3


def test_calls_in_loops_and_branches(flow: Path) -> None:
    x = cost_program.cost_input(2)
    profile = profile_bundle(flow, [x], repeat=5)
    assert [line.num_calls for line in profile.steps] == [cost_program.TURNS, 2, cost_program.TURNS - 2, 1]
    idle = profile_bundle(flow, [cost_program.cost_input(0)], repeat=5).steps[cost_program.THEN]
    assert (idle.num_calls, idle.cost.amount, idle.cost.read_bytes) == (0, 0, {})
    # A turn has all of its buffers again.
    last, otherwise = profile.steps[cost_program.LAST], profile.steps[cost_program.OTHERWISE]
    assert last.cost.read_bytes == {"ram": 64}
    assert otherwise.cost.read_bytes == {"(caller)": 64 * (cost_program.TURNS - 2)}


def test_bytes_are_those_of_the_plan(digits: Path) -> None:
    profile = profile_bundle(digits, repeat=1)
    first = profile.steps[0].cost
    assert dict(first.written_bytes) == {"dtcm": 8 * 8 * 16}  # all rows of the tensor, of which 3 are kept
    assert first.read_bytes["(caller)"] == 64
    assert profile.steps[0].num_calls > 1


def test_other_devices_have_their_steps(tmp_path: Path) -> None:
    folder = two_devices.bundle(tmp_path / "flow", flow_program.FLOW)
    x = np.zeros(32, np.int16)
    profile = profile_bundle(folder, [x], repeat=3)
    assert {line.device for line in profile.steps} == {"cpu", "core1", "dma"}
    trace = trace_document(profile)
    lanes = [e["args"]["name"] for e in trace["traceEvents"] if e["name"] == "thread_name"]
    assert set(lanes) == {"cpu", "core1", "dma"}


def test_a_trace_is_the_inference_that_is_shown(digits: Path, tmp_path: Path) -> None:
    arguments = ["profile", str(digits), "--repeat", "5", "--json", "--trace", str(tmp_path / "t.json")]
    result = CliRunner().invoke(command, arguments)
    assert result.exit_code == 0, result.output
    document, trace = json.loads(result.stdout), json.loads((tmp_path / "t.json").read_text())
    events = [event for event in trace["traceEvents"] if event["ph"] == "X"]
    (total,) = document["total"]
    assert sum(event["dur"] for event in events) == pytest.approx(total["microseconds"])
    assert all(a["ts"] + a["dur"] <= b["ts"] + 1e-6 for a, b in pairwise(events))
    for line in document["steps"]:
        own = [event for event in events if event["args"].get("step") == line["step"]]
        assert len(own) == line["calls"]
        assert sum(event["dur"] for event in own) == pytest.approx(line["microseconds"])
    assert trace["otherData"]["unit"] == document["unit"] == "microseconds"
    lines = [*document["steps"], *document["entry"]]
    assert sum(line["microseconds"] for line in lines) == pytest.approx(total["microseconds"])


def test_a_compiled_model_is_profiled() -> None:
    profile = bytewright.compile(DIGITS).profile(np.zeros((1, 8, 8, 1), np.int8), repeat=3)
    assert (profile.on, profile.board, len(profile.steps)) == ("host", None, 7)
    assert repr(profile).endswith(" nanoseconds on host)")
    assert "Time by step" in (profile._repr_html_() or "")


def test_an_older_bundle_without_places_for_a_clock(tmp_path: Path) -> None:
    folder = cost_program.write_alone(tmp_path / "alone", "host", 2)
    source = folder / "src" / "costs.c"
    lines = source.read_text().splitlines(keepends=True)
    source.write_text("".join(line for line in lines if not line.startswith("    COSTS_STEP(")))
    assert "error[BW204]" in refusal(folder)
    assert "compile the model again" in refusal(folder)


@pytest.mark.parametrize("repeat", [0, -1, MOST_PROFILED + 1])
def test_so_many_inferences_are_refused(digits: Path, repeat: int) -> None:
    assert "error[BW204]" in refusal(digits, repeat=repeat)


def test_what_is_no_bundle_and_what_is_no_input(digits: Path, tmp_path: Path) -> None:
    assert "error[BW207]" in refusal(tmp_path)
    np.save(tmp_path / "x.npy", np.zeros(3, np.int8))
    result = CliRunner().invoke(command, ["profile", str(digits), "--input", str(tmp_path / "x.npy")])
    assert (result.exit_code, "error[BW205]" in result.output) == (1, True)
    result = CliRunner().invoke(command, ["profile", str(digits), "--cflags=-fno-such-flag"])
    assert (result.exit_code, "error[BW502]" in result.output) == (5, True)
    result = CliRunner().invoke(command, ["profile", str(digits), "--repeat", "1", "--trace", str(tmp_path)])
    assert (result.exit_code, "error[BW206]" in result.output) == (1, True)
    for wrong in (["--cflags", '"'], ["--repeat", "0"], ["--seed", "1", "--input", str(tmp_path / "x.npy")]):
        assert CliRunner().invoke(command, ["profile", str(digits), *wrong]).exit_code == 2


def test_nothing_of_the_bundle_changes(digits: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(digits, tmp_path / "copy")
    before = {path: path.read_bytes() for path in sorted(copy.rglob("*")) if path.is_file()}
    profile_bundle(copy, repeat=1)
    assert {path: path.read_bytes() for path in sorted(copy.rglob("*")) if path.is_file()} == before
