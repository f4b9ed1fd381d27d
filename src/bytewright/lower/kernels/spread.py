"""Geometry of transposed convolutions: which taps reach a position of the result, and what elements they come from.

Along an axis of stride s, the positions with one remainder by s are of one *phase*. The taps that reach one are every
s-th, from that of its phase on, and they come from elements of the input one after the other. So the results of a phase
are a convolution of stride 1 with those taps: a sub-pixel convolution, of which each *cell* of s positions has one
pixel. Phases that equally many taps reach have windows alike.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise, product

from bytewright import ir
from bytewright.lower.kernels.context import Template, counted, named
from bytewright.lower.kernels.convolution import Convolution
from bytewright.lower.kernels.window import Axis, Window
from bytewright.ops.convolution import TransposeConv2d


@dataclass(frozen=True, slots=True)
class Phases:
    """Phases of an axis that equally many taps reach.

    Attributes:
        first: The first of them.
        num: How many, one after another.
        num_taps: That reach a position of each.
        first_cell: The first cell that is computed.
        num_cells: How many are.
    """

    first: int
    num: int
    num_taps: int
    first_cell: int
    num_cells: int


@dataclass(frozen=True, slots=True)
class SpreadAxis:
    """One spatial axis.

    Attributes:
        size: Elements of the input.
        out: Elements of the output, at most.
        kernel: Taps of the window.
        pad_before: Positions of the output before the first tap of the first element; negative where that is cut off.
    """

    size: ir.Extent
    out: int
    kernel: int
    stride: int
    pad_before: int

    @property
    def num_taps(self) -> int:
        """That reach one position, at most."""
        return -(-self.kernel // self.stride)

    @property
    def skipped(self) -> int:
        """Elements before the first one, whose windows would begin before the output, so that no phase is negative."""
        return max(0, -(-self.pad_before // self.stride))

    @property
    def shift(self) -> int:
        """From a position of the output to one of the windows of elements, those skipped included."""
        return self.skipped * self.stride - self.pad_before

    @property
    def num_cells(self) -> int:
        """Cells that the output has a position of; it may lack some of those of the first and of the last."""
        return (self.out - 1 + self.shift) // self.stride + 1

    @property
    def phases(self) -> list[Phases]:
        """All phases, those first that most taps reach; not every phase occurs in a short output."""
        full = self.kernel % self.stride or self.stride
        rest = self.stride - full
        more = [Phases(full, rest, self.num_taps - 1, 0, self.num_cells)] if rest else []
        return [Phases(0, full, self.num_taps, 0, self.num_cells), *more]

    @property
    def runs(self) -> list[Phases]:
        """All phases that occur; those of a run have positions in the same cells, and in each of them."""
        last = (self.out - 1 + self.shift) % self.stride
        found: list[Phases] = []
        for phases in self.phases:
            end = phases.first + phases.num
            inner = (self.shift % self.stride, last + 1)
            cuts = sorted({phases.first, end, *(cut for cut in inner if phases.first < cut < end)})
            for first, after in pairwise(cuts):
                first_cell = max(0, -((first - self.shift) // self.stride))
                num_cells = self.num_cells - first_cell - int(first > last)
                if num_cells > 0:
                    found.append(Phases(first, after - first, phases.num_taps, first_cell, num_cells))
        return found

    def window(self, phases: Phases) -> Axis:
        """What lies under the cells of some phases, from `first_window` on."""
        first = self.first_window(phases)
        num = phases.first_cell - first + phases.num_cells
        return Axis(ir.upper_bound(self.size), num, phases.num_taps, 1, 1, self._before(phases) - first)

    def first_window(self, phases: Phases) -> int:
        """The first cell that their window is said of: theirs, unless that would begin behind the first element."""
        return min(phases.first_cell, self._before(phases))

    def _before(self, phases: Phases) -> int:
        """Positions before the input under the cell 0."""
        return max(0, phases.num_taps - 1 + self.skipped)

    def taps(self, phase: int, num_taps: int) -> list[int]:
        """Those that reach a phase, in the order of the elements that they come from."""
        return [phase + number * self.stride for number in reversed(range(num_taps))]

    def phase(self, position: ir.Expr) -> ir.Expr:
        """The first tap that reaches a position."""
        return ir.const(0) if self.stride == 1 else (position + self.shift) % self.stride

    def cell(self, position: ir.Expr) -> ir.Expr:
        """The cell of a position."""
        shifted = position + self.shift
        return shifted if self.stride == 1 else shifted // self.stride

    def tap(self, phase: ir.Expr, number: ir.Expr) -> ir.Expr:
        """The taps that reach a position, the last one first."""
        return phase + (self.num_taps - 1 - number) * self.stride

    def source(self, position: ir.Expr, number: ir.Expr) -> ir.Expr:
        """The elements of the input that these come from, ascending."""
        return self.cell(position) + (number - (self.num_taps - 1 + self.skipped))

    def reaches(self, source: ir.Expr, tap: ir.Expr) -> ir.Expr:
        """Whether the window has the tap, and the input the element; TRUE, the constant, where both always do."""
        condition: ir.Expr = ir.TRUE
        if self.kernel % self.stride:
            condition = ir.both(condition, tap < self.kernel)
        if self.shift // self.stride - (self.num_taps - 1 + self.skipped) < 0:
            condition = ir.both(condition, source >= 0)
        if (self.out - 1 + self.shift) // self.stride - self.skipped >= ir.upper_bound(self.size):
            condition = ir.both(condition, source < ir.extent_expr(self.size))
        return condition


SIZE_IS_OPEN = "how many rows or columns there are is not known"


def has_known_size(template: Template) -> bool:
    """Whether the input has the same rows and columns in each run, as phases that are written one by one need."""
    return all(isinstance(extent, int) for extent in template.type(0).shape[1:3])


def axes_of(template: Template, operation: TransposeConv2d) -> tuple[SpreadAxis, SpreadAxis]:
    """Rows and columns."""
    _, height, width, _ = template.type(0).shape
    _, out_height, out_width, _ = template.result_type.fixed_shape
    _, *kernel, _ = template.type(1).fixed_shape
    return (
        SpreadAxis(height, out_height, kernel[0], operation.stride[0], operation.out_pad[0]),
        SpreadAxis(width, out_width, kernel[1], operation.stride[1], operation.out_pad[2]),
    )


def sub_pixel_convolutions(
    template: Template, operation: TransposeConv2d, rows: Phases, columns: Phases
) -> list[Convolution]:
    """Those of some phases, whose output pixels are cells: for each of the rows one for each of the columns."""
    along_y, along_x = axes_of(template, operation)
    weights = template.constant(1)
    window = Window(along_y.window(rows), along_x.window(columns))
    found: list[Convolution] = []
    for y, x in product(range(rows.num), range(columns.num)):
        taps_y = along_y.taps(rows.first + y, rows.num_taps)
        taps_x = along_x.taps(columns.first + x, columns.num_taps)
        found.append(
            Convolution(
                template=template,
                window=window,
                num=template.type(0).shape[0],
                in_channels=weights.shape[3],
                out_channels=len(weights),
                weights=weights[:, taps_y][:, :, taps_x].reshape(len(weights), -1),
                zero_point=operation.input_zero_point,
            )
        )
    return found


@dataclass(frozen=True, slots=True)
class SpreadRow:
    """A row of the output.

    Attributes:
        n: Batch.
        y: The row.
        cell: The row of cells that it is of.
        phase: Its own.
    """

    n: ir.Expr
    y: ir.Expr
    cell: ir.Expr
    phase: ir.Expr


def write_rows(
    template: Template, operation: TransposeConv2d, write: Callable[[SpreadRow, Phases], None]
) -> None:
    """Writes each row of the output, under conditions: for each of the phases along y that equally many taps reach."""
    body, (rows, _) = template.body, axes_of(template, operation)
    with counted(body, "n", template.type(0).shape[0]) as n, template.kernel.rows(rows.out) as y:
        row = SpreadRow(n, y, named(body, "cell_y", rows.cell(y)), named(body, "phase_y", rows.phase(y)))
        most, *fewer = rows.phases
        if not fewer:
            write(row, most)
            return
        with body.if_(row.phase < most.num):
            write(row, most)
        with body.else_():
            write(row, fewer[0])
