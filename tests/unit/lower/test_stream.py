"""Networks over time, frame by frame: equal to the whole network in LiteRT, and refused where that cannot be."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from bytewright import ir
from bytewright.diagnostics import CompileError
from bytewright.frontends.tflite import import_content
from bytewright.graph.stream.stream import stream
from bytewright.ops.data import Pad, ShiftIn
from bytewright.options import StreamAxis
from support.against_reference import differences
from support.evaluation import evaluate_function
from support.reference import LiteRt
from support.streamed_nets import Net, StreamedNet, keyword_net, streamed_net, temporal_net, windows_net
from support.tiers import THOROUGH
from tflite_writer import ModelBuilder

Array = NDArray[Any]
SEEDS = range(120) if THOROUGH else range(16)


def streamed(content: bytes, axis: int) -> ir.Module:
    return stream(import_content(content, "net.tflite"), (StreamAxis(axis),))


class Stream:
    """A module run by run, from its reset."""

    def __init__(self, module: ir.Module) -> None:
        self.module = module
        self.kept = [
            np.zeros(port.type.fixed_shape, port.type.dtype.numpy)
            if port.initial is None
            else port.initial.array
            for port in module.state
        ]

    def run(self, *inputs: Array) -> list[Array]:
        graph = self.module.graph
        values = evaluate_function(graph, self.module.constants, (*inputs, *self.kept))
        results = [values[name] for name in graph.results]
        self.kept = results[len(self.module.outputs) :]
        return results[: len(self.module.outputs)]


def last_rows(array: Array, like: Array, axis: int) -> Array:
    """So many rows as another array has, the last ones; all of what has no rows."""
    if array.ndim != like.ndim or array.ndim < 4:
        return array
    return np.take(array, range(array.shape[axis] - like.shape[axis], array.shape[axis]), axis=axis)


def frames_of_a_run(module: ir.Module) -> int:
    assert module.stream is not None
    return module.stream.num_new


@pytest.mark.parametrize("seed", SEEDS)
def test_a_cut_network_is_the_whole_one_on_each_window(seed: int) -> None:
    net = streamed_net(seed, is_padded=False)
    num_frames = int(np.random.default_rng(seed).integers(40, 60))
    content = net.build(num_frames)
    module = streamed(content, net.axis)
    step, facts, whole = frames_of_a_run(module), module.stream, LiteRt(content)
    assert facts is not None
    assert facts.num_runs_before == 0 or facts.num_runs_before * step < num_frames
    running, frames = Stream(module), net.frames(num_frames + 6 * step + step)
    compared = 0
    for run in range(frames.shape[net.axis] // step):
        (own,) = running.run(net.part(frames, run * step, step))
        end = (run + 1) * step
        if end >= num_frames:
            (wanted,) = whole.run(net.part(frames, end - num_frames, num_frames))
            assert differences([own], [last_rows(wanted, own, net.axis)]) == [], run
            compared += 1
    assert compared >= 6


@pytest.mark.parametrize("seed", SEEDS)
def test_a_padded_network_is_the_one_for_all_frames_so_far(seed: int) -> None:
    net = streamed_net(seed, is_padded=True)
    module = streamed(net.build(32), net.axis)
    step = frames_of_a_run(module)
    assert module.stream is not None
    assert module.stream.num_runs_before == 0
    running, frames = Stream(module), net.frames(10 * step)
    for run in range(10):
        (own,) = running.run(net.part(frames, run * step, step))
        (wanted,) = LiteRt(net.build((run + 1) * step)).run(net.part(frames, 0, (run + 1) * step))
        assert differences([own], [last_rows(wanted, own, net.axis)]) == [], run


def test_results_count_from_the_run_on_that_is_said() -> None:
    """One run earlier they are of the zero points that stand before the first frame."""
    content = cut_net(40)
    module = streamed(content, 1)
    facts = module.stream
    assert facts is not None
    assert (facts.num_new, facts.num_runs_before) == (1, 5)
    frames = np.full((1, 40, 1, 2), 100, np.int8)
    running, whole = Stream(module), LiteRt(content).run(frames)[0]
    found = [running.run(frames[:, run : run + 1])[0] for run in range(8)]
    same = [bool((own == whole[:, -1:]).all()) for own in found]
    assert same == [False] * 5 + [True] * 3


@pytest.mark.parametrize(
    ("num_frames", "windows", "facts"),
    [
        (12, [(10, 2), (3, 3)], (6, 1)),  # 2 rows of 2 frames: fewer than 6 frames make
        (24, [(21, 3), (22, 2), (6, 6)], (6, 3)),
        (60, [(56, 4), (6, 6)], (12, 4)),
        (40, [(38, 2), (3, 3)], (6, 6)),  # the window ends within a run
        (12, [(12, 1), (3, 3)], (3, 3)),  # a result without rows
    ],
)
def test_results_of_several_periods_count_from_the_run_on_that_is_said(
    num_frames: int, windows: list[tuple[int, int]], facts: tuple[int, int]
) -> None:
    """Before that run they depend on the zeros that stand before the first frame, and LiteRT has other frames there."""
    content = windows_net(num_frames, windows)
    module, whole = streamed(content, 1), LiteRt(content)
    assert module.stream is not None
    assert (module.stream.num_new, module.stream.num_runs_before) == facts
    step, first = facts
    random = np.random.default_rng(1)
    before, given = (
        random.integers(1, 100, (1, count, 1, 4)).astype(np.float32)
        for count in (num_frames, num_frames + 3 * step)
    )
    frames, running, same = np.concatenate([before, given], 1), Stream(module), list[bool]()
    for end in range(step, given.shape[1] + 1, step):
        own = running.run(given[:, end - step : end])
        wanted = whole.run(frames[:, end : end + num_frames])
        same.append(
            not differences(own, [last_rows(each, like, 1) for each, like in zip(wanted, own, strict=True)])
        )
    assert same == [False] * first + [True] * (len(same) - first)
    assert same.count(True) >= 3


def cut_net(num_frames: int) -> bytes:
    """Windows of 6 frames in all, over an input of two features."""
    net = Net(5, 1, is_padded=False, dtype="int8")
    net.shape = (1, num_frames, 1, 2)
    source = net.value = net.tensor(net.shape)
    net.convolution("CONV_2D", 3, channels=3)
    net.convolution("CONV_2D", 4, channels=3)
    return net.builder.build([source], [net.value])


@pytest.mark.parametrize(("build", "axis", "share"), [(keyword_net, 1, 40), (temporal_net, 2, 80)])
def test_work_per_frame(build: Any, axis: int, share: int) -> None:
    facts = streamed(build(98), axis).stream
    assert facts is not None
    assert facts.macs * share <= facts.macs_before


def test_branches_that_read_the_same_rows_share_what_is_kept() -> None:
    net = Net(5, 1, is_padded=False, dtype="int8")
    net.shape = (1, 20, 1, 2)
    source = net.value = net.tensor(net.shape)
    shape = net.shape
    net.convolution("CONV_2D", 3, channels=2)
    first, first_shape = net.value, net.shape
    net.value, net.shape = source, shape
    net.convolution("CONV_2D", 5, channels=2)
    net.value, second = first, net.value
    rows = net.shape[1]
    net.shape = first_shape
    net.cut(0, rows)
    net.join("ADD", second, net.shape)
    module = streamed(net.builder.build([source], [net.value]), 1)
    kept = {port.name: port.type.fixed_shape[1] for port in module.state}
    assert sorted(kept.values()) == [3, 5]  # the input's, for both windows; and the delay of the shorter one
    assert sum(isinstance(node.operation, ShiftIn) for node in module.graph.nodes) == 2


@pytest.mark.parametrize("axis", [1, 2])
@pytest.mark.parametrize("head", ["mean", "average", "pool", "max"])
def test_a_reduction_keeps_one_number_for_each_channel_of_a_row(head: str, axis: int) -> None:
    """Of int8: two bytes where it is a sum."""
    net = StreamedNet(3, axis, is_padded=False, dtype="int8", head=head, width=12, depth=3)
    content = net.build(30)
    module = streamed(content, axis)
    last, running, frames = module.state[-1].type, Stream(module), net.frames(40)
    assert last.fixed_shape[3 - axis] == 1
    assert last.dtype.size_bytes == (2 if head in ("mean", "average") else 1)
    step = frames_of_a_run(module)
    for run in range(40 // step):
        own = running.run(net.part(frames, run * step, step))
        if (run + 1) * step >= 30:
            wanted = LiteRt(content).run(net.part(frames, (run + 1) * step - 30, 30))
            np.testing.assert_array_equal(own[0], wanted[0])


def test_rows_are_kept_without_what_is_padded_beside_them() -> None:
    net = Net(5, 1, is_padded=True, dtype="int8")
    net.shape = (1, 20, 6, 2)
    source = net.value = net.tensor(net.shape)
    net.convolution("CONV_2D", 3, channels=2, beside=2)
    module = streamed(net.builder.build([source], [net.value]), 1)
    assert [port.type.fixed_shape for port in module.state] == [(1, 3, 6, 2)]


def test_a_pad_along_time_leaves_nothing() -> None:
    net = streamed_net(2, is_padded=True)
    assert any(
        isinstance(node.operation, Pad) for node in import_content(net.build(32), "net.tflite").graph.nodes
    )
    module = streamed(net.build(32), net.axis)
    assert not any(isinstance(node.operation, Pad) for node in module.graph.nodes)


# What is refused

SHAPE = (1, 12, 3, 2)


def refused(build: Any, shape: tuple[int, ...] = SHAPE) -> str:
    net = Net(1, 1, is_padded=False, dtype="float32")
    net.shape = shape
    source = net.value = net.tensor(shape)
    build(net)
    with pytest.raises(CompileError) as caught:
        streamed(net.builder.build([source], [net.value]), 1)
    (found,) = caught.value.diagnostics
    assert found.code == "BW120"
    assert found.help == "leave out --stream: each run then takes the whole window"
    return found.message


def _same(net: Net) -> None:
    net.builder.operator("AVERAGE_POOL_2D", [net.value], [net.tensor(SHAPE)], padding="SAME", filter_height=3)
    net.value += 1


def _pad_behind(net: Net) -> None:
    net.add("PAD", net.extent(14), net.integers([[0, 0], [0, 2], [0, 0], [0, 0]]))


def _softmax_of_time(net: Net) -> None:
    net.add("TRANSPOSE", (1, 3, 2, 12), net.integers([0, 2, 3, 1]))
    net.add("SOFTMAX", net.shape)


def _gate(net: Net) -> None:
    source, shape = net.value, net.shape
    net.add("MEAN", (1, 1, 3, 2), net.integers([1]), keep_dims=True)
    net.builder.operator("MUL", [source, net.value], [net.tensor(shape)])
    net.value += 1


def _rows_of_a_constant(net: Net) -> None:
    values = np.arange(12, dtype=np.float32).reshape(1, 12, 1, 1)
    net.add("ADD", SHAPE, net.builder.constant("steps", values))


def _late_padding(net: Net) -> None:
    net.cut(2, 10)
    net.pad(2)
    net.convolution("CONV_2D", 3, channels=2)


def _too_much_padding(net: Net) -> None:
    net.pad(3)
    net.convolution("CONV_2D", 3, channels=2)
    net.convolution("CONV_2D", 1, channels=2)


def _padding_at_the_end_of_all(net: Net) -> None:
    net.pad(2)
    net.add("REDUCE_MAX", (1, 3, 2), net.integers([1]))


def _backwards(net: Net) -> None:
    net.add("REVERSE_V2", SHAPE, net.integers([1]))


def _larger(net: Net) -> None:
    net.add("RESIZE_NEAREST_NEIGHBOR", (1, 24, 3, 2), net.integers([24, 3]))


@pytest.mark.parametrize(
    ("build", "said"),
    [
        (_same, "0 (AVERAGE_POOL_2D) has a window that is smaller where it would begin before the first row"),
        (_pad_behind, "0 (PAD) pads behind the last row: it reads 2 rows that no frame has come for"),
        (_softmax_of_time, "1 (SOFTMAX) reads all rows for each row of its result"),
        (_gate, "1 (MUL) combines rows with 'mean_0/out', which depends on the whole window"),
        (_rows_of_a_constant, "0 (ADD) is given a constant that differs from row to row"),
        (
            _late_padding,
            "1 (PAD) pads the beginning of what layers before it have shortened by 2 frames: its padding",
        ),
        (_too_much_padding, "1 (CONV_2D) makes rows of padding alone, before the first frame"),
        (
            _padding_at_the_end_of_all,
            "1 (REDUCE_MAX) reads padding before the first row, which later windows do not",
        ),
        (_backwards, "0 (REVERSE_V2) takes rows backwards"),
        (_larger, "0 (RESIZE_NEAREST_NEIGHBOR) is not known to read rows by a window that slides"),
    ],
)
def test_what_cannot_run_frame_by_frame_is_refused(build: Any, said: str) -> None:
    assert said in refused(build)


def test_a_window_that_is_padded_has_so_many_frames_as_runs_take() -> None:
    def build(net: Net) -> None:
        net.pad(2)
        net.convolution("CONV_2D", 3, stride=2, channels=2)

    said = "the window has 11 frames, which are no multiple of the 2 that a run takes, and 0 (PAD) pads its beginning"
    assert said in refused(build, shape=(1, 11, 3, 2))


def test_frames_that_no_layer_reads_are_none_of_a_padded_window() -> None:
    """The last of 49, where a stride of 2 makes 24 rows of them."""
    net = Net(5, 1, is_padded=True, dtype="int8")
    net.shape = (1, 49, 4, 1)
    source = net.value = net.tensor(net.shape)
    net.convolution("CONV_2D", 10, stride=2, channels=3)
    net.convolution("CONV_2D", 3, channels=3)
    net.add("MEAN", (1, 3), net.integers([1, 2]))
    content = net.builder.build([source], [net.value])
    module = streamed(content, 1)
    facts = module.stream
    assert facts is not None
    assert (facts.num_frames, facts.num_left_out, facts.num_runs_before) == (48, 1, 23)
    frames = np.random.default_rng(1).integers(-128, 128, (1, 49, 4, 1)).astype(np.int8)
    running = Stream(module)
    found = [running.run(frames[:, 2 * run : 2 * run + 2]) for run in range(24)]
    np.testing.assert_array_equal(found[-1][0], LiteRt(content).run(frames)[0])


def test_a_run_is_less_work() -> None:
    """A network that takes the window apart first, as unrolled ones do."""

    def build(net: Net) -> None:
        net.cut(0, 1)
        net.convolution("CONV_2D", 1, channels=2)

    assert (
        "no layer is less work on 1 of 12 frames: each run would take all of the 16 multiply-acc"
        in refused(build)
    )


def test_a_run_takes_less_than_the_window() -> None:
    """Rows of every third frame and of every fourth come together with every twelfth."""
    net = Net(1, 1, is_padded=False, dtype="float32")
    net.shape = (1, 10, 3, 2)
    source = net.value = net.tensor(net.shape)
    shape, results = net.shape, list[int]()
    for stride in (3, 4):
        net.value, net.shape = source, shape
        net.pool("MAX_POOL_2D", 1, stride)
        results.append(net.value)
    with pytest.raises(
        CompileError, match="a run would take 12 frames, and the whole window has 10"
    ) as caught:
        streamed(net.builder.build([source], results), 1)
    assert caught.value.diagnostics[0].code == "BW120"


def two_inputs(second: int = 8) -> bytes:
    builder = ModelBuilder()
    x, y = (builder.tensor(name, (1, rows, 2), "float32") for name, rows in (("x", 8), ("y", second)))
    means = [builder.tensor(f"mean_{name}", (1, 2), "float32") for name in "xy"]
    axes = builder.constant("axes", np.array([1], np.int32))
    for source, mean in zip((x, y), means, strict=True):
        builder.operator("MEAN", [source, axes], [mean])
    z = builder.tensor("z", (1, 2), "float32")
    builder.operator("ADD", means, [z])
    return builder.build([x, y], [z])


@pytest.mark.parametrize(
    ("axes", "said"),
    [
        ((StreamAxis(1),), "--stream 1: the model has 2 inputs"),
        ((StreamAxis(1, "w"),), "--stream w:1: the model has no input 'w'; it has 'x', 'y'"),
        ((StreamAxis(3, "x"),), "--stream x:3: input 'x' has shape [1x8x2], and no axis 3"),
        ((StreamAxis(1, "x"), StreamAxis(1, "x")), "--stream x:1: input 'x' is named twice"),
    ],
)
def test_axes_that_do_not_exist(axes: tuple[StreamAxis, ...], said: str) -> None:
    with pytest.raises(CompileError) as caught:
        stream(import_content(two_inputs(), "net.tflite"), axes)
    assert [found.code for found in caught.value.diagnostics] == ["BW204"]
    assert said in caught.value.diagnostics[0].message
    assert caught.value.diagnostics[0].help


def test_inputs_over_time_have_as_many_frames() -> None:
    with pytest.raises(CompileError, match="inputs over time have unlike many frames: 'x' 8 and 'y' 9"):
        stream(import_content(two_inputs(9), "net.tflite"), (StreamAxis(1, "x"), StreamAxis(1, "y")))


def test_an_input_beside_the_stream_is_whole_with_each_run() -> None:
    content = two_inputs(3)
    module = stream(import_content(content, "net.tflite"), (StreamAxis(1, "x"),))
    running, random = Stream(module), np.random.default_rng(1)
    frames = (random.integers(-8, 9, (1, 12, 2)) / 8).astype(np.float32)
    for run in range(12):
        beside = (random.integers(-8, 9, (1, 3, 2)) / 8).astype(np.float32)
        own = running.run(frames[:, run : run + 1], beside)
        if run >= 7:
            assert differences(own, LiteRt(content).run(frames[:, run - 7 : run + 1], beside)) == []
