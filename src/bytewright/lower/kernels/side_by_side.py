"""Results of neighbouring channels side by side: what a reduction over anything but channels keeps of each."""

from collections.abc import Callable
from typing import Protocol

from bytewright import ir
from bytewright.ir.builder import load
from bytewright.lower.kernels.context import Template
from bytewright.lower.point import Coordinates
from bytewright.lower.scalar import Scalar


class Results(Protocol):
    """Results of a block of channels, under reduction."""

    def update(self, combine: Callable[[ir.Expr, ir.Expr], ir.Expr]) -> None:
        """Writes a step of the reduction.

        Args:
            combine: The new result, given the old one and which channel of the block it is of.
        """
        ...

    def store(self, outer: Coordinates, first: ir.Expr, finished: Callable[[ir.Expr], Scalar]) -> None:
        """Writes the epilogue.

        Args:
            outer: Coordinates under the output, all but the channel.
            first: The first channel of the block.
            finished: The anchor's element, given the result.
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

    def begin(self, template: Template, num_channels: int, start: ir.Const) -> Results:
        """Writes where the results of a block are kept, each of them `start`."""
        ...


class ArrayReducer:
    """In an array of their own, in loops that C compilers make vectors of."""

    most_channels = 8
    divides = True

    def begin(self, template: Template, num_channels: int, start: ir.Const) -> Results:
        """Writes the array."""
        return _Array(template, num_channels, start)


class _Array:
    def __init__(self, template: Template, num_channels: int, start: ir.Const) -> None:
        self.template, self.num_channels = template, num_channels
        self.results = template.kernel.scratch("results", (num_channels,), start.dtype)
        self._each(lambda lane: template.body.store(self.results, lane, start))

    def _each(self, write: Callable[[ir.Expr], None]) -> None:
        with self.template.body.for_("lane", 0, self.num_channels, ir.LoopKind.VECTORISED) as lane:
            write(lane)

    def update(self, combine: Callable[[ir.Expr, ir.Expr], ir.Expr]) -> None:
        body = self.template.body
        self._each(lambda lane: body.store(self.results, lane, combine(load(self.results, lane), lane)))

    def store(self, outer: Coordinates, first: ir.Expr, finished: Callable[[ir.Expr], Scalar]) -> None:
        epilogue = self.template.epilogue
        self._each(lambda lane: epilogue.store((*outer, first + lane), finished(load(self.results, lane))))
