"""The steps of the entries as far as rows go: which of them make rows, and which tensors could be rings between them.

A step may be part of a segment if its kernel makes its output row by row, and the step stands in no loop and no branch;
no segment goes from one entry to the next.
On which device it runs makes no difference: one of another device is handed over once a row. A tensor may be a ring if
the entry allocates it for itself, one step makes all of it, and the others read windows of its rows; whether all of
these are in one segment is for the segment to see.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

from bytewright import ir
from bytewright.ir.analyses.arguments import buffer_arguments, has_same_rows
from bytewright.ir.analyses.rows import RowAccess, RowWindow, row_access
from bytewright.ir.walk import named_buffers, walk_statements


@dataclass(frozen=True, slots=True)
class RowStep:
    """A step that makes rows.

    Attributes:
        number: Of the step on the clock.
        output: What it makes; None where that is a part of a buffer.
        num_rows: Rows of its output.
        reads: Windows of rows that it reads, by the buffer's name.
        axes: The axis by which it reads the rows of each of these.
        others: Names of buffers of which it reads anything else: all of it, or from some element on.
    """

    number: int
    call: ir.Call
    kernel: ir.PrimFunc
    access: RowAccess
    output: ir.Buffer
    num_rows: int
    reads: Mapping[str, RowWindow]
    axes: Mapping[str, int]
    others: frozenset[str]

    @property
    def axis(self) -> int:
        """The axis that counts the rows of its output."""
        return self.access.axes[self.access.output]


@dataclass(frozen=True, slots=True)
class Tensor:
    """What the entry allocates for itself, and could keep as a ring.

    Attributes:
        axis: The one that counts rows.
        row_bytes: Bytes of one row.
        maker: The step that makes it.
        readers: The steps that read it, in order, all of them by windows of rows.
    """

    buffer: ir.Buffer
    axis: int
    row_bytes: int
    maker: int
    readers: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class RowProgram:
    """The entries, one after the other.

    Attributes:
        num_steps: All of its steps.
        steps: Those that make rows, by their numbers.
        tensors: By the names of their buffers.
        barriers: Numbers of steps before which something stands that no loop may be put around, or an entry begins.
        taken: The tensor that the first step takes from the input row by row, which must be a ring; None if there is
            none.
    """

    num_steps: int
    steps: Mapping[int, RowStep]
    tensors: Mapping[str, Tensor]
    barriers: frozenset[int]
    taken: str | None = None


def read_rows(module: ir.Module, taken: str | None = None) -> RowProgram:
    """The steps of all entries, which have names of their own; `taken` as in what it returns."""
    kernels = {kernel.name: kernel for kernel in module.kernels}
    steps: dict[int, RowStep] = {}
    barriers: set[int] = set()
    own: dict[str, ir.Buffer] = {}
    number = 0
    for entry in module.entries:
        barriers.add(number)
        states = ir.border_buffers(entry, ir.Border.STATE)
        for statement in entry.body.statements:
            match statement:
                case ir.Call():
                    step = _row_step(number, statement, kernels.get(statement.callee))
                    # A state may have to be read to its end before its first row is overwritten.
                    if step is not None and step.output not in states:
                        steps[number] = step
                    number += 1
                case ir.Allocate(buffer=buffer, storage=storage):
                    if storage.border is None and storage.arena is None and storage.pinned_offset is None:
                        own[buffer.name] = buffer
                case _:
                    barriers.add(number)
                    number += sum(isinstance(inner, ir.Call) for inner in walk_statements(statement))
                    barriers.add(number)
    return RowProgram(number, steps, _tensors(module, steps, own), frozenset(barriers), taken)


def _row_step(number: int, call: ir.Call, kernel: ir.PrimFunc | None) -> RowStep | None:
    access = None if kernel is None else row_access(kernel)
    if kernel is None or access is None:
        return None
    reads: dict[str, RowWindow] = {}
    axes: dict[str, int] = {}
    others: set[str] = set()
    output: ir.Buffer | None = None
    for parameter, region in buffer_arguments(kernel, call):
        axis = access.axes.get(parameter.name)
        has_rows = axis is not None and has_same_rows(parameter, region, axis) and region.buffer.rows is None
        if parameter.name == access.output:
            output = region.buffer if has_rows else None
        elif parameter.name in access.windows and has_rows:
            name, window = region.buffer.name, access.windows[parameter.name]
            if name in reads:
                return None  # of one tensor under two names
            reads[name], axes[name] = window, access.axes[parameter.name]
        else:
            others.add(region.buffer.name)
    scalars = [argument for argument in call.arguments if isinstance(argument, ir.Expr)]
    if output is None or output.name in reads or output.name in others:
        return None
    num_rows = ir.upper_bound(output.shape[access.axes[access.output]])
    if scalars != [ir.const(0), ir.const(num_rows)]:
        return None
    return RowStep(number, call, kernel, access, output, num_rows, reads, axes, frozenset(others))


def _tensors(
    module: ir.Module, steps: Mapping[int, RowStep], own: Mapping[str, ir.Buffer]
) -> dict[str, Tensor]:
    """What one step makes, and others read by windows of rows; nothing else touches it."""
    num_uses = Counter(buffer.name for entry in module.entries for buffer in named_buffers(entry.body))
    makers = {step.output.name: step for step in steps.values()}
    readers_of: dict[str, list[int]] = {}
    for number, step in steps.items():
        for name in step.reads:
            readers_of.setdefault(name, []).append(number)
    found: dict[str, Tensor] = {}
    for name, buffer in own.items():
        maker, readers = makers.get(name), tuple(readers_of.get(name, ()))
        if maker is None or not readers or num_uses[name] != 1 + len(readers):
            continue
        if all(steps[number].axes[name] == maker.axis for number in readers):
            row_bytes = prod(map(ir.upper_bound, buffer.shape[maker.axis + 1 :])) * buffer.dtype.size_bytes
            found[name] = Tensor(buffer, maker.axis, row_bytes, maker.number, readers)
    return found
