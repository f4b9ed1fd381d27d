"""Attention, product by product: exact, and head by head where the heads are the second of four axes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bytewright.compiler.pipeline import compile_model
from bytewright.options import Options, Rows
from bytewright.target.registry import load_target
from support.against_reference import assert_equals_reference
from support.many_models import SANITIZERS
from support.random_models import RandomModel
from tflite_writer import ModelBuilder

HEADS, STEPS, DEPTH = 8, 16, 4


def attention(dtype: str) -> RandomModel:
    """softmax(q k^T) v."""
    builder, shape = ModelBuilder(), (1, HEADS, STEPS, DEPTH)

    def tensor(name: str, extents: tuple[int, ...], scale: float, zero_point: int) -> int:
        affine: dict[str, Any] = {"scale": scale, "zero_point": zero_point} if dtype == "int8" else {}
        return builder.tensor(name, extents, dtype, **affine)

    given = [tensor(name, shape, 1 / 32, zero) for name, zero in (("q", 3), ("k", -5), ("v", 7))]
    scores = tensor("scores", (1, HEADS, STEPS, STEPS), 1 / 16, 1)
    shares = tensor("shares", (1, HEADS, STEPS, STEPS), 1 / 256, -128)
    result = tensor("result", shape, 1 / 32, 2)
    builder.operator("BATCH_MATMUL", given[:2], [scores], adj_y=True)
    builder.operator("SOFTMAX", [scores], [shares])
    builder.operator("BATCH_MATMUL", [shares, given[2]], [result])
    return RandomModel(builder.build(given, [result]), f"attention {dtype}", (shape,) * 3, dtype)


@pytest.mark.run
@pytest.mark.parametrize("rows", [Rows.AUTO, Rows.OFF])
def test_attention(rows: Rows, tmp_path: Path) -> None:
    models = [attention("int8"), attention("float32")]
    assert_equals_reference(models, tmp_path, flags=("-O1", *SANITIZERS), options=Options(rows=rows))


@pytest.mark.parametrize("target", ["host", "mps3-an547"])
def test_scores_of_one_head_at_a_time(target: str, tmp_path: Path) -> None:
    """Two tensors of 8 heads of 16 x 16 are 2,048 B each, of one head 256 B."""
    path = tmp_path / "m.tflite"
    path.write_bytes(attention("int8").content)
    by_heads, whole = (
        compile_model(path, load_target(target), Options(rows=rows)).plan for rows in (Rows.AUTO, Rows.OFF)
    )
    assert by_heads.workspace_bytes <= 2 * STEPS * STEPS
    assert whole.workspace_bytes >= HEADS * STEPS * STEPS
