"""Sizes and taps of one convolution, dense, in groups or depthwise, under short names."""

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product

import numpy as np

from bytewright import ir
from bytewright.ir.builder import load, region
from bytewright.lower.kernels.accumulator import Bias, Folded, fold_zero_point
from bytewright.lower.kernels.context import Pixel, Template, counted, named
from bytewright.lower.kernels.window import Window, window_of
from bytewright.lower.scalar import ChannelBounds
from bytewright.ops.convolution import Conv2d, DepthwiseConv2d, GroupedConv2d

ZERO = ir.const(0)


@dataclass(frozen=True, slots=True)
class Convolution:
    """One convolution.

    Attributes:
        num: Batch size, which may be open.
        in_channels: That a channel of the output reads: those of a group.
        weights: [OC, K], the elements under the window one after the other for each output channel.
        zero_point: Of the input; 0 for float32.
        groups: Of channels, of the input and of the output.
    """

    template: Template
    window: Window
    num: ir.Extent
    in_channels: int
    out_channels: int
    weights: ir.Array
    zero_point: int
    groups: int = 1

    @property
    def dtype(self) -> ir.DType:
        """Element type of the input."""
        return self.template.type(0).dtype

    @property
    def weights_dtype(self) -> ir.DType:
        """Element type of the weights."""
        return self.template.type(1).dtype

    @property
    def sums_dtype(self) -> ir.DType:
        """Element type of sums and biases."""
        return self.template.result_type.dtype

    @property
    def input(self) -> ir.Buffer:
        """The kernel's parameter, [N, H, W, C]."""
        return self.template.input(0)

    def bias(self, offset: int = 0, multiple: int = 1) -> Bias:
        """The bias, as `bias_of`."""
        return bias_of([self], offset, multiple)

    def low_bias(self) -> Bias:
        """The bias of sums of 64 bits that are kept modulo 2^32: its low halves."""
        values = self.folded().bias.astype(np.int32)
        return Bias(self.template.kernel.constant("bias", values, ir.DType.I32), *ir.DType.I32.bounds)

    def folded(self, offset: int = 0) -> Folded:
        """The bias of integers, as `bias`, and bounds of the sums, without a parameter of the kernel."""
        values, where = self.template.constant(2).astype(np.int64), self.template.anchor.where
        types = self.dtype, self.sums_dtype
        return fold_zero_point(self.weights, values, self.zero_point, offset, types, where)

    @property
    def takes_pairs(self) -> bool:
        """Whether two products are to be summed in 16 bits first.

        That is exact for bytes where weights are at least -127: |2 * 128 * 127| < 2^15.
        """
        are_bytes = self.dtype is ir.DType.I8 is self.weights_dtype
        least = ir.DType.I8.bounds[0]
        return self.template.style.paired_taps and are_bytes and int(self.weights.min()) > least

    @contextmanager
    def each_tap(
        self, pixel: Pixel, group: ir.Expr = ZERO
    ) -> Generator[tuple[ir.Buffer, ir.Expr], None, None]:
        """Loops over the taps; yields a view of the input's channels under a tap, and the number of the tap."""
        body, window = self.template.body, self.window
        with window.loops(body) as (ky, kx):
            tap = self.tap_at(window.under(body, pixel, ky, kx), ky, kx, group)
            yield tap, ky * window.columns.kernel + kx

    @contextmanager
    def each_element(
        self, pixel: Pixel, group: ir.Expr = ZERO
    ) -> Generator[tuple[ir.Expr, ir.Expr], None, None]:
        """Loops over the channels under each tap; yields an element of the input, and its number under the window."""
        with (
            self.each_tap(pixel, group) as (tap, number),
            counted(self.template.body, "k", self.in_channels) as k,
        ):
            yield load(tap, k), number * self.in_channels + k

    def taps(self, pixel: Pixel) -> list[ir.Buffer]:
        """Views of the input's channels under each tap, all at once."""
        n, y, x = pixel
        body, rows, columns = self.template.body, self.window.rows, self.window.columns
        iy = [named(body, f"iy{ky}", rows.tap(y, ky)) for ky in range(rows.kernel)]
        ix = [named(body, f"ix{kx}", columns.tap(x, kx)) for kx in range(columns.kernel)]
        found: list[ir.Buffer] = []
        for number, (ky, kx) in enumerate(product(range(rows.kernel), range(columns.kernel))):
            with body.numbered(number):
                found.append(self.tap_at((n, iy[ky], ix[kx]), ky, kx))
        return found

    def tap_at(
        self, position: Pixel, ky: ir.Expr | int, kx: ir.Expr | int, group: ir.Expr = ZERO
    ) -> ir.Buffer:
        """A view of the input's channels, those of one group, at a position.

        Outside the input it is a run of zero points, which the folded bias cancels, so that border and interior
        are the same arithmetic.
        """
        body = self.template.body
        inside = self.window.contains(position, ky, kx)
        source = region(self.input, *position, group * self.in_channels)
        if inside == ir.TRUE:
            return body.view("tap", source, self.dtype, self.in_channels)
        outside = self.zero_points(self.in_channels)
        return body.view("tap", source, self.dtype, self.in_channels, inside, region(outside, 0))

    def zero_points(self, count: int) -> ir.Buffer:
        """A run of zero points, which is what lies outside the input."""
        fill = np.full(count, self.zero_point)
        return self.template.kernel.constant("zero_points", fill, self.dtype)


def bias_of(convolutions: Sequence[Convolution], offset: int = 0, multiple: int = 1) -> Bias:
    """The biases of an operator's convolutions one after another, for activations that are read as `x + offset`.

    Each of integers is filled up with zeros to a multiple of so many channels. Of floats all have the same.

    Raises:
        CompileError: BW110 if a sum of integers could leave its type.
    """
    template, dtype = convolutions[0].template, convolutions[0].sums_dtype
    if not dtype.is_integer:
        return Bias(template.kernel.constant("bias", template.constant(2), dtype))
    folded = [each.folded(offset) for each in convolutions]
    values = [np.pad(each.bias, (0, -len(each.bias) % multiple)) for each in folded]
    channels = ChannelBounds(
        tuple(map(min, zip(*(each.channels.low for each in folded), strict=True))),
        tuple(map(max, zip(*(each.channels.high for each in folded), strict=True))),
    )
    low, high = min(each.low for each in folded), max(each.high for each in folded)
    return Bias(template.kernel.constant("bias", np.concatenate(values), dtype), low, high, channels)


def convolution_of(template: Template, operation: Conv2d | DepthwiseConv2d | GroupedConv2d) -> Convolution:
    """Reads the sizes off the anchor's types."""
    groups = operation.groups if isinstance(operation, GroupedConv2d) else 1
    in_channels, out_channels = (type_.fixed_shape[-1] for type_ in (template.type(0), template.result_type))
    weights = template.constant(1)
    is_dense = not isinstance(operation, DepthwiseConv2d)
    per_channel = weights.reshape(out_channels, -1) if is_dense else weights.reshape(-1, out_channels).T
    window = window_of(
        template.type(0).shape,
        template.result_type.shape,
        operation.kernel(weights.shape),
        operation.stride,
        operation.dilation,
        operation.padding,
        is_same=operation.is_same,
    )
    return Convolution(
        template=template,
        window=window,
        num=template.type(0).shape[0],
        in_channels=in_channels // groups,
        out_channels=out_channels,
        weights=per_channel,
        zero_point=operation.input_zero_point,
        groups=groups,
    )
