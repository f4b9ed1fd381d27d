"""fold_constant_channels: channels that are constant or unread go, and not one bit of any result changes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from bytewright.graph.inline_calls import inline_calls
from bytewright.ir.module import Module
from bytewright.ir.types import DType, Symbol
from bytewright.ir.verify.stages import Stage, verify
from bytewright.lower.fold_constant_channels import fold_constant_channels
from bytewright.lower.fold_pad import fold_pad
from bytewright.ops.convolution import Conv2d, DepthwiseConv2d, TransposeConv2d
from bytewright.ops.data import Concat, Gather, Identity, Pad, Reshape, Slice, Tile, Transpose
from bytewright.ops.elementwise import Add, Clamp, Mul, Sub
from bytewright.ops.matmul import TflBatchMatMul
from bytewright.ops.pooling import MaxPool2d, TflAveragePool2d, TflMean
from bytewright.ops.quantization import Table, TflDequantize, TflQuantize
from bytewright.ops.registry import OPERATIONS
from bytewright.ops.rescale import TflRealRescale
from bytewright.ops.resize import TflResizeBilinear, TflResizeNearest
from bytewright.ops.softmax import TflSoftmax
from bytewright.place.plan_devices import plan_devices
from bytewright.target import Target, load_text
from bytewright.target.registry import load_target
from support.evaluate.evaluate_graph import evaluate_graph
from support.lowering import Draft, assert_same_meaning, random_inputs
from support.parsing import parse_module

I8, I32, F32, F64 = DType.I8, DType.I32, DType.F32, DType.F64
PLAIN = (0, 0, 0, 0)
DEAD = (1, 3)  # of five channels of the first convolution
GENERATOR_SEED = 11


def target_of(*multiples: int) -> Target:
    """The host, with widths that are multiples of these."""
    host = load_target("host")
    styled = (
        replace(d, isa=replace(d.isa, style=replace(d.isa.style, channel_multiples=multiples)))
        for d in host.devices
    )
    return replace(host, devices=tuple(styled))


EVERY_WIDTH = target_of(1)


def weights(*shape: int, dead: Sequence[int] = (), unread: Sequence[int] = ()) -> Any:
    """[OC, ...] int8 without any zero, but for results that are empty and channels of the input that nobody reads."""
    values = np.random.default_rng(GENERATOR_SEED).integers(1, 100, shape)
    values[::2] *= -1
    values[list(dead)] = 0
    values[..., list(unread)] = 0
    return values


def started(
    channels: int = 5,
    dead: Sequence[int] = DEAD,
    bias: Sequence[int] | None = None,
    zero_point: int = -7,
    shape: tuple[Any, ...] = (1, 4, 5, 3),
) -> Draft:
    """x -> conv2d -> rescale `y`, of which some channels are constant: 100 * bias / 1000 + the zero point."""
    draft = Draft()
    draft.parameter("x", shape, I8)
    draft.constant("w", weights(channels, 1, 1, 3, dead=dead), I8)
    draft.constant("b", list(range(100, 100 + 200 * channels, 200)) if bias is None else bias, I32)
    draft.node("a", Conv2d((1, 1), PLAIN, (1, 1), 4), "x", "w", "b")
    draft.rescale("y", "a", 0.02, zero_point)
    return draft


def ended(
    draft: Draft, source: str, padding: tuple[int, int, int, int] = PLAIN, zero_point: int = 3
) -> Draft:
    """source -> conv2d 2x2 of two results -> rescale `z`."""
    depth = draft.types[source].fixed_shape[-1]
    draft.constant("w2", weights(2, 2, 2, depth), I8)
    draft.constant("b2", [1000, -2000], I32)
    draft.node("a2", Conv2d((1, 1), padding, (1, 1), zero_point), source, "w2", "b2")
    draft.rescale("z", "a2", 0.002)
    return draft


def placed(module: Module, target: Target = EVERY_WIDTH) -> Module:
    return fold_pad(inline_calls(plan_devices(module, target)))


def folded(module: Module, target: Target = EVERY_WIDTH) -> Module:
    """The module after the pass, which has the same results on random and extreme inputs, and is at its end."""
    before = placed(module, target)
    after = fold_constant_channels(before, target)
    verify(after, Stage.PLACED, target, before, "fold_constant_channels")
    assert fold_constant_channels(after, target) == after
    for seed in range(5):
        inputs = random_inputs(before, seed)
        found = zip(evaluate_graph(after, inputs), evaluate_graph(before, inputs), strict=True)
        for own, wanted in found:
            assert own.shape == wanted.shape
            assert own.tobytes() == wanted.tobytes()
    return after


def widths(module: Module) -> dict[str, int]:
    """The channels of every value."""
    return {
        value.name: value.type.fixed_shape[-1]
        for function in module.functions
        for node in function.nodes
        for value in node.outputs
    }


def data(module: Module, name: str) -> Any:
    return next(constant.data.array for constant in module.constants if constant.name == name)


# Constants, and where they come to


def test_empty_channels_become_a_part_of_the_next_bias() -> None:
    module = ended(started(), "y").module("z")
    after = folded(module)
    assert widths(after) == {"a": 3, "y": 3, "a2": 2, "z": 2}
    constant = np.round(0.02 * np.array([300, 700])) - 7  # by definition, of biases that are no ties
    before = weights(2, 2, 2, 5)
    wanted = np.array([1000, -2000]) + (before[..., list(DEAD)].sum((1, 2)) * (constant - 3)).sum(1)
    assert data(after, "b2").tolist() == wanted.tolist()
    assert data(after, "w2").tolist() == before[..., [0, 2, 4]].tolist()
    assert data(after, "b").tolist() == [100, 500, 900]
    assert after.narrowed is not None
    assert (after.narrowed.macs_before, after.narrowed.macs) == (20 * 15 + 12 * 40, 20 * 9 + 12 * 24)
    assert (after.narrowed.weight_bytes_before, after.narrowed.weight_bytes) == (15 + 40, 9 + 24)
    assert after.narrowed.shapes["y"] == (1, 4, 5, 5)
    assert after.narrowed.shapes["w2"] == (2, 2, 2, 5)
    assert_same_meaning(module)


def test_a_network_without_empty_channels_is_returned_as_it_is() -> None:
    module = placed(ended(started(dead=()), "y").module("z"))
    assert fold_constant_channels(module, EVERY_WIDTH) is module


Step = Callable[[Draft], str]


def _added(draft: Draft) -> str:
    draft.constant("k", [3, 5, 7, 9, 11], I32)
    draft.node("l", Clamp(-90_000, 90_000), "a")
    draft.node("s", Add(), draft.node("t", Mul(), "l", "k"), "k")
    return draft.rescale("v", draft.node("u", Sub(), "s", "k"), 0.003)


def _by_channel(draft: Draft) -> str:
    return draft.rescale("v", "a", [0.01, 0.02, 0.03, 0.04, 0.05], 5)


def _real(draft: Draft) -> str:
    draft.constant("scale", [0.01, 0.02, 0.03, 0.04, 0.05], F64)
    return draft.node("v", TflRealRescale(5, I8), "a", "scale")


def _table(draft: Draft) -> str:
    draft.constant("table", (np.arange(256) * 7 % 256) - 128, I8)
    return draft.node("v", Table(), "y", "table")


def _floats(draft: Draft) -> str:
    draft.node("f", TflDequantize(0.25, 3), "y")
    return draft.node("v", TflQuantize(0.5, -3), draft.node("g", Clamp(-4.5, 9.0), "f"))


def _gathered(draft: Draft) -> str:
    draft.constant("i", [3, 0, 0], I32)
    return draft.node("v", Gather(1), "y", "i")


def _one(operation: Any) -> Step:
    return lambda draft: draft.node("v", operation, "y")


STEPS: dict[str, Step] = {
    "add, mul, sub": _added,
    "rescale by channel": _by_channel,
    "real rescale": _real,
    "clamp": _one(Clamp(-9, 4)),
    "table": _table,
    "floats between": _floats,
    "identity": _one(Identity()),
    "max_pool2d, padded": _one(MaxPool2d((2, 2), (1, 1), (1, 0, 1, 0))),
    "average_pool2d, padded": _one(TflAveragePool2d((2, 3), (1, 1), (1, 0, 1, 1))),
    "mean": _one(TflMean((1, 2), True, -7, 3, 1518500250, -4)),
    "slice of rows": _one(Slice((0, 3, 1, 0), (1, 2, 2, 5), (1, -2, 2, 1))),
    "transpose": _one(Transpose((0, 2, 1, 3))),
    "tile": _one(Tile((1, 2, 1, 1))),
    "gather": _gathered,
    "reshape": _one(Reshape((1, 10, 2, 5))),
    "nearest resize": _one(TflResizeNearest((9, 3), True)),
    "bilinear resize": _one(TflResizeBilinear((9, 3), False, True)),
}


@pytest.mark.parametrize("step", STEPS.values(), ids=STEPS.keys())
def test_what_works_by_channel_passes_constants_on(step: Step) -> None:
    draft = started()
    last = step(draft)
    size = min(2, *draft.types[last].fixed_shape[1:3])
    depth = draft.types[last].fixed_shape[-1]
    draft.constant("w2", weights(2, size, size, depth), I8)
    draft.constant("b2", [1000, -2000], I32)
    draft.node("a2", Conv2d((1, 1), PLAIN, (1, 1), 3), last, "w2", "b2")
    module = draft.module(draft.rescale("z", "a2", 0.002))
    found = widths(folded(module))
    assert {name: found[name] for name in found if name not in ("a2", "z")} == dict.fromkeys(
        [name for name in found if name not in ("a2", "z")], 3
    )
    assert_same_meaning(module)


def test_rows_and_columns_of_a_constant_operand_are_cut() -> None:
    draft = started()
    draft.constant("c", np.arange(100).reshape(1, 4, 5, 5), I32)
    draft.node("s", Add(), "a", "c")
    draft.rescale("v", "s", 0.02)
    draft.node("m", Slice((0, 0, 0, 0), (1, 4, 5, 3), (1, 1, 1, 1)), "v")  # nobody reads channels 3 and 4
    after = folded(ended(draft, "m").module("z"))
    assert data(after, "c").shape == (1, 4, 5, 3)
    assert widths(after)["a"] == 3


def test_a_convolution_of_a_constant_keeps_it_whole() -> None:
    """Beside one that loses channels; a constant that is no operand of a link is no item of its own."""
    draft = ended(started(), "y")
    draft.constant("c", np.arange(60).reshape(1, 4, 5, 3), I8)
    draft.node("other", Conv2d((1, 1), PLAIN, (1, 1), 0), "c", "w", "b")
    after = folded(draft.module("z", "other"))
    assert data(after, "c").shape == (1, 4, 5, 3)
    assert (widths(after)["y"], widths(after)["other"]) == (3, 5)


def test_channels_of_a_concatenation() -> None:
    draft = started()
    draft.constant("c", np.broadcast_to(np.array([9, -9]), (1, 4, 5, 2)), I8)
    draft.node("v", Concat(3), "y", "c", "y")
    after = folded(ended(draft, "v").module("z"))
    # Of a constant that is no one's but the concatenation's, one channel stays: an operand has a width.
    assert widths(after)["y"] == 3
    assert widths(after)["v"] == 3 + 1 + 3
    assert data(after, "c").shape == (1, 4, 5, 1)


def test_a_concatenation_of_rows_is_constant_where_all_operands_are_the_same() -> None:
    draft = started()
    draft.rescale("other", "a", [0.02, 0.02, 0.02, 0.04, 0.02], -7)
    draft.node("v", Concat(1), "y", "other")
    found = widths(folded(ended(draft, "v").module("z")))
    assert (found["y"], found["other"], found["v"]) == (4, 4, 4)  # channel 3 differs


def test_channels_that_a_pad_adds_and_rows_of_another_value() -> None:
    draft = started(bias=[0, 0, 0, 350, 0])  # channel 1 is -7, channel 3 is 0
    draft.node("v", Pad((0, 1, 0, 2), (0, 0, 0, 1), -7), "y")
    found = widths(folded(ended(draft, "v").module("z")))
    assert (found["y"], found["v"]) == (4, 4)


@pytest.mark.parametrize(
    ("shape", "merged"), [((1, 1, 1, 100), 60), ((1, 4, 1, 25), 15)], ids=["all", "rows"]
)
def test_channels_that_a_reshape_merges(shape: tuple[int, ...], merged: int) -> None:
    draft = started()
    draft.node("v", Reshape(shape), "y")
    draft.constant("w2", weights(2, 1, 1, shape[-1]), I8)
    draft.constant("b2", [1000, -2000], I32)
    draft.node("a2", Conv2d((1, 1), PLAIN, (1, 1), 3), "v", "w2", "b2")
    module = draft.module(draft.rescale("z", "a2", 0.002))
    found = widths(folded(module))
    assert (found["y"], found["v"]) == (3, merged)
    assert_same_meaning(module)


def test_channels_that_a_reshape_takes_apart() -> None:
    draft = started(channels=6, dead=(1, 4), bias=[100, 300, 500, 700, 300, 900])
    draft.node("v", Reshape((1, 8, 5, 3)), "y")
    found = widths(folded(ended(draft, "v").module("z")))
    assert (found["y"], found["v"]) == (4, 2)
    draft = started(channels=6, dead=(1, 4), bias=[100, 300, 500, 700, 800, 900])
    draft.node("v", Reshape((1, 8, 5, 3)), "y")
    assert widths(folded(ended(draft, "v").module("z")))["y"] == 6  # one channel there, of two values


def test_a_reshape_that_tears_channels_apart_keeps_them() -> None:
    draft = started()
    draft.node("v", Reshape((1, 5, 5, 4)), "y")
    assert widths(folded(ended(draft, "v").module("z")))["y"] == 5


@pytest.mark.parametrize("operation", [Reshape((6, 5)), Reshape((2, 15)), Slice((0, 2), (6, 3), (1, 1))])
def test_a_constant_that_is_moved_is_cut_once(operation: Any) -> None:
    draft = started()
    draft.constant("c", np.arange(30).reshape(6, 5) % 5 * 10, I8)
    draft.node("v", operation, "c")
    draft.node("e", Slice((0, 1), (2, 1), (1, 1)), "v")
    after = folded(draft.module("e", "y"))
    assert data(after, "c").shape == (6, 1)
    assert widths(after)["e"] == 1


def test_a_slice_of_channels() -> None:
    draft = started(channels=8, dead=(1, 4, 6))
    draft.node("v", Slice((0, 0, 0, 2), (1, 4, 5, 5), (1, 1, 1, 1)), "y")  # 2..6
    found = widths(folded(ended(draft, "v").module("z")))
    assert (found["y"], found["v"]) == (3, 3)  # 2, 3, 5; nobody reads 0 and 7


def test_a_slice_that_another_reader_widens_begins_elsewhere() -> None:
    draft = started(channels=8, dead=(1, 4, 6))
    draft.node("v", Slice((0, 0, 0, 2), (1, 4, 5, 1), (1, 1, 1, 1)), "y")  # 2 alone, which is not constant
    draft.constant("w3", weights(1, 1, 1, 8), I8)
    draft.constant("b3", [5], I32)
    draft.node("a3", Conv2d((1, 1), PLAIN, (1, 1), 0), "y", "w3", "b3")
    after = folded(ended(draft, "v").module("z", "a3"))
    assert widths(after)["y"] == 5
    node = next(node for node in after.graph.nodes if node.outputs[0].name == "v")
    assert isinstance(node.operation, Slice)
    assert (node.operation.start, node.operation.size) == ((0, 0, 0, 1), (1, 4, 5, 1))


def test_a_slice_with_steps_keeps_its_channels() -> None:
    draft = started()
    draft.node("v", Slice((0, 0, 0, 0), (1, 4, 5, 3), (1, 1, 1, 2)), "y")
    assert widths(folded(ended(draft, "v").module("z")))["y"] == 5


# Convolutions


@pytest.mark.parametrize(
    ("padding", "bias", "width"),
    [
        ((1, 0, 0, 0), 500, 4),  # 0.02 * 500 - 7 is the zero point of what reads it
        ((1, 0, 0, 0), 550, 5),
        ((0, 0, 0, 1), 550, 5),
        (PLAIN, 550, 4),
    ],
    ids=["its zero point", "another value", "on the right", "no padding"],
)
def test_beside_padding_only_the_zero_point_is_folded(padding: Any, bias: int, width: int) -> None:
    draft = started(dead=(1,), bias=[100, bias, 300, 400, 500])
    module = ended(draft, "y", padding).module("z")
    assert widths(folded(module))["y"] == width
    assert_same_meaning(module)


def test_padding_that_no_window_reaches_is_none() -> None:
    draft = started(dead=(1,), shape=(1, 5, 5, 3))
    draft.constant("w2", weights(2, 2, 2, 5), I8)
    draft.constant("b2", [1000, -2000], I32)
    draft.node("a2", Conv2d((3, 3), (0, 1, 0, 1), (1, 1), 3), "y", "w2", "b2")
    assert widths(folded(draft.module(draft.rescale("z", "a2", 0.002))))["y"] == 4
    draft = started(dead=(1,), shape=(1, 4, 4, 3))
    draft.constant("w2", weights(2, 2, 2, 5), I8)
    draft.constant("b2", [1000, -2000], I32)
    draft.node("a2", Conv2d((3, 3), (0, 1, 0, 1), (1, 1), 3), "y", "w2", "b2")
    assert widths(folded(draft.module(draft.rescale("z", "a2", 0.002))))["y"] == 5


def _depthwise(
    draft: Draft, padding: Any, zero_point: int, multiplier: int = 1, empty: Sequence[int] = ()
) -> str:
    depth = draft.types["y"].fixed_shape[-1]
    own = weights(2, 2, depth, multiplier)
    own[:, :, list(empty)] = 0
    draft.constant("dw", own, I8)
    draft.constant("db", np.arange(depth * multiplier) * 50, I32)
    draft.node("d", DepthwiseConv2d((1, 1), padding, (1, 1), zero_point), "y", "dw", "db")
    return draft.rescale("v", "d", 0.01, 3)


@pytest.mark.parametrize("multiplier", [1, 2])
@pytest.mark.parametrize(
    ("padding", "zero_point", "width"),
    [(PLAIN, 50, 3), ((1, 0, 0, 0), 50, 5), ((1, 0, 0, 0), -1, 4)],
    ids=["no padding", "another value", "the zero point of one"],
)
def test_a_depthwise_convolution_goes_with_its_constant(
    multiplier: int, padding: Any, zero_point: int, width: int
) -> None:
    draft = started()  # channel 1 is -1, channel 3 is 7
    last = _depthwise(draft, padding, zero_point, multiplier)
    module = ended(draft, last).module("z")
    found = widths(folded(module))
    assert (found["y"], found["v"]) == (width, width * multiplier)
    assert_same_meaning(module)


def test_an_empty_channel_of_a_depthwise_convolution_needs_no_input() -> None:
    draft = started(dead=())
    module = ended(draft, _depthwise(draft, (1, 1, 1, 1), 50, empty=(0, 4))).module("z")
    found = widths(folded(module))
    assert (found["a"], found["y"], found["v"]) == (3, 3, 3)


def test_a_channel_that_is_read_by_weights_of_zero_alone_is_not_computed() -> None:
    draft = started(dead=())
    draft.constant("w2", weights(2, 2, 2, 5, unread=(0, 2)), I8)
    draft.constant("b2", [1000, -2000], I32)
    draft.node("a2", Conv2d((1, 1), (1, 1, 1, 1), (1, 1), 3), "y", "w2", "b2")
    assert widths(folded(draft.module(draft.rescale("z", "a2", 0.002))))["y"] == 3


def test_what_is_read_for_unread_channels_alone_goes_with_them() -> None:
    """Backwards through three convolutions: the last reads one channel, of which one reads one, and so on."""
    draft = started(dead=())
    source = "y"
    for number in range(2):
        own = weights(5, 1, 1, 5)
        own[4] *= np.arange(5) == 4
        draft.constant(f"w{number}", own, I8)
        draft.constant(f"b{number}", [0] * 5, I32)
        draft.node(f"c{number}", Conv2d((1, 1), PLAIN, (1, 1), -7), source, f"w{number}", f"b{number}")
        source = draft.rescale(f"r{number}", f"c{number}", 0.01, -7)
    draft.node("v", Slice((0, 0, 0, 4), (1, 4, 5, 1), (1, 1, 1, 1)), source)
    found = widths(folded(draft.module("v")))
    assert (found["y"], found["r0"], found["r1"]) == (1, 1, 1)


def test_a_sum_of_constants_is_constant_and_needs_no_empty_weights() -> None:
    draft = started(dead=(0, 2, 4))
    own = weights(3, 1, 1, 5)
    own[1, :, :, [1, 3]] = 0  # reads constants alone
    draft.constant("wc", own, I8)
    draft.constant("bc", [10, 20, 30], I32)
    draft.node("c", Conv2d((1, 1), PLAIN, (1, 1), -7), "y", "wc", "bc")
    draft.rescale("v", "c", 0.01, 3)
    found = widths(folded(ended(draft, "v").module("z")))
    assert (found["y"], found["v"]) == (2, 2)


@pytest.mark.parametrize(("bias", "width"), [(2**31 - 1, 5), (2**31 - 2**20, 3), (-(2**31), 5)])
def test_constants_that_might_carry_a_bias_beyond_32_bits_stay(bias: int, width: int) -> None:
    draft = started()
    draft.constant("w2", weights(2, 2, 2, 5), I8)
    draft.constant("b2", [bias, 0], I32)
    draft.node("a2", Conv2d((1, 1), PLAIN, (1, 1), 3), "y", "w2", "b2")
    draft.rescale("z", "a2", 0.002)
    module = placed(draft.module("z"))
    found = fold_constant_channels(module, EVERY_WIDTH)
    assert widths(found)["y"] == width


def test_a_constant_that_leaves_32_bits_on_its_way_is_none() -> None:
    draft = started(bias=[0, 2**30, 0, 100, 0])
    draft.constant("four", [4], I32)
    draft.node("m", Mul(), "a", "four")  # no run computes channel 1
    draft.rescale("v", "m", 0.001)
    module = placed(ended(draft, "v").module("z"))
    assert widths(fold_constant_channels(module, EVERY_WIDTH))["v"] == 4


# Widths


@pytest.mark.parametrize(
    ("multiples", "dead", "width"),
    [
        ((1,), 7, 13),
        ((4,), 7, 16),
        ((4,), 8, 12),
        ((16, 2), 4, 16),
        ((16, 2), 7, 16),
        ((16, 2), 9, 12),
        ((16, 2), 2, 18),
        ((32,), 12, 20),
        ((16,), 20, 16),
        ((1,), 20, 1),
    ],
)
def test_widths_are_those_that_the_device_likes(multiples: tuple[int, ...], dead: int, width: int) -> None:
    draft = started(channels=20, dead=range(dead))
    found = widths(folded(ended(draft, "y").module("z"), target_of(*multiples)))
    assert found["y"] == found["a"] == (16 if width == 12 and multiples == (16, 2) else width)


def test_each_value_has_the_width_of_its_own_device() -> None:
    two = load_text(
        """
name = "pair"
default-device = "cpu"
[memory.ram]
size = "64KiB"
[device.cpu]
isa = "cortex-m4"
reach = ["ram"]
stack = "ram"
[device.other]
isa = "cortex-m0"
reach = ["ram"]
stack = "ram"
[[workspace]]
name = "ram"
memory = "ram"
""",
        "pair.toml",
    )
    for device, width in (("cpu", 4), ("other", 3)):
        module = ended(started(), "y").module("z")
        function = module.functions[0]
        nodes = tuple(
            replace(
                node,
                outputs=tuple(
                    replace(v, type=replace(v.type, place=replace(v.type.place, device=device)))
                    for v in node.outputs
                ),
            )
            for node in function.nodes
        )
        module = replace(module, functions=(replace(function, nodes=nodes),))
        assert widths(folded(module, two))["y"] == width


# What keeps its shape


def test_inputs_and_results_keep_their_shapes() -> None:
    draft = ended(started(), "y")
    assert widths(folded(draft.module("z", "y")))["y"] == 5
    draft = Draft()
    draft.parameter("x", (1, 2, 2, 4), I8)
    draft.constant("w", weights(3, 1, 1, 4, unread=(1, 2)), I8)
    draft.constant("b", [1, 2, 3], I32)
    draft.node("a", Conv2d((1, 1), PLAIN, (1, 1), 0), "x", "w", "b")
    module = placed(draft.module("a"))
    assert fold_constant_channels(module, EVERY_WIDTH) is module


@pytest.mark.parametrize(
    "operation",
    [
        TflSoftmax(1.0, 1 << 30, 10, -100),
        TflMean((3,), True, 0, 0, 1 << 30, 0),
        Transpose((0, 1, 3, 2)),
        TransposeConv2d((2, 2), PLAIN, 3),
        TflBatchMatMul(False, True),
    ],
    ids=["softmax", "mean over channels", "transpose", "transposed convolution", "product"],
)
def test_what_mixes_channels_reads_all_of_them(operation: Any) -> None:
    draft = started()
    draft.constant("w2", weights(2, 1, 1, 5), I8)
    draft.constant("b2", [1000, -2000], I32)
    others = {TransposeConv2d: ("w2", "b2"), TflBatchMatMul: ("y",)}
    draft.node("v", operation, "y", *others.get(type(operation), ()))
    module = placed(draft.module("v"))
    assert fold_constant_channels(module, EVERY_WIDTH) is module


def test_what_is_broadcast_over_channels_is_read_as_a_whole() -> None:
    draft = started(channels=1, dead=(0,))
    draft.parameter("p", (1, 4, 5, 3), I32)
    draft.node("v", Add(), "a", "p")
    module = placed(draft.module("v"))
    assert fold_constant_channels(module, EVERY_WIDTH) is module


def test_a_residual_goes_where_both_of_its_operands_may() -> None:
    draft = started(dead=(1, 3))
    draft.constant("wr", weights(5, 1, 1, 3, dead=(1, 2)), I8)
    draft.constant("br", [5, 6, 7, 8, 9], I32)
    draft.node("r", Conv2d((1, 1), PLAIN, (1, 1), 4), "x", "wr", "br")
    draft.node("al", Clamp(-90_000, 90_000), "a")
    draft.node("rl", Clamp(-90_000, 90_000), "r")
    draft.rescale("v", draft.node("s", Add(), "al", "rl"), 0.02)
    module = ended(draft, "v").module("z")
    found = widths(folded(module))
    assert (found["a"], found["r"], found["v"]) == (4, 4, 4)  # 1 is constant in both
    assert_same_meaning(module)


def test_every_reader_must_do_without() -> None:
    draft = ended(started(), "y")
    draft.constant("w3", weights(2, 1, 1, 5, unread=(3,)), I8)
    draft.constant("b3", [0, 0], I32)
    draft.node("a3", Conv2d((1, 1), (1, 1, 1, 1), (1, 1), 100), "y", "w3", "b3")
    found = widths(folded(draft.module("z", "a3")))
    assert found["y"] == 4  # 1 is read beside padding, and is not its zero point; 3 is not read there


def test_a_constant_that_two_nodes_share_is_cut_for_each() -> None:
    draft = started(dead=())
    draft.constant("w2", weights(5, 1, 1, 5, unread=(2,)), I8)
    draft.constant("b2", [1, 2, 3, 4, 5], I32)
    draft.node("c", Conv2d((1, 1), PLAIN, (1, 1), -7), "y", "w2", "b2")
    draft.rescale("v", "c", 0.01, -7)
    draft.node("d", Conv2d((1, 1), PLAIN, (1, 1), -7), "v", "w2", "b2")
    after = folded(draft.module("d"))
    found = widths(after)
    assert (found["y"], found["v"], found["d"]) == (4, 4, 5)
    own = {node.outputs[0].name: node.inputs for node in after.graph.nodes}
    assert own["c"][1] != own["d"][1]
    assert data(after, own["c"][1]).shape == (4, 1, 1, 4)
    assert data(after, own["d"][1]).shape == (5, 1, 1, 4)


def test_one_channel_stays_of_what_is_constant_as_a_whole() -> None:
    draft = started(dead=range(5))
    module = ended(draft, "y").module("z")
    assert widths(folded(module)) == {"a": 1, "y": 1, "a2": 2, "z": 2}
    assert_same_meaning(module)


def test_an_open_batch_stays_open() -> None:
    draft = started(shape=(Symbol("batch", 1, 4), 4, 5, 3))
    module = placed(ended(draft, "y").module("z"))
    after = fold_constant_channels(module, EVERY_WIDTH)
    verify(after, Stage.PLACED, EVERY_WIDTH, module, "fold_constant_channels")
    assert widths(after)["y"] == 3
    assert after.narrowed is not None
    assert after.narrowed.macs == 20 * 9 + 12 * 24


def _conditional() -> Module:
    """Inside of an arm channels go; what the arm is given and what it gives has all of them."""
    convolution = "{stride=(1, 1), padding=(0, 0, 0, 0), dilation=(1, 1), input_zero_point=0}"
    rescale = "{rounding=Rounding.DOUBLE_ROUND, input_zero_point=0, output_zero_point=0, left_shift=0, dtype=DType.I8}"
    text = f"""
module hand
input %flag : tensor<1xbool>
input %x : tensor<1x2x2x2xi8>
output %z : tensor<1x2x2x4xi8>
constant %w = data<4x1x1x2xi8> [1, 2, 0, 0, 3, 4, 0, 0]
constant %b = data<4xi32> [5, 6, 7, 8]
constant %w2 = data<4x1x1x4xi8> [1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0, 0, 1, 0, 1, 0]
constant %m = data<1xi32> [1073741824]
constant %s = data<1xi8> [1]

func two(%u : tensor<1x2x2x4xi8>) -> (%r2) {{
  %q : tensor<1x2x2x4xi32> = conv2d(%u, %w2, %b) {convolution}
  %r : tensor<1x2x2x4xi8> = rescale(%q, %m, %s) {rescale}
  %q2 : tensor<1x2x2x4xi32> = conv2d(%r, %w2, %b) {convolution}
  %r2 : tensor<1x2x2x4xi8> = rescale(%q2, %m, %s) {rescale}
}}

func none(%v : tensor<1x2x2x4xi8>) -> (%t) {{
  %t : tensor<1x2x2x4xi8> = clamp(%v) {{minimum=-5, maximum=5}}
}}

func main(%flag : tensor<1xbool>, %x : tensor<1x2x2x2xi8>) -> (%z) {{
  %a : tensor<1x2x2x4xi32> = conv2d(%x, %w, %b) {convolution}
  %y : tensor<1x2x2x4xi8> = rescale(%a, %m, %s) {rescale}
  %k : tensor<1x2x2x4xi8> = cond_if(%flag, %y) {{then_branch="two", else_branch="none"}}
  %z : tensor<1x2x2x4xi8> = loop(%k) {{body="again", num_iterations=3}}
}}
"""
    body = """
func again(%i : tensor<1x2x2x4xi8>) -> (%j) {
  %j : tensor<1x2x2x4xi8> = clamp(%i) {minimum=-3, maximum=3}
}

func main("""
    return parse_module(text.replace("\nfunc main(", body), {}, OPERATIONS)


def test_conditionals_and_loops_are_given_all_channels_and_give_all() -> None:
    target = EVERY_WIDTH
    module = placed(_conditional(), target)
    after = fold_constant_channels(module, target)
    verify(after, Stage.PLACED, target, module, "fold_constant_channels")
    found = widths(after)
    assert (found["y"], found["k"], found["z"], found["t"], found["j"]) == (4, 4, 4, 4, 4)
    assert (found["q"], found["r"], found["r2"]) == (3, 3, 4)
    generator = np.random.default_rng(1)
    for flag in (False, True):
        inputs = [np.array([flag]), generator.integers(-128, 128, (1, 2, 2, 2)).astype(np.int8)]
        assert evaluate_graph(after, inputs)[0].tobytes() == evaluate_graph(module, inputs)[0].tobytes()


def test_what_a_function_of_the_application_computes_stays() -> None:
    module = placed(ended(started(), "y").module("z"))
    bound: Any = dict.fromkeys(("a2", "z"))
    assert fold_constant_channels(module, EVERY_WIDTH, bound) is module
    bound = dict.fromkeys(("a", "y"))
    assert fold_constant_channels(module, EVERY_WIDTH, bound) is module


# Floats


def _float(zeros: int, values: Any = None, pad: float = 0.0) -> Module:
    """A conv2d of an input with channels that a pad adds."""
    draft = Draft()
    draft.parameter("x", (1, 3, 3, 2), F32)
    draft.node("p", Pad((0, 0, 0, 1), (0, 0, 0, zeros), pad), "x")
    own = weights(3, 2, 2, 3 + zeros) / 8 if values is None else values
    draft.constant("w", own, F32)
    draft.constant("b", [0.5, -0.0, 2.0], F32)
    draft.node("y", Conv2d((1, 1), (1, 1, 1, 1), (1, 1)), "p", "w", "b")
    return draft.module("y")


def test_zeros_add_nothing_to_sums_of_floats() -> None:
    after = folded(_float(2))
    assert widths(after)["p"] == 2
    assert data(after, "b").tolist() == [0.5, -0.0, 2.0]


@pytest.mark.parametrize("value", [np.inf, np.nan])
def test_zeros_times_what_is_not_finite_stay(value: float) -> None:
    own = weights(3, 2, 2, 5) / 8
    own[1, 1, 1, 4] = value
    module = placed(_float(2, own))
    assert widths(fold_constant_channels(module, EVERY_WIDTH))["p"] == 3


def test_other_constants_of_floats_stay() -> None:
    module = placed(_float(2, pad=0.5))
    assert fold_constant_channels(module, EVERY_WIDTH) is module


def test_a_float_channel_of_empty_weights_may_be_infinite() -> None:
    draft = Draft()
    draft.parameter("x", (1, 3, 3, 2), F32)
    draft.constant("w", weights(3, 1, 1, 2, dead=(1,), unread=(0,)), F32)
    draft.constant("b", [1, 2, 3], F32)
    draft.node("a", Conv2d((1, 1), PLAIN, (1, 1)), "x", "w", "b")
    draft.constant("w2", weights(3, 1, 1, 3, unread=(2,)), F32)
    draft.node("y", Conv2d((1, 1), PLAIN, (1, 1)), "a", "w2", "b")
    module = placed(draft.module("y"))
    assert fold_constant_channels(module, EVERY_WIDTH) is module


def test_float_channels_that_nobody_reads_go() -> None:
    draft = Draft()
    draft.parameter("x", (1, 3, 3, 2), F32)
    draft.constant("w", weights(6, 1, 1, 2), F32)
    draft.constant("b", np.arange(6), F32)
    draft.node("a", Conv2d((1, 1), PLAIN, (1, 1)), "x", "w", "b")
    draft.node("y", Slice((0, 0, 0, 1), (1, 3, 3, 3), (1, 1, 1, 1)), "a")
    assert widths(folded(draft.module("y")))["a"] == 3


def test_what_is_given_stays_as_it_was() -> None:
    module = placed(ended(started(), "y").module("z"))
    before = [(constant.name, constant.data.content) for constant in module.constants]
    fold_constant_channels(module, EVERY_WIDTH)
    assert [(constant.name, constant.data.content) for constant in module.constants] == before
