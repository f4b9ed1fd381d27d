"""The rows of the input under a window, copied beside one another: what a convolution at the border reads.

The copy is as wide as the windows of one row of the output reach, with zero points for the padding; so every pixel is
computed alike, groups may be read beyond the last element, and what is added to activations is added once.
"""

from collections.abc import Callable
from dataclasses import dataclass

from bytewright import ir
from bytewright.ir.builder import region
from bytewright.lower.isa.products import Copies, Tile
from bytewright.lower.kernels.context import counted, named
from bytewright.lower.kernels.convolution import Convolution

ALIGNMENT = 64
COPIES_ROWS = "it would copy rows of an open extent"


@dataclass(frozen=True, slots=True)
class WindowRows:
    """How a copy of the rows under a window is laid out.

    Attributes:
        convolution: Whose window it is.
        tile: Type of the copy, and how it is made.
        pitch: Elements of the copy for each column of the input.
        extra: Elements behind the last column that may be read.
    """

    convolution: Convolution
    tile: Tile
    pitch: int
    extra: int = 0

    @property
    def copies(self) -> Copies:
        """How the copy is made."""
        assert self.tile.copies is not None, "the tile reads taps where they lie"
        return self.tile.copies

    @property
    def _reach(self) -> int:
        """Columns that the windows of a row of the output reach."""
        columns = self.convolution.window.columns
        return (columns.out - 1) * columns.stride + (columns.kernel - 1) * columns.dilation + 1

    @property
    def before(self) -> int:
        """Columns of padding in front of a row of the input."""
        return min(
            self.convolution.window.columns.pad_before, self._reach
        )  # a pad may be wider than all of it

    @property
    def content(self) -> int:
        """Columns of the input's row that windows reach."""
        return min(self.convolution.window.columns.size, self._reach - self.before)

    @property
    def row(self) -> int:
        """Elements of a row of the copy: whole chunks."""
        return -(-(self._reach * self.pitch + self.extra) // self.copies.chunk) * self.copies.chunk

    def allocate(self) -> ir.Buffer:
        """The copy, [rows of the window, elements]."""
        shape = (self.convolution.window.rows.kernel, self.row)
        buffer = ir.Buffer("rows", shape, self.tile.of.held, ALIGNMENT)
        return self.convolution.template.body.allocate(buffer, ir.Storage(ir.GLOBAL))

    def write(self, rows: ir.Buffer, y: ir.Expr, copy: Callable[[ir.Expr, ir.Expr], None]) -> None:
        """Writes the copy for a row of the output.

        Args:
            rows: As `allocate` gives it, or larger.
            y: The row of the output.
            copy: Writes the copy of a row that the input has, given its number in the window and that in the input:
                `content` columns, behind `before` of them.
        """
        body, window = self.convolution.template.body, self.convolution.window
        body.note("copy the rows of the input under the window, with zero points around them")
        with counted(body, "ky", window.rows.kernel) as ky:
            iy = named(body, "iy", window.rows.tap(y, ky))
            inside = window.rows.contains(iy, ky)
            if inside == ir.TRUE:
                self._write_row(rows, ky, iy, copy)
                return
            with body.if_(inside):
                self._write_row(rows, ky, iy, copy)
            with body.else_():
                self._fill(rows, ky, 0, self.row)

    def _write_row(
        self, rows: ir.Buffer, ky: ir.Expr, iy: ir.Expr, copy: Callable[[ir.Expr, ir.Expr], None]
    ) -> None:
        """The ends first, whole chunks of them, then what lies between over these."""
        self._fill(rows, ky, 0, self.before * self.pitch)
        self._fill(rows, ky, (self.before + self.content) * self.pitch, self._reach * self.pitch + self.extra)
        copy(ky, iy)

    def _fill(self, rows: ir.Buffer, ky: ir.Expr, begin: int, end: int) -> None:
        """Zero points from one element to before another one, and in whole chunks around these."""
        if begin >= end:
            return
        body, tile, chunk = self.convolution.template.body, self.tile, self.copies.chunk
        first = begin // chunk
        value = ir.const(self.convolution.zero_point + tile.of.offset, tile.of.sums)
        with counted(body, "chunk", -(-end // chunk) - first) as index:
            body.execute(self.copies.fill, region(rows, ky, (index + first) * chunk), value)
