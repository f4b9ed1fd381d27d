"""Rewrites PrimFunc bodies: a generic map over expressions and statements, substitution, unrolling.

Expressions are rebuilt through the folding constructors of `ir.expr`, so that a variable that becomes a constant
takes conditions, index arithmetic and neutral elements with it.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from operator import is_
from typing import TypeVar, assert_never

from bytewright.base.c_names import unique_name
from bytewright.diagnostics import InternalError
from bytewright.ir import prim
from bytewright.ir.expr import (
    Binary,
    Buffer,
    Cast,
    Const,
    Expr,
    Load,
    ScalarCall,
    Select,
    Var,
    binary,
    cast,
    const,
    select,
)
from bytewright.ir.walk import (
    as_any,
    defined_names,
    loaded_buffers,
    stored_buffers,
    walk_expression,
    walk_statements,
)

Indices = tuple[Expr, ...]
Element = tuple[Buffer, Indices]
_Node = TypeVar("_Node", bound=Expr | prim.Statement | prim.Region)


def _same_expression(expression: Expr) -> Expr:
    return expression


def _same_buffer(buffer: Buffer) -> Buffer:
    return buffer


def _same_element(buffer: Buffer, indices: Indices) -> Element:
    return buffer, indices


def _alone(statement: prim.Statement) -> tuple[prim.Statement, ...]:
    return (statement,)


@dataclass(frozen=True, slots=True)
class Rewriting:
    """What to do at each kind of node; the default leaves it as it is.

    Attributes:
        expression: Applied to every expression, operands first.
        buffer: Applied wherever a buffer is named: definitions, loads, stores, regions.
        element: Applied to what a load or store touches, and to where a region begins, after `buffer` and all indices.
        statement: Applied to every statement after what is inside it; gives the statements that replace it.
    """

    expression: Callable[[Expr], Expr] = _same_expression
    buffer: Callable[[Buffer], Buffer] = _same_buffer
    element: Callable[[Buffer, Indices], Element] = _same_element
    statement: Callable[[prim.Statement], tuple[prim.Statement, ...]] = _alone

    @property
    def is_of_statements(self) -> bool:
        """Whether what statements evaluate and name stays as it is."""
        return (
            self.expression is _same_expression
            and self.buffer is _same_buffer
            and self.element is _same_element
        )


def rewrite_expression(expression: Expr, rewriting: Rewriting) -> Expr:
    """The expression with the rewriting applied to every node."""
    node = as_any(expression)
    match node:
        case Const() | Var():
            return rewriting.expression(node)
        case Binary():
            left, right = rewrite_expression(node.left, rewriting), rewrite_expression(node.right, rewriting)
            rebuilt: Expr = binary(node.operator, left, right)
        case Load():
            rebuilt = Load(*_element(node, rewriting))
        case Cast():
            rebuilt = cast(rewrite_expression(node.operand, rewriting), node.dtype)
        case ScalarCall():
            given = tuple([rewrite_expression(operand, rewriting) for operand in node.operands])
            rebuilt = ScalarCall(node.function, given)
        case Select():
            condition = rewrite_expression(node.condition, rewriting)
            if isinstance(condition, Const):  # the other side may hold arithmetic that never runs
                return rewrite_expression(node.if_true if condition.value else node.if_false, rewriting)
            sides = (rewrite_expression(side, rewriting) for side in (node.if_true, node.if_false))
            rebuilt = select(condition, *sides)
        case _:
            assert_never(node)
    return rewriting.expression(_kept(node, rebuilt))


def _kept(node: _Node, rebuilt: _Node) -> _Node:
    """The node itself where the very same parts were rebuilt, so that what is remembered of it stays."""
    if rebuilt is node or type(node) is not type(rebuilt):
        return rebuilt
    for name in node.__slots__:
        before, after = getattr(node, name), getattr(rebuilt, name)
        if before is after:
            continue
        if not isinstance(before, tuple) or not isinstance(after, tuple) or not _are_same(before, after):
            return rebuilt
    return node


def _are_same(before: tuple[object, ...], after: tuple[object, ...]) -> bool:
    return len(before) == len(after) and all(map(is_, before, after))


def _element(node: Load | prim.Store | prim.Region, rewriting: Rewriting) -> Element:
    indices = tuple([rewrite_expression(index, rewriting) for index in node.indices])
    return rewriting.element(rewriting.buffer(node.buffer), indices)


def rewrite_region(region: prim.Region, rewriting: Rewriting) -> prim.Region:
    """The region with the rewriting applied to its buffer and indices."""
    if not region.indices:  # a register, or all of a buffer
        buffer, indices = rewriting.element(rewriting.buffer(region.buffer), ())
        return region if buffer is region.buffer and not indices else prim.Region(buffer, indices)
    buffer, indices = _element(region, rewriting)
    is_same = buffer is region.buffer and _are_same(indices, region.indices)
    return region if is_same else prim.Region(buffer, indices)


def rewrite_sequence(sequence: prim.Seq, rewriting: Rewriting) -> prim.Seq:
    """The sequence with the rewriting applied to every statement in it; itself if none changes."""
    statements: list[prim.Statement] = []
    for statement in sequence.statements:
        statements.extend(rewrite_statement(statement, rewriting))
    if len(statements) == len(sequence.statements) and all(map(is_, statements, sequence.statements)):
        return sequence
    return prim.Seq(tuple(statements))


def folded(sequence: prim.Seq) -> prim.Seq:
    """The sequence with constants folded, as they are where code is built."""
    return rewrite_sequence(sequence, Rewriting(expression=lambda expression: expression))


def with_blocks(statement: prim.Statement, change: Callable[[prim.Seq], prim.Seq]) -> prim.Statement:
    """The statement with what `change` makes of the sequences directly inside it; a `Seq` is its own.

    It is the same object if none of them becomes another.
    """
    match statement:
        case prim.InstructionCall():
            return statement
        case prim.Seq():
            return change(statement)
        case prim.For():
            body = change(statement.body)
            return statement if body is statement.body else replace(statement, body=body)
        case prim.If():
            then = change(statement.then)
            otherwise = None if statement.otherwise is None else change(statement.otherwise)
            if then is statement.then and otherwise is statement.otherwise:
                return statement
            return replace(statement, then=then, otherwise=otherwise)
        case _:
            return statement


def rewrite_function(function: prim.PrimFunc, rewriting: Rewriting) -> prim.PrimFunc:
    """The function with the rewriting applied to its parameters, and to every statement of its body."""
    parameters = tuple(_rewrite_parameter(parameter, rewriting) for parameter in function.parameters)
    return replace(function, parameters=parameters, body=rewrite_sequence(function.body, rewriting))


def _rewrite_parameter(parameter: prim.Parameter, rewriting: Rewriting) -> prim.Parameter:
    match parameter:
        case prim.BufferParameter():
            return replace(parameter, buffer=rewriting.buffer(parameter.buffer))
        case prim.ScalarParameter():
            return replace(parameter, variable=_defined(parameter.variable, rewriting))
        case prim.ContextParameter():
            return parameter
        case _:
            assert_never(parameter)


def rename_callees(function: prim.PrimFunc, names: Mapping[str, str]) -> prim.PrimFunc:
    """The function with its calls going to the new names; a callee that has none keeps its own."""

    def renamed(statement: prim.Statement) -> tuple[prim.Statement, ...]:
        if isinstance(statement, prim.Call):
            name = names.get(statement.callee, statement.callee)
            return (statement if name == statement.callee else replace(statement, callee=name),)
        return (statement,)

    return with_body(function, rewrite_sequence(function.body, Rewriting(statement=renamed)))


def with_body(function: prim.PrimFunc, body: prim.Seq) -> prim.PrimFunc:
    """The function with another body; itself, and with it all that is remembered of it, if it is the same."""
    return function if body is function.body else replace(function, body=body)


def rewrite_statement(statement: prim.Statement, rewriting: Rewriting) -> tuple[prim.Statement, ...]:
    """The statements that replace one; branches whose condition became constant are resolved."""
    is_decided = type(statement) is prim.If and isinstance(statement.condition, Const)
    if rewriting.is_of_statements and not is_decided:
        rebuilt = with_blocks(statement, lambda block: rewrite_sequence(block, rewriting))
    else:
        rebuilt = _kept(statement, _rebuild(statement, rewriting))
    if type(rebuilt) is prim.If and isinstance(rebuilt.condition, Const):
        chosen = rebuilt.then if rebuilt.condition.value else rebuilt.otherwise
        return () if chosen is None or not chosen.statements else rewriting.statement(chosen)
    return rewriting.statement(rebuilt)


def _rebuild_instruction(call: prim.InstructionCall, rewriting: Rewriting) -> prim.InstructionCall:
    arguments = tuple(
        [
            rewrite_region(item, rewriting)
            if isinstance(item, prim.Region)
            else rewrite_expression(item, rewriting)
            for item in call.arguments
        ]
    )
    is_same = _are_same(arguments, call.arguments)
    return call if is_same else instruction_call(call.instruction, arguments)


def _rebuild(statement: prim.Statement, rewriting: Rewriting) -> prim.Statement:
    def inside(expression: Expr) -> Expr:
        return rewrite_expression(expression, rewriting)

    match statement:
        case prim.InstructionCall():
            return _rebuild_instruction(statement, rewriting)
        case prim.Seq():
            return rewrite_sequence(statement, rewriting)
        case prim.For():
            body = rewrite_sequence(statement.body, rewriting)
            variable = _defined(statement.variable, rewriting)
            private = tuple(map(rewriting.buffer, statement.private))
            return prim.For(
                variable,
                inside(statement.begin),
                inside(statement.end),
                body,
                statement.kind,
                private,
                statement.note,
            )
        case prim.Allocate():
            buffer = rewriting.buffer(statement.buffer)
            return statement if buffer is statement.buffer else replace(statement, buffer=buffer)
        case prim.View():
            return _rebuild_view(statement, rewriting)
        case prim.Store():
            return prim.Store(*_element(statement, rewriting), inside(statement.value))
        case prim.If():
            return _rebuild_if(statement, rewriting)
        case prim.Let():
            return prim.Let(_defined(statement.variable, rewriting), inside(statement.value))
        case prim.Call():
            given = tuple([_rewrite_argument(item, rewriting) for item in statement.arguments])
            return statement if _are_same(given, statement.arguments) else replace(statement, arguments=given)
        case _:
            assert_never(statement)


def _rewrite_argument(argument: prim.Argument, rewriting: Rewriting) -> prim.Argument:
    match argument:
        case prim.Region():
            return rewrite_region(argument, rewriting)
        case prim.ContextArgument():
            return argument
        case _:
            return rewrite_expression(argument, rewriting)


def _rebuild_if(statement: prim.If, rewriting: Rewriting) -> prim.If:
    condition = rewrite_expression(statement.condition, rewriting)
    if isinstance(condition, Const):  # what never runs need not make sense
        chosen = statement.then if condition.value else statement.otherwise
        body = prim.Seq(()) if chosen is None else rewrite_sequence(chosen, rewriting)
        return prim.If(Const(1, condition.dtype), body)
    then = rewrite_sequence(statement.then, rewriting)
    otherwise = None if statement.otherwise is None else rewrite_sequence(statement.otherwise, rewriting)
    return prim.If(condition, then, otherwise)


def _rebuild_view(statement: prim.View, rewriting: Rewriting) -> prim.View:
    buffer = rewriting.buffer(statement.buffer)
    if statement.condition is None or statement.otherwise is None:
        return prim.View(buffer, rewrite_region(statement.source, rewriting))
    condition = rewrite_expression(statement.condition, rewriting)
    if isinstance(condition, Const):
        chosen = statement.source if condition.value else statement.otherwise
        return prim.View(buffer, rewrite_region(chosen, rewriting))
    return prim.View(
        buffer,
        rewrite_region(statement.source, rewriting),
        condition,
        rewrite_region(statement.otherwise, rewriting),
    )


def _defined(variable: Var, rewriting: Rewriting) -> Var:
    renamed = rewriting.expression(variable)
    if not isinstance(renamed, Var):
        raise InternalError(f"variable '{variable.name}' is defined where it is to be replaced")
    return renamed


def _substitution(variables: Mapping[Var, Expr], buffers: Mapping[Buffer, Buffer]) -> Rewriting:
    for variable, value in variables.items():
        if variable.dtype is not value.dtype:
            raise InternalError(
                f"'{variable.name}' of {variable.dtype.value} cannot become {value.dtype.value}"
            )

    def expression(node: Expr) -> Expr:
        return variables.get(node, node) if isinstance(node, Var) else node

    return Rewriting(expression, lambda buffer: buffers.get(buffer, buffer))


def substitute_expression(
    expression: Expr, variables: Mapping[Var, Expr], buffers: Mapping[Buffer, Buffer] | None = None
) -> Expr:
    """The expression with variables and buffers replaced."""
    return rewrite_expression(expression, _substitution(variables, buffers or {}))


def substitute(
    sequence: prim.Seq, variables: Mapping[Var, Expr], buffers: Mapping[Buffer, Buffer] | None = None
) -> prim.Seq:
    """The sequence with variables and buffers replaced, at their definitions too (by a `Var` only)."""
    return rewrite_sequence(sequence, _substitution(variables, buffers or {}))


def substitute_in_function(function: prim.PrimFunc, buffers: Mapping[Buffer, Buffer]) -> prim.PrimFunc:
    """The function with buffers replaced in parameters and body."""
    return rewrite_function(function, _substitution({}, buffers))


def expand_unrolled(sequence: prim.Seq, taken: Iterable[str] = ()) -> prim.Seq:
    """Replaces every loop of kind UNROLLED by copies of its body, one per iteration.

    Names defined in the body get the iteration as a suffix, so that they stay unique in the function; a copy that
    defines names at its top level becomes a nested `Seq`, so that what it allocates ends with it.

    Args:
        sequence: The body of a function.
        taken: Names defined outside of it: parameters and constants.

    Raises:
        InternalError: Such a loop has a bound that is not constant.
    """
    names = set(taken)
    for statement in walk_statements(sequence):
        names.update(defined_names(statement))

    def expand(statement: prim.Statement) -> tuple[prim.Statement, ...]:
        if not isinstance(statement, prim.For) or statement.kind is not prim.LoopKind.UNROLLED:
            return (statement,)
        return _copies(statement, names)

    return rewrite_sequence(sequence, Rewriting(statement=expand))


def _copies(loop: prim.For, names: set[str]) -> tuple[prim.Statement, ...]:
    if not isinstance(loop.begin, Const) or not isinstance(loop.end, Const):
        raise InternalError(f"unrolled loop over '{loop.variable.name}' has a bound that is not constant")
    inside = [s for s in walk_statements(loop.body) if defined_names(s)]
    has_own_names = any(isinstance(s, prim.Let | prim.Allocate | prim.View) for s in loop.body.statements)
    copies: list[prim.Statement] = []
    for number in range(int(loop.begin.value), int(loop.end.value)):
        variables: dict[Var, Expr] = {loop.variable: const(number, loop.variable.dtype)}
        buffers: dict[Buffer, Buffer] = {}
        suffix = str(number).replace("-", "m")
        for statement in inside:
            if isinstance(statement, prim.For | prim.Let):
                name = unique_name(f"{statement.variable.name}_{suffix}", names)
                variables[statement.variable] = replace(statement.variable, name=name)
            elif isinstance(statement, prim.Allocate | prim.View):
                name = unique_name(f"{statement.buffer.name}_{suffix}", names)
                buffers[statement.buffer] = replace(statement.buffer, name=name)
        copy = substitute(loop.body, variables, buffers)
        copies.extend((copy,) if has_own_names else copy.statements)
    return tuple(copies)


def instruction_call(
    instruction: prim.Instruction, arguments: Sequence[prim.Region | Expr]
) -> prim.InstructionCall:
    """A call of an instruction.

    Args:
        instruction: The instruction.
        arguments: For each parameter a region, of a register or a variable without indices, or an expression. The
            elements of memory lie one after another along the last axis of its buffer.

    Raises:
        InternalError: An argument is not of the parameter's kind or type.
    """
    regions: dict[str, prim.Region] = {}
    scalars: dict[str, Expr] = {}
    given: list[Expr] = []
    if len(arguments) != len(instruction.parameters):
        raise InternalError(f"'{instruction.name}' takes {len(instruction.parameters)} arguments")
    for parameter, argument in zip(instruction.parameters, arguments, strict=True):
        match parameter, argument:
            case prim.BufferParameter(), prim.Region() if parameter.buffer.dtype is argument.buffer.dtype:
                regions[parameter.buffer.name] = argument
                given += argument.indices
            case prim.ScalarParameter(), Expr() if parameter.variable.dtype is argument.dtype:
                scalars[parameter.variable.name] = argument
                given.append(argument)
            case _:
                raise InternalError(f"'{instruction.name}' cannot be given this for '{parameter.name}'")

    loaded, stored = _touched_names(instruction)
    read = [regions[name].buffer for name in loaded if name in regions]
    for expression in given:
        if type(expression) is not Const and type(expression) is not Var:
            read += [node.buffer for node in walk_expression(expression) if isinstance(node, Load)]
    written = [regions[name].buffer for name in stored if name in regions]
    touches_memory = "" in [buffer.register for buffer in read + written]
    expand = partial(_meaning, instruction, regions, scalars)
    return prim.InstructionCall(
        instruction, tuple(arguments), expand, tuple(given), tuple(read), tuple(written), touches_memory
    )


def _meaning(
    instruction: prim.Instruction, regions: Mapping[str, prim.Region], scalars: Mapping[str, Expr]
) -> tuple[prim.Statement, ...]:
    """The statements of an instruction that is given these."""
    own = _own_names(instruction)

    def expression(node: Expr) -> Expr:
        if not isinstance(node, Var):
            return node
        return replace(node, name=own[node.name]) if node.name in own else scalars.get(node.name, node)

    def buffer(node: Buffer) -> Buffer:
        return replace(node, name=own[node.name]) if node.name in own else node

    def element(buffer: Buffer, indices: Indices) -> Element:
        region = regions.get(buffer.name)
        if region is None:
            return buffer, indices
        if not region.indices or not indices or region.buffer.register:
            return region.buffer, indices if region.buffer.shape else ()
        *outer, first = region.indices
        return region.buffer, (*outer, first + indices[-1])

    return rewrite_sequence(instruction.body, Rewriting(expression, buffer, element)).statements


@lru_cache(maxsize=1 << 12)
def _touched_names(instruction: prim.Instruction) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The names of what a body loads from, and of what it stores to."""
    statements = tuple(walk_statements(instruction.body))
    loaded = (buffer.name for statement in statements for buffer in loaded_buffers(statement))
    stored = (buffer.name for statement in statements for buffer in stored_buffers(statement))
    return tuple(dict.fromkeys(loaded)), tuple(dict.fromkeys(stored))


@lru_cache(maxsize=1 << 12)
def _own_names(instruction: prim.Instruction) -> Mapping[str, str]:
    """What a body defines, under names that no kernel has: those of the arguments mean what they mean outside."""
    names = (name for statement in walk_statements(instruction.body) for name in defined_names(statement))
    front = f"{instruction.name}."
    return {name: name if name.startswith(front) else f"{front}{name}" for name in names}
