"""The loops of an entry that takes its input row by row: what runs when a row has come.

The first statement of such an entry that is more than a declaration is a nest of loops, each of which begins with the
next one, and the innermost with the step that takes a row. So the nest is one sequence of passes of its innermost
loop, a row a pass; behind a pass that ends an inner loop comes what stands behind that in the outer one. Before the
first row and after the last one there may be passes that take none.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

from bytewright.diagnostics import InternalError
from bytewright.ir.address import upper_bound
from bytewright.ir.analyses.affine import Definitions
from bytewright.ir.expr import Buffer, Const, Expr
from bytewright.ir.prim import Allocate, Call, For, PrimFunc, Region, Statement


@dataclass(frozen=True, slots=True)
class RowLoops:
    """The loops, and what is behind them.

    Attributes:
        before: Declarations.
        loops: The nest, the outermost first.
        after: The statements behind it.
        take: The step that takes a row.
        image: The input,
        axis: and the one of its axes that counts rows.
        first_row: The row that the first pass takes: 0, or less where it takes none.
    """

    before: tuple[Statement, ...]
    loops: tuple[For, ...]
    after: tuple[Statement, ...]
    take: Call
    image: Buffer
    axis: int
    first_row: int

    @property
    def num_rows(self) -> int:
        """Rows of the input."""
        return upper_bound(self.image.shape[self.axis])

    @property
    def turns(self) -> tuple[int, ...]:
        """How often each loop runs each time."""
        return tuple(_number(loop.end) for loop in self.loops)

    @property
    def end_row(self) -> int:
        """The row that a pass after the last one would take."""
        return self.first_row + prod(self.turns)


def row_loops(entry: PrimFunc) -> RowLoops:
    """The loops of an entry whose segment takes the input's rows.

    Raises:
        InternalError: It is no such entry.
    """
    statements = entry.body.statements
    at = next((i for i, statement in enumerate(statements) if not isinstance(statement, Allocate)), 0)
    loops = tuple(_nest(statements[at]))
    take = loops[-1].body.statements[0] if loops else None
    if not isinstance(take, Call) or any(loop.begin != Const(0, loop.begin.dtype) for loop in loops):
        raise InternalError(f"entry '{entry.name}' does not begin with loops over rows of its input")
    source, destination, row = (take.arguments[i] for i in range(3))
    if not isinstance(source, Region) or not isinstance(destination, Region) or not isinstance(row, Expr):
        raise InternalError(f"'{take.callee}' is no step that takes a row")
    rows = destination.buffer.rows
    if rows is None:
        raise InternalError(f"'{destination.buffer.name}' is no ring")
    found = RowLoops(
        statements[:at], loops, statements[at + 1 :], take, source.buffer, rows.axis, _first(row)
    )
    _require_rows_in_order(found, row)
    return found


def _nest(statement: Statement) -> Iterator[For]:
    while isinstance(statement, For):
        yield statement
        statement = statement.body.statements[0]


def _number(expression: Expr) -> int:
    if not isinstance(expression, Const):
        raise InternalError("a loop over rows does not run a fixed number of times")
    return int(expression.value)


def _first(row: Expr) -> int:
    form = Definitions().form(row)
    if form is None:
        raise InternalError("the rows of the input are not in order")
    return form.constant


def _require_rows_in_order(found: RowLoops, row: Expr) -> None:
    """Each pass takes the row after that of the pass before."""
    form = Definitions().form(row)
    inner = [prod(found.turns[i + 1 :]) for i in range(len(found.turns))]
    wanted = {loop.variable.name: step for loop, step in zip(found.loops, inner, strict=True)}
    if form is None or dict(form.terms) != wanted or not found.first_row <= 0:
        raise InternalError("the rows of the input are not in order")
