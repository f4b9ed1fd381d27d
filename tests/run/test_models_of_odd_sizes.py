"""Models of tensors that are no multiples of the alignment: the planner ends, with the optimum, and the C is right."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from bytewright.compiler.pipeline import compile_model
from bytewright.ir.border import Io
from bytewright.options import Options
from bytewright.target.registry import load_target
from support.against_reference import assert_equals_reference
from support.random_models import RandomModel
from tflite_writer import ModelBuilder

# Sixteen sizes whose sum with alignment is one step over the sum without it; and one more.
SIZES = (592, 784, 1008, 1152, 1328, 1536, 1664, 1824, 2016, 2240, 2384, 2560, 2768, 2896, 1596, 808, 20)
TOKENS, CHANNELS, HEADS = 7, 9, 4


def many_outputs() -> bytes:
    """One output of each size, all made of one input."""
    builder = ModelBuilder()
    x = builder.tensor("x", (1, 1), "int8", scale=0.5)
    outputs: list[int] = []
    for index, size in enumerate(SIZES):
        values = (np.arange(size) % 256 - 128).astype(np.int8)
        addend = builder.tensor(f"addend_{index}", (1, size), "int8", scale=0.25, data=values)
        y = builder.tensor(f"y_{index}", (1, size), "int8", scale=0.5)
        builder.operator("ADD", [x, addend], [y])
        outputs.append(y)
    return builder.build([x], outputs)


def transformer_block() -> bytes:
    """Attention of several heads as products over all pairs of tokens and means; a residual addition."""
    builder = ModelBuilder()

    def axis(index: int, number: int) -> int:
        return builder.tensor(f"axis_{index}_{number}", (1,), "int32", data=np.array([number], np.int32))

    x = builder.tensor("x", (1, TOKENS, 1, CHANNELS), "float32")
    total = x
    for head in range(HEADS):
        gains = np.random.default_rng(head).normal(size=(3, 1, 1, 1, CHANNELS)).astype(np.float32)
        query, key, value = (
            builder.tensor(f"{name}_{head}", (1, TOKENS, 1, CHANNELS), "float32")
            for name in ("query", "key", "value")
        )
        for index, projected in enumerate((query, key, value)):
            gain = builder.tensor(f"gain_{head}_{index}", (1, 1, 1, CHANNELS), "float32", data=gains[index])
            builder.operator("MUL", [x, gain], [projected])
        columns = [
            builder.tensor(f"{name}_{head}", (1, 1, TOKENS, CHANNELS), "float32")
            for name in ("keys", "values")
        ]
        shape = builder.tensor(
            f"shape_{head}", (4,), "int32", data=np.array([1, 1, TOKENS, CHANNELS], np.int32)
        )
        for source, result in zip((key, value), columns, strict=True):
            builder.operator("RESHAPE", [source, shape], [result])
        pairs = builder.tensor(f"pairs_{head}", (1, TOKENS, TOKENS, CHANNELS), "float32")
        builder.operator("MUL", [query, columns[0]], [pairs])
        scores = builder.tensor(f"scores_{head}", (1, TOKENS, TOKENS), "float32")
        builder.operator("MEAN", [pairs, axis(head, 3)], [scores])
        weights = builder.tensor(f"weights_{head}", (1, TOKENS, TOKENS), "float32")
        builder.operator("SOFTMAX", [scores], [weights])
        spread = builder.tensor(f"spread_{head}", (1, TOKENS, TOKENS, 1), "float32")
        wide = builder.tensor(f"wide_{head}", (4,), "int32", data=np.array([1, TOKENS, TOKENS, 1], np.int32))
        builder.operator("RESHAPE", [weights, wide], [spread])
        weighted = builder.tensor(f"weighted_{head}", (1, TOKENS, TOKENS, CHANNELS), "float32")
        builder.operator("MUL", [spread, columns[1]], [weighted])
        mixed = builder.tensor(f"mixed_{head}", (1, TOKENS, 1, CHANNELS), "float32")
        builder.operator("MEAN", [weighted, axis(head, 2)], [mixed], keep_dims=True)
        added = builder.tensor(f"added_{head}", (1, TOKENS, 1, CHANNELS), "float32")
        builder.operator("ADD", [total, mixed], [added])
        total = added
    return builder.build([x], [total])


@pytest.mark.parametrize(
    ("content", "shape", "dtype", "io"),
    [
        (many_outputs(), (1, 1), "int8", Io.WORKSPACE),
        (transformer_block(), (1, TOKENS, 1, CHANNELS), "float32", Io.CALLER),
        (transformer_block(), (1, TOKENS, 1, CHANNELS), "float32", Io.WORKSPACE),
    ],
    ids=["17 outputs", "transformer block", "transformer block, planned io"],
)
def test_the_plan_is_near_its_bound_and_the_outputs_are_the_references(
    content: bytes, shape: tuple[int, ...], dtype: str, io: Io, tmp_path: Path
) -> None:
    (tmp_path / "model.tflite").write_bytes(content)
    document = compile_model(tmp_path / "model.tflite", load_target("host"), Options(io=io)).document
    # Where outputs overlap inputs, the bound counts what each pair may share, and is below the best plan by a little.
    assert all(pool["used_bytes"] <= 1.01 * pool["lower_bound_bytes"] for pool in document["pools"])
    assert_equals_reference([RandomModel(content, "model", (shape,), dtype)], tmp_path, io=io)
