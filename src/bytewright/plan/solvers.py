"""The solvers that come with the planner, as functions from a problem and a request to an outcome."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

from bytewright.plan import native
from bytewright.plan.assign import Assignment, assign, is_assignable
from bytewright.plan.bounds import pool_bound
from bytewright.plan.conflict import Conflict, shrink
from bytewright.plan.first_fit import Attempt
from bytewright.plan.first_fit import first_fit as run_first_fit
from bytewright.plan.flat import FlatProblem
from bytewright.plan.hill_climb import hill_climb as run_hill_climb
from bytewright.plan.minimise import is_searchable, question_steps, solve_pool
from bytewright.plan.request import Goal, Meter, Outcome, Request

# What one question on the way to a small conflicting set may cost at most, and what all of them may look at even if the
# budget is used up: the set is evidence about a problem that is settled already.
CONFLICT_NODES = 20_000
CONFLICT_WORK = 1_000_000_000
# Larger problems get no conflicting set by search, only one from a bound.
MAX_CONFLICT_BUFFERS = 600


def first_fit(flat: FlatProblem, request: Request) -> Outcome:
    """First fit in several orders; the best is kept."""
    return _from_attempt(flat, run_first_fit(flat, request.native), Meter(request))


def hill_climb(flat: FlatProblem, request: Request) -> Outcome:
    """First fit, its order improved step by step."""
    meter = Meter(request)
    return _from_attempt(flat, run_hill_climb(flat, meter), meter)


def exact(flat: FlatProblem, request: Request) -> Outcome:
    """The exact search with the whole budget, from nothing; first fit where that cannot be."""
    return _solve_exactly(flat, Meter(request), start_with_first_fit=False)


def auto(flat: FlatProblem, request: Request) -> Outcome:
    """Bound, first fit, then the exact search as far as the budget goes; first fit alone for huge problems."""
    return _solve_exactly(flat, Meter(request))


def _from_attempt(flat: FlatProblem, attempt: Attempt, meter: Meter) -> Outcome:
    used_native = meter.request.native and native.AVAILABLE
    if not attempt.num_unplaced:
        placements = flat.placements(attempt.pools, attempt.offsets)
        return Outcome(placements, num_nodes=meter.num_nodes, native=used_native, work=meter.work)
    conflict = _conflict_of_bounds(flat)
    return Outcome(
        None,
        infeasible_set=conflict.members,
        irreducible=conflict.irreducible,
        num_nodes=meter.num_nodes,
        native=used_native,
        work=meter.work,
    )


def _solve_exactly(flat: FlatProblem, meter: Meter, start_with_first_fit: bool = True) -> Outcome:
    used_native = meter.request.native and native.AVAILABLE
    if not is_searchable(flat, range(flat.num_buffers)) or not is_assignable(flat):
        return first_fit(flat, meter.request)
    if len(flat.capacity) == 1 and all(len(row) == 1 for row in flat.choices):
        plan = solve_pool(
            flat,
            0,
            range(flat.num_buffers),
            meter,
            meter.request.goal,
            start_with_first_fit=start_with_first_fit,
        )
        impossible = plan.lower_bound_bytes > flat.capacity[0]
        best = None
        if plan.offsets is not None:
            offsets = [plan.offsets[i] for i in range(flat.num_buffers)]
            best = Assignment([0] * flat.num_buffers, offsets, 0, (plan.top_bytes,))
        cost_bound, tops_bound, bounds = 0, plan.lower_bound_bytes, {0: plan.lower_bound_bytes}
    else:
        result = assign(flat, meter, start_with_first_fit=start_with_first_fit)
        best, impossible = result.best, result.infeasible
        cost_bound, tops_bound, bounds = (
            result.cost_lower_bound,
            result.tops_lower_bound,
            result.pool_lower_bounds,
        )
    conflict = _find_conflict(flat, meter) if impossible else Conflict((), False)
    return Outcome(
        None if best is None else flat.placements(best.pools, best.offsets),
        cost_lower_bound=cost_bound,
        tops_lower_bound=tops_bound,
        pool_lower_bounds=bounds,
        infeasible_set=conflict.members,
        irreducible=conflict.irreducible,
        num_nodes=meter.num_nodes,
        native=used_native,
        work=meter.work,
    )


def _conflict_of_bounds(flat: FlatProblem) -> Conflict:
    """A conflicting set of a problem with one pool, if its load alone shows one."""
    everything = range(flat.num_buffers)
    alone = [i for i in everything if not _has_room(flat, i)]
    if alone:
        return Conflict((alone[0],), True)
    if len(flat.capacity) > 1 or not _is_too_much(flat, everything):
        return Conflict((), False)
    peak = _largest_at_peak(flat)
    if len(peak) > MAX_CONFLICT_BUFFERS:
        return Conflict(tuple(sorted(peak)), False)
    return shrink(peak, lambda members: False if _is_too_much(flat, members) else None)


def _is_too_much(flat: FlatProblem, members: Sequence[int]) -> bool:
    """Whether the load alone shows that these do not fit the only pool."""
    return pool_bound(flat, 0, members).lower_bound_bytes > flat.capacity[0]


def _has_room(flat: FlatProblem, index: int) -> bool:
    """Whether the buffer fits at least one of its pools by itself."""
    return any(
        pool_bound(flat, c.pool, [index]).lower_bound_bytes <= flat.capacity[c.pool]
        for c in flat.choices[index]
    )


def _largest_at_peak(flat: FlatProblem) -> list[int]:
    """As few as possible of the largest buffers alive when the only pool's load is highest, still too many for it.

    Their load must be too much as a whole.
    """
    tick = pool_bound(flat, 0, range(flat.num_buffers)).tick
    peak = [
        i
        for i, buffer in enumerate(flat.buffers)
        if flat.size_bytes[i]
        and (tick is None or any(lower <= tick < upper for lower, upper in buffer.lifetimes))
    ]
    peak.sort(key=lambda i: (-flat.size_bytes[i], i))
    # The load grows with the members, but for what alignment wastes; so the answer is checked.
    count = bisect_left(range(len(peak)), True, key=lambda k: _is_too_much(flat, peak[:k]))
    return peak[:count] if _is_too_much(flat, peak[:count]) else peak


def _find_conflict(flat: FlatProblem, meter: Meter) -> Conflict:
    """An irreducible conflicting set of a problem that is proved to have no plan, as far as the budget tells."""
    alone = [i for i in range(flat.num_buffers) if not _has_room(flat, i)]
    if alone:
        return Conflict((alone[0],), True)
    everything = list(range(flat.num_buffers))
    single = len(flat.capacity) == 1
    if single and _is_too_much(flat, everything):
        everything = _largest_at_peak(flat)
    extra = Meter(Request(0, Goal.DECIDE)).part(0, CONFLICT_WORK)

    def fits(members: Sequence[int]) -> bool | None:
        if not extra.work_left:
            return None
        part = meter.part(CONFLICT_NODES)
        if single:
            plan = solve_pool(flat, 0, members, part, Goal.DECIDE)
            answer, impossible = plan.offsets is not None, plan.lower_bound_bytes > flat.capacity[0]
        else:
            result = assign(flat, part, members, Goal.DECIDE)
            answer, impossible = result.best is not None, result.infeasible
        meter.spend(part.num_nodes, part.work)
        extra.charge(question_steps(flat, members))
        return True if answer else False if impossible else None

    if len(everything) > MAX_CONFLICT_BUFFERS:
        return Conflict(tuple(sorted(everything)), False)
    return shrink(sorted(everything), fits)
