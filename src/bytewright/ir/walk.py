"""Reads PrimFunc bodies: walks over statements and expressions, and what a statement uses.

A call of an instruction is one statement here, and evaluates its arguments: what it means is not walked through.
Everything comes in order of first appearance, so that what is computed from it is deterministic.
"""

from collections.abc import Iterator
from typing import assert_never
from typing import cast as cast_type

from bytewright.ir.expr import AnyExpr, Binary, Buffer, Cast, Const, Expr, Load, ScalarCall, Select, Var
from bytewright.ir.prim import (
    Allocate,
    BufferParameter,
    Call,
    ContextArgument,
    For,
    If,
    InstructionCall,
    Let,
    PrimFunc,
    Region,
    Seq,
    Statement,
    Store,
    View,
)
from bytewright.ir.remember import remembered
from bytewright.ir.types import DType


def as_any(expression: Expr) -> AnyExpr:
    """The expression as the closed union of its classes, for `match` with `assert_never`."""
    return cast_type("AnyExpr", expression)


def operands(expression: Expr) -> tuple[Expr, ...]:
    """The direct operands of an expression, in order."""
    node = as_any(expression)
    match node:
        case Const() | Var():
            return ()
        case Load():
            return node.indices
        case Binary():
            return (node.left, node.right)
        case Cast():
            return (node.operand,)
        case ScalarCall():
            return node.operands
        case Select():
            return (node.condition, node.if_true, node.if_false)
        case _:
            assert_never(node)


def walk_expression(expression: Expr) -> Iterator[Expr]:
    """The expression and all its operands, outer ones first."""
    pending = [expression]
    while pending:
        node = pending.pop()
        yield node
        kind = type(node)  # a compile visits some hundred thousand nodes: those that are frequent come first
        if kind is Const or kind is Var:
            continue
        if isinstance(node, Binary):
            pending.append(node.right)
            pending.append(node.left)
        else:
            pending.extend(reversed(operands(node)))


def expression_depth(expression: Expr) -> int:
    """How many operations lie inside each other at most; 0 for a constant or a variable."""
    deepest, pending = 0, [(expression, 0)]
    while pending:
        node, depth = pending.pop()
        inner = operands(node)
        if not inner:
            deepest = max(deepest, depth)
        pending.extend([(operand, depth + 1) for operand in inner])
    return deepest


def blocks(statement: Statement) -> tuple[Seq, ...]:
    """The sequences directly inside a statement; a `Seq` is its own."""
    match statement:
        case InstructionCall():
            return ()
        case Seq():
            return (statement,)
        case For():
            return (statement.body,)
        case If():
            return (statement.then,) if statement.otherwise is None else (statement.then, statement.otherwise)
        case Allocate() | View() | Store() | Let() | Call():
            return ()
        case _:
            assert_never(statement)


def walk_statements(statement: Statement) -> Iterator[Statement]:
    """The statement and all statements inside it, in the order of the text."""
    pending = [statement]
    while pending:
        node = pending.pop()
        yield node
        kind = type(node)  # calls of instructions and allocations, which are frequent, have nothing inside
        if kind is Seq:
            pending.extend(reversed(cast_type("Seq", node).statements))
        elif kind is For or kind is If:
            pending.extend(reversed(blocks(node)))


@remembered
def allocations(function: PrimFunc) -> tuple[Allocate, ...]:
    """What a function allocates, in the order of the text."""
    return tuple(s for s in walk_statements(function.body) if isinstance(s, Allocate))


@remembered
def definitions(function: PrimFunc) -> tuple[BufferParameter | Allocate, ...]:
    """What a function is given, and what it allocates, in the order of the text."""
    return (*function.buffer_parameters, *allocations(function))


@remembered
def calls(function: PrimFunc) -> tuple[Call, ...]:
    """The calls of a function, in the order of the text."""
    return tuple(s for s in walk_statements(function.body) if isinstance(s, Call))


@remembered
def names_in(function: PrimFunc) -> tuple[str, ...]:
    """The names that a function defines: those of its parameters, then those of its statements."""
    names = [parameter.name for parameter in function.parameters]
    for statement in walk_statements(function.body):
        names.extend(defined_names(statement))
    return tuple(names)


def defined_names(statement: Statement) -> tuple[str, ...]:
    """The name that the statement itself defines, if it does."""
    match statement:
        case For() | Let():
            return (statement.variable.name,)
        case Allocate() | View():
            return (statement.buffer.name,)
        case _:
            return ()


def regions(statement: Statement) -> tuple[Region, ...]:
    """The regions that the statement itself names."""
    match statement:
        case View():
            return tuple(side for side in (statement.source, statement.otherwise) if side is not None)
        case Call():
            return tuple(argument for argument in statement.arguments if isinstance(argument, Region))
        case _:
            return ()


def expressions(statement: Statement) -> tuple[Expr, ...]:
    """The expressions that the statement itself evaluates, not those of statements inside it."""
    match statement:
        case For():
            return (statement.begin, statement.end)
        case Store():
            return (*statement.indices, statement.value)
        case If():
            return (statement.condition,)
        case Let():
            return (statement.value,)
        case View():
            condition = () if statement.condition is None else (statement.condition,)
            return (*condition, *(index for region in regions(statement) for index in region.indices))
        case Call():
            found: list[Expr] = []
            for argument in statement.arguments:
                match argument:
                    case Region():
                        found.extend(argument.indices)
                    case ContextArgument():
                        pass
                    case _:
                        found.append(argument)
            return tuple(found)
        case InstructionCall():
            return tuple(
                expression
                for argument in statement.arguments
                for expression in (argument.indices if isinstance(argument, Region) else (argument,))
            )
        case Allocate() | Seq():
            return ()
        case _:
            assert_never(statement)


def evaluated(statement: Statement) -> Iterator[Expr]:
    """Every expression that the statement itself evaluates, operands included."""
    for expression in expressions(statement):
        yield from walk_expression(expression)


def walk_all_expressions(statement: Statement) -> Iterator[Expr]:
    """Every expression in the statement and in the statements inside it, operands included."""
    for inner in walk_statements(statement):
        yield from evaluated(inner)


def loaded_buffers(statement: Statement) -> tuple[Buffer, ...]:
    """The buffers that the statement itself loads from, once for each load."""
    if isinstance(statement, InstructionCall):
        return statement.read
    return tuple(
        node.buffer
        for expression in expressions(statement)
        if not isinstance(expression, Const | Var)
        for node in walk_expression(expression)
        if isinstance(node, Load)
    )


def stored_buffers(statement: Statement) -> tuple[Buffer, ...]:
    """The buffers that the statement itself stores to."""
    match statement:
        case Store():
            return (statement.buffer,)
        case InstructionCall():
            return statement.written
        case _:
            return ()


def condition_buffer(statement: Statement) -> Buffer | None:
    """The buffer of one truth value, by which alone a branch is chosen: all that an entry may read itself."""
    if not isinstance(statement, If) or not isinstance(statement.condition, Load):
        return None
    buffer, indices = statement.condition.buffer, statement.condition.indices
    is_one = buffer.dtype is DType.BOOL and all(extent == 1 for extent in buffer.shape)
    return (
        buffer if is_one and all(isinstance(index, Const) and index.value == 0 for index in indices) else None
    )


def named_buffers(statement: Statement) -> Iterator[Buffer]:
    """The buffers that the statement and those inside it show or pass, read and write, once for each time."""
    for inner in walk_statements(statement):
        if isinstance(inner, Allocate | Seq) and not isinstance(inner, InstructionCall):
            continue
        yield from (region.buffer for region in regions(inner))
        yield from loaded_buffers(inner)
        yield from stored_buffers(inner)


def free_variables(statement: Statement) -> tuple[Var, ...]:
    """Variables used in the statement and defined outside it. Names are unique in a function, so order decides."""
    defined = {s.variable for s in walk_statements(statement) if isinstance(s, For | Let)}
    used = dict.fromkeys(e for e in walk_all_expressions(statement) if isinstance(e, Var))
    return tuple(variable for variable in used if variable not in defined)


def free_buffers(statement: Statement) -> tuple[Buffer, ...]:
    """Buffers used in the statement and allocated (or viewed) outside it: parameters and constants too."""
    defined = {s.buffer for s in walk_statements(statement) if isinstance(s, Allocate | View)}
    return tuple(buffer for buffer in dict.fromkeys(named_buffers(statement)) if buffer not in defined)
