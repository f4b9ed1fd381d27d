"""Numbers that follow from open extents: the plan states them, and `check` reads them back in the C."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bytewright
from bytewright import ir
from bytewright.diagnostics import CompileError
from bytewright.inspect.c_nodes import expression, extent_in_c
from bytewright.inspect.check import check_bundle
from support.digits_bundle import change_file, write_document
from support.plan_mutations import write_consistently
from tflite_writer import ModelBuilder

TIME = ir.Symbol("time", 3, 40)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("time", lambda t: t),
        ("(time - 3) / 2 + 1", lambda t: (t - 3) // 2 + 1),
        ("2 * ((time + 1) / 2) + 5", lambda t: 2 * ((t + 1) // 2) + 5),
        ("(3 * ((time * 2) / 3) + time - time) / 4", None),
        ("time / 2 + (time + 2) / 2", lambda t: t // 2 + (t + 2) // 2),
        ("time / 2 + (time + 1) / 2", None),
        ("(time - 4) / 2", None),  # of three C makes 0, and rounding down -1
        ("time / 0", None),
        ("time / -2", None),
        ("-1 * time", None),
        ("7 - time", None),
        ("time * time", None),
        ("other / 2", None),
        ("time % 2", None),
        ("(int8_t)time / 2", None),
    ],
)
def test_extents_of_c_have_the_values_that_c_gives_them(text: str, wanted: Any) -> None:
    found = extent_in_c(expression(text), {"time": TIME})
    if wanted is None:
        assert found is None
    else:
        assert found is not None
        values = range(TIME.lower, TIME.upper + 1)
        assert [ir.extent_at(found, each) for each in values] == [wanted(each) for each in values]


def bundle(folder: Path) -> Path:
    """A window with a stride over time, and what is made twice as long of it."""
    builder, rng = ModelBuilder(), np.random.default_rng(1)
    affine = {"scale": 0.5, "zero_point": 3}
    x = builder.tensor("x", [1, 12, 1, 4], "int8", **affine)
    w = builder.constant("w", rng.integers(-9, 9, (4, 3, 1, 4)).astype(np.int8), scale=0.5)
    b = builder.tensor("b", [4], "int32", data=np.zeros(4, np.int32), scale=0.25)
    y = builder.tensor("y", [1, 6, 1, 4], "int8", **affine)
    both, z = (builder.tensor(name, [1, 12, 1, 4], "int8", **affine) for name in ("both", "z"))
    builder.operator("CONV_2D", [x, w, b], [y], stride_h=2, stride_w=1)
    builder.operator("CONCATENATION", [y, y], [both], axis=1)
    builder.operator("CONV_2D", [both, w, b], [z])
    folder.mkdir()
    (folder / "m.tflite").write_bytes(builder.build([x], [z]))
    bytewright.compile(folder / "m.tflite", open="1=time:3..40").write(folder / "m")
    return folder / "m"


def refusal(folder: Path) -> str:
    with pytest.raises(CompileError) as caught:
        check_bundle(folder)
    return "\n".join(note for each in caught.value.diagnostics for note in each.notes)


def test_the_plan_states_extents_that_are_passed(tmp_path: Path) -> None:
    folder = bundle(tmp_path / "of")
    check_bundle(folder)
    steps = json.loads((folder / "plan.json").read_text())["steps"]
    assert steps[0]["scalars"] == [0, "(time+1)/2", "time"]
    assert steps[2]["scalars"] == [0, "(2*((time+1)/2))", "time"]


@pytest.mark.parametrize(
    "new", ["time / 2", "(time + 2) / 2", "((time - 9) / 2) + 5", "(time + 1) % 2", "time"]
)
def test_another_extent_in_the_c_is_found(tmp_path: Path, new: str) -> None:
    folder = bundle(tmp_path / "of")
    change_file(folder, "src/m.c", "        (time + 1) / 2,\n", f"        {new},\n")
    assert f"it is given the number '{new}', by the plan '(time+1)/2'" in refusal(folder)


def test_an_extent_that_is_written_otherwise_is_the_same(tmp_path: Path) -> None:
    folder = bundle(tmp_path / "of")
    change_file(folder, "src/m.c", "        (time + 1) / 2,\n", "        (time - 1) / 2 + 1,\n")
    check_bundle(folder)


@pytest.mark.parametrize(
    ("index", "to"),
    [(1, "(time+2)/2"), (1, "(2*time+2)/4"), (1, "time"), (1, 20)],
)
def test_another_number_in_the_plan_is_found(tmp_path: Path, index: int, to: int | str) -> None:
    folder = bundle(tmp_path / "of")
    document = json.loads((folder / "plan.json").read_text())
    document["steps"][0]["scalars"][index] = to
    write_document(folder, document)
    given = ["0", "(time + 1) / 2", "time"][index]
    assert f"it is given the number '{given}', by the plan '{to}'" in refusal(folder)


@pytest.mark.parametrize(
    "extent",
    [
        pytest.param("(2*((time)/0))", id="divided by none"),
        pytest.param("(0*((time+1)/2))", id="taken not once"),
        pytest.param("(2*((time+1)/100))", id="of what is 0 in every run"),
        pytest.param("(2*((2*time+2)/2)+2)", id="of what is not in lowest terms"),
        pytest.param("(2*(" * 1500 + "(time+1)/2" + "))/3" * 1500, id="1500 in each other"),
        pytest.param(f"(2*((time+{'9' * 5000})/2))", id="of 5000 digits"),
    ],
)
def test_an_extent_that_none_is_written_as_is_refused(tmp_path: Path, extent: str) -> None:
    folder = bundle(tmp_path / "of")
    files = {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    document = json.loads(files["plan.json"])

    document["outputs"][0]["extents"][1] = extent
    write_consistently(folder, files, document)
    with pytest.raises(CompileError, match="extent"):
        check_bundle(folder)
