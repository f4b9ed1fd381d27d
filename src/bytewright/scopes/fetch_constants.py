"""Constants are copied to devices that reach no memory where parameters are, by a device that only copies.

A kernel may run where there is nothing but memory of the device's own. What it reads of the model's parameters is
then brought there by a job, right before the first statement of the entry that needs it, and stays to the last: one
copy of a constant for each device. Where no device copies from a parameter pool to a pool that the kernel's device may
use, the constant is left as it is, and `attach_candidates` says what is missing.

Runs once scopes have met (`place_scopes`), on an entry that passes all constants by itself (`pass_constants`).
"""

from dataclasses import dataclass, field, replace

from bytewright import ir
from bytewright.base.c_names import unique_name
from bytewright.ir.analyses.touch import TouchTable, touch_table
from bytewright.ir.copy import copy_kernel
from bytewright.ir.rewrite import Rewriting, rewrite_statement
from bytewright.ir.walk import calls, names_in
from bytewright.target.model import Device, Pool, Target


def fetch_constants(module: ir.Module, target: Target) -> ir.Module:
    """Returns the module whose entries have copied what kernels read and their devices do not reach."""
    fetching = _Fetching(module, target, touch_table(module, target))
    entries = tuple(map(fetching.entry, module.entries))
    return replace(module, entries=entries, kernels=(*module.kernels, *fetching.kernels.values()))


def lacks_constants(module: ir.Module, target: Target) -> bool:
    """Whether there is anything to do."""
    fetching = _Fetching(module, target, touch_table(module, target))
    return any(fetching.makers_of(call) for entry in module.entries for call in calls(entry))


@dataclass(frozen=True, slots=True)
class _Fetched:
    """A constant for a device, and the device that copies it."""

    constant: ir.ConstantBuffer
    device: str
    maker: Device


@dataclass(slots=True)
class _Fetching:
    module: ir.Module
    target: Target
    table: TouchTable
    kernels: dict[tuple[object, ...], ir.PrimFunc] = field(
        default_factory=dict[tuple[object, ...], ir.PrimFunc]
    )
    copies: dict[_Fetched, ir.Buffer] = field(default_factory=dict[_Fetched, ir.Buffer])
    constants: dict[ir.Buffer, ir.ConstantBuffer] = field(init=False)
    known: dict[str, ir.PrimFunc] = field(init=False)
    names: set[str] = field(init=False)

    def __post_init__(self) -> None:
        module = self.module
        self.constants = {constant.buffer: constant for constant in module.constant_buffers}
        self.known = {kernel.name: kernel for kernel in module.kernels}
        of_entries = (name for entry in module.entries for name in names_in(entry))
        self.names = {*self.known, *of_entries, *(c.buffer.name for c in module.constant_buffers)}

    def entry(self, entry: ir.PrimFunc) -> ir.PrimFunc:
        """An entry, with copies before what needs them first; each makes its own."""
        self.copies = {}
        statements: list[ir.Statement] = []
        for statement in entry.body.statements:
            before: list[ir.Statement] = []

            def passed(inner: ir.Statement, before: list[ir.Statement] = before) -> tuple[ir.Statement, ...]:
                return (self.passed(inner, before) if isinstance(inner, ir.Call) else inner,)

            changed = rewrite_statement(statement, Rewriting(statement=passed))
            statements += [*before, *changed]
        return replace(entry, body=ir.Seq(tuple(statements)))

    def passed(self, call: ir.Call, before: list[ir.Statement]) -> ir.Call:
        """The call, given copies; those that are new are allocated and made in the statements before."""
        arguments = list(call.arguments)
        for index, fetched in self.makers_of(call).items():
            if fetched not in self.copies:
                before += self.copied(fetched, call)
            region = arguments[index]
            assert isinstance(region, ir.Region)
            arguments[index] = replace(region, buffer=self.copies[fetched])
        return replace(call, arguments=tuple(arguments))

    def copied(self, fetched: _Fetched, call: ir.Call) -> tuple[ir.Statement, ...]:
        """The memory of a copy, and the job that fills it."""
        constant, source = fetched.constant, fetched.constant.buffer
        name = unique_name(f"{source.name}_on_{fetched.device}", self.names)
        buffer = replace(source, name=name)
        self.copies[fetched] = buffer
        reason = f"fetch_constants: device '{fetched.device}' reaches no memory of parameters, where '{source.name}' is"
        storage = ir.Storage(ir.WORKSPACE, provenance=(reason,))
        key = (source.shape, source.dtype, source.alignment, constant.scope, fetched.maker.name)
        if key not in self.kernels:
            function = copy_kernel(
                unique_name(f"{self.module.name}_fetch", self.names),
                source,
                fetched.maker.name,
                (constant.scope, ir.GLOBAL),
                ir.Job.COPY,
            )
            first, *others = function.parameters
            assert isinstance(first, ir.BufferParameter)
            first = replace(first, role=ir.ParameterRole.PARAMETER)
            self.kernels[key] = replace(function, parameters=(first, *others))
        regions = (ir.Region(source), ir.Region(buffer))
        job = ir.Call(self.kernels[key].name, regions, operators=("device_copy",), where=call.where)
        return ir.Allocate(buffer, storage), job

    def makers_of(self, call: ir.Call) -> dict[int, _Fetched]:
        """The arguments of a call that its device lacks, by their places, and who copies each."""
        kernel = self.known.get(call.callee)
        if kernel is None or kernel.device == self.module.entry_device:
            return {}
        found: dict[int, _Fetched] = {}
        for index, (parameter, region) in enumerate(zip(kernel.parameters, call.arguments, strict=True)):
            if not isinstance(parameter, ir.BufferParameter) or not isinstance(region, ir.Region):
                continue
            constant, scope = self.constants.get(region.buffer), parameter.scope
            is_code = kernel.job is ir.Job.STREAM and index == 0  # which is for the driver
            if constant is None or is_code or (scope is not None and scope.pool is not None):
                continue
            users = {touch.device for touch in self.table.of_argument(call, index)}
            sources = self._pools_of(constant)
            if users != {kernel.device} or any(users <= set(pool.devices) for pool in sources):
                continue
            maker = self._maker(sources, kernel.device)
            if maker is not None:
                found[index] = _Fetched(constant, kernel.device, maker)
        return found

    def _pools_of(self, constant: ir.ConstantBuffer) -> list[Pool]:
        """Where the program may have a constant."""
        reached = self.target.device(self.module.entry_device)
        return [
            pool
            for pool in self.target.parameter_pools
            if reached.reaches(pool.memory)
            and ir.is_within(ir.pool_scope(pool.name), constant.scope or ir.GLOBAL)
        ]

    def _maker(self, sources: list[Pool], device: str) -> Device | None:
        """The first device without code that may use one of these pools, and one for tensors that the other may use."""
        places = [pool for pool in self.target.workspace_pools if device in pool.devices]
        for maker in self.target.devices:
            reads = any(maker.name in pool.devices for pool in sources)
            if (
                not maker.runs_c
                and maker.copies
                and reads
                and any(maker.name in pool.devices for pool in places)
            ):
                return maker
        return None
