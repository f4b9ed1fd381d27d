"""Requirement P12: what serves requests at run time: the bundle's own pair of functions, or the application's."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bytewright.bundle.write import write_bundle
from bytewright.compiler.pipeline import compile_model
from bytewright.diagnostics import CompileError
from bytewright.execute.build import BuildOptions
from bytewright.execute.description import read_bundle
from bytewright.execute.paranoid import run_paranoid
from bytewright.execute.run import run_batch
from bytewright.inspect.check import check_bundle
from bytewright.inspect.stack.check_stack import StackProof, check_stack
from bytewright.inspect.stack.compile_call_graphs import compile_call_graphs
from bytewright.ir.types import DType, Symbol
from bytewright.record.plan_file import read_plan
from support.arena_cases import (
    ALL_EXTENTS,
    CASES,
    HOST,
    PAIR,
    expected_of,
    num_requests,
    outputs_shown,
    own_pair,
    program,
    values_of,
    written,
)
from support.c_program import run_c
from support.open_scratch import Scratch, expected, open_chain, open_kernel
from support.shared_models import target_with

BUILD = BuildOptions(flags=("-O0",), sanitize=True, compiler="gcc")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "bundle"


@pytest.mark.run
@pytest.mark.parametrize("name", CASES)
def test_p12_the_application_may_serve_requests_from_its_heap(
    name: str, folder: Path, tmp_path: Path
) -> None:
    """Blocks of exactly the requested sizes: the sanitizers see a kernel that takes one byte more, and what is lost."""
    case = CASES[name]
    main = ALL_EXTENTS + 'SHOW("requests", requests);SHOW("live", live);SHOW("disordered", disordered);'
    shown = own_pair(name, folder, tmp_path / "program", main)
    for rows in range(1, 9):
        assert outputs_shown(shown, "y", rows) == expected_of(case, rows)
    assert shown == {"set": 0, "requests": 8 * num_requests(name), "live": 0, "disordered": 0}


@pytest.mark.run
@pytest.mark.parametrize("name", CASES)
def test_p12_a_refused_request_ends_the_run_with_everything_released(
    name: str, folder: Path, tmp_path: Path
) -> None:
    """The first, the second, each: the error is the same, nothing stays, and the context runs again."""
    total = num_requests(name)
    main = f"""
    SHOW("set", prepare());
    for (int k = 1; k <= {total}; ++k) {{
        forget();
        refused_at = k;
        printf("error.%d %d\\n", k, (int)(run(5) == @M@_ERROR_NO_MEMORY));
        printf("requests.%d %d\\n", k, requests);
        printf("releases.%d %d\\n", k, releases);
        printf("faults.%d %d\\n", k, live + disordered);
        forget();
        printf("after.%d %d\\n", k, (int)run(5));
        printf("all.%d %d\\n", k, releases);
    }}
    show_outputs("y", 5);
"""
    shown = own_pair(name, folder, tmp_path / "program", main)
    assert outputs_shown(shown, "y", 5) == expected_of(CASES[name], 5)
    assert shown.pop("set") == 0
    assert shown == {
        key: value
        for k in range(1, total + 1)
        for key, value in {
            f"error.{k}": 1,
            f"requests.{k}": k,  # and nothing is requested afterwards
            f"releases.{k}": k - 1,
            f"faults.{k}": 0,
            f"after.{k}": 0,
            f"all.{k}": total,
        }.items()
    }


@pytest.mark.run
def test_p12_an_error_of_a_release_ends_the_run_after_the_others(folder: Path, tmp_path: Path) -> None:
    total = num_requests("several")
    main = f"""
    SHOW("set", prepare());
    for (int k = 1; k <= {total}; ++k) {{
        forget();
        broken_at = k;
        printf("error.%d %d\\n", k, (int)run(4));
        printf("faults.%d %d\\n", k, live + disordered);
        printf("balance.%d %d\\n", k, requests - releases);
        printf("requests.%d %d\\n", k, requests);
    }}
"""
    shown = own_pair("several", folder, tmp_path / "program", main)
    assert shown.pop("set") == 0
    for k in range(1, total + 1):
        assert (shown[f"error.{k}"], shown[f"faults.{k}"], shown[f"balance.{k}"]) == (-77, 0, 0)
        assert shown[f"requests.{k}"] == (3 if k <= 3 else total)  # the first kernel requests three


@pytest.mark.run
def test_p12_a_request_says_which_pool_is_meant_and_how_it_must_lie(folder: Path, tmp_path: Path) -> None:
    main = """
    SHOW("set", prepare());
    SHOW("run", run(3));
    for (int i = 0; i < 3; ++i) {  /* what the last blocks were, the first call's */
        printf("pool.%d %d\\n", i, (int)blocks[i].pool);
        printf("size.%d %d\\n", i, (int)blocks[i].size_bytes);
    }
    SHOW("fast", @M@_POOL_FAST);
    SHOW("ram", @M@_POOL_RAM);
"""
    shown = own_pair("pools", folder, tmp_path / "program", main)
    fast, ram = shown["fast"], shown["ram"]
    assert fast != ram
    # The second call's two blocks, 3 B of int8 and 12 B of int16, and the third of the first call.
    assert [shown[f"pool.{i}"] for i in range(3)] == [fast, ram, fast]
    assert [shown[f"size.{i}"] for i in range(3)] == [3, 12, 12]


@pytest.mark.run
def test_p12_the_file_of_the_pair_may_be_left_out(folder: Path, tmp_path: Path) -> None:
    written("one", folder)
    (folder / "src" / "one_backend.c").unlink()
    source = program(CASES["one"], 'SHOW("set", prepare()); SHOW("run", run(6)); show_outputs("y", 6);', PAIR)
    shown = run_c(folder, source, tmp_path / "program")
    assert outputs_shown(shown, "y", 6) == expected_of(CASES["one"], 6)
    assert shown == {"set": 0, "run": 0}


# --- P12: the bundle's own pair


BAD_REQUESTS = """
    SHOW("early", @m@_backend_alloc_workspace(&context, @M@_POOL_RAM, 1, 1) == NULL);
    SHOW("set", prepare());
    SHOW("run", run(8));
    const uint64_t size = @M@_RAM_ARENA_SIZE;
    const int32_t ram = @M@_POOL_RAM;
    SHOW("no context", @m@_backend_alloc_workspace(NULL, ram, 1, 1) == NULL);
    SHOW("no pool", @m@_backend_alloc_workspace(&context, 99, 1, 1) == NULL);
    SHOW("alignment 0", @m@_backend_alloc_workspace(&context, ram, 1, 0) == NULL);
    SHOW("alignment 3", @m@_backend_alloc_workspace(&context, ram, 1, 3) == NULL);
    SHOW("alignment 2^32-1", @m@_backend_alloc_workspace(&context, ram, 1, UINT32_MAX) == NULL);
    SHOW("one byte too many", @m@_backend_alloc_workspace(&context, ram, size + 1, 1) == NULL);
    for (int back = 0; back < 130; ++back) {
        for (uint32_t alignment = 1; alignment != 0; alignment <<= 1) {
            if (@m@_backend_alloc_workspace(&context, ram, UINT64_MAX - (uint64_t)back, alignment) != NULL) {
                SHOW("nearly 2^64", back);
            }
        }
    }
    SHOW("4 GiB", @m@_backend_alloc_workspace(&context, ram, (uint64_t)1 << 32, 1) == NULL);
    SHOW("4 GiB and 1", @m@_backend_alloc_workspace(&context, ram, ((uint64_t)1 << 32) + 1, 1) == NULL);

    SHOW("free nothing", @m@_backend_free_workspace(&context, ram, &context) == @M@_ERROR_ORDER);
    uint8_t *const first = @m@_backend_alloc_workspace(&context, ram, 3, 1);
    uint8_t *const second = @m@_backend_alloc_workspace(&context, ram, 5, 16);
    SHOW("apart", second - first >= 3 && second - first < 19);
    SHOW("free NULL", @m@_backend_free_workspace(&context, ram, NULL) == @M@_ERROR_NULL);
    SHOW("free without context", @m@_backend_free_workspace(NULL, ram, second) == @M@_ERROR_NULL);
    SHOW("free from nowhere", @m@_backend_free_workspace(&context, 99, second) == @M@_ERROR_ORDER);
    SHOW("out of order", @m@_backend_free_workspace(&context, ram, first) == @M@_ERROR_ORDER);
    SHOW("inside", @m@_backend_free_workspace(&context, ram, second + 1) == @M@_ERROR_ORDER);
    SHOW("second", @m@_backend_free_workspace(&context, ram, second));
    SHOW("second again", @m@_backend_free_workspace(&context, ram, second) == @M@_ERROR_ORDER);
    SHOW("first", @m@_backend_free_workspace(&context, ram, first));
    SHOW("first again", @m@_backend_free_workspace(&context, ram, first) == @M@_ERROR_ORDER);

    uint8_t *const whole = @m@_backend_alloc_workspace(&context, ram, size, 64);
    SHOW("all of it", whole != NULL);
    memset(whole, 0, (size_t)size);
    SHOW("one more", @m@_backend_alloc_workspace(&context, ram, 1, 1) == NULL);
    SHOW("whole", @m@_backend_free_workspace(&context, ram, whole));
    for (int i = 0; i < @M@_ARENA_DEPTH; ++i) {
        if (@m@_backend_alloc_workspace(&context, ram, 1, 1) == NULL) {
            SHOW("too deep", i);
        }
    }
    SHOW("deeper", @m@_backend_alloc_workspace(&context, ram, 1, 1) == NULL);
    SHOW("run after all", run(8));
"""


@pytest.mark.run
def test_p12_the_bundles_pair_refuses_what_is_wrong(folder: Path, tmp_path: Path) -> None:
    """In a run after such faults everything is as always: a run begins with empty arenas."""
    written("several", folder)
    shown = run_c(folder, program(CASES["several"], BAD_REQUESTS), tmp_path / "program")
    succeeded = ("set", "run", "second", "first", "whole", "run after all")
    assert {name: shown.pop(name) for name in succeeded} == dict.fromkeys(succeeded, 0)
    refused = 21
    assert shown == dict.fromkeys(shown, 1)
    assert len(shown) == refused


@pytest.mark.run
def test_p12_any_power_of_two_is_kept_wherever_the_arena_lies(folder: Path, tmp_path: Path) -> None:
    """Also those above what the arena itself is aligned to, by absolute address."""
    written("several", folder)
    main = """
    SHOW("set", prepare());
    SHOW("run", run(1));
    const uint64_t size = @M@_RAM_ARENA_SIZE;
    long served = 0, wrong = 0;
    for (uint32_t alignment = 1; alignment != 0; alignment <<= 1) {
        for (uint64_t skipped = 0; skipped <= size; ++skipped) {
            void *const below = @m@_backend_alloc_workspace(&context, @M@_POOL_RAM, skipped, 1);
            uint8_t *const memory = @m@_backend_alloc_workspace(&context, @M@_POOL_RAM, 2, alignment);
            const uintptr_t arena = (uintptr_t)context.ram_arena.base;
            const uintptr_t first = (arena + skipped + alignment - 1) / alignment * alignment;
            const int fits = first + 2 <= arena + size;
            wrong += below == NULL || fits != (memory != NULL);
            if (memory != NULL) {
                served += 1;
                wrong += (uintptr_t)memory != first;
                memory[0] = memory[1] = 1;
                wrong += @m@_backend_free_workspace(&context, @M@_POOL_RAM, memory) != 0;
            }
            wrong += below != NULL && @m@_backend_free_workspace(&context, @M@_POOL_RAM, below) != 0;
        }
    }
    SHOW("served", served > 1000);
    SHOW("wrong", wrong);
"""
    shown = run_c(folder, program(CASES["several"], main), tmp_path / "program")
    assert shown == {"set": 0, "run": 0, "served": 1, "wrong": 0}


HUGE_MAIN = """
    SHOW("set", prepare());
    SHOW("run", run_few());
    const uint64_t size = @M@_RAM_ARENA_SIZE;
    SHOW("arena over 4 GiB", size > UINT32_MAX);
    uint8_t *const low = @m@_backend_alloc_workspace(&context, @M@_POOL_RAM, size - 16, 1);
    uint8_t *const high = @m@_backend_alloc_workspace(&context, @M@_POOL_RAM, 16, 16);
    SHOW("both", low != NULL && high != NULL);
    SHOW("apart", (uint64_t)(high - low) == size - 16);
    low[size - 17] = high[15] = 1;
    SHOW("full", @m@_backend_alloc_workspace(&context, @M@_POOL_RAM, 1, 1) == NULL);
    SHOW("freed", @m@_backend_free_workspace(&context, @M@_POOL_RAM, high)
                      + @m@_backend_free_workspace(&context, @M@_POOL_RAM, low));
"""


@pytest.mark.run
def test_p12_sizes_are_counted_in_64_bits(folder: Path, tmp_path: Path) -> None:
    """An arena of more than 4 GiB, of which the machine backs the few pages that are touched."""
    rows = Symbol("rows", 1, 1 << 28)
    kernel = open_kernel("huge_k", [Scratch(2, DType.I16, 32), Scratch(5, DType.I32, 64)], rows)
    made = compile_model(open_chain("huge", [kernel], rows=rows), HOST)
    plan = made.plan
    assert plan.buffers["arena"].size_bytes == (1 << 30) + 5 * (1 << 30)
    write_bundle(made.files, folder)
    check_bundle(folder)
    source = """
#include <sys/mman.h>
static @m@_context context;
static @m@_workspaces workspaces;
static int32_t prepare(void)
{
    workspaces.ram.size_bytes = @M@_RAM_WORKSPACE_SIZE;
    workspaces.ram.base = mmap(NULL, @M@_RAM_WORKSPACE_SIZE, PROT_READ | PROT_WRITE, MAP_FLAGS, -1, 0);
    return workspaces.ram.base == MAP_FAILED ? 1 : @m@_set_workspaces(&context, &workspaces);
}
static int32_t run_few(void)
{
    static int8_t x[3] = {5, -6, 7}, y[3];
    const @m@_inputs inputs = {x};
    const @m@_outputs outputs = {y};
    const int32_t status = @m@_run(&context, &inputs, &outputs, 3);
    for (int i = 0; i < 3; ++i) {
        printf("y.%d %d\\n", i, y[i]);
    }
    return status;
}
int main(void)
{
@MAIN@
    munmap(workspaces.ram.base, @M@_RAM_WORKSPACE_SIZE);
    return 0;
}
""".replace("@MAIN@", HUGE_MAIN)
    flags = ("-O1", "-D_DEFAULT_SOURCE", "-DMAP_FLAGS=MAP_PRIVATE|MAP_ANONYMOUS|MAP_NORESERVE")
    shown = run_c(folder, source, tmp_path / "program", (*flags, "-fsanitize=undefined"))
    case = ((Scratch(2, DType.I16, 32), Scratch(5, DType.I32, 64)),)
    values = expected(np.array([5, -6, 7], np.int8), case).tolist()
    assert [shown.pop(f"y.{i}") for i in range(3)] == values
    assert {name: shown.pop(name) for name in ("set", "run", "freed")} == {"set": 0, "run": 0, "freed": 0}
    assert shown == {"arena over 4 GiB": 1, "both": 1, "apart": 1, "full": 1}


@pytest.mark.run
def test_p12_contexts_of_their_own_have_arenas_of_their_own(folder: Path, tmp_path: Path) -> None:
    """What is known of requests stands in the context: one in mid-run is not disturbed by another."""
    written("one", folder)
    main = """
    SHOW("set", prepare());
    SHOW("run", run(2));
    void *const mine = @m@_backend_alloc_workspace(&context, @M@_POOL_RAM, 8, 16);
    static @m@_context saved;
    saved = context;
    memset(&context, 0, sizeof context);
    void *const lent = workspaces.ram.base;
    SHOW("other set", prepare());
    SHOW("other run", run(8));
    free(workspaces.ram.base);
    workspaces.ram.base = lent;
    SHOW("mine", mine != NULL);
    SHOW("still last", @m@_backend_free_workspace(&saved, @M@_POOL_RAM, mine));
"""
    shown = run_c(folder, program(CASES["one"], main), tmp_path / "program")
    assert shown.pop("mine") == 1
    assert shown == dict.fromkeys(("set", "run", "other set", "other run", "still last"), 0)


@pytest.mark.run
def test_p12_arenas_in_a_pool_that_the_c_declares(folder: Path) -> None:
    case = CASES["several"]
    generated = target_with("host", "ram=generated")
    write_bundle(compile_model(case.module, generated).files, folder)
    check_bundle(folder)
    result = run_batch(folder, [[values_of(6)]], options=BUILD)
    assert result.outputs[0][0].tolist() == expected_of(case, 6)
    run_paranoid(folder, [values_of(8)], options=BUILD)


# --- The stack


def stack_proof(folder: Path, flags: tuple[str, ...] = ("-O2",)) -> StackProof:
    bundle = read_bundle(folder)
    return check_stack(read_plan(folder), lambda more: compile_call_graphs(bundle, more), flags)


@pytest.mark.run
def test_p12_the_stack_is_proved_with_the_bundles_pair_and_with_a_declared_one(folder: Path) -> None:
    written("several", folder)
    plan = read_plan(folder)
    proof = stack_proof(folder)
    assert proof.measured.total_bytes <= plan.stack["cpu"].size_bytes
    own = ("-O2", "-DSEVERAL_OWN_BACKEND")
    with pytest.raises(CompileError) as caught:
        stack_proof(folder, own)
    messages = [diagnostic.message for diagnostic in caught.value.diagnostics]
    for function in ("several_backend_alloc_workspace", "several_backend_free_workspace"):
        assert f"the stack of '{function}', which 'several_run' calls, is not declared" in messages

    declared = replace(
        HOST,
        external_stacks=(
            *HOST.external_stacks,
            *(
                replace(HOST.external_stacks[0], symbol=f"several_backend_{verb}_workspace", size_bytes=9000)
                for verb in ("alloc", "free")
            ),
        ),
    )
    shutil.rmtree(folder)
    write_bundle(compile_model(CASES["several"].module, declared).files, folder)
    plan = read_plan(folder)
    assert plan.stack["cpu"].size_bytes == 9000 + 1024
    proof = stack_proof(folder, own)
    assert proof.measured.total_bytes > 9000
