"""Large problems: time of sorting and memory of the buffers, not of their pairs; long lists of faults stay short."""

from __future__ import annotations

import random
import resource
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from click.testing import CliRunner
from plan_reference import random_problem
from test_plan_mutations import SOURCES, load_core

from bytewright.cli.main import load_command
from bytewright.diagnostics import CompileError, Diagnostic, first_of
from bytewright.plan import first_fit as first_fit_module
from bytewright.plan import native
from bytewright.plan.first_fit import place_in_order, placer, standard_orders
from bytewright.plan.flat import flatten
from bytewright.plan.problem import Buffer, Pool, Problem
from bytewright.plan.solution import Placement, Status
from bytewright.plan.solve import solve
from bytewright.plan.validate import MAX_PAIRS, Reason, validate

PLAN = load_command("plan")

needs_native = pytest.mark.skipif(not native.AVAILABLE, reason="installed without a C compiler")


def chain(num_layers: int) -> Problem:
    rng = random.Random(num_layers)
    return Problem(
        tuple(
            Buffer(f"b{k}", 16 * rng.randint(1, 500), ((k, k + rng.choice([2, 2, 2, 9])),), 16)
            for k in range(num_layers)
        ),
        (Pool("p"),),
    )


def num_calls(function: str, argument: Problem) -> int:
    """How many calls a function of one problem makes: work that no busy machine changes."""
    count = 0

    def tally(_frame: object, _event: str, _argument: object) -> None:
        nonlocal count
        count += 1

    sys.setprofile(tally)
    try:
        if function == "solve":
            solve(argument, "first_fit")
        else:
            validate(argument, [Placement(b.name, "p", 0) for b in argument.buffers])
    finally:
        sys.setprofile(None)
    return count


@needs_native
@pytest.mark.parametrize("function", ["solve", "validate"])
def test_work_is_linear_in_the_length_of_a_chain(function: str) -> None:
    short, long = (num_calls(function, chain(length)) for length in (1000, 8000))
    assert long < 10 * short


@needs_native
def test_thousands_of_buffers_alive_at_once() -> None:
    rng = random.Random(1)
    sizes = [rng.randint(1, 5000) for _ in range(8_100)]
    problem = Problem(tuple(Buffer(f"b{k}", size, ((0, 1),)) for k, size in enumerate(sizes)), (Pool("p"),))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    solution = solve(problem)
    assert (solution.status, solution.pools[0].top_bytes) == (Status.OPTIMAL, sum(sizes))
    # The coexisting pairs alone would take 262 MB.
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000


def test_thousands_that_do_not_fit_name_a_set_that_does_not() -> None:
    problem = Problem(tuple(Buffer(f"b{k}", 16, ((0, 1),)) for k in range(8_100)), (Pool("p", 1600),))
    solution = solve(problem)
    assert (solution.status, len(solution.infeasible_set)) == (Status.INFEASIBLE, 101)


@pytest.mark.run
def test_first_fit_without_a_list_of_pairs_places_alike(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if shutil.which("gcc") is None or not Path(sysconfig.get_path("include"), "Python.h").exists():
        pytest.skip("gcc or Python's headers are not installed")
    for source in SOURCES.glob("_*.[ch]"):
        text = source.read_text().replace("FIRST_FIT_MAX_PAIRS = 1 << 23", "FIRST_FIT_MAX_PAIRS = 2")
        (tmp_path / source.name).write_text(text)
    problems = [flatten(random_problem(seed, max_buffers=25)) for seed in range(300)]
    with_pairs = [[place_in_order(flat, order) for order in standard_orders(flat)] for flat in problems]
    monkeypatch.setattr(native, "_native", load_core(tmp_path))
    monkeypatch.setattr(native, "AVAILABLE", True)
    monkeypatch.setattr(first_fit_module, "MAX_PAIRS", 2)
    for flat, expected in zip(problems, with_pairs, strict=True):
        place = placer(flat)
        assert [place(order) for order in standard_orders(flat)] == expected
        assert [place_in_order(flat, order) for order in standard_orders(flat)] == expected


def test_the_validator_stops_at_so_many_pairs() -> None:
    problem = Problem(tuple(Buffer(f"b{k}", 4, ((0, 1),)) for k in range(3000)), (Pool("p"),))
    found = validate(problem, [Placement(b.name, "p", 0) for b in problem.buffers])
    assert len(found) == MAX_PAIRS
    assert {violation.reason for violation in found} == {Reason.OVERLAP}


def test_fixed_buffers_are_compared_without_looking_at_every_pair() -> None:
    stacked = tuple(Buffer(f"b{k}", 16, ((0, 1),), fixed_offset=16 * k) for k in range(20_000))
    assert len(Problem(stacked, (Pool("p"),)).buffers) == 20_000
    heap = tuple(Buffer(f"b{k}", 16, ((0, 1),), fixed_offset=0) for k in range(20_000))
    with pytest.raises(CompileError) as caught:
        Problem(heap, (Pool("p"),))
    assert len(caught.value.diagnostics) == 21
    assert caught.value.diagnostics[-1].message == "and 19979 more of this kind: 19999 in all"


@pytest.mark.parametrize("num_rows", [19, 20, 21, 1000])
def test_the_first_twenty_faults_of_a_file_and_their_count(num_rows: int, tmp_path: Path) -> None:
    source = tmp_path / "bad.csv"
    source.write_text("id,lower,upper,size\n" + "".join(f"b{k},0,1,x\n" for k in range(num_rows)))
    result = CliRunner().invoke(PLAN, [str(source)])
    assert isinstance(result.exception, CompileError)
    messages = [diagnostic.message for diagnostic in result.exception.diagnostics]
    assert len(messages) == min(num_rows, 21)
    assert messages[:19] == ["'size' is 'x', not an integer"] * 19
    if num_rows > 20:
        assert messages[20] == f"and {num_rows - 20} more of this kind: {num_rows} in all"


def test_few_diagnostics_stay_as_they_are() -> None:
    diagnostics = [Diagnostic("BW602", str(k)) for k in range(5)]
    assert first_of(diagnostics) == diagnostics
    assert [d.message for d in first_of(diagnostics, 4)] == [
        "0",
        "1",
        "2",
        "3",
        "and 1 more of this kind: 5 in all",
    ]


HELP_CASES = {
    "alignment": ("id,lower,upper,size,alignment\na,0,1,10,16\nb,0,1,10,16\nc,0,1,1,1\n", 20),
    "fragmentation": (
        "id,lower,upper,size,offset\na,0,4,10,\nb,2,6,10,10\nc,4,8,10,\nd,6,10,10,\ne,0,2,10,10\nf,8,10,10,0\n",
        12,
    ),
    "a hole": ("id,lower,upper,size,offset\na,0,2,10,15\nb,0,2,20,\n", 30),
    "nothing": ("id,lower,upper,size\na,0,2,10\n", 0),
}


@pytest.mark.parametrize("solver", ["auto", "exact", "first_fit", "hill_climb"])
@pytest.mark.parametrize("name", sorted(HELP_CASES))
def test_the_help_of_plan_works_when_followed(name: str, solver: str, tmp_path: Path) -> None:
    text, capacity = HELP_CASES[name]
    source = tmp_path / "buffers.csv"
    source.write_text(text)
    for budget in ("1", "1000"):
        options = [str(source), "--solver", solver, "--budget", budget]
        refused = CliRunner().invoke(PLAN, [*options, "--capacity", str(capacity)])
        assert isinstance(refused.exception, CompileError)
        advice = refused.exception.diagnostics[0].help
        if budget == "1" and solver == "exact" and not (advice or "").startswith("--"):
            continue  # within one node it finds nothing at all
        assert advice is not None
        followed = CliRunner().invoke(PLAN, [*options, *advice.split()], catch_exceptions=False)
        assert followed.exit_code == 0


@pytest.mark.parametrize("solver", ["auto", "exact", "first_fit", "hill_climb"])
def test_the_advice_works_on_random_problems(solver: str) -> None:
    num_followed = 0
    for seed in range(60_000, 60_080):
        problem = random_problem(seed)
        change = solve(problem, solver, 2000).smallest_change
        if change is None:
            continue
        pools = tuple(
            Pool(p.name, change.fitting_bytes, p.alignment, p.base_address) if p.name == change.pool else p
            for p in problem.pools
        )
        assert solve(Problem(problem.buffers, pools, problem.contracts), solver, 2000).has_plan, (
            f"seed {seed}"
        )
        num_followed += 1
    assert num_followed > 10


def test_the_command_ends_soon_on_a_million_bad_rows(tmp_path: Path) -> None:
    source = tmp_path / "bad.csv"
    source.write_text("id,lower,upper,size\n" + "a,0,1\n" * 100_000)
    done = subprocess.run(
        [sys.executable, "-m", "bytewright", "plan", str(source)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert len(done.stderr) < 10_000
    assert "100000 in all" in done.stderr
