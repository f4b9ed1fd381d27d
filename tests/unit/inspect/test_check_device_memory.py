"""C7: `check` proves that nothing of the entry's device comes near memory that devices obtain, and finds what does."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bytewright.diagnostics import CompileError
from bytewright.inspect.check import check_bundle
from bytewright.inspect.check_files import faults_of_files
from bytewright.inspect.check_plan import faults_of_plan
from bytewright.record.plan_file import document_of, plan_of, read_document, read_plan
from support.device_memory import PRIVATE, TARGET
from support.two_devices import bundle, compiled

SOURCE = "src/pair.c"
# The second half of a buffer there, then a half for each turn of a loop.
PARTS = (
    PRIVATE.replace(
        'allocate shifted : buffer<32xi32, "global.local">',
        'allocate shifted : buffer<64xi32, "global.local">',
    )
    .replace("pair_shifted(&shifted_near, &shifted)", "pair_shifted(&shifted_near, &shifted[32])")
    .replace("pair_narrow(&shifted, &narrow)", "pair_narrow(&shifted[32], &narrow)")
)
TURNS = PARTS.replace(
    "  call_extern pair_shifted(&shifted_near, &shifted[32])\n"
    "  call_extern pair_narrow(&shifted[32], &narrow)\n",
    "  for turn : i32 in 0 .. 2 {\n"
    "    call_extern pair_shifted(&shifted_near, &shifted[turn * 32])\n"
    "    call_extern pair_narrow(&shifted[turn * 32], &narrow)\n"
    "  }\n",
)


def refusal(directory: Path) -> str:
    with pytest.raises(CompileError) as caught:
        check_bundle(directory)
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code == "BW402"
    return "\n".join(diagnostic.notes)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        (PRIVATE, "lend_in(PAIR_MEMORY_LOCAL, PAIR_AT_LOCAL_SHIFTED, 128u, PAIR_SPAN_READ)"),
        (
            PARTS,
            "lend_in(PAIR_MEMORY_LOCAL, PAIR_AT_LOCAL_SHIFTED + (4u * (uint32_t)(32)), 128u, PAIR_SPAN_READ)",
        ),
        (
            TURNS,
            "lend_in(PAIR_MEMORY_LOCAL, PAIR_AT_LOCAL_SHIFTED + (4u * (uint32_t)(turn * 32)), 128u, PAIR_SPAN_READ)",
        ),
    ],
    ids=["whole", "parts", "turns"],
)
def test_c7_bundles_with_such_memory_verify(tmp_path: Path, text: str, place: str) -> None:
    folder = bundle(tmp_path / "pair", text, TARGET)
    assert place in (folder / SOURCE).read_text()
    assert check_bundle(folder).num_steps == 9


STEP = "        if (hand_over(&devices->core1, &call, (uint32_t)sizeof call, spans, 2u) != PAIR_OK) {\n"
ELSEWHERE = "outside of spans, but 'cpu' does not reach pool 'local'"


@pytest.mark.parametrize(
    ("old", "new", "text"),
    [
        pytest.param(
            STEP,
            f"        ((uint8_t *)spans[0].base)[0] = 1u;\n{STEP}",
            "reads the address of a span",
            id="base",
        ),
        pytest.param(
            STEP,
            f"        *(uint8_t *)(uintptr_t)PAIR_AT_LOCAL_NARROW = 1u;\n{STEP}",
            f"names PAIR_AT_LOCAL_NARROW {ELSEWHERE}",
            id="offset",
        ),
        pytest.param(
            STEP,
            f"        near[PAIR_MEMORY_LOCAL] = 1u;\n{STEP}",
            f"names PAIR_MEMORY_LOCAL {ELSEWHERE}",
            id="number",
        ),
        pytest.param(
            STEP,
            f"        context->local[0] = 1u;\n{STEP}",
            f"names local {ELSEWHERE}",
            id="member",
        ),
        pytest.param(
            STEP,
            f"        pair_local_workspace[0] = 1u;\n{STEP}",
            f"names pair_local_workspace {ELSEWHERE}",
            id="array",
        ),
        pytest.param(
            "{NULL, size_bytes, access, memory, offset}",
            "{(void *)(uintptr_t)offset, size_bytes, access, memory, offset}",
            "does not make spans of devices' memories as it is generated, without an address",
            id="address",
        ),
        pytest.param(
            " | PAIR_SPAN_OBTAIN",
            "",
            "does not lend device 'dma' 192 B at 'PAIR_MEMORY_LOCAL, 0u' as "
            "'PAIR_SPAN_READ | PAIR_SPAN_WRITE | PAIR_SPAN_OBTAIN'",
            id="obtained by nobody",
        ),
        pytest.param(
            "0u, 192u, PAIR_SPAN_READ | PAIR_SPAN_WRITE | PAIR_SPAN_OBTAIN",
            "0u, 191u, PAIR_SPAN_READ | PAIR_SPAN_WRITE | PAIR_SPAN_OBTAIN",
            "lends device 'dma' 191 B at 'PAIR_MEMORY_LOCAL, 0u'",
            id="one byte less",
        ),
        pytest.param(
            "lend_in(PAIR_MEMORY_LOCAL, PAIR_AT_LOCAL_SHIFTED, 128u, PAIR_SPAN_READ)",
            "lend_in(PAIR_MEMORY_LOCAL, PAIR_AT_LOCAL_FILTERED, 128u, PAIR_SPAN_READ)",
            "it begins at 'PAIR_AT_LOCAL_FILTERED', not at 'PAIR_AT_LOCAL_SHIFTED'",
            id="other buffer",
        ),
        pytest.param(
            "lend_in(PAIR_MEMORY_LOCAL, PAIR_AT_LOCAL_SHIFTED, 128u, PAIR_SPAN_READ)",
            "lend_in(PAIR_MEMORY_LOCAL, PAIR_AT_LOCAL_SHIFTED + (4u * (uint32_t)(1)), 128u, PAIR_SPAN_READ)",
            "of 'shifted': it begins 4 B into it, in the plan 0 B",
            id="other bytes",
        ),
        pytest.param(
            "lend_in(PAIR_MEMORY_LOCAL, PAIR_AT_LOCAL_SHIFTED, 128u, PAIR_SPAN_READ)",
            "lend(near + PAIR_AT_LOCAL_SHIFTED, 128u, PAIR_SPAN_READ)",
            "it is in memory 'None', not in 'PAIR_MEMORY_LOCAL'",
            id="address of the CPU",
        ),
    ],
)
def test_c7_check_finds_c_that_comes_near_it(tmp_path: Path, old: str, new: str, text: str) -> None:
    folder = bundle(tmp_path / "pair", PRIVATE, TARGET)
    before = (folder / SOURCE).read_text()
    assert old in before
    (folder / SOURCE).write_text(before.replace(old, new, 1))
    notes = refusal(folder)
    assert text in notes, notes


def test_c7_no_other_file_of_the_cpu_knows_of_it(tmp_path: Path) -> None:
    folder = bundle(tmp_path / "pair", PRIVATE, TARGET)
    path = folder / "src/pair_kernels.c"
    path.write_text(f"{path.read_text()}\nconst int peeked = PAIR_MEMORY_LOCAL;\n")
    plan, document = read_plan(folder), read_document(folder)
    faults = faults_of_files(folder, document, plan, plan_verifies=False)
    assert "src/pair_kernels.c knows of devices' memories" in faults


def _pool(document: dict[str, Any]) -> dict[str, Any]:
    return next(pool for pool in document["pools"] if pool["name"] == "local")


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (
            lambda d: _pool(d).pop("obtained_by"),
            "pool 'local' is obtained by 'None', and has to be by 'dma'",
        ),
        (
            lambda d: _pool(d).update(obtained_by="core1"),
            "pool 'local' is obtained by 'core1', and has to be by 'dma'",
        ),
        (
            lambda d: next(p for p in d["pools"] if p["name"] == "near").update(obtained_by="dma"),
            "pool 'near' is obtained by 'dma', and has to be by 'None'",
        ),
        (
            lambda d: next(b for b in d["buffers"] if b["name"] == "lent").update(role="arena"),
            "arena 'lent' is in pool 'local', to which there is no address",
        ),
    ],
)
def test_c7_check_proves_who_obtains_a_pool(damage: Callable[[dict[str, Any]], object], message: str) -> None:
    document = document_of(compiled(PRIVATE, TARGET).plan)
    assert faults_of_plan(plan_of(document)) == []
    damage(document)
    assert message in faults_of_plan(plan_of(document))
