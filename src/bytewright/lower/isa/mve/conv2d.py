"""conv2d on MVE with weights of int8: pairs of pixels, each the dot products of one run with all output channels.

Under a pointwise window the run is the pixel itself. Under a larger one it is gathered first, row by row where the
window lies inside the input, else tap by tap: two instructions for 16 bytes, which each output channel reads again.
So the border is no case of its own, and a pixel is read before any of its pair is stored.
"""

from collections.abc import Callable

from bytewright import ir
from bytewright.ir.builder import region
from bytewright.lower.isa.mve.convolve import PIXELS, convolve, sum_block
from bytewright.lower.isa.mve.dot_products import CHANNELS, LEAST_DEPTH, num_blocks, packed_weights
from bytewright.lower.isa.mve.gather import Gather
from bytewright.lower.isa.mve.scaling import Scaling, by_lanes, scaling_of
from bytewright.lower.isa.store_lanes import store_lanes
from bytewright.lower.isa.vector_unit import VectorUnit
from bytewright.lower.kernels.context import Pixel, Template, counted, named
from bytewright.lower.kernels.convolution import Convolution, convolution_of
from bytewright.ops.convolution import Conv2d

I8, I16, I32 = ir.DType.I8, ir.DType.I16, ir.DType.I32
# Types of activations, weights and sums.
_TAKEN = {(I8, I8, I32), (I16, I8, I32)}
# What is gathered before it is computed. Pairs of larger windows are computed one by one: scratch is memory.
MAX_GATHERED_BYTES = 512
MAX_DEPTH = 4096
MAX_BLOCKS = 65535
"""Turns of a loop over blocks of channels, which one instruction sets."""


def conv2d_declines(template: Template, operation: Conv2d) -> str | None:
    """Why this is no convolution for the kernel below."""
    types = tuple(each.dtype for each in (template.type(0), template.type(1), template.result_type))
    if types not in _TAKEN:
        return f"it is of {', '.join(dtype.value for dtype in types)}"
    convolution = convolution_of(template, operation)
    num_channels, depth = convolution.weights.shape
    if depth < LEAST_DEPTH:
        return f"there are only {depth} elements under its window"
    if not _is_direct(convolution) and depth > MAX_DEPTH:
        return f"its window has {depth} elements, more than are gathered"
    if num_blocks(num_channels) > MAX_BLOCKS:
        return f"it has {num_channels} output channels, more than {MAX_BLOCKS * CHANNELS}"
    return None


def write_conv2d(unit: VectorUnit, template: Template, operation: Conv2d) -> None:
    """Writes the kernel. x: [N, H, W, IC]; weights: [OC, KH, KW, IC], packed by blocks of four channels.

    Args:
        unit: For epilogues that are no rescale.
        template: Of the kernel.
        operation: The convolution.
    """
    convolution = convolution_of(template, operation)
    body, columns = template.body, convolution.window.columns
    depth = convolution.weights.shape[1]
    is_direct = _is_direct(convolution)
    pair_bytes = depth * PIXELS * convolution.dtype.size_bytes
    num_pixels = min(PIXELS, columns.out) if is_direct or pair_bytes <= MAX_GATHERED_BYTES else 1
    pixels = _Pixels(convolution, num_pixels, unit)
    with counted(body, "n", convolution.num) as n, template.kernel.rows(convolution.window.rows.out) as y:
        if is_direct:
            _write_row(
                pixels, (n, y), lambda x, i: region(convolution.input, *_under(convolution, n, y, x + i), 0)
            )
            return
        gather = Gather(convolution, depth, num_pixels)
        with counted(body, "pair", -(-columns.out // num_pixels)) as pair:
            x = named(body, "x", pair * num_pixels)
            gather.write((n, y, x))
            runs = [gather.run(i) for i in range(num_pixels)]
            if columns.out % num_pixels == 0:
                pixels.write((n, y, x), runs)
                return
            with body.if_(x + 1 < columns.out):
                pixels.write((n, y, x), runs)
            with body.else_():
                pixels.write((n, y, x), runs[:1])


def _is_direct(convolution: Convolution) -> bool:
    """Whether a window is one pixel of the input."""
    return convolution.window.num_taps == 1 and convolution.window.is_all_interior


def _under(convolution: Convolution, n: ir.Expr, y: ir.Expr, x: ir.Expr) -> Pixel:
    """The input pixel under an output pixel of a pointwise convolution."""
    return n, convolution.window.rows.tap(y, 0), convolution.window.columns.tap(x, 0)


def _write_row(
    pixels: "_Pixels", row: tuple[ir.Expr, ir.Expr], run: Callable[[ir.Expr, int], ir.Region]
) -> None:
    """Pairs of pixels of a row, and the last one if their number is odd."""
    body, width = pixels.body, pixels.convolution.window.columns.out
    if width >= PIXELS:
        with counted(body, "pair", width // PIXELS) as pair:
            x = named(body, "x", pair * PIXELS)
            pixels.write((*row, x), [run(x, i) for i in range(PIXELS)])
    if width % PIXELS:
        last = ir.const(width - 1)
        pixels.write((*row, last), [run(last, 0)])


class _Pixels:
    """All output channels of one or two pixels, of which the runs are known."""

    def __init__(self, convolution: Convolution, most: int, unit: VectorUnit) -> None:
        self.convolution, self.unit = convolution, unit
        self.template = template = convolution.template
        self.body = template.body
        self.num_channels, self.depth = convolution.weights.shape
        self.weights = template.kernel.constant(
            "weights", packed_weights(convolution.weights, convolution.dtype), I8
        )
        self.scaling = scaling_of(template, convolution.folded())
        self.is_uniform = self.scaling is not None and most == 1 and self.scaling.is_uniform
        self.bias = None
        if self.scaling is None:
            self.bias = convolution.bias(multiple=CHANNELS)
        else:
            channels = by_lanes(self.num_channels, CHANNELS)
            pack = self.scaling.packed_uniform if self.is_uniform else self.scaling.packed
            self.scales = template.kernel.constant("scales", pack(channels), I32)

    def write(self, pixel: Pixel, runs: list[ir.Region]) -> None:
        """Computes pixels from `pixel` on, one for each run."""
        if self.scaling is not None:
            self._write_all(pixel, runs, self.scaling)
        else:
            self._write_blocks(pixel, runs)

    def _write_all(self, pixel: Pixel, runs: list[ir.Region], scaling: Scaling) -> None:
        n, y, x = pixel
        output = self.template.epilogue.output
        size = len(runs), self.depth, self.num_channels
        element = self.convolution.dtype
        instruction = convolve(*size, scaling.kind, is_uniform=self.is_uniform, element=element)
        self.body.execute(
            instruction,
            *(region(output, n, y, x + i, 0) for i in range(len(runs))),
            *runs,
            region(self.weights, 0),
            region(self.scales, 0),
            *scaling.operands(),
        )

    def _write_blocks(self, pixel: Pixel, runs: list[ir.Region]) -> None:
        """Sums of four channels, and an epilogue of any kind."""
        whole, rest = divmod(self.num_channels, CHANNELS)
        if whole:
            with counted(self.body, "block", whole) as block:
                self._write_block(pixel, runs, block)
        if rest:
            self._write_block(pixel, runs, ir.const(whole), rest)

    def _write_block(
        self, pixel: Pixel, runs: list[ir.Region], block: ir.Expr, num: int | None = None
    ) -> None:
        """A block of all four channels, or of the last `num`."""
        n, y, x = pixel
        body, bias = self.body, self.bias
        assert bias is not None
        instruction = sum_block(len(runs), self.depth, self.convolution.dtype)
        block_bytes = ir.num_elements(self.weights) // num_blocks(self.num_channels)
        channel = named(body, "channel", block * CHANNELS)
        totals = [self.unit.register(body, f"totals{i}") for i in range(len(runs))]
        filters = region(self.weights, block * block_bytes)
        body.execute(instruction, *totals, *runs, filters, region(bias.values, channel))
        for i, total in enumerate(totals):
            with body.numbered(i):
                store_lanes(self.template, self.unit, (n, y, x + i), channel, total, bias.finished, num=num)
