"""Graph to PrimFuncs: each group of operators becomes a kernel, and `main` calls them in order.

Constants are shared by content. Reshapes are free: the tensor behind them is one buffer. A result of the model is
written where the caller wants it; where one tensor is wanted twice, or is an input or a constant, it is copied.
"""

import re
from dataclasses import dataclass, field, replace

from bytewright import ir
from bytewright.c_names import unique_name
from bytewright.diagnostics import Collector
from bytewright.ir.builder import BodyBuilder
from bytewright.ir.where import Where
from bytewright.lower.epilogue import Epilogue
from bytewright.lower.fuse import FusedGraph, fuse, reshaped
from bytewright.lower.group import Group
from bytewright.lower.kernel import (
    Argument,
    ConstantArgument,
    KernelBuilder,
    LoweredKernel,
    ScalarArgument,
    TensorArgument,
)
from bytewright.lower.kernels.context import Template
from bytewright.lower.kernels.elementwise import lower_elementwise
from bytewright.lower.kernels.registry import TEMPLATES
from bytewright.ops.data import Identity
from bytewright.target.model import Target

TENSOR_ALIGNMENT = 16
_ORIGIN = "lower_graph: a tensor of the entry starts as global.workspace"


def lower_graph(module: ir.Module, target: Target) -> ir.Module:
    """Replaces the module's graph function by an entry and kernels.

    Raises:
        CompileError: BW110, for arithmetic that cannot be proved exact; all of them at once.
    """
    function = _with_copies(module.graph, module.constants, module.name)
    types = ir.value_types(function, module.constants)
    constants = {constant.name: constant for constant in module.constants}
    extents = [extent for value in function.parameters for extent in value.type.shape]
    symbols = tuple(dict.fromkeys(extent for extent in extents if isinstance(extent, ir.Symbol)))
    return _Lowering(module, function, fuse(function), target, types, constants, symbols).run()


def _with_copies(function: ir.Function, constants: tuple[ir.Constant, ...], model: str) -> ir.Function:
    """Adds a copy for each result that has no memory of its own to be written to."""
    types = ir.value_types(function, constants)
    origin = reshaped(function)
    where = {value.name: node.where for node in function.nodes for value in node.outputs}
    taken = {value.name for value in function.parameters} | {constant.name for constant in constants}
    nodes, results = list(function.nodes), list(function.results)
    for index, name in enumerate(results):
        root = origin.get(name, name)
        if root in taken:
            copy = ir.Value(f"{name}_copy{index}", types[name])
            nodes.append(ir.Node(Identity(), (name,), (copy,), where.get(name, Where(model, tensor=name))))
            results[index] = copy.name
        taken.add(root)
    return replace(function, nodes=tuple(nodes), results=tuple(results))


@dataclass(slots=True)
class _Lowering:
    """One run of the pass; `symbols` are extents of the inputs, scalar parameters of the entry."""

    module: ir.Module
    function: ir.Function
    fused: FusedGraph
    target: Target
    types: dict[str, ir.TensorType]
    constants: dict[str, ir.Constant]
    symbols: tuple[ir.Symbol, ...]
    constant_buffers: dict[ir.TensorData, ir.ConstantBuffer] = field(
        default_factory=dict[ir.TensorData, ir.ConstantBuffer]
    )
    shared_data: dict[ir.TensorData, ir.TensorData] = field(
        default_factory=dict[ir.TensorData, ir.TensorData]
    )
    constant_names: set[str] = field(default_factory=set[str])
    kernel_names: set[str] = field(default_factory=set[str])

    def run(self) -> ir.Module:
        collector = Collector()
        lowered: list[tuple[Group, LoweredKernel]] = []
        for group in self.fused.groups:
            with collector.catch():
                lowered.append((group, self._lower_group(group)))
        collector.stop_if_any()
        entry = self._entry(lowered)
        return replace(
            self.module,
            functions=(),
            constants=(),
            kernels=tuple(kernel.function for _, kernel in lowered),
            entries=(entry,),
            constant_buffers=tuple(self.constant_buffers.values()),
        )

    def _lower_group(self, group: Group) -> LoweredKernel:
        device = self._device(group)
        style = self.target.device(device).isa.style
        first = group.nodes[0]
        name = self._kernel_name(first)
        kernel = KernelBuilder(name, style, first.where, device, self.symbols, self.shared_data)
        epilogue = Epilogue(kernel, group, self.types, self.constants)
        if group.anchor is None:
            lower_elementwise(kernel, epilogue)
        else:
            template = Template(kernel, epilogue, group.anchor)
            TEMPLATES[type(group.anchor.operation)].write(template, group.anchor.operation)
        return kernel.finish()

    def _device(self, group: Group) -> str:
        return group.output.type.place.device or self.target.default_device_name

    def _kernel_name(self, node: ir.Node) -> str:
        """The C symbol: model, then the name of the operator's result without what follows a slash; unique."""
        stem = node.outputs[0].name.partition("/")[0]
        stem = f"{self.module.name}_{re.sub(r'[^A-Za-z0-9_]', '_', stem)}"
        return unique_name(stem, self.kernel_names, between="_part")

    def _entry(self, lowered: list[tuple[Group, LoweredKernel]]) -> ir.PrimFunc:
        inputs = tuple(
            _parameter(value.name, value.type, ir.Access.READ) for value in self.function.parameters
        )
        outputs = tuple(
            _parameter(self.fused.root(name), self.types[name], ir.Access.WRITE)
            for name in self.function.results
        )
        scalars = tuple(ir.ScalarParameter(ir.Var(symbol.name, ir.DType.I32)) for symbol in self.symbols)
        buffers = {parameter.buffer.name: parameter.buffer for parameter in (*inputs, *outputs)}
        body = BodyBuilder((*buffers, *(scalar.variable.name for scalar in scalars)))
        for group, kernel in lowered:
            name = group.output.name
            if name not in buffers:
                type_ = group.output.type
                buffer = ir.Buffer(name, type_.shape, type_.dtype, TENSOR_ALIGNMENT)
                buffers[name] = body.allocate(buffer, _in_workspace(type_))
            arguments = [self._argument(argument, buffers, kernel) for argument in kernel.arguments]
            body.call(
                kernel.function.name,
                *arguments,
                operators=tuple(
                    dict.fromkeys(node.where.operator or node.operation.name for node in group.nodes)
                ),
                where=kernel.function.where,
            )
        return ir.PrimFunc(
            self.function.name,
            (*inputs, *outputs, *scalars),
            body.finish(),
            device=self.target.default_device_name,
            where=Where(self.module.name),
        )

    def _argument(
        self, argument: Argument, buffers: dict[str, ir.Buffer], kernel: LoweredKernel
    ) -> ir.Region | ir.Expr:
        match argument:
            case ScalarArgument(value=value):
                return value
            case TensorArgument(name=name):
                root = self.fused.root(name)
                if root in buffers:
                    return ir.Region(buffers[root])
                constant = self.constants[root]
                return ir.Region(self._constant(constant.data, root).buffer)
            case ConstantArgument(data=data, hint=hint):
                stem = kernel.function.name.removeprefix(f"{self.module.name}_")
                return ir.Region(self._constant(data, f"{stem}/{hint}").buffer)

    def _constant(self, data: ir.TensorData, name: str) -> ir.ConstantBuffer:
        if data not in self.constant_buffers:
            unique = unique_name(name, self.constant_names)
            buffer = ir.Buffer(unique, data.shape, data.dtype, data.dtype.size_bytes)
            self.constant_buffers[data] = ir.ConstantBuffer(buffer, data, ir.Storage(ir.GLOBAL))
        return self.constant_buffers[data]


def _parameter(name: str, type_: ir.TensorType, access: ir.Access) -> ir.BufferParameter:
    """An input or output, which the caller provides."""
    buffer = ir.Buffer(name, type_.shape, type_.dtype, type_.dtype.size_bytes)
    return ir.BufferParameter(buffer, access, scope=ir.join_scopes(ir.GLOBAL, type_.place.scope))


def _in_workspace(type_: ir.TensorType) -> ir.Storage:
    """An intermediate tensor: it starts as `global.workspace`, joined with the scope that placement gave it."""
    return ir.Storage(ir.join_scopes(ir.WORKSPACE, type_.place.scope), provenance=(_ORIGIN,))
