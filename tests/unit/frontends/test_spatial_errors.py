"""What of RESIZE, TRANSPOSE_CONV, BATCH_MATMUL and grouped convolutions cannot be compiled, each with its sentence."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bytewright.diagnostics import CompileError, Diagnostic
from bytewright.frontends.tflite.importer import import_content
from bytewright.ops.arithmetic.numerics import Numerics
from tflite_writer import ModelBuilder

AFFINE: dict[str, Any] = {"scale": 0.5, "zero_point": 3}


def only(content: bytes, numerics: Numerics = Numerics.LITERT_REF) -> Diagnostic:
    with pytest.raises(CompileError) as refused:
        import_content(content, "model.tflite", numerics=numerics)
    (found,) = refused.value.diagnostics
    return found


def resize(size: list[int], kind: str = "RESIZE_BILINEAR", **options: Any) -> bytes:
    builder = ModelBuilder()
    x = builder.tensor("x", [1, 1, 4, 2], "int8", **AFFINE)
    y = builder.tensor("y", [1, *(max(extent, 1) for extent in size[:2]), 2], "int8", **AFFINE)
    builder.operator(kind, [x, builder.constant("size", np.array(size, np.int32))], [y], **options)
    return builder.build([x], [y])


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (resize([2, 2, 2]), "a size [2, 2, 2] is not that of rows and columns"),
        (resize([2, 0]), "a size [2, 0] is not"),
        (resize([55, 4]), "element 54 of 55 would lie at 1 of 1: the reference reads beyond its input"),
        (resize([2, 4], align_corners=True, half_pixel_centers=True), "at once"),
        (resize([2, 1 << 21], "RESIZE_NEAREST_NEIGHBOR"), "2097152 rows or columns; at most 1048576"),
    ],
)
def test_resizes(content: bytes, text: str) -> None:
    found = only(content)
    assert found.code == "BW107"
    assert text in found.message


def transposed(
    stated: list[int], weights: tuple[int, ...] = (3, 2, 2, 2), *, open_batch: bool = False, **options: Any
) -> bytes:
    builder = ModelBuilder()
    signature = [-1, 4, 4, 2] if open_batch else None
    x = builder.tensor("x", [1, 4, 4, 2], "int8", shape_signature=signature, **AFFINE)
    w = builder.constant("w", np.ones(weights, np.int8), scale=0.25)
    y = builder.tensor("y", [1, *stated[1:]], "int8", **AFFINE)
    shape = builder.constant("shape", np.array(stated, np.int32))
    builder.operator("TRANSPOSE_CONV", [shape, w, x], [y], **{"stride_h": 2, "stride_w": 2, **options})
    return builder.build([x], [y])


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (transposed([1, 8, 8, 4]), "an output shape [1, 8, 8, 4] for 3 channels"),
        (transposed([2, 8, 8, 3]), "an output shape [2, 8, 8, 3] for an input [1, 4, 4, 2]"),
        (transposed([1, 8, 8, 3], (3, 2, 2, 1)), "2 input channels do not fit weights of 1"),
        (transposed([1, 9, 8, 3]), "a result of 9x8 is of an input of 5x4, not of 4x4"),
        (transposed([1, 8, 8, 3], padding="VALID", stride_h=0), "stride (0, 2) is not positive"),
        (transposed([1, 8, 8, 3], (3, 2, 2)), "do not have 4 axes"),
    ],
)
def test_transposed_convolutions(content: bytes, text: str) -> None:
    found = only(content)
    assert found.code == "BW107"
    assert text in found.message


def test_a_result_of_another_size_is_for_tflm_alone() -> None:
    module = import_content(transposed([1, 9, 8, 3]), "model.tflite", numerics=Numerics.TFLM)
    assert module.outputs[0].type.shape == (1, 9, 8, 3)


def test_the_batch_of_a_stated_shape_gives_way_where_the_model_s_is_open() -> None:
    module = import_content(transposed([5, 8, 8, 3], open_batch=True), "model.tflite")
    assert module.outputs[0].type.shape == (1, 8, 8, 3)


def product(
    a: tuple[int, ...], b: tuple[int, ...], result: tuple[int, ...], dtype: str = "int8", *, weights: str = ""
) -> bytes:
    builder = ModelBuilder()
    keywords = AFFINE if dtype == "int8" else {}
    x = builder.tensor("x", a, dtype, **keywords)
    sources = [x]
    if weights:
        w = builder.constant("w", np.ones(b, weights), scale=0.5)
    else:
        w = builder.tensor("w", b, dtype, **keywords)
        sources.append(w)
    y = builder.tensor("y", result, dtype, **keywords)
    builder.operator("BATCH_MATMUL", [x, w], [y])
    return builder.build(sources, [y])


@pytest.mark.parametrize(
    ("content", "code", "text"),
    [
        (product((2, 3), (4, 5), (2, 5)), "BW107", "[2x3] and [4x5] have rows of 3 and columns of 4"),
        (product((3,), (3, 5), (5,)), "BW107", "operands of 1 and 2 axes; 2 to 5 are supported"),
        (product((2, 2, 3), (3, 3, 5), (3, 2, 5)), "BW107", "do not broadcast"),
        (product((1, 130000), (130000, 1), (1, 1)), "BW110", "the sum of 130000 products can reach"),
        (
            product((2, 3), (3, 5), (2, 5), "float32", weights="uint8"),
            "BW108",
            "no kernels for these weights",
        ),
        (product((2, 3), (2, 3, 5), (2, 2, 5), "float32", weights="int8"), "BW107", "one constant matrix"),
    ],
)
def test_products_of_matrices(content: bytes, code: str, text: str) -> None:
    found = only(content)
    assert found.code == code
    assert text in found.message
