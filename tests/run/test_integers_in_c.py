"""int32 arithmetic that overflows and CASTs at the edges of types, in C with sanitizers, as both references do them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from bytewright.compiler.pipeline import compile_model
from bytewright.ops.arithmetic.numerics import Numerics
from bytewright.options import Options
from bytewright.target.registry import load_target
from support.against_reference import differences
from support.many_models import SANITIZERS, Job, build
from support.reference import LiteRt, TfLiteMicro
from tflite_writer import ModelBuilder

Array = NDArray[Any]
BOUNDS = np.iinfo(np.int32)
EDGES = np.array([BOUNDS.min, BOUNDS.min + 1, -65537, -1, 0, 1, 46341, BOUNDS.max - 1, BOUNDS.max], np.int32)
FLOATS = np.array(
    [
        *(0.5, -0.5, 1.99, -1.99, 127.9, 128, -128.9, -129, 255.9, 256, -0.9, -1),
        *(2147483520, 2147483648, -2147483648, -2147483904, 1e20, -1e20, np.inf, -np.inf, np.nan),
    ],
    np.float32,
)
REFERENCES = {Numerics.LITERT_REF: LiteRt, Numerics.TFLM: TfLiteMicro}


def assert_as_reference(content: bytes, inputs: list[Array], numerics: Numerics, folder: Path) -> None:
    path = folder / "m0.tflite"
    path.write_bytes(content)
    compiled = compile_model(path, load_target("host"), Options(numerics=numerics))
    job = Job(compiled.files, compiled.document, [inputs])
    (((*found,),),) = build([job], folder / "build", ("-O1", *SANITIZERS)).run()
    assert differences(found, [np.array(a) for a in REFERENCES[numerics](content).run(*inputs)]) == []


@pytest.mark.parametrize("numerics", REFERENCES)
def test_sums_and_products_that_overflow(numerics: Numerics, tmp_path: Path) -> None:
    inputs = [grid.reshape(-1) for grid in np.meshgrid(EDGES, EDGES)]
    builder = ModelBuilder()
    operands = [builder.tensor(name, inputs[0].shape, "int32") for name in "ab"]
    kinds = (
        "ADD",
        "SUB",
        "MUL",
        "SQUARED_DIFFERENCE",
        "MAXIMUM",
        "MINIMUM",
        "LESS",
        "GREATER_EQUAL",
        "EQUAL",
    )
    results: list[int] = []
    for kind in kinds:
        dtype = "bool" if kind in ("LESS", "GREATER_EQUAL", "EQUAL") else "int32"
        results.append(builder.tensor(kind.lower(), inputs[0].shape, dtype))
        builder.operator(kind, operands, [results[-1]])
    assert_as_reference(builder.build(operands, results), inputs, numerics, tmp_path)


@pytest.mark.parametrize("numerics", REFERENCES)
def test_casts_of_floats_and_integers_at_the_edges(numerics: Numerics, tmp_path: Path) -> None:
    builder = ModelBuilder()
    inputs: list[Array] = [FLOATS, EDGES]
    targets = ("int8", "int32", "bool", "float32", *(("uint8",) if numerics is Numerics.LITERT_REF else ()))
    sources = [
        builder.tensor("x", FLOATS.shape, "float32"),
        builder.tensor("n", EDGES.shape, "int32"),
    ]
    results: list[int] = []
    for source, values, own in zip(sources, inputs, ("float32", "int32"), strict=True):
        for target in targets:
            if target != own:
                results.append(builder.tensor(f"{own}_{target}", values.shape, target))
                builder.operator("CAST", [source], [results[-1]])
    assert_as_reference(builder.build(sources, results), inputs, numerics, tmp_path)
