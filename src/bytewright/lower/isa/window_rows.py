"""The rows of the input under a window, copied beside one another: what a convolution at the border reads.

The copy is as wide as the windows of one row of the output reach, with zero points for the padding; so every pixel is
computed alike, groups may be read beyond the last element, and what is added to activations is added once.
"""

from dataclasses import dataclass

from bytewright import ir
from bytewright.ir.builder import region
from bytewright.lower.isa.tile import Tile
from bytewright.lower.kernels.context import counted, named
from bytewright.lower.kernels.convolution import Convolution

ALIGNMENT = 64


@dataclass(frozen=True, slots=True)
class WindowRows:
    """How a copy of the rows under a window is laid out.

    Attributes:
        before: Elements of padding in front of a row of the input.
        content: Elements of the input's row that windows reach.
        row: Elements of a row of the copy, a multiple of the unit's chunk.
    """

    convolution: Convolution
    unit: Tile
    before: int
    content: int
    row: int

    def write(self, n: ir.Expr, y: ir.Expr) -> ir.Buffer:
        """Writes the copy for a row of the output; returns it, [rows of the window, elements]."""
        convolution, unit = self.convolution, self.unit
        body, window = convolution.template.body, convolution.window
        held = unit.held
        buffer = ir.Buffer("rows", (window.rows.kernel, self.row), held, ALIGNMENT)
        rows = body.allocate(buffer, ir.Storage(ir.GLOBAL))
        body.note("copy the rows of the input under the window, with zero points around them")
        with counted(body, "ky", window.rows.kernel) as ky:
            iy = named(body, "iy", window.rows.tap(y, ky))
            inside = window.rows.contains(iy, ky)
            if inside == ir.TRUE:
                self._copy(rows, ky, n, iy)
                return rows
            with body.if_(inside):
                self._copy(rows, ky, n, iy)
            with body.else_():
                self._fill(rows, ky, 0, self.row)
        return rows

    def _copy(self, rows: ir.Buffer, ky: ir.Expr, n: ir.Expr, iy: ir.Expr) -> None:
        """A row that the input has: the ends first, whole chunks of them, then what lies between over these."""
        convolution, unit = self.convolution, self.unit
        body, chunk = convolution.template.body, unit.chunk
        self._fill(rows, ky, 0, self.before)
        self._fill(rows, ky, (self.before + self.content) // chunk * chunk, self.row)
        width = convolution.window.columns.size * convolution.in_channels
        source = body.view("source", region(convolution.input, n, iy, 0, 0), unit.element, width)
        whole, rest = divmod(self.content, chunk)
        if whole:
            with counted(body, "chunk", whole) as index:
                first = index * chunk
                body.execute(unit.copies(chunk), region(rows, ky, first + self.before), region(source, first))
        if rest:
            first = whole * chunk
            body.execute(unit.copies(rest), region(rows, ky, first + self.before), region(source, first))

    def _fill(self, rows: ir.Buffer, ky: ir.Expr, begin: int, end: int) -> None:
        """Zero points from one element, the first of a chunk, to another one or some more."""
        body, unit = self.convolution.template.body, self.unit
        count = -(-(end - begin) // unit.chunk)
        if count <= 0:
            return
        value = self.convolution.zero_point + unit.offset
        zero = ir.const(value, ir.DType.I32 if unit.held.is_integer else unit.held)
        with counted(body, "chunk", count) as index:
            body.execute(unit.fill, region(rows, ky, index * unit.chunk + begin), zero)


def window_rows(convolution: Convolution, unit: Tile) -> WindowRows:
    """The layout for a convolution."""
    columns, depth = convolution.window.columns, convolution.in_channels
    reach = (columns.out - 1) * columns.stride + (columns.kernel - 1) * columns.dilation + 1
    before = min(columns.pad_before, reach)  # a pad may be wider than all that windows reach
    content = min(columns.size, reach - before)
    elements = reach * depth + unit.group - 1
    return WindowRows(
        convolution,
        unit,
        before * depth,
        content * depth,
        -(-elements // unit.chunk) * unit.chunk,
    )
