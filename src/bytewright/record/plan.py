"""What is known of a plan, as frozen values: all of plan.json, and all that anyone asks of a plan.

Code generation, the bundle, reports, runs, checks and `CompiledModel` see a plan through these classes, whether it
has just been made (`build_plan.py`) or comes from a folder (`plan_file.py`). They are checked for form but not for
truth; `inspect` does that. A field that is added here is in plan.json (`codec.py`).
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from bytewright import ir
from bytewright.base.frozen_mapping import FrozenMapping
from bytewright.ir.analyses.clock import Branch, Condition, Loop, outer_first
from bytewright.ir.packed import packed_bytes
from bytewright.record.codec import Signed
from bytewright.record.rows import PlannedRing, PlannedRows, PlannedSegment
from bytewright.show.notebook import Shown
from bytewright.target.model import PARAMETER_HEADER_BYTES, Device, Loader, Provider, Role, Target


class PlaceKind(StrEnum):
    """What sort of place a buffer ends in."""

    PLANNED = "planned"  # at an offset in a workspace pool, or one of state
    CONSTANT = "constant"  # at an offset in a parameter pool
    STACK = "stack"  # of an execution context
    ARENA = "arena"  # requested from the arena of a pool at run time
    CALLER = "caller"  # the application brings it to each run


# What a module is bit for bit that was written by hand: itself, as the evaluator runs it.
OWN_NUMERICS = "ir"


class BufferRole(StrEnum):
    """What a buffer is for."""

    INPUT = "input"
    OUTPUT = "output"
    STATE = "state"
    TENSOR = "tensor"
    SCRATCH = "scratch"
    ARENA = "arena"
    PARAMETER = "parameter"


@dataclass(frozen=True, slots=True)
class Place:
    """Where a buffer ends.

    Attributes:
        name: The pool, the execution context, or the caller's tensor.
        offset: In the pool, in bytes; None where it has none.
    """

    kind: PlaceKind
    name: str
    offset: int | None


@dataclass(frozen=True, slots=True)
class PlannedPart:
    """A tensor that lies in another one, so that nothing is copied.

    Attributes:
        offset_bytes: Where it begins in that.
        tensor: What it is called in the model's file; None for what the compiler made.
    """

    name: str
    offset_bytes: int
    size_bytes: int
    tensor: str | None = None


@dataclass(frozen=True, slots=True)
class PlannedBuffer:
    """One buffer.

    Attributes:
        size_bytes: The most that it takes, where that is known only at run time; without padding.
        live: Half-open interval of ticks; None for what lives inside a kernel.
        first_step: The first step that touches it; None for what lives inside a kernel.
        scope: Its storage scope.
        candidates: Pools that it might have gone to, preferred first.
        devices: Those that touch it, by way of whatever call.
        reason: How its scope came to be what it is.
        tensor: What it is called in the model's file; None for what the compiler made.
        shape: In elements, with every extent that a run is given at its largest.
        dtype: Of an element.
        scale: Of a tensor of the model's file that is quantised as a whole.
        zero_point: The same.
        line_bytes: Size of the cache lines that it has to itself while it lives, because a device touches it whose view
            of the memory is not coherent; 0 if it may share lines.
        shape_before: Of a tensor or of weights that lost channels: the shape in the model; None if it lost none.
        kept_channels: Of a tensor that lost channels: those of the last axis in the model that are left, in order.
        ring: Where it keeps some rows of a tensor only: `shape` is then that of the tensor.
        parts: Tensors that lie in it, by offset.
    """

    name: str
    role: BufferRole
    size_bytes: int
    alignment: int
    place: Place
    live: tuple[int, int] | None
    first_step: int | None
    last_step: int | None
    scope: str | None
    candidates: tuple[str, ...]
    devices: tuple[str, ...]
    reason: str
    tensor: str | None = None
    shape: tuple[int, ...] | None = None
    dtype: ir.DType | None = None
    scale: float | None = None
    zero_point: Signed | None = None
    line_bytes: int = field(default=0, metadata={"omit_empty": True})
    shape_before: tuple[int, ...] | None = field(default=None, metadata={"omit_empty": True})
    kept_channels: tuple[int, ...] = field(default=(), metadata={"omit_empty": True})
    ring: PlannedRing | None = field(default=None, metadata={"omit_empty": True})
    parts: tuple[PlannedPart, ...] = field(default=(), metadata={"omit_empty": True})

    @property
    def extent_bytes(self) -> int:
        """Bytes that nothing else has while it lives: its own, and what is left of its last cache line."""
        line_bytes = max(self.line_bytes, 1)
        return -(-self.size_bytes // line_bytes) * line_bytes

    @property
    def has_offset(self) -> bool:
        """Whether the plan gives it an offset in a pool. What is requested at run time has none; its arena does."""
        return self.place.kind in (PlaceKind.PLANNED, PlaceKind.CONSTANT)

    @property
    def pool_role(self) -> Role:
        """The role of the pools that may hold it."""
        if self.place.kind is PlaceKind.CONSTANT:
            return Role.PARAMETERS
        return Role.STATE if self.role is BufferRole.STATE else Role.WORKSPACE


@dataclass(frozen=True, slots=True)
class PlannedPool:
    """One pool.

    Attributes:
        c_name: Its name in C.
        capacity_bytes: The limit; None for none.
        used_bytes: One past the last byte used.
        lower_bound_bytes: No plan with these buffers in this pool uses less.
        optimal: Whether the two are equal.
        section: Linker section; None for the compiler's default.
        sha256: Of the bytes of a parameter pool; None for a workspace.
        load: Who brings the bytes of a parameter pool to its memory.
        load_memory: The memory that keeps them until then; None if they need none, or one that is not known.
        read_cost: Of a byte in its memory, relative to the others.
        write_cost: The same.
        obtained_by: The device that obtains it for each run, in a memory that the entry's device does not reach; None
            for a pool that the program has.
    """

    name: str
    c_name: str
    memory: str
    role: Role
    provider: Provider
    capacity_bytes: int | None
    used_bytes: int
    lower_bound_bytes: int
    optimal: bool
    alignment: int
    section: str | None
    sha256: str | None
    load: Loader = Loader.LINKER
    load_memory: str | None = None
    read_cost: int = 1
    write_cost: int = 1
    obtained_by: str | None = field(default=None, metadata={"omit_empty": True})

    @property
    def is_caller(self) -> bool:
        """Whether the application provides the memory."""
        return self.provider is Provider.CALLER

    @property
    def is_copied(self) -> bool:
        """Whether the application's call of `<model>_set_parameters` brings its bytes."""
        return self.load is Loader.COPY and self.used_bytes > 0

    @property
    def is_set(self) -> bool:
        """Whether the context has its address, which a set function puts there."""
        return self.is_caller or self.is_copied

    @property
    def begins_empty(self) -> bool:
        """Whether its array holds nothing that matters when the program starts."""
        return self.role is not Role.PARAMETERS or self.is_copied

    @property
    def header_bytes(self) -> int:
        """What comes before the constants of a parameter pool from the application."""
        has_header = self.role is Role.PARAMETERS and self.is_caller and self.used_bytes > 0
        return PARAMETER_HEADER_BYTES if has_header else 0

    @property
    def loading(self) -> str:
        """How the bytes of a parameter pool come to its memory: `copied from 'flash'`; empty if they begin there."""
        if self.load_memory is None:
            return "copied from the application's memory" if self.load is Loader.COPY else ""
        return f"{'copied' if self.load is Loader.COPY else 'loaded'} from '{self.load_memory}'"


@dataclass(frozen=True, slots=True)
class PlannedStack:
    """The stack of one execution context.

    Attributes:
        planned_bytes: Explicit arrays on the worst path.
        size_bytes: That, and the allowance for each call.
        limit_bytes: None for no limit.
        path: Functions on the worst path, the entry first.
    """

    planned_bytes: int
    size_bytes: int
    limit_bytes: int | None
    path: tuple[str, ...]


class DeviceKind(StrEnum):
    """How a device is told what to do."""

    C = "c"  # it runs kernels that are compiled for it, by their numbers
    STREAM = "stream"  # it carries out command streams
    COPY = "copy"  # it only copies
    CONTEXT = "context"  # functions of the application drive it, and the model hands it nothing


@dataclass(frozen=True, slots=True)
class PlannedKernel:
    """A kernel that is handed over.

    Attributes:
        number: Its place among those of its device, and what a device that runs C is told to run.
        name: What steps call it.
        job: What it is where no compiled code carries it out.
    """

    number: int
    name: str
    job: ir.Job | None = None


@dataclass(frozen=True, slots=True)
class PlannedDevice:
    """A device beside the entry's that takes part in a run.

    Attributes:
        name: As the target calls it.
        c_name: Its name in C.
        isa: Its instruction set.
        kernels: Those that the entry hands over.
    """

    name: str
    c_name: str
    isa: str
    kind: DeviceKind
    kernels: tuple[PlannedKernel, ...]


@dataclass(frozen=True, slots=True)
class Lent:
    """A part of a pool that a device may touch during a run: from the first byte that it touches to the last.

    Attributes:
        pool: The pool.
        offset: Where it begins, in bytes.
        size_bytes: How much it is.
        is_written: Whether the device may write there.
        is_obtained: Whether the device is to obtain the memory, which is then all of the pool, with every byte that
            others are lent of it.
    """

    pool: str
    offset: int
    size_bytes: int
    is_written: bool
    is_obtained: bool = False


@dataclass(frozen=True, slots=True)
class PlannedSpan:
    """A part of a buffer that a job is given.

    Attributes:
        buffer: Whose part it is.
        offset: Where it begins in the buffer, in bytes: a number, a sum such as `128*turn + 4` if it changes, or None
            if it changes otherwise.
        size_bytes: With every extent that a run is given at its largest; None if a turn decides.
        access: What the device may do with it.
    """

    buffer: str
    offset: int | str | None
    size_bytes: int | None
    access: ir.Access


@dataclass(frozen=True, slots=True)
class PlannedOverlap:
    """An input that dies in a step, and an output that may lie over it because the kernel is done with what it writes.

    Attributes:
        source: The buffer that is read.
        output: The buffer that is written. It begins so far below the other one, or above it, or further:
        below_bytes: as the kernel asks, run as the step runs it,
        above_bytes: the same.
    """

    source: str
    output: str
    below_bytes: int
    above_bytes: int

    @property
    def text(self) -> str:
        """What its kernel asks for, for people."""
        return f"contract: at least {self.below_bytes} B below it, or {self.above_bytes} B above"


@dataclass(frozen=True, slots=True)
class PlannedStep:
    """One call of the entry.

    Attributes:
        ticks: Half-open interval on the clock: reading, the body, writing.
        operators: Those of the model that became this call.
        reads: Buffers that it reads.
        writes: Buffers that it writes.
        scratch: Buffers that it works in.
        alive: For each of them the ticks, half-open, in which the call needs its bytes: from the first use to the last.
        is_packed: Whether it calls the packed form of the kernel,
        num_packed_arguments: and with how many arguments.
        spans: What the job consists of, of a call that is handed over, in the job's order; a command stream is first.
        scalars: The numbers that such a call hands to its kernel, in order, each as the offset of a span.
        overlaps: The pairs of its buffers that may share bytes while they coexist.
        runs_down: Whether its kernel runs from the last row and pixel to the first.
        rows: Which rows it makes, of a call that makes some of a tensor's.
        template: What of an instruction set made its kernel; empty if a portable template did.
        remarks: What else is to say of how that was made, for people.
    """

    index: int
    ticks: tuple[int, int]
    kernel: str
    device: str
    operators: tuple[str, ...]
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    scratch: tuple[str, ...]
    alive: Mapping[str, tuple[int, int]]
    is_packed: bool = field(default=False, metadata={"omit_empty": True})
    num_packed_arguments: int = field(default=0, metadata={"omit_empty": True})
    spans: tuple[PlannedSpan, ...] = field(default=(), metadata={"omit_empty": True})
    scalars: tuple[int | str | None, ...] = field(default=(), metadata={"omit_empty": True})
    overlaps: tuple[PlannedOverlap, ...] = field(default=(), metadata={"omit_empty": True})
    runs_down: bool = field(default=False, metadata={"omit_empty": True})
    rows: PlannedRows | None = field(default=None, metadata={"omit_empty": True})
    template: str = field(default="", metadata={"omit_empty": True})
    remarks: tuple[str, ...] = field(default=(), metadata={"omit_empty": True})

    @property
    def touched(self) -> tuple[str, ...]:
        """All buffers of the call, each once."""
        return tuple(dict.fromkeys((*self.reads, *self.writes, *self.scratch)))


@dataclass(frozen=True, slots=True)
class Initial:
    """The bytes of a state before the first run.

    Attributes:
        fill: What each of them is; None where they are not all the same.
        constant: The buffer in a parameter pool that has them, then.
    """

    fill: int | None = None
    constant: str | None = None


@dataclass(frozen=True, slots=True)
class PlannedTensor:
    """An input, output or state of the model; scale and zero point are None for float tensors.

    Attributes:
        buffer: Its buffer. One that the caller provides and no step touches is not among the plan's buffers.
        shape: With every extent that a run is given at its largest; size_bytes is that of this shape.
        extents: The same with the names of such extents.
        num_rows: Rows of it that the application hands over one after another; 0 where it has all of it at once.
        initial: What a state is before the first run.
    """

    name: str
    c_name: str
    buffer: str
    dtype: ir.DType
    shape: tuple[int, ...]
    extents: tuple[int | str, ...]
    size_bytes: int
    scale: float | None
    zero_point: Signed | None
    num_rows: int = field(default=0, metadata={"omit_empty": True})
    initial: Initial | None = field(default=None, metadata={"omit_empty": True})

    @property
    def row_bytes(self) -> int:
        """The bytes of one of these rows."""
        return self.size_bytes // self.num_rows

    def shape_for(self, values: Mapping[str, int]) -> tuple[int, ...]:
        """The shape in a run that is given these values of extents."""
        return tuple(values[extent] if isinstance(extent, str) else extent for extent in self.extents)

    def bytes_for(self, values: Mapping[str, int]) -> int:
        """The bytes of that shape."""
        return math.prod(self.shape_for(values)) * self.dtype.size_bytes


# What the entry of a model is called in C that has one alone.
ONE_ENTRY = "run"


class EntryForm(StrEnum):
    """How the application runs an entry.

    RUN: By one function, which is given inputs and outputs.
    ROWS: By three: one begins, one is given the input a few rows at a time, and one finishes.
    """

    RUN = "run"
    ROWS = "rows"


@dataclass(frozen=True, slots=True)
class PlannedEntry:
    """What the application runs: some of the steps, with inputs and outputs of its own.

    Attributes:
        name: Its name in C.
        inputs: The names of its inputs,
        outputs: and of its outputs.
        steps: Its steps, half-open.
        ticks: Its ticks, half-open: what is its own lives in these alone.
    """

    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    steps: tuple[int, int]
    ticks: tuple[int, int]


@dataclass(frozen=True, slots=True)
class NarrowedWork:
    """What the model's convolutions take, of what they took before channels were removed.

    Attributes:
        macs: Multiply-accumulates, each convolution counted once; of one sample where the batch is open.
        weight_bytes: Of weights.
    """

    macs: int
    macs_before: int
    weight_bytes: int
    weight_bytes_before: int

    @property
    def text(self) -> str:
        """How much was removed, of how much."""
        macs, weights = self.macs_before - self.macs, self.weight_bytes_before - self.weight_bytes
        sums = f"{macs} of {self.macs_before} multiply-accumulates ({_share(macs, self.macs_before)})"
        share = _share(weights, self.weight_bytes_before)
        return f"{sums} and {weights} of {self.weight_bytes_before} B of weights ({share}) removed"


def _share(part: int, whole: int) -> str:
    """In tenths of a percent, rounded down."""
    tenths = 1000 * part // whole if whole else 0
    return f"{tenths // 10}.{tenths % 10} %"


@dataclass(frozen=True, slots=True)
class Build:
    """What the C was made by, and is to be compiled with.

    Attributes:
        bytewright: The version.
        flags: Of the compiler; the results are exact with them.
    """

    bytewright: str
    flags: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan(Shown):
    """Everything that plan.json holds.

    Attributes:
        model: The C identifier of the model.
        target: The target's name.
        numerics: The reference that the output equals.
        io: Where inputs and outputs are.
        model_files: sha256 of what the model was read from, by the files' names; none for a program from elsewhere.
        options: What the user asked for, as it is written, one each; not what is as by default.
        inputs, outputs: Of all entries, in their order.
        states: What survives runs; a bundle without any does not say so.
        stated_entries: What the application runs; a bundle does not say so that has the one entry `run`.
        symbols: Extents that each run is given.
        pools: By name: workspaces, those of state, then parameters, each in preference order.
        buffers: By name.
        stack: By execution context, that of the entry first.
        loops: Steps that come again; what they touch and is not born inside lives from the first tick to the last.
        conditions: Truth values that the entry branches on; a bundle without any does not say so.
        branches: All branches of the entry, outer ones first, with the steps of their arms; a bundle without any does
            not say so.
        segments: Steps that run together row by row; a bundle without any does not say so.
        plain_workspace_bytes: With segments: what it would need with `--rows off`; None if there was no such plan.
        hardware: The target that the plan was made for.
        externals: Functions of the application that the steps call, or their kernels do.
        devices: Those besides the entry's that take part, by name, in the order of the application's structure.
        has_packed_entry: Whether the run function has a packed form too.
        narrowed: What the removal of constant channels saved; None if it saved no convolution anything.
        stream: How the model runs frame by frame, if it does.
        plan_hash: sha256 of the plan.
        files: sha256 of every other file of the bundle, by path; empty until there is one.
        files_hash: sha256 of all of this; None until there is a bundle.
    """

    model: str
    target: str
    numerics: str
    io: ir.Io
    build: Build
    model_files: Mapping[str, str] = field(default_factory=lambda: FrozenMapping({}))
    options: tuple[str, ...] = ()
    inputs: tuple[PlannedTensor, ...]
    outputs: tuple[PlannedTensor, ...]
    states: tuple[PlannedTensor, ...] = field(default=(), metadata={"omit_empty": True})
    stated_entries: tuple[PlannedEntry, ...] = field(
        default=(), metadata={"key": "entries", "omit_empty": True}
    )
    symbols: tuple[ir.Symbol, ...]
    pools: Mapping[str, PlannedPool]
    buffers: Mapping[str, PlannedBuffer]
    stack: Mapping[str, PlannedStack]
    steps: tuple[PlannedStep, ...]
    loops: tuple[Loop, ...]
    conditions: tuple[Condition, ...] = field(default=(), metadata={"omit_empty": True})
    branches: tuple[Branch, ...] = field(default=(), metadata={"omit_empty": True})
    segments: tuple[PlannedSegment, ...] = field(default=(), metadata={"omit_empty": True})
    plain_workspace_bytes: int | None = field(default=None, metadata={"omit_empty": True})
    hardware: Target = field(metadata={"key": "target_description"})
    externals: tuple[str, ...] = ()
    devices: Mapping[str, PlannedDevice] = field(
        default_factory=lambda: FrozenMapping({}), metadata={"omit_empty": True}
    )
    has_packed_entry: bool = field(default=False, metadata={"omit_empty": True})
    narrowed: NarrowedWork | None = field(default=None, metadata={"omit_empty": True})
    stream: ir.Streamed | None = field(default=None, metadata={"omit_empty": True})
    plan_hash: str
    files: Mapping[str, str]
    files_hash: str | None = None

    def __repr__(self) -> str:
        figures = f"RAM {self.ram_bytes} B, parameters {self.parameter_bytes} B, {len(self.steps)} steps"
        return f"Plan({self.model!r} for {self.target}: {figures})"

    @property
    def device(self) -> Device:
        """The device that runs the entry, with the stack of the run, which is the first of the plan's."""
        first = next(iter(self.stack), None)
        devices = (d for d in self.hardware.devices if first in [context.name for context in d.contexts])
        return next(devices, self.hardware.default_device)

    @property
    def arithmetic_text(self) -> str:
        """`bit for bit litert-ref`: what the output equals, and in what it departs from that."""
        departs = ", integer weights widened to float32" if self.widens_weights else ""
        floats = ", float32 to 1e-5 of the largest" if self._has_floats else ""
        return f"bit for bit {self.numerics}{departs}{floats}"

    @property
    def _has_floats(self) -> bool:
        """Whether values of a reference are of float32, whose last bits vectors and C libraries round otherwise."""
        values = (BufferRole.INPUT, BufferRole.OUTPUT, BufferRole.STATE, BufferRole.TENSOR)
        buffers = (buffer.dtype for buffer in self.buffers.values() if buffer.role in values)
        return self.numerics != OWN_NUMERICS and ir.DType.F32 in buffers

    @property
    def widens_weights(self) -> bool:
        """Whether integer weights under float activations became float32, which the reference leaves as they are."""
        return "--weights expand" in self.options

    @property
    def extents_text(self) -> str:
        """`batch 1 to 4`: what each run is given; empty if nothing."""
        return ", ".join(f"{symbol.name} {symbol.lower} to {symbol.upper}" for symbol in self.symbols)

    @property
    def io_in_workspace(self) -> bool:
        """Whether inputs and outputs lie in the workspace, and the application brings none."""
        return self.io is ir.Io.WORKSPACE

    @property
    def entries(self) -> tuple[PlannedEntry, ...]:
        """What the application runs, in the order of steps and ticks."""
        inputs, outputs = (tuple(t.name for t in self.tensors(side)) for side in ir.SIDES)
        own = PlannedEntry(ONE_ENTRY, inputs, outputs, (0, len(self.steps)), (0, self.num_ticks))
        return self.stated_entries or (own,)

    def entry_of(self, step: int) -> int:
        """The number of the entry that a step is of."""
        found = (n for n, entry in enumerate(self.entries) if entry.steps[0] <= step < entry.steps[1])
        return next(found, 0)

    @property
    def ends(self) -> tuple[int, ...]:
        """What stands for a step's number behind the last step of each entry, no two alike."""
        return tuple(len(self.steps) + number for number in range(len(self.entries)))

    def alone(self, entry: PlannedEntry) -> "Plan":
        """The plan as one of its entries sees it: with its inputs, outputs and steps, which keep their numbers.

        Its one entry is that one still. Pools, buffers and states are those of all entries.
        """
        if not self.stated_entries:
            return self
        first, end = entry.steps
        return replace(
            self,
            inputs=tuple(tensor for tensor in self.inputs if tensor.name in entry.inputs),
            outputs=tuple(tensor for tensor in self.outputs if tensor.name in entry.outputs),
            stated_entries=(entry,),
            steps=self.steps[first:end],
            loops=tuple(loop for loop in self.loops if first <= loop.steps[0] < end),
            conditions=tuple(c for c in self.conditions if entry.ticks[0] <= c.tick < entry.ticks[1]),
            branches=tuple(b for b in self.branches if first <= b.then[0] and b.otherwise[1] <= end),
        )

    @property
    def form(self) -> EntryForm:
        """How its entries are run."""
        return EntryForm.RUN if self.image is None else EntryForm.ROWS

    @property
    def image(self) -> PlannedTensor | None:
        """The input that comes row by row, if one does."""
        return next((tensor for tensor in self.inputs if tensor.num_rows), None)

    @property
    def structures_of_run(self) -> tuple[str, ...]:
        """The structures of addresses that a run is given: where rows are handed over, its first function."""
        if self.io_in_workspace:
            return ()
        if self.stated_entries:  # of which some have no inputs, or no outputs
            return tuple(f"{side.value}s" for side in ir.SIDES if self.tensors(side))
        return {EntryForm.RUN: ("inputs", "outputs"), EntryForm.ROWS: ("outputs",)}[self.form]

    @property
    def run_arguments(self) -> tuple[str, ...]:
        """The names of the arguments of a run; where rows are handed over, of the functions that stand for it."""
        devices = ("devices",) if self.devices else ()
        return ("context", *self.structures_of_run, *(symbol.name for symbol in self.symbols), *devices)

    @property
    def begin_arguments(self) -> tuple[str, ...]:
        """Those of the function that begins a run: by rows, that has nothing to do with devices yet."""
        takes_devices = self.form is EntryForm.RUN
        return tuple(name for name in self.run_arguments if takes_devices or name != "devices")

    def pools_of(self, role: Role) -> tuple[PlannedPool, ...]:
        """The pools of one role, in preference order."""
        return tuple(pool for pool in self.pools.values() if pool.role is role)

    def used_pools(self, role: Role, provider: Provider | None = None) -> tuple[PlannedPool, ...]:
        """Those that hold a byte: of others the C knows nothing, nor do the properties below."""
        pools = (pool for pool in self.pools_of(role) if pool.used_bytes)
        return tuple(pool for pool in pools if provider in (None, pool.provider))

    @property
    def workspaces(self) -> tuple[PlannedPool, ...]:
        """Pools that runs work in, in memory of the program: workspaces, then those of state."""
        pools = (*self.used_pools(Role.WORKSPACE), *self.used_pools(Role.STATE))
        return tuple(pool for pool in pools if pool.obtained_by is None)

    @property
    def caller_workspaces(self) -> tuple[PlannedPool, ...]:
        """Those of them that the application provides."""
        return tuple(pool for pool in self.workspaces if pool.is_caller)

    @property
    def own_workspaces(self) -> tuple[PlannedPool, ...]:
        """Those that are arrays of the generated code, so that one context may run at a time."""
        return tuple(pool for pool in self.workspaces if not pool.is_caller)

    @property
    def device_workspaces(self) -> tuple[PlannedPool, ...]:
        """Workspace pools in memory that the entry's device does not reach: devices obtain them for each run."""
        return tuple(pool for pool in self.used_pools(Role.WORKSPACE) if pool.obtained_by is not None)

    @property
    def caller_parameters(self) -> tuple[PlannedPool, ...]:
        """Parameter pools that the application provides: blob files of the bundle."""
        return self.used_pools(Role.PARAMETERS, Provider.CALLER)

    @property
    def own_parameters(self) -> tuple[PlannedPool, ...]:
        """Parameter pools that the generated code has the bytes of."""
        return self.used_pools(Role.PARAMETERS, Provider.GENERATED)

    @property
    def caller_copies(self) -> tuple[PlannedPool, ...]:
        """Parameter pools that are copied into memory of the application."""
        return tuple(pool for pool in self.caller_parameters if pool.is_copied)

    @property
    def set_parameters(self) -> tuple[PlannedPool, ...]:
        """Parameter pools that `<model>_set_parameters` makes known to the context."""
        return tuple(pool for pool in self.used_pools(Role.PARAMETERS) if pool.is_set)

    @property
    def own_copies(self) -> tuple[PlannedPool, ...]:
        """Parameter pools that are copied into arrays of the generated code."""
        return tuple(pool for pool in self.own_parameters if pool.is_copied)

    def tensors(self, border: ir.Border) -> tuple[PlannedTensor, ...]:
        """The inputs, the outputs or the states, in the model's order."""
        found = {ir.Border.INPUT: self.inputs, ir.Border.OUTPUT: self.outputs, ir.Border.STATE: self.states}
        return found[border]

    def line_bytes(self, tensor: PlannedTensor) -> int:
        """Size of the cache lines that an input or output has to itself; 0 if it may share lines."""
        buffer = self.buffers.get(tensor.buffer)
        return 0 if buffer is None else buffer.line_bytes

    def caller_memories(self, border: ir.Border, tensor: PlannedTensor) -> tuple[str, ...]:
        """Where the application may have an input or output that another device touches; empty where it is free to.

        It is not where some device that touches it does not reach a memory that the entry's device reaches.
        """
        buffer = self.buffers.get(tensor.buffer)
        if buffer is None or buffer.place.kind is not PlaceKind.CALLER:
            return ()
        is_written = border is ir.Border.OUTPUT
        anywhere = self.hardware.common_memories((self.device.name,), is_written=is_written)
        reached = self.hardware.common_memories((self.device.name, *buffer.devices), is_written=is_written)
        return reached if reached != anywhere else ()

    @property
    def caller_alignment(self) -> int:
        """What the addresses of the application's inputs and outputs are multiples of."""
        given = (b for b in self.buffers.values() if b.place.kind is PlaceKind.CALLER)
        return max((buffer.alignment for buffer in given), default=1)

    @property
    def caller_line_bytes(self) -> int:
        """What the arrays of the application's inputs and outputs are multiples of, so that none shares a line."""
        return max((self.line_bytes(tensor) for tensor in (*self.inputs, *self.outputs)), default=0) or 1

    def buffers_of(self, role: BufferRole) -> tuple[PlannedBuffer, ...]:
        """The buffers of one role, in the plan's order."""
        return tuple(buffer for buffer in self.buffers.values() if buffer.role is role)

    @property
    def num_buffers(self) -> int:
        """How many buffers have an offset in a pool: what every command means by a number of buffers."""
        return sum(buffer.has_offset for buffer in self.buffers.values())

    @property
    def num_buffers_text(self) -> str:
        """`146 in pools and 29 elsewhere`: on a stack, the caller's, or requested at run time."""
        num_elsewhere = len(self.buffers) - self.num_buffers
        return f"{self.num_buffers} in pools" + (f" and {num_elsewhere} elsewhere" if num_elsewhere else "")

    @property
    def arenas(self) -> tuple[tuple[PlannedBuffer, PlannedPool], ...]:
        """What serves requests at run time, each with the pool that it is a part of, if there is such a pool."""
        found = self.buffers_of(BufferRole.ARENA)
        return tuple(
            (arena, self.pools[arena.place.name]) for arena in found if arena.place.name in self.pools
        )

    def buffers_in(self, pool: str) -> tuple[PlannedBuffer, ...]:
        """The buffers that have an offset in a pool, in the plan's order."""
        return tuple(b for b in self.buffers.values() if b.has_offset and b.place.name == pool)

    def shared_bytes(self, first: str, second: str) -> int:
        """How many bytes two buffers have in common, if both have an offset in the same pool."""
        places = [
            (b.place, b.size_bytes) for b in (self.buffers[first], self.buffers[second]) if b.has_offset
        ]
        if len(places) < 2 or places[0][0].name != places[1][0].name:
            return 0
        begins = [place.offset or 0 for place, _ in places]
        ends = [begin + size for begin, (_, size) in zip(begins, places, strict=True)]
        return max(min(ends) - max(begins), 0)

    def lent_to(self, device: str) -> tuple[Lent, ...]:
        """The parts of pools that a device is lent for a run, in the order of the pools."""
        found: list[Lent] = []
        for pool in self.pools.values():
            touched = [b for b in self.buffers_in(pool.name) if device in b.devices and b.size_bytes]
            if pool.obtained_by == device:
                found.append(Lent(pool.name, 0, pool.used_bytes, is_written=True, is_obtained=True))
            elif touched:
                first = min(buffer.place.offset or 0 for buffer in touched)
                end = max((buffer.place.offset or 0) + buffer.size_bytes for buffer in touched)
                found.append(Lent(pool.name, first, end - first, pool.role is not Role.PARAMETERS))
        return tuple(found)

    def tensors_lent_to(self, device: str, border: ir.Border) -> tuple[PlannedTensor, ...]:
        """The inputs, or the outputs, of the caller that a device touches."""
        return tuple(
            tensor
            for tensor in self.tensors(border)
            if tensor.buffer in self.buffers
            and self.buffers[tensor.buffer].place.kind is PlaceKind.CALLER
            and device in self.buffers[tensor.buffer].devices
        )

    @property
    def workspace_bytes(self) -> int:
        """Bytes of all workspace pools."""
        return _used_bytes(self.pools_of(Role.WORKSPACE))

    @property
    def state_bytes(self) -> int:
        """Bytes of all pools of state."""
        return _used_bytes(self.pools_of(Role.STATE))

    @property
    def parameter_bytes(self) -> int:
        """Bytes of all parameter pools."""
        return _used_bytes(self.pools_of(Role.PARAMETERS))

    @property
    def stack_bytes(self) -> int:
        """What all stacks are promised together."""
        return sum(stack.size_bytes for stack in self.stack.values())

    @property
    def ram_parameter_bytes(self) -> int:
        """Bytes of the parameter pools that lie in memory that can be written, however they come there."""
        writable = {memory.name for memory in self.hardware.memories if memory.is_writable}
        return _used_bytes(pool for pool in self.pools_of(Role.PARAMETERS) if pool.memory in writable)

    @property
    def ram_bytes(self) -> int:
        """Workspace, state, stacks as promised, and parameters in memory that can be written.

        Inputs and outputs count where they are in the workspace.
        """
        return self.workspace_bytes + self.state_bytes + self.stack_bytes + self.ram_parameter_bytes

    @property
    def packs_arguments(self) -> bool:
        """Whether a step calls a packed form."""
        return any(step.is_packed for step in self.steps)

    @property
    def has_packed_forms(self) -> bool:
        """Whether any function of the C has one."""
        return self.packs_arguments or self.has_packed_entry

    @property
    def argument_bytes(self) -> int:
        """Bytes of the arrays on the run's stack in which it packs arguments, one pair for all of its calls."""
        return packed_bytes(max((step.num_packed_arguments for step in self.steps), default=0))

    def surroundings(self, index: int) -> tuple[str, ...]:
        """The loops and arms that a step is in, the outermost first: `for turn in 0 .. 2`, `if not flag`."""
        loops = [loop for loop in outer_first(self.loops) if loop.steps[0] <= index <= loop.steps[1]]
        found = [(2 * number + 1, _loop_text(loop)) for number, loop in enumerate(loops)]
        for branch in self.branches:
            for begin, end, front in ((*branch.then, "if"), (*branch.otherwise, "if not")):
                if begin <= index < end:
                    found.append((2 * branch.num_loops, f"{front} {branch.text}"))
        return tuple(text for _, text in sorted(found, key=lambda item: item[0]))

    @property
    def num_ticks(self) -> int:
        """The end of the clock."""
        ends = (*(step.ticks[1] for step in self.steps), *(found.tick + 1 for found in self.conditions))
        return max((1, *ends, *(entry.ticks[1] for entry in self.stated_entries)))


def _loop_text(loop: Loop) -> str:
    ends = ("?" if end is None else end for end in (loop.begin, loop.end))
    return f"for {loop.variable or '?'} in {' .. '.join(map(str, ends))}"


def _used_bytes(pools: Iterable[PlannedPool]) -> int:
    return sum(pool.used_bytes for pool in pools)
