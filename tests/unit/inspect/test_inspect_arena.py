"""`check_bundle` on a bundle with arenas: each way in which plan or C could be wrong about requests, one test a kind.

And what reports say of them.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bytewright.diagnostics import CompileError
from bytewright.inspect.c_nodes import spell
from bytewright.inspect.c_source import CSource
from bytewright.inspect.check import check_bundle
from bytewright.inspect.read_entry import read_entry
from bytewright.record.names import Names
from bytewright.report.explain import explain
from bytewright.report.memory import use_over_time
from bytewright.report.places import place_text
from support.arena_cases import compiled, written
from support.digits_bundle import change_file, write_document
from support.views import explanation_lines, report_text

Document = dict[str, Any]
SOURCE, HEADER = "src/several.c", "include/several.h"


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    return written("several", tmp_path / "bundle")


def faults(directory: Path, code: str) -> str:
    with pytest.raises(CompileError) as caught:
        check_bundle(directory)
    assert caught.value.exit_code == 4
    return {d.code: "\n".join(d.notes) for d in caught.value.diagnostics}[code]


def plan_faults(directory: Path, change: Callable[[Document], None]) -> str:
    """What is said of a plan that was changed and hashed again."""
    document = copy.deepcopy(compiled("several").document)
    change(document)
    write_document(directory, document)
    return faults(directory, "BW401")


def buffer(document: Document, name: str) -> Document:
    return next(b for b in document["buffers"] if b["name"] == name)


@pytest.mark.parametrize("name", ["one", "several", "aligned", "nested", "pools"])
def test_bundles_as_compiled_verify(name: str, tmp_path: Path) -> None:
    assert check_bundle(written(name, tmp_path / "bundle")).num_steps > 0


# The plan


@pytest.mark.parametrize("change", [-1, 1])
def test_an_arena_of_another_size_than_its_calls_need_is_found(bundle: Path, change: int) -> None:
    def resize(document: Document) -> None:
        buffer(document, "arena")["size_bytes"] += change

    found = plan_faults(bundle, resize)
    assert f"arena 'arena' has {160 + change} B, its calls need 160 B at once" in found


def test_a_request_that_grew_is_found(bundle: Path) -> None:
    def grow(document: Document) -> None:
        buffer(document, "t0/scratch2")["size_bytes"] += 1

    assert "arena 'arena' has 160 B, its calls need 161 B at once" in plan_faults(bundle, grow)


def test_a_request_that_its_arena_cannot_align_is_found(bundle: Path) -> None:
    def align(document: Document) -> None:
        buffer(document, "t0/scratch0")["alignment"] = 128

    assert "'t0/scratch0' is aligned to 128, its arena to 64" in plan_faults(bundle, align)


def test_a_request_without_an_arena_is_found(bundle: Path) -> None:
    def demote(document: Document) -> None:
        buffer(document, "arena")["role"] = "scratch"

    assert "pool 'ram' has 0 arenas for what is requested from it" in plan_faults(bundle, demote)


def test_two_arenas_in_a_pool_are_found(bundle: Path) -> None:
    def promote(document: Document) -> None:
        buffer(document, "t0/out")["role"] = "arena"

    assert "pool 'ram' has 2 arenas for what is requested from it" in plan_faults(bundle, promote)


def test_a_request_with_an_offset_is_found(bundle: Path) -> None:
    def place(document: Document) -> None:
        buffer(document, "t0/scratch0")["place"]["offset"] = 0

    found = plan_faults(bundle, place)
    assert "'t0/scratch0' has an offset, or is not in a workspace pool" in found


def test_a_tensor_is_never_requested(bundle: Path) -> None:
    def request(document: Document) -> None:
        buffer(document, "t0/out")["place"] = {"kind": "arena", "name": "ram", "offset": None}

    assert "tensor 't0/out' has a place of kind 'arena'" in plan_faults(bundle, request)


def test_an_arena_that_is_dead_when_it_serves_is_found(bundle: Path) -> None:
    def shorten(document: Document) -> None:
        buffer(document, "arena")["live"] = [1, 2]

    assert "step 1 touches 'arena', which lives from 1 to 2" in plan_faults(bundle, shorten)


def test_a_step_that_requests_and_does_not_touch_the_arena_is_found(bundle: Path) -> None:
    def forget(document: Document) -> None:
        step = document["steps"][1]
        step["scratch"] = [name for name in step["scratch"] if name != "arena"]
        del step["alive"]["arena"]

    assert "step 1 requests 2 buffers, and arena 'arena' is not there for it" in plan_faults(bundle, forget)


# The C


# The request as it stands in the C, in any spacing, and what it might have been instead.
REQUEST = re.compile(r"\(uint64_t\)rows \* 12,\s+64\)")
DAMAGES = [
    "(uint64_t)rows * 11, 64)",
    "(uint64_t)rows * 12, 32)",
    "(uint64_t)other * 12, 64)",
    "(uint64_t)(rows + 1) * 12, 64)",
    "12, 64)",
]


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_request_of_another_size_or_alignment_is_found(bundle: Path, damage: str) -> None:
    found = REQUEST.search((bundle / SOURCE).read_text())
    assert found is not None
    change_file(bundle, SOURCE, found[0], damage)
    assert f"{SOURCE} does not request and release what the plan says: request_t0__scratch2" in faults(
        bundle, "BW402"
    )


def test_a_request_from_another_pool_is_found(bundle: Path) -> None:
    change_file(bundle, SOURCE, "SEVERAL_POOL_RAM", "SEVERAL_POOL_OTHER")
    assert f"{SOURCE} does not request and release what the plan says" in faults(bundle, "BW402")


def test_a_release_that_is_missing_is_found(bundle: Path) -> None:
    release = "several_backend_free_workspace(context, SEVERAL_POOL_RAM, request_t0__scratch2)"
    change_file(bundle, SOURCE, release, "SEVERAL_OK")
    assert "does not request and release what the plan says: request_t0__scratch2" in faults(bundle, "BW402")


def test_releases_in_another_order_are_found(bundle: Path) -> None:
    first, second = (f"SEVERAL_POOL_RAM, request_t0__scratch{index})" for index in (1, 2))
    text = (bundle / SOURCE).read_text()
    assert first in text
    swapped = text.replace(first, "@").replace(second, first).replace("@", second)
    change_file(bundle, SOURCE, text, swapped)
    assert "does not request and release what the plan says: their order" in faults(bundle, "BW402")


def test_a_call_with_another_request_is_found(bundle: Path) -> None:
    change_file(bundle, SOURCE, "(int32_t *)request_t0__scratch2", "(int32_t *)request_t0__scratch1")
    assert "step 0: plan and call differ in request_t0__scratch2" in faults(bundle, "BW402")


def test_a_header_with_another_arena_is_found(bundle: Path) -> None:
    change_file(bundle, HEADER, "SEVERAL_RAM_ARENA_SIZE 160", "SEVERAL_RAM_ARENA_SIZE 159")
    assert "states SEVERAL_RAM_ARENA_SIZE 159, the plan 160" in faults(bundle, "BW402")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("base = ram + SEVERAL_AT_RAM_ARENA;", "base = ram + SEVERAL_AT_RAM_T0__OUT;"),
        ("base = ram + SEVERAL_AT_RAM_ARENA;", "base = ram + SEVERAL_AT_RAM_ARENA + 1;"),
        ("size_bytes = SEVERAL_RAM_ARENA_SIZE;", "size_bytes = SEVERAL_RAM_WORKSPACE_SIZE;"),
        ("context->ram_arena.base", "context->other_arena.base"),
    ],
)
def test_an_arena_that_begins_or_ends_elsewhere_is_found(bundle: Path, old: str, new: str) -> None:
    change_file(bundle, SOURCE, old, new)
    assert f"{SOURCE} does not set the arenas of the plan: ram" in faults(bundle, "BW402")


def test_requests_are_read_in_order_over_lines_or_not() -> None:
    source = """
int32_t m_run(m_context *context, int32_t n) {
        void *const request_a = m_backend_alloc_workspace(context, M_POOL_RAM, (uint64_t)n * 4, 16);
            void *const request_b = m_backend_alloc_workspace(
                context,
                M_POOL_FAST,
                (uint64_t)n * (uint64_t)k * 2,
                4096);
                m_k(inputs->x, (int8_t *)request_a, (int8_t *)request_b);
                request_status = first_error(
                    request_status,
                    m_backend_free_workspace(context, M_POOL_FAST, request_b));
            request_status = first_error(request_status, m_backend_free_workspace(context, M_POOL_RAM, request_a));
}
"""
    entry = read_entry(CSource(source), Names("m"))
    assert [
        (text.name, text.pool, text.size and spell(text.size), text.alignment) for text in entry.requests
    ] == [
        ("request_a", "M_POOL_RAM", "(uint64_t)n * 4", 16),
        ("request_b", "M_POOL_FAST", "(uint64_t)n * (uint64_t)k * 2", 4096),
        ("request_b", "M_POOL_FAST", None, None),
        ("request_a", "M_POOL_RAM", None, None),
    ]
    (call,) = entry.calls
    assert (call.kernel, call.names) == ("m_k", frozenset({"inputs->x", "request_a", "request_b"}))


# Reports


def test_an_explanation_says_why_a_request_has_no_offset() -> None:
    plan = compiled("several").plan
    lines = explanation_lines(plan, "t0/scratch1")
    assert "  where    arena of ram" in lines
    assert "           place_scratch: 'several_k0' is called with rows = rows[1..8]" in lines
    assert "           make_arenas: requested from 'arena' around its call" in lines
    assert "  ram at an offset: it is requested at run time, around its call" in lines
    assert (
        "  the stack: its size is known only at run time, or use-backend-alloc-workspace keeps it off"
        in lines
    )


def test_an_explanation_names_who_uses_an_arena() -> None:
    plan = compiled("several").plan
    explanation = explain(plan, plan.buffers["arena"])
    assert [(use.step.index, use.how) for use in explanation.uses] == [(0, "works in"), (1, "works in")]
    assert {other.name for other in explanation.neighbours} == {"t0/out", "t1/out"}
    pools = compiled("pools").plan
    why = dict(explain(pools, pools.buffers["y/scratch0"]).elsewhere)
    assert why["ram"].startswith(
        "not a candidate: the scope that it came with, or what it shares the arena with"
    )


def test_an_arena_counts_once_in_the_bytes_of_its_pool() -> None:
    plan = compiled("several").plan
    use = use_over_time(plan, plan.pools["ram"])
    assert use.peak_bytes <= plan.pools["ram"].used_bytes
    assert use.live_bytes == (160 + 8, 160 + 8, 8)  # of a step its tensors, in turn
    assert place_text(plan.buffers["t1/scratch0"]) == "arena of ram"
    assert "arena of ram" in report_text(plan)
