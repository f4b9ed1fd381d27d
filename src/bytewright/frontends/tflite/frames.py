"""Customs of TensorFlow Lite Micro that gather samples to frames, and frames to stacks, and say when there are enough.

Before that, results have zeros in place of what has not come; the witness leaves them as they were.
"""

import numpy as np

from bytewright import ir
from bytewright.frontends.tflite.conversion import Conversion
from bytewright.frontends.tflite.elementwise import emit_sum
from bytewright.frontends.tflite.graph_builder import Kept
from bytewright.frontends.tflite.shape import emit_joined
from bytewright.ops.data import ShiftIn
from bytewright.ops.elementwise import Equal, GreaterEqual, Minimum, Select, WrappingSub

_MOST_FRAMES = 32
"""Each becomes operators of its own."""


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
    before = at.emit(Minimum(), (counted.current, most), "before")
    after = emit_sum(at, before, _number(at, "count", count))
    at.keep(counted, at.emit(Minimum(), (after, most), "steps"))


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
    missing = _counter(at, "stacker")
    zero = _number(at, "zero", 0)
    is_first = at.emit(Equal(), (missing.current, zero), "is_first")
    stated = f"stacker_{at.operator.index}_frames"
    kind = ir.TensorType((count, channels), ir.DType.I16)
    kept = at.graph.keep(stated, stated, source.tensor, kind, None)
    before = at.emit(Select(), (at.reshape(is_first, (1, 1), "is_first"), new, kept.current), "before")
    stack = at.emit(ShiftIn(0), (before, new), "stack")
    at.keep(kept, stack)
    at.define(at.reshape(stack, (count * channels,)))
    to_come = at.emit(Select(), (is_first, _number(at, "first", right + 1), missing.current), "to_come")
    left_over = at.emit(WrappingSub(), (to_come, _number(at, "one", 1)), "left")
    is_valid = at.emit(Equal(), (left_over, zero), "is_valid")
    at.define(at.reshape(is_valid, (), "valid"), 1)
    at.keep(missing, at.emit(Select(), (is_valid, _number(at, "step", step), left_over), "missing"))


def _counter(at: Conversion, kind: str) -> Kept:
    """A number that is kept, 0 before the first run."""
    stated = f"{kind}_{at.operator.index}_count"
    tensor = at.output_tensor(1)
    return at.graph.keep(stated, stated, tensor, ir.TensorType((1,), ir.DType.I32), None)


def _number(at: Conversion, role: str, value: int) -> str:
    return at.constant(role, np.array([value], np.int32), ir.DType.I32)
