"""Which rows of its inputs a kernel needs for a row of its output, where it makes its output row by row.

Such a kernel takes `row_begin` and `row_end`, and runs each of its sweeps over the rows between them, every row for
itself: it stores to that row alone, keeps nothing from one row to the next, and reads a window of rows of each input
that moves with it. Then any order of calls that makes each row once gives what one call for all rows gives, as long as
the rows under the window are there; so a caller may make a row when the next kernel needs it, and keep few of them.

All of it is read off the loops: rows are those of the axis that moves with the loop over rows. The row of a read may be
kept within numbers, as in `input[max(y - 1, 0), c]`: the window then reaches to the row that is read in others' place.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from math import gcd, prod

from bytewright import ir
from bytewright.ir.analyses.affine import Form, Forms, Quotient
from bytewright.ir.analyses.ranges import Range
from bytewright.ir.remember import remembered
from bytewright.ir.walk import evaluated, operands, regions

ROW_BEGIN, ROW_END = "row_begin", "row_end"


@dataclass(frozen=True, slots=True)
class RowWindow:
    """The rows of an input that row `r` of the output needs, both ends included.

    They are `stride * r + first` to `stride * r + last`, divided by the divisor and rounded down; stride and divisor
    have no common factor. Rows before the first one of the input and after the last one are not read.
    """

    stride: int
    first: int
    last: int
    divisor: int = 1

    def rows(self, row: int) -> range:
        """Those that one row needs."""
        first, last = ((self.stride * row + offset) // self.divisor for offset in (self.first, self.last))
        return range(first, last + 1)


def reduced(window: RowWindow) -> RowWindow:
    """The same rows, without a common factor of stride and divisor."""
    common = gcd(window.stride, window.divisor)
    return RowWindow(
        window.stride // common,
        window.first // common,
        window.last // common,
        window.divisor // common,
    )


@dataclass(frozen=True, slots=True)
class RowAccess:
    """How a kernel goes about rows.

    Attributes:
        output: The name of the parameter that it writes.
        axes: The axis that counts rows, of the output and of each input with a window.
        windows: By the names of input parameters. An input without one is needed as a whole by every row.
    """

    output: str
    axes: Mapping[str, int]
    windows: Mapping[str, RowWindow]


@remembered
def row_access(kernel: ir.PrimFunc) -> RowAccess | None:
    """How a kernel goes about rows; None if it does not make its output row by row, each row for itself."""
    is_given_scratch = any(map(_is_scratch, kernel.buffer_parameters))
    return None if is_given_scratch else _row_access(kernel, carries=False)


@remembered
def row_windows(kernel: ir.PrimFunc) -> RowAccess | None:
    """The same of a kernel that may hold something in scratch from one row of a call to the next.

    It is what it was before storage made parameters of allocations and of constants.
    """
    return _row_access(kernel, carries=True)


def _row_access(kernel: ir.PrimFunc, *, carries: bool) -> RowAccess | None:
    outputs = [
        p.buffer for p in kernel.buffer_parameters if p.access is not ir.Access.READ and not _is_scratch(p)
    ]
    scalars = [p.variable.name for p in kernel.parameters if isinstance(p, ir.ScalarParameter)]
    if kernel.is_opaque or len(outputs) != 1 or scalars != [ROW_BEGIN, ROW_END]:
        return None
    scratch = {p.name for p in kernel.buffer_parameters if _is_scratch(p)}
    given = {p.name: p.buffer for p in kernel.buffer_parameters if p.name not in scratch}
    constants = {p.name for p in kernel.buffer_parameters if p.role is ir.ParameterRole.PARAMETER}
    reader = _Reader(
        parameters=given, constants=constants, output=outputs[0].name, carries=carries, own=scratch
    )
    try:
        reader.run(kernel.body)
    except _NotByRowsError:
        return None
    return reader.found()


def _is_scratch(parameter: ir.BufferParameter) -> bool:
    return parameter.role is ir.ParameterRole.SCRATCH


class _NotByRowsError(Exception):
    """Something in a kernel is done otherwise than row by row."""


@dataclass(slots=True, kw_only=True)
class _Reader(Forms):
    """Reads a body.

    Attributes:
        constants: Names of those parameters that are.
        carries: Whether scratch may hold something from one row to the next. Constants may then be named, too.
        bounds: Names of variables that are one end of the rows that are asked for: of `row_begin`, or of `row_end`.
        row: The variable of the loop over rows around the statement.
        own: Buffers that were allocated for one row.
        views: What they show.
        windows: By input, not reduced yet; None for one that is read otherwise.
        limits: By input that has a window: the greatest `stride * r + first` of a row that is kept inside the input.
    """

    parameters: Mapping[str, ir.Buffer]
    constants: set[str]
    output: str
    carries: bool
    bounds: dict[str, str] = field(default_factory=lambda: {ROW_BEGIN: ROW_BEGIN, ROW_END: ROW_END})
    row: str | None = None
    own: set[str] = field(default_factory=set[str])
    views: dict[str, ir.View] = field(default_factory=dict[str, ir.View])
    axes: dict[str, int] = field(default_factory=dict[str, int])
    windows: dict[str, RowWindow | None] = field(default_factory=dict[str, RowWindow | None])
    limits: dict[str, int] = field(default_factory=dict[str, int])

    def found(self) -> RowAccess | None:
        if self.output not in self.axes:
            return None
        axis = self.axes[self.output]
        last_row = ir.upper_bound(self.parameters[self.output].shape[axis]) - 1
        windows = {
            name: reduced(self._limited(name, window, last_row))
            for name, window in self.windows.items()
            if window is not None
        }
        axes = {name: axis for name, axis in self.axes.items() if name == self.output or name in windows}
        return RowAccess(self.output, axes, windows)

    def _limited(self, name: str, window: RowWindow, last_row: int) -> RowWindow:
        """The window with the last row of the input that stands for those behind it, as far down as there are rows."""
        limit = self.limits.get(name)
        if limit is None:
            return window
        return replace(window, first=min(window.first, limit - window.stride * last_row))

    def evaluate(self, statement: ir.Statement) -> None:
        """Reads what the statement loads; which rows are asked for together must not count."""
        for node in evaluated(statement):
            if isinstance(node, ir.Load):
                self._read(node.buffer, node.indices)
            elif isinstance(node, ir.Var) and node.name in self.bounds and not self._is_of_bounds(statement):
                raise _NotByRowsError

    def define(self, let: ir.Let) -> None:
        """A name for an end of the rows, or for another number."""
        bound = self._bound(let.value)
        if bound is not None:
            self.bounds[let.variable.name] = bound
        Forms.define(self, let)

    def allocate(self, allocate: ir.Allocate) -> None:
        """What is allocated for one row is its own."""
        if self.row is not None or self.carries:
            self.own.add(allocate.buffer.name)

    def show(self, view: ir.View) -> None:
        """What is read of a view is read of what it shows."""
        self.views[view.buffer.name] = view

    def store(self, store: ir.Store) -> None:
        """What is no row's own is the output, in its row."""
        if store.buffer.name in self.own:
            return
        if store.buffer.name != self.output or self.row is None:
            raise _NotByRowsError
        axis, index = self._row_of(store.buffer, store.indices)
        is_row = index == Quotient(Form(0, ((self.row, 1),)))
        if axis is None or not is_row or self.axes.get(store.buffer.name, axis) != axis:
            raise _NotByRowsError
        self.axes[store.buffer.name] = axis

    def execute(self, call: ir.InstructionCall) -> None:
        """Of one that touches registers alone: they are a row's own, or read before."""
        if call.touches_memory:
            self.run(call)
            return
        self.evaluate(call)
        for buffer in call.read:
            self._read(buffer, ())
        if any(buffer.name not in self.own for buffer in call.written):
            raise _NotByRowsError

    def call(self, call: ir.Call) -> None:
        """What a callee does is not looked into."""
        if regions(call):
            raise _NotByRowsError

    def _bound(self, value: ir.Expr) -> str | None:
        """Which end of the rows that are asked for a number is: one of them, or the nearer one of it and a number."""
        match value:
            case ir.Var(name=name):
                return self.bounds.get(name)
            case ir.Binary(operator=ir.BinaryOperator.MAX, left=left, right=ir.Const()):
                return ROW_BEGIN if self._bound(left) == ROW_BEGIN else None
            case ir.Binary(operator=ir.BinaryOperator.MIN, left=left, right=ir.Const()):
                return ROW_END if self._bound(left) == ROW_END else None
            case _:
                return None

    def _is_of_bounds(self, statement: ir.Statement) -> bool:
        """Whether a statement only loops over the rows that are asked for, or names an end of them."""
        match statement:
            case ir.For(begin=begin, end=end):
                return (self._bound(begin), self._bound(end)) == (ROW_BEGIN, ROW_END)
            case ir.Let(value=value):
                return self._bound(value) is not None
            case _:
                return False

    def turns(self, loop: ir.For) -> Iterator[None]:
        """One row for all, in the loop over rows; elsewhere all turns together."""
        if not self._is_of_bounds(loop):
            self.bind(loop)
            yield
            return
        if self.row is not None:
            raise _NotByRowsError
        self.row = loop.variable.name
        yield
        self.row = None

    def _row_of(self, buffer: ir.Buffer, indices: tuple[ir.Expr, ...]) -> tuple[int | None, Quotient]:
        """The axis whose index moves with the row, and that index; no axis if there is none, or rows are in parts.

        Nor is there one of a constant whose index moves otherwise than in steps, as with the remainder of the row.
        """
        moving: list[tuple[int, Quotient]] = []
        for axis, index in enumerate(indices):
            if self.row not in self._numbers_of(index):
                continue
            quotient = self.definitions.quotient(index, self._ranges_in_row())
            if quotient is not None:
                moving.append((axis, quotient))
            elif buffer.name not in self.constants:
                raise _NotByRowsError
        if len(moving) > 1:
            raise _NotByRowsError
        if not moving or prod(map(ir.upper_bound, buffer.shape[: moving[0][0]])) != 1:
            return None, Quotient(Form(0))
        return moving[0]

    def _numbers_of(self, index: ir.Expr) -> set[str]:
        """The variables that an index is computed from, without those of the places of data that it depends on."""
        form = self.definitions.form(index)
        if form is not None:
            return {name for name, _ in form.terms}
        if isinstance(index, ir.Load):
            return set()
        if isinstance(index, ir.Var):
            return self._numbers_of(self.definitions.values[index.name])
        return {name for operand in operands(index) for name in self._numbers_of(operand)}

    def _ranges_in_row(self) -> Mapping[str, Range]:
        """With that of the row, which its output has."""
        last_row = max(map(ir.upper_bound, self.parameters[self.output].shape), default=1) - 1
        return self.ranges if self.row is None else {**self.ranges, self.row: (0, last_row)}

    def _read(self, buffer: ir.Buffer, indices: tuple[ir.Expr, ...], length: int = 1) -> None:
        """A read of a parameter: of `length` elements in a row from the indices on."""
        view = self.views.get(buffer.name)
        if view is not None:
            for source in regions(view):
                self._read_through(view, source)
            return
        if buffer.name == self.output or not (buffer.name in self.parameters or self._may_name(buffer)):
            raise _NotByRowsError  # of what another row has left, perhaps
        if buffer.name not in self.parameters:
            return
        axis, index = (None, Quotient(Form(0))) if self.row is None else self._row_of(buffer, indices)
        self._note(
            buffer,
            axis,
            index if axis is not None and self._is_in_row(buffer, indices, axis, length) else None,
        )

    def _may_name(self, buffer: ir.Buffer) -> bool:
        """Whether something that is no parameter is its own, or a constant."""
        return buffer.name in self.own or self.carries

    def _read_through(self, view: ir.View, source: ir.Region) -> None:
        length = ir.num_elements(view.buffer)
        shown = self.views.get(source.buffer.name)
        if shown is None and source.buffer.name in self.parameters and source.indices:
            self._read(source.buffer, source.indices, length)
        elif shown is None and source.buffer.name in self.parameters and source.buffer.name != self.output:
            self._note(source.buffer, None, None)
        elif shown is not None or source.buffer.name == self.output or not self._may_name(source.buffer):
            raise _NotByRowsError

    def _is_in_row(self, buffer: ir.Buffer, indices: tuple[ir.Expr, ...], axis: int, length: int) -> bool:
        """Whether a run of elements ends in the row that it begins in."""
        inner = buffer.shape[axis + 1 :]
        last = max((i for i, index in enumerate(indices) if i > axis and index != ir.const(0)), default=axis)
        if length <= prod(map(ir.upper_bound, buffer.shape[last + 1 :])):
            return True
        first = ir.flat_index(ir.Buffer("row", inner, buffer.dtype), indices[axis + 1 :])
        known = self.range_of(first)
        return known is not None and known[0] >= 0 and known[1] + length <= prod(map(ir.upper_bound, inner))

    def _note(self, buffer: ir.Buffer, axis: int | None, index: Quotient | None) -> None:
        """Widens the window of an input by what is read; without an index there is none."""
        name = buffer.name
        known = self.windows.get(name)
        self.windows[name] = None
        window = None if index is None else self._window(index)
        is_new = name not in self.axes
        fits = is_new or (
            known is not None
            and window is not None
            and self.axes[name] == axis
            and (known.stride, known.divisor) == (window.stride, window.divisor)
        )
        if axis is None or index is None or window is None or not fits:
            self.axes.setdefault(name, -1)
            return
        if known is not None:
            window = replace(window, first=min(known.first, window.first), last=max(known.last, window.last))
        if index.high is not None:
            limit = (index.high + 1) * index.divisor - 1
            self.limits[name] = min(self.limits.get(name, limit), limit)
        self.axes[name], self.windows[name] = axis, window

    def _window(self, index: Quotient) -> RowWindow | None:
        """The rows that an index runs through; the least one that it is kept at counts from the first row on."""
        if self.row is None:
            return None
        stride = dict(index.numerator.terms)[self.row]
        span = index.numerator.plus(Form(0, ((self.row, stride),)), -1).range_in(self.ranges)
        if span is None or stride < 1:
            return None
        first, last = span
        if index.low is not None:
            last = max(last, index.low * index.divisor)
        return RowWindow(stride, first, last, index.divisor)
