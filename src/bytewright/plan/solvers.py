"""The solvers that come with the planner, as functions from a problem and a budget to an outcome."""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import replace

from bytewright.plan.assign import is_assignable, place_in_pools
from bytewright.plan.bounds import pool_bound
from bytewright.plan.conflict import NO_CONFLICT, Conflict, shrink
from bytewright.plan.first_fit import first_fit
from bytewright.plan.flat import FlatProblem
from bytewright.plan.hill_climb import hill_climb
from bytewright.plan.minimise import is_searchable, question_steps
from bytewright.plan.outcome import Draft, Outcome
from bytewright.plan.request import Goal, Meter

# What one question on the way to a small conflicting set may cost at most, and what all of them may look at even if the
# budget is used up: the set is evidence about a problem that is settled already.
CONFLICT_NODES = 20_000
CONFLICT_WORK = 1_000_000_000
# Larger problems get no conflicting set by search, only one from a bound.
MAX_CONFLICT_BUFFERS = 600


def by_first_fit(flat: FlatProblem, meter: Meter) -> Outcome:
    """First fit in several orders; the best is kept."""
    return _unproved(flat, first_fit(flat, meter.native))


def by_hill_climb(flat: FlatProblem, meter: Meter) -> Outcome:
    """First fit, its order improved step by step."""
    return _unproved(flat, hill_climb(flat, meter))


def exact(flat: FlatProblem, meter: Meter) -> Outcome:
    """The exact search with the whole budget, from nothing; first fit where that cannot be."""
    return _solve_exactly(flat, meter, start_with_first_fit=False)


def auto(flat: FlatProblem, meter: Meter) -> Outcome:
    """Bound, first fit, then the exact search as far as the budget goes; first fit alone for huge problems."""
    return _solve_exactly(flat, meter, start_with_first_fit=True)


def _unproved(flat: FlatProblem, draft: Draft) -> Outcome:
    return Outcome(None, conflict=_conflict_of_bounds(flat)) if draft.num_unplaced else Outcome(draft)


def _solve_exactly(flat: FlatProblem, meter: Meter, start_with_first_fit: bool) -> Outcome:
    everything = range(flat.num_buffers)
    if not is_searchable(flat, everything) or not is_assignable(flat):
        return by_first_fit(flat, meter)
    outcome = place_in_pools(flat, everything, meter, meter.goal, start_with_first_fit)
    return replace(outcome, conflict=_find_conflict(flat, meter)) if outcome.is_impossible else outcome


def _conflict_of_bounds(flat: FlatProblem) -> Conflict:
    """A conflicting set of a problem with one pool, if its load alone shows one."""
    everything = range(flat.num_buffers)
    alone = [i for i in everything if not _has_room(flat, i)]
    if alone:
        return Conflict((alone[0],), True)
    if len(flat.capacity) > 1 or not _is_too_much(flat, everything):
        return NO_CONFLICT
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
    if len(flat.capacity) == 1 and _is_too_much(flat, everything):
        everything = _largest_at_peak(flat)
    extra = Meter(0, Goal.DECIDE).part(0, CONFLICT_WORK)

    def fits(members: Sequence[int]) -> bool | None:
        if not extra.work_left:
            return None
        part = meter.part(CONFLICT_NODES)
        outcome = place_in_pools(flat, members, part, Goal.DECIDE)
        meter.spend(part.num_nodes, part.work)
        extra.charge(question_steps(flat, members))
        return outcome.fits

    if len(everything) > MAX_CONFLICT_BUFFERS:
        return Conflict(tuple(sorted(everything)), False)
    return shrink(sorted(everything), fits)
