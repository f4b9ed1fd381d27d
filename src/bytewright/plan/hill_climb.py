"""Hill climbing over the order of first fit: cheap, without proof, for problems too large to search.

Starting from the best standard order, a buffer that ends at the top of a pool (or found no pool) is moved to
the place of one that it coexists with and that came before it; a change that is no worse is kept. The choices
come from a fixed linear congruential sequence, so the result is the same everywhere.
"""

from collections.abc import Sequence

from bytewright.plan.first_fit import placer, standard_orders
from bytewright.plan.flat import FlatProblem
from bytewright.plan.outcome import Draft
from bytewright.plan.problem import coexist
from bytewright.plan.request import Meter
from bytewright.plan.sweep import count_meetings

# A move costs one node for each buffer placed; this many moves without any gain end the climb.
PATIENCE = 400
PAIR_WORK = 8
STEPS_PER_BUFFER = 4


def hill_climb(flat: FlatProblem, meter: Meter) -> Draft:
    """The best plan that the climb meets within the budget."""
    place = placer(flat, meter.native)
    drafts = [(place(order), order) for order in standard_orders(flat)]
    best, order = min(drafts, key=lambda pair: pair[0].rank)
    current = best
    generator = _Generator()
    # What a move costs besides its nodes: a look at each pair that coexists, in C, and three at each buffer in Python.
    num_pairs, _ = count_meetings(flat, range(flat.num_buffers))
    idle = 0
    while idle < PATIENCE and meter.left >= flat.num_buffers > 1:
        candidate = _move(flat, current, order, generator)
        if candidate is None:
            break
        meter.spend(flat.num_buffers, PAIR_WORK * num_pairs)
        meter.charge(STEPS_PER_BUFFER * flat.num_buffers)
        draft = place(candidate)
        idle = 0 if draft.rank < best.rank else idle + 1
        if draft.rank <= current.rank:
            current, order = draft, candidate
        if draft.rank < best.rank:
            best = draft
            meter.best_bytes = sum(best.tops) if not best.num_unplaced else None
    return best


class _Generator:
    """Numerical Recipes' 32-bit linear congruential generator; the high bits are used."""

    def __init__(self) -> None:
        self._state = 1

    def below(self, bound: int) -> int:
        self._state = (self._state * 1664525 + 1013904223) & 0xFFFFFFFF
        return (self._state >> 8) % bound


def _move(flat: FlatProblem, draft: Draft, order: Sequence[int], generator: _Generator) -> list[int] | None:
    """The order with one troublesome buffer moved before one of its neighbours; None if there is no such move."""
    critical = [
        i
        for i in order
        if draft.pools[i] < 0
        or (flat.size_bytes[i] and draft.offsets[i] + flat.size_bytes[i] == draft.tops[draft.pools[i]])
    ]
    if not critical:
        return None
    buffer = critical[generator.below(len(critical))]
    position = {index: at for at, index in enumerate(order)}
    before = sorted(order[: position[buffer]])
    earlier = [i for i in before if coexist(flat.buffers[i], flat.buffers[buffer])]
    if not earlier:
        # Already the first of its neighbourhood: move one of the neighbours away instead.
        earlier = [order[generator.below(len(order))]]
        buffer = order[generator.below(len(order))]
    target = position[earlier[generator.below(len(earlier))]]
    changed = [i for i in order if i != buffer]
    changed.insert(min(target, len(changed)), buffer)
    return changed
