"""`check` compares the functions that take the image row by row with the plan: passes, rows, and what has no row."""

from __future__ import annotations

from pathlib import Path

import pytest

from bytewright.bundle.write import write_bundle
from bytewright.compiler import store
from bytewright.compiler.pipeline import compile_model
from bytewright.diagnostics import CompileError
from bytewright.inspect.check import check_bundle
from bytewright.ir.border import Io
from bytewright.options import Options, Rows
from bytewright.target.registry import load_target
from support.digits_bundle import change_file
from support.row_bundle import row_model
from support.row_models import Layer, chain
from support.spatial_networks import spatial_model

SOURCE = "src/rows.c"


def faults(directory: Path) -> str:
    with pytest.raises(CompileError) as caught:
        check_bundle(directory)
    return "\n".join(note for d in caught.value.diagnostics for note in d.notes)


def pushed(model: bytes, folder: Path) -> Path:
    """A bundle that is given its input row by row."""
    folder.mkdir()
    (folder / "rows.tflite").write_bytes(model)
    files = compile_model(folder / "rows.tflite", load_target("host"), Options(io=Io.ROWS)).files
    write_bundle(files, folder / "b")
    return folder / "b"


# Of an image of 18 rows: the last two turns of a segment of 6, each of 4 passes, have no row of it.
PUSHED = {
    "passes of a loop are counted otherwise": (
        "pass / 4;",
        "pass / 2;",
        "the passes of 'turn', 'part', 'part_1' are counted as [(2, ''), (2, '2'), (1, '2')], in the plan [(4, ''), ",
    ),
    "an inner loop ends with another pass": ("(part_1 == 1)", "(part_1 == 0)", "is on 'part_1 == 0'"),
    "rows come a pass later": (
        "int32_t pass = row;",
        "int32_t pass = row + 1;",
        "run_row: row 0 comes with pass 1, in the plan with 0",
    ),
    "a pass at the end is missing": (
        "row < 24;",
        "row < 23;",
        "rows_finish runs passes ROWS_INPUT_T0_ROWS to 23 without a row, in the plan ROWS_INPUT_T0_ROWS to 24",
    ),
    "passes at the end are those of other rows": (
        "run_row(context, NULL, row)",
        "run_row(context, NULL, row - 1)",
        "rows_finish runs passes none without a row, in the plan ROWS_INPUT_T0_ROWS to 24",
    ),
    "an image begins with another row": (
        "context->num_rows = 0;",
        "context->num_rows = 1;",
        "rows_begin does not begin with row 0",
    ),
    "rows overlap": (
        "pushed * 28u",
        "pushed * 27u",
        "rows_push_rows does not pass on rows of 28 B one by one",
    ),
    "a row is left out": (
        "++context->num_rows;",
        "context->num_rows += 2;",
        "rows_push_rows does not pass on rows of 28 B one by one",
    ),
}


@pytest.mark.parametrize("name", PUSHED)
def test_c_that_takes_rows_otherwise_is_found(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In loops three deep, which the cut that lowers the peak has, and not the smallest plan."""
    monkeypatch.setattr(store, "CUTS", {Rows.AUTO: (store.Cut.PEAK,)})
    old, new, sentence = PUSHED[name]
    folder = pushed(row_model(), tmp_path / "m")
    change_file(folder, SOURCE, old, new)
    assert sentence in faults(folder)


@pytest.mark.parametrize(("macro", "value"), [("ROWS", 18), ("ROW_SIZE", 28), ("SIZE", 504)])
def test_a_header_with_other_sizes_is_found(tmp_path: Path, macro: str, value: int) -> None:
    folder = pushed(row_model(), tmp_path / "m")
    name = f"ROWS_INPUT_T0_{macro}"
    change_file(folder, "include/rows.h", f"#define {name} {value}", f"#define {name} {value - 1}")
    assert f"include/rows.h states {name} {value - 1}, the plan {value}" in faults(folder)


def test_bundles_that_take_rows_are_what_their_plans_say(tmp_path: Path) -> None:
    """With passes before the first row, with passes after the last one, and with neither."""
    models = [
        row_model(),
        chain((16, 4, 2), *[Layer(3, stride=2)] * 3).content,
        chain((13, 4, 2), Layer(3, stride=2), Layer(2, stride=3)).content,
        chain((12, 6, 3), Layer(4, stride=4, padding="VALID"), Layer(3)).content,
        chain((9, 5, 3), Layer(3), Layer(3)).content,
        spatial_model(70_001, "float32").content,
    ]
    first_rows: set[str] = set()
    for number, model in enumerate(models):
        folder = pushed(model, tmp_path / str(number))
        check_bundle(folder)
        source = (folder / SOURCE).read_text(encoding="utf-8")
        first_rows |= {line.strip() for line in source.splitlines() if "pass = row" in line}
    assert len(first_rows) > 1
