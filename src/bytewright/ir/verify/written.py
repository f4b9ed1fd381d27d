"""Definite writes: nothing is read before it was written, and every output is written to its last element.

Elements are told apart wherever an index is a sum of loop variables with known ranges; another index counts as all
elements that it may reach. What counts as written:
- after a loop, what all of its turns write; in the first turn, what was written by then;
- after a branch whose condition depends on data, what both sides write; of a condition on loop variables, what each
  side writes in the turns in which it is taken. Where these turns are too many to be looked at one by one, or what else
  the condition depends on is not known, what either side writes counts;
- after a call, what the callee writes, to any depth, with the numbers that the call passes.
A read that depends on a condition, or whose elements are not known, needs some element of the buffer to be written.
A function that the module does not hold writes what it is given.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import assert_never

import numpy as np

from bytewright import ir
from bytewright.ir.analyses.affine import (
    Definitions,
    Form,
    Mask,
    Ranges,
    Runs,
    each_turn,
    mark,
    num_turns,
    runs_of,
)
from bytewright.ir.analyses.ranges import Range
from bytewright.ir.symbols import symbols_of
from bytewright.ir.verify.violation import INVALID, UNWRITTEN, Violation
from bytewright.ir.walk import expressions, operands, walk_expression, walk_statements

_UNKNOWN = ir.Var("", ir.DType.I32)  # an index of which nothing is known
MAX_PLACES = 1 << 12  # that a part of a parameter is passed to from one call
MAX_ELEMENTS = 1 << 26  # of larger buffers elements are not told apart
MAX_TURN_ELEMENTS = 1 << 26  # that are looked at, in all, where turns are looked at one by one
TURN_COST = 1000  # of each turn besides, in elements


def unwritten(module: ir.Module) -> tuple[Violation, ...]:
    """What a module that verifies reads before it is written, and elements that do not exist."""
    program = _Program(module)
    program.settle()
    return tuple(dict.fromkeys(violation for found in program.found.values() for violation in found))


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
_Key = tuple[
    str, tuple[int | None, ...]
]  # a kernel, and the values of its scalar parameters where they are known


@dataclass(slots=True)
class _Program:
    """The module, what its kernels do with the scalars of some call, and what is wrong."""

    module: ir.Module
    violations: list[Violation] = field(default_factory=list[Violation])  # of what is looked at
    found: dict[_Key | None, list[Violation]] = field(default_factory=dict[_Key | None, list[Violation]])
    summaries: dict[_Key, _Summary] = field(default_factory=dict[_Key, _Summary])
    kernels: dict[str, ir.PrimFunc] = field(default_factory=dict[str, ir.PrimFunc])
    budget: int = MAX_TURN_ELEMENTS
    callers: frozenset[str] = frozenset()
    wanted: list[_Key] = field(default_factory=list[_Key])

    def __post_init__(self) -> None:
        self.kernels = {kernel.name: kernel for kernel in self.module.kernels}
        self.callers = frozenset(
            kernel.name
            for kernel in self.module.kernels
            if any(isinstance(statement, ir.Call) for statement in walk_statements(kernel.body))
        )

    def settle(self) -> None:
        """Looks at the entry, and before it at all that it calls: no recursion, however deep calls go.

        What asks for a kernel that calls others and was not looked at yet is done again when that is known.
        """
        pending: list[_Key | None] = [None]
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
            if kernel.name in self.callers and kernel.external is None:
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
        if kernel.external is not None:
            return _summary_of_external(kernel)
        function = _Function(self, kernel, key[1])
        function.run(kernel.body, {})
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
        entry.run(main.body, {})
        allocations = (s for s in main.body.statements if isinstance(s, ir.Allocate))
        for definition in (*main.buffer_parameters, *allocations):
            missing = ~entry.written.get(definition.buffer.name, np.ones(1, np.bool_))
            if ir.border_of(definition) is not None and missing.any():
                text = f"output '{definition.buffer.name}' is not written by every run: {_elements(missing)}"
                entry.report(definition, text)
        return _NOT_YET


def _summary_of_external(kernel: ir.PrimFunc) -> _Summary:
    """A function of the application reads and writes all elements that its prototype lets it."""
    parameters = [p for p in kernel.buffer_parameters if p.role is not ir.ParameterRole.SCRATCH]
    masks = {p.buffer.name: np.ones(ir.num_elements(p.buffer), dtype=np.bool_) for p in parameters}
    read, written = (
        {p.buffer.name: masks[p.buffer.name].copy() for p in parameters if p.access is not other}
        for other in (ir.Access.WRITE, ir.Access.READ)
    )
    return _Summary(read, frozenset(read), written)


@dataclass(frozen=True, slots=True)
class _Touch:
    """Elements of a buffer that a statement reads or writes: those of the pattern, from the form's value on.

    Attributes:
        form: None where it is no sum of variables.
        index: The expression of the form.
        pattern: None for one element.
        is_certain: It happens whenever the statement does.
    """

    buffer: ir.Buffer
    form: Form | None
    index: ir.Expr
    pattern: Mask | None = None
    is_certain: bool = True


class _Function:
    """One function: what is written at the present statement, and what it needs of its caller."""

    def __init__(self, program: _Program, function: ir.PrimFunc, scalars: tuple[int | None, ...]) -> None:
        self.program, self.function = program, function
        self.definitions = Definitions()
        self.data: set[str] = set()  # variables that depend on what memory holds
        self.views: dict[str, ir.View] = {}
        self.written: dict[str, Mask] = {}
        self.needs: dict[str, Mask] = {}
        self.reads: set[str] = set()
        self.elements: dict[tuple[str, int], _Touch] = {}
        self.always: dict[int, tuple[_Touch, ...]] = {}
        self.depth = 0  # of loops in their first turn
        self.guarded = 0  # conditions around the present statement that may hold or not
        for name, symbol in symbols_of(function).items():
            self.definitions.forms[name] = Form(symbol.upper)
        known = iter(scalars)
        for parameter in function.parameters:
            if isinstance(parameter, ir.BufferParameter):
                self.define(parameter.buffer)
                is_given = (
                    parameter.access is not ir.Access.WRITE and parameter.role is not ir.ParameterRole.SCRATCH
                )
                if is_given and parameter.buffer.name in self.written:
                    self.needs[parameter.buffer.name] = _nothing(parameter.buffer)
            else:
                value = next(known, None)
                if value is not None:
                    self.definitions.forms[parameter.variable.name] = Form(value)

    def define(self, buffer: ir.Buffer) -> None:
        if ir.num_elements(buffer) <= MAX_ELEMENTS:
            self.written[buffer.name] = _nothing(buffer)

    def report(self, node: object, text: str, help_text: str | None = None, code: str = UNWRITTEN) -> None:
        self.program.violations.append(Violation(self.function, node, text, help_text, code))

    # In order, every loop in its first turn, then what all of its turns write

    def run(self, sequence: ir.Seq, ranges: Ranges) -> None:
        for statement in sequence.statements:
            self.statement(statement, ranges)

    def statement(self, statement: ir.Statement, ranges: Ranges) -> None:
        self.check(statement, ranges)
        match statement:
            case ir.Seq():
                self.run(statement, ranges)
            case ir.For():
                self.loop(statement, ranges)
            case ir.If():
                self.branch(statement, ranges)
            case ir.Let():
                self.definitions.define(statement.variable, statement.value)
                if self.depends_on_data(statement.value):
                    self.data.add(statement.variable.name)
            case ir.Allocate():
                self.define(statement.buffer)
                if ir.border_of(statement) is ir.Border.INPUT and statement.buffer.name in self.written:
                    self.written[statement.buffer.name][:] = True
            case ir.View():
                self.views[statement.buffer.name] = statement
            case ir.Store() | ir.Call():
                self.write(statement, ranges, self.written)
            case _:
                assert_never(statement)

    def loop(self, loop: ir.For, ranges: Ranges) -> None:
        turns = self.turns(loop, ranges)
        if turns is not None and turns[1] < turns[0]:
            return
        begin = self.definitions.range_of(loop.begin, ranges)
        first = begin if begin is not None and begin[0] == begin[1] else None
        self.depth += 1
        self.run(loop.body, _with(ranges, loop.variable.name, first))
        self.depth -= 1
        every = _with(ranges, loop.variable.name, turns)
        self.collect(loop.body, every, self.written)
        if self.depth == 0:
            self.check_inside(loop.body, every)

    def turns(self, loop: ir.For, ranges: Ranges) -> Range | None:
        """The values of a loop's variable, if they are the same in every turn of the loops around it."""
        begin, end = (self.definitions.range_of(bound, ranges) for bound in (loop.begin, loop.end))
        if begin is None or end is None or begin[0] != begin[1] or end[0] != end[1]:
            return None
        return begin[0], end[0] - 1

    def branch(self, statement: ir.If, ranges: Ranges) -> None:
        truth = self.definitions.truth_of(statement.condition, ranges)
        otherwise = statement.otherwise or ir.Seq(())
        if truth is not None:
            self.run(statement.then if truth else otherwise, ranges)
            return
        before = {name: mask.copy() for name, mask in self.written.items()}
        self.guarded += 1
        self.run(statement.then, ranges)
        then, self.written = self.written, before
        self.run(otherwise, ranges)
        self.guarded -= 1
        join = np.logical_and if self.depends_on_data(statement.condition) else np.logical_or
        for name, mask in self.written.items():
            if name in then:
                join(mask, then[name], out=mask)

    # What all turns write

    def collect(self, sequence: ir.Seq, ranges: Ranges, into: dict[str, Mask]) -> None:
        for statement in sequence.statements:
            match statement:
                case ir.Seq():
                    self.collect(statement, ranges, into)
                case ir.For():
                    turns = self.turns(statement, ranges)
                    if turns is None or turns[0] <= turns[1]:
                        self.collect(statement.body, _with(ranges, statement.variable.name, turns), into)
                case ir.If():
                    self.collect_branch(statement, ranges, into)
                case ir.Store() | ir.Call():
                    self.write(statement, ranges, into)
                case ir.Allocate() | ir.View() | ir.Let():
                    pass
                case _:
                    assert_never(statement)

    def collect_branch(self, statement: ir.If, ranges: Ranges, into: dict[str, Mask]) -> None:
        truth = self.definitions.truth_of(statement.condition, ranges)
        otherwise = statement.otherwise or ir.Seq(())
        if truth is not None:
            self.collect(statement.then if truth else otherwise, ranges, into)
        elif not self.depends_on_data(statement.condition):
            self.collect_turns(statement, ranges, into)
        else:
            sides = [{name: np.zeros_like(mask) for name, mask in into.items()} for _ in range(2)]
            self.collect(statement.then, ranges, sides[0])
            self.collect(otherwise, ranges, sides[1])
            for name, mask in into.items():
                np.logical_or(mask, sides[0][name] & sides[1][name], out=mask)

    def collect_turns(self, statement: ir.If, ranges: Ranges, into: dict[str, Mask]) -> None:
        """What a branch on loop variables writes: at most what either side does, and turn by turn if that is more."""
        sides = (statement.then, statement.otherwise or ir.Seq(()))
        most = {name: mask.copy() for name, mask in into.items()}
        for side in sides:
            self.collect(side, ranges, most)
        if all(np.array_equal(mask, most[name]) for name, mask in into.items()):
            return
        names = self.definitions.variables_of(statement.condition)
        count = num_turns(names, ranges)
        cost = count * (sum(map(len, into.values())) + TURN_COST)
        if count < 2 or cost > self.program.budget:
            into.update(most)
            return
        self.program.budget -= cost
        for turn in each_turn(names, ranges):
            truth = self.definitions.truth_of(statement.condition, turn)
            for side, when in zip(sides, (True, False), strict=True):
                if truth in (None, when):
                    self.collect(side, turn, into)

    def write(self, statement: ir.Store | ir.Call, ranges: Ranges, into: dict[str, Mask]) -> None:
        for touch in self.writes_of(statement, ranges):
            mask = into.get(touch.buffer.name)
            if mask is not None:
                mask |= self.reached(touch, len(mask), ranges)[0]

    def writes_of(self, statement: ir.Store | ir.Call, ranges: Ranges) -> Iterator[_Touch]:
        if isinstance(statement, ir.Store):
            yield self.element(statement.buffer, statement.indices)
            return
        summary, callee = self.callee(statement, ranges)
        for position, argument in enumerate(statement.arguments):
            if not isinstance(argument, ir.Region):
                continue
            if summary is None or callee is None:
                yield _Touch(argument.buffer, None, _UNKNOWN)
                continue
            parameter = callee.parameters[position]
            if isinstance(parameter, ir.BufferParameter) and parameter.access is not ir.Access.READ:
                writes = summary.writes.get(parameter.buffer.name)
                if writes is not None:
                    yield self.passed(argument, writes)

    def callee(self, call: ir.Call, ranges: Ranges) -> tuple[_Summary | None, ir.PrimFunc | None]:
        kernel = self.program.kernels.get(call.callee)
        if kernel is None:
            return None, None
        scalars: list[int | None] = []
        for parameter, argument in zip(kernel.parameters, call.arguments, strict=True):
            if isinstance(parameter, ir.ScalarParameter) and isinstance(argument, ir.Expr):
                known = self.definitions.range_of(argument, ranges)
                scalars.append(known[0] if known is not None and known[0] == known[1] else None)
        return self.program.summary(kernel, tuple(scalars)), kernel

    # Reads

    def check_inside(self, sequence: ir.Seq, ranges: Ranges) -> None:
        """Reads of all turns of an outermost loop, against what is written when it has ended."""
        for statement in sequence.statements:
            self.check(statement, ranges)
            match statement:
                case ir.Seq():
                    self.check_inside(statement, ranges)
                case ir.For():
                    turns = self.turns(statement, ranges)
                    if turns is None or turns[0] <= turns[1]:
                        self.check_inside(statement.body, _with(ranges, statement.variable.name, turns))
                case ir.If():
                    truth = self.definitions.truth_of(statement.condition, ranges)
                    self.guarded += truth is None
                    if truth is not False:
                        self.check_inside(statement.then, ranges)
                    if truth is not True and statement.otherwise is not None:
                        self.check_inside(statement.otherwise, ranges)
                    self.guarded -= truth is None
                case _:
                    pass

    def check(self, statement: ir.Statement, ranges: Ranges) -> None:
        if isinstance(statement, ir.Call):
            self.check_parts(statement, ranges)
        for touch in self.reads_of(statement, ranges):
            self.check_read(statement, touch, ranges)
        if isinstance(statement, ir.Store):
            self.check_existence(statement, self.element(statement.buffer, statement.indices), ranges)

    def check_parts(self, call: ir.Call, ranges: Ranges) -> None:
        """What a call passes parts of has all elements of the parameters, whatever the callee does with them."""
        callee = self.program.kernels.get(call.callee)
        if callee is None:
            return
        for parameter, argument in zip(callee.parameters, call.arguments, strict=True):
            if (
                isinstance(parameter, ir.BufferParameter)
                and isinstance(argument, ir.Region)
                and argument.indices
            ):
                every = np.broadcast_to(np.True_, (ir.num_elements(parameter.buffer),))
                for source in self.sources(self.passed(argument, every), ranges):
                    self.check_existence(call, source, ranges)

    def check_read(self, statement: ir.Statement, touch: _Touch, ranges: Ranges) -> None:
        for source in self.sources(touch, ranges):
            self.check_existence(statement, source, ranges)
            mask = self.written.get(source.buffer.name)
            if mask is None:
                continue  # a constant
            reached, is_exact = self.reached(source, len(mask), ranges)
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

    def check_existence(self, statement: ir.Statement, touch: _Touch, ranges: Ranges) -> None:
        """Elements that are known one by one must be those of the buffer, and of others one at least."""
        runs = self.runs(touch, ranges)
        is_certain = touch.is_certain and not self.guarded
        count = ir.num_elements(touch.buffer)
        if runs is None or not is_certain:
            known = self.definitions.range_of(touch.index, ranges)
            may_not_happen = not is_certain and any(
                isinstance(n, ir.Var) for n in walk_expression(touch.index)
            )
            if known is not None and not may_not_happen and (known[0] >= count or known[1] < 0):
                self.report_missing(statement, touch.buffer, known[0] if known[0] >= count else known[1])
            return
        is_part = touch.pattern is not None and not touch.pattern.all()
        last = runs.last + (
            int(np.flatnonzero(touch.pattern)[-1]) if is_part and touch.pattern is not None else 0
        )
        outside = last if last >= count else runs.first
        if not 0 <= outside < count:
            self.report_missing(statement, touch.buffer, outside)

    def report_missing(self, statement: ir.Statement, buffer: ir.Buffer, element: int) -> None:
        text = f"element {element} of '{buffer.name}' does not exist; it has {ir.num_elements(buffer)}"
        self.report(statement, text, None, INVALID)

    def reads_of(self, statement: ir.Statement, ranges: Ranges) -> Iterator[_Touch]:
        if id(statement) in self.always:
            yield from self.always[id(statement)]
        else:
            found: list[_Touch] = []
            for expression in expressions(statement):
                for load, is_certain in self.loads(expression, ranges):
                    touch = self.element(load.buffer, load.indices)
                    found.append(touch if is_certain else _uncertain(touch))
            if not any(map(_has_choice, expressions(statement))):
                self.always[id(statement)] = tuple(found)
            yield from found
        if not isinstance(statement, ir.Call):
            return
        summary, callee = self.callee(statement, ranges)
        if summary is None or callee is None:
            return
        for parameter, argument in zip(callee.parameters, statement.arguments, strict=True):
            if isinstance(parameter, ir.BufferParameter) and isinstance(argument, ir.Region):
                needs = summary.needs.get(parameter.buffer.name)
                if needs is not None and needs.any():
                    yield self.passed(argument, needs)
                elif parameter.buffer.name in summary.reads:
                    yield _uncertain(
                        self.passed(argument, np.ones(ir.num_elements(parameter.buffer), np.bool_))
                    )

    def loads(self, expression: ir.Expr, ranges: Ranges) -> Iterator[tuple[ir.Load, bool]]:
        """Loads in an expression, each with whether it always happens."""
        pending = [(expression, True)]
        while pending:
            node, is_certain = pending.pop()
            if isinstance(node, ir.Load):
                yield node, is_certain
            if isinstance(node, ir.Select):
                truth = self.definitions.truth_of(node.condition, ranges)
                pending.append((node.condition, is_certain))
                for side, when in ((node.if_true, True), (node.if_false, False)):
                    if truth in (None, when):
                        pending.append((side, is_certain and truth is not None))
            elif isinstance(node, ir.Binary) and node.operator.is_lazy:
                decides = node.operator is ir.BinaryOperator.LOGICAL_AND
                truth = self.definitions.truth_of(node.left, ranges)
                pending.append((node.left, is_certain))
                if truth in (None, decides):
                    pending.append((node.right, is_certain and truth is not None))
            else:
                pending.extend((operand, is_certain) for operand in operands(node))

    # Elements

    def element(self, buffer: ir.Buffer, indices: tuple[ir.Expr, ...]) -> _Touch:
        key = (buffer.name, id(indices))  # of one node, which lives as long as the function
        if key not in self.elements:
            index = ir.flat_index(buffer, indices)
            self.elements[key] = _Touch(buffer, self.definitions.form(index), index)
        return self.elements[key]

    def passed(self, region: ir.Region, pattern: Mask) -> _Touch:
        index = ir.region_index(region)
        return _Touch(region.buffer, self.definitions.form(index), index, pattern)

    def sources(self, touch: _Touch, ranges: Ranges) -> Iterator[_Touch]:
        """The touch, of what views show instead of the views."""
        view = self.views.get(touch.buffer.name)
        if view is None:
            yield touch
            return
        truth = True if view.condition is None else self.definitions.truth_of(view.condition, ranges)
        for source, when in ((view.source, True), (view.otherwise, False)):
            if source is None or truth not in (None, when):
                continue
            base = self.definitions.form(ir.region_index(source))
            form = None if base is None or touch.form is None else base.plus(touch.form)
            is_certain = touch.is_certain and truth is not None
            pattern = None if form is None else touch.pattern
            yield from self.sources(_Touch(source.buffer, form, _UNKNOWN, pattern, is_certain), ranges)

    def runs(self, touch: _Touch, ranges: Ranges) -> Runs | None:
        """The elements, if they are known one by one."""
        known = self.definitions.range_of(touch.index, ranges) if touch.form is None else None
        form = Form(known[0]) if known is not None and known[0] == known[1] else touch.form
        if form is None:
            return None
        if touch.pattern is None or touch.pattern.all():
            return runs_of(form, ranges, 1 if touch.pattern is None else len(touch.pattern))
        found = runs_of(form, ranges)
        many = found is not None and len(found.starts) * found.length > MAX_PLACES
        return None if many else found

    def reached(self, touch: _Touch, count: int, ranges: Ranges) -> tuple[Mask, bool]:
        """The elements of a buffer of `count`, and whether they are known one by one."""
        mask = np.zeros(count, np.bool_)
        runs = self.runs(touch, ranges)
        if runs is None:
            known = self.definitions.range_of(touch.index, ranges)
            if known is None:
                mask[:] = True
            else:
                after = 0 if touch.pattern is None else len(touch.pattern) - 1
                mask[max(0, known[0]) : max(0, known[1] + after + 1)] = True
            return mask, False
        if touch.pattern is None or touch.pattern.all():
            mark(mask, runs)
            return mask, True
        starts = (runs.starts[:, None] + np.arange(runs.length)).ravel()
        for start in starts.tolist():
            first, end = max(0, start), min(count, start + len(touch.pattern))
            mask[first:end] |= touch.pattern[first - start : end - start]
        return mask, True

    def depends_on_data(self, expression: ir.Expr) -> bool:
        """Whether an expression depends on what memory holds."""
        return any(
            isinstance(node, ir.Load) or getattr(node, "name", None) in self.data
            for node in walk_expression(expression)
        )


def _nothing(buffer: ir.Buffer) -> Mask:
    return np.zeros(ir.num_elements(buffer), np.bool_)


def _with(ranges: Ranges, name: str, known: Range | None) -> Ranges:
    """The ranges with that of one more variable, or without it."""
    others = {other: value for other, value in ranges.items() if other != name}
    return others if known is None else {**others, name: known}


def _uncertain(touch: _Touch) -> _Touch:
    return replace(touch, is_certain=False)


def _has_choice(expression: ir.Expr) -> bool:
    """Whether some of the expression's operands are evaluated only at times."""
    return any(
        isinstance(node, ir.Select) or (isinstance(node, ir.Binary) and node.operator.is_lazy)
        for node in walk_expression(expression)
    )
