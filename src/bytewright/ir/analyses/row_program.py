"""An entry as far as rows go: its calls, with the rows that each makes and needs, in its loops and branches.

What calls make is read off their kernels (`rows.py`); whether each row is there when it is read is for `row_replay.py`
to see.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from bytewright import ir
from bytewright.ir.analyses.affine import Definitions
from bytewright.ir.analyses.arguments import buffer_arguments, has_same_rows, scalar_arguments
from bytewright.ir.analyses.interpreter import Interpreter
from bytewright.ir.analyses.number_texts import NumberTexts
from bytewright.ir.analyses.row_replay import Arms, Node, Rows, Step, Turns, Window
from bytewright.ir.analyses.rows import row_windows
from bytewright.ir.walk import walk_statements


@dataclass(frozen=True, slots=True)
class RowProgram:
    """An entry.

    Attributes:
        nodes: Its calls, loops and branches.
        calls: By the numbers of their steps.
        slots: Of each ring that it allocates, how many rows that keeps.
    """

    nodes: tuple[Node, ...]
    calls: tuple[ir.Call, ...]
    slots: Mapping[str, int]


def row_program(module: ir.Module) -> RowProgram:
    """Reads the entry of a module that verifies."""
    reader = _Reader({kernel.name: kernel for kernel in module.kernels})
    reader.run(module.main.body)
    return RowProgram(tuple(reader.nodes), tuple(reader.calls), reader.slots)


def rows_of_call(kernel: ir.PrimFunc | None, call: ir.Call, numbers: Definitions) -> Rows | None:
    """The rows that a call makes and reads; None for one that makes its output as a whole, or not row by row.

    What is given a part of another buffer, or has other rows, has none to name there: an output is made as a
    whole then, and an input needed as a whole.
    """
    access = None if kernel is None else row_windows(kernel)
    if kernel is None or access is None:
        return None
    given = [
        (parameter.name, region.buffer)
        for parameter, region in buffer_arguments(kernel, call)
        if parameter.name in access.axes and has_same_rows(parameter, region, access.axes[parameter.name])
    ]
    output = next((buffer for name, buffer in given if name == access.output), None)
    if output is None:
        return None
    num_rows = ir.upper_bound(output.shape[access.axes[access.output]])
    begin, end = (NumberTexts(numbers).text(argument) for _, argument in scalar_arguments(kernel, call))
    if (begin, end) == (0, num_rows) and output.rows is None:
        return None
    windows = tuple(
        Window(
            buffer.name,
            ir.upper_bound(buffer.shape[access.axes[name]]),
            *(window.stride, window.first, window.last, window.divisor),
        )
        for name, buffer in given
        if (window := access.windows.get(name)) is not None
    )
    return Rows(output.name, num_rows, begin, end, windows)


@dataclass(slots=True)
class _Reader(Interpreter):
    """Keeps the nodes of the block that it is in."""

    kernels: Mapping[str, ir.PrimFunc]
    numbers: Definitions = field(default_factory=Definitions)
    calls: list[ir.Call] = field(default_factory=list[ir.Call])
    slots: dict[str, int] = field(default_factory=dict[str, int])
    nodes: list[Node] = field(default_factory=list[Node])

    def turns(self, loop: ir.For) -> Iterator[None]:
        """One node, with those of the body in it."""
        allocations = (s for s in walk_statements(loop.body) if isinstance(s, ir.Allocate))
        inside = tuple(allocation.buffer.name for allocation in allocations)
        texts = NumberTexts(self.numbers)
        ends = texts.text(loop.begin), texts.text(loop.end)
        outside, self.nodes = self.nodes, []
        yield
        outside.append(Turns(loop.variable.name, *ends, inside, tuple(self.nodes)))
        self.nodes = outside

    def arms(self, branch: ir.If) -> Iterator[ir.Seq]:
        """One node, with those of both arms in it."""
        outside, found = self.nodes, list[tuple[Node, ...]]()
        for arm in (branch.then, branch.otherwise or ir.Seq(())):
            self.nodes = []
            yield arm
            found.append(tuple(self.nodes))
        outside.append(Arms(NumberTexts(self.numbers).compared(branch.condition), *found))
        self.nodes = outside

    def define(self, let: ir.Let) -> None:
        """Rows are told in numbers that names stand for."""
        self.numbers.define(let.variable, let.value)

    def allocate(self, allocate: ir.Allocate) -> None:
        """A ring keeps so many rows."""
        if allocate.buffer.rows is not None:
            self.slots[allocate.buffer.name] = allocate.buffer.rows.num_rows

    def call(self, call: ir.Call) -> None:
        """One node."""
        self.nodes.append(self._step(call))

    def _step(self, call: ir.Call) -> Step:
        kernel, number = self.kernels.get(call.callee), len(self.calls)
        self.calls.append(call)
        if kernel is None:
            names = tuple(dict.fromkeys(a.buffer.name for a in call.arguments if isinstance(a, ir.Region)))
            return Step(number, names, names)
        given = [
            (parameter.access, region.buffer.name)
            for parameter, region in buffer_arguments(kernel, call)
            if parameter.role is not ir.ParameterRole.SCRATCH
        ]
        reads = dict.fromkeys(name for access, name in given if access is not ir.Access.WRITE)
        writes = dict.fromkeys(name for access, name in given if access is not ir.Access.READ)
        return Step(number, tuple(reads), tuple(writes), rows_of_call(kernel, call, self.numbers))
