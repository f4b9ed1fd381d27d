"""What `solve` asks of a solver, and what a solver answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum

from bytewright.plan.solution import Placement

# Nodes over all searches of one `solve`. The native core visits 100,000 to 1,000,000 a second.
DEFAULT_NODE_BUDGET = 4_000_000


class Goal(Enum):
    """When to stop."""

    MINIMISE = "minimise"  # least cost, then least tops
    DECIDE = "decide"  # any plan within the capacities


@dataclass(frozen=True, slots=True)
class Report:
    """What is known in the middle of a run, for a progress display."""

    nodes: int
    best_bytes: int | None
    lower_bound_bytes: int


Progress = Callable[[Report], None]


@dataclass(frozen=True, slots=True)
class Request:
    """How far to go, and whether the C core may be used (the answer is the same without)."""

    node_budget: int
    goal: Goal
    progress: Progress | None = None
    native: bool = True


class Meter:
    """Counts the nodes of all searches of one `solve` against its budget, and reports progress."""

    def __init__(self, request: Request) -> None:
        self.request = request
        self.num_nodes = 0
        self.best_bytes: int | None = None
        self.lower_bound_bytes = 0

    @property
    def left(self) -> int:
        """Nodes that may still be visited."""
        return max(self.request.node_budget - self.num_nodes, 0)

    def spend(self, num_nodes: int) -> None:
        """Takes nodes off the budget."""
        self.num_nodes += num_nodes
        self.poll(0)

    def poll(self, num_nodes_of_search: int) -> None:
        """Reports progress; a search calls it now and then with its own count."""
        if self.request.progress is not None:
            nodes = self.num_nodes + num_nodes_of_search
            self.request.progress(Report(nodes, self.best_bytes, self.lower_bound_bytes))


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a solver found and what it proved.

    Attributes:
        placements: A plan, or None.
        trusted: Whether the solver is part of this package, so that a bad plan is a bug here.
        cost_lower_bound: Proved bound on the cost.
        tops_lower_bound: Proved bound on the sum of tops among the plans of least cost.
        pool_lower_bounds: By pool index: proved bound on the top, for the buffers this plan sends there.
        infeasible_set: Indices of buffers proved not to fit together; empty if nothing is proved.
        irreducible: Whether each proper subset of it is proved to fit.
        num_nodes: Search nodes visited.
        native: Whether the C core was used.
    """

    placements: tuple[Placement, ...] | None
    trusted: bool = True
    cost_lower_bound: int = 0
    tops_lower_bound: int = 0
    pool_lower_bounds: Mapping[int, int] = field(default_factory=dict[int, int])
    infeasible_set: tuple[int, ...] = ()
    irreducible: bool = False
    num_nodes: int = 0
    native: bool = False
