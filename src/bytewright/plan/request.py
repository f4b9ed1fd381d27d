"""What `solve` asks of a solver: its goal, and the budget that it may spend."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum

# Nodes over all searches of one `solve`. The native core visits 100,000 to 1,000,000 a second.
DEFAULT_NODE_BUDGET = 4_000_000
# A budget of nodes also bounds the work, in items looked at: neighbours, members of a section, candidates. Where a node
# looks at many, as among a thousand buffers that all coexist, the work ends first. What the default budget grants takes
# some seconds; a smaller budget grants no more than so many items for each node, a larger one grows evenly.
WORK_PER_NODE = 8000
DEFAULT_WORK = 4_000_000_000
# A step of a loop in Python takes about as long as this many items in C.
PYTHON_STEP = 64
LARGEST_BUDGET = 1 << 50


def work_budget(node_budget: int) -> int:
    """How many items may be looked at under a budget of nodes."""
    return min(
        node_budget * WORK_PER_NODE,
        max(DEFAULT_WORK, node_budget * (DEFAULT_WORK // DEFAULT_NODE_BUDGET)),
    )


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


class Meter:
    """Counts the nodes of all searches of one `solve`, and their work, against its budget, and reports progress.

    Args:
        node_budget: How far to go.
        goal: When to stop.
        progress: What to call now and then.
        native: Whether the C core may be used (the answer is the same without).
        explains: Whether it is asked which buffers are in conflict where there is no plan.
    """

    def __init__(
        self,
        node_budget: int,
        goal: Goal,
        progress: Progress | None = None,
        native: bool = True,
        explains: bool = True,
    ) -> None:
        self.node_budget = node_budget
        self.goal = goal
        self.progress = progress
        self.native = native
        self.explains = explains
        self.num_nodes = 0
        self.work = 0
        self._max_nodes = min(max(node_budget, 0), LARGEST_BUDGET)
        self._max_work = work_budget(self._max_nodes)
        self.best_bytes: int | None = None
        self.lower_bound_bytes = 0

    @property
    def left(self) -> int:
        """Nodes that may still be visited; none when the work has used the budget up."""
        return max(self._max_nodes - self.num_nodes, 0) if self.work_left else 0

    @property
    def work_left(self) -> int:
        """Items that may still be looked at."""
        return max(self._max_work - self.work, 0)

    @contextmanager
    def part(self, num_nodes: int) -> Generator[Meter, None, None]:
        """A meter of its own for one question, that may cost so many nodes; what it counts is spent here afterwards."""
        part = Meter(min(num_nodes, self.left), self.goal, None, self.native)
        part._max_work = min(part._max_work, self.work_left)
        yield part
        self.spend(part.num_nodes, part.work)

    def spend(self, num_nodes: int, work: int = 0) -> None:
        """Takes nodes, and the items that they looked at, off the budget."""
        self.num_nodes += num_nodes
        self.work += work
        self.poll(0)

    def charge(self, num_steps: int) -> None:
        """Takes steps of loops in Python off the budget."""
        self.work += PYTHON_STEP * num_steps

    def poll(self, num_nodes_of_search: int) -> None:
        """Reports progress; a search calls it now and then with its own count."""
        if self.progress is not None:
            nodes = self.num_nodes + num_nodes_of_search
            self.progress(Report(nodes, self.best_bytes, self.lower_bound_bytes))
