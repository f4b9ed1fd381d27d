"""Which rows of its inputs a kernel needs for a row of its output, where it makes its output row by row.

Such a kernel takes `row_begin` and `row_end`, and runs each of its sweeps over the rows between them, every row for
itself: it stores to that row alone, keeps nothing from one row to the next, and reads a window of rows of each input
that moves with it. Then any order of calls that makes each row once gives what one call for all rows gives, as long as
the rows under the window are there; so a caller may make a row when the next kernel needs it, and keep few of them.

All of it is read off the loops: rows are those of the axis that moves with the loop over rows. The row of a read may be
kept within numbers, as in `input[max(y - 1, 0), c]`: the window then reaches to the row that is read in others' place.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import prod

from bytewright import ir
from bytewright.ir.analyses.affine import Definitions, Form
from bytewright.ir.analyses.ranges import Range
from bytewright.ir.remember import remembered
from bytewright.ir.walk import evaluated, regions

ROW_BEGIN, ROW_END = "row_begin", "row_end"


@dataclass(frozen=True, slots=True)
class RowWindow:
    """The rows of an input that row `r` of the output needs: `stride * r + first` to `stride * r + last`, inclusive.

    Rows before the first one of the input and after the last one are not read.
    """

    stride: int
    first: int
    last: int

    @property
    def num_rows(self) -> int:
        """Its height."""
        return self.last - self.first + 1


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
    reader = _Reader(given, outputs[0].name, carries, own=scratch)
    try:
        reader.sequence(kernel.body)
    except _NotByRowsError:
        return None
    return reader.found()


def _is_scratch(parameter: ir.BufferParameter) -> bool:
    return parameter.role is ir.ParameterRole.SCRATCH


class _NotByRowsError(Exception):
    """Something in a kernel is done otherwise than row by row."""


@dataclass(slots=True)
class _Reader:
    """Reads a body.

    Attributes:
        carries: Whether scratch may hold something from one row to the next. Constants may then be named, too.
        bounds: Names of variables that are one end of the rows that are asked for: of `row_begin`, or of `row_end`.
        row: The variable of the loop over rows around the statement.
        own: Buffers that were allocated for one row.
        views: What they show.
        windows: By input; None for one that is read otherwise.
        highest: By input: the last row of it that is read in the place of others behind.
    """

    parameters: Mapping[str, ir.Buffer]
    output: str
    carries: bool
    definitions: Definitions = field(default_factory=Definitions)
    ranges: dict[str, Range] = field(default_factory=dict[str, Range])
    bounds: dict[str, str] = field(default_factory=lambda: {ROW_BEGIN: ROW_BEGIN, ROW_END: ROW_END})
    row: str | None = None
    own: set[str] = field(default_factory=set[str])
    views: dict[str, ir.View] = field(default_factory=dict[str, ir.View])
    axes: dict[str, int] = field(default_factory=dict[str, int])
    windows: dict[str, RowWindow | None] = field(default_factory=dict[str, RowWindow | None])
    highest: dict[str, int] = field(default_factory=dict[str, int])

    def found(self) -> RowAccess | None:
        if self.output not in self.axes:
            return None
        windows = {
            name: self._with_highest(name, window)
            for name, window in self.windows.items()
            if window is not None
        }
        axes = {name: axis for name, axis in self.axes.items() if name == self.output or name in windows}
        return RowAccess(self.output, axes, windows)

    def _with_highest(self, name: str, window: RowWindow) -> RowWindow:
        """The window with the row that its last rows read in the place of others behind."""
        highest = self.highest.get(name)
        num_rows = ir.upper_bound(self.parameters[self.output].shape[self.axes[self.output]])
        if highest is None or window.stride * (num_rows - 1) + window.last <= highest:
            return window
        return replace(window, first=min(window.first, highest - window.stride * (num_rows - 1)))

    def sequence(self, sequence: ir.Seq) -> None:
        for statement in sequence.statements:
            self._statement(statement)

    def _statement(self, statement: ir.Statement) -> None:
        for node in evaluated(statement):
            if isinstance(node, ir.Load):
                self._read(node.buffer, node.indices)
            elif isinstance(node, ir.Var) and node.name in self.bounds and not self._is_of_bounds(statement):
                raise _NotByRowsError  # what it does depends on which rows are asked for together
        match statement:
            case ir.Seq():
                self.sequence(statement)
            case ir.For():
                self._loop(statement)
            case ir.If():
                self.sequence(statement.then)
                if statement.otherwise is not None:
                    self.sequence(statement.otherwise)
            case ir.Let(variable=variable, value=value):
                bound = self._bound(value)
                if bound is not None:
                    self.bounds[variable.name] = bound
                self.definitions.define(variable, value)
            case ir.Allocate(buffer=buffer):
                if self.row is not None or self.carries:
                    self.own.add(buffer.name)
            case ir.View(buffer=buffer):
                self.views[buffer.name] = statement
            case ir.Store(buffer=buffer, indices=indices):
                self._written(buffer, indices)
            case ir.Call():
                if regions(statement):  # what a callee does is not looked into
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

    def _loop(self, loop: ir.For) -> None:
        if self._is_of_bounds(loop):
            if self.row is not None:
                raise _NotByRowsError
            self.row = loop.variable.name
            self.sequence(loop.body)
            self.row = None
            return
        begin, end = (self.definitions.range_of(bound, self.ranges) for bound in (loop.begin, loop.end))
        self.ranges.pop(loop.variable.name, None)
        if begin is not None and end is not None:
            self.ranges[loop.variable.name] = (begin[0], max(begin[0], end[1] - 1))
        self.sequence(loop.body)

    def _written(self, buffer: ir.Buffer, indices: tuple[ir.Expr, ...]) -> None:
        if buffer.name in self.own:
            return
        if buffer.name != self.output or self.row is None:
            raise _NotByRowsError
        axis, row = self._row_of(buffer, indices)
        if axis is None or row != _RowIndex(Form(0, ((self.row, 1),))):
            raise _NotByRowsError
        if self.axes.get(buffer.name, axis) != axis:
            raise _NotByRowsError
        self.axes[buffer.name] = axis

    def _row_of(self, buffer: ir.Buffer, indices: tuple[ir.Expr, ...]) -> tuple[int | None, "_RowIndex"]:
        """The axis whose index moves with the row, and that index; no axis if there is none, or rows are in parts."""
        moving: list[tuple[int, _RowIndex]] = []
        for axis, index in enumerate(indices):
            found = self._kept_within(index)
            if found is None and self.row in self.definitions.variables_of(index):
                raise _NotByRowsError
            if found is not None and any(name == self.row for name, _ in found.form.terms):
                moving.append((axis, found))
        if len(moving) > 1:
            raise _NotByRowsError
        if not moving or prod(map(ir.upper_bound, buffer.shape[: moving[0][0]])) != 1:
            return None, _RowIndex(Form(0))
        return moving[0]

    def _kept_within(self, index: ir.Expr) -> "_RowIndex | None":
        """An index as a sum that is kept within numbers, if it is one."""
        form = self.definitions.form(index)
        if form is not None:
            return _RowIndex(form)
        match index:
            case ir.Var(name=name) if name in self.definitions.values:
                return self._kept_within(self.definitions.values[name])
            case ir.Binary(operator=ir.BinaryOperator.MIN | ir.BinaryOperator.MAX, left=left, right=right):
                number, other = (left, right) if isinstance(left, ir.Const) else (right, left)
                inner = self._kept_within(other) if isinstance(number, ir.Const) else None
                if inner is None or not isinstance(number, ir.Const) or not isinstance(number.value, int):
                    return None
                return inner.kept(number.value, is_least=index.operator is ir.BinaryOperator.MAX)
            case _:
                return None

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
        axis, row = (None, None) if self.row is None else self._row_of(buffer, indices)
        is_in_row = axis is not None and self._is_in_row(buffer, indices, axis, length)
        self._note(buffer, axis, row if is_in_row else None)

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
        known = self.definitions.range_of(first, self.ranges)
        return known is not None and known[0] >= 0 and known[1] + length <= prod(map(ir.upper_bound, inner))

    def _note(self, buffer: ir.Buffer, axis: int | None, row: "_RowIndex | None") -> None:
        """Widens the window of an input by what is read; without a row there is none."""
        name = buffer.name
        known = self.windows.get(name)
        self.windows[name] = None
        if row is None or axis is None or self.row is None or (name in self.axes and known is None):
            self.axes.setdefault(name, -1)
            return
        stride = dict(row.form.terms)[self.row]
        span = row.form.plus(Form(0, ((self.row, stride),)), -1).range_in(self.ranges)
        is_new = name not in self.axes
        if (
            span is None
            or stride < 1
            or not (is_new or (self.axes[name] == axis and known and known.stride == stride))
        ):
            self.axes.setdefault(name, -1)
            return
        first, last = span
        if row.least is not None and first < row.least:  # which the first rows read instead
            last = max(last, row.least)
        if row.most is not None:  # and the last ones this; the output's rows are not known yet
            self.highest[name] = min(row.most, self.highest.get(name, row.most))
        if known is not None:
            first, last = min(known.first, first), max(known.last, last)
        self.axes[name], self.windows[name] = axis, RowWindow(stride, first, last)


@dataclass(frozen=True, slots=True)
class _RowIndex:
    """The row of an access: a sum, kept within numbers where these are given."""

    form: Form
    least: int | None = None
    most: int | None = None

    def kept(self, number: int, *, is_least: bool) -> "_RowIndex":
        """The same, at least or at most a number besides."""
        if is_least:
            least = number if self.least is None else max(self.least, number)
            return replace(self, least=least, most=None if self.most is None else max(self.most, number))
        most = number if self.most is None else min(self.most, number)
        return replace(self, most=most, least=None if self.least is None else min(self.least, number))
