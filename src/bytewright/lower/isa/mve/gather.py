"""What lies under the windows of neighbouring pixels, each in one run."""

from collections.abc import Sequence

from bytewright import ir
from bytewright.ir.builder import region
from bytewright.lower.isa.mve.copy_elements import copy_elements
from bytewright.lower.kernels.context import Pixel, named
from bytewright.lower.kernels.convolution import Convolution
from bytewright.lower.kernels.source import write_runs

# Rows of a window that are copied one after another without a loop.
MAX_UNROLLED_ROWS = 4


class Gather:
    """Scratch for the runs of some pixels of a row, and the statements that fill it.

    Args:
        convolution: Whose windows they are.
        num_pixels: Pixels at once.
    """

    def __init__(self, convolution: Convolution, num_pixels: int) -> None:
        self.convolution = convolution
        self.depth = depth = convolution.weights.shape[1]
        self.num_pixels = num_pixels
        self.body = convolution.template.body
        self.element = convolution.dtype
        # For each row anew.
        self.runs = convolution.template.kernel.scratch("runs", (num_pixels * depth,), self.element)

    def run(self, number: int) -> ir.Region:
        """The run of one of the pixels."""
        return region(self.runs, number * self.depth)

    def write(self, pixel: Pixel) -> None:
        """Fills the runs of the pixels from `pixel` on that the row has."""
        n, y, x = pixel
        columns = self.convolution.window.columns
        num: ir.Expr = ir.const(self.num_pixels)
        are_all = not columns.may_leave(self.num_pixels)
        out = ir.extent_expr(columns.out_extent)
        if not are_all:
            num = named(self.body, "num", ir.minimum(out - x, self.num_pixels))
        self.body.note("gather what lies under the windows; outside the input it is the zero point")
        with self.body.for_("i", 0, num) as i:
            start = named(self.body, "start", i * self.depth)
            column = x + i
            if not are_all and columns.is_all_interior:
                # Changes nothing, and says to whoever proves it that the run of the last pixel ends in its row.
                column = ir.minimum(column, out - 1)
            column = named(self.body, "column", column)

            def copy(views: Sequence[ir.Buffer], number: ir.Expr, length: int) -> None:
                (run,) = views
                target = region(self.runs, start + number * length)
                self.body.execute(copy_elements(length, self.element), target, region(run, 0))

            write_runs(self.convolution, ((n, y, column),), copy, MAX_UNROLLED_ROWS)
