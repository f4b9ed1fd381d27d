"""Options name inputs, outputs and tensors as C does, as the model's file does, or as its signature does."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bytewright
from bytewright.diagnostics import CompileError
from tflite_writer import ModelBuilder

X, H = "serving_default_x:0", "serving_default_h_in:0"
Y, LEFT = "StatefulPartitionedCall:1", "lstm_1/mul_5"


def file_of(folder: Path, names: tuple[str, str] = (X, H), keys: tuple[str, str] = ("x", "h.in")) -> Path:
    """(x + h, x * h) with a signature, names as converters write them, and a FILL of a number that the run says."""
    builder = ModelBuilder()
    x, h = (builder.tensor(name, (3, 4), "float32", shape_signature=(-1, 4)) for name in names)
    n = builder.tensor("serving_default_n:0", (1,), "int32")
    y, left = builder.tensor(Y, (3, 4), "float32"), builder.tensor(LEFT, (3, 4), "float32")
    filled = builder.tensor("model/Fill", (1,), "float32", shape_signature=(-1,))
    builder.operator("ADD", [x, h], [y])
    builder.operator("MUL", [x, h], [left])
    builder.operator("FILL", [n, builder.constant("one", np.array(1, np.float32))], [filled])
    builder.signature("serve", {keys[0]: x, keys[1]: h, "n": n}, {"y": y, "h.out": left, "filled": filled})
    path = folder / "m.tflite"
    path.write_bytes(builder.build([x, h, n], [y, left, filled]))
    return path


@pytest.mark.parametrize("given", ["h_in", "h.in", H])
@pytest.mark.parametrize("result", ["h_out", "h.out", LEFT])
def test_a_state(tmp_path: Path, given: str, result: str) -> None:
    plan = bytewright.compile(file_of(tmp_path), state=f"{given}={result}", bounds="fill_2=3").plan
    assert [state.name for state in plan.states] == ["h_in"]
    assert [port.name for port in (*plan.inputs, *plan.outputs)][:3] == ["x", "n", "y"]


def shapes(path: Path, **asked: Any) -> list[tuple[object, ...]]:
    plan = bytewright.compile(path, bounds="model/Fill=3", **asked).plan
    return [port.shape for port in (*plan.inputs, *plan.outputs)]


def test_input_shapes_with_colons(tmp_path: Path) -> None:
    path = file_of(tmp_path)
    wanted = shapes(path, input_shapes=["x=5x4", "h_in=5x4"])
    assert wanted[0] == (5, 4)
    assert shapes(path, input_shapes=[f"{X}=5x4", "h.in=5x4"]) == wanted


def test_open_axes_with_colons(tmp_path: Path) -> None:
    path = file_of(tmp_path)
    wanted = shapes(path, open=["x:0=time:1..9", "h_in:0=time:1..9"])
    assert shapes(path, open=[f"{X}:0=time:1..9", f"{H}:0=time:1..9"]) == wanted
    with pytest.raises(CompileError, match=r"--open .*: input 'x' has shape \[.*\], and it has no axis 7"):
        bytewright.compile(path, open=f"{X}:7=time:1..9", bounds="FILL=3")


@pytest.mark.parametrize("pattern", ["fill_2", "FILL", "model/Fill", "model/*"])
def test_bounds(tmp_path: Path, pattern: str) -> None:
    (size,) = bytewright.compile(file_of(tmp_path), bounds=f"{pattern}=7").plan.sizes
    assert (size.name, size.upper) == ("fill_2_size", 7)


POOLS: dict[str, Any] = {"io": "workspace", "workspace": ["fast=4KiB@ram", "slow=4KiB@ram"]}


@pytest.mark.parametrize(
    ("option", "pattern", "others"),
    [("pins", "{}=slow", POOLS), ("on", "{}=cpu.slow", POOLS), ("kernels", "{}=own_product", {})],
)
def test_a_tensor_of_the_file_is_that_of_the_graph(
    tmp_path: Path, option: str, pattern: str, others: dict[str, Any]
) -> None:
    path = file_of(tmp_path)
    described = tmp_path / "own.toml"
    operands = "{ input = 0, name = 'a' }, { input = 1, name = 'b' }, { output = 0 }"
    described.write_text(f"[kernel.own_product]\nstack = 64\narguments = [{operands}]\n")
    if option == "kernels":
        others = {**others, "kernel_file": described}

    def changed(name: str) -> tuple[object, object]:
        asked: Any = {**others, option: pattern.format(name)}
        plan = bytewright.compile(path, bounds="FILL=3", **asked).plan
        return plan.buffers, plan.steps

    unasked: dict[str, Any] = {**others, "kernel_file": None}
    free = bytewright.compile(path, bounds="FILL=3", **unasked).plan
    assert changed(LEFT) == changed("mul_1/out") != (free.buffers, free.steps)
    with pytest.raises(CompileError, match=r"BW\d+.*'lstm_1/mul_6="):
        changed("lstm_1/mul_6")


def test_a_name_of_c_comes_first(tmp_path: Path) -> None:
    """The file calls the other input's tensor as C calls this one."""
    path = file_of(tmp_path, ("before", "now"), ("now", "before"))
    plan = bytewright.compile(path, state="now=y", bounds="FILL=3").plan
    assert [state.name for state in plan.states] == ["now"]


def test_a_name_of_several_is_refused_with_one_that_works(tmp_path: Path) -> None:
    path = file_of(tmp_path, ("same:0", "same:0"))
    with pytest.raises(CompileError) as error:
        bytewright.compile(path, state="same:0=h.out", bounds="FILL=3")
    (diagnostic,) = error.value.diagnostics
    assert diagnostic.code == "BW204"
    assert diagnostic.message == (
        "--state same:0=h.out: 'same:0' may be 'x' or 'h_in', which the file calls so"
    )
    assert diagnostic.help is not None
    flag, pair = shlex.split(diagnostic.help)
    assert flag == "--state"
    assert bytewright.compile(path, state=pair, bounds="FILL=3").plan.states[0].name == "x"


def test_a_name_of_nothing_is_refused_with_those_that_there_are(tmp_path: Path) -> None:
    path = file_of(tmp_path)
    with pytest.raises(CompileError, match=r"no input 'serving_default_h:0'; it has 'x', 'h_in', 'n'"):
        bytewright.compile(path, state=f"serving_default_h:0={LEFT}", bounds="FILL=3")
