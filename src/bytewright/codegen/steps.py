"""The body of the run function: the entry's calls, each under a comment, in the loops and branches that they stand in.

The entry is printed as kernels are, but for two things: its buffers are where the plan says, so that it declares none,
and its calls are steps.
"""

from __future__ import annotations

from collections.abc import Mapping

from bytewright.codegen.arena import describe_requests, requested, requests_of
from bytewright.codegen.c_form import with_variables_of_c
from bytewright.codegen.expressions import memory_type
from bytewright.codegen.interface import REQUEST, Interface, request_name
from bytewright.codegen.kernels import called
from bytewright.codegen.statements import StatementWriter
from bytewright.codegen.writer import Writer
from bytewright.ir.border import border_ports
from bytewright.ir.expr import Buffer
from bytewright.ir.module import Module
from bytewright.ir.prim import Access, BufferParameter, Call, ParameterRole, PrimFunc, Region
from bytewright.ir.types import format_shape

MAX_NAMED = 8  # workspaces that each step names; more have one name together


def all_workspaces(interface: Interface) -> str:
    """The macro that stands for many workspaces, so that steps do not name each of them."""
    return f"{interface.prefix}_STEP_WORKSPACES"


class PlannedBuffers:
    """Those of the entry: members of inputs and outputs, base plus offset in a pool, or what a step requested."""

    def __init__(self, interface: Interface, ports: Mapping[str, str]) -> None:
        self.interface = interface
        self.ports = ports
        self.offsets = dict(interface.offsets)
        self.arena_of = interface.arena_of

    def address(self, buffer: Buffer, access: Access) -> str:
        """The address of a buffer, typed."""
        if buffer.name in self.ports:
            return self.ports[buffer.name]
        if buffer.name in self.arena_of:
            return f"({memory_type(buffer.dtype)} *){request_name(buffer.name)}"
        return self.address_from(self.interface.base_name(self.interface.pool_of(buffer)), buffer, access)

    def address_from(self, base: str, buffer: Buffer, access: Access) -> str:
        """The address of a buffer in a pool, typed, from the expression for the pool's base."""
        macro = self.interface.offset_macro(buffer)
        constness = "const " if access is Access.READ else ""
        through = f"({constness}void *)" if buffer.dtype.size_bytes > 1 else ""
        return f"({constness}{memory_type(buffer.dtype)} *){through}({base} + {macro})"

    def declaration(self, buffer: Buffer) -> None:
        """The plan has given every buffer its place, or it is requested around its step."""

    def place(self, buffer: Buffer) -> str:
        """`@dtcm+8000` or `@caller`, for comments."""
        if buffer.name in self.ports:
            return "@caller"
        pool = buffer.scope.pool if buffer.scope is not None else None
        return f"@{pool}+{self.offsets[self.interface.offset_macro(buffer)]}"


def port_expressions(module: Module) -> dict[str, str]:
    """The C expression for each parameter of the entry."""
    return {name: f"{border.value}s->{port.name}" for name, (border, port) in border_ports(module).items()}


class StepWriter(StatementWriter):
    """Writes the entry's statements, its calls as steps; the macro between them is given the `watched` workspaces."""

    def __init__(self, writer: Writer, buffers: PlannedBuffers, module: Module, watched: list[str]) -> None:
        super().__init__(writer, buffers)
        self.planned = buffers
        self.kernels = {kernel.name: kernel for kernel in module.kernels}
        self.called = called(module)
        self.watched = watched
        self.num_written = 0

    def entry(self, entry: PrimFunc) -> None:
        """Writes all steps, and the macro after the last."""
        interface = self.planned.interface
        taken = {"context", "inputs", "outputs", "first_error", "request_status", *self.watched}
        taken.update(interface.base_name(pool) for pool in (*interface.workspaces, *interface.parameters))
        taken.update(symbol.name for symbol in interface.symbols)
        taken.update(self.called)
        fronts = (REQUEST, f"{interface.model}_", f"{interface.prefix}_")
        self.sequence(with_variables_of_c(entry, taken, fronts).body)
        self._macro()

    def call(self, call: Call) -> None:
        """Writes a step: the macro before it, what it is, and the call between what it requests and releases."""
        self._macro()
        self.num_written += 1
        requests = requests_of(call, self.planned.arena_of)
        self.writer.comment(f"{self._described(call)}{describe_requests(requests)}")
        with requested(self.writer, self.planned.interface, requests) as status:
            self._call(call, status)

    def _macro(self) -> None:
        if self.watched:
            interface = self.planned.interface
            are_few = len(self.watched) <= MAX_NAMED
            named = self.watched if are_few else [all_workspaces(interface)]
            self.writer.listed(f"{interface.prefix}_STEP", [str(self.num_written), *named], ";")

    def _call(self, call: Call, status: str | None) -> None:
        """Args: `status` is a variable that says how the call ended; without one, an error ends the run."""
        kernel = self.kernels[call.callee]
        accesses = [p.access if isinstance(p, BufferParameter) else Access.READ for p in kernel.parameters]
        arguments = self.arguments(call, accesses)
        prefix = self.planned.interface.prefix
        can_fail = kernel.external is not None and kernel.external.returns_status
        if can_fail and status is not None:
            outcome = f" == 0 ? {prefix}_OK : {prefix}_ERROR_EXTERNAL;"
            self.writer.listed(f"{status} = {call.callee}", arguments, outcome)
        elif can_fail:
            self.writer.listed(f"if ({call.callee}", arguments, " != 0) {")
            with self.writer.indented():
                self.writer.line(f"return {prefix}_ERROR_EXTERNAL;")
            self.writer.line("}")
        else:
            self.writer.listed(call.callee, arguments, ";")
            if status is not None:
                self.writer.line(f"{status} = {prefix}_OK;")

    def _described(self, call: Call) -> str:
        """`3 (CONV_2D): i8[1,25,5,64] @dtcm+8000 -> i8[1,25,5,64] @dtcm+0`."""
        reads: list[str] = []
        writes: list[str] = []
        for argument, parameter in zip(call.arguments, self.kernels[call.callee].parameters, strict=True):
            if not isinstance(argument, Region) or not isinstance(parameter, BufferParameter):
                continue
            if parameter.role is not ParameterRole.ACTIVATION:
                continue
            buffer = argument.buffer
            shape = format_shape(parameter.buffer.shape).replace("x", ",")
            text = f"{buffer.dtype.value}[{shape}] {self.planned.place(buffer)}"
            (reads if parameter.access is Access.READ else writes).append(text)
        operators = " + ".join(call.operators) or call.callee
        return f"{operators}: {', '.join(reads)} -> {', '.join(writes)}"
