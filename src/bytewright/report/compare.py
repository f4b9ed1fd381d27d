"""Two bundles side by side: what grew, what shrank, what is new and what is gone."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from bytewright import ir
from bytewright.elf.sizes import SectionSizes
from bytewright.record.buffers import PlannedBuffer
from bytewright.record.plan import Plan
from bytewright.report.by_memory import border_bytes, use_by_memory
from bytewright.report.code import Code
from bytewright.report.compare_layers import (
    Both,
    costs_table,
    layers_comparison,
    percent_text,
    require_one_unit,
)
from bytewright.report.layers import Costs, layers_of
from bytewright.report.report_view import all_pool_charts
from bytewright.show.view import Band, Beside, Chart, Field, Table, View, keys, table_of

NUM_CHANGES_SHOWN = 20

_TOTALS = {
    "RAM": "ram_bytes",
    "workspace": "workspace_bytes",
    "parameters": "parameter_bytes",
    "parameters in RAM": "ram_parameter_bytes",
}


@dataclass(frozen=True, slots=True)
class Side:
    """A bundle that is compared.

    Attributes:
        name: What people call it.
        code: What its C takes, if somebody compiled it.
        costs: What its layers cost, if somebody ran it.
    """

    plan: Plan
    name: str = "this"
    code: Code | None = None
    costs: Costs | None = None

    @property
    def sizes(self) -> SectionSizes | None:
        """Of its C, if they are known."""
        return None if self.code is None else self.code.sizes


@dataclass(frozen=True, slots=True)
class Change:
    """One figure in both bundles; None where one of them does not have it."""

    name: str
    old_bytes: int | None
    new_bytes: int | None

    @property
    def growth_bytes(self) -> int:
        """Bytes more in the new bundle."""
        return (self.new_bytes or 0) - (self.old_bytes or 0)

    @property
    def growth_percent(self) -> float | None:
        """The same of a hundred in the old one; None where that has nothing."""
        return Both(self.old_bytes, self.new_bytes).percent

    @property
    def has_changed(self) -> bool:
        """Whether the figures differ, or only one is there."""
        return self.old_bytes != self.new_bytes


@dataclass(frozen=True, slots=True)
class Comparison:
    """What differs between two bundles.

    Attributes:
        totals: RAM, parameters, stacks, always all of them.
        pools: Pools by name, those that changed.
        memories: Memories by name, those whose use changed.
        buffers: Buffers whose size changed or that only one bundle has, the largest change first.
        moved: Buffers of unchanged size in another pool: (name, old place, new place).
    """

    totals: tuple[Change, ...]
    pools: tuple[Change, ...]
    memories: tuple[Change, ...]
    buffers: tuple[Change, ...]
    moved: tuple[tuple[str, str, str], ...]


def compare(old: Side, new: Side) -> Comparison:
    """Compares two bundles, which may be of different models or targets."""

    def changes(figures: Callable[[Side], Mapping[str, int]]) -> list[Change]:
        before, after = figures(old), figures(new)
        return [Change(name, before.get(name), after.get(name)) for name in {**before, **after}]

    def of_plans(figures: Callable[[Plan], Mapping[str, int]]) -> list[Change]:
        return changes(lambda side: figures(side.plan))

    totals = (
        *of_plans(lambda plan: {name: getattr(plan, member) for name, member in _TOTALS.items()}),
        *changes(lambda side: {"code": side.sizes.all_bytes} if side.sizes is not None else {}),
        *of_plans(lambda plan: {side.value + "s": border_bytes(plan, side) for side in ir.SIDES}),
        *of_plans(lambda plan: {f"stack {name}": stack.size_bytes for name, stack in plan.stack.items()}),
    )
    pools = of_plans(lambda plan: {name: pool.used_bytes for name, pool in plan.pools.items()})
    memories = changes(
        lambda side: {use.name: use.used_bytes for use in use_by_memory(side.plan, side.sizes)}
    )
    buffers = of_plans(lambda plan: {name: buffer.size_bytes for name, buffer in plan.buffers.items()})
    by_growth = sorted(buffers, key=lambda change: (-abs(change.growth_bytes), change.name))

    def different(found: list[Change]) -> tuple[Change, ...]:
        return tuple(change for change in found if change.has_changed)

    moved = _moved(old.plan.buffers, new.plan.buffers)
    return Comparison(totals, different(pools), different(memories), different(by_growth), moved)


def _moved(
    old: Mapping[str, PlannedBuffer], new: Mapping[str, PlannedBuffer]
) -> tuple[tuple[str, str, str], ...]:
    same_size = [name for name in old if name in new and old[name].size_bytes == new[name].size_bytes]
    places = (
        (name, *(f"{b.place.kind} {b.place.name}" for b in (old[name], new[name]))) for name in same_size
    )
    return tuple((name, before, after) for name, before, after in places if before != after)


def comparison_view(old: Side, new: Side, *, has_layers: bool = False) -> View:
    """What differs between two bundles; people read one line if nothing does.

    Args:
        old: A bundle,
        new: and what it became.
        has_layers: Whether all layers are compared too, and not the plans alone.

    Raises:
        CompileError: BW204 for costs in different units.
    """
    require_one_unit(old.costs, new.costs, (old.name, new.name))
    comparison = compare(old, new)
    is_same = old.plan.plan_hash == new.plan.plan_hash and old.sizes == new.sizes
    names = f"{old.name} and {new.name}"

    def changes(title: str, key: str, found: tuple[Change, ...]) -> Table:
        return table_of(
            None if is_same else title,
            key,
            found,
            Field("", "name", lambda change: change.name),
            Field("old", "old_bytes", lambda change: change.old_bytes, is_number=True),
            Field("new", "new_bytes", lambda change: change.new_bytes, is_number=True),
            Field("grew by", None, _growth, is_number=True),
            Field("%", None, lambda change: percent_text(change.growth_percent), is_number=True),
            *keys(("growth_bytes", "growth_percent")),
            none="-",
            most_rows=NUM_CHANGES_SHOWN if key == "buffers" else None,
            hidden="and {} more buffers; --json has all",
        )

    moved = table_of(
        None if is_same else "Buffers that moved",
        "moved",
        comparison.moved,
        Field("buffer", "name", lambda move: move[0]),
        Field("old", "old", lambda move: move[1]),
        Field("new", "new", lambda move: move[2]),
    )
    return View(
        f"{names}: the plans are the same" if is_same else names,
        (
            *(() if is_same else _side_by_side(old.plan, new.plan)),
            changes("Totals", "totals", comparison.totals),
            changes("Pools that changed", "pools", comparison.pools),
            changes("Memories that changed", "memories", comparison.memories),
            changes("Buffers that changed, largest first", "buffers", comparison.buffers),
            moved,
            *costs_table(old.costs, new.costs),
            *([_layers(old, new)] if has_layers or old.costs is not None else []),
        ),
    )


def _layers(old: Side, new: Side) -> Table:
    return layers_comparison(layers_of(old.plan, old.costs), layers_of(new.plan, new.costs), new.costs)


def _side_by_side(old: Plan, new: Plan) -> tuple[Beside, ...]:
    """The pictures of each pool of working memory or of state in both, which have one scale upwards."""
    before, after = ({chart.name: chart for chart in all_pool_charts(plan)} for plan in (old, new))

    def scaled(which: str, charts: Mapping[str, Chart], name: str) -> Chart | None:
        if name not in charts:
            return None
        both = [found[name] for found in (before, after) if name in found]
        scale = max(block.end for chart in both for block in chart.blocks)
        bands = {band.name: Band(band.name, (), band.sign) for chart in both for band in chart.bands}
        bands |= {band.name: band for band in charts[name].bands}
        title = f"{which}: {charts[name].title}"
        return replace(charts[name], title=title, scale=scale, bands=tuple(bands.values()))

    return tuple(Beside(scaled("old", before, name), scaled("new", after, name)) for name in before | after)


def _growth(change: Change) -> str:
    return f"{change.growth_bytes:+d}" if change.growth_bytes else "0"
