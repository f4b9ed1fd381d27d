"""K1 to K4: kernels for instruction sets."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import bytewright
from bytewright import ir
from bytewright.compiler.pipeline import compile_model
from bytewright.execute.build import BuildOptions
from bytewright.execute.run import run_bundle
from bytewright.ir.rewrite import Rewriting, rewrite_sequence
from bytewright.lower.isa.neon.dots import BYTE_DOTS as NEON
from bytewright.record.buffers import PlaceKind
from bytewright.target.registry import load_target
from support.digits_bundle import DIGITS
from support.evaluate.evaluate import Evaluator
from support.instruction_program import InstructionProgram
from support.random_networks import random_reduction
from support.reference import LiteRt

SANITIZED = BuildOptions(flags=("-O0",), sanitize=True)
BOARDS = ("mps3-an547", "mps2-an386")


def shortened(instruction: ir.Instruction) -> ir.Instruction:
    """The instruction with a meaning whose loops end one turn early."""

    def shorter(statement: ir.Statement) -> tuple[ir.Statement, ...]:
        if isinstance(statement, ir.For):
            return (replace(statement, end=statement.end - 1),)
        return (statement,)

    return replace(instruction, body=rewrite_sequence(instruction.body, Rewriting(statement=shorter)))


@pytest.mark.board
def test_k1_a_meaning_that_is_not_the_text_is_noticed(tmp_path: Path) -> None:
    for number, instructions in enumerate([(NEON.dot, NEON.load), (shortened(NEON.dot), NEON.load)]):
        program = InstructionProgram(instructions, {})
        bundle = bytewright.compile(program.write(tmp_path), target="aarch64").write(tmp_path / f"b{number}")
        found = run_bundle(bundle, list(program.inputs.values()), on="qemu").outputs
        pairs = zip(found, program.evaluated(), strict=True)
        assert [np.array_equal(own, meant) for own, meant in pairs] == [number == 0, True]


@pytest.mark.board
@pytest.mark.parametrize("target", BOARDS)
def test_k2_the_same_bundle_gives_the_same_bytes_with_and_without_instructions(
    tmp_path: Path, target: str
) -> None:
    compiled = bytewright.compile(DIGITS, target=target)
    assert any(step.template for step in compiled.plan.steps)
    bundle = compiled.write(tmp_path / "b")
    for seed in range(3):
        on_board = run_bundle(bundle, seed=seed, on="qemu").outputs
        in_plain_c = run_bundle(bundle, seed=seed, options=SANITIZED).outputs
        for one, other in zip(on_board, in_plain_c, strict=True):
            assert np.array_equal(one, other)


def test_k3_the_plan_says_which_template_and_why_no_better_one(tmp_path: Path) -> None:
    steps = bytewright.compile(DIGITS, target="aarch64").plan.steps
    assert any(step.template == "neon.conv2d_i8" for step in steps)
    declined: list[tuple[str, str]] = []
    for number in range(20):
        path = tmp_path / f"m{number}.tflite"
        path.write_bytes(random_reduction(number, "int8").content)
        steps = bytewright.compile(path, target="aarch64").plan.steps
        declined += [(step.template, remark) for step in steps for remark in step.remarks]
    assert ("", "not by neon.mean: it is over the last axis") in declined


@pytest.mark.parametrize("target", [*BOARDS, "aarch64", "rv64gcv", "x86-64-v4-vnni", "x86-64-v3"])
def test_k4_nothing_is_touched_outside_and_scratch_is_planned(target: str) -> None:
    """The evaluator refuses what lies outside of a buffer, and what is read before it is written."""
    compiled = compile_model(DIGITS, load_target(target))
    assert any(kernel.template for kernel in compiled.module.kernels)
    image = np.random.default_rng(7).integers(-128, 128, (1, 8, 8, 1)).astype(np.int8)
    (port,) = compiled.module.inputs
    found = Evaluator(compiled.module).run("main", {port.name: image.reshape(port.type.fixed_shape)})
    (wanted,) = LiteRt(DIGITS.read_bytes()).run(image)
    assert np.array_equal(next(iter(found.values())).reshape(-1), np.array(wanted).reshape(-1))
    planned = {b.name for b in compiled.plan.buffers.values() if b.place.kind is PlaceKind.PLANNED}
    for step in compiled.plan.steps:
        assert set(step.scratch) <= planned
