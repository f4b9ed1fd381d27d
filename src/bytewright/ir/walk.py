"""Reads PrimFunc bodies: walks over statements and expressions, and what a statement uses.

A call of an instruction is one statement here, and evaluates its arguments: what it means is not walked through.
Everything comes in order of first appearance, so that what is computed from it is deterministic.
"""

from collections.abc import Callable, Iterator
from operator import attrgetter
from typing import Any
from typing import cast as cast_type

from bytewright.ir.expr import AnyExpr, Binary, Buffer, Cast, Const, Expr, Load, ScalarCall, Select, Var
from bytewright.ir.prim import (
    LEAVES,
    Allocate,
    BufferParameter,
    Call,
    For,
    If,
    InstructionCall,
    Let,
    PrimFunc,
    Seq,
    Statement,
    View,
    blocks,
    defined_names,
    expressions,
    regions,
    stores,
)
from bytewright.ir.remember import remembered
from bytewright.ir.types import DType


def as_any(expression: Expr) -> AnyExpr:
    """The expression as the closed union of its classes, for `match` with `assert_never`."""
    return cast_type("AnyExpr", expression)


# By class, because a compile asks for the operands of some hundred thousand nodes.
_OPERANDS: dict[type[Expr], Callable[[Any], tuple[Expr, ...]]] = {
    Const: lambda _: (),
    Var: lambda _: (),
    Load: attrgetter("indices"),
    Binary: attrgetter("left", "right"),
    Cast: lambda node: (node.operand,),
    ScalarCall: attrgetter("operands"),
    Select: attrgetter("condition", "if_true", "if_false"),
}


def operands(expression: Expr) -> tuple[Expr, ...]:
    """The direct operands of an expression, in order."""
    return _OPERANDS[type(expression)](expression)


def walk_expression(expression: Expr) -> list[Expr]:
    """The expression and all its operands, outer ones first."""
    found: list[Expr] = []
    pending = [expression]
    while pending:
        node = pending.pop()
        found.append(node)
        kind = type(node)
        if kind is not Const and kind is not Var:
            pending.extend(_OPERANDS[kind](node)[::-1])
    return found


def expression_depth(expression: Expr) -> int:
    """How many operations lie inside each other at most; 0 for a constant or a variable."""
    depth, level = -1, [expression]
    while level:
        depth += 1
        level = [operand for node in level for operand in operands(node)]
    return depth


def walk_statements(statement: Statement) -> list[Statement]:
    """The statement and all statements inside it, in the order of the text."""
    found = [statement]
    pending = [iter(_inside(statement))]
    while pending:
        for node in pending[-1]:
            found.append(node)
            if type(node) not in LEAVES:
                pending.append(iter(_inside(node)))
                break
        else:
            pending.pop()
    return found


def _inside(statement: Statement) -> tuple[Statement, ...]:
    """The statements directly inside a statement; those of a `Seq` are its own."""
    return statement.statements if type(statement) is Seq else blocks(statement)


@remembered
def statements_of(function: PrimFunc) -> tuple[Statement, ...]:
    """The body of a function and all statements inside it, in the order of the text."""
    return tuple(walk_statements(function.body))


@remembered
def allocations(function: PrimFunc) -> tuple[Allocate, ...]:
    """What a function allocates, in the order of the text."""
    return tuple(s for s in statements_of(function) if isinstance(s, Allocate))


@remembered
def definitions(function: PrimFunc) -> tuple[BufferParameter | Allocate, ...]:
    """What a function is given, and what it allocates, in the order of the text."""
    return (*function.buffer_parameters, *allocations(function))


@remembered
def calls(function: PrimFunc) -> tuple[Call, ...]:
    """The calls of a function, in the order of the text."""
    return tuple(s for s in statements_of(function) if isinstance(s, Call))


@remembered
def names_in(function: PrimFunc) -> tuple[str, ...]:
    """The names that a function defines: those of its parameters, then those of its statements."""
    names = [parameter.name for parameter in function.parameters]
    for statement in statements_of(function):
        names.extend(defined_names(statement))
    return tuple(names)


def evaluated(statement: Statement) -> list[Expr]:
    """Every expression that the statement itself evaluates, operands included."""
    own = expressions(statement)
    if len(own) == 1:
        return walk_expression(own[0])
    return [node for expression in own for node in walk_expression(expression)]


def walk_all_expressions(statement: Statement) -> Iterator[Expr]:
    """Every expression in the statement and in the statements inside it, operands included."""
    for inner in walk_statements(statement):
        yield from evaluated(inner)


def loaded_buffers(statement: Statement) -> list[Buffer]:
    """The buffers that the statement itself loads from, once for each load."""
    if type(statement) is InstructionCall:
        return list(statement.read)
    return [node.buffer for node in evaluated(statement) if type(node) is Load]


def stored_buffers(statement: Statement) -> tuple[Buffer, ...]:
    """The buffers that the statement itself writes an element of, once for each."""
    if type(statement) is InstructionCall:
        return statement.written
    written = stores(statement)
    return tuple(store.buffer for store in written) if written else ()


def condition_buffer(statement: Statement) -> Buffer | None:
    """The buffer of one truth value, by which alone a branch is chosen: all that an entry may read itself."""
    if not isinstance(statement, If) or not isinstance(statement.condition, Load):
        return None
    buffer, indices = statement.condition.buffer, statement.condition.indices
    is_one = buffer.dtype is DType.BOOL and all(extent == 1 for extent in buffer.shape)
    return (
        buffer if is_one and all(isinstance(index, Const) and index.value == 0 for index in indices) else None
    )


def named_buffers(statement: Statement) -> list[Buffer]:
    """The buffers that the statement and those inside it show or pass, read and write, once for each time."""
    found: list[Buffer] = []
    for inner in walk_statements(statement):
        if type(inner) is InstructionCall:
            found += inner.read + inner.written
        else:
            found += [region.buffer for region in regions(inner)]
            found += loaded_buffers(inner)
            found += stored_buffers(inner)
    return found


def free_variables(statement: Statement) -> tuple[Var, ...]:
    """Variables used in the statement and defined outside it. Names are unique in a function, so order decides."""
    defined = {s.variable for s in walk_statements(statement) if isinstance(s, (For, Let))}
    used = dict.fromkeys(e for e in walk_all_expressions(statement) if isinstance(e, Var))
    return tuple(variable for variable in used if variable not in defined)


def free_buffers(statement: Statement) -> tuple[Buffer, ...]:
    """Buffers used in the statement and allocated (or viewed) outside it: parameters and constants too."""
    defined = {s.buffer for s in walk_statements(statement) if isinstance(s, (Allocate, View))}
    return tuple(buffer for buffer in dict.fromkeys(named_buffers(statement)) if buffer not in defined)
