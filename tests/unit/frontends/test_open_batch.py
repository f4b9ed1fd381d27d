"""open_batch: one sample becomes 1 to N, where every operator treats samples apart; what mixes them is refused."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from bytewright.diagnostics import CompileError, Diagnostic
from bytewright.graph.inline_calls import inline_calls
from bytewright.graph.open_batch import open_batch
from bytewright.ir.graph import Array
from bytewright.ir.module import Module
from bytewright.ir.text.modules import module_data, print_module
from bytewright.ir.types import DType, Symbol, TensorType
from bytewright.ir.verify.stages import Stage, verify
from bytewright.ops.convolution import Conv2d, DepthwiseConv2d
from bytewright.ops.data import Concat, Gather, Identity, Pad, Reshape, Slice, Transpose
from bytewright.ops.elementwise import Add, Clamp, Mul
from bytewright.ops.places import CumulativeSum
from bytewright.ops.pooling import MaxPool2d, TflAveragePool2d, TflMean
from bytewright.ops.registry import OPERATIONS
from bytewright.ops.softmax import TflSoftmax
from bytewright.target.registry import load_target
from support.evaluate.evaluate import Evaluator
from support.evaluate.evaluate_graph import evaluate_graph
from support.evaluation import evaluate_function
from support.lowering import Draft, lowered
from support.parsing import parse_module

I8, F32 = DType.I8, DType.F32
BATCH = Symbol("batch", 1, 4)
IMAGE = (1, 4, 5, 2)


def draft_of(shape: tuple[int, ...], dtype: DType = F32) -> Draft:
    draft = Draft()
    draft.parameter("x", shape, dtype)
    return draft


def convolution() -> Module:
    draft = draft_of(IMAGE, I8)
    draft.constant("w", np.arange(-8, 10).reshape(3, 3, 1, 2), I8)
    draft.constant("b", [1, -2, 3], DType.I32)
    draft.node("c", Conv2d((1, 1), (1, 1, 0, 0), (1, 1), 3), "x", "w", "b")
    draft.rescale("y", "c", [0.1, 0.2, 0.3])
    return draft.module("y")


def depthwise() -> Module:
    draft = draft_of(IMAGE)
    draft.constant("w", np.linspace(-1, 1, 12).reshape(2, 3, 2, 1), F32)
    draft.constant("b", [0.5, -0.5], F32)
    draft.node("y", DepthwiseConv2d((1, 2), (0, 0, 1, 1), (1, 1)), "x", "w", "b")
    return draft.module("y")


def pools() -> Module:
    draft = draft_of(IMAGE)
    draft.node("a", MaxPool2d((2, 2), (1, 1), (0, 1, 0, 1)), "x")
    draft.node("m", TflAveragePool2d((2, 2), (2, 2), (0, 0, 0, 0)), "a")
    draft.node("y", TflMean((1, 2), False), "m")
    return draft.module("y")


def movers() -> Module:
    draft = draft_of(IMAGE)
    draft.node("p", Pad((0, 1, 0, 0), (0, 0, 2, 0), 1.5), "x")
    draft.node("t", Transpose((0, 3, 1, 2)), "p")
    draft.node("s", Slice((0, 1, 4, 6), (1, 1, 3, 3), (1, 1, -2, -1)), "t")
    draft.node("r", Reshape((1, 9)), "s")
    draft.node("i", Identity(), "r")
    draft.node("y", Concat(1), "r", "i", "r")
    return draft.module("y")


def elementwise() -> Module:
    draft = draft_of((1, 3, 4))
    draft.parameter("z", (1, 1, 4), F32)
    draft.constant("k", np.linspace(-2, 2, 4), F32)
    draft.constant("j", np.linspace(-1, 1, 3).reshape(1, 3, 1), F32)
    draft.node("a", Add(), "x", "z")
    draft.node("b", Mul(), "k", "a")
    draft.node("c", Add(), "b", "j")
    draft.node("d", Clamp(-1.0, 1.0), "c")
    draft.node("y", TflSoftmax(1.0), "d")
    return draft.module("y")


MODELS: dict[str, Callable[[], Module]] = {
    model.__name__: model for model in (convolution, depthwise, pools, movers, elementwise)
}


def samples(module: Module, batch: int) -> list[Array]:
    generator = np.random.default_rng(batch)
    shapes = [(batch, *port.type.fixed_shape[1:]) for port in module.inputs]
    return [
        generator.integers(-128, 128, shape).astype(np.int8)
        if port.type.dtype is I8
        else (generator.integers(-32, 32, shape) / 8).astype(np.float32)
        for port, shape in zip(module.inputs, shapes, strict=True)
    ]


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("batch", [1, 2, 4])
def test_a_batch_is_its_samples_one_after_another(name: str, batch: int) -> None:
    module = MODELS[name]()
    opened = open_batch(module, 4)
    verify(opened, Stage.IMPORTED, load_target("host"), pass_name="open_batch")
    inputs = samples(module, batch)
    singles = [
        evaluate_function(module.graph, module.constants, tuple(array[i : i + 1] for array in inputs))["y"]
        for i in range(batch)
    ]
    expected = np.concatenate(singles)
    whole = evaluate_function(opened.graph, opened.constants, tuple(inputs))["y"]
    np.testing.assert_array_equal(whole, expected)

    kernels = lowered(opened)
    names = [p.buffer.name for p in kernels.main.buffer_parameters]
    arguments: dict[str, Array | int] = {**dict(zip(names, inputs, strict=False)), "batch": batch}
    (result,) = (v for k, v in Evaluator(kernels).run("main", arguments).items() if k not in arguments)
    assert result.shape == expected.shape
    if expected.dtype == np.int8:
        np.testing.assert_array_equal(result, expected)
    else:
        np.testing.assert_allclose(result.astype(float), expected.astype(float), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", MODELS)
def test_types_have_the_batch_in_front(name: str) -> None:
    module = open_batch(MODELS[name](), 4)
    values = [*module.graph.parameters, *(value for node in module.graph.nodes for value in node.outputs)]
    assert {value.type.shape[0] for value in values} == {BATCH}
    assert {port.type.shape[0] for port in (*module.inputs, *module.outputs)} == {BATCH}


@pytest.mark.parametrize("name", MODELS)
def test_an_open_module_prints_and_parses(name: str) -> None:
    module = open_batch(MODELS[name](), 4)
    assert parse_module(print_module(module), module_data(module), OPERATIONS) == module


def test_a_tensor_that_is_called_batch_keeps_its_name() -> None:
    draft = Draft()
    draft.parameter("batch", (1, 4), F32)
    draft.node("y", Clamp(0.0, 6.0), "batch")
    module = open_batch(draft.module("y"), 2)
    assert module.inputs[0].type.shape == (Symbol("batch_1", 1, 2), 4)


def refusal(draft: Draft, *results: str, batch_max: int = 4) -> Diagnostic:
    with pytest.raises(CompileError) as caught:
        open_batch(draft.module(*results), batch_max)
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code == "BW111"
    return diagnostic


@pytest.mark.parametrize("shape", [(2, 4), (), (4,)])
def test_an_input_without_a_leading_one_is_refused(shape: tuple[int, ...]) -> None:
    draft = draft_of(shape)
    draft.node("y", Clamp(0.0, 6.0), "x")
    assert "input 'x' has shape" in refusal(draft, "y").message


MIXERS = {
    "a mean over the batch": (TflMean((0, 1), False), "it makes [] of them"),
    "a softmax over the batch": (TflSoftmax(1.0), "it is over all of them"),
    "sums over the batch": (CumulativeSum(0), "it is over all of them"),
    "a concatenation of samples": (Concat(0), "it makes [(2*batch[1..4])x4] of them"),
    "a reshape that takes the batch along": (Reshape((4, 1)), "cannot become [4x1]"),
    "a reshape to one axis": (Reshape((4,)), "cannot become [4]"),
    "a transpose that moves the batch": (Transpose((1, 0)), "it makes [4xbatch[1..4]]"),
    "a pad of the batch": (Pad((1, 0), (0, 0), 0.0), "it makes [(batch[1..4]+1)x4]"),
}


@pytest.mark.parametrize("name", MIXERS)
def test_an_operator_that_mixes_samples_is_refused(name: str) -> None:
    operation, reason = MIXERS[name]
    shape = (1,) if isinstance(operation, TflSoftmax) else (1, 4)
    draft = draft_of(shape)
    draft.node("y", operation, *(("x", "x") if isinstance(operation, Concat) else ("x",)))
    diagnostic = refusal(draft, "y")
    assert diagnostic.message.startswith(f"{operation.name} does not keep the samples of a batch apart: ")
    assert reason in diagnostic.message
    assert diagnostic.help == "leave out --batch-max: each run then computes one sample"
    assert diagnostic.where == "hand.tflite, operator y"


def test_rows_by_numbers_are_taken_from_all_samples() -> None:
    """Each sample would take its rows from the first one, though the result has a sample for each."""
    draft = draft_of((1, 4))
    draft.parameter("numbers", (1,), DType.I32)
    draft.node("y", Gather(0), "x", "numbers")
    assert "it is over all of them" in refusal(draft, "y").message


def test_operands_whose_batches_do_not_align_are_refused() -> None:
    draft = draft_of((1, 1, 3))
    draft.parameter("z", (1, 3), F32)
    draft.node("y", Add(), "x", "z")
    assert "it makes [batch[1..4]xbatch[1..4]x3]" in refusal(draft, "y").message


def test_every_operator_that_mixes_is_reported() -> None:
    draft = draft_of((1, 4))
    draft.node("a", Transpose((1, 0)), "x")
    draft.node("b", TflMean((0,), True), "x")
    with pytest.raises(CompileError) as caught:
        open_batch(draft.module("a", "b"), 4)
    assert len(caught.value.diagnostics) == 2


def test_what_depends_on_no_input_stays_as_it_is() -> None:
    draft = draft_of((1, 4))
    draft.constant("k", np.ones((1, 4)), F32)
    draft.node("fixed", Clamp(0.0, 0.5), "k")
    draft.node("y", Add(), "x", "fixed")
    module = open_batch(draft.module("y"), 3)
    assert module.graph.nodes[0].outputs[0].type == TensorType((1, 4), F32)
    assert module.outputs[0].type == TensorType((Symbol("batch", 1, 3), 4), F32)


def test_an_output_that_depends_on_no_input_is_refused() -> None:
    draft = draft_of((1, 4))
    draft.constant("k", np.ones((1, 4)), F32)
    draft.node("fixed", Clamp(0.0, 0.5), "k")
    draft.node("y", Clamp(0.0, 6.0), "x")
    assert refusal(draft, "y", "fixed").message == "output 'out_1' depends on no input, so it has no batch"


def test_a_batch_of_more_elements_than_kernels_count_is_refused_with_the_largest_that_works() -> None:
    draft = draft_of((1, 1000))
    draft.node("y", Clamp(0.0, 6.0), "x")
    diagnostic = refusal(draft, "y", batch_max=3_000_000)
    assert "has 3000000000 elements; kernels count up to 2147483647" in diagnostic.message
    assert diagnostic.help == "--batch-max 2147483"
    open_batch(draft.module("y"), 2_147_483)


FUNCTIONS = """
module hand
input %x : tensor<1x3xf32>
output %y : tensor<1x3xf32>
constant %half = data<1x3xf32> [0.5, 0.25, 2.0]
constant %on = data<1xbool> [true]
func scale(%a : tensor<1x3xf32>) -> (%b) { %b : tensor<1x3xf32> = mul(%a, %half) }
func turn(%flag : tensor<1xbool>, %c : tensor<1x3xf32>, %d : tensor<1x3xf32>) -> (%flag, %f, %c) {
  %e : tensor<1x3xf32> = call(%d) {callee="scale"}
  %f : tensor<1x3xf32> = add(%c, %e)
}
func main(%x : tensor<1x3xf32>) -> (%y) {
  %z : tensor<1x3xf32> = call(%half) {callee="scale"}
  %s : tensor<1xbool>, %y : tensor<1x3xf32>, %w : tensor<1x3xf32> = loop(%on, %x, %x) {body="turn", num_iterations=3}
}
"""


def test_functions_are_opened_for_what_they_are_given() -> None:
    module = inline_calls(parse_module(FUNCTIONS, {}, OPERATIONS))
    opened = open_batch(module, 4)
    verify(opened, Stage.IMPORTED, load_target("host"), pass_name="open_batch")
    samples_of_x = np.arange(9, dtype=np.float32).reshape(3, 3)
    first, second = samples_of_x, samples_of_x
    for _ in range(3):
        first, second = first + second * np.array([0.5, 0.25, 2.0], np.float32), first
    (whole,) = evaluate_graph(opened, (samples_of_x,))
    np.testing.assert_array_equal(whole, first)
    kernels = lowered(opened)
    found = Evaluator(kernels).run("main", {"x": samples_of_x, "batch": 3})
    np.testing.assert_array_equal(found["y"], first)


@pytest.mark.parametrize(
    ("operands", "reason"),
    [("%on, %x, %half", "result 1 of 'turn' is"), ("%flags, %x, %x", "the condition has shape")],
)
def test_what_a_loop_carries_has_a_batch_always_or_never(operands: str, reason: str) -> None:
    text = FUNCTIONS.replace("loop(%on, %x, %x)", f"loop({operands})")
    if "%flags" in text:
        text = text.replace("func main(%x", "func main(%flags : tensor<1xbool>, %x").replace(
            "input %x", "input %flags : tensor<1xbool>\ninput %x"
        )
        text = text.replace(
            "%e : tensor<1x3xf32> = call(%d)", "%e : tensor<1x3xf32> = cond_if(%flag, %d)"
        ).replace('{callee="scale"}\n  %f', '{then_branch="scale", else_branch="same"}\n  %f')
        text = text.replace("func turn", "func same(%p : tensor<1x3xf32>) -> (%p) {}\nfunc turn")
    with pytest.raises(CompileError) as caught:
        open_batch(inline_calls(parse_module(text, {}, OPERATIONS)), 4)
    assert caught.value.diagnostics[0].code == "BW111"
    assert reason in caught.value.diagnostics[0].message
