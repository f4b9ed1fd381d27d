"""Programs that use bundles with arenas, and the hand-built modules that these come from (`open_scratch.py`).

A program sets workspaces of exactly the stated sizes, fills the input with `values_of`, and runs; where it brings its
own pair of functions for requests, each request is a block of its own from the heap, which the sanitizers guard.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from bytewright.bundle.write import write_bundle
from bytewright.compiler.pipeline import Compiled, compile_model
from bytewright.ir.module import Module
from bytewright.ir.scope import WORKSPACE, pool_scope
from bytewright.ir.types import DType, Symbol
from bytewright.target import load_text
from bytewright.target.model import Target
from bytewright.target.options import Overrides, apply_overrides
from bytewright.target.registry import load_target
from support.c_program import SANITIZED, run_c
from support.open_scratch import ROWS, Scratch, expected, open_chain, open_kernel, outer_kernel

HOST = load_target("host")
TWO_POOLS = load_text(
    """
name = "two"
[memory.fast]
size = "64KiB"
[memory.ram]
size = "1MiB"
[memory.rom]
size = "1MiB"
access = "r"
[device.cpu]
isa = "host"
reach = ["fast", "ram", "rom"]
stack = "ram"
stack-allowance-per-call = 1024
[[workspace]]
name = "fast"
memory = "fast"
size = "8KiB"
[[workspace]]
name = "ram"
memory = "ram"
size = "64KiB"
[[parameters]]
name = "rodata"
memory = "rom"
""",
    "two.toml",
)
ALIGNMENTS = (1, 2, 8, 32, 512, 4096)
WIDE = Scratch(3, DType.I32, 64)


@dataclass(frozen=True, slots=True)
class Case:
    """A module and the scratch of the kernels that run one after another in it."""

    module: Module
    scratch: tuple[tuple[Scratch, ...], ...]
    target: Target = HOST

    @property
    def name(self) -> str:
        return self.module.name


def plain(
    name: str,
    *scratch: Sequence[Scratch],
    target: Target = HOST,
    rows: Symbol = ROWS,
    passed: int | None = None,
) -> Case:
    """A chain of kernels, each with some scratch."""
    kernels = [open_kernel(f"{name}_k{index}", arrays) for index, arrays in enumerate(scratch)]
    return Case(open_chain(name, kernels, rows=rows, passed=passed), tuple(map(tuple, scratch)), target)


def nested(
    name: str = "nested", target: Target = HOST, rows: Symbol = ROWS, passed: int | None = None
) -> Case:
    inner, leaf = open_kernel(f"{name}_inner", [WIDE]), open_kernel(f"{name}_leaf", [Scratch(2)])
    middle = outer_kernel(f"{name}_middle", [inner, leaf])
    outer = outer_kernel(f"{name}_outer", [middle, inner, leaf])
    module = open_chain(name, [outer, leaf], [inner, leaf, middle], rows, passed)
    scratch = ((WIDE,), (Scratch(2),), (WIDE,), (Scratch(2),), (Scratch(2),))
    return Case(module, scratch, target)


def in_pools() -> Case:
    fast, ram = (Scratch(2, DType.I16, scope=pool_scope(pool)) for pool in ("fast", "ram"))
    anywhere = Scratch(scope=WORKSPACE)
    return plain("pools", [fast, ram, fast], [anywhere, ram], target=TWO_POOLS)


CASES = {
    case.name: case
    for case in (
        plain("one", [Scratch()]),
        plain("several", [Scratch(), Scratch(3, DType.I16, 2), WIDE], [WIDE, Scratch()], []),
        plain("aligned", [Scratch(alignment=a) for a in ALIGNMENTS], [Scratch(5, alignment=4096)]),
        nested(),
        in_pools(),
    )
}


# Programs whose scratch has constant sizes, for eight rows, on a device that requests it all the same.
EIGHT = Symbol("rows", 8, 8)
BACKEND = apply_overrides(HOST, Overrides(use_backend_alloc_workspace=True))
_ALL_PLANNED = (Scratch(scope=WORKSPACE), Scratch(3, DType.I16, scope=pool_scope("ram")))
FIXED_CASES = {
    case.name: case
    for case in (
        plain("fixed_one", [Scratch()], target=BACKEND, rows=EIGHT, passed=8),
        plain(
            "fixed_several",
            [Scratch(), Scratch(3, DType.I16, 2), WIDE],
            [WIDE, Scratch(scope=None)],
            [],
            target=BACKEND,
            rows=EIGHT,
            passed=8,
        ),
        nested("fixed_nested", BACKEND, EIGHT, 8),
        plain("fixed_some", [*_ALL_PLANNED, Scratch(5)], _ALL_PLANNED, target=BACKEND, rows=EIGHT, passed=8),
        plain("fixed_beside", [Scratch(7, DType.I32)], [WIDE], target=BACKEND, rows=EIGHT),
    )
}


def case_of(name: str) -> Case:
    return CASES.get(name) or FIXED_CASES[name]


@cache
def compiled(name: str) -> Compiled:
    case = case_of(name)
    return compile_model(case.module, case.target)


def written(name: str, folder: Path) -> Path:
    write_bundle(compiled(name).files, folder)
    return folder


def values_of(rows: int) -> np.ndarray:
    """What the programs below compute as well."""
    return (37 * np.arange(rows) - 90).astype(np.int8)


def expected_of(case: Case, rows: int) -> list[int]:
    return expected(values_of(rows), case.scratch).tolist()


DRIVER = """
static @m@_context context;
static @m@_workspaces workspaces;
static int8_t x[@M@_ROWS_MAX], y[@M@_ROWS_MAX];

static inline int32_t run(int32_t rows)
{
    const @m@_inputs inputs = {x};
    const @m@_outputs outputs = {y};
    for (int i = 0; i < @M@_ROWS_MAX; ++i) {
        x[i] = (int8_t)(37 * i - 90);
    }
    memset(y, 0, sizeof y);
    return @m@_run(&context, &inputs, &outputs, rows);
}

static inline void show_outputs(const char *what, int32_t rows)
{
    for (int32_t i = 0; i < rows; ++i) {
        printf("%s.%d.%d %d\\n", what, (int)rows, (int)i, y[i]);
    }
}

static int32_t prepare(void)
{
    @LEND@
    return @m@_set_workspaces(&context, &workspaces);
}

static void finish(void)
{
    @RETURN@
}
"""


def program(case: Case, main: str, before: str = "") -> str:
    """A program with the driver, and memory for the pools that is exactly as large as stated."""
    pools = [pool.identifier for pool in case.target.workspace_pools]
    lend = "\n    ".join(
        f"workspaces.{p}.size_bytes = @M@_{p.upper()}_WORKSPACE_SIZE;\n    workspaces.{p}.base = "
        f"block(@M@_{p.upper()}_WORKSPACE_ALIGN, @M@_{p.upper()}_WORKSPACE_SIZE);"
        for p in pools
    )
    driver = DRIVER.replace("@LEND@", lend)
    driver = driver.replace("@RETURN@", "\n    ".join(f"free(workspaces.{p}.base);" for p in pools))
    return f"{before}{driver}\nint main(void)\n{{\n{main}\n    finish();\n    return 0;\n}}\n"


def outputs_shown(shown: dict[str, int], what: str, rows: int) -> list[int]:
    return [shown.pop(f"{what}.{rows}.{i}") for i in range(rows)]


ALL_EXTENTS = """
    SHOW("set", prepare());
    for (int32_t rows = @M@_ROWS_MAX; rows >= 1; --rows) {
        if (run(rows) != 0) {
            SHOW("refused", rows);
            break;
        }
        show_outputs("y", rows);
    }
"""


PAIR = """
static int live, requests, releases, refused_at, broken_at, disordered;
static struct { void *memory; int32_t pool; uint64_t size_bytes; } blocks[16];

void *@m@_backend_alloc_workspace(@m@_context *context, int32_t pool, uint64_t size_bytes, uint32_t alignment)
{
    (void)context;
    requests += 1;
    if (requests == refused_at) {
        return NULL;
    }
    blocks[live].memory = block(alignment, (size_t)size_bytes);
    blocks[live].pool = pool;
    blocks[live].size_bytes = size_bytes;
    live += 1;
    return blocks[live - 1].memory;
}

int32_t @m@_backend_free_workspace(@m@_context *context, int32_t pool, void *memory)
{
    (void)context;
    releases += 1;
    live -= 1;
    disordered += live < 0 || blocks[live].memory != memory || blocks[live].pool != pool;
    free(memory);
    return releases == broken_at ? -77 : 0;
}

static inline void forget(void)
{
    live = requests = releases = refused_at = broken_at = disordered = 0;
}
"""


def own_pair(name: str, folder: Path, program_folder: Path, main: str) -> dict[str, int]:
    """What a program shows that brings its own pair, from malloc, with the sanitizers."""
    written(name, folder)
    source = program(case_of(name), main, "@PAIR@").replace("@PAIR@", PAIR)
    return run_c(folder, source, program_folder, (*SANITIZED, f"-D{name.upper()}_OWN_BACKEND"))


def num_requests(name: str) -> int:
    plan = compiled(name).plan
    return sum(b.place.kind == "arena" for b in plan.buffers.values())
