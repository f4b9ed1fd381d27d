"""The body of the run function: the entry's calls, each under a comment, in the loops and branches that they stand in.

The entry is printed as kernels are, but for three things: its buffers are addresses that the plan knows, its
allocations print nothing, and its calls are steps.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import partial

from bytewright.codegen.arena import describe_requests, requests_of, write_requests
from bytewright.codegen.expressions import c_expression, c_value, memory_type
from bytewright.codegen.interface import Interface, request_name
from bytewright.codegen.statements import write_sequence
from bytewright.codegen.writer import Writer
from bytewright.diagnostics import InternalError
from bytewright.ir.address import region_index
from bytewright.ir.border import border_ports
from bytewright.ir.expr import Buffer, Const, Expr, Var
from bytewright.ir.module import Module
from bytewright.ir.prim import (
    Access,
    Allocate,
    BufferParameter,
    Call,
    CallKind,
    For,
    Let,
    ParameterRole,
    PrimFunc,
    Region,
    Seq,
    Statement,
)
from bytewright.ir.rewrite import Rewriting, rewrite_sequence, substitute
from bytewright.ir.types import format_shape
from bytewright.ir.walk import walk_statements

MAX_NAMED = 8  # workspaces that each step names; more have one name together


def all_workspaces(interface: Interface) -> str:
    """The macro that stands for many workspaces, so that steps do not name each of them."""
    return f"{interface.prefix}_STEP_WORKSPACES"


class Names:
    """How the entry spells a buffer: a member of inputs or outputs, or base plus offset."""

    def __init__(self, interface: Interface, ports: dict[str, str], kernels: dict[str, PrimFunc]) -> None:
        self.interface = interface
        self.ports = ports
        self.kernels = kernels
        self.offsets = dict(interface.offsets)
        self.arena_of = interface.arena_of

    def address(self, buffer: Buffer, is_read_only: bool) -> str:
        """The address of a buffer, typed."""
        if buffer.name in self.ports:
            return self.ports[buffer.name]
        if buffer.name in self.arena_of:
            return f"({memory_type(buffer.dtype)} *){request_name(buffer.name)}"
        return self.address_from(
            self.interface.base_name(self.interface.pool_of(buffer)), buffer, is_read_only
        )

    def address_from(self, base: str, buffer: Buffer, is_read_only: bool) -> str:
        """The address of a buffer in a pool, typed, from the expression for the pool's base."""
        macro = self.interface.offset_macro(buffer)
        constness = "const " if is_read_only else ""
        through = f"({constness}void *)" if buffer.dtype.size_bytes > 1 else ""
        return f"({constness}{memory_type(buffer.dtype)} *){through}({base} + {macro})"

    def place(self, buffer: Buffer) -> str:
        """`@dtcm+8000` or `@caller`, for comments."""
        if buffer.name in self.ports:
            return "@caller"
        pool = buffer.scope.pool if buffer.scope is not None else None
        return f"@{pool}+{self.offsets[self.interface.offset_macro(buffer)]}"


def port_expressions(module: Module) -> dict[str, str]:
    """The C expression for each parameter of the entry."""
    return {name: f"{border.value}s->{port.name}" for name, (border, port) in border_ports(module).items()}


@dataclass(slots=True)
class _Steps:
    """Writes calls as steps and counts them. `watched` are the workspaces that the macro between them is given."""

    names: Names
    watched: list[str]
    num_written: int = 0

    def write(self, writer: Writer, call: Call) -> None:
        self.write_macro(writer)
        self.num_written += 1
        _write_step(writer, call, self.names)

    def write_macro(self, writer: Writer) -> None:
        if self.watched:
            macro = f"{self.names.interface.prefix}_STEP"
            are_few = len(self.watched) <= MAX_NAMED
            named = self.watched if are_few else [all_workspaces(self.names.interface)]
            writer.listed(macro, [str(self.num_written), *named], ";")


def write_steps(writer: Writer, entry: PrimFunc, names: Names, watched: list[str]) -> None:
    """Writes all steps, and the macro after the last."""
    steps = _Steps(names, watched)
    write_sequence(writer, _with_names(_flat(entry.body), names.interface, watched), steps.write)
    steps.write_macro(writer)


def _flat(body: Seq) -> Seq:
    """Without allocations, which are planned or requested around their call, and without blocks, which end them."""

    def flatten(statement: Statement) -> tuple[Statement, ...]:
        match statement:
            case Allocate():
                return ()
            case Seq(statements=statements):
                return statements
            case _:
                return (statement,)

    return rewrite_sequence(body, Rewriting(statement=flatten))


def _with_names(body: Seq, interface: Interface, bases: list[str]) -> Seq:
    """Variables under names that nothing else in the run function has."""
    taken = {"context", "inputs", "outputs", "first_error", "request_status", *bases}
    taken.update(interface.base_name(pool) for pool in (*interface.workspaces, *interface.parameters))
    taken.update(symbol.name for symbol in interface.symbols)
    renamed: dict[Var, Expr] = {}
    for statement in walk_statements(body):
        if isinstance(statement, For | Let):
            variable = statement.variable
            plain = re.sub(r"[^A-Za-z0-9_]", "_", variable.name)
            name = plain
            while name in taken or name.startswith(f"{interface.model}_"):
                name = f"{plain}_{len(renamed)}" if name == plain else f"{name}_"
            taken.add(name)
            renamed[variable] = replace(variable, name=name)
    return substitute(body, renamed)


def _write_step(writer: Writer, call: Call, names: Names) -> None:
    requests = requests_of(call, names.arena_of)
    described = _describe(call, names.kernels[call.callee], names)
    writer.comment(f"{described}{describe_requests(requests)}")
    if requests:
        write_requests(writer, names.interface, requests, partial(_write_call, writer, call, names))
    else:
        _write_call(writer, call, names)


def _write_call(writer: Writer, call: Call, names: Names, status: str | None = None) -> None:
    """Args: `status` is a variable that says how the call ended; without one, an error ends the run."""
    if call.kind is not CallKind.EXTERN:
        raise InternalError(f"calls of kind '{call.kind.value}' have no C text yet")
    kernel = names.kernels[call.callee]
    arguments = [
        _argument(argument, parameter.access is Access.READ, names)
        if isinstance(parameter, BufferParameter)
        else _argument(argument, True, names)
        for argument, parameter in zip(call.arguments, kernel.parameters, strict=True)
    ]
    prefix = names.interface.prefix
    can_fail = kernel.external is not None and kernel.external.returns_status
    if can_fail and status is not None:
        outcome = f" == 0 ? {prefix}_OK : {prefix}_ERROR_EXTERNAL;"
        writer.listed(f"{status} = {call.callee}", arguments, outcome)
    elif can_fail:
        writer.listed(f"if ({call.callee}", arguments, " != 0) {")
        with writer.indented():
            writer.line(f"return {prefix}_ERROR_EXTERNAL;")
        writer.line("}")
    else:
        writer.listed(call.callee, arguments, ";")
        if status is not None:
            writer.line(f"{status} = {prefix}_OK;")


def _argument(argument: Region | Expr, is_read_only: bool, names: Names) -> str:
    if isinstance(argument, Expr):
        return c_value(argument)
    address, index = names.address(argument.buffer, is_read_only), region_index(argument)
    if isinstance(index, Const) and index.value == 0:
        return address
    text = c_expression(index)
    return f"{address} + ({text})" if " " in text else f"{address} + {text}"


def _describe(call: Call, kernel: PrimFunc, names: Names) -> str:
    """`3 (CONV_2D): i8[1,25,5,64] @dtcm+8000 -> i8[1,25,5,64] @dtcm+0`."""
    reads: list[str] = []
    writes: list[str] = []
    for argument, parameter in zip(call.arguments, kernel.parameters, strict=True):
        if not isinstance(argument, Region) or not isinstance(parameter, BufferParameter):
            continue
        if parameter.role is not ParameterRole.ACTIVATION:
            continue
        buffer = argument.buffer
        shape = format_shape(parameter.buffer.shape).replace("x", ",")
        text = f"{buffer.dtype.value}[{shape}] {names.place(buffer)}"
        (reads if parameter.access is Access.READ else writes).append(text)
    operators = " + ".join(call.operators) or call.callee
    return f"{operators}: {', '.join(reads)} -> {', '.join(writes)}"
