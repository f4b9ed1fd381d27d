"""Each instruction of each set alone, in C on this machine: what the evaluator reads of its body is what C computes.

On a machine without the feature that is the plain C of the bundle, under sanitizers.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import bytewright
from bytewright.execute.build import BuildOptions
from bytewright.execute.run import run_bundle
from bytewright.lower.isa.instruction_set import InstructionSet
from bytewright.lower.isa.registry import INSTRUCTION_SETS
from support.instruction_program import InstructionProgram, greatest_products

SETS = [pytest.param(each, id=each.name) for each in INSTRUCTION_SETS]


@pytest.mark.parametrize("instruction_set", SETS)
@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_plain_c_of_each_instruction(tmp_path: Path, instruction_set: InstructionSet, compiler: str) -> None:
    assert_equals_bodies(
        InstructionProgram(instruction_set.instructions, instruction_set.operands), tmp_path, compiler
    )


PRODUCTS = [each for each in INSTRUCTION_SETS if greatest_products(each) is not None]


@pytest.mark.parametrize("instruction_set", PRODUCTS, ids=lambda each: each.name)
def test_the_greatest_products_of_halves(tmp_path: Path, instruction_set: InstructionSet) -> None:
    program = greatest_products(instruction_set)
    assert program is not None
    assert_equals_bodies(program, tmp_path, "gcc")


def assert_equals_bodies(program: InstructionProgram, tmp_path: Path, compiler: str) -> None:
    bytewright.compile(program.write(tmp_path)).write(tmp_path / "m")
    how = BuildOptions(flags=("-O0",), sanitize=True, compiler=compiler)
    found = run_bundle(tmp_path / "m", list(program.inputs.values()), options=how).outputs
    for name, output, expected in zip(program.outputs, found, program.evaluated(), strict=True):
        assert np.array_equal(output, expected), name
