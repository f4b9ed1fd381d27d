"""What is known of a plan, as frozen values: all of plan.json, and all that anyone asks of a plan.

Code generation, the bundle, reports, runs, checks and `CompiledModel` see a plan through these classes, whether it
has just been made (`build_plan.py`) or comes from a folder (`plan_file.py`). They are checked for form but not for
truth; `inspect` does that. A field that is added here is in plan.json (`codec.py`).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from bytewright import ir
from bytewright.base.frozen_mapping import FrozenMapping
from bytewright.ir.analyses.clock import Branch, Condition, Loop, outer_first
from bytewright.ir.packed import packed_bytes
from bytewright.naming.entry_forms import RUN, EntryForm
from bytewright.record.buffers import BufferRole, PlaceKind, PlannedBuffer, PlannedPool, PlannedStack
from bytewright.record.devices import Lent, PlannedDevice
from bytewright.record.entries import (
    ONE_ENTRY,
    NarrowedWork,
    PlannedEntry,
    PlannedStep,
    PlannedTensor,
)
from bytewright.record.rows import PlannedSegment
from bytewright.show.notebook import Shown
from bytewright.target.model import Device, Provider, Role, Target

# What a module is bit for bit that was written by hand: itself, as the evaluator runs it.
OWN_NUMERICS = "ir"


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
        """`batch 1 to 4`: what each run is given, of several entries `batch 1 to 4 (push)`; empty if nothing."""
        given = {s.name: [e.name for e in self.stated_entries if s.name in e.extents] for s in self.symbols}
        texts = ((s, f" ({', '.join(given[s.name])})" if given[s.name] else "") for s in self.symbols)
        return ", ".join(f"{s.name} {s.lower} to {s.upper}{entries}" for s, entries in texts)

    @property
    def sizes(self) -> tuple[ir.Symbol, ...]:
        """The extents that the data decides, by the names of the outputs that say them."""
        return tuple(size for tensor in self.outputs if (size := tensor.size) is not None)

    @property
    def checked_sizes(self) -> tuple[PlannedTensor, ...]:
        """The outputs that say such an extent, of which data may ask for more than there is room for."""
        return tuple(tensor for tensor in self.outputs if tensor.is_checked)

    @property
    def io_in_workspace(self) -> bool:
        """Whether inputs and outputs lie in the workspace, and the application brings none."""
        return self.io is ir.Io.WORKSPACE

    @property
    def entries(self) -> tuple[PlannedEntry, ...]:
        """What the application runs, in the order of steps and ticks."""
        inputs, outputs = (tuple(t.name for t in self.tensors(side)) for side in ir.SIDES)
        extents = tuple(symbol.name for symbol in self.symbols)
        own = PlannedEntry(ONE_ENTRY, inputs, outputs, (0, len(self.steps)), (0, self.num_ticks), extents)
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
        """The plan as one of its entries sees it: with its inputs, outputs and extents; steps keep numbers.

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
            symbols=tuple(symbol for symbol in self.symbols if symbol.name in entry.extents),
            steps=self.steps[first:end],
            loops=tuple(loop for loop in self.loops if first <= loop.steps[0] < end),
            conditions=tuple(c for c in self.conditions if entry.ticks[0] <= c.tick < entry.ticks[1]),
            branches=tuple(b for b in self.branches if first <= b.then[0] and b.otherwise[1] <= end),
            segments=tuple(segment for segment in self.segments if first <= segment.steps[0] < end),
        )

    @property
    def form(self) -> EntryForm:
        """How its entries are run."""
        forms = (tensor.form for tensor in self.inputs)
        return next((form for form in forms if form is not RUN), RUN)

    @property
    def image(self) -> PlannedTensor | None:
        """The input that comes row by row, if one does."""
        return next((tensor for tensor in self.inputs if tensor.pieces), None)

    @property
    def structures_of_run(self) -> tuple[str, ...]:
        """The structures of addresses that a run, or the function that begins it, is given."""
        if self.io_in_workspace:
            return ()
        given = {f"{side.value}s" for side in ir.SIDES if self.tensors(side)}  # a program may have none
        return tuple(name for name in self.form.structures if name in given)

    @property
    def run_arguments(self) -> tuple[str, ...]:
        """The names of the arguments of a run, or of the functions that stand for it."""
        devices = ("devices",) if self.devices else ()
        return ("context", *self.structures_of_run, *(symbol.name for symbol in self.symbols), *devices)

    @property
    def begin_arguments(self) -> tuple[str, ...]:
        """Those of the function that begins a run, which has to do with devices if it also ends it."""
        takes_devices = self.form.is_one_call
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
        """What serves requests of its steps at run time, each with the pool that it is a part of, if there is such."""
        touched = {name for step in self.steps for name in step.touched}
        found = [buffer for buffer in self.buffers_of(BufferRole.ARENA) if buffer.name in touched]
        return tuple(
            (arena, self.pools[arena.place.name]) for arena in found if arena.place.name in self.pools
        )

    @property
    def arena_pools(self) -> tuple[PlannedPool, ...]:
        """The pools that have an arena, each once, whichever entries have one there."""
        return tuple({pool.name: pool for _, pool in self.arenas}.values())

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

    def is_by_rows(self, index: int) -> bool:
        """Whether a step runs row by row with others."""
        return any(segment.has_step(index) for segment in self.segments)

    def surroundings(self, index: int) -> tuple[str, ...]:
        """The loops and arms that a step is in, the outermost first: `for turn in 0 .. 2`, `if not flag`."""
        loops = [loop for loop in outer_first(self.loops) if loop.has_step(index)]
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
