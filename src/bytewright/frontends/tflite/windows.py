"""Where TFLite puts the padding around the input of a sliding window."""

from bytewright.frontends.tflite.options import Pair, WindowOptions
from bytewright.ops.arithmetic.multiplier import INT32_MAX

# LiteRT takes no larger stride or dilation of a convolution.
MAX_STEP = (1 << 15) - 1


def spatial_padding(
    options: WindowOptions, shape: tuple[int, ...], kernel: Pair
) -> tuple[int, int, int, int]:
    """(top, bottom, left, right) of an NHWC input; SAME gives the odd row to the bottom, the column to the right."""
    for size, dilation in zip(kernel, options.dilation, strict=True):
        window_reach(size, dilation)
    if options.padding == "VALID":
        return 0, 0, 0, 0
    top, bottom = _same(shape[1], kernel[0], options.stride[0], options.dilation[0])
    left, right = _same(shape[2], kernel[1], options.stride[1], options.dilation[1])
    return top, bottom, left, right


def window_reach(kernel: int, dilation: int) -> int:
    """The elements from a window's first tap to its last.

    Raises:
        ValueError: Kernels, which count in 32 bits, cannot address them.
    """
    reach = (kernel - 1) * dilation + 1
    if reach > INT32_MAX:
        raise ValueError(f"the window reaches over {reach} elements, at most {INT32_MAX} are supported")
    return reach


def _same(extent: int, kernel: int, stride: int, dilation: int) -> tuple[int, int]:
    """Padding before and after, so that there are ceil(extent / stride) windows."""
    windows = -(-extent // stride)
    reach = window_reach(kernel, dilation)
    total = max((windows - 1) * stride + reach - extent, 0)
    return total // 2, total - total // 2
