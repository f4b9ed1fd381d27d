"""Builds bodies of PrimFuncs, so that templates of kernels read like the loops that they become.

A `BodyBuilder` holds the sequences that are open; leaving a `with` block closes one. Every name that it hands out
is unique within the function, whatever the block, because C compilers warn of shadowing and readers stumble on it.
"""

from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import replace

from bytewright.base.c_names import unique_name
from bytewright.diagnostics import InternalError
from bytewright.ir.expr import Buffer, Const, Expr, Load, Var, const
from bytewright.ir.prim import (
    Allocate,
    Call,
    CallKind,
    For,
    If,
    Instruction,
    Let,
    LoopKind,
    Region,
    Seq,
    Statement,
    Store,
    View,
    Work,
)
from bytewright.ir.rewrite import instruction_call
from bytewright.ir.scope import LOCAL
from bytewright.ir.storage import UNDECIDED, Storage
from bytewright.ir.types import DType, Extent
from bytewright.ir.where import NOWHERE, Where

Index = Expr | int
Indices = Sequence[Index] | Index


def as_expr(value: Index, dtype: DType = DType.I32) -> Expr:
    """The expression itself, or the integer as a constant."""
    return value if isinstance(value, Expr) else const(value, dtype)


def as_indices(indices: Indices) -> tuple[Expr, ...]:
    """Indices as expressions; a single index may stand without a tuple."""
    if isinstance(indices, Expr | int):
        return (as_expr(indices),)
    return tuple(as_expr(index) for index in indices)


def load(buffer: Buffer, *indices: Index) -> Load:
    """One element of a buffer; as many indices as the buffer has axes."""
    return Load(buffer, _checked(buffer, as_indices(indices)))


def region(buffer: Buffer, *indices: Index) -> Region:
    """The buffer from one of its elements on; without indices, from the first."""
    return Region(buffer, _checked(buffer, as_indices(indices)) if indices else ())


def _checked(buffer: Buffer, indices: tuple[Expr, ...]) -> tuple[Expr, ...]:
    if len(indices) != len(buffer.shape):
        raise InternalError(
            f"buffer '{buffer.name}' has {len(buffer.shape)} axes, {len(indices)} indices given"
        )
    return indices


class BodyBuilder:
    """Collects the statements of one PrimFunc's body, in order.

    Args:
        reserved: Names that the body may not define: those of the parameters.
    """

    def __init__(self, reserved: Iterable[str] = ()) -> None:
        self._names = set(reserved)
        self._open: list[list[Statement]] = [[]]
        self._suffix = ""
        self._note = ""

    def unique_name(self, name: str) -> str:
        """The name, with the first free number appended if it is taken; taken from now on."""
        return unique_name(name, self._names)

    def note(self, text: str) -> None:
        """Says what the next loop does."""
        self._note = text

    @contextmanager
    def numbered(self, number: int) -> Generator[None, None, None]:
        """Names that are given to values and views inside end with a number: of one of several items in a row."""
        self._suffix = str(number)
        yield
        self._suffix = ""

    def emit(self, statement: Statement) -> None:
        """Appends a statement that was built elsewhere."""
        self._open[-1].append(statement)

    @contextmanager
    def _block(self) -> Generator[list[Statement], None, None]:
        statements: list[Statement] = []
        self._open.append(statements)
        yield statements
        self._open.pop()

    @contextmanager
    def for_(
        self, name: str, begin: Index, end: Index, kind: LoopKind = LoopKind.SERIAL
    ) -> Generator[Var, None, None]:
        """A loop from `begin` to before `end`; yields its I32 variable."""
        variable = Var(self.unique_name(name), DType.I32)
        note, self._note = self._note, ""
        with self._block() as statements:
            yield variable
        self.emit(For(variable, as_expr(begin), as_expr(end), Seq(tuple(statements)), kind, note=note))

    @contextmanager
    def if_(self, condition: Expr) -> Generator[None, None, None]:
        """Statements that run where the condition holds."""
        with self._block() as statements:
            yield
        self.emit(If(condition, Seq(tuple(statements))))

    @contextmanager
    def else_(self) -> Generator[None, None, None]:
        """Statements that run where the condition of the `if_` directly before does not hold."""
        last = self._open[-1][-1] if self._open[-1] else None
        if not isinstance(last, If) or last.otherwise is not None:
            raise InternalError("else_ does not follow an if_")
        with self._block() as statements:
            yield
        self._open[-1][-1] = If(last.condition, last.then, Seq(tuple(statements)))

    @contextmanager
    def block(self) -> Generator[None, None, None]:
        """Statements in a `Seq` of their own, which ends the allocations and names inside."""
        with self._block() as statements:
            yield
        self.emit(Seq(tuple(statements)))

    def let(self, name: str, value: Index) -> Var:
        """Names a value that does not change; an integer is an I32."""
        expression = as_expr(value)
        variable = Var(self.unique_name(f"{name}{self._suffix}"), expression.dtype)
        self.emit(Let(variable, expression))
        return variable

    def scalar(self, name: str, dtype: DType, init: Expr | int | float | None = None) -> Buffer:
        """A mutable scalar: a `local` buffer without axes, a plain variable in C. Read it with `load(buffer)`."""
        buffer = self.allocate(Buffer(name, (), dtype, dtype.size_bytes), Storage(LOCAL))
        if init is not None:
            self.store(buffer, (), init)
        return buffer

    def allocate(self, buffer: Buffer, storage: Storage = UNDECIDED) -> Buffer:
        """Allocates a buffer to the end of the open block; returns it under the name that it got."""
        named = replace(buffer, name=self.unique_name(buffer.name))
        self.emit(Allocate(named, storage))
        return named

    def register(self, name: str, num_lanes: int, dtype: DType, c_type: str) -> Buffer:
        """A register of so many lanes, whose type in C is `c_type`; only instructions touch it."""
        named = Buffer(f"{name}{self._suffix}", (num_lanes,), dtype, dtype.size_bytes, register=c_type)
        return self.allocate(named, Storage(LOCAL))

    def execute(self, instruction: Instruction, *arguments: Buffer | Region | Index) -> None:
        """Calls an instruction; a buffer is a register or a variable, a plain integer an I32."""
        given: list[Region | Expr] = []
        for argument in arguments:
            match argument:
                case Buffer():
                    given.append(Region(argument))
                case Region():
                    given.append(argument)
                case _:
                    given.append(as_expr(argument))
        self.emit(instruction_call(instruction, given))

    @contextmanager
    def captured(self) -> Generator[list[Statement], None, None]:
        """What is written inside goes to the list that this yields, not to the body."""
        with self._block() as statements:
            yield statements

    def store(self, buffer: Buffer, indices: Indices, value: Expr | int | float) -> None:
        """Writes one element; a plain number takes the buffer's element type."""
        expression = value if isinstance(value, Expr) else const(value, buffer.dtype)
        if expression.dtype is not buffer.dtype:
            raise InternalError(
                f"a value of {expression.dtype.value} is stored to '{buffer.name}' of {buffer.dtype.value}"
            )
        self.emit(Store(buffer, _checked(buffer, as_indices(indices)), expression))

    def add_to(self, buffer: Buffer, indices: Indices, value: Expr | int | float) -> None:
        """Adds to one element."""
        self.store(buffer, indices, Load(buffer, as_indices(indices)) + value)

    def view(
        self,
        name: str,
        source: Region,
        dtype: DType,
        length: Extent,
        condition: Expr | None = None,
        otherwise: Region | None = None,
    ) -> Buffer:
        """Another name for `length` elements from `source` on (or from `otherwise` on), to be read only."""
        if (condition is None) != (otherwise is None):
            raise InternalError(f"view '{name}' needs a condition and an alternative, or neither")
        unique = self.unique_name(f"{name}{self._suffix}")
        buffer = Buffer(unique, (length,), dtype, dtype.size_bytes)
        folded = isinstance(condition, Const)
        if folded and otherwise is not None:
            self.emit(View(buffer, source if condition.value else otherwise))
        else:
            self.emit(View(buffer, source, condition, otherwise))
        return buffer

    def call(
        self,
        callee: str,
        *arguments: Region | Index,
        kind: CallKind = CallKind.EXTERN,
        operators: tuple[str, ...] = (),
        touched_by: tuple[tuple[str, ...], ...] | None = None,
        where: Where = NOWHERE,
        work: Work | None = None,
    ) -> None:
        """Calls another PrimFunc or an external function; plain integers are I32."""
        converted = tuple(item if isinstance(item, Region) else as_expr(item) for item in arguments)
        self.emit(Call(callee, converted, kind, operators, touched_by, where, work))

    def finish(self) -> Seq:
        """The statements so far; every block must be closed."""
        if len(self._open) != 1:
            raise InternalError(f"{len(self._open) - 1} blocks are still open")
        return Seq(tuple(self._open[0]))
