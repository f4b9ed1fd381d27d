"""Two bundles side by side: what grew, what shrank, what is new and what is gone."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass

from bytewright.record.plan import Plan, PlannedBuffer
from bytewright.report.by_memory import use_by_memory

_TOTALS = {
    "RAM": "ram_bytes",
    "workspace": "workspace_bytes",
    "parameters": "parameter_bytes",
    "parameters in RAM": "ram_parameter_bytes",
}


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


def compare(old: Plan, new: Plan) -> Comparison:
    """Compares two plans, which may be of different models or targets."""

    def changes(figures: Callable[[Plan], dict[str, int]]) -> list[Change]:
        before, after = figures(old), figures(new)
        return [Change(name, before.get(name), after.get(name)) for name in before | after]

    totals = (
        *changes(lambda plan: {name: getattr(plan, member) for name, member in _TOTALS.items()}),
        *changes(lambda plan: {f"stack {name}": stack.size_bytes for name, stack in plan.stack.items()}),
    )
    pools = changes(lambda plan: {name: pool.used_bytes for name, pool in plan.pools.items()})
    memories = changes(lambda plan: {use.name: use.used_bytes for use in use_by_memory(plan)})
    buffers = changes(lambda plan: {name: buffer.size_bytes for name, buffer in plan.buffers.items()})
    by_growth = sorted(buffers, key=lambda change: (-abs(change.growth_bytes), change.name))

    def different(found: list[Change]) -> tuple[Change, ...]:
        return tuple(change for change in found if change.has_changed)

    moved = _moved(old.buffers, new.buffers)
    return Comparison(totals, different(pools), different(memories), different(by_growth), moved)


def _moved(
    old: Mapping[str, PlannedBuffer], new: Mapping[str, PlannedBuffer]
) -> tuple[tuple[str, str, str], ...]:
    same_size = [name for name in old if name in new and old[name].size_bytes == new[name].size_bytes]
    places = (
        (name, *(f"{b.place.kind} {b.place.name}" for b in (old[name], new[name]))) for name in same_size
    )
    return tuple((name, before, after) for name, before, after in places if before != after)


def comparison_document(comparison: Comparison) -> dict[str, object]:
    """The comparison as JSON."""

    def figures(changes: tuple[Change, ...]) -> list[dict[str, object]]:
        return [{**asdict(change), "growth_bytes": change.growth_bytes} for change in changes]

    return {
        "totals": figures(comparison.totals),
        "pools": figures(comparison.pools),
        "memories": figures(comparison.memories),
        "buffers": figures(comparison.buffers),
        "moved": [{"name": name, "old": old, "new": new} for name, old, new in comparison.moved],
    }
