"""SPACE_TO_BATCH_ND and BATCH_TO_SPACE_ND: moves, or nothing at all around convolutions that are dilated.

A sample of what SPACE_TO_BATCH_ND makes has every n-th row and column of an image. A convolution of such samples, put
together again by BATCH_TO_SPACE_ND, is a convolution of the image whose taps are n times as far apart; exporters write
dilated convolutions so. `dilation.py` makes that of it; the moves are then needed by nobody.
"""

from dataclasses import dataclass
from math import prod

from bytewright.frontends.tflite.conversion import Conversion
from bytewright.frontends.tflite.dilation import dilated
from bytewright.frontends.tflite.graph_builder import Operand, Spread
from bytewright.frontends.tflite.kernels_of import refuse_kernel
from bytewright.frontends.tflite.shape import (
    emit_padded,
    emit_slice,
    emit_transposed,
    require_same_quantization,
)
from bytewright.ops.arithmetic.numerics import Numerics


@dataclass(frozen=True, slots=True)
class _Blocks:
    """The operands: for each axis between batch and channels the side of a block, and two widths."""

    source: Operand
    sides: tuple[int, ...]
    before: tuple[int, ...]
    after: tuple[int, ...]


def _blocks(at: Conversion, widths_are: str) -> _Blocks:
    at.require_counts((3,))
    source = at.operand(0, "input")
    at.require_same_dtype(source)
    require_same_quantization(at, source)
    rank = len(source.shape)
    at.require(rank in (3, 4), f"an input {list(source.shape)} does not have 3 or 4 axes")
    sides = at.integers_operand(1, "block shape")
    widths = at.integers_operand(2, widths_are)
    at.require(len(sides) == rank - 2, f"blocks {list(sides)} for {rank - 2} axes")
    form = at.operand(2, widths_are).shape
    at.require(form == (rank - 2, 2), f"{widths_are} of shape {list(form)} for {rank - 2} axes")
    at.require(min(sides) >= 1, f"blocks {list(sides)} are empty")
    at.require(min(widths) >= 0, f"{widths_are} {list(widths)} are negative")
    return _Blocks(source, sides, widths[0::2], widths[1::2])


def convert_space_to_batch(at: Conversion) -> None:
    """SPACE_TO_BATCH_ND: an image is padded, and each of its pixels in a block goes to a sample of its own."""
    blocks = _blocks(at, "paddings")
    source, sides = blocks.source, blocks.sides
    zero = at.real_zero(source.dtype)
    is_padded = any((*blocks.before, *blocks.after))
    if is_padded and at.numerics is Numerics.TFLM:  # whose kernel never sets what it pads with
        refuse_kernel(at, " with paddings", (Numerics.LITERT_REF,))
    name = original = at.value_of(source)
    before, after = (0, *blocks.before, 0), (0, *blocks.after, 0)
    name = emit_padded(at, name, before, after, zero)
    batch, *spatial, channels = at.type_of(name).fixed_shape
    for extent, side in zip(spatial, sides, strict=True):
        at.require(extent % side == 0, f"{extent} rows or columns with padding are no blocks of {side}")
    small = [extent // side for extent, side in zip(spatial, sides, strict=True)]
    split: list[int] = [batch]
    for extent, side in zip(small, sides, strict=True):
        split += [extent, side]
    axes = range(len(sides))
    permutation = (*(2 * axis + 2 for axis in axes), 0, *(2 * axis + 1 for axis in axes), len(split))
    count = prod(sides)
    result = emit_transposed(at, name, (*split, channels), permutation, (count * batch, *small, channels))
    at.define(result)
    if count > 1:
        at.graph.spreads[at.operator.outputs[0]] = Spread(original, sides, blocks.before, blocks.after, zero)


def convert_batch_to_space(at: Conversion) -> None:
    """BATCH_TO_SPACE_ND: samples become the pixels of blocks, and the image is cropped."""
    blocks = _blocks(at, "crops")
    source, sides = blocks.source, blocks.sides
    count = prod(sides)
    batch, *small, channels = source.shape
    at.require(batch % count == 0, f"{batch} samples are no blocks of {list(sides)}")
    whole = tuple(extent * side for extent, side in zip(small, sides, strict=True))
    size = tuple(
        extent - before - after
        for extent, before, after in zip(whole, blocks.before, blocks.after, strict=True)
    )
    at.require(min(size) >= 1, f"nothing is left of {list(whole)} rows and columns")
    name = at.value_of(source)
    found = dilated(at, name, sides, blocks.before, blocks.after)
    if found is not None:
        at.define(found)
        return
    axes = range(len(sides))
    permutation: list[int] = [len(sides)]
    for axis in axes:
        permutation += [len(sides) + 1 + axis, axis]
    split = (*sides, batch // count, *small, channels)
    result = (batch // count, *whole, channels)
    name = emit_transposed(at, name, split, (*permutation, len(split) - 1), result)
    start = (0, *blocks.before, 0)
    at.define(emit_slice(at, name, start, (batch // count, *size, channels), (1,) * len(start)))
