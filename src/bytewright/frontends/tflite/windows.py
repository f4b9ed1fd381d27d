"""Where TFLite puts the padding around the input of a sliding window."""

from bytewright.frontends.tflite.conversion import Conversion
from bytewright.frontends.tflite.options import Pair, WindowOptions
from bytewright.ops.arithmetic.multiplier import INT32_MAX
from bytewright.ops.window import Padding, reach_of, same_padding

# LiteRT takes no larger stride or dilation of a convolution.
MAX_STEP = (1 << 15) - 1


def spatial_padding(
    options: WindowOptions, shape: tuple[int, ...], kernel: Pair
) -> tuple[int, int, int, int]:
    """(top, bottom, left, right) of an NHWC input; SAME gives the odd row to the bottom, the column to the right."""
    reach = [_reach(size, dilation) for size, dilation in zip(kernel, options.dilation, strict=True)]
    if options.padding == "VALID":
        return 0, 0, 0, 0
    return *same_padding(shape[1], reach[0], options.stride[0]), *same_padding(
        shape[2], reach[1], options.stride[1]
    )


def follows_rows(at: Conversion, options: WindowOptions) -> bool:
    """Whether the padding is another for another extent, of a graph whose extents are to be opened."""
    return at.graph.is_opened and options.padding == "SAME"


def transposed_padding(options: WindowOptions, out: tuple[int, ...], kernel: Pair) -> Pair:
    """Rows and columns that a transposed convolution cuts off before its result, [.., out[0], out[1], ..].

    It is the padding of the convolution that goes the other way, from the result to the input.
    """
    if options.padding == "VALID":
        return 0, 0
    rows, columns = (
        same_padding(extent, size, step)[0]
        for extent, size, step in zip(out, kernel, options.stride, strict=True)
    )
    return rows, columns


def transposed_extents(options: WindowOptions, taken: tuple[int, ...], kernel: Pair) -> tuple[int, ...]:
    """The least extents of which a convolution that goes the other way has so many windows."""
    return tuple(
        (count - 1) * step + (min(size, (count - 1) % step + 1) if options.padding == "SAME" else size)
        for count, step, size in zip(taken, options.stride, kernel, strict=True)
    )


def padding_around(
    options: WindowOptions, out: tuple[int, ...], taken: tuple[int, ...], kernel: Pair
) -> Padding:
    """What the result of a transposed convolution has around the windows of all elements, negative where less."""
    before = transposed_padding(options, out, kernel)
    bottom, right = (
        extent - ((count - 1) * step + size) + cut
        for extent, count, step, size, cut in zip(out, taken, options.stride, kernel, before, strict=True)
    )
    return -before[0], bottom, -before[1], right


def windows_of(options: WindowOptions, extents: tuple[int, ...], kernel: Pair) -> tuple[int, ...]:
    """How many windows, not dilated, there are along each axis."""
    taken = (
        extent if options.padding == "SAME" else max(extent - size + 1, 0)
        for extent, size in zip(extents, kernel, strict=True)
    )
    return tuple(-(-extent // step) for extent, step in zip(taken, options.stride, strict=True))


def _reach(kernel: int, dilation: int) -> int:
    """The elements from a window's first tap to its last.

    Raises:
        ValueError: Kernels, which count in 32 bits, cannot address them.
    """
    reach = reach_of(kernel, dilation)
    if reach > INT32_MAX:
        raise ValueError(f"the window reaches over {reach} elements, at most {INT32_MAX} are supported")
    return reach
