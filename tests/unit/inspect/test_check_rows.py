"""`check` goes through the loops of a bundle by rows: each way in which a schedule can be wrong has a sentence."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bytewright.bundle.write import write_bundle
from bytewright.compiler.pipeline import compile_model
from bytewright.diagnostics import CompileError
from bytewright.inspect.check import check_bundle
from bytewright.inspect.check_rows import faults_of_rows
from bytewright.ir.border import Io
from bytewright.options import Options, Rows
from bytewright.record.row_calls import row_runs
from bytewright.target.registry import load_target
from support.digits_bundle import change_file
from support.part_models import Draft
from support.random_models import RandomModel
from support.row_bundle import Document, compiled_by_rows, row_document, row_plan, write_by_rows
from support.row_models import Layer, chain

RING = "depthwise_conv2d_1/out"  # read by two steps, of windows 3 and 1
SOURCE, KERNELS = "src/rows.c", "src/rows_kernels.c"


def buffer(document: Document, name: str) -> Document:
    return next(b for b in document["buffers"] if b["name"] == name)


def ring(document: Document, name: str = RING) -> Document:
    return buffer(document, name)["ring"]


def keep(document: Document, name: str, num_rows: int) -> None:
    """Gives a ring another number of rows, and the bytes for them."""
    found = buffer(document, name)
    row_bytes = found["size_bytes"] // found["ring"]["num_rows"]
    found["ring"]["num_rows"], found["size_bytes"] = num_rows, num_rows * row_bytes


def shift(document: Document, step: int, by: int) -> None:
    """Has a step make each row so many calls later (or earlier, for what is negative)."""
    rows = document["steps"][step]["rows"]
    for end in ("begin", "end"):
        text = rows[end]
        front, _, number = text.replace(" - ", " + -").rpartition(" + ")
        value = int(number) if number.lstrip("-").isdecimal() else None
        front = front if value is not None else text
        rows[end] = f"{front} + {(value or 0) - by}"


def test_the_network_runs_by_rows_through_rings_and_verifies(tmp_path: Path) -> None:
    plan = row_plan()
    kept = {b.name: (b.ring.num_rows, b.ring.tensor_rows) for b in plan.buffers.values() if b.ring}
    assert kept[RING] == (3, 9)
    assert len(kept) == 5
    assert list(faults_of_rows(plan)) == []
    assert check_bundle(write_by_rows(tmp_path / "b")).num_steps == 7


def test_every_call_is_gone_through_in_order() -> None:
    (run,) = row_runs(row_plan())
    assert run.steps == (0, 5)
    assert run.calls is not None
    by_step = [[row for call in run.calls if call.step.index == n for row in call.made] for n in range(6)]
    assert by_step == [list(range(n)) for n in (18, 9, 9, 9, 5, 5)]
    assert len(run.calls) == 6 * (2 * (2 + 3) + 2)
    assert [call.number for call in run.calls if call.step.index == 4] == list(range(6))
    # Row 2 of the step with a stride of two: rows 4, 5 and 6 of what it reads.
    (call,) = (c for c in run.calls if c.step.index == 1 and c.made == range(2, 3))
    assert call.needed("conv2d_0/out") == range(4, 7)
    assert call.needed(RING) is None


def test_a_bundle_of_whole_tensors_has_nothing_of_it() -> None:
    document = compiled_by_rows(rows=Rows.OFF).document
    assert "segments" not in document
    assert "plain_workspace_bytes" not in document
    assert not any("rows" in step for step in document["steps"])
    assert not any("ring" in b for b in document["buffers"])


def test_segments_say_what_they_saved() -> None:
    document = row_document()
    (segment,) = document["segments"]
    whole = compiled_by_rows(rows=Rows.OFF).plan
    assert document["plain_workspace_bytes"] == whole.workspace_bytes == segment["plain_alive_bytes"]
    assert segment["alive_bytes"] <= compiled_by_rows().plan.workspace_bytes < whole.workspace_bytes


Change = Callable[[Document], Any]
DAMAGES: dict[str, tuple[Change, str]] = {
    "a ring without the rows of its size": (
        lambda d: ring(d).update(num_rows=2),
        f"ring '{RING}' of 2 rows of 56 B has 168 B",
    ),
    "a ring of no rows": (lambda d: ring(d).update(num_rows=0), f"ring '{RING}' keeps 0 of 9 rows"),
    "a ring of more rows than there are": (
        lambda d: ring(d).update(num_rows=10),
        f"ring '{RING}' keeps 10 of 9 rows",
    ),
    "a ring along another axis": (lambda d: ring(d).update(axis=2), "has 9 rows along axis 2"),
    "a ring along no axis": (lambda d: ring(d).update(axis=4), "has 9 rows along axis 4"),
    "a ring of a tensor of another size": (
        lambda d: ring(d).update(tensor_bytes=505),
        f"ring '{RING}' is said to be of 505 B, its tensor has 504 B",
    ),
    "an output that is a ring": (
        lambda d: buffer(d, "mean_7/out").update(
            ring={"axis": 0, "num_rows": 1, "tensor_rows": 1, "tensor_bytes": 4}
        ),
        "output 'mean_7/out' is a ring",
    ),
    "a step without rows that reads a ring": (
        lambda d: d["steps"][2].pop("rows"),
        f"step 2 touches ring '{RING}', and does not say which of its rows",
    ),
    "a window of what is not read": (
        lambda d: d["steps"][0]["rows"]["windows"][0].update(buffer="add_4/out"),
        "step 0 is said to go through 'add_4/out' by rows, and does not touch it so",
    ),
    "rows that a tensor has not": (
        lambda d: d["steps"][0]["rows"]["windows"][0].update(num_rows=17),
        "step 0: 't0' does not have 17 rows",
    ),
    "a window upside down": (
        lambda d: d["steps"][1]["rows"]["windows"][0].update(first=3),
        "is said to need rows 2 * r + 3 to 2 * r + 2",
    ),
    "a segment without a loop": (
        lambda d: d["segments"][0].update(steps=[0, 4]),
        "a segment of steps 0 to 4 has 6 turns, and there is no such loop",
    ),
    "a segment of other turns": (
        lambda d: d["segments"][0].update(num_turns=7),
        "a segment of steps 0 to 5 has 7 turns, and there is no such loop",
    ),
    "a segment with a ring of another's": (
        lambda d: d["segments"][0]["rings"].append("conv2d_6/out"),
        "a segment of steps 0 to 5 has no ring 'conv2d_6/out'",
    ),
    "a ring of no segment": (
        lambda d: d["segments"][0]["rings"].remove(RING),
        "the segments have 4 rings, the plan 5",
    ),
    "a segment that needs more than there is": (
        lambda d: d["segments"][0].update(alive_bytes=99999),
        "is said to have 99999 B alive",
    ),
    "rows that are no sum": (
        lambda d: d["steps"][1]["rows"].update(begin=None),
        "which rows the loops of steps 0 to 5 make cannot be followed",
    ),
    "rows by a variable of no loop": (
        lambda d: d["steps"][4]["rows"].update(begin="part - 1"),
        "which rows the loops of steps 0 to 5 make cannot be followed",
    ),
    "a ring that is a row too small": (
        lambda d: keep(d, RING, 2),
        f"step 2, call 3 reads row 0 of '{RING}', whose slot of 2 has row 2 by then",
    ),
    "a row that comes a call too late": (
        lambda d: shift(d, 1, 1),
        f"reads row 1 of '{RING}', which is not made yet",
    ),
    "a row that comes a call too early": (
        lambda d: shift(d, 1, -1),
        "step 1, call 0 reads row 1 of 'conv2d_0/out', which is not made yet",
    ),
    "a row that is made twice": (
        lambda d: d["steps"][5]["rows"].update(begin="turn - 2"),
        "step 5, call 2 makes row 0 of 'conv2d_6/out' again",
    ),
    "rows that nobody makes": (
        lambda d: shift(d, 0, 6),
        "step 0 never makes row 17 of 'conv2d_0/out'",
    ),
    "a window that is a row taller": (
        lambda d: d["steps"][2]["rows"]["windows"][0].update(first=-2),
        f"step 2, call 4 reads row 0 of '{RING}', whose slot of 3 has row 3 by then",
    ),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_a_damaged_plan_is_found(name: str) -> None:
    change, sentence = DAMAGES[name]
    found = "\n".join(faults_of_rows(row_plan(change)))
    assert sentence in found


def test_a_call_that_makes_more_rows_than_are_kept_is_found() -> None:
    def both(document: Document) -> None:
        document["steps"][4]["rows"].update(begin="2*turn - 2", end="2*turn")

    found = "\n".join(faults_of_rows(row_plan(both)))
    assert "makes 2 rows of 'depthwise_conv2d_5/out', which keeps 1" in found


def test_loops_that_turn_less_often_are_found() -> None:
    def fewer(document: Document) -> None:
        document["loops"][-1]["end"] = 5
        document["segments"][0]["num_turns"] = 5

    found = "\n".join(faults_of_rows(row_plan(fewer)))
    assert "never makes row 4 of 'conv2d_6/out'" in found


def test_a_ring_that_is_read_when_its_loop_is_over_is_found() -> None:
    def late(document: Document) -> None:
        step = document["steps"][6]
        step["reads"].append("add_4/out")
        rows = {"buffer": "mean_7/out", "num_rows": 1, "begin": 0, "end": 1}
        window = {"buffer": "add_4/out", "num_rows": 9, "stride": 1, "first": 4, "last": 4}
        step["rows"] = {**rows, "windows": [window]}

    found = "\n".join(faults_of_rows(row_plan(late)))
    assert "step 6, call 0 reads row 4 of 'add_4/out', whose slot of 3 has row 7 by then" in found


def faults(directory: Path) -> str:
    with pytest.raises(CompileError) as caught:
        check_bundle(directory)
    return "\n".join(note for d in caught.value.diagnostics for note in d.notes)


CODE = {
    "another row is asked for": (
        SOURCE,
        "turn - 1,\n",
        "turn - 2,\n",
        "step 4 asks for rows 'turn - 2' to 'turn', in the plan 'turn - 1' to 'turn'",
    ),
    "a ring is gone through by another number": (
        KERNELS,
        "% 3",
        "% 4",
        "reaches rows of its output otherwise than in the 3 slots of a ring",
    ),
    "a ring is gone through as if it were whole": (
        KERNELS,
        "(y % 3)",
        "y",
        "reaches rows of its output otherwise than in the 3 slots of a ring",
    ),
    "rows before the first are made": (
        KERNELS,
        "max_i32(row_begin, 0)",
        "max_i32(row_begin, -1)",
        "rows_conv2d_0_rows does not leave out rows that are not among the 18",
    ),
    "rows behind the last are made": (
        KERNELS,
        "min_i32(row_end, 18)",
        "min_i32(row_end, 19)",
        "rows_conv2d_0_rows does not leave out rows that are not among the 18",
    ),
    "a kernel has another parameter": (
        KERNELS,
        "    int32_t row_end)",
        "    int32_t row_end,\n    int32_t more)",
        "has 7 parameters, step 0 passes 6",
    ),
}


@pytest.mark.parametrize("name", CODE)
def test_c_that_goes_otherwise_about_rows_is_found(tmp_path: Path, name: str) -> None:
    path, old, new, sentence = CODE[name]
    folder = write_by_rows(tmp_path / "b")
    change_file(folder, path, old, new)
    assert sentence in faults(folder)


def written(model: RandomModel, folder: Path, io: Io = Io.CALLER) -> Path:
    """The bundle of a model that runs by rows wherever it can."""
    path = folder / "model.tflite"
    path.write_bytes(model.content)
    made = compile_model(path, load_target("host"), Options(io=io, rows=Rows.MAX))
    write_bundle(made.files, folder / "b")
    return folder / "b"


def change_kernel(folder: Path, name: str, old: str, new: str) -> None:
    """Changes the first such text of one kernel."""
    path = "src/model_kernels.c"
    _, front, rest = (folder / path).read_text(encoding="utf-8").partition(f"void {name}(")
    assert old in rest
    change_file(folder, path, front + rest, front + rest.replace(old, new, 1))


ONE_COLUMN = chain(
    (7, 1, 2), Layer(1, 1), Layer(1, 1)
)  # a row is a pixel, so a ring of one row is seen from its first


@pytest.mark.parametrize("io", [Io.CALLER, Io.ROWS])
def test_a_kernel_may_see_a_ring_as_it_is(tmp_path: Path, io: Io) -> None:
    folder = written(ONE_COLUMN, tmp_path, io)
    assert "*const row = input;" in (folder / "src/model_kernels.c").read_text(encoding="utf-8")
    assert check_bundle(folder).num_steps == (3 if io is Io.ROWS else 2)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("row[k]", "row[k + y]"),
        ("*const row = input;", "*const row = input + y;"),
        ("*const row = input;", "*const row = &input[y];"),
        ("*const row = input;", "*const again = input;\nconst int8_t *const row = &again[y * 2];"),
        ("{", "{\n    (void)input[row_begin];"),
    ],
)
def test_what_is_seen_of_a_ring_stays_in_its_slots(tmp_path: Path, old: str, new: str) -> None:
    folder = written(ONE_COLUMN, tmp_path)
    change_kernel(folder, "model_conv2d_1_rows", old, new)
    assert "model_conv2d_1_rows reaches rows of its input otherwise than in the 1 slots" in faults(folder)


def stacked() -> RandomModel:
    """Two images, one above the other, and a layer: the first kernel has a loop for each image."""
    draft = Draft()
    images = [draft.input((1, rows, 5, 2)) for rows in (4, 7)]
    return draft.model(draft.conv(draft.concat(1, *images), 2))


def test_each_loop_of_a_kernel_has_its_own_names(tmp_path: Path) -> None:
    folder, kernel = written(stacked(), tmp_path), "model_concatenation_0_rows"
    assert check_bundle(folder).num_steps == 2
    change_kernel(folder, kernel, "(y % 3)", "y")
    assert f"{kernel} reaches rows of its output otherwise than in the 3 slots" in faults(folder)


def test_each_loop_of_a_kernel_leaves_out_rows(tmp_path: Path) -> None:
    folder, kernel = written(stacked(), tmp_path), "model_concatenation_0_rows"
    change_kernel(folder, kernel, "y < last;", "y < row_end;")
    assert f"{kernel} does not leave out rows that are not among the 11 of its output" in faults(folder)
