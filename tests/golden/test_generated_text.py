"""Golden texts: the C of small kernels and of an entry, and the IR of a small model after each pass."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bytewright.codegen.kernels import kernels_source
from bytewright.ir.module import Module
from bytewright.ir.text.print_graph import print_function
from bytewright.ir.text.print_prim import print_primfunc
from bytewright.ir.types import DType
from bytewright.lower.fold_pad import fold_pad
from bytewright.lower.lower_graph import lower_graph
from bytewright.lower.share_kernels import share_kernels
from bytewright.ops.arithmetic.numerics import Rounding
from bytewright.ops.convolution import Conv2d, DepthwiseConv2d
from bytewright.ops.data import Pad
from bytewright.ops.elementwise import Add, Clamp
from bytewright.ops.rescale import Rescale
from bytewright.pipeline import Compiled, compile_model
from bytewright.place.plan_devices import plan_devices
from bytewright.target.registry import load_target
from support.lowering import Draft, lowered
from support.open_scratch import Scratch, open_chain, open_kernel
from tflite_writer import ModelBuilder

I8, I32 = DType.I8, DType.I32
Golden = Callable[[str, str], None]
NO_PADDING = (0, 0, 0, 0)


def kernel_text(module: Module, target: str) -> str:
    """The C of the module's one kernel, without what every file of kernels begins with."""
    shared = lowered(module, target)
    restricted = tuple(
        replace(kernel, noalias=tuple((p.buffer.name, "output") for p in kernel.buffer_parameters[:-1]))
        for kernel in shared.kernels
    )
    text = kernels_source(replace(shared, kernels=restricted))
    return text[text.index("/* hand.tflite") :]


def convolution(
    kernel: tuple[int, int], depth: int, channels: int, padding: tuple[int, int, int, int]
) -> Draft:
    draft = Draft()
    draft.parameter("x", (1, 5, 5, depth), I8)
    weights = np.arange(channels * kernel[0] * kernel[1] * depth) % 100
    draft.constant("w", weights.reshape(channels, *kernel, depth), I8)
    draft.constant("b", np.arange(channels), I32)
    draft.node("y", Conv2d((1, 1), padding, (1, 1), 3), "x", "w", "b")
    draft.rescale("z", "y", [0.001 * (channel + 1) for channel in range(channels)], -4)
    return draft


def test_a_pointwise_convolution_for_a_microcontroller(golden: Golden) -> None:
    golden(
        "conv2d_pointwise_m55.c",
        kernel_text(convolution((1, 1), 20, 4, NO_PADDING).module("z"), "mps3-an547"),
    )


def test_a_convolution_of_a_patch_for_the_host(golden: Golden) -> None:
    golden("conv2d_patch_host.c", kernel_text(convolution((2, 2), 3, 2, (0, 1, 0, 1)).module("z"), "host"))


def test_a_depthwise_convolution(golden: Golden) -> None:
    draft = Draft()
    draft.parameter("x", (1, 4, 5, 6), I8)
    draft.constant("w", np.arange(12).reshape(2, 1, 6, 1), I8)
    draft.constant("b", np.arange(6), I32)
    draft.node("y", DepthwiseConv2d((1, 1), (1, 0, 0, 0), (1, 1), 3), "x", "w", "b")
    draft.rescale("z", "y", 0.01, -4)
    golden("depthwise_conv2d_host.c", kernel_text(draft.module("z"), "host"))


def sum_of_two() -> Draft:
    """An int8 ADD, as the frontend writes it, with a clamp."""
    draft = Draft()
    for name in ("x", "y"):
        draft.parameter(name, (2, 8), I8)
        draft.constant(f"{name}_m", [2**30 + 77], I32)
        draft.constant(f"{name}_s", [0 if name == "x" else -1], I8)
        operation = Rescale(Rounding.DOUBLE_ROUND, 5, 0, 20, I32)
        draft.node(f"{name}_wide", operation, name, f"{name}_m", f"{name}_s")
    draft.node("sum", Add(), "x_wide", "y_wide")
    draft.node("z", Clamp(-10, 90), draft.rescale("narrow", "sum", 2.0**-19.5, -10))
    return draft


def test_an_element_wise_sum(golden: Golden) -> None:
    golden("add_host.c", kernel_text(sum_of_two().module("z"), "host"))


def two_layers() -> bytes:
    """PAD, CONV_2D, FULLY_CONNECTED: what the entry and the IR of each pass are shown for."""
    builder = ModelBuilder()
    x = builder.tensor("x", [1, 2, 2, 1], "int8", scale=0.5, zero_point=3)
    p = builder.tensor("p", [1, 3, 3, 1], "int8", scale=0.5, zero_point=3)
    c = builder.tensor("c", [1, 2, 2, 2], "int8", scale=2.0, zero_point=-1)
    y = builder.tensor("y", [1, 3], "int8", scale=4.0, zero_point=0)
    widths = builder.constant("widths", np.array([[0, 0], [1, 0], [1, 0], [0, 0]], np.int32))
    builder.operator("PAD", [x, widths], [p])
    weights = np.arange(8, dtype=np.int8).reshape(2, 2, 2, 1)
    w = builder.constant("w", weights, scale=[0.5, 0.25])
    b = builder.constant("b", np.array([1, 2], np.int32), scale=[0.25, 0.125])
    builder.operator("CONV_2D", [p, w, b], [c], padding="VALID", activation="RELU")
    f = builder.constant("f", np.arange(24, dtype=np.int8).reshape(3, 8), scale=0.5)
    builder.operator("FULLY_CONNECTED", [c, f, -1], [y])
    return builder.build([x], [y])


@pytest.fixture
def two_layer_module(tmp_path: Path) -> Compiled:
    path = tmp_path / "two.tflite"
    path.write_bytes(two_layers())
    return compile_model(path, load_target("mps3-an547"))


def test_the_entry_of_two_layers(golden: Golden, two_layer_module: Compiled) -> None:
    text = two_layer_module.files["src/two.c"].decode()
    offsets = text.index("enum {")
    golden("entry_offsets.c", text[offsets : text.index("};", offsets) + 2])
    golden("entry_run.c", text[text.index("int32_t two_run") :])


def graph_after_import() -> Draft:
    draft = Draft()
    draft.parameter("x", (1, 4, 4, 20), I8)
    draft.node("p", Pad((0, 1, 1, 0), (0, 0, 0, 0), 3), "x")
    draft.constant("w", np.arange(20).reshape(1, 1, 1, 20), I8)
    draft.constant("b", [7], I32)
    draft.node("y", Conv2d((1, 1), NO_PADDING, (1, 1), 3), "p", "w", "b")
    draft.node("z", Clamp(-4, 50), draft.rescale("narrow", "y", 0.01, -4))
    return draft


def test_a_model_after_each_pass(golden: Golden) -> None:
    """One file a pass; consecutive ones differ in what the pass changed."""
    target = load_target("generic-cortex-m")
    module = graph_after_import().module("z")
    golden("passes_0_imported.ir", print_function(module.graph))
    module = plan_devices(module, target)
    golden("passes_1_plan_devices.ir", print_function(module.graph))
    module = fold_pad(module)
    golden("passes_2_fold_pad.ir", print_function(module.graph))
    module = share_kernels(lower_graph(module, target))
    golden("passes_3_lower_graph_entry.ir", print_primfunc(module.main, "entry"))
    golden("passes_3_lower_graph_kernel.ir", print_primfunc(module.kernels[0]))


def test_the_plan_in_the_entry(golden: Golden, two_layer_module: Compiled) -> None:
    golden("passes_4_apply_solution_entry.ir", print_primfunc(two_layer_module.planned.module.main, "entry"))


def test_a_call_that_requests_memory_at_run_time(golden: Golden) -> None:
    kernel = open_kernel("m_k", [Scratch(), Scratch(3, I32, 64)])
    source = compile_model(open_chain("m", [kernel]), load_target("host")).files["src/m.c"].decode()
    golden("request.c", source[source.index("    uint8_t *const ram") :])


def test_what_serves_requests(golden: Golden) -> None:
    kernel = open_kernel("m_k", [Scratch()])
    files = compile_model(open_chain("m", [kernel]), load_target("host")).files
    golden("backend.c", files["src/m_backend.c"].decode())
