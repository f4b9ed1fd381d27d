"""depthwise_conv2d: one pass over the channels for each pixel, all taps at once.

A view for each tap points at the input or, outside of it, at a run of zero points; so border and interior are one
loop, which compilers vectorise over channels. Weights stay in the model's order.
"""

import numpy as np

from bytewright import ir
from bytewright.ir.builder import load
from bytewright.lower.kernels.accumulator import Folded, fold_zero_point
from bytewright.lower.kernels.context import Template, counted
from bytewright.lower.kernels.dense import Convolution, Pixel, convolution_of
from bytewright.lower.scalar import Scalar
from bytewright.ops.convolution import DepthwiseConv2d

I8, I16, I32, F32 = ir.DType.I8, ir.DType.I16, ir.DType.I32, ir.DType.F32
# Larger windows are visited in a loop: unrolled taps would make the code grow without bound.
MAX_UNROLLED_TAPS = 25
FEW_LANES = 8


def lower_depthwise_conv2d(template: Template, operation: DepthwiseConv2d) -> None:
    """Writes the kernel of a depthwise_conv2d.

    x: [N, H, W, C]; weights: [KH, KW, C, M]; bias: [C * M]; result: [N, OH, OW, C * M].
    """
    convolution = convolution_of(template, operation)
    kernel, body = template.kernel, template.body
    is_float = template.type(0).dtype is F32
    num_taps = convolution.window.num_taps
    flat = convolution.weights.reshape(num_taps, convolution.out_channels)
    if is_float:
        folded = Folded(np.zeros(0, np.int64), 0, 0)
        weights = kernel.constant("weights", flat, F32)
        bias = kernel.constant("bias", template.constant(2), F32)
    else:
        folded = fold_zero_point(
            flat.T,
            template.constant(2).astype(np.int64),
            convolution.zero_point,
            0,
            template.anchor.where,
            "the accumulator",
        )
        weights = kernel.constant("weights", flat, I8)
        bias = kernel.constant("bias", folded.bias, I32)
    depthwise = _Depthwise(convolution, weights, bias, folded, is_float)
    with (
        counted(body, "n", convolution.num) as n,
        kernel.rows(convolution.out_height) as y,
        counted(body, "x", convolution.out_width) as x,
    ):
        if depthwise.is_narrow:
            depthwise.write_lanes((n, y, x))
        elif num_taps <= MAX_UNROLLED_TAPS:
            depthwise.write_unrolled((n, y, x))
        else:
            depthwise.write_looped((n, y, x))


class _Depthwise:
    """The channel loops of one depthwise kernel."""

    def __init__(
        self, convolution: Convolution, weights: ir.Buffer, bias: ir.Buffer, folded: Folded, is_float: bool
    ) -> None:
        self.convolution = convolution
        self.template = convolution.template
        self.weights = weights
        self.bias = bias
        self.folded = folded
        self.is_float = is_float
        self.multiplier = convolution.out_channels // convolution.in_channels

    @property
    def is_narrow(self) -> bool:
        """True if all channels fit the lanes of one vector."""
        convolution = self.convolution
        return (
            self.template.style.few_channels_by_lanes
            and not self.is_float
            and self.multiplier == 1
            and convolution.in_channels == FEW_LANES
        )

    def write_lanes(self, pixel: Pixel) -> None:
        """All channels side by side, tap by tap."""
        window = self.convolution.window
        body = self.template.body
        sums = self.template.kernel.scratch("sums", (FEW_LANES,), I32)
        with body.for_("c", 0, FEW_LANES, ir.LoopKind.VECTORISED) as c:
            body.store(sums, c, load(self.bias, c))
        with (
            counted(body, "ky", window.rows.kernel) as ky,
            counted(body, "kx", window.columns.kernel) as kx,
        ):
            tap = self.convolution.tap(pixel, ky, kx)
            index = ky * window.columns.kernel + kx
            with body.for_("c", 0, FEW_LANES, ir.LoopKind.VECTORISED) as c:
                body.add_to(sums, c, self._product(tap, index, c, c))
        with body.for_("c", 0, FEW_LANES, ir.LoopKind.VECTORISED) as c:
            self._store(pixel, c, load(sums, c))

    def write_unrolled(self, pixel: Pixel) -> None:
        """All taps in one pass over the channels."""
        taps = self.convolution.taps(pixel)
        body = self.template.body
        body.note("for each channel: all taps, then scale and store")
        with counted(body, "c", self.convolution.in_channels) as c, counted(body, "m", self.multiplier) as m:
            channel = c * self.multiplier + m
            products = [self._product(tap, index, c, channel) for index, tap in enumerate(taps)]
            dtype = F32 if self.is_float else I32
            first = 0.0 if self.is_float else load(self.bias, channel)
            accumulator = body.scalar("acc", dtype, first)
            for term in self._paired(products):
                body.add_to(accumulator, (), term)
            self._store(pixel, channel, load(accumulator))

    def write_looped(self, pixel: Pixel) -> None:
        """For each channel a loop over the taps."""
        window = self.convolution.window
        body = self.template.body
        with counted(body, "c", self.convolution.in_channels) as c, counted(body, "m", self.multiplier) as m:
            channel = c * self.multiplier + m
            dtype = F32 if self.is_float else I32
            accumulator = body.scalar("acc", dtype, 0.0 if self.is_float else load(self.bias, channel))
            with (
                counted(body, "ky", window.rows.kernel) as ky,
                counted(body, "kx", window.columns.kernel) as kx,
            ):
                tap = self.convolution.tap(pixel, ky, kx)
                index = ky * window.columns.kernel + kx
                body.add_to(accumulator, (), self._product(tap, index, c, channel))
            self._store(pixel, channel, load(accumulator))

    def _product(self, tap: ir.Buffer, index: ir.Expr | int, c: ir.Expr, channel: ir.Expr) -> ir.Expr:
        value, weight = load(tap, c), load(self.weights, index, channel)
        return value * weight if self.is_float else ir.cast(value, I32) * ir.cast(weight, I32)

    def _paired(self, products: list[ir.Expr]) -> list[ir.Expr]:
        """Sums of two products in 16 bits, which is exact because weights are at least -127."""
        if (
            self.is_float
            or not self.template.style.paired_taps
            or int(self.convolution.weights.min()) == -128
        ):
            return products
        pairs = [ir.cast(a + b, I16) for a, b in zip(products[::2], products[1::2], strict=False)]
        return [*(ir.cast(pair, I32) for pair in pairs), *products[len(pairs) * 2 :]]

    def _store(self, pixel: Pixel, channel: ir.Expr, total: ir.Expr) -> None:
        value = (
            Scalar(total + load(self.bias, channel))
            if self.is_float
            else Scalar(total, self.folded.low, self.folded.high)
        )
        self.template.epilogue.store((*pixel, channel), value)
