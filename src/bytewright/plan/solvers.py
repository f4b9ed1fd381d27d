"""The solvers that come with the planner, as functions from a problem and a budget to an outcome."""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import replace

from bytewright.plan.assign import is_assignable, place_in_pools
from bytewright.plan.bounds import lowest_top, pool_bound
from bytewright.plan.conflict import NO_CONFLICT, Conflict, Fits, shrink
from bytewright.plan.first_fit import first_fit
from bytewright.plan.flat import FlatProblem
from bytewright.plan.hill_climb import hill_climb
from bytewright.plan.minimise import is_searchable, question_steps
from bytewright.plan.outcome import Draft, Outcome
from bytewright.plan.request import Goal, Meter

# What one question on the way to a small conflicting set may cost at most, and how many steps of Python all of them may
# take even if the budget is used up: the set is evidence about a problem that is settled already.
CONFLICT_NODES = 20_000
CONFLICT_STEPS = 15_625_000
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
    return auto(flat, meter, start_with_first_fit=False)


def auto(flat: FlatProblem, meter: Meter, start_with_first_fit: bool = True) -> Outcome:
    """Bound, first fit, then the exact search as far as the budget goes; first fit alone for huge problems."""
    everything = range(flat.num_buffers)
    if not is_searchable(flat, everything) or not is_assignable(flat):
        return by_first_fit(flat, meter)
    outcome = place_in_pools(flat, everything, meter, meter.goal, start_with_first_fit)
    if not (outcome.is_impossible and meter.explains):
        return outcome
    return replace(outcome, conflict=_find_conflict(flat, meter))


def _unproved(flat: FlatProblem, draft: Draft) -> Outcome:
    return Outcome(None, conflict=_conflict_of_bounds(flat)) if draft.num_unplaced else Outcome(draft)


def _conflict_of_bounds(flat: FlatProblem) -> Conflict:
    """A conflicting set of a problem with one pool, if its load alone shows one."""
    suspects = _largest_at_peak(flat)
    return _shrunk(flat, suspects, lambda members: False if _is_too_much(flat, members) else None)


def _shrunk(flat: FlatProblem, suspects: Sequence[int], fits: Fits) -> Conflict:
    """A buffer that fits none of its pools by itself, or else what is left of suspects that together do not fit."""
    alone = next((i for i in range(flat.num_buffers) if not _has_room(flat, i)), None)
    if alone is not None:
        return Conflict((alone,), True)
    if len(suspects) > MAX_CONFLICT_BUFFERS:
        return Conflict(tuple(sorted(suspects)), False)
    return shrink(suspects, fits) if suspects else NO_CONFLICT


def _is_too_much(flat: FlatProblem, members: Sequence[int]) -> bool:
    """Whether the load alone shows that these do not fit the only pool."""
    return pool_bound(flat, 0, members).lower_bound_bytes > flat.capacity[0]


def _has_room(flat: FlatProblem, index: int) -> bool:
    """Whether the buffer fits at least one of its pools by itself."""
    return any(lowest_top(flat, c.pool, index) <= flat.capacity[c.pool] for c in flat.choices[index])


def _largest_at_peak(flat: FlatProblem) -> list[int]:
    """As few as possible of the largest buffers alive when the only pool's load is highest, still too many for it.

    None where there are several pools, or the load is not too much.
    """
    if len(flat.capacity) > 1 or not _is_too_much(flat, range(flat.num_buffers)):
        return []
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
    suspects = sorted(_largest_at_peak(flat)) or list(range(flat.num_buffers))
    steps_left = CONFLICT_STEPS

    def fits(members: Sequence[int]) -> bool | None:
        nonlocal steps_left
        if steps_left <= 0:
            return None
        with meter.part(CONFLICT_NODES) as part:
            outcome = place_in_pools(flat, members, part, Goal.DECIDE)
        steps_left -= question_steps(flat, members)
        return outcome.fits

    return _shrunk(flat, suspects, fits)
