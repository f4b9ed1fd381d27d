"""Definite writes: nothing is read before it was written, and every output is written to its last element.

Elements are told apart wherever an index is a sum of loop variables with known ranges; another index counts as all
elements that it may reach. What counts as written:
- after a loop, what all of its turns write; in the first turn, what was written by then. Loops of the entry that pass
  their variable to kernels as a number are gone through turn by turn, where these are not too many;
- after a branch whose condition depends on data, what both sides write; of a condition on loop variables, what each
  side writes in the turns in which it is taken. Where these turns are too many to be looked at one by one, or what else
  the condition depends on is not known, what either side writes counts;
- after a call, what the callee writes, to any depth, with the numbers that the call passes.
A read that depends on a condition on loop variables is looked at in the turns in which it happens. One that depends on
data, or whose elements are not known, needs some element of the buffer to be written.
A function that the module does not hold writes what it is given.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from bytewright import ir
from bytewright.ir.analyses.affine import Form, Mask, num_turns
from bytewright.ir.analyses.arguments import buffer_arguments, scalar_arguments
from bytewright.ir.analyses.interpreter import Interpreter
from bytewright.ir.symbols import symbols_of
from bytewright.ir.verify.existence import missing_element, missing_rows, passed_parts
from bytewright.ir.verify.touched import UNKNOWN, Elements, Touch, choice_of
from bytewright.ir.verify.violation import INVALID, UNWRITTEN, Violation
from bytewright.ir.walk import calls, evaluated, expressions, stores, walk_expression, walk_statements

MAX_ELEMENTS = 1 << 26  # of larger buffers elements are not told apart
MAX_TURN_ELEMENTS = 1 << 26  # that are looked at, in all, where turns are looked at one by one
TURN_COST = 1000  # of each turn besides, in elements


_Buffer = tuple[str, str]  # a function and a buffer of it, by name


def unwritten(module: ir.Module, trusted: Container[_Buffer] = ()) -> tuple[Violation, ...]:
    """What a module that verifies reads before it is written, and elements that do not exist.

    Args:
        module: Kernels and an entry.
        trusted: Functions and buffers of theirs, by name, that are written before they are read, even on a way that is
            never taken.
    """
    program = _Program(module, trusted)
    program.settle()
    return tuple(dict.fromkeys(violation for found in program.found.values() for violation in found))


def fully_written(module: ir.Module) -> frozenset[tuple[str, str]]:
    """Kernels and their parameters that every call writes to the last element, by name."""
    program = _Program(module)
    program.settle()
    known = {name for name, _ in program.summaries}
    others = (kernel for kernel in module.kernels if kernel.name not in known)  # of calls that are never made
    program.settle([(kernel.name, (None,) * _num_scalars(kernel)) for kernel in others])
    always: dict[tuple[str, str], bool] = {}
    for (name, _), summary in program.summaries.items():
        for parameter, mask in summary.writes.items():
            always[name, parameter] = always.get((name, parameter), True) and bool(mask.all())
    return frozenset(key for key, is_full in always.items() if is_full)


def _num_scalars(kernel: ir.PrimFunc) -> int:
    return sum(isinstance(parameter, ir.ScalarParameter) for parameter in kernel.parameters)


def _elements(missing: Mask) -> str:
    first, count = int(np.argmax(missing)), int(missing.sum())
    return f"element {first} of {len(missing)}" + (f" and {count - 1} more" if count > 1 else "")


@dataclass(frozen=True, slots=True)
class _Summary:
    """What a call of a function does to its parameters, by name.

    Attributes:
        needs: Elements that are read and must have been written before.
        reads: Parameters of which some element must have been.
        writes: Elements that are written.
    """

    needs: Mapping[str, Mask]
    reads: frozenset[str]
    writes: Mapping[str, Mask]


_NOT_YET = _Summary({}, frozenset(), {})
# A kernel, and the values of its scalar parameters where they are known.
_Key = tuple[str, tuple[int | None, ...]]


class _Program:
    """The module, what its kernels do with the scalars of some call, and what is wrong."""

    def __init__(self, module: ir.Module, trusted: Container[_Buffer] = ()) -> None:
        self.module, self.trusted = module, trusted
        self.kernels = {kernel.name: kernel for kernel in module.kernels}
        self.callers = {kernel.name for kernel in module.kernels if calls(kernel)}
        self.summaries: dict[_Key, _Summary] = {}
        self.found: dict[_Key | None, list[Violation]] = {}
        self.violations: list[Violation] = []  # of what is looked at
        self.wanted: list[_Key] = []
        self.budget = MAX_TURN_ELEMENTS

    def settle(self, keys: Sequence[_Key | None] = (None,)) -> None:
        """Looks at the entry, and before it at all that it calls: no recursion, however deep calls go.

        What asks for a kernel that calls others and was not looked at yet is done again when that is known.
        """
        pending = list(keys)
        while pending:
            key = pending[-1]
            if key is None or key not in self.summaries:
                self.wanted, budget = [], self.budget
                summary = self._look_at(key)
                if self.wanted:
                    self.budget = budget
                    pending.extend(dict.fromkeys(self.wanted))
                    continue
                if key is not None:
                    self.summaries[key] = summary
            pending.pop()

    def summary(self, kernel: ir.PrimFunc, scalars: tuple[int | None, ...]) -> _Summary:
        """What a kernel does, given the values of its scalar parameters where they are known."""
        key = (kernel.name, scalars)
        if key not in self.summaries:
            if kernel.name in self.callers and not kernel.is_opaque:
                self.wanted.append(key)
                return _NOT_YET
            self.summaries[key] = self._look_at(key)
        return self.summaries[key]

    def _look_at(self, key: _Key | None) -> _Summary:
        outer, self.violations = self.violations, []
        summary = self._entry() if key is None else self._kernel(key)
        self.found[key], self.violations = self.violations, outer
        return summary

    def _kernel(self, key: _Key) -> _Summary:
        kernel = self.kernels[key[0]]
        if kernel.is_opaque:
            return _summary_of_opaque(kernel)
        function = _Function(self, kernel, key[1])
        function.run(kernel.body)
        names = {parameter.buffer.name for parameter in kernel.buffer_parameters}
        writes = {name: mask for name, mask in function.written.items() if name in names}
        return _Summary(function.needs, frozenset(function.reads), writes)

    def _entry(self) -> _Summary:
        main = self.module.main
        entry = _Function(self, main, ())
        for parameter in main.buffer_parameters:
            if parameter.access is ir.Access.READ and parameter.buffer.name in entry.written:
                entry.written[parameter.buffer.name][:] = True
        entry.needs.clear()  # there is no caller to write anything
        entry.run(main.body)
        allocations = (s for s in main.body.statements if isinstance(s, ir.Allocate))
        for definition in (*main.buffer_parameters, *allocations):
            missing = ~entry.written.get(definition.buffer.name, np.ones(1, np.bool_))
            if ir.border_of(definition) is not None and missing.any():
                text = f"output '{definition.buffer.name}' is not written by every run: {_elements(missing)}"
                entry.report(definition, text)
        return _NOT_YET


def _summary_of_opaque(kernel: ir.PrimFunc) -> _Summary:
    """What has no body here reads and writes all elements that its parameters let it."""

    def all_but(access: ir.Access) -> dict[str, Mask]:
        return {
            p.buffer.name: np.ones(ir.num_elements(p.buffer), np.bool_)
            for p in kernel.buffer_parameters
            if p.role is not ir.ParameterRole.SCRATCH and p.access is not access
        }

    read = all_but(ir.Access.WRITE)
    return _Summary(read, frozenset(read), all_but(ir.Access.READ))


class _Function(Elements):
    """One function: what is written at the present statement, and what it needs of its caller."""

    def __init__(self, program: _Program, function: ir.PrimFunc, scalars: tuple[int | None, ...]) -> None:
        Elements.__init__(self)
        self.program, self.function = program, function
        self.data: set[str] = set()  # variables that depend on what memory holds
        self.written: dict[str, Mask] = {}
        self.needs: dict[str, Mask] = {}
        self.reads: set[str] = set()
        self.always: dict[int, tuple[Touch, ...]] = {}
        self.depth = 0  # of loops in their first turn
        self.guarded = 0  # conditions around the present statement that may hold or not
        for name, symbol in symbols_of(function).items():
            self.definitions.forms[name] = Form(symbol.upper)
        known = iter(scalars)
        for parameter in function.parameters:
            if isinstance(parameter, ir.BufferParameter):
                self.add(parameter.buffer)
                is_given = (
                    parameter.access is not ir.Access.WRITE and parameter.role is not ir.ParameterRole.SCRATCH
                )
                if is_given and parameter.buffer.name in self.written:
                    self.needs[parameter.buffer.name] = _nothing(parameter.buffer)
            elif isinstance(parameter, ir.ScalarParameter):
                value = next(known, None)
                if value is not None:
                    self.definitions.forms[parameter.variable.name] = Form(value)

    def add(self, buffer: ir.Buffer) -> None:
        if ir.num_elements(buffer) <= MAX_ELEMENTS:
            self.written[buffer.name] = _nothing(buffer)
            self.written[buffer.name][:] = (self.function.name, buffer.name) in self.program.trusted

    def report(self, node: object, text: str, code: str = UNWRITTEN) -> None:
        self.program.violations.append(Violation(self.function, node, text, code=code))

    # In order, every loop in its first turn, then what all of its turns write

    def evaluate(self, statement: ir.Statement) -> None:
        self.check(statement)

    def turns(self, loop: ir.For) -> Iterator[None]:
        name, outside, begin = loop.variable.name, self.ranges, self.range_of(loop.begin)
        for _ in self.all_turns(loop):
            if not self.depth and self.is_passed_on(loop) and self.affords((name,), self.written):
                yield from self.one_by_one((name,))
                continue
            every = self.ranges
            self.ranges = {**outside, name: begin} if begin is not None and begin[0] == begin[1] else outside
            self.depth += 1
            yield
            self.depth -= 1
            self.ranges = every
            _EveryTurn(self, self.written).run(loop.body)
            if self.depth == 0:
                _Inside(self).run(loop.body)

    def arms(self, branch: ir.If) -> Iterator[ir.Seq]:
        sides = self.sides(branch)
        if len(sides) == 1:
            yield sides[0]
            return
        before = {name: mask.copy() for name, mask in self.written.items()}
        self.guarded += 1
        yield sides[0]
        then, self.written = self.written, before
        yield sides[1]
        self.guarded -= 1
        join = np.logical_and if self.depends_on_data(branch.condition) else np.logical_or
        for name, mask in self.written.items():
            if name in then:
                join(mask, then[name], out=mask)

    def define(self, let: ir.Let) -> None:
        Elements.define(self, let)
        if self.depends_on_data(let.value):
            self.data.add(let.variable.name)

    def allocate(self, allocate: ir.Allocate) -> None:
        self.add(allocate.buffer)
        begins_written = ir.border_of(allocate) in (ir.Border.INPUT, ir.Border.STATE)
        if begins_written and allocate.buffer.name in self.written:
            self.written[allocate.buffer.name][:] = True

    def store(self, store: ir.Store) -> None:
        self.write(store, self.written)

    def call(self, call: ir.Call) -> None:
        self.write(call, self.written)

    def is_passed_on(self, loop: ir.For) -> bool:
        """Whether the entry passes what counts a loop's turns to kernels as a number, so that each turn is another."""
        if self.function is not self.program.module.main:
            return False
        numbers = {loop.variable.name}
        for statement in walk_statements(loop.body):
            if isinstance(statement, ir.Let) and numbers & _variables(statement.value):
                numbers.add(statement.variable.name)
            elif isinstance(statement, ir.Call) and any(
                isinstance(a, ir.Expr) and numbers & _variables(a) for a in statement.arguments
            ):
                return True
        return False

    def affords(self, names: Iterable[str], masks: Mapping[str, Mask]) -> bool:
        """Takes what it costs to look at the turns of some variables one by one, if there is as much left."""
        cost = num_turns(names, self.ranges) * (sum(map(len, masks.values())) + TURN_COST)
        if cost > self.program.budget or not any(name in self.ranges for name in names):
            return False
        self.program.budget -= cost
        return True

    def write(self, statement: ir.Store | ir.Call, into: dict[str, Mask]) -> None:
        for touch in self.writes_of(statement):
            mask = into.get(touch.buffer.name)
            if mask is not None:
                mask |= self.reached(touch, len(mask))[0]

    def writes_of(self, statement: ir.Store | ir.Call) -> Iterator[Touch]:
        if isinstance(statement, ir.Store):
            yield self.at(statement.buffer, statement.indices)
            return
        kernel = self.program.kernels.get(statement.callee)
        if kernel is None:
            regions = (argument for argument in statement.arguments if isinstance(argument, ir.Region))
            yield from (Touch(region.buffer, None, UNKNOWN) for region in regions)
            return
        writes = self.summary(kernel, statement).writes
        for parameter, argument in buffer_arguments(kernel, statement):
            if parameter.access is not ir.Access.READ and parameter.buffer.name in writes:
                yield self.passed(argument, writes[parameter.buffer.name])

    def summary(self, kernel: ir.PrimFunc, call: ir.Call) -> _Summary:
        """What a kernel does at a call."""
        known = (self.range_of(a) for _, a in scalar_arguments(kernel, call))
        scalars = (r[0] if r is not None and r[0] == r[1] else None for r in known)
        return self.program.summary(kernel, tuple(scalars))

    # Reads

    def check(self, statement: ir.Statement) -> None:
        kernel = self.program.kernels.get(statement.callee) if isinstance(statement, ir.Call) else None
        if isinstance(statement, ir.Call) and kernel is not None:
            for part in passed_parts(self, kernel, statement):
                self.check_existence(statement, part)
        for touch in self.reads_of(statement):
            self.check_read(statement, touch)
        for store in stores(statement):
            self.check_existence(statement, self.at(store.buffer, store.indices))
        for text in () if self.guarded else missing_rows(self, statement):
            self.report(statement, text, INVALID)

    def check_existence(self, statement: ir.Statement, touch: Touch) -> None:
        is_certain = touch.is_certain and not self.guarded
        text = missing_element(self, touch, is_certain=is_certain)
        if text is not None:
            self.report(statement, text, INVALID)

    def check_read(self, statement: ir.Statement, touch: Touch) -> None:
        for source in self.sources(touch):
            self.check_existence(statement, source)
            mask = self.written.get(source.buffer.name)
            if mask is None:
                continue  # a constant
            reached, is_exact = self.reached(source, len(mask))
            missing = reached & ~mask
            if is_exact and source.is_certain and not self.guarded:
                self.require(statement, source.buffer.name, missing)
            elif not self.depth and missing.sum() == reached.sum() > 0:
                self.require_some(statement, source.buffer.name, missing)

    def require(self, statement: ir.Statement, name: str, missing: Mask) -> None:
        """Elements that are read and that nothing has written are the caller's to write, or a mistake."""
        if not missing.any():
            return
        if name in self.needs:
            self.needs[name] |= missing
            return
        by = f" by '{statement.callee}'" if isinstance(statement, ir.Call) else ""
        self.report(statement, f"'{name}' is read{by} before it is written: {_elements(missing)}")

    def require_some(self, statement: ir.Statement, name: str, missing: Mask) -> None:
        """The same of elements of which one at least is read, perhaps."""
        if name in self.needs:
            self.reads.add(name)
        else:
            self.require(statement, name, missing)

    def reads_of(self, statement: ir.Statement) -> Iterator[Touch]:
        yield from self.loads_of(statement)
        kernel = self.program.kernels.get(statement.callee) if isinstance(statement, ir.Call) else None
        if not isinstance(statement, ir.Call) or kernel is None:
            return
        summary = self.summary(kernel, statement)
        for parameter, argument in buffer_arguments(kernel, statement):
            needs = summary.needs.get(parameter.buffer.name)
            if needs is not None and needs.any():
                yield self.passed(argument, needs)
            elif parameter.buffer.name in summary.reads:
                every = np.ones(ir.num_elements(parameter.buffer), np.bool_)
                yield replace(self.passed(argument, every), is_certain=False)

    def loads_of(self, statement: ir.Statement) -> tuple[Touch, ...]:
        """What the statement's own expressions load; the same at each time, unless one of them chooses."""
        if id(statement) in self.always:
            return self.always[id(statement)]
        found = tuple(
            replace(self.at(load.buffer, load.indices), is_certain=is_certain)
            for expression in expressions(statement)
            for load, is_certain in self.loads(expression)
        )
        if not any(map(choice_of, evaluated(statement))):
            self.always[id(statement)] = found
        return found

    def depends_on_data(self, expression: ir.Expr) -> bool:
        """Whether an expression depends on what memory holds."""
        return any(
            isinstance(node, ir.Load) or getattr(node, "name", None) in self.data
            for node in walk_expression(expression)
        )


@dataclass(slots=True)
class _EveryTurn(Interpreter):
    """What all turns of a loop write, or of several loops."""

    function: _Function
    into: dict[str, Mask]

    def turns(self, loop: ir.For) -> Iterator[None]:
        return self.function.all_turns(loop)

    def arms(self, branch: ir.If) -> Iterator[ir.Seq]:
        sides = self.function.sides(branch)
        if len(sides) == 1:
            yield sides[0]
        elif not self.function.depends_on_data(branch.condition):
            yield from self.turn_by_turn(branch)
        else:
            into, written = self.into, list[dict[str, Mask]]()
            for side in sides:
                self.into = {name: np.zeros_like(mask) for name, mask in into.items()}
                yield side
                written.append(self.into)
            self.into = into
            for name, mask in into.items():
                np.logical_or(mask, written[0][name] & written[1][name], out=mask)

    def turn_by_turn(self, branch: ir.If) -> Iterator[ir.Seq]:
        """What a branch on loop variables writes: at most what either side does, and turn by turn if that is more."""
        function, into = self.function, self.into
        self.into = most = {name: mask.copy() for name, mask in into.items()}
        yield from function.sides(branch)
        self.into = into
        if all(np.array_equal(mask, most[name]) for name, mask in into.items()):
            return
        names = function.definitions.variables_of(branch.condition)
        if num_turns(names, function.ranges) < 2 or not function.affords(names, into):
            into.update(most)
            return
        for _ in function.one_by_one(names):
            yield from function.sides(branch)

    def store(self, store: ir.Store) -> None:
        self.function.write(store, self.into)

    def call(self, call: ir.Call) -> None:
        self.function.write(call, self.into)


@dataclass(slots=True)
class _Inside(Interpreter):
    """Reads of all turns of an outermost loop, against what is written when it has ended."""

    function: _Function

    def evaluate(self, statement: ir.Statement) -> None:
        self.function.check(statement)

    def turns(self, loop: ir.For) -> Iterator[None]:
        may_not_run = self.may_have_no_turn(loop)
        for _ in self.function.all_turns(loop):
            self.function.guarded += may_not_run
            yield
            self.function.guarded -= may_not_run

    def may_have_no_turn(self, loop: ir.For) -> bool:
        """Whether a loop may end where it begins, as far as numbers between which its ends lie can tell."""
        begin, end = self.function.range_of(loop.begin), self.function.range_of(loop.end)
        return begin is not None and end is not None and begin[1] >= end[0]

    def arms(self, branch: ir.If) -> Iterator[ir.Seq]:
        function, names = self.function, self.function.definitions.variables_of(branch.condition)
        is_open = len(function.sides(branch)) > 1 and not function.depends_on_data(branch.condition)
        for _ in function.one_by_one(names if is_open and function.affords(names, function.written) else ()):
            sides = function.sides(branch)
            function.guarded += len(sides) > 1
            yield from sides
            function.guarded -= len(sides) > 1


def _variables(expression: ir.Expr) -> set[str]:
    """The variables that stand in an expression."""
    return {node.name for node in walk_expression(expression) if isinstance(node, ir.Var)}


def _nothing(buffer: ir.Buffer) -> Mask:
    return np.zeros(ir.num_elements(buffer), np.bool_)
