"""Layers that make more rows than they read, by rows: as exact as layer by layer, checked, and smaller.

BYTEWRIGHT_TESTS=thorough takes four times as many networks.
"""

from __future__ import annotations

from dataclasses import astuple
from pathlib import Path

import numpy as np
import pytest

from bytewright.bundle.write import write_bundle
from bytewright.compiler.pipeline import compile_model
from bytewright.execute.build import BuildOptions
from bytewright.execute.paranoid import run_paranoid
from bytewright.inspect.check import check_bundle
from bytewright.ir.analyses.row_replay import Window
from bytewright.ir.border import Io
from bytewright.options import Options, Rows
from bytewright.target.registry import load_target
from support.against_reference import assert_equals_reference
from support.head_models import RISES, head_model
from support.many_models import SANITIZERS
from support.random_models import RandomModel
from support.spatial_networks import spatial_model
from support.tiers import TIMES
from tflite_writer import ModelBuilder

SANITIZED = ("-O0", *SANITIZERS)
HOST = load_target("host")


@pytest.mark.run
@pytest.mark.parametrize(
    ("first", "count", "dtype", "target", "options"),
    [
        pytest.param(90_000, 4, "int8", "host", Options(rows=Rows.MAX), id="max"),
        pytest.param(
            90_100, 4, "int8", "mps3-an547", Options(rows=Rows.MAX, io=Io.WORKSPACE), id="max-workspace"
        ),
        pytest.param(90_200, 3, "float32", "host", Options(rows=Rows.MAX), id="float32"),
        pytest.param(90_300, 3, "int8", "host", Options(), id="auto"),
    ],
)
def test_networks_that_rise(
    first: int, count: int, dtype: str, target: str, options: Options, tmp_path: Path
) -> None:
    models = [
        spatial_model(seed, dtype, rises=True, extents=(1, 24))
        for seed in range(first, first + count * TIMES)
    ]
    for begin in range(0, len(models), 20):
        part, folder = models[begin : begin + 20], tmp_path / str(begin)
        assert_equals_reference(part, folder, target=target, flags=SANITIZED, io=options.io, options=options)


def test_heads_of_detectors_are_exact_by_rows(tmp_path: Path) -> None:
    models = [head_model(rise, "int8", 10, skips=len(rise) % 2 == 0) for rise in RISES]
    models += [head_model(rise, "float32", 6) for rise in ("bilinear from the middle", "transposed by three")]
    assert_equals_reference(models, tmp_path, flags=SANITIZED, options=Options(rows=Rows.MAX))


def sizes(path: Path, rise: str, target: str = "host", *, skips: bool = False) -> tuple[int, int]:
    """The workspace with and without rows; around the rise tensors are rings with rows."""
    path.write_bytes(head_model(rise, rows=32, skips=skips).content)
    by_rows, whole = (
        compile_model(path, load_target(target), Options(rows=rows)).plan for rows in (Rows.AUTO, Rows.OFF)
    )
    (name,) = [
        step.kernel for step in by_rows.steps if step.rows and any(w.divisor > 1 for w in step.rows.windows)
    ]
    rise_step = next(step for step in by_rows.steps if step.kernel == name)
    rings = [n for n in rise_step.touched if by_rows.buffers[n].ring is not None]
    assert len(rings) == (3 if skips else 2), rings  # the sum is a part of the step that rises
    return by_rows.workspace_bytes, whole.workspace_bytes


@pytest.mark.parametrize(
    ("rise", "most"),
    [
        ("nearest", 2816),
        ("nearest from the middle", 2816),
        ("bilinear", 2944),
        ("bilinear from the middle", 2944),
        ("transposed by two", 2816),
        ("transposed by three", 2944),
    ],
)
def test_more_rows_do_not_make_tensors_whole(rise: str, most: int, tmp_path: Path) -> None:
    """32 rows of 32 pixels of 8 channels are 8,192 B, which one after the other needs layer by layer."""
    small, large = sizes(tmp_path / "m.tflite", rise)
    assert large >= 8192
    assert small <= most


def test_a_skip_keeps_the_rows_that_the_way_down_and_up_is_late(tmp_path: Path) -> None:
    """The sum comes some rows after its first operand was made, which is therefore a ring of more than a window."""
    small, large = sizes(tmp_path / "m.tflite", "bilinear from the middle", skips=True)
    assert small <= 3968
    assert large >= 8192 + 2048


def test_a_decoder_checks_and_runs_paranoid_by_rows(tmp_path: Path) -> None:
    path = tmp_path / "m.tflite"
    path.write_bytes(head_model("bilinear from the middle", rows=12, skips=True).content)
    made = compile_model(path, HOST, Options(rows=Rows.MAX))
    write_bundle(made.files, tmp_path / "b")
    check_bundle(tmp_path / "b")
    assert run_paranoid(tmp_path / "b", options=BuildOptions(("-O1",))).num_steps == len(made.plan.steps)


def test_an_image_by_rows_feeds_a_decoder(tmp_path: Path) -> None:
    """The step that takes a row is as fast as any, as the result has as many rows as the image."""
    models = [head_model("nearest", rows=12), head_model("transposed by three", rows=12, skips=True)]
    assert_equals_reference(models, tmp_path, io=Io.ROWS, flags=SANITIZED)


def test_the_plan_says_which_rows_a_resize_reads(tmp_path: Path) -> None:
    path = tmp_path / "m.tflite"
    path.write_bytes(head_model("bilinear", rows=12).content)
    plan = compile_model(path, HOST, Options(rows=Rows.MAX)).plan
    windows = [w for step in plan.steps if step.rows for w in step.rows.windows if w.divisor > 1]
    assert [(w.stride, w.first, w.last, w.divisor) for w in windows] == [(1, 0, 1, 2)]
    needed = [Window(*astuple(w)).needed(range(row, row + 1)) for w in windows for row in (0, 1, 10, 11)]
    assert [list(rows) for rows in needed] == [[0], [0, 1], [5], [5]]


def test_positions_that_are_no_line_are_a_table(tmp_path: Path) -> None:
    """Of so many columns, float32's scale is off by more than a line can be."""
    builder = ModelBuilder()
    x, y = builder.tensor("x", (1, 1, 33_863, 1), "float32"), builder.tensor("y", (1, 1, 7027, 1), "float32")
    size = builder.constant("size", np.array([1, 7027], np.int32))
    builder.operator("RESIZE_BILINEAR", [x, size], [y])
    model = RandomModel(builder.build([x], [y]), "a long row", ((1, 1, 33_863, 1),), "float32")
    path = tmp_path / "m.tflite"
    path.write_bytes(model.content)
    plan = compile_model(path, HOST, Options()).plan
    assert [name for name in plan.buffers if "source_index" in name]
    assert_equals_reference([model], tmp_path, flags=SANITIZED)
