"""Candidate pools, the planning problems, and the plan written back into the program."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bytewright.diagnostics import CompileError, Diagnostic
from bytewright.ir.analyses.clock import read_clock
from bytewright.ir.builder import BodyBuilder, region
from bytewright.ir.module import Module
from bytewright.ir.prim import PrimFunc
from bytewright.ir.scope import STACK, WORKSPACE, Scope, pool_scope
from bytewright.ir.storage import Storage
from bytewright.plan.solve import solve
from bytewright.scopes.attach_candidates import attach_candidates
from bytewright.storage.apply_solution import apply_solution
from bytewright.storage.build_problem import build_parameter_problem, build_workspace_problem
from bytewright.target.load import load_text
from bytewright.target.model import Target
from support.hand_built import (
    WHERE,
    add_kernel,
    allocations,
    chain,
    constant,
    module_of,
    planned,
    reverse_kernel,
    stored,
    tensor,
)
from support.with_plan import with_plan

SIZE = 64
TARGET = """
name = "two"
[memory.fast]
size = "1KiB"
[memory.slow]
size = "64KiB"
[memory.shared]
size = "64KiB"
[memory.flash]
size = "64KiB"
access = "r"
[memory.qspi]
size = "64KiB"
access = "r"
[device.cpu]
isa = "host"
reach = ["fast", "slow", "shared", "flash", "qspi"]
stack = "slow"
max-stack-alloca-size = 0
max-stack-size = "4KiB"
[device.npu]
isa = "npu"
reach = ["shared", "flash"]
[[workspace]]
name = "fast"
memory = "fast"
size = 256
[[workspace]]
name = "slow"
memory = "slow"
size = "32KiB"
[[workspace]]
name = "shared"
memory = "shared"
[[parameters]]
name = "flash"
memory = "flash"
size = 128
[[parameters]]
name = "qspi"
memory = "qspi"
"""


def target() -> Target:
    return load_text(TARGET, "two.toml")


def candidates_of(module: Module) -> dict[str, object]:
    placed = stored(module, target())
    found = {a.buffer.name: a.storage.candidates for a in allocations(placed.main.body)}
    return {name: pools for name, pools in found.items() if name != "u"}


def annotated(pools: tuple[str, ...], scope: Scope = WORKSPACE, device: str = "cpu") -> Module:
    """x -> t -> u -> y, where t carries candidate pools and one kernel is another device's."""
    kernels = [
        reverse_kernel("a", SIZE, num_scratch=0),
        reverse_kernel("b", SIZE, num_scratch=0, device=device),
    ]
    body = BodyBuilder(("x", "y"))
    first, last = tensor("x", SIZE), tensor("y", SIZE)
    between = body.allocate(tensor("t", SIZE), Storage(scope, candidates=pools or None))
    after = body.allocate(tensor("u", SIZE), Storage(WORKSPACE))
    body.call("a", region(first), region(between), where=WHERE)
    body.call("b", region(between), region(after), where=WHERE)
    body.call("a", region(after), region(last), where=WHERE)
    return module_of("m", kernels, body.finish(), first, last)


def refusal(module: Module) -> Diagnostic:
    with pytest.raises(CompileError) as caught:
        attach_candidates(module, target())
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code == "BW301"
    return diagnostic


def test_all_workspaces_are_candidates_in_the_targets_order() -> None:
    assert candidates_of(annotated(())) == {"t": ("fast", "slow", "shared")}


def test_an_annotation_narrows_and_orders() -> None:
    assert candidates_of(annotated(("slow", "fast"))) == {"t": ("slow", "fast")}


def test_touch_narrows_to_what_every_device_reaches() -> None:
    assert candidates_of(annotated((), device="npu")) == {"t": ("shared",)}


def test_a_scope_narrows_to_its_pool_and_one_candidate_becomes_the_scope() -> None:
    assert candidates_of(annotated((), pool_scope("slow"))) == {"t": ("slow",)}
    allocation, _ = allocations(stored(annotated(("slow",)), target()).main.body)
    assert allocation.scope == pool_scope("slow")
    assert any("attach_candidates" in reason for reason in allocation.storage.provenance)


def test_an_empty_intersection_names_what_each_pool_fails() -> None:
    diagnostic = refusal(annotated(("fast", "slow"), device="npu"))
    assert diagnostic.message == "'t' cannot be placed in any workspace pool"
    assert diagnostic.notes == (
        "fast  is in memory 'fast', which device 'npu' does not reach",
        "slow  is in memory 'slow', which device 'npu' does not reach",
        "shared  is not among its candidates fast, slow",
        "kernel 'b' of device 'npu' touches it",
        "'npu' reaches: shared, flash",
    )


def test_the_stack_is_no_place_for_the_entrys_tensors() -> None:
    diagnostic = refusal(annotated((), STACK))
    assert all("is not in its scope 'global.stack'" in note for note in diagnostic.notes)
    assert len(diagnostic.notes) == 3


def test_all_buffers_without_a_place_are_reported_at_once() -> None:
    with pytest.raises(CompileError) as caught:
        attach_candidates(chain("m", [reverse_kernel("k", SIZE, num_scratch=0)] * 4, SIZE, STACK), target())
    assert len(caught.value.diagnostics) == 3


def test_the_workspace_problem_has_tensors_and_scratch_with_their_lifetimes() -> None:
    module = stored(chain("m", [reverse_kernel("k", SIZE)] * 2, SIZE), target())
    problem = build_workspace_problem(module, read_clock(module, target()), target())
    assert [(b.name, b.size_bytes, b.lifetimes, b.alignment) for b in problem.buffers] == [
        (
            "t0/out",
            SIZE,
            ((2, 6),),
            16,
        ),  # written in the second tick of one body, read in the first of the next
        ("t0/scratch0", SIZE, ((1, 3),), 16),
        ("y/scratch0", SIZE, ((5, 7),), 16),
    ]
    assert [[c.pool for c in b.candidates] for b in problem.buffers] == [["fast", "slow", "shared"]] * 3
    assert [(p.name, p.capacity_bytes) for p in problem.pools] == [
        ("fast", 256),
        ("slow", 32 << 10),
        ("shared", 64 << 10),
    ]


def test_earlier_candidates_cost_less() -> None:
    module = stored(annotated(()), target())
    buffer, _ = build_workspace_problem(module, read_clock(module, target()), target()).buffers
    costs = [candidate.cost for candidate in buffer.candidates]
    assert costs == sorted(costs)
    assert len(set(costs)) == 3


def with_constants(*lengths: int) -> Module:
    constants = [constant(f"c{index}", range(length)) for index, length in enumerate(lengths)]
    kernels = [add_kernel(f"k{index}", length) for index, length in enumerate(lengths)]
    body = BodyBuilder(("x", "y"))
    size = max(lengths)
    first, last = tensor("x", size), tensor("y", size)
    for kernel, item in zip(kernels, constants, strict=True):
        body.call(kernel.name, region(first), region(item.buffer), region(last), where=WHERE)
    return module_of("m", kernels, body.finish(), first, last, constants)


def test_constants_are_all_alive_at_once() -> None:
    problem = build_parameter_problem(attach_candidates(with_constants(64, 64, 32), target()), target())
    assert [(b.name, b.size_bytes, b.lifetimes) for b in problem.buffers] == [
        ("c0", 64, ((0, 1),)),
        ("c1", 64, ((0, 1),)),
        ("c2", 32, ((0, 1),)),
    ]
    placements = with_plan(solve(problem)).placements
    assert len({p.pool for p in placements}) == 2
    assert sorted((p.pool, p.offset) for p in placements)[0] == ("flash", 0)


def test_a_callers_parameter_pool_begins_with_a_header() -> None:
    text = TARGET.replace('name = "flash"\nmemory', 'name = "flash"\nprovider = "caller"\nmemory')
    changed = load_text(text, "two.toml")
    problem = build_parameter_problem(attach_candidates(with_constants(64, 32), changed), changed)
    header = problem.buffers[0]
    assert (header.size_bytes, header.fixed_offset, [c.pool for c in header.candidates]) == (32, 0, ["flash"])
    offsets = [p.offset for p in with_plan(solve(problem)).placements if p.buffer in ("c0", "c1")]
    assert min(offsets) == 32


def test_offsets_and_pools_are_written_into_the_program() -> None:
    result = planned(chain("m", [reverse_kernel("k", SIZE)] * 3, SIZE), target())
    placements = result.trial.workspace.placement_of
    found = allocations(result.module.main.body)
    assert len(found) == len(placements) == 5
    for allocation in found:
        placement = placements[allocation.buffer.name]
        assert allocation.storage.offset == placement.offset
        assert allocation.scope == pool_scope(placement.pool)
        assert allocation.storage.candidates == ("fast", "slow", "shared")


def test_constants_get_their_pool_and_offset_wherever_they_are_named() -> None:
    result = planned(with_constants(64, 64, 32), target())
    for item in result.module.constant_buffers:
        placement = result.trial.parameters.placement_of[item.buffer.name]
        assert (item.scope, item.storage.offset) == (pool_scope(placement.pool), placement.offset)


def noalias(kernel: PrimFunc) -> set[frozenset[str]]:
    return {frozenset(pair) for pair in kernel.noalias}


def test_parameters_that_never_overlap_are_noalias() -> None:
    """The source has died when the result is written, so the plan may give both the same bytes, and does."""
    result = planned(chain("m", [reverse_kernel("k", SIZE)] * 3, SIZE), target())
    (kernel,) = result.module.kernels
    places = result.trial.workspace.placement_of
    assert (places["t0/out"].pool, places["t0/out"].offset) == (
        places["t1/out"].pool,
        places["t1/out"].offset,
    )
    assert noalias(kernel) == {frozenset(pair) for pair in (("source", "scratch0"), ("result", "scratch0"))}


@pytest.mark.parametrize("side", [-1, 1])
@pytest.mark.parametrize(("distance", "is_apart"), [(SIZE, True), (SIZE - 1, False), (0, False)])
def test_one_common_byte_is_an_overlap(distance: int, is_apart: bool, side: int) -> None:
    """Whatever the planner was asked: the places decide what a compiler is told."""
    trial = planned(chain("m", [reverse_kernel("k", SIZE, num_scratch=0)] * 3, SIZE), target()).trial
    offsets = {"t0/out": 1024, "t1/out": 1024 + side * distance}
    moved = tuple(
        replace(placement, pool="slow", offset=offsets[placement.buffer])
        for placement in trial.workspace.placements
    )
    result = apply_solution(trial.stored.module, replace(trial.workspace, placements=moved), trial.parameters)
    assert noalias(result.kernels[0]) == ({frozenset(("source", "result"))} if is_apart else set())


def test_a_kernel_that_is_called_in_place_once_loses_restrict_for_all() -> None:
    body = BodyBuilder(("x", "y"))
    first, last = tensor("x", SIZE), tensor("y", SIZE)
    between = body.allocate(tensor("t", SIZE), Storage(WORKSPACE))
    kernel = reverse_kernel("k", SIZE, num_scratch=0)
    in_place = tuple(replace(p, access=p.access) for p in kernel.parameters)
    body.call("k", region(first), region(between), where=WHERE)
    body.call("k", region(between), region(between), where=WHERE)
    body.call("k", region(between), region(last), where=WHERE)
    module = module_of("m", [replace(kernel, parameters=in_place)], body.finish(), first, last)
    assert noalias(planned(module, target()).module.kernels[0]) == set()


def test_the_input_module_is_not_changed() -> None:
    module = stored(chain("m", [reverse_kernel("k", SIZE)] * 2, SIZE), target())
    before = str(module)
    planned(chain("m", [reverse_kernel("k", SIZE)] * 2, SIZE), target())
    assert str(module) == before
