"""BATCH_MATMUL by int8 weights with a scale for each column: LiteRT gives zeros, and each column alone as it should."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import bytewright
from bytewright.diagnostics import CompileError
from bytewright.frontends.tflite.importer import import_content
from bytewright.ops.arithmetic.numerics import Numerics
from support.reference import Array, run_litert
from tflite_writer import ModelBuilder

SCALES = (0.01, 0.02, 0.005, 0.03, 0.001)


def product(
    dtype: str, weights: Array, scales: object, *, adjoint: bool, axis: int, is_constant: bool = True
) -> bytes:
    """[3, K] by weights of int8; zero points of int8 are not 0."""
    builder = ModelBuilder()
    depth, width = weights.shape[::-1] if adjoint else weights.shape
    result_scale, zero_point = (20.0, 0) if dtype == "int16" else (0.2, -7)
    x = builder.tensor("x", [3, depth], dtype, scale=0.01, zero_point=zero_point)
    own = {"scale": scales, "quantized_dimension": axis}
    w = (
        builder.constant("w", weights, **own)
        if is_constant
        else builder.tensor("w", weights.shape, "int8", **own)
    )
    y = builder.tensor("y", [3, width], dtype, scale=result_scale, zero_point=zero_point)
    builder.operator("BATCH_MATMUL", [x, w], [y], adj_y=adjoint)
    return builder.build([x] if is_constant else [x, w], [y])


@pytest.mark.parametrize(("dtype", "depth", "adjoint"), [("int16", 700, False), ("int8", 64, True)])
def test_each_column_is_what_litert_makes_of_it_alone(
    dtype: str, depth: int, adjoint: bool, tmp_path: Path
) -> None:
    """Sums of 700 products of int16 pass 32 bits."""
    random = np.random.default_rng(5)
    weights = random.integers(-127, 128, (depth, len(SCALES))).astype(np.int8)
    weights[:, 0] = 127
    bounds = np.iinfo(dtype)
    x = random.integers(bounds.min, bounds.max, (3, depth)).astype(dtype)
    x[0] = bounds.max
    stored = weights.T.copy() if adjoint else weights
    content = product(dtype, stored, SCALES, adjoint=adjoint, axis=0 if adjoint else 1)
    columns = [
        run_litert(product(dtype, weights[:, [n]].copy(), scale, adjoint=False, axis=1), [x])[0]
        for n, scale in enumerate(SCALES)
    ]
    expected = np.concatenate(columns, axis=1)
    assert len(np.unique(expected)) > 5
    (whole,) = run_litert(content, [x])
    assert len(np.unique(whole)) == 1, "LiteRT computes the columns by now, and is their witness"
    (tmp_path / "m.tflite").write_bytes(content)
    np.testing.assert_array_equal(bytewright.compile(tmp_path / "m.tflite").run(x), expected)


@pytest.mark.parametrize(
    ("axis", "is_constant", "message"),
    [
        (0, True, "weights are quantised along axis 0, not 1"),
        (1, False, "'w' has 5 scales, and is not one constant matrix"),
    ],
)
def test_scales_of_anything_else_are_refused(axis: int, is_constant: bool, message: str) -> None:
    content = product(
        "int8", np.ones((5, 5), np.int8), SCALES, adjoint=False, axis=axis, is_constant=is_constant
    )
    with pytest.raises(CompileError) as caught:
        import_content(content, "m.tflite", numerics=Numerics.LITERT_REF)
    (found,) = caught.value.diagnostics
    assert found.code == "BW107"
    assert message in found.message


def test_tensorflow_lite_micro_has_one_scale() -> None:
    content = product("int8", np.ones((5, 5), np.int8), SCALES, adjoint=False, axis=1)
    with pytest.raises(CompileError, match="5 scales, one is needed"):
        import_content(content, "m.tflite", numerics=Numerics.TFLM)
