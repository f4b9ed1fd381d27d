"""Columns that are copied to lie side by side on emulated cores: the workspace they take, and the products."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bytewright
from bytewright.execute.build import BuildOptions
from bytewright.execute.run import run_batch
from support.against_reference import differences
from support.random_models import RandomModel
from support.reference import LiteRt
from tflite_writer import ModelBuilder

M4, M55 = "mps2-an386", "mps3-an547"


def product_of_rows(height: int, depth: int, width: int) -> RandomModel:
    """A BATCH_MATMUL of two matrices of rows."""
    builder, shapes = ModelBuilder(), ((height, depth), (width, depth))
    operands = [builder.tensor(name, shape, "float32") for name, shape in zip("xy", shapes, strict=True)]
    result = builder.tensor("z", (height, width), "float32")
    builder.operator("BATCH_MATMUL", operands, [result], adj_x=False, adj_y=True)
    return RandomModel(builder.build(operands, [result]), f"{shapes}", shapes, "float32")


@pytest.mark.parametrize(
    ("core", "shape", "options", "most_bytes"),
    [
        (M4, (2, 1024, 8), {"workspace": "ssram23=16K"}, 4096),
        (M4, (2, 1024, 8), {"workspace": "ssram23=1K", "optimize": "size"}, 1024),
        (M4, (131, 129, 11), {}, 4096),
        (M55, (2, 1024, 16), {}, 8192),
        (M55, (131, 131, 20), {"optimize": "size"}, 2048),
    ],
)
def test_workspace_of_copied_columns(
    tmp_path: Path, core: str, shape: tuple[int, int, int], options: dict[str, Any], most_bytes: int
) -> None:
    """It was 32 KiB for two rows, and 48 KiB for 256 and more."""
    model, path = product_of_rows(*shape), tmp_path / "m.tflite"
    path.write_bytes(model.content)
    compiled = bytewright.compile(path, target=core, **options)
    assert any(step.template and step.template.endswith(".matmul") for step in compiled.plan.steps)
    assert 0 < compiled.plan.workspace_bytes <= most_bytes
    batch = [model.inputs(seed) for seed in (1, 2)]
    bundle = compiled.write(tmp_path / "b")
    found = run_batch(bundle, batch, on="qemu", options=BuildOptions(flags=("-O2",))).outputs
    reference = LiteRt(model.content)
    for inputs, outputs in zip(batch, found, strict=True):
        assert differences(outputs, [np.array(each) for each in reference.run(*inputs)]) == []
