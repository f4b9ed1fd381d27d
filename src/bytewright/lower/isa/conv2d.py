"""conv2d with sums in lanes: a tile of pixels by some vectors of output channels is accumulated in registers.

Every group of activations is broadcast to all lanes; weights are packed as they are read, `[run][group][vector][lane]
[element]`, with zeros where channels or elements end, so that one pointer goes through them. A run is what lies one
after another under the window: a row of it, or a tap where columns are dilated. Where no window touches the padding the
input is read as it is; else from a copy of its rows (`window_rows.py`), or tap by tap, where a tap outside the input is
a run of zero points. A tile reads all activations of a block of
channels before it stores the first of their results.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bytewright import ir
from bytewright.ir.builder import region
from bytewright.lower.isa.instruction_set import IsaTemplate
from bytewright.lower.isa.products import Tile
from bytewright.lower.isa.store_lanes import store_lanes
from bytewright.lower.isa.window_rows import ALIGNMENT, COPIES_ROWS, WindowRows
from bytewright.lower.kernels.accumulator import Bias
from bytewright.lower.kernels.context import Pixel, Template, counted, named
from bytewright.lower.kernels.convolution import ZERO, Convolution, bias_of, convolution_of
from bytewright.lower.kernels.layout import End, Layout
from bytewright.lower.kernels.spread import SIZE_IS_OPEN, has_known_size
from bytewright.ops.convolution import Conv2d, TransposeConv2d


def conv2d_templates(name: str, *tiles: Tile) -> tuple[IsaTemplate, ...]:
    """The templates of an instruction set of some name, one for each tile."""
    return tiled_templates(f"{name}.conv2d", _write_conv2d, tiles)


def tiled_templates(
    name: str, write: Callable[[Tile, Template, Any], None], tiles: Sequence[Tile]
) -> tuple[IsaTemplate, ...]:
    """A template for each tile, named after its elements."""
    return tuple(
        IsaTemplate(
            f"{name}_{tile.of.element.value}",
            partial(write, tile),
            partial(_tile_declines, tile),
            by_columns=True,
        )
        for tile in tiles
    )


def _tile_declines(tile: Tile, template: Template, operation: Conv2d | TransposeConv2d) -> str | None:
    """Why a tile does not take a convolution."""
    if isinstance(operation, TransposeConv2d) and not has_known_size(template):
        return SIZE_IS_OPEN
    if isinstance(operation, Conv2d) and tile.copies is not None:
        convolution = convolution_of(template, operation)
        if convolution.window.columns.open_size is not None and not _is_direct(tile, convolution):
            return COPIES_ROWS
    of_operands = {
        "elements": (template.type(0).dtype, tile.of.element),
        "weights": (template.type(1).dtype, tile.of.weight),
        "sums": (template.result_type.dtype, tile.of.sums),
    }
    for name, (dtype, wanted) in of_operands.items():
        if dtype is not wanted:
            return f"its {name} are {dtype.value}, not {wanted.value}"
    return None


def _is_direct(tile: Tile, convolution: Convolution) -> bool:
    """Whether runs are read where they lie in the input: no window touches the padding, and groups fit into them."""
    window, of = convolution.window, tile.of
    length = convolution.in_channels * (window.columns.kernel if window.columns.dilation == 1 else 1)
    return window.is_all_interior and length >= of.group and of.element in tile.broadcasts


def _write_conv2d(tile: Tile, template: Template, operation: Conv2d) -> None:
    """Writes the kernel. x: [N, H, W, IC]; weights: [OC, KH, KW, IC]; bias: [OC]; result: [N, OH, OW, OC]."""
    convolution = convolution_of(template, operation)
    kernel = TiledConvolutions(tile, [convolution])
    with (
        counted(template.body, "n", convolution.num) as n,
        template.kernel.rows(convolution.window.rows.out) as y,
    ):
        kernel.write_row(Row(n, y, y), kernel.copy_rows(n, y))


@dataclass(frozen=True, slots=True)
class Row:
    """Pixels of a row of the output.

    Attributes:
        n: Batch.
        y: The row.
        window: The row of windows that lie over what they come from.
        first: The column of the first pixel, were it computed.
        step: Columns from a pixel to the next.
        number: Of the convolution.
        skipped: Pixels that the output lacks before those that are computed.
    """

    n: ir.Expr
    y: ir.Expr
    window: ir.Expr
    first: ir.Expr = ZERO
    step: int = 1
    number: ir.Expr = ZERO
    skipped: int = 0

    def pixel(self, x: ir.Expr) -> Pixel:
        """The position in the output of a pixel."""
        return self.n, self.y, x * self.step + self.first


@dataclass(frozen=True, slots=True)
class _Block:
    """Output channels that are accumulated together.

    Attributes:
        first: The first of them.
        vectors: How many vectors hold them.
        channels: How many there are in the last vector.
        weights: Where theirs begin.
    """

    first: ir.Expr
    vectors: int
    channels: int
    weights: ir.Expr


class TiledConvolutions:
    """Convolutions that differ in weights and biases alone, and how their rows are cut into tiles.

    Of no taps they are biases.
    """

    def __init__(self, tile: Tile, convolutions: Sequence[Convolution]) -> None:
        self.tile, self.convolution = tile, convolutions[0]
        self.template = template = self.convolution.template
        self.body = self.template.body
        window, depth = self.convolution.window, self.convolution.in_channels
        is_whole = window.columns.dilation == 1 and (tile.copies is not None or window.is_all_interior)
        self.runs = (window.rows.kernel, 1 if is_whole else window.columns.kernel)
        self.length = depth * (window.columns.kernel if is_whole else 1)
        self.is_direct = _is_direct(tile, self.convolution)
        # As rows of the input, or as taps of it; else from a copy.
        self.reads_input = self.is_direct or tile.copies is None
        self.steps = -(-self.length // tile.of.group)
        self.vectors = -(-self.convolution.out_channels // tile.lanes)
        self.bias: Bias = bias_of(convolutions, tile.of.offset)
        self.weights_of_one = 0
        if window.num_taps:
            packed = [self._packed(each) for each in convolutions]
            self.weights_of_one = len(packed[0])
            self.weights = template.kernel.constant(
                "weights", np.concatenate(packed), tile.of.weight, ALIGNMENT
            )

    def _packed(self, convolution: Convolution) -> NDArray[np.generic]:
        tile = self.tile
        layout = Layout(
            lanes=tile.lanes,
            vectors=tile.max_vectors,
            group=tile.of.group,
            elements=End.OVERLAP if self.reads_input else End.ZEROS,
            by_element=tile.of.by_element,
        )
        return layout.pack(convolution.weights, self.runs[0] * self.runs[1])

    @property
    def run_bytes(self) -> int:
        """Weights of a vector of channels for a whole window."""
        return self.runs[0] * self.runs[1] * self.steps * self.tile.lanes * self.tile.of.group

    def write_row(self, row: Row, copies: ir.Buffer | None) -> None:
        """Writes the loops over tiles of pixels and blocks of channels, with what `copy_rows` gave."""
        for x, size in self._each_tile(row.skipped):
            for block in self._each_block():
                self._write_tile(row, x, size, block, copies)

    def _each_tile(self, skipped: int) -> Iterator[tuple[ir.Expr, int]]:
        """Loops over tiles; those of an open number of pixels are as large as there are, and the rest one by one."""
        body, tile, columns = self.body, self.tile, self.convolution.window.columns
        most = max(1, min(tile.max_sums // min(self.vectors, tile.max_vectors), columns.out - skipped))
        count = ir.quotient(columns.out_extent, -skipped)
        is_fixed = isinstance(count, int)
        tiles = _tiles(count, most) if is_fixed else ((0, ir.quotient(count, 0, most), most),)
        for first, repeats, size in tiles:
            body.note(f"{size} pixels at a time" if size > 1 else "pixel by pixel")
            with counted(body, "tile", repeats) as index, body.block():
                yield named(body, "x", index * size + (first + skipped)), size
        if most > 1 and not is_fixed:
            first = ir.extent_expr(ir.quotient(count, 0, most)) * most + skipped
            body.note("the rest, pixel by pixel")
            with body.for_("x", first, ir.extent_expr(columns.out_extent)) as x:
                yield x, 1

    def copy_rows(self, n: ir.Expr, y: ir.Expr) -> ir.Buffer | None:
        """Copies the rows under a row of windows; None where the input is read as it lies."""
        if self.reads_input or not self.convolution.window.num_taps:
            return None
        convolution, tile, body = self.convolution, self.tile, self.body
        depth = convolution.in_channels
        layout = WindowRows(convolution, tile, depth, tile.of.group - 1)
        rows, copies = layout.allocate(), layout.copies
        before, content = layout.before * depth, layout.content * depth

        def copy(ky: ir.Expr, iy: ir.Expr) -> None:
            width = convolution.window.columns.size * depth
            source = body.view("source", region(convolution.input, n, iy, 0, 0), tile.of.element, width)
            whole, rest = divmod(content, copies.chunk)

            def copy_some(first: ir.Expr, size: int) -> None:
                at = region(rows, ky, first + before)
                body.execute(copies.some(size), at, region(source, first))

            if whole:
                with counted(body, "chunk", whole) as index:
                    copy_some(index * copies.chunk, copies.chunk)
            if rest:
                copy_some(ir.const(whole * copies.chunk), rest)

        layout.write(rows, y, copy)
        return rows

    def _each_block(self) -> Iterator[_Block]:
        """Loops over blocks of as many vectors, then the rest."""
        tile, most = self.tile, self.tile.max_vectors
        channels = self.convolution.out_channels
        whole = channels // (tile.lanes * most)
        if whole:
            self.body.note(f"{tile.lanes * most} output channels at a time: accumulate, then scale and store")
            with counted(self.body, "block", whole) as index, self.body.block():
                yield _Block(index * (tile.lanes * most), most, tile.lanes, index * (most * self.run_bytes))
        rest = channels - whole * tile.lanes * most
        if rest:
            vectors = -(-rest // tile.lanes)
            first = self.vectors - vectors
            with self.body.block():
                last = rest - (vectors - 1) * tile.lanes
                yield _Block(ir.const(first * tile.lanes), vectors, last, ir.const(first * self.run_bytes))

    def _write_tile(self, row: Row, x: ir.Expr, size: int, block: _Block, copies: ir.Buffer | None) -> None:
        """Accumulates the channels of a block for pixels beside one another, then finishes and stores them."""
        channel = named(self.body, "channel", block.first)
        own = row.number * self.convolution.out_channels + channel
        sums = [[self._started(block, own, v) for v in range(block.vectors)] for _ in range(size)]
        if self.convolution.window.num_taps:
            self._add_window(sums, row, x, block, copies)
        for p, own in enumerate(sums):
            for v, totals in enumerate(own):
                is_last = v + 1 == block.vectors
                unit = self.tile.units(block.channels if is_last else self.tile.lanes)
                first = channel + v * self.tile.lanes
                store_lanes(self.template, unit, row.pixel(x + p), first, totals, self.bias.finished)

    def _add_window(
        self, sums: list[list[ir.Buffer]], row: Row, x: ir.Expr, block: _Block, copies: ir.Buffer | None
    ) -> None:
        """Adds the products of all that lies under the windows of pixels beside one another."""
        window, size = self.convolution.window, len(sums)
        depth = self.convolution.in_channels
        filters = self.body.view(
            "filters",
            region(self.weights, row.number * self.weights_of_one + block.weights),
            self.tile.of.weight,
            block.vectors * self.run_bytes,
        )
        with counted(self.body, "ky", self.runs[0]) as ky, counted(self.body, "kx", self.runs[1]) as kx:
            run = ky * self.runs[1] + kx
            column = x * window.columns.stride + kx * window.columns.dilation
            pitch = window.columns.stride * depth
            if copies is not None:
                start = named(self.body, "first", column * depth)
                positions = [region(copies, ky, start + p * pitch) for p in range(size)]
            elif self.is_direct:
                # Of the row, or of what the tile reads where the row ends as the run says.
                begin, first, width = ZERO, column * depth, window.columns.size * depth
                if window.columns.open_size is not None:
                    begin, first, width = column, ZERO, (size - 1) * pitch + self.length
                source = region(self.convolution.input, row.n, window.rows.tap(row.window, ky), begin, 0)
                source = self.body.view("row", source, self.tile.of.element, width)
                start = named(self.body, "first", first)
                positions = [region(source, start + p * pitch) for p in range(size)]
            else:
                positions = self._taps((row.n, row.window, x), size, ky, kx)
            self._accumulate(sums, positions, filters, run * (self.steps * block.vectors))

    def _taps(self, pixel: Pixel, size: int, ky: ir.Expr, kx: ir.Expr) -> list[ir.Region]:
        """What lies under a tap of neighbouring pixels."""
        n, y, x = pixel
        convolution, body = self.convolution, self.body
        found: list[ir.Region] = []
        for p in range(size):
            with body.numbered(p):
                position = convolution.window.under(body, (n, y, x + p), ky, kx)
                found.append(region(convolution.tap_at(position, ky, kx), 0))
        return found

    def _started(self, block: _Block, channel: ir.Expr, vector: int) -> ir.Buffer:
        """A register with what a vector of sums starts from."""
        tile, body = self.tile, self.body
        count = block.channels if vector + 1 == block.vectors else tile.lanes
        vectors = tile.units(count)
        sums = vectors.register(body, "sums", self.bias.values.dtype)
        if self.bias.is_float:
            body.execute(vectors.broadcasts[ir.DType.F32], sums, ir.const(0.0, ir.DType.F32))
        else:
            start = region(self.bias.values, channel + vector * tile.lanes)
            body.execute(vectors.loads[ir.DType.I32], sums, start)
        return sums

    def _accumulate(
        self, sums: list[list[ir.Buffer]], positions: list[ir.Region], filters: ir.Buffer, first: ir.Expr
    ) -> None:
        """Adds the products of one run, group by group."""
        tile, body = self.tile, self.body
        vectors, filter_elements = len(sums[0]), tile.lanes * tile.of.group
        has_rest = self.reads_input and self.length % tile.of.group != 0
        num_loop = self.steps - 1 if has_rest else self.steps

        def step(index: ir.Expr, element: ir.Expr) -> None:
            base = named(body, "filter", (first + index * vectors) * filter_elements)
            loaded = [body.register("weights", *tile.of.filters) for _ in range(vectors)]
            for v, register in enumerate(loaded):
                body.execute(tile.load, register, region(filters, base + v * filter_elements))
            for position, own in zip(positions, sums, strict=True):
                activations = body.register("activations", *tile.of.activations)
                *outer, begin = position.indices
                at = ir.Region(position.buffer, (*outer, begin + element))
                body.execute(tile.broadcasts[position.buffer.dtype], activations, at)
                for total, weights in zip(own, loaded, strict=True):
                    body.execute(tile.dot, total, activations, weights)

        with counted(body, "step", num_loop) as index, body.block():
            step(index, index * tile.of.group)
        if has_rest:
            with body.block():
                step(ir.const(num_loop), ir.const(self.length - tile.of.group))


def _tiles(count: int, most: int) -> Iterator[tuple[int, int, int]]:
    """Covers pixels by tiles of at most `most`, as equal as may be: (first pixel, number of tiles, pixels a tile)."""
    num = -(-count // most)
    size = -(-count // num)
    repeats = count // size
    yield 0, repeats, size
    if count % size:
        yield repeats * size, 1, count % size
