"""Copies back to where a value was go again where nobody reads it there: all that read it are given the other copy."""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass, replace

from bytewright import ir
from bytewright.ir.analyses.bind_symbols import Known
from bytewright.ir.walk import allocations, defined_names, loaded_buffers, regions
from bytewright.scopes.scope_uses import Memory, Piece, Written

Read = dict[Piece, None]  # what is read before it is written again, in order


@dataclass(frozen=True, slots=True)
class Move:
    """A call that copies a piece of memory to another place, or back."""

    call: ir.Call
    source: Piece
    destination: Piece
    is_back: bool


@dataclass(frozen=True, slots=True)
class DropDeadCopies:
    """What is known of a function with copies.

    Attributes:
        memory: What its names stand for.
        kernels: Those that it calls, but for those that copy.
        moves: Calls of the latter, by identity.
        full: Parameters that are written to the last element.
    """

    memory: Memory
    kernels: Mapping[str, Known]
    moves: Mapping[int, Move]
    full: Container[Written]

    def run(self, function: ir.PrimFunc) -> ir.PrimFunc:
        """The function without copies back that nobody reads; its callers read what it may write."""
        outputs = [p.buffer for p in function.buffer_parameters if p.access is not ir.Access.READ]
        kept = (ir.Border.OUTPUT, ir.Border.STATE)
        outputs += [a.buffer for a in allocations(function) if ir.border_of(a) in kept]
        body, _ = self._block(function.body, dict.fromkeys(map(_whole, outputs)))
        return replace(function, body=body)

    def _block(self, sequence: ir.Seq, after: Read) -> tuple[ir.Seq, Read]:
        """A sequence without its dead copies, and what is read in it and `after` it before it is written."""
        kept: list[ir.Statement] = []
        read = dict(after)
        for statement in reversed(sequence.statements):
            left, read = self._statement(statement, read)
            kept.extend(() if left is None else (left,))
            read.update((_whole(buffer), None) for buffer in loaded_buffers(statement))
            for name in defined_names(statement):
                _widen(read, name)
        return ir.Seq(tuple(reversed(kept))), read

    def _statement(self, statement: ir.Statement, after: Read) -> tuple[ir.Statement | None, Read]:
        match statement:
            case ir.InstructionCall():
                return statement, after
            case ir.Seq():
                return self._block(statement, after)
            case ir.If():
                then, read = self._block(statement.then, after)
                if statement.otherwise is None:
                    return replace(statement, then=then), {**read, **after}
                otherwise, other = self._block(statement.otherwise, after)
                return ir.If(statement.condition, then, otherwise), {**read, **other}
            case ir.For():
                return self._loop(statement, after)
            case ir.Call():
                return self._call(statement, after)
            case _:
                return statement, after

    def _loop(self, loop: ir.For, after: Read) -> tuple[ir.Statement, Read]:
        read = dict(after)
        while True:
            body, begin = self._block(loop.body, read)
            _widen(begin, loop.variable.name)
            if begin.keys() <= read.keys():
                return replace(loop, body=body), read
            read.update(begin)

    def _call(self, call: ir.Call, after: Read) -> tuple[ir.Statement | None, Read]:
        move = self.moves.get(id(call))
        if move is not None and move.is_back:
            if not any(self.memory.may_overlap(piece, move.destination) for piece in after):
                return None, after
            return call, {**{piece: None for piece in after if piece != move.destination}, move.source: None}
        if move is not None:
            return call, {**after, move.source: None}
        if call.callee not in self.kernels:
            return call, {**after, **{_whole(given.buffer): None for given in regions(call)}}
        uses = tuple(self.memory.uses(call, self.kernels))
        ended = {use.piece for use in uses if use.is_overwritten(self.full)}
        read = {piece: None for piece in after if piece not in ended}
        return call, {**read, **{use.piece: None for use in uses if use.is_read}}


def _widen(read: Read, name: str) -> None:
    """Takes pieces that are told by a variable for all of their buffers: in another turn they are other ones."""
    told = [piece for piece in read if name in piece.names and piece.indices]
    for piece in told:
        del read[piece]
    read.update((_whole(piece.buffer), None) for piece in told)


def _whole(buffer: ir.Buffer) -> Piece:
    return Piece(buffer, (), ir.storage_shape(buffer))
