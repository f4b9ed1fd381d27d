"""What lies under the windows of neighbouring pixels, each in one run."""

from bytewright import ir
from bytewright.ir.builder import region
from bytewright.lower.isa.mve.copy_elements import copy_elements
from bytewright.lower.kernels.context import Pixel, counted, named
from bytewright.lower.kernels.convolution import Convolution

# Rows of a window that are copied one after another without a loop.
MAX_UNROLLED_ROWS = 4


class Gather:
    """Scratch for the runs of some pixels of a row, and the statements that fill it.

    Args:
        convolution: Whose windows they are.
        depth: Elements under one window.
        num_pixels: Pixels at once.
    """

    def __init__(self, convolution: Convolution, depth: int, num_pixels: int) -> None:
        self.convolution = convolution
        self.depth = depth
        self.num_pixels = num_pixels
        self.body = convolution.template.body
        self.element = convolution.dtype
        # For each row anew.
        self.runs = convolution.template.kernel.scratch("runs", (num_pixels * depth,), self.element)

    @property
    def _most(self) -> int:
        """Elements that are copied at once: those under a row of the window, if they are in one piece."""
        columns = self.convolution.window.columns
        in_one_piece = columns.dilation == 1 and columns.interior != (0, 0)
        return self.convolution.in_channels * (columns.kernel if in_one_piece else 1)

    def run(self, number: int) -> ir.Region:
        """The run of one of the pixels."""
        return region(self.runs, number * self.depth)

    def write(self, pixel: Pixel) -> None:
        """Fills the runs of the pixels from `pixel` on that the row has."""
        n, y, x = pixel
        columns = self.convolution.window.columns
        num: ir.Expr = ir.const(self.num_pixels)
        if columns.out % self.num_pixels:
            num = named(self.body, "num", ir.minimum(columns.out - x, self.num_pixels))
        self.body.note("gather what lies under the windows; outside the input it is the zero point")
        with self.body.for_("i", 0, num) as i:
            start = named(self.body, "start", i * self.depth)
            self._write_pixel((n, y, named(self.body, "column", x + i)), start)

    def _write_pixel(self, pixel: Pixel, start: ir.Expr) -> None:
        columns = self.convolution.window.columns
        if columns.dilation > 1 and columns.kernel > 1:
            self._by_taps(pixel, start)
            return
        inside = columns.is_interior(pixel[2])
        if inside == ir.TRUE:
            self._by_rows(pixel, start)
        elif columns.interior == (0, 0):
            self._by_taps(pixel, start)
        else:
            with self.body.if_(inside):
                self._by_rows(pixel, start)
            with self.body.else_():
                self._by_taps(pixel, start)

    def _by_rows(self, pixel: Pixel, start: ir.Expr) -> None:
        """Each row of the window lies in one piece."""
        rows, columns = self.convolution.window.rows, self.convolution.window.columns
        n, y, x = pixel
        first: ir.Expr = columns.tap(x, 0)
        if (
            not columns.is_all_interior
        ):  # changes nothing; but that a row ends where the input's does can be told
            first = ir.clamp(first, 0, columns.size - columns.kernel)
        pixel = (n, y, named(self.body, "first", first))
        length = self.convolution.window.columns.kernel * self.convolution.in_channels
        if rows.kernel <= MAX_UNROLLED_ROWS:
            for ky in range(rows.kernel):
                with self.body.numbered(ky):
                    self._copy(pixel, ky, None, length, start + ky * length)
        else:
            with self.body.for_("ky", 0, rows.kernel) as ky:
                self._copy(pixel, ky, None, length, start + ky * length)

    def _by_taps(self, pixel: Pixel, start: ir.Expr) -> None:
        window, channels = self.convolution.window, self.convolution.in_channels
        with (
            counted(self.body, "ky", window.rows.kernel) as ky,
            self.body.for_("kx", 0, window.columns.kernel) as kx,
        ):
            place = start + (ky * window.columns.kernel + kx) * channels
            self._copy(pixel, ky, kx, channels, place)

    def _copy(self, pixel: Pixel, ky: ir.Expr | int, kx: ir.Expr | None, length: int, place: ir.Expr) -> None:
        """Copies `length` elements from a tap on: a row of the window, whose first column is given, or one tap."""
        n, y, x = pixel
        window = self.convolution.window
        iy = named(self.body, "iy", window.rows.tap(y, ky))
        inside = window.rows.contains(iy, ky)
        ix = x
        if kx is not None:
            ix = named(self.body, "ix", window.columns.tap(x, kx))
            inside = window.columns.contains(ix, kx, inside)
        source = region(self.convolution.input, n, iy, ix, 0)
        if inside == ir.TRUE:
            taps = self.body.view("taps", source, self.element, length)
        else:
            outside = region(self.convolution.zero_points(self._most), 0)
            taps = self.body.view("taps", source, self.element, length, inside, outside)
        self.body.execute(copy_elements(length, self.element), region(self.runs, place), region(taps, 0))
