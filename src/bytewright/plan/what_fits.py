"""What a pool that is too small would have to hold, found by planning and not by a bound.

A bound says what is necessary; whoever follows it may find that it is not enough. So the size that is advised is one
for which the same solver was seen to find a plan, with no more than its budget.
"""

from dataclasses import replace

from bytewright.plan.assign import place_in_pools
from bytewright.plan.first_fit import first_fit
from bytewright.plan.flat import NO_LIMIT, FlatProblem
from bytewright.plan.minimise import is_searchable, solve_pool
from bytewright.plan.request import Goal, Meter

# What lowering the advice, and trying it out, may cost each.
ADVICE_NODES = 100_000
# With more pools than this only the first ones are tried.
MAX_POOLS = 8
# These begin with first fit, so what first fit needs is enough for them.
_WITH_FIRST_FIT = ("auto", "first_fit", "hill_climb")
_BY_SEARCH = ("auto", "exact")


def sizes_that_fit(flat: FlatProblem, solver: str, meter: Meter) -> dict[int, int]:
    """By pool: a capacity with which the solver finds a plan, the other capacities as they are.

    A pool is left out if no such plan was found, and all are for a solver that is not of this package. What is spent
    stays within the budget.
    """
    found: dict[int, int] = {}
    if solver not in (*_WITH_FIRST_FIT, *_BY_SEARCH) or not all(flat.choices):
        return found
    limited = [pool for pool, capacity in enumerate(flat.capacity) if capacity < NO_LIMIT]
    for pool in limited[:MAX_POOLS]:
        roomy = _with_capacity(flat, pool, NO_LIMIT)
        draft = first_fit(roomy, meter.native)
        enough = None if draft.num_unplaced else draft.tops[pool]
        sizes = [] if enough is None else [enough]
        if len(flat.capacity) == 1 and solver in _BY_SEARCH and is_searchable(flat, range(flat.num_buffers)):
            with meter.part(ADVICE_NODES) as part:
                best = solve_pool(roomy, 0, range(flat.num_buffers), part, Goal.MINIMISE).best
            if best is not None and best.tops[0] != enough:
                sizes.insert(0, best.tops[0])
        for size in sizes:
            if (size == enough and solver in _WITH_FIRST_FIT) or _is_found(flat, pool, size, solver, meter):
                found[pool] = size
                break
    return found


def _with_capacity(flat: FlatProblem, pool: int, capacity: int) -> FlatProblem:
    return replace(flat, capacity=tuple(capacity if p == pool else c for p, c in enumerate(flat.capacity)))


def _is_found(flat: FlatProblem, pool: int, capacity: int, solver: str, meter: Meter) -> bool:
    """Whether the solver finds a plan with that capacity, as it would be asked for it."""
    tight = _with_capacity(flat, pool, capacity)
    with meter.part(ADVICE_NODES) as part:
        outcome = place_in_pools(tight, range(flat.num_buffers), part, meter.goal, solver in _WITH_FIRST_FIT)
    return outcome.best is not None
