"""Profiles on boards: each instruction belongs to one step or the entry, and to the right one."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest
from click.testing import CliRunner

import bytewright
from bytewright.cli.main import bytewright as command
from bytewright.execute.build import BuildOptions
from bytewright.execute.profile.measure import profile_bundle
from bytewright.execute.profile.result import Profile, total_of
from bytewright.execute.profile.trace import trace_document
from bytewright.execute.profile.view import profile_view
from bytewright.execute.run import run_bundle
from bytewright.target.registry import load_target
from support import cost_program, shared_models
from support.digits_bundle import DIGITS
from support.pair_program import BOARD as TWO_CORES
from support.pair_program import PAIR, write_pair
from support.shared_models import BOARD, KWS, model_path
from support.views import text_of

pytestmark = pytest.mark.board


@pytest.fixture(scope="module", params=["auto", "off", "pushed"])
def digits(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example: in loops over rows, without any, and with an image that comes row by row."""
    rows, io = ("auto", "rows") if request.param == "pushed" else (request.param, "caller")
    model = bytewright.compile(DIGITS, target=BOARD, rows=rows, io=io)
    return model.write(tmp_path_factory.mktemp("digits") / "bundle")


@pytest.fixture(scope="module")
def flow(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return cost_program.write_flow(tmp_path_factory.mktemp("flow"), BOARD)


def amounts(profile: Profile) -> dict[tuple[int, str], int]:
    return {(line.step, line.device): line.cost.amount for line in profile.steps}


def kernels_of(profile: Profile) -> Counter[str]:
    """Instructions by kernel."""
    found: Counter[str] = Counter()
    for line in profile.steps:
        found[profile.plan.steps[line.step].kernel] += line.cost.amount
    return found


def test_all_steps_and_the_entry_are_what_a_run_executes(digits: Path) -> None:
    profile = profile_bundle(digits, seed=5, on="qemu")
    plain = run_bundle(digits, seed=5, on="qemu", repeat=2, measure_memory=True)
    (device,) = profile.devices
    assert device.total.amount == plain.instructions
    assert sum(line.cost.amount for line in profile.steps) + device.entry.amount == plain.instructions
    assert total_of([device.entry, *(line.cost for line in profile.steps)]) == device.total
    assert 0 < device.entry.amount < plain.instructions // 20
    # Its bytes are those of the memories, which a plain run has by arrays.
    assert sum(device.total.read_bytes.values()) == sum(t.loaded_bytes for t in plain.details.traffic)
    assert sum(device.total.written_bytes.values()) == sum(t.stored_bytes for t in plain.details.traffic)


def test_steps_are_as_expensive_as_their_functions(digits: Path) -> None:
    """The functions that ran were told apart by their addresses, and know of no steps."""
    profile = profile_bundle(digits, seed=5, on="qemu")
    functions = {
        f.name: f.instructions for f in run_bundle(digits, seed=5, on="qemu", repeat=2).details.functions
    }
    of_steps = kernels_of(profile)
    assert set(of_steps) <= set(functions)
    for kernel, instructions in of_steps.items():  # with what they call of the C library
        assert functions[kernel] <= instructions <= functions[kernel] * 1.2
    called = sum(functions.get(name, 0) for name in ("memcpy", "memset", "memmove"))
    assert 0 <= sum(of_steps.values()) - sum(functions[name] for name in of_steps) <= called


def test_a_step_by_rows_is_all_of_its_calls() -> None:
    by_rows = bytewright.compile(DIGITS, target=BOARD, rows="auto").profile(on="qemu", seed=2)
    whole = bytewright.compile(DIGITS, target=BOARD, rows="off").profile(on="qemu", seed=2)
    assert {line.num_calls for line in whole.steps} == {1}
    assert [line.num_calls for line in by_rows.steps][:3] == [9, 9, 9]
    assert [line.num_calls for line in by_rows.steps][-2:] == [1, 1]
    for rows, one in zip(by_rows.steps, whole.steps, strict=True):  # the same sums, in other loops
        assert 0.9 * one.cost.amount < rows.cost.amount < 1.3 * one.cost.amount
        assert rows.cost.read_bytes["dtcm"] > 0


def test_calls_of_one_kernel_have_their_own_counts(flow: Path, tmp_path: Path) -> None:
    """In a loop and in both arms of a branch; each call costs what it costs in a bundle without any other."""
    num_negative = 2
    x = cost_program.cost_input(num_negative)
    profile = profile_bundle(flow, [x], on="qemu")
    steps = {line.step: line for line in profile.steps}
    assert [steps[index].num_calls for index in range(4)] == [
        cost_program.TURNS,
        num_negative,
        cost_program.TURNS - num_negative,
        1,
    ]
    work = (cost_program.THEN, cost_program.OTHERWISE, cost_program.LAST)
    assert {profile.plan.steps[index].kernel for index in work} == {"costs_work"}
    times = (cost_program.IN_THEN, cost_program.IN_OTHERWISE, cost_program.AFTER)
    for index, number in zip(work, times, strict=True):
        alone = profile_bundle(
            cost_program.write_alone(tmp_path / str(number), BOARD, number), [x], on="qemu"
        )
        assert alone.plan.workspace_bytes == 0
        assert steps[index].cost.amount == alone.steps[0].cost.amount * steps[index].num_calls
    functions = {f.name: f.instructions for f in run_bundle(flow, [x], on="qemu").details.functions}
    of_kernels = kernels_of(profile)
    assert {name: functions[name] for name in of_kernels} == dict(of_kernels)


@pytest.mark.parametrize("num_negative", [0, cost_program.TURNS])
def test_an_arm_that_is_not_taken_costs_nothing(flow: Path, num_negative: int) -> None:
    profile = profile_bundle(flow, [cost_program.cost_input(num_negative)], on="qemu")
    idle, busy = (
        (cost_program.THEN, cost_program.OTHERWISE)
        if num_negative == 0
        else (cost_program.OTHERWISE, cost_program.THEN)
    )
    assert (profile.steps[idle].num_calls, profile.steps[idle].cost.amount) == (0, 0)
    assert profile.steps[busy].num_calls == cost_program.TURNS
    total = profile.devices[0].total.amount
    plain = run_bundle(flow, [cost_program.cost_input(num_negative)], on="qemu")
    assert (
        abs(total - (plain.instructions or 0)) <= 4 * cost_program.TURNS
    )  # arms that end alike are kept apart


@pytest.mark.parametrize(
    ("compiler", "flags"),
    [
        *(("gcc", flags) for flags in ("-O0", "-Os", "-O3 -funroll-loops", "-O2 -flto", "-O2 -g3")),
        *(("clang", flags) for flags in ("-Oz", "-O2")),
    ],
)
def test_whatever_the_compiler_does(flow: Path, compiler: str, flags: str) -> None:
    if shutil.which(compiler) is None and compiler == "clang":
        pytest.skip("clang is not installed")
    options = BuildOptions(flags=tuple(flags.split()), compiler=compiler)
    profile = profile_bundle(flow, [cost_program.cost_input(4)], on="qemu", options=options)
    assert [line.num_calls for line in profile.steps] == [cost_program.TURNS, 4, cost_program.TURNS - 4, 1]
    assert len({line.cost.amount for line in profile.steps}) == 4


@pytest.mark.skipif(shutil.which("clang") is None, reason="clang is not installed")
def test_the_compiler_is_the_one_that_was_asked_for(digits: Path) -> None:
    totals: list[int] = []
    for compiler in ("gcc", "clang"):
        words = [str(digits), "--on", "qemu", "--compiler", compiler, "--seed", "1", "--json"]
        found, ran = (CliRunner().invoke(command, [name, *words]) for name in ("profile", "run"))
        (total,) = json.loads(found.output)["total"]
        assert total["instructions"] == json.loads(ran.output)["instructions"]
        totals.append(total["instructions"])
    assert totals[0] != totals[1]


def test_layers_of_a_model_that_share_a_kernel() -> None:
    folder = shared_models.bundle(KWS, load_target(BOARD))
    profile = profile_bundle(folder, seed=1, on="qemu")
    num_layers = Counter(step.kernel for step in profile.plan.steps)
    shared = [name for name, number in num_layers.items() if number > 1]
    functions = {f.name: f.instructions for f in run_bundle(folder, seed=1, on="qemu").details.functions}
    assert len(shared) == 2
    for kernel in shared:
        lines = [line for line in profile.steps if profile.plan.steps[line.step].kernel == kernel]
        assert len(lines) == num_layers[kernel]
        assert sum(line.cost.amount for line in lines) == functions[kernel]
        assert len({tuple(sorted(line.cost.read_bytes.items())) for line in lines}) == 1
    assert profile.devices[0].total.amount == run_bundle(folder, seed=1, on="qemu", repeat=2).instructions


def test_memory_that_waits_takes_cycles() -> None:
    profile = profile_bundle(shared_models.bundle(KWS, load_target(BOARD)), seed=1, on="qemu")
    plain = profile.steps[0].cost
    assert plain.read_bytes["flash"] > 64 * 40  # weights, which are read again for each row
    costs = {memory.name: memory for memory in profile.plan.hardware.memories}
    assert (costs["dtcm"].read_cost, costs["flash"].read_cost) == (1, 4)
    waits = 3 * plain.read_bytes["flash"] + (costs["ddr"].read_cost - 1) * plain.read_bytes["ddr"]
    assert profile.cycles(plain) == plain.amount + waits
    of_lines = [profile.cycles(line.cost) or 0 for line in profile.steps]
    (device,) = profile.devices
    assert sum(of_lines) + (profile.cycles(device.entry) or 0) == profile.cycles(device.total)


def test_a_second_core_has_a_lane_of_its_own(tmp_path: Path) -> None:
    folder = write_pair(tmp_path, PAIR)
    profile = profile_bundle(folder, seed=3, on="qemu")
    plain = run_bundle(folder, seed=3, on="qemu", repeat=2)
    own, other = profile.devices
    assert (own.device, own.total.amount) == ("cpu", plain.instructions)
    assert (other.device, other.total.amount) == ("core1", plain.details.devices[0].instructions[-1])
    found = amounts(profile)
    for device in (own, other):
        of_device = sum(amount for (_, name), amount in found.items() if name == device.device)
        assert of_device + device.entry.amount == device.total.amount
    on_core_1 = [step.index for step in profile.plan.steps if step.device == "core1"]
    for index in on_core_1:
        assert found[index, "core1"] > 64 * 5  # a kernel of 64 elements
        assert found[index, "cpu"] < 1000  # the hand-over; the wait is a sleep
    # What is left opens and closes memories, and is not in the code of the model.
    of_model = [f for f in plain.details.devices[0].functions if f.name.startswith("pair_")]
    assert sum(f.instructions for f in of_model) <= other.total.amount - other.entry.amount
    assert {step for step, device in found if device == "core1"} == set(on_core_1)
    assert profile.plan.device.name == "cpu"
    assert profile.board == TWO_CORES
    kernel = profile.plan.steps[on_core_1[0]].kernel.removeprefix("pair_")
    assert f"hand-over of {kernel}" in text_of(profile_view(profile))


@pytest.mark.parametrize("which", ["digits", "pair"])
def test_a_trace_has_all_that_was_executed(tmp_path: Path, which: str) -> None:
    if which == "pair":
        profile = profile_bundle(write_pair(tmp_path, PAIR), seed=3, on="qemu")
    else:
        profile = bytewright.compile(DIGITS, target=BOARD).profile(on="qemu")
    trace = json.loads(json.dumps(trace_document(profile)))
    lanes = {e["tid"]: e["args"]["name"] for e in trace["traceEvents"] if e["name"] == "thread_name"}
    assert list(lanes.values()) == [device.device for device in profile.devices]
    events = [event for event in trace["traceEvents"] if event["ph"] == "X"]
    for device in profile.devices:
        own = [event for event in events if lanes[event["tid"]] == device.device]
        assert sum(event["dur"] for event in own) == device.total.amount
        assert all(a["ts"] + a["dur"] <= b["ts"] for a, b in pairwise(own))
        for memory, num_bytes in device.total.read_bytes.items():
            if which == "digits":
                assert sum(event["args"].get(f"{memory} B read", 0) for event in own) == num_bytes
    of_steps: Counter[tuple[int, str]] = Counter()
    for event in events:
        if "step" in event["args"]:
            of_steps[event["args"]["step"], lanes[event["tid"]]] += event["dur"]
    assert dict(of_steps) == amounts(profile)


def test_the_command(digits: Path, tmp_path: Path) -> None:
    arguments = ["profile", str(digits), "--on", "qemu", "--seed", "5", "--trace", str(tmp_path / "t.json")]
    text = CliRunner().invoke(command, arguments)
    assert text.exit_code == 0, text.output
    plain = CliRunner().invoke(command, ["run", str(digits), "--on", "qemu", "--seed", "5", "--json"])
    total = json.loads(plain.stdout)["instructions"]
    (line,) = [line.split() for line in text.stdout.splitlines() if line.split()[:1] == ["total"]]
    assert line[1:3] == [str(total), "100.0"]
    document = json.loads(CliRunner().invoke(command, [*arguments[:6], "--json"]).stdout)
    assert document["total"][0]["instructions"] == total
    lines = [*document["steps"], *document["entry"]]
    assert sum(line["instructions"] for line in lines) == total
    assert abs(sum(line["share"] for line in lines) - 1) < 1e-9
    assert sum(line["cycles"] for line in lines) == document["total"][0]["cycles"] > total
    events = json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    assert sum(event.get("dur", 0) for event in events) == total


def test_a_model_is_compiled_for_the_board() -> None:
    result = CliRunner().invoke(command, ["profile", str(model_path(KWS)), "--on", "qemu", "--repeat", "1"])
    assert result.exit_code == 0, result.output
    assert "instructions of inference 1 on mps3-an547" in result.output


def test_user_mode_counts_no_steps(tmp_path: Path) -> None:
    folder = bytewright.compile(DIGITS, target="aarch64").write(tmp_path / "aarch64")
    result = CliRunner().invoke(command, ["profile", str(folder), "--on", "qemu"])
    assert result.exit_code == 1
    assert "error[BW204]: steps are counted on boards" in result.output
    assert "help: profile it on the host: --on host" in result.output
    assert "mps3-an547" not in result.output  # whose core is another


def test_no_board_for_the_target(tmp_path: Path) -> None:
    folder = bytewright.compile(DIGITS).write(tmp_path / "host")
    result = CliRunner().invoke(command, ["profile", str(folder), "--on", "qemu"])
    assert result.exit_code == 1
    assert "error[BW204]: no board" in result.output
