"""The functional model against TensorFlow Lite Micro: whole models, and operators one by one."""

from __future__ import annotations

import math
import sys
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import tflite

from bytewright.diagnostics import CompileError
from bytewright.ethos_u import weights
from bytewright.ethos_u.execute import execute
from bytewright.ethos_u.operations import (
    SHRAM,
    DmaCopy,
    Element,
    Elementwise,
    ElementwiseMode,
    FeatureMap,
    OperandScale,
    Operation,
    Pooling,
    PoolingMode,
    Result,
    Rounding,
    Upscale,
    Window,
)
from bytewright.ethos_u.scaling import scaled, shifted_right
from bytewright.target.isa.ethos_u import ACCELERATORS
from support.against_reference import drawn
from support.ethos_u import (
    DEDICATED,
    ONLY,
    SEPARATE,
    SHARED,
    U55,
    U65,
    assert_equal_to_tflm,
    needs_vela,
    num_operators,
    vela,
    vela_operators,
)
from support.random_models import operator_models
from support.reference import LiteRt, TfLiteMicro
from support.shared_models import AD01, INT8, KWS, RESNET8, WITH_SOFTMAX, model_path, without_softmax
from support.tiers import THOROUGH, covering, some

NUM_INPUTS = 8 if THOROUGH else 3


def random_inputs(shape: tuple[int, ...], count: int) -> list[np.ndarray[Any, np.dtype[np.int8]]]:
    """Random inputs, the first of narrow range, so that a softmax is not saturated."""
    generator = np.random.default_rng(7)
    narrow = [generator.integers(-4, 4, shape, dtype=np.int8)]
    return narrow + [generator.integers(-128, 128, shape, dtype=np.int8) for _ in range(count - 1)]


def scales_of_the_last(content: bytes) -> list[np.float32]:
    """Scales of the last operator's input, weights and output."""
    graph: Any = tflite.Model.GetRootAs(content, 0).Subgraphs(0)
    last = graph.Operators(graph.OperatorsLength() - 1)
    tensors = (last.Inputs(0), last.Inputs(1), last.Outputs(0))
    return [np.float32(graph.Tensors(tensor).Quantization().Scale(0)) for tensor in tensors]


def fixed_point(factor: float) -> int:
    """A factor's multiplier of 31 bits."""
    return round(math.frexp(factor)[0] * 2**31)


def assert_equals_tflm(content: bytes, accelerator: str, mode: str, *options: str) -> None:
    (operator,) = vela_operators(vela(content, accelerator, mode, *options))
    reference, inputs = TfLiteMicro(content), random_inputs(operator.inputs[0].shape, NUM_INPUTS)
    found = [operator.run(x, seed=seed)[0] for seed, x in enumerate(inputs)]
    assert_equal_to_tflm(found, [reference.run(x)[0] for x in inputs])


@needs_vela
@pytest.mark.parametrize(("name", "accelerator", "mode"), covering(INT8, [U55, U65], [SHARED, ONLY]))
def test_a_model_on_the_npu_equals_tflm(name: str, accelerator: str, mode: str) -> None:
    assert_equals_tflm(model_path(name).read_bytes(), accelerator, mode)


@needs_vela
def test_a_sum_next_to_a_tie_is_scaled_as_the_stream_says() -> None:
    """-88337 of scale 0.00133 is -117.499, which two roundings make -118 by a multiplier that is 29 in 2^31 larger."""
    content = model_path(AD01).read_bytes()
    (operator,) = vela_operators(vela(content))
    x = random_inputs(operator.inputs[0].shape, 33)[32]
    wanted, (found,) = TfLiteMicro(content).run(x)[0].ravel(), operator.run(x)
    (place,) = np.flatnonzero(found.ravel() != wanted)
    assert (found.ravel()[place], wanted[place]) == (-22, -21)
    source, weight, result = scales_of_the_last(content)
    assert fixed_point(float(source * weight) / float(result)) == 1462485078
    assert fixed_point(float(source) * float(weight) / float(result)) == 1462485049


@needs_vela
@pytest.mark.parametrize("accelerator", [U55, U65])
@pytest.mark.parametrize("name", [name for name in INT8 if name in WITH_SOFTMAX])
def test_what_stands_before_the_softmax_equals_tflm(name: str, accelerator: str) -> None:
    assert_equals_tflm(without_softmax(model_path(name).read_bytes()), accelerator, SHARED)


@needs_vela
@pytest.mark.parametrize("name", some([KWS, RESNET8], every=2))
@pytest.mark.parametrize(
    ("accelerator", "mode", "options"),
    [
        (U55, SHARED, SEPARATE),
        (U65, SHARED, SEPARATE),
        (U65, DEDICATED, ()),
        ("ethos-u55-32", SHARED, ()),
        ("ethos-u55-64", SHARED, ()),
        ("ethos-u55-256", SHARED, ()),
        ("ethos-u65-512", SHARED, ()),
    ],
)
def test_other_layouts_and_accelerators_equal_tflm(
    name: str, accelerator: str, mode: str, options: tuple[str, ...]
) -> None:
    assert_equals_tflm(model_path(name).read_bytes(), accelerator, mode, *options)


# What Vela puts on the NPU; RELU6 where TFLM leaves the output's scale out of account is compared with LiteRT.
ON_THE_NPU = [
    "ADD",
    "AVERAGE_POOL_2D",
    "CONCATENATION",
    "CONV_2D",
    "DEPTHWISE_CONV_2D",
    "FULLY_CONNECTED",
    "HARD_SWISH",
    "LEAKY_RELU",
    "LOGISTIC",
    "MAX_POOL_2D",
    "MEAN",
    "MUL",
    "PAD",
    "QUANTIZE",
    "RELU",
    "RELU6",
    "SOFTMAX",
    "SPLIT",
    "SUB",
    "TANH",
    "TRANSPOSE",
]


def is_grouped(content: bytes) -> bool:
    """Whether a model's one operator is a convolution whose weights have fewer input channels than its input."""
    graph = tflite.Model.GetRootAs(content, 0).Subgraphs(0)
    if graph.Operators(0).BuiltinOptionsType() != tflite.BuiltinOptions.Conv2DOptions:
        return False
    source, weights = (graph.Tensors(graph.Operators(0).Inputs(position)) for position in (0, 1))
    return source.Shape(3) != weights.Shape(3)


def is_unknown(content: bytes) -> bool:
    """Whether a model's ports are of int16 or uint8, which the functional model of the NPU refuses (BW742)."""
    graph = tflite.Model.GetRootAs(content, 0).Subgraphs(0)
    types = {
        graph.Tensors(int(number)).Type() for number in (*graph.InputsAsNumpy(), *graph.OutputsAsNumpy())
    }
    return bool(types & {tflite.TensorType.INT16, tflite.TensorType.UINT8})


@needs_vela
@pytest.mark.parametrize("accelerator", [U55, U65, "ethos-u65-512"] if THOROUGH else [U55])
@pytest.mark.parametrize("kind", ON_THE_NPU)
def test_an_operator_on_the_npu_equals_its_reference(kind: str, accelerator: str) -> None:
    num_compared = 0
    for model in drawn(operator_models(kind, "int8"), 6 if THOROUGH else 2):
        if is_grouped(model.content):
            continue  # Vela 5.2 leaves the padding of such convolutions out of the stream
        if is_unknown(model.content):
            continue
        content = vela(model.content, accelerator, SHARED)
        operators = vela_operators(content)
        if not operators or num_operators(content) != 1:
            continue
        reference = LiteRt(model.content) if kind == "RELU6" else TfLiteMicro(model.content)
        for seed in range(6):
            inputs = model.inputs(seed)
            wanted, found = reference.run(*inputs), operators[0].run(*inputs, seed=seed)
            assert [np.array_equal(a, b.reshape(a.shape)) for a, b in zip(found, wanted, strict=True)] == [
                True
            ] * len(wanted), model.description
        num_compared += 1
    assert num_compared


@needs_vela
def test_without_the_decoder_the_weights_are_refused_with_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (operator,) = vela_operators(vela(model_path(KWS).read_bytes(), U55, SHARED))
    weights._decode.cache_clear()
    monkeypatch.setitem(sys.modules, "ethosu.mlw_codec", None)
    with pytest.raises(CompileError) as error:
        operator.run(np.zeros(operator.inputs[0].shape, np.int8))
    (found,) = error.value.diagnostics
    assert (found.code, found.help) == ("BW501", 'install it: pip install "bytewright[ethos-u]"')


def exactly(value: int, multiplier: int, shift: int, rounding: Rounding) -> int:
    """TFLite's own steps in Python's integers: a doubling high multiply, then a division half away from zero."""
    product = value * multiplier
    if rounding is Rounding.NATURAL or shift <= 31:
        return (2 * product + (1 << shift) >> shift + 1) if shift else product
    high = (product + (1 << 30)) >> 31
    rest = 1 << (shift - 31)
    return (abs(high) * 2 + rest) // (2 * rest) * (1 if high >= 0 else -1)


@pytest.mark.parametrize("rounding", [Rounding.DOUBLE, Rounding.NATURAL])
def test_scaling_equals_its_definition_at_ties_and_elsewhere(rounding: Rounding) -> None:
    generator = np.random.default_rng(3)
    for shift in (0, 1, 7, 30, 31, 32, 33, 40, 48, 62):
        values = np.concatenate([generator.integers(-(1 << 20), 1 << 20, 300), np.arange(-40, 40)])
        for multiplier in (1, 3, 1 << 30, (1 << 31) - 1, 1234567891):
            found = scaled(values, multiplier, shift, rounding)
            assert found.tolist() == [exactly(int(value), multiplier, shift, rounding) for value in values]


def test_shifting_right_rounds_as_it_is_told() -> None:
    values, places = np.arange(-9, 10), np.full(19, 2)
    halves = values / 4
    away = np.sign(halves) * np.floor(np.abs(halves) + 0.5)
    assert shifted_right(values, places, Rounding.DOUBLE).tolist() == away.tolist()
    assert shifted_right(values, places, Rounding.NATURAL).tolist() == np.floor(halves + 0.5).tolist()
    assert shifted_right(values, places * 0, Rounding.DOUBLE).tolist() == values.tolist()


def test_a_product_beyond_62_bits_is_refused() -> None:
    with pytest.raises(CompileError, match="BW742"):
        scaled(np.array([1 << 31]), 1 << 31, 31, Rounding.DOUBLE)


MAP = FeatureMap(1, (0, 0, 0, 0), 2, 2, 2, 2, 2, 4, 8, 4, 16, Element.I8, False, 0)
SCALE = Result(Rounding.DOUBLE, 1, 0, -128, 127, None, False)
WINDOW = Window(1, 1, 1, 1, 1, 1, 0, 0, 0, 0, False)
SUM = Elementwise(
    ElementwiseMode.ADD, MAP, MAP, None, 0, False, MAP, OperandScale.BOTH, Rounding.DOUBLE, 1, 0, 1, SCALE
)
POOL = Pooling(PoolingMode.MAX, MAP, MAP, WINDOW, Upscale.NONE, False, SCALE)
WORDS = replace(MAP, element=Element.I16, stride_x=8, stride_y=16)
WIDE = replace(MAP, element=Element.I32, stride_x=16, stride_y=32)
CORNER = replace(WINDOW, pad_top=1)


@pytest.mark.parametrize(
    ("operation", "what"),
    [
        (replace(SUM, mode=ElementwiseMode.MIN), "is an element-wise MIN"),
        (replace(SUM, mode=ElementwiseMode.MAX), "is an element-wise MAX"),
        (replace(SUM, mode=ElementwiseMode.ABS, ifm2=None), "is an element-wise ABS"),
        (replace(SUM, mode=ElementwiseMode.LRELU, ifm2=None), "is an element-wise LRELU"),
        (replace(SUM, result=replace(SCALE, rounding=Rounding.TRUNCATE)), "rounds towards minus infinity"),
        (replace(SUM, operand_rounding=Rounding.TRUNCATE), "rounds towards minus infinity"),
        (replace(SUM, ifm=replace(MAP, element=Element.U8)), "is of uint8"),
        (replace(SUM, ifm2=WORDS), "is of int16"),
        (replace(SUM, ofm=WORDS), "is of int16"),
        (replace(POOL, upscale=Upscale.NEAREST), "reads an upscaled input"),
        (replace(POOL, upscale=Upscale.ZEROS), "reads an upscaled input"),
        (replace(SUM, ifm=replace(WIDE, zero_point=3)), "has the zero point 3 on an input of 32 bits"),
        (replace(SUM, result=replace(SCALE, table=1)), "uses a lookup table that the stream never loaded"),
        (replace(SUM, ofm=WIDE, result=replace(SCALE, table=0)), "indexes a table with more than 8 bits"),
        (
            replace(SUM, result=replace(SCALE, table=8)),
            "has a table of 256 bytes in slot 8, beyond the tables",
        ),
        (
            replace(SUM, mode=ElementwiseMode.CLZ, ifm2=None),
            "counts leading zeros in an array that is not of 32",
        ),
        (replace(SUM, result=replace(SCALE, multiplier=None)), "is an element-wise ADD without a scale"),
        (
            replace(SUM, mode=ElementwiseMode.MUL, ifm=WIDE, ifm2=WIDE, result=replace(SCALE, multiplier=2)),
            "scales products of 32 bits by 2, which is not 1 or 2^30",
        ),
        (
            replace(SUM, ifm=WIDE, operand_scale=OperandScale.FIRST),
            "scales one operand of a sum of int32 by 32 bits",
        ),
        (replace(SUM, first_multiplier=1 << 16), "scales both operands of a sum by more than 16 bits"),
        (replace(POOL, mode=PoolingMode.AVERAGE, window=CORNER), "averages windows with nothing but padding"),
        (DmaCopy(SHRAM, 0, 0, 1, 0, 0, 16, 1), "copies out of the NPU's shared buffer"),
        (
            DmaCopy(1, 0, 0, SHRAM, 0, 0, 16, 1),
            "writes 16 bytes at 0 of the shared buffer, whose tables are at 22528",
        ),
    ],
)
def test_what_has_no_reference_is_refused_before_anything_is_written(operation: Operation, what: str) -> None:
    for known in (SUM, POOL):
        execute([known], {1: np.zeros(64, np.uint8)}, ACCELERATORS[2])
    data = np.full(64, 7, np.uint8)
    with pytest.raises(CompileError, match="BW742") as error:
        execute([POOL, operation], {1: data}, ACCELERATORS[2])
    message = error.value.diagnostics[0].message
    assert message.startswith(f"operation 1 of the stream {what}")
    assert message.endswith(", which the functional model does not do")
    assert (data == 7).all()
