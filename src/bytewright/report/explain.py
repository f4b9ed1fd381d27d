"""Why a buffer is where it is: answered from the plan alone, so that it holds for any bundle at any time."""

from collections.abc import Iterator
from dataclasses import dataclass

from bytewright.record.buffers import BufferRole, PlaceKind, PlannedBuffer, PlannedPool
from bytewright.record.entries import PlannedOverlap, PlannedStep
from bytewright.record.plan import Plan
from bytewright.report.explain_kernel import HEAD_WIDTH
from bytewright.report.lives import Lives
from bytewright.report.memory import coexist, live_at_ticks
from bytewright.report.places import facts, place_text
from bytewright.report.rows import row_reasons
from bytewright.show.view import Fact, Facts, View, freeze
from bytewright.target.model import Role


@dataclass(frozen=True, slots=True)
class Use:
    """One step that touches the buffer, and how: "reads", "writes" or "works in"."""

    step: PlannedStep
    how: str


@dataclass(frozen=True, slots=True)
class Explanation:
    """Everything that is known about one buffer.

    Attributes:
        uses: The steps that touch it, in order.
        neighbours: Other buffers of its pool that are alive while it is, by offset.
        elsewhere: For each place where it is not, why.
    """

    buffer: PlannedBuffer
    uses: tuple[Use, ...]
    neighbours: tuple[PlannedBuffer, ...]
    elsewhere: tuple[tuple[str, str], ...]


def explain(plan: Plan, buffer: PlannedBuffer) -> Explanation:
    """Explains a buffer."""
    neighbours: tuple[PlannedBuffer, ...] = ()
    if buffer.place.kind is PlaceKind.PLANNED:
        alive = [o for o in plan.buffers_in(buffer.place.name) if o is not buffer and coexist(o, buffer)]
        neighbours = tuple(sorted(alive, key=lambda other: (other.place.offset or 0, other.name)))
    return Explanation(buffer, _uses(plan, buffer), neighbours, _elsewhere(plan, buffer, neighbours))


def _uses(plan: Plan, buffer: PlannedBuffer) -> tuple[Use, ...]:
    if buffer.place.kind is PlaceKind.STACK:
        kernel = buffer.name.partition("/")[0]
        return tuple(Use(step, "works in") for step in plan.steps if step.kernel == kernel)
    uses: list[Use] = []
    for step in plan.steps:
        words = [
            word
            for word, names in (("reads", step.reads), ("writes", step.writes), ("works in", step.scratch))
            if buffer.name in names
        ]
        if words:
            uses.append(Use(step, " and ".join(words)))
    return tuple(uses)


def _elsewhere(
    plan: Plan, buffer: PlannedBuffer, neighbours: tuple[PlannedBuffer, ...]
) -> tuple[tuple[str, str], ...]:
    match buffer.place.kind:
        case PlaceKind.PLANNED | PlaceKind.ARENA:
            not_on_stack = ("the stack", _not_on_stack(buffer))
            return (*_lower(buffer, neighbours), *_other_pools(plan, buffer, buffer.pool_role), not_on_stack)
        case PlaceKind.CONSTANT:
            return tuple(_other_pools(plan, buffer, Role.PARAMETERS))
        case PlaceKind.STACK:
            if buffer.scope == "local":
                reason = "its scope 'local' is private to one call of the kernel: registers or stack"
            else:
                reason = "it is small enough for a local array, which the C compiler may keep in registers"
            return (("any pool", reason),)
        case _:
            return (("any pool", "inputs and outputs of the model are memory of the application"),)


def _lower(buffer: PlannedBuffer, neighbours: tuple[PlannedBuffer, ...]) -> list[tuple[str, str]]:
    """What keeps it from a lower offset in its own pool, or from any."""
    offset, pool = buffer.place.offset or 0, buffer.place.name
    if buffer.place.kind is PlaceKind.ARENA:
        return [(f"{pool} at an offset", "it is requested at run time, around its call")]
    if offset == 0:
        return []
    below = [other for other in neighbours if (other.place.offset or 0) < offset]
    free = _lowest_free(buffer, neighbours)
    if free < offset:
        reason = f"it would fit at {pool}+{free} as well; the pool as a whole would not be smaller"
    else:
        names = ", ".join(f"'{other.name}' ({place_text(other)}, {other.size_bytes} B)" for other in below)
        reason = f"taken while it lives: {names}"
    return [(f"lower in {pool}", reason)]


def _lowest_free(buffer: PlannedBuffer, neighbours: tuple[PlannedBuffer, ...]) -> int:
    """The lowest aligned offset where it collides with nothing that lives beside it."""
    offset = 0
    for other in neighbours:  # by offset
        begin = other.place.offset or 0
        if offset + buffer.size_bytes > begin and begin + other.size_bytes > offset:
            offset = -(-(begin + other.size_bytes) // buffer.alignment) * buffer.alignment
    return offset


def _other_pools(plan: Plan, buffer: PlannedBuffer, role: Role) -> list[tuple[str, str]]:
    reasons: list[tuple[str, str]] = []
    own, candidates = buffer.place.name, buffer.candidates
    for pool in plan.pools_of(role):
        if pool.name == own:
            continue
        if pool.name not in candidates:
            reason = _not_a_candidate(plan, buffer, pool)
        elif pool.capacity_bytes is not None and buffer.size_bytes > pool.capacity_bytes:
            reason = f"too small: {pool.capacity_bytes} B"
        elif candidates.index(pool.name) < candidates.index(own):
            reason = _refused_by_preferred(plan, buffer, pool)
        else:
            reason = f"possible, but {own} comes before it in the order of preference"
        reasons.append((pool.name, reason))
    return reasons


def _not_a_candidate(plan: Plan, buffer: PlannedBuffer, pool: PlannedPool) -> str:
    admitted = plan.hardware.pool(pool.name).devices if plan.hardware.find_pool(pool.name) else ()
    devices = dict.fromkeys((*(use.step.device for use in _uses(plan, buffer)), *buffer.devices))
    barred = [device for device in devices if device not in admitted]
    if barred:
        return f"device '{barred[0]}', which touches it, may not use this pool"
    if not plan.device.reaches(pool.memory):
        return f"device '{plan.device.name}' does not reach it, and its code has the address"
    if buffer.role is BufferRole.ARENA or buffer.place.kind is PlaceKind.ARENA:
        return "not a candidate: the scope that it came with, or what it shares the arena with, leaves this pool out"
    return "not a candidate: the scope that it came with leaves this pool out"


def _refused_by_preferred(plan: Plan, buffer: PlannedBuffer, pool: PlannedPool) -> str:
    """Why a pool that comes before its own does not hold it: how full that one is while it lives."""
    lower, upper = buffer.live or (0, 1)
    alive = live_at_ticks(plan, pool)
    tick = max(range(lower, upper), key=lambda tick: alive[tick])
    needed = alive[tick] + buffer.size_bytes
    step = next((s.index for s in plan.steps if s.ticks[0] <= tick < s.ticks[1]), 0)
    capacity = pool.capacity_bytes
    if capacity is not None and needed > capacity:
        return (
            f"preferred, but {alive[tick]} B are alive there in step {step}: "
            f"{needed} B together, {needed - capacity} B more than its capacity"
        )
    return "preferred; the planner found no cheaper plan with it there"


def _not_on_stack(buffer: PlannedBuffer) -> str:
    if buffer.role is BufferRole.ARENA or buffer.place.kind is PlaceKind.ARENA:
        return "its size is known only at run time, or use-backend-alloc-workspace keeps it off"
    if buffer.role is BufferRole.SCRATCH:
        return "larger than the device allows for a local array, or its scope asks for a pool"
    if buffer.role in (BufferRole.INPUT, BufferRole.OUTPUT):
        return "the application touches it before or after the run, when no stack holds it"
    if buffer.role is BufferRole.STATE:
        return "it survives runs, and no stack does"
    return "tensors between kernels begin as 'global.workspace', which is never a stack"


def explanation_view(plan: Plan, explanation: Explanation) -> View:
    """The explanation of a buffer."""
    buffer = explanation.buffer
    elsewhere = (
        Fact((f"{place}: {reason}",), data=freeze({"place": place, "reason": reason}))
        for place, reason in explanation.elsewhere
    )
    return View(
        buffer.name,
        (
            Facts(tuple(_of_buffer(plan, buffer)), indent=2, head_width=HEAD_WIDTH),
            Facts(tuple(_of_uses(plan, explanation)), "used by", "uses", indent=2, hanging=8),
            _beside(plan, explanation),
            Facts(tuple(elsewhere), "why not in" if explanation.elsewhere else None, "elsewhere", indent=2),
        ),
    )


def _of_buffer(plan: Plan, buffer: PlannedBuffer) -> Iterator[Fact]:
    """What it is, where it lies and when it lives."""
    members = ("name", "role", "size_bytes", "alignment", "place", "live", "scope", "reason", "candidates")
    document = facts(buffer, *members)
    document |= {} if buffer.shape_before is None else facts(buffer, "shape", "shape_before")
    document |= facts(buffer, "kept_channels") if buffer.kept_channels else {}
    document |= facts(buffer, "parts") if buffer.parts else {}
    what = f"{buffer.role}, {buffer.size_bytes} B, aligned to {buffer.alignment}"
    yield Fact((what,), "what", freeze(document))
    if buffer.shape_before is not None:
        shape = "x".join(map(str, buffer.shape_before))
        narrowed = f"{shape} in the model: channels that are constant, or that nobody reads, were removed"
        yield Fact((narrowed,), "narrowed")
    parts = tuple(
        f"'{part.name}', bytes {part.offset_bytes} to {part.offset_bytes + part.size_bytes}: nothing is copied"
        for part in buffer.parts
    )
    yield Fact(parts, "parts")
    yield Fact((_where(plan, buffer),), "where")
    yield from _lives(plan, buffer)
    yield from (Fact((reason,), "rows") for reason in row_reasons(plan, buffer))
    yield Fact((buffer.scope or "unconstrained",), "scope")
    yield Fact(tuple(buffer.reason.split("; ")), "because")


def _of_uses(plan: Plan, explanation: Explanation) -> Iterator[Fact]:
    """The steps that touch it, with what it may share there, and the branches that it decides."""
    name = explanation.buffer.name
    for use in explanation.uses:
        step = use.step
        operators = " + ".join(step.operators)
        said = [*([operators] if operators else []), *plan.surroundings(step.index)]
        line = f"step {step.index}  {step.kernel} {use.how} it: {', '.join(said)}"
        overlaps = [pair for pair in step.overlaps if name in (pair.source, pair.output)]
        document = {
            "step": step.index,
            "kernel": step.kernel,
            "how": use.how,
            "overlaps": [facts(pair, "source", "output", "below_bytes", "above_bytes") for pair in overlaps],
            "runs_down": step.runs_down,
        }
        yield Fact((line, *(_overlap_text(plan, step, pair) for pair in overlaps)), data=freeze(document))
    for branch in plan.branches:
        if branch.buffer == name:
            arms = (
                f"{begin}..{end - 1}" if begin < end else "none"
                for begin, end in (branch.then, branch.otherwise)
            )
            yield Fact((f"a branch chooses by it between steps {' and '.join(arms)}",))


def _overlap_text(plan: Plan, step: PlannedStep, pair: PlannedOverlap) -> str:
    """What a buffer may share with another one in a step, and what it does."""
    num_bytes, way = plan.shared_bytes(pair.source, pair.output), "down" if step.runs_down else "up"
    shares = f"overlaps '{pair.source}' by {num_bytes} B" if num_bytes else f"may overlap '{pair.source}'"
    return f"'{pair.output}' {shares}; {pair.text}; the kernel runs {way}"


def _beside(plan: Plan, explanation: Explanation) -> Facts:
    """What lives in its pool while it does; people are shown it of a buffer that has an offset."""
    place, found, lives = explanation.buffer.place, explanation.neighbours, Lives(plan)
    beside = tuple(
        Fact(
            (f"{place_text(other)}  {other.name}, {other.size_bytes} B, alive {lives.alive_text(other)}",),
            data=other.name,
        )
        for other in found
    )
    if place.kind is not PlaceKind.PLANNED:
        return Facts((), key="neighbours")
    title = f"alive at the same time in {place.name}"
    return Facts(beside or (Fact(("nothing",)),), title, "neighbours", indent=2)


def _where(plan: Plan, buffer: PlannedBuffer) -> str:
    place = buffer.place
    if not buffer.has_offset or place.offset is None:
        return place_text(buffer)
    pool = plan.pools[place.name]
    provider = "from the caller" if pool.is_caller else "declared by the generated code"
    if pool.obtained_by is not None:
        provider = f"obtained by device '{pool.obtained_by}', as '{plan.device.name}' does not reach it"
    if pool.loading:
        provider += f", {pool.loading}"
    last = place.offset + buffer.size_bytes
    return f"{place_text(buffer)}, bytes {place.offset} to {last} of {pool.role} {pool.name}, {provider}"


def _lives(plan: Plan, buffer: PlannedBuffer) -> Iterator[Fact]:
    """When it is alive, and when it is used."""
    lives = Lives(plan)
    text = lives.alive_text(buffer)
    ticks = f", ticks {buffer.live[0]} to {buffer.live[1]}" if buffer.live and text != "always" else ""
    yield Fact((f"{text}{ticks}",), "alive", freeze(lives.document(buffer)))
    yield Fact((lives.used_text(buffer),), "used")
