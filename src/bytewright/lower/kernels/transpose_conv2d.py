"""transpose_conv2d as a gather: each pixel of the output sums over the taps that reach it.

So sums are scalars, and there is no array of accumulators. The elements are visited in ascending order, in which the
references add.
"""

from collections.abc import Generator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass

import numpy as np

from bytewright import ir
from bytewright.ir.builder import load, region
from bytewright.lower.kernels.accumulator import Bias
from bytewright.lower.kernels.context import (
    Pixel,
    Template,
    accumulated,
    channel_blocks,
    counted,
    named,
    pixels,
)
from bytewright.lower.kernels.spread import SpreadAxis, axes_of
from bytewright.lower.scalar import ChannelBounds, require_fits
from bytewright.ops.arithmetic.sums import sums_by_sign
from bytewright.ops.convolution import TransposeConv2d

I32 = ir.DType.I32


def lower_transpose_conv2d(template: Template, operation: TransposeConv2d) -> None:
    """Writes the kernel of a transpose_conv2d.

    x: [N, H, W, IC]; weights: [OC, KH, KW, IC]; bias: [OC]; result: [N, OH, OW, OC].
    """
    weights = template.constant(1)
    spread = _Spread(
        template,
        *axes_of(template, operation),
        weights.shape[3],
        weights.reshape(len(weights), -1),
        operation.input_zero_point,
    )
    with pixels(template) as pixel:
        if template.type(0).dtype.is_integer:
            spread.write_dots(pixel)
        else:
            spread.write_lanes(pixel)


@dataclass(frozen=True, slots=True)
class _Spread:
    """One transposed convolution.

    Attributes:
        depth: Channels of the input.
        weights: [OC, KH * KW * IC].
    """

    template: Template
    rows: SpreadAxis
    columns: SpreadAxis
    depth: int
    weights: ir.Array
    zero_point: int

    @contextmanager
    def _taps(self, pixel: Pixel) -> Generator[tuple[ir.Buffer, ir.Expr], None, None]:
        """Loops over the taps that reach a pixel; yields the input's channels, and the tap's first weight."""
        body, (n, y, x) = self.template.body, pixel
        with self._along("y", self.rows, y) as (iy, ky), self._along("x", self.columns, x) as (ix, kx):
            row = body.view(
                "row", region(self.template.input(0), n, iy, ix, 0), self.template.type(0).dtype, self.depth
            )
            yield row, named(body, "first", (ky * self.columns.kernel + kx) * self.depth)

    @contextmanager
    def _along(
        self, name: str, axis: SpreadAxis, position: ir.Expr
    ) -> Generator[tuple[ir.Expr, ir.Expr], None, None]:
        """A loop over the taps along one axis, without those that do not reach."""
        body = self.template.body
        with counted(body, f"tap_{name}", axis.num_taps) as number:
            tap = named(body, f"k{name}", axis.tap(axis.phase(position), number))
            source = named(body, f"i{name}", axis.source(position, number))
            condition = axis.reaches(source, tap)
            with nullcontext() if condition == ir.TRUE else body.if_(condition):
                yield source, tap

    def write_dots(self, pixel: Pixel) -> None:
        """Of integers: dot products along the input's channels, for some channels of the output at a time."""
        body, num_channels, depth = self.template.body, *self.weights.shape
        kernel, bias = self.template.kernel, self._integer_bias()
        held, sums_dtype = self.template.type(1).dtype, self.template.result_type.dtype
        weights = kernel.constant("weights", self.weights, held)
        for first, size in channel_blocks(body, num_channels, self.template.style.channel_block, accumulated):
            channel = named(body, "channel", first)
            filters = body.view("filters", region(weights, channel, 0), held, size * depth)
            sums = [body.scalar(f"acc{j}", sums_dtype, bias.initial(channel + j)) for j in range(size)]
            with self._taps(pixel) as (row, tap), counted(body, "k", self.depth) as k:
                value = body.let("value", ir.cast(load(row, k), I32) - self.zero_point)
                for j, total in enumerate(sums):
                    weight = ir.cast(load(filters, tap + k + j * depth), I32)
                    body.add_to(total, (), ir.cast(value * weight, sums_dtype))
            self._store(pixel, channel, bias, [load(total) for total in sums])

    def write_lanes(self, pixel: Pixel) -> None:
        """Of float32: channels of the output side by side; each sum in the reference's order, the bias last."""
        body, kernel, dtype = self.template.body, self.template.kernel, self.template.result_type.dtype
        weights = kernel.constant("weights", self.weights.T, self.template.type(1).dtype)
        bias = Bias(kernel.constant("bias", self.template.constant(2), dtype))
        lanes = self.template.style.float_lanes
        for first, size in channel_blocks(body, len(self.weights), lanes, accumulated):
            sums = kernel.scratch("sums", (size,), dtype)
            with body.for_("lane", 0, size, ir.LoopKind.VECTORISED) as lane:
                body.store(sums, lane, bias.initial(first + lane))
            with self._taps(pixel) as (row, tap), counted(body, "k", self.depth) as k:
                value = body.let("value", ir.cast(load(row, k), dtype))
                with body.for_("lane", 0, size, ir.LoopKind.VECTORISED) as lane:
                    weight = ir.cast(load(weights, tap + k, first + lane), dtype)
                    body.add_to(sums, lane, value * weight)
            with body.for_("lane", 0, size, ir.LoopKind.VECTORISED) as lane:
                value = bias.finished(load(sums, lane), first + lane)
                self.template.epilogue.store((*pixel, first + lane), value)

    def _store(self, pixel: Pixel, channel: ir.Expr, bias: Bias, sums: list[ir.Expr]) -> None:
        for j, total in enumerate(sums):
            with self.template.body.numbered(j):
                self.template.epilogue.store((*pixel, channel + j), bias.finished(total, channel + j))

    def _integer_bias(self) -> Bias:
        """The bias as it is, since not every pixel sees every tap; sums of any of them stay within these bounds.

        Raises:
            CompileError: BW110 if a sum could leave its type.
        """
        values = self.template.constant(2).astype(np.int64)
        positive, negative = sums_by_sign(self.weights)
        first, last = (bound - self.zero_point for bound in self.template.type(0).dtype.bounds)
        lowest = values + positive * first + negative * last
        highest = values + positive * last + negative * first
        low, high = int(lowest.min()), int(highest.max())
        dtype = self.template.result_type.dtype
        require_fits((low, high), dtype, "the accumulator", self.template.anchor.where)
        channels = ChannelBounds(tuple(lowest.tolist()), tuple(highest.tolist()))
        return Bias(self.template.kernel.constant("bias", values, dtype), low, high, channels)
