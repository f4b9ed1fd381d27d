"""Graph to PrimFuncs: each group of operators becomes a kernel, and `main` calls them in order.

Constants are shared by content. Reshapes are free: the tensor behind them is one buffer. A result of the model is
written where the caller wants it; where one tensor is wanted twice, or is an input or a constant, it is copied.
Conditionals become branches of `main`, on the truth value that a buffer holds, and loops loops of it (`blocks.py`).
"""

from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import replace

from bytewright import ir
from bytewright.base.c_names import unique_name
from bytewright.base.frozen_mapping import FrozenMapping
from bytewright.diagnostics import Collector
from bytewright.graph.bound.function import BoundValues
from bytewright.ir.builder import BodyBuilder, load
from bytewright.ir.where import Where
from bytewright.lower.blocks import Block, Carried, Move, blocks_of
from bytewright.lower.group import Group
from bytewright.lower.group_work import group_work
from bytewright.lower.hand_over import BlockCopy, CallBlock, EthosUCall, HandOver
from bytewright.lower.kernel import (
    Argument,
    ConstantArgument,
    LoweredKernel,
    ScalarArgument,
    TensorArgument,
)
from bytewright.lower.lower_group import GroupKernels
from bytewright.lower.shared_scratch import share_scratch
from bytewright.lower.with_sizes import largest, with_sizes
from bytewright.ops.control import CondIf, Loop
from bytewright.ops.data import Identity
from bytewright.ops.ethos_u import EthosU
from bytewright.ops.placement import DeviceCopy
from bytewright.options import KernelCode, Optimize
from bytewright.target.model import Target

TENSOR_ALIGNMENT = 16
_OF_STATE = "lower_graph: a state survives runs"
_WEIGHTS = "weights"
# Operands of an anchor that its kernel may have packed, by what kernels call that; with the bias go its scales.
_PACKED_OPERANDS = {_WEIGHTS: 1, "bias": 2, "scales": 2, "channels": 2}
_ORIGIN = "lower_graph: a tensor of the entry starts as global.workspace"


def lower_graph(
    module: ir.Module,
    target: Target,
    bound: BoundValues | None = None,
    optimize: Optimize = Optimize.BALANCED,
    code: KernelCode = KernelCode.AUTO,
) -> ir.Module:
    """Replaces the module's graph functions, as `inline_calls` leaves them, by an entry and kernels.

    Args:
        module: A graph.
        target: What it is compiled for.
        bound: What functions of the application compute.
        optimize: What kernels may trade.
        code: What may stand in their C.

    Raises:
        CompileError: BW110, for arithmetic that cannot be proved exact; BW763, for operators that functions
            of the application do not take; all of them at once.
    """
    return _Lowering(module, target, bound or {}, optimize, code).run()


class _Lowering:
    """One run of the pass.

    Names are unique in the module, and each function runs at one place: so what a name stands for holds throughout.
    """

    def __init__(
        self, module: ir.Module, target: Target, bound: BoundValues, optimize: Optimize, code: KernelCode
    ) -> None:
        self.module, self.target = module, target
        self.constants = {constant.name: constant for constant in module.constants}
        self.types = module.graph_types
        self.names = set(self.types)
        self.blocks = blocks_of(module, self.names, bound)
        for block in self.blocks.values():
            self.types |= ir.function_types(block.function)
        self.main = self.blocks[module.graph.name]
        # Extents of the inputs are scalar parameters of the entry.
        self.symbols = ir.symbols_in(
            extent for value in self.main.function.parameters for extent in value.type.shape
        )
        # By those that the data decides the values that say them.
        self.sizes = {
            extent: node.outputs[-1].name
            for node in self.main.function.nodes
            if (extent := ir.counted_extent(node.operation)) is not None
        }
        self.groups = GroupKernels(
            module.name, target, optimize, code, self.types, self.constants, (*self.symbols, *self.sizes)
        )
        self.aliases = {
            name: root for block in self.blocks.values() for name, root in block.fused.aliases.items()
        }
        self.given: dict[str, str] = {}  # what the parameters of functions are at their places
        self.buffers: dict[str, ir.Buffer] = {}
        self.parts: dict[str, ir.Region] = {}  # what lies in a block that an NPU works in
        self.call_blocks: dict[CallBlock, ir.Buffer] = {}
        self.shared: CallBlock | None = None
        self.body = BodyBuilder()
        self.kernels: list[ir.PrimFunc] = []
        self.collector = Collector()
        self.constant_buffers: dict[ir.TensorData, ir.ConstantBuffer] = {}
        self.constant_names: set[str] = set()
        # What constant buffers would have been with all channels.
        self.shapes_before: dict[str, tuple[ir.Extent, ...]] = {}
        # What packed constants are in the model's file.
        self.sources: dict[str, ir.SourceTensor] = {}

    def run(self) -> ir.Module:
        function = self.main.function
        num_states = len(self.module.state)
        num_inputs, num_outputs = len(function.parameters) - num_states, len(function.results) - num_states
        inputs = [
            _parameter(value.name, value.type, ir.Access.READ) for value in function.parameters[:num_inputs]
        ]
        outputs = [
            _parameter(self._root(name), self._largest(self.types[name]), ir.Access.WRITE)
            for name in function.results[:num_outputs]
        ]
        scalars = [ir.ScalarParameter(ir.Var(symbol.name, ir.DType.I32)) for symbol in self.symbols]
        parameters = (*inputs, *outputs, *scalars)
        self.buffers = {parameter.buffer.name: parameter.buffer for parameter in (*inputs, *outputs)}
        self.body = BodyBuilder(parameter.name for parameter in parameters)
        states = function.parameters[num_inputs:]
        self._allocate_states(states)
        self.shared = self._shared_block()
        self._block(self.main)
        for move in self.main.body.moves:
            self._move(move, states, Where(self.module.name))
        self.collector.stop_if_any()
        device, where = self.target.default_device_name, Where(self.module.name)
        entry = ir.PrimFunc(function.name, parameters, self.body.finish(), device=device, where=where)
        return replace(
            self.module,
            functions=(),
            constants=(),
            kernels=tuple(self.kernels),
            entries=(entry,),
            constant_buffers=tuple(self.constant_buffers.values()),
            narrowed=self._narrowed(),
            sources=self._sources(),
            outputs=tuple(map(self._port, self.module.outputs)),
        )

    def _largest(self, type_: ir.TensorType) -> ir.TensorType:
        """The type of the memory for a value."""
        return replace(type_, shape=largest(type_.shape, self.sizes))

    def _port(self, port: ir.Port) -> ir.Port:
        """An output as the entry has it, and as a run has it."""
        type_ = self._largest(port.type)
        return port if type_ == port.type else replace(port, type=type_, sized=port.type.shape)

    def _allocate_states(self, states: Sequence[ir.Value]) -> None:
        """Memory for what survives runs; what a run leaves there is written at once where nothing reads the old."""
        for value, port in zip(states, self.module.state, strict=True):
            buffer = ir.Buffer(value.name, value.type.shape, value.type.dtype, TENSOR_ALIGNMENT)
            scope = ir.join_scopes(ir.GLOBAL, value.type.place.scope)
            storage = ir.Storage(
                scope, border=ir.Border.STATE, provenance=(*filter(None, (port.note,)), _OF_STATE)
            )
            self.buffers[value.name] = self.body.allocate(buffer, storage)
        for carried in self.main.body.carried:
            if carried.written is not None:
                self.buffers[self._root(carried.written)] = self.buffers[states[carried.number].name]

    def _sources(self) -> FrozenMapping[str, ir.SourceTensor]:
        """Tensors of the model's file by buffers as well: packed ones, and those that only views have the name of.

        Memory of the application is what it is to the application: the output, whatever it is a view of.
        """
        sources = {**self.module.sources, **self.sources}
        for name in self.aliases:
            if name in sources:
                sources.setdefault(self._root(name), sources[name])
        for name in self.main.function.results[: len(self.module.outputs)]:
            if name in sources:
                sources[self._root(name)] = sources[name]
        return FrozenMapping(sources)

    def _narrowed(self) -> ir.Narrowed | None:
        """What the graph lost, with the names of buffers in place of those of the graph's constants."""
        narrowed = self.module.narrowed
        if narrowed is None:
            return None
        shapes = {name: shape for name, shape in narrowed.shapes.items() if name not in self.constants}
        return replace(narrowed, shapes=FrozenMapping(shapes | self.shapes_before))

    def _block(self, block: Block) -> None:
        for group in block.fused.groups:
            node = group.nodes[0]
            match node.operation:
                case CondIf():
                    self._conditional(node, node.operation)
                case Loop():
                    self._loop(node, node.operation)
                case EthosU():
                    self._hand_over(node)
                case _:
                    self._group(group)

    # Conditionals and loops

    def _conditional(self, node: ir.Node, operation: CondIf) -> None:
        condition, *given = node.inputs
        for value in node.outputs:
            self._own_buffer(value)
        then, otherwise = self.blocks[operation.then_branch], self.blocks[operation.else_branch]
        buffer = self.buffers[self._root(condition)]
        with self.body.if_(load(buffer, *(0 for _ in buffer.shape))):
            self._arm(then, given, node)
        with self.body.else_():
            self._arm(otherwise, given, node)

    def _arm(self, arm: Block, given: Iterable[str], node: ir.Node) -> None:
        """An arm writes its results where those of the conditional are, which for some is where an operand is."""
        self._give(arm, given)
        tied = [number for _, number in arm.tied]
        for number, (name, value) in enumerate(zip(arm.function.results, node.outputs, strict=True)):
            if number not in tied:
                self.buffers[self._root(name)] = self.buffers[value.name]
        over = [node.outputs[number] for number in tied]
        for carried in arm.body.carried:
            if carried.written is not None:
                self.buffers[self._root(carried.written)] = self.buffers[over[carried.number].name]
        self._block(arm)
        for move in arm.body.moves:
            self._move(move, over, node.where)

    def _loop(self, node: ir.Node, operation: Loop) -> None:
        block = self.blocks[operation.body]
        given = list(node.inputs)
        for carried in block.body.carried:
            self._own_buffer(node.outputs[carried.number])
        for carried in block.body.carried:
            self._begin(carried, block, node)
            given[carried.number] = node.outputs[carried.number].name
        if not block.body.carried:
            return  # every result is an operand
        self._give(block, given)
        self.body.note(f"{operation.num_iterations} turns of '{operation.body}'")
        with self.body.for_("turn", 0, ir.extent_expr(operation.num_iterations)):
            self._block(block)
            for move in block.body.moves:
                self._move(move, node.outputs, node.where)

    def _begin(self, carried: Carried, block: Block, node: ir.Node) -> None:
        """What the first turn reads is where each turn reads it."""
        value = node.outputs[carried.number]
        if carried.is_read:
            self._bring(node.inputs[carried.number], value, "first", node.where)
        if carried.written is not None:
            self.buffers[block.fused.root(carried.written)] = self.buffers[value.name]

    def _move(self, move: Move, carried: Sequence[ir.Value], where: Where) -> None:
        if move.number is not None:
            self._copy(move.source, carried[move.number], "next", where)
            return
        value = ir.Value(move.kept, self.types[move.source])
        self.types[move.kept] = value.type
        self._group(Group(ir.Node(Identity(), (move.source,), (value,), where), ()))

    def _bring(self, source: str, value: ir.Value, what: str, where: Where) -> None:
        """Copies what is to be where a value is, unless it is there."""
        if self.buffers.get(self._root(source)) is not self.buffers[value.name]:
            self._copy(source, value, what, where)

    def _copy(self, source: str, value: ir.Value, what: str, where: Where) -> None:
        """Writes a copy to where a value is."""
        copy = replace(value, name=unique_name(f"{value.name}/{what}", self.names))
        self.types[copy.name] = copy.type
        self.buffers[copy.name] = self.buffers[value.name]
        if self.types[source].shape != value.type.shape:  # what is behind a reshape
            shaped = unique_name(f"{copy.name}/shaped", self.names)
            self.types[shaped], self.aliases[shaped] = value.type, self._root(source)
            source = shaped
        self._group(Group(ir.Node(Identity(), (source,), (copy,), where), ()))

    # Names and buffers

    def _root(self, name: str) -> str:
        """The tensor whose memory a name denotes."""
        root = self.aliases.get(name, name)
        return self.given.get(root, root)

    def _give(self, block: Block, given: Iterable[str]) -> None:
        pairs = zip(block.function.parameters, given, strict=True)
        self.given.update({value.name: self._root(name) for value, name in pairs})

    def _own_buffer(self, value: ir.Value) -> ir.Buffer:
        """Where a value is computed: a buffer that is there for it, or a new one."""
        if value.name not in self.buffers:
            kind = self._largest(value.type)
            buffer = ir.Buffer(value.name, kind.shape, kind.dtype, TENSOR_ALIGNMENT)
            self.buffers[value.name] = self.body.allocate(buffer, _in_workspace(value))
        return self.buffers[value.name]

    # Kernels

    def _group(self, group: Group) -> None:
        """The kernel of a group, and its call."""
        for value in group.outputs:
            if value.name not in self.parts:
                self._own_buffer(value)
        if group.anchor is not None and group.anchor.operation.updates is not None:
            self._begin_update(group.anchor, group.anchor.operation.updates)
        with self.collector.catch():
            with self._finding_out(group):
                kernel = self.groups.lower(group)
            functions, kernel = with_sizes(kernel, self.sizes, self.groups.names)
            self.kernels.extend(functions)
            arguments = [self._argument(argument, kernel) for argument in kernel.arguments]
            self._note_constants(group, kernel, arguments)
            self.body.call(
                kernel.function.name,
                *arguments,
                operators=tuple(dict.fromkeys(map(_operator, group.nodes))),
                touched_by=kernel.touched_by,
                where=kernel.function.where,
                work=group_work(group, self.types, self.constants, self.module.narrowed),
            )

    @contextmanager
    def _finding_out(self, group: Group) -> Generator[None, None, None]:
        """Results of a kernel that finds an extent out are as large as the most while it is written."""
        node = group.anchor
        found = None if node is None else ir.counted_extent(node.operation)
        open_types = (
            {} if node is None or found is None else {v.name: self.types[v.name] for v in node.outputs}
        )
        self.types |= {name: self._largest(type_) for name, type_ in open_types.items()}
        yield
        self.types |= open_types

    def _begin_update(self, node: ir.Node, operand: int) -> None:
        """What a kernel changes in its place is copied to where the result is, unless it is there."""
        self._bring(node.inputs[operand], node.outputs[0], "before", node.where)

    def _note_constants(
        self, group: Group, kernel: LoweredKernel, arguments: list[ir.Region | ir.Expr]
    ) -> None:
        """Remembers what the packed constants of a kernel are in the model's file, and were before channels went."""
        inputs = () if group.anchor is None else group.anchor.inputs
        for argument, region in zip(kernel.arguments, arguments, strict=True):
            if not isinstance(argument, ConstantArgument) or not isinstance(region, ir.Region):
                continue
            operand = _PACKED_OPERANDS.get(argument.hint, len(inputs))
            if operand >= len(inputs):
                continue
            buffer, source = region.buffer.name, self.module.sources.get(inputs[operand])
            if source is not None and argument.hint != _WEIGHTS:
                source = replace(source, quantization=None)  # that of the tensor alone
            if source is not None:
                self.sources.setdefault(buffer, source)
            before = self.module.narrowed and self.module.narrowed.shapes.get(inputs[operand])
            if before is not None and argument.hint == _WEIGHTS:
                self.shapes_before[buffer] = before

    def _hand_over(self, node: ir.Node) -> None:
        """The job of an NPU: its blocks are allocated, and what is not where the NPU wants it is copied."""
        wanted = [value.name for value in node.outputs if value.name in self.buffers]
        with self.collector.catch():
            name = self.groups.name_of(node)
            job = EthosUCall(
                name,
                node,
                self.types,
                self.constants,
                wanted,
                self.target,
                self.groups.names,
                self.shared,
                self._root,
            ).lowered()
            self.kernels.extend(job.functions)
            self._write_job(job)
        for value in node.outputs:  # a call that is refused has results as well, for what comes after it
            if value.name not in self.parts:
                self._own_buffer(value)

    def _shared_block(self) -> CallBlock | None:
        """The block of all calls of an NPU, if they share one."""
        groups = self.main.fused.groups
        shared = share_scratch(groups, self.types, self.constants, self.buffers, self._root)
        if shared is None:
            return None
        name = unique_name(f"{self.module.name}/scratch", self.names)
        return CallBlock(name, shared.size_bytes, tuple(shared.offsets.items()))

    def _write_job(self, job: HandOver) -> None:
        blocks = self.call_blocks
        for block in [block for block in job.blocks if block not in blocks]:
            buffer = ir.Buffer(block.name, (block.size_bytes,), ir.DType.I8, TENSOR_ALIGNMENT)
            blocks[block] = self.body.allocate(buffer, ir.Storage(ir.WORKSPACE, provenance=(_ORIGIN,)))
            for name, offset in block.tensors:
                self.parts[name] = ir.Region(blocks[block], (ir.const(offset),))
        for name, block, offset in job.lying:
            self.parts[name] = ir.Region(blocks[block], (ir.const(offset),))
        lying = {name for name, _, _ in job.lying}
        for value in job.node.outputs:
            if value.name not in lying:
                self._own_buffer(value)
        operator = job.node.where.operator or job.node.operation.name

        def copy(call: BlockCopy) -> None:
            place = ir.Region(blocks[call.block], (ir.const(call.offset),))
            ends = (self._tensor(call.tensor), place) if call.into else (place, self._tensor(call.tensor))
            copying = (f"{DeviceCopy.name} for {operator}",)
            self.body.call(call.kernel.name, *ends, operators=copying, where=call.kernel.where)

        for call in job.before:
            copy(call)
        arguments: list[ir.Region] = []
        for passed in job.passed:
            match passed:
                case CallBlock():
                    arguments.append(ir.Region(blocks[passed]))
                case TensorArgument(name=name):
                    arguments.append(self._tensor(name))
                case ConstantArgument(data=data, hint=hint):
                    arguments.append(self._passed_constant(job.function, data, hint))
        self.body.call(job.function.name, *arguments, operators=(operator,), where=job.function.where)
        for call in job.after:
            copy(call)

    def _argument(self, argument: Argument, kernel: LoweredKernel) -> ir.Region | ir.Expr:
        match argument:
            case ScalarArgument(value=value):
                return value
            case TensorArgument(name=name):
                return self._tensor(name)
            case ConstantArgument(data=data, hint=hint):
                return self._passed_constant(kernel.function, data, hint)

    def _tensor(self, name: str) -> ir.Region:
        root = self._root(name)
        if root in self.buffers:
            return ir.Region(self.buffers[root])
        if root in self.parts:
            return self.parts[root]
        return ir.Region(self._constant(self.constants[root].data, root).buffer)

    def _passed_constant(self, function: ir.PrimFunc, data: ir.TensorData, hint: str) -> ir.Region:
        stem = function.name.removeprefix(f"{self.module.name}_")
        return ir.Region(self._constant(data, f"{stem}/{hint}").buffer)

    def _constant(self, data: ir.TensorData, name: str) -> ir.ConstantBuffer:
        if data not in self.constant_buffers:
            unique = unique_name(name, self.constant_names)
            buffer = ir.Buffer(unique, data.shape, data.dtype, data.dtype.size_bytes)
            self.constant_buffers[data] = ir.ConstantBuffer(buffer, data, ir.Storage(ir.GLOBAL))
        return self.constant_buffers[data]


def _operator(node: ir.Node) -> str:
    """What a step says of a node that it carries out; of a copy, or what is kept, whom it is made for."""
    operator, name = node.where.operator, node.operation.name
    if operator is None:
        return name
    is_for = isinstance(node.operation, ir.CopyOperation) or node.operation.updates is not None
    return f"{name} for {operator}" if is_for else operator


def _parameter(name: str, type_: ir.TensorType, access: ir.Access) -> ir.BufferParameter:
    """An input or output, which the caller provides."""
    buffer = ir.Buffer(name, type_.shape, type_.dtype, type_.dtype.size_bytes)
    return ir.BufferParameter(buffer, access, scope=ir.join_scopes(ir.GLOBAL, type_.place.scope))


def _in_workspace(value: ir.Value) -> ir.Storage:
    """An intermediate tensor: it starts as `global.workspace`, joined with the scope that placement gave it."""
    place = value.type.place
    reasons = (value.reason or "").split("; ")
    why = (f"plan_devices: on device '{place.device}': {reason}" for reason in reasons if reason)
    return ir.Storage(ir.join_scopes(ir.WORKSPACE, place.scope), provenance=(_ORIGIN, *why))
