"""What every search for a way out does: try one candidate after another, and remember what came of each question."""

from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Generic, TypeVar

from bytewright.diagnostics import CompileError

Asked = TypeVar("Asked")
Outcome = TypeVar("Outcome")
Candidate = TypeVar("Candidate")


class Tries(Generic[Asked, Outcome]):
    """Questions that were asked, each once, and what came of them.

    Args:
        attempt: What is tried. It raises CompileError where there is no outcome.
        succeeds: Whether an outcome is what is looked for.
    """

    def __init__(self, attempt: Callable[[Asked], Outcome], succeeds: Callable[[Outcome], bool]) -> None:
        self.attempt = attempt
        self.succeeds = succeeds
        self.known: dict[Asked, Outcome | None] = {}

    def outcome(self, asked: Asked) -> Outcome | None:
        """What comes of it; None if it is refused."""
        if asked not in self.known:
            self.known[asked] = None
            with suppress(CompileError):
                self.known[asked] = self.attempt(asked)
        return self.known[asked]

    def first(
        self, candidates: Iterable[Candidate], question: Callable[[Candidate], Asked]
    ) -> Candidate | None:
        """The first candidate, of those that may be offered, for which what is then asked succeeds."""
        for candidate in candidates:
            with suppress(CompileError):  # where the question makes no sense
                outcome = self.outcome(question(candidate))
                if outcome is not None and self.succeeds(outcome):
                    return candidate
        return None
