"""A float function between a DEQUANTIZE and a QUANTIZE of int8 is a table, equal to the references on every value."""

from __future__ import annotations

from itertools import permutations, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bytewright.frontends.tflite import import_content
from bytewright.ops.arithmetic.numerics import Numerics
from bytewright.ops.quantization import Table, TflDequantize, TflQuantize
from support.against_reference import assert_equals_reference
from support.evaluation import evaluate_function
from support.random_models import RandomModel
from support.reference import LiteRt, TfLiteMicro
from tflite_writer import ModelBuilder

VALUES = np.arange(-128, 128, dtype=np.int8).reshape(4, 64)
# A function, its options, and scale and zero point of its operand and of its result.
ISLANDS: list[tuple[tuple[str, ...], dict[str, Any], tuple[float, int], tuple[float, int]]] = [
    (("EXP",), {}, (0.03, 5), (0.25, -128)),
    (("LOG",), {}, (0.05, -128), (0.03, 10)),
    (("ELU",), {}, (0.04, 0), (0.03, -20)),
    (("LEAKY_RELU",), {"alpha": 0.1}, (0.07, 3), (0.05, 1)),
    (("TANH",), {}, (0.02, -9), (1 / 128, 0)),
    (("LOGISTIC",), {}, (0.06, 4), (1 / 256, -128)),
    (("SQRT",), {}, (0.05, -128), (0.02, -128)),
    (("HARD_SWISH", "EXP", "LOG"), {}, (0.02, 0), (0.03, 4)),
    ((), {}, (0.05, 3), (0.03, -7)),
]


def island(
    kinds: tuple[str, ...], options: dict[str, Any], source: tuple[float, int], target: tuple[float, int]
) -> bytes:
    builder = ModelBuilder()
    x = builder.tensor("x", VALUES.shape, "int8", scale=source[0], zero_point=source[1])
    value = builder.tensor("real", VALUES.shape, "float32")
    builder.operator("DEQUANTIZE", [x], [value])
    for number, kind in enumerate(kinds):
        result = builder.tensor(f"step_{number}", VALUES.shape, "float32")
        builder.operator(kind, [value], [result], **options)
        value = result
    y = builder.tensor("y", VALUES.shape, "int8", scale=target[0], zero_point=target[1])
    builder.operator("QUANTIZE", [value], [y], version=1)
    return builder.build([x], [y])


@pytest.mark.parametrize("numerics", Numerics)
@pytest.mark.parametrize("form", ISLANDS, ids=lambda form: " ".join(form[0]) or "nothing")
def test_an_island_is_a_table_that_equals_the_reference(form: tuple[Any, ...], numerics: Numerics) -> None:
    content = island(*form)
    module = import_content(content, "island.tflite", numerics=numerics)
    assert not any(isinstance(node.operation, TflDequantize | TflQuantize) for node in module.graph.nodes)
    reference = LiteRt(content) if numerics is Numerics.LITERT_REF else TfLiteMicro(content)
    (wanted,) = reference.run(VALUES)
    found = evaluate_function(module.graph, module.constants, (VALUES,))[module.graph.results[0]]
    np.testing.assert_array_equal(found, wanted)


def test_a_float_that_is_also_a_result_stays(tmp_path: Path) -> None:
    builder = ModelBuilder()
    x = builder.tensor("x", (6,), "int8", scale=0.05, zero_point=3)
    real, exponential = (builder.tensor(name, (6,), "float32") for name in ("real", "exponential"))
    y = builder.tensor("y", (2, 3), "int8", scale=0.5, zero_point=-128)
    seen = builder.tensor("seen", (2, 3), "float32")
    builder.operator("DEQUANTIZE", [x], [real])
    builder.operator("EXP", [real], [exponential])
    shape = builder.constant("shape", np.array([2, 3], np.int32))
    builder.operator("RESHAPE", [exponential, shape], [seen], new_shape=(2, 3))
    builder.operator("QUANTIZE", [seen], [y], version=1)
    content = builder.build([x], [y, exponential])
    module = import_content(content, "island.tflite")
    assert sum(isinstance(node.operation, Table) for node in module.graph.nodes) == 1
    assert_equals_reference([RandomModel(content, "island", ((6,),), "int8")], tmp_path)


def test_a_float_of_two_values_is_no_table(tmp_path: Path) -> None:
    builder = ModelBuilder()
    operands = [builder.tensor(name, (6,), "int8", scale=0.05, zero_point=3) for name in "ab"]
    reals = [builder.tensor(f"real_{name}", (6,), "float32") for name in "ab"]
    total = builder.tensor("total", (6,), "float32")
    y = builder.tensor("y", (6,), "int8", scale=0.1, zero_point=-3)
    for operand, real in zip(operands, reals, strict=True):
        builder.operator("DEQUANTIZE", [operand], [real])
    builder.operator("MAXIMUM", reals, [total])
    builder.operator("QUANTIZE", [total], [y], version=1)
    content = builder.build(operands, [y])
    nodes = import_content(content, "island.tflite").graph.nodes
    assert not any(isinstance(node.operation, Table) for node in nodes)
    assert_equals_reference([RandomModel(content, "two", ((6,), (6,)), "int8")], tmp_path)


def test_a_float_of_int16_is_no_table(tmp_path: Path) -> None:
    """Nor one that becomes int16: tables are of bytes."""
    models: list[RandomModel] = []
    for kinds, types in product(((), ("RELU",), ("LEAKY_RELU",)), permutations(("int8", "int16"))):
        builder = ModelBuilder()
        x = builder.tensor("x", (3, 5), types[0], scale=0.05, zero_point=0)
        value = builder.tensor("real", (3, 5), "float32")
        builder.operator("DEQUANTIZE", [x], [value])
        for kind in kinds:
            result = builder.tensor(kind, (3, 5), "float32")
            builder.operator(kind, [value], [result])
            value = result
        y = builder.tensor("y", (3, 5), types[1], scale=0.04, zero_point=0)
        builder.operator("QUANTIZE", [value], [y], version=1)
        models.append(RandomModel(builder.build([x], [y]), f"{types} {kinds}", ((3, 5),), types[0]))
    assert_equals_reference(models, tmp_path)
