"""Where the elements of a resized axis come from, as the references compute it: in float32, or in 1/1024 of an element.

Both references compute these positions at run time; where shapes are fixed here, each is a number. Scales are rounded
to float32, or to 1/1024, before they are multiplied, so positions are not those of exact fractions.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Int64 = NDArray[np.int64]
Float32 = NDArray[np.float32]

FRACTION_BITS = 10
"""Binary digits of a position in fixed point."""
ONE = 1 << FRACTION_BITS


@dataclass(frozen=True, slots=True)
class ResizedAxis:
    """One spatial axis of a resize; for `require_inside`, several.

    Attributes:
        size: Elements of the input: a number, or of several axes an array, as `out`.
        out: Elements of the output.
        align_corners: Whether the first and the last elements of both lie over each other.
        half_pixel_centers: Whether positions are those of the middles of elements.
    """

    size: Any
    out: Any
    align_corners: bool
    half_pixel_centers: bool

    @property
    def ratio(self) -> tuple[Any, Any]:
        """Steps of the input in so many steps of the output."""
        fewer = self.align_corners * (self.out > 1)
        return self.size - fewer, self.out - fewer

    @property
    def scale(self) -> Any:
        """The same in float32."""
        steps, out = self.ratio
        return np.float32(steps) / np.float32(out)

    @property
    def fixed_scale(self) -> Any:
        """The same in 1/1024, rounded half up."""
        steps, out = self.ratio
        return (ONE * steps + out // 2) // out

    @property
    def fixed_offset(self) -> Any:
        """The position of the first element, in 1/1024."""
        return self.fixed_scale // 2 - ONE // 2 if self.half_pixel_centers else 0

    def nearest(self) -> Int64:
        """The element that each one of the output is."""
        middle = np.float32(0.5 if self.half_pixel_centers else 0.0)
        position = (np.arange(self.out).astype(np.float32) + middle) * self.scale
        whole = np.floor(position)
        if self.align_corners:
            whole = np.where(position - whole >= 0.5, whole + 1, whole)
        return np.clip(whole.astype(np.int64), 0, self.size - 1)

    def positions(self) -> Float32:
        """Where each element of the output lies between elements of the input, in float32."""
        return self._position(np.arange(self.out).astype(np.float32))

    def fixed_positions(self) -> Int64:
        """The same in 1/1024."""
        return np.arange(self.out, dtype=np.int64) * self.fixed_scale + self.fixed_offset

    def between(self, *, fixed: bool) -> tuple[Int64, Int64]:
        """The elements before and after each of these positions.

        Raises:
            ValueError: As of `require_inside`.
        """
        self.require_inside(fixed=fixed)
        if fixed:
            position = self.fixed_positions()
            before, after = np.maximum(position, 0) // ONE, (position + ONE - 1) // ONE
        else:
            exact = self.positions()
            before, after = np.maximum(np.floor(exact), 0).astype(np.int64), np.ceil(exact).astype(np.int64)
        return before, np.minimum(after, self.size - 1)

    def require_inside(self, *, fixed: bool) -> None:
        """Refuses an axis of which the references read an element behind the last: scales are rounded up.

        Raises:
            ValueError: The last element of the output, and so perhaps others, would be after all of the input.
        """
        last = self.out - 1
        if fixed:
            before = (last * self.fixed_scale + self.fixed_offset) // ONE
        else:
            before = np.floor(self._position(np.float32(last))).astype(np.int64)
        outside = np.flatnonzero(before >= self.size)
        if outside.size:
            of_each = np.broadcast_arrays(last, self.out, before, self.size)
            last, out, before, size = (int(each.flat[outside[0]]) for each in of_each)
            raise ValueError(
                f"element {last} of {out} would lie at {before} of {size}: the reference reads beyond its input"
            )

    def _position(self, index: Any) -> Any:
        """Where elements of the output, in float32, lie between elements of the input."""
        if not self.half_pixel_centers:
            return index * self.scale
        return (index + np.float32(0.5)) * self.scale - np.float32(0.5)
