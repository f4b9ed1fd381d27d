"""The body of the run function: the entry's calls, each under a comment, in the loops and branches that they stand in.

The entry is printed as kernels are, but for two things: its buffers are where the plan says, so that it declares none,
and its calls are steps.
"""

from bytewright import ir
from bytewright.codegen.arena import describe_requests, requested, requests_of
from bytewright.codegen.c_form import with_variables_of_c
from bytewright.codegen.expressions import memory_type
from bytewright.codegen.kernels import called
from bytewright.codegen.statements import StatementWriter
from bytewright.codegen.writer import Writer
from bytewright.ir.analyses.arguments import buffer_arguments
from bytewright.record.names import REQUEST, Names
from bytewright.record.plan import PlaceKind, Plan

MAX_NAMED = 8  # workspaces that each step names; more have one name together


def address_in_pool(base: str, offset: str, dtype: ir.DType, access: ir.Access) -> str:
    """The address of a buffer in a pool, typed, from the C text of the pool's base and of the offset."""
    constness = "const " if access is ir.Access.READ else ""
    through = f"({constness}void *)" if dtype.size_bytes > 1 else ""
    return f"({constness}{memory_type(dtype)} *){through}({base} + {offset})"


class StepWriter(StatementWriter):
    """Writes the entry's statements, its calls as steps; the macro between them is given the `watched` workspaces."""

    def __init__(
        self, writer: Writer, module: ir.Module, plan: Plan, names: Names, watched: list[str]
    ) -> None:
        super().__init__(writer)
        self.plan, self.names = plan, names
        self.kernels = {kernel.name: kernel for kernel in module.kernels}
        self.called = called(module)
        self.watched = watched
        self.num_written = 0

    def entry(self, entry: ir.PrimFunc) -> None:
        """Writes all steps, and the macro after the last."""
        taken = {*self.called, *self.names.variables(self.plan)}
        fronts = (REQUEST, f"{self.names.model}_", f"{self.names.prefix}_")
        self.sequence(with_variables_of_c(entry, taken, fronts).body)
        self._macro()

    def address(self, buffer: ir.Buffer, access: ir.Access) -> str:
        """A member of inputs or outputs, base plus offset in a pool, or what the step requested."""
        planned = self.plan.buffers[buffer.name]
        text = self.names.argument(planned)
        match planned.place.kind:
            case PlaceKind.CALLER:
                return text
            case PlaceKind.ARENA:
                return f"({memory_type(buffer.dtype)} *){text}"
            case _:
                base = self.names.base(self.plan.pools[planned.place.name])
                return address_in_pool(base, text, buffer.dtype, access)

    def declaration(self, allocation: ir.Allocate) -> None:
        """The plan has given every buffer its place, or it is requested around its step."""

    def call(self, call: ir.Call) -> None:
        """Writes a step: the macro before it, what it is, and the call between what it requests and releases."""
        self._macro()
        self.num_written += 1
        requests = requests_of(call, self.plan)
        self.writer.comment(f"{self._described(call)}{describe_requests(requests, self.plan)}")
        with requested(self.writer, self.plan, self.names, requests) as status:
            self._call(call, status)

    def _macro(self) -> None:
        if self.watched:
            named = self.watched if len(self.watched) <= MAX_NAMED else [self.names.step_workspaces]
            self.writer.listed(self.names.step, [str(self.num_written), *named], ";")

    def _call(self, call: ir.Call, status: str | None) -> None:
        """Args: `status` is a variable that says how the call ended; without one, an error ends the run."""
        kernel = self.kernels[call.callee]
        accesses = [
            p.access if isinstance(p, ir.BufferParameter) else ir.Access.READ for p in kernel.parameters
        ]
        arguments = self.arguments(call, accesses)
        names = self.names
        can_fail = kernel.external is not None and kernel.external.returns_status
        if can_fail and status is not None:
            outcome = f" == 0 ? {names.ok} : {names.error('EXTERNAL')};"
            self.writer.listed(f"{status} = {call.callee}", arguments, outcome)
        elif can_fail:
            self.writer.listed(f"if ({call.callee}", arguments, " != 0) {")
            with self.writer.indented():
                self.writer.line(f"return {names.error('EXTERNAL')};")
            self.writer.line("}")
        else:
            self.writer.listed(call.callee, arguments, ";")
            if status is not None:
                self.writer.line(f"{status} = {names.ok};")

    def _described(self, call: ir.Call) -> str:
        """`3 (CONV_2D): i8[1,25,5,64] @dtcm+8000 -> i8[1,25,5,64] @dtcm+0`."""
        reads: list[str] = []
        writes: list[str] = []
        for parameter, argument in buffer_arguments(self.kernels[call.callee], call):
            if parameter.role is not ir.ParameterRole.ACTIVATION:
                continue
            buffer = argument.buffer
            shape = ir.format_shape(parameter.buffer.shape).replace("x", ",")
            text = f"{buffer.dtype.value}[{shape}] {self._place(buffer)}"
            (reads if parameter.access is ir.Access.READ else writes).append(text)
        operators = " + ".join(call.operators) or call.callee
        return f"{operators}: {', '.join(reads)} -> {', '.join(writes)}"

    def _place(self, buffer: ir.Buffer) -> str:
        """`@dtcm+8000` or `@caller`."""
        place = self.plan.buffers[buffer.name].place
        return "@caller" if place.kind is PlaceKind.CALLER else f"@{place.name}+{place.offset}"
