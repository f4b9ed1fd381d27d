"""Small conflicting sets: which buffers cannot be placed together, found by leaving out one after another.

A question about some of the buffers has three answers: they fit (a plan was found), they do not (a bound or an
exhausted search says so), or the budget ran out. A buffer is dropped for good when the rest still does not
fit; it stays when the rest fits. If no question was left open, every proper subset of what remains fits, and
what remains was asked about as it stands: that is the re-check.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

# Whether the given buffers fit, or None if that is not known.
Fits = Callable[[Sequence[int]], bool | None]


@dataclass(frozen=True, slots=True)
class Conflict:
    """Buffers proved not to fit together, and whether each of them is proved to be needed for that."""

    members: tuple[int, ...] = ()
    irreducible: bool = False


NO_CONFLICT = Conflict()


def shrink(members: Sequence[int], fits: Fits) -> Conflict:
    """An irreducible part, as far as `fits` can tell, of buffers that are proved not to fit.

    Runs of buffers are tried before single ones, so that a few culprits among thousands are found in few
    questions.
    """
    kept = list(members)
    chunk = max(len(kept) // 2, 1)
    while chunk > 1:
        kept, _ = _pass(kept, chunk, fits)
        chunk //= 2
    kept, certain = _pass(kept, 1, fits)
    return Conflict(tuple(sorted(kept)), certain)


def _pass(members: list[int], chunk: int, fits: Fits) -> tuple[list[int], bool]:
    """Tries to leave out each run of `chunk` buffers in turn. Returns what stays, and whether all was certain."""
    kept = list(members)
    certain = True
    start = 0
    while start < len(kept):
        without = kept[:start] + kept[start + chunk :]
        answer = fits(without) if without else True
        if answer is False:
            kept = without
        else:
            certain = certain and answer is True
            start += chunk
    return kept, certain
