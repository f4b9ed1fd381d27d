"""Customs of TensorFlow Lite Micro over time: CIRCULAR_BUFFER and SignalDelay, which keep samples, and SignalWindow."""

import numpy as np

from bytewright import ir
from bytewright.frontends.tflite.accumulator import saturated
from bytewright.frontends.tflite.cast import emit_cast
from bytewright.frontends.tflite.conversion import Conversion
from bytewright.frontends.tflite.elementwise import emit_saturated_sum, emit_shifted_product
from bytewright.frontends.tflite.shape import emit_joined
from bytewright.ops.data import ShiftIn

# Frames of the networks for which TensorFlow Lite Micro takes a buffer to let each run pass, where nothing says so.
_ALWAYS_PASSED = (5, 13, 25)
_MOST_SHIFT = 30
# Each becomes operators of its own.
_MOST_FRAMES = 32


def convert_circular_buffer(at: Conversion) -> None:
    """CIRCULAR_BUFFER: the last frames, the newest one behind the others."""
    at.require_counts((1,))
    source, tensor = at.activation_operand(0, "input"), at.output_tensor()
    is_frame = len(source.shape) == 4 and source.shape[:2] == (1, 1)
    at.require(is_frame, f"an input {list(source.shape)}, which is not one frame [1, 1, W, C]")
    _, _, width, channels = source.shape
    extents = tensor.shape
    fits = len(extents) == 4 and extents == (1, extents[1], width, channels) and extents[1] >= 1
    at.require(fits, f"a result {list(extents)} of frames {list(source.shape)}")
    at.require(tensor.is_variable, "the result is no variable, so that nothing keeps the frames")
    target = at.affine(tensor)
    at.require(target == at.affine(source.tensor), "input and result are quantised differently")
    _require_every_run(at, extents[1])
    shape = ir.TensorType(extents, ir.DType.I8)
    initial = ir.TensorData.from_array(np.full(extents, target.zero_point, np.int8), ir.DType.I8)
    stated = f"circular_buffer_{at.operator.index}_frames"
    kept = at.graph.keep(stated, stated, tensor, shape, initial)
    frames = at.emit(ShiftIn(1), (kept.current, at.value_of(source)), "frames")
    at.keep(kept, frames)
    at.define(frames)


def _require_every_run(at: Conversion, frames: int) -> None:
    """A run passes the buffer each time."""
    cycles = int(at.custom_options.get("cycles_max", 0))
    if cycles <= 0:
        cycles = 1 if frames in _ALWAYS_PASSED else 2
    if cycles != 1:
        at.fail(
            f"it ends {cycles - 1} of {cycles} runs, whose results are then those of an earlier one",
            help=f"make two models of it, and run the one behind the buffer after {cycles} runs of the other",
        )


def convert_delay(at: Conversion) -> None:
    """SignalDelay: each row of samples goes on where that of the last run ended, so many samples later."""
    at.require_counts((1,))
    source = at.activation_operand(0, "input")
    length = int(at.custom_options.get("delay_length", 0))
    at.require(bool(source.shape) and length >= 0, f"{list(source.shape)} delayed by {length}")
    value = at.value_of(source)
    if length == 0:
        at.define(value)
        return
    size = source.shape[-1]
    rows = source.type.num_elements // size
    value = at.reshape(value, (rows, size), "rows")
    shape = ir.TensorType((rows, length), source.dtype)
    stated = f"delay_{at.operator.index}_samples"
    kept = at.graph.keep(stated, stated, source.tensor, shape, None)
    if length < size:
        first = at.slice(value, (0, 0), (rows, size - length), "first")
        result = emit_joined(at, 1, [kept.current, first], "delayed")
        after = at.slice(value, (0, size - length), (rows, length), "last")
    else:
        result = at.slice(kept.current, (0, 0), (rows, size), "delayed")
        after = at.emit(ShiftIn(1), (kept.current, value), "samples")
    at.keep(kept, after)
    at.define(at.reshape(result, source.shape))


def convert_overlap_add(at: Conversion) -> None:
    """SignalOverlapAdd: frames added where they overlap; of each sum so many samples as a step has are finished."""
    at.require_counts((1,))
    source = at.activation_operand(0, "input")
    step = int(at.custom_options.get("frame_step", 0))
    at.require(len(source.shape) >= 2, f"an input {list(source.shape)} without an axis of frames")
    *outer, count, size = source.shape
    at.require(1 <= step <= size, f"a step of {step} in frames of {size}")
    at.require(count <= _MOST_FRAMES, f"{count} frames a run, beyond {_MOST_FRAMES}")
    rows = source.type.num_elements // (count * size)
    frames = at.reshape(at.value_of(source), (rows, count, size), "frames")
    shape, stated = ir.TensorType((rows, size), source.dtype), f"overlap_add_{at.operator.index}_sums"
    kept = at.graph.keep(stated, stated, source.tensor, shape, None)
    sums, finished = kept.current, list[str]()
    zeros = at.constant("zeros", np.zeros((rows, step), source.dtype.numpy), source.dtype)
    for number in range(count):
        frame = at.reshape(at.slice(frames, (0, number, 0), (rows, 1, size), "frame"), (rows, size), "row")
        sums = emit_saturated_sum(at, sums, frame)
        finished.append(at.slice(sums, (0, 0), (rows, step), "finished"))
        rest = at.slice(sums, (0, step), (rows, size - step), "rest") if step < size else None
        sums = zeros if rest is None else emit_joined(at, 1, [rest, zeros], "begun")
    at.keep(kept, sums)
    at.define(at.reshape(emit_joined(at, 1, finished, "samples"), (*outer, count * step)))


def convert_window(at: Conversion) -> None:
    """SignalWindow: samples by weights, divided by 2^shift and rounded down, saturating."""
    at.require_counts((2,))
    source = at.activation_operand(0, "input")
    weights, values = at.constant_operand(1, "weights")
    at.require(weights.dtype is ir.DType.I16, f"the weights are {weights.tensor.element_type}")
    fits = len(weights.shape) == 1 and source.shape[-1:] == weights.shape
    at.require(fits, f"weights {list(weights.shape)} of an input {list(source.shape)}")
    shift = int(at.custom_options.get("shift", 0))
    at.require(0 <= shift <= _MOST_SHIFT, f"a shift of {shift}, which is not 0 to {_MOST_SHIFT}")
    wide = emit_cast(at, at.value_of(source), ir.DType.I32, "wide")
    shifted = emit_shifted_product(at, wide, values.astype(np.int32), shift)
    at.define(emit_cast(at, saturated(at, shifted, ir.DType.I16), ir.DType.I16, "windowed"))
