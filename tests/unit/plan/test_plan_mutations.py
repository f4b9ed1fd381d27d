"""The planner with faults put into it: no wrong plan leaves it, whichever solver made it.

Each fault breaks one of the functions that say what a plan is. The validator and the bounds are not among them, so a
solver that runs into the fault is caught; a plan that comes back in spite of it is right by a judgement of its own.
"""

from __future__ import annotations

import ast
import shutil
import subprocess
import sysconfig
from collections.abc import Callable, Iterator
from importlib.machinery import ExtensionFileLoader
from importlib.util import module_from_spec, spec_from_loader
from itertools import combinations
from pathlib import Path

import pytest
from plan_reference import random_problem

from bytewright.diagnostics import CompileError, InternalError
from bytewright.plan import first_fit, flat, instance, native, problem
from bytewright.plan.flat import FlatProblem
from bytewright.plan.problem import Buffer, Contract, Pool, Problem
from bytewright.plan.solution import Solution
from bytewright.plan.solve import solve

SOLVERS = ["auto", "exact", "first_fit", "hill_climb"]
SOURCES = Path(native.__file__).parent
CASE = Problem(
    (
        Buffer("a", 10, ((0, 3),), alignment=8),
        Buffer("b", 12, ((1, 4),), alignment=16),
        Buffer("c", 7, ((2, 6),)),
        Buffer("d", 9, ((0, 1), (5, 7)), alignment=4),
        Buffer("e", 20, ((0, 9),), alignment=2),
    ),
    (Pool("p", alignment=4),),
    (Contract("a", "b", 3, 30),),
)


def faults_of(question: Problem, solution: Solution) -> list[str]:
    """What is wrong with a plan, by looking at every pair and every tick."""
    place = {placement.buffer: placement for placement in solution.placements}
    pools = {pool.name: pool for pool in question.pools}
    contracts = {(c.first, c.second): (c.below_bytes, c.above_bytes) for c in question.contracts}
    faults: list[str] = []
    for b in question.buffers:
        pool = pools[place[b.name].pool]
        address = pool.base_address + place[b.name].offset
        if address % b.alignment or address % pool.alignment:
            faults.append(f"{b.name} misaligned")
        if pool.capacity_bytes is not None and place[b.name].offset + b.size_bytes > pool.capacity_bytes:
            faults.append(f"{b.name} past the end")
        if b.fixed_offset not in (None, place[b.name].offset):
            faults.append(f"{b.name} moved")
    for pair in combinations(question.buffers, 2):
        first, second = pair if (pair[1].name, pair[0].name) not in contracts else (pair[1], pair[0])
        ticks = [{t for low, high in b.lifetimes for t in range(low, high)} for b in (first, second)]
        if place[first.name].pool != place[second.name].pool or not ticks[0] & ticks[1]:
            continue
        if not first.size_bytes or not second.size_bytes:
            continue
        below, above = contracts.get((first.name, second.name), (second.size_bytes, first.size_bytes))
        if -below < place[second.name].offset - place[first.name].offset < above:
            faults.append(f"{first.name} and {second.name} too near")
    return faults


def nothing_coexists(_first: Buffer, _second: Buffer) -> bool:
    return False


def everything_byte_aligned(_buffer: Buffer, _pool: Pool) -> int:
    return 1


def too_near(self: FlatProblem, lower: int, _upper: int) -> int:
    return max(self.size_bytes[lower] - 1, 0)


def far_too_near(_self: object, _lower: object, _upper: object) -> int:
    return 0


def not_aligned(offset: int, _alignment: int, _base: int) -> int:
    return offset


FAULTS: dict[str, list[tuple[object, str, Callable[..., object]]]] = {
    "coexist": [(flat, "coexist", nothing_coexists), (problem, "coexist", nothing_coexists)],
    "required_alignment": [(flat, "required_alignment", everything_byte_aligned)],
    "separation by a byte": [(FlatProblem, "separation", too_near)],
    "separation": [(FlatProblem, "separation", far_too_near)],
    "separation of the problem": [(Problem, "separation", far_too_near)],
    "align_up": [(module, "align_up", not_aligned) for module in (flat, first_fit, instance)],
}


def questions() -> Iterator[Problem]:
    yield CASE
    for seed in range(40_000, 40_060):
        yield random_problem(seed, max_buffers=8)


def count_caught(solver: str, use_native: bool) -> tuple[int, int]:
    """How many plans were caught, and how many came back; those that come back must be right."""
    num_caught = num_right = 0
    for question in questions():
        try:
            solution = solve(question, solver, node_budget=300, native=use_native)
        except InternalError:
            num_caught += 1
            continue
        if solution.has_plan:
            assert faults_of(question, solution) == []
            num_right += 1
    return num_caught, num_right


@pytest.mark.parametrize("solver", SOLVERS)
def test_without_a_fault_nothing_is_caught(solver: str) -> None:
    num_caught, num_right = count_caught(solver, use_native=True)
    assert num_caught == 0
    assert num_right > 20


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("fault", sorted(FAULTS))
def test_a_broken_planner_is_caught(fault: str, solver: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for holder, name, replacement in FAULTS[fault]:
        monkeypatch.setattr(holder, name, replacement)
    num_caught, num_right = count_caught(solver, use_native=False)
    in_use = fault != "separation of the problem" and not (fault == "align_up" and solver == "exact")
    wants_separation = fault.startswith("separation") and solver == "exact"
    if in_use and not wants_separation:
        assert num_caught > 5
    assert num_caught + num_right > 20


# What is put into the C core: file, text, replacement.
C_FAULTS = {
    "coexist": ("_first_fit.c", "if (x[0] < y[1] && y[0] < x[1])", "if (0)"),
    "separation": ("_first_fit.c", "taken result = {at - p->size[b], ", "taken result = {at - 1, "),
    "contracts": ("_first_fit.c", "result.high = at + p->contract_below[k];", "result.high = at;"),
    "alignment": ("_first_fit.c", "~(alignment - 1)) - base", "~(int64_t)0) - base"),
    "search alignment": ("_exact.c", "& ~low_bits) - s->in->base", "& ~(int64_t)0) - s->in->base"),
    "search separation": ("_exact.c", ": in->size[b]));", ": in->size[b] / 2));"),
    "search contracts": (
        "_exact.c",
        "lifted = s->late[y] > at ? lowest_beside(s, y, at) : s->late[y];",
        "lifted = 0;",
    ),
}


def build_core(folder: Path, fault: str) -> object:
    file, text, replacement = C_FAULTS[fault]
    for source in SOURCES.glob("_*.[ch]"):
        content = source.read_text()
        if source.name == file:
            assert content.count(text) == 1
            content = content.replace(text, replacement)
        (folder / source.name).write_text(content)
    return load_core(folder)


def load_core(folder: Path) -> object:
    """Builds the core from the sources in a folder, and loads it beside the one that is installed."""
    library = folder / "_native.so"
    sources = [str(folder / name) for name in ("_exact.c", "_first_fit.c", "_nativemodule.c")]
    include = f"-I{sysconfig.get_path('include')}"
    subprocess.run(["gcc", "-shared", "-fPIC", "-O1", include, *sources, "-o", str(library)], check=True)
    loader = ExtensionFileLoader("_native", str(library))
    spec = spec_from_loader("_native", loader)
    assert spec is not None
    module = module_from_spec(spec)
    loader.exec_module(module)
    return module


@pytest.mark.run
@pytest.mark.parametrize("fault", sorted(C_FAULTS))
def test_a_broken_core_is_caught(fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if shutil.which("gcc") is None or not Path(sysconfig.get_path("include"), "Python.h").exists():
        pytest.skip("gcc or Python's headers are not installed")
    monkeypatch.setattr(native, "_native", build_core(tmp_path, fault))
    monkeypatch.setattr(native, "AVAILABLE", True)
    concerned = ["auto", "exact"] if fault.startswith("search") else ["auto", "first_fit", "hill_climb"]
    assert sum(count_caught(solver, use_native=True)[0] for solver in concerned) > 0


def names_in(tree: ast.AST, kind: type) -> set[str]:
    return {node.attr for node in ast.walk(tree) if isinstance(node, kind) and hasattr(node, "attr")}


def test_the_validator_reads_fields_alone() -> None:
    """Properties and methods of the problem's types are the planner's opinion; the validator has its own."""
    tree = ast.parse((SOURCES / "validate.py").read_text(encoding="utf-8"))
    opinions = {
        name
        for kind in (Problem, Buffer, Pool, Contract)
        for name, value in vars(kind).items()
        if callable(value) or type(value).__name__ in ("property", "cached_property")
        if not name.startswith("__")
    }
    assert {"separation", "first_tick", "candidates_of"} <= opinions
    assert names_in(tree, ast.Attribute) & opinions == set()


def test_a_top_below_the_bound_is_a_bug(monkeypatch: pytest.MonkeyPatch) -> None:
    from bytewright.plan import solve as solve_module

    monkeypatch.setattr(solve_module, "validate", lambda _problem, _placements: ())
    monkeypatch.setattr(flat, "coexist", nothing_coexists)
    for solver in SOLVERS:
        with pytest.raises(InternalError, match="below"):
            solve(CASE, solver, native=False)


def test_what_a_registered_solver_returns_is_its_own_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    from bytewright.plan import solve as solve_module
    from bytewright.plan.solution import Placement

    monkeypatch.setattr(solve_module, "SOLVERS", dict(solve_module.SOLVERS))
    solve_module.register_solver("zero", lambda p, _: [Placement(b.name, "p", 0) for b in p.buffers])
    with pytest.raises(CompileError):
        solve(CASE, "zero")
