"""Spatial kernels in pieces and over rings: any split of the rows, and any ring that holds the window, is the same."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from bytewright.ir.expr import Buffer, RingRows
from bytewright.ir.graph import Operation
from bytewright.ir.module import Module
from bytewright.ir.prim import Access, BufferParameter, Call, ParameterRole, PrimFunc, Region
from bytewright.ir.rewrite import substitute_in_function
from bytewright.ir.types import DType
from bytewright.ops.convolution import Conv2d, DepthwiseConv2d
from bytewright.ops.data import Concat, Identity, Pad, Slice, Tile, Transpose
from bytewright.ops.elementwise import Add, Clamp
from bytewright.ops.pooling import MaxPool2d, TflAveragePool2d, TflMean
from bytewright.ops.softmax import TflSoftmax
from support.evaluate.evaluate import Evaluator
from support.evaluation import evaluate_function
from support.lowering import TARGETS, Draft, lowered, random_inputs

I8, I32, F32 = DType.I8, DType.I32, DType.F32


def _convolution(
    depth: int,
    channels: int,
    kernel: tuple[int, int],
    *,
    depthwise: bool = False,
    dtype: DType = I8,
    **options,
) -> Callable[[], Draft]:
    """A model of one convolution over 9 rows and 7 columns, and a rescale where it is int8."""

    def make() -> Draft:
        draft = Draft()
        draft.parameter("x", (1, 9, 7, depth), dtype)
        generator = np.random.default_rng(5)
        shape = (*kernel, depth, channels // depth) if depthwise else (channels, *kernel, depth)
        weights = generator.integers(-127, 128, shape)
        draft.constant("w", weights if dtype is I8 else weights / 8, dtype)
        draft.constant("b", generator.integers(-1000, 1000, channels), I32 if dtype is I8 else F32)
        padding = options.get("padding", (1, 1, 1, 1))
        stride, dilation = options.get("stride", (1, 1)), options.get("dilation", (1, 1))
        kind = DepthwiseConv2d if depthwise else Conv2d
        zero_point = 9 if dtype is I8 else 0
        draft.node("y", kind(stride, padding, dilation, zero_point), "x", "w", "b")
        if dtype is I8:
            draft.rescale("z", "y", generator.uniform(0.0005, 0.01, channels), -5)
        return draft

    return make


def _pool(kind: type[MaxPool2d] | type[TflAveragePool2d]) -> Callable[[], Draft]:
    def make() -> Draft:
        draft = Draft()
        draft.parameter("x", (1, 9, 7, 11), I8)
        draft.node("y", kind((3, 2), (2, 1), (1, 1, 0, 1)), "x")
        return draft

    return make


MODELS = {
    "dot, interior and border": _convolution(17, 19, (3, 3)),
    "dot, no padding": _convolution(16, 5, (2, 3), padding=(0, 0, 0, 0)),
    "dot, dilated": _convolution(20, 6, (2, 2), dilation=(2, 3), padding=(1, 2, 3, 0)),
    "dot, one tap, strided": _convolution(12, 33, (1, 1), stride=(2, 2), padding=(0, 0, 0, 0)),
    "dot, all border": _convolution(16, 4, (9, 7), padding=(4, 4, 3, 3)),
    "patch in pairs": _convolution(3, 17, (3, 3), stride=(2, 1)),
    "patch in blocks": _convolution(2, 7, (3, 4), padding=(0, 2, 1, 2)),
    "eight lanes": _convolution(3, 8, (3, 3)),
    "depthwise": _convolution(11, 11, (3, 3), depthwise=True),
    "depthwise, eight channels": _convolution(8, 8, (3, 3), depthwise=True),
    "depthwise, multiplied": _convolution(3, 6, (3, 2), depthwise=True, stride=(2, 2)),
    "depthwise, many taps": _convolution(4, 4, (6, 5), depthwise=True, padding=(3, 2, 2, 2)),
    "float": _convolution(5, 18, (3, 3), dtype=F32),
    "float depthwise": _convolution(5, 10, (3, 3), depthwise=True, dtype=F32),
    "maximum": _pool(MaxPool2d),
    "average": _pool(TflAveragePool2d),
}


def _of(*shapes: tuple[int, ...], operation: Operation, dtype: DType = I8) -> Callable[[], Draft]:
    """A model of one operator over inputs of these shapes."""

    def make() -> Draft:
        draft = Draft()
        inputs = [draft.parameter(f"x{i}", shape, dtype) for i, shape in enumerate(shapes)]
        draft.node("y", operation, *inputs)
        return draft

    return make


X = (2, 5, 4, 3)
MOVERS = {
    "clamp": _of(X, operation=Clamp(-30, 50)),
    "sum of two": _of(X, X, operation=Add(), dtype=F32),
    "sum with a row": _of(X, (1, 1, 4, 3), operation=Add(), dtype=F32),
    "pad on every side": _of(X, operation=Pad((0, 2, 1, 0), (0, 1, 2, 2), -7)),
    "pad of samples": _of(X, operation=Pad((1, 0, 0, 0), (1, 0, 0, 0), 3)),
    "slice": _of(X, operation=Slice((0, 1, 0, 1), (2, 2, 3, 2), (1, 2, 1, 1))),
    "transpose": _of(X, operation=Transpose((0, 2, 1, 3))),
    "tile of columns and channels": _of(X, operation=Tile((1, 1, 3, 2))),
    "tile of one row": _of((2, 1, 4, 3), operation=Tile((1, 5, 1, 1))),
    **{f"concat along {axis}": _of(X, X, X, operation=Concat(axis)) for axis in range(4)},
    "identity": _of(X, operation=Identity()),
    "mean along columns": _of(X, operation=TflMean((2,), True), dtype=F32),
    "softmax": _of(X, operation=TflSoftmax(1.0), dtype=F32),
}
CASES = [
    pytest.param(make, target, id=f"{name}, {target}") for name, make in MODELS.items() for target in TARGETS
]


def only_kernel(module: Module) -> tuple[PrimFunc, dict[str, np.ndarray]]:
    """The one kernel and its constant arguments."""
    (kernel,) = module.kernels
    (call,) = (s for s in module.main.body.statements if isinstance(s, Call))
    data = {constant.buffer.name: constant.data.array for constant in module.constant_buffers}
    constants = {
        parameter.buffer.name: data[argument.buffer.name]
        for parameter, argument in zip(kernel.parameters, call.arguments, strict=True)
        if isinstance(parameter, BufferParameter)
        and parameter.role is ParameterRole.PARAMETER
        and isinstance(argument, Region)
    }
    return kernel, constants


def buffers(kernel: PrimFunc) -> tuple[Buffer, Buffer]:
    """The input and the output."""
    activations = [p for p in kernel.buffer_parameters if p.role is ParameterRole.ACTIVATION]
    (source,) = (p.buffer for p in activations if p.access is Access.READ)
    (target,) = (p.buffer for p in activations if p.access is Access.WRITE)
    return source, target


def same(found: np.ndarray, wanted: np.ndarray) -> bool:
    if wanted.dtype == np.float32:
        return bool(np.abs(found - wanted).max(initial=0) <= 1e-5 * np.abs(wanted).max())
    return bool((found == wanted).all())


@pytest.mark.parametrize(("make", "target"), CASES)
def test_rows_in_pieces(make: Callable[[], Draft], target: str) -> None:
    draft = make()
    result = draft.nodes[-1].outputs[0].name
    module = draft.module(result)
    kernel, constants = only_kernel(lowered(module, target))
    source, output = buffers(kernel)
    (x,) = random_inputs(module, 7)
    wanted = evaluate_function(module.graph, module.constants, (x,))[result]
    evaluator = Evaluator(Module("m"), (kernel,))
    num_rows = wanted.shape[1]
    for cuts in ([0, num_rows], [0, 1, num_rows], [0, num_rows // 2, num_rows - 1, num_rows]):
        for begin, end in pairwise(cuts):
            arguments = {
                source.name: x.reshape(source.shape),
                "row_begin": begin,
                "row_end": end,
                **constants,
            }
            found = evaluator.run(kernel.name, arguments, require_complete=False)[output.name]
            assert same(found[:, begin:end], wanted[:, begin:end])


def rows_needed(draft: Draft, row: int) -> tuple[int, int]:
    """Input rows [first, last) that an output row reads."""
    operation, inputs = draft.nodes[0].operation, draft.nodes[0].inputs
    if isinstance(operation, MaxPool2d | TflAveragePool2d):
        kernel, dilation = operation.kernel[0], 1
    else:
        assert isinstance(operation, Conv2d | DepthwiseConv2d)
        axis = 1 if isinstance(operation, Conv2d) else 0
        kernel, dilation = draft.types[inputs[1]].fixed_shape[axis], operation.dilation[0]
    first = row * operation.stride[0] - operation.padding[0]
    return max(first, 0), min(first + (kernel - 1) * dilation + 1, 9)


@pytest.mark.parametrize(("make", "target"), CASES)
def test_rows_in_a_ring(make: Callable[[], Draft], target: str) -> None:
    """The input in a ring of just as many rows as the window is high, written as they are needed."""
    draft = make()
    result = draft.nodes[-1].outputs[0].name
    module = draft.module(result)
    kernel, constants = only_kernel(lowered(module, target))
    source, output = buffers(kernel)
    (x,) = random_inputs(module, 8)
    wanted = evaluate_function(module.graph, module.constants, (x,))[result]
    num_rows = wanted.shape[1]
    height = max(last - first for first, last in (rows_needed(draft, row) for row in range(num_rows)))
    in_ring = substitute_in_function(kernel, {source: replace(source, rows=RingRows(1, height))})
    evaluator = Evaluator(Module("m"), (in_ring,))
    for row in range(num_rows):
        rows = x.reshape(source.shape)  # templates may see columns and channels as one axis
        ring = np.full((1, height, *rows.shape[2:]), 77, x.dtype)
        for needed in range(*rows_needed(draft, row)):
            ring[:, needed % height] = rows[:, needed]
        arguments = {source.name: ring, "row_begin": row, "row_end": row + 1, **constants}
        found = evaluator.run(kernel.name, arguments, require_complete=False)[output.name]
        assert same(found[:, row], wanted[:, row])


@pytest.mark.parametrize("make", [pytest.param(make, id=name) for name, make in MOVERS.items()])
def test_rows_of_what_is_no_window(make: Callable[[], Draft]) -> None:
    """Each row alone, the last one first: other rows are not touched."""
    draft = make()
    module = draft.module("y")
    kernel, _ = only_kernel(lowered(module))
    inputs = random_inputs(module, 9)
    wanted = evaluate_function(module.graph, module.constants, inputs)["y"]
    evaluator = Evaluator(Module("m"), (kernel,))
    (output,) = (p.buffer for p in kernel.buffer_parameters if p.access is Access.WRITE)
    given = [p.buffer.name for p in kernel.buffer_parameters if p.access is Access.READ]
    for row in reversed(range(wanted.shape[1])):
        arguments = {**dict(zip(given, inputs, strict=True)), "row_begin": row, "row_end": row + 1}
        found = evaluator.run(kernel.name, arguments, require_complete=False)[output.name]
        assert same(found[:, row], wanted[:, row])
        others = np.delete(found, row, axis=1)
        assert (others.view(np.uint8) == 0xA5).all()  # as memory that nothing wrote


def test_a_kernel_of_one_row_takes_no_range() -> None:
    draft = Draft()
    draft.parameter("x", (1, 1, 5, 2), I8)
    draft.node("y", MaxPool2d((1, 2), (1, 1), (0, 0, 0, 0)), "x")
    kernel, _ = only_kernel(lowered(draft.module("y")))
    assert len(kernel.parameters) == 2
