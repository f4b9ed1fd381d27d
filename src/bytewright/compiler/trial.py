"""One attempt to store a lowered module: what stacks and pools need under some conditions, whether they have it or not.

A trial that does not fit is a value and no error, so that a refusal can name everything that is missing at once, and
the search for a remedy can try again under other conditions.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from bytewright import ir
from bytewright.compiler.shortfall import largest_shortfall
from bytewright.options import Options
from bytewright.plan.solution import Solution
from bytewright.record.buffers import PlannedPart
from bytewright.record.rows import PlannedSegment
from bytewright.storage.stored import Stored
from bytewright.target.model import Role, Target
from bytewright.target.variants import with_io_pools


@dataclass(frozen=True, slots=True)
class Conditions:
    """What the user may change without changing the model; the target is as the options make it."""

    target: Target
    options: Options = field(default_factory=Options)

    def __post_init__(self) -> None:
        """Planned inputs and outputs have the target's pools for them."""
        if self.options.io is ir.Io.WORKSPACE:
            object.__setattr__(self, "target", with_io_pools(self.target))


@dataclass(frozen=True, slots=True)
class Trial:
    """What came of it.

    Attributes:
        conditions: What was tried.
        stored: What storage made of the module; stacks may exceed the limits of the conditions.
        workspace: The planner's answer for the workspace.
        parameters: The one for the parameters.
        segments: Steps that run together row by row,
        plain_workspace_bytes: and what the workspace would need without that; None if there is no such plan.
        parts: Tensors that lie in others, by the names of those.
    """

    conditions: Conditions
    stored: Stored
    workspace: Solution
    parameters: Solution
    segments: tuple[PlannedSegment, ...] = ()
    plain_workspace_bytes: int | None = None
    parts: Mapping[str, tuple[PlannedPart, ...]] = field(default_factory=dict[str, tuple[PlannedPart, ...]])

    @property
    def failing_roles(self) -> tuple[Role, ...]:
        """The roles whose pools have no plan."""
        answers = ((Role.WORKSPACE, self.workspace), (Role.PARAMETERS, self.parameters))
        return tuple(role for role, solution in answers if not solution.has_plan)

    @property
    def fits(self) -> bool:
        """Whether every stack keeps its limit and both problems have a plan."""
        return not self.failing_roles and not any(use.excess_bytes for use in self.stored.stack)

    @property
    def tops(self) -> dict[str, int]:
        """Bytes that each pool needs, as far as there are plans."""
        return {use.pool: use.top_bytes for s in (self.workspace, self.parameters) for use in s.pools}

    def is_smaller_than(self, other: "Trial") -> bool:
        """Whether it fits where the other one does not, or else needs fewer bytes of workspaces, all pools together."""
        ranks = [(trial.fits, trial.workspace.has_plan) for trial in (self, other)]
        return ranks[0] > ranks[1] if ranks[0] != ranks[1] else self._measure < other._measure

    @property
    def workspace_bytes(self) -> int:
        """Bytes of all workspace pools, as far as there is a plan; those of states are none."""
        states = {pool.name for pool in self.conditions.target.pools_of(Role.STATE)}
        return sum(use.top_bytes for use in self.workspace.pools if use.pool not in states)

    @property
    def _measure(self) -> int:
        """What the workspaces need; without a plan, what they are known to lack at least."""
        if self.workspace.has_plan:
            return self.workspace_bytes
        shortfall = largest_shortfall(self.stored.workspace)
        return 0 if shortfall is None else shortfall.missing_bytes


# Stores the module under conditions. Raises CompileError for what no size could mend.
Attempt = Callable[[Conditions], Trial]
