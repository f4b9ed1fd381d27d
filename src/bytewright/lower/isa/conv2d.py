"""conv2d with sums in lanes: a tile of pixels by some vectors of output channels is accumulated in registers.

Every group of activations is broadcast to all lanes; weights are packed as they are read, `[run][group][vector][lane]
[element]`, with zeros where channels or elements end, so that one pointer goes through them. A run is what lies one
after another under the window: a row of it, or a tap where columns are dilated. Where no window touches the padding the
input is read as it is; else from a copy of its rows (`window_rows.py`). A tile reads all activations of a block of
channels before it stores the first of their results.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from bytewright import ir
from bytewright.ir.builder import region
from bytewright.lower.isa.instruction_set import IsaTemplate
from bytewright.lower.isa.store_lanes import store_lanes
from bytewright.lower.isa.tile import Tile
from bytewright.lower.isa.window_rows import ALIGNMENT, WindowRows
from bytewright.lower.kernels.accumulator import Bias
from bytewright.lower.kernels.context import Template, counted, named
from bytewright.lower.kernels.convolution import Convolution, convolution_of
from bytewright.lower.kernels.layout import End, Layout
from bytewright.ops.convolution import Conv2d


def conv2d_templates(name: str, *tiles: Tile) -> tuple[IsaTemplate, ...]:
    """The templates of an instruction set of some name, one for each tile."""
    return tuple(
        IsaTemplate(
            f"{name}.conv2d_{tile.element.value}",
            partial(_write_conv2d, tile),
            partial(_conv2d_declines, tile),
        )
        for tile in tiles
    )


def _conv2d_declines(unit: Tile, template: Template, operation: Conv2d) -> str | None:
    """Why this is no convolution for the kernel below."""
    del operation
    of_operands = {
        "elements": (template.type(0).dtype, unit.element),
        "weights": (template.type(1).dtype, unit.weight),
        "sums": (template.result_type.dtype, unit.sums),
    }
    for name, (dtype, wanted) in of_operands.items():
        if dtype is not wanted:
            return f"its {name} are {dtype.value}, not {wanted.value}"
    return None


def _write_conv2d(unit: Tile, template: Template, operation: Conv2d) -> None:
    """Writes the kernel. x: [N, H, W, IC]; weights: [OC, KH, KW, IC]; bias: [OC]; result: [N, OH, OW, OC]."""
    convolution = convolution_of(template, operation)
    _Kernel(unit, convolution).write()


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


class _Kernel:
    """One convolution, and how it is cut into tiles."""

    def __init__(self, unit: Tile, convolution: Convolution) -> None:
        self.unit, self.convolution = unit, convolution
        self.template = convolution.template
        self.body = self.template.body
        window, depth = convolution.window, convolution.in_channels
        is_whole = window.columns.dilation == 1
        self.runs = (window.rows.kernel, 1 if is_whole else window.columns.kernel)
        self.length = depth * (window.columns.kernel if is_whole else 1)
        self.is_direct = (
            window.is_all_interior and self.length >= unit.group and unit.element in unit.broadcasts
        )
        self.steps = -(-self.length // unit.group)
        self.vectors = -(-convolution.out_channels // unit.lanes)
        self.bias: Bias = convolution.bias(unit.offset)
        layout = Layout(
            lanes=unit.lanes,
            vectors=unit.max_vectors,
            group=unit.group,
            elements=End.OVERLAP if self.is_direct else End.ZEROS,
        )
        packed = layout.pack(convolution.weights, self.runs[0] * self.runs[1])
        self.weights = self.template.kernel.constant("weights", packed, unit.weight, ALIGNMENT)

    @property
    def run_bytes(self) -> int:
        """Weights of a vector of channels for a whole window."""
        return self.runs[0] * self.runs[1] * self.steps * self.unit.lanes * self.unit.group

    def write(self) -> None:
        """Writes the loops over rows, tiles of pixels, and blocks of channels."""
        window, body, unit = self.convolution.window, self.body, self.unit
        with (
            counted(body, "n", self.convolution.num) as n,
            self.template.kernel.rows(window.rows.out) as y,
        ):
            rows = None if self.is_direct else self._copied_rows(n, y)
            most = max(1, unit.max_sums // min(self.vectors, unit.max_vectors))
            for first, repeats, size in _tiles(window.columns.out, most):
                body.note(f"{size} pixels at a time" if size > 1 else "pixel by pixel")
                with counted(body, "tile", repeats) as tile, body.block():
                    x = named(body, "x", tile * size + first)
                    for block in self._each_block():
                        self._write_tile(n, y, x, size, block, rows)

    def _copied_rows(self, n: ir.Expr, y: ir.Expr) -> ir.Buffer:
        """A copy of the rows under the windows of a row of the output."""
        convolution, unit, body = self.convolution, self.unit, self.body
        depth = convolution.in_channels
        layout = WindowRows(convolution, unit, depth, unit.group - 1)
        rows = layout.allocate()
        before, content = layout.before * depth, layout.content * depth

        def copy(ky: ir.Expr, iy: ir.Expr) -> None:
            width = convolution.window.columns.size * depth
            source = body.view("source", region(convolution.input, n, iy, 0, 0), unit.element, width)
            whole, rest = divmod(content, unit.chunk)

            def copy_some(first: ir.Expr, size: int) -> None:
                at = region(rows, ky, first + before)
                body.execute(unit.copies(size), at, region(source, first))

            if whole:
                with counted(body, "chunk", whole) as index:
                    copy_some(index * unit.chunk, unit.chunk)
            if rest:
                copy_some(ir.const(whole * unit.chunk), rest)

        layout.write(rows, y, copy)
        return rows

    def _each_block(self) -> Iterator[_Block]:
        """Loops over blocks of as many vectors, then the rest."""
        unit, most = self.unit, self.unit.max_vectors
        channels = self.convolution.out_channels
        whole = channels // (unit.lanes * most)
        if whole:
            self.body.note(f"{unit.lanes * most} output channels at a time: accumulate, then scale and store")
            with counted(self.body, "block", whole) as index, self.body.block():
                yield _Block(index * (unit.lanes * most), most, unit.lanes, index * (most * self.run_bytes))
        rest = channels - whole * unit.lanes * most
        if rest:
            vectors = -(-rest // unit.lanes)
            first = self.vectors - vectors
            with self.body.block():
                last = rest - (vectors - 1) * unit.lanes
                yield _Block(ir.const(first * unit.lanes), vectors, last, ir.const(first * self.run_bytes))

    def _write_tile(
        self, n: ir.Expr, y: ir.Expr, x: ir.Expr, size: int, block: _Block, rows: ir.Buffer | None
    ) -> None:
        """Accumulates the channels of a block for pixels beside one another, then finishes and stores them."""
        channel = named(self.body, "channel", block.first)
        sums = [[self._started(block, channel, v) for v in range(block.vectors)] for _ in range(size)]
        window = self.convolution.window
        depth = self.convolution.in_channels
        filters = self.body.view(
            "filters", region(self.weights, block.weights), self.unit.weight, block.vectors * self.run_bytes
        )
        with counted(self.body, "ky", self.runs[0]) as ky, counted(self.body, "kx", self.runs[1]) as kx:
            run = ky * self.runs[1] + kx
            column = (x * window.columns.stride + kx * window.columns.dilation) * depth
            if rows is None:
                width = window.columns.size * depth
                first = region(self.convolution.input, n, window.rows.tap(y, ky), 0, 0)
                source = self.body.view("row", first, self.unit.element, width)
                start = named(self.body, "first", column)
                positions = [region(source, start + p * window.columns.stride * depth) for p in range(size)]
            else:
                start = named(self.body, "first", column)
                positions = [region(rows, ky, start + p * window.columns.stride * depth) for p in range(size)]
            self._accumulate(sums, positions, filters, run * (self.steps * block.vectors))
        for p, own in enumerate(sums):
            for v, totals in enumerate(own):
                is_last = v + 1 == block.vectors
                unit = self.unit.units(block.channels if is_last else self.unit.lanes)
                first = channel + v * self.unit.lanes
                store_lanes(self.template, unit, (n, y, x + p), first, totals, self.bias.finished)

    def _started(self, block: _Block, channel: ir.Expr, vector: int) -> ir.Buffer:
        """A register with what a vector of sums starts from."""
        unit, body = self.unit, self.body
        count = block.channels if vector + 1 == block.vectors else unit.lanes
        vectors = unit.units(count)
        sums = vectors.register(body, "sums", self.bias.values.dtype)
        if self.bias.is_float:
            body.execute(vectors.broadcasts[ir.DType.F32], sums, ir.const(0.0, ir.DType.F32))
        else:
            start = region(self.bias.values, channel + vector * unit.lanes)
            body.execute(vectors.loads[ir.DType.I32], sums, start)
        return sums

    def _accumulate(
        self, sums: list[list[ir.Buffer]], positions: list[ir.Region], filters: ir.Buffer, first: ir.Expr
    ) -> None:
        """Adds the products of one run, group by group."""
        unit, body = self.unit, self.body
        vectors, filter_elements = len(sums[0]), unit.lanes * unit.group
        has_rest = self.is_direct and self.length % unit.group != 0
        num_loop = self.steps - 1 if has_rest else self.steps

        def step(index: ir.Expr, element: ir.Expr) -> None:
            base = named(body, "filter", (first + index * vectors) * filter_elements)
            loaded = [body.register("weights", *unit.filters) for _ in range(vectors)]
            for v, register in enumerate(loaded):
                body.execute(unit.load, register, region(filters, base + v * filter_elements))
            for position, own in zip(positions, sums, strict=True):
                activations = body.register("activations", *unit.activations)
                *outer, begin = position.indices
                at = ir.Region(position.buffer, (*outer, begin + element))
                body.execute(unit.broadcasts[position.buffer.dtype], activations, at)
                for total, weights in zip(own, loaded, strict=True):
                    body.execute(unit.dot, total, activations, weights)

        with counted(body, "step", num_loop) as index, body.block():
            step(index, index * unit.group)
        if has_rest:
            with body.block():
                step(ir.const(num_loop), ir.const(self.length - unit.group))


def _tiles(count: int, most: int) -> Iterator[tuple[int, int, int]]:
    """Covers pixels by tiles of at most `most`, as equal as may be: (first pixel, number of tiles, pixels a tile)."""
    num = -(-count // most)
    size = -(-count // num)
    repeats = count // size
    yield 0, repeats, size
    if count % size:
        yield repeats * size, 1, count % size
