"""transpose_conv2d of int8 and int16 on the DSP extension: sub-pixel convolutions, two cells at a time.

What lies under a pair of cells is read once for all phases of a row whose windows are alike.
"""

from bytewright.lower.isa.dsp.pixels import Pixels, pixels_decline
from bytewright.lower.kernels.context import Template, counted, named
from bytewright.lower.kernels.spread import Phases, axes_of, sub_pixel_convolutions, written_by_phase
from bytewright.ops.convolution import TransposeConv2d


def transpose_conv2d_declines(template: Template, operation: TransposeConv2d) -> str | None:
    """Why the kernel below does not take a transposed convolution."""
    rows, columns = axes_of(template, operation)
    return pixels_decline(template, rows.num_taps * columns.num_taps * template.constant(1).shape[3])


def write_transpose_conv2d(template: Template, operation: TransposeConv2d) -> None:
    """Writes the kernel. x: [N, H, W, IC]; weights: [OC, KH, KW, IC], packed phase by phase."""
    body, (rows, columns) = template.body, axes_of(template, operation)
    with counted(body, "n", template.type(0).shape[0]) as n, template.kernel.rows(rows.out) as y:
        cell, phase_y = named(body, "cell_y", rows.cell(y)), named(body, "phase_y", rows.phase(y))

        def write(along_y: Phases) -> None:
            for along_x in columns.runs:
                pixels = Pixels(sub_pixel_convolutions(template, operation, along_y, along_x))
                first_window = columns.first_window(along_x)
                first_x = first_window * columns.stride + along_x.first - columns.shift
                begin = along_x.first_cell - first_window
                for cells in pixels.each(n, cell, begin, begin + along_x.num_cells):
                    patch = pixels.read(cells)
                    with counted(body, "phase_x", along_x.num) as phase_x:
                        number = (phase_y - along_y.first) * along_x.num + phase_x
                        places = [(n, y, x * columns.stride + (phase_x + first_x)) for _, _, x in cells]
                        pixels.write(places, patch, named(body, "number", number))

        written_by_phase(body, rows, phase_y, write)
