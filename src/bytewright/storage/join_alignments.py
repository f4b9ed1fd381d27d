"""Alignment is a constraint that joins like scopes: every buffer gets the strictest of its type, its definition and
each of its uses, through calls and views, to any depth; and of the devices that it is lent to (`touch-alignment`).

A kernel's parameter passes what it asks for to the arguments of every call, and these to the parameters of the caller,
up to the allocations, constants, inputs and outputs of the entry. Where a part of a buffer is passed or shown, the
part's offset has to be a multiple too, and provably so, or the program is refused: no place of the buffer would help.
A device is lent what a function of another device gives it, and what the entry does. Within its own kernels parts of
that may begin anywhere.
Runs before scratch is placed, so that whoever reads an alignment afterwards reads the joined one.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from math import gcd

from bytewright import ir
from bytewright.diagnostics import Collector, compile_error
from bytewright.ir.analyses.touch import (
    Touches,
    TouchTable,
    alignment_reason,
    constant_touches,
    touch_alignment,
    touch_table,
)
from bytewright.ir.definitions import Definition, redefined, redefined_constants
from bytewright.ir.rewrite import substitute_in_function
from bytewright.ir.walk import allocations, free_buffers, regions, statements_of
from bytewright.target.model import Target

_OFFSET_HELP = "in the program: use a part that begins at a multiple of the alignment, or ask for less"


def join_alignments(module: ir.Module, target: Target) -> ir.Module:
    """Returns the module in which every buffer has its joined alignment; where a device asks for it, with the reason.

    Raises:
        CompileError: BW301 for parts of buffers that cannot be aligned as they are used; all at once.
    """
    joining = _Joining(touch_table(module, target))
    for function in (*module.kernels, *module.entries):  # callees stand before their callers
        joining.function(function)
    joining.collector.stop_if_any()
    constants = {
        c.buffer: replace(c.buffer, alignment=max(joining.constants.get(c.buffer.name, 1), _own(c.buffer)))
        for c in module.constant_buffers
    }
    changed_constants = {before: after for before, after in constants.items() if before != after}

    def joined(function: ir.PrimFunc) -> ir.PrimFunc:
        used = set(free_buffers(function.body)) if changed_constants else set[ir.Buffer]()
        changed = joining.changed[function.name] | {b: a for b, a in changed_constants.items() if b in used}
        if not changed:
            return function
        reasoned = _with_reasons(allocations(function), joining.table.of_buffers(function), changed, target)
        return substitute_in_function(redefined(function, reasoned) if reasoned else function, changed)

    found = constant_touches(module, target) if changed_constants else {}
    reasoned = _with_reasons(module.constant_buffers, found, changed_constants, target)
    return replace(
        module,
        kernels=tuple(joined(kernel) for kernel in module.kernels),
        entries=tuple(joined(entry) for entry in module.entries),
        constant_buffers=tuple(
            replace(c, buffer=constants[c.buffer]) for c in redefined_constants(module, reasoned)
        ),
    )


def asked_alignments(module: ir.Module, target: Target) -> Mapping[str, tuple[int, ...]]:
    """What each kernel asks of its parameters, in bytes, by the kernel's name; 1 for scalars."""
    joining = _Joining(touch_table(module, target))
    for kernel in module.kernels:
        joining.function(kernel)
    return joining.parameters


def _with_reasons(
    definitions: Iterable[Definition],
    touches: Mapping[str, Touches],
    changed: Mapping[ir.Buffer, ir.Buffer],
    target: Target,
) -> dict[str, ir.Storage]:
    """What is decided of those that have the alignment which a device asks for, with the reason."""
    found: dict[str, ir.Storage] = {}
    for definition in definitions:
        joined, own = changed.get(definition.buffer), touches.get(definition.buffer.name, ())
        if joined is not None and joined.alignment == touch_alignment(own, target):
            reason = f"join_alignments: {alignment_reason(own, target)}"
            found[joined.name] = definition.storage.narrowed(reason)
    return found


def _own(buffer: ir.Buffer) -> int:
    return max(buffer.alignment, buffer.dtype.size_bytes)


@dataclass(slots=True)
class _Joining:
    """What is known so far.

    Attributes:
        table: Who touches what.
        parameters: By kernel: for each parameter what it asks for, 1 for scalars.
        constants: By name, what the functions ask of constants.
        changed: By function: its buffers that are to be aligned to more than they say.
    """

    table: TouchTable
    parameters: dict[str, tuple[int, ...]] = field(default_factory=dict[str, tuple[int, ...]])
    constants: dict[str, int] = field(default_factory=dict[str, int])
    changed: dict[str, dict[ir.Buffer, ir.Buffer]] = field(
        default_factory=dict[str, dict[ir.Buffer, ir.Buffer]]
    )
    collector: Collector = field(default_factory=Collector)

    def function(self, function: ir.PrimFunc) -> None:
        """Learns what a function asks for, its callees being known."""
        statements = list(statements_of(function))
        own = [p.buffer for p in function.buffer_parameters]
        own += [s.buffer for s in statements if isinstance(s, ir.Allocate | ir.View)]
        asked = {buffer.name: _own(buffer) for buffer in own}
        for statement in reversed(statements):  # what is shown or passed is used after it is defined
            for region, alignment, what in self._uses(statement, asked, function):
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

    def _uses(
        self, statement: object, asked: dict[str, int], function: ir.PrimFunc
    ) -> Iterator[tuple[ir.Region, int, str]]:
        if isinstance(statement, ir.View):
            for region in regions(statement):
                yield region, asked[statement.buffer.name], f"the view '{statement.buffer.name}'"
        elif isinstance(statement, ir.Call):
            own = self.parameters.get(statement.callee, (1,) * len(statement.arguments))
            for index, (argument, alignment) in enumerate(zip(statement.arguments, own, strict=True)):
                if isinstance(argument, ir.Region):
                    lent = self.table.of_lent(function, statement, index)
                    asked_for = max(alignment, touch_alignment(lent, self.table.target))
                    yield argument, asked_for, f"'{statement.callee}'"


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
