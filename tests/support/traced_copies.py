"""What a program of `asked_scopes` does, call by call, with a mark on each element: which copies change anything.

The calls of a module are carried out with numbers for values: what a kernel computes is a new number, and what a copy
moves keeps its own. So a copy that always finds its numbers there already could be left out.
A trace also looks at every call: what is passed lies where the parameter says, by the definition that it stems from.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass, field

from bytewright.ir.expr import Binary, Const, Expr, Load, Var
from bytewright.ir.module import Module
from bytewright.ir.prim import (
    Access,
    Allocate,
    BufferParameter,
    Call,
    For,
    If,
    Let,
    PrimFunc,
    Region,
    Seq,
    View,
)
from bytewright.ir.scope import Scope
from bytewright.ir.walk import walk_statements

_OPERATORS: dict[str, Callable[[int, int], int]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.floordiv, "%": operator.mod,
    "min": min, "max": max, "<": operator.lt, "<=": operator.le, "==": operator.eq,
    ">": operator.gt, ">=": operator.ge, "!=": operator.ne, "&&": lambda a, b: a and b, "||": lambda a, b: a or b,
}  # fmt: skip
PART = 4


@dataclass(slots=True)
class Memory:
    """A buffer: where it is, and for each element its number."""

    scope: Scope | None
    numbers: list[int]


Place = tuple[Memory, int]  # from an element on


@dataclass(slots=True)
class Trace:
    """One run.

    Attributes:
        made: Copies that were made, each with its text.
        useful: Those of them that changed something.
        misplaced: What was passed and lies elsewhere than the parameter says.
    """

    module: Module
    made: dict[int, str] = field(default_factory=dict[int, str])
    useful: set[int] = field(default_factory=set[int])
    misplaced: list[str] = field(default_factory=list[str])
    num_numbers: int = 0
    taken: set[tuple[int, bool]] = field(default_factory=set[tuple[int, bool]])

    def run(self) -> Trace:
        places: dict[str, Place] = {}
        for parameter in self.module.main.buffer_parameters:
            memory = self.memory(parameter.buffer.shape[0], parameter.scope)
            places[parameter.name] = (memory, 0)
        self.body(self.module.main.body, dict(places), {})
        return self

    @property
    def is_whole(self) -> bool:
        """Whether the run took every way that the entry has, so that no copy is for a way that it did not take."""
        statements = tuple(walk_statements(self.module.main.body))
        loops = {(id(s), True) for s in statements if isinstance(s, For | If)}
        return loops | {(id(s), False) for s in statements if isinstance(s, If)} <= self.taken

    def memory(self, size: object, scope: Scope | None) -> Memory:
        assert isinstance(size, int)
        self.num_numbers += size
        return Memory(scope, list(range(self.num_numbers - size, self.num_numbers)))

    def body(self, sequence: Seq, places: dict[str, Place], values: dict[str, int]) -> None:
        for statement in sequence.statements:
            match statement:
                case Allocate(buffer=buffer, scope=scope):
                    places[buffer.name] = (self.memory(buffer.shape[0], scope), 0)
                case View(buffer=buffer, source=source):
                    places[buffer.name] = _at(source, places, values)
                case Let(variable=variable, value=value):
                    values[variable.name] = _value(value, values)
                case For(variable=variable, begin=begin, end=end, body=body):
                    for turn in range(_value(begin, values), _value(end, values)):
                        self.taken.add((id(statement), True))
                        self.body(body, places, {**values, variable.name: turn})
                case If(condition=condition, then=then, otherwise=otherwise):
                    side = then if _value(condition, values) else otherwise
                    self.taken.add((id(statement), side is then))
                    if side is not None:
                        self.body(side, places, dict(values))
                case Seq():
                    self.body(statement, places, dict(values))
                case Call():
                    self.call(statement, places, values)
                case _:
                    raise AssertionError(statement)

    def call(self, call: Call, places: dict[str, Place], values: dict[str, int]) -> None:
        kernel = next(kernel for kernel in self.module.kernels if kernel.name == call.callee)
        given: dict[str, Place] = {}
        numbers: dict[str, int] = {}
        for parameter, argument in zip(kernel.parameters, call.arguments, strict=True):
            if isinstance(parameter, BufferParameter):
                assert isinstance(argument, Region)
                given[parameter.name] = _at(argument, places, values)
                if not _lies_in(given[parameter.name][0], parameter.scope):
                    self.misplaced.append(f"{argument.buffer.name} for {parameter.name} of {kernel.name}")
            else:
                assert isinstance(argument, Expr)
                numbers[parameter.name] = _value(argument, values)
        if any(isinstance(s, Call) for s in kernel.body.statements):
            self.body(kernel.body, given, numbers)
        elif kernel.name.startswith("r_copy"):
            self.copy(call, kernel, given)
        else:
            self.compute(kernel, given)

    def compute(self, kernel: PrimFunc, given: dict[str, Place]) -> None:
        for parameter in kernel.buffer_parameters:
            if parameter.access is not Access.READ:
                memory, at = given[parameter.name]
                memory.numbers[at : at + PART] = self.memory(PART, None).numbers

    def copy(self, call: Call, kernel: PrimFunc, given: dict[str, Place]) -> None:
        (source, first), (destination, second) = given["source"], given["destination"]
        size = kernel.buffer_parameters[0].buffer.shape[0]
        assert isinstance(size, int)
        self.made[id(call)] = f"{call.callee}: {call.arguments}"
        moved = source.numbers[first : first + size]
        if destination.numbers[second : second + size] != moved:
            self.useful.add(id(call))
            destination.numbers[second : second + size] = moved


def _at(region: Region, places: dict[str, Place], values: dict[str, int]) -> Place:
    memory, begin = places[region.buffer.name]
    return memory, begin + (_value(region.indices[0], values) if region.indices else 0)


def _lies_in(memory: Memory, scope: Scope | None) -> bool:
    """By the words alone: a pool is that pool, the workspace is all of them but not what the application has."""
    if scope is None or scope.tag is None:
        return True
    if scope.tag == "workspace":
        return memory.scope is not None and memory.scope.tag is not None
    return memory.scope == scope


def _value(expression: Expr, values: dict[str, int]) -> int:
    match expression:
        case Const(value=value):
            return int(value)
        case Var(name=name):
            return values[name]
        case Binary(operator=sign, left=left, right=right):
            return int(_OPERATORS[sign.value](_value(left, values), _value(right, values)))
        case Load() | _:
            raise AssertionError(expression)
