"""The report: how a plan uses its memories, from the total to the single step."""

from collections.abc import Iterator
from dataclasses import replace

from bytewright import ir
from bytewright.elf.sizes import SectionSizes
from bytewright.record.buffers import PlannedBuffer, PlannedPool
from bytewright.record.codec import encode
from bytewright.record.entries import PlannedEntry, PlannedStep
from bytewright.record.plan import Plan
from bytewright.report.blocks import KINDS, blocks_of
from bytewright.report.by_memory import (
    KINDS_OF_USE,
    MemoryUse,
    border_bytes,
    use_by_memory,
    use_elsewhere,
)
from bytewright.report.code import Code, code_facts
from bytewright.report.dead_channels import dead_channel_sections
from bytewright.report.lanes import lanes
from bytewright.report.lives import Lives
from bytewright.report.memory import PoolHistory, spans_of, step_ranges, use_over_time, used_workspaces
from bytewright.report.parameters import parameter_sections
from bytewright.report.places import facts, largest_first, place_text
from bytewright.report.rows import calls_of, rows_text
from bytewright.show.view import (
    ABSENT,
    Band,
    Chart,
    Fact,
    Facts,
    Field,
    Gauge,
    Gauges,
    Lanes,
    Section,
    Table,
    Track,
    View,
    body_of,
    freeze,
    keys,
    table_of,
)
from bytewright.target.model import Role

NUM_LARGEST = 10
_USUAL = ("workspace", "parameters", "stack")  # in every table of memories
_SHARED = "where two overlap, a kernel writes over what it has read"
_FIGURES = (
    "ram_bytes",
    "workspace_bytes",
    "stack_bytes",
    "parameter_bytes",
    "ram_parameter_bytes",
    "num_buffers",
)


def report_view(plan: Plan, code: Code | None = None) -> View:
    """Figures of the whole, pools with their use by step, stacks, the largest buffers, and steps.

    Args:
        plan: What is reported.
        code: What its C takes, if somebody compiled it.
    """
    sizes = None if code is None else code.sizes
    return View(
        f"{plan.model} for {plan.target}, {plan.arithmetic_text}",
        (
            _figures(plan),
            *code_facts(code),
            _pools(plan),
            _memories(plan, sizes),
            _stack(plan),
            *all_pool_charts(plan),
            _memory_gauges(plan, sizes),
            _stack_gauges(plan),
            _segments(plan),
            *_lanes(plan),
            *parameter_sections(plan),
            *dead_channel_sections(plan),
            _buffers(plan),
            _steps(plan),
        ),
    )


def pictures_of(plan: Plan) -> tuple[Section, ...]:
    """What is drawn of a plan, for pages that say something else in text."""
    charts = tuple(replace(chart, is_picture=True) for chart in all_pool_charts(plan))
    return (*charts, _memory_gauges(plan), _stack_gauges(plan))


def _figures(plan: Plan) -> Facts:
    written = f", parameters in RAM {plan.ram_parameter_bytes} B" if plan.ram_parameter_bytes else ""
    ram = f"RAM {plan.ram_bytes} B: workspace {plan.workspace_bytes} B"
    ram += f", state {plan.state_bytes} B" if plan.states else ""
    border, given_bytes = _border(plan)
    of_plan = {name: getattr(plan, name) for name in ("model", "target", "numerics")}
    of_plan |= {"symbols": [encode(symbol) for symbol in plan.symbols], "plan_hash": plan.plan_hash}
    of_plan |= {name: getattr(plan, name) for name in _FIGURES} | {"caller_bytes": given_bytes}
    found = [
        Fact(
            (
                f"{ram}, stack {plan.stack_bytes} B{written}; "
                f"all parameters {plan.parameter_bytes} B; {border}",
            ),
            data=freeze(of_plan),
        )
    ]
    given = [f"each run takes {plan.extents_text}"] if plan.symbols else []
    given += [
        f"parameters {pool.name} are {pool.loading}"
        for pool in plan.pools.values()
        if pool.loading and pool.used_bytes
    ]
    found += facts_of_runs(plan)
    if given:
        found.append(Fact(("; ".join(given),)))
    if plan.narrowed is not None:
        narrowed = freeze({"narrowed": encode(plan.narrowed)})
        found.append(Fact((f"constant channels: {plan.narrowed.text}",), data=narrowed))
    return Facts(tuple(found))


def facts_of_runs(plan: Plan) -> Iterator[Fact]:
    """What runs have to do with each other: entries, what is kept, and frames of a stream."""
    if plan.stated_entries:
        entries = ", ".join(map(_entry_text, plan.entries))
        stated = freeze({"entries": encode(plan)["entries"]})
        yield Fact((f"entries, of which one runs at a time: {entries}",), data=stated)
    if plan.states:
        names = ", ".join(state.name for state in plan.states)
        own = freeze({"state_bytes": plan.state_bytes, "states": encode(plan)["states"]})
        yield Fact((f"kept between runs: {names}; reset before each new sequence",), data=own)
    if plan.stream is not None:
        stream = freeze({"stream": encode(plan.stream)})
        yield Fact((f"frame by frame: {plan.stream.text}",), data=stream)


def _entry_text(entry: PlannedEntry) -> str:
    """`push (frame; steps 0..1)`, with inputs and outputs."""
    first, end = entry.steps
    steps = f"steps {first}..{end - 1}" if first < end else "no steps"
    return f"{entry.name} ({', '.join((*entry.inputs, *entry.outputs)) or 'no tensors'}; {steps})"


def _border(plan: Plan) -> tuple[str, dict[str, int]]:
    """Where inputs and outputs are, and what the application has of them."""
    given, taken = (border_bytes(plan, side) for side in ir.SIDES)
    in_bytes = {"inputs": given, "outputs": taken}
    if plan.io_in_workspace:
        return "inputs and outputs are in the workspace", in_bytes
    pieces = " and ".join(tensor.pieces_text for tensor in plan.inputs if tensor.pieces)
    if pieces:
        return f"the input comes in {pieces}, outputs are the caller's, {taken} B", in_bytes
    return f"inputs and outputs are the caller's, {given} B and {taken} B", in_bytes


def _pools(plan: Plan) -> Table:
    """How far each pool is filled, and how good that is."""
    histories = {pool.name: use_over_time(plan, pool) for pool in plan.pools_of(Role.WORKSPACE)}

    def loaded(pool: PlannedPool, name: str) -> object:
        return getattr(pool, name) if pool.role is Role.PARAMETERS else ABSENT

    def over_time(pool: PlannedPool, name: str) -> object:
        return getattr(histories[pool.name], name) if pool.name in histories else ABSENT

    return table_of(
        "Pools",
        "pools",
        plan.pools.values(),
        Field("pool", "name", lambda pool: pool.name),
        Field(None, "memory", lambda pool: pool.memory),
        Field("role", "role", lambda pool: pool.role),
        Field(None, "provider", lambda pool: pool.provider),
        Field("from", None, lambda pool: pool.obtained_by or pool.provider),
        Field("used", "used_bytes", lambda pool: pool.used_bytes, is_number=True),
        Field("capacity", "capacity_bytes", lambda pool: pool.capacity_bytes, is_number=True),
        Field("lower bound", "lower_bound_bytes", lambda pool: pool.lower_bound_bytes, is_number=True),
        Field(None, "gap_bytes", lambda pool: pool.used_bytes - pool.lower_bound_bytes),
        Field(None, "optimal", lambda pool: pool.optimal),
        Field("evidence", None, evidence),
        Field(None, "obtained_by", lambda pool: pool.obtained_by or ABSENT),
        *keys(("load", "load_memory"), loaded),
        *keys(("live_bytes", "peak_bytes", "peak_steps"), over_time),
    )


def evidence(pool: PlannedPool) -> str:
    """How far a pool's use is from what is proved to be needed."""
    if not pool.used_bytes:
        return "unused"
    if pool.optimal:
        return "optimal"
    return f"at most {pool.used_bytes - pool.lower_bound_bytes} B too many"


def _memories(plan: Plan, code: SectionSizes | None) -> Table:
    """What each memory holds, and what lies wherever the application likes."""
    uses, elsewhere = use_by_memory(plan, code), use_elsewhere(plan, code)

    def of_kind(kind: str, member: str) -> Field[MemoryUse]:
        is_shown = kind in _USUAL or any(getattr(use, member) for use in (*uses, elsewhere))
        return Field(kind if is_shown else None, member, lambda use: getattr(use, member), is_number=True)

    def of_memory(heading: str, member: str) -> Field[MemoryUse]:
        def figure(use: MemoryUse) -> object:
            return ABSENT if use is elsewhere else getattr(use, member)

        return Field(heading, member, figure, is_number=True)

    fields: tuple[Field[MemoryUse], ...] = (
        Field("memory", "name", lambda use: use.name),
        *(of_kind(kind, member) for kind, member in KINDS_OF_USE.items()),
        Field("in all", "used_bytes", lambda use: use.used_bytes, is_number=True),
        of_memory("of", "size_bytes"),
        of_memory("free", "free_bytes"),
    )
    bodies = [body_of("memories", uses, fields)]
    bodies += [body_of("elsewhere", [elsewhere], fields)] if elsewhere.used_bytes else []
    columns = tuple(field.column for field in fields)
    return Table("Memories", columns, tuple(bodies), none="no limit")


def _stack(plan: Plan) -> Table:
    """The stack of each context, with the worst path of calls."""
    return table_of(
        "Stack",
        "stack",
        plan.stack,
        Field("context", "context", lambda context: context),
        Field("arrays", "planned_bytes", lambda context: plan.stack[context].planned_bytes, is_number=True),
        Field("in all", "size_bytes", lambda context: plan.stack[context].size_bytes, is_number=True),
        Field("limit", "limit_bytes", lambda context: plan.stack[context].limit_bytes, is_number=True),
        Field("worst path", "path", lambda context: plan.stack[context].path, joint=" > "),
        by_first=True,
    )


def pool_charts(plan: Plan) -> tuple[Chart, ...]:
    """One chart for each workspace pool that is used."""
    return tuple(pool_chart(use_over_time(plan, pool), plan) for pool in used_workspaces(plan))


def pool_chart(use: PoolHistory, plan: Plan) -> Chart:
    """A pool over time: its figures, the steps with rings in it, and the buffers that lie in it."""
    pool, plural = use.pool, "s" if len(use.peak_steps) > 1 else ""
    capacity = "no limit" if pool.capacity_bytes is None else f"capacity {pool.capacity_bytes} B"
    title = (
        f"{pool.name}: {use.peak_bytes} B alive at the peak (step{plural} {step_ranges(use.peak_steps)}), "
        f"{pool.used_bytes} B used, {capacity}"
    )
    bands = [Band("peak", spans_of(use.peak_steps), "^")]
    bands += [Band("rows", spans_of(use.by_rows))] if use.by_rows else []
    bands += [Band(entry.name, (entry.steps,)) for entry in plan.stated_entries if len(plan.entries) > 1]
    here = {buffer.name for buffer in plan.buffers_in(pool.name)}
    is_shared = any(
        {pair.source, pair.output} <= here and plan.shared_bytes(pair.source, pair.output)
        for step in plan.steps
        for pair in step.overlaps
    )
    return Chart(
        pool.name,
        title,
        use.live_bytes,
        pool.capacity_bytes,
        tuple(bands),
        blocks_of(plan, pool, use.peak_tick),
        (("alive", use.peak_bytes), ("used", pool.used_bytes), ("lower bound", pool.lower_bound_bytes)),
        kinds=KINDS,
        remark=_SHARED if is_shared else "",
    )


def all_pool_charts(plan: Plan) -> tuple[Chart, ...]:
    """The same, and one for each pool of what survives runs."""
    return (*pool_charts(plan), *_state_charts(plan))


def _state_charts(plan: Plan) -> tuple[Chart, ...]:
    """What survives runs, for pictures: it is there all the time."""
    return tuple(
        Chart(
            pool.name,
            f"{pool.name}: {pool.used_bytes} B of state, kept between runs",
            (pool.used_bytes,) * len(plan.steps),
            pool.capacity_bytes,
            blocks=blocks_of(plan, pool, 0),
            levels=(("used", pool.used_bytes),),
            kinds=KINDS,
            is_low=True,
            is_picture=True,
        )
        for pool in plan.used_pools(Role.STATE)
    )


def _memory_gauges(plan: Plan, code: SectionSizes | None = None) -> Gauges:
    """How far each memory is filled, and with what."""
    return Gauges(
        "What each memory holds",
        tuple(
            Gauge(use.name, tuple((kind, size) for kind, size in use.parts if size), use.size_bytes)
            for use in use_by_memory(plan, code)
        ),
    )


def _stack_gauges(plan: Plan) -> Gauges:
    """How far each stack is filled."""
    return Gauges(
        "Stack, on the worst path of calls",
        tuple(
            Gauge(
                context,
                (("arrays", stack.planned_bytes), ("allowance", stack.size_bytes - stack.planned_bytes)),
                stack.limit_bytes,
            )
            for context, stack in plan.stack.items()
        ),
    )


def _segments(plan: Plan) -> Table:
    """Which steps run together row by row, and what that saves."""
    plain = "no plan" if plan.plain_workspace_bytes is None else f"{plan.plain_workspace_bytes} B"
    title = f"Row by row (workspace {plan.workspace_bytes} B, {plain} without rows)"
    return table_of(
        title,
        "segments",
        plan.segments,
        Field("steps", None, lambda segment: f"{segment.steps[0]}..{segment.steps[1]}"),
        *keys(("steps", "rings")),
        Field("turns", "num_turns", lambda segment: segment.num_turns, is_number=True),
        Field("calls", "num_calls", lambda segment: calls_of(plan, segment), is_number=True),
        Field("rings", None, lambda segment: len(segment.rings), is_number=True),
        Field("alive", "alive_bytes", lambda segment: segment.alive_bytes, is_number=True),
        Field("if whole", "plain_alive_bytes", lambda segment: segment.plain_alive_bytes, is_number=True),
    )


def _lanes(plan: Plan) -> tuple[Section, ...]:
    """Who runs when, and what each device does, in steps and bytes; nothing to draw for one device."""
    found = lanes(plan)
    tracks = tuple(Track(lane.device, lane.steps, lane.copies) for lane in found)
    table = table_of(
        "Devices",
        "lanes",
        found,
        Field("device", "device", lambda lane: lane.device),
        *keys(("steps", "copies")),
        Field("steps", None, lambda lane: len(lane.steps), is_number=True),
        Field("reads", "read_bytes", lambda lane: lane.read_bytes, is_number=True),
        Field("writes", "written_bytes", lambda lane: lane.written_bytes, is_number=True),
        Field("copies", None, lambda lane: len(lane.copies), is_number=True),
        Field("copied", "copied_bytes", lambda lane: lane.copied_bytes, is_number=True),
    )
    return (Lanes(len(plan.steps), tracks), table) if tracks else (table,)


def _buffers(plan: Plan) -> Table:
    """The largest buffers for people, and all of them for programs."""

    def fact(buffer: PlannedBuffer, name: str) -> object:
        return facts(buffer, name)[name]

    found, lives = largest_first(plan), Lives(plan)
    return table_of(
        f"Largest buffers ({min(NUM_LARGEST, len(found))} of {plan.num_buffers_text})",
        "buffers",
        found,
        Field("buffer", "name", lambda buffer: buffer.name),
        *keys(("role",), fact),
        Field("bytes", "size_bytes", lambda buffer: buffer.size_bytes, is_number=True),
        Field("rows kept" if plan.segments else None, "rows", rows_text),
        Field("place", None, place_text),
        Field("alive", None, lives.alive_text),
        Field("used", None, lives.used_text),
        *keys(("place",), fact),
        *keys(("alive_steps", "used_steps"), lambda buffer, name: lives.document(buffer)[name]),
        most_rows=NUM_LARGEST,
    )


def _steps(plan: Plan) -> Table:
    """Every step with the bytes that live during it; where there is a choice, who carries it out, and when."""
    return table_of(
        "Steps",
        "steps",
        plan.steps,
        Field("step", "index", lambda step: step.index, is_number=True),
        Field("device" if lanes(plan) else None, "device", lambda step: step.device),
        Field(
            "when" if plan.loops or plan.branches else None,
            "when",
            lambda step: plan.surroundings(step.index),
            joint="\n",
        ),
        Field("kernel", None, lambda step: step.kernel.removeprefix(f"{plan.model}_")),
        *keys(("kernel",)),
        Field("operators", "operators", lambda step: step.operators),
        *(_live(use) for use in (use_over_time(plan, pool) for pool in used_workspaces(plan))),
    )


def _live(use: PoolHistory) -> Field[PlannedStep]:
    return Field(f"{use.pool.name} live", None, lambda step: use.live_bytes[step.index], is_number=True)
