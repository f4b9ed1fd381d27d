"""How many bytes a PrimFunc reads and writes of each buffer: what it costs to have a buffer in a slow memory.

Loops count as often as they turn. A branch counts as if it were always taken, the costlier side of two; so the
figures are upper bounds, and close ones for kernels, whose bounds are constants. A loop whose bounds follow from those
of others counts as often as it can turn; one whose bounds depend on data, of which nothing is known, counts once.

Calls of a kernel with the same scalars cost the same, so each such case is counted once, callees before their callers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from bytewright import ir
from bytewright.ir.analyses.arguments import buffer_arguments, scalar_arguments
from bytewright.ir.analyses.ranges import Range, range_of
from bytewright.ir.rewrite import substitute_expression
from bytewright.ir.symbols import symbols_of
from bytewright.ir.walk import evaluated, loaded_buffers, walk_statements


@dataclass(frozen=True, slots=True)
class Traffic:
    """Bytes read and written."""

    read_bytes: int = 0
    written_bytes: int = 0

    def __add__(self, other: Traffic) -> Traffic:
        return Traffic(self.read_bytes + other.read_bytes, self.written_bytes + other.written_bytes)


# Bytes by name of the buffer.
TrafficByName = dict[str, Traffic]
# The same while it is added up, and what a kernel's scalar parameters are at a call.
_Bytes = Counter[tuple[str, ir.Access]]
_Scalars = tuple[tuple[ir.Var, ir.Expr], ...]


def entry_traffic(entry: ir.PrimFunc, kernels: Mapping[str, ir.PrimFunc]) -> TrafficByName:
    """Traffic of every buffer that the calls of an entry touch, in one run with every symbol at its upper bound."""
    largest: dict[ir.Var, ir.Expr] = {
        ir.Var(name, ir.DType.I32): ir.const(symbol.upper) for name, symbol in symbols_of(entry).items()
    }
    known: dict[tuple[str, _Scalars], _Bytes] = {}
    for kernel, scalars in reversed(_cases(entry, largest, kernels)):
        known[kernel.name, scalars] = (
            _Body(kernels, known, dict(scalars)).bytes_of(kernel.body)
            if not kernel.is_opaque
            else _of_opaque(kernel)
        )
    total = _Body(kernels, known, largest).bytes_of(entry.body)
    return {
        name: Traffic(total[name, ir.Access.READ], total[name, ir.Access.WRITE])
        for name in dict.fromkeys(name for name, _ in total)
    }


def _of_opaque(kernel: ir.PrimFunc) -> _Bytes:
    """Of what has no body in the module nothing is known but what it is given: each byte of that, once."""
    total: _Bytes = Counter()
    for parameter in kernel.buffer_parameters:
        if parameter.access is not ir.Access.WRITE:
            total[parameter.buffer.name, ir.Access.READ] = ir.size_bytes(parameter.buffer)
        if parameter.access is not ir.Access.READ:
            total[parameter.buffer.name, ir.Access.WRITE] = ir.size_bytes(parameter.buffer)
    return total


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
        for parameter, argument in scalar_arguments(kernel, call)
    )
    return tuple((variable, value) for variable, value in passed if isinstance(value, ir.Const))


@dataclass(slots=True)
class _Body:
    """A function's body, and what is known at the present statement.

    Attributes:
        known: What each kernel costs with the scalars that it is called with.
        values: Of variables.
        ranges: Of the loops around the statement.
        shown: What views stand for.
    """

    kernels: Mapping[str, ir.PrimFunc]
    known: Mapping[tuple[str, _Scalars], _Bytes]
    values: dict[ir.Var, ir.Expr]
    ranges: dict[str, Range] = field(default_factory=dict[str, Range])
    shown: dict[str, str] = field(default_factory=dict[str, str])

    def bytes_of(self, statement: ir.Statement) -> _Bytes:
        """What a statement reads and writes."""
        total: _Bytes = Counter()
        if isinstance(statement, ir.InstructionCall) and not _loads_for_itself(statement):
            return self.bytes_of_instruction(statement) if statement.touches_memory else total
        for buffer in loaded_buffers(statement):
            total[self.shown.get(buffer.name, buffer.name), ir.Access.READ] += buffer.dtype.size_bytes
        match statement:
            case ir.Seq():
                for inner in statement.statements:
                    total.update(self.bytes_of(inner))
            case ir.For():
                num_turns = self.num_turns(statement)
                each = self.bytes_of(statement.body)
                total.update({touched: num_turns * num_bytes for touched, num_bytes in each.items()})
            case ir.If():
                then = self.bytes_of(statement.then)
                other = self.bytes_of(statement.otherwise) if statement.otherwise else Counter()
                total.update(then | other)  # the costlier
            case ir.Store(buffer=buffer):
                total[buffer.name, ir.Access.WRITE] += buffer.dtype.size_bytes
            case ir.Let():
                _learn(statement, self.values)
            case ir.View(buffer=buffer, source=source):
                # The first source is read where the view is inside its input, which is nearly always.
                self.shown[buffer.name] = self.shown.get(source.buffer.name, source.buffer.name)
            case ir.Call():
                total.update(self.bytes_of_call(statement))
            case ir.Allocate():
                pass
        return total

    def bytes_of_instruction(self, call: ir.InstructionCall) -> _Bytes:
        """What an instruction reads and writes of the memory that it is given."""
        total: _Bytes = Counter()
        own = _bytes_of_meaning(call.instruction)
        for parameter, argument in zip(call.instruction.parameters, call.arguments, strict=True):
            if isinstance(argument, ir.Region) and not argument.buffer.register:
                name = argument.buffer.name
                total[self.shown.get(name, name), ir.Access.READ] += own[parameter.name, ir.Access.READ]
                total[name, ir.Access.WRITE] += own[parameter.name, ir.Access.WRITE]
        return total

    def bytes_of_call(self, call: ir.Call) -> _Bytes:
        """What the callee does, under the names of the arguments; of unknown functions nothing is known."""
        total: _Bytes = Counter()
        kernel = self.kernels.get(call.callee)
        if kernel is None:
            return total
        own = self.known[kernel.name, _scalars(kernel, call, self.values)]
        for parameter, argument in buffer_arguments(kernel, call):
            for access in (ir.Access.READ, ir.Access.WRITE):
                total[argument.buffer.name, access] += own[parameter.buffer.name, access]
        return total

    def num_turns(self, loop: ir.For) -> int:
        """How often a loop turns at most; what is known of its variable is added to the ranges."""
        begin, end = (
            range_of(substitute_expression(bound, self.values), self.ranges)
            for bound in (loop.begin, loop.end)
        )
        if begin is None or end is None:
            self.ranges.pop(loop.variable.name, None)
            return 1
        self.ranges[loop.variable.name] = (begin[0], max(begin[0], end[1] - 1))
        return max(0, end[1] - begin[0])


def _loads_for_itself(call: ir.InstructionCall) -> bool:
    """Whether an argument has to be read from memory: as often as the instruction means it."""
    return any(isinstance(node, ir.Load) for node in evaluated(call))


@lru_cache(maxsize=1 << 12)
def _bytes_of_meaning(instruction: ir.Instruction) -> _Bytes:
    return _Body({}, {}, {}).bytes_of(instruction.body)
