"""Random programs with loops over rows and rings, in between of what `random_programs` draws.

A chain of kernels makes tensors row by row in loops of the entry, each through a window of rows of the one before.
Which calls make which rows and how many of them a ring keeps is computed so that each row is there when it is read; in
some programs it is then changed by one, which a compile has to notice.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from bytewright.ir.expr import (
    Binary,
    BinaryOperator,
    Buffer,
    Expr,
    Load,
    RingRows,
    Select,
    Var,
    cast,
    const,
    maximum,
    minimum,
)
from bytewright.ir.module import Module
from bytewright.ir.prim import (
    Access,
    Allocate,
    Call,
    For,
    If,
    Let,
    PrimFunc,
    Region,
    ScalarParameter,
    Seq,
    Statement,
    Store,
)
from bytewright.ir.rewrite import Rewriting, rewrite_function
from bytewright.ir.scope import GLOBAL, LOCAL
from bytewright.ir.storage import Storage
from bytewright.ir.types import DType
from support.random_programs import LIMIT, RandomProgram

_INTEGERS = (DType.I8, DType.U8, DType.I16, DType.I32)
_BEGIN, _END = Var("row_begin", DType.I32), Var("row_end", DType.I32)


@dataclass(frozen=True)
class _Stage:
    """A tensor of the chain.

    Attributes:
        buffer: It.
        pace: Rows that a turn makes.
        lag: Turn `n` makes rows `pace * n - lag` and on.
    """

    buffer: Buffer
    pace: int
    lag: int

    @property
    def rows(self) -> int:
        return int(self.buffer.shape[-2])  # type: ignore[arg-type]


@dataclass(frozen=True)
class _Window:
    """Rows `stride * r + first` to `stride * r + last` of the source."""

    stride: int
    first: int
    last: int


class RandomRowProgram(RandomProgram):
    """Draws one program; the same for the same seed.

    Attributes:
        is_changed: Whether something about rows was changed by one on purpose, which may be wrong or not.
    """

    is_changed = False

    def step(self, tensors: list[Buffer]) -> list[Statement]:
        return self.chain(tensors) if self.chance(60) else super().step(tensors)

    def ending(self, tensors: Sequence[Buffer], output: Buffer) -> list[Statement]:
        if len(output.shape) == 2 and output.dtype in _INTEGERS:
            return self.chain(tensors, output)
        return super().ending(tensors, output)

    @staticmethod
    def fits(kernel: PrimFunc, inputs: Sequence[Buffer], output: Buffer) -> bool:
        """Kernels of rows are called by their loops alone: elsewhere there are no rings, and rows would be left out."""
        return ScalarParameter(_BEGIN) not in kernel.parameters and RandomProgram.fits(kernel, inputs, output)

    def changed(self, number: int, percent: int = 6) -> int:
        """The number, or one that is off by one."""
        if not self.chance(percent):
            return number
        self.is_changed = True
        return number + self.pick((-1, 1))

    def rows_buffer(self, stem: str, rows: int, columns: int, rank: int) -> Buffer:
        buffer = Buffer(self.fresh(stem), (1, rows, columns)[-rank:], dtype := self.pick(_INTEGERS), 1)
        self.scopes[buffer.name] = GLOBAL
        return replace(buffer, alignment=dtype.size_bytes)

    def chain(self, tensors: Sequence[Buffer], output: Buffer | None = None) -> list[Statement]:
        """A whole tensor, one to three kernels behind each other in a loop, and what the last of them makes."""
        columns, rank = self.random.randint(1, 3), 2 if output is not None else self.pick((2, 2, 3))
        first = self.rows_buffer("whole", self.random.randint(1, 9), columns, rank)
        statements: list[Statement] = [
            Allocate(first, Storage(GLOBAL)),
            self.call(self.chosen(tensors), first),
        ]
        windows = [self.window() for _ in range(self.random.randint(1, 3))]
        stages = self.stages(first, windows, output)
        calls: list[list[Statement]] = []
        rings: list[Allocate] = []
        turn = Var(self.fresh("turn"), DType.I32)
        for number, window in enumerate(windows):
            is_last = number == len(windows) - 1
            if not is_last:
                stages[number + 1] = self.ring(stages[number + 1], windows[number + 1], stages[number + 2])
            if not is_last or output is None:
                rings.append(Allocate(stages[number + 1].buffer, Storage(GLOBAL)))
            calls.append(self.rows_call(stages[number].buffer, stages[number + 1], window, turn))
        num_turns = max(-(-(stage.rows + stage.lag) // stage.pace) for stage in stages[1:])
        body = [statement for call in calls for statement in call]
        loop: Statement = For(turn, const(0), const(self.changed(num_turns)), Seq(tuple(body)))
        if self.chance(15):  # all of it again, with rings of its own or not
            again = Var(self.fresh("again"), DType.I32)
            inside = rings[:-1] if output is None else rings
            if self.chance(50):
                rings = [ring for ring in rings if ring not in inside]
                loop = For(again, const(0), const(2), Seq((*inside, loop)))
            else:
                loop = For(again, const(0), const(2), Seq((loop,)))
        if output is None and isinstance(tensors, list):
            tensors.append(stages[-1].buffer)
        return [*statements, *rings, loop]

    def window(self) -> _Window:
        stride = self.pick((1, 1, 1, 2))
        first = self.random.randint(-2, 1)
        return _Window(stride, first, first + self.below(3))

    def stages(self, first: Buffer, windows: Sequence[_Window], output: Buffer | None) -> list[_Stage]:
        """The whole tensor, and what each kernel makes, with the rows of each turn."""
        rank = len(first.shape)
        pace = self.pick((1, 1, 2))
        for window in windows[1:]:
            pace *= window.stride
        found = [_Stage(first, 0, 0)]
        for number, window in enumerate(windows):
            rows, columns = found[-1].rows, int(first.shape[-1])  # type: ignore[arg-type]
            rows = max(1, -(-rows // window.stride) + self.pick((-1, 0, 0, 0, 1)))
            lag = 0
            if number:
                before = found[-1]
                pace //= window.stride
                last = max(window.last, 0)  # the first rows may read row 0 in the place of others
                lag = max(0, -(-(before.lag + 1 + last - window.stride) // window.stride))
                lag = max(0, self.changed(lag + (self.pick((0, 0, 1)))))
            is_last = number == len(windows) - 1
            made = output if is_last and output is not None else self.rows_buffer("rows", rows, columns, rank)
            found.append(_Stage(made, pace, lag))
        return found

    def ring(self, made: _Stage, window: _Window, reader: _Stage) -> _Stage:
        """What keeps as many rows of a tensor as its reader needs, or all."""
        if self.chance(15):
            return made
        # From the first row that a call of the reader needs to the last that was made by then. The reader's last rows
        # may read the last row in the place of others.
        first = min(window.first, made.rows - 1 - window.stride * (reader.rows - 1))
        needed = made.pace - made.lag + window.stride * reader.lag - first
        size = self.changed(max(1, made.pace, needed))
        if not 1 <= size <= made.rows:
            return made
        rows = RingRows(len(made.buffer.shape) - 2, size)
        return replace(made, buffer=replace(made.buffer, rows=rows))

    def rows_call(self, source: Buffer, made: _Stage, window: _Window, turn: Var) -> list[Statement]:
        """The call that makes the rows of a turn."""
        kernel = self.rows_kernel(source, made.buffer, window)
        begin = turn * made.pace - made.lag if made.lag else turn * made.pace
        length = self.changed(made.pace, 2)
        statements: list[Statement] = []
        if self.chance(25):
            name = Var(self.fresh("at"), DType.I32)
            statements.append(Let(name, begin))
            begin = name
        call = Call(kernel.name, (Region(source), Region(made.buffer), begin, begin + length), operators=())
        if self.chance(12) and made.lag:  # turns that would make none are left out
            return [
                *statements,
                If(Binary(BinaryOperator.GE, turn, const(made.lag // made.pace)), Seq((call,))),
            ]
        return [*statements, call]

    def rows_kernel(self, source: Buffer, made: Buffer, window: _Window) -> PrimFunc:
        """A kernel whose rows are sums of rows of its input under a window."""
        given, out = replace(source, name=self.fresh("in")), replace(made, name=self.fresh("out"))
        row, column = Var(self.fresh("r"), DType.I32), Var(self.fresh("c"), DType.I32)
        total = Buffer(self.fresh("sum"), (), DType.I32, 4)
        rows, columns = int(made.shape[-2]), int(made.shape[-1])  # type: ignore[arg-type]
        front = tuple(const(0) for _ in made.shape[:-2])
        terms: list[Statement] = [Store(total, (), const(self.random.randint(-9, 9)))]
        for offset in range(window.first, window.last + 1):
            terms += self.term(given, (*front, row * window.stride + offset), column, total)
        low, high = (0, LIMIT) if made.dtype is DType.U8 else (-LIMIT, LIMIT)
        result = cast(minimum(maximum(Load(total, ()), low), high), made.dtype)
        store = Store(out, (*front, row, column), result)
        sweep = For(column, const(0), const(columns), Seq((Allocate(total, Storage(LOCAL)), *terms, store)))
        begin: Expr = maximum(_BEGIN, const(0))
        end: Expr = minimum(_END, const(rows))
        statements: list[Statement] = []
        if self.chance(60):
            first, last = Var(self.fresh("first"), DType.I32), Var(self.fresh("last"), DType.I32)
            statements = [Let(first, begin), Let(last, end)]
            begin, end = first, last
        statements.append(For(row, begin, end, Seq((sweep,))))
        parameters = (
            self.given(given, Access.READ),
            self.given(out, Access.WRITE),
            ScalarParameter(_BEGIN),
            ScalarParameter(_END),
        )
        kernel = PrimFunc(f"{self.name}_{self.fresh('k')}", parameters, Seq(tuple(statements)))
        self.kernels.append(kernel)
        return kernel

    def term(self, given: Buffer, indices: tuple[Expr, ...], column: Var, total: Buffer) -> list[Statement]:
        """Adds a row of the input, as far as it exists."""
        rows, columns = int(given.shape[-2]), int(given.shape[-1])  # type: ignore[arg-type]
        at = Binary(BinaryOperator.MOD, column + self.below(2), const(columns))
        factor = self.pick((1, 1, 2, -1))
        front, row = indices[:-1], indices[-1]

        def added(index: Expr) -> Statement:
            load = cast(Load(given, (*front, index, at)), DType.I32)
            bounded = minimum(maximum(load, -LIMIT), LIMIT)
            return Store(total, (), Load(total, ()) + bounded * factor)

        within = Binary(
            BinaryOperator.LOGICAL_AND,
            Binary(BinaryOperator.GE, row, const(0)),
            Binary(BinaryOperator.LT, row, const(rows)),
        )
        match self.below(4):
            case 0:
                return [added(minimum(maximum(row, const(0)), const(rows - 1)))]
            case 1:
                name = Var(self.fresh("q"), DType.I32)
                condition = replace(within, left=_with(within.left, name), right=_with(within.right, name))
                return [Let(name, row), If(condition, Seq((added(name),)))]
            case 2 if rows * columns > 1:
                load = Load(given, (*front, row, at))
                value = Select(within, cast(load, DType.I32), const(0))
                return [Store(total, (), Load(total, ()) + value)]
            case _:
                return [If(within, Seq((added(row),)))]


def _with(comparison: Expr, left: Expr) -> Expr:
    assert isinstance(comparison, Binary)
    return replace(comparison, left=left)


def without_rings(module: Module) -> Module:
    """The program with every tensor whole."""

    def whole(function: PrimFunc) -> PrimFunc:
        return rewrite_function(function, Rewriting(buffer=lambda buffer: replace(buffer, rows=None)))

    return replace(
        module, kernels=tuple(map(whole, module.kernels)), entries=tuple(map(whole, module.entries))
    )
