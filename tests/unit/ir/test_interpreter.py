"""The driver: every statement is met once, in the order of the text, and blocks as often as a domain says."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from bytewright import ir
from bytewright.ir.analyses.affine import Form, Forms
from bytewright.ir.analyses.interpreter import Interpreter
from bytewright.ir.analyses.ranges import Intervals
from bytewright.ir.walk import expressions, walk_statements
from support.ir_programs import parsed, text_of
from support.random_programs import RandomProgram

NESTED = """
  let n : i32 = 3
  for i : i32 in 0 .. n {
    output[i] = input[i]
    for j : i32 in i .. 5 { output[j] = 0:i8 }
    if i < 2 { output[6] = 1:i8 } else { output[7] = 1:i8 }
  }
  output[5] = 2:i8
"""


def body_of(inside: str) -> ir.Seq:
    (kernel,) = parsed(text_of(inside=inside)).kernels
    return ir.Seq(kernel.body.statements[:-1])  # without that of the frame


class Met(Interpreter):
    """Notes each statement at its hook, and those that it evaluates."""

    def __init__(self) -> None:
        self.met: list[ir.Statement] = []
        self.evaluated: list[ir.Statement] = []

    def evaluate(self, statement: ir.Statement) -> None:
        self.evaluated.append(statement)

    def turns(self, loop: ir.For) -> Iterator[None]:
        self.met.append(loop)
        return Interpreter.turns(self, loop)

    def arms(self, branch: ir.If) -> Iterator[ir.Seq]:
        self.met.append(branch)
        return Interpreter.arms(self, branch)

    def define(self, let: ir.Let) -> None:
        self.met.append(let)

    def show(self, view: ir.View) -> None:
        self.met.append(view)

    def allocate(self, allocate: ir.Allocate) -> None:
        self.met.append(allocate)

    def store(self, store: ir.Store) -> None:
        self.met.append(store)

    def call(self, call: ir.Call) -> None:
        self.met.append(call)


@pytest.mark.parametrize("seed", range(8))
def test_every_statement_is_met_once_in_the_order_of_the_text(seed: int) -> None:
    module = RandomProgram(seed).module()
    for function in (*module.kernels, module.main):
        reader = Met()
        reader.run(function.body)
        inside = [s for s in walk_statements(function.body) if not isinstance(s, ir.Seq)]
        assert list(map(id, reader.met)) == list(map(id, inside))
        missed = {id(s) for s in inside} - {id(s) for s in reader.evaluated}
        assert not any(expressions(s) for s in inside if id(s) in missed)


class Counting(Interpreter):
    """Goes through the turns of loops with known bounds one by one, and into the arm that is taken."""

    def __init__(self) -> None:
        self.values: dict[str, int] = {}
        self.written: list[int] = []

    def value(self, expression: ir.Expr) -> int:
        match expression:
            case ir.Const(value=value):
                return int(value)
            case ir.Var(name=name):
                return self.values[name]
            case _:
                raise AssertionError(expression)

    def define(self, let: ir.Let) -> None:
        self.values[let.variable.name] = self.value(let.value)

    def turns(self, loop: ir.For) -> Iterator[None]:
        for turn in range(self.value(loop.begin), self.value(loop.end)):
            self.values[loop.variable.name] = turn
            yield

    def arms(self, branch: ir.If) -> Iterator[ir.Seq]:
        assert isinstance(branch.condition, ir.Binary)
        holds = self.value(branch.condition.left) < self.value(branch.condition.right)
        arm = branch.then if holds else branch.otherwise
        if arm is not None:
            yield arm

    def store(self, store: ir.Store) -> None:
        self.written.append(self.value(store.indices[0]))


def test_a_domain_says_which_turns_and_arms_there_are() -> None:
    reader = Counting()
    reader.run(body_of(NESTED))
    assert reader.written == [0, 0, 1, 2, 3, 4, 6, 1, 1, 2, 3, 4, 6, 2, 2, 3, 4, 7, 5]


def test_intervals_are_those_of_all_turns_together() -> None:
    reader = Intervals()
    reader.run(body_of(NESTED))
    assert reader.ranges == {"n": (3, 3), "i": (0, 2), "j": (0, 4)}


def test_forms_are_sums_of_loop_variables() -> None:
    reader = Forms()
    reader.run(body_of("for i : i32 in 0 .. 4 { let k : i32 = i * 2 + 1  output[k] = 0:i8 }"))
    k = ir.Var("k", ir.DType.I32)
    assert reader.definitions.form(k + 3) == Form(4, (("i", 2),))
    assert (reader.ranges, reader.range_of(k)) == ({"i": (0, 3)}, (1, 7))
