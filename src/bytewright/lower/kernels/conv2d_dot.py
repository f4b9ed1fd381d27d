"""conv2d of integers as dot products, a block of output channels at a time.

In the interior the input under one row of the window lies in one piece, so each row is one dot product. At the
border the taps are visited one by one. The two are separate loops: compilers vectorise each, but not both in one.
Pixels are computed in order all the same, row by row, so that the output may follow close behind the input in memory.
Weights stay in the model's order.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from bytewright import ir
from bytewright.ir.builder import BodyBuilder, load, region
from bytewright.ir.expr import equal
from bytewright.lower.kernels.context import Pixel, accumulated, channel_blocks, counted, named, pixels
from bytewright.lower.kernels.convolution import ZERO, Convolution

U8, I32 = ir.DType.U8, ir.DType.I32
SHORT_DOT = 16


@dataclass(frozen=True, slots=True)
class Block:
    """Output channels of one pixel, while they are accumulated.

    Attributes:
        filters: Their weights, one channel after the other.
        sums: One for each channel.
        offset: 0 or 128, what is added to every activation: with an offset it is an unsigned byte, for which
            compilers know wider dot products.
    """

    body: BodyBuilder
    filters: ir.Buffer
    sums: list[ir.Buffer]
    offset: int

    def multiply_add(self, activation: ir.Expr, index: ir.Expr) -> None:
        """Multiplies one activation with the weights of each channel, of which it meets those of this number."""
        depth = ir.num_elements(self.filters) // len(self.sums)
        widened = ir.cast(activation, I32)
        value = self.body.let("value", ir.cast(widened + self.offset, U8) if self.offset else widened)
        for j, total in enumerate(self.sums):
            weight = ir.cast(load(self.filters, index + j * depth), I32)
            self.body.add_to(total, (), ir.cast(ir.cast(value, I32) * weight, total.dtype))


class DotProducts:
    """Weights and bias of a convolution, by blocks of output channels.

    Args:
        convolution: A convolution of integers.
        block: Output channels that are accumulated together.
    """

    def __init__(self, convolution: Convolution, block: int) -> None:
        self.convolution = convolution
        self.block = block
        are_bytes = convolution.dtype is ir.DType.I8
        becomes_unsigned = are_bytes and convolution.template.style.unsigned_activations
        self.offset = -ir.DType.I8.bounds[0] if becomes_unsigned else 0
        held = convolution.weights_dtype
        self.weights = convolution.template.kernel.constant("weights", convolution.weights, held)
        self.bias = convolution.bias(self.offset)

    def blocks(self, pixel: Pixel, group: ir.Expr = ZERO) -> Iterator[Block]:
        """Every block of a pixel, of the channels of one group.

        Once the caller has accumulated it, its channels are finished in order and stored.
        """
        num_channels, depth = self.convolution.weights.shape
        template = self.convolution.template
        body, per_group = template.body, num_channels // self.convolution.groups
        for first, size in channel_blocks(body, per_group, self.block, accumulated):
            channel = named(body, "channel", group * per_group + first)
            filters = body.view("filters", region(self.weights, channel, 0), self.weights.dtype, size * depth)
            sums = [
                body.scalar(f"acc{j}", self.convolution.sums_dtype, self.bias.initial(channel + j))
                for j in range(size)
            ]
            yield Block(body, filters, sums, self.offset)
            self._finish(pixel, channel, sums)

    def _finish(self, pixel: Pixel, channel: ir.Expr, sums: list[ir.Buffer]) -> None:
        """Stores the channels of a block."""
        places = [(*pixel, channel + j) for j in range(len(sums))]
        self.convolution.template.epilogue.store_each(
            places, lambda j: self.bias.finished(load(sums[j]), channel + j)
        )


def write_dot(convolution: Convolution) -> None:
    """Writes the loop over rows, and in each the pixels in order."""
    template, window = convolution.template, convolution.window
    body, style = template.body, template.style
    is_short = style.unsigned_activations and convolution.weights.shape[1] < SHORT_DOT
    dot = DotProducts(convolution, 1 if is_short else style.channel_block)
    rows, columns = window.rows.interior, window.columns.interior
    in_one_piece = window.columns.dilation == 1 or window.columns.kernel == 1
    has_interior = in_one_piece and rows[0] < rows[1] and columns[0] < columns[1]
    width = window.columns.out_extent
    with counted(body, "n", convolution.num) as n, template.kernel.rows(window.rows.out) as y:
        if has_interior and window.is_all_interior:
            with counted(body, "x", width) as x:
                _add_rows(dot, (n, y, x))
        elif has_interior:
            _write_parts(dot, n, y)
        else:
            with counted(body, "x", width) as x:
                _add_taps(dot, (n, y, x))


def write_groups(convolution: Convolution) -> None:
    """Writes the loops over pixels and the groups of their channels, tap by tap."""
    dot = DotProducts(convolution, convolution.template.style.channel_block)
    body = convolution.template.body
    with pixels(convolution.template) as pixel, counted(body, "group", convolution.groups) as group:
        for block in dot.blocks(pixel, group):
            with convolution.each_element(pixel, group) as (activation, index):
                block.multiply_add(activation, index)


def _write_parts(dot: DotProducts, n: ir.Expr, y: ir.Expr) -> None:
    """One row: what is left of the interior, the interior, and what is right of it, so that pixels are in order.

    The border's code is there once, for both sides. A row above or below the interior is all left of it.
    """
    window, body = dot.convolution.window, dot.convolution.template.body
    width = ir.extent_expr(window.columns.out_extent)
    is_inside = window.rows.is_interior(y)
    first, last = (
        named(body, name, column if column == width else ir.select(is_inside, column, width))
        for name, column in zip(("left", "right"), window.columns.interior_in_run(), strict=True)
    )
    # Not to `last`: that the run of a row's last pixel ends with the row can then be told from the bounds.
    end = last if window.columns.open_size is not None else ir.const(window.columns.interior[1])
    with body.for_("part", 0, 3) as part:
        with body.if_(equal(part, 1)):
            body.note("where the window lies inside the input: one dot product a row of it")
            with body.for_("x", first, end) as x:
                _add_rows(dot, (n, y, x))
        with body.else_():
            is_left = part < 1
            begin = body.let("begin", ir.select(is_left, ir.const(0), last))
            behind = body.let("end", ir.select(is_left, first, width))
            body.note("the border, tap by tap; outside the input taps are the zero point")
            with body.for_("x", begin, behind) as x:
                _add_taps(dot, (n, y, x))


def _add_rows(dot: DotProducts, pixel: Pixel) -> None:
    """A pixel whose window lies inside the input."""
    convolution = dot.convolution
    body, window = convolution.template.body, convolution.window
    row_length = window.columns.kernel * convolution.in_channels
    n, y, x = pixel
    for block in dot.blocks(pixel):
        with counted(body, "ky", window.rows.kernel) as ky:
            first = region(convolution.input, n, window.rows.tap(y, ky), window.columns.tap(x, 0), 0)
            row = body.view("row", first, convolution.dtype, row_length)
            with body.for_("k", 0, row_length) as k:
                block.multiply_add(load(row, k), ky * row_length + k)


def _add_taps(dot: DotProducts, pixel: Pixel) -> None:
    """A pixel whose window may touch the padding."""
    for block in dot.blocks(pixel):
        with dot.convolution.each_element(pixel) as (activation, index):
            block.multiply_add(activation, index)
