"""Whether plan.json is a plan: judged from its own numbers, with the validator, and without any planner.

Lifetimes are computed again from what the steps read and write, tops from the buffers, and the pools are compared
with the target that the plan says it was made for.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

from bytewright import ir
from bytewright.diagnostics import CompileError
from bytewright.inspect.check_described import (
    faults_of_alignments,
    faults_of_descriptions,
    faults_of_lives,
    faults_of_references,
)
from bytewright.inspect.check_device_memory import faults_of_device_memory
from bytewright.inspect.check_devices import faults_of_devices
from bytewright.inspect.check_entries import faults_of_entries, faults_of_lives_between
from bytewright.inspect.check_flow import faults_of_branches
from bytewright.inspect.check_lines import bytes_taken, faults_of_lines, line_of_parameters
from bytewright.inspect.check_overlaps import contracts_in, faults_of_overlaps
from bytewright.inspect.check_rows import faults_of_rows
from bytewright.inspect.check_state import faults_of_states
from bytewright.ir.analyses.clock import Condition
from bytewright.plan import problem as planning
from bytewright.plan.solution import Placement
from bytewright.plan.validate import validate
from bytewright.record.buffers import BufferRole, PlaceKind, PlannedBuffer, PlannedPool
from bytewright.record.devices import DeviceKind
from bytewright.record.entries import PlannedEntry, PlannedStep
from bytewright.record.plan import Plan
from bytewright.target.model import Role

_KINDS = {
    BufferRole.TENSOR: (PlaceKind.PLANNED,),
    BufferRole.SCRATCH: (PlaceKind.PLANNED, PlaceKind.STACK, PlaceKind.ARENA),
    BufferRole.ARENA: (PlaceKind.PLANNED,),
    BufferRole.PARAMETER: (PlaceKind.CONSTANT,),
    BufferRole.INPUT: (PlaceKind.CALLER, PlaceKind.PLANNED),
    BufferRole.OUTPUT: (PlaceKind.CALLER, PlaceKind.PLANNED),
    BufferRole.STATE: (PlaceKind.PLANNED,),
}


def faults_of_plan(plan: Plan) -> list[str]:
    """Everything that is wrong with a plan, one sentence each; none if it verifies."""
    return _found(_CHECKS, plan) or _found(_CHECKS_OF_NUMBERS, plan)


def _faults_of_steps(plan: Plan) -> Iterator[str]:
    """Steps are numbered and follow each other on the clock; they name buffers that exist."""
    tick = 0
    branching = {condition.tick for condition in plan.conditions}
    begins = {entry.steps[0]: entry.ticks[0] for entry in plan.stated_entries}  # behind those without steps
    for index, step in enumerate(plan.steps):
        tick = max(tick, begins.get(index, 0))
        while tick in branching:
            branching.remove(tick)
            tick += 1
        if step.index != index or step.ticks[0] != tick or step.ticks[1] < tick + 3:
            yield f"step {step.index} has the ticks {step.ticks[0]} to {step.ticks[1]}, after tick {tick}"
        tick = step.ticks[1]
        if plan.hardware.find_device(step.device) is None:
            yield f"step {step.index} runs on '{step.device}', which the target does not have"
        yield from _faults_of_ticks(step)
    yield from _faults_of_conditions(plan, branching - {tick + number for number in range(len(branching))})


def _faults_of_conditions(plan: Plan, elsewhere: set[int]) -> Iterator[str]:
    """Branches have ticks of their own between the steps; they are on buffers of one byte, and in loops that exist."""
    ticks = [condition.tick for condition in plan.conditions]
    if ticks != sorted(set(ticks)):
        yield f"branches have the ticks {', '.join(map(str, ticks))}, which are not one after the other"
    for tick in sorted(elsewhere):
        yield f"a branch has tick {tick}, in a step or after the end"
    loops = {loop.steps for loop in plan.loops}
    for condition in plan.conditions:
        buffer = plan.buffers.get(condition.buffer)
        if buffer is None or buffer.size_bytes != 1:
            yield f"a branch is on '{condition.buffer}', which is no buffer of one byte"
        if plan.hardware.find_device(condition.device) is None:
            yield f"a branch is taken by '{condition.device}', which the target does not have"
        if condition.loop is not None and condition.loop not in loops:
            yield f"a branch is in a loop of steps {condition.loop[0]} to {condition.loop[1]}, which does not exist"


def _faults_of_ticks(step: PlannedStep) -> Iterator[str]:
    """A step says for all that it touches, and for nothing else, when it needs it, in ticks of its own."""
    for name in dict.fromkeys((*step.touched, *step.alive)):
        interval = step.alive.get(name)
        if interval is None or name not in step.touched:
            yield f"step {step.index} touches '{name}' and does not say when, or does not and says when"
        elif not step.ticks[0] <= interval[0] < interval[1] <= step.ticks[1]:
            yield (
                f"step {step.index} needs '{name}' from tick {interval[0]} to {interval[1]}, and has the ticks "
                f"{step.ticks[0]} to {step.ticks[1]}"
            )


def _faults_of_pools(plan: Plan) -> Iterator[str]:
    """Every pool is one of the target's, with the same limit."""
    for pool in plan.pools.values():
        known = plan.hardware.find_pool(pool.name)
        if known is None:
            yield f"the target has no pool '{pool.name}'"
            continue
        stated = (pool.memory, pool.role.value, pool.provider.value, pool.capacity_bytes, pool.c_name)
        role = Role.WORKSPACE if known.role is Role.IO else known.role  # planned inputs and outputs
        actual = (known.memory, role.value, known.provider.value, known.size_bytes, known.identifier)
        if stated != actual:
            yield f"pool '{pool.name}' is {stated} in the plan and {actual} in the target"
        if (pool.load, pool.load_memory) != (known.load, known.load_memory):
            loaded = f"loaded by '{pool.load}' from {pool.load_memory} in the plan"
            yield f"pool '{pool.name}' is {loaded}, by '{known.load}' from {known.load_memory} in the target"
        if not planning.is_power_of_two(pool.alignment) or pool.alignment % known.alignment:
            yield f"pool '{pool.name}' is aligned to {pool.alignment}, the target asks for {known.alignment}"


def _faults_of_parts(plan: Plan) -> Iterator[str]:
    """Parts of buffers that are not in them, or that are buffers themselves."""
    names = Counter(part.name for buffer in plan.buffers.values() for part in buffer.parts)
    for buffer in plan.buffers.values():
        for part in buffer.parts:
            end = part.offset_bytes + part.size_bytes
            if end > buffer.size_bytes:
                yield f"part '{part.name}' ends at byte {end} of '{buffer.name}', which has {buffer.size_bytes} B"
            if part.name in plan.buffers or names[part.name] > 1:
                yield f"part '{part.name}' of '{buffer.name}' is a buffer, or another part, as well"


def _faults_of_buffers(plan: Plan) -> Iterator[str]:
    """Every buffer is in a place of its role that all devices that touch it may use."""
    devices: dict[str, list[str]] = {}
    for step in plan.steps:
        for name in step.touched:
            devices.setdefault(name, []).append(step.device)
    for condition in plan.conditions:
        devices.setdefault(condition.buffer, []).append(condition.device)
    for buffer in plan.buffers.values():
        place = buffer.place
        if place.kind not in _KINDS[buffer.role]:
            yield f"{buffer.role} '{buffer.name}' has a place of kind '{place.kind}'"
        if buffer.has_offset or place.kind is PlaceKind.ARENA:
            touching = (*devices.get(buffer.name, ()), *buffer.devices)
            yield from _faults_of_placed(plan, buffer, list(dict.fromkeys(touching)))
        elif place.kind is PlaceKind.STACK:
            if plan.hardware.find_context(place.name) is None:
                yield f"'{buffer.name}' is on the stack of '{place.name}', which the target does not have"
        elif place.kind is PlaceKind.CALLER:
            ports = plan.inputs if buffer.role is BufferRole.INPUT else plan.outputs
            if (place.name, buffer.size_bytes) not in [(port.c_name, port.size_bytes) for port in ports]:
                yield f"'{buffer.name}' is the caller's '{place.name}', which is no {buffer.role} of its size"


def _faults_of_border(plan: Plan) -> Iterator[str]:
    """Inputs and outputs are where the plan's `io` says; in the workspace each has its bytes, touched or not."""
    for border in ir.Border:
        role, is_state = BufferRole(border.value), border is ir.Border.STATE
        expected = PlaceKind.PLANNED if is_state or plan.io_in_workspace else PlaceKind.CALLER
        for tensor in plan.tensors(border):
            buffer = plan.buffers.get(tensor.buffer)
            if buffer is None:
                if expected is PlaceKind.PLANNED:
                    yield f"{role} '{tensor.name}' has no place in the {'state' if is_state else 'workspace'}"
                continue
            found = (buffer.role.value, buffer.place.kind.value, buffer.size_bytes)
            if found != (role, expected, tensor.size_bytes):
                yield f"{role} '{tensor.name}' of {tensor.size_bytes} B is buffer '{buffer.name}', which is {found}"
    names = [tensor.buffer for border in ir.Border for tensor in plan.tensors(border)]
    for buffer in plan.buffers.values():
        if (
            buffer.role in (BufferRole.INPUT, BufferRole.OUTPUT, BufferRole.STATE)
            and names.count(buffer.name) != 1
        ):
            yield f"{buffer.role} '{buffer.name}' is none of the model's, or more than one"


def _faults_of_placed(plan: Plan, buffer: PlannedBuffer, devices: list[str]) -> Iterator[str]:
    place = buffer.place
    pool = plan.pools.get(place.name)
    role = buffer.pool_role
    is_request = place.kind is PlaceKind.ARENA
    if pool is None or pool.role is not role or (place.offset is None) != is_request or buffer.live is None:
        with_or_without = "has an offset, or is not" if is_request else "has no offset"
        yield f"'{buffer.name}' {with_or_without} in a {role} pool, or no lifetime"
        return
    if pool.name not in buffer.candidates:
        yield f"'{buffer.name}' is in pool '{pool.name}', which is not one of its candidates"
    if buffer.scope != f"global.{pool.name}":
        yield f"'{buffer.name}' is in pool '{pool.name}', its scope is '{buffer.scope}'"
    known = plan.hardware.find_pool(pool.name)
    for device in devices:
        if known is not None and device not in known.devices:
            yield f"device '{device}' touches '{buffer.name}' but may not use pool '{pool.name}'"


def _faults_of_stack(plan: Plan) -> Iterator[str]:
    """There are those of the devices that run C, the entry's first; each keeps to its limit, with the path's arrays."""
    running = [name for name, device in plan.devices.items() if device.kind is DeviceKind.C]
    devices = [plan.device, *(d for d in plan.hardware.devices if d.name in running and d != plan.device)]
    contexts = [context.name for device in devices for context in device.contexts]
    if list(plan.stack) != contexts:
        stated, wanted = (", ".join(names) or "none" for names in (plan.stack, contexts))
        yield f"the plan has the stacks {stated}, and its code runs on {wanted}"
    for name, stack in plan.stack.items():
        context = plan.hardware.find_context(name)
        if context is None or context.available_stack_bytes != stack.limit_bytes:
            yield f"the limit of stack '{name}' is not the target's"
        if stack.limit_bytes is not None and stack.size_bytes > stack.limit_bytes:
            yield f"stack '{name}' needs {stack.size_bytes} B, its limit is {stack.limit_bytes} B"
        arrays = sum(
            buffer.size_bytes
            for buffer in plan.buffers.values()
            if buffer.place.kind is PlaceKind.STACK and buffer.name.partition("/")[0] in stack.path
        )
        if name in [context.name for context in plan.device.contexts]:
            arrays += plan.argument_bytes
        if not stack.planned_bytes <= min(arrays, stack.size_bytes):
            yield f"stack '{name}' plans {stack.planned_bytes} B, the arrays of its path have {arrays} B"


def _faults_of_lifetimes(plan: Plan) -> Iterator[str]:
    """Every buffer is alive whenever a step touches it, and nothing is read before it was written.

    What a step both reads and writes it may write first: whether it does, its kernel says, which only the compiler has.
    In a loop over rows a step may stand before the one that makes what it reads, in the turn before: `check_rows.py`
    goes through these row by row.
    """
    for entry in plan.entries:
        yield from _faults_of_order(plan.alone(entry))
    end = plan.num_ticks
    for buffer in plan.buffers.values():
        if buffer.live is None:
            continue
        lower, upper = buffer.live
        if not 0 <= lower <= upper <= end:
            yield f"'{buffer.name}' lives from {lower} to {upper}, the clock ends at {end}"
        if buffer.role is BufferRole.STATE and (lower > 0 or upper < end):
            yield f"state '{buffer.name}' does not live from the start to the end"


def _faults_of_order(plan: Plan) -> Iterator[str]:
    """The same of the steps of one entry, and of its inputs and outputs."""
    given = (buffer for role in (BufferRole.PARAMETER, BufferRole.STATE) for buffer in plan.buffers_of(role))
    written = {*(buffer.name for buffer in given), *(tensor.buffer for tensor in plan.inputs)}
    conditions = list(reversed(plan.conditions))
    for step in plan.steps:
        while conditions and conditions[-1].tick < step.ticks[0]:
            yield from _faults_of_branch(plan, conditions.pop(), written)
        for name in step.reads:
            is_made = name in written or name in step.writes
            if not is_made and name not in _made_by_rows_around(plan, step.index):
                yield f"step {step.index} reads '{name}', which no step before it has written"
        written.update(step.writes)
        for name, (lower, upper) in step.alive.items():
            buffer = plan.buffers[name]
            if buffer.place.kind is PlaceKind.STACK or buffer.live is None:
                yield f"step {step.index} touches '{name}', which exists in a kernel only"
            elif lower < buffer.live[0] or upper > buffer.live[1]:
                yield f"step {step.index} touches '{name}', which lives from {buffer.live[0]} to {buffer.live[1]}"
    for condition in reversed(conditions):
        yield from _faults_of_branch(plan, condition, written)
    writing = {name for step in plan.steps for name in step.writes}
    for tensor in plan.outputs:
        if tensor.buffer not in writing:
            yield f"output '{tensor.name}' is written by no step"
    begin, end = plan.entries[0].ticks
    for side in ir.SIDES:
        for buffer in (plan.buffers[t.buffer] for t in plan.tensors(side) if t.buffer in plan.buffers):
            lower, upper = buffer.live or (begin, end)
            if side is ir.Border.INPUT and lower > begin:
                yield f"input '{buffer.name}' does not live from the start"
            if side is ir.Border.OUTPUT and upper < end:
                yield f"output '{buffer.name}' does not live to the end"


def _made_by_rows_around(plan: Plan, number: int) -> set[str]:
    """What the loops around a step make row by row."""
    around = [loop.steps for loop in plan.loops if loop.has_step(number)]
    steps = (step for first, last in around for step in plan.steps[first : last + 1])
    return {step.rows.buffer for step in steps if step.rows is not None}


def _faults_of_branch(plan: Plan, condition: Condition, written: Collection[str]) -> Iterator[str]:
    """What a branch is on has been written, and is alive."""
    buffer, tick = plan.buffers[condition.buffer], condition.tick
    if buffer.name not in written:
        yield f"a branch in tick {tick} is on '{buffer.name}', which no step before it has written"
    if buffer.live is None or not buffer.live[0] <= tick < buffer.live[1]:
        yield f"a branch in tick {tick} is on '{buffer.name}', which is not alive then"


def _faults_of_loop_steps(plan: Plan) -> Iterator[str]:
    """Loops are of steps that exist, one at least."""
    for loop in plan.loops:
        first, last = loop.steps
        if not 0 <= first <= last < len(plan.steps):
            yield f"a loop has the steps {first} to {last}, which do not exist"


def _faults_of_loops(plan: Plan) -> Iterator[str]:
    """What a loop uses and does not make lives for all of its turns."""
    for loop in plan.loops:
        first, last = loop.steps
        steps, inside = plan.steps[first : last + 1], set(loop.inside)
        lower, upper = steps[0].ticks[0], steps[-1].ticks[1]
        names = [name for step in steps for name in step.touched]
        names += [c.buffer for c in plan.conditions if c.loop and first <= c.loop[0] and c.loop[1] <= last]
        for name in dict.fromkeys(names):
            live = plan.buffers[name].live
            if name not in inside and live is not None and (live[0] > lower or live[1] < upper):
                yield f"'{name}' lives from {live[0]} to {live[1]}, a loop that uses it from {lower} to {upper}"
        for name in loop.inside:
            outside = (*plan.steps[:first], *plan.steps[last + 1 :])
            if any(name in step.touched for step in outside):
                yield f"'{name}' is born in the loop of steps {first} to {last}, and touched outside of it"


def _faults_of_offsets(plan: Plan) -> Iterator[str]:
    """What the validator says of workspaces and state, and of the parameters; what is left of a cache line counts."""
    taken = bytes_taken(plan)
    of_entry = (*plan.pools_of(Role.WORKSPACE), *plan.pools_of(Role.STATE))
    for kind, pools in (
        (PlaceKind.PLANNED, of_entry),
        (PlaceKind.CONSTANT, plan.pools_of(Role.PARAMETERS)),
    ):
        stated = [
            (
                planning.Buffer(
                    buffer.name,
                    taken[buffer.name],
                    (buffer.live or (0, 0),),
                    buffer.alignment,
                    candidates=tuple(planning.Candidate(name) for name in buffer.candidates),
                ),
                Placement(buffer.name, buffer.place.name, buffer.place.offset or 0),
            )
            for buffer in plan.buffers.values()
            if buffer.place.kind is kind
        ]
        stated += [_header(pool, plan.num_ticks) for pool in pools if pool.header_bytes]
        try:
            problem = planning.Problem(
                tuple(buffer for buffer, _ in stated),
                tuple(planning.Pool(pool.name, pool.capacity_bytes) for pool in pools),
                contracts_in(plan, kind),
            )
        except CompileError as error:
            yield from (diagnostic.message for diagnostic in error.diagnostics)
        else:
            yield from (str(violation) for violation in validate(problem, [place for _, place in stated]))


def _header(pool: PlannedPool, num_ticks: int) -> tuple[planning.Buffer, Placement]:
    """What comes before the constants of a pool, as a buffer with a place."""
    name, candidates = f"header of {pool.name}", (planning.Candidate(pool.name),)
    live = ((0, max(num_ticks, 1)),)
    header = planning.Buffer(name, pool.header_bytes, live, fixed_offset=0, candidates=candidates)
    return header, Placement(name, pool.name, 0)


def _faults_of_arenas(plan: Plan) -> Iterator[str]:
    """What an entry requests at run time has one arena in its pool, exactly as large as the calls need it."""
    served = [
        buffer
        for buffer in plan.buffers.values()
        if buffer.place.kind is PlaceKind.ARENA or buffer.role is BufferRole.ARENA
    ]
    for entry in plan.entries:
        alone = plan.alone(entry)
        own = [buffer for buffer in served if not plan.stated_entries or _is_alive_in(buffer, entry)]
        for pool in sorted({buffer.place.name for buffer in own}):
            inside = [buffer for buffer in own if buffer.place.name == pool]
            arenas = [buffer for buffer in inside if buffer.role is BufferRole.ARENA]
            if len(arenas) != 1:
                yield f"pool '{pool}' has {len(arenas)} arenas for what is requested from it"
                continue
            requests = {buffer.name for buffer in inside if buffer.place.kind is PlaceKind.ARENA}
            yield from _faults_of_arena(alone, arenas[0], requests)


def _is_alive_in(buffer: PlannedBuffer, entry: PlannedEntry) -> bool:
    return buffer.live is not None and buffer.live[0] < entry.ticks[1] and entry.ticks[0] < buffer.live[1]


def _faults_of_arena(plan: Plan, arena: PlannedBuffer, requests: set[str]) -> Iterator[str]:
    needed_bytes, taken = 0, bytes_taken(plan)
    for step in plan.steps:
        requested = [plan.buffers[name] for name in step.scratch if name in requests]
        if bool(requested) != (arena.name in step.touched):
            yield f"step {step.index} requests {len(requested)} buffers, and arena '{arena.name}' is not there for it"
        top = 0
        for buffer in requested:
            top = -(-top // buffer.alignment) * buffer.alignment + taken[buffer.name]
            if arena.alignment % buffer.alignment:
                yield f"'{buffer.name}' is aligned to {buffer.alignment}, its arena to {arena.alignment}"
        needed_bytes = max(needed_bytes, top)
    if needed_bytes != arena.size_bytes:
        yield f"arena '{arena.name}' has {arena.size_bytes} B, its calls need {needed_bytes} B at once"


def _faults_of_tops(plan: Plan) -> Iterator[str]:
    """Used bytes are the top of the pool's buffers; the bound lies between the live bytes and the top."""
    taken = bytes_taken(plan)
    for pool in plan.pools.values():
        inside, header = plan.buffers_in(pool.name), pool.header_bytes
        top = max((header, *((b.place.offset or 0) + taken[b.name] for b in inside)))
        line = line_of_parameters(plan, pool.name) if pool.role is Role.PARAMETERS else 1
        top = -(-top // line) * line
        if top != pool.used_bytes:
            yield f"pool '{pool.name}' uses {pool.used_bytes} B, its buffers end at {top}"
        alignment = max((b.alignment for b in inside), default=1)
        if pool.alignment % alignment:
            yield f"pool '{pool.name}' is aligned to {pool.alignment}, a buffer in it to {alignment}"
        alive = header + max((_live_bytes(inside, b, taken, plan.steps) for b in inside), default=0)
        if not alive <= pool.lower_bound_bytes <= pool.used_bytes:
            yield (
                f"pool '{pool.name}' states the lower bound {pool.lower_bound_bytes} B, "
                f"{alive} B are alive at once and {pool.used_bytes} B are used"
            )
        if pool.optimal != (pool.lower_bound_bytes == pool.used_bytes):
            yield f"pool '{pool.name}' claims to be optimal: {pool.optimal}, against its own bound"


def _live_bytes(
    buffers: Iterable[PlannedBuffer],
    born: PlannedBuffer,
    taken: Mapping[str, int],
    steps: Iterable[PlannedStep],
) -> int:
    """Bytes taken when one buffer is born, less all that pairs with a contract could share: no bound is below that."""
    tick = (born.live or (0, 0))[0]
    alive = {b.name for b in buffers if b.live is not None and b.live[0] <= tick < b.live[1]}
    shared = sum(
        min(taken[pair.source], taken[pair.output])
        for step in steps
        for pair in step.overlaps
        if {pair.source, pair.output} <= alive
    )
    return max(sum(taken[name] for name in alive) - shared, 0)


def _found(checks: Iterable[Callable[[Plan], Iterable[str]]], plan: Plan) -> list[str]:
    return [fault for check in checks for fault in check(plan)]


_CHECKS = (
    faults_of_references,
    faults_of_alignments,
    faults_of_states,
    faults_of_entries,
    _faults_of_steps,
    _faults_of_loop_steps,
    _faults_of_pools,
    _faults_of_buffers,
    _faults_of_parts,
    _faults_of_border,
    _faults_of_stack,
    faults_of_devices,
    faults_of_branches,
    faults_of_device_memory,
)
# Of numbers that may not exist if one of those finds anything.
_CHECKS_OF_NUMBERS = (
    faults_of_descriptions,
    faults_of_lives_between,
    _faults_of_lifetimes,
    faults_of_lives,
    _faults_of_loops,
    faults_of_overlaps,
    _faults_of_offsets,
    _faults_of_tops,
    _faults_of_arenas,
    faults_of_lines,
    faults_of_rows,
)
