"""The buffers of a plan: what entries allocate or are given, arrays of kernels, constants."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from bytewright import ir
from bytewright.ir.analyses.clock import LiveBuffer, Timeline
from bytewright.ir.analyses.lines import line_reason
from bytewright.ir.analyses.touch import alignment_reason, constant_touches, touch_alignment
from bytewright.ir.walk import allocations
from bytewright.record.buffers import BufferRole, Place, PlaceKind, PlannedBuffer, PlannedPart
from bytewright.record.build_steps import arena_of_requests
from bytewright.record.entries import PlannedStep
from bytewright.record.rows import ring_of
from bytewright.target.model import Target


def planned_buffers(
    module: ir.Module,
    target: Target,
    timeline: Timeline,
    steps: tuple[PlannedStep, ...],
    parts: Mapping[str, tuple[PlannedPart, ...]],
) -> tuple[PlannedBuffer, ...]:
    """All buffers.

    Args:
        module: At stage PLANNED.
        target: What it was planned for.
        timeline: Its clock.
        steps: Its steps.
        parts: Tensors that lie in others, by the names of those.
    """
    found = _entry_buffers(module, target, timeline, steps)
    tensors = tuple(replace(b, parts=_named_parts(parts.get(b.name, ()), module)) for b in found)
    constants = tuple(_constants(module, target, timeline))
    taken = {buffer.name for buffer in (*tensors, *constants)}
    return (*tensors, *_kernel_buffers(module, target, taken), *constants)


def _named_parts(parts: Iterable[PlannedPart], module: ir.Module) -> tuple[PlannedPart, ...]:
    """The parts with their names in the model's file."""
    sources = ((part, module.sources.get(part.name)) for part in parts)
    return tuple(replace(part, tensor=source.name if source else None) for part, source in sources)


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
    roles = _roles(module, timeline, steps)
    touching = timeline.steps_touching()
    for live in timeline.buffers:
        name = live.buffer.name
        if live.allocation is None:
            place, candidates = Place(PlaceKind.CALLER, ports[name][1].name, None), ()
            reason, scope = _reason_of_caller(live, module, target), given[name].scope
        else:
            scope, storage = allocated[name].scope, live.allocation.storage
            place = _place(storage, allocated[name].storage)
            candidates = storage.candidates or ()
            reason = "; ".join((*storage.provenance, f"plan: {place.name}"))
        first, last = touching.get(name) or timeline.steps_alive(name)
        planned = PlannedBuffer(
            name,
            roles.get(name, BufferRole.TENSOR),
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


def _roles(module: ir.Module, timeline: Timeline, steps: tuple[PlannedStep, ...]) -> dict[str, BufferRole]:
    """What buffers are, but for tensors between kernels."""
    others = {name for step in steps for name in (*step.reads, *step.writes)}
    scratch = {name for step in steps for name in step.scratch} - others
    return {
        **dict.fromkeys(scratch, BufferRole.SCRATCH),
        **dict.fromkeys(arena_of_requests(timeline).values(), BufferRole.ARENA),
        **{name: BufferRole(side.value) for name, (side, _) in ir.border_ports(module).items()},
    }


def _place(asked: ir.Storage, found: ir.Storage) -> Place:
    kind = PlaceKind.PLANNED if asked.arena is None else PlaceKind.ARENA
    return Place(kind, found.pool or "", found.offset)


def _reason_of_caller(live: LiveBuffer, module: ir.Module, target: Target) -> str:
    """Why it is with the application, and what devices ask of it there."""
    reasons = ["input or output of the model: the caller provides it"]
    if live.buffer.alignment == touch_alignment(live.touches, target) > live.buffer.dtype.size_bytes:
        reasons.append(alignment_reason(live.touches, target))
    if live.buffer.line_bytes:
        memories = target.device(module.entry_device).reached_memories
        reasons.append(line_reason(memories, live.touches, target))
    return "; ".join(reasons)


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
