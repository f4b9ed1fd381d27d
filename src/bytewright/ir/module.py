"""A module: graph functions, PrimFuncs and constants of one model, in whatever mixture a stage leaves."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from bytewright.base.frozen_mapping import FrozenMapping
from bytewright.diagnostics import InternalError
from bytewright.ir.data import TensorData
from bytewright.ir.expr import Buffer
from bytewright.ir.graph import Constant, Function, Quantization, function_types
from bytewright.ir.prim import PrimFunc
from bytewright.ir.storage import UNDECIDED, Annotations, Border, Storage, Stored
from bytewright.ir.types import Extent, Symbol, TensorType


@dataclass(frozen=True, slots=True)
class Port:
    """An input, an output or a state of the model at its border: what the header documents.

    A state survives between runs. In a graph it is a parameter behind those of the inputs, tied to the result at the
    same place behind those of the outputs: what a run gives there is what the next one is given. In a program it is an
    allocation of the entry, which is never freed.

    Attributes:
        stated: What the model calls it, where another has its name in C and it got a number; not part of texts.
        initial: The value of a state before the first run; None for zeros.
        note: Why it is what it is, for people; not part of texts.
        size_of: The extent that an output, i32 [1], says, and the most that there is room for.
        is_checked: Whether data may ask for more than that.
        sized: The shape of an output in a run, of which the data decides extents; None where it does not.
    """

    name: str
    type: TensorType
    quantization: Quantization | None = None
    stated: str | None = None
    initial: TensorData | None = None
    note: str = ""
    size_of: Symbol | None = None
    is_checked: bool = False
    sized: tuple[Extent, ...] | None = None


@dataclass(frozen=True, slots=True, weakref_slot=True)
class ConstantBuffer(Stored):
    """A constant that kernels read: a buffer with its values. Its scope names the parameter pool in the end."""

    buffer: Buffer
    data: TensorData
    storage: Storage = UNDECIDED
    annotations: Annotations = ()


@dataclass(frozen=True, slots=True)
class SourceTensor:
    """What a value is in the model's file: documentation, on which no arithmetic depends."""

    name: str
    quantization: Quantization | None


@dataclass(frozen=True, slots=True)
class Narrowed:
    """What became of a graph that lost channels (`fold_constant_channels`): documentation, as `SourceTensor` is.

    Attributes:
        macs_before, macs: Multiply-accumulates of its convolutions, each counted once; of one sample if that is open.
        weight_bytes_before, weight_bytes: Of their weights.
        shapes: What had which shape before, by the names of values and constants, and later of buffers.
        channels: Those that values have kept, in order, by the names of these.
        constant: Those of such values that are constant whatever the model is given, in the numbers of the model.
    """

    macs_before: int
    macs: int
    weight_bytes_before: int
    weight_bytes: int
    shapes: Mapping[str, tuple[Extent, ...]]
    channels: Mapping[str, tuple[int, ...]]
    constant: Mapping[str, tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class Streamed:
    """How a network over a window of frames runs on those that are new: documentation, as `SourceTensor` is.

    Attributes:
        num_frames: Of the whole window.
        num_new: Which each run is given.
        num_left_out: Frames that the whole network has behind that window, and does not read.
        num_runs_before: The first runs after a reset, for whose results too few frames have come.
        is_padded: Whether the network pads before the first frame; else nothing is read there that counts.
        input_axes, output_axes: The axis that counts frames, or rows of results, by the names of those that have one.
        macs_before, macs: Multiply-accumulates of the convolutions of a whole window, and of a run.
    """

    num_frames: int
    num_new: int
    num_left_out: int
    num_runs_before: int
    is_padded: bool
    input_axes: Mapping[str, int]
    output_axes: Mapping[str, int]
    macs_before: int
    macs: int

    @property
    def text(self) -> str:
        """What a run takes, what it costs of a whole window, and when results count."""
        share = f", {self.macs} of {self.macs_before} multiply-accumulates" if self.macs_before else ""
        after = f"; results from run {self.num_runs_before + 1} on" if self.num_runs_before else ""
        return f"{self.num_new} of {self.num_frames} frames a run{share}{after}"


@dataclass(frozen=True, slots=True, weakref_slot=True)
class Module:
    """The unit that passes transform.

    Attributes:
        name: The model's name, a C identifier.
        functions: Graph functions, each before those that run it; the last is where the model begins. Empty after
            lowering.
        constants: Constants of the graph.
        kernels: PrimFuncs that `entries` call, callees before callers.
        entries: The entry PrimFuncs, all of one device; empty before lowering.
        constant_buffers: Constants that PrimFuncs read by name.
        inputs, outputs: The model's border, in its order: those of the first entry, then those of the next.
        state: Values that survive between runs, in the order of the graph's parameters or each entry's allocations.
        numerics: The reference that the module's arithmetic equals bit for bit, by name; None for what was written by
            hand, which is its own reference.
        sources: Tensors of the model's file by the names of the values, and later buffers, that hold them. The text of
            the IR does not have them.
        narrowed: What the graph lost of its channels; None if nothing. The text of the IR does not have it either.
        stream: How it runs frame by frame, if it does. Nor does the text have that.
    """

    name: str
    functions: tuple[Function, ...] = ()
    constants: tuple[Constant, ...] = ()
    kernels: tuple[PrimFunc, ...] = ()
    entries: tuple[PrimFunc, ...] = ()
    constant_buffers: tuple[ConstantBuffer, ...] = ()
    inputs: tuple[Port, ...] = ()
    outputs: tuple[Port, ...] = ()
    state: tuple[Port, ...] = ()
    numerics: str | None = None
    sources: Mapping[str, SourceTensor] = field(default_factory=lambda: FrozenMapping({}), compare=False)
    narrowed: Narrowed | None = field(default=None, compare=False)
    stream: Streamed | None = field(default=None, compare=False)

    @property
    def main(self) -> PrimFunc:
        """The entry, of a module that has exactly one; `entries_alone` makes such modules."""
        if len(self.entries) != 1:
            raise InternalError(f"module '{self.name}' has {len(self.entries)} entries, one was expected")
        return self.entries[0]

    @property
    def entry_device(self) -> str:
        """The device of the entries."""
        return self.entries[0].device

    @property
    def graph(self) -> Function:
        """The graph function that the model is: the last, since functions stand before those that run them."""
        if not self.functions:
            raise InternalError(f"module '{self.name}' has no graph function, one was expected")
        return self.functions[-1]

    @property
    def constant_types(self) -> dict[str, TensorType]:
        """Types of the graph's constants, by name."""
        return {constant.name: constant.data.type for constant in self.constants}

    @property
    def graph_types(self) -> dict[str, TensorType]:
        """The same of all that graph functions may use, whichever of them defines it."""
        types = self.constant_types
        for function in self.functions:
            types |= function_types(function)
        return types

    def ports(self, border: Border) -> tuple[Port, ...]:
        """The inputs, the outputs or the states."""
        return {Border.INPUT: self.inputs, Border.OUTPUT: self.outputs, Border.STATE: self.state}[border]

    def kernel(self, name: str) -> PrimFunc | None:
        """The kernel of a name, or None."""
        return next((kernel for kernel in self.kernels if kernel.name == name), None)
