"""Layers that make more rows than they read, and products of matrices, on emulated boards, by rows."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from bytewright.bundle.write import write_bundle
from bytewright.compiler.pipeline import compile_model
from bytewright.execute.run import run_batch
from bytewright.options import Options, Rows
from bytewright.target.registry import load_target
from support.against_reference import differences, drawn
from support.head_models import head_model
from support.random_models import RandomModel, operator_models
from support.reference import LiteRt

PRODUCT = drawn(operator_models("BATCH_MATMUL", "int8"), 1, first_seed=3)[0]


@pytest.mark.board
@pytest.mark.parametrize(
    ("model", "target"),
    [
        (head_model("transposed by three", rows=12, skips=True), "mps3-an547"),
        (head_model("bilinear from the middle", rows=12), "mps2-an386"),
        (PRODUCT, "mps3-an547"),
    ],
    ids=["a decoder on the M55", "a head on the M4", "a product on the M55"],
)
def test_it_is_exact_on_the_board(model: RandomModel, target: str, tmp_path: Path) -> None:
    path = tmp_path / "m.tflite"
    path.write_bytes(model.content)
    made = compile_model(path, load_target(target), Options(rows=Rows.MAX))
    write_bundle(made.files, tmp_path / "b")
    inputs = [model.inputs(number) for number in (2, 3)]
    result = run_batch(tmp_path / "b", inputs, on="qemu")
    reference = LiteRt(model.content)
    for given, found in zip(inputs, result.outputs, strict=True):
        assert not differences(found, [np.array(array) for array in reference.run(*given)])
