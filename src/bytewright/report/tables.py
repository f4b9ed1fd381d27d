"""The report for people: tables, and the chart of memory over time."""

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from bytewright.record.plan import PlaceKind, Plan, PlannedBuffer, PlannedPool
from bytewright.report.by_memory import use_by_memory
from bytewright.report.chart import chart
from bytewright.report.compare import Change, compare
from bytewright.report.document import largest_first
from bytewright.report.memory import use_over_time, used_workspaces

NUM_LARGEST = 10
NUM_CHANGES_SHOWN = 20


def print_report(plan: Plan, console: Console) -> None:
    """Prints everything, from the total to the single step."""
    console.print(Text(f"{plan.model} for {plan.target}, bit for bit {plan.numerics}", style="bold"))
    written = f", parameters in RAM {plan.ram_parameter_bytes} B" if plan.ram_parameter_bytes else ""
    console.print(
        f"RAM {plan.ram_bytes} B: workspace {plan.workspace_bytes} B, stack {plan.stack_bytes} B{written}; "
        f"all parameters {plan.parameter_bytes} B; inputs and outputs {_border(plan)}",
        soft_wrap=True,
    )
    facts = [f"each run takes {plan.extents_text}"] if plan.symbols else []
    facts += [
        f"parameters {pool.name} are {pool.loading}"
        for pool in plan.pools.values()
        if pool.loading and pool.used_bytes
    ]
    if facts:
        console.print("; ".join(facts), soft_wrap=True, markup=False)
    console.print(pools_table(plan))
    console.print(memories_table(plan))
    console.print(stack_table(plan))
    print_charts(plan, console)
    console.print(largest_table(plan))
    console.print(steps_table(plan))


def _border(plan: Plan) -> str:
    return "are in the workspace" if plan.io_in_workspace else "are the caller's"


def print_charts(plan: Plan, console: Console) -> None:
    """One chart for each workspace pool that is used."""
    for pool in used_workspaces(plan):
        lines = chart(use_over_time(plan, pool), console.width, console.options.ascii_only)
        console.print()
        console.print("\n".join(lines), soft_wrap=True, markup=False)


def _table(title: str, *columns: str) -> Table:
    """A table whose columns marked `>` are numbers."""
    table = Table(box=box.SIMPLE_HEAD, title=title, title_justify="left", title_style="bold")
    for column in columns:
        name = column.removeprefix(">")
        table.add_column(name, justify="right" if column != name else "left", overflow="fold")
    return table


def pools_table(plan: Plan) -> Table:
    """How far each pool is filled, and how good that is."""
    table = _table("Pools", "pool", "role", "from", ">used", ">capacity", ">lower bound", "evidence")
    for pool in plan.pools.values():
        table.add_row(
            pool.name,
            pool.role,
            pool.provider,
            str(pool.used_bytes),
            _limit(pool.capacity_bytes),
            str(pool.lower_bound_bytes),
            evidence(pool),
        )
    return table


def memories_table(plan: Plan) -> Table:
    """What each memory holds."""
    table = _table("Memories", "memory", ">workspace", ">parameters", ">stack", ">free")
    for use in use_by_memory(plan):
        table.add_row(
            use.name,
            str(use.workspace_bytes),
            str(use.parameter_bytes),
            str(use.stack_bytes),
            _limit(use.free_bytes),
        )
    return table


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
        table = _table("Buffers that moved", "buffer", "old", "new")
        for row in comparison.moved:
            table.add_row(*row)
        console.print(table)


def _changes_table(title: str, changes: tuple[Change, ...]) -> Table:
    table = _table(title, "", ">old", ">new", ">grew by")
    for change in changes:
        figures = ("-" if value is None else str(value) for value in (change.old_bytes, change.new_bytes))
        table.add_row(change.name, *figures, f"{change.growth_bytes:+d}" if change.growth_bytes else "0")
    return table


def evidence(pool: PlannedPool) -> str:
    """How far a pool's use is from what is proved to be needed."""
    if not pool.used_bytes:
        return "unused"
    if pool.optimal:
        return "optimal"
    return f"at most {pool.used_bytes - pool.lower_bound_bytes} B too many"


def stack_table(plan: Plan) -> Table:
    """The stack of each context, with the worst path of calls."""
    table = _table("Stack", "context", ">arrays", ">in all", ">limit", "worst path")
    for context, stack in plan.stack.items():
        table.add_row(
            context,
            str(stack.planned_bytes),
            str(stack.size_bytes),
            _limit(stack.limit_bytes),
            " > ".join(stack.path),
        )
    return table


def largest_table(plan: Plan) -> Table:
    """The largest buffers, wherever they are."""
    num_buffers = len(plan.buffers)
    shown = largest_first(plan)[:NUM_LARGEST]
    table = _table(f"Largest buffers ({len(shown)} of {num_buffers})", "buffer", ">bytes", "place", "steps")
    for buffer in shown:
        table.add_row(buffer.name, str(buffer.size_bytes), place_text(buffer), steps_text(buffer))
    return table


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
    """Every step with the bytes that live during it."""
    uses = [use_over_time(plan, pool) for pool in used_workspaces(plan)]
    headings = [f">{use.pool.name} live" for use in uses]
    table = _table("Steps", ">step", "kernel", "operators", *headings)
    for step in plan.steps:
        kernel = step.kernel.removeprefix(f"{plan.model}_")
        live = [str(use.live_bytes[step.index]) for use in uses]
        table.add_row(str(step.index), kernel, " + ".join(step.operators), *live)
    return table


def _limit(size_bytes: int | None) -> str:
    return "none" if size_bytes is None else str(size_bytes)
