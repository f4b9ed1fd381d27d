"""Drops what a kernel computes and nobody reads.

Where bounds prove an output to be one constant (a scale so small that everything becomes the zero point, say), the
sums that a template wrote before it knew are without effect. C compilers would warn of them.
"""

from functools import lru_cache

from bytewright.ir.expr import Buffer, Load, Var
from bytewright.ir.prim import (
    Allocate,
    For,
    If,
    Instruction,
    InstructionCall,
    Let,
    Region,
    Seq,
    Statement,
    Store,
    View,
)
from bytewright.ir.rewrite import Rewriting, rewrite_sequence
from bytewright.ir.walk import evaluated, loaded_buffers, regions, stored_buffers, walk_statements


def drop_unused(body: Seq) -> Seq:
    """The body without names, views, private buffers and loops that have no effect on its parameters."""
    while (smaller := _once(body)) != body:
        body = smaller
    return body


def _once(body: Seq) -> Seq:
    own = {s.buffer for s in walk_statements(body) if isinstance(s, Allocate)}
    variables, buffers = _used(body, own)

    def keep(statement: Statement) -> tuple[Statement, ...]:
        match statement:
            case Let(variable=variable):
                has_effect = variable in variables
            case View(buffer=buffer) | Allocate(buffer=buffer):
                has_effect = buffer in buffers
            case Store(buffer=buffer):
                has_effect = buffer in buffers or buffer not in own
            case For(body=inner) | If(then=inner, otherwise=None):
                has_effect = bool(inner.statements)
            case If(then=then, otherwise=Seq() as otherwise):
                has_effect = bool(then.statements or otherwise.statements)
            case InstructionCall():
                has_effect = _has_effect(statement.written, buffers, own)
            case Seq(statements=statements):
                has_effect = bool(statements)
            case _:
                has_effect = True
        return (statement,) if has_effect else ()

    return rewrite_sequence(body, Rewriting(statement=keep))


def _used(body: Seq, own: set[Buffer]) -> tuple[set[Var], set[Buffer]]:
    """Variables and buffers that are read; a buffer that is read to compute itself is not for that alone.

    An instruction that writes several buffers needs somewhere to put all of them if one of them is read.
    """
    variables: set[Var] = set()
    buffers: set[Buffer] = set()
    several: list[tuple[Buffer, ...]] = []
    for statement in walk_statements(body):
        nodes = evaluated(statement)
        if nodes:
            variables.update([n for n in nodes if isinstance(n, Var)])
            read = {n.buffer for n in nodes if isinstance(n, Load)}
            buffers |= read.difference(stored_buffers(statement))
        if isinstance(statement, InstructionCall):
            buffers |= _read_for_others(statement)
            several += [statement.written] if len(statement.written) > 1 else []
        else:
            buffers.update([region.buffer for region in regions(statement)])
    num_before = -1
    while num_before < len(buffers):
        num_before = len(buffers)
        for written in several:
            if _has_effect(written, buffers, own):
                buffers.update(written)
    return variables, buffers


def _has_effect(written: tuple[Buffer, ...], read: set[Buffer], own: set[Buffer]) -> bool:
    """Whether somebody reads one of the buffers, in the body or behind it."""
    return not (read.isdisjoint(written) and own.issuperset(written))


def _read_for_others(call: InstructionCall) -> set[Buffer]:
    """What an instruction reads of what it is given to compute something else than that."""
    found: set[Buffer] = set()
    for read, written in _uses(call.instruction):
        source, result = call.arguments[read], None if written is None else call.arguments[written]
        assert isinstance(source, Region)
        if not isinstance(result, Region) or result.buffer.name != source.buffer.name:
            found.add(source.buffer)
    return found


@lru_cache(maxsize=1 << 12)
def _uses(instruction: Instruction) -> tuple[tuple[int, int | None], ...]:
    """The parameters that statements of a body load from, each with the one that alone is stored to from it."""
    numbers = {parameter.name: number for number, parameter in enumerate(instruction.parameters)}
    found: dict[tuple[int, int | None], None] = {}
    for statement in walk_statements(instruction.body):
        stored = stored_buffers(statement)
        written = numbers.get(stored[0].name) if len(stored) == 1 else None
        for buffer in loaded_buffers(statement):
            if buffer.name in numbers:
                found[numbers[buffer.name], written] = None
    return tuple(found)
