"""depthwise_conv2d: one pass over the channels for each pixel, all taps at once.

A view for each tap points at the input or, outside of it, at a run of zero points; so border and interior are one
loop, which compilers vectorise over channels. Weights stay in the model's order.
"""

from dataclasses import replace
from functools import partial

from bytewright import ir
from bytewright.ir.builder import load
from bytewright.lower.kernels.context import Pixel, Template, channel_blocks, nest, pixels
from bytewright.lower.kernels.convolution import convolution_of
from bytewright.lower.kernels.reduction import wrapping_sum
from bytewright.lower.kernels.side_by_side import Reducer
from bytewright.lower.scalar import Scalar
from bytewright.ops.cast import TflCast
from bytewright.ops.convolution import DepthwiseConv2d

I16, I32, I64 = ir.DType.I16, ir.DType.I32, ir.DType.I64
# Larger windows are visited in a loop: unrolled taps would make the code grow without bound.
MAX_UNROLLED_TAPS = 25
FEW_LANES = 8


def lower_depthwise_conv2d(template: Template, operation: DepthwiseConv2d) -> None:
    """Writes the kernel of a depthwise_conv2d.

    x: [N, H, W, C]; weights: [KH, KW, C, M]; bias: [C * M]; result: [N, OH, OW, C * M].
    """
    depthwise = _Depthwise(template, operation)
    with pixels(template) as pixel:
        if depthwise.is_narrow:
            depthwise.write_lanes(pixel)
        else:
            depthwise.write_channels(pixel)


def lower_depthwise_by_blocks(
    template: Template, operation: DepthwiseConv2d, reducer: Reducer, *, are_low: bool = False
) -> None:
    """Writes the kernel, as `lower_depthwise_conv2d`, of some channels at a time, side by side; M is 1.

    Sums of 64 bits of which `only_low_halves` are used may be kept modulo 2^32: `are_low`.
    """
    depthwise = _Depthwise(template, operation, are_low=are_low)
    with pixels(template) as pixel:
        depthwise.write_blocks(pixel, reducer)


def only_low_halves(template: Template) -> bool:
    """Whether of sums of 64 bits the lower halves are all that is used."""
    name = template.anchor.outputs[0].name
    readers = [node.operation for node in template.epilogue.group.elementwise if name in node.inputs]
    narrow = (ir.DType.I8, I16, I32)
    return bool(readers) and all(isinstance(reader, TflCast) and reader.dtype in narrow for reader in readers)


class _Depthwise:
    """The channel loops of one depthwise kernel."""

    def __init__(self, template: Template, operation: DepthwiseConv2d, *, are_low: bool = False) -> None:
        self.template = template
        self.convolution = convolution = convolution_of(template, operation)
        self.weights = template.kernel.constant("weights", convolution.weights.T, convolution.weights_dtype)
        self.are_low = are_low
        self.bias = convolution.low_bias() if are_low else convolution.bias()
        self.sum_type = self.bias.values.dtype
        self.multiplier = convolution.out_channels // convolution.in_channels

    @property
    def is_narrow(self) -> bool:
        """True if all channels fit the lanes of one vector."""
        return (
            self.template.style.few_channels_by_lanes
            and not self.bias.is_float
            and self.multiplier == 1
            and self.convolution.in_channels == FEW_LANES
        )

    def write_lanes(self, pixel: Pixel) -> None:
        """All channels side by side, tap by tap."""
        body = self.template.body
        sums = self.template.kernel.scratch("sums", (FEW_LANES,), self.sum_type)
        with body.for_("c", 0, FEW_LANES, ir.LoopKind.VECTORISED) as c:
            body.store(sums, c, self.bias.initial(c))
        with (
            self.convolution.each_tap(pixel) as (tap, index),
            body.for_("c", 0, FEW_LANES, ir.LoopKind.VECTORISED) as c,
        ):
            body.add_to(sums, c, self._product(tap, index, c, c))
        with body.for_("c", 0, FEW_LANES, ir.LoopKind.VECTORISED) as c:
            self._store(pixel, c, load(sums, c))

    def write_blocks(self, pixel: Pixel, reducer: Reducer) -> None:
        """Some channels side by side: all taps in a row, or a loop over them."""
        body, convolution = self.template.body, self.convolution
        is_unrolled = convolution.window.num_taps <= MAX_UNROLLED_TAPS
        taps = convolution.taps(pixel) if is_unrolled else []
        for first, num_channels in channel_blocks(
            body, convolution.in_channels, reducer.most_channels, _summed
        ):
            results = reducer.begin(self.template, num_channels, self.sum_type, partial(self._initial, first))
            for number, tap in enumerate(taps):
                results.update(partial(self._plus_product, tap, number, first))
            if not is_unrolled:
                with convolution.each_tap(pixel) as (tap, index):
                    results.update(partial(self._plus_product, tap, index, first))
            results.store(pixel, first, self._finished)

    def _initial(self, first: ir.Expr, channel: ir.Expr) -> ir.Expr:
        return self.bias.initial(first + channel)

    def _plus_product(
        self, tap: ir.Buffer, index: ir.Expr | int, first: ir.Expr, total: ir.Expr, channel: ir.Expr
    ) -> ir.Expr:
        product = self._product(tap, index, first + channel, first + channel)
        return wrapping_sum(I32)(total, product) if self.are_low else total + product

    def _finished(self, total: ir.Expr, channel: ir.Expr) -> Scalar:
        found = self.bias.finished(total, channel)
        return replace(found, expr=ir.cast(total, I64)) if self.are_low else found

    def write_channels(self, pixel: Pixel) -> None:
        """Channel by channel: all taps in a row, or a loop over them."""
        body, convolution = self.template.body, self.convolution
        is_unrolled = convolution.window.num_taps <= MAX_UNROLLED_TAPS
        taps = convolution.taps(pixel) if is_unrolled else []
        body.note("for each channel: all taps, then scale and store" if is_unrolled else "")
        with nest(body, "cm", (convolution.in_channels, self.multiplier)) as (c, m):
            channel = c * self.multiplier + m
            total = body.scalar("acc", self.sum_type, self.bias.initial(channel))
            if is_unrolled:
                for term in self._terms([self._product(tap, i, c, channel) for i, tap in enumerate(taps)]):
                    body.add_to(total, (), term)
            else:
                with convolution.each_tap(pixel) as (tap, index):
                    body.add_to(total, (), self._product(tap, index, c, channel))
            self._store(pixel, channel, load(total))

    def _product(self, tap: ir.Buffer, index: ir.Expr | int, c: ir.Expr, channel: ir.Expr) -> ir.Expr:
        value, weight = load(tap, c), load(self.weights, index, channel)
        if not self.sum_type.is_integer:
            return ir.cast(value, self.sum_type) * ir.cast(weight, self.sum_type)
        return ir.cast(ir.cast(value, I32) * ir.cast(weight, I32), self.sum_type)

    def _terms(self, products: list[ir.Expr]) -> list[ir.Expr]:
        """The products, or sums of two in 16 bits."""
        if not self.convolution.takes_pairs:
            return products
        pairs = [ir.cast(a + b, I16) for a, b in zip(products[::2], products[1::2], strict=False)]
        return [*(ir.cast(pair, I32) for pair in pairs), *products[len(pairs) * 2 :]]

    def _store(self, pixel: Pixel, channel: ir.Expr, total: ir.Expr) -> None:
        self.template.epilogue.store((*pixel, channel), self.bias.finished(total, channel))


def _summed(num_channels: int, are_several: bool) -> str:
    """Says of blocks of channels that their taps are summed."""
    what = "1 channel" if num_channels == 1 else f"{num_channels} channels"
    return f"{what}{' at a time' if are_several else ''}: all taps, then scale and store"
