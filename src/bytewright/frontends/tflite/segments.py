"""Tensors put together of parts by numbers: SCATTER_ND, SPARSE_TO_DENSE, segments; and REVERSE_SEQUENCE."""

import numpy as np

from bytewright import ir
from bytewright.frontends.tflite.cast import emit_cast
from bytewright.frontends.tflite.conversion import Conversion
from bytewright.frontends.tflite.elementwise import emit_wrapped_sum
from bytewright.frontends.tflite.graph_builder import Operand
from bytewright.frontends.tflite.logic import emit_choice, emit_greater
from bytewright.frontends.tflite.moves import emit_gathered
from bytewright.frontends.tflite.places import require_within
from bytewright.frontends.tflite.shape import one_integer
from bytewright.frontends.tflite.sized import cut, most_of, number_of, sized
from bytewright.frontends.tflite.tiling import tiled
from bytewright.frontends.tflite.unsigned import UNSIGNED, bits_of
from bytewright.ops.places import ScatterLast, ScatterMax, ScatterMin, ScatterNd, ScatterProduct

# LiteRT takes no more.
_MOST_AXES = 4


def convert_scatter_nd(at: Conversion) -> None:
    """SCATTER_ND into zeros of a constant shape."""
    at.require_counts((3,))
    indices, updates = at.operand(0, "indices"), at.operand(1, "updates")
    at.require_same_dtype(updates)
    at.require(indices.dtype is ir.DType.I32, f"the indices are {indices.tensor.element_type}, not INT32")
    shape = at.integers_operand(2, "shape")
    at.require(min(shape, default=1) >= 1, f"the shape {list(shape)} has no elements")
    require_within(at, indices, shape)
    is_unsigned, values = updates.tensor.element_type == UNSIGNED, at.value_of(updates, "updates")
    operands = (at.value_of(indices, "indices"), bits_of(at, values) if is_unsigned else values)
    scattered = at.emit(ScatterNd(shape), operands, "scattered")
    at.define(bits_of(at, scattered) if is_unsigned else scattered)


def convert_sparse_to_dense(at: Conversion) -> None:
    """SPARSE_TO_DENSE of a constant shape, which is a constant where no value is."""
    at.require_counts((4,))
    indices, values = at.index_operand(0, "indices"), at.operand(2, "values")
    at.require_same_dtype(values, at.operand(3, "default value"))
    shape, rest = at.integers_operand(1, "shape"), at.fixed_operand(3, "default value")
    at.require(rest.size == 1, f"{rest.size} default values")
    at.require(
        1 <= len(shape) <= _MOST_AXES, f"a shape of {len(shape)} axes, 1 to {_MOST_AXES} are supported"
    )
    at.require(min(shape) >= 1, f"the shape {list(shape)} has no elements")
    extents = indices.shape if len(indices.shape) == 2 else (indices.type.num_elements, 1)
    at.require(
        len(indices.shape) <= 2 and extents[1] == len(shape),
        f"indices {list(indices.shape)} into {len(shape)} axes",
    )
    require_within(at, indices, shape)
    places = at.reshape(at.value_of(indices, "indices"), extents, "places")
    updates = at.value_of(values, "values")
    if not values.shape:
        updates = tiled(at, at.reshape(updates, (1,)), extents[:1])
    at.define(at.emit(ScatterLast(shape, rest.reshape(()).item()), (places, updates), "dense"))


def convert_segment_sum(at: Conversion) -> None:
    """SEGMENT_SUM by numbers that begin at zero and grow by one at most: the last says how many segments there are."""
    at.require_counts((2,))
    data, segments = _segmented(at)
    at.require(len(segments.shape) == 1, f"segments {list(segments.shape)}")
    if segments.data is None:
        at.define(_computed_segments(at, data, segments))
        return
    numbers = at.fixed_operand(1, "segments").astype(np.int64)
    steps = np.diff(numbers, prepend=numbers[:1])
    fits = bool(numbers[0] == 0 and ((steps == 0) | (steps == 1)).all())
    at.require(fits, "the segments do not begin at 0, or one is left out")
    shape = (int(numbers[-1]) + 1, *data.shape[1:])
    at.define(_scattered(at, ScatterNd(shape), data, at.value_of(segments, "segments"), segments.shape))


def _computed_segments(at: Conversion, data: Operand, segments: Operand) -> str:
    """Segments that the run numbers as it should: as many as the last number says, and one."""
    value = at.value_of(segments, "segments")
    last = at.slice(value, (segments.shape[0] - 1,), (1,), "last")
    one = at.constant("one", np.array([1], np.int32), ir.DType.I32)
    asked = number_of(emit_wrapped_sum(at, last, one))
    count = sized(at, asked, "how many segments there are", segments.shape[0])
    whole = ScatterNd((most_of(at, asked), *data.shape[1:]))
    every = _scattered(at, whole, data, value, segments.shape)
    return cut(at, every, (count, *data.shape[1:]), "segments")


def convert_unsorted_segment(
    at: Conversion, kind: type[ScatterMax | ScatterMin | ScatterNd | ScatterProduct]
) -> None:
    """UNSORTED_SEGMENT_MAX and its kin, of a constant number of segments; what has no segment goes nowhere."""
    at.require_counts((3,))
    data, segments = _segmented(at)
    count = one_integer(at, 2, "number of segments")
    at.require(count >= 1, f"{count} segments")
    rest = data.shape[len(segments.shape) :]
    value = at.value_of(segments, "segments")
    # One segment more takes what has none.
    last = at.constant("last", np.array(count, np.int32), ir.DType.I32)
    none = at.constant("none", np.array(-1, np.int32), ir.DType.I32)
    has_one = emit_greater(at, value, none, "has_one")
    places = emit_choice(at, has_one, value, last)
    found = _scattered(at, kind((count + 1, *rest)), data, places, segments.shape)
    at.define(at.slice(found, (0,) * (1 + len(rest)), (count, *rest), "segments"))


def _segmented(at: Conversion) -> tuple[Operand, Operand]:
    """Data, and the numbers of the segments that parts of it are of: the shape of these begins that of the data."""
    data = at.typed_operand(0, "input", (ir.DType.F32, ir.DType.I32))
    segments = at.typed_operand(1, "segments", (ir.DType.I32,))
    at.require_same_dtype(data)
    fits = data.shape[: len(segments.shape)] == segments.shape
    at.require(fits, f"segments {list(segments.shape)} of an input {list(data.shape)}")
    return data, segments


def _scattered(
    at: Conversion,
    operation: ScatterMax | ScatterMin | ScatterNd | ScatterProduct,
    data: Operand,
    places: str,
    shape: tuple[int, ...],
) -> str:
    """The data, combined by the first axis of the result."""
    return at.emit(operation, (at.reshape(places, (*shape, 1), "places"), at.value_of(data)), "scattered")


def convert_reverse_sequence(at: Conversion) -> None:
    """REVERSE_SEQUENCE: of each sample the first steps backwards, as many as it has, and the rest as it is."""
    at.require_counts((2,))
    source, lengths = at.operand(0, "input"), at.index_operand(1, "lengths")
    at.require_same_dtype(source)
    rank = len(source.shape)
    steps_at, samples_at = at.options.integer(0), at.options.integer(1)
    at.require(
        0 <= steps_at < rank and 0 <= samples_at < rank and steps_at != samples_at,
        f"steps along axis {steps_at} and samples along {samples_at} of {rank} axes",
    )
    samples, steps = source.shape[samples_at], source.shape[steps_at]
    at.require(lengths.shape == (samples,), f"lengths {list(lengths.shape)} of {samples} samples")
    counts = at.value_of(lengths, "lengths")
    counts = counts if lengths.dtype is ir.DType.I32 else emit_cast(at, counts, ir.DType.I32, "counts")
    counts = at.reshape(counts, (samples, 1), "counts")
    numbers = np.arange(steps, dtype=np.int32)
    forwards = at.constant("forwards", numbers, ir.DType.I32)
    is_turned = emit_greater(at, counts, forwards, "is_turned")
    backwards = emit_wrapped_sum(at, counts, at.constant("back", -1 - numbers, ir.DType.I32))
    order = emit_choice(at, is_turned, backwards, forwards)
    front = (samples_at, *(axis for axis in range(rank) if axis != samples_at))
    moved = at.transpose(at.value_of(source), front, "by_sample")
    turned = emit_gathered(at, moved, order, front.index(steps_at), 1)
    back = tuple(front.index(axis) for axis in range(rank))
    at.define(at.transpose(turned, back, "as_it_was"))
