"""Requirement P7: sizes known at run time become requests to planned arenas, which are as large as stated.

The modules are built by hand, because no model that is imported today asks for such scratch, and go the way of every
model: storage, planner, code generation, `check`, runs. What they compute, numpy says too (`support/open_scratch.py`).
"""

from __future__ import annotations

from pathlib import Path

import pytest

from bytewright.bundle.write import write_bundle
from bytewright.compiler.pipeline import compile_model
from bytewright.diagnostics import CompileError
from bytewright.execute.build import BuildOptions
from bytewright.execute.paranoid import run_paranoid
from bytewright.execute.run import run_batch
from bytewright.inspect.check import check_bundle
from bytewright.ir.builder import BodyBuilder, region
from bytewright.ir.scope import WORKSPACE, pool_scope
from bytewright.ir.storage import Storage
from bytewright.ir.text.modules import print_module
from bytewright.ir.types import DType, Symbol
from bytewright.record.plan_file import read_plan
from bytewright.target.registry import load_target
from support.arena_cases import (
    ALL_EXTENTS,
    CASES,
    HOST,
    WIDE,
    compiled,
    expected_of,
    outputs_shown,
    plain,
    program,
    values_of,
    written,
)
from support.c_program import run_c
from support.compilers import QUICK
from support.evaluate.evaluate import Evaluator
from support.hand_built import WHERE, module_of, reverse_kernel
from support.open_scratch import Scratch, open_kernel, rows_of, value_of

BUILD = BuildOptions(flags=("-O0",), sanitize=True, compiler="gcc")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "bundle"


# --- P7: offsets and requests


def test_p7_constant_sizes_become_offsets_and_open_sizes_requests() -> None:
    constant = reverse_kernel("mixed_c", 8, WORKSPACE)
    opened = open_kernel("mixed_o", [Scratch(), WIDE])
    eight = Symbol("rows", 8, 8)  # so that the tensors fit both kernels
    body = BodyBuilder(("x", "y", "rows"))
    middle = body.allocate(rows_of("t/out", eight), Storage(WORKSPACE))
    body.call("mixed_c", region(rows_of("x", eight)), region(middle), operators=("0",))
    body.call("mixed_o", region(middle), region(rows_of("y", eight)), value_of(eight), operators=("1",))
    scalars = [value_of(eight)]
    kernels = [constant, opened]
    module = module_of(
        "mixed", kernels, body.finish(), rows_of("x", eight), rows_of("y", eight), scalars=scalars
    )
    made = compile_model(module, HOST)
    buffers = made.plan.buffers
    found = {name: (b.place.kind, b.place.name, b.place.offset is None) for name, b in buffers.items()}
    assert found == {
        "x": ("caller", "x", True),
        "y": ("caller", "y", True),
        "arena": ("planned", "ram", False),
        "t/out": ("planned", "ram", False),
        "t/scratch0": ("planned", "ram", False),
        "y/scratch0": ("arena", "ram", True),
        "y/scratch1": ("arena", "ram", True),
    }
    assert {name: b.role for name, b in buffers.items() if b.place.kind == "arena"} == {
        "y/scratch0": "scratch",
        "y/scratch1": "scratch",
    }
    assert (buffers["arena"].role, buffers["arena"].size_bytes) == ("arena", 64 + 96)
    text = print_module(made.module)
    assert text.count('arena="arena"') == 2
    source = " ".join(made.files["src/mixed.c"].decode().split())
    assert "MIXED_AT_RAM_T__SCRATCH0 = " in source
    assert "MIXED_AT_RAM_Y__SCRATCH0" not in source
    assert "mixed_backend_alloc_workspace( context, MIXED_POOL_RAM, (uint64_t)rows * 12, 64)" in source


def test_p7_a_call_that_passes_a_constant_requests_nothing() -> None:
    inner = open_kernel("fixed_k", [WIDE])
    first, last = (rows_of(name, Symbol("rows", 5, 5)) for name in ("x", "y"))
    body = BodyBuilder(("x", "y", "rows"))
    body.call("fixed_k", region(first), region(last), 5, where=WHERE)
    scalars = [value_of(Symbol("rows", 5, 5))]
    made = compile_model(module_of("fixed", [inner], body.finish(), first, last, scalars=scalars), HOST)
    scratch = made.plan.buffers["y/scratch0"]
    assert (scratch.place.kind, scratch.size_bytes) == ("planned", 60)
    assert "src/fixed_backend.c" not in made.files
    assert "backend" not in made.files["include/fixed.h"].decode()


@pytest.mark.parametrize("name", CASES)
def test_p7_the_evaluator_agrees_with_numpy_before_and_after_planning(name: str) -> None:
    case = CASES[name]
    for module in (case.module, compiled(name).module):
        for rows in (1, 3, 8):
            given = {"x": values_of(rows), "rows": rows}
            result = Evaluator(module).run("main", given)["y"]
            assert result.tolist() == expected_of(case, rows)


@pytest.mark.run
@pytest.mark.parametrize("name", CASES)
def test_p7_requests_are_served_and_outputs_are_exact(name: str, folder: Path) -> None:
    case = CASES[name]
    written(name, folder)
    check_bundle(folder)
    extents = [8, 1, 5, 2, 8, 3]
    batch = [[values_of(rows)] for rows in extents]
    result = run_batch(folder, batch, options=BUILD, repeat=2)
    for rows, (output,) in zip(extents, result.outputs, strict=True):
        assert output.tolist() == expected_of(case, rows)


@pytest.mark.run
def test_p7_clang_and_the_largest_optimisation_agree(folder: Path) -> None:
    written("several", folder)
    for compiler, flags in (("clang", ("-O3",)), ("gcc", ("-O3", "-march=native"))):
        result = run_batch(folder, [[values_of(7)]], options=BuildOptions(flags=flags, compiler=compiler))
        assert result.outputs[0][0].tolist() == expected_of(CASES["several"], 7)


def test_p7_each_pool_has_its_own_arena() -> None:
    buffers = compiled("pools").plan.buffers
    places = {name: b.place.name for name, b in buffers.items() if b.place.kind == "arena"}
    assert places == {
        "t0/scratch0": "fast",
        "t0/scratch1": "ram",
        "t0/scratch2": "fast",
        "y/scratch0": "fast",
        "y/scratch1": "ram",
    }
    arenas = {b.place.name: (b.name, b.size_bytes) for b in buffers.values() if b.role == "arena"}
    assert arenas == {"fast": ("arena", 64), "ram": ("arena_2", 32)}


@pytest.mark.parametrize("name", CASES)
def test_p7_arenas_take_part_in_overlap_like_any_buffer(name: str) -> None:
    """Beside what lives while they serve, and over what does not."""
    plan = compiled(name).plan
    for arena in (b for b in plan.buffers.values() if b.role == "arena"):
        steps = [s for s in plan.steps if arena.name in s.scratch]
        assert arena.live == (steps[0].ticks[0] + 1, steps[-1].ticks[1] - 1)
    assert {pool.optimal for pool in plan.pools.values()} == {True}


# --- P7, P9: the arena is as large as stated, and no larger


@pytest.mark.run
@pytest.mark.parametrize("name", CASES)
def test_p7_an_arena_of_the_stated_size_serves_every_extent_and_one_byte_less_does_not(
    name: str, folder: Path, tmp_path: Path
) -> None:
    case = CASES[name]
    written(name, folder)
    shown = run_c(folder, program(case, ALL_EXTENTS), tmp_path / "whole")
    assert shown.pop("set") == 0
    for rows in range(1, 9):
        assert outputs_shown(shown, "y", rows) == expected_of(case, rows)
    assert shown == {}

    header = folder / "include" / f"{name}.h"
    text = header.read_text()
    for arena in (b for b in read_plan(folder).buffers.values() if b.role == "arena"):
        macro = f"#define {name.upper()}_{arena.place.name.upper()}_ARENA_SIZE"
        assert f"{macro} {arena.size_bytes}\n" in text
        less = f"{macro} {arena.size_bytes - 1}\n"
        header.write_text(text.replace(f"{macro} {arena.size_bytes}\n", less))
        shown = run_c(folder, program(case, ALL_EXTENTS), tmp_path / f"less_{arena.name}")
        assert shown == {"set": 0, "refused": 8}


@pytest.mark.run
@pytest.mark.parametrize("name", ["several", "nested"])
def test_p7_every_byte_of_an_arena_is_used(name: str, folder: Path, tmp_path: Path) -> None:
    """In one run or another: as many bytes change as the largest call requests, and the last one is among them."""
    case = CASES[name]
    written(name, folder)
    plan = read_plan(folder)
    (arena,) = (b for b in plan.buffers.values() if b.role == "arena")
    needed = 0
    for step in plan.steps:
        requests = [b for b in plan.buffers.values() if b.name in step.scratch and b is not arena]
        needed = max(needed, sum(b.size_bytes for b in requests if b.place.kind == "arena"))
    main = f"""
    SHOW("set", prepare());
    uint8_t *const arena = (uint8_t *)workspaces.ram.base + {arena.place.offset};
    uint8_t touched[{arena.size_bytes}] = {{0}};
    for (int pattern = 1; pattern < 256; pattern += 127) {{
        memset(arena, pattern, sizeof touched);
        SHOW(pattern == 1 ? "run" : pattern == 128 ? "again" : "last", run(@M@_ROWS_MAX));
        for (size_t i = 0; i < sizeof touched; ++i) {{
            touched[i] |= arena[i] != pattern;
        }}
    }}
    long count = 0;
    for (size_t i = 0; i < sizeof touched; ++i) {{
        count += touched[i];
    }}
    SHOW("touched", count);
    SHOW("last byte", touched[sizeof touched - 1]);
"""
    shown = run_c(folder, program(case, main), tmp_path)
    touched = shown.pop("touched")
    assert shown == {"set": 0, "run": 0, "again": 0, "last": 0, "last byte": 1}
    assert needed <= touched <= arena.size_bytes


@pytest.mark.run
@pytest.mark.parametrize("name", CASES)
def test_p7_a_paranoid_run_holds(name: str, folder: Path) -> None:
    case = CASES[name]
    written(name, folder)
    for rows in (8, 3):
        run = run_paranoid(folder, [values_of(rows)], options=QUICK)
        assert run.result.outputs[0].tolist() == expected_of(case, rows)


@pytest.mark.run
def test_p7_a_paranoid_run_finds_an_arena_that_is_not_where_it_is_planned(folder: Path) -> None:
    """The C serves requests from bytes past the arena, where a tensor lives."""
    written("several", folder)
    source = folder / "src" / "several.c"
    text = source.read_text()
    broken = text.replace(".base = ram + SEVERAL_AT_RAM_ARENA;", ".base = ram + SEVERAL_AT_RAM_ARENA + 64;")
    assert broken != text
    source.write_text(broken)
    with pytest.raises(CompileError) as caught:
        run_paranoid(folder, [values_of(8)], options=QUICK)
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code == "BW404"


# --- On a board


@pytest.mark.board
def test_p7_requests_on_the_board(folder: Path) -> None:
    """The arena lies in the memory of its pool; the output is numpy's."""
    target = load_target("mps3-an547")
    scratch = (
        Scratch(2, DType.I16, scope=pool_scope("isram")),
        Scratch(3, DType.I32, 256, pool_scope("dtcm")),
    )
    case = plain("board", scratch, scratch[::-1], target=target)
    write_bundle(compile_model(case.module, target).files, folder)
    check_bundle(folder)
    extents = [1, 8, 5]
    result = run_batch(folder, [[values_of(rows)] for rows in extents], on="qemu")
    for rows, (output,) in zip(extents, result.outputs, strict=True):
        assert output.tolist() == expected_of(case, rows)
    run = run_paranoid(folder, [values_of(7)], on="qemu")
    assert run.result.outputs[0].tolist() == expected_of(case, 7)
