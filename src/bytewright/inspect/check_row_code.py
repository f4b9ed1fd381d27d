"""Whether the C of steps that run by rows is the plan's: the rows that calls ask for, and how kernels find them.

A kernel that is given a ring must find each row in its slot: wherever its C reaches into the ring, what depends on the
row stands under `% rows`, with the ring's own number of rows; and it must leave out rows that its output does not have.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache

from pycparser import c_ast

from bytewright.inspect.c_nodes import (
    call_of,
    constant_of,
    form_of,
    integer_of,
    loop_of,
    names_in,
    parameters_of,
)
from bytewright.inspect.c_numbers import Numbers
from bytewright.inspect.c_source import CSource, children, descend
from bytewright.inspect.read_entry import CallText
from bytewright.ir.analyses.rows import ROW_BEGIN, ROW_END
from bytewright.record.entries import PlannedStep
from bytewright.record.names import Names
from bytewright.record.plan import Plan
from bytewright.record.row_calls import asked_rows

_Interval = tuple[float, float]
_EVERYTHING: _Interval = (-math.inf, math.inf)


def differences_of_rows(
    path: str,
    plan: Plan,
    names: Names,
    calls: Sequence[CallText],
    kernels: Mapping[str, CSource],
    known: Numbers,
) -> Iterator[str]:
    """What differs, one sentence each.

    Args:
        path: The file with the calls, as messages call it.
        plan: The plan.
        names: The names of its bundle.
        calls: One for each step.
        kernels: The files with the kernels, by their paths.
        known: What names of numbers stand for in the plan.
    """
    asked_by = cache(lambda: asked_rows(plan))  # goes through all calls: only where the C leaves it open

    @cache
    def kernel_of(file: str, kernel: str) -> _Kernel | None:
        function = kernels[file].function(kernel) if file in kernels else None
        return None if function is None else _Kernel(function, kernels[file].inline_functions)

    for call, step in zip(calls, plan.steps, strict=True):
        if step.rows is None:
            continue
        device = plan.devices.get(step.device)
        file = names.kernels_source if device is None else names.device_source(device)
        kernel = kernel_of(file, step.kernel)
        arguments = _arguments(call, kernel)
        texts = [
            known.without_extents.text(node)
            for node in arguments
            if node is not None and not _is_image(node, names)
        ]
        asked = [text for text in texts if text is not None]
        planned = [step.rows.begin, step.rows.end]
        if asked != planned:
            yield f"{path}, step {step.index} asks for rows {_range(asked)}, in the plan {_range(planned)}"
        if file not in kernels:
            continue  # it is missed already
        front = f"{file}, {step.kernel}"
        num_parameters = 0 if kernel is None else len(kernel.parameters)
        if kernel is None or num_parameters != len(arguments):
            yield f"{front} has {num_parameters} parameters, step {step.index} passes {len(arguments)}"
            continue
        yield from (
            f"{front} {text}"
            for text in _differences_of_kernel(plan, names, step, arguments, kernel, asked_by)
        )


def _is_image(node: c_ast.Node, names: Names) -> bool:
    """Whether it is the address of rows of the image; all others are no sums."""
    return isinstance(node, c_ast.ID) and names.is_pushed(node.name)


def _arguments(call: CallText, kernel: "_Kernel | None") -> list[c_ast.Node | None]:
    """What a kernel is called with. That of a job are the spans and the numbers, in the order of the parameters."""
    if call.job is None:
        return list(call.arguments)
    spans, numbers = iter(call.job.spans), iter(call.job.scalars)
    arguments: list[c_ast.Node | None] = []
    for parameter in () if kernel is None else kernel.parameters:
        if parameter in {ROW_BEGIN, ROW_END}:
            arguments.append(next(numbers, None))
        else:
            span = next(spans, None)
            arguments.append(None if span is None else c_ast.UnaryOp("&", c_ast.ID(span.place.name)))
    return arguments


def _range(ends: Sequence[int | str | None]) -> str:
    return " to ".join(f"'{end}'" for end in ends) or "none"


def _differences_of_kernel(
    plan: Plan,
    names: Names,
    step: PlannedStep,
    arguments: Sequence[c_ast.Node | None],
    kernel: "_Kernel",
    asked_by: Callable[[], Mapping[int, tuple[int, int]]],
) -> Iterator[str]:
    """Of one call: how its kernel goes about each ring that it is given, and about rows that do not exist."""
    num_rows = 0 if step.rows is None else step.rows.num_rows
    if not kernel.is_within(num_rows) and not kernel.is_within(num_rows, asked_by().get(step.index)):
        yield f"does not leave out rows that are not among the {num_rows} of its output"
    for name in step.touched:
        buffer = plan.buffers.get(name)
        if buffer is None or buffer.ring is None:
            continue
        for parameter, argument in zip(kernel.parameters, arguments, strict=True):
            is_given = argument is not None and names.argument(buffer) in names_in(argument)
            if is_given and not _Ring(kernel, parameter, buffer.ring.num_rows).is_kept_to():
                yield f"reaches rows of its {parameter} otherwise than in the {buffer.ring.num_rows} slots of a ring"


class _Kernel:
    """A kernel that runs by rows.

    Attributes:
        parameters: Their names.
        constants: The numbers in it that do not change, by their names.
        views: The pointers in it that do not change.
        moving: The names of numbers that move with the row.
        instructions: The functions that are given pointers, from which on they touch a few elements of a row.
    """

    def __init__(self, function: c_ast.FuncDef, instructions: frozenset[str]) -> None:
        self.parameters, self.body, self.instructions = parameters_of(function), function.body, instructions
        self.constants: dict[str, c_ast.Node] = {}
        self.views: dict[str, c_ast.Node] = {}
        self._loops: list[tuple[c_ast.Node, c_ast.Node] | None] = []  # over rows: where each begins and ends
        self._is_by_rows = False  # whether one of them goes from what is asked for to its end
        moving = {ROW_BEGIN, ROW_END}
        for node in descend(self.body):
            match node:
                case c_ast.For():
                    loop = loop_of(node)
                    depends = self._depends_on(ROW_BEGIN, node.init), self._depends_on(ROW_END, node.cond)
                    if any(depends):
                        self._loops.append(None if loop is None else loop[1:])
                        moving |= set() if loop is None else {loop[0]}
                    self._is_by_rows |= all(depends)
                case c_ast.Decl(name=name, init=c_ast.Node() as value, type=c_ast.PtrDecl(quals=quals)):
                    if "const" in quals:
                        self.views[name] = value
                case c_ast.Decl():
                    self.constants |= dict(constant for constant in [constant_of(node)] if constant)
                case _:
                    pass
        self.moving = frozenset(moving)

    def _depends_on(self, end: str, node: c_ast.Node | None) -> bool:
        """Whether an end of what is asked for is in an expression, or in the constants of it."""
        names = frozenset[str]() if node is None else names_in(node)
        constants = (self.constants[name] for name in names if name in self.constants)
        return end in names or any(self._depends_on(end, value) for value in constants)

    def is_within(self, num_rows: int, asked: tuple[int, int] | None = None) -> bool:
        """Whether the loops over rows keep to the rows of the output, if all calls ask for some of `asked`."""
        low, high = asked or _EVERYTHING
        given: dict[str, _Interval] = {ROW_BEGIN: (low, math.inf), ROW_END: (-math.inf, high)}
        return self._is_by_rows and all(
            ends is not None
            and self._interval(ends[0], given)[0] >= 0
            and self._interval(ends[1], given)[1] <= num_rows
            for ends in self._loops
        )

    def _interval(self, node: c_ast.Node, given: dict[str, _Interval]) -> _Interval:
        """Between which numbers an expression lies."""
        form = form_of(node, {})
        if form is not None and not form.terms:
            return form.constant, form.constant
        match node:
            case c_ast.ID(name=name) if name in given:
                return given[name]
            case c_ast.ID(name=name) if name in self.constants:
                given[name] = self._interval(self.constants[name], given)
                return given[name]
            case c_ast.BinaryOp(op="+" | "-" as operator, left=left, right=right):
                one, other = self._interval(left, given), self._interval(right, given)
                low, high = other if operator == "+" else (-other[1], -other[0])
                return one[0] + low, one[1] + high
            case c_ast.FuncCall():
                name, arguments = call_of(node)
                chosen = {"max_i32": max, "min_i32": min}.get(name)
                if chosen is not None and len(arguments) == 2:
                    one, other = (self._interval(argument, given) for argument in arguments)
                    return chosen(one[0], other[0]), chosen(one[1], other[1])
            case _:
                pass
        return _EVERYTHING


class _Ring:
    """One ring that a kernel is given for a parameter.

    Every index of it, and of what points into it, moves with the row under the ring's modulo alone, and on the way to
    what is touched there is such an index. A ring of one row has no modulo: nothing moves with the row there, and a
    pointer may be taken as it is.
    """

    def __init__(self, kernel: _Kernel, parameter: str, num_rows: int) -> None:
        self._kernel, self._num_rows = kernel, num_rows
        self._touches: list[bool] = []  # whether each is in the slot of its row
        self._in_slot = {parameter: num_rows == 1}  # of the parameter, and of each view of the ring
        for view, value in kernel.views.items():
            sources = [name for name in self._in_slot if name in names_in(value)]
            if sources:
                self._in_slot[view] = all(self._in_slot[name] or self._has_slot(value) for name in sources)

    def is_kept_to(self) -> bool:
        """Whether the kernel touches the ring, and each time in the slot of a row."""
        return self._is_kept(self._kernel.body) and bool(self._touches) and all(self._touches)

    def _is_kept(self, node: c_ast.Node, is_value: bool = False) -> bool:
        """The same of a part of the kernel; `is_value` says whether a pointer may stand there as it is."""
        match node:
            case c_ast.Decl(name=name, init=value) if name in self._kernel.views:
                num_touches = len(self._touches)
                is_kept = self._is_kept(value, is_value=True)
                del self._touches[num_touches:]  # it is touched where the view is
                return is_kept
            case c_ast.ArrayRef(name=c_ast.ID(name=name), subscript=index) if name in self._in_slot:
                self._touches.append(self._in_slot[name] or self._has_slot(index))
                return not self._moves(index) and self._is_kept(index)
            case c_ast.ID(name=name) if name in self._in_slot:
                self._touches.append(self._in_slot[name])
                return is_value
            case c_ast.TernaryOp():
                arms = (self._is_kept(arm, is_value) for arm in (node.iftrue, node.iffalse))
                return self._is_kept(node.cond) and all(arms)
            case c_ast.Cast(expr=inner):
                return self._is_kept(inner, is_value)
            case c_ast.FuncCall():
                name, arguments = call_of(node)
                return all(
                    self._is_kept(argument, name in self._kernel.instructions) for argument in arguments
                )
            case _:
                return all(self._is_kept(child) for child in children(node))

    def _under_modulo(self, node: c_ast.Node) -> c_ast.Node | None:
        """What stands under the ring's modulo in a number that is its remainder; None for another number."""
        match node:
            case c_ast.BinaryOp(op="%", left=left, right=right) if integer_of(right) == self._num_rows:
                return left
            case _:
                return None

    def _has_slot(self, node: c_ast.Node) -> bool:
        """Whether a row's slot stands somewhere in a number."""
        row = self._under_modulo(node)
        if row is not None:
            return self._moves(row)
        if isinstance(node, c_ast.ID) and node.name in self._kernel.constants:
            return self._has_slot(self._kernel.constants[node.name])
        return any(self._has_slot(child) for child in children(node))

    def _moves(self, node: c_ast.Node) -> bool:
        """Whether a number depends on the row, but for what stands under the modulo."""
        if self._under_modulo(node) is not None:
            return False
        if isinstance(node, c_ast.ID):
            constant = self._kernel.constants.get(node.name)
            return node.name in self._kernel.moving if constant is None else self._moves(constant)
        return any(self._moves(child) for child in children(node))
