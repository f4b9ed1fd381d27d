"""A call of an NPU becomes a job: a kernel that is its stream of commands, and copies into its blocks and out of them.

The kernel's parameters are the stream, then the regions in the order of their base pointers; for a region that the
stream does not use the stream itself stands, which nothing touches. Where one tensor is all of a region, it is passed
as it is. Else a block is allocated for the call, and inputs are copied to their places in it: so none of them is bound
to an address by what computed it. Results are read where they lie in the block, which lives so long; those that the
caller wants are copied.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from bytewright import ir
from bytewright.base.c_names import unique_name
from bytewright.diagnostics import compile_error
from bytewright.ir.copy import copy_kernel
from bytewright.lower.kernel import ConstantArgument, TensorArgument
from bytewright.ops.ethos_u import CONSTANTS, FAST_SCRATCH, NUM_CONSTANT_OPERANDS, OUTPUTS, SCRATCH, EthosU
from bytewright.target.isa.find import require_isa
from bytewright.target.model import Device, Target

REGION_ALIGNMENT = 16


@dataclass(frozen=True, slots=True)
class CallBlock:
    """Memory that is allocated for a call, or for all.

    Attributes:
        tensors: What lies in it from the one that computes it to those that read it, each with its place; then no call
            copies it there.
    """

    name: str
    size_bytes: int
    tensors: tuple[tuple[str, int], ...] = ()


Passed = TensorArgument | ConstantArgument | CallBlock


@dataclass(frozen=True, slots=True)
class BlockCopy:
    """A call of a kernel that copies a tensor into a block, or out of it, at an offset."""

    kernel: ir.PrimFunc
    tensor: str
    block: CallBlock
    offset: int
    into: bool


@dataclass(frozen=True, slots=True)
class HandOver:
    """A job, and what is copied before it and after it.

    Attributes:
        node: The operator.
        function: The kernel that is the stream.
        passed: What each of its parameters is given.
        before, after: The copies.
        lying: Results that stay in a block, each with the block and its place there.
    """

    node: ir.Node
    function: ir.PrimFunc
    passed: tuple[Passed, ...]
    before: tuple[BlockCopy, ...]
    after: tuple[BlockCopy, ...]
    lying: tuple[tuple[str, CallBlock, int], ...]

    @property
    def functions(self) -> tuple[ir.PrimFunc, ...]:
        """All kernels that are called."""
        copies = (*self.before, *self.after)
        return (
            *(copy.kernel for copy in copies if copy.into),
            self.function,
            *(c.kernel for c in copies if not c.into),
        )

    @property
    def blocks(self) -> tuple[CallBlock, ...]:
        """What is allocated."""
        return tuple(dict.fromkeys(passed for passed in self.passed if isinstance(passed, CallBlock)))


@dataclass(frozen=True, slots=True)
class EthosUCall:
    """A call of an NPU, on its way to a job.

    Attributes:
        name: The kernel's.
        node: The call, an `EthosU`.
        types: Of all values.
        constants: Of the module.
        wanted: The results that the caller gets.
        target: Has the NPU that the stream was made for.
        names: Of kernels, to which those of the copies are added.
        shared: The scratch of all calls, if they share one.
        root: The tensor whose memory a name denotes.
    """

    name: str
    node: ir.Node
    types: Mapping[str, ir.TensorType]
    constants: Mapping[str, ir.Constant]
    wanted: Collection[str]
    target: Target
    names: set[str]
    shared: CallBlock | None
    root: Callable[[str], str]

    @property
    def operation(self) -> EthosU:
        """What the node is."""
        assert isinstance(self.node.operation, EthosU)
        return self.node.operation

    @property
    def device(self) -> Device:
        """Who carries the stream out.

        Raises:
            CompileError: BW744, no device of the target, or several.
        """
        wanted = require_isa(self.operation.accelerator)
        found = [device for device in self.target.devices if device.isa == wanted]
        if len(found) == 1:
            return found[0]
        known = ", ".join(f"{device.name} ({device.isa.name})" for device in self.target.devices)
        what = f"{len(found)} devices" if found else "no device"
        raise compile_error(
            "BW744",
            f"the stream is for {self.operation.accelerator}, of which target '{self.target.name}' has {what}",
            (f"devices: {known}",),
            "compile the model with Vela for the target's NPU (--accelerator-config), or choose its target (--target)",
            str(self.node.where),
        )

    def lowered(self) -> HandOver:
        """The job.

        Raises:
            CompileError: As of `device`.
        """
        device = self.device
        commands = self._constant(self.node.inputs[0], "commands")
        passed: list[Passed] = [commands]
        parameters = [self._parameter("commands", self._size_bytes(commands), ir.Access.READ, ir.DType.U8)]
        for region in range(self._num_regions()):
            given, access = self._region(region, commands)
            dtype = ir.DType.U8 if isinstance(given, ConstantArgument) else ir.DType.I8
            passed.append(given)
            is_block = isinstance(given, CallBlock)
            size_bytes = self.operation.needed_bytes(region) if is_block else self._size_bytes(given)
            is_scratch = is_block and self._is_scratch(region)
            parameters.append(self._parameter(f"region{region}", size_bytes, access, dtype, is_scratch))
        before = tuple(self._copies_in(passed))
        after = tuple(self._copies_out(passed))
        lying = tuple(self._lying(passed))
        function = ir.PrimFunc(
            self.name,
            tuple(parameters),
            ir.Seq(()),
            device=device.name,
            where=self.node.where,
            job=ir.Job.STREAM,
        )
        return HandOver(self.node, function, tuple(passed), before, after, lying)

    def _num_regions(self) -> int:
        return 1 + max(
            region for region in range(OUTPUTS + 1) if not region or self.operation.needed_bytes(region)
        )

    @property
    def _inputs(self) -> Sequence[str]:
        return self.node.inputs[NUM_CONSTANT_OPERANDS:]

    def _region(self, region: int, commands: ConstantArgument) -> tuple[Passed, ir.Access]:
        """What a region is given."""
        operation = self.operation
        if region == CONSTANTS:
            return self._constant(self.node.inputs[1], "constants"), ir.Access.READ
        size_bytes = operation.needed_bytes(region)
        if not size_bytes:
            return commands, ir.Access.READ
        if operation.is_separate and region == operation.input_region:
            alone = self._alone(operation.input_offsets, self._inputs)
            return alone or CallBlock(f"{self.name}/inputs", size_bytes), ir.Access.READ
        if operation.is_separate and region == operation.output_region:
            alone = self._alone(operation.output_offsets, [value.name for value in self.node.outputs])
            return alone or CallBlock(f"{self.name}/outputs", size_bytes), ir.Access.WRITE
        if region == SCRATCH and self.shared is not None:
            return self.shared, ir.Access.READ_WRITE
        what = "scratch" if region == SCRATCH else "fast_scratch"
        return CallBlock(f"{self.name}/{what}", size_bytes), ir.Access.READ_WRITE

    def _is_scratch(self, region: int) -> bool:
        """Whether a region holds nothing before the call and after it: no input lies there, and no result."""
        operation = self.operation
        return region in {SCRATCH, FAST_SCRATCH} and region not in {
            operation.input_region,
            operation.output_region,
        }

    def _alone(self, offsets: Sequence[int], tensors: Sequence[str]) -> TensorArgument | None:
        """The tensor that is all of a region, if one is, and is no constant."""
        is_alone = tuple(offsets) == (0,) and tensors[0] not in self.constants
        return TensorArgument(tensors[0]) if is_alone else None

    def _copies_in(self, passed: Sequence[Passed]) -> Iterator[BlockCopy]:
        block = passed[1 + self.operation.input_region] if self._inputs else None
        if isinstance(block, CallBlock):
            lying = {name for name, _ in block.tensors}
            for tensor, offset in zip(self._inputs, self.operation.input_offsets, strict=True):
                if self.root(tensor) not in lying:
                    yield self._copy(tensor, block, offset, into=True)

    def _copies_out(self, passed: Sequence[Passed]) -> Iterator[BlockCopy]:
        for value, block, offset in self._in_block(passed):
            if value in self.wanted:
                yield self._copy(value, block, offset, into=False)

    def _lying(self, passed: Sequence[Passed]) -> Iterator[tuple[str, CallBlock, int]]:
        yield from (lying for lying in self._in_block(passed) if lying[0] not in self.wanted)

    def _in_block(self, passed: Sequence[Passed]) -> Iterator[tuple[str, CallBlock, int]]:
        """The results that the NPU leaves in a block, with their places."""
        block = passed[1 + self.operation.output_region]
        if isinstance(block, CallBlock):
            for value, offset in zip(self.node.outputs, self.operation.output_offsets, strict=True):
                yield value.name, block, offset

    def _copy(self, tensor: str, block: CallBlock, offset: int, *, into: bool) -> BlockCopy:
        name = unique_name(f"{self.name}_{'place' if into else 'fetch'}", self.names)
        buffer = ir.Buffer("copied", (self.types[tensor].num_elements,), ir.DType.I8, 1)
        kernel = copy_kernel(
            name, buffer, self.target.default_device_name, (ir.GLOBAL, ir.GLOBAL), where=self.node.where
        )
        return BlockCopy(kernel, tensor, block, offset, into)

    def _constant(self, name: str, hint: str) -> ConstantArgument:
        return ConstantArgument(self.constants[name].data, hint)

    def _size_bytes(self, passed: ConstantArgument | TensorArgument) -> int:
        match passed:
            case ConstantArgument():
                return passed.data.type.num_elements
            case TensorArgument():
                return self.types[passed.name].num_elements

    def _parameter(
        self, name: str, size_bytes: int, access: ir.Access, dtype: ir.DType, is_scratch: bool = False
    ) -> ir.BufferParameter:
        alignment = max(REGION_ALIGNMENT, self.device.cache_line_bytes)
        role = ir.ParameterRole.PARAMETER if dtype is ir.DType.U8 else ir.ParameterRole.ACTIVATION
        if is_scratch:
            role = ir.ParameterRole.SCRATCH
        return ir.BufferParameter(ir.Buffer(name, (size_bytes,), dtype, alignment), access, role, ir.GLOBAL)
