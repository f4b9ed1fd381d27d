"""Several pools: which buffer goes where, and at which offset.

The least cost comes first, then the least sum of tops. There is no plan if what is alive at one time exceeds all the
pools together. Else a depth-first search chooses a pool for one buffer after another and cuts by four sound tests: the
cost with every undecided buffer at its cheapest, but for what full pools have to give up (`relaxation`); for each pool
the bytes that its buffers need at any one time; the same sum over all pools against the best tops so far; and sets of
buffers that an exact search has shown not to fit a pool ("nogoods", shrunk before they are kept). Of buffers that are
alike but for the name, none gets a better choice than one before it. At a leaf each pool is solved by itself. If the
search ends within the budget, what it found is optimal; if not, the best plan stands beside a bound.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from bytewright.plan.bounds import lowest_top, sections_of, union_of
from bytewright.plan.conflict import shrink
from bytewright.plan.first_fit import first_fit
from bytewright.plan.flat import Choice, FlatProblem
from bytewright.plan.knapsack import KnapsackTables
from bytewright.plan.minimise import question_steps, solve_pool
from bytewright.plan.outcome import Draft, Outcome
from bytewright.plan.relaxation import Relaxation
from bytewright.plan.request import Goal, Meter
from bytewright.plan.sweep import count_meetings

# Share of the budget that one pool of one leaf may use, so that a single hard leaf does not eat it all.
LEAF_SHARE = 16
# A decision of this search, in Python, takes about as long as this many nodes of the exact search in C.
DECISION_NODES = 16
DECISION_STEPS = 200
IMPOSSIBLE = 1 << 80  # a cost beyond any
SHRINK_NODES = 2000
# Loads and members by pool and section, and members of remembered leaves, that the search may keep.
MAX_CELLS = 1 << 22
MAX_REMEMBERED = 1 << 20


def is_assignable(flat: FlatProblem) -> bool:
    """Whether the search can hold the problem: its pools and the buffers of its sections."""
    _, num_memberships = count_meetings(flat, range(flat.num_buffers))
    return len(flat.capacity) * (num_memberships + 2 * flat.num_buffers) <= MAX_CELLS


def place_in_pools(
    flat: FlatProblem, members: Sequence[int], meter: Meter, goal: Goal, start_with_first_fit: bool = True
) -> Outcome:
    """Places these buffers: by the exact search where there is one pool, else choosing pools for them.

    Args:
        flat: The problem.
        members: The buffers in question; the others are left out.
        meter: The budget; a decision about a pool costs `DECISION_NODES`.
        goal: When to stop.
        start_with_first_fit: Whether first fit may answer or give the search something to improve on; where pools are
            chosen it does so for all buffers only.
    """
    if len(flat.capacity) == 1 and all(len(flat.choices[i]) == 1 for i in members):
        return solve_pool(flat, 0, members, meter, goal, start_with_first_fit=start_with_first_fit)
    search = _Assign(flat, meter, members, goal)
    if start_with_first_fit and len(members) == flat.num_buffers:
        search.start_with_first_fit()
    return search.run()


# A decision that can be taken back: the buffer, its pool, the loads of its sections and every pool's highest before.
_Undo = tuple[int, int, list[int], list[int]]


@dataclass(frozen=True, slots=True)
class _Step:
    """A buffer in its turn, behind the decisions about those before it.

    Attributes:
        choices: Those that are left to try, the next one last.
        cost: Of what is decided, with every other buffer at its cheapest.
        lower_bound: On the cost of every completion.
        undo: Takes the last decision back; None at the root.
    """

    choices: list[Choice]
    cost: int
    lower_bound: int
    undo: _Undo | None = None


class _Assign:
    """The state of the depth-first search."""

    def __init__(self, flat: FlatProblem, meter: Meter, members: Sequence[int], goal: Goal) -> None:
        self.flat = flat
        self.meter = meter
        self.goal = goal
        self.members = list(members)
        self.sections = list(sections_of(flat, self.members))
        self.sections_of_buffer: dict[int, list[int]] = {i: [] for i in self.members}
        for number, alive in enumerate(self.sections):
            for index in alive:
                self.sections_of_buffer[index].append(number)
        num_pools = len(flat.capacity)
        self.load = [[0] * len(self.sections) for _ in range(num_pools)]
        self.highest = [0] * num_pools  # bound on each pool's top from loads of what is assigned so far
        self.assigned: list[set[int]] = [set() for _ in range(num_pools)]
        self.nogoods: list[list[frozenset[int]]] = [[] for _ in range(num_pools)]
        self.known: dict[tuple[int, frozenset[int]], Outcome] = {}
        self.total_bound = max((union_of(flat, alive) for alive in self.sections), default=0)
        is_without_choice = any(not flat.choices[i] for i in self.members)
        self.is_impossible = is_without_choice or self.total_bound > self._room()
        self.least_cost = sum(flat.choices[i][0].cost for i in self.members if flat.choices[i])
        self.best: Draft | None = None
        self.complete = True
        self.num_steps = 0  # of loops, since they were last charged
        self.num_remembered = 0
        self.leaf_nodes = max(meter.left // LEAF_SHARE, 1)
        # Buffers whose choice matters most are decided first; those without a choice before all.
        self.order = sorted(self.members, key=self._priority)
        self.twin = self._twins()
        self.chosen: dict[int, Choice] = {}
        is_one_section = len(self.sections) == 1 and not flat.contract_gaps
        is_relaxed = not (flat.contract_gaps or is_one_section or self.is_impossible)
        self.tables = KnapsackTables(flat, self.order) if is_one_section and not self.is_impossible else None
        self.relaxation = Relaxation(flat, self.sections) if is_relaxed else None
        self.root_cost = self._raised(self.least_cost, 0, range(len(self.sections)))

    def _priority(self, index: int) -> tuple[int, int, int, int]:
        choices = self.flat.choices[index]
        spread = choices[-1].cost - choices[0].cost if choices else 0
        return (min(len(choices), 2), -spread, -self.flat.size_bytes[index], index)

    def _twins(self) -> dict[int, int]:
        """By buffer: one before it in the order that differs in nothing but the name."""
        last: dict[object, int] = {}
        twins: dict[int, int] = {}
        if self.flat.contract_gaps:
            return twins
        for index in self.order:
            buffer, choices = self.flat.buffers[index], self.flat.choices[index]
            if self.flat.fixed[index] >= 0:
                continue
            key = (self.flat.size_bytes[index], buffer.lifetimes, choices)
            if key in last:
                twins[index] = last[key]
            last[key] = index
        return twins

    def run(self) -> Outcome:
        if self.is_impossible or self.root_cost >= IMPOSSIBLE:
            return Outcome(None, is_impossible=True)
        if not self._good_enough():
            self._descend()
        if self.best is None:
            return Outcome(None, self.root_cost, self.total_bound, is_impossible=self.complete)
        bounds = self.best.worth if self.complete else (self.root_cost, self.total_bound)
        return Outcome(self.best, *bounds, self._pool_bounds(self.best))

    def _room(self) -> int:
        """Bytes of all the pools that these buffers may use."""
        pools = {choice.pool for index in self.members for choice in self.flat.choices[index]}
        return sum(self.flat.capacity[pool] for pool in sorted(pools))

    def start_with_first_fit(self) -> None:
        draft = first_fit(self.flat, self.meter.native)
        if not draft.num_unplaced:
            self.best = draft

    def _good_enough(self) -> bool:
        """Whether nothing better can exist, or any plan will do and there is one."""
        if self.best is None:
            return False
        return self.goal is Goal.DECIDE or self.best.worth <= (self.root_cost, self.total_bound)

    # The search: iterative, so that thousands of buffers do not exhaust Python's stack.

    def _descend(self) -> None:
        stack = [_Step(self._choices_at(0), self.least_cost, self.root_cost)]
        while stack:
            if self.meter.left <= 0:
                self.complete = False
                return
            step, position = stack[-1], len(stack) - 1
            if position == len(self.order):
                self._leaf(step.cost)
                if self._good_enough():
                    return
            if not step.choices:
                stack.pop()
                if step.undo is not None:
                    self._take_back(step.undo)
                continue
            choice = step.choices.pop()
            index = self.order[position]
            cost = step.cost + choice.cost - self.flat.choices[index][0].cost
            self.meter.spend(min(DECISION_NODES, self.meter.left))
            self.num_steps += DECISION_STEPS
            self._charge_steps()
            if self.best is not None and cost > self.best.cost:
                continue
            undo = self._assign(index, choice)
            if undo is None:
                continue
            raised = self._raised(cost, position + 1, self.sections_of_buffer[index])
            lower_bound = max(step.lower_bound, raised)
            if self._hopeless(lower_bound):
                self._take_back(undo)
            else:
                stack.append(_Step(self._choices_at(position + 1), cost, lower_bound, undo))

    def _charge_steps(self) -> None:
        """Takes what was done since the last time off the budget."""
        if self.relaxation is not None:
            self.num_steps += self.relaxation.num_steps
            self.relaxation.num_steps = 0
        self.meter.charge(self.num_steps)
        self.num_steps = 0

    def _choices_at(self, position: int) -> list[Choice]:
        if position == len(self.order):
            return []
        index = self.order[position]
        choices = self.flat.choices[index]
        first = choices.index(self.chosen[self.twin[index]]) if index in self.twin else 0
        return list(reversed(choices[first:]))

    def _raised(self, cost: int, position: int, sections: Sequence[int]) -> int:
        """The cost with what full pools have to give up in some sections; `IMPOSSIBLE` if they cannot.

        Args:
            cost: With every buffer from the position on at its cheapest.
            position: In the order: the first that is not decided.
            sections: Those to look at.
        """
        if self.tables is not None:
            moves = self.tables.moving_cost([loads[0] for loads in self.load], position)
        elif self.relaxation is not None:
            moves = self.relaxation.moving_cost(self.load, sections)
        else:
            return cost
        return IMPOSSIBLE if moves is None else cost + moves

    def _assign(self, index: int, choice: Choice) -> _Undo | None:
        """Puts the buffer into the pool; None, and nothing done, if that pool cannot hold it."""
        pool, sections = choice.pool, self.sections_of_buffer[index]
        self.assigned[pool].add(index)
        self.num_steps += len(self.nogoods[pool]) + 2 * len(sections) + len(self.highest)
        for nogood in self.nogoods[pool]:
            if index in nogood and nogood <= self.assigned[pool]:
                self.assigned[pool].discard(index)
                return None
        loads = self.load[pool]
        undo = (index, pool, [loads[t] for t in sections], list(self.highest))
        highest = max(self.highest[pool], lowest_top(self.flat, pool, index))
        for t in sections:
            if self.flat.contract_gaps:
                together = self.assigned[pool].intersection(self.sections[t])
                self.num_steps += 4 * len(together)
                loads[t] = union_of(self.flat, together)
            else:
                loads[t] += self.flat.size_bytes[index]
            highest = max(highest, loads[t])
        self.chosen[index] = choice
        if self.relaxation is not None:
            self.relaxation.set_open(index, sections, False)
        self.highest[pool] = highest
        if highest > self.flat.capacity[pool]:
            self._take_back(undo)
            return None
        return undo

    def _take_back(self, undo: _Undo) -> None:
        index, pool, loads, self.highest = undo
        self.assigned[pool].discard(index)
        if self.relaxation is not None:
            self.relaxation.set_open(index, self.sections_of_buffer[index], True)
        for t, load in zip(self.sections_of_buffer[index], loads, strict=True):
            self.load[pool][t] = load

    def _hopeless(self, cost: int) -> bool:
        """Whether no completion beats the best plan; `cost` is a bound on that of any."""
        if cost >= IMPOSSIBLE:
            return True
        if self.best is None:
            return False
        tops = max(sum(self.highest), self.total_bound)
        return (cost, tops) >= self.best.worth

    def _leaf(self, cost: int) -> None:
        """Every buffer has a pool: places them."""
        offsets = [0] * self.flat.num_buffers
        pools = [0] * self.flat.num_buffers
        tops: list[int] = []
        for pool in range(len(self.flat.capacity)):
            outcome = self._solve(pool)
            if outcome.best is None:
                self._learn(pool, outcome)
                return
            (top,) = outcome.best.tops
            tops.append(top)
            if top > outcome.tops_lower_bound and self.goal is Goal.MINIMISE:
                self.complete = False  # a lower top may exist for this very assignment
            for index, offset in zip(sorted(self.assigned[pool]), outcome.best.offsets, strict=True):
                pools[index], offsets[index] = pool, offset
        found = Draft(pools, offsets, cost, tuple(tops))
        if self.best is None or found.worth < self.best.worth:
            self.best = found
            self.meter.best_bytes = sum(tops)
            self.meter.poll(0)

    def _solve(self, pool: int) -> Outcome:
        key = (pool, frozenset(self.assigned[pool]))
        if key not in self.known:
            members = sorted(self.assigned[pool])
            self.meter.charge(question_steps(self.flat, members))
            self.num_remembered += len(members)
            if self.num_remembered > MAX_REMEMBERED:
                self.known.clear()
                self.num_remembered = len(members)
            self.known[key] = solve_pool(self.flat, pool, members, self.meter, self.goal, self.leaf_nodes)
        return self.known[key]

    def _learn(self, pool: int, outcome: Outcome) -> None:
        """Remembers why the pool's buffers do not fit, if that is proved."""
        if not outcome.is_impossible:
            self.complete = False
            return

        def fits(members: Sequence[int]) -> bool | None:
            if not self.meter.left:
                return None
            self.meter.charge(question_steps(self.flat, members))
            return solve_pool(self.flat, pool, members, self.meter, Goal.DECIDE, SHRINK_NODES).fits

        self.nogoods[pool].append(frozenset(shrink(sorted(self.assigned[pool]), fits).members))

    def _pool_bounds(self, best: Draft) -> dict[int, int]:
        bounds: dict[int, int] = {}
        for pool in range(len(self.flat.capacity)):
            members = frozenset(i for i in self.members if best.pools[i] == pool)
            outcome = self.known.get((pool, members))
            if outcome is not None:
                bounds[pool] = outcome.tops_lower_bound
        return bounds
