"""Geometry of sliding windows, shared by convolutions and pools: output extents, and what a window sees.

padding is (top, bottom, left, right) everywhere.
"""

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from bytewright import ir
from bytewright.ops.checks import require

Pair = tuple[int, int]
Padding = tuple[int, int, int, int]
Element = TypeVar("Element", bound=np.generic)


def turned_padding(padding: Padding) -> Padding:
    """The padding with rows and columns swapped."""
    top, bottom, left, right = padding
    return left, right, top, bottom


def reach_of(taps: int, dilation: int) -> int:
    """How many elements along an axis a window reaches over."""
    return (taps - 1) * dilation + 1


def same_padding(extent: int, reach: int, stride: int) -> Pair:
    """Padding before and after, so that there are ceil(extent / stride) windows; the odd one is after."""
    num_windows = -(-extent // stride)
    total = max((num_windows - 1) * stride + reach - extent, 0)
    return total // 2, total - total // 2


def most_same_padding(extent: ir.Extent, reach: int, stride: int) -> Pair:
    """The most that SAME pads before and after an extent; it depends on the extent modulo the stride."""
    least = ir.lower_bound(extent)
    extents = range(least, min(ir.upper_bound(extent), least + stride - 1) + 1)
    before, after = zip(*(same_padding(each, reach, stride) for each in extents), strict=True)
    return max(before), max(after)


def window_shape(
    operand: ir.TensorType,
    kernel: Pair,
    stride: Pair,
    padding: Padding,
    dilation: Pair = (1, 1),
    *,
    is_same: bool = False,
) -> tuple[ir.Extent, ir.Extent, ir.Extent]:
    """Batch, height and width of the output of a window sliding over an NHWC operand, whose both may be open.

    With `is_same` the padding is what SAME makes of them, and that given is the most of this.

    Raises:
        ValueError: A parameter is out of range, the window never fits, or the padding is not that of SAME.
    """
    require(min(kernel) >= 1, f"kernel {kernel} has no element")
    require(min(stride) >= 1, f"stride {stride} is not positive")
    require(min(dilation) >= 1, f"dilation {dilation} is not positive")
    require(min(padding) >= 0, f"padding {padding} is negative")
    batch, height, width, channels = operand.shape
    require(isinstance(channels, int), "channels must be fixed")
    extents: list[ir.Extent] = []
    for axis, extent in enumerate((height, width)):
        given = padding[2 * axis : 2 * axis + 2]
        around = sum(given)
        reach = reach_of(kernel[axis], dilation[axis])
        if is_same:
            most = most_same_padding(extent, reach, stride[axis])
            what = ("rows", "columns")[axis]
            require(given == most, f"SAME pads {extent} {what} by {most}, not by {given}")
            extents.append(ir.quotient(extent, stride[axis] - 1, stride[axis]))
            continue
        padded = ir.lower_bound(extent) + around
        may_be_none = ir.lower_bound(extent) == 0 and reach == 1  # as many windows as there are rows
        require(
            padded >= reach or may_be_none,
            f"a window of {reach} does not fit into {padded} along axis {axis + 1}",
        )
        extents.append(ir.quotient(extent, around - reach + stride[axis], stride[axis]))
    return batch, extents[0], extents[1]


def padding_for(
    shape: tuple[int, ...],
    kernel: Pair,
    stride: Pair,
    padding: Padding,
    dilation: Pair = (1, 1),
    *,
    is_same: bool,
) -> Padding:
    """The padding around an image of a shape [N,H,W,C], as of `window_shape`."""
    if not is_same:
        return padding
    rows, columns = map(same_padding, shape[1:3], map(reach_of, kernel, dilation), stride)
    return (*rows, *columns)


def windows(
    array: NDArray[Element],
    kernel: Pair,
    stride: Pair,
    padding: Padding,
    dilation: Pair = (1, 1),
    outside: float = 0,
) -> NDArray[Element]:
    """What each element of a window sees at every output position of an NHWC array: [N,OH,OW,C,KH,KW], a view.

    In the padding it sees `outside`.
    """
    top, bottom, left, right = padding
    padded = np.pad(array, ((0, 0), (top, bottom), (left, right), (0, 0)), constant_values=outside)
    reach = [*map(reach_of, kernel, dilation)]
    dense = np.lib.stride_tricks.sliding_window_view(padded, reach, axis=(1, 2))
    return dense[:, :: stride[0], :: stride[1], :, :: dilation[0], :: dilation[1]]
