"""The tensors between the kernels, as the C that ships computes them: copied from the workspaces after each step.

Places, rows and rings are those of the plan. A tensor by rows is put together from what each call makes, because its
rows may be overwritten before its last one is made.
"""

import ctypes
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from bytewright.execute.host import HostModel
from bytewright.execute.tensors import Array
from bytewright.record.buffers import BufferRole, PlaceKind, PlannedBuffer
from bytewright.record.plan import Plan
from bytewright.record.row_calls import RowCall, row_runs


@dataclass(frozen=True, slots=True, eq=False)
class WrittenTensor:
    """A tensor of the model's file as steps wrote it.

    Attributes:
        name: In the model's file.
        step: The last step that wrote it.
        buffer: What it lies in, or what it is.
        contents: Its bytes after that. Of a part of a buffer, after each step that wrote the buffer.
        is_part: Whether it is a part.
    """

    name: str
    step: int
    buffer: PlannedBuffer
    contents: tuple[bytes, ...]
    is_part: bool = False


@dataclass(slots=True, eq=False)
class _Written:
    step: int
    content: bytearray
    parts: dict[str, list[bytes]] = field(default_factory=dict[str, "list[bytes]"])


class StepTensors:
    """Records the tensors of inferences of a model whose build has the hook; each goes on from the one before."""

    def __init__(self, model: HostModel) -> None:
        self._model, self._plan = model, model.bundle.plan  # which the hook and the library live with
        self._context = model.open(keep_state=True)
        self._pools = {pool.name: index for index, pool in enumerate(self._plan.workspaces)}
        self._rows = _calls_by_rows(self._plan)
        self._running: int | None = None
        self._calls: Counter[int] = Counter()
        self._written: dict[str, _Written] = {}
        model.on_step(self._step)

    def run(self, inputs: Sequence[Array]) -> tuple[list[Array], tuple[WrittenTensor, ...]]:
        """The outputs of an inference, and the tensors that have a name in the model's file, in the order of steps.

        Raises:
            CompileError: As of `HostModel.run`.
        """
        self._running = None
        self._calls.clear()
        self._written.clear()
        outputs, _ = self._context.run(inputs)
        for tensor, array in zip(self._plan.outputs, outputs, strict=True):
            writers = [step.index for step in self._plan.steps if tensor.buffer in step.writes]
            if writers and tensor.buffer not in self._written:  # the caller has it
                self._written[tensor.buffer] = _Written(writers[-1], bytearray(array.tobytes()))
        return outputs, tuple(sorted(self._tensors(), key=lambda tensor: tensor.step))

    def _tensors(self) -> list[WrittenTensor]:
        found: list[WrittenTensor] = []
        for name, written in self._written.items():
            buffer = self._plan.buffers[name]
            if (
                buffer.tensor is not None and buffer.role is not BufferRole.STATE
            ):  # which is written for the next run
                found.append(WrittenTensor(buffer.tensor, written.step, buffer, (bytes(written.content),)))
            for part, contents in written.parts.items():
                found.append(WrittenTensor(part, written.step, buffer, tuple(contents), is_part=True))
        return found

    def _step(self, step: int, pools: Sequence[int]) -> None:
        """Before a step: what the one before it wrote is there, and nothing else has been written since."""
        if self._running is not None:
            self._record(self._running, pools)
        self._running = step if step < len(self._plan.steps) else None

    def _record(self, index: int, pools: Sequence[int]) -> None:
        step, call = self._plan.steps[index], self._calls[index]
        self._calls[index] += 1
        for name in step.writes:
            buffer = self._plan.buffers[name]
            if buffer.place.kind is not PlaceKind.PLANNED or buffer.place.name not in self._pools:
                continue  # of the caller, on a stack, or in a memory that this processor does not reach
            address = pools[self._pools[buffer.place.name]] + (buffer.place.offset or 0)
            content = ctypes.string_at(address, buffer.size_bytes)
            by_rows = step.rows is not None and step.rows.buffer == name
            if by_rows and (index, call) in self._rows:
                self._record_rows(buffer, index, content, self._rows[index, call])
            elif buffer.ring is None:
                self._record_whole(buffer, index, content)

    def _record_whole(self, buffer: PlannedBuffer, index: int, content: bytes) -> None:
        written = self._written.setdefault(buffer.name, _Written(index, bytearray()))
        written.step, written.content = index, bytearray(content)
        for part in buffer.parts:
            if part.tensor is not None:
                piece = content[part.offset_bytes : part.offset_bytes + part.size_bytes]
                written.parts.setdefault(part.tensor, []).append(piece)

    def _record_rows(self, buffer: PlannedBuffer, index: int, content: bytes, call: RowCall) -> None:
        rows = call.step.rows
        ring = buffer.ring
        num_rows = rows.num_rows if rows is not None else 0
        slots = num_rows if ring is None else ring.num_rows
        row_bytes = buffer.size_bytes // slots
        written = self._written.setdefault(buffer.name, _Written(index, bytearray(num_rows * row_bytes)))
        written.step = index
        for row in call.made:
            at = row % slots * row_bytes
            written.content[row * row_bytes : (row + 1) * row_bytes] = content[at : at + row_bytes]


def _calls_by_rows(plan: Plan) -> Mapping[tuple[int, int], RowCall]:
    """The calls of steps that make rows, by the step and how many calls of it come before."""
    calls = [call for run in row_runs(plan) for call in run.calls or ()]
    return {(call.step.index, call.number): call for call in calls if call.step.rows is not None}
