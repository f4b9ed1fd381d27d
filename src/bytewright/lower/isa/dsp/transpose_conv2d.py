"""transpose_conv2d of int8 and int16 on the DSP extension: sub-pixel convolutions, two cells at a time.

What lies under a pair of cells is read once for all phases of a row whose windows are alike.
"""

from bytewright.lower.isa.dsp.pixels import Pixels, pixels_decline
from bytewright.lower.kernels.context import Template, counted, named
from bytewright.lower.kernels.spread import (
    SIZE_IS_OPEN,
    Phases,
    SpreadRow,
    axes_of,
    has_known_size,
    sub_pixel_convolutions,
    write_rows,
)
from bytewright.ops.convolution import TransposeConv2d


def transpose_conv2d_declines(template: Template, operation: TransposeConv2d) -> str | None:
    """Why the kernel below does not take a transposed convolution."""
    if not has_known_size(template):
        return SIZE_IS_OPEN
    rows, columns = axes_of(template, operation)
    return pixels_decline(template, rows.num_taps * columns.num_taps * template.constant(1).shape[3])


def write_transpose_conv2d(template: Template, operation: TransposeConv2d) -> None:
    """Writes the kernel. x: [N, H, W, IC]; weights: [OC, KH, KW, IC], packed phase by phase."""
    body, (_, columns) = template.body, axes_of(template, operation)

    def write(row: SpreadRow, along_y: Phases) -> None:
        for along_x in columns.runs:
            pixels = Pixels(sub_pixel_convolutions(template, operation, along_y, along_x))
            first_window = columns.first_window(along_x)
            first_x = first_window * columns.stride + along_x.first - columns.shift
            begin = along_x.first_cell - first_window
            for cells in pixels.each(row.n, row.cell, begin, begin + along_x.num_cells):
                patch = pixels.read(cells)
                with counted(body, "phase_x", along_x.num) as phase:
                    number = named(body, "number", (row.phase - along_y.first) * along_x.num + phase)
                    places = [(row.n, row.y, x * columns.stride + (phase + first_x)) for _, _, x in cells]
                    pixels.write(places, patch, number)

    write_rows(template, operation, write)
