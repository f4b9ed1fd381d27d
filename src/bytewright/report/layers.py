"""The layers of a plan, as who trains or tunes a network asks for them: what each computes, keeps, and costs.

A layer is a step of the plan: a call of a kernel, with all operators that were fused into it. What runs row by row, or
in a loop whose turns are known, counts with all its calls, and both arms of a branch are there. Copies, and what an NPU
or kernels of a program do, have no multiply-accumulates that anybody knows.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from operator import attrgetter
from typing import Any

from bytewright.base.frozen_mapping import FrozenMapping
from bytewright.diagnostics import CompileError, compile_error
from bytewright.record.buffers import PlannedBuffer
from bytewright.record.entries import PlannedStep
from bytewright.record.plan import Plan
from bytewright.report.lanes import lanes
from bytewright.report.memory import use_over_time, used_workspaces
from bytewright.report.parameters import parameters_by_layer
from bytewright.report.places import written_by
from bytewright.show.view import ABSENT, Field, Table, View, body_of
from bytewright.target.mistake import closest, shown


@dataclass(frozen=True, slots=True)
class StepAmount:
    """What was measured of a step; of all devices together.

    Attributes:
        amount: In the unit of the measurement.
        cycles: None where they are not known.
    """

    amount: int | float
    cycles: int | None = None


@dataclass(frozen=True, slots=True)
class Costs:
    """A measurement of one run.

    Attributes:
        unit: What is counted: `instructions`, or `microseconds`.
        by_step: By the step's number.
        total: With what the entry does itself.
        on: Where it ran, in words.
    """

    unit: str
    by_step: Mapping[int, StepAmount]
    total: StepAmount
    on: str


@dataclass(frozen=True, slots=True)
class Layer:
    """A step with its figures.

    Attributes:
        step: None for all of them together.
        operators: Those of the model that became the step.
        tensor: What the model calls that which it writes first; empty where that is the compiler's own.
        shapes: Of its results; of a program that somebody wrote, of the buffers that it writes.
        macs: Multiply-accumulates of a run; None where nobody knows.
        parameter_bytes: Of constants that it is the first to read.
        live_bytes: In all workspaces while it runs.
        cost: Measured; None where nobody measured.
    """

    step: PlannedStep | None
    operators: tuple[str, ...]
    tensor: str
    shapes: tuple[tuple[int, ...], ...]
    macs: int | None
    parameter_bytes: int
    live_bytes: int
    cost: StepAmount | None = None

    @property
    def number(self) -> int:
        """The step's."""
        return -1 if self.step is None else self.step.index

    @property
    def name(self) -> str:
        """`2 (CONV_2D) + 3 (ADD)`, or the kernel where no operator is known."""
        kernel = "" if self.step is None else self.step.kernel
        return " + ".join(self.operators) or kernel

    @property
    def shape(self) -> str:
        """`1x48x48x8`."""
        return " + ".join("x".join(map(str, shape)) or "scalar" for shape in self.shapes)

    @property
    def amount(self) -> int | float | None:
        """In the unit of the measurement."""
        return None if self.cost is None else self.cost.amount

    @property
    def cycles(self) -> int | None:
        """Estimated or counted."""
        return None if self.cost is None else self.cost.cycles


@dataclass(frozen=True, slots=True)
class _Sorting:
    """How a column sorts: numbers with the largest first, everything else as it stands."""

    member: str
    is_falling: bool
    needs_costs: bool = False


_SORTINGS: Mapping[str, _Sorting] = FrozenMapping(
    {
        "step": _Sorting("number", is_falling=False),
        "layer": _Sorting("name", is_falling=False),
        "shape": _Sorting("shapes", is_falling=False),
        "macs": _Sorting("macs", is_falling=True),
        "parameters": _Sorting("parameter_bytes", is_falling=True),
        "live": _Sorting("live_bytes", is_falling=True),
        "instructions": _Sorting("amount", is_falling=True, needs_costs=True),
        "microseconds": _Sorting("amount", is_falling=True, needs_costs=True),
        "cycles": _Sorting("cycles", is_falling=True, needs_costs=True),
    }
)
COLUMNS = tuple(_SORTINGS)
CSV_COLUMNS = (
    *("step", "entry", "device", "when", "layer", "kernel", "tensor", "shape"),
    *("macs", "parameter_bytes", "live_bytes", "instructions", "microseconds", "cycles"),
)


def layers_of(plan: Plan, costs: Costs | None = None) -> tuple[Layer, ...]:
    """The layers in the order of the steps."""
    own = {each.step: each.size_bytes for each in parameters_by_layer(plan)}
    pools = [use_over_time(plan, pool).live_bytes for pool in used_workspaces(plan)]

    def layer(step: PlannedStep) -> Layer:
        written = written_by(plan, step)
        shapes = tuple(buffer.shape or () for buffer in written) if step.work is None else step.work.shapes
        return Layer(
            step,
            step.operators,
            _tensor(written, shapes),
            shapes,
            _macs(plan, step),
            own.get(step.index, 0),
            sum(live[step.index] for live in pools),
            None if costs is None else costs.by_step.get(step.index, StepAmount(0)),
        )

    return tuple(map(layer, plan.steps))


def _tensor(written: Sequence[PlannedBuffer], shapes: Sequence[tuple[int, ...]]) -> str:
    """The name of the first result: that of its buffer, or of the one part of it that has its size."""
    for buffer, shape in zip(written, shapes, strict=False):
        if not buffer.parts:
            return buffer.tensor or ""
        size_bytes = prod(shape) * (buffer.dtype.size_bytes if buffer.dtype is not None else 1)
        whole = [buffer.tensor] if size_bytes == buffer.size_bytes else []
        names = [*whole, *(part.tensor for part in buffer.parts if part.size_bytes == size_bytes)]
        return (names[0] or "") if len(names) == 1 else ""
    return ""


def _macs(plan: Plan, step: PlannedStep) -> int | None:
    """Those of a run; a segment has each row once, any other loop all of a step in each turn."""
    if step.work is None:
        return None
    if not step.work.macs or plan.is_by_rows(step.index):
        return step.work.macs
    around = [loop for loop in plan.loops if loop.has_step(step.index)]
    turns = [
        max(loop.end - loop.begin, 0)
        for loop in around
        if isinstance(loop.begin, int) and isinstance(loop.end, int)
    ]
    return prod((step.work.macs, *turns)) if len(turns) == len(around) else None


def require_column(column: str, *, is_measured: bool) -> None:
    """Refuses a column to sort by that there is not.

    Raises:
        CompileError: BW204, with the columns.
    """
    if column not in _SORTINGS:
        note = f"columns: {', '.join(COLUMNS)}"
        help_text = closest(column, COLUMNS)
        raise compile_error("BW204", f"layers have no column {shown(column)}", (note,), help_text, "--sort")
    if _SORTINGS[column].needs_costs and not is_measured:
        raise _not_measured(column, "nothing was run", "--profile")


def _require_unit(column: str, costs: Costs | None) -> None:
    """Refuses a column that another machine would have filled.

    Raises:
        CompileError: BW204, with the column that there is.
    """
    require_column(column, is_measured=costs is not None)
    if costs is None or not _SORTINGS[column].needs_costs:
        return
    if column != (costs.unit if column != "cycles" or costs.total.cycles is None else column):
        raise _not_measured(column, f"on {costs.on} {costs.unit} are counted", f"--sort {costs.unit}")


def _not_measured(column: str, why: str, help_text: str) -> CompileError:
    return compile_error(
        "BW204", f"there are no {column} to sort by: {why}", help=help_text, where=f"--sort {column}"
    )


def sorted_layers(found: Sequence[Layer], column: str) -> tuple[Layer, ...]:
    """By a column that `require_column` admits; what is not known comes last, and what is equal as the steps are."""
    sorting = _SORTINGS[column]
    member: Callable[[Layer], Any] = attrgetter(sorting.member)
    known = [layer for layer in found if member(layer) is not None]
    ordered = sorted(known, key=member, reverse=sorting.is_falling)
    return (*ordered, *(layer for layer in found if member(layer) is None))


def layers_view(plan: Plan, costs: Costs | None = None, column: str = "step") -> View:
    """The table of layers, sorted as asked, with all of them together below.

    Raises:
        CompileError: BW204 for a column that there is not.
    """
    _require_unit(column, costs)
    title = f"{plan.model} for {plan.target}"
    title += "" if costs is None else f": {costs.unit} on {costs.on}"
    return View(title, (_table(plan, layers_of(plan, costs), costs, column),))


def layers_table(view: View) -> Table:
    """The table of such a view."""
    return next(section for section in view.sections if isinstance(section, Table))


def _table(plan: Plan, found: Sequence[Layer], costs: Costs | None, column: str) -> Table:
    macs = [layer.macs for layer in found if layer.macs is not None]
    total = Layer(
        None,
        (),
        "",
        (),
        sum(macs) if macs else None,
        sum(layer.parameter_bytes for layer in found),
        max((layer.live_bytes for layer in found), default=0),
        None if costs is None else costs.total,
    )
    fields = (*_of_place(plan), *_of_figures(costs))
    bodies = (
        body_of("layers", sorted_layers(found, column), fields),
        body_of("total", [total], fields),
    )
    return Table("Layers", tuple(each.column for each in fields), bodies, none="")


def _of_place(plan: Plan) -> Iterator[Field[Layer]]:
    """Which layer a row is of."""

    def planned(layer: Layer, name: str) -> object:
        return ABSENT if layer.step is None else getattr(layer.step, name)

    def entry(layer: Layer) -> object:
        return ABSENT if layer.step is None else plan.entries[plan.entry_of(layer.step.index)].name

    def when(layer: Layer) -> object:
        return ABSENT if layer.step is None else plan.surroundings(layer.step.index)

    def when_text(layer: Layer) -> object:
        return ("row by row",) if plan.is_by_rows(layer.number) else when(layer)

    def text(layer: Layer, name: str) -> object:
        return ABSENT if layer.step is None else getattr(layer, name)

    has_devices, has_turns = bool(lanes(plan)), bool(plan.loops or plan.branches)
    yield Field("step", "step", lambda layer: planned(layer, "index"), is_number=True)
    yield Field("entry" if len(plan.entries) > 1 else None, "entry", entry)
    yield Field("device" if has_devices else None, "device", lambda layer: planned(layer, "device"))
    yield Field("when" if has_turns else None, None, when_text, joint="\n")
    yield Field(None, "when", when)
    yield Field("layer", "layer", lambda layer: "total" if layer.step is None else layer.name)
    yield Field(None, "operators", lambda layer: planned(layer, "operators"))
    yield Field(None, "kernel", lambda layer: planned(layer, "kernel"))
    yield Field(None, "tensor", lambda layer: text(layer, "tensor"))
    yield Field("shape", "shape", lambda layer: text(layer, "shape"))


def _of_figures(costs: Costs | None) -> Iterator[Field[Layer]]:
    """What a row counts."""

    def share(layer: Layer) -> str | None:
        whole = 0 if costs is None else costs.total.amount
        return f"{100 * layer.amount / whole:.1f}" if layer.amount is not None and whole else None

    yield Field("MACs", "macs", lambda layer: layer.macs, is_number=True)
    yield Field("parameters", "parameter_bytes", lambda layer: layer.parameter_bytes, is_number=True)
    yield Field("live", "live_bytes", lambda layer: layer.live_bytes, is_number=True)
    if costs is not None:
        yield Field(costs.unit, costs.unit, lambda layer: layer.amount, is_number=True)
        yield Field("%", None, share, is_number=True)
        has_cycles = costs.total.cycles is not None
        yield Field("cycles" if has_cycles else None, "cycles", lambda layer: layer.cycles, is_number=True)
