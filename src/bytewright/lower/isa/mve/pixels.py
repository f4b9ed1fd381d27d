"""All output channels of one or two pixels on MVE, of convolutions whose windows are alike, such as those of phases.

Under a pointwise window a run is the pixel itself; under a larger one it is gathered first.
"""

from collections.abc import Sequence

import numpy as np

from bytewright import ir
from bytewright.ir.builder import region
from bytewright.lower.isa.mve.convolve import PIXELS, convolve, sum_block
from bytewright.lower.isa.mve.dot_products import CHANNELS, LEAST_DEPTH, num_blocks, packed_weights
from bytewright.lower.isa.mve.scaling import Scaling, by_lanes, scaling_of
from bytewright.lower.isa.operand_types import SUMS_OF_32_BITS, types_decline
from bytewright.lower.isa.store_lanes import store_lanes
from bytewright.lower.isa.vector_unit import VectorUnit
from bytewright.lower.kernels.context import Pixel, counted, named
from bytewright.lower.kernels.convolution import ZERO, Convolution, bias_of

I8, I16, I32 = ir.DType.I8, ir.DType.I16, ir.DType.I32
# What is gathered before it is computed. Pairs of larger windows are computed one by one: scratch is memory.
MAX_GATHERED_BYTES = 512
MAX_DEPTH = 4096
MAX_BLOCKS = 65535
"""Turns of a loop over blocks of channels, which one instruction sets."""


def pixels_decline(convolution: Convolution) -> str | None:
    """Why this is no convolution for the class below."""
    of_types = types_decline(convolution.template, SUMS_OF_32_BITS)
    if of_types is not None:
        return of_types
    num_channels, depth = convolution.weights.shape
    if depth < LEAST_DEPTH:
        return f"there are only {depth} elements under its window"
    if not is_direct(convolution) and depth > MAX_DEPTH:
        return f"its window has {depth} elements, more than are gathered"
    if num_blocks(num_channels) > MAX_BLOCKS:
        return f"it has {num_channels} output channels, more than {MAX_BLOCKS * CHANNELS}"
    return None


def is_direct(convolution: Convolution) -> bool:
    """Whether a window is one pixel of the input."""
    return convolution.window.num_taps == 1 and convolution.window.is_all_interior


def under(convolution: Convolution, n: ir.Expr, y: ir.Expr, x: ir.Expr) -> ir.Region:
    """The input pixel under an output pixel of a pointwise convolution."""
    window = convolution.window
    return region(convolution.input, n, window.rows.tap(y, 0), window.columns.tap(x, 0), 0)


def pixels_at_once(convolution: Convolution) -> int:
    """One or two."""
    pair_bytes = convolution.weights.shape[1] * PIXELS * convolution.dtype.size_bytes
    is_pair = is_direct(convolution) or pair_bytes <= MAX_GATHERED_BYTES
    return min(PIXELS, convolution.window.columns.out) if is_pair else 1


class Pixels:
    """All output channels of up to `most` pixels, of which the runs are known.

    Args:
        convolutions: They differ in weights alone; `write` is told which one it is by its number.
        most: Pixels at once.
        unit: For epilogues that are no rescale.
        step: Columns of the output from a pixel to the next.
    """

    def __init__(
        self, convolutions: Sequence[Convolution], most: int, unit: VectorUnit, step: int = 1
    ) -> None:
        self.convolution, self.unit, self.step = convolutions[0], unit, step
        self.template = template = self.convolution.template
        self.body = template.body
        self.num_channels, self.depth = self.convolution.weights.shape
        element = self.convolution.dtype
        packed = [packed_weights(each.weights, element) for each in convolutions]
        self.weights = template.kernel.constant("weights", np.concatenate(packed), I8)
        self.weights_bytes = len(packed[0])
        folded = [each.folded() for each in convolutions]
        scalings = [scaling for each in folded if (scaling := scaling_of(template, each)) is not None]
        self.scaling = scalings[0] if len(scalings) == len(folded) else None
        self.is_uniform = self.scaling is not None and most == 1 and all(s.is_uniform for s in scalings)
        if self.scaling is None:
            self.bias = bias_of(convolutions, multiple=CHANNELS)
        else:
            channels = by_lanes(self.num_channels, CHANNELS)
            scales = [s.packed_uniform(channels) if self.is_uniform else s.packed(channels) for s in scalings]
            self.scales = template.kernel.constant("scales", np.concatenate(scales), I32)
            self.num_scales = len(scales[0])

    def write(self, pixel: Pixel, runs: list[ir.Region], number: ir.Expr = ZERO) -> None:
        """Computes pixels of a convolution from `pixel` on, one for each run."""
        if self.scaling is not None:
            self._write_all(pixel, runs, number, self.scaling)
        else:
            self._write_blocks(pixel, runs, number)

    def _write_all(self, pixel: Pixel, runs: list[ir.Region], number: ir.Expr, scaling: Scaling) -> None:
        n, y, x = pixel
        output = self.template.epilogue.output
        size = len(runs), self.depth, self.num_channels
        element = self.convolution.dtype
        instruction = convolve(*size, scaling.kind, is_uniform=self.is_uniform, element=element)
        self.body.execute(
            instruction,
            *(region(output, n, y, x + i * self.step, 0) for i in range(len(runs))),
            *runs,
            region(self.weights, number * self.weights_bytes),
            region(self.scales, number * self.num_scales),
            *scaling.operands(),
        )

    def _write_blocks(self, pixel: Pixel, runs: list[ir.Region], number: ir.Expr) -> None:
        """Sums of four channels, and an epilogue of any kind."""
        whole, rest = divmod(self.num_channels, CHANNELS)
        if whole:
            with counted(self.body, "block", whole) as block:
                self._write_block(pixel, runs, number, block)
        if rest:
            self._write_block(pixel, runs, number, ir.const(whole), rest)

    def _write_block(
        self,
        pixel: Pixel,
        runs: list[ir.Region],
        number: ir.Expr,
        block: ir.Expr,
        num: int | None = None,
    ) -> None:
        """A block of all four channels, or of the last `num`."""
        n, y, x = pixel
        body, blocks = self.body, num_blocks(self.num_channels)
        instruction = sum_block(len(runs), self.depth, self.convolution.dtype)
        channel = named(body, "channel", block * CHANNELS)
        totals = [self.unit.register(body, f"totals{i}") for i in range(len(runs))]
        filters = region(self.weights, number * self.weights_bytes + block * (self.weights_bytes // blocks))
        initial = region(self.bias.values, number * (blocks * CHANNELS) + channel)
        body.execute(instruction, *totals, *runs, filters, initial)
        for i, total in enumerate(totals):
            with body.numbered(i):
                at = n, y, x + i * self.step
                store_lanes(self.template, self.unit, at, channel, total, self.bias.finished, num=num)
