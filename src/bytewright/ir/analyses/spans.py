"""What stretches of a program reach of two buffers in memory, for many turns of loops at once.

One buffer is read, the other written. Of a stretch these count: the least and the greatest byte that it reads, the
same of what it writes, and how far a write reaches beyond what is read later (below), or a later read beyond what was
written (above). Each is an array over the turns of the loops around; the innermost loop has the first axis.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bytewright.ir.analyses.values import Numbers

# Stands for what is not there: greater than any address, also after a subtraction of two of it.
NOTHING = 1 << 50


@dataclass(frozen=True, slots=True)
class Reach:
    """The least and the greatest byte that is touched."""

    low: Numbers
    high: Numbers

    def turned(self, num_axes: int) -> Reach:
        """The same of all turns of a loop, the first of so many axes."""
        return Reach(
            self.low if self.low.ndim < num_axes else self.low.min(axis=0),
            self.high if self.high.ndim < num_axes else self.high.max(axis=0),
        )


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of a program.

    Attributes:
        read: What is read, of the one buffer; None if nothing is.
        written: What is written, of the other one.
        below: The most that a write lies above a later read, and one more: if the buffer that is written begins so
            many bytes below the one that is read, nothing is lost. None if no read follows a write.
        above: The most that a later read lies above a write, and one more.
    """

    read: Reach | None = None
    written: Reach | None = None
    below: Numbers | None = None
    above: Numbers | None = None

    def then(self, later: Span) -> Span:
        """This stretch, and another one after it."""
        below, above = _most(self.below, later.below), _most(self.above, later.above)
        if self.written is not None and later.read is not None:
            below = _most(below, self.written.high - later.read.low + 1)
            above = _most(above, later.read.high - self.written.low + 1)
        return Span(_united(self.read, later.read), _united(self.written, later.written), below, above)

    def turned(self, num_turns: int, num_axes: int) -> Span:
        """A loop, of which this is the body: its turns, one after the other, are the first of so many axes."""
        read = None if self.read is None else self.read.turned(num_axes)
        written = None if self.written is None else self.written.turned(num_axes)
        below, above = _greatest(self.below, num_axes), _greatest(self.above, num_axes)
        if self.read is not None and self.written is not None and num_turns > 1:
            highest = np.maximum.accumulate(_each(self.written.high, num_turns, num_axes), axis=0)[:-1]
            lowest = np.minimum.accumulate(_each(self.written.low, num_turns, num_axes), axis=0)[:-1]
            later_low = _each(self.read.low, num_turns, num_axes)[1:]
            later_high = _each(self.read.high, num_turns, num_axes)[1:]
            below = _most(below, (highest - later_low + 1).max(axis=0))
            above = _most(above, (later_high - lowest + 1).max(axis=0))
        return Span(read, written, below, above)

    def is_ordered(self, num_turns: int, num_axes: int) -> bool:
        """Whether, of a loop with this body, each turn writes above all turns before it, or each below."""
        if self.written is None or num_turns == 1:
            return True
        low = _each(self.written.low, num_turns, num_axes)
        high = _each(self.written.high, num_turns, num_axes)
        ascends = np.maximum.accumulate(high, axis=0)[:-1] < low[1:]
        descends = np.minimum.accumulate(low, axis=0)[:-1] > high[1:]
        return bool(ascends.all() or descends.all())


def _each(numbers: Numbers, num_turns: int, num_axes: int) -> Numbers:
    """The numbers with each turn of the loop of the first axis by itself."""
    inner = (*(1,) * (num_axes - 1 - numbers.ndim), *numbers.shape)[-(num_axes - 1) :] if num_axes > 1 else ()
    return np.broadcast_to(numbers, (num_turns, *inner))


def _greatest(numbers: Numbers | None, num_axes: int) -> Numbers | None:
    return numbers if numbers is None or numbers.ndim < num_axes else numbers.max(axis=0)


def _most(first: Numbers | None, second: Numbers | None) -> Numbers | None:
    return second if first is None else first if second is None else np.maximum(first, second)


def _united(first: Reach | None, second: Reach | None) -> Reach | None:
    if first is None or second is None:
        return second if first is None else first
    return Reach(np.minimum(first.low, second.low), np.maximum(first.high, second.high))
