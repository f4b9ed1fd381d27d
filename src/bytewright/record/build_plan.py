"""The record of a plan, from the planned module and the evidence that storage and planner left."""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import replace

from bytewright import __version__, ir
from bytewright.base.frozen_mapping import FrozenMapping
from bytewright.ir.analyses.clock import Timeline
from bytewright.ir.analyses.hand_over import c_names_of_devices, devices_of, handed_to
from bytewright.ir.analyses.row_loops import row_loops
from bytewright.ir.symbols import scalar_symbols
from bytewright.options import Options, options_text
from bytewright.plan.solution import Solution
from bytewright.record.buffers import (
    PlannedBuffer,
    PlannedPart,
    PlannedPool,
    PlannedStack,
)
from bytewright.record.build_buffers import planned_buffers
from bytewright.record.build_steps import planned_steps
from bytewright.record.devices import DeviceKind, PlannedDevice, PlannedKernel
from bytewright.record.entries import (
    Initial,
    NarrowedWork,
    PlannedEntry,
    PlannedTensor,
)
from bytewright.record.plan import OWN_NUMERICS, Build, Plan
from bytewright.record.plan_file import with_hash
from bytewright.record.rows import PlannedSegment
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
    symbols = _symbols(module)
    steps = planned_steps(module, timeline, symbols, stored.overlaps, workspace)
    buffers = planned_buffers(module, target, timeline, steps, parts)
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
        symbols=symbols,
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
        sized=() if port.sized is None else tuple(map(ir.extent_text, port.sized)),
        most=0 if port.size_of is None else port.size_of.upper,
        is_checked=port.is_checked,
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
