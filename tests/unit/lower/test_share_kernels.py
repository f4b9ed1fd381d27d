"""share_kernels: layers whose kernels are the same function call one."""

from __future__ import annotations

import numpy as np

from bytewright.ir.module import Module
from bytewright.ir.prim import Call
from bytewright.ir.types import DType
from bytewright.lower.lower_graph import lower_graph
from bytewright.lower.share_kernels import share_kernels
from bytewright.ops.convolution import Conv2d
from bytewright.ops.elementwise import Clamp
from bytewright.place.plan_devices import plan_devices
from bytewright.target.registry import load_target
from support.lowering import Draft, random_inputs, run_main

I8, I32 = DType.I8, DType.I32


def two_layers(zero_points: tuple[int, int], scales: tuple[float, float] = (0.1, 0.1)) -> Module:
    """Two 1x1 convolutions of different weights; unshared kernels."""
    draft = Draft()
    source = draft.parameter("x", (1, 2, 2, 2), I8)
    for index, (zero_point, scale) in enumerate(zip(zero_points, scales, strict=True)):
        draft.constant(f"w{index}", np.array([1, 2, 3, 4 + index]).reshape(2, 1, 1, 2), I8)
        draft.constant(f"b{index}", [index, 2], I32)
        operation = Conv2d((1, 1), (0, 0, 0, 0), (1, 1), zero_point)
        draft.node(f"c{index}", operation, source, f"w{index}", f"b{index}")
        source = draft.rescale(f"y{index}", f"c{index}", scale)
    target = load_target("host")
    return lower_graph(plan_devices(draft.module(source), target), target)


def callees(module: Module) -> list[str]:
    return [s.callee for s in module.main.body.statements if isinstance(s, Call)]


def test_different_weights_are_arguments() -> None:
    """The zero point is folded into the bias, so it is no difference either."""
    unshared = two_layers((0, 5))
    module = share_kernels(unshared)
    assert len(unshared.kernels) == 2
    assert callees(module) == ["hand_c0", "hand_c0"]
    assert [kernel.name for kernel in module.kernels] == ["hand_c0"]
    inputs = random_inputs(module, 3)
    assert (run_main(module, inputs)[0] == run_main(unshared, inputs)[0]).all()


def test_different_constants_are_different_functions() -> None:
    module = share_kernels(two_layers((0, 0), (0.1, 0.3)))
    assert callees(module) == ["hand_c0", "hand_c1"]


def test_sharing_twice_changes_nothing() -> None:
    module = share_kernels(two_layers((0, 0)))
    assert share_kernels(module) == module


def test_where_a_kernel_comes_from_does_not_keep_it_apart() -> None:
    draft = Draft()
    draft.parameter("x", (4,), I8)
    draft.parameter("y", (4,), I8)
    draft.node("a", Clamp(-3, 3), "x")
    draft.node("b", Clamp(-3, 3), "y")
    target = load_target("host")
    module = share_kernels(lower_graph(plan_devices(draft.module("a", "b"), target), target))
    assert callees(module) == ["hand_a", "hand_a"]
