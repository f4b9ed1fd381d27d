"""Operators that find places or take them: ARG_MAX, GATHER_ND, CUMSUM, ONE_HOT, DYNAMIC_UPDATE_SLICE."""

import numpy as np

from bytewright import ir
from bytewright.frontends.tflite.accumulator import checked_multiplier, rescale
from bytewright.frontends.tflite.bounds import SIZE
from bytewright.frontends.tflite.cast import emit_cast
from bytewright.frontends.tflite.conversion import Conversion
from bytewright.frontends.tflite.elementwise import emit_wrapped_difference
from bytewright.frontends.tflite.graph_builder import DTYPES, Operand
from bytewright.frontends.tflite.kernels_of import refuse_kernel
from bytewright.frontends.tflite.logic import IS_EQUAL
from bytewright.frontends.tflite.moves import emit_gathered
from bytewright.frontends.tflite.shape import one_integer
from bytewright.frontends.tflite.sized import cut, most_of, numbers_of, repeated, sized, sizes_operand
from bytewright.frontends.tflite.tiling import tiled
from bytewright.ops.arithmetic.multiplier import Multiplier, quantize_multiplier
from bytewright.ops.arithmetic.numerics import Numerics
from bytewright.ops.checks import WIDE
from bytewright.ops.elementwise import Select
from bytewright.ops.places import ArgMax, ArgMin, CumulativeSum, GatherNd, TopKPlaces, UpdateSlice
from bytewright.ops.sizes import DistinctValues, TruePlaces

_MOST_NUMBERS = 1 << 18  # of a table that stands for a range

# Bits that sums of int8 are computed with beside those of the values.
_SUM_BITS = 19
_OTHER_RANGE = (
    "write a range of int32 from 0 in steps of 1 to how many numbers there are, and compute them from it"
)


def convert_arg_extremum(at: Conversion, kind: type[ArgMax | ArgMin]) -> None:
    """ARG_MAX and ARG_MIN along a constant axis: of raw values, the first of those that are alike."""
    at.require_counts((2,))
    source = at.operand(0, "input")
    axis = at.axis(one_integer(at, 1, "axis"), len(source.shape))
    dtype = DTYPES.get(at.output_tensor().element_type)
    if dtype not in WIDE:
        at.fail(f"the result is {at.output_tensor().element_type}, not INT32 or INT64", code="BW105")
    at.define(at.emit(kind(axis, dtype), (at.value_of(source),), "place"))


def convert_gather_nd(at: Conversion) -> None:
    """GATHER_ND: parts of a tensor by several numbers each."""
    at.require_counts((2,))
    source = at.operand(0, "input")
    at.require_same_dtype(source)
    indices = at.index_operand(1, "indices")
    if indices.dtype is ir.DType.I64 and at.numerics is Numerics.TFLM:
        refuse_kernel(at, " for indices of INT64", (Numerics.LITERT_REF,))
    require_within(at, indices, source.shape)
    at.define(at.emit(GatherNd(), (at.value_of(source), at.value_of(indices, "indices")), "gathered"))


def require_within(at: Conversion, indices: Operand, shape: tuple[int, ...]) -> None:
    """Numbers that are constant are those of elements."""
    if indices.data is not None and indices.shape:
        numbers = indices.data.array.reshape(-1, indices.shape[-1]).astype(np.int64)
        within = bool(((numbers >= 0) & (numbers < np.array(shape[: indices.shape[-1]]))).all())
        at.require(within, f"numbers outside of {list(shape)}")


def convert_cumsum(at: Conversion) -> None:
    """CUMSUM along a constant axis."""
    at.require_counts((2,))
    source = at.activation_operand(0, "input", *WIDE)
    at.require_same_dtype(source)
    axis = at.axis(one_integer(at, 1, "axis"), len(source.shape))
    operation = CumulativeSum(axis, at.options.boolean(0), at.options.boolean(1))
    if source.dtype is ir.DType.I8:
        at.define(_integer_sums(at, source, operation))
    else:
        at.define(at.emit(operation, (at.value_of(source),), "sums"))


def _integer_sums(at: Conversion, source: Operand, operation: CumulativeSum) -> str:
    """Sums of int8 with 19 more bits. The kernel of TensorFlow Lite Micro begins at the zero point's negative."""
    own, target = at.affine(source.tensor), at.affine(at.output_tensor())
    half = Multiplier(1 << 30, 0)
    widened = rescale(
        at, at.value_of(source), [half], own.zero_point, 0, ir.DType.I32, "widened", left_shift=_SUM_BITS + 1
    )
    sums = at.emit(operation, (widened,), "sums")
    factor = quantize_multiplier(2 * own.scale / ((1 << _SUM_BITS + 1) * target.scale))
    reach = (source.shape[operation.axis] * own.reach + abs(own.zero_point)) << _SUM_BITS
    factor = checked_multiplier(at, factor, reach, target.zero_point)
    offset = own.zero_point << _SUM_BITS
    return rescale(at, sums, [factor], offset, target.zero_point, ir.DType.I8, "rescaled")


def convert_top_k(at: Conversion) -> None:
    """TOPK_V2 along the last axis: the places, of elements that are alike the first one first, and what is there."""
    at.require_counts((2,), outputs=2)
    source = at.activation_operand(0, "input", *WIDE)
    at.require_same_dtype(source)
    rank, number = len(source.shape), at.index_operand(1, "count")
    at.require(rank >= 1, "a single value has no greatest ones")
    value = at.value_of(source)
    if number.data is None:
        places = _first_of_top(at, value, at.value_of(number, "count"), source.shape[-1])
    else:
        count = one_integer(at, 1, "count")
        at.require(1 <= count <= source.shape[-1], f"{count} of {source.shape[-1]} elements")
        places = at.emit(TopKPlaces(count), (value,), "places")
    at.define(emit_gathered(at, value, places, rank - 1, rank - 1), 0)
    at.define(places, 1)


def _first_of_top(at: Conversion, value: str, number: str, extent: int) -> str:
    """Places of as many of the greatest as the run says: the first of those of the most."""
    (asked,) = numbers_of(at, number)
    count = sized(at, asked, "how many are taken", extent)
    every = at.emit(TopKPlaces(most_of(at, asked)), (value,), "every_place")
    return cut(at, every, (*at.type_of(every).fixed_shape[:-1], count), "places")


def convert_range(at: Conversion) -> None:
    """RANGE from a constant on, of constant steps, to a limit that the run says."""
    at.require_counts((3,))
    start, delta = (at.constant_operand(n, role)[1].reshape(-1) for n, role in ((0, "start"), (2, "delta")))
    limit = at.operand(1, "limit")
    at.require_same_dtype(limit, at.operand(0, "start"), at.operand(2, "delta"))
    at.require(start.size == delta.size == limit.type.num_elements == 1, "they are no single numbers")
    if limit.dtype not in WIDE:
        at.fail(f"the limit is {limit.tensor.element_type} that the run computes", help=_OTHER_RANGE)
    if int(delta[0]) != 1:
        at.fail(f"steps of {delta[0]} to a limit that the run computes; 1 is supported", help=_OTHER_RANGE)
    number = at.value_of(limit, "limit")
    if start[0]:
        number = emit_wrapped_difference(at, number, at.constant("start", start.reshape(()), limit.dtype))
    (asked,) = numbers_of(at, number)
    count, room = sized(at, asked, "how many numbers there are"), most_of(at, asked)
    at.require(room <= _MOST_NUMBERS, f"a table of {room} numbers; up to {_MOST_NUMBERS} are supported")
    numbers = at.constant("numbers", np.arange(start[0], start[0] + room, dtype=start.dtype), limit.dtype)
    at.define(cut(at, numbers, (count,), "range"))


def convert_unique(at: Conversion) -> None:
    """UNIQUE of a list: its values, and the place of each element's; the data decides how many values there are."""
    at.require_counts((1,), outputs=2)
    source = at.operand(0, "input")
    at.require_same_dtype(source)
    at.require(len(source.shape) == 1, f"an input of shape {list(source.shape)}")
    dtype = DTYPES.get(at.output_tensor(1).element_type)
    at.require(dtype in WIDE, f"the places are {at.output_tensor(1).element_type}, not INT32 or INT64")
    assert dtype is not None
    count = at.size("how many values there are", source.shape[0], is_sure=True)
    names = at.emit_all(DistinctValues(count, dtype), (at.value_of(source),), ("values", "places", SIZE))
    at.define(names[0], 0)
    at.define(names[1], 1)


def convert_where(at: Conversion) -> None:
    """WHERE of one operand: the places of what is true, or not zero; the data decides how many."""
    at.require_counts((1,))
    source = at.operand(0, "condition")
    at.require(len(source.shape) >= 1, "a single value has no places")
    at.require_result("INT64")
    # A converter that did not compute the places of a constant leaves 0 in place of their number.
    if source.data is not None and 0 not in at.output_tensor().shape:
        found = np.argwhere(source.data.array).astype(np.int64)
        at.define(at.constant("places", found, ir.DType.I64))
        return
    count = at.size("how many elements are true", source.type.num_elements, is_sure=True)
    value = at.value_of(source)
    if source.dtype is not ir.DType.BOOL:
        value = emit_cast(at, value, ir.DType.BOOL, "is_true")
    at.define(at.emit_sized(TruePlaces(count), (value,), "places"))


def convert_one_hot(at: Conversion) -> None:
    """ONE_HOT: a choice, by whether a number is that of its place along a new axis."""
    at.require_counts((4,))
    indices = at.index_operand(0, "indices")
    depth = one_integer(at, 1, "depth")
    on, off = at.operand(2, "value where a number is"), at.operand(3, "value elsewhere")
    at.require_same_dtype(on, off)
    for operand in (on, off):
        at.require(operand.type.num_elements == 1, f"a value of shape {list(operand.shape)}")
    at.require(depth >= 1, f"a depth of {depth}")
    rank, stated = len(indices.shape), at.options.integer(0)
    at.require(-1 <= stated <= rank, f"axis {stated} for a tensor of rank {rank}")
    axis = rank if stated == -1 else stated
    seen = at.reshape(at.value_of(indices, "indices"), (*indices.shape[:axis], 1, *indices.shape[axis:]))
    along = tuple(depth if each == axis else 1 for each in range(rank + 1))
    places = at.constant("places", np.arange(depth).reshape(along), indices.dtype)
    is_there = at.emit(IS_EQUAL, (seen, places), "is_there")
    choices = (at.reshape(at.value_of(on, "on"), ()), at.reshape(at.value_of(off, "off"), ()))
    at.define(at.emit(Select(), (is_there, *choices), "chosen"))


def convert_fill(at: Conversion) -> None:
    """FILL of a shape, of which the run may compute extents, with one value."""
    at.require_counts((2,))
    value = at.operand(1, "value")
    at.require(value.type.num_elements == 1, f"a value of shape {list(value.shape)}")
    shape, is_constant = sizes_operand(at, 0, "shape"), at.operand(0, "shape").data is not None
    least = 1 if is_constant and not at.graph.bounds.allows_none else 0
    at.require(min(shape, default=1) >= least, f"the shape {list(shape)} has no elements")
    single = at.reshape(at.value_of(value, "value"), (1,) * len(shape))
    at.define(tiled(at, single, shape) if is_constant else repeated(at, single, shape))


def convert_update_slice(at: Conversion) -> None:
    """DYNAMIC_UPDATE_SLICE: a tensor of which a part, from computed places on, is another."""
    at.require_counts((3,))
    source, update = at.operand(0, "input"), at.operand(1, "update")
    at.require_same_dtype(source, update)
    start = at.index_operand(2, "start")
    operands = (at.value_of(source), at.value_of(update, "update"), at.value_of(start, "start"))
    at.define(at.emit(UpdateSlice(), operands, "updated"))
