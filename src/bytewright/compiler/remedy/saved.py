"""What a need would be without what lowers it already: rows, overlaps, and channels that were taken away.

Each is measured alone: the module is stored without it, and the same pools are asked what they need at least then.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from bytewright import ir
from bytewright.compiler.shortfall import Shortfall, needed_in
from bytewright.compiler.trial import Attempt, Conditions, Trial
from bytewright.diagnostics import CompileError
from bytewright.options import Rows
from bytewright.plan.problem import Problem
from bytewright.target.model import Role


@dataclass(frozen=True, slots=True)
class Savings:
    """What measures them.

    Attributes:
        attempt: Stores the module.
        attempt_wide: The same with all of its channels; None if none were taken away.
    """

    attempt: Attempt
    attempt_wide: Attempt | None

    def notes(self, trial: Trial, role: Role, whole: Shortfall) -> Iterator[str]:
        """`saved already: 22672 B by rows, 96 B by overlaps`; nothing where nothing was saved."""
        problems = {
            "rows": self._without_rows(trial, role),
            "overlaps": replace(problem_of(trial, role), contracts=()),
            "constant channels": _stored(self.attempt_wide, trial.conditions, role),
        }
        saved = {
            name: needed_in(problem, whole.pools).needed_bytes - whole.needed_bytes
            for name, problem in problems.items()
            if problem is not None
        }
        texts = [f"{num_bytes} B by {name}" for name, num_bytes in saved.items() if num_bytes > 0]
        if texts:
            yield f"saved already: {', '.join(texts)}"

    def _without_rows(self, trial: Trial, role: Role) -> Problem | None:
        """The problem with steps one by one; None where none run by rows, or the image comes so."""
        options = trial.conditions.options
        if not trial.segments or role is Role.PARAMETERS or options.io is ir.Io.ROWS:
            return None
        conditions = replace(trial.conditions, options=replace(options, rows=Rows.OFF))
        return _stored(self.attempt, conditions, role)


def problem_of(trial: Trial, role: Role) -> Problem:
    """That of the workspace or of the parameters."""
    return trial.stored.parameters if role is Role.PARAMETERS else trial.stored.workspace


def _stored(attempt: Attempt | None, conditions: Conditions, role: Role) -> Problem | None:
    if attempt is None:
        return None
    try:
        return problem_of(attempt(conditions), role)
    except CompileError:  # it is refused for another reason then
        return None
