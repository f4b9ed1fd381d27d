"""A solution that has a plan, or the error of one that has none."""

from bytewright.diagnostics import CompileError
from bytewright.plan.solution import Solution


def with_plan(solution: Solution) -> Solution:
    """The solution itself if it has a plan.

    Raises:
        CompileError: BW301 with the numbers, if there is none.
    """
    if solution.has_plan:
        return solution
    raise CompileError(solution.diagnose())
