"""How many bytes a PrimFunc reads and writes of each buffer: what it costs to have a buffer in a slow memory.

Loops count as often as they turn. A branch counts as if it were always taken, the costlier side of two; so the
figures are upper bounds, and close ones for kernels, whose bounds are constants. A loop whose bounds follow from those
of others counts as often as it can turn; one whose bounds depend on data, of which nothing is known, counts once.

Calls of a kernel with the same scalars cost the same, so each such case is counted once, callees before their callers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from bytewright import ir
from bytewright.ir.analyses.ranges import Range, range_of
from bytewright.ir.rewrite import substitute_expression
from bytewright.ir.symbols import symbols_of
from bytewright.ir.walk import loaded_buffers, walk_statements


@dataclass(frozen=True, slots=True)
class Traffic:
    """Bytes read and written."""

    read_bytes: int = 0
    written_bytes: int = 0

    def __add__(self, other: Traffic) -> Traffic:
        return Traffic(self.read_bytes + other.read_bytes, self.written_bytes + other.written_bytes)

    def times(self, count: int) -> Traffic:
        """The same, several times over."""
        return Traffic(self.read_bytes * count, self.written_bytes * count)


# Bytes by name of the buffer.
TrafficByName = dict[str, Traffic]


def entry_traffic(entry: ir.PrimFunc, kernels: Mapping[str, ir.PrimFunc]) -> TrafficByName:
    """Traffic of every buffer that the calls of an entry touch, in one run with every symbol at its upper bound."""
    largest: dict[ir.Var, ir.Expr] = {
        ir.Var(name, ir.DType.I32): ir.const(symbol.upper) for name, symbol in symbols_of(entry).items()
    }
    known: _TrafficByCase = {}
    for kernel, scalars in reversed(_cases(entry, largest, kernels)):
        known[kernel.name, scalars] = (
            _of_statement(kernel.body, dict(scalars), {}, _Callees(kernels, known))
            if kernel.external is None
            else _of_external(kernel)
        )
    return _of_statement(entry.body, largest, {}, _Callees(kernels, known))


def _of_external(kernel: ir.PrimFunc) -> TrafficByName:
    """Of a function of the application nothing is known but what it is given: each byte of that, once."""
    return {
        parameter.buffer.name: Traffic(
            0 if parameter.access is ir.Access.WRITE else ir.size_bytes(parameter.buffer),
            0 if parameter.access is ir.Access.READ else ir.size_bytes(parameter.buffer),
        )
        for parameter in kernel.buffer_parameters
    }


# What a kernel's scalar parameters are at a call.
_Scalars = tuple[tuple[ir.Var, ir.Expr], ...]
_TrafficByCase = dict[tuple[str, _Scalars], TrafficByName]


@dataclass(frozen=True, slots=True)
class _Callees:
    """The kernels, and the traffic of each with the scalars that it is called with.

    Attributes:
        ranges: Of the loops around the present statement of the caller.
    """

    kernels: Mapping[str, ir.PrimFunc]
    known: _TrafficByCase
    ranges: dict[str, Range] = field(default_factory=dict[str, Range])


def _cases(
    entry: ir.PrimFunc, largest: Mapping[ir.Var, ir.Expr], kernels: Mapping[str, ir.PrimFunc]
) -> list[tuple[ir.PrimFunc, _Scalars]]:
    """Each kernel with the scalars of its calls, callers before callees."""
    found: dict[str, dict[_Scalars, None]] = {}
    cases: list[tuple[ir.PrimFunc, _Scalars]] = []
    _find_calls(entry, dict(largest), kernels, found)
    for name in reversed(tuple(kernels)):  # callers stand behind their callees
        for scalars in found.get(name, {}):
            cases.append((kernels[name], scalars))
            _find_calls(kernels[name], dict(scalars), kernels, found)
    return cases


def _find_calls(
    function: ir.PrimFunc,
    values: dict[ir.Var, ir.Expr],
    kernels: Mapping[str, ir.PrimFunc],
    found: dict[str, dict[_Scalars, None]],
) -> None:
    for statement in walk_statements(function.body):
        if isinstance(statement, ir.Let):
            _learn(statement, values)
        elif isinstance(statement, ir.Call) and statement.callee in kernels:
            scalars = _scalars(kernels[statement.callee], statement, values)
            found.setdefault(statement.callee, {})[scalars] = None


def _learn(let: ir.Let, values: dict[ir.Var, ir.Expr]) -> None:
    """Remembers a name that stands for a number; others would grow into all that they are computed from."""
    value = substitute_expression(let.value, values)
    if isinstance(value, ir.Const):
        values[let.variable] = value


def _scalars(kernel: ir.PrimFunc, call: ir.Call, values: dict[ir.Var, ir.Expr]) -> _Scalars:
    """Those that are numbers: of others the callee knows nothing."""
    passed = (
        (parameter.variable, substitute_expression(argument, values))
        for parameter, argument in zip(kernel.parameters, call.arguments, strict=True)
        if isinstance(parameter, ir.ScalarParameter) and isinstance(argument, ir.Expr)
    )
    return tuple((variable, value) for variable, value in passed if isinstance(value, ir.Const))


def _of_statement(
    statement: ir.Statement,
    values: dict[ir.Var, ir.Expr],
    sources: dict[str, tuple[str, ...]],
    callees: _Callees,
) -> TrafficByName:
    """Traffic of one statement.

    Args:
        statement: The statement.
        values: What is known of variables; `Let`s are added to it.
        sources: What views stand for; views are added to it.
        callees: What calls cost.
    """
    total = _loads(statement, sources)
    match statement:
        case ir.Seq():
            for inner in statement.statements:
                _merge(total, _of_statement(inner, values, sources, callees))
        case ir.For():
            num_turns = _num_turns(statement, values, callees.ranges)
            _merge(total, _of_statement(statement.body, values, sources, callees), num_turns)
        case ir.If():
            then = _of_statement(statement.then, values, sources, callees)
            other = (
                _of_statement(statement.otherwise, values, sources, callees) if statement.otherwise else {}
            )
            _merge(total, _costlier(then, other))
        case ir.Store(buffer=buffer):
            _merge(total, {buffer.name: Traffic(0, buffer.dtype.size_bytes)})
        case ir.Let():
            _learn(statement, values)
        case ir.View():
            regions = [statement.source, *([statement.otherwise] if statement.otherwise else [])]
            names = [
                name for region in regions for name in sources.get(region.buffer.name, (region.buffer.name,))
            ]
            # The first source is read where the view is inside its input, which is nearly always.
            sources[statement.buffer.name] = tuple(names[:1])
        case ir.Call():
            _merge(total, _of_call(statement, values, callees))
        case ir.Allocate():
            pass
    return total


def _loads(statement: ir.Statement, sources: dict[str, tuple[str, ...]]) -> TrafficByName:
    total: TrafficByName = {}
    for buffer in loaded_buffers(statement):
        for name in sources.get(buffer.name, (buffer.name,)):
            _merge(total, {name: Traffic(buffer.dtype.size_bytes, 0)})
    return total


def _of_call(call: ir.Call, values: dict[ir.Var, ir.Expr], callees: _Callees) -> TrafficByName:
    """Traffic of the callee under the names of the arguments; of unknown functions nothing is known."""
    kernel = callees.kernels.get(call.callee)
    if kernel is None:
        return {}
    names = {
        parameter.buffer.name: argument.buffer.name
        for parameter, argument in zip(kernel.parameters, call.arguments, strict=True)
        if isinstance(parameter, ir.BufferParameter) and isinstance(argument, ir.Region)
    }
    total: TrafficByName = {}
    for name, traffic in callees.known[kernel.name, _scalars(kernel, call, values)].items():
        if name in names:
            _merge(total, {names[name]: traffic})
    return total


def _num_turns(loop: ir.For, values: dict[ir.Var, ir.Expr], ranges: dict[str, Range]) -> int:
    """How often a loop turns at most; what is known of its variable is added to the ranges."""
    begin, end = (range_of(substitute_expression(bound, values), ranges) for bound in (loop.begin, loop.end))
    if begin is None or end is None:
        ranges.pop(loop.variable.name, None)
        return 1
    ranges[loop.variable.name] = (begin[0], max(begin[0], end[1] - 1))
    return max(0, end[1] - begin[0])


def _merge(total: TrafficByName, other: TrafficByName, count: int = 1) -> None:
    for name, traffic in other.items():
        total[name] = total.get(name, Traffic()) + traffic.times(count)


def _costlier(first: TrafficByName, second: TrafficByName) -> TrafficByName:
    names = [*first, *(name for name in second if name not in first)]
    nothing = Traffic()
    return {
        name: Traffic(
            max(first.get(name, nothing).read_bytes, second.get(name, nothing).read_bytes),
            max(first.get(name, nothing).written_bytes, second.get(name, nothing).written_bytes),
        )
        for name in names
    }
