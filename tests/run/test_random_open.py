"""Random networks of several types along rows equal LiteRT: with any number of rows, and on each window of a stream."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import bytewright
from bytewright.diagnostics import CompileError
from bytewright.execute.run import run_batch
from bytewright.inspect.check import check_bundle
from support.against_reference import differences
from support.compilers import QUICK
from support.random_draft import array
from support.random_models import RandomModel
from support.random_open import ROWS, across_network, open_network, sliding_network
from support.reference import LiteRt
from support.tiers import THOROUGH, turn
from tflite_writer import ModelBuilder

pytestmark = pytest.mark.run

COUNT = 100 if THOROUGH else 4
OPTIONS: tuple[dict[str, Any], ...] = (
    {},
    {"rows": "max", "optimize": "size"},
    {"rows": "off", "io": "workspace"},
    {"target": "mps3-an547"},
)


def is_equal_if_open(model: RandomModel, folder: Path, options: dict[str, Any], seed: int) -> bool:
    """Compiles a network and runs it with some numbers of rows; False if its rows are not each computed by itself."""
    folder.mkdir()
    path = folder / "m.tflite"
    path.write_bytes(model.content)
    (shape,), (dtype,) = model.input_shapes, model.dtypes
    most = 2 * shape[ROWS] + 1
    try:
        compiled = bytewright.compile(path, open=f"{ROWS}=rows:1..{most}", **options)
    except CompileError as error:
        if {diagnostic.code for diagnostic in error.diagnostics} != {"BW121"}:
            raise
        return False
    bundle = compiled.write(folder / "bundle")
    check_bundle(bundle)
    generator, host = np.random.default_rng(seed), options.get("target") is None
    for count in (1, shape[ROWS], most):
        x = array(generator, (shape[0], count, shape[2]), dtype, 2, model.domain)
        found = run_batch(
            bundle, [[x]], on="host" if host else "qemu", options=QUICK if host else None
        ).outputs[0]
        assert not differences(found, _wanted(model, x)), f"{count} rows: {model.description}"
    return True


def _wanted(model: RandomModel, x: NDArray[Any]) -> list[NDArray[Any]]:
    """What LiteRT gives; where it refuses a number of rows, what it gives for any input of the file's number.

    It refuses rows that an operator cannot take also where no result depends on that operator.
    """
    try:
        return [np.array(each) for each in LiteRt(model.content).run(x)]
    except RuntimeError:
        (shape,) = model.input_shapes
        runs = [
            [np.array(each) for each in LiteRt(model.content).run(np.resize(x, shape) + add)]
            for add in (0, 1)
        ]
        assert not differences(*runs), f"rows that LiteRT refuses have a result: {model.description}"
        return runs[0]


def test_each_number_of_rows(tmp_path: Path) -> None:
    """Few are refused: for what a row has of others, or as a result has no rows."""
    start = 0 if THOROUGH else 1_000_000 + 100 * turn()
    opened = [
        is_equal_if_open(open_network(start + n), tmp_path / f"{n}", OPTIONS[n % len(OPTIONS)], n)
        for n in range(COUNT)
    ]
    assert sum(opened) >= COUNT // 2 - 1


def test_operators_go_along_any_number_of_rows(tmp_path: Path) -> None:
    """Some are refused: of rounded numbers of rows, or where a file's own numbers stand beside them."""
    start = 0 if THOROUGH else 1_000_000 + 100 * turn()
    opened = [
        is_equal_if_open(across_network(start + n), tmp_path / f"{n}", OPTIONS[n % len(OPTIONS)], n)
        for n in range(COUNT)
    ]
    assert sum(opened) >= COUNT // 4


def is_equal_if_streamed(model: RandomModel, folder: Path, options: dict[str, Any], seed: int) -> bool:
    """Compiles a network and gives it frames; False if a run cannot go on from those of the last one."""
    folder.mkdir()
    path = folder / "m.tflite"
    path.write_bytes(model.content)
    (shape,), (dtype,) = model.input_shapes, model.dtypes
    try:
        compiled = bytewright.compile(path, stream=str(ROWS), **options)
    except CompileError as error:
        if {diagnostic.code for diagnostic in error.diagnostics} != {"BW120"}:
            raise
        return False
    stream = compiled.plan.stream
    assert stream is not None
    count, seen = stream.num_new, stream.num_frames
    total = seen + 4 * count
    frames = array(np.random.default_rng(seed), (shape[0], total, shape[2]), dtype, 2, model.domain)
    runs = [[np.ascontiguousarray(frames[:, k : k + count])] for k in range(0, total - count + 1, count)]
    outputs = run_batch(compiled.write(folder / "bundle"), runs, keep_state=True, options=QUICK).outputs
    reference = LiteRt(model.content)
    for run, found in enumerate(outputs):
        end = (run + 1) * count
        if end < seen or run < stream.num_runs_before:
            continue
        window = np.zeros(shape, frames.dtype)  # of its last rows some may be read by nothing
        window[:, :seen] = frames[:, end - seen : end]
        for own, whole in zip(found, reference.run(window), strict=True):
            wanted = whole[..., whole.shape[-2] - own.shape[-2] :, :] if whole.ndim > 2 else whole
            assert not differences([np.asarray(own)], [wanted]), f"run {run}: {model.description}"
    return True


def test_each_window_of_a_stream(tmp_path: Path) -> None:
    """Some are refused: layers that quantise by the range of a whole window."""
    start = 0 if THOROUGH else 1_000_000 + 100 * turn()
    kinds = ({}, {"optimize": "size"}, {"optimize": "speed", "rows": "max"})
    streamed = [
        is_equal_if_streamed(sliding_network(start + n), tmp_path / f"{n}", kinds[n % len(kinds)], n)
        for n in range(COUNT)
    ]
    assert any(streamed)


# Cases that were wrong once


@pytest.mark.parametrize(("asked", "rows"), [({"stream": "1"}, 1), ({"open": "1=rows:1..9"}, 7)], ids=str)
def test_no_result_is_of_rows(asked: dict[str, Any], rows: int, tmp_path: Path) -> None:
    """A result that is known at import, whatever the rows are."""
    builder = ModelBuilder()
    x, y = builder.tensor("x", (1, 5, 3), "float32"), builder.tensor("y", (2,), "float32")
    builder.operator("RELU", [builder.constant("k", np.array([1, -1], np.float32))], [y])
    path = tmp_path / "m.tflite"
    path.write_bytes(builder.build([x], [y]))
    found = bytewright.compile(path, **asked).run(np.zeros((1, rows, 3), np.float32))
    assert np.asarray(found).tolist() == [1, 0]
