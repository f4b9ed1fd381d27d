"""Layers of two bundles side by side: what each computes, keeps and costs there, in per cent of the old one.

Layers match that are made of the same operators of the model; where several are, in their order.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from bytewright.diagnostics import compile_error
from bytewright.report.layers import Costs, Layer
from bytewright.show.view import Field, Table, table_of

Number = int | float


@dataclass(frozen=True, slots=True)
class Both:
    """One figure in both; None where one of them does not have it."""

    old: Number | None
    new: Number | None

    @property
    def percent(self) -> float | None:
        """How much it grew, of a hundred in the old one; None where that has nothing."""
        return round(100 * (self.new - self.old) / self.old, 1) if self.old and self.new is not None else None

    @property
    def document(self) -> dict[str, Number | None]:
        """For programs."""
        return {"old": self.old, "new": self.new, "growth_percent": self.percent}


@dataclass(frozen=True, slots=True)
class _Pair:
    """A layer in both; None where one of them does not have it."""

    name: str
    old: Layer | None
    new: Layer | None

    def figure(self, member: str) -> Both:
        """One of its figures."""
        old, new = (None if layer is None else getattr(layer, member) for layer in (self.old, self.new))
        return Both(old, new)


def percent_text(percent: float | None) -> str | None:
    """`+4.2`, for people."""
    return None if percent is None else f"{percent:+.1f}" if percent else "0.0"


def require_one_unit(old: Costs | None, new: Costs | None, names: tuple[str, str]) -> None:
    """Refuses costs that cannot be compared.

    Raises:
        CompileError: BW204, with what each is counted in.
    """
    if old is not None and new is not None and old.unit != new.unit:
        message = f"'{names[0]}' is counted in {old.unit}, and '{names[1]}' in {new.unit}"
        raise compile_error("BW204", message, help="--profile-on host")


def costs_table(old: Costs | None, new: Costs | None) -> tuple[Table, ...]:
    """What a run costs; nothing where nobody measured."""
    if old is None or new is None:
        return ()
    found = [(old.unit, Both(old.total.amount, new.total.amount))]
    if old.total.cycles is not None and new.total.cycles is not None:
        found.append(("cycles", Both(old.total.cycles, new.total.cycles)))
    table = table_of(
        "Costs of a run",
        "costs",
        found,
        Field("", "name", lambda each: each[0]),
        Field("old", "old", lambda each: each[1].old, is_number=True),
        Field("new", "new", lambda each: each[1].new, is_number=True),
        Field("%", None, lambda each: percent_text(each[1].percent), is_number=True),
        Field(None, "growth_percent", lambda each: each[1].percent),
        none="-",
    )
    return (table,)


def layers_comparison(old: Sequence[Layer], new: Sequence[Layer], costs: Costs | None) -> Table:
    """A row for each layer that either has."""
    before, after = _by_name(old), _by_name(new)
    pairs = [_Pair(key[0], before.get(key), after.get(key)) for key in {**before, **after}]
    figures = [("MACs", "macs", "macs"), ("parameters", "parameter_bytes", "parameter_bytes")]
    figures += [("live", "live_bytes", "live_bytes")]
    if costs is not None:
        figures.append((costs.unit, costs.unit, "amount"))
        figures += [("cycles", "cycles", "cycles")] if costs.total.cycles is not None else []
    fields = [each for figure in figures for each in _fields(pairs, *figure)]
    title = "Layers" if any(each.heading for each in fields) else None
    return table_of(
        title, "layers", pairs, Field("layer", "layer", lambda pair: pair.name), *fields, none="-"
    )


def _by_name(layers: Iterable[Layer]) -> dict[tuple[str, int], Layer]:
    """By their operators, and how many with the same ones there are before."""
    found: dict[tuple[str, int], Layer] = {}
    counts: dict[str, int] = {}
    for layer in layers:
        number = counts.get(layer.name, 0)
        counts[layer.name] = number + 1
        found[layer.name, number] = layer
    return found


def _fields(pairs: Iterable[_Pair], heading: str, key: str, member: str) -> Iterator[Field[_Pair]]:
    """Both figures and what one grew by; people are not told of figures that are the same in all layers."""
    both = [pair.figure(member) for pair in pairs]
    if any(each.old != each.new for each in both):
        yield Field(f"{heading} old", None, lambda pair: pair.figure(member).old, is_number=True)
        yield Field("new", None, lambda pair: pair.figure(member).new, is_number=True)
        yield Field("%", None, lambda pair: percent_text(pair.figure(member).percent), is_number=True)
    yield Field(None, key, lambda pair: pair.figure(member).document)
