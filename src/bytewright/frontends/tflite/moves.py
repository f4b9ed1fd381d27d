"""Operators that move elements, as compositions of the graph's few: PACK, UNPACK, TILE, GATHER and their kin.

Reshapes are free, and storage makes parts of other buffers of what is put together or cut out without a gap: so the
compositions are those that leave one kernel at most.
"""

from collections.abc import Sequence
from math import prod

import numpy as np

from bytewright import ir
from bytewright.frontends.tflite.conversion import Conversion
from bytewright.frontends.tflite.flatbuffer import DamagedError
from bytewright.frontends.tflite.graph_builder import Operand
from bytewright.frontends.tflite.hybrid import real_values, weights_operand
from bytewright.frontends.tflite.kernels_of import refuse_kernel
from bytewright.frontends.tflite.model import schema_names
from bytewright.frontends.tflite.quantization import blocks_of
from bytewright.frontends.tflite.shape import (
    emit_joined,
    emit_slice,
    emit_transposed,
    one_integer,
    paddings_operand,
    require_same_quantization,
)
from bytewright.frontends.tflite.sized import (
    Number,
    demand_extent,
    is_size,
    numbers_operand,
    repeated,
    sizes_of,
    sizes_operand,
)
from bytewright.frontends.tflite.tiling import tiled
from bytewright.ops.arithmetic.numerics import Numerics
from bytewright.ops.checks import WIDE
from bytewright.ops.data import Gather

# Elements of an axis that is mirrored: each has its number in a table.
_MOST_MIRRORED = 1 << 16


def convert_pack(at: Conversion) -> None:
    """PACK: each operand gets an axis of extent 1, along which they are put together."""
    count = at.options.integer(0)
    at.require_counts((count,))
    at.require(count >= 1, "there is nothing to pack")
    operands = [at.operand(position, "operand") for position in range(count)]
    at.require_same_dtype(*operands)
    require_same_quantization(at, *operands)
    shape = operands[0].shape
    for operand in operands:
        at.require(operand.shape == shape, f"operands of shapes {list(shape)} and {list(operand.shape)}")
    axis = at.axis(at.options.integer(1), len(shape) + 1)
    single = (*shape[:axis], 1, *shape[axis:])
    names = [
        at.reshape(at.value_of(operand, f"operand_{position}"), single, f"single_{position}")
        for position, operand in enumerate(operands)
    ]
    at.define(emit_joined(at, axis, names, "packed"))


def convert_unpack(at: Conversion) -> None:
    """UNPACK: a slice of extent 1 for each result, without that axis."""
    count = at.options.integer(0)
    at.require_counts((1,), outputs=max(count, 1))
    source = at.operand(0, "input")
    require_same_quantization(at, source)
    axis = at.axis(at.options.integer(1), len(source.shape))
    extent = source.shape[axis]
    at.require(extent == count, f"an extent of {extent} is not {count} results")
    name = at.value_of(source)
    for position in range(count):
        part = _part(at, name, axis, position, 1)
        at.define(at.reshape(part, (*source.shape[:axis], *source.shape[axis + 1 :]), "unpacked"), position)


def _part(
    at: Conversion, name: str, axis: int, first: int, count: int, stride: int = 1, *, is_rest: bool = False
) -> str:
    """`count` elements along one axis, which the file states or which are the rest, all of the others."""
    shape = at.type_of(name).fixed_shape
    start, size, steps = [0] * len(shape), list(shape), [1] * len(shape)
    start[axis], size[axis], steps[axis] = first, count, stride
    return emit_slice(at, name, tuple(start), tuple(size), tuple(steps), () if is_rest else ((axis, 0),))


def convert_split_v(at: Conversion) -> None:
    """SPLIT_V: parts of stated extents along a constant axis; -1, once, means all that remains."""
    count = at.options.integer(0)
    at.require_counts((3,), outputs=max(count, 1))
    source = at.operand(0, "input")
    sizes = at.integers_operand(1, "sizes")
    axis = at.axis(one_integer(at, 2, "axis"), len(source.shape))
    extent = source.shape[axis]
    at.require(len(sizes) == count, f"{len(sizes)} sizes for {count} results")
    at.require(sizes.count(-1) <= 1 and min(sizes) >= -1, f"the sizes {list(sizes)} are not valid")
    rest = extent - sum(size for size in sizes if size != -1)
    fits = rest >= 0 if -1 in sizes else rest == 0
    at.require(fits, f"parts of {list(sizes)} do not fill an extent of {extent}")
    name, first = at.value_of(source), 0
    for position, stated in enumerate(sizes):
        size = rest if stated == -1 else stated
        at.define(_part(at, name, axis, first, size, is_rest=stated == -1), position)
        first += size


def convert_tile(at: Conversion) -> None:
    """TILE by multiples, of which the run may compute some."""
    at.require_counts((2,))
    source = at.operand(0, "input")
    at.require_same_dtype(source)
    multiples = sizes_operand(at, 1, "multiples")
    at.require(
        len(multiples) == len(source.shape),
        f"multiples {list(multiples)} for a tensor of rank {len(source.shape)}",
    )
    repeat = tiled if at.operand(1, "multiples").data is not None else repeated
    at.define(repeat(at, at.value_of(source), multiples))


def convert_broadcast_to(at: Conversion) -> None:
    """BROADCAST_TO a shape, whose first extent may be the batch that the input has, and some known in the run alone."""
    at.require_counts((2,))
    source = at.operand(0, "input")
    at.require_same_dtype(source)
    if at.operand(1, "shape").data is None:
        at.define(_broadcast_to_sizes(at, source))
        return
    shape, growth = at.extents_operand(1, "shape")
    missing = len(shape) - len(source.shape)
    if any(growth) and (missing or growth[0] != at.extent_growth(0)[0]):
        at.refuse_batch("the shape depends on the batch, and is not that of the input's samples")
    name = at.reshape(at.value_of(source), (*(1,) * missing, *source.shape))
    at.define(tiled(at, name, _multiples(at, source, shape)))


def _multiples(at: Conversion, source: Operand, shape: Sequence[int]) -> tuple[int, ...]:
    """How often a tensor is there along each axis of a shape."""
    single = (*(1,) * (len(shape) - len(source.shape)), *source.shape)
    fits = len(single) == len(shape) and all(
        own in (1, extent) for own, extent in zip(single, shape, strict=True)
    )
    at.require(fits, f"a tensor {list(source.shape)} does not broadcast to {list(shape)}")
    return tuple(extent if own == 1 else 1 for own, extent in zip(single, shape, strict=True))


def _broadcast_to_sizes(at: Conversion, source: Operand) -> str:
    """BROADCAST_TO a shape of which the run computes numbers; those of extents that the input has must be these."""
    numbers = numbers_operand(at, 1, "shape")
    single = (*(1,) * (len(numbers) - len(source.shape)), *source.shape)
    at.require(len(single) == len(numbers), f"{len(numbers)} extents of a tensor {list(source.shape)}")
    for axis, (own, number) in enumerate(zip(single, numbers, strict=True)):
        if own != 1 and not number.is_known and not is_size(at, number):
            demand_extent(at, axis, own)
            numbers[axis] = Number(0, own)
    shape = sizes_of(at, numbers, "shape")
    return repeated(at, at.reshape(at.value_of(source), single), _multiples(at, source, shape))


def convert_reverse(at: Conversion) -> None:
    """REVERSE_V2 of constant axes: strides of -1."""
    at.require_counts((2,))
    source = at.operand(0, "input")
    at.require_same_dtype(source)
    axes = at.axes(at.integers_operand(1, "axes"), len(source.shape))
    start = tuple(extent - 1 if axis in axes else 0 for axis, extent in enumerate(source.shape))
    stride = tuple(-1 if axis in axes and extent > 1 else 1 for axis, extent in enumerate(source.shape))
    turned = ((axis, 1) for axis in axes)
    at.define(emit_slice(at, at.value_of(source), start, source.shape, stride, turned))


def convert_gather(at: Conversion) -> None:
    """GATHER: a slice where the indices are constant and evenly spaced, else elements by their numbers."""
    at.require_counts((2,))
    source, indices = at.operand(0, "input"), at.operand(1, "indices")
    at.require_same_dtype(source)
    axis = at.axis(at.options.integer(0), len(source.shape))
    batch_axes = at.options.integer(1)
    batch_axes += len(indices.shape) if batch_axes < 0 else 0
    fits = 0 <= batch_axes <= min(axis, len(indices.shape))
    at.require(fits, f"{batch_axes} batch axes for axis {axis} and {len(indices.shape)} of the indices")
    at.define(_gathered(at, at.value_of(source), axis, batch_axes, 1))


def convert_embedding_lookup(at: Conversion) -> None:
    """EMBEDDING_LOOKUP: rows of a table, each by its number."""
    at.require_counts((2,))
    table = at.operand(1, "table")
    at.require(len(table.shape) >= 2, f"a table {list(table.shape)} has no rows")
    numbers = at.operand(0, "indices")
    at.require(len(numbers.shape) == 1, f"indices {list(numbers.shape)} are no list")
    at.require(numbers.dtype is ir.DType.I32, f"the indices are {numbers.tensor.element_type}, not INT32")
    if at.output_dtype() is not ir.DType.F32:
        at.require_same_dtype(table)
        at.define(_gathered(at, at.value_of(table, "table"), 0, 0, 0))
        return
    at.require_result("FLOAT32")
    columns = prod(table.shape[1:])
    is_split = table.tensor.element_type == "INT4" and columns % 2 == 1
    at.require(
        not is_split,
        f"rows of {columns} values of 4 bits, of which LiteRT reads every other one a value early",
    )
    if table.data is not None or not table.is_float:
        table, _ = weights_operand(at, under_floats=True, axis=0, role="table")
    rows = _gathered(at, at.value_of(table, "table"), 0, 0, 0)
    at.define(rows if table.is_float else _scaled_rows(at, table, rows))


def _scaled_rows(at: Conversion, table: Operand, rows: str) -> str:
    """Rows of an integer table in float32: each value times the scale of the table, of its row, or of its block."""
    blocks = blocks_of(at, table)
    if blocks is not None:
        form = (table.shape[0], table.shape[1] // blocks.size, 1)
        scale = _gathered(at, at.constant("scales", blocks.scales.reshape(form), ir.DType.F32), 0, 0, 0)
        shape = at.type_of(rows).fixed_shape
        split = at.reshape(rows, (shape[0], form[1], blocks.size), "blocks")
        return at.reshape(real_values(at, split, scale), shape)
    scales = at.weight_scales(table.tensor, table.shape[0], 0)
    if len(scales) > 1 and at.numerics is Numerics.TFLM and not table.is_real:
        at.fail(
            f"'{table.tensor.name}' has {len(scales)} scales, of which TensorFlow Lite Micro takes the first",
            help="quantise the table with one scale, or compile for --numerics litert-ref",
        )
    column = (len(scales), *(1 for _ in table.shape[1:]))
    scale = at.constant("scales", np.array(scales, np.float32).reshape(column), ir.DType.F32)
    if len(scales) > 1:
        scale = _gathered(at, scale, 0, 0, 0)
    return real_values(at, rows, scale)


def _gathered(at: Conversion, name: str, axis: int, batch_axes: int, position: int) -> str:
    """The elements of an axis that an operand names."""
    indices = at.operand(position, "indices")
    if indices.data is None:
        is_integer = indices.dtype in WIDE
        at.require(is_integer, f"the indices are {indices.tensor.element_type}, not INT32 or INT64")
        if indices.dtype is ir.DType.I64 and at.numerics is Numerics.TFLM:
            refuse_kernel(at, " for indices of INT64", (Numerics.LITERT_REF,))
        return emit_gathered(at, name, at.value_of(indices, "indices"), axis, batch_axes)
    numbers = at.integers_operand(position, "indices")
    extent = at.type_of(name).fixed_shape[axis]
    outside = [number for number in numbers if not 0 <= number < extent]
    at.require(not outside, f"element {outside[:1]} of an axis of extent {extent}")
    return _taken(at, name, axis, batch_axes, indices.shape, numbers)


def emit_gathered(at: Conversion, value: str, numbers: str, axis: int, batch_axes: int = 0) -> str:
    """The elements of an axis with computed numbers; the first axes of both may be samples."""
    return at.emit(Gather(axis, batch_axes), (value, numbers), "gathered")


def _taken(
    at: Conversion, name: str, axis: int, batch_axes: int, shape: tuple[int, ...], numbers: Sequence[int]
) -> str:
    """The elements of an axis with constant numbers, which have a shape of their own."""
    at.require(len(numbers) >= 1, "no element is taken")
    source = at.type_of(name).fixed_shape
    if prod(shape[:batch_axes]) == 1:
        shape = shape[batch_axes:]  # all of one batch
        result = (*source[:axis], *shape, *source[axis + 1 :])
        stride = numbers[1] - numbers[0] if len(numbers) > 1 else 1
        if stride and tuple(numbers) == tuple(numbers[0] + stride * i for i in range(len(numbers))):
            return at.reshape(_part(at, name, axis, numbers[0], len(numbers), stride), result)
        batch_axes = 0
    table = at.constant("indices", np.array(numbers, np.int32).reshape(shape), ir.DType.I32)
    return emit_gathered(at, name, table, axis, batch_axes)


def convert_mirror_pad(at: Conversion) -> None:
    """MIRROR_PAD by constant paddings: along each padded axis, elements by their numbers."""
    at.require_counts((2,))
    source = at.operand(0, "input")
    at.require_same_dtype(source)
    widths = paddings_operand(at, source)
    modes, mode = schema_names("MirrorPadMode"), at.options.integer(0, "b")
    if mode not in modes:
        raise DamagedError(f"operator {at.operator.label} has the unknown mode {mode}")
    skipped = 1 if modes[mode] == "REFLECT" else 0  # elements at the edge that are not repeated
    name = at.value_of(source)
    for axis, extent in enumerate(source.shape):
        before, after = widths[2 * axis], widths[2 * axis + 1]
        most = extent - skipped
        fits = min(before, after) >= 0 and max(before, after) <= most
        at.require(
            fits, f"paddings {before} and {after} around an extent of {extent}, at most {most} are mirrored"
        )
        if before or after:
            at.require(
                extent <= _MOST_MIRRORED,
                f"an axis of {extent} elements is mirrored, at most {_MOST_MIRRORED}",
            )
            name = _mirrored(at, name, axis, (before, after), skipped)
    at.define(name)


def _mirrored(at: Conversion, name: str, axis: int, pads: tuple[int, int], skipped: int) -> str:
    """An axis with elements before and after it that are its own in reverse, those at the edges left out or not."""
    extent, (before, after) = at.type_of(name).fixed_shape[axis], pads
    first, last = before - 1 + skipped, extent - 1 - skipped
    if at.graph.is_opened:  # numbers of elements depend on the extent
        ends = [
            _part(at, name, axis, start, count, -1) if count else ""
            for start, count in ((first, before), (last, after))
        ]
        return emit_joined(at, axis, [each for each in (ends[0], name, ends[1]) if each], "mirrored")
    numbers = (*range(first, skipped - 1, -1), *range(extent), *range(last, last - after, -1))
    return _taken(at, name, axis, 0, (len(numbers),), numbers)


def convert_depth_to_space(at: Conversion) -> None:
    """DEPTH_TO_SPACE: channels [row in block, column in block, channel] become blocks of pixels."""
    source, block = _blocks(at)
    batch, height, width, depth = source.shape
    at.require(depth % block**2 == 0, f"{depth} channels are no blocks of {block} by {block}")
    run = depth // block
    split = (batch, height, width, block, run)
    result = (batch, height * block, width * block, depth // block**2)
    at.define(emit_transposed(at, at.value_of(source), split, (0, 1, 3, 2, 4), result))


def convert_space_to_depth(at: Conversion) -> None:
    """SPACE_TO_DEPTH: blocks of pixels become channels [row in block, column in block, channel]."""
    source, block = _blocks(at)
    batch, height, width, depth = source.shape
    at.require(
        height % block == 0 == width % block,
        f"{height} by {width} pixels are no blocks of {block} by {block}",
    )
    split = (batch, height // block, block, width // block, block * depth)
    result = (batch, height // block, width // block, depth * block**2)
    at.define(emit_transposed(at, at.value_of(source), split, (0, 1, 3, 2, 4), result))


def _blocks(at: Conversion) -> tuple[Operand, int]:
    """The image that is cut into blocks, and their side."""
    at.require_counts((1,))
    source = at.operand(0, "input")
    at.require_same_dtype(source)
    at.require(len(source.shape) == 4, f"an input {list(source.shape)} does not have 4 axes")
    block = at.options.integer(0)
    at.require(block >= 1, f"blocks of {block}")
    return source, block
