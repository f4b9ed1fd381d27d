"""Abstract interpretation of bodies: one driver, which goes through statements in the order in which they run.

An analysis is a subclass of `Interpreter`: a domain, which is what it keeps of numbers and of memory at the present
statement, and hooks, which are what a statement does to that. Of these analyses the driver alone knows the kinds of
statements.

- `evaluate`, before each statement that evaluates expressions: what these load, and whether they may.
- `turns`, at a loop: the body runs once for each `yield`. Before the first one the variable gets its values; behind the
  last one, what the turns did is drawn together.
- `arms`, at a branch: each arm that it yields runs, with the domain as the condition leaves it.
- `define`, `show`, `allocate`, at a `Let`, `View`, `Allocate`: what a name stands for.
- `store`, `call`: what is written, behind what is read.
- `execute`, at a call of an instruction: the statements that say what it does, or less where registers do not count.

A `turns` that yields never says that the loop has no turn; one that yields once stands for all turns together or for
the first; one that yields often goes through them.

Domains of numbers, from the quickest to the closest:
- `Intervals` (`ranges.py`): the least and the greatest value of each variable, all turns of a loop together. Extents,
  checks of overflow (which narrows them by conditions), and traffic use it.
- `Forms` (`affine.py`): sums of variables times numbers, rounded quotients of them, and intervals of loop variables.
  Elements are known one by one where an index is a form. Rows, moves, telling turns and definite writes use it.
- sampled turns (`overlap.py`): an array over chosen turns of all loops around, and a mask of those that run.
Analyses of order alone (`body_clock.py`, `clock.py`) keep no numbers.
"""

from collections.abc import Iterator
from typing import assert_never

from bytewright.ir.prim import Allocate, Call, For, If, InstructionCall, Let, Seq, Statement, Store, View


class Interpreter:
    """The driver. Every hook but `turns` and `arms` does nothing here; these two go on into all blocks, once."""

    __slots__ = ()

    def run(self, sequence: Seq) -> None:
        """Goes through statements in order."""
        for statement in sequence.statements:
            self.step(statement)

    def step(self, statement: Statement) -> None:
        """Goes through one statement, and those inside it."""
        match statement:
            case InstructionCall():
                self.execute(statement)
            case Seq():
                self.run(statement)
            case Store():
                self.evaluate(statement)
                self.store(statement)
            case For():
                self.evaluate(statement)
                for _ in self.turns(statement):
                    self.run(statement.body)
            case Let():
                self.evaluate(statement)
                self.define(statement)
            case If():
                self.evaluate(statement)
                for arm in self.arms(statement):
                    self.run(arm)
            case View():
                self.evaluate(statement)
                self.show(statement)
            case Call():
                self.evaluate(statement)
                self.call(statement)
            case Allocate():
                self.allocate(statement)
            case _:
                assert_never(statement)

    def evaluate(self, statement: Statement) -> None:
        """The statement's own expressions are evaluated, before anything else that it does."""

    def turns(self, loop: For) -> Iterator[None]:  # noqa: ARG002
        """The turns of a loop, as many as the domain tells apart."""
        yield

    def arms(self, branch: If) -> Iterator[Seq]:
        """The arms of a branch that may be taken."""
        yield branch.then
        if branch.otherwise is not None:
            yield branch.otherwise

    def define(self, let: Let) -> None:
        """A scalar gets a name."""

    def show(self, view: View) -> None:
        """Elements get another name."""

    def allocate(self, allocate: Allocate) -> None:
        """A buffer begins."""

    def store(self, store: Store) -> None:
        """One element is written."""

    def call(self, call: Call) -> None:
        """Another function runs."""

    def execute(self, call: InstructionCall) -> None:
        """An instruction does what its statements say."""
        self.run(call)
