"""The answer to a planning problem: places, evidence, or the reason why there are none.

A solution says how good it is: each pool has its top and a proved lower bound, and the whole has a status.
`INFEASIBLE` comes with a set of buffers that cannot be placed together; `UNKNOWN` means that the budget ran
out before either a plan or a proof was found.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property

from bytewright.diagnostics import Diagnostic


class Status(Enum):
    """What is known about the answer."""

    OPTIMAL = "optimal"  # a plan, and proof that none is better
    GAP = "gap"  # a plan, and a bound below it
    INFEASIBLE = "infeasible"  # proof that there is no plan
    UNKNOWN = "unknown"  # neither plan nor proof within the budget


@dataclass(frozen=True, slots=True)
class Placement:
    """Where one buffer ends.

    Attributes:
        offset: In its pool, in bytes.
    """

    buffer: str
    pool: str
    offset: int


@dataclass(frozen=True, slots=True)
class PoolUse:
    """How far one pool is filled.

    Attributes:
        pool: The pool's name.
        top_bytes: One past the last byte used.
        lower_bound_bytes: No plan that sends the same buffers to this pool has a lower top.
        capacity_bytes: As in the problem.
        alignment: What the base of the pool must be aligned to if its address is not given.
    """

    pool: str
    top_bytes: int
    lower_bound_bytes: int
    capacity_bytes: int | None
    alignment: int

    @property
    def optimal(self) -> bool:
        """Whether the top is proved to be as low as these buffers allow."""
        return self.top_bytes == self.lower_bound_bytes


@dataclass(frozen=True, slots=True)
class Statistics:
    """What the solver did: never any time, so that equal runs give equal solutions.

    Attributes:
        solver: Its name.
        nodes: Search nodes visited.
        native: Whether the C core was at hand.
        work: Items that loops looked at on account of the budget, see docs/planner.md.
    """

    solver: str
    nodes: int = 0
    native: bool = False
    work: int = 0


@dataclass(frozen=True, slots=True)
class Shortage:
    """Why buffers do not fit one of their pools.

    Attributes:
        pool: The pool's name.
        capacity_bytes: Its hard limit.
        needed_bytes: A capacity that is known to be necessary for the buffers of the infeasible set, if they
            all went to this pool.
        tick: A time at which that much is alive, or None if the bound does not come from one time.
        fitting_bytes: A capacity with which everything fits, the other pools as they are: there is a plan. None if none
            was found.
    """

    pool: str
    capacity_bytes: int
    needed_bytes: int
    tick: int | None
    fitting_bytes: int | None = None


@dataclass(frozen=True)
class Solution:
    """The outcome of `solve`.

    Attributes:
        status: What is known.
        placements: One for each buffer in the problem's order; empty if there is no plan.
        pools: One for each pool in the problem's order; empty if there is no plan.
        cost: The sum of the chosen candidates' costs.
        cost_lower_bound: No plan has a smaller cost.
        tops_lower_bound_bytes: No plan of the least cost has a smaller sum of tops.
        infeasible_set: Buffers that cannot be placed together (status INFEASIBLE), in the problem's order.
        irreducible: Whether every proper subset of `infeasible_set` is proved to have a plan.
        shortages: For status INFEASIBLE, the numbers for each pool that these buffers may use.
        statistics: How it was found.
    """

    status: Status
    placements: tuple[Placement, ...] = ()
    pools: tuple[PoolUse, ...] = ()
    cost: int = 0
    cost_lower_bound: int = 0
    tops_lower_bound_bytes: int = 0
    infeasible_set: tuple[str, ...] = ()
    irreducible: bool = False
    shortages: tuple[Shortage, ...] = ()
    statistics: Statistics = field(default_factory=lambda: Statistics("none"))

    @property
    def has_plan(self) -> bool:
        """Whether there is a plan to use."""
        return self.status in (Status.OPTIMAL, Status.GAP)

    @cached_property
    def placement_of(self) -> dict[str, Placement]:
        """Placements by buffer name."""
        return {placement.buffer: placement for placement in self.placements}

    @cached_property
    def use_of(self) -> dict[str, PoolUse]:
        """Pool uses by pool name."""
        return {use.pool: use for use in self.pools}

    def diagnose(self) -> Diagnostic:
        """Why there is no plan, as a BW301 diagnostic."""
        notes = [_shortage_text(shortage) for shortage in self.shortages]
        if self.status is Status.UNKNOWN:
            return Diagnostic(
                "BW301",
                f"within {self.statistics.nodes} search nodes there was neither a plan nor a proof",
                tuple(notes),
                self._help() or "raise the search budget or the capacity",
            )
        names = [f"'{name}'" for name in self.infeasible_set]
        shown = ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")
        if len(names) == 1:
            message = f"buffer {shown} cannot be placed"
        else:
            message = f"{len(names)} buffers cannot be placed together: {shown}"
        if self.irreducible and len(names) > 1:
            notes.append("without any one of them the others can be placed")
        return Diagnostic("BW301", message, tuple(notes), self._help())

    def _help(self) -> str | None:
        smallest = self.smallest_change
        if smallest is None:
            return None
        return f"give '{smallest.pool}' {smallest.fitting_bytes} B: there is a plan of that size"

    @property
    def smallest_change(self) -> Shortage | None:
        """The pool that needs fewest bytes more for everything to fit, as far as plans were found."""
        return min(
            (shortage for shortage in self.shortages if shortage.fitting_bytes is not None),
            key=lambda shortage: (shortage.fitting_bytes or 0) - shortage.capacity_bytes,
            default=None,
        )


def _shortage_text(shortage: Shortage) -> str:
    missing = shortage.needed_bytes - shortage.capacity_bytes
    when = "" if shortage.tick is None else f" at tick {shortage.tick}"
    text = f"{shortage.pool}  {shortage.capacity_bytes} B, {shortage.needed_bytes} B needed{when}"
    return f"{text}: {missing} B too few" if missing > 0 else text
