"""Convolutions between SPACE_TO_BATCH_ND and BATCH_TO_SPACE_ND: dilated ones of the image, or moves as written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from bytewright.diagnostics import CompileError
from bytewright.frontends.tflite import import_content
from bytewright.ir.module import Module
from bytewright.ops.arithmetic.numerics import Numerics
from bytewright.ops.convolution import Conv2d, DepthwiseConv2d
from support.dilated_models import FORMS, Writer, dilated_model
from support.evaluation import evaluate_function
from support.lowering import assert_close
from support.random_models import RandomModel
from support.reference import LiteRt, TfLiteMicro
from support.tiers import THOROUGH

COUNT = 400 if THOROUGH else 25


def imported(model: RandomModel) -> Module:
    """The graph, which means what LiteRT computes: floats within 1e-5 of the largest."""
    module = import_content(model.content, "m.tflite")
    reference = LiteRt(model.content)
    for seed in (0, 4):
        inputs = model.inputs(seed)
        values = evaluate_function(module.graph, module.constants, tuple(inputs))
        for name, wanted in zip(module.graph.results, reference.run(*inputs), strict=True):
            assert_close(values[name], wanted, model.description)
    return module


def operations(module: Module) -> list[str]:
    return [node.operation.name for node in module.graph.nodes]


@pytest.mark.parametrize("dtype", ["int8", "float32"])
@pytest.mark.parametrize("form", FORMS)
def test_no_move_is_left_but_what_is_cropped_beyond_the_padding(form: str, dtype: str) -> None:
    for number in range(COUNT):
        module = imported(dilated_model(number, dtype, form))
        assert not {"pad", "transpose"} & set(operations(module))
        convolutions = [
            n.operation for n in module.graph.nodes if isinstance(n.operation, Conv2d | DepthwiseConv2d)
        ]
        assert convolutions
        assert all(max(operation.dilation) > 1 for operation in convolutions)
        assert module.graph.nodes[0].where.operator != "BATCH_TO_SPACE_ND"


def test_padding_dilation_and_crops_by_hand() -> None:
    """Blocks of 3 by 2 around a window of 3 by 1 with dilation 2: the causal padding of 12, less a crop of 1."""
    writer = Writer.of((1, 9, 6, 2))
    writer.spread((3, 2), ((12, 0), (0, 0)))
    writer.convolution("CONV_2D", (3, 1), "VALID", (2, 1))
    writer.gather((3, 2), ((1, 0), (0, 0)))
    module = imported(writer.finish())
    (node,) = (node for node in module.graph.nodes if isinstance(node.operation, Conv2d))
    assert (node.operation.dilation, node.operation.padding) == ((6, 2), (11, 0, 0, 0))
    assert str(node.where) == "m.tflite, operator 1 (CONV_2D), tensor 't7'"
    assert node.outputs[0].name.startswith("conv2d_1/")


def _strided(writer: Writer) -> None:
    writer.convolution("CONV_2D", (1, 1), "VALID", (1, 1), stride=(2, 1))


def _relu_of_padding(writer: Writer) -> None:
    writer.add("RELU", writer.shape)
    writer.convolution("CONV_2D", (1, 1), "VALID", (1, 1))


def _residual(writer: Writer) -> None:
    before = writer.value
    writer.convolution("DEPTHWISE_CONV_2D", (3, 1), "SAME", (1, 1))
    writer.add("ADD", writer.shape, before)


def _pooled(writer: Writer) -> None:
    writer.convolution("CONV_2D", (1, 1), "VALID", (1, 1))
    writer.add(
        "MAX_POOL_2D", writer.shape, padding="SAME", filter_height=3, filter_width=1, stride_h=1, stride_w=1
    )


def _nothing(writer: Writer) -> None:
    writer.add("RELU", writer.shape)


def _turned(writer: Writer) -> None:
    batch, height, width, depth = writer.shape
    turned = (batch, width, height, depth)
    writer.add("RESHAPE", turned, writer.integers(turned), new_shape=turned)
    writer.convolution("CONV_2D", (1, 1), "VALID", (1, 1))
    _, height, width, depth = writer.shape
    back = (batch, width, height, depth)
    writer.add("RESHAPE", back, writer.integers(back), new_shape=back)


@pytest.mark.parametrize("between", [_strided, _relu_of_padding, _residual, _pooled, _nothing, _turned])
@pytest.mark.parametrize("dtype", ["int8", "float32"])
def test_anything_else_is_moved_as_it_is_written(between: Callable[[Writer], None], dtype: str) -> None:
    writer = Writer.of((1, 7, 6, 3), dtype)
    writer.spread((2, 3), ((2, 3), (0, 0)))
    between(writer)
    writer.gather((2, 3), ((0, 0), (0, 0)))
    module = imported(writer.finish())
    assert operations(module).count("transpose") == 2
    assert all(max(getattr(node.operation, "dilation", (1,))) == 1 for node in module.graph.nodes)


def test_blocks_that_are_put_together_otherwise() -> None:
    """Samples of 2 by 3 blocks that become blocks of 3 by 2 are another image."""
    writer = Writer.of((1, 6, 6, 2))
    writer.spread((2, 3), ((0, 0), (0, 0)))
    writer.convolution("CONV_2D", (1, 1), "VALID", (1, 1))
    writer.gather((3, 2), ((0, 0), (0, 0)))
    assert operations(imported(writer.finish())).count("transpose") == 2


def test_an_axis_that_could_be_either_is_left_alone() -> None:
    """Samples of one column each, as images of height and width 1."""
    writer = Writer.of((1, 3, 2))
    writer.spread((3,), ((0, 0),))
    writer.add("RESHAPE", (3, 1, 1, 2), writer.integers((3, 1, 1, 2)), new_shape=(3, 1, 1, 2))
    writer.convolution("CONV_2D", (1, 3), "SAME", (1, 1))
    flat = (3, 1, writer.shape[-1])
    writer.add("RESHAPE", flat, writer.integers(flat), new_shape=flat)
    writer.gather((3,), ((0, 0),))
    (node,) = (n for n in imported(writer.finish()).graph.nodes if isinstance(n.operation, Conv2d))
    assert node.operation.dilation == (1, 1)


def test_samples_that_are_read_twice() -> None:
    """What was spread is also a result: it is made, beside the dilated convolution."""
    writer = Writer.of((1, 6, 6, 2))
    writer.spread((2, 3), ((0, 0), (0, 0)))
    samples = writer.value
    writer.convolution("CONV_2D", (1, 1), "VALID", (1, 1))
    writer.gather((2, 3), ((0, 0), (0, 0)))
    assert sorted(operations(imported(writer.finish(samples)))).count("transpose") == 1


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"sides": (2,)}, r"blocks \[2\] for 2 axes"),
        ({"sides": (2, 0)}, r"blocks \[2, 0\] are empty"),
        ({"widths": ((1, 0), (-1, 1))}, r"paddings \[1, 0, -1, 1\] are negative"),
        ({"widths": ((2, 0), (0, 0))}, "9 rows or columns with padding are no blocks of 2"),
        ({"widths": ((1, 0),)}, r"paddings of shape \[1, 2\] for 2 axes"),
    ],
)
def test_operands_that_do_not_fit(change: dict[str, Any], text: str) -> None:
    writer = Writer.of((1, 7, 6, 2))
    given = {"sides": (2, 3), "widths": ((1, 0), (0, 0)), **change}
    writer.add(
        "SPACE_TO_BATCH_ND", (6, 4, 2, 2), writer.integers(given["sides"]), writer.integers(given["widths"])
    )
    with pytest.raises(CompileError, match=text):
        import_content(writer.finish().content, "m.tflite")


@pytest.mark.parametrize("dtype", ["int8", "float32"])
def test_micro_is_refused_where_it_pads_with_what_it_never_sets(dtype: str) -> None:
    contents: list[bytes] = []
    for height, width in ((7, 1), (8, 0)):
        writer = Writer.of((1, height, 6, 2), dtype)
        writer.spread((2, 3), ((width, 0), (0, 0)))
        contents.append(writer.finish().content)
        import_content(contents[-1], "m.tflite")
    padded, plain = contents
    with pytest.raises(CompileError, match="does not have it with paddings"):
        import_content(padded, "m.tflite", numerics=Numerics.TFLM)
    module = import_content(plain, "m.tflite", numerics=Numerics.TFLM)
    x = np.arange(96).reshape(1, 8, 6, 2).astype(dtype)
    values = evaluate_function(module.graph, module.constants, (x,))
    np.testing.assert_array_equal(values[module.graph.results[0]], TfLiteMicro(plain).run(x)[0])


def test_quantisations_that_differ_are_refused_as_litert_refuses_them() -> None:
    writer = Writer.of((1, 4, 4, 2))
    other = writer.builder.tensor("other", (4, 2, 2, 2), "int8", scale=0.5, zero_point=5)
    operands = [writer.value, writer.integers((2, 2)), writer.integers(((0, 0), (0, 0)))]
    writer.builder.operator("SPACE_TO_BATCH_ND", operands, [other])
    writer.value = other
    content = writer.finish().content
    with pytest.raises(RuntimeError):
        LiteRt(content)
    with pytest.raises(CompileError, match="quantised in another way"):
        import_content(content, "m.tflite")
