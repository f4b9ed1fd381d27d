"""Damaged files: whatever the bytes, a module or a `CompileError` comes out, soon and in little memory."""

from __future__ import annotations

import struct
import time
import tracemalloc

import flatbuffers
import hypothesis.strategies as st
import numpy as np
import pytest
import tflite
from hypothesis import HealthCheck, given, settings

from bytewright.diagnostics import CompileError
from bytewright.frontends.tflite import import_content
from bytewright.frontends.tflite.shape_arithmetic import FOLDED
from bytewright.ir.module import Module
from support.random_models import CASES, RandomModel, operator_models
from tflite_writer import ModelBuilder

SECONDS = 5.0
MEGABYTES = 64.0
QUICK = settings(deadline=None, suppress_health_check=list(HealthCheck), database=None)


def outcome(content: bytes) -> Module | CompileError:
    try:
        return import_content(content, "fuzzed.tflite")
    except CompileError as error:
        return error


def assert_consistent(result: Module | CompileError) -> None:
    """What came out can be printed, or is a graph whose operands are all defined."""
    if isinstance(result, CompileError):
        codes = {diagnostic.code for diagnostic in result.diagnostics}
        assert codes <= {f"BW1{number:02}" for number in range(2, 11)}
        return
    defined = {value.name for value in result.graph.parameters} | {c.name for c in result.constants}
    for node in result.graph.nodes:
        assert defined.issuperset(node.inputs)
        defined.update(value.name for value in node.outputs)
    assert defined.issuperset(result.graph.results)


def layer() -> bytes:
    """A convolution, a table, a reshape and a softmax: every kind of field in under 3 KB."""
    builder = ModelBuilder()
    x = builder.tensor("x", (1, 4, 4, 2), "int8", scale=0.5, shape_signature=(-1, 4, 4, 2))
    w = builder.constant("w", np.arange(18, dtype=np.int8).reshape(1, 3, 3, 2), scale=[0.25])
    b = builder.constant("b", np.array([100], dtype=np.int32), scale=[0.125])
    tensors = [
        builder.tensor(name, shape, "int8", scale=scale, zero_point=zero)
        for name, shape, scale, zero in (
            ("conv", (1, 2, 2, 1), 0.5, 1),
            ("leaky", (1, 2, 2, 1), 0.25, 1),
            ("flat", (1, 4), 0.25, 1),
            ("soft", (1, 4), 1 / 256, -128),
        )
    ]
    builder.operator("CONV_2D", [x, w, b], [tensors[0]], padding="SAME", stride_h=2, stride_w=2)
    builder.operator("LEAKY_RELU", [tensors[0]], [tensors[1]], alpha=0.1)
    shape = builder.constant("shape", np.array([-1, 4], dtype=np.int32))
    builder.operator("RESHAPE", [tensors[1], shape], [tensors[2]], new_shape=[-1, 4])
    builder.operator("SOFTMAX", [tensors[2]], [tensors[3]])
    return builder.build([x], [tensors[3]])


def remembering(num_variables: int) -> bytes:
    """Variables with long names, each of which a run adds the input to; all begin as the same numbers."""
    builder, once = ModelBuilder(), ModelBuilder()
    builder.operator("CALL_ONCE", [], [], init_subgraph_index=1)
    start = once.constant("start", np.ones((1, 2), np.float32))
    x = value = builder.tensor("x", (1, 2), "float32")
    for number in range(num_variables):
        resources: list[int] = []
        for each in (builder, once):
            resources.append(each.tensor(f"resource{number}", (), "resource"))
            name = f"{number:03}" + 60 * "v"
            each.operator("VAR_HANDLE", [], resources[-1:], container="c", shared_name=name)
        before, value = (builder.tensor(f"{kind}{number}", (1, 2), "float32") for kind in ("before", "after"))
        builder.operator("READ_VARIABLE", resources[:1], [before])
        builder.operator("ADD", [x, before], [value])
        builder.operator("ASSIGN_VARIABLE", [resources[0], value], [])
        once.operator("ASSIGN_VARIABLE", [resources[1], start], [])
    return builder.build([x], [value], once.subgraph([], []))


def test_many_variables() -> None:
    result = outcome(remembering(120))
    assert isinstance(result, Module)
    assert len(result.state) == 120


@pytest.mark.parametrize("content", [layer(), remembering(1)])
def test_every_word_of_the_structure(content: bytes) -> None:
    for position in range(0, len(content), 4):
        damaged = content[:position] + struct.pack("<I", 0x40000000) + content[position + 4 :]
        assert_consistent(outcome(damaged))


@pytest.mark.parametrize("dtype", ["float32", "int32", "bool"])
@pytest.mark.parametrize(
    ("num_operands", "num_results"), [(0, 0), (0, 1), (1, 0), (1, 1), (1, 2), (2, 0), (2, 1)]
)
def test_operators_of_any_number_of_constants_and_results(
    num_operands: int, num_results: int, dtype: str
) -> None:
    assert len(FOLDED) > 40
    for kind in FOLDED:
        builder = ModelBuilder()
        x, y = (builder.tensor(name, (1, 2), "float32") for name in "xy")
        builder.operator("RELU", [x], [y])
        ones = builder.constant("ones", np.ones((1, 2), dtype))
        results = [builder.tensor(f"result{number}", (1, 2), dtype) for number in range(num_results)]
        builder.operator(kind, [ones] * num_operands, results)
        assert_consistent(outcome(builder.build([x], [y, *results])))


def test_every_truncation() -> None:
    content = layer()
    assert isinstance(outcome(content), Module)
    for length in range(len(content)):
        result = outcome(content[:length])
        assert_consistent(result)
        if length < 8:
            assert isinstance(result, CompileError)


@pytest.mark.slow
@pytest.mark.parametrize("content", [layer(), remembering(1)])
def test_every_bit_of_the_structure(content: bytes) -> None:
    refused = 0
    for position in range(len(content)):
        for mask in (1, 0x80, 0xFF):
            damaged = bytearray(content)
            damaged[position] ^= mask
            result = outcome(bytes(damaged))
            assert_consistent(result)
            refused += isinstance(result, CompileError)
    assert refused > len(content)


@settings(QUICK, max_examples=300)
@given(data=st.data())
def test_random_damage_to_random_models(data: st.DataObject) -> None:
    model: RandomModel = data.draw(st.sampled_from(CASES).flatmap(lambda case: operator_models(*case)))
    damaged = bytearray(model.content)
    for _ in range(data.draw(st.integers(1, 4))):
        width = data.draw(st.sampled_from([1, 2, 4]))
        position = data.draw(st.integers(0, len(damaged) - width))
        damaged[position : position + width] = data.draw(st.integers(0, 256**width - 1)).to_bytes(
            width, "little"
        )
    assert_consistent(outcome(bytes(damaged)))


@settings(QUICK, max_examples=200)
@given(content=st.binary(max_size=400))
def test_noise_behind_the_identifier(content: bytes) -> None:
    result = outcome(content[:4].ljust(4, b"\0") + b"TFL3" + content[4:])
    assert isinstance(result, CompileError)
    assert_consistent(result)


@pytest.mark.parametrize("position", range(0, 64, 4))
@pytest.mark.parametrize("value", [0, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0xFFFFFFFC])
def test_absurd_offsets(position: int, value: int) -> None:
    damaged = bytearray(layer())
    damaged[position : position + 4] = struct.pack("<I", value)
    assert_consistent(outcome(bytes(damaged)))


def sharing_model(num_tensors: int, num_scales: int) -> bytes:
    """A file whose tensors all have one huge vector of scales."""
    builder = flatbuffers.Builder(1 << 20)
    scales = builder.CreateNumpyVector(np.ones(num_scales, dtype=np.float32))
    tflite.QuantizationParametersStart(builder)
    tflite.QuantizationParametersAddScale(builder, scales)
    quantization = tflite.QuantizationParametersEnd(builder)
    tflite.TensorStart(builder)
    tflite.TensorAddQuantization(builder, quantization)
    tensor = tflite.TensorEnd(builder)
    builder.StartVector(4, num_tensors, 4)
    for _ in range(num_tensors):
        builder.PrependUOffsetTRelative(tensor)
    tensors = builder.EndVector()
    tflite.SubGraphStart(builder)
    tflite.SubGraphAddTensors(builder, tensors)
    subgraph = tflite.SubGraphEnd(builder)
    builder.StartVector(4, 1, 4)
    builder.PrependUOffsetTRelative(subgraph)
    subgraphs = builder.EndVector()
    tflite.ModelStart(builder)
    tflite.ModelAddVersion(builder, 3)
    tflite.ModelAddSubgraphs(builder, subgraphs)
    builder.Finish(tflite.ModelEnd(builder), b"TFL3")
    return bytes(builder.Output())


def test_tables_that_share_one_vector_cannot_multiply_it() -> None:
    content = sharing_model(num_tensors=20_000, num_scales=20_000)
    tracemalloc.start()
    started = time.process_time()
    result = outcome(content)
    seconds = time.process_time() - started
    peak = tracemalloc.get_traced_memory()[1] / 2**20
    tracemalloc.stop()
    assert isinstance(result, CompileError)
    assert "over and over" in result.diagnostics[0].message
    assert seconds < SECONDS
    assert peak < MEGABYTES


def test_huge_shapes_are_refused_or_cost_nothing() -> None:
    builder = ModelBuilder()
    x, y = (builder.tensor(name, (1, 1 << 15, 1 << 15, 1), "int8", scale=0.5) for name in "xy")
    builder.operator("MAX_POOL_2D", [x], [y], padding="SAME")
    content = builder.build([x], [y])
    started = time.process_time()
    assert isinstance(outcome(content), Module)
    assert time.process_time() - started < SECONDS
    builder = ModelBuilder()
    x, y = (builder.tensor(name, (1 << 20, 1 << 20), "int8", scale=0.5) for name in "xy")
    builder.operator("RELU", [x], [y])
    result = outcome(builder.build([x], [y]))
    assert isinstance(result, CompileError)
    assert result.diagnostics[0].code == "BW103"
