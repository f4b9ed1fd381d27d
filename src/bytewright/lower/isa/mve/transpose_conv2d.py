"""transpose_conv2d on MVE: sub-pixel convolutions, of which pairs of cells share the runs under their windows.

What lies under a cell is gathered once for all phases of a row; under a window of one tap it is the pixel itself.
"""

from dataclasses import dataclass

from bytewright import ir
from bytewright.lower.isa.mve.gather import Gather
from bytewright.lower.isa.mve.lanes import UNIT
from bytewright.lower.isa.mve.pixels import Pixels, is_direct, pixels_at_once, pixels_decline, under
from bytewright.lower.kernels.context import Template, counted, named
from bytewright.lower.kernels.spread import (
    SIZE_IS_OPEN,
    Phases,
    SpreadAxis,
    SpreadRow,
    axes_of,
    has_known_size,
    sub_pixel_convolutions,
    write_rows,
)
from bytewright.ops.convolution import TransposeConv2d


def transpose_conv2d_declines(template: Template, operation: TransposeConv2d) -> str | None:
    """Why this is no convolution for the kernel below."""
    if not has_known_size(template):
        return SIZE_IS_OPEN
    rows, columns = axes_of(template, operation)
    for along_y in rows.phases:
        for along_x in columns.phases:
            if not along_y.num_taps or not along_x.num_taps:
                return "no tap reaches some of its results"
            first, *_ = sub_pixel_convolutions(template, operation, along_y, along_x)
            if reason := pixels_decline(first):
                return reason
    return None


def write_transpose_conv2d(template: Template, operation: TransposeConv2d) -> None:
    """Writes the kernel. x: [N, H, W, IC]; weights: [OC, KH, KW, IC], packed phase by phase."""
    _, columns = axes_of(template, operation)

    def write(row: SpreadRow, along_y: Phases) -> None:
        for along_x in columns.phases:
            convolutions = sub_pixel_convolutions(template, operation, along_y, along_x)
            pixels = Pixels(convolutions, pixels_at_once(convolutions[0]), UNIT, columns.stride)
            number = (row.phase - along_y.first) * along_x.num
            _Row(pixels, columns, along_x, (row.n, row.y), row.cell, number).write()

    write_rows(template, operation, write)


@dataclass(frozen=True, slots=True)
class _Row:
    """The pixels of some phases in a row of the output.

    Attributes:
        row: Batch, and row of the output.
        cell: The row of cells that it is of.
        number: Of the first of these convolutions.
    """

    pixels: Pixels
    columns: SpreadAxis
    phases: Phases
    row: tuple[ir.Expr, ir.Expr]
    cell: ir.Expr
    number: ir.Expr

    def write(self) -> None:
        """Writes pairs of cells one after another, and for each the phases."""
        convolution, body, columns = self.pixels.convolution, self.pixels.body, self.columns
        n, _ = self.row
        num = pixels_at_once(convolution)
        gather = None if is_direct(convolution) else Gather(convolution, num)
        with body.block(), counted(body, "pair", -(-columns.num_cells // num)) as pair:
            cell = named(body, "cell", pair * num)
            if gather is not None:
                gather.write((n, self.cell, cell))
            runs = [
                under(convolution, n, self.cell, cell + i) if gather is None else gather.run(i)
                for i in range(num)
            ]
            with counted(body, "phase", self.phases.num) as phase:
                first = self.phases.first - columns.shift
                x = named(body, "x", cell * columns.stride + phase + first)
                self._write_pixels(x, runs, self.number + phase)

    def _write_pixels(self, x: ir.Expr, runs: list[ir.Region], number: ir.Expr) -> None:
        """Of each cell one, as far as the output has them."""
        body, step = self.pixels.body, self.columns.stride
        inside = self._has(x, x + (len(runs) - 1) * step)
        if inside == ir.TRUE:
            self.pixels.write((*self.row, x), runs, number)
            return
        with body.if_(inside):
            self.pixels.write((*self.row, x), runs, number)
        if len(runs) > 1:
            with body.else_():
                for i, run in enumerate(runs):
                    at = x + i * step
                    with body.if_(self._has(at, at)):
                        self.pixels.write((*self.row, at), [run], number)

    def _has(self, first: ir.Expr, last: ir.Expr) -> ir.Expr:
        """Whether the output has columns from one to another; TRUE, the constant, where it has those of all cells."""
        columns, condition = self.columns, ir.TRUE
        num = pixels_at_once(self.pixels.convolution)
        if self.phases.first < columns.shift:
            condition = ir.both(condition, first >= 0)
        end = -(-columns.num_cells // num) * num * columns.stride - columns.shift
        if end - columns.stride + self.phases.first + self.phases.num > columns.out:
            condition = ir.both(condition, last < columns.out)
        return condition
