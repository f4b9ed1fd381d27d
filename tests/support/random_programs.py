"""Random programs of kernels and an entry, for comparing compiled C with the evaluator.

Every program is valid: indices stay inside, nothing is read before it is written, no arithmetic overflows. What a
buffer holds is between -100 and 100, so the range of every expression is known while it is drawn. Floats are added,
subtracted, multiplied, compared and rounded, each of which C and numpy do alike.

Drawn are: scalars and tensors of every type, alignments, scratch of every scope, nested blocks, loops of every kind,
branches on data and on variables, views with and without a condition, calls of kernels by kernels with parts of
buffers, constants that kernels name, candidate pools, and an entry with loops, branches and names.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import TypeVar

import numpy as np

from bytewright.ir.data import TensorData
from bytewright.ir.expr import (
    Binary,
    BinaryOperator,
    Buffer,
    Cast,
    Const,
    Expr,
    Load,
    Select,
    Var,
    cast,
    const,
    maximum,
    minimum,
)
from bytewright.ir.module import ConstantBuffer, Module, Port
from bytewright.ir.prim import (
    Access,
    Allocate,
    BufferParameter,
    Call,
    For,
    If,
    Let,
    LoopKind,
    PrimFunc,
    Region,
    ScalarParameter,
    Seq,
    Statement,
    Store,
    View,
)
from bytewright.ir.scalar_functions import FLOOR, ROUND
from bytewright.ir.scope import GLOBAL, LOCAL, STACK, WORKSPACE, Scope
from bytewright.ir.storage import Storage
from bytewright.ir.types import DType, TensorType

Item = TypeVar("Item")
LIMIT = 100  # of what a buffer holds
_LARGEST = 1 << 20  # of what an expression is
_TYPES = (DType.BOOL, DType.I8, DType.U8, DType.I16, DType.I32, DType.I64, DType.F32, DType.F64)
_SCOPES: tuple[Scope | None, ...] = (None, GLOBAL, GLOBAL, WORKSPACE, STACK, LOCAL)
_SCALARS = (DType.BOOL, DType.I16, DType.I32, DType.I64, DType.F32, DType.F64)
_FLOATS = (DType.F32, DType.F64)
# Of what buffers of a type hold, where it is not all that the limit admits.
_BOUNDS = {DType.BOOL: (0, 1), DType.U8: (0, LIMIT)}


@dataclass(frozen=True)
class Ranged:
    """An integer expression of I32 and between which values it lies."""

    expr: Expr
    low: int
    high: int


@dataclass
class _Body:
    """What may be used at a point of a function."""

    readable: list[Buffer] = field(default_factory=list)
    loops: list[tuple[Var, int, int]] = field(default_factory=list)
    scalars: list[Var] = field(default_factory=list)

    def inner(self) -> _Body:
        return _Body(list(self.readable), list(self.loops), list(self.scalars))


class RandomProgram:
    """Draws one program; the same for the same seed."""

    def __init__(self, seed: int, pools: Sequence[str] = (), name: str | None = None) -> None:
        self.random = random.Random(seed)
        self.pools = tuple(pools)
        self.name = name or f"p{seed}"
        self.kernels: list[PrimFunc] = []
        self.constants: list[ConstantBuffer] = []
        self.scopes: dict[str, Scope | None] = {}
        self.num_names = 0

    # Choices

    def below(self, count: int) -> int:
        return self.random.randrange(count)

    def chance(self, percent: int) -> bool:
        return self.random.randrange(100) < percent

    def pick(self, items: Sequence[Item]) -> Item:
        return items[self.below(len(items))]

    def fresh(self, stem: str) -> str:
        self.num_names += 1
        return f"{stem}{self.num_names}"

    def shape(self) -> tuple[int, ...]:
        return tuple(self.random.randint(1, 5) for _ in range(self.random.choice((0, 1, 1, 2, 2, 3))))

    def buffer(self, stem: str, scope: Scope | None = GLOBAL, shape: tuple[int, ...] | None = None) -> Buffer:
        dtype = self.pick(_TYPES)
        alignment = max(dtype.size_bytes, self.pick((1, 1, 1, 2, 8, 16, 64)))
        buffer = Buffer(self.fresh(stem), self.shape() if shape is None else shape, dtype, alignment)
        self.scopes[buffer.name] = scope
        return buffer

    def given(self, buffer: Buffer, access: Access) -> BufferParameter:
        self.scopes[buffer.name] = GLOBAL
        return BufferParameter(buffer, access, scope=GLOBAL)

    # Expressions

    def index(self, body: _Body, extent: int) -> Expr:
        """An index that is inside an axis."""
        found = [
            r for r in (self.known(v, lo, hi) for v, lo, hi in body.loops) if r.high < extent and r.low >= 0
        ]
        if found and self.chance(75):
            return self.pick(found).expr
        if body.loops and self.chance(40):
            variable, low, _ = self.pick(body.loops)
            if low >= 0:
                return (cast(variable, DType.I32) + self.below(3)) % extent
            return minimum(maximum(cast(variable, DType.I32), 0), extent - 1)
        return const(self.below(extent))

    @staticmethod
    def known(variable: Var, low: int, high: int) -> Ranged:
        return Ranged(cast(variable, DType.I32), low, high)

    def load(self, body: _Body, buffer: Buffer) -> Load:
        return Load(buffer, tuple(self.index(body, int(extent)) for extent in buffer.shape))  # type: ignore[arg-type]

    def integer(self, body: _Body, depth: int = 3) -> Ranged:
        """An integer expression of I32."""
        integers = [b for b in body.readable if b.dtype.is_integer or b.dtype is DType.BOOL]
        if depth == 0 or self.chance(25):
            if integers and self.chance(70):
                return Ranged(cast(self.load(body, self.pick(integers)), DType.I32), -LIMIT, LIMIT)
            if body.loops and self.chance(50):
                return self.known(*self.pick(body.loops))
            whole = [s for s in body.scalars if s.dtype.is_integer or s.dtype is DType.BOOL]
            if whole and self.chance(60):
                return Ranged(cast(self.pick(whole), DType.I32), -LIMIT, LIMIT)
            value = self.random.randint(-9, 9)
            return Ranged(const(value), value, value)
        match self.below(9):
            case 0 | 1 | 2 | 3:
                found = self.arithmetic(body, depth)
            case 4:
                found = self.extreme(body, depth)
            case 5:
                left, right = self.integer(body, depth - 1), self.integer(body, depth - 1)
                condition = self.condition(body, depth - 1)
                chosen = Select(condition, left.expr, right.expr)
                found = Ranged(chosen, min(left.low, right.low), max(left.high, right.high))
            case 6:
                inner, mask = self.integer(body, depth - 1), self.pick((1, 7, 31, 127))
                found = Ranged(Binary(BinaryOperator.AND, inner.expr, const(mask)), 0, mask)
            case 7:
                found = self.divided(body, depth)
            case _:
                inner, amount = self.integer(body, depth - 1), self.below(4)
                found = Ranged(inner.expr >> amount, inner.low >> amount, inner.high >> amount)
        return found if found.low >= -_LARGEST and found.high <= _LARGEST else self.integer(body, depth - 1)

    def arithmetic(self, body: _Body, depth: int) -> Ranged:
        left, right = self.integer(body, depth - 1), self.integer(body, depth - 1)
        match self.below(3):
            case 0:
                return Ranged(left.expr + right.expr, left.low + right.low, left.high + right.high)
            case 1:
                return Ranged(left.expr - right.expr, left.low - right.high, left.high - right.low)
            case _:
                corners = [a * b for a in (left.low, left.high) for b in (right.low, right.high)]
                return Ranged(left.expr * right.expr, min(corners), max(corners))

    def extreme(self, body: _Body, depth: int) -> Ranged:
        left, right = self.integer(body, depth - 1), self.integer(body, depth - 1)
        if self.chance(50):
            return Ranged(
                minimum(left.expr, right.expr), min(left.low, right.low), min(left.high, right.high)
            )
        return Ranged(maximum(left.expr, right.expr), max(left.low, right.low), max(left.high, right.high))

    def divided(self, body: _Body, depth: int) -> Ranged:
        inner, by = self.integer(body, depth - 1), self.random.randint(1, 9)
        largest = max(abs(inner.low), abs(inner.high))
        if self.chance(50):
            return Ranged(Binary(BinaryOperator.DIV, inner.expr, const(by)), -largest, largest)
        return Ranged(Binary(BinaryOperator.MOD, inner.expr, const(by)), -by, by)

    def condition(self, body: _Body, depth: int = 1) -> Expr:
        """A truth value, of data or of variables."""
        truths = [b for b in body.readable if b.dtype is DType.BOOL]
        if truths and self.chance(30):
            return self.load(body, self.pick(truths))
        if depth and self.chance(25):
            operator = self.pick((BinaryOperator.LOGICAL_AND, BinaryOperator.LOGICAL_OR))
            return Binary(operator, self.condition(body, 0), self.condition(body, 0))
        operators = (
            BinaryOperator.LT,
            BinaryOperator.LE,
            BinaryOperator.GT,
            BinaryOperator.GE,
            BinaryOperator.EQ,
        )
        return Binary(self.pick(operators), self.integer(body, 1).expr, self.integer(body, 1).expr)

    def real(self, body: _Body, dtype: DType, depth: int = 3) -> Expr:
        """A float expression; what it is multiplied with stays small."""
        floats = [b for b in body.readable if b.dtype is dtype]
        if depth == 0 or self.chance(25):
            if floats and self.chance(60):
                return self.load(body, self.pick(floats))
            known = [s for s in body.scalars if s.dtype is dtype]
            if known and self.chance(60):
                return self.pick(known)
            if self.chance(50):
                return Cast(self.integer(body, 1).expr, dtype)
            return Const(self.random.randint(-40, 40) / 8, dtype)
        left, right = self.real(body, dtype, depth - 1), self.real(body, dtype, depth - 1)
        match self.below(7):
            case 0:
                return left + right
            case 1:
                return left - right
            case 2:
                return left * self.pick((0.5, 1.25, -0.1))
            case 3:
                return minimum(left, right) if self.chance(50) else maximum(left, right)
            case 4:
                return Select(self.condition(body), left, right)
            case 5 if dtype is DType.F32:
                return self.pick((FLOOR, ROUND))(left)
            case _:
                return left / self.pick((3.0, -7.0))

    def value(self, body: _Body, dtype: DType) -> Expr:
        """What a buffer of a type may hold."""
        if dtype is DType.BOOL:
            return self.condition(body)
        if dtype in _FLOATS:
            return minimum(maximum(self.real(body, dtype), float(-LIMIT)), float(LIMIT))
        if self.chance(15):  # a float that becomes a number
            real = minimum(maximum(self.real(body, DType.F32, 1), 0.0), float(LIMIT))
            return Cast(real, dtype)
        drawn = self.integer(body)
        low = 0 if dtype is DType.U8 else -LIMIT
        inside = (
            drawn.expr
            if low <= drawn.low and drawn.high <= LIMIT
            else minimum(maximum(drawn.expr, low), LIMIT)
        )
        return cast(inside, dtype)

    # Statements

    def filled(self, body: _Body, buffer: Buffer) -> list[Statement]:
        """Writes every element of a buffer, axes in any order."""
        axes = [(axis, int(extent)) for axis, extent in enumerate(buffer.shape)]  # type: ignore[arg-type]
        self.random.shuffle(axes)
        inner = body.inner()
        variables: dict[int, Var] = {}
        for axis, extent in axes:
            dtype = DType.I64 if self.chance(10) else DType.I32
            variables[axis] = Var(self.fresh("i"), dtype)
            inner.loops.append((variables[axis], 0, extent - 1))
        indices = tuple(variables[axis] for axis in range(len(axes)))
        store = Store(buffer, indices, self.value(inner, buffer.dtype))
        statements: list[Statement] = [store]
        if self.chance(25):
            other = Store(buffer, indices, self.value(inner, buffer.dtype))
            statements = self.branched(inner, statements, [other])
        for axis, extent in reversed(axes):
            kind = self.pick((LoopKind.SERIAL, LoopKind.SERIAL, LoopKind.UNROLLED, LoopKind.VECTORISED))
            begin, end = const(0, variables[axis].dtype), const(extent, variables[axis].dtype)
            statements = [For(variables[axis], begin, end, Seq(tuple(statements)), kind)]
        return statements

    def branched(self, body: _Body, then: list[Statement], other: list[Statement]) -> list[Statement]:
        condition = self.condition(body)
        if isinstance(condition, Const):
            return then
        return [If(condition, Seq(tuple(then)), Seq(tuple(other)))]

    def touched_up(self, body: _Body, buffer: Buffer) -> list[Statement]:
        """Changes some elements of a buffer that is written, by what it and others hold."""
        inner = body.inner()
        inner.readable.append(buffer)
        variable, extent = Var(self.fresh("j"), DType.I32), self.random.randint(1, 4)
        inner.loops.append((variable, 0, extent - 1))
        store = Store(
            buffer,
            tuple(self.index(inner, int(e)) for e in buffer.shape),  # type: ignore[arg-type]
            self.value(inner, buffer.dtype),
        )
        guarded: list[Statement] = [If(self.condition(inner), Seq((store,)))] if self.chance(40) else [store]
        if isinstance(guarded[0], If) and isinstance(guarded[0].condition, Const):
            guarded = [store]
        if self.chance(20):  # as often as data says
            bound = self.integer(body, 1)
            end = minimum(maximum(bound.expr, 0), extent)
            return [For(variable, const(0), end, Seq(tuple(guarded)))]
        return [For(variable, const(0), const(extent), Seq(tuple(guarded)))]

    def scratch(self, body: _Body) -> list[Statement]:
        """An allocation that is filled and may be read from here on."""
        scope = self.pick(_SCOPES)
        small = (self.random.randint(1, 4),) if scope == LOCAL else None
        buffer = self.buffer("s", scope, small)
        storage = Storage(scope)
        if scope in (None, GLOBAL, WORKSPACE) and self.pools and self.chance(20):
            chosen = self.random.sample(self.pools, self.random.randint(1, len(self.pools)))
            storage = Storage(scope, tuple(chosen))
        statements = [Allocate(buffer, storage), *self.filled(body, buffer)]
        body.readable.append(buffer)
        return statements

    def view(self, body: _Body) -> list[Statement]:
        """Another name for some elements of what may be read."""
        source = self.pick(body.readable)
        region, room = self.part(source)
        length = self.random.randint(1, room)
        shown = Buffer(self.fresh("v"), (length,), source.dtype, 1)
        scope = self.scopes[shown.name] = self.scopes[source.name]
        others = [
            b
            for b in body.readable
            if b.dtype is source.dtype and self.scopes[b.name] == scope and _size(b) >= length
        ]
        body.readable.append(shown)
        if others and self.chance(50):
            condition = self.condition(_Body(body.readable[:-1], body.loops, body.scalars))
            if not isinstance(condition, Const):
                return [View(shown, region, condition, Region(self.pick(others)))]
        return [View(shown, region)]

    def part(self, buffer: Buffer) -> tuple[Region, int]:
        """A buffer from one of its elements on, and how many there are."""
        if not buffer.shape or self.chance(60):
            return Region(buffer), _size(buffer)
        indices = [self.below(int(extent)) for extent in buffer.shape]  # type: ignore[arg-type]
        first = 0
        for index, extent in zip(indices, buffer.shape, strict=True):
            first = first * int(extent) + index  # type: ignore[arg-type]
        return Region(buffer, tuple(const(index) for index in indices)), _size(buffer) - first

    # Kernels

    def kernel(self, inputs: Sequence[Buffer], output: Buffer) -> PrimFunc:
        """A kernel for some inputs and an output, whose own buffers have any shape that fits in them."""
        parameters: list[BufferParameter | ScalarParameter] = []
        body = _Body()
        for buffer in inputs:
            own = self.parameter(buffer)
            parameters.append(self.given(own, Access.READ))
            body.readable.append(own)
        result = replace(output, name=self.fresh("out"), alignment=output.dtype.size_bytes)
        access = Access.READ_WRITE if self.chance(20) else Access.WRITE
        parameters.append(self.given(result, access))
        for _ in range(self.below(3)):
            scalar = Var(self.fresh("n"), self.pick(_SCALARS))
            parameters.append(ScalarParameter(scalar))
            body.scalars.append(scalar)
        if self.chance(25):
            body.readable.append(self.constant().buffer)
        statements = self.statements(body, 2)
        if self.chance(30):
            statements.append(Seq((*self.statements(body.inner(), 1), *self.filled(body, result))))
        statements += self.filled(body, result)
        if self.chance(50):
            statements += self.touched_up(body, result)
        name = f"{self.name}_{self.fresh('k')}"
        found = PrimFunc(name, tuple(parameters), Seq(tuple(statements)))
        self.kernels.append(found)
        return found

    def parameter(self, buffer: Buffer) -> Buffer:
        """A kernel's view of an argument: flat, or of the same shape."""
        name, alignment = self.fresh("in"), buffer.dtype.size_bytes
        shape = (self.random.randint(1, _size(buffer)),) if self.chance(30) else buffer.shape
        return Buffer(name, shape, buffer.dtype, alignment)

    def constant(self) -> ConstantBuffer:
        buffer = self.buffer("w")
        count = _size(buffer)
        if buffer.dtype in _FLOATS:
            values = [self.random.randint(-800, 800) / 8 for _ in range(count)]
        else:
            low, high = _BOUNDS.get(buffer.dtype, (-LIMIT, LIMIT))
            values = [self.random.randint(low, high) for _ in range(count)]
        array = np.array(values).astype(buffer.dtype.numpy).reshape(buffer.shape)  # type: ignore[arg-type]
        found = ConstantBuffer(buffer, TensorData.from_array(array, buffer.dtype), Storage(GLOBAL))
        self.constants.append(found)
        return found

    def statements(self, body: _Body, depth: int) -> list[Statement]:
        """Definitions, blocks and calls before a kernel writes its output."""
        found: list[Statement] = []
        for _ in range(self.below(4)):
            match self.below(7):
                case 0 | 1:
                    found += self.scratch(body)
                case 2 if body.readable:
                    found += self.view(body)
                case 3 if body.readable:
                    found += self.inner_call(body)
                case 4:
                    value = self.integer(body, 2)
                    if value.low >= -LIMIT and value.high <= LIMIT:
                        variable = Var(self.fresh("t"), DType.I32)
                        found.append(Let(variable, value.expr))
                        body.scalars.append(variable)
                case 5 if depth:
                    found.append(Seq(tuple(self.statements(body.inner(), depth - 1))))
                case 6 if depth:
                    found += self.turning(body, depth)
                case _:
                    pass
        return found

    def turning(self, body: _Body, depth: int) -> list[Statement]:
        """A loop with scratch of its own, into an accumulator."""
        total = Buffer(self.fresh("s"), (), DType.I32, 4)
        scope = self.scopes[total.name] = self.pick((LOCAL, GLOBAL))
        variable = Var(self.fresh("i"), DType.I32)
        count = self.random.randint(1, 3)
        inner = body.inner()
        inner.loops.append((variable, 0, count - 1))
        statements = self.statements(inner, depth - 1)
        added = self.integer(inner, 2)
        bounded = minimum(maximum(added.expr, -20), 20)
        sum_of = minimum(maximum(Load(total, ()) + bounded, -LIMIT), LIMIT)
        statements.append(Store(total, (), sum_of))
        body.readable.append(total)
        return [
            Allocate(total, Storage(scope)),
            Store(total, (), const(0)),
            For(variable, const(0), const(count), Seq(tuple(statements))),
        ]

    def inner_call(self, body: _Body) -> list[Statement]:
        """A call of a kernel by a kernel, into scratch."""
        passable = [b for b in body.readable if self.scopes[b.name] != LOCAL]
        if not passable or len(self.kernels) > 6:
            return []
        chosen = [self.pick(passable) for _ in range(self.random.randint(1, 2))]
        result = self.buffer("s", self.pick((None, GLOBAL, WORKSPACE, STACK)))
        statement = self.call(chosen, result)
        body.readable.append(result)
        return [Allocate(result, Storage(self.scopes[result.name])), statement]

    def call(
        self, inputs: Sequence[Buffer], output: Buffer, where: Callable[[Buffer], Region] = Region
    ) -> Call:
        """A call of a kernel made for it, or of one that was made for another and fits."""
        kernel = (
            next((k for k in self.kernels if self.fits(k, inputs, output)), None) if self.chance(40) else None
        )
        kernel = kernel or self.kernel(inputs, output)
        arguments: list[Region | Expr] = []
        given = iter(inputs)
        for parameter in kernel.parameters:
            if isinstance(parameter, ScalarParameter):
                arguments.append(self.scalar(parameter.variable.dtype))
            elif parameter.access is Access.READ:
                argument = next(given)
                region, room = self.part(argument)
                arguments.append(region if room >= _size(parameter.buffer) else Region(argument))
            else:
                arguments.append(where(output))
        return Call(kernel.name, tuple(arguments), operators=(kernel.name,))

    @staticmethod
    def fits(kernel: PrimFunc, inputs: Sequence[Buffer], output: Buffer) -> bool:
        read = [p.buffer for p in kernel.buffer_parameters if p.access is Access.READ]
        written = [p.buffer for p in kernel.buffer_parameters if p.access is not Access.READ]
        return (
            len(read) == len(inputs)
            and all(p.dtype is b.dtype and _size(p) <= _size(b) for p, b in zip(read, inputs, strict=True))
            and written[0].dtype is output.dtype
            and _size(written[0]) == _size(output)
        )

    def scalar(self, dtype: DType) -> Expr:
        if dtype is DType.BOOL:
            return Const(self.below(2), dtype)
        if dtype in _FLOATS:
            return Const(self.random.randint(-40, 40) / 8, dtype)
        return const(self.random.randint(-LIMIT, LIMIT), dtype)

    # The entry

    def module(self) -> Module:
        """The program."""
        inputs = [self.buffer("x") for _ in range(self.random.randint(1, 2))]
        outputs = [self.buffer("y") for _ in range(self.random.randint(1, 2))]
        tensors, statements = list(inputs), list[Statement]()
        for _ in range(self.random.randint(0, 5)):
            statements += self.step(tensors)
        for output in outputs:
            statements += self.ending(tensors, output)
        parameters = (
            *(self.given(buffer, Access.READ) for buffer in inputs),
            *(self.given(buffer, Access.WRITE) for buffer in outputs),
        )
        return Module(
            self.name,
            kernels=tuple(self.kernels),
            entries=(PrimFunc("main", parameters, Seq(tuple(statements))),),
            constant_buffers=tuple(self.constants),
            inputs=tuple(Port(b.name, TensorType(b.shape, b.dtype)) for b in inputs),
            outputs=tuple(Port(b.name, TensorType(b.shape, b.dtype)) for b in outputs),
        )

    def tensor(self, shape: tuple[int, ...] | None = None) -> Allocate:
        scope = self.pick((None, GLOBAL, WORKSPACE, WORKSPACE))
        buffer = self.buffer("t", scope, shape)
        if self.pools and self.chance(25):
            chosen = self.random.sample(self.pools, self.random.randint(1, len(self.pools)))
            return Allocate(buffer, Storage(scope, tuple(chosen)))
        return Allocate(buffer, Storage(scope))

    def chosen(self, tensors: Sequence[Buffer]) -> list[Buffer]:
        return [self.pick(tensors) for _ in range(self.random.randint(1, 2))]

    def step(self, tensors: list[Buffer]) -> list[Statement]:
        """Calls that write a tensor: one, some in a loop over its parts, or one of two."""
        allocation = self.tensor()
        result = allocation.buffer
        match self.below(6):
            case 0 if result.shape:
                statements = self.loop_of_parts(tensors, result)
            case 1:
                statements = self.carried_loop(tensors, result)
            case 2:
                call, other = self.call(self.chosen(tensors), result), self.call(self.chosen(tensors), result)
                name = Var(self.fresh("b"), DType.I32)
                condition = Binary(BinaryOperator.LT, name, const(self.below(5)))
                statements = [Let(name, const(self.below(5))), If(condition, Seq((call,)), Seq((other,)))]
            case 3:
                between = self.tensor()
                first = self.call(self.chosen(tensors), between.buffer)
                second = self.call([between.buffer, *self.chosen(tensors)][:2], result)
                statements = [Seq((between, first, second))]
            case _:
                statements = [self.call(self.chosen(tensors), result)]
        tensors.append(result)
        return [allocation, *statements]

    def ending(self, tensors: Sequence[Buffer], output: Buffer) -> list[Statement]:
        if output.shape and self.chance(25):
            return self.loop_of_parts(tensors, output)
        return [self.call(self.chosen(tensors), output)]

    def loop_of_parts(self, tensors: Sequence[Buffer], result: Buffer) -> list[Statement]:
        """A loop over the first axis: each turn writes one part, by way of a tensor of its own or not."""
        variable = Var(self.fresh("row"), DType.I32)
        rows = int(result.shape[0])  # type: ignore[arg-type]
        part = replace(result, name=self.fresh("part"), shape=result.shape[1:])
        begin: tuple[Expr, ...] = (variable, *(const(0) for _ in result.shape[1:]))
        statements: list[Statement] = []
        sources = self.chosen(tensors)
        if self.chance(50):
            own = self.tensor()
            statements += [own, self.call(sources, own.buffer)]
            sources = [own.buffer]
        statements.append(self.call(sources, part, lambda _: Region(result, begin)))
        return [For(variable, const(0), const(rows), Seq(tuple(statements)))]

    def carried_loop(self, tensors: Sequence[Buffer], result: Buffer) -> list[Statement]:
        """A loop whose turns find what the one before them left."""
        between = self.tensor()
        variable = Var(self.fresh("turn"), DType.I32)
        turn = (
            self.call([result, *self.chosen(tensors)][:2], between.buffer),
            self.call([between.buffer, *self.chosen(tensors)][:2], result),
        )
        loop = For(variable, const(0), const(self.random.randint(1, 3)), Seq((between, *turn)))
        return [self.call(self.chosen(tensors), result), loop]


def _size(buffer: Buffer) -> int:
    return prod(int(extent) for extent in buffer.shape)  # type: ignore[arg-type]


def random_arguments(module: Module, seed: int) -> list[np.ndarray[tuple[int, ...], np.dtype[np.generic]]]:
    """Values for the inputs, within what buffers hold."""
    generator = np.random.default_rng(seed)
    arrays: list[np.ndarray[tuple[int, ...], np.dtype[np.generic]]] = []
    for port in module.inputs:
        dtype, shape = port.type.dtype, port.type.fixed_shape
        if dtype is DType.BOOL:
            values = generator.integers(0, 2, shape)
        elif dtype in _FLOATS:
            values = generator.integers(-800, 800, shape) / 8
        else:
            values = generator.integers(0 if dtype is DType.U8 else -LIMIT, LIMIT + 1, shape)
        arrays.append(np.asarray(values).astype(dtype.numpy))
    return arrays
