"""Requirements L1 to L4: less memory than any plan that keeps tensors whole and apart."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

from bytewright.bundle.write import write_bundle
from bytewright.compiler.pipeline import compile_model
from bytewright.diagnostics import CompileError, Diagnostic
from bytewright.execute.build import BuildOptions
from bytewright.execute.paranoid import run_paranoid
from bytewright.execute.run import run_batch
from bytewright.inspect.check import check_bundle
from bytewright.ir.analyses.overlap import Distances, Given, overlap_distances
from bytewright.ir.border import Io
from bytewright.ir.builder import BodyBuilder, load, region
from bytewright.ir.downwards import run_downwards
from bytewright.ir.expr import Buffer, cast, maximum, minimum
from bytewright.ir.module import Module
from bytewright.ir.prim import Access, BufferParameter, PrimFunc
from bytewright.ir.scope import GLOBAL, WORKSPACE
from bytewright.ir.storage import Storage
from bytewright.ir.types import DType
from bytewright.options import Options, Pin, Rows
from bytewright.record.plan import Plan
from bytewright.record.row_calls import row_runs
from bytewright.storage import find_overlaps
from bytewright.target.registry import load_target
from mobilenet_v2 import mobilenet_v2
from support.against_reference import assert_equals_reference
from support.digits_bundle import DIGITS, write_document
from support.hand_built import WHERE, module_of
from support.one_array import run_in_one_array
from support.random_networks import random_network
from support.reference import LiteRt
from support.row_bundle import row_plan
from support.shared_models import AD01, BOARD, HOST, KWS, RESNET8, VWW, compiled, model_path
from support.spatial_networks import spatial_model

ROOT = Path(__file__).resolve().parents[2]
SIZE, BACK, AHEAD = 48, 3, 5
X = np.random.default_rng(1).integers(-100, 100, SIZE).astype(np.int8)


# L1


def between() -> PrimFunc:
    """Half of the element that lies `BACK` behind and half of that which lies `AHEAD` ahead, of each."""
    source, result = (Buffer(name, (SIZE,), DType.I8, 1) for name in ("source", "result"))
    body = BodyBuilder(("source", "result"))
    with body.for_("i", 0, SIZE) as i:
        ends = (maximum(i - BACK, 0), minimum(i + AHEAD, SIZE - 1))
        first, second = (cast(load(source, end), DType.I32) for end in ends)
        body.store(result, i, cast((first >> 1) + (second >> 1), DType.I8))
    parameters = (
        BufferParameter(source, Access.READ, scope=GLOBAL),
        BufferParameter(result, Access.WRITE, scope=GLOBAL),
    )
    return PrimFunc("m_between", parameters, body.finish(), where=WHERE)


def three_steps() -> Module:
    """The kernel three times; `t0` and `t1` lie between."""
    body = BodyBuilder(("x", "y"))
    x, y, *tensors = (Buffer(name, (SIZE,), DType.I8, 1) for name in ("x", "y", "t0", "t1"))
    t0, t1 = (body.allocate(tensor, Storage(WORKSPACE)) for tensor in tensors)
    for source, result in ((x, t0), (t0, t1), (t1, y)):
        body.call("m_between", region(source), region(result), where=WHERE)
    return module_of("m", [between()], body.finish(), x, y)


def placed(*offsets: int) -> Options:
    return Options(pins=tuple(Pin(f"t{i}", "ram", offset=offset) for i, offset in enumerate(offsets)))


def refusal(what: object, *arguments: object) -> Diagnostic:
    with pytest.raises(CompileError) as caught:
        what(*arguments)  # type: ignore[operator]
    return caught.value.diagnostics[0]


@pytest.mark.parametrize("is_down", [False, True])
def test_l1_distances_follow_from_the_body_and_a_byte_nearer_is_wrong(is_down: bool) -> None:
    kernel = run_downwards(between(), {}) if is_down else between()
    assert kernel is not None
    given = {"source": Given(is_output=False), "result": Given(is_output=True)}
    found = overlap_distances(kernel, given, {}, {})
    assert found == (Distances(SIZE, AHEAD) if is_down else Distances(BACK, SIZE))
    i, wide = np.arange(SIZE), X.astype(np.int32)
    wanted = (wide[np.maximum(i - BACK, 0)] >> 1) + (wide[np.minimum(i + AHEAD, SIZE - 1)] >> 1)
    nearest, nearer = (AHEAD, AHEAD - 1) if is_down else (-BACK, -BACK + 1)
    result = run_in_one_array(kernel, {"source": X}, "source", "result", nearest)
    assert result is not None
    assert (result == wanted).all()
    assert run_in_one_array(kernel, {"source": X}, "source", "result", nearer) is None


@pytest.mark.parametrize(("nearest", "nearer"), [((BACK, 0), (BACK - 1, 0)), ((0, AHEAD), (0, AHEAD - 1))])
def test_l1_the_validator_and_check_know(
    nearest: tuple[int, int], nearer: tuple[int, int], tmp_path: Path
) -> None:
    assert refusal(compile_model, three_steps(), load_target(HOST), placed(*nearer)).code == "BW204"
    found = compile_model(three_steps(), load_target(HOST), placed(*nearest))
    write_bundle(found.files, tmp_path / "m")
    check_bundle(tmp_path / "m")
    document = json.loads((tmp_path / "m" / "plan.json").read_text(encoding="utf-8"))
    (pair,) = document["steps"][1]["overlaps"]
    for member in ("below_bytes", "above_bytes"):
        pair[member] += 1
    write_document(tmp_path / "m", document)
    diagnostic = refusal(check_bundle, tmp_path / "m")
    assert any("nearer than their contract allows" in note for note in diagnostic.notes)


@pytest.mark.run
def test_l1_poisoned_runs_know_a_byte_too_near(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a contract that is one byte too generous the plan verifies, and its outputs are wrong."""

    def generous(*arguments: object) -> Distances | None:
        found = overlap_distances(*arguments)  # type: ignore[arg-type]
        return found and Distances(found.below_bytes - 1, found.above_bytes)

    quick = BuildOptions(("-O2",))
    write_bundle(compile_model(three_steps(), load_target(HOST), placed(BACK, 0)).files, tmp_path / "right")
    assert run_paranoid(tmp_path / "right", [X], options=quick).num_steps == 3
    monkeypatch.setattr(find_overlaps, "overlap_distances", generous)
    nearer = compile_model(three_steps(), load_target(HOST), placed(BACK - 1, 0))
    write_bundle(nearer.files, tmp_path / "wrong")
    check_bundle(tmp_path / "wrong")
    diagnostic = refusal(lambda: run_paranoid(tmp_path / "wrong", [X], options=quick))
    assert diagnostic.code == "BW404"
    assert "depends on bytes that two buffers share within a step" in diagnostic.notes[0]


# L2


def test_l2_every_row_is_made_once() -> None:
    plan = row_plan()
    made: dict[int, list[int]] = {}
    for run in row_runs(plan):
        assert run.calls is not None
        for call in run.calls:
            made.setdefault(call.step.index, []).extend(call.made)
    by_rows = {step.index: step.rows.num_rows for step in plan.steps if step.rows is not None}
    assert {index: sorted(rows) for index, rows in made.items()} == {
        index: list(range(count)) for index, count in by_rows.items()
    }
    assert any(buffer.ring is not None for buffer in plan.buffers.values())


@pytest.mark.run
@pytest.mark.parametrize("rows", [Rows.AUTO, Rows.MAX], ids=str)
def test_l2_results_are_unchanged_to_the_bit(rows: Rows, tmp_path: Path) -> None:
    models = [spatial_model(seed) for seed in (60_004, 60_007, 60_010)]
    assert_equals_reference(models, tmp_path, options=Options(rows=rows))


def plan_of_network(seed: int, folder: Path, rows: Rows) -> Plan:
    path = folder / f"m{seed}.tflite"
    path.write_bytes(spatial_model(seed).content)
    return compile_model(path, load_target(HOST), Options(rows=rows)).plan


def test_l2_rows_are_chosen_where_they_lower_the_proved_peak(tmp_path: Path) -> None:
    num_chosen = 0
    for seed in range(60_003, 60_011):
        auto, off = (plan_of_network(seed, tmp_path, rows) for rows in (Rows.AUTO, Rows.OFF))
        assert not off.segments
        assert auto.workspace_bytes <= off.workspace_bytes
        assert bool(auto.segments) == (auto.workspace_bytes < off.workspace_bytes)
        assert all(pool.optimal for pool in auto.workspaces)
        if auto.segments:
            assert auto.plain_workspace_bytes == off.workspace_bytes
        num_chosen += bool(auto.segments)
    assert 2 <= num_chosen < 8


def rows_of_table(document: str, *heads: str) -> list[list[str]]:
    """The lines of the tables in a document that have these heads, without the heads themselves."""
    text = (ROOT / document).read_text(encoding="utf-8")
    tables = re.findall(r"^\|.*\|$(?:\n\|.*\|$)*", text, re.MULTILINE)
    cells = [
        [[cell.strip() for cell in line.strip("|").split("|")] for line in t.split("\n")] for t in tables
    ]
    (found,) = (table for table in cells if table[0] == list(heads))
    return found[2:]


# A model's line in the README, where it is, and the target that the README names.
FIGURES = {
    "keyword spotting": (KWS, BOARD),
    "visual wake words, 96 x 96": (VWW, BOARD),
    "ResNet8, 32 x 32": (RESNET8, BOARD),
    "anomaly detection": (AD01, BOARD),
    "MobileNetV2 1.0, 224 x 224": ("", HOST),
}


@pytest.mark.parametrize(
    "line", [pytest.param(name, marks=[pytest.mark.slow] if not FIGURES[name][0] else []) for name in FIGURES]
)
def test_l2_the_readme_says_what_models_need(line: str, tmp_path: Path) -> None:
    ways = {
        "with the application's inputs and outputs": Io.CALLER,
        "inputs and outputs in the workspace": Io.WORKSPACE,
    }
    table = {row[0]: row[2:] for row in rows_of_table("README.md", "model, int8", "plain", *ways)}
    assert table.keys() == FIGURES.keys()
    model, target = FIGURES[line]
    path = model_path(model) if model else tmp_path / "mobilenet_v2.tflite"
    if not model:
        path.write_bytes(mobilenet_v2("1.0", 224))
    for io, figure in zip(ways.values(), table[line], strict=True):
        plan = compile_model(path, load_target(target), Options(io=io)).plan
        assert plan.workspace_bytes == int(figure)
        assert all(pool.optimal for pool in plan.workspaces)


# L3


def test_l3_channels_that_are_constant_go() -> None:
    plan = compiled(VWW, load_target(HOST)).plan
    assert plan.narrowed is not None
    assert plan.narrowed.macs <= 0.51 * plan.narrowed.macs_before
    assert plan.narrowed.weight_bytes <= 0.25 * plan.narrowed.weight_bytes_before
    assert plan.buffers["conv2d_16/out"].shape_before == (1, 6, 6, 128)


@pytest.mark.run
def test_l3_and_no_bit_changes(tmp_path: Path) -> None:
    models = [random_network(seed, "int8", size=10, has_gaps=True) for seed in range(40, 50)]
    assert_equals_reference(models, tmp_path)


# L4


def test_l4_an_image_by_rows_is_never_whole() -> None:
    heads = ("model", "workspace, image with the caller", "the image", "workspace, image by rows")
    table = {row[0]: tuple(map(int, row[1:])) for row in rows_of_table("docs/less-memory.md", *heads)}
    for name, model in (("vww", VWW), ("ResNet8", RESNET8)):
        whole, by_rows = (compiled(model, load_target(BOARD), io=io).plan for io in (Io.CALLER, Io.ROWS))
        assert by_rows.image is not None
        image_bytes = by_rows.image.num_rows * by_rows.image.row_bytes
        assert table.pop(name) == (whole.workspace_bytes, image_bytes, by_rows.workspace_bytes)
        assert by_rows.workspace_bytes < whole.workspace_bytes + image_bytes
        taken = by_rows.steps[0]
        (copy,) = (by_rows.buffers[written] for written in taken.writes)
        assert copy.ring is not None
        assert copy.ring.tensor_bytes == image_bytes
        assert copy.ring.num_rows <= 3
        assert not any(by_rows.image.name in step.reads for step in by_rows.steps[1:])
    assert not table


@pytest.mark.run
def test_l4_and_gives_the_references_output(tmp_path: Path) -> None:
    write_bundle(compile_model(DIGITS, load_target(HOST), Options(io=Io.ROWS)).files, tmp_path / "digits")
    with np.load(DIGITS.parent / "heldout.npz") as stored:
        images = stored["images"][:20, np.newaxis]
    reference = LiteRt(DIGITS)
    result = run_batch(tmp_path / "digits", [[image] for image in images])
    for image, outputs in zip(images, result.outputs, strict=True):
        np.testing.assert_array_equal(outputs[0], reference.run(image)[0])
