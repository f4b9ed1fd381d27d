"""Convolutions along rows of an open extent that are one column wide: of each extent what their references compute."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bytewright.ir.expr import Const
from bytewright.ir.module import Module
from bytewright.ir.prim import Access, For, PrimFunc
from bytewright.ir.types import DType, Symbol
from bytewright.ir.walk import walk_statements
from bytewright.ops.convolution import Conv2d, DepthwiseConv2d
from support.evaluate.evaluate import Evaluator
from support.evaluation import evaluate_function
from support.lowering import Draft, assert_close, lowered
from support.tiers import some

TARGETS = ("mps3-an547", "mps2-an386", "x86-64-v3", "x86-64-v4-vnni", "aarch64", "rv64gcv")
# Rows of a window, stride, dilation, padding before and behind; and which numbers of rows there may be.
WINDOWS = {
    "wide": ((3, 1, 1, 1, 1), (1, 9)),
    "uneven": ((4, 1, 1, 0, 3), (1, 6)),
    "strided": ((3, 2, 1, 2, 0), (2, 9)),
    "dilated": ((3, 1, 2, 4, 0), (1, 7)),
    "inside": ((2, 3, 1, 0, 0), (2, 9)),
    "pixels": ((1, 1, 1, 0, 0), (1, 7)),
    "few": ((1, 1, 1, 0, 0), (1, 2)),
    "large": ((61, 1, 1, 30, 30), (1, 3)),
}


def convolution(name: str, dtype: DType, *, depthwise: bool) -> Module:
    """Over two samples of as many rows as the run says, of 12 channels."""
    (size, stride, dilation, before, behind), (least, most) = WINDOWS[name]
    draft, generator = Draft(), np.random.default_rng(len(name))
    source = draft.parameter("x", (2, Symbol("time", least, most), 1, 12), dtype)
    shape = (size, 1, 12, 1) if depthwise else (9, size, 1, 12)
    channels, is_float = 12 if depthwise else 9, dtype is DType.F32
    weights, bias = generator.integers(-127, 128, shape), generator.integers(-999, 999, channels)
    draft.constant("w", weights / 64 if is_float else weights, dtype)
    draft.constant("b", bias, dtype if is_float else DType.I32)
    kind: Any = DepthwiseConv2d if depthwise else Conv2d
    operation = kind((stride, 1), (before, behind, 0, 0), (dilation, 1), 0 if is_float else -5)
    result = draft.node("c", operation, source, "w", "b")
    return draft.module(result if is_float else draft.rescale("y", result, 2.0**-9, 3))


def dead_loops(kernel: PrimFunc) -> list[For]:
    """Loops that no run goes through."""
    loops = [each for each in walk_statements(kernel.body) if isinstance(each, For)]
    return [each for each in loops if isinstance(each.end, Const) and each.end == each.begin]


CASES = [
    (target, name, dtype, depthwise)
    for target in TARGETS
    for name in WINDOWS
    for dtype in (DType.I8, DType.F32)
    for depthwise in (False, True)
]
# Which read behind the input, and which had a loop for tiles larger than any run.
FAULTS = [("x86-64-v3", "inside", DType.I8, False), ("mps3-an547", "few", DType.F32, False)]


@pytest.mark.parametrize(("target", "name", "dtype", "depthwise"), some(CASES, 31, FAULTS))
def test_each_extent(target: str, name: str, dtype: DType, depthwise: bool) -> None:
    """The evaluator sees reads behind the input, of the second sample too."""
    module = convolution(name, dtype, depthwise=depthwise)
    low = lowered(module, target)
    assert not [loop for kernel in low.kernels for loop in dead_loops(kernel)]
    least, most = WINDOWS[name][1]
    generator = np.random.default_rng(3)
    given, made = (
        next(p.buffer.name for p in low.main.buffer_parameters if (p.access is Access.READ) == is_read)
        for is_read in (True, False)
    )
    for rows in {least, least + 1, most - 1, most}:
        x = generator.integers(-128, 128, (2, rows, 1, 12)).astype(dtype.numpy)
        found = Evaluator(low).run(low.main.name, {given: x, "time": rows})[made]
        (result,) = module.graph.results
        assert_close(found, evaluate_function(module.graph, module.constants, (x,))[result], f"{rows} rows")
