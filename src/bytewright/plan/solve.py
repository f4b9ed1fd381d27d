"""`solve`: the one way into the planner, and the table of solvers.

A solver turns a problem and a budget into an `Outcome`: the best plan it found, and what it claims to have proved.
`solve` re-checks every plan with the validator, adds bounds of its own, and states the result. Solvers of users are
registered by name; they return placements alone, and what these are worth is measured against the bounds computed here.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import cast

from bytewright.diagnostics import CompileError, InternalError, compile_error
from bytewright.plan import native as native_core
from bytewright.plan import solvers
from bytewright.plan.bounds import pool_bound
from bytewright.plan.flat import NO_LIMIT, FlatProblem, flatten
from bytewright.plan.outcome import Draft, Outcome, draft_of
from bytewright.plan.problem import Problem
from bytewright.plan.request import DEFAULT_NODE_BUDGET, Goal, Meter, Progress
from bytewright.plan.solution import Placement, PoolUse, Shortage, Solution, Statistics, Status
from bytewright.plan.validate import Fault, validate
from bytewright.plan.what_fits import sizes_that_fit

SolverFunction = Callable[[FlatProblem, Meter], Outcome]
UserSolver = Callable[[Problem, int], Sequence[Placement] | None]
# The group of entry points by which an installed package brings solvers, each a `UserSolver`.
ENTRY_POINTS = "bytewright.solvers"


# Every solver by name. `register_solver` adds to it.
SOLVERS: dict[str, SolverFunction] = {
    "auto": solvers.auto,
    "exact": solvers.exact,
    "first_fit": solvers.by_first_fit,
    "hill_climb": solvers.by_hill_climb,
}


def register_solver(name: str, function: UserSolver) -> None:
    """Makes `function(problem, node_budget)` selectable as `name`.

    It returns a placement for every buffer, or None if it finds no plan. It must be deterministic.

    Raises:
        CompileError: BW603, if the name is taken or empty.
    """
    if not name or name in SOLVERS:
        raise compile_error("BW603", f"a solver cannot be registered as '{name}'")

    SOLVERS[name] = partial(_asked, name, function)


def find_solver(name: str) -> SolverFunction:
    """The solver of this name: a built-in one, one that was registered, or the entry point of an installed package.

    Raises:
        CompileError: BW604, with the names that there are; BW605 if an entry point cannot be loaded.
    """
    if name in SOLVERS:
        return SOLVERS[name]
    from importlib.metadata import entry_points

    installed = {entry.name: entry for entry in entry_points(group=ENTRY_POINTS)}
    if name in installed:
        try:
            function = installed[name].load()
        except KeyboardInterrupt:
            raise
        except (
            BaseException
        ) as error:  # whatever importing somebody else's module does, the end of the program too
            raise _failed(name, f"cannot be loaded from '{installed[name].value}'", error) from error
        return partial(_asked, name, function)
    known = ", ".join(sorted({*SOLVERS, *installed}))
    raise compile_error("BW604", f"there is no solver named '{name}'", help=f"known: {known}")


def _asked(name: str, function: UserSolver, flat: FlatProblem, meter: Meter) -> Outcome:
    """What a user's function makes of a problem, checked; `solve` finds out what it is worth."""
    try:
        answer: object = function(flat.problem, meter.node_budget)
        placements = None if answer is None else tuple(cast("Sequence[object]", answer))
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # one that would end the program with a status of its own is none of ours
        raise _failed(name, "failed", error) from error
    for placement in placements or ():
        if not isinstance(placement, Placement) or type(placement.offset) is not int:
            raise compile_error(
                "BW605", f"solver '{name}' returned {placement!r:.200} where a Placement belongs"
            )
    if placements is None:
        return Outcome(None)
    named = cast("tuple[Placement, ...]", placements)
    if faults := validate(flat.problem, named):
        raise compile_error("BW401", *_not_a_plan(name, faults))
    number_of = {pool.name: number for number, pool in enumerate(flat.problem.pools)}
    place_of = {placement.buffer: placement for placement in named}
    places = [place_of[buffer.name] for buffer in flat.buffers]
    return Outcome(draft_of(flat, [number_of[p.pool] for p in places], [p.offset for p in places]))


def _not_a_plan(solver: str, faults: Sequence[Fault]) -> tuple[str, tuple[str, ...]]:
    """A message and notes."""
    text = f"solver '{solver}' returned a plan that does not verify"
    return text, tuple(str(fault) for fault in faults[:20])


def _failed(name: str, what: str, error: BaseException) -> CompileError:
    text = f"{type(error).__name__}: {error}".rstrip(": ")
    return compile_error("BW605", f"solver '{name}' {what}: {text}")


def solve(
    problem: Problem,
    solver: str = "auto",
    node_budget: int = DEFAULT_NODE_BUDGET,
    goal: Goal = Goal.MINIMISE,
    progress: Progress | None = None,
    native: bool = True,
    explain: bool = True,
) -> Solution:
    """Places every buffer, or says why that cannot be done.

    Args:
        problem: What to place.
        solver: A name in `SOLVERS`.
        node_budget: How many nodes searches may visit together; the result depends on it and never on time.
        goal: Whether to look for the least cost and top, or to stop at the first plan within the capacities.
        progress: Called now and then with what is known so far.
        native: Whether the C core may be used, if it is there; the solution is the same without it.
        explain: Whether a refusal names buffers in conflict and what pools are short of, which takes longer than to
            find out that there is no plan.

    Raises:
        CompileError: BW604 if there is no such solver; BW401 if a registered solver returned a bad plan, BW605 if it
            failed.
    """
    function = find_solver(solver)
    flat = flatten(problem)
    meter = Meter(node_budget, goal, progress, native, explain)
    outcome = function(flat, meter)
    if outcome.best is None:
        return _without_plan(flat, outcome, solver, meter)
    return _with_plan(flat, outcome, outcome.best, _statistics(solver, meter))


def _statistics(solver: str, meter: Meter) -> Statistics:
    return Statistics(solver, meter.num_nodes, meter.native and native_core.AVAILABLE, meter.work)


def _with_plan(flat: FlatProblem, outcome: Outcome, best: Draft, statistics: Statistics) -> Solution:
    problem = flat.problem
    placements = flat.placements(best.pools, best.offsets)
    if faults := validate(problem, placements):
        text, notes = _not_a_plan(statistics.solver, faults)
        raise InternalError("; ".join((text, *notes)))
    best = draft_of(flat, best.pools, best.offsets)  # what it is worth is not the solver's to say
    uses = tuple(_use(flat, pool, best, outcome) for pool in range(len(problem.pools)))
    cost_bound = max(outcome.cost_lower_bound, sum(row[0].cost for row in flat.choices))
    tops_bound = outcome.tops_lower_bound
    if len(uses) == 1:
        tops_bound = max(tops_bound, uses[0].lower_bound_bytes)
    optimal = best.worth == (cost_bound, tops_bound)
    solution = Solution(
        status=Status.OPTIMAL if optimal else Status.GAP,
        placements=placements,
        pools=uses,
        cost=best.cost,
        cost_lower_bound=cost_bound,
        tops_lower_bound_bytes=tops_bound,
        statistics=statistics,
    )
    _refuse_less_than_the_bounds(solution)
    return solution


def _refuse_less_than_the_bounds(solution: Solution) -> None:
    """A plan better than what is proved to be the best is no plan, or the proof is none: a bug in either case."""
    faults = [
        f"pool '{use.pool}' ends at {use.top_bytes} B, below its bound of {use.lower_bound_bytes} B"
        for use in solution.pools
        if use.top_bytes < use.lower_bound_bytes
    ]
    cost, bound = solution.cost, solution.cost_lower_bound
    if cost < bound:
        faults.append(f"the cost {cost} is below its bound of {bound}")
    tops, tops_bound = sum(use.top_bytes for use in solution.pools), solution.tops_lower_bound_bytes
    if cost == bound and tops < tops_bound:
        faults.append(f"the tops sum to {tops} B, below their bound of {tops_bound} B")
    if faults:
        solver = solution.statistics.solver
        raise InternalError("; ".join((f"the plan of solver '{solver}' is impossible", *faults)))


def _use(flat: FlatProblem, index: int, best: Draft, outcome: Outcome) -> PoolUse:
    pool = flat.problem.pools[index]
    members = [i for i, chosen in enumerate(best.pools) if chosen == index]
    bound = pool_bound(flat, index, members).lower_bound_bytes
    return PoolUse(
        pool=pool.name,
        top_bytes=best.tops[index],
        lower_bound_bytes=max(bound, outcome.pool_lower_bounds.get(index, 0)),
        capacity_bytes=pool.capacity_bytes,
        alignment=max((flat.alignment_in(i, index) for i in members), default=pool.alignment),
    )


def _without_plan(flat: FlatProblem, outcome: Outcome, solver: str, meter: Meter) -> Solution:
    if not meter.explains:
        status = Status.INFEASIBLE if outcome.is_impossible else Status.UNKNOWN
        return Solution(status, statistics=_statistics(solver, meter))
    problem = flat.problem
    conflict = sorted(outcome.conflict.members)
    members = conflict or range(flat.num_buffers)
    fitting = sizes_that_fit(flat, solver, meter)
    shortages: list[Shortage] = []
    for index, pool in enumerate(problem.pools):
        inside = [i for i in members if any(choice.pool == index for choice in flat.choices[i])]
        if inside and flat.capacity[index] < NO_LIMIT:
            bound, capacity = pool_bound(flat, index, inside), flat.capacity[index]
            needed, tick = bound.lower_bound_bytes, bound.tick
            if conflict and len(problem.pools) == 1 and needed <= capacity:
                needed, tick = capacity + 1, None  # proved by search
            shortages.append(Shortage(pool.name, capacity, needed, tick, fitting.get(index)))
    return Solution(
        status=Status.INFEASIBLE if conflict else Status.UNKNOWN,
        infeasible_set=tuple(problem.buffers[i].name for i in conflict),
        irreducible=outcome.conflict.irreducible,
        shortages=tuple(shortages),
        statistics=_statistics(solver, meter),
    )
