"""Random programs of kernels and an entry: what the compiled C computes is what the evaluator says, on 64 and 32 bits.

The C runs with the address and undefined behaviour sanitizers, its workspaces, inputs and outputs in allocations of
exactly their size. The workspace of small programs is compared with the least that any order of placing gives.
`BYTEWRIGHT_TESTS=thorough` runs 2,000 programs, a quarter of them on 32 bits, otherwise a few.
"""

from __future__ import annotations

from functools import cache
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bytewright.compiler.pipeline import compile_model
from bytewright.ir.border import Io
from bytewright.ir.module import Module
from bytewright.ir.text.modules import module_data, print_module
from bytewright.options import Options
from bytewright.target import Target, load_target
from bytewright.target.options import Overrides, apply_overrides, parse_pool_option
from support.evaluate.evaluate import Evaluator
from support.many_models import SANITIZERS, Array, Job, build
from support.parsing import parse_module
from support.random_programs import RandomProgram, random_arguments
from support.senseless import SENSELESS
from support.tiers import THOROUGH, share, some

NUM_PROGRAMS = 400 if THOROUGH else 30
BATCH = 50  # programs in one executable
MOST_BUFFERS = 6  # that all orders of placing are tried for
POOLS = ("fast", "middle", "slow")
WIDTHS = {
    64: ("gcc", ("-O0", *SENSELESS)),
    # Floats in SSE registers: those of the x87 have more bits than the evaluator.
    32: ("clang", ("-m32", "-msse2", "-mfpmath=sse", "-O0", *SENSELESS)),
}


def conditions(seed: int) -> tuple[Target, tuple[str, ...], Io]:
    """One to three pools, stacks that admit much or nothing, and inputs and outputs on either side."""
    names = POOLS[: 1 + seed % 3]
    overrides = Overrides(
        workspace=tuple(parse_pool_option(f"{name}=64KiB@ram") for name in names),
        max_stack_alloca_size=(0, 16, 64, 1024)[seed // 3 % 4],
        use_backend_alloc_workspace=None,
    )
    io = Io.WORKSPACE if seed // 12 % 3 == 0 else Io.CALLER
    return apply_overrides(load_target("host"), overrides), names, io


@cache
def case(seed: int) -> tuple[Module, Job, list[Array]]:
    """A program, compiled, and what the evaluator computes."""
    target, names, io = conditions(seed)
    module = RandomProgram(seed, names).module()
    inputs = random_arguments(module, seed)
    given = {port.name: array for port, array in zip(module.inputs, inputs, strict=True)}
    computed = Evaluator(module).run("main", given)
    expected = [computed[port.name] for port in module.outputs]
    compiled = compile_model(module, target, Options(io=io))
    return module, Job(compiled.files, compiled.document, [inputs]), expected


def seeds(part: int) -> range:
    return range(part * BATCH, min(NUM_PROGRAMS, (part + 1) * BATCH))


@pytest.mark.slow
@pytest.mark.parametrize("part", range(-(-NUM_PROGRAMS // BATCH)))
@pytest.mark.parametrize("bits", WIDTHS)
def test_compiled_programs_compute_what_the_evaluator_does(bits: int, part: int, tmp_path: Path) -> None:
    compiler, flags = WIDTHS[bits]
    chosen = some(seeds(part), every=2) if bits == 64 else share(seeds(part), every=4)
    cases = [case(seed) for seed in chosen]
    program = build([job for _, job, _ in cases], tmp_path, (*flags, *SANITIZERS), compiler=compiler)
    for (module, _, expected), runs in zip(cases, program.run(), strict=True):
        for port, array, wanted in zip(module.outputs, runs[0], expected, strict=True):
            same = np.array_equal(array, wanted, equal_nan=wanted.dtype.kind == "f")
            assert same, f"{module.name}, {port.name}: {array} is not {wanted}\n{print_module(module)}"


def test_programs_print_and_parse() -> None:
    for seed in range(0, NUM_PROGRAMS, 4):
        module, _, _ = case(seed)
        assert parse_module(print_module(module), module_data(module), {}) == module


def least_top(buffers: list[dict[str, Any]]) -> int:
    """The least height that placing the buffers one by one, each as low as it can go, reaches in any order."""
    best = sum(buffer["size_bytes"] + buffer["alignment"] for buffer in buffers)
    for order in permutations(buffers):
        placed: list[tuple[int, int, dict[str, Any]]] = []
        for buffer in order:
            size, alignment = buffer["size_bytes"], buffer["alignment"]
            others = [(a, b) for a, b, other in placed if overlap(other["live"], buffer["live"])]
            offsets = [0, *(-(-end // alignment) * alignment for _, end in others)]
            free = [o for o in offsets if all(o + size <= first or end <= o for first, end in others)]
            placed.append((min(free), min(free) + size, buffer))
        best = min(best, max(end for _, end, _ in placed))
    return best


def overlap(first: list[int], second: list[int]) -> bool:
    return first[0] < second[1] and second[0] < first[1]


def test_the_workspace_of_small_programs_is_the_least_that_any_order_gives() -> None:
    num_compared = 0
    for seed in range(NUM_PROGRAMS):
        document = case(seed)[1].document
        (*_, pool) = [p for p in document["pools"] if p["role"] == "workspace"][:1]
        buffers = [
            b
            for b in document["buffers"]
            if b["place"]["kind"] == "planned" and b["place"]["name"] == pool["name"] and b["size_bytes"]
        ]
        in_place = any(step.get("overlaps") for step in document["steps"])  # of which orders know nothing
        if 2 <= len(buffers) <= MOST_BUFFERS and len(conditions(seed)[1]) == 1 and not in_place:
            assert pool["used_bytes"] == least_top(buffers), seed
            num_compared += 1
    assert num_compared >= NUM_PROGRAMS // 20
