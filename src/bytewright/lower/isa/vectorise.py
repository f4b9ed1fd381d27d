"""A loop over lanes as instructions: what a template says of one element, computed for a vector of neighbours.

Element-wise operators are written once, as expressions of one element (`lower/epilogue.py`). With an index that counts
lanes those expressions say all that the vector form needs: an element whose last index goes up with the lane is a load
of a vector, what does not depend on the lane is a scalar, and each operation between them is an instruction of the
unit. Where one is missing, nothing is written and the caller keeps its loop.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from bytewright import ir
from bytewright.ir.analyses.affine import Definitions
from bytewright.ir.builder import BodyBuilder, region
from bytewright.ir.rewrite import substitute_expression
from bytewright.ir.walk import walk_expression
from bytewright.lower.isa.vector_unit import VectorUnit

F32, I32, I64 = ir.DType.F32, ir.DType.I32, ir.DType.I64


class _NoInstructionError(Exception):
    """The unit has no instruction for something."""


def vectorise(body: BodyBuilder, unit: VectorUnit, lane: ir.Var, statements: Sequence[ir.Statement]) -> bool:
    """Writes a loop of `unit.lanes` turns over `lane` as instructions, if there is one for each operation.

    Args:
        body: Where they are written.
        unit: The vectors.
        lane: The variable of the loop, which stands for 0 to before the number of lanes.
        statements: One turn: names and stores, as `BodyBuilder.captured` collects them. An element of a register of as
            many lanes, at index `lane`, stands for that register; storing it there writes the register anew.

    Returns:
        Whether it was done; if not, nothing was written.
    """
    with body.captured() as written:
        vectors = _Vectors(body, unit, lane)
        try:
            for statement in statements:
                vectors.statement(statement)
        except _NoInstructionError:
            return False
    for statement in written:
        body.emit(statement)
    return True


@dataclass(slots=True)
class _Vectors:
    """One turn's values as registers, each computed once.

    Attributes:
        names: What names of the turn stand for: registers, or expressions that are the same in every lane.
        known: Registers by the expression that they hold.
    """

    body: BodyBuilder
    unit: VectorUnit
    lane: ir.Var
    names: dict[ir.Var, ir.Buffer | ir.Expr] = field(default_factory=dict[ir.Var, "ir.Buffer | ir.Expr"])
    known: dict[ir.Expr, ir.Buffer] = field(default_factory=dict[ir.Expr, ir.Buffer])

    def statement(self, statement: ir.Statement) -> None:
        match statement:
            case ir.Let(variable=variable, value=value):
                if self._is_uniform(value):
                    self.names[variable] = self.body.let(variable.name, self._scalar(value))
                else:
                    self.names[variable] = self._vector(value, variable.name)
            case ir.Store(buffer=buffer, indices=indices, value=value) if buffer.register:
                if indices != (self.lane,) or buffer in self.names.values():
                    raise _NoInstructionError  # what has a name would change
                self._computed(value, "value", into=buffer)
                self.known.clear()
            case ir.Store(buffer=buffer, indices=indices, value=value):
                instruction = self.unit.stores.get(buffer.dtype)
                stored = value if buffer.dtype in (I32, F32) else _widened(value)
                if buffer.dtype in self.unit.saturating_stores:
                    unlimited = _unlimited(stored, *buffer.dtype.bounds)
                    if unlimited is not None:
                        instruction, stored = self.unit.saturating_stores[buffer.dtype], unlimited
                if instruction is None:
                    raise _NoInstructionError
                source = self._vector(stored, "result")
                self.body.execute(instruction, self._region(buffer, indices), source)
                self.known.clear()  # what was loaded may lie there
            case _:
                raise _NoInstructionError

    def _is_uniform(self, expression: ir.Expr) -> bool:
        """Whether it is the same in every lane."""
        return not any(
            isinstance(node, ir.Var) and (node == self.lane or isinstance(self.names.get(node), ir.Buffer))
            for node in walk_expression(expression)
        )

    def _scalar(self, expression: ir.Expr) -> ir.Expr:
        """The expression with names as they were written."""
        named = {name: value for name, value in self.names.items() if isinstance(value, ir.Expr)}
        return substitute_expression(expression, named)

    def _region(self, buffer: ir.Buffer, indices: tuple[ir.Expr, ...]) -> ir.Region:
        """Where the elements of the lanes begin; they lie one after another along the last axis."""
        *outer, last = indices or (ir.const(0),)
        form = Definitions().form(last)
        moves = form is not None and dict(form.terms).get(self.lane.name) == 1
        if not moves or not all(map(self._is_uniform, outer)):
            raise _NoInstructionError
        first = substitute_expression(last, {self.lane: ir.const(0, self.lane.dtype)})
        if not self._is_uniform(first):
            raise _NoInstructionError
        first = self._scalar(first)
        return region(buffer, *(self._scalar(index) for index in outer), first)

    def _is_looked_up(self, index: ir.Expr) -> bool:
        """Whether it depends on values of the lanes, so that elements of neighbours lie anywhere."""
        return any(
            (isinstance(node, ir.Load | ir.ScalarCall) and not self._is_uniform(node))
            or (isinstance(node, ir.Var) and isinstance(self.names.get(node), ir.Buffer))
            for node in walk_expression(index)
        )

    def _vector(self, expression: ir.Expr, name: str) -> ir.Buffer:
        """The register that holds an expression's values."""
        if isinstance(expression, ir.Var) and isinstance(found := self.names.get(expression), ir.Buffer):
            return found
        if isinstance(expression, ir.Load) and expression.buffer.register:
            if expression.indices != (self.lane,):
                raise _NoInstructionError
            return expression.buffer
        if expression not in self.known:
            self.known[expression] = self._computed(expression, name)
        return self.known[expression]

    def _computed(self, expression: ir.Expr, name: str, into: ir.Buffer | None = None) -> ir.Buffer:
        """A register with an expression's values: a new one, or `into`."""
        if self._is_uniform(expression):
            broadcast = self.unit.broadcasts.get(expression.dtype)
            return self._executed(broadcast, name, expression.dtype, self._scalar(expression), into=into)
        match expression:
            case ir.Load() if not expression.buffer.register:
                return self._loaded(expression, name, into)
            case ir.Cast(operand=ir.Load() as load) if expression.dtype is I32 and load.dtype.is_integer:
                return self._loaded(load, name, into)
            case ir.Cast(
                operand=ir.Binary(
                    operator=operator, left=ir.Cast(operand=left), right=ir.Cast(operand=right)
                ) as wide
            ) if (expression.dtype, wide.dtype) == (I32, I64) and left.dtype is right.dtype is I32:
                instruction, operands = self.unit.wrapping.get(operator), (left, right)
                vectors = (self._vector(operand, name) for operand in operands)
                return self._executed(instruction, name, I32, *vectors, into=into)
            case ir.Cast(operand=ir.Cast(dtype=ir.DType.I64, operand=operand)) if (
                operand.dtype is expression.dtype is I32 and into is None
            ):
                return self._vector(operand, name)
            case ir.Cast(operand=operand):
                conversion = self.unit.conversions.get((operand.dtype, expression.dtype))
                source = self._vector(operand, name)
                return self._executed(conversion, name, expression.dtype, source, into=into)
            case ir.Binary():
                return self._binary(expression, name, into)
            case ir.ScalarCall():
                return self._called(expression, name, into)
            case ir.Select(condition=ir.Binary(operator=operator, left=left, right=right)):
                operands = left, right, expression.if_true, expression.if_false
                return self._executed(
                    self.unit.selects.get((operator, left.dtype)),
                    name,
                    expression.dtype,
                    *(self._vector(operand, name) for operand in operands),
                    into=into,
                )
            case _:
                raise _NoInstructionError

    def _called(self, call: ir.ScalarCall, name: str, into: ir.Buffer | None) -> ir.Buffer:
        instruction = self.unit.functions.get(call.function.name)
        if instruction is None:
            raise _NoInstructionError
        operands: list[ir.Buffer | ir.Expr] = []
        for parameter, operand in zip(instruction.parameters[1:], call.operands, strict=True):
            if isinstance(parameter, ir.BufferParameter):
                operands.append(self._vector(operand, name))
            elif self._is_uniform(operand):
                operands.append(self._scalar(operand))
            else:
                raise _NoInstructionError
        return self._executed(instruction, name, call.dtype, *operands, into=into)

    def _loaded(self, load: ir.Load, name: str, into: ir.Buffer | None) -> ir.Buffer:
        dtype = load.dtype if load.dtype in (I32, F32) else I32
        gather = self.unit.gathers.get(load.dtype)
        if gather is not None and len(load.indices) == 1 and self._is_looked_up(load.indices[0]):
            places, table = self._vector(load.indices[0], "places"), region(load.buffer, 0)
            gathered = gather(ir.num_elements(load.buffer))
            return self._executed(gathered, name, dtype, table, places, into=into)
        where = self._region(load.buffer, load.indices)
        return self._executed(self.unit.loads.get(load.dtype), name, dtype, where, into=into)

    def _binary(self, expression: ir.Binary, name: str, into: ir.Buffer | None) -> ir.Buffer:
        key = expression.operator, expression.left.dtype
        left, right = expression.left, expression.right
        if self._is_uniform(left) and _is_commutative(expression):
            left, right = right, left
        with_scalar = self.unit.with_scalar.get(key)
        if with_scalar is not None and self._is_uniform(right):
            first = self._vector(left, name)
            return self._executed(with_scalar, name, expression.dtype, first, self._scalar(right), into=into)
        first, second = self._vector(left, name), self._vector(right, name)
        return self._executed(self.unit.binaries.get(key), name, expression.dtype, first, second, into=into)

    def _executed(
        self,
        instruction: ir.Instruction | None,
        name: str,
        dtype: ir.DType,
        *operands: ir.Buffer | ir.Region | ir.Expr,
        into: ir.Buffer | None = None,
    ) -> ir.Buffer:
        if instruction is None or dtype not in self.unit.types:
            raise _NoInstructionError
        result = self.unit.register(self.body, name, dtype) if into is None else into
        self.body.execute(instruction, result, *operands)
        return result


def _is_commutative(expression: ir.Binary) -> bool:
    """Whether operands may change places; of floats, min and max keep the left one where neither is less."""
    operators = ir.BinaryOperator
    if expression.operator in (operators.MIN, operators.MAX):
        return expression.dtype is I32
    return expression.operator in (operators.ADD, operators.MUL, operators.AND)


def _widened(value: ir.Expr) -> ir.Expr:
    """What a narrowing cast converts: the store does that."""
    match value:
        case ir.Cast(operand=operand) if operand.dtype is I32 and value.dtype.is_integer:
            return operand
        case ir.Load() | ir.Const():
            return ir.cast(value, I32)
        case _:
            raise _NoInstructionError


def _unlimited(value: ir.Expr, low: int, high: int) -> ir.Expr | None:
    """What a value is before it is limited to `[low, high]` or, from below, to more; None if it is not."""
    match value:
        case ir.Binary(
            operator=ir.BinaryOperator.MIN,
            left=ir.Binary(operator=ir.BinaryOperator.MAX, left=inner, right=ir.Const(value=least)) as raised,
            right=ir.Const(value=most),
        ) if least >= low and most == high:
            return inner if least == low else raised
        case _:
            return None
