"""int8 conv2d with dot products: blocks of output channels of a pixel, four of them in each register."""

from bytewright import ir
from bytewright.ir.builder import region
from bytewright.lower.isa.neon.dot import BYTES, DOT, GROUP, LOAD_BYTES, REPEAT
from bytewright.lower.isa.neon.lanes import LANES, UNIT
from bytewright.lower.isa.store_lanes import store_lanes
from bytewright.lower.kernels.context import Template, accumulated, channel_blocks, counted, named, pixels
from bytewright.lower.kernels.convolution import convolution_of
from bytewright.lower.kernels.layout import End, Layout
from bytewright.ops.convolution import Conv2d

I8, I32 = ir.DType.I8, ir.DType.I32
# Output channels of a block: as many registers of sums as leave room for weights.
MOST_CHANNELS = 16


def conv2d_declines(template: Template, operation: Conv2d) -> str | None:
    """Why this is no convolution for the kernel below."""
    del operation
    if template.type(0).dtype is not I8:
        return "its elements are not int8"
    out_channels, *_, in_channels = template.constant(1).shape
    if in_channels < GROUP or out_channels % LANES:
        wanted = f"not {GROUP} or more and a multiple of {LANES}"
        return f"it has {in_channels} input and {out_channels} output channels, {wanted}"
    return None


def write_conv2d(template: Template, operation: Conv2d) -> None:
    """Writes the kernel. x: [N, H, W, IC]; weights: [OC, KH, KW, IC], packed as [KH*KW*IC/4][OC][4]."""
    convolution = convolution_of(template, operation)
    layout = Layout(lanes=LANES, vectors=convolution.out_channels, group=GROUP, elements=End.OVERLAP)
    packed = layout.pack(convolution.weights, convolution.window.num_taps)
    weights = template.kernel.constant("weights", packed, I8)
    bias = convolution.bias()
    body, num_channels = template.body, convolution.out_channels
    depth = convolution.in_channels
    groups = -(-depth // GROUP)
    with pixels(template) as pixel:
        for first, size in channel_blocks(body, num_channels, MOST_CHANNELS, accumulated):
            channel = named(body, "channel", first)
            sums = [UNIT.register(body, f"sums{i}") for i in range(size // LANES)]
            for i, total in enumerate(sums):
                body.execute(UNIT.loads[I32], total, region(bias.values, channel + i * LANES))
            with convolution.each_tap(pixel) as (tap, number), counted(body, "k", groups) as k:
                values = body.register("values", BYTES, I8, "int8x16_t")
                first_byte = ir.minimum(k * GROUP, depth - GROUP) if depth % GROUP else k * GROUP
                body.execute(REPEAT, values, region(tap, named(body, "element", first_byte)))
                begin = named(body, "begin", ((number * groups + k) * num_channels + channel) * GROUP)
                for i, total in enumerate(sums):
                    row = body.register(f"filter{i}", BYTES, I8, "int8x16_t")
                    body.execute(LOAD_BYTES, row, region(weights, begin + i * BYTES))
                    body.execute(DOT, total, values, row)
            for i, total in enumerate(sums):
                store_lanes(template, UNIT, pixel, channel + i * LANES, total, bias.finished)
