"""Windows that slide over an input: geometry shared by convolutions and pools."""

from contextlib import AbstractContextManager
from dataclasses import dataclass, replace

from bytewright import ir
from bytewright.ir.builder import BodyBuilder
from bytewright.lower.kernels.context import Pixel, named, nest


@dataclass(frozen=True, slots=True)
class Axis:
    """One spatial axis of a sliding window.

    Attributes:
        size: Elements of the input.
        out: Elements of the output.
        kernel: Taps of the window.
        pad_before: Positions before the input that windows begin at, the most there are.
        pad_after: Positions behind the input that windows reach, the most there are; of an open input alone.
        open_size: What `size`, and with it `out`, is the largest of; None if it is fixed.
        open_out: What `out` is the largest of; None if it is fixed.
        open_before: What `pad_before` is the largest of; None if it is fixed.
    """

    size: int
    out: int
    kernel: int
    stride: int
    dilation: int
    pad_before: int
    pad_after: int = 0
    open_size: ir.OpenExtent | None = None
    open_out: ir.OpenExtent | None = None
    open_before: ir.Expr | None = None

    def of_elements(self, depth: int) -> "Axis":
        """The axis, not dilated, with so many elements one after another in place of each."""
        return replace(
            self,
            size=self.size * depth,
            kernel=self.kernel * depth,
            stride=self.stride * depth,
            pad_before=self.pad_before * depth,
            pad_after=self.pad_after * depth,
            open_size=None if self.open_size is None else ir.multiple(self.open_size, depth),
            open_before=None if self.open_before is None else self.open_before * depth,
        )

    @property
    def before(self) -> ir.Expr | int:
        """Positions before the input that the first window begins at in a run."""
        return self.pad_before if self.open_before is None else self.open_before

    @property
    def extent(self) -> ir.Extent:
        """Elements of the input in a run."""
        return self.size if self.open_size is None else self.open_size

    @property
    def out_extent(self) -> ir.Extent:
        """Elements of the output in a run."""
        return self.out if self.open_out is None else self.open_out

    def may_leave(self, block: int) -> bool:
        """Whether elements of the output may be left behind whole blocks of them."""
        return block > 1 and (self.open_out is not None or self.out % block != 0)

    def tap(self, position: ir.Expr, offset: ir.Expr | int) -> ir.Expr:
        """Input index of a tap; negative or past the end in the padding."""
        if self.open_before is not None:
            return position * self.stride + offset * self.dilation - self.open_before
        return position * self.stride + (offset * self.dilation - self.pad_before)

    @property
    def interior(self) -> tuple[int, int]:
        """Output positions `[first, last)` whose windows lie inside the input altogether, of the largest one."""
        reach = (self.kernel - 1) * self.dilation
        first = -(-self.pad_before // self.stride)
        last = (self.size - 1 - reach + self.pad_before) // self.stride + 1
        first, last = min(first, self.out), min(last, self.out)
        return (first, last) if first < last else (0, 0)

    @property
    def is_all_interior(self) -> bool:
        """True if no window touches the padding."""
        return self.interior == (0, self.out) and not self.pad_after

    def inside(self, position: int) -> range:
        """The taps of an output position that lie inside the input."""
        start = position * self.stride - self.pad_before
        first = min(max(0, -(start // self.dilation)), self.kernel)
        last = (self.size - 1 - start) // self.dilation
        return range(first, max(first, min(last + 1, self.kernel)))

    def is_interior(self, position: ir.Expr) -> ir.Expr:
        """Whether the window of an output position lies inside the input; a constant where every one does, or none."""
        first, last = self.interior
        if first == last:
            return ir.FALSE
        condition: ir.Expr = ir.TRUE
        if first > 0:
            condition = ir.both(condition, position >= first)
        if last < self.out or self.pad_after:
            condition = ir.both(condition, position < self._interior_end(last))
        return condition

    def interior_in_run(self) -> tuple[ir.Expr, ir.Expr]:
        """As `interior`, of the input in a run, of which some windows may lie inside if any do of the largest one."""
        first, last = self.interior
        if self.open_size is None:
            return ir.const(first), ir.const(last)
        begin = ir.minimum(ir.extent_expr(self.out_extent), first)
        return begin, ir.maximum(begin, self._interior_end(last))

    def _interior_end(self, last: int) -> int | ir.Expr:
        """The end of the interior in a run, where it is `last` for the largest input."""
        if self.open_size is None:
            return last
        more = self.stride - (self.kernel - 1) * self.dilation - 1
        if self.open_before is not None:
            return (ir.extent_expr(self.open_size) + self.open_before + more) // self.stride
        return ir.extent_expr(ir.quotient(self.open_size, self.pad_before + more, self.stride))

    def contains(self, index: ir.Expr, offset: ir.Expr | int, condition: ir.Expr = ir.TRUE) -> ir.Expr:
        """Whether a condition holds, and a tap's input index lies inside; TRUE, the constant, where both always do."""
        first_offset = offset if isinstance(offset, int) else 0
        last_offset = offset if isinstance(offset, int) else self.kernel - 1
        if first_offset * self.dilation - self.pad_before < 0:
            condition = ir.both(condition, index >= 0)
        reached = (self.out - 1) * self.stride + last_offset * self.dilation - self.pad_before
        if self.pad_after or (self.open_size is None and reached >= self.size):
            condition = ir.both(condition, index < ir.extent_expr(self.extent))
        return condition


@dataclass(frozen=True, slots=True)
class Window:
    """A window over rows and columns."""

    rows: Axis
    columns: Axis

    @property
    def num_taps(self) -> int:
        """Taps of the window."""
        return self.rows.kernel * self.columns.kernel

    @property
    def is_all_interior(self) -> bool:
        """True if no window touches the padding."""
        return self.rows.is_all_interior and self.columns.is_all_interior

    def is_interior(self, pixel: Pixel) -> ir.Expr:
        """Whether the window of a pixel lies inside the input; a constant where every one does, or none."""
        _, y, x = pixel
        return ir.both(self.rows.is_interior(y), self.columns.is_interior(x))

    def loops(self, body: BodyBuilder) -> AbstractContextManager[tuple[ir.Expr, ...]]:
        """Nested loops over the rows and columns of the window."""
        return nest(body, ("ky", "kx"), (self.rows.kernel, self.columns.kernel))

    def under(self, body: BodyBuilder, pixel: Pixel, ky: ir.Expr, kx: ir.Expr) -> Pixel:
        """The position in the input of one tap, under names."""
        n, y, x = pixel
        return n, named(body, "iy", self.rows.tap(y, ky)), named(body, "ix", self.columns.tap(x, kx))

    def contains(self, position: Pixel, ky: ir.Expr | int, kx: ir.Expr | int) -> ir.Expr:
        """Whether the position of a tap lies inside the input; TRUE, the constant, where that of every one does."""
        _, iy, ix = position
        return self.columns.contains(ix, kx, self.rows.contains(iy, ky))


def window_of(
    in_shape: tuple[ir.Extent, ...],
    out_shape: tuple[ir.Extent, ...],
    kernel: tuple[int, int],
    stride: tuple[int, int],
    dilation: tuple[int, int],
    padding: tuple[int, int, int, int],
    *,
    is_same: bool = False,
) -> Window:
    """The window of an operator from [N,H,W,C] to that of its result; padding is (top, bottom, left, right).

    With `is_same`, the padding along an open axis is the most of what SAME makes of it.
    """
    rows, columns = (
        _opened(
            Axis(
                size=ir.upper_bound(in_shape[axis + 1]),
                out=ir.upper_bound(out_shape[axis + 1]),
                kernel=kernel[axis],
                stride=stride[axis],
                dilation=dilation[axis],
                pad_before=padding[2 * axis],
            ),
            in_shape[axis + 1],
            out_shape[axis + 1],
            padding[2 * axis + 1],
            is_same=is_same,
        )
        for axis in (0, 1)
    )
    return Window(rows, columns)


def _opened(axis: Axis, size: ir.Extent, out: ir.Extent, pad_after: int, *, is_same: bool) -> Axis:
    """The axis with the extents that it has in a run, where the input's is open."""
    if isinstance(size, int):
        return axis
    open_out = None if isinstance(out, int) else out
    axis = replace(axis, open_size=size, open_out=open_out, pad_after=pad_after)
    if not is_same or axis.stride == 1:  # by a stride alone does it depend on the extent
        return axis
    most = (ir.extent_expr(axis.out_extent) - 1) * axis.stride + (axis.kernel - 1) * axis.dilation + 1
    return replace(axis, open_before=ir.maximum(most - ir.extent_expr(size), 0) // 2)
