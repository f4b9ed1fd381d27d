"""Distances between inputs and outputs: as trying finds them, up and down; one byte nearer and a byte is lost.

The evaluator runs each kernel in one array at exactly these distances.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bytewright import ir
from bytewright.ir.analyses.overlap import Distances, Given, overlap_distances
from bytewright.ir.downwards import run_downwards
from bytewright.ir.types import DType
from bytewright.ops.convolution import Conv2d, DepthwiseConv2d, TransposeConv2d
from bytewright.ops.data import Concat, Pad, Slice, Transpose
from bytewright.ops.elementwise import Add, Clamp
from bytewright.ops.matmul import TflBatchMatMul
from bytewright.ops.pooling import MaxPool2d, TflAveragePool2d, TflMean
from bytewright.ops.resize import TflResizeBilinear, TflResizeNearest
from bytewright.ops.softmax import TflSoftmax
from bytewright.target.registry import load_target
from support.evaluate.evaluate import Evaluator
from support.lowering import TARGETS, Draft, lowered, random_inputs
from support.one_array import run_in_one_array
from support.overlap_oracle import distances_by_trying
from support.shared_models import compiled
from support.tiers import some

I8, I32, F32 = DType.I8, DType.I32, DType.F32


def one_kernel(module: ir.Module) -> tuple[ir.PrimFunc, ir.Call]:
    (kernel,) = module.kernels
    (call,) = (s for s in module.main.body.statements if isinstance(s, ir.Call))
    return kernel, call


def scalars_of(kernel: ir.PrimFunc, call: ir.Call) -> dict[str, int]:
    return {
        p.name: int(a.value)
        for p, a in zip(kernel.parameters, call.arguments, strict=True)
        if isinstance(p, ir.ScalarParameter) and isinstance(a, ir.Const)
    }


def pairs_of(kernel: ir.PrimFunc) -> Iterator[tuple[str, str]]:
    activations = [p for p in kernel.buffer_parameters if p.role is ir.ParameterRole.ACTIVATION]
    for source in activations:
        for output in activations:
            if source.access is ir.Access.READ and output.access is ir.Access.WRITE:
                yield source.name, output.name


def ways_of(kernel: ir.PrimFunc, scalars: dict[str, int]) -> list[ir.PrimFunc]:
    down = run_downwards(kernel, scalars)
    return [kernel] if down is None else [kernel, down]


def found(kernel: ir.PrimFunc, source: str, output: str, scalars: dict[str, int]) -> tuple[int, int] | None:
    given = {source: Given(is_output=False), output: Given(is_output=True)}
    distances = overlap_distances(kernel, given, scalars, {})
    return None if distances is None else (distances.below_bytes, distances.above_bytes)


@st.composite
def drafts(draw: st.DrawFn) -> Draft:
    """One spatial operator of any sizes, strides, dilations and paddings; element-wise ones behind some of them."""
    number = st.integers
    height, width, depth = draw(number(1, 9)), draw(number(1, 7)), draw(st.sampled_from([1, 2, 3, 4, 8, 17]))
    draft = Draft()
    draft.parameter("x", (draw(number(1, 2)), height, width, depth), I8)
    stride = (draw(number(1, 3)), draw(number(1, 2)))
    kernel = (draw(number(1, min(3, height))), draw(number(1, min(3, width))))
    padding = tuple(draw(number(0, size - 1)) for size in (kernel[0], kernel[0], kernel[1], kernel[1]))
    match draw(st.sampled_from(["conv", "depthwise", "max", "average", "pad", "slice", "mean", "add"])):
        case "conv" | "depthwise" as kind:
            dilation = (draw(number(1, 2)), draw(number(1, 2)))
            room = [
                size + a + b for size, a, b in zip((height, width), padding[::2], padding[1::2], strict=True)
            ]
            dilation = tuple(
                d if (k - 1) * d < r else 1 for d, k, r in zip(dilation, kernel, room, strict=True)
            )
            channels = draw(st.sampled_from([1, 3, 4, 8, 17])) if kind == "conv" else depth
            generator = np.random.default_rng(1)
            shape = (channels, *kernel, depth) if kind == "conv" else (*kernel, depth, 1)
            draft.constant("w", generator.integers(-127, 128, shape), I8)
            draft.constant("b", generator.integers(-1000, 1000, channels), I32)
            operation = (Conv2d if kind == "conv" else DepthwiseConv2d)(stride, padding, dilation, 3)
            draft.node("y", operation, "x", "w", "b")
            draft.rescale("z", "y", generator.uniform(0.0005, 0.01, channels), -5)
        case "max" | "average" as kind:
            pool = MaxPool2d if kind == "max" else TflAveragePool2d
            draft.node("z", pool(kernel, stride, padding), "x")
        case "pad":
            around = [tuple(draw(number(0, 2)) for _ in range(4)) for _ in range(2)]
            draft.node("z", Pad(*around, -3), "x")
        case "slice":
            shape = draft.types["x"].fixed_shape
            start = tuple(draw(number(0, size - 1)) for size in shape)
            size = tuple(draw(number(1, end - first)) for end, first in zip(shape, start, strict=True))
            draft.node("z", Slice(start, size, (1, 1, 1, 1)), "x")
        case "mean":
            axes = draw(st.sampled_from([(1, 2), (2,), (1,), (3,)]))
            draft.node("z", TflMean(axes, True, 0, 0, 1 << 30, 1), "x")
        case _:
            draft.parameter("x2", draft.types["x"].fixed_shape, F32)
            draft.parameter("x3", (1, 1, 1, depth), F32)
            draft.node("sum", Add(), "x2", "x3")
            draft.node("z", Clamp(-3.0, 5.0), "sum")
    return draft


@st.composite
def rising_drafts(draw: st.DrawFn) -> Draft:
    """Resizes and transposed convolutions, of so many rows that not every turn is looked at."""
    number = st.integers
    height, width, depth = draw(number(1, 16)), draw(number(1, 6)), draw(st.sampled_from([1, 3, 4]))
    draft = Draft()
    draft.parameter("x", (1, height, width, depth), I8)
    if draw(st.booleans()):
        times = draw(st.sampled_from([(2, 2), (2, 2), (3, 1), (3, 2), (1, 3), (0, 2)]))
        size = tuple(
            extent * factor or draw(number(1, 30))
            for extent, factor in zip((height, width), times, strict=True)
        )
        modes = draw(st.sampled_from([(False, False), (True, False), (False, True)]))
        draft.node("z", draw(st.sampled_from([TflResizeNearest, TflResizeBilinear]))(size, *modes), "x")
        return draft
    kernel, stride = (draw(number(1, 5)), draw(number(1, 3))), (draw(number(1, 3)), draw(number(1, 3)))
    channels = draw(st.sampled_from([1, 3, 8]))
    generator = np.random.default_rng(1)
    draft.constant("w", generator.integers(-127, 128, (channels, *kernel, depth)), I8)
    draft.constant("b", generator.integers(-1000, 1000, channels), I32)
    pads = tuple(draw(number(1 - size, 1)) for size in (kernel[0], kernel[0], kernel[1], kernel[1]))
    room = [
        (extent - 1) * step + size + first + last
        for extent, step, size, first, last in zip(
            (height, width), stride, kernel, pads[::2], pads[1::2], strict=True
        )
    ]
    draft.node("y", TransposeConv2d(stride, pads if min(room) >= 1 else (0, 0, 0, 0), 3), "x", "w", "b")
    draft.rescale("z", "y", generator.uniform(0.0005, 0.01, channels), -5)
    return draft


@settings(max_examples=80, deadline=None)
@given(rising_drafts(), st.sampled_from(TARGETS))
def test_distances_where_rows_become_more(draft: Draft, target: str) -> None:
    assert_distances(draft, target)


@settings(max_examples=120, deadline=None)
@given(drafts(), st.sampled_from(TARGETS))
def test_distances_are_those_that_trying_finds(draft: Draft, target: str) -> None:
    assert_distances(draft, target)


def assert_distances(draft: Draft, target: str) -> None:
    module = lowered(draft.module("z"), target)
    for kernel in module.kernels:
        call = next(
            s for s in module.main.body.statements if isinstance(s, ir.Call) and s.callee == kernel.name
        )
        scalars = scalars_of(kernel, call)
        for source, output in pairs_of(kernel):
            for way in ways_of(kernel, scalars):
                wanted = distances_by_trying(way, {source: False, output: True}, scalars)
                assert found(way, source, output, scalars) == wanted


def _of(*shapes: tuple[int, ...], operation: ir.Operation, dtype: DType = F32) -> Draft:
    draft = Draft()
    inputs = [draft.parameter(f"x{i}", shape, dtype) for i, shape in enumerate(shapes)]
    draft.node("z", operation, *inputs)
    return draft


X = (2, 3, 4, 2)
OTHERS = {
    "transpose": _of(X, operation=Transpose((0, 2, 3, 1))),
    "concat of channels": _of(X, X, operation=Concat(3)),
    "concat of rows": _of(X, X, operation=Concat(1)),
    "softmax": _of(X, operation=TflSoftmax(1.0)),
    "product of matrices": _of((2, 5, 3), (2, 3, 9), operation=TflBatchMatMul()),
    "product of bytes, both turned": _of(
        (5, 4), (7, 5), operation=TflBatchMatMul(True, True, 1, 2), dtype=I8
    ),
    "slice with strides": _of(X, operation=Slice((0, 0, 1, 0), (2, 2, 2, 2), (1, 2, 2, 1))),
}


@pytest.mark.parametrize("draft", [pytest.param(draft, id=name) for name, draft in OTHERS.items()])
def test_distances_of_what_moves_data(draft: Draft) -> None:
    kernel, call = one_kernel(lowered(draft.module("z")))
    scalars = scalars_of(kernel, call)
    for source, output in pairs_of(kernel):
        for way in ways_of(kernel, scalars):
            assert found(way, source, output, scalars) == distances_by_trying(
                way, {source: False, output: True}, scalars
            )


@settings(max_examples=60, deadline=None)
@given(drafts(), st.sampled_from(TARGETS), st.integers(0, 1000))
def test_one_array_holds_both_at_the_distance_and_no_byte_nearer(
    draft: Draft, target: str, seed: int
) -> None:
    """Every kernel that has a distance at all loses a byte one byte nearer: the rule is tight, not only safe."""
    module = lowered(draft.module("z"), target)
    kernel, call = one_kernel(module)
    scalars = scalars_of(kernel, call)
    data = {constant.buffer.name: constant.data.array for constant in module.constant_buffers}
    given: dict[str, np.ndarray | int] = {**scalars}
    for parameter, argument in zip(kernel.parameters, call.arguments, strict=True):
        if isinstance(parameter, ir.BufferParameter) and parameter.access is ir.Access.READ:
            assert isinstance(argument, ir.Region)
            name = argument.buffer.name
            array = (
                data[name] if name in data else next(i for p, i in _inputs(module, draft, seed) if p == name)
            )
            given[parameter.name] = array.reshape(ir.storage_shape(parameter.buffer))
    for source, output in pairs_of(kernel):
        wanted = Evaluator(ir.Module("m"), (kernel,)).run(kernel.name, given)[output]
        for way in ways_of(kernel, scalars):
            distances = found(way, source, output, scalars)
            assert distances is not None
            for distance, nearer in ((-distances[0], 1), (distances[1], -1)):
                apart = run_in_one_array(way, given, source, output, distance)
                assert apart is not None
                assert (apart == wanted).all()
                if distance:
                    assert run_in_one_array(way, given, source, output, distance + nearer) is None


def _inputs(module: ir.Module, draft: Draft, seed: int) -> list[tuple[str, np.ndarray]]:
    reads = [p.name for p in module.main.buffer_parameters if p.access is ir.Access.READ]
    return list(zip(reads, random_inputs(draft.module("z"), seed), strict=True))


MODELS = ("kws_ref_model", "pretrainedResnet_quant", "vww_96_int8", "ad01_int8")


@pytest.mark.parametrize(("model", "target"), some(product(MODELS, TARGETS), every=3))
def test_kernels_of_the_shared_models(model: str, target: str) -> None:
    """Against what trying finds, of those that are small enough to be tried."""
    module = compiled(model, load_target(target)).module
    num_tried = 0
    for call in (s for s in module.main.body.statements if isinstance(s, ir.Call)):
        kernel = next(k for k in module.kernels if k.name == call.callee)
        work = sum(ir.num_elements(p.buffer) for p in kernel.buffer_parameters)
        if kernel.name.endswith("_down") or work > 6000:
            continue
        scalars = scalars_of(kernel, call)
        for source, output in pairs_of(kernel):
            wanted = distances_by_trying(kernel, {source: False, output: True}, scalars)
            assert found(kernel, source, output, scalars) == wanted
            num_tried += 1
    assert num_tried >= 1


def test_what_is_not_known_has_no_distance() -> None:
    """An index that data decides reaches everything; a parallel loop, or one of unknown length, says nothing."""
    source, output = ir.Buffer("source", (8,), I32, 4), ir.Buffer("output", (8,), I32, 4)
    parameters = (
        ir.BufferParameter(source, ir.Access.READ),
        ir.BufferParameter(output, ir.Access.WRITE),
        ir.ScalarParameter(ir.Var("count", I32)),
    )
    i = ir.Var("i", I32)

    def loop(end: ir.Expr, index: ir.Expr, kind: ir.LoopKind = ir.LoopKind.SERIAL) -> ir.PrimFunc:
        store = ir.Store(output, (i,), ir.Load(source, (index,)))
        body = ir.Seq((ir.For(i, ir.const(0), end, ir.Seq((store,)), kind),))
        return ir.PrimFunc("k", parameters, body)

    def distances(function: ir.PrimFunc, **scalars: int) -> Distances | None:
        given = {"source": Given(False), "output": Given(True)}
        return overlap_distances(function, given, scalars, {})

    assert distances(loop(ir.const(8), i)) == Distances(0, 32)
    assert distances(loop(ir.const(8), ir.Load(source, (i,)))) == Distances(28, 32)
    assert distances(loop(ir.Var("count", I32), i)) is None
    assert distances(loop(ir.Var("count", I32), i), count=3) == Distances(0, 12)
    assert distances(loop(ir.const(8), i, ir.LoopKind.PARALLEL)) is None
    external = ir.PrimFunc("k", parameters, ir.Seq(()), external=ir.External())
    assert distances(external) is None


@pytest.mark.parametrize("of", ["a bound", "a view", "an argument"])
def test_whatever_is_loaded_is_read(of: str) -> None:
    """A number that a statement needs may be loaded from what was written over, though the statement touch neither."""
    source, output, own = (ir.Buffer(name, (8,), I32, 4) for name in ("source", "output", "own"))
    parameters = (ir.BufferParameter(source, ir.Access.READ), ir.BufferParameter(output, ir.Access.WRITE))
    i, zero, loaded = ir.Var("i", I32), ir.const(0), ir.Load(source, (ir.const(7),))
    region = ir.Region(own, (loaded,))
    statement: ir.Statement = {
        "a bound": ir.For(i, zero, loaded, ir.Seq((ir.Store(own, (zero,), i),))),
        "a view": ir.View(ir.Buffer("seen", (1,), I32, 4), region),
        "an argument": ir.Call("f", (region,)),
    }[of]
    body = ir.Seq((ir.Allocate(own), ir.Store(output, (zero,), zero), statement))
    given = {"source": Given(False), "output": Given(True)}
    assert overlap_distances(ir.PrimFunc("k", parameters, body), given, {}, {}) == Distances(0, 32)
