"""Networks frame by frame, in C: equal to LiteRT's on each window, checked, paranoid, validated, and small."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import bytewright
from bytewright.diagnostics import CompileError
from bytewright.execute.paranoid import run_paranoid
from bytewright.execute.run import run_batch
from bytewright.inspect.check import check_bundle
from support.against_reference import differences
from support.compilers import QUICK
from support.recurrent_models import bidirectional_model, lstm_model
from support.reference import LiteRt
from support.streamed_nets import keyword_net, streamed_net, temporal_net, windows_net
from support.tiers import THOROUGH, some
from tflite_writer import OPTIONAL, ModelBuilder

pytestmark = pytest.mark.run

Array = NDArray[Any]
WITH_SEGMENTS = 13
SEEDS = range(60) if THOROUGH else some(range(24), every=12, always=[WITH_SEGMENTS])
NETS = [(keyword_net, 1, (1, 98, 10, 1)), (temporal_net, 2, (1, 1, 98, 40))]


def compiled(folder: Path, content: bytes, **options: Any) -> bytewright.CompiledModel:
    path = folder / "net.tflite"
    path.write_bytes(content)
    return bytewright.compile(path, **options)


def steps(frames: Array, axis: int, count: int) -> list[Array]:
    """The frames of each run."""
    return np.split(frames, range(count, frames.shape[axis], count), axis=axis)


def outputs(folder: Path, runs: Sequence[Array]) -> list[Sequence[Array]]:
    return list(run_batch(folder, [[array] for array in runs], keep_state=True, options=QUICK).outputs)


def last(array: Array, like: Array, axis: int) -> Array:
    rows = array.shape[axis] if array.ndim == 4 else 0
    return np.take(array, range(rows - like.shape[axis], rows), axis=axis) if rows else array


@pytest.mark.parametrize("seed", SEEDS)
def test_in_c_it_is_the_whole_network(seed: int, tmp_path: Path) -> None:
    net = streamed_net(seed, is_padded=bool(seed % 2))
    content, axis = net.build(48), net.axis
    model = compiled(tmp_path, content, stream=str(axis))
    folder = model.write(tmp_path / "bundle")
    check_bundle(folder)
    count = model.plan.inputs[0].shape[axis]
    assert isinstance(count, int)
    frames = net.frames(48 + 3 * count)
    found = outputs(folder, steps(frames, axis, count))
    for run, (own,) in enumerate(found):
        end = (run + 1) * count
        if end >= 48:
            begin = 0 if net.is_padded else end - 48
            whole = LiteRt(net.build(end) if net.is_padded else content)
            (wanted,) = whole.run(net.part(frames, begin, end - begin))
            assert differences([own], [last(wanted, own, axis)]) == [], run
    if seed % 24 < 12:
        run_paranoid(folder, [net.part(frames, 0, count)])


def test_a_result_has_fewer_rows_than_a_run_gives(tmp_path: Path) -> None:
    content = windows_net(12, [(10, 2), (3, 3)])
    model = compiled(tmp_path, content, stream="x:1")
    folder = model.write(tmp_path / "bundle")
    check_bundle(folder)
    assert "#define NET_STREAM_RUNS_BEFORE 1\n" in model.files["include/net.h"].decode()
    frames = np.random.default_rng(1).integers(1, 100, (1, 24, 1, 4)).astype(np.float32)
    for run, own in enumerate(outputs(folder, steps(frames, 1, 6))):
        if run >= 1:
            wanted = LiteRt(content).run(frames[:, 6 * run - 6 : 6 * run + 6])
            rows = [last(each, like, 1) for each, like in zip(wanted, own, strict=True)]
            assert differences(list(own), rows) == [], run


@pytest.mark.parametrize(("build", "axis", "shape"), NETS)
def test_keyword_nets_take_little(build: Any, axis: int, shape: tuple[int, ...], tmp_path: Path) -> None:
    """At most 60 % of the bytes of a run on the whole window whose tensors are whole, and 1/20 of the work."""
    content = build(98)
    whole = compiled(tmp_path, content, rows="off").plan
    model = compiled(tmp_path, content, stream=str(axis))
    stream = model.plan.stream
    assert stream is not None
    assert 10 * (model.plan.workspace_bytes + model.plan.state_bytes) <= 6 * whole.workspace_bytes
    assert 20 * stream.macs <= stream.macs_before
    frames = (
        np.random.default_rng(1).integers(-128, 128, (*shape[:axis], 110, *shape[axis + 1 :])).astype(np.int8)
    )
    found = outputs(model.write(tmp_path / "bundle"), steps(frames, axis, stream.num_new))
    reference, count = LiteRt(content), 0
    for run, (own,) in enumerate(found):
        end = (run + 1) * stream.num_new
        if end >= 98:
            wanted = reference.run(np.ascontiguousarray(np.take(frames, range(end - 98, end), axis=axis)))
            np.testing.assert_array_equal(own, wanted[0])
            assert run >= stream.num_runs_before
            count += 1
    assert count >= 7


def test_validate_compares_each_window(tmp_path: Path) -> None:
    model = compiled(tmp_path, temporal_net(40, width=6, channels=4, blocks=2), stream="2")
    frames = np.random.default_rng(2).integers(-128, 128, (45, 1, 1, 1, 6)).astype(np.int8)
    found = model.validate(frames)
    assert found.reference.num_samples == 6
    assert found.reference.is_exact
    with pytest.raises(CompileError, match="has outputs of none of 39 samples: no window of frames is full"):
        model.validate(frames[:39])


def test_what_the_header_and_the_summary_say(tmp_path: Path) -> None:
    model = compiled(tmp_path, temporal_net(40, width=6, channels=4, blocks=2), stream="2")
    header = model.files["include/net.h"].decode()
    assert "#define NET_STREAM_RUNS_BEFORE 39\n" in header
    flat = " ".join(header.replace(" * ", " ").split())
    assert (
        "Each run is given the next 1 frames of the 40 that the model looks at. Results count from run 40"
        in flat
    )
    assert model.plan.stream is not None
    assert model.plan.stream.text.startswith("1 of 40 frames a run, ")


RECURRENT = [("int8", 4), ("int8", 0), ("hybrid", 6), ("float32", 1)]


@pytest.mark.parametrize(("form", "seed"), some(RECURRENT, every=2, always=[("hybrid", 6)]))
def test_an_lstm_goes_on_frame_by_frame(form: str, seed: int, tmp_path: Path) -> None:
    """As LiteRT's does from window to window."""
    content = lstm_model(seed, form=form, sizes=(1, 6, 5, 7))
    reference = LiteRt(content)
    shape = tuple(reference.inputs[0]["shape"])
    axis, random = shape.index(6), np.random.default_rng(seed)
    windows = [random.integers(-128, 128, shape).astype(np.int8) for _ in range(3)]
    windows = windows if form == "int8" else [window / np.float32(64) for window in windows]
    wanted = np.concatenate([reference.run(window)[0] for window in windows], axis)
    model = compiled(tmp_path, content, stream=str(axis))
    story = model.plan.stream
    assert story is not None
    assert (story.num_new, story.num_runs_before, story.is_padded) == (1, 0, True)
    found = outputs(model.write(tmp_path / "bundle"), steps(np.concatenate(windows, axis), axis, 1))
    assert differences([np.concatenate([own for (own,) in found], axis)], [wanted]) == []


def matrix_net(length: int) -> bytes:
    """A layer of int8 weights on each of some rows of floats, and the mean of all."""
    builder, random = ModelBuilder(), np.random.default_rng(1)
    x, y = builder.tensor("x", (1, length, 8), "float32"), builder.tensor("y", (1, length, 6), "float32")
    w = builder.tensor("w", (6, 8), "int8", data=random.integers(-127, 128, (6, 8)), scale=0.01)
    builder.operator("FULLY_CONNECTED", [x, w, OPTIONAL], [y], keep_num_dims=True)
    z = builder.tensor("z", (1, 6), "float32")
    builder.operator("MEAN", [y, builder.constant("axis", np.array([1], np.int32))], [z])
    return builder.build([x], [z])


def test_rows_that_are_quantised_alone_slide(tmp_path: Path) -> None:
    content, frames = matrix_net(10), np.random.default_rng(2).normal(size=(1, 14, 8)).astype(np.float32)
    folder = compiled(tmp_path, content, stream="1").write(tmp_path / "bundle")
    found = outputs(folder, steps(frames, 1, 1))
    for end in range(10, 15):
        assert differences(list(found[end - 1]), LiteRt(content).run(frames[:, end - 10 : end])) == []


def hybrid_convolution() -> bytes:
    """Its activations are quantised by the range of all of them."""
    builder = ModelBuilder()
    x, y = builder.tensor("x", (1, 9, 4, 3), "float32"), builder.tensor("y", (1, 7, 4, 2), "float32")
    values = np.random.default_rng(3).integers(-127, 128, (2, 3, 1, 3))
    w = builder.tensor("w", values.shape, "int8", data=values, scale=0.01)
    operands = [x, w, builder.constant("b", np.zeros(2, np.float32))]
    builder.operator("CONV_2D", operands, [y], padding="VALID")
    return builder.build([x], [y])


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (bidirectional_model(1, form="float32"), "takes rows backwards"),
        (lstm_model(1, form="int8", sizes=(1, 6, 3, 4), first_step=2), "have shortened by 2 frames"),
        (hybrid_convolution(), "'conv2d_0/inverse', which depends on the whole window"),
    ],
)
def test_what_a_frame_does_not_decide_is_refused(content: bytes, reason: str, tmp_path: Path) -> None:
    shape = tuple(LiteRt(content).inputs[0]["shape"])
    with pytest.raises(CompileError, match=reason):
        compiled(tmp_path, content, stream="0" if shape[1] == 1 and len(shape) == 3 else "1")
