"""int8 conv2d as dot products, a block of output channels at a time.

In the interior the input under one row of the window lies in one piece, so each row is one dot product. At the
border the taps are visited one by one. The two are separate loops: compilers vectorise each, but not both in one.
Weights stay in the model's order.
"""

from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass

from bytewright import ir
from bytewright.ir.builder import BodyBuilder, load, region
from bytewright.lower.kernels.context import Pixel, accumulated, channel_blocks, counted, named
from bytewright.lower.kernels.convolution import Convolution

I8, U8, I32 = ir.DType.I8, ir.DType.U8, ir.DType.I32
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
            self.body.add_to(total, (), ir.cast(value, I32) * weight)


class DotProducts:
    """Weights and bias of a convolution, by blocks of output channels.

    Args:
        convolution: An int8 convolution.
        block: Output channels that are accumulated together.
    """

    def __init__(self, convolution: Convolution, block: int) -> None:
        self.convolution = convolution
        self.block = block
        self.offset = 128 if convolution.template.style.unsigned_activations else 0
        self.weights = convolution.template.kernel.constant("weights", convolution.weights, I8)
        self.bias = convolution.bias(self.offset)

    def blocks(self, pixel: Pixel) -> Iterator[Block]:
        """Every block of a pixel; once the caller has accumulated it, its channels are finished in order and stored."""
        num_channels, depth = self.convolution.weights.shape
        template = self.convolution.template
        body = template.body
        for first, size in channel_blocks(body, num_channels, self.block, accumulated):
            channel = named(body, "channel", first)
            filters = body.view("filters", region(self.weights, channel, 0), I8, size * depth)
            sums = [body.scalar(f"acc{j}", I32, self.bias.initial(channel + j)) for j in range(size)]
            yield Block(body, filters, sums, self.offset)
            for j, total in enumerate(sums):
                with body.numbered(j):
                    value = self.bias.finished(load(total), channel + j)
                    template.epilogue.store((*pixel, channel + j), value)


def write_dot(convolution: Convolution) -> None:
    """Writes the loops over the interior and over the border."""
    template, window = convolution.template, convolution.window
    body, style = template.body, template.style
    is_short = style.unsigned_activations and convolution.weights.shape[1] < SHORT_DOT
    dot = DotProducts(convolution, 1 if is_short else style.channel_block)
    rows, columns = window.rows.interior, window.columns.interior
    in_one_piece = window.columns.dilation == 1 or window.columns.kernel == 1
    has_interior = in_one_piece and rows[0] < rows[1] and columns[0] < columns[1]
    with counted(body, "n", convolution.num) as n:
        if has_interior:
            if not window.is_all_interior:
                body.note("where the window lies inside the input: one dot product a row of it")
            with template.kernel.rows(window.rows.out, *rows) as y, body.for_("x", *columns) as x:
                _add_rows(dot, (n, y, x))
            if window.is_all_interior:
                return
            body.note("the border, tap by tap; outside the input taps are the zero point")
        with (
            template.kernel.rows(window.rows.out) as y,
            body.for_("x", 0, window.columns.out) as x,
            body.if_(window.is_border(y, x)) if has_interior else nullcontext(),
        ):
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
            row = body.view("row", first, I8, row_length)
            with body.for_("k", 0, row_length) as k:
                block.multiply_add(load(row, k), ky * row_length + k)


def _add_taps(dot: DotProducts, pixel: Pixel) -> None:
    """A pixel whose window may touch the padding."""
    for block in dot.blocks(pixel):
        with dot.convolution.each_element(pixel) as (activation, index):
            block.multiply_add(activation, index)
