"""transpose_conv2d with sums in lanes: sub-pixel convolutions by the tile of convolutions.

Phases whose windows are alike are one loop, which reads one copy of the rows under a row of cells.
"""

from bytewright.lower.isa.conv2d import Row, TiledConvolutions, tiled_templates
from bytewright.lower.isa.instruction_set import IsaTemplate
from bytewright.lower.isa.products import Tile
from bytewright.lower.kernels.context import Template, counted, named
from bytewright.lower.kernels.spread import Phases, SpreadRow, axes_of, sub_pixel_convolutions, write_rows
from bytewright.ops.convolution import TransposeConv2d


def transpose_conv2d_templates(name: str, *tiles: Tile) -> tuple[IsaTemplate, ...]:
    """The templates of an instruction set of some name, one for each tile."""
    return tiled_templates(f"{name}.transpose_conv2d", _write_transpose_conv2d, tiles)


def _write_transpose_conv2d(tile: Tile, template: Template, operation: TransposeConv2d) -> None:
    """Writes the kernel. x: [N, H, W, IC]; weights: [OC, KH, KW, IC], packed phase by phase."""
    body, (_, columns) = template.body, axes_of(template, operation)

    def write(row: SpreadRow, along_y: Phases) -> None:
        for along_x in columns.runs:
            kernel = TiledConvolutions(tile, sub_pixel_convolutions(template, operation, along_y, along_x))
            first_window = columns.first_window(along_x)
            with body.block():
                copies = kernel.copy_rows(row.n, row.cell)
                with counted(body, "phase_x", along_x.num) as number:
                    shift = first_window * columns.stride + along_x.first - columns.shift
                    first = named(body, "first_x", number + shift)
                    own = named(body, "number", (row.phase - along_y.first) * along_x.num + number)
                    begin = along_x.first_cell - first_window
                    kernel.write_row(Row(row.n, row.y, row.cell, first, columns.stride, own, begin), copies)

    write_rows(template, operation, write)
