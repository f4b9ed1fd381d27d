"""int4 constants that a DEQUANTIZE widens: every byte of two, and odd numbers of them, as LiteRT has them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from arithmetic_models import Array, meaning

from bytewright.diagnostics import CompileError
from bytewright.frontends.tflite.graph_builder import GraphBuilder
from bytewright.frontends.tflite.importer import import_content
from bytewright.frontends.tflite.reader import read_model
from bytewright.ops.arithmetic.numerics import Numerics
from support.reference import run_litert
from tflite_writer import ModelBuilder

ALL_PAIRS = np.array([(low, high) for high in range(-8, 8) for low in range(-8, 8)])


def added_to_dequantised(values: Array, scale: float | list[float]) -> bytes:
    """A DEQUANTIZE of an int4 constant, to which an input is added."""
    builder = ModelBuilder()
    stored = builder.tensor("stored", values.shape, "int4", data=values, scale=scale)
    wide = builder.tensor("wide", values.shape, "float32")
    builder.operator("DEQUANTIZE", [stored], [wide], version=6)
    x, y = builder.tensor("x", values.shape, "float32"), builder.tensor("y", values.shape, "float32")
    builder.operator("ADD", [wide, x], [y])
    return builder.build([x], [y])


@pytest.mark.parametrize(
    ("values", "scale"),
    [
        (ALL_PAIRS, 0.37),
        (ALL_PAIRS[:3].reshape(2, 3), [0.25, 0.7]),
        (ALL_PAIRS.reshape(-1)[:7], 1.5),
    ],
    ids=["every byte", "per channel", "an odd number"],
)
def test_values_are_litert_s(values: Array, scale: float | list[float]) -> None:
    model = added_to_dequantised(values, scale)
    x = np.zeros(values.shape, np.float32)
    wanted = run_litert(model, [x])[0]
    assert len(np.unique(wanted)) > 1
    np.testing.assert_array_equal(meaning(Numerics.LITERT_REF, model, x), wanted)


def test_a_buffer_of_another_size_is_damaged() -> None:
    builder = ModelBuilder()
    stored = builder.tensor("stored", (2, 3), "int4", data=np.ones((2, 3)), scale=0.5)
    wide = builder.tensor("wide", (2, 3), "float32")
    builder.operator("DEQUANTIZE", [stored], [wide], version=6)
    content = builder.build([], [wide])
    at = content.rindex(bytes((0x11,) * 3)) - 4
    assert content[at] == 3
    damaged = content[:at] + b"\2" + content[at + 1 :]
    with pytest.raises(CompileError) as caught:
        import_content(damaged, "m.tflite")
    assert caught.value.diagnostics[0].code == "BW103"
    assert "needs 3 bytes of values, its buffer has 2" in caught.value.diagnostics[0].message


def test_int4_is_refused_where_an_operator_does_not_take_it() -> None:
    builder = ModelBuilder()
    stored = builder.tensor("stored", (1, 2), "int4", data=np.ones((1, 2)), scale=0.5)
    x, y = builder.tensor("x", (1, 2), "float32"), builder.tensor("y", (1, 2), "float32")
    builder.operator("MUL", [x, stored], [y])
    with pytest.raises(CompileError) as caught:
        import_content(builder.build([x], [y]), "m.tflite")
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code == "BW105"
    assert diagnostic.notes == ("tensor 0 ('stored') is INT4, which MUL does not have",)


def test_tensors_of_one_buffer_have_as_many_values_as_they_say() -> None:
    """Three numbers of 4 bits take as many bytes as four."""
    builder = ModelBuilder()
    stored = builder.tensor("stored", (4,), "int4", data=np.array([1, -2, 3, -4]), scale=0.5)
    wide = builder.tensor("wide", (4,), "float32")
    builder.operator("DEQUANTIZE", [stored], [wide], version=6)
    model = read_model(builder.build([], [wide]), "m.tflite", None)
    graph = GraphBuilder(model, "m.tflite", Numerics.LITERT_REF, has_infinities=False, convert=lambda _: None)
    (tensor, *_) = model.tensors
    for count in (3, 4, 3):
        assert graph.content(replace(tensor, shape=(count,))).array.tolist() == [1, -2, 3, -4][:count]
