"""Customs of TensorFlow Lite Micro over time: what keeps samples and gathers them to frames, and SignalWindow.

SignalFramer and SignalStacker say when there is enough. Before that, results have zeros in place of what has not come;
the witness leaves them as they were.
"""

import numpy as np

from bytewright import ir
from bytewright.frontends.tflite.accumulator import limited, saturated
from bytewright.frontends.tflite.cast import emit_cast
from bytewright.frontends.tflite.conversion import Conversion
from bytewright.frontends.tflite.elementwise import emit_saturated_sum, emit_shifted_product, emit_sum
from bytewright.frontends.tflite.graph_builder import Kept
from bytewright.frontends.tflite.logic import emit_choice
from bytewright.frontends.tflite.shape import emit_joined
from bytewright.ops.comparisons import GreaterEqual
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


def convert_framer(at: Conversion) -> None:
    """SignalFramer: of each row so many frames as it has steps, each step on behind what is kept of those before."""
    at.require_counts((1,), outputs=2)
    source = at.activation_operand(0, "input")
    at.require(source.dtype is ir.DType.I16 and bool(source.shape), f"an input {list(source.shape)}")
    size, step = (int(at.custom_options.get(name, 0)) for name in ("frame_size", "frame_step"))
    *outer, samples = source.shape
    at.require(min(size, step) >= 1 and samples % step == 0, f"{samples} samples in steps of {step}")
    count, is_filled = samples // step, bool(at.custom_options.get("prefill", 0))
    at.require(count <= _MOST_FRAMES, f"{count} frames a run, beyond {_MOST_FRAMES}")
    at.require(size >= step or not is_filled, f"frames of {size}, filled before a step of {step}")
    rows, steps = source.type.num_elements // samples, -(-size // step)
    given = at.reshape(at.value_of(source), (rows, samples), "rows")
    frames = _frames(at, given, (size, step, size if is_filled else steps * step))
    joined = emit_joined(at, 1, [at.reshape(frame, (rows, 1, size), "frame") for frame in frames], "frames")
    at.define(at.reshape(joined, (*outer, count, size)))
    if is_filled or steps == 1:
        at.define(at.constant("valid", np.array(True), ir.DType.BOOL), 1)
        return
    counted = _counter(at, "framer")
    most = _number(at, "missing", steps - 1)
    at.define(at.reshape(at.emit(GreaterEqual(), (counted.current, most), "enough"), (), "valid"), 1)
    before = limited(at, counted.current, 0, steps - 1)
    at.keep(counted, limited(at, emit_sum(at, before, _number(at, "count", count)), 0, steps - 1))


def _frames(at: Conversion, given: str, extents: tuple[int, int, int]) -> list[str]:
    """The frames of rows: the first samples of those that are kept, behind which each step comes in."""
    size, step, length = extents
    rows, samples = at.type_of(given).fixed_shape
    kept = None
    if length > step:
        stated = f"framer_{at.operator.index}_samples"
        tensor = at.operand(0, "input").tensor
        kept = at.graph.keep(stated, stated, tensor, ir.TensorType((rows, length), ir.DType.I16), None)
    current, frames = "" if kept is None else kept.current, list[str]()
    for first in range(0, samples, step):
        new = given if samples == step else at.slice(given, (0, first), (rows, step), "step")
        current = new if kept is None else at.emit(ShiftIn(1), (current, new), "samples")
        frames.append(current if length == size else at.slice(current, (0, 0), (rows, size), "frame"))
    if kept is not None:
        at.keep(kept, current)
    return frames


def convert_stacker(at: Conversion) -> None:
    """SignalStacker: the last frames, every so many runs; those before the first frame are like it."""
    at.require_counts((1,), outputs=2)
    source, options = at.activation_operand(0, "input"), at.custom_options
    names = ("num_channels", "stacker_left_context", "stacker_right_context", "stacker_step")
    channels, left, right, step = (int(options.get(name, 0)) for name in names)
    fits = source.dtype is ir.DType.I16 and source.shape == (channels,)
    at.require(fits, f"an input {list(source.shape)} of {channels} channels")
    count = left + right + 1
    fits = min(left, right) >= 0 and 1 <= step <= count
    at.require(fits, f"a step of {step} in stacks of {left} frames, one and {right}")
    new = at.reshape(at.value_of(source), (1, channels), "frame")
    missing, zero = _counter(at, "stacker"), _number(at, "zero", 0)
    is_first = at.emit(GreaterEqual(), (zero, missing.current), "is_first")
    stated = f"stacker_{at.operator.index}_frames"
    kind = ir.TensorType((count, channels), ir.DType.I16)
    kept = at.graph.keep(stated, stated, source.tensor, kind, None)
    before = emit_choice(at, at.reshape(is_first, (1, 1), "is_first"), new, kept.current)
    stack = at.emit(ShiftIn(0), (before, new), "stack")
    at.keep(kept, stack)
    at.define(at.reshape(stack, (count * channels,)))
    to_come = emit_choice(at, is_first, _number(at, "first", right + 1), missing.current)
    to_come = limited(at, to_come, 1, max(step, right + 1))
    left_over = emit_sum(at, to_come, _number(at, "minus_one", -1))
    is_valid = at.emit(GreaterEqual(), (zero, left_over), "is_valid")
    at.define(at.reshape(is_valid, (), "valid"), 1)
    at.keep(missing, emit_choice(at, is_valid, _number(at, "step", step), left_over))


def _counter(at: Conversion, kind: str) -> Kept:
    """A number that is kept, 0 before the first run."""
    stated = f"{kind}_{at.operator.index}_count"
    tensor = at.output_tensor(1)
    return at.graph.keep(stated, stated, tensor, ir.TensorType((1,), ir.DType.I32), None)


def _number(at: Conversion, role: str, value: int) -> str:
    return at.constant(role, np.array([value], np.int32), ir.DType.I32)
