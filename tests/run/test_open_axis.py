"""Axes whose extent each run is given: results equal LiteRT's, resized to every extent."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from numpy.typing import NDArray

import bytewright
from bytewright.cli.main import bytewright as command
from bytewright.diagnostics import CompileError, Diagnostic
from bytewright.execute.run import run_batch
from bytewright.inspect.check import check_bundle
from support.c_program import run_c
from support.entry_programs import WAKE
from support.reference import LiteRt
from tflite_writer import ModelBuilder

pytestmark = pytest.mark.run

Array = NDArray[Any]
ROWS, MOST = 10, 24
AFFINE: dict[str, Any] = {"scale": 0.5, "zero_point": 3}


class Draft(ModelBuilder):
    """A network over time: [1, ROWS, 8] of int8."""

    def __init__(self) -> None:
        super().__init__()
        self.rng = np.random.default_rng(3)
        self.x = self.rows("x", 8)

    def rows(self, name: str, channels: int, count: int = ROWS) -> int:
        return self.tensor(name, (1, count, channels), "int8", **AFFINE)

    def weights(self, *shape: int) -> list[int]:
        w = self.constant("w", self.rng.integers(-127, 128, shape, dtype=np.int8), scale=0.01)
        bias = np.zeros(shape[0], np.int32)
        return [w, self.tensor("b", bias.shape, "int32", data=bias, scale=0.005)]

    def shape(self, *extents: int) -> int:
        return self.constant("shape", np.array(extents, np.int32))


def dense() -> bytes:
    """A layer of each row, its softmax, and both added."""
    draft = Draft()
    h, z = draft.rows("h", 16), draft.rows("z", 16)
    s = draft.tensor("s", (1, ROWS, 16), "int8", scale=1 / 256, zero_point=-128)
    draft.operator(
        "FULLY_CONNECTED", [draft.x, *draft.weights(16, 8)], [h], keep_num_dims=True, activation="RELU"
    )
    draft.operator("SOFTMAX", [h], [s])
    draft.operator("ADD", [h, s], [z])
    return draft.build([draft.x], [z])


def convolved() -> bytes:
    """A convolution of each row and one of its channels' mean, of an image one row high."""
    draft = Draft()
    image = draft.tensor("image", (1, 1, ROWS, 8), "int8", **AFFINE)
    draft.operator("RESHAPE", [draft.x, draft.shape(1, 1, -1, 8)], [image], new_shape=(1, 1, -1, 8))
    y = draft.tensor("y", (1, 1, ROWS, 16), "int8", **AFFINE)
    draft.operator("CONV_2D", [image, *draft.weights(16, 1, 1, 8)], [y])
    out = draft.tensor("out", (1, 1, ROWS, 1), "int8", scale=0.25, zero_point=1)
    draft.operator("MEAN", [y, draft.constant("axis", np.array([3], np.int32))], [out], keep_dims=True)
    return draft.build([draft.x], [out])


def positions() -> bytes:
    """Each row has its own constant."""
    draft = Draft()
    y = draft.rows("y", 8)
    table = draft.rng.integers(-128, 128, (1, ROWS, 8), dtype=np.int8)
    draft.operator("ADD", [draft.x, draft.constant("table", table, **AFFINE)], [y])
    return draft.build([draft.x], [y])


def sizes(*, are_of_file: bool = False) -> bytes:
    """Its own shape is what it is given; or that of the file is, and a SHAPE beside it."""
    draft = Draft()
    found = draft.tensor("found", (3,), "int32")
    draft.operator("SHAPE", [draft.x], [found], out_type="INT32")
    y, z = draft.rows("y", 8), draft.rows("z", 8)
    draft.operator("RESHAPE", [draft.x, found], [y])
    draft.operator("RESHAPE", [y, draft.shape(1, ROWS, 8) if are_of_file else found], [z])
    return draft.build([draft.x], [z])


def saved(tmp_path: Path, content: bytes) -> Path:
    file = tmp_path / "m.tflite"
    file.write_bytes(content)
    return file


@pytest.mark.parametrize("content", [dense(), convolved(), sizes()], ids=["dense", "convolved", "sizes"])
@pytest.mark.parametrize("options", [{}, {"io": "workspace"}, {"kernels": "portable"}], ids=str)
def test_every_extent_is_exact(tmp_path: Path, content: bytes, options: dict[str, Any]) -> None:
    given = {"kernel_code" if key == "kernels" else key: value for key, value in options.items()}
    model = bytewright.compile(saved(tmp_path, content), open=f"x:1=time:1..{MOST}", **given)
    reference, rng = LiteRt(content), np.random.default_rng(5)
    for extent in range(1, MOST + 1):
        x = rng.integers(-128, 128, (1, extent, 8), dtype=np.int8)
        (wanted,) = reference.run(x)
        found = np.asarray(model.run(x))
        assert found.shape == wanted.shape
        assert (found == wanted).all(), extent


def test_the_bundle_says_it_and_is_checked(tmp_path: Path) -> None:
    model = bytewright.compile(saved(tmp_path, dense()), open=f"1=time:2..{MOST}")
    folder = model.write(tmp_path / "bundle")
    assert check_bundle(folder).num_steps == len(model.plan.steps)
    (symbol,) = model.plan.symbols
    assert (symbol.name, symbol.lower, symbol.upper) == ("time", 2, MOST)
    assert [tensor.extents for tensor in (*model.plan.inputs, *model.plan.outputs)] == [
        (1, "time", 8),
        (1, "time", 16),
    ]
    header = (folder / "include" / "m.h").read_text()
    assert f"#define M_TIME_MAX {MOST}" in header
    assert "int32_t time)" in header
    for extent in (0, 1, MOST + 1):
        with pytest.raises(CompileError) as caught:
            run_batch(folder, [[np.zeros((1, extent, 8), np.int8)]])
        assert caught.value.diagnostics[0].code == "BW205"


SELF_TEST = r"""
#include "@m@_self_test.h"

static @m@_context context;
static uint8_t @OUTPUT@;

int main(void)
{
    void *memory = block(@M@_RAM_WORKSPACE_ALIGN, @M@_RAM_WORKSPACE_SIZE);
    @m@_workspaces workspaces = {.ram = {memory, @M@_RAM_WORKSPACE_SIZE}};
    @m@_outputs outputs = {(void *)result};
    SHOW("set", @m@_set_workspaces(&context, &workspaces));
    SHOW("tested", @m@_self_test(&context, &outputs));
    free(memory);
    return 0;
}
"""


@pytest.mark.parametrize("number", [None, 2])
def test_a_self_test_is_of_three_extents(tmp_path: Path, number: int | None) -> None:
    """What one of them gives is changed, of which its number says which it is."""
    file = tmp_path / "m.tflite"
    file.write_bytes(convolved())
    bytewright.compile(file, open="1=time:3..20", batch_max=2, self_test=1).write(tmp_path / "m")
    source = tmp_path / "m" / "src" / "m_self_test.c"
    text = source.read_text()
    assert re.findall(r"\{(\d+), (\d+)\}", text) == [("2", "20"), ("1", "3"), ("1", "11")]
    sums = re.findall(r"0x(\w+)u\}", text)
    assert len(sums) == 3
    if number is not None:
        source.write_text(text.replace(sums[number - 1], f"{int(sums[number - 1], 16) ^ 1:08X}"))
    size = "result[2 * 20 * 64]"
    shown = run_c(tmp_path / "m", SELF_TEST.replace("@OUTPUT@", size), tmp_path)
    assert shown == {"set": 0, "tested": number or 0}


def test_a_self_test_gives_a_tensor_without_axes(tmp_path: Path) -> None:
    builder = ModelBuilder()
    x, y = (builder.tensor(name, (), "int8", scale=0.5, zero_point=0) for name in "xy")
    builder.operator("ADD", [x, x], [y])
    model = bytewright.compile(saved(tmp_path, builder.build([x], [y])), self_test=1)
    assert model.plan.inputs[0].shape == ()
    assert "src/m_self_test.c" in model.files


def test_a_run_shows_results_in_the_shape_that_they_have(tmp_path: Path) -> None:
    bytewright.compile(saved(tmp_path, dense()), open=f"1=time:2..{MOST}").write(tmp_path / "bundle")
    np.save(tmp_path / "x.npy", np.zeros((1, 5, 8), np.int8))
    done = CliRunner().invoke(
        command, ["run", str(tmp_path / "bundle"), "--input", str(tmp_path / "x.npy")], catch_exceptions=False
    )
    assert "int8[1, 5, 16]" in done.output


def test_a_larger_range_than_the_file_s_costs_the_larger_plan(tmp_path: Path) -> None:
    file = saved(tmp_path, dense())
    plans = [bytewright.compile(file, open=f"1=time:1..{most}").plan for most in (ROWS, 4 * ROWS)]
    assert plans[1].workspace_bytes == 4 * plans[0].workspace_bytes


def refused(tmp_path: Path, content: bytes, **options: Any) -> Diagnostic:
    asked: dict[str, Any] = {"open": f"1=time:1..{MOST}", **options}
    with pytest.raises(CompileError) as caught:
        bytewright.compile(saved(tmp_path, content), **asked)
    return caught.value.diagnostics[0]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (positions(), "0 (ADD) does not allow it: shapes [1xtime[1..24]x8] and [1x10x8] do not broadcast"),
        (
            sizes(are_of_file=True),
            "operator 0 (SHAPE) of 'm.tflite' read sizes, and the file is for one size alone",
        ),
    ],
    ids=["positions", "sizes"],
)
def test_what_an_operator_does_not_allow_is_refused(tmp_path: Path, content: bytes, reason: str) -> None:
    found = refused(tmp_path, content)
    assert found.code == "BW121"
    assert reason in found.message
    assert found.help is not None
    assert found.help.startswith("leave out --open")


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"stream": "1"}, "BW121"),
        ({"open": "2=channels:1..8"}, "BW121"),
        ({"open": ["1=a:1..8", "x:1=b:1..8"]}, "BW204"),
        ({"open": ["1=a:1..8", "x:2=a:1..9"]}, "BW121"),
        ({"open": ["1=a:1..8", "x:2=a:1..8"]}, "BW121"),
        ({"open": ["1=a:1..8", "x:1=a:1..8"]}, "BW204"),
        ({"open": "3=a:1..8"}, "BW204"),
        ({"open": "z:1=a:1..8"}, "BW204"),
        ({"open": "1=int:1..8"}, "BW117"),
    ],
    ids=str,
)
def test_what_contradicts_is_refused(tmp_path: Path, options: dict[str, Any], code: str) -> None:
    assert refused(tmp_path, dense(), **options).code == code


def test_a_program_says_itself_what_is_open(tmp_path: Path) -> None:
    text = tmp_path / "wake.bw"
    text.write_text(WAKE)
    with pytest.raises(CompileError, match="--open is for graphs") as caught:
        bytewright.compile(text, open="1=time:1..8")
    assert caught.value.diagnostics[0].code == "BW204"


def running_maximum(*state: int) -> bytes:
    """The greatest of each channel, of all rows of all runs; a state of rows is compared row by row."""
    draft = Draft()
    before, after = (draft.tensor(name, state, "int8", **AFFINE) for name in ("before", "after"))
    greatest = draft.x
    if len(state) == 2:
        greatest = draft.tensor("greatest", state, "int8", **AFFINE)
        draft.operator("REDUCE_MAX", [draft.x, draft.constant("axis", np.array([1], np.int32))], [greatest])
    draft.operator("MAXIMUM", [greatest, before], [after])
    return draft.build([draft.x, before], [after])


def test_a_state_goes_from_a_run_to_one_of_another_extent(tmp_path: Path) -> None:
    model = bytewright.compile(
        saved(tmp_path, running_maximum(1, 8)), open=f"x:1=time:1..{MOST}", state="before=after"
    )
    rng = np.random.default_rng(2)
    rows = [rng.integers(-60, 128, (1, extent, 8), np.int8) for extent in (3, MOST, 1, 7)]
    found = run_batch(model.write(tmp_path / "bundle"), [[x] for x in rows], keep_state=True).outputs
    before = np.full((1, 8), AFFINE["zero_point"], np.int8)  # a state is zero at first
    for x, (after,) in zip(rows, found, strict=True):
        before = np.maximum(before, x.max(axis=1))
        np.testing.assert_array_equal(after, before)


def test_a_state_has_no_open_axis(tmp_path: Path) -> None:
    asked = [f"{name}:1=time:1..{MOST}" for name in ("x", "before")]
    found = refused(tmp_path, running_maximum(1, ROWS, 8), open=asked, state="before=after")
    assert (found.code, found.help) == ("BW121", f"leave out --open {asked[1]}")


@pytest.mark.parametrize(
    "text", ["1=t:0..4", "1=t:5..4", "1=t:4..4", "1=t:-1..4", "1=t", "x=t:1..2", "1=t:1..x"]
)
def test_what_is_no_range_is_a_usage_error(tmp_path: Path, text: str) -> None:
    done = CliRunner().invoke(command, ["compile", "m.tflite", "-o", str(tmp_path / "out"), "--open", text])
    assert done.exit_code == 2
