"""How near an output may come to an input, by trying: every access of a kernel's run is written down, in order.

Shares nothing with the analysis: a plain interpreter of loops and indices with Python's integers.

    below, above = distances_by_trying(kernel, {"input": False, "output": True}, {"row_begin": 0, "row_end": 5})
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from bytewright import ir
from bytewright.ir.expr import BinaryOperator as Op

Address = tuple[str, int]  # the parameter, and a byte of it


@dataclass
class _Run:
    """Attributes: events are (is a write, parameter, byte) in the order in which they happen."""

    values: dict[str, int]
    shown: dict[str, Address | None] = field(default_factory=dict)
    events: list[tuple[bool, str, int]] = field(default_factory=list)

    def statement(self, statement: ir.Statement) -> None:
        match statement:
            case ir.Seq():
                for inner in statement.statements:
                    self.statement(inner)
            case ir.For():
                for turn in range(self.value(statement.begin), self.value(statement.end)):
                    self.values[statement.variable.name] = turn
                    self.statement(statement.body)
            case ir.If():
                chosen = statement.then if self.value(statement.condition) else statement.otherwise
                if chosen is not None:
                    self.statement(chosen)
            case ir.Let():
                self.values[statement.variable.name] = self.value(statement.value)
            case ir.View():
                is_first = statement.condition is None or self.value(statement.condition)
                region = statement.source if is_first else statement.otherwise
                assert region is not None
                self.shown[statement.buffer.name] = self.address(region.buffer, ir.region_index(region))
            case ir.Store():
                self.value(statement.value)
                self.touch(statement.buffer, statement.indices, is_write=True)
            case ir.Allocate():
                self.shown[statement.buffer.name] = None
            case ir.Call():
                raise NotImplementedError

    def address(self, buffer: ir.Buffer, index: ir.Expr) -> Address | None:
        name, first = self.shown.get(buffer.name, (buffer.name, 0)) or (None, 0)
        return None if name is None else (name, first + self.value(index) * buffer.dtype.size_bytes)

    def touch(self, buffer: ir.Buffer, indices: tuple[ir.Expr, ...], *, is_write: bool) -> None:
        if self.shown.get(buffer.name, (buffer.name, 0)) is None:
            return
        found = self.address(buffer, ir.flat_index(buffer, indices))
        assert found is not None
        name, first = found
        self.events += [(is_write, name, first + byte) for byte in range(buffer.dtype.size_bytes)]

    def value(self, node: ir.Expr) -> Any:
        match node:
            case ir.Const(value=value):
                return value
            case ir.Var(name=name):
                return self.values[name]
            case ir.Load():
                self.touch(node.buffer, node.indices, is_write=False)
                return 0  # data: nothing that counts here depends on it
            case ir.Cast():
                return self.value(node.operand)
            case ir.Select():
                return self.value(node.if_true if self.value(node.condition) else node.if_false)
            case ir.ScalarCall():
                for operand in node.operands:
                    self.value(operand)
                return 0
            case ir.Binary():
                return self.binary(node)
            case _:
                raise NotImplementedError

    def binary(self, node: ir.Binary) -> Any:
        left = self.value(node.left)
        if node.operator is Op.LOGICAL_AND:
            return left and self.value(node.right)
        if node.operator is Op.LOGICAL_OR:
            return left or self.value(node.right)
        right = self.value(node.right)
        match node.operator:
            case Op.ADD:
                return left + right
            case Op.SUB:
                return left - right
            case Op.MUL:
                return left * right
            case Op.DIV:
                return int(left / right) if right else 0
            case Op.MOD:
                return left - int(left / right) * right if right else 0
            case Op.MIN:
                return min(left, right)
            case Op.MAX:
                return max(left, right)
            case Op.LT:
                return left < right
            case Op.LE:
                return left <= right
            case Op.GT:
                return left > right
            case Op.GE:
                return left >= right
            case Op.EQ:
                return left == right
            case _:
                return 0  # of data


def distances_by_trying(
    kernel: ir.PrimFunc, is_output: Mapping[str, bool], scalars: Mapping[str, int]
) -> tuple[int, int]:
    """The least distances below and above at which no byte is lost.

    Args:
        kernel: One that calls no other.
        is_output: Parameters that are the input or the output.
        scalars: Values of its scalar parameters.
    """
    run = _Run(dict(scalars))
    run.statement(kernel.body)
    below = above = 0
    highest, lowest = -(1 << 60), 1 << 60  # of what is written so far
    for is_write, name, byte in run.events:
        if name not in is_output:
            continue
        if is_write and is_output[name]:
            highest, lowest = max(highest, byte), min(lowest, byte)
        elif not is_write and not is_output[name]:
            below, above = max(below, highest - byte + 1), max(above, byte - lowest + 1)
    return below, above
