"""transpose_conv2d with sums in lanes: sub-pixel convolutions by the tile of convolutions.

Phases whose windows are alike are one loop, which reads one copy of the rows under a row of cells.
"""

from bytewright.lower.isa.conv2d import Row, TiledConvolutions, tiled_templates
from bytewright.lower.isa.instruction_set import IsaTemplate
from bytewright.lower.isa.tile import Tile
from bytewright.lower.kernels.context import Template, counted, named
from bytewright.lower.kernels.spread import Phases, axes_of, sub_pixel_convolutions, written_by_phase
from bytewright.ops.convolution import TransposeConv2d


def transpose_conv2d_templates(name: str, *tiles: Tile) -> tuple[IsaTemplate, ...]:
    """The templates of an instruction set of some name, one for each tile."""
    return tiled_templates(f"{name}.transpose_conv2d", _write_transpose_conv2d, tiles)


def _write_transpose_conv2d(tile: Tile, template: Template, operation: TransposeConv2d) -> None:
    """Writes the kernel. x: [N, H, W, IC]; weights: [OC, KH, KW, IC], packed phase by phase."""
    body, (rows, columns) = template.body, axes_of(template, operation)
    with counted(body, "n", template.type(0).shape[0]) as n, template.kernel.rows(rows.out) as y:
        cell, phase = named(body, "cell_y", rows.cell(y)), named(body, "phase_y", rows.phase(y))

        def write(along_y: Phases) -> None:
            for along_x in columns.runs:
                kernel = TiledConvolutions(
                    tile, sub_pixel_convolutions(template, operation, along_y, along_x)
                )
                first_window = columns.first_window(along_x)
                with body.block():
                    copies = kernel.copy_rows(n, cell)
                    with counted(body, "phase_x", along_x.num) as number:
                        shift = first_window * columns.stride + along_x.first - columns.shift
                        first = named(body, "first_x", number + shift)
                        own = named(body, "number", (phase - along_y.first) * along_x.num + number)
                        row = Row(n, y, cell, first, columns.stride, own, along_x.first_cell - first_window)
                        kernel.write_row(row, copies)

        written_by_phase(body, rows, phase, write)
