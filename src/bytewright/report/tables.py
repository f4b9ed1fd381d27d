"""The report for people: tables, and the chart of memory over time."""

from collections.abc import Iterable
from operator import attrgetter

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from bytewright.record.plan import PlaceKind, Plan, PlannedBuffer, PlannedPool
from bytewright.report.by_memory import use_by_memory
from bytewright.report.chart import chart
from bytewright.report.compare import Change, compare
from bytewright.report.console import drawing_width
from bytewright.report.document import largest_first
from bytewright.report.lanes import lane_lines, lanes
from bytewright.report.memory import use_over_time, used_workspaces
from bytewright.report.rows import calls_of, rows_text

NUM_LARGEST = 10
NUM_CHANGES_SHOWN = 20
_WHERE_BORDER = {False: "the caller's", True: "in the workspace"}


def print_report(plan: Plan, console: Console) -> None:
    """Prints everything, from the total to the single step."""
    console.print(Text(f"{plan.model} for {plan.target}, bit for bit {plan.numerics}", style="bold"))
    written = f", parameters in RAM {plan.ram_parameter_bytes} B" if plan.ram_parameter_bytes else ""
    kept = f"state {plan.state_bytes} B, " if plan.states else ""
    border = f"inputs and outputs are {_WHERE_BORDER[plan.io_in_workspace]}"
    if plan.image is not None:
        border = f"the input comes in {plan.image.num_rows} rows of {plan.image.row_bytes} B, outputs are the caller's"
    console.print(
        f"RAM {plan.ram_bytes} B: workspace {plan.workspace_bytes} B, {kept}stack {plan.stack_bytes} B{written}; "
        f"all parameters {plan.parameter_bytes} B; {border}",
        soft_wrap=True,
    )
    facts = [f"each run takes {plan.extents_text}"] if plan.symbols else []
    if plan.states:
        names = ", ".join(state.name for state in plan.states)
        facts.append(
            f"{names} survive{'s' if len(plan.states) == 1 else ''} runs: reset before each new sequence"
        )
    facts += [
        f"parameters {pool.name} are {pool.loading}"
        for pool in plan.pools.values()
        if pool.loading and pool.used_bytes
    ]
    if facts:
        console.print("; ".join(facts), soft_wrap=True, markup=False)
    if plan.narrowed is not None:
        console.print(f"constant channels: {plan.narrowed.text}", soft_wrap=True, markup=False)
    console.print(pools_table(plan))
    console.print(memories_table(plan))
    console.print(stack_table(plan))
    print_charts(plan, console)
    print_segments(plan, console)
    print_lanes(plan, console)
    console.print(largest_table(plan))
    console.print(steps_table(plan))


def print_charts(plan: Plan, console: Console) -> None:
    """One chart for each workspace pool that is used."""
    for pool in used_workspaces(plan):
        lines = chart(use_over_time(plan, pool), drawing_width(console), console.options.ascii_only)
        console.print()
        console.print("\n".join(lines), soft_wrap=True, markup=False)


def print_segments(plan: Plan, console: Console) -> None:
    """Which steps run together row by row, and what that saves; nothing where none do."""
    if not plan.segments:
        return
    plain = "no plan" if plan.plain_workspace_bytes is None else f"{plan.plain_workspace_bytes} B"
    columns = ("steps", ">turns", ">calls", ">rings", ">alive", ">if whole")
    rows = (
        (
            f"{segment.steps[0]}..{segment.steps[1]}",
            segment.num_turns,
            calls_of(plan, segment),
            len(segment.rings),
            segment.alive_bytes,
            segment.plain_alive_bytes,
        )
        for segment in plan.segments
    )
    title = f"Row by row (workspace {plan.workspace_bytes} B, {plain} without rows)"
    console.print(_table(title, columns, rows))


def print_lanes(plan: Plan, console: Console) -> None:
    """Who runs when, and what is handed over; nothing for one device."""
    drawn = lane_lines(plan, drawing_width(console), console.options.ascii_only)
    if drawn:
        console.print()
        console.print("\n".join(drawn), soft_wrap=True, markup=False)
        console.print(devices_table(plan))


def devices_table(plan: Plan) -> Table:
    """What each device does, in steps and bytes."""
    columns = ("device", ">steps", ">reads", ">writes", ">copies", ">copied")
    rows = (
        (
            lane.device,
            len(lane.steps),
            lane.read_bytes,
            lane.written_bytes,
            len(lane.copies),
            lane.copied_bytes,
        )
        for lane in lanes(plan)
    )
    return _table("Devices", columns, rows)


def _table(
    title: str, columns: Iterable[str], rows: Iterable[Iterable[object]], absent: str = "none"
) -> Table:
    """A table whose columns marked `>` are numbers, and where the text for what is absent stands for None."""
    table = Table(box=box.SIMPLE_HEAD, title=title, title_justify="left", title_style="bold")
    for column in columns:
        name = column.removeprefix(">")
        table.add_column(name, justify="right" if column != name else "left", overflow="fold")
    for row in rows:
        table.add_row(*(absent if cell is None else str(cell) for cell in row))
    return table


def pools_table(plan: Plan) -> Table:
    """How far each pool is filled, and how good that is."""
    columns = ("pool", "role", "from", ">used", ">capacity", ">lower bound", "evidence")
    figures = attrgetter("used_bytes", "capacity_bytes", "lower_bound_bytes")
    rows = (
        (pool.name, pool.role, pool.obtained_by or pool.provider, *figures(pool), evidence(pool))
        for pool in plan.pools.values()
    )
    return _table("Pools", columns, rows)


def memories_table(plan: Plan) -> Table:
    """What each memory holds."""
    state = ((">state", "state_bytes"),) if plan.states else ()
    columns, members = zip(
        ("memory", "name"),
        (">workspace", "workspace_bytes"),
        *state,
        (">parameters", "parameter_bytes"),
        (">stack", "stack_bytes"),
        (">free", "free_bytes"),
        strict=True,
    )
    figures = attrgetter(*members)
    return _table("Memories", columns, map(figures, use_by_memory(plan)))


def print_comparison(old: Plan, new: Plan, console: Console) -> None:
    """What differs between two bundles; one line if nothing does."""
    comparison = compare(old, new)
    if old.plan_hash == new.plan_hash:
        console.print("the plans are the same")
        return
    console.print(_changes_table("Totals", comparison.totals))
    for title, changes in (
        ("Pools that changed", comparison.pools),
        ("Memories that changed", comparison.memories),
        ("Buffers that changed, largest first", comparison.buffers[:NUM_CHANGES_SHOWN]),
    ):
        if changes:
            console.print(_changes_table(title, changes))
    hidden = len(comparison.buffers) - NUM_CHANGES_SHOWN
    if hidden > 0:
        console.print(f"and {hidden} more buffers; --json has all")
    if comparison.moved:
        console.print(_table("Buffers that moved", ("buffer", "old", "new"), comparison.moved))


def _changes_table(title: str, changes: tuple[Change, ...]) -> Table:
    rows = (
        (
            change.name,
            change.old_bytes,
            change.new_bytes,
            f"{growth:+d}" if (growth := change.growth_bytes) else 0,
        )
        for change in changes
    )
    return _table(title, ("", ">old", ">new", ">grew by"), rows, absent="-")


def evidence(pool: PlannedPool) -> str:
    """How far a pool's use is from what is proved to be needed."""
    if not pool.used_bytes:
        return "unused"
    if pool.optimal:
        return "optimal"
    return f"at most {pool.used_bytes - pool.lower_bound_bytes} B too many"


def stack_table(plan: Plan) -> Table:
    """The stack of each context, with the worst path of calls."""
    rows = (
        (context, stack.planned_bytes, stack.size_bytes, stack.limit_bytes, " > ".join(stack.path))
        for context, stack in plan.stack.items()
    )
    return _table("Stack", ("context", ">arrays", ">in all", ">limit", "worst path"), rows)


def largest_table(plan: Plan) -> Table:
    """The largest buffers, wherever they are."""
    shown = largest_first(plan)[:NUM_LARGEST]
    title = f"Largest buffers ({len(shown)} of {plan.num_buffers_text})"
    by_rows = ("rows kept",) if plan.segments else ()
    rows = (
        (b.name, b.size_bytes, *(rows_text(b) for _ in by_rows), place_text(b), steps_text(b)) for b in shown
    )
    return _table(title, ("buffer", ">bytes", *by_rows, "place", "steps"), rows)


def place_text(buffer: PlannedBuffer) -> str:
    """`dtcm+8000`, `stack of cpu`, `arena of dtcm` or `caller's input_1`."""
    place = buffer.place
    match place.kind:
        case PlaceKind.STACK:
            return f"stack of {place.name}"
        case PlaceKind.CALLER:
            return f"caller's {place.name}"
        case PlaceKind.ARENA:
            return f"arena of {place.name}"
        case _:
            return place.name if place.offset is None else f"{place.name}+{place.offset}"


def steps_text(buffer: PlannedBuffer) -> str:
    """`3..4`; nothing for what lives inside a kernel."""
    if buffer.first_step is None or buffer.last_step is None:
        return ""
    if buffer.first_step == buffer.last_step:
        return str(buffer.first_step)
    return f"{buffer.first_step}..{buffer.last_step}"


def steps_table(plan: Plan) -> Table:
    """Every step with the bytes that live during it; where there is a choice, who carries it out, and when."""
    uses = [use_over_time(plan, pool) for pool in used_workspaces(plan)]
    on_device = ("device",) if lanes(plan) else ()
    when = ("when",) if plan.loops or plan.branches else ()
    columns = (">step", *on_device, *when, "kernel", "operators", *(f">{use.pool.name} live" for use in uses))
    rows = (
        (
            step.index,
            *(step.device for _ in on_device),
            *("\n".join(plan.surroundings(step.index)) for _ in when),
            step.kernel.removeprefix(f"{plan.model}_"),
            " + ".join(step.operators),
            *(use.live_bytes[step.index] for use in uses),
        )
        for step in plan.steps
    )
    return _table("Steps", columns, rows)
