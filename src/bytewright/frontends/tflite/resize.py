"""RESIZE_NEAREST_NEIGHBOR and RESIZE_BILINEAR: they take raw values, whatever the quantisations."""

from dataclasses import replace

from bytewright import ir
from bytewright.frontends.tflite.conversion import Conversion
from bytewright.frontends.tflite.unsigned import UNSIGNED
from bytewright.ops.resize import TflResizeBilinear, TflResizeNearest

# Extents beyond it are no whole numbers in float32, or leave 32 bits in 1/1024 of an element.
MAX_EXTENT = 1 << 20


def convert_resize(at: Conversion, kind: type[TflResizeNearest | TflResizeBilinear]) -> None:
    """[N,H,W,C] to the rows and columns of the second operand."""
    at.require_counts((2,))
    moved = (ir.DType.I32, ir.DType.BOOL) if kind is TflResizeNearest else ()
    source = at.activation_operand(0, "input", *moved)
    at.require_same_dtype(source)
    at.require(len(source.shape) == 4, f"an input {list(source.shape)} does not have 4 axes")
    size = at.integers_operand(1, "size")
    at.require(len(size) == 2 and min(size) >= 1, f"a size {list(size)} is not that of rows and columns")
    largest = max(*size, *source.shape[1:3])
    at.require(largest <= MAX_EXTENT, f"{largest} rows or columns; at most {MAX_EXTENT} are supported")
    first_slot = 0 if kind is TflResizeNearest else 2  # behind two that no converter writes any more
    align_corners, half_pixel_centers = (at.options.boolean(first_slot + number) for number in (0, 1))
    at.require(
        not (align_corners and half_pixel_centers), "it has align_corners and half_pixel_centers at once"
    )
    operation = kind((size[0], size[1]), align_corners, half_pixel_centers)
    if isinstance(operation, TflResizeBilinear) and source.tensor.element_type == UNSIGNED:
        operation = replace(operation, unsigned=True)
    at.define(at.emit(operation, (at.value_of(source),), "resized"))
