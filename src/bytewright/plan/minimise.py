"""One pool: the lowest top, or whether a capacity can be kept, by first fit, bounds and the exact search.

The exact search only decides: is there a plan below this capacity? Minimising asks it at the lower bound
first, because there the answer is usually yes; failing that it bisects between what is proved impossible and
what is known to work, in rounds whose node limits grow, so that easy capacities are settled before hard ones
are tried for long.
"""

from collections.abc import Mapping, Sequence

from bytewright.plan import native
from bytewright.plan.bounds import pool_bound
from bytewright.plan.first_fit import first_fit
from bytewright.plan.flat import NO_LIMIT, FlatProblem
from bytewright.plan.instance import Instance, build_instance
from bytewright.plan.outcome import Draft, Outcome
from bytewright.plan.request import Goal, Meter
from bytewright.plan.search import Result
from bytewright.plan.sweep import count_meetings

FIRST_ROUND_NODES = 8192
ROUND_GROWTH = 4
# Pairs of buffers that coexist, and buffers counted in each section, that the search is given at most.
MAX_SEARCH_PAIRS = 1 << 22
# Bounds, six runs of first fit and the rest of what is done once for each buffer.
STEPS_PER_BUFFER = 400
# The lower bound is attainable more often than not, so early rounds try it longer than other capacities; when
# it has withstood that long, the rest of the budget is better spent above it.
BOUND_NODES = (8 * 8192, 32 * 8192, 128 * 8192)


def solve_pool(
    flat: FlatProblem,
    pool: int,
    members: Sequence[int],
    meter: Meter,
    goal: Goal,
    slice_nodes: int | None = None,
    start_with_first_fit: bool = True,
) -> Outcome:
    """Places these buffers in this pool, as low as the budget allows or just below its capacity.

    Args:
        flat: The problem.
        pool: Index of the pool.
        members: Indices of the buffers.
        meter: What the whole solve may still spend.
        goal: When to stop.
        slice_nodes: A smaller budget for this pool alone.
        start_with_first_fit: Whether first fit may answer, or give the search something to improve on.
    """
    capacity = flat.capacity[pool]
    bound = pool_bound(flat, pool, members).lower_bound_bytes

    def known(offsets: Mapping[int, int] | None, top: int, bound: int) -> Outcome:
        best = None
        if offsets is not None:
            best = Draft([pool] * len(members), [offsets[i] for i in members], 0, (top,))
        return Outcome(best, 0, bound, {pool: bound}, bound > capacity)

    if bound > capacity:
        return known(None, 0, bound)
    searchable = is_searchable(flat, members)
    offsets, top = None, 0
    if start_with_first_fit or not searchable:
        draft = first_fit(flat.restricted(pool, members), meter.native)
        if not draft.num_unplaced and draft.tops[0] <= capacity:
            offsets, top = dict(zip(members, draft.offsets, strict=True)), draft.tops[0]
    if not searchable or (offsets is not None and (top <= bound or goal is Goal.DECIDE)):
        return known(offsets, top, bound)
    job = _Job(flat, pool, members, meter, slice_nodes)
    if offsets is not None:
        job.offsets, job.upper = offsets, top
    job.report()
    if goal is Goal.DECIDE:
        job.ask(capacity, job.left())
    else:
        job.minimise()
    return known(job.offsets, job.top_bytes(), job.bound_bytes())


def is_searchable(flat: FlatProblem, members: Sequence[int]) -> bool:
    """Whether the exact search can hold these buffers: few enough, with few enough alive together."""
    if len(members) > native.MAX_SEARCH_BUFFERS:
        return False
    return max(count_meetings(flat, members)) <= MAX_SEARCH_PAIRS


def question_steps(flat: FlatProblem, members: Sequence[int]) -> int:
    """How many steps of Python go into asking whether some buffers fit a pool, besides the search itself."""
    return STEPS_PER_BUFFER * len(members) + sum(count_meetings(flat, members))


class _Job:
    """The state of one minimisation.

    `lower` and `upper` are about the buffers that have bytes, whose tops are multiples of the step. Those of no bytes
    have their places, and the highest of them is a floor under the top: what is below it is not asked for.
    """

    def __init__(
        self, flat: FlatProblem, pool: int, members: Sequence[int], meter: Meter, slice_nodes: int | None
    ) -> None:
        self.flat = flat
        self.instance: Instance = build_instance(flat, pool, members)
        self.capacity = flat.capacity[pool]
        self.meter = meter
        self.stop_at = meter.left if slice_nodes is None else min(meter.left, slice_nodes)
        self.spent = 0
        self.offsets: dict[int, int] | None = None
        self.upper = -1
        step = self.instance.step
        self.floor = max((offset for _, offset in self.instance.empty), default=0)
        bound = pool_bound(flat, pool, self.instance.members).lower_bound_bytes
        self.lower = max(-(-bound // step), self.floor // step) * step

    def left(self) -> int:
        return min(self.stop_at - self.spent, self.meter.left)

    def top_bytes(self) -> int:
        return max(self.upper, self.floor)

    def bound_bytes(self) -> int:
        return max(self.lower, self.floor)

    def report(self) -> None:
        self.meter.best_bytes = self.top_bytes() if self.offsets is not None else None
        self.meter.lower_bound_bytes = self.bound_bytes()
        self.meter.poll(0)

    def ask(self, capacity: int, node_limit: int) -> Result:
        """One run of the exact search; keeps what it finds or proves."""
        limit, work = min(node_limit, self.left()), self.meter.work_left
        answer = native.search(self.instance, capacity, limit, self.meter.poll, self.meter.native, work)
        self.spent += answer.num_nodes
        self.meter.spend(answer.num_nodes, answer.work)
        if answer.result is Result.SOLVED:
            self.offsets = dict(self.instance.empty)
            self.offsets.update(zip(self.instance.members, answer.offsets, strict=True))
            self.upper = max(
                (self.offsets[i] + self.flat.size_bytes[i] for i in self.instance.members), default=0
            )
        elif answer.result is Result.INFEASIBLE:
            self.lower = max(self.lower, (capacity // self.instance.step + 1) * self.instance.step)
        self.report()
        return answer.result

    def minimise(self) -> None:
        limit = FIRST_ROUND_NODES
        bound_limits = list(BOUND_NODES)
        while self._open() and self.left() > 0:
            asked, spent = min(self.lower, self.capacity), self.spent
            unknown = not bound_limits or self.ask(asked, bound_limits.pop(0)) is Result.UNKNOWN
            self._bisect(limit, asked + self.instance.step if unknown else self.lower)
            if self.spent == spent:  # nothing is open but the bound itself, so it gets what is left
                self.ask(asked, self.left())
                return
            limit *= ROUND_GROWTH
            if not self.instance.exhaustive:
                return  # what has failed would fail again

    def _open(self) -> bool:
        """Whether there may be a better plan than the best one known."""
        if self.offsets is None:
            return self.lower <= self.capacity
        return self.bound_bytes() < self.top_bytes()

    def _bisect(self, limit: int, hopeless: int) -> None:
        """Halves the range between the bound and the best plan, giving each capacity `limit` nodes.

        Below `hopeless` this round has given up already.
        """
        step = self.instance.step
        while self._open() and self.left() > 0:
            ceiling = self.upper - step if self.offsets is not None else self.capacity
            floor = max(hopeless, self.lower)
            if floor > ceiling:
                return
            if self.offsets is None and ceiling < NO_LIMIT:
                target = ceiling  # any plan at all comes first
            else:
                target = self._middle(floor, ceiling)
            if self.ask(target, limit) is Result.UNKNOWN:
                hopeless = target + step

    def _middle(self, floor: int, ceiling: int) -> int:
        if ceiling >= NO_LIMIT:
            return min(max(2 * floor, self.instance.step), NO_LIMIT)  # no plan yet and no capacity: gallop
        step = self.instance.step
        return max(floor, (floor + ceiling) // 2 // step * step)
