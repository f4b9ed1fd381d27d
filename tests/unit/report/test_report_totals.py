"""The total of each memory: pools, stacks, the application's tensors and the code, each where it is to lie."""

from __future__ import annotations

import dataclasses

import pytest

from bytewright import ir
from bytewright.compiler.pipeline import compile_model
from bytewright.elf.sizes import SectionSizes
from bytewright.options import Options
from bytewright.record.plan import Plan
from bytewright.report.by_memory import ANYWHERE, MemoryUse, border_bytes, use_by_memory, use_elsewhere
from bytewright.report.code import Code
from bytewright.report.report_view import report_view
from bytewright.show.as_json import document_of
from bytewright.target.registry import load_target
from support.digits_bundle import DIGITS, digits_plan
from support.views import report_document, text_of

CODE = SectionSizes(text_bytes=1000, rodata_bytes=200, data_bytes=30, bss_bytes=4)


def uses_of(plan: Plan, code: SectionSizes | None = None) -> dict[str, MemoryUse]:
    return {use.name: use for use in (*use_by_memory(plan, code), use_elsewhere(plan, code))}


def test_the_callers_tensors_may_lie_anywhere() -> None:
    plan = digits_plan()  # 8 x 8 pixels and ten scores, a byte each
    assert (border_bytes(plan, ir.Border.INPUT), border_bytes(plan, ir.Border.OUTPUT)) == (64, 10)
    assert uses_of(plan)[ANYWHERE] == MemoryUse(ANYWHERE, caller_bytes=74)
    document = report_document(plan)
    assert document["caller_bytes"] == {"inputs": 64, "outputs": 10}
    assert [(row["name"], row["used_bytes"]) for row in document["elsewhere"]] == [(ANYWHERE, 74)]


@pytest.mark.parametrize(("io", "given"), [(ir.Io.WORKSPACE, 0), (ir.Io.ROWS, 8 + 10)])
def test_what_is_planned_is_not_the_callers_and_of_rows_it_has_one(io: ir.Io, given: int) -> None:
    plan = compile_model(DIGITS, load_target("mps3-an547"), Options(io=io)).plan
    assert uses_of(plan)[ANYWHERE].used_bytes == given
    assert ("elsewhere" in report_document(plan)) == bool(given)


def test_code_is_kept_where_nothing_is_written() -> None:
    plan = digits_plan()
    before, after = uses_of(plan), uses_of(plan, CODE)
    fixed = [memory.name for memory in plan.hardware.memories if not memory.is_writable]
    assert len(fixed) == 1
    assert after[fixed[0]].used_bytes - before[fixed[0]].used_bytes == 1000 + 200 + 30
    assert after[ANYWHERE].used_bytes - before[ANYWHERE].used_bytes == 30 + 4


def test_where_no_memory_is_fixed_code_may_be_anywhere() -> None:
    plan = digits_plan()
    memories = tuple(
        dataclasses.replace(memory, access=type(memory.access).READ_WRITE)
        for memory in plan.hardware.memories
    )
    plan = dataclasses.replace(plan, hardware=dataclasses.replace(plan.hardware, memories=memories))
    uses = uses_of(plan, CODE)
    assert uses[ANYWHERE].code_bytes == 1234
    assert sum(use.code_bytes for use in uses.values()) == 1234


def test_a_total_is_the_sum_of_its_row_beside_the_size() -> None:
    plan = digits_plan()
    view = report_view(plan, Code(CODE, "cc -O2"))
    document = document_of(view)
    sizes = {memory.name: memory.size_bytes for memory in plan.hardware.memories}
    kinds = ("workspace", "state", "parameter", "stack", "caller", "code")
    for row in document["memories"]:
        assert row["used_bytes"] == sum(row[f"{kind}_bytes"] for kind in kinds)
        assert row["size_bytes"] == sizes[row["name"]]
        assert row["used_bytes"] + row["free_bytes"] == row["size_bytes"]
    assert document["code"] == {
        "text_bytes": 1000,
        "rodata_bytes": 200,
        "data_bytes": 30,
        "bss_bytes": 4,
        "by": "cc -O2",
    }
    assert "code 1234 B: text 1000 B, rodata 200 B, data 30 B, bss 4 B, by cc -O2" in text_of(view)
    (row,) = [line.split() for line in text_of(view).splitlines() if line.split()[:1] == [ANYWHERE]]
    assert row == [ANYWHERE, "0", "0", "0", "74", "34", "108"]


def test_why_there_is_no_code_is_a_line() -> None:
    view = report_view(digits_plan(), Code(None, "", "'x-gcc' is not installed; install it"))
    assert "code: not known, 'x-gcc' is not installed; install it\n" in text_of(view)
    assert document_of(view)["code"] == {"missing": "'x-gcc' is not installed; install it"}
