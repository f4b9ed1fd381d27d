"""Where TFLite puts the padding around the input of a sliding window."""

from __future__ import annotations

from bytewright.frontends.tflite.options import Pair, WindowOptions


def spatial_padding(
    options: WindowOptions, shape: tuple[int, ...], kernel: Pair
) -> tuple[int, int, int, int]:
    """(top, bottom, left, right) of an NHWC input; SAME gives the odd row to the bottom, the column to the right."""
    if options.padding == "VALID":
        return 0, 0, 0, 0
    top, bottom = _same(shape[1], kernel[0], options.stride[0], options.dilation[0])
    left, right = _same(shape[2], kernel[1], options.stride[1], options.dilation[1])
    return top, bottom, left, right


def _same(extent: int, kernel: int, stride: int, dilation: int) -> tuple[int, int]:
    """Padding before and after, so that there are ceil(extent / stride) windows."""
    windows = -(-extent // stride)
    reach = (kernel - 1) * dilation + 1
    total = max((windows - 1) * stride + reach - extent, 0)
    return total // 2, total - total // 2
