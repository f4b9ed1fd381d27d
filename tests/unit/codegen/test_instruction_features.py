"""Macros of features: one where instructions of two share a type of registers, which is declared once."""

from __future__ import annotations

from bytewright import ir
from bytewright.codegen.instructions import write_features, write_instructions
from bytewright.codegen.writer import Writer
from bytewright.ir.builder import BodyBuilder
from bytewright.ir.expr import BinaryOperator
from bytewright.lower.isa.mve.floats import MIXED
from bytewright.lower.isa.mve.floats import UNIT as FLOATS
from bytewright.lower.isa.mve.lanes import UNIT as INTEGERS

I32, F32 = ir.DType.I32, ir.DType.F32
SUM = INTEGERS.binaries[BinaryOperator.ADD, I32]
FLOAT_SUM = FLOATS.binaries[BinaryOperator.ADD, F32]
CONVERSION = MIXED.conversions[I32, F32]


def printed(*instructions: ir.Instruction) -> str:
    """What a file has whose one kernel calls these."""
    body = BodyBuilder()
    for instruction in instructions:
        registers = [
            body.register("value", p.buffer.shape[0], p.buffer.dtype, p.buffer.register)
            for p in instruction.parameters
            if isinstance(p, ir.BufferParameter) and isinstance(p.buffer.shape[0], int)
        ]
        body.execute(instruction, *registers)
    kernels = [ir.PrimFunc("m_k", (), body.finish())]
    writer = Writer()
    write_instructions(writer, kernels, write_features(writer, kernels, "m"))
    return writer.text()


def test_sets_that_share_a_type_need_the_features_of_both() -> None:
    text = printed(SUM, FLOAT_SUM, CONVERSION)
    assert f"#if {SUM.feature.condition} \\\n    && {CONVERSION.feature.condition}\n" in text
    assert text.count("#define M_HAS_") == 2  # 1 or 0
    assert text.count("typedef int32x4_t i32x4;") == text.count("} i32x4;") == 1
    assert text.count("#include <arm_mve.h>") == 1


def test_sets_that_share_none_have_macros_of_their_own() -> None:
    text = printed(SUM, FLOAT_SUM)
    assert text.count("#define M_HAS_MVE 1") == text.count("#define M_HAS_MVE_FLOAT 1") == 1
