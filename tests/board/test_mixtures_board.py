"""Networks of functions of elements, choices and reductions on boards and in QEMU's user mode, beside LiteRT.

Floats call what newlib has of <math.h>.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import bytewright
from bytewright.cli.main import bytewright as command_line
from bytewright.execute.build import BuildOptions
from bytewright.execute.run import run_batch
from support.against_reference import differences
from support.random_mixtures import random_mixture, random_reduction_of
from support.random_models import RandomModel
from support.reference import LiteRt
from support.tiers import THOROUGH
from tflite_writer import ModelBuilder

pytestmark = pytest.mark.board
COUNT = 12 if THOROUGH else 1


def compiled(model: RandomModel, folder: Path, target: str) -> bytewright.CompiledModel:
    path = folder / "m.tflite"
    path.write_bytes(model.content)
    return bytewright.compile(path, target=target)


def assert_equals(model: RandomModel, folder: Path, target: str) -> None:
    batch = [model.inputs(i) for i in range(4)]
    options = BuildOptions(flags=("-O2",))
    bundle = compiled(model, folder, target).write(folder / "bundle")
    found = run_batch(bundle, batch, on="qemu", options=options).outputs
    reference = LiteRt(model.content)
    for inputs, own in zip(batch, found, strict=True):
        assert not differences(own, list(reference.run(*inputs))), model.description


@pytest.mark.parametrize("target", ["mps3-an547", "aarch64"])
@pytest.mark.parametrize("dtype", ["int8", "float32"])
@pytest.mark.parametrize("number", range(COUNT))
def test_mixtures(number: int, dtype: str, target: str, tmp_path: Path) -> None:
    assert_equals(random_mixture(500 + number, dtype), tmp_path, target)


@pytest.mark.parametrize(("target", "name"), [("mps3-an547", "mve"), ("aarch64", "neon")])
@pytest.mark.parametrize("kind", ["REDUCE_MAX", "REDUCE_MIN", "SUM"])
def test_reductions_in_lanes(kind: str, target: str, name: str, tmp_path: Path) -> None:
    models = (random_reduction_of(kind, seed, "int8") for seed in range(50))
    for model in models:
        templates = [step.template for step in compiled(model, tmp_path, target).plan.steps]
        if f"{name}.reduce" in templates:
            assert_equals(model, tmp_path, target)
            return
    pytest.fail(f"none of them is by {name}.reduce")


def functions(kinds: tuple[str, ...]) -> RandomModel:
    """A function each of one input, or of its magnitude where others have no result."""
    builder = ModelBuilder()
    source = builder.tensor("x", [1, 64], "float32")
    outputs = [builder.tensor("abs", [1, 64], "float32")]
    builder.operator("ABS", [source], outputs)
    for kind in kinds:
        operands = [outputs[0] if kind in ("LOG", "SQRT", "RSQRT", "POW") else source]
        if kind == "POW":
            exponents = (np.arange(64, dtype=np.float32) - 32) / 32
            operands.append(builder.constant("exponents", exponents))
        outputs.append(builder.tensor(kind.lower(), [1, 64], "float32"))
        builder.operator(kind, operands, [outputs[-1]])
    content = builder.build([source], outputs)
    return RandomModel(content, ", ".join(kinds), ((1, 64),), "float32", domain="not zero")


def test_functions_of_newlib(tmp_path: Path) -> None:
    """Each that a kernel may call; those of all but SIN and COS fit the usual allowance of stack for a call."""
    kinds = ("EXP", "LOG", "ELU", "GELU", "ROUND", "CEIL", "FLOOR", "SIGN", "SQRT", "RSQRT", "POW")
    assert_equals(functions(kinds), tmp_path, "mps3-an547")
    result = CliRunner().invoke(command_line, ["check", str(tmp_path / "bundle"), "--stack"])
    assert result.exit_code == 0, result.output
    assert_equals(functions(("SIN", "COS")), tmp_path, "mps3-an547")
    result = CliRunner().invoke(command_line, ["check", str(tmp_path / "bundle"), "--stack"])
    assert "sinf 480 B" in result.output
    assert "raise the device's stack-allowance-per-call" in result.output
