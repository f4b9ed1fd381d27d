"""depthwise_conv2d of int8 or int16 on MVE, with weights of int8: all channels of a pixel as one instruction.

It is given the rows under the window; a row outside the input is a run of zero points. Where the window reaches over a
side of the input, the instruction is another one, whose taps there are zero points: those columns are few, and nothing
is copied. Where how many columns there are is not known, what lies under those is gathered. Fewer channels than a
vector has are as if several neighbouring pixels were one that fills it; what lies under those at a side is gathered
first.
"""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from bytewright import ir
from bytewright.ir.builder import region
from bytewright.lower.isa.mve.copy_elements import copy_elements
from bytewright.lower.isa.mve.scaling import Scaling, scaling_of
from bytewright.lower.isa.mve.tap_sums import (
    MAX_ROWS,
    Taps,
    channels_of_vectors,
    lanes_of,
    packed_taps,
    sum_taps,
    tap_groups,
)
from bytewright.lower.isa.operand_types import OF_NINE_BITS, SUMS_OF_32_BITS, types_decline
from bytewright.lower.kernels.context import Pixel, Template, counted, named
from bytewright.lower.kernels.convolution import Convolution, convolution_of
from bytewright.ops.convolution import DepthwiseConv2d

I8, I16, I32 = ir.DType.I8, ir.DType.I16, ir.DType.I32
MAX_TAPS = 25
# Columns whose windows reach over a side: each may need an instruction of its own, of 500 B.
MAX_SIDE_COLUMNS = 6


def depthwise_declines(template: Template, operation: DepthwiseConv2d) -> str | None:
    """Why this is no convolution for the kernel below."""
    of_types = types_decline(template, {*SUMS_OF_32_BITS, OF_NINE_BITS})
    if of_types is not None:
        return of_types
    convolution = convolution_of(template, operation)
    window, channels, lanes = convolution.window, convolution.in_channels, lanes_of(convolution.dtype)
    if convolution.out_channels != channels:
        return "it makes several channels of one"
    num_taps = len(_in_bytes(convolution.weights)[1])
    if window.rows.kernel > MAX_ROWS or num_taps > MAX_TAPS:
        return f"its window of {window.rows.kernel} rows and {num_taps} taps is too large"
    if channels < lanes and not _takes_neighbours(convolution):
        return f"its {channels} channels do not fill a vector"
    if channels >= lanes and window.columns.open_size is None:
        sides = _side_columns(convolution)
        if not all(map(window.columns.inside, sides)):
            return "some of its windows lie beside the input"
        if len(sides) > MAX_SIDE_COLUMNS:
            return f"at more than {MAX_SIDE_COLUMNS} columns its window reaches over a side"
    if scaling_of(template, convolution.folded()) is None:
        return "its epilogue is not a rescale"
    return None


def _side_columns(convolution: Convolution) -> list[int]:
    """Columns of the output whose windows reach over a side of the input."""
    first, last = convolution.window.columns.interior
    return [x for x in range(convolution.window.columns.out) if not first <= x < last]


def _takes_neighbours(convolution: Convolution) -> bool:
    """Whether a vector can be neighbouring pixels: they lie one after another in the input too."""
    columns, channels = convolution.window.columns, convolution.in_channels
    lanes = lanes_of(convolution.dtype)
    return (
        lanes % channels == 0
        and columns.stride == 1
        and columns.dilation == 1
        and columns.open_size is None
        and columns.out % (lanes // channels) == 0
    )


def write_depthwise(template: Template, operation: DepthwiseConv2d) -> None:
    """Writes the kernel. x: [N, H, W, C]; weights: [KH, KW, C, 1], packed by blocks of channels that fill a vector."""
    convolution = convolution_of(template, operation)
    window, body = convolution.window, template.body
    pixels = _Pixels(convolution)
    with (
        counted(body, "n", convolution.num) as n,
        template.kernel.rows(window.rows.out) as y,
    ):
        if pixels.num == 1 and window.columns.open_size is None:
            _write_row(pixels, n, y)
        else:
            _write_steps(pixels, n, y)


def _write_row(pixels: "_Pixels", n: ir.Expr, y: ir.Expr) -> None:
    """The pixels of a row in order, one at a time."""
    first, last = pixels.convolution.window.columns.interior
    sides = _side_columns(pixels.convolution)
    for x in sides:
        if x < first or first == last:
            pixels.write_rows((n, y, ir.const(x)), x)
    if first < last:
        with pixels.body.for_("x", first, last) as x:
            pixels.write_rows((n, y, x))
    for x in sides:
        if x >= last > first:
            pixels.write_rows((n, y, ir.const(x)), x)


def _write_steps(pixels: "_Pixels", n: ir.Expr, y: ir.Expr) -> None:
    """The pixels of a row in order, several at a time, or those of an open number of columns."""
    body, columns = pixels.body, pixels.convolution.window.columns
    patch = None if columns.is_all_interior else pixels.scratch()
    with counted(body, "step", ir.quotient(columns.out_extent, 0, pixels.num)) as step:
        x = named(body, "x", step * pixels.num)
        inside = pixels.is_inside(x)
        if patch is None:
            pixels.write_rows((n, y, x))
        elif inside is None:
            pixels.write_patch((n, y, x), patch)
        else:
            with body.if_(inside):
                pixels.write_rows((n, y, x))
            with body.else_():
                pixels.write_patch((n, y, x), patch)


def _in_bytes(weights: ir.Array) -> tuple[NDArray[np.int8], list[int]]:
    """Weights [C, taps] of any size as sums of bytes: of which tap each column of them is, some taps more than once."""
    left = weights.astype(np.int32)
    columns: list[NDArray[np.int8]] = []
    taps: list[int] = []
    while left.any() or not columns:
        part = np.clip(left, *I8.bounds)
        left = left - part
        found = [tap for tap in range(part.shape[1]) if not columns or part[:, tap].any()]
        columns.append(part[:, found].astype(np.int8))
        taps += found
    return np.concatenate(columns, axis=1), taps


class _Pixels:
    """Pixels that are computed at once: as many as fill a vector.

    Attributes:
        num: How many; 1 where the channels of one fill a vector.
        sources: Of which tap of the window each that is multiplied is.
    """

    def __init__(self, convolution: Convolution) -> None:
        self.convolution = convolution
        self.template = template = convolution.template
        self.body = template.body
        self.element = convolution.dtype
        channels, columns = convolution.in_channels, convolution.window.columns
        self.num = max(1, lanes_of(self.element) // channels)
        self.width = self.num * channels
        weights, self.sources = _in_bytes(np.tile(convolution.weights, (self.num, 1)))
        rows = range(convolution.window.rows.kernel)
        of_window = [(row, kx * columns.dilation * channels) for row in rows for kx in range(columns.kernel)]
        places = [of_window[tap] for tap in self.sources]
        groups = tap_groups(weights) if self.element is I8 else (tuple(range(len(places))),)
        self.taps = Taps(len(rows), tuple(places), groups, element=self.element)
        self.weights = template.kernel.constant("weights", packed_taps(weights, self.taps), I8)
        scaling = scaling_of(template, convolution.folded())
        assert scaling is not None
        self.scaling: Scaling = scaling
        packed = scaling.packed(channels_of_vectors(self.width, self.element) % channels)
        self.scales = template.kernel.constant("scales", packed, I32)

    @property
    def _row_columns(self) -> int:
        """Columns of the input under a row of the window, for all pixels."""
        columns = self.convolution.window.columns
        return (columns.kernel - 1) * columns.dilation + self.num

    @property
    def _row_length(self) -> int:
        return self._row_columns * self.convolution.in_channels

    def scratch(self) -> ir.Buffer:
        """What lies under windows that reach over a side."""
        size = self.convolution.window.rows.kernel * self._row_length
        return self.template.kernel.scratch("patch", (size,), self.element)

    def is_inside(self, x: ir.Expr) -> ir.Expr | None:
        """Whether the windows of all pixels from x on are between the sides of the input; None if none are."""
        columns = self.convolution.window.columns
        first, last = columns.interior
        if last - first < self.num:
            return None
        if self.num == 1:
            return columns.is_interior(x)
        return ir.both(x >= first, x < last - (self.num - 1))

    def write_rows(self, pixel: Pixel, column: int | None = None) -> None:
        """Pixels whose windows are between the sides; or one whose window reaches over them, in a column."""
        n, y, x = pixel
        body, window, channels = self.body, self.convolution.window, self.convolution.in_channels
        taps, first, length = self.taps, window.columns.tap(x, 0), self._row_length
        if column is not None:
            inside_taps = window.columns.inside(column)
            taps = self._taps_inside(inside_taps)
            first, length = window.columns.tap(x, inside_taps[0]), taps.span + channels
        elif self.num > 1 and not window.columns.is_all_interior:
            # Changes nothing; but that a row ends where the input's does can be told.
            first = ir.clamp(first, 0, window.columns.size - self._row_columns)
        first = named(body, "first", first)
        rows: list[ir.Region] = []
        for ky in range(window.rows.kernel):
            with body.numbered(ky):
                iy = named(body, "iy", window.rows.tap(y, ky))
                inside = window.rows.contains(iy, ky)
                source = region(self.convolution.input, n, iy, first, 0)
                if inside == ir.TRUE:
                    row = body.view("row", source, self.element, length)
                else:
                    outside = region(self.convolution.zero_points(self._row_length), 0)
                    row = body.view("row", source, self.element, length, inside, outside)
                rows.append(region(row, 0))
        self._execute(pixel, rows, taps)

    def _taps_inside(self, columns: range) -> Taps:
        """The taps where only some columns of the window lie in the input."""
        kernel = self.convolution.window.columns.kernel
        outside = frozenset(number for number, tap in enumerate(self.sources) if tap % kernel not in columns)
        start = self.taps.places[columns[0]][1]
        places = tuple((row, max(offset - start, 0)) for row, offset in self.taps.places)
        zero_point = self.convolution.zero_point
        return replace(self.taps, places=places, outside=outside, zero_point=zero_point)

    def write_patch(self, pixel: Pixel, patch: ir.Buffer) -> None:
        """Pixels whose windows reach over a side."""
        n, y, x = pixel
        body, window, channels = self.body, self.convolution.window, self.convolution.in_channels
        columns = window.columns
        count = columns.kernel if self.num == 1 else self._row_columns
        body.note("gather what lies under the window; outside the input it is the zero point")
        with counted(body, "ky", window.rows.kernel) as ky, counted(body, "kx", count) as kx:
            iy, ix = named(body, "iy", window.rows.tap(y, ky)), named(body, "ix", columns.tap(x, kx))
            inside = window.rows.contains(iy, ky, ir.both(ix >= 0, ix < ir.extent_expr(columns.extent)))
            outside = region(self.convolution.zero_points(self._row_length), 0)
            source = region(self.convolution.input, n, iy, ix, 0)
            tap = body.view("tap", source, self.element, channels, inside, outside)
            place = ky * self._row_length + kx * (columns.dilation * channels)
            body.execute(copy_elements(channels, self.element), region(patch, place), region(tap, 0))
        rows = [region(patch, ky * self._row_length) for ky in range(window.rows.kernel)]
        self._execute(pixel, rows, self.taps)

    def _execute(self, pixel: Pixel, rows: list[ir.Region], taps: Taps) -> None:
        n, y, x = pixel
        zero_point, *ends = self.scaling.operands()
        has_limits = ends != [*self.element.bounds]
        instruction = sum_taps(taps, self.width, self.scaling.kind, has_limits=has_limits)
        output = region(self.template.epilogue.output, n, y, x, 0)
        weights, scales = region(self.weights, 0), region(self.scales, 0)
        self.body.execute(
            instruction, output, *rows, weights, scales, zero_point, *(ends if has_limits else [])
        )
