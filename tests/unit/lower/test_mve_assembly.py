"""Registers of MVE's statements: of the classes that machine instructions accept, and never one for two."""

from __future__ import annotations

import re

import pytest

from bytewright import ir
from bytewright.diagnostics import InternalError
from bytewright.lower.isa.mve.assembly import Assembly, Registers
from bytewright.lower.isa.mve.convolve import convolve, sum_block
from bytewright.lower.isa.mve.scaling import Kind

SIZES = [(4, 1), (7, 6), (8, 70), (13, 9), (27, 8), (144, 5), (208, 8), (640, 128)]


def test_a_register_has_one_holder_until_it_is_free() -> None:
    assembly = Assembly()
    sums = assembly.take_all("sum", 8, Registers.EVEN)
    assert sorted(sums) == ["lr", "r0", "r10", "r12", "r2", "r4", "r6", "r8"]
    with pytest.raises(
        InternalError, match=r"no register of EVEN is left for 'more' \(r0: sum 0, .*lr: sum 7\)"
    ):
        assembly.take("more", Registers.EVEN)
    assert assembly.take("address", Registers.LOW) == "r1"
    assembly.free("r4")
    assert assembly.take("more", Registers.EVEN) == "r4"


def test_registers_wait_in_a_vector_and_come_back() -> None:
    assembly = Assembly()
    pair = assembly.take_all("pointer", 2, Registers.GENERAL)
    vector = assembly.take("parked", Registers.VECTOR)
    with assembly.parked(pair, vector, (3, 1)):
        own = assembly.take_all("other", 2, Registers.GENERAL)
        assert own == pair
        assembly.free(*own)
    assert re.findall(r'"(vmov .*)\\n"', assembly.text()) == [
        "vmov q0[3], q0[1], r1, r3",
        "vmov r1, r3, q0[3], q0[1]",
    ]
    with (
        pytest.raises(InternalError, match="r1 of 'pointer 0' is still that of 'other'"),
        assembly.parked(pair, vector, (3, 1)),
    ):
        assembly.take("other", Registers.GENERAL)


def instructions() -> list[ir.Instruction]:
    whole = [convolve(num, *size, kind) for num in (1, 2) for size in SIZES for kind in Kind]
    whole += [convolve(1, *size, Kind.AWAY, is_uniform=True) for size in SIZES]
    return [*whole, *(sum_block(num, depth) for num in (1, 2) for depth, _ in SIZES)]


def test_instructions_get_registers_that_they_accept() -> None:
    """Of the Armv8-M manual: RdaLo of VMLADAV is even; what widens or narrows has its address in r0 to r7."""
    for instruction in instructions():
        text = instruction.text
        sums = re.findall(r"vmladava?\.s\d+ (\w+),", text)
        assert sums
        assert all(each == "lr" or int(each[1:]) % 2 == 0 for each in sums)
        addresses = re.findall(r"v(?:ldrb\.s|strb\.)(?:16|32) q\d, \[(\w+)", text)
        assert all(int(each[1:]) < 7 for each in addresses)
        assert not re.search(r"\br7\b", text)


def test_what_a_statement_changes_is_named() -> None:
    for instruction in instructions():
        lines = "\n".join(re.findall(r'^    "(.*)\\n"$', instruction.text, re.MULTILINE))
        used = set(re.findall(r"\b(r\d+|q\d|lr)\b", lines))
        bound = set(re.findall(r'__asm__\("(\w+)"\)', instruction.text))
        clobbers = instruction.text[instruction.text.rindex("    : ") :]
        assert used <= bound | set(re.findall(r'"(\w+)"', clobbers))
