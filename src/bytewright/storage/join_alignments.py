"""Alignment is a constraint that joins like scopes: every buffer gets the strictest of its type, its definition and
each of its uses, through calls and views, to any depth.

A kernel's parameter passes what it asks for to the arguments of every call, and these to the parameters of the caller,
up to the allocations, constants, inputs and outputs of the entry. Where a part of a buffer is passed or shown, the
part's offset has to be a multiple too, and provably so, or the program is refused: no place of the buffer would help.
Runs before scratch is placed, so that whoever reads an alignment afterwards reads the joined one.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from math import gcd

from bytewright import ir
from bytewright.diagnostics import Collector, compile_error
from bytewright.ir.rewrite import substitute_in_function
from bytewright.ir.walk import free_buffers, regions, walk_statements

_OFFSET_HELP = "in the program: use a part that begins at a multiple of the alignment, or ask for less"


def join_alignments(module: ir.Module) -> ir.Module:
    """Returns the module in which every buffer has its joined alignment.

    Raises:
        CompileError: BW301 for parts of buffers that cannot be aligned as they are used; all at once.
    """
    joining = _Joining()
    for function in (*module.kernels, *module.entries):  # callees stand before their callers
        joining.function(function)
    joining.collector.stop_if_any()
    constants = {
        c.buffer: replace(c.buffer, alignment=max(joining.constants.get(c.buffer.name, 1), _own(c.buffer)))
        for c in module.constant_buffers
    }
    changed_constants = {before: after for before, after in constants.items() if before != after}

    def joined(function: ir.PrimFunc) -> ir.PrimFunc:
        changed = joining.changed[function.name] | changed_constants
        return substitute_in_function(function, changed) if changed else function

    return replace(
        module,
        kernels=tuple(joined(kernel) for kernel in module.kernels),
        entries=tuple(joined(entry) for entry in module.entries),
        constant_buffers=tuple(replace(c, buffer=constants[c.buffer]) for c in module.constant_buffers),
    )


def _own(buffer: ir.Buffer) -> int:
    return max(buffer.alignment, buffer.dtype.size_bytes)


@dataclass(slots=True)
class _Joining:
    """What is known so far.

    Attributes:
        parameters: By kernel: for each parameter what it asks for, 1 for scalars.
        constants: By name, what the functions ask of constants.
        changed: By function: its buffers that are to be aligned to more than they say.
    """

    parameters: dict[str, tuple[int, ...]] = field(default_factory=dict[str, tuple[int, ...]])
    constants: dict[str, int] = field(default_factory=dict[str, int])
    changed: dict[str, dict[ir.Buffer, ir.Buffer]] = field(
        default_factory=dict[str, dict[ir.Buffer, ir.Buffer]]
    )
    collector: Collector = field(default_factory=Collector)

    def function(self, function: ir.PrimFunc) -> None:
        """Learns what a function asks for, its callees being known."""
        statements = list(walk_statements(function.body))
        own = [p.buffer for p in function.buffer_parameters]
        own += [s.buffer for s in statements if isinstance(s, ir.Allocate | ir.View)]
        asked = {buffer.name: _own(buffer) for buffer in own}
        for statement in reversed(statements):  # what is shown or passed is used after it is defined
            for region, alignment, what in self._uses(statement, asked):
                with self.collector.catch():
                    _require_part(region, alignment, what, function)
                name = region.buffer.name
                asked[name] = max(asked.get(name, 1), alignment)
        self.parameters[function.name] = tuple(
            asked[p.buffer.name] if isinstance(p, ir.BufferParameter) else 1 for p in function.parameters
        )
        names = {buffer.name for buffer in own}
        for buffer in free_buffers(function.body):
            if buffer.name not in names:
                known = self.constants.get(buffer.name, 1)
                self.constants[buffer.name] = max(known, asked.get(buffer.name, 1))
        self.changed[function.name] = {
            buffer: replace(buffer, alignment=asked[buffer.name])
            for buffer in own
            if buffer.alignment != asked[buffer.name]
        }

    def _uses(self, statement: object, asked: dict[str, int]) -> Iterator[tuple[ir.Region, int, str]]:
        if isinstance(statement, ir.View):
            for region in regions(statement):
                yield region, asked[statement.buffer.name], f"the view '{statement.buffer.name}'"
        elif isinstance(statement, ir.Call) and statement.callee in self.parameters:
            for argument, alignment in zip(
                statement.arguments, self.parameters[statement.callee], strict=True
            ):
                if isinstance(argument, ir.Region):
                    yield argument, alignment, f"'{statement.callee}'"


def _require_part(region: ir.Region, alignment: int, what: str, function: ir.PrimFunc) -> None:
    size_bytes = region.buffer.dtype.size_bytes
    step_bytes = _divisor(ir.region_index(region)) * size_bytes
    if step_bytes % alignment:
        raise compile_error(
            "BW301",
            f"'{function.name}' gives {what} a part of '{region.buffer.name}' that begins at a multiple of "
            f"{gcd(step_bytes, alignment)} B, where {alignment} B are asked for",
            help=_OFFSET_HELP,
            where=str(function.where),
        )


def _divisor(index: ir.Expr) -> int:
    """A number that divides every value of an index; 0 for the index 0."""
    match index:
        case ir.Const(value=int(value)):
            return abs(value)
        case ir.Binary(operator=ir.BinaryOperator.MUL):
            return _divisor(index.left) * _divisor(index.right)
        case ir.Binary(operator=ir.BinaryOperator.ADD | ir.BinaryOperator.SUB):
            return gcd(_divisor(index.left), _divisor(index.right))
        case ir.Binary(operator=ir.BinaryOperator.SHL, right=ir.Const(value=int(amount))):
            return _divisor(index.left) << amount
        case _:
            return 1
