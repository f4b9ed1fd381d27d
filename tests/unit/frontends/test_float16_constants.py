"""float16 constants that a DEQUANTIZE widens: all 65,536 values as LiteRT has them, and where they are refused."""

from __future__ import annotations

import numpy as np
import pytest

from bytewright.diagnostics import CompileError, Diagnostic
from bytewright.frontends.tflite.importer import import_content
from bytewright.ops.arithmetic.numerics import Numerics
from support.evaluation import evaluate_function
from support.reference import LiteRt, run_tflm
from tflite_writer import ModelBuilder

ALL_HALVES = np.arange(1 << 16, dtype=np.uint16).view(np.float16).reshape(256, 256)


def dequantised(stored: np.ndarray[tuple[int, ...], np.dtype[np.float16]]) -> tuple[ModelBuilder, int, int]:
    """A DEQUANTIZE of a constant; the builder, the constant and the result."""
    builder = ModelBuilder()
    constant = builder.constant("stored", stored)
    wide = builder.tensor("wide", stored.shape, "float32")
    builder.operator("DEQUANTIZE", [constant], [wide], version=3)
    return builder, constant, wide


def refused(content: bytes, numerics: Numerics = Numerics.LITERT_REF) -> Diagnostic:
    with pytest.raises(CompileError) as caught:
        import_content(content, "m.tflite", numerics=numerics)
    (diagnostic,) = caught.value.diagnostics
    return diagnostic


def test_every_value_is_widened_as_litert_widens_it() -> None:
    builder, _, wide = dequantised(ALL_HALVES)
    x, y = builder.tensor("x", ALL_HALVES.shape, "bool"), builder.tensor("y", ALL_HALVES.shape, "float32")
    builder.operator("SELECT", [x, wide, wide], [y])
    content = builder.build([x], [y])
    everywhere = np.ones(ALL_HALVES.shape, np.bool_)
    module = import_content(content, "m.tflite")
    values = evaluate_function(module.graph, module.constants, (everywhere,))
    found, wanted = values[module.graph.results[0]], LiteRt(content).run(everywhere)[0]
    np.testing.assert_array_equal(found, wanted)
    known = ~np.isnan(wanted)
    np.testing.assert_array_equal(np.signbit(found[known]), np.signbit(wanted[known]))


def test_a_layer_reads_the_widened_constant_and_nothing_is_left_to_run() -> None:
    builder, _, weights = dequantised(np.linspace(-1, 1, 12, dtype=np.float16).reshape(3, 4))
    x, y = builder.tensor("x", (1, 4), "float32"), builder.tensor("y", (1, 3), "float32")
    builder.operator("FULLY_CONNECTED", [x, weights, -1], [y])
    module = import_content(builder.build([x], [y]), "m.tflite")
    assert "dequantize" not in {node.operation.name for node in module.graph.nodes}
    assert {constant.data.type.dtype.value for constant in module.constants} == {"f32"}


def test_float16_is_refused_where_it_is_no_constant_or_not_dequantised() -> None:
    builder = ModelBuilder()
    x, y = builder.tensor("x", (1, 2), "float16"), builder.tensor("y", (1, 2), "float32")
    builder.operator("DEQUANTIZE", [x], [y], version=3)
    assert refused(builder.build([x], [y])).notes == ("tensor 0 ('x') is FLOAT16",)
    builder, stored, _ = dequantised(np.ones((1, 2), np.float16))
    x, y = builder.tensor("x", (1, 2), "float16"), builder.tensor("y", (1, 2), "float16")
    builder.operator("ADD", [x, stored], [y])
    diagnostic = refused(builder.build([x], [y]))
    assert diagnostic.code == "BW105"
    assert "tensor 0 ('stored') is FLOAT16, which ADD does not have" in diagnostic.notes


def test_tflm_has_no_float16() -> None:
    builder, _, wide = dequantised(np.ones((1, 2), np.float16))
    x, y = builder.tensor("x", (1, 2), "float32"), builder.tensor("y", (1, 2), "float32")
    builder.operator("ADD", [x, wide], [y])
    content = builder.build([x], [y])
    with pytest.raises(RuntimeError):
        run_tflm(content, [np.ones((1, 2), np.float32)])
    diagnostic = refused(content, Numerics.TFLM)
    assert diagnostic.code == "BW107"
    assert "TensorFlow Lite Micro does not have it for float16" in diagnostic.message
    assert diagnostic.help is not None
    assert "--numerics litert-ref" in diagnostic.help
    assert import_content(content, "m.tflite").graph.nodes
