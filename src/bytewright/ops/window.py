"""Geometry of sliding windows, shared by convolutions and pools: output extents and the view that a tap sees.

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


def window_shape(
    operand: ir.TensorType, kernel: Pair, stride: Pair, padding: Padding, dilation: Pair = (1, 1)
) -> tuple[ir.Extent, int, int]:
    """Batch, height and width of the output of a window sliding over an NHWC operand.

    Raises:
        ValueError: A parameter is out of range or the window never fits.
    """
    require(min(kernel) >= 1, f"kernel {kernel} has no element")
    require(min(stride) >= 1, f"stride {stride} is not positive")
    require(min(dilation) >= 1, f"dilation {dilation} is not positive")
    require(min(padding) >= 0, f"padding {padding} is negative")
    batch, height, width, _ = operand.shape
    require(isinstance(height, int) and isinstance(width, int), "height and width must be fixed")
    extents: list[int] = []
    for axis, extent in enumerate(operand.fixed_shape[1:3]):
        padded = extent + padding[2 * axis] + padding[2 * axis + 1]
        reach = (kernel[axis] - 1) * dilation[axis] + 1
        require(padded >= reach, f"a window of {reach} does not fit into {padded} along axis {axis + 1}")
        extents.append((padded - reach) // stride[axis] + 1)
    return batch, extents[0], extents[1]


def output_extents(padded: NDArray[Element], kernel: Pair, stride: Pair, dilation: Pair = (1, 1)) -> Pair:
    """Height and width of the output over an NHWC operand that is padded already."""
    reach = [(kernel[axis] - 1) * dilation[axis] + 1 for axis in range(2)]
    height, width = ((padded.shape[axis + 1] - reach[axis]) // stride[axis] + 1 for axis in range(2))
    return height, width


def pad_spatial(array: NDArray[Element], padding: Padding, value: float) -> NDArray[Element]:
    """The NHWC array with rows and columns of `value` around it."""
    top, bottom, left, right = padding
    return np.pad(array, ((0, 0), (top, bottom), (left, right), (0, 0)), constant_values=value)


def tap(padded: NDArray[Element], offset: Pair, outputs: Pair, stride: Pair) -> NDArray[Element]:
    """What one window element sees at every output position: [N, OH, OW, C], a view."""
    row, column = offset
    last_row = row + (outputs[0] - 1) * stride[0] + 1
    last_column = column + (outputs[1] - 1) * stride[1] + 1
    return padded[:, row : last_row : stride[0], column : last_column : stride[1], :]
