"""What storage makes of a module: every allocation decided but for its offset, and what the planner is asked."""

from dataclasses import dataclass

from bytewright import ir
from bytewright.ir.analyses.clock import Timeline
from bytewright.ir.analyses.stack import StackUse
from bytewright.plan.problem import Problem
from bytewright.storage.find_overlaps import Overlap


@dataclass(frozen=True, slots=True)
class Stored:
    """A module at stage STORED.

    Attributes:
        timeline: Its clock.
        stack: Of every context that the module runs on, that of the entry first.
        overlaps: The pairs of buffers that may overlap.
        workspace: The planning problem of the workspace.
        parameters: The one of the parameters.
    """

    module: ir.Module
    timeline: Timeline
    stack: tuple[StackUse, ...]
    overlaps: tuple[Overlap, ...]
    workspace: Problem
    parameters: Problem
