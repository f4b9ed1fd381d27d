"""Sizes and taps of one convolution, dense or depthwise, under short names."""

from dataclasses import dataclass
from itertools import product

import numpy as np

from bytewright import ir
from bytewright.ir.builder import region
from bytewright.lower.kernels.context import Template, named
from bytewright.lower.kernels.window import Window, window_of
from bytewright.ops.convolution import Conv2d, DepthwiseConv2d

# A position under the output: batch, row, column.
Pixel = tuple[ir.Expr, ir.Expr, ir.Expr]


@dataclass(frozen=True, slots=True)
class Convolution:
    """One convolution.

    Attributes:
        num: Batch size, which may be open.
        weights: As the operator has them.
        zero_point: Of the input; 0 for float32.
    """

    template: Template
    window: Window
    num: ir.Extent
    in_channels: int
    out_height: int
    out_width: int
    out_channels: int
    weights: ir.Array
    zero_point: int

    @property
    def input(self) -> ir.Buffer:
        """The kernel's parameter, [N, H, W, C]."""
        return self.template.input(0)

    def is_border(self, y: ir.Expr, x: ir.Expr) -> ir.Expr:
        """Whether the window of an output position touches the padding."""
        condition: ir.Expr = ir.FALSE
        for position, axis in ((y, self.window.rows), (x, self.window.columns)):
            first, last = axis.interior
            if first > 0:
                condition = ir.either(condition, position < first)
            if last < axis.out:
                condition = ir.either(condition, position >= last)
        return condition

    def tap(self, pixel: Pixel, ky: ir.Expr, kx: ir.Expr) -> ir.Buffer:
        """A view of the input's channels under one tap."""
        n, y, x = pixel
        iy = named(self.template.body, "iy", self.window.rows.tap(y, ky))
        ix = named(self.template.body, "ix", self.window.columns.tap(x, kx))
        return self._tap_at((n, iy, ix), ky, kx)

    def taps(self, pixel: Pixel) -> list[ir.Buffer]:
        """Views of the input's channels under each tap."""
        n, y, x = pixel
        body, rows, columns = self.template.body, self.window.rows, self.window.columns
        iy = [named(body, f"iy{ky}", rows.tap(y, ky)) for ky in range(rows.kernel)]
        ix = [named(body, f"ix{kx}", columns.tap(x, kx)) for kx in range(columns.kernel)]
        found: list[ir.Buffer] = []
        for number, (ky, kx) in enumerate(product(range(rows.kernel), range(columns.kernel))):
            with body.numbered(number):
                found.append(self._tap_at((n, iy[ky], ix[kx]), ky, kx))
        return found

    def _tap_at(self, position: Pixel, ky: ir.Expr | int, kx: ir.Expr | int) -> ir.Buffer:
        """A view of the input's channels at a position.

        Outside the input it is a run of zero points, which the folded bias cancels, so that border and interior
        are the same arithmetic.
        """
        n, iy, ix = position
        body = self.template.body
        inside = self.window.columns.contains(ix, kx, self.window.rows.contains(iy, ky))
        source = region(self.input, n, iy, ix, 0)
        if inside == ir.TRUE:
            return body.view("tap", source, self.input.dtype, self.in_channels)
        fill = np.full(self.in_channels, self.zero_point)
        outside = self.template.kernel.constant("zero_points", fill, self.input.dtype)
        return body.view("tap", source, self.input.dtype, self.in_channels, inside, region(outside, 0))


def convolution_of(template: Template, operation: Conv2d | DepthwiseConv2d) -> Convolution:
    """Reads the sizes off the anchor's types."""
    _, in_height, in_width, in_channels = template.type(0).fixed_shape
    _, out_height, out_width, out_channels = template.result_type.fixed_shape
    weights = template.constant(1)
    window = window_of(
        (in_height, in_width),
        (out_height, out_width),
        operation.kernel(weights.shape),
        operation.stride,
        operation.dilation,
        operation.padding,
    )
    return Convolution(
        template=template,
        window=window,
        num=template.type(0).shape[0],
        in_channels=in_channels,
        out_height=out_height,
        out_width=out_width,
        out_channels=out_channels,
        weights=weights,
        zero_point=operation.input_zero_point,
    )
