"""Writes a plan into the program: scopes name the pool, annotations and constants the offset.

What is requested at run time is in the pool of its arena and has no offset.
With the offsets known, each kernel also learns which of its parameters never overlap.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

from bytewright.ir.address import size_bytes
from bytewright.ir.expr import Buffer, Expr
from bytewright.ir.module import ConstantBuffer, Module
from bytewright.ir.prim import (
    POOL_OFFSET,
    Access,
    Allocate,
    BufferParameter,
    Call,
    PrimFunc,
    Region,
    Statement,
)
from bytewright.ir.rewrite import Rewriting, rewrite_sequence
from bytewright.ir.scope import pool_scope
from bytewright.ir.walk import walk_statements
from bytewright.plan.solution import Placement, Solution

Argument = Region | Expr


def apply_solution(module: Module, workspace: Solution, parameters: Solution) -> Module:
    """Returns the module with every allocation of the entry and every constant in its place.

    What the problems did not hold stays as it is: the verifier and code generation refuse it.
    """
    constants = tuple(_place_constant(c, parameters.placement_of) for c in module.constant_buffers)
    constant_of = {c.buffer.name: c.buffer for c in constants}
    entries = tuple(_place_entry(entry, workspace.placement_of, constant_of) for entry in module.entries)
    placed = replace(module, entries=entries, constant_buffers=constants)
    for kernel in reversed(module.kernels):  # callers first: what they know of their parameters goes down
        known = _with_noalias(kernel, placed)
        placed = replace(placed, kernels=tuple(known if k.name == kernel.name else k for k in placed.kernels))
    return placed


def _place_constant(constant: ConstantBuffer, placement_of: dict[str, Placement]) -> ConstantBuffer:
    if constant.buffer.name not in placement_of:
        return constant
    placement = placement_of[constant.buffer.name]
    buffer = replace(constant.buffer, scope=pool_scope(placement.pool))
    return replace(constant, buffer=buffer, pool_offset=placement.offset)


def _place_entry(
    entry: PrimFunc, placement_of: dict[str, Placement], constant_of: dict[str, Buffer]
) -> PrimFunc:
    parameters = {parameter.buffer.name for parameter in entry.buffer_parameters}
    arena_of = {
        s.buffer.name: s.arena
        for s in walk_statements(entry.body)
        if isinstance(s, Allocate) and s.arena is not None
    }

    def place(buffer: Buffer) -> Buffer:
        if buffer.name in parameters:
            return buffer
        if buffer.name in constant_of:
            return constant_of[buffer.name]
        owner = arena_of.get(buffer.name, buffer.name)
        if owner not in placement_of:
            return buffer
        return replace(buffer, scope=pool_scope(placement_of[owner].pool))

    def annotate(statement: Statement) -> tuple[Statement, ...]:
        if not isinstance(statement, Allocate) or statement.buffer.name not in placement_of:
            return (statement,)
        offset = placement_of[statement.buffer.name].offset
        return (statement.annotated(POOL_OFFSET, offset),)

    return replace(entry, body=rewrite_sequence(entry.body, Rewriting(buffer=place, statement=annotate)))


def _with_noalias(kernel: PrimFunc, module: Module) -> PrimFunc:
    """Pairs of parameters of which one at least is written, and which are disjoint at every call."""
    offset_of = {
        statement.buffer.name: offset
        for entry in module.entries
        for statement in walk_statements(entry.body)
        if isinstance(statement, Allocate) and isinstance(offset := statement.annotation(POOL_OFFSET), int)
    }
    calls = [
        (caller, statement)
        for caller in (*module.entries, *module.kernels)
        for statement in walk_statements(caller.body)
        if isinstance(statement, Call) and statement.callee == kernel.name
    ]
    pairs: list[tuple[str, str]] = []
    for (i, first), (j, second) in combinations(enumerate(kernel.parameters), 2):
        if not isinstance(first, BufferParameter) or not isinstance(second, BufferParameter):
            continue
        if first.access is Access.READ and second.access is Access.READ:
            continue
        if all(
            _disjoint(call.arguments[i], call.arguments[j], offset_of)
            if caller in module.entries
            else _disjoint_in_kernel(call.arguments[i], call.arguments[j], caller)
            for caller, call in calls
        ):
            pairs.append((first.buffer.name, second.buffer.name))
    return replace(kernel, noalias=tuple(pairs))


def _disjoint(first: Argument, second: Argument, offset_of: dict[str, int]) -> bool:
    if not isinstance(first, Region) or not isinstance(second, Region):
        return True
    if first.buffer.name == second.buffer.name:
        return False
    if first.buffer.scope != second.buffer.scope:
        return True
    names = (first.buffer.name, second.buffer.name)
    if not all(name in offset_of for name in names):
        # Different tensors of the caller: the interface asks for disjoint ones, and checks it. Or what is requested at
        # run time: from an arena that lives during the call and hands out no byte twice, or from whoever stands in.
        return True
    first_begin, second_begin = (offset_of[name] for name in names)
    return (
        first_begin + size_bytes(first.buffer) <= second_begin
        or second_begin + size_bytes(second.buffer) <= first_begin
    )


def _disjoint_in_kernel(first: Argument, second: Argument, caller: PrimFunc) -> bool:
    """Whether two arguments that a kernel passes never overlap: its arrays, or parameters of which that is known."""
    if not isinstance(first, Region) or not isinstance(second, Region):
        return True
    names = (first.buffer.name, second.buffer.name)
    if names[0] == names[1]:
        return False
    own = {s.buffer.name for s in walk_statements(caller.body) if isinstance(s, Allocate)}
    parameters = {parameter.buffer.name for parameter in caller.buffer_parameters}
    if not own.union(parameters).issuperset(names):
        return False  # a view, or a constant: what it shows is not looked into
    return not own.isdisjoint(names) or any(set(pair) == set(names) for pair in caller.noalias)
