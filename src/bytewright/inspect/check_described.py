"""Whether plan.json says the same of a thing wherever it says something of it: sizes, names, devices, steps, pools.

Nothing is taken for a size because it stands there: bytes follow from shape and type, those of a ring from its rows.
Names stand for something; whatever is looked up by one later on exists. What only the compiler knows (when in a call
its body needs a buffer, and how near two may come) stands once and is compared with nothing.
"""

import hashlib
from collections import Counter
from collections.abc import Iterator
from math import prod

from bytewright import ir
from bytewright.inspect.check_stream import faults_of_stream
from bytewright.ir.analyses.clock import outer_first
from bytewright.ops.arithmetic.numerics import Numerics
from bytewright.record.buffers import BufferRole, PlaceKind, PlannedBuffer
from bytewright.record.entries import PlannedTensor
from bytewright.record.extents import largest_extents, read_extents
from bytewright.record.plan import OWN_NUMERICS, Plan
from bytewright.target.model import Role
from bytewright.target.variants import with_io_pools

_IN_A_POOL = (PlaceKind.PLANNED, PlaceKind.CONSTANT, PlaceKind.ARENA)
# Of what is in no pool: what the caller provides, and arrays on stacks.
_SCOPES = {PlaceKind.CALLER: ("global",), PlaceKind.STACK: ("local", "global.stack")}
_OF_NOTHING = hashlib.sha256(b"").hexdigest()
_NUMERICS = (*(numerics.value for numerics in Numerics), OWN_NUMERICS)


def faults_of_references(plan: Plan) -> Iterator[str]:
    """Names of buffers and pools that stand for nothing."""
    for where, name in _named_buffers(plan):
        if name not in plan.buffers:
            yield f"{where} names '{name}', which is no buffer of the plan"
    for buffer in plan.buffers.values():
        if buffer.place.kind in _IN_A_POOL and buffer.place.name not in plan.pools:
            yield f"'{buffer.name}' is in pool '{buffer.place.name}', which the plan does not have"
    for border in ir.Border:
        for tensor in plan.tensors(border):
            buffer = plan.buffers.get(tensor.buffer)
            if buffer is not None and buffer.role.value != border.value:
                yield f"{border.value} '{tensor.name}' is buffer '{buffer.name}', which is a {buffer.role}"


def _named_buffers(plan: Plan) -> Iterator[tuple[str, str]]:
    """Every place but a port that names a buffer; an input that no step touches is none."""
    for step in plan.steps:
        where = f"step {step.index}"
        names = [*step.touched, *step.alive, *(span.buffer for span in step.spans)]
        names += [name for pair in step.overlaps for name in (pair.source, pair.output)]
        if step.rows is not None:
            names += [step.rows.buffer, *(window.buffer for window in step.rows.windows)]
        yield from ((where, name) for name in dict.fromkeys(names))
    for loop in plan.loops:
        yield from ((f"a loop of steps {loop.steps[0]} to {loop.steps[1]}", name) for name in loop.inside)
    yield from (("a branch", condition.buffer) for condition in plan.conditions)
    yield from (("a branch", branch.buffer) for branch in plan.branches if branch.buffer is not None)
    for segment in plan.segments:
        yield from (("a segment", name) for name in segment.rings)


def faults_of_alignments(plan: Plan) -> Iterator[str]:
    """Alignments that are none."""
    for buffer in plan.buffers.values():
        if buffer.alignment <= 0 or buffer.alignment & (buffer.alignment - 1):
            yield f"'{buffer.name}' is aligned to {buffer.alignment}, which is no power of two"


def faults_of_descriptions(plan: Plan) -> Iterator[str]:
    """What is said twice, and otherwise."""
    for buffer in plan.buffers.values():
        yield from _faults_of_size(buffer)
        yield from _faults_of_quantization(buffer)
        yield from _faults_of_channels(buffer)
        yield from _faults_of_place(plan, buffer)
        yield from _faults_of_use(plan, buffer)
        yield from _faults_of_devices(plan, buffer)
    for border in ir.Border:
        for tensor in plan.tensors(border):
            yield from _faults_of_tensor(plan, border, tensor)
    yield from _faults_of_pools(plan)
    for step in plan.steps:
        for names in (step.reads, step.writes, step.scratch, tuple(step.operators)):
            yield from (
                f"step {step.index} names '{n}' {c} times" for n, c in Counter(names).items() if c > 1
            )
        if step.scratch and not set(step.scratch).isdisjoint((*step.reads, *step.writes)):
            yield f"step {step.index} works in what it reads or writes besides"
    if plan.io not in plan.form.io:
        yield f"inputs are given as '{plan.io}', and the entry is of the form '{plan.form.name}'"
    if plan.target != plan.hardware.name:
        yield f"the plan is for target '{plan.target}', and describes '{plan.hardware.name}'"
    if plan.numerics not in _NUMERICS:
        yield f"there are no numerics '{plan.numerics}'"
    yield from faults_of_stream(plan)


def _faults_of_size(buffer: PlannedBuffer) -> Iterator[str]:
    if buffer.shape is None or buffer.dtype is None:
        yield f"'{buffer.name}' does not say its shape and type"
        return
    if not all(buffer.shape):
        yield f"'{buffer.name}' has the shape {ir.format_shape(buffer.shape)}, and so no elements"
    whole_bytes = prod(buffer.shape) * buffer.dtype.size_bytes
    ring = buffer.ring
    if ring is None and buffer.size_bytes != whole_bytes:
        kind = f"{ir.format_shape(buffer.shape)}x{buffer.dtype.value}".removeprefix("x")
        yield f"'{buffer.name}' has {buffer.size_bytes} B, its {kind} {whole_bytes} B"
    if buffer.alignment % buffer.dtype.size_bytes:
        yield f"'{buffer.name}' is aligned to {buffer.alignment}, its {buffer.dtype.value} to {buffer.dtype.size_bytes}"


def _faults_of_quantization(buffer: PlannedBuffer) -> Iterator[str]:
    if (buffer.scale is None) != (buffer.zero_point is None):
        yield f"'{buffer.name}' has a scale or a zero point, and not both"


def _faults_of_channels(buffer: PlannedBuffer) -> Iterator[str]:
    """The channels that are left of a tensor are some of those before, in order, as many as it has."""
    kept, before = buffer.kept_channels, buffer.shape_before
    if before is not None and buffer.role is not BufferRole.PARAMETER:
        are_some = list(kept) == sorted({*kept}.intersection(range(before[-1] if before else 0)))
        if not are_some or (*before[:-1], len(kept)) != buffer.shape or buffer.shape == before:
            shapes = [ir.format_shape(shape or ()) for shape in (before, buffer.shape)]
            yield f"'{buffer.name}' of {shapes[0]} keeps {len(kept)} channels, and has {shapes[1]}"
        constant = buffer.constant_channels
        if list(constant) != sorted({*constant}.intersection(range(before[-1] if before else 0))):
            yield f"'{buffer.name}' of {before[-1] if before else 0} channels has {len(constant)} that are constant"
    elif kept or buffer.constant_channels:
        yield f"'{buffer.name}' lost no channels, and keeps {len(kept)}"


def _faults_of_place(plan: Plan, buffer: PlannedBuffer) -> Iterator[str]:
    """What has no place in a pool has neither offset nor choice; what might be in pools, in those of its sort."""
    if buffer.place.kind in _SCOPES and (buffer.scope or "global") not in _SCOPES[buffer.place.kind]:
        yield f"'{buffer.name}' is no buffer of a pool, and its scope is '{buffer.scope}'"
    if not buffer.has_offset and buffer.place.offset is not None:
        yield f"'{buffer.name}' has the offset {buffer.place.offset}, and is in no pool"
    if buffer.place.kind not in _IN_A_POOL:
        if buffer.candidates:
            yield f"'{buffer.name}' might be in pools, and is in none"
        return
    role = buffer.pool_role
    wrong = [
        name for name in buffer.candidates if name not in plan.pools or plan.pools[name].role is not role
    ]
    if wrong or len(set(buffer.candidates)) != len(buffer.candidates):
        yield f"'{buffer.name}' might be in {', '.join(buffer.candidates)}, which are not pools for it, each once"


def _faults_of_use(plan: Plan, buffer: PlannedBuffer) -> Iterator[str]:
    """The steps and the role of a buffer are what the steps make of it."""
    touching = [step.index for step in plan.steps if buffer.name in step.touched]
    stated = (buffer.first_step, buffer.last_step)
    if buffer.place.kind is PlaceKind.STACK:
        if touching or stated != (None, None) or buffer.live is not None:
            yield f"'{buffer.name}' is on a stack, and has steps or a lifetime"
        return
    first, last = (touching[0], touching[-1]) if touching else _steps_alive(plan, buffer)
    if stated != (first, last):
        of = f"steps {first} to {last} use it" if touching else f"none uses it: that is {first} to {last}"
        yield f"'{buffer.name}' is said to be used in steps {stated[0]} to {stated[1]}, and {of}"
    if buffer.role is BufferRole.PARAMETER and buffer.live != (0, plan.num_ticks):
        yield f"parameter '{buffer.name}' does not live from the start to the end"
    works = any(buffer.name in step.scratch for step in plan.steps)
    passes = any(buffer.name in (*step.reads, *step.writes) for step in plan.steps)
    if (buffer.role is BufferRole.TENSOR and works) or (buffer.role is BufferRole.SCRATCH and passes):
        yield f"{buffer.role} '{buffer.name}' is not used as one"


def _steps_alive(plan: Plan, buffer: PlannedBuffer) -> tuple[int, int]:
    """The steps of what no step touches: those that it lives in, of constants, with which states begin, the first."""
    lower, upper = (0, 0) if buffer.live is None or buffer.role is BufferRole.PARAMETER else buffer.live
    alive = [step.index for step in plan.steps if step.ticks[0] < upper and lower < step.ticks[1]]
    return (alive[0], alive[-1]) if alive else (0, 0)


def faults_of_lives(plan: Plan) -> Iterator[str]:
    """Lifetimes in workspaces are those that steps, branches and loops make of them, and no longer."""
    needed: dict[str, tuple[int, int]] = {}

    def need(name: str, lower: int, upper: int) -> None:
        first, last = needed.get(name, (lower, upper))
        needed[name] = (min(first, lower), max(last, upper))

    for step in plan.steps:
        for name, interval in step.alive.items():
            need(name, *interval)
    for condition in plan.conditions:
        need(condition.buffer, condition.tick, condition.tick + 1)
    exist = [loop for loop in plan.loops if 0 <= loop.steps[0] <= loop.steps[1] < len(plan.steps)]
    for loop in reversed(outer_first(exist)):
        lower, upper = _ticks_of(plan, loop.steps)
        for name, (first, last) in list(needed.items()):
            if name not in loop.inside and first < upper and lower < last:
                need(name, lower, upper)
    given: dict[str, list[tuple[int, int]]] = {}
    for entry in plan.entries:
        alone, (begin, end) = plan.alone(entry), entry.ticks
        for tensors, ticks in ((alone.inputs, (begin, begin + 1)), (alone.outputs, (end - 1, end))):
            for tensor in tensors:
                given.setdefault(tensor.buffer, []).append(ticks)
    for buffer in plan.buffers.values():
        if buffer.role is BufferRole.STATE:
            need(buffer.name, 0, plan.num_ticks)
        for begin, end in given.get(buffer.name, ()):
            need(buffer.name, begin, end)
        live = needed.get(buffer.name)
        if buffer.live is not None and buffer.role is not BufferRole.PARAMETER and buffer.live != live:
            yield f"'{buffer.name}' lives from {buffer.live[0]} to {buffer.live[1]}, and is needed otherwise"


def _ticks_of(plan: Plan, steps: tuple[int, int]) -> tuple[int, int]:
    """From the first tick of a loop's body to the last: branches in it that stand before its first step, too."""
    first, last = plan.steps[steps[0]].ticks[0], plan.steps[steps[1]].ticks[1]
    inside = [
        c.tick
        for c in plan.conditions
        if c.loop is not None and steps[0] <= c.loop[0] <= c.loop[1] <= steps[1]
    ]
    return min([first, *inside]), max([last, *(tick + 1 for tick in inside)])


def _faults_of_devices(plan: Plan, buffer: PlannedBuffer) -> Iterator[str]:
    """Devices that touch a buffer are said to; others only where the application's functions decide that."""
    touching = {step.device for step in plan.steps if buffer.name in step.touched}
    touching |= {condition.device for condition in plan.conditions if condition.buffer == buffer.name}
    if buffer.role in (BufferRole.INPUT, BufferRole.OUTPUT, BufferRole.STATE):
        touching.add(plan.device.name)
    opaque = any(buffer.name in step.touched and step.kernel in plan.externals for step in plan.steps)
    if buffer.place.kind is PlaceKind.STACK:
        having = (d for d in plan.hardware.devices if buffer.place.name in [c.name for c in d.contexts])
        touching = {device.name for device in having} or {buffer.place.name}
    missing = sorted(touching - set(buffer.devices))
    more = sorted(set(buffer.devices) - touching)
    if len(set(buffer.devices)) != len(buffer.devices):
        yield f"'{buffer.name}' names a device twice"
    yield from (f"device '{name}' touches '{buffer.name}', which does not say so" for name in missing)
    known = [name for name in more if plan.hardware.find_device(name) is not None]
    if len(known) != len(more) or (more and not opaque):
        yield f"'{buffer.name}' is said to be touched by {', '.join(more)}, on which no step touches it"


def _faults_of_tensor(plan: Plan, border: ir.Border, tensor: PlannedTensor) -> Iterator[str]:
    what = f"{border.value} '{tensor.name}'"
    if tensor.size_bytes != prod(tensor.shape) * tensor.dtype.size_bytes or not all(tensor.shape):
        yield f"{what} has {tensor.size_bytes} B, its shape is {ir.format_shape(tensor.shape)}"
    if largest_extents(tensor.extents, plan.symbols) != tensor.shape:
        yield f"{what} has the shape {ir.format_shape(tensor.shape)}, its extents are {list(tensor.extents)}"
    if tensor.sized and largest_extents(tensor.sized, (*plan.symbols, *plan.sizes)) != tensor.shape:
        yield f"{what} has the shape {ir.format_shape(tensor.shape)}, a run makes it {list(tensor.sized)}"
    read = read_extents(tensor.sized, (*plan.symbols, *plan.sizes))
    of_runs = ir.symbols_in(extent for extent in read if extent is not None)
    if tensor.sized and set(of_runs).isdisjoint(plan.sizes):
        yield f"{what} is made {list(tensor.sized)} by a run, which no output says"
    if (tensor.most or tensor.is_checked) and not _is_size(border, tensor):
        yield f"{what} cannot say a size: it is {tensor.dtype.value}[{ir.format_shape(tensor.shape)}]"
    if (tensor.scale is None) != (tensor.zero_point is None):
        yield f"{what} has a scale or a zero point, and not both"
    if tensor.c_name != tensor.name:
        yield f"{what} is called '{tensor.c_name}' in C"
    if tensor.num_rows and (tensor.num_rows not in tensor.shape or tensor.size_bytes % tensor.num_rows):
        yield f"{what} of shape {ir.format_shape(tensor.shape)} does not come in {tensor.num_rows} rows"
    buffer = plan.buffers.get(tensor.buffer)
    if buffer is not None and (buffer.shape, buffer.dtype) != (tensor.shape, tensor.dtype):
        yield f"{what} and its buffer '{buffer.name}' have other shapes or types"
    quantized = (tensor.scale, tensor.zero_point)
    if buffer is not None and (buffer.scale, buffer.zero_point) not in (quantized, (None, None)):
        yield f"{what} and its buffer '{buffer.name}' have other scales or zero points"


def _is_size(border: ir.Border, tensor: PlannedTensor) -> bool:
    """Whether a run may say in a tensor how large others are."""
    kind = (border, tensor.dtype, tensor.shape)
    return kind == (ir.Border.OUTPUT, ir.DType.I32, (1,)) and tensor.most > 0


def _faults_of_pools(plan: Plan) -> Iterator[str]:
    """The pools are the target's, used or not, and what each says of its memory is what the target says."""
    hardware = with_io_pools(plan.hardware) if plan.io is ir.Io.WORKSPACE else plan.hardware
    expected = [pool.name for pool in (*hardware.entry_pools, *hardware.parameter_pools)]
    if list(plan.pools) != expected:
        yield f"the plan has the pools {', '.join(plan.pools) or 'none'}, its target {', '.join(expected) or 'none'}"
    for pool in plan.pools.values():
        known = plan.hardware.find_pool(pool.name)
        if known is None:
            continue  # which is refused already
        memory = plan.hardware.memory_of(known)
        if (pool.read_cost, pool.write_cost) != (memory.read_cost, memory.write_cost):
            yield f"pool '{pool.name}' has other costs than memory '{memory.name}' of the target"
        if pool.section != plan.hardware.section_of(known):
            yield f"pool '{pool.name}' is in section '{pool.section}', not in the target's"
        if (pool.sha256 is not None) != (pool.role is Role.PARAMETERS):
            yield f"pool '{pool.name}' is for parameters and has no digest, or has one and is not"
        if pool.sha256 is not None and not pool.used_bytes and pool.sha256 != _OF_NOTHING:
            yield f"pool '{pool.name}' is empty, and its digest is of something"
