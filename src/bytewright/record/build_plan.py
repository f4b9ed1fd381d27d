"""The record of a plan, from the planned module and the evidence that storage and planner left."""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import replace
from math import prod

from bytewright import __version__, ir
from bytewright.base.frozen_mapping import FrozenMapping
from bytewright.ir.analyses.affine import Definitions
from bytewright.ir.analyses.arguments import buffer_arguments, scalar_arguments
from bytewright.ir.analyses.clock import LiveBuffer, Step, Timeline
from bytewright.ir.analyses.hand_over import c_names_of_devices, devices_of, handed_to
from bytewright.ir.analyses.lines import line_reason
from bytewright.ir.analyses.row_loops import row_loops
from bytewright.ir.analyses.touch import alignment_reason, constant_touches, touch_alignment
from bytewright.ir.symbols import scalar_symbols
from bytewright.ir.walk import allocations, statements_of
from bytewright.options import Options, options_text
from bytewright.plan.solution import Solution
from bytewright.record.buffers import (
    BufferRole,
    Place,
    PlaceKind,
    PlannedBuffer,
    PlannedPart,
    PlannedPool,
    PlannedStack,
)
from bytewright.record.devices import DeviceKind, PlannedDevice, PlannedKernel
from bytewright.record.entries import (
    Initial,
    NarrowedWork,
    PlannedEntry,
    PlannedOverlap,
    PlannedSpan,
    PlannedStep,
    PlannedTensor,
)
from bytewright.record.plan import OWN_NUMERICS, Build, Plan
from bytewright.record.plan_file import with_hash
from bytewright.record.rows import PlannedSegment, ring_of, rows_of
from bytewright.storage.choose_ways import ways_of
from bytewright.storage.find_overlaps import Direction, Overlap
from bytewright.storage.keep_initial import initial_name
from bytewright.storage.stored import Stored
from bytewright.target.model import Pool, Role, Target

BUILD_FLAGS = ("-std=c99", "-ffp-contract=off", "-fno-strict-aliasing")


def build_plan(
    module: ir.Module,
    target: Target,
    options: Options,
    stored: Stored,
    workspace: Solution,
    parameters: Solution,
    contents: Mapping[str, bytes],
    model_files: Mapping[str, bytes],
    *,
    segments: tuple[PlannedSegment, ...] = (),
    plain_workspace_bytes: int | None = None,
    parts: Mapping[str, tuple[PlannedPart, ...]] = FrozenMapping({}),
) -> Plan:
    """The plan, its own hash included; there are no files yet.

    Args:
        module: At stage PLANNED.
        target: What it was planned for.
        options: What the user asked for.
        stored: The module before that, with its clock and stacks, and what may share bytes.
        workspace: Where the solution put the entry's buffers,
        parameters: and where the constants.
        contents: The bytes of the parameter pools, by name.
        model_files: What the model was read from, by the files' names.
        segments: Steps that run together row by row,
        plain_workspace_bytes: and what the workspace would need without that.
        parts: Tensors that lie in others, by the names of those.
    """
    timeline = stored.timeline
    steps = _with_overlaps(_steps(module, timeline), stored.overlaps, workspace)
    found = _entry_buffers(module, target, timeline, steps)
    tensors = tuple(replace(b, parts=_named_parts(parts.get(b.name, ()), module)) for b in found)
    constants = tuple(_constants(module, target, timeline))
    taken = {buffer.name for buffer in (*tensors, *constants)}
    buffers = (*tensors, *_kernel_buffers(module, target, taken), *constants)
    pools = (
        *(_pool(pool, workspace, target, None) for pool in target.entry_pools),
        *(_pool(pool, parameters, target, contents[pool.name]) for pool in target.pools_of(Role.PARAMETERS)),
    )
    devices = tuple(_devices(module, target))
    pools = _obtained(pools, buffers, devices, module, target)
    plan = Plan(
        model=module.name,
        target=target.name,
        numerics=module.numerics or OWN_NUMERICS,
        io=options.io,
        build=Build(__version__, BUILD_FLAGS),
        model_files=FrozenMapping({name: _sha256(content) for name, content in model_files.items()}),
        options=options_text(options),
        inputs=_inputs(module, options.io),
        outputs=_tensors(module, ir.Border.OUTPUT),
        states=_tensors(module, ir.Border.STATE),
        stated_entries=_entries(module, timeline),
        symbols=_symbols(module),
        pools=FrozenMapping({pool.name: pool for pool in pools}),
        buffers=FrozenMapping({buffer.name: buffer for buffer in buffers}),
        stack=FrozenMapping(
            {
                use.context: PlannedStack(use.planned_bytes, use.size_bytes, use.limit_bytes, use.path)
                for use in stored.stack
            }
        ),
        steps=steps,
        loops=timeline.loops,
        conditions=timeline.conditions,
        branches=timeline.branches,
        segments=segments,
        plain_workspace_bytes=plain_workspace_bytes,
        hardware=target,
        has_packed_entry=options.entry_form is ir.Form.PACKED,
        externals=tuple(dict.fromkeys(k.symbol for k in module.kernels if k.external is not None)),
        devices=FrozenMapping({device.name: device for device in devices}),
        narrowed=_narrowed(module),
        stream=module.stream,
        plan_hash="",
        files=FrozenMapping({}),
    )
    return with_hash(plan)


def _symbols(module: ir.Module) -> tuple[ir.Symbol, ...]:
    """The extents that runs are given; entries mean the same by one name."""
    scalars = (pair for entry in module.entries for pair in scalar_symbols(entry))
    return tuple(dict.fromkeys(symbol for _, symbol in scalars if symbol is not None))


def _entries(module: ir.Module, timeline: Timeline) -> tuple[PlannedEntry, ...]:
    """The entries, where there are several."""
    if len(module.entries) == 1:
        return ()
    found: list[PlannedEntry] = []
    for alone, span in zip(ir.entries_alone(module), timeline.spans, strict=True):
        inputs, outputs = (tuple(port.name for port in ports) for ports in (alone.inputs, alone.outputs))
        extents = tuple(symbol.name for symbol in _symbols(alone))
        found.append(PlannedEntry(alone.main.name, inputs, outputs, span.steps, span.ticks, extents))
    return tuple(found)


def _named_parts(parts: Iterable[PlannedPart], module: ir.Module) -> tuple[PlannedPart, ...]:
    """The parts with their names in the model's file."""
    sources = ((part, module.sources.get(part.name)) for part in parts)
    return tuple(replace(part, tensor=source.name if source else None) for part, source in sources)


def _narrowed(module: ir.Module) -> NarrowedWork | None:
    """What the removal of channels saved."""
    work = module.narrowed
    if work is None or (work.macs, work.weight_bytes) == (work.macs_before, work.weight_bytes_before):
        return None
    return NarrowedWork(work.macs, work.macs_before, work.weight_bytes, work.weight_bytes_before)


def _devices(module: ir.Module, target: Target) -> Iterable[PlannedDevice]:
    """The devices that take part besides the entry's."""
    c_names = c_names_of_devices(module)
    for name in devices_of(module):
        device, kernels = target.device(name), handed_to(module, name)
        jobs = {kernel.job for kernel in kernels}
        if None in jobs or (device.runs_c and kernels):
            kind = DeviceKind.C
        elif ir.Job.STREAM in jobs:
            kind = DeviceKind.STREAM
        else:
            kind = DeviceKind.COPY if kernels else DeviceKind.CONTEXT
        planned = (PlannedKernel(number, kernel.symbol, kernel.job) for number, kernel in enumerate(kernels))
        yield PlannedDevice(name, c_names[name], device.isa.name, kind, tuple(planned))


def _obtained(
    pools: Iterable[PlannedPool],
    buffers: Iterable[PlannedBuffer],
    devices: tuple[PlannedDevice, ...],
    module: ir.Module,
    target: Target,
) -> tuple[PlannedPool, ...]:
    """The pools, each that the entry's device does not reach with the first device that touches anything in it.

    It is opened before the others that use the pool, and closed after them.
    """
    reached = target.device(module.entry_device).reached_memories
    touching = {(b.place.name, device) for b in buffers if b.has_offset for device in b.devices}

    def obtained(pool: PlannedPool) -> PlannedPool:
        if pool.memory in reached or not pool.used_bytes:
            return pool
        first = next(device.name for device in devices if (pool.name, device.name) in touching)
        return replace(pool, obtained_by=first)

    return tuple(map(obtained, pools))


def _tensors(module: ir.Module, border: ir.Border) -> tuple[PlannedTensor, ...]:
    ports = ir.border_ports(module).items()
    return tuple(_tensor(port, buffer, border) for buffer, (side, port) in ports if side is border)


def _inputs(module: ir.Module, io: ir.Io) -> tuple[PlannedTensor, ...]:
    """The inputs, of which there is one if it comes row by row."""
    inputs = _tensors(module, ir.Border.INPUT)
    if io is not ir.Io.ROWS:
        return inputs
    return tuple(replace(tensor, num_rows=row_loops(module.main).num_rows) for tensor in inputs)


def _tensor(port: ir.Port, buffer: str, border: ir.Border) -> PlannedTensor:
    return PlannedTensor(
        name=port.name,
        c_name=port.name,
        buffer=buffer,
        dtype=port.type.dtype,
        shape=port.type.fixed_shape,
        extents=tuple(map(ir.extent_text, port.type.shape)),
        size_bytes=port.type.size_bytes,
        scale=port.quantization.scale if port.quantization else None,
        zero_point=port.quantization.zero_point if port.quantization else None,
        initial=_initial(port, buffer) if border is ir.Border.STATE else None,
    )


def _initial(port: ir.Port, buffer: str) -> Initial:
    """What a state begins with: a byte that all of it is, or else a constant."""
    content = b"\0" if port.initial is None else port.initial.content
    return Initial(content[0]) if len({*content}) == 1 else Initial(constant=initial_name(buffer))


def _pool(pool: Pool, solution: Solution, target: Target, content: bytes | None) -> PlannedPool:
    use = solution.use_of[pool.name]
    return PlannedPool(
        name=pool.name,
        c_name=pool.identifier,
        memory=pool.memory,
        role=pool.role,
        provider=pool.provider,
        capacity_bytes=pool.size_bytes,
        used_bytes=use.top_bytes,
        lower_bound_bytes=use.lower_bound_bytes,
        optimal=use.optimal,
        alignment=max(pool.alignment, use.alignment),
        section=target.section_of(pool),
        sha256=None if content is None else _sha256(content),
        load=pool.load,
        load_memory=pool.load_memory,
        read_cost=target.memory_of(pool).read_cost,
        write_cost=target.memory_of(pool).write_cost,
    )


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _described(planned: PlannedBuffer, buffer: ir.Buffer, module: ir.Module | None) -> PlannedBuffer:
    """With what it is as a tensor, of the model's file or of the compiler's own."""
    source = module.sources.get(buffer.name) if module else None
    narrowed = module.narrowed if module else None
    before = narrowed.shapes.get(buffer.name) if narrowed else None
    quantization = source.quantization if source else None
    return replace(
        planned,
        tensor=source.name if source else None,
        shape=tuple(map(ir.upper_bound, buffer.shape)),
        dtype=buffer.dtype,
        scale=quantization.scale if quantization else None,
        zero_point=quantization.zero_point if quantization else None,
        shape_before=None if before is None else tuple(map(ir.upper_bound, before)),
        kept_channels=narrowed.channels.get(buffer.name, ()) if narrowed else (),
        constant_channels=narrowed.constant.get(buffer.name, ()) if narrowed else (),
        ring=ring_of(buffer),
    )


def _entry_buffers(
    module: ir.Module, target: Target, timeline: Timeline, steps: tuple[PlannedStep, ...]
) -> Iterable[PlannedBuffer]:
    """What the entry allocates or is given, as far as it is used."""
    given = {p.buffer.name: p for entry in module.entries for p in entry.buffer_parameters}
    allocated = {a.buffer.name: a for entry in module.entries for a in allocations(entry)}
    ports = ir.border_ports(module)
    arenas = set(_arena_of(timeline).values())
    others = {name for step in steps for name in (*step.reads, *step.writes)}
    scratch = {name for step in steps for name in step.scratch} - others
    touching = timeline.steps_touching()
    for live in timeline.buffers:
        name = live.buffer.name
        if name in ports:
            role = BufferRole(ports[name][0].value)
        elif name in arenas:
            role = BufferRole.ARENA
        else:
            role = BufferRole.SCRATCH if name in scratch else BufferRole.TENSOR
        if live.allocation is None:
            place, candidates = Place(PlaceKind.CALLER, ports[name][1].name, None), ()
            reason, scope = _reason_of_caller(live, module, target), given[name].scope
        else:
            scope, offset = allocated[name].scope, allocated[name].storage.offset
            pool = allocated[name].storage.pool or ""
            kind = PlaceKind.PLANNED if live.allocation.storage.arena is None else PlaceKind.ARENA
            place = Place(kind, pool, offset)
            candidates = live.allocation.storage.candidates or ()
            reason = "; ".join((*live.allocation.storage.provenance, f"plan: {pool}"))
        first, last = touching.get(name) or timeline.steps_alive(name)
        planned = PlannedBuffer(
            name,
            role,
            ir.size_bytes(live.buffer),
            live.buffer.alignment,
            place,
            (live.lower, live.upper),
            first,
            last,
            str(scope) if scope else None,
            candidates,
            live.devices,
            reason,
            line_bytes=live.buffer.line_bytes,
        )
        yield _described(planned, live.buffer, module)


def _reason_of_caller(live: LiveBuffer, module: ir.Module, target: Target) -> str:
    """Why it is with the application, and what devices ask of it there."""
    reasons = ["input or output of the model: the caller provides it"]
    if live.buffer.alignment == touch_alignment(live.touches, target) > live.buffer.dtype.size_bytes:
        reasons.append(alignment_reason(live.touches, target))
    if live.buffer.line_bytes:
        memories = target.device(module.entry_device).reached_memories
        reasons.append(line_reason(memories, live.touches, target))
    return "; ".join(reasons)


def _arena_of(timeline: Timeline) -> dict[str, str]:
    """What is requested at run time, and the arena of each."""
    return {
        live.buffer.name: live.allocation.storage.arena
        for live in timeline.buffers
        if live.allocation is not None and live.allocation.storage.arena is not None
    }


def _kernel_buffers(module: ir.Module, target: Target, taken: set[str]) -> Iterable[PlannedBuffer]:
    """Arrays of kernels, which are on the stack, under names that no other buffer has."""
    for kernel in module.kernels:
        contexts = target.device(kernel.device).contexts
        context = contexts[0].name if contexts else kernel.device
        for allocation in allocations(kernel):
            buffer = allocation.buffer
            if buffer.shape and not buffer.register:
                name = f"{kernel.name}/{buffer.name}"
                while name in taken:
                    name += "_"
                taken.add(name)
                planned = PlannedBuffer(
                    name,
                    BufferRole.SCRATCH,
                    ir.size_bytes(buffer),
                    buffer.alignment,
                    Place(PlaceKind.STACK, context, None),
                    live=None,
                    first_step=None,
                    last_step=None,
                    scope=str(allocation.scope),
                    candidates=(),
                    devices=(kernel.device,),
                    reason="; ".join(allocation.storage.provenance),
                )
                yield _described(planned, buffer, None)


def _constants(module: ir.Module, target: Target, timeline: Timeline) -> Iterable[PlannedBuffer]:
    steps = timeline.steps_touching()
    touches = constant_touches(module, target)
    for constant in module.constant_buffers:
        buffer = constant.buffer
        first, last = steps.get(buffer.name, (0, 0))  # a state begins with some, before the first step
        pool = constant.storage.pool or ""
        planned = PlannedBuffer(
            buffer.name,
            BufferRole.PARAMETER,
            len(constant.data.content),
            buffer.alignment,
            Place(PlaceKind.CONSTANT, pool, constant.storage.offset),
            (0, timeline.num_ticks),
            first,
            last,
            str(constant.scope),
            constant.storage.candidates or (),
            tuple(sorted(touch.device for touch in touches[buffer.name])),
            "; ".join(("constant of the model", *constant.storage.provenance)),
        )
        yield _described(planned, buffer, module)


def _steps(module: ir.Module, timeline: Timeline) -> Iterable[PlannedStep]:
    kernels = {kernel.name: kernel for kernel in module.kernels}
    arena_of = _arena_of(timeline)
    numbers_of = [_numbers(entry) for entry in module.entries]
    for step in timeline.steps:
        numbers = numbers_of[timeline.entry_of(step.index)]
        kernel = kernels.get(step.call.callee)
        reads, writes, scratch = _accesses(step, kernel, arena_of)
        job = None if kernel is None or kernel.device == module.entry_device else kernel
        yield PlannedStep(
            step.index,
            step.ticks,
            step.call.callee if kernel is None else kernel.symbol,
            step.device,
            step.call.operators,
            reads,
            writes,
            scratch,
            FrozenMapping(dict(step.needed)),
            is_packed := step.call.kind is ir.CallKind.CPACKED,
            len(step.call.arguments) if is_packed else 0,
            () if job is None else _spans(module, job, step.call, numbers),
            () if job is None or job.job is not None else _scalars(job, step.call, numbers),
            rows=rows_of(kernel, step.call, numbers),
            template="" if kernel is None else kernel.template,
            remarks=() if kernel is None else kernel.remarks,
            work=step.call.work,
        )


def _with_overlaps(
    steps: Iterable[PlannedStep], overlaps: tuple[Overlap, ...], workspace: Solution
) -> tuple[PlannedStep, ...]:
    """The steps with the way that each runs, and what may share bytes because of it."""
    ways = ways_of(overlaps, workspace)

    def found(step: PlannedStep) -> PlannedStep:
        way = ways.get(step.index, (Direction.UP,))[0]
        pairs = tuple(
            PlannedOverlap(overlap.source, overlap.output, needed.below_bytes, needed.above_bytes)
            for overlap in overlaps
            if overlap.step == step.index and (needed := overlap.distances.get(way)) is not None
        )
        return replace(step, overlaps=pairs, runs_down=way is Direction.DOWN) if pairs else step

    return tuple(map(found, steps))


def _numbers(entry: ir.PrimFunc) -> Definitions:
    """What the numbers stand for that the entry has names for."""
    numbers = Definitions()
    for statement in statements_of(entry):
        if isinstance(statement, ir.Let):
            numbers.define(statement.variable, statement.value)
    return numbers


def _scalars(kernel: ir.PrimFunc, call: ir.Call, numbers: Definitions) -> tuple[int | str | None, ...]:
    """The numbers that a job hands to its kernel."""
    return tuple(numbers.written(argument) for _, argument in scalar_arguments(kernel, call))


def _spans(
    module: ir.Module, kernel: ir.PrimFunc, call: ir.Call, numbers: Definitions
) -> tuple[PlannedSpan, ...]:
    """What a job consists of: for each parameter as many bytes as it asks for, and a copy's destination first."""
    extents = {symbol.name: symbol for symbol in _symbols(module)}
    largest: dict[str, int] = {}
    for parameter, argument in scalar_arguments(kernel, call):
        if isinstance(argument, ir.Const):
            largest[parameter.variable.name] = int(argument.value)
        elif isinstance(argument, ir.Var) and argument.name in extents:
            largest[parameter.variable.name] = extents[argument.name].upper
    spans: list[PlannedSpan] = []
    for parameter, region in buffer_arguments(kernel, call):
        index, shape = numbers.form(ir.region_index(region)), ir.storage_shape(parameter.buffer)
        offset = None if index is None else index.times(region.buffer.dtype.size_bytes).written
        counts = [_largest(extent, largest) for extent in shape]
        known = [count for count in counts if count is not None]
        size_bytes = prod(known) * parameter.buffer.dtype.size_bytes if len(known) == len(counts) else None
        spans.append(PlannedSpan(region.buffer.name, offset, size_bytes, parameter.access))
    return tuple(reversed(spans) if kernel.job is ir.Job.COPY else spans)


def _largest(extent: ir.Extent, of_symbols: Mapping[str, int]) -> int | None:
    """The extent where its symbol has the value given; None if that is not known."""
    symbol = ir.symbol_in(extent)
    value = 0 if symbol is None else of_symbols.get(symbol.name)
    return None if value is None else ir.extent_at(extent, value)


def _accesses(
    step: Step, kernel: ir.PrimFunc | None, arena_of: dict[str, str]
) -> tuple[tuple[str, ...], ...]:
    """What the step reads, writes, and uses as scratch, arenas included: what the lifetimes follow from.

    An opaque call, of no kernel, may do all with what it is given.
    """
    if kernel is None:
        names = tuple(dict.fromkeys(a.buffer.name for a in step.call.arguments if isinstance(a, ir.Region)))
        return names, names, ()
    reads: list[str] = []
    writes: list[str] = []
    scratch: list[str] = []
    for parameter, argument in buffer_arguments(kernel, step.call):
        name = argument.buffer.name
        if parameter.role is ir.ParameterRole.SCRATCH:
            scratch += [name, arena_of[name]] if name in arena_of else [name]
            continue
        if parameter.access is not ir.Access.WRITE:
            reads.append(name)
        if parameter.access is not ir.Access.READ:
            writes.append(name)
    return tuple(tuple(dict.fromkeys(names)) for names in (reads, writes, scratch))
