"""How many bytes a PrimFunc reads and writes of each buffer: what it costs to have a buffer in a slow memory.

Loops count as often as they turn. A branch counts as if it were always taken, the costlier side of two; so the
figures are upper bounds, and close ones for kernels, whose bounds are constants. A loop whose bounds follow from those
of others counts as often as it can turn; one whose bounds depend on data, of which nothing is known, counts once.

Calls of a kernel with the same scalars cost the same, so each such case is counted once, callees before their callers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from bytewright import ir
from bytewright.ir.analyses.arguments import buffer_arguments, scalar_arguments
from bytewright.ir.analyses.ranges import Intervals, Range
from bytewright.ir.rewrite import substitute_expression
from bytewright.ir.symbols import symbols_of
from bytewright.ir.walk import evaluated, loaded_buffers, statements_of


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
            _Body(kernels=kernels, known=known, values=dict(scalars)).bytes_of(kernel.body)
            if not kernel.is_opaque
            else _of_opaque(kernel)
        )
    total = _Body(kernels=kernels, known=known, values=largest).bytes_of(entry.body)
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
    for statement in statements_of(function):
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


@dataclass(slots=True, kw_only=True)
class _Body(Intervals):
    """Adds up what the statements of a block read and write.

    Attributes:
        known: What each kernel costs with the scalars that it is called with.
        values: Of variables that stand for numbers; the others' ranges are those of loops.
        shown: What views stand for.
        total: Of the block so far.
    """

    kernels: Mapping[str, ir.PrimFunc]
    known: Mapping[tuple[str, _Scalars], _Bytes]
    values: dict[ir.Var, ir.Expr]
    shown: dict[str, str] = field(default_factory=dict[str, str])
    total: _Bytes = field(default_factory=Counter[tuple[str, ir.Access]])

    def bytes_of(self, body: ir.Seq) -> _Bytes:
        """What a body reads and writes."""
        self.run(body)
        return self.total

    def range_of(self, expression: ir.Expr) -> Range | None:
        return Intervals.range_of(self, substitute_expression(expression, self.values))

    def evaluate(self, statement: ir.Statement) -> None:
        for buffer in loaded_buffers(statement):
            self.total[self.shown.get(buffer.name, buffer.name), ir.Access.READ] += buffer.dtype.size_bytes

    def turns(self, loop: ir.For) -> Iterator[None]:
        """The body as often as the loop can turn, or once if that is not known."""
        bounds = self.bind(loop)
        num_turns = 1 if bounds is None else max(0, bounds[1][1] - bounds[0][0])
        outside, self.total = self.total, Counter()
        yield
        outside.update({touched: num_turns * num_bytes for touched, num_bytes in self.total.items()})
        self.total = outside

    def arms(self, branch: ir.If) -> Iterator[ir.Seq]:
        """Of each buffer the costlier arm."""
        outside, found = self.total, list[_Bytes]()
        for arm in Intervals.arms(self, branch):
            self.total = Counter()
            yield arm
            found.append(self.total)
        outside.update(found[0] | found[-1])
        self.total = outside

    def store(self, store: ir.Store) -> None:
        self.total[store.buffer.name, ir.Access.WRITE] += store.buffer.dtype.size_bytes

    def define(self, let: ir.Let) -> None:
        _learn(let, self.values)

    def show(self, view: ir.View) -> None:
        # The first source is read where the view is inside its input, which is nearly always.
        self.shown[view.buffer.name] = self.shown.get(view.source.buffer.name, view.source.buffer.name)

    def execute(self, call: ir.InstructionCall) -> None:
        """What an instruction reads and writes of the memory that it is given."""
        if any(isinstance(node, ir.Load) for node in evaluated(call)):
            self.run(call)  # an argument is read from memory as often as the instruction means it
            return
        if not call.touches_memory:
            return
        own = _bytes_of_meaning(call.instruction)
        for parameter, argument in zip(call.instruction.parameters, call.arguments, strict=True):
            if isinstance(argument, ir.Region) and not argument.buffer.register:
                name = argument.buffer.name
                shown = self.shown.get(name, name)
                self.total[shown, ir.Access.READ] += own[parameter.name, ir.Access.READ]
                self.total[name, ir.Access.WRITE] += own[parameter.name, ir.Access.WRITE]

    def call(self, call: ir.Call) -> None:
        """What the callee does, under the names of the arguments; of unknown functions nothing is known."""
        kernel = self.kernels.get(call.callee)
        if kernel is None:
            return
        own = self.known[kernel.name, _scalars(kernel, call, self.values)]
        for parameter, argument in buffer_arguments(kernel, call):
            for access in (ir.Access.READ, ir.Access.WRITE):
                self.total[argument.buffer.name, access] += own[parameter.buffer.name, access]


@lru_cache(maxsize=1 << 12)
def _bytes_of_meaning(instruction: ir.Instruction) -> _Bytes:
    return _Body(kernels={}, known={}, values={}).bytes_of(instruction.body)
