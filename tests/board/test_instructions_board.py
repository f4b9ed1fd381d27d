"""Each instruction of each set alone, by its own C text on a core that has the feature: gcc and clang, at each level.

What the evaluator reads of a record's body is what the core computes; that makes a meaning that was written by hand
trustworthy.
"""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import pytest

import bytewright
from bytewright.execute.build import BuildOptions
from bytewright.execute.run import run_bundle
from bytewright.lower.isa.instruction_set import InstructionSet
from bytewright.lower.isa.registry import INSTRUCTION_SETS
from support.instruction_program import InstructionProgram, greatest_products
from support.tiers import some

# A target whose board has the set, and compilers for it.
BOARDS = {
    "mve": "mps3-an547",
    "mve_float": "mps3-an547",
    "dsp": "mps2-an386",
    "fpu": "mps2-an386",
    "neon": "aarch64",
    "rvv": "rv64gcv",
}
COMPILERS = {"rvv": ("clang-19",)}  # the ones that know its intrinsics
LEVELS = ("-O1", "-O2", "-O3", "-Os")
CASES = [
    case
    for each in INSTRUCTION_SETS
    if each.name in BOARDS
    for case in some(product([each], COMPILERS.get(each.name, ("gcc", "clang")), LEVELS), every=2)
]


@pytest.mark.parametrize(
    ("instruction_set", "compiler", "level"),
    CASES,
    ids=lambda each: getattr(each, "name", each),
)
def test_each_instruction_on_its_board(
    tmp_path: Path, instruction_set: InstructionSet, compiler: str, level: str
) -> None:
    program = InstructionProgram(instruction_set.instructions, instruction_set.operands)
    assert_equals_bodies(program, tmp_path, instruction_set, compiler, level)


@pytest.mark.parametrize(
    "instruction_set",
    [each for each in INSTRUCTION_SETS if each.name in BOARDS and greatest_products(each) is not None],
    ids=lambda each: each.name,
)
def test_the_greatest_products_of_halves(tmp_path: Path, instruction_set: InstructionSet) -> None:
    program = greatest_products(instruction_set)
    assert program is not None
    compiler, *_ = COMPILERS.get(instruction_set.name, ("gcc",))
    assert_equals_bodies(program, tmp_path, instruction_set, compiler, "-O2")


def assert_equals_bodies(
    program: InstructionProgram, tmp_path: Path, instruction_set: InstructionSet, compiler: str, level: str
) -> None:
    target = BOARDS[instruction_set.name]
    bytewright.compile(program.write(tmp_path), target=target).write(tmp_path / "m")
    expected = program.evaluated()
    options = BuildOptions(flags=(level,), compiler=None if compiler == "gcc" else compiler)
    found = run_bundle(tmp_path / "m", list(program.inputs.values()), on="qemu", options=options).outputs
    for name, output, wanted in zip(program.outputs, found, expected, strict=True):
        assert np.array_equal(output, wanted), name
