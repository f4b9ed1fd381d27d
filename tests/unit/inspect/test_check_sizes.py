"""Bounds of what the data decides, in the C of kernels: `check` refuses a bundle that has another, or none."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import bytewright
from bytewright.diagnostics import CompileError
from bytewright.inspect.check import check_bundle
from support.digits_bundle import change_file
from tflite_writer import ModelBuilder

KERNELS = "src/m_kernels.c"


def some_rows(builder: ModelBuilder) -> tuple[list[int], list[int]]:
    """The rows whose mask is true, and their squares."""
    x, mask = builder.tensor("x", (10, 4), "float32"), builder.tensor("mask", (10,), "bool")
    places, rows = builder.tensor("places", (0, 1), "int64"), builder.tensor("rows", (0, 4), "float32")
    squares = builder.tensor("squares", (0, 4), "float32")
    builder.operator("WHERE", [mask], [places])
    builder.operator("GATHER_ND", [x, places], [rows])
    builder.operator("MUL", [rows, rows], [squares])
    return [x, mask], [squares]


def distinct(builder: ModelBuilder) -> tuple[list[int], list[int]]:
    """The values of a list without repetition, and the place of each."""
    x = builder.tensor("x", (10,), "int8", scale=1.0, zero_point=0)
    values, places = (
        builder.tensor("values", (0,), "int8", scale=1.0),
        builder.tensor("places", (10,), "int32"),
    )
    builder.operator("UNIQUE", [x], [values, places])
    return [x], [values, places]


CASES = {some_rows: "WHERE=6", distinct: "UNIQUE=4"}
FORGED = [
    (some_rows, "clamp_i32(size[0], 0, 6)", "size[0]", "'where_0/size' from 0 to 6"),
    (some_rows, "clamp_i32(size[0], 0, 6)", "clamp_i32(size[0], 0, 7)", "'where_0/size' from 0 to 6"),
    (some_rows, "clamp_i32(size[0], 0, 6)", "min_i32(size[0], 6)", "'where_0/size' from 0 to 6"),
    (some_rows, "if (num_found < 6)", "if (num_found < 7)", "depends on 'row'"),
    (some_rows, "if (num_found < 6)", "", "depends on 'row'"),
    (some_rows, "(value < low) ? low", "(value < low) ? value", "has another 'clamp_i32'"),
    (distinct, "if (num_found < 4)", "if (num_found <= 4)", "depends on 'num_found'"),
    (distinct, "min_i32(num_found, 4)", "num_found", "depends on 'back < kept'"),
]


@pytest.mark.parametrize("model", CASES)
def test_a_bound_that_is_forged_in_a_kernel_is_found(model: object, tmp_path: Path) -> None:
    builder = ModelBuilder()
    assert callable(model)
    inputs, outputs = model(builder)
    (tmp_path / "m.tflite").write_bytes(builder.build(inputs, outputs))
    compiled = bytewright.compile(tmp_path / "m.tflite", bounds=CASES[model])
    folder = compiled.write(tmp_path / "m")
    check_bundle(folder)
    plan, text = ((folder / path).read_text() for path in ("plan.json", KERNELS))
    for _, old, new, note in (each for each in FORGED if each[0] is model):
        change_file(folder, KERNELS, old, new)
        with pytest.raises(CompileError, match="BW402") as caught:
            check_bundle(folder)
        assert note in str(caught.value), (old, new)
        (folder / "plan.json").write_text(plan)
        (folder / KERNELS).write_text(text)
    check_bundle(folder)


def test_a_view_with_scales_of_its_own_is_the_output_that_it_is(tmp_path: Path) -> None:
    """The bytes are those of a softmax, whose steps are finer than the output says."""
    builder = ModelBuilder()
    x = builder.tensor("x", (1, 8), "int8", scale=0.1)
    y = builder.tensor("y", (1, 8), "int8", scale=1 / 256, zero_point=-128)
    z = builder.tensor("z", (2, 4), "int8", scale=1 / 128, zero_point=-128)
    builder.operator("SOFTMAX", [x], [y], beta=1.0)
    builder.operator("RESHAPE", [y], [z], new_shape=[2, 4])
    (tmp_path / "m.tflite").write_bytes(builder.build([x], [z]))
    compiled = bytewright.compile(tmp_path / "m.tflite")
    plan = check_bundle(compiled.write(tmp_path / "m")).plan
    (output,) = plan.outputs
    assert output.scale == plan.buffers[output.buffer].scale == np.float32(1 / 128)


def test_frames_that_are_each_computed_by_themselves_need_no_state(tmp_path: Path) -> None:
    builder = ModelBuilder()
    x, y = builder.tensor("x", (1, 12, 2), "float32"), builder.tensor("y", (1, 12, 2), "float32")
    builder.operator("RELU", [x], [y])
    (tmp_path / "m.tflite").write_bytes(builder.build([x], [y]))
    compiled = bytewright.compile(tmp_path / "m.tflite", stream="1")
    assert not check_bundle(compiled.write(tmp_path / "m")).plan.states
