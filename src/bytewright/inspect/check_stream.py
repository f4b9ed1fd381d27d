"""Whether a plan that says how the model runs frame by frame says what its inputs, outputs and states can be.

How many frames the whole window has, and what it would cost, is not in the rest of the plan: these numbers only have to
be possible together. The first runs whose results do not count are stated in the header as well.
"""

from collections.abc import Iterator, Mapping, Sequence

from bytewright import ir
from bytewright.record.entries import PlannedTensor
from bytewright.record.plan import Plan


def faults_of_stream(plan: Plan) -> Iterator[str]:
    """Frames, axes and runs that cannot be, one sentence each."""
    stream = plan.stream
    if stream is None:
        return
    num_frames, num_new = stream.num_frames, stream.num_new
    if not 0 < num_new < num_frames:
        yield f"a run is said to take {num_new} of {num_frames} frames"
        return
    most_left_out = num_new - 1 if stream.is_padded else 0
    if not 0 <= stream.num_left_out <= most_left_out:
        yield f"{stream.num_left_out} frames are said to be left out, at most {most_left_out} can be"
    if stream.is_padded and num_frames % num_new:
        yield f"the window is said to be padded, and its {num_frames} frames are no runs of {num_new}"
    if not 0 <= stream.num_runs_before * num_new < num_frames:
        yield f"{stream.num_runs_before} runs are said to come before {num_frames} frames, {num_new} at a time"
    if stream.macs_before and not 0 <= stream.macs < stream.macs_before:
        yield f"a run is said to take {stream.macs} of {stream.macs_before} multiply-accumulates"
    if stream.num_runs_before and not plan.states:  # else each frame may be computed by itself
        yield f"{stream.num_runs_before} runs are said to come before those that count, and nothing survives a run"
    if not stream.input_axes:
        yield "the model is said to run frame by frame, and no input has frames"
    yield from _faults_of_axes(plan.inputs, stream.input_axes, stream, (num_new,))
    yield from _faults_of_axes(plan.outputs, stream.output_axes, stream, range(1, num_new + 1))


def _faults_of_axes(
    tensors: Sequence[PlannedTensor],
    axes: Mapping[str, int],
    stream: ir.Streamed,
    possible: Sequence[int],
) -> Iterator[str]:
    """Axes of inputs or outputs that do not exist, or along which there are as many rows as no run has."""
    shapes = {tensor.name: tensor.shape for tensor in tensors}
    for name, axis in axes.items():
        shape = shapes.get(name, ())
        if not 0 <= axis < len(shape):
            yield f"'{name}' is said to have frames along axis {axis}, its shape is {ir.format_shape(shape)}"
        elif shape[axis] not in possible:
            yield f"'{name}' has {shape[axis]} rows along axis {axis}, a run takes {stream.num_new} frames"
