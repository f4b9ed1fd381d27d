"""Names for what makes lines of C hard to read: conditions of views, and the positions that elements have in common.

In a loop over `x`, `output[(((y * 5) + x) * 64) + channel]` becomes `output[pixel + channel]`. A name stands where the
last variable of its value does, but only what is evaluated there in any case gets one. Where that is so in a branch
alone, the name stands there, before the first statement that needs it.
"""

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial

from bytewright import ir
from bytewright.base.c_names import unique_name
from bytewright.ir.rewrite import Element, Indices, Rewriting, rewrite_statement, with_blocks
from bytewright.ir.walk import blocks, operands, regions, walk_expression, walk_statements

# Of one of several views in a row.
_NUMBER = re.compile(r"(?<![_\d])\d+$")


def name_values(body: ir.Seq, taken: Collection[str]) -> ir.Seq:
    """The body with such names; none of them is taken."""
    return _Names(set(taken)).sequence(body)


@dataclass(frozen=True, slots=True)
class _Names:
    used: set[str]

    def fresh(self, name: str, like: ir.Expr) -> ir.Var:
        return ir.Var(unique_name(name, self.used), like.dtype)

    def sequence(self, sequence: ir.Seq, loop: ir.Var | None = None, *, in_branch: bool = False) -> ir.Seq:
        """A sequence, which may be the body of a loop or in a side of a branch, and what is inside it."""
        statements: list[ir.Statement] = []
        for statement in self.with_positions(sequence, loop, in_branch).statements:
            match statement:
                case ir.View(condition=ir.Binary() as condition) if condition.operator.is_lazy:
                    number = _NUMBER.search(statement.buffer.name)
                    inside = self.fresh(f"inside{number[0] if number else ''}", condition)
                    statements += [ir.Let(inside, condition), replace(statement, condition=inside)]
                case _:
                    variable = statement.variable if isinstance(statement, ir.For) else None
                    is_in = in_branch or isinstance(statement, ir.If)
                    block = partial(self.sequence, loop=variable, in_branch=is_in)
                    statements.append(with_blocks(statement, block))
        return ir.Seq(tuple(statements))

    def with_positions(self, sequence: ir.Seq, loop: ir.Var | None, in_branch: bool) -> ir.Seq:
        """Statements with names for positions of which this sequence defines the last variable.

        In a branch also for others, which have none yet, unless it is a block inside the sequence that needs them.
        """
        defined = {} if loop is None else {loop: 0}
        for place, statement in enumerate(sequence.statements):
            if isinstance(statement, ir.Let):
                defined[statement.variable] = place + 1
        inner = _defined_in(sequence) - defined.keys()
        users: dict[ir.Expr, list[int]] = {}  # by number, as often as they count
        hints: dict[ir.Expr, str] = {}
        for place, statement in enumerate(sequence.statements):
            for buffer, indices, times in _accesses(ir.Seq((statement,)), 1):
                position, _ = _parts(buffer, indices)
                if position is not None:
                    users.setdefault(position, []).extend([place] * times)
                    hints.setdefault(position, "pixel" if len(indices) > 2 else "offset")
        after: dict[int, list[ir.Let]] = {}
        for position, of_position in users.items():
            variables = {node for node in walk_expression(position) if isinstance(node, ir.Var)}
            places = [defined[variable] for variable in variables if variable in defined]
            first, last = of_position[0], of_position[-1]
            if in_branch and not places and (first < last or not _has_inside(sequence.statements[first])):
                places = [first]
            if len(of_position) > 1 and places and not variables & inner:
                name = self.fresh(hints[position], position)
                after.setdefault(max(places), []).append(ir.Let(name, position))
        if not after:
            return sequence
        names: dict[ir.Expr, ir.Var] = {}  # those that stand before the statement
        shorter = _shorter(names)
        statements: list[ir.Statement] = []
        for place, statement in enumerate(sequence.statements):
            lets = after.get(place, ())
            names.update((let.value, let.variable) for let in lets)
            statements += [*lets, *rewrite_statement(statement, shorter)]
        return ir.Seq((*statements, *after.get(len(sequence.statements), ())))


def _parts(buffer: ir.Buffer, indices: Indices) -> tuple[ir.Expr | None, ir.Expr]:
    """An element's number: what it has in common with those beside it, `((y * 5) + x) * 64`, and the rest."""
    whole: ir.Expr = ir.flat_index(buffer, indices) if indices else ir.const(0)
    position, rest = whole, ir.const(0, whole.dtype)
    while isinstance(position, ir.Binary) and position.operator is ir.BinaryOperator.ADD:
        position, rest = position.left, position.right + rest
    match position:
        case ir.Binary(ir.BinaryOperator.MUL, ir.Binary(), ir.Const()) if not depends_on_memory(position):
            return position, rest
        case _:
            return None, whole


def _shorter(names: Mapping[ir.Expr, ir.Var]) -> Rewriting:
    """Uses names of positions: a buffer of one axis, whose extent the text does not say, is indexed from there."""

    def element(buffer: ir.Buffer, indices: Indices) -> Element:
        position, rest = _parts(buffer, indices)
        name = None if position is None else names.get(position)
        return (buffer, indices) if name is None else (replace(buffer, shape=(1,), rows=None), (name + rest,))

    return Rewriting(element=element)


def _defined_in(sequence: ir.Seq) -> set[ir.Var]:
    """The variables that statements define, those inside what instructions mean included, which name none here."""
    found: set[ir.Var] = set()
    for statement in walk_statements(sequence):
        match statement:
            case ir.For() | ir.Let():
                found.add(statement.variable)
            case ir.InstructionCall(touches_memory=True):
                found |= _defined_in(ir.Seq(statement.statements))
            case _:
                pass
    return found


def _has_inside(statement: ir.Statement) -> bool:
    """Whether what it touches is touched inside it, not by itself."""
    return isinstance(statement, ir.InstructionCall) or bool(blocks(statement))


def _accesses(sequence: ir.Seq, times: int) -> Iterator[tuple[ir.Buffer, Indices, int]]:
    """Elements that statements touch in any case, with how often they count: in a loop inside, more than once."""
    for statement in sequence.statements:
        match statement:
            case ir.InstructionCall(touches_memory=False):
                pass
            case ir.Seq():
                yield from _accesses(statement, times)
            case ir.For(begin=ir.Const(value=begin), end=ir.Const(value=end), body=body) if begin < end:
                yield from _accesses(body, times + 1)
            case ir.Store() | ir.Let():
                if isinstance(statement, ir.Store):
                    yield statement.buffer, statement.indices, times
                yield from ((node.buffer, node.indices, times) for node in certain_loads(statement.value))
            case ir.View(condition=None):
                yield from ((region.buffer, region.indices, times) for region in regions(statement))
            case _:
                pass


def depends_on_memory(expression: ir.Expr) -> bool:
    """Whether the value may be another one at another time, without another definition of its variables."""
    return any(isinstance(node, ir.Load) for node in walk_expression(expression))


def certain_loads(expression: ir.Expr) -> Iterator[ir.Load]:
    """The elements that an expression loads in any case."""
    if isinstance(expression, ir.Load):
        yield expression
    match expression:
        case ir.Select():
            always: tuple[ir.Expr, ...] = (expression.condition,)
        case ir.Binary() if expression.operator.is_lazy:
            always = (expression.left,)
        case _:
            always = operands(expression)
    for operand in always:
        yield from certain_loads(operand)
