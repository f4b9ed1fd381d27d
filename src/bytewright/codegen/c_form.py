"""The form of a kernel that prints as C line by line.

Unrolled loops, and loops of one turn, are copies of their bodies, and blocks have braces only where they end something
before their surroundings do. A buffer has no axes only where it is a variable of the function: what is reached through
a pointer, or has its address taken, is an array of one element. Every name is one of C, and it is free again where its
scope ends: what the IR calls `lane_1`, because another loop has `lane`, is `lane` unless it stands inside that one.
"""

import re
from collections.abc import Collection
from dataclasses import replace
from typing import TypeVar

from bytewright import ir
from bytewright.base.c_names import unique_c_name, unique_names
from bytewright.codegen.name_blocks import name_blocks
from bytewright.codegen.name_values import name_values
from bytewright.ir.drop_unused import drop_unused
from bytewright.ir.rewrite import (
    Element,
    Indices,
    Rewriting,
    expand_unrolled,
    rewrite_function,
    rewrite_sequence,
    substitute,
    with_blocks,
)
from bytewright.ir.walk import blocks, names_in, regions, statements_of, walk_statements

# What a name ends with that another name was not free for.
_NUMBERED = re.compile(r"(.+)_\d+")
_Named = TypeVar("_Named", ir.Var, ir.Buffer, ir.Symbol)


def c_form(kernel: ir.PrimFunc, taken: Collection[str] = ()) -> ir.PrimFunc:
    """The kernel in this form.

    Args:
        kernel: A kernel.
        taken: What the file calls by name: no parameter or variable is called so.
    """
    plain = _unrolled(kernel)
    scalars = _scalars_in_memory(plain)
    plain = _with_an_axis(plain, scalars) if scalars else plain
    plain = replace(plain, body=name_blocks(plain.body, names_in(plain)))
    plain = replace(plain, body=name_values(plain.body, names_in(plain)))
    names = _names_by_scope(plain, frozenset((*names_in(kernel), *names_in(plain))), taken)
    changed = {old: new for old, new in names.items() if old != new}
    return _renamed(plain, changed) if changed else plain


def _unrolled(kernel: ir.PrimFunc) -> ir.PrimFunc:
    """With copies for loops that are unrolled, and without what only folded away in them: `x * turn` in turn 0.

    Without the numbers of rows, too, that lie where every other row does.
    """

    def one_turn(statement: ir.Statement) -> tuple[ir.Statement, ...]:
        match statement:
            case ir.For() if statement.end - statement.begin == ir.const(1, statement.variable.dtype):
                return (replace(statement, kind=ir.LoopKind.UNROLLED),)
            case _:
                return (statement,)

    body = rewrite_sequence(kernel.body, Rewriting(statement=one_turn, element=_in_one_row))
    has_one_row = any(
        p.buffer.rows is not None and p.buffer.rows.num_rows == 1 for p in kernel.buffer_parameters
    )
    if has_one_row or any(
        isinstance(s, ir.For) and s.kind is ir.LoopKind.UNROLLED for s in walk_statements(body)
    ):
        body = drop_unused(expand_unrolled(body, (p.name for p in kernel.parameters)))
    opened = rewrite_sequence(body, Rewriting(statement=lambda node: (with_blocks(node, _open_end),)))
    return replace(kernel, body=_open_end(opened))


def _in_one_row(buffer: ir.Buffer, indices: tuple[ir.Expr, ...]) -> tuple[ir.Buffer, tuple[ir.Expr, ...]]:
    """Every row of a ring of one row is where the first is: its number is not needed."""
    if buffer.rows is None or buffer.rows.num_rows != 1 or not indices:
        return buffer, indices
    axis = buffer.rows.axis
    return buffer, (*indices[:axis], ir.const(0, indices[axis].dtype), *indices[axis + 1 :])


def _open_end(sequence: ir.Seq) -> ir.Seq:
    """The sequence without a block around its end, unless arrays of other blocks could share the stack with it."""
    *before, last = sequence.statements or (ir.Seq(()),)
    if not isinstance(last, ir.Seq) or isinstance(last, ir.InstructionCall):
        return sequence
    has_blocks = any(blocks(s) or isinstance(s, ir.InstructionCall) for s in before)
    return sequence if has_blocks else ir.Seq((*before, *last.statements))


def _names_by_scope(kernel: ir.PrimFunc, known: Collection[str], taken: Collection[str]) -> dict[str, str]:
    """The C name of everything that a kernel defines.

    Args:
        kernel: The kernel.
        known: Names of its IR: where a number was put behind one of them, because it was taken, it goes.
        taken: Names that nothing gets.
    """
    chosen = unique_names((p.name for p in kernel.parameters), taken)

    def define(name: str, visible: set[str]) -> None:
        stem = name
        while (found := _NUMBERED.fullmatch(stem)) and found[1] in known:
            stem = found[1]
        chosen[name] = unique_c_name(stem, visible)

    def visit(sequence: ir.Seq, outside: set[str]) -> None:
        visible = set(outside)
        for statement in sequence.statements:
            if isinstance(statement, ir.Let):
                define(statement.variable.name, visible)
            elif isinstance(statement, ir.Allocate | ir.View):
                define(statement.buffer.name, visible)
            inside = set(visible)
            if isinstance(statement, ir.For):
                define(statement.variable.name, inside)
            for block in blocks(statement):
                visit(block, inside)

    visit(kernel.body, {*taken, *chosen.values()})
    return chosen


def parameters_in_c(kernel: ir.PrimFunc, taken: Collection[str] = ()) -> ir.PrimFunc:
    """The kernel without its body, with the parameters of its C form."""
    return c_form(replace(kernel, body=ir.Seq(())), taken)


def with_variables_of_c(entry: ir.PrimFunc, taken: Collection[str], fronts: tuple[str, ...]) -> ir.PrimFunc:
    """The entry with names of C for its loop variables and what it calls by name; its buffers keep theirs.

    Args:
        entry: An entry.
        taken: What else the run function names.
        fronts: What names of other things begin with, whichever there are.
    """
    variables = [s.variable for s in statements_of(entry) if isinstance(s, ir.For | ir.Let)]
    plain = [v.name for v in variables if not v.name.startswith(fronts)]
    names = unique_names(plain, taken)
    others = {v.name: f"own_{v.name}" for v in variables if v.name not in names}
    own = unique_names(others.values(), {*taken, *names.values()})
    names |= {old: own[name] for old, name in others.items()}
    renamed: dict[ir.Var, ir.Expr] = {v: replace(v, name=names[v.name]) for v in variables}
    return replace(entry, body=substitute(entry.body, renamed))


def _renamed(kernel: ir.PrimFunc, names: dict[str, str]) -> ir.PrimFunc:
    """The kernel with other names for parameters and variables; an extent is called as the parameter of its value."""
    variables: dict[ir.Var, ir.Var] = {}
    buffers: dict[ir.Buffer, ir.Buffer] = {}

    def named(node: _Named) -> _Named:
        return replace(node, name=names.get(node.name, node.name))

    def opened(node: ir.OpenExtent) -> ir.OpenExtent:
        return replace(node, of=opened(node.of)) if isinstance(node, ir.Quotient) else named(node)

    def extent(node: ir.Extent) -> ir.Extent:
        return node if isinstance(node, int) else opened(node)

    def expression(node: ir.Expr) -> ir.Expr:
        if not isinstance(node, ir.Var):
            return node
        if node not in variables:
            variables[node] = named(node)
        return variables[node]

    def buffer(node: ir.Buffer) -> ir.Buffer:
        if node not in buffers:
            shape = tuple(map(extent, node.shape))
            buffers[node] = replace(named(node), shape=shape)
        return buffers[node]

    pairs = tuple((names.get(a, a), names.get(b, b)) for a, b in kernel.noalias)
    return replace(rewrite_function(kernel, Rewriting(expression, buffer)), noalias=pairs)


def _scalars_in_memory(kernel: ir.PrimFunc) -> dict[ir.Buffer, ir.Buffer]:
    """Buffers without axes that are no variables, each with what it becomes."""
    found = [parameter.buffer for parameter in kernel.buffer_parameters]
    for statement in statements_of(kernel):
        found += [region.buffer for region in regions(statement)]
        if isinstance(statement, ir.View):
            found.append(statement.buffer)
    return {buffer: replace(buffer, shape=(1,), rows=None) for buffer in found if not buffer.shape}


def _with_an_axis(kernel: ir.PrimFunc, arrays: dict[ir.Buffer, ir.Buffer]) -> ir.PrimFunc:
    def element(buffer: ir.Buffer, indices: Indices) -> Element:
        return buffer, indices or tuple(ir.const(0) for _ in buffer.shape)

    return rewrite_function(kernel, Rewriting(buffer=lambda b: arrays.get(b, b), element=element))
