"""Two bundles side by side: what grew, what shrank, what is new and what is gone."""

from collections.abc import Mapping
from dataclasses import dataclass

from bytewright.record.plan import Plan, PlannedBuffer
from bytewright.report.by_memory import use_by_memory


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
    totals = (
        Change("RAM", old.ram_bytes, new.ram_bytes),
        Change("workspace", old.workspace_bytes, new.workspace_bytes),
        Change("parameters", old.parameter_bytes, new.parameter_bytes),
        Change("parameters in RAM", old.ram_parameter_bytes, new.ram_parameter_bytes),
        *_changes(
            {f"stack {name}": stack.size_bytes for name, stack in old.stack.items()},
            {f"stack {name}": stack.size_bytes for name, stack in new.stack.items()},
        ),
    )
    pools = _changes(
        {name: pool.used_bytes for name, pool in old.pools.items()},
        {name: pool.used_bytes for name, pool in new.pools.items()},
    )
    memories = _changes(
        {use.memory: use.used_bytes for use in use_by_memory(old)},
        {use.memory: use.used_bytes for use in use_by_memory(new)},
    )
    buffers = _changes(
        {name: buffer.size_bytes for name, buffer in old.buffers.items()},
        {name: buffer.size_bytes for name, buffer in new.buffers.items()},
    )
    by_growth = sorted(buffers, key=lambda change: (-abs(change.growth_bytes), change.name))
    return Comparison(
        totals,
        tuple(change for change in pools if change.has_changed),
        tuple(change for change in memories if change.has_changed),
        tuple(change for change in by_growth if change.has_changed),
        _moved(old.buffers, new.buffers),
    )


def _changes(old: Mapping[str, int], new: Mapping[str, int]) -> list[Change]:
    names = [*old, *(name for name in new if name not in old)]
    return [Change(name, old.get(name), new.get(name)) for name in names]


def _moved(
    old: Mapping[str, PlannedBuffer], new: Mapping[str, PlannedBuffer]
) -> tuple[tuple[str, str, str], ...]:
    found: list[tuple[str, str, str]] = []
    for name, before in old.items():
        after = new.get(name)
        if after is None or after.size_bytes != before.size_bytes:
            continue
        places = [f"{b.place.kind} {b.place.name}" for b in (before, after)]
        if places[0] != places[1]:
            found.append((name, places[0], places[1]))
    return tuple(found)


def comparison_document(comparison: Comparison) -> dict[str, object]:
    """The comparison as JSON."""

    def changes(items: tuple[Change, ...]) -> list[dict[str, object]]:
        return [
            {
                "name": c.name,
                "old_bytes": c.old_bytes,
                "new_bytes": c.new_bytes,
                "growth_bytes": c.growth_bytes,
            }
            for c in items
        ]

    return {
        "totals": changes(comparison.totals),
        "pools": changes(comparison.pools),
        "memories": changes(comparison.memories),
        "buffers": changes(comparison.buffers),
        "moved": [{"name": name, "old": old, "new": new} for name, old, new in comparison.moved],
    }
