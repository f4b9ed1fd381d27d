"""The body of the run function: the entry's calls, each under a comment, in the loops and branches that they stand in.

The entry is printed as kernels are, but for two things: its buffers are where the plan says, so that it declares none,
and its calls are steps.
"""

from dataclasses import replace

from bytewright import ir
from bytewright.codegen.arena import describe_requests, requested, requests_of
from bytewright.codegen.c_form import with_variables_of_c
from bytewright.codegen.describe_rows import describe_ring
from bytewright.codegen.dispatcher import num_scalars
from bytewright.codegen.entry_code import EntryCode
from bytewright.codegen.expressions import c_expression, c_num_bytes, c_value, memory_type
from bytewright.codegen.hand_over import device_span_text, span_text
from bytewright.codegen.kernels import called
from bytewright.codegen.packed import write_packed_call
from bytewright.codegen.ports import address_in_pool
from bytewright.codegen.statements import StatementWriter
from bytewright.codegen.writer import Writer
from bytewright.diagnostics import InternalError
from bytewright.ir.analyses.arguments import buffer_arguments, scalar_arguments
from bytewright.ir.analyses.hand_over import handed_to
from bytewright.record.buffers import PlaceKind, PlannedBuffer
from bytewright.record.devices import PlannedDevice
from bytewright.record.entries import PlannedStep
from bytewright.record.names import MAX_NAMED, REQUEST
from bytewright.record.plan import Plan


def describe_overlaps(plan: Plan, step: PlannedStep) -> str:
    """`; overlaps conv_1 by 7616 B (contract: 384 B below it), downwards`; empty for a step without any."""
    found: list[str] = []
    for pair in step.overlaps:
        num_bytes = plan.shared_bytes(pair.source, pair.output)
        if num_bytes:
            found.append(f"overlaps {pair.source} by {num_bytes} B ({pair.text})")
    return "".join(f"; {text}" for text in (*found, *(["downwards"] if step.runs_down else [])))


class StepWriter(StatementWriter):
    """Writes the entry's statements, its calls as steps, with the macro between them."""

    def __init__(self, writer: Writer, code: EntryCode) -> None:
        super().__init__(writer)
        self.module, self.plan, self.names = code.module, code.plan, code.names
        self.device = code.module.main.device
        self.kernels = {kernel.name: kernel for kernel in code.module.kernels}
        self.called = called(code.module)
        self.watched = code.watched
        self.num_written, self.end_number = 0, code.end
        self.segments = code.segments
        self.arenas = {pool.name: arena for arena, pool in self.plan.arenas}

    def entry(self, entry: ir.PrimFunc) -> None:
        """Writes all steps, and the macro after the last."""
        self.sequence(self.in_c(entry).body)
        self.end()

    def in_c(self, entry: ir.PrimFunc) -> ir.PrimFunc:
        """The entry with variables as they are called in C."""
        taken = {*self.called, *self.names.variables(self.plan)}
        fronts = (REQUEST, f"{self.names.model}_", f"{self.names.prefix}_")
        return with_variables_of_c(entry, taken, fronts)

    def end(self) -> None:
        """Writes the macro after the last step."""
        self._macro(self.end_number)

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
                pool = self.plan.pools[planned.place.name]
                if pool.obtained_by is not None:
                    raise InternalError(
                        f"'{buffer.name}' has no address: device '{self.device}' does not reach it"
                    )
                return address_in_pool(self.names.base(pool), text, buffer.dtype, access)

    def condition(self, condition: ir.Expr) -> str:
        """A truth value of a buffer, where the plan has put that; else numbers that the run has."""
        if isinstance(condition, ir.Load):
            return f"*{self.address(condition.buffer, ir.Access.READ)} != 0"
        return super().condition(condition)

    def loop(self, loop: ir.For) -> None:
        """A loop; that of a segment under what it is for."""
        comment = self.segments.get(self.plan.entries[0].steps[0] + self.num_written)
        if comment is not None and loop.note:  # the outermost of its loops alone has one
            self.writer.comment(comment)
            loop = replace(loop, note="")
        super().loop(loop)

    def declaration(self, allocation: ir.Allocate) -> None:
        """The plan has given every buffer its place, or it is requested around its step."""

    def call(self, call: ir.Call) -> None:
        """Writes a step: the macro before it, what it is, and the call between what it requests and releases."""
        step = self.plan.steps[self.num_written]
        self._macro(step.index)
        self.num_written += 1
        requests = requests_of(call, self.plan)
        overlaps = describe_overlaps(self.plan, step)
        requested_from = describe_requests(requests, self.plan, self.arenas)
        self.writer.comment(f"{self._described(call)}{overlaps}{requested_from}")
        with requested(self.writer, self.plan, self.names, requests) as status:
            self._call(call, status)

    def _macro(self, number: int) -> None:
        named = self.watched if len(self.watched) <= MAX_NAMED else [self.names.step_workspaces]
        self.writer.listed(self.names.step, [str(number), *(named or ["NULL"])], ";")

    def _call(self, call: ir.Call, status: str | None) -> None:
        """Args: `status` is a variable that says how the call ended; without one, an error ends the run."""
        kernel = self.kernels[call.callee]
        if kernel.device != self.device:
            self._hand_over(call, kernel, status)
            return
        accesses = [
            p.access if isinstance(p, ir.BufferParameter) else ir.Access.READ for p in kernel.parameters
        ]
        arguments = self.arguments(call, accesses)
        names = self.names
        if call.kind is ir.CallKind.CPACKED:
            write_packed_call(self.writer, names, kernel, arguments, status or names.packed_status)
            if status is None:
                self.writer.refuse(f"{names.packed_status} != {names.ok}", names.packed_status)
            return
        can_fail = kernel.external is not None and kernel.external.returns_status
        if can_fail and status is not None:
            outcome = f" == 0 ? {names.ok} : {names.error('EXTERNAL')};"
            self.writer.listed(f"{status} = {kernel.symbol}", arguments, outcome)
        elif can_fail:
            with self.writer.block_of(f"if ({kernel.symbol}", arguments, " != 0)"):
                self.writer.line(f"return {names.error('EXTERNAL')};")
        else:
            self.writer.listed(kernel.symbol, arguments, ";")
            if status is not None:
                self.writer.line(f"{status} = {names.ok};")

    def context(self, device: str) -> str:
        """The variable with the context of a device."""
        return self.names.device_context(device)

    def _hand_over(self, call: ir.Call, kernel: ir.PrimFunc, status: str | None) -> None:
        """Writes a job: its spans, its code, and the hand-over."""
        device = self.plan.devices[kernel.device]
        with self.writer.block(""):
            given = [(p, a, self._span(p, a, call, kernel)) for p, a in buffer_arguments(kernel, call)]
            match kernel.job:
                case ir.Job.STREAM:
                    (parameter, stream, _), *given = given
                    code = [self.region(stream, ir.Access.READ), f"{ir.size_bytes(parameter.buffer)}u"]
                case ir.Job.COPY:
                    given.reverse()
                    code = ["NULL", "0u"]
                case None:
                    self._write_code(call, kernel, device)
                    code = ["&call", "(uint32_t)sizeof call"]
            self.writer.array(f"const {self.names.span_type} spans", [span for _, _, span in given])
            arguments = [f"&devices->{device.c_name}", *code, "spans", f"{len(given)}u"]
            if status is not None:
                self.writer.listed(f"{status} = hand_over", arguments, ";")
                return
            with self.writer.block_of("if (hand_over", arguments, f" != {self.names.ok})"):
                self.writer.line(f"return {self.names.error('DEVICE')};")

    def _span(
        self, parameter: ir.BufferParameter, region: ir.Region, call: ir.Call, kernel: ir.PrimFunc
    ) -> str:
        """What a kernel is given for a parameter: as many bytes as it asks for."""
        given = {p.variable.name: argument for p, argument in scalar_arguments(kernel, call)}
        extents = (
            ir.extent_text(extent, lambda name: f"({c_value(given[name])})")
            for extent in ir.storage_shape(parameter.buffer)
        )
        num_bytes = c_num_bytes(extents, parameter.buffer.dtype, "uint32_t")
        planned = self.plan.buffers[region.buffer.name]
        pool = self.plan.pools.get(planned.place.name) if planned.has_offset else None
        if pool is not None and pool.obtained_by is not None:
            offset = self._offset(planned, region)
            return device_span_text(self.names, pool, offset, num_bytes, parameter.access)
        return span_text(
            self.names, self._lent_address(region, parameter.access), num_bytes, parameter.access
        )

    def _lent_address(self, region: ir.Region, access: ir.Access) -> str:
        """The address of a region, of whatever type: spans have none."""
        planned, index = self.plan.buffers[region.buffer.name], ir.region_index(region)
        if planned.has_offset and isinstance(index, ir.Const) and index.value == 0:
            return f"{self.names.base(self.plan.pools[planned.place.name])} + {self.names.argument(planned)}"
        return self.region(region, access)

    def _offset(self, planned: PlannedBuffer, region: ir.Region) -> str:
        """How far into its pool a region begins, in bytes."""
        text, index = self.names.argument(planned), ir.region_index(region)
        if isinstance(index, ir.Const) and index.value == 0:
            return text
        return f"{text} + ({region.buffer.dtype.size_bytes}u * (uint32_t)({c_value(index)}))"

    def _write_code(self, call: ir.Call, kernel: ir.PrimFunc, device: PlannedDevice) -> None:
        """Writes the variable `call`, which says which kernel is to run, with which numbers."""
        scalars = [argument for _, argument in scalar_arguments(kernel, call)]
        handed = handed_to(self.module, kernel.device)
        texts = [c_value(ir.cast(scalar, ir.DType.I32)) for scalar in scalars]
        texts += ["0"] * (max(map(num_scalars, handed)) - len(texts))  # the type has room for the most
        values = ", ".join([f"{handed.index(kernel)}u", *([f"{{{', '.join(texts)}}}"] if texts else [])])
        is_constant = all(isinstance(scalar, ir.Const) for scalar in scalars)
        self.writer.line(
            f"{'static ' if is_constant else ''}const {self.names.call_type(device)} call = {{{values}}};"
        )

    def _described(self, call: ir.Call) -> str:
        """`3 (CONV_2D): i8[1,25,5,64] @dtcm+8000 -> i8[1,25,5,64] @dtcm+0`."""
        reads: list[str] = []
        writes: list[str] = []
        for parameter, argument in buffer_arguments(self.kernels[call.callee], call):
            if parameter.role is not ir.ParameterRole.ACTIVATION:
                continue
            shape = ir.format_shape(parameter.buffer.shape).replace("x", ",")
            kept = describe_ring(self.plan.buffers[argument.buffer.name])
            text = f"{parameter.buffer.dtype.value}[{shape}] {kept}{self._place(argument)}"
            if parameter.access is not ir.Access.WRITE:
                reads.append(text)
            if parameter.access is not ir.Access.READ:
                writes.append(text)
        operators = " + ".join(call.operators) or call.callee
        device = self.kernels[call.callee].device
        place = "" if device == self.device else f" on {device}"
        return f"{operators}{place}: {', '.join(reads)} -> {', '.join(writes)}"

    def _place(self, region: ir.Region) -> str:
        """`@dtcm+8000` or `@caller`; behind it the element that a part begins at, where loops decide: `[i * 8]`."""
        place, index = self.plan.buffers[region.buffer.name].place, ir.region_index(region)
        skipped = index.value * region.buffer.dtype.size_bytes if isinstance(index, ir.Const) else 0
        element = "" if isinstance(index, ir.Const) else f"[{c_expression(index)}]"
        if place.offset is not None:
            return f"@{place.name}+{place.offset + skipped}{element}"
        name = "caller" if place.kind is PlaceKind.CALLER else place.name
        return f"@{name}{f'+{skipped}' if skipped else ''}{element}"
