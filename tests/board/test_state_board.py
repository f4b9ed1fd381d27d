"""What survives runs, on a board."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Literal

import numpy as np
import pytest

import bytewright
from bytewright.bundle.write import write_bundle
from bytewright.compiler.pipeline import compile_model
from bytewright.execute.paranoid import run_paranoid
from bytewright.execute.run import run_batch, run_bundle
from bytewright.inspect.check import check_bundle
from bytewright.target.registry import load_target
from support.entry_programs import DUO, OPEN, WAKE, classified, duo, opened, opened_calls
from support.recurrent_models import saturated_svdf
from support.reference import LiteRt
from support.row_entries import two_chains
from support.state_programs import ACCUMULATOR, accumulated, next_stateful_graph
from support.tied_signatures import MOST_TURNS, TIED, tied_calls
from support.tiers import THOROUGH, some
from support.wake_word import FEATURES, wake_word_net

SEEDS = range(40) if THOROUGH else some(range(8), every=8)

pytestmark = pytest.mark.board


def test_the_board_keeps_it(tmp_path: Path) -> None:
    text = tmp_path / "acc.bw"
    text.write_text(ACCUMULATOR)
    bytewright.compile(text, target="mps3-an547").write(tmp_path / "acc")
    random = np.random.default_rng(5)
    inputs = [random.integers(-999, 999, 8).astype(np.int32) for _ in range(4)]
    found = run_batch(tmp_path / "acc", [[array] for array in inputs], on="qemu", keep_state=True)
    for (value,), wanted in zip(found.outputs, accumulated(inputs), strict=True):
        np.testing.assert_array_equal(value, wanted)
    again = run_bundle(tmp_path / "acc", [inputs[0]], on="qemu", repeat=2)
    np.testing.assert_array_equal(again.outputs[0], accumulated(inputs[:1])[0])


@pytest.mark.parametrize(
    ("target", "roles", "limit"),
    [("mps3-an547", {"frames", "inputs"}, 26_100), ("mps2-an386", {"frames"}, 48_500)],
)
def test_a_net_that_keeps_inputs_in_place_of_frames(
    target: str, roles: set[str], limit: int, tmp_path: Path
) -> None:
    """Of some on the first board, at fewer instructions than the 28,874 that took to keep them all."""
    content = wake_word_net()
    (tmp_path / "net.tflite").write_bytes(content)
    model = bytewright.compile(tmp_path / "net.tflite", target=target, io="workspace")
    assert {each.name.rpartition("_")[2] for each in model.plan.states} == roles
    random = np.random.default_rng(6)
    inputs = [random.integers(-128, 128, (1, FEATURES)).astype(np.int8) for _ in range(50)]
    found = run_batch(
        model.write(tmp_path / "net"), [[array] for array in inputs], on="qemu", keep_state=True
    )
    reference = LiteRt(content)
    wanted = [reference.run(array)[0] for array in inputs]
    np.testing.assert_array_equal([value for (value,) in found.outputs], wanted)
    assert found.instructions is not None
    assert max(found.instructions) <= limit


@pytest.mark.parametrize("units", [9, 16])
@pytest.mark.parametrize("target", ["mps3-an547", "mps2-an386"])
def test_sums_over_time_that_leave_32_bits(target: str, units: int, tmp_path: Path) -> None:
    """They wrap, in lanes as well; with 9 units some are beside them."""
    content = saturated_svdf(units, 7)
    (tmp_path / "net.tflite").write_bytes(content)
    model = bytewright.compile(tmp_path / "net.tflite", target=target, optimize="speed")
    if target == "mps3-an547":
        assert {"mve.depthwise_lanes", "mve.shift_in"} <= {step.template for step in model.plan.steps}
    random = np.random.default_rng(7)
    inputs = [random.integers(-128, 128, (1, 6)).astype(np.int8) for _ in range(20)]
    found = run_batch(
        model.write(tmp_path / "net"), [[array] for array in inputs], on="qemu", keep_state=True
    )
    reference = LiteRt(content)
    wanted = [reference.run(array)[0] for array in inputs]
    np.testing.assert_array_equal([value for (value,) in found.outputs], wanted)
    assert len(np.unique(wanted)) > 100


@pytest.mark.parametrize("io", ["caller", "workspace"])
def test_entries_over_one_state_run_on_the_board(tmp_path: Path, io: Literal["caller", "workspace"]) -> None:
    text = tmp_path / "wake.bw"
    text.write_text(WAKE)
    bytewright.compile(text, target="mps3-an547", io=io).write(tmp_path / "wake")
    random = np.random.default_rng(8)
    frames = [random.integers(-128, 128, 4).astype(np.int8) for _ in range(4)]
    names = ["push", "push", "classify", "push", "push", "classify"]
    given = iter(frames)
    batch = [[next(given)] if name == "push" else [] for name in names]
    found = run_batch(tmp_path / "wake", batch, on="qemu", keep_state=True, entries=names)
    for number, pushed in ((2, 2), (5, 4)):
        for value, wanted in zip(found.outputs[number], classified(frames[:pushed]), strict=True):
            np.testing.assert_array_equal(value, wanted)
    assert len(found.instructions) == len(names)
    run_paranoid(tmp_path / "wake", [frames[0]], on="qemu")


def test_signatures_that_share_variables_run_on_the_board(tmp_path: Path) -> None:
    bytewright.compile(
        TIED, signature="*", bounds=[f"WHILE={MOST_TURNS}"], target="mps3-an547", io="workspace"
    ).write(tmp_path / "tied")
    names, given, wanted = tied_calls(24)
    found = run_batch(tmp_path / "tied", given, on="qemu", keep_state=True, entries=names).outputs
    for own, other in zip(found, wanted, strict=True):
        for value, expected in zip(own, other, strict=True):
            np.testing.assert_allclose(value, expected, rtol=0, atol=1e-5 * float(np.abs(expected).max()))
    run_paranoid(tmp_path / "tied", on="qemu")


def test_entries_hand_work_to_a_second_core(tmp_path: Path) -> None:
    text = tmp_path / "duo.bw"
    text.write_text(DUO)
    bytewright.compile(text, target="mps2-an521").write(tmp_path / "duo")
    check_bundle(tmp_path / "duo")
    random = np.random.default_rng(9)
    names = ["get", "put", "get", "put", "get"]
    arrays = [random.integers(-128, 128, 8).astype(np.int8) for _ in names]
    for on in ("qemu", "host"):
        found = run_batch(tmp_path / "duo", [[a] for a in arrays], on=on, keep_state=True, entries=names)
        for (value,), wanted in zip(found.outputs, duo(list(zip(names, arrays, strict=True))), strict=True):
            np.testing.assert_array_equal(value, wanted)


def test_entries_by_rows_and_of_open_extents_run_on_the_board(tmp_path: Path) -> None:
    (tmp_path / "o.bw").write_text(OPEN)
    (tmp_path / "r.bw").write_text(two_chains().text())
    calls, chains = opened_calls(3, 6), two_chains()
    bytewright.compile(tmp_path / "o.bw", target="mps3-an547").write(tmp_path / "o")
    bytewright.compile(tmp_path / "r.bw", target="mps3-an547").write(tmp_path / "r")
    names, batch = [name for name, _ in calls], [arrays for _, arrays in calls]
    found = run_batch(tmp_path / "o", batch, on="qemu", keep_state=True, entries=names)
    for (value,), wanted in zip(found.outputs, opened(calls), strict=True):
        np.testing.assert_array_equal(value, wanted)
    calls, kept = chains.calls(Random(4), 4), chains.begun()
    names, batch = [name for name, _ in calls], [arrays for _, arrays in calls]
    found = run_batch(tmp_path / "r", batch, on="qemu", keep_state=True, entries=names)
    for (name, inputs), outputs in zip(calls, found.outputs, strict=True):
        np.testing.assert_array_equal(outputs, chains.run(kept, name, inputs))
    run_paranoid(tmp_path / "r", on="qemu")


@pytest.mark.parametrize("seed", SEEDS)
def test_random_graphs_with_state(seed: int, tmp_path: Path) -> None:
    """Layers, islands, loops and branches, beside numpy."""
    graph = next_stateful_graph(seed, has_images=True)
    given, expected = graph.steps(3)
    target = load_target(("mps3-an547", "mps2-an386")[seed % 2])
    write_bundle(compile_model(graph.write(tmp_path / "random.bw"), target).files, tmp_path / "bundle")
    found = run_batch(tmp_path / "bundle", given, on="qemu", keep_state=True).outputs
    for run, wanted in zip(found, expected, strict=True):
        for value, other in zip(run, wanted, strict=True):
            np.testing.assert_array_equal(value, other, strict=True)
