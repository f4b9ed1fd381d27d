"""Has segments of steps run row by row: loops in their entry, rings for the tensors between the steps.

Each step of a segment becomes a call that makes one row, in the loops of the segment's schedule. Its kernel is told at
each call which row to make, which may be one that the tensor does not have: before the first turns of later kernels,
and after the last ones of earlier kernels. So the kernel is made to leave out rows that do not exist, and to find the
rows of rings in their slots. Everything else about it stays.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from bytewright import ir
from bytewright.base.c_names import unique_name
from bytewright.ir.analyses.arguments import buffer_arguments
from bytewright.ir.analyses.rows import ROW_BEGIN, ROW_END
from bytewright.ir.rewrite import Rewriting, rewrite_function, rewrite_sequence
from bytewright.ir.walk import calls, names_in, walk_statements
from bytewright.storage.rows.segment import Segment
from bytewright.storage.rows.steps import RowProgram, RowStep, read_rows

_Node = TypeVar("_Node", ir.Seq, ir.PrimFunc)


def fuse_rows(module: ir.Module, segments: Sequence[Segment]) -> ir.Module:
    """Returns the module with the steps of the segments in loops over rows.

    Args:
        module: Lowered; its entries have names of their own.
        segments: Of its steps, as `read_rows` numbers them, in order and apart from each other.
    """
    return _Fusing(module, segments).run() if segments else module


class _Fusing:
    """One run of the pass."""

    def __init__(self, module: ir.Module, segments: Sequence[Segment]) -> None:
        self.module, self.segments = module, segments
        self.program: RowProgram = read_rows(module)
        self.rings = {
            name: ir.RingRows(self.program.tensors[name].axis, rows)
            for segment in segments
            for name, rows in segment.rings.items()
        }
        self.kernels = {kernel.name: kernel for kernel in module.kernels}
        self.kernel_names = {*self.kernels, *(entry.name for entry in module.entries)}
        self.by_rows: dict[tuple[str, tuple[ir.RingRows | None, ...]], ir.PrimFunc] = {}

    def run(self) -> ir.Module:
        fused = tuple(self._fused())
        called = {call.callee for function in (*fused, *self.module.kernels) for call in calls(function)}
        kernels: list[ir.PrimFunc] = []
        for kernel in self.module.kernels:
            changed = [made for (name, _), made in self.by_rows.items() if name == kernel.name]
            kernels.extend([kernel, *changed] if kernel.name in called or not changed else changed)
        return replace(self.module, kernels=tuple(kernels), entries=fused)

    def _fused(self) -> Iterator[ir.PrimFunc]:
        """The entries, with the loops of each segment in the place of its first step."""
        number, pending = 0, list(self.segments)
        for entry in self.module.entries:
            variables, statements = set(names_in(entry)), list[ir.Statement]()
            for statement in entry.body.statements:
                count = sum(isinstance(inner, ir.Call) for inner in walk_statements(statement))
                segment = pending[0] if pending else None
                if segment is None or number + count <= segment.first or not count:
                    statements.append(statement)
                elif number + count == segment.end:
                    statements.append(self._loops(segment, variables))
                    pending.pop(0)
                number += count
            yield replace(entry, body=_with_rings(ir.Seq(tuple(statements)), self.rings))

    # Loops

    def _loops(self, segment: Segment, variables: set[str]) -> ir.For:
        """Those of a segment in an entry whose names are taken."""
        schedule = segment.schedule
        begin, end = schedule.turns
        falling = sorted(set(schedule.rates), reverse=True)
        turn = _variable("turn", variables)
        return ir.For(
            turn,
            ir.const(0),
            ir.const(end - begin),
            ir.Seq(tuple(self._turn(segment, falling, turn + begin, variables))),
            note=f"{segment.num_steps} steps row by row; rows that a tensor does not have are left out",
        )

    def _turn(
        self, segment: Segment, falling: list[int], run: ir.Expr, variables: set[str]
    ) -> Iterator[ir.Statement]:
        """One run of the slowest kernels: first the loop over the faster ones, then those themselves.

        Args:
            segment: Where they stand.
            falling: The rates, the fastest first.
            run: How often the slowest have run.
            variables: Names that the entry has.
        """
        *faster, rate = falling
        if faster:
            ratio, part = faster[-1] // rate, _variable("part", variables)
            body = tuple(self._turn(segment, faster, run * ratio + part, variables))
            yield ir.For(part, ir.const(0), ir.const(ratio), ir.Seq(body))
        for position, number in enumerate(range(segment.first, segment.end)):
            if segment.schedule.rates[position] == rate:
                yield self._call(self.program.steps[number], run + segment.schedule.leads[position])

    def _call(self, step: RowStep, row: ir.Expr) -> ir.Call:
        rows = iter((row, row + 1))
        arguments = tuple(next(rows) if isinstance(a, ir.Expr) else a for a in step.call.arguments)
        return replace(step.call, callee=self._kernel(step).name, arguments=arguments)

    # Kernels

    def _kernel(self, step: RowStep) -> ir.PrimFunc:
        """The kernel of a step, for the rings that it is given."""
        given = buffer_arguments(step.kernel, step.call)
        rings = {p.name: self.rings[r.buffer.name] for p, r in given if r.buffer.name in self.rings}
        key = (step.kernel.name, tuple(rings.get(p.name) for p in step.kernel.buffer_parameters))
        if key not in self.by_rows:
            name = unique_name(f"{step.kernel.name}_rows", self.kernel_names)
            kernel = _within(_with_rings(step.kernel, rings), step.num_rows)
            self.by_rows[key] = replace(kernel, name=name)
        return self.by_rows[key]


def _variable(name: str, taken: set[str]) -> ir.Var:
    return ir.Var(unique_name(name, taken), ir.DType.I32)


def _with_rings(node: _Node, rings: Mapping[str, ir.RingRows]) -> _Node:
    """A body, or a function, in which the buffers of some names are rings."""

    def ringed(buffer: ir.Buffer) -> ir.Buffer:
        return replace(buffer, rows=rings[buffer.name]) if buffer.name in rings else buffer

    rewriting = Rewriting(buffer=ringed)
    return (
        rewrite_function(node, rewriting)
        if isinstance(node, ir.PrimFunc)
        else rewrite_sequence(node, rewriting)
    )


def _within(kernel: ir.PrimFunc, num_rows: int) -> ir.PrimFunc:
    """The kernel with rows left out that its output does not have."""
    taken = set(names_in(kernel))
    begin, end = (ir.Var(unique_name(name, taken), ir.DType.I32) for name in ("first_row", "last_row"))
    named = {ROW_BEGIN: begin, ROW_END: end}

    def limited(expression: ir.Expr) -> ir.Expr:
        return named.get(expression.name, expression) if isinstance(expression, ir.Var) else expression

    body = rewrite_sequence(kernel.body, Rewriting(expression=limited))
    lets = (
        ir.Let(begin, ir.maximum(ir.Var(ROW_BEGIN, ir.DType.I32), ir.const(0))),
        ir.Let(end, ir.minimum(ir.Var(ROW_END, ir.DType.I32), ir.const(num_rows))),
    )
    return replace(kernel, body=ir.Seq((*lets, *body.statements)))
