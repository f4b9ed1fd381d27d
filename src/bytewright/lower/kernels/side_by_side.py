"""Results of neighbouring channels side by side: what a reduction over anything but channels keeps of each."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from bytewright import ir
from bytewright.ir.builder import load
from bytewright.lower.kernels.context import Template
from bytewright.lower.point import Coordinates
from bytewright.lower.scalar import Scalar

# The anchor's element, from what is kept of a channel and that channel; what is kept of it, from the old and the
# channel, counted within the block; what is kept at first, likewise.
Finished = Callable[[ir.Expr, ir.Expr], Scalar]
Combine = Callable[[ir.Expr, ir.Expr], ir.Expr]
Start = Callable[[ir.Expr], ir.Expr]


class Results(Protocol):
    """Results of a block of channels, under reduction."""

    def update(self, combine: Combine) -> None:
        """Writes a step of the reduction."""
        ...

    def store(self, outer: Coordinates, first: ir.Expr, finished: Finished) -> None:
        """Writes the epilogue.

        Args:
            outer: Coordinates under the output, all but the channel.
            first: The first channel of the block.
            finished: Gives the anchor's element.
        """
        ...


class Reducer(Protocol):
    """How results are kept side by side."""

    @property
    def most_channels(self) -> int:
        """Channels of a full block."""
        ...

    @property
    def divides(self) -> bool:
        """Whether results are divided as fast as they are multiplied."""
        ...

    def begin(self, template: Template, num_channels: int, dtype: ir.DType, start: Start) -> Results:
        """Writes where the results of a block are kept, and what they are at first."""
        ...


class WaitingResults(Results, Protocol):
    """Results that may wait in memory for the rest of their reduction."""

    def keep(self, memory: ir.Buffer, *outer: ir.Expr) -> None:
        """Writes what is kept to memory, beside one another."""
        ...


class WaitingReducer(Reducer, Protocol):
    """A way to keep results that may wait."""

    def begin(self, template: Template, num_channels: int, dtype: ir.DType, start: Start) -> WaitingResults:
        """As that of each reducer."""
        ...


@dataclass(frozen=True, slots=True)
class ArrayReducer:
    """In an array of their own, in loops that C compilers make vectors of; at most so many in a block."""

    most_channels: int = 8

    @property
    def divides(self) -> bool:
        """Compilers divide by a constant as fast as they multiply."""
        return True

    def begin(self, template: Template, num_channels: int, dtype: ir.DType, start: Start) -> WaitingResults:
        """Writes the array."""
        return _Array(template, num_channels, dtype, start)


class _Array:
    def __init__(self, template: Template, num_channels: int, dtype: ir.DType, start: Start) -> None:
        self.template, self.num_channels = template, num_channels
        self.results = template.kernel.scratch("results", (num_channels,), dtype)
        self._each(lambda lane: template.body.store(self.results, lane, start(lane)))

    def _each(self, write: Callable[[ir.Expr], None]) -> None:
        with self.template.body.for_("lane", 0, self.num_channels, ir.LoopKind.VECTORISED) as lane:
            write(lane)

    def update(self, combine: Combine) -> None:
        body = self.template.body
        self._each(lambda lane: body.store(self.results, lane, combine(load(self.results, lane), lane)))

    def store(self, outer: Coordinates, first: ir.Expr, finished: Finished) -> None:
        def store_lane(lane: ir.Expr) -> None:
            value = finished(load(self.results, lane), first + lane)
            self.template.epilogue.store((*outer, first + lane), value)

        self._each(store_lane)

    def keep(self, memory: ir.Buffer, *outer: ir.Expr) -> None:
        body = self.template.body
        self._each(lambda lane: body.store(memory, (*outer, lane), load(self.results, lane)))
