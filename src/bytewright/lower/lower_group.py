"""The kernel of a group of operators: a function of the application, a device's copy, or C by the best way there is.

Which way that is depends on the device, on what its instruction set declines, and on what kernels may trade.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from bytewright import ir
from bytewright.base.c_names import unique_name
from bytewright.ir.copy import copy_kernel
from bytewright.ir.instructions import instructions_of
from bytewright.lower.bound.facts import BoundOperator
from bytewright.lower.bound.lower_bound import lower_bound
from bytewright.lower.epilogue import Epilogue
from bytewright.lower.group import Group
from bytewright.lower.isa.elementwise import write_elementwise
from bytewright.lower.isa.instruction_set import IsaTemplate
from bytewright.lower.isa.registry import choose
from bytewright.lower.kernel import (
    Argument,
    ConstantArgument,
    KernelBuilder,
    LoweredKernel,
    ScalarArgument,
    TensorArgument,
)
from bytewright.lower.kernels.context import Template
from bytewright.lower.kernels.registry import TEMPLATES
from bytewright.lower.known_kernels import KnownKernels
from bytewright.lower.pack_nibbles import fits_nibbles, pack_nibbles
from bytewright.lower.turn import turned
from bytewright.options import KernelCode, Optimize
from bytewright.target.model import Target

_PACKED = "not by instructions: with --optimize size its weights stay in 4 bits each"


@dataclass(slots=True)
class GroupKernels:
    """What makes the kernels of one module.

    Attributes:
        module: Its name, with which those of kernels begin.
        target: What it is compiled for.
        optimize: What kernels may trade.
        code: What may stand in their C.
        types: Of all tensors.
        constants: By name.
        symbols: Extents of the inputs that a run decides.
        names: Those that kernels have.
    """

    module: str
    target: Target
    optimize: Optimize
    code: KernelCode
    types: Mapping[str, ir.TensorType]
    constants: Mapping[str, ir.Constant]
    symbols: tuple[ir.Symbol, ...]
    names: set[str] = field(default_factory=set[str])
    _known: KnownKernels = field(init=False)
    _shared: dict[ir.TensorData, ir.TensorData] = field(default_factory=dict[ir.TensorData, ir.TensorData])

    def __post_init__(self) -> None:
        self._known = KnownKernels(self.types, self.constants)

    def name_of(self, node: ir.Node) -> str:
        """A C symbol: model, then the name of the operator's result without what follows a slash; unique."""
        stem = node.outputs[0].name.partition("/")[0]
        stem = f"{self.module}_{re.sub(r'[^A-Za-z0-9_]', '_', stem)}"
        return unique_name(stem, self.names, between="_part")

    def lower(self, group: Group) -> LoweredKernel:
        """The kernel, and what it is passed.

        Raises:
            CompileError: BW110, its arithmetic cannot be proved exact; BW763, a function of the application does not
                take it.
        """
        device = self._device(group)
        first = group.nodes[0]
        if group.bound is not None:
            name = unique_name(group.bound.function.symbol, self.names)
            operator = BoundOperator(group.nodes, self.types, self.constants)
            return lower_bound(name, group.bound, operator, device, self.target)
        name = self.name_of(first)
        if isinstance(first.operation, ir.CopyOperation) and not self.target.device(device).runs_c:
            return self._copy_job(name, first, device)
        return self._known.of(group, name, device, lambda: self._write_kernel(group, name, device))

    def _write_kernel(self, group: Group, name: str, device: str) -> LoweredKernel:
        style = self.target.device(device).isa.style

        def new_kernel() -> KernelBuilder:
            symbols, shared = self.symbols, self._shared
            return KernelBuilder(name, style, group.nodes[0].where, device, symbols, shared, self.optimize)

        features = self.target.device(device).isa.features if self.code is not KernelCode.PORTABLE else ()
        left_out: dict[str, str] = {}
        while True:
            kernel = self._write_group(group, new_kernel, features, left_out)
            lowered = kernel.finish()
            used = instructions_of([lowered.function])
            if self.code is KernelCode.AUTO or not any(each.is_assembler for each in used):
                return pack_nibbles(lowered) if self.optimize is Optimize.SIZE else lowered
            left_out[kernel.template] = "it is assembler, which --kernels excludes"

    def _write_group(
        self,
        group: Group,
        new_kernel: Callable[[], KernelBuilder],
        features: tuple[str, ...],
        left_out: dict[str, str],
    ) -> KernelBuilder:
        """The kernel of a group by the best way that is not left out."""
        if group.anchor is None:
            return write_elementwise(new_kernel, group, self.types, self.constants, features, left_out)
        template = _template(new_kernel(), group, self.types, self.constants)
        is_packed = self.optimize is Optimize.SIZE and any(map(fits_nibbles, template.constants()))
        chosen, reasons = choose(template, () if is_packed else features, left_out)
        if chosen is not None and chosen.by_columns:
            template = self._along_columns(group, new_kernel, chosen) or template
        kernel, operation = template.kernel, template.anchor.operation
        kernel.remarks += (_PACKED,) if is_packed and features else reasons
        (TEMPLATES[type(operation)] if chosen is None else chosen).write(template, operation)
        kernel.template = "" if chosen is None else chosen.name
        return kernel

    def _along_columns(
        self, group: Group, new_kernel: Callable[[], KernelBuilder], chosen: IsaTemplate
    ) -> Template | None:
        """For the kernel of a group whose rows are columns; None if they cannot be, or that is declined."""
        along_columns = turned(group, self.types, self.constants)
        if along_columns is None:
            return None
        template = _template(new_kernel(), *along_columns)
        return template if chosen.declines(template, template.anchor.operation) is None else None

    def _copy_job(self, name: str, node: ir.Node, device: str) -> LoweredKernel:
        """The copy that a device makes which runs no code of ours."""
        (source,), (result,) = node.inputs, node.outputs
        copied = ir.Buffer("copied", result.type.shape, result.type.dtype, result.type.dtype.size_bytes)
        scopes = (ir.GLOBAL, ir.GLOBAL)
        function = copy_kernel(name, copied, device, scopes, ir.Job.COPY, node.where)
        given: Argument = TensorArgument(source)
        if source in self.constants:
            given = ConstantArgument(self.constants[source].data, "operand")
            parameter = replace(function.buffer_parameters[0], role=ir.ParameterRole.PARAMETER)
            function = replace(function, parameters=(parameter, *function.parameters[1:]))
        symbols = (p.variable for p in function.parameters if isinstance(p, ir.ScalarParameter))
        return LoweredKernel(function, (given, TensorArgument(result.name), *map(ScalarArgument, symbols)))

    def _device(self, group: Group) -> str:
        """Where the kernel runs; a copy, on the device that makes it."""
        operation = None if group.anchor is None else group.anchor.operation
        by = operation.by if isinstance(operation, ir.CopyOperation) else None
        return by or group.output.type.place.device or self.target.default_device_name


def _template(
    kernel: KernelBuilder,
    group: Group,
    types: Mapping[str, ir.TensorType],
    constants: Mapping[str, ir.Constant],
) -> Template:
    """For the kernel of a group that has an anchor."""
    assert group.anchor is not None
    return Template(kernel, Epilogue(kernel, group, types, constants), group.anchor)
