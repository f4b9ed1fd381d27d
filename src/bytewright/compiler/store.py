"""From a lowered module to a place for every buffer: storage and planner, tried with what could save memory.

Two things change which buffers there are before any of them is placed: parts of others, which spare copies, and
segments of steps that run together row by row. Whether they pay is for the planner to say, so plans are compared.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from enum import Enum, auto
from functools import partial

from bytewright import ir
from bytewright.compiler.describe_segments import describe_segments
from bytewright.compiler.run_passes import Known, Runner
from bytewright.compiler.trial import Conditions, Trial
from bytewright.ir.analyses.clock import read_clock
from bytewright.ir.analyses.stack import Above, StackUse, calling_entries, limited, packed_entries, stack_uses
from bytewright.ir.walk import allocations
from bytewright.naming.entry_forms import form_of
from bytewright.naming.name_symbols import name_symbols
from bytewright.options import Pin, Rows
from bytewright.plan.problem import Problem
from bytewright.plan.request import DEFAULT_NODE_BUDGET
from bytewright.plan.solution import Solution, Status
from bytewright.plan.solve import solve
from bytewright.record.buffers import PlannedPart
from bytewright.scopes.attach_candidates import attach_candidates
from bytewright.scopes.check_addresses import check_addresses
from bytewright.scopes.check_scopes import check_scopes
from bytewright.storage.build_problem import (
    build_parameter_problem,
    build_workspace_problem,
    limit_parameters,
    limit_workspace,
)
from bytewright.storage.end_with_lines import end_with_lines
from bytewright.storage.find_overlaps import find_overlaps
from bytewright.storage.find_parts import Part, find_parts, places_of
from bytewright.storage.join_alignments import join_alignments
from bytewright.storage.make_arenas import make_arenas
from bytewright.storage.own_lines import own_lines
from bytewright.storage.own_names import own_names
from bytewright.storage.pin_buffers import pin_buffers
from bytewright.storage.place_io import place_io
from bytewright.storage.place_scratch import place_scratch
from bytewright.storage.rows.alive import Alive, alive_of
from bytewright.storage.rows.choose_segments import choose_segments
from bytewright.storage.rows.fuse_rows import fuse_rows
from bytewright.storage.rows.segment import Segment
from bytewright.storage.rows.steps import read_rows
from bytewright.storage.rows.take_rows import take_rows, taken_rows, without_segment
from bytewright.storage.share_requests import requests_by_call
from bytewright.storage.stored import Stored
from bytewright.storage.take_parts import take_parts
from bytewright.target.model import Target
from bytewright.target.variants import without_limits

# How often parts are tried: all at once first, then halves of those that did not pay.
MOST_TRIES = 12
# What each of the attempts may cost that look for a way out when a model does not fit: a fraction of a second.
REMEDY_NODES = 20_000


class Cut(Enum):
    """Which steps run together row by row.

    NONE: None.
    PEAK: Those of the cut that lowers the peak, where the plan needs less with them.
    EVERYWHERE: Those of the cut that keeps the least everywhere.
    """

    NONE = auto()
    PEAK = auto()
    EVERYWHERE = auto()


# What is tried for each way to ask. Sums of sizes choose segments, so the plan of one cut may need less than that of
# another whose sum is smaller: `auto` has both cuts planned.
CUTS = {
    Rows.OFF: (),
    Rows.AUTO: (Cut.PEAK, Cut.EVERYWHERE),
    Rows.MAX: (Cut.EVERYWHERE,),
}


@dataclass(frozen=True, slots=True)
class _Tried:
    """What came of some parts, with the segments that were best with them."""

    trial: Trial
    parts: tuple[Part, ...]
    segments: tuple[Segment, ...]


def store_smallest(
    module: ir.Module,
    run: Runner,
    conditions: Conditions,
    *,
    is_program: bool = False,
    node_budget: int = DEFAULT_NODE_BUDGET,
) -> Trial:
    """As `store`, without copies of what can be a part, and with steps that run together row by row, as was asked.

    Parts are taken where the workspaces need no more with them; segments where they need less, or as was asked. Each
    kind of segments has its parts chosen for itself, so what is said of the plan without is what comes of asking for
    it.

    Args:
        module: Lowered.
        run: Carries out the passes.
        conditions: What to store it for.
        is_program: Whether its steps are what somebody wrote, copies included, and no model's.
        node_budget: What the planner may spend.

    Raises:
        CompileError: The conditions contradict each other or the module.
    """
    run = replace(run, target=without_limits(run.target))  # no pass of this module reads limits
    # Whoever is shown passes is shown those of the result alone.
    quiet = replace(run, after_pass=None, known=run.known or Known())
    search = _Search(module, quiet, conditions, is_program, node_budget)
    best, described = search.best()
    described = replace(described, parts=search.planned(best.parts))
    if run.after_pass is None:
        return described
    seen = replace(run, progress=None)
    changed = search.by_rows(search.with_parts(best.parts, seen), best.segments, seen)
    shown = store(changed, seen, conditions, node_budget=node_budget)
    plain = described.plain_workspace_bytes
    return replace(shown, segments=described.segments, plain_workspace_bytes=plain, parts=described.parts)


@dataclass(slots=True)
class _Search:
    """One search; whoever follows progress is told of the first trial alone.

    Attributes:
        trials: What came of parts and segments that were tried.
    """

    module: ir.Module
    run: Runner
    conditions: Conditions
    is_program: bool
    node_budget: int
    trials: dict[tuple[tuple[Part, ...], tuple[tuple[int, int], ...]], Trial] = field(
        default_factory=dict[tuple[tuple[Part, ...], tuple[tuple[int, int], ...]], Trial]
    )

    @property
    def takes_rows(self) -> bool:
        """Whether the application hands over the input a few rows at a time."""
        return self.conditions.options.io is ir.Io.ROWS

    def best(self) -> tuple[_Tried, Trial]:
        """The smallest of what is tried, the first of equals; and its trial with its segments described."""
        plain = self.smallest(Cut.NONE)
        rows = self.conditions.options.rows
        found = [self.smallest(cut) for cut in CUTS[rows]]
        if rows is not Rows.MAX and not self.takes_rows:
            found.insert(0, plain)
        best = found[0]
        for tried in found[1:]:
            if tried.trial.is_smaller_than(best.trial):
                best = tried
        if rows is Rows.AUTO:
            best = self.without_needless(best)
        return best, self.described(best, plain.trial)

    def smallest(self, cut: Cut) -> _Tried:
        """The smallest with segments of a kind, of the parts that are tried."""
        best = self.tried((), cut)
        self.run = replace(self.run, progress=None)
        if best is None:
            raise without_segment(self.with_parts((), self.run))
        pending = [self.parts()]
        for _ in range(MOST_TRIES):
            if not pending or not pending[-1]:
                break
            own = pending.pop()
            tried = self.tried((*best.parts, *own), cut)
            if tried is not None and not best.trial.is_smaller_than(tried.trial):
                best = tried
            else:
                pending.extend(_halves(own))
        return best

    def without_needless(self, best: _Tried) -> _Tried:
        """The same without segments whose steps have room one by one, if the plan needs no more then."""
        alive = self.alive(best.parts)
        size = best.trial.workspace_bytes
        kept = tuple(
            segment
            for segment in best.segments
            if (self.takes_rows and segment.first == 0)
            or max(alive.peaks[segment.first : segment.end]) > size
        )
        if kept == best.segments:
            return best
        trial = self.trial(best.parts, kept)
        return best if best.trial.is_smaller_than(trial) else _Tried(trial, best.parts, kept)

    def described(self, best: _Tried, plain: Trial) -> Trial:
        """The trial of the best with what is said of its segments, beside the plan without any."""
        if not best.segments:
            return best.trial
        fused = self.by_rows(self.with_parts(best.parts, self.run), best.segments, self.run)
        segments = describe_segments(best.trial, fused, best.segments, self.alive(best.parts))
        plain_bytes = plain.workspace_bytes if plain.workspace.has_plan else None
        return replace(best.trial, segments=segments, plain_workspace_bytes=plain_bytes)

    def parts(self) -> tuple[Part, ...]:
        """All that could be parts. The rows that the application hands over stay in a ring of their own."""
        if self.is_program:
            return ()
        module, options = self.with_parts((), self.run), self.conditions.options
        ring = taken_rows(module) if self.takes_rows else None
        found = self.run.find(find_parts, module, without_limits(self.conditions.target), options.pins)
        return tuple(part for part in found if ring not in (part.name, part.within))

    def planned(self, parts: tuple[Part, ...]) -> dict[str, tuple[PlannedPart, ...]]:
        """What the plan says of parts, by the names of the buffers that hold them."""
        allocated = (allocation for entry in self.module.entries for allocation in allocations(entry))
        buffers = {allocation.buffer.name: allocation.buffer for allocation in allocated}
        found: dict[str, list[PlannedPart]] = {}
        for name, place in places_of(parts).items():
            first_byte = place.first * buffers[name].dtype.size_bytes
            part = PlannedPart(name, first_byte, ir.size_bytes(buffers[name]))
            found.setdefault(place.root, []).append(part)
        return {
            root: tuple(sorted(own, key=lambda part: (part.offset_bytes, part.name)))
            for root, own in found.items()
        }

    def with_parts(self, parts: tuple[Part, ...], run: Runner) -> ir.Module:
        """The module with a step that takes rows of the input, where they come one after another, and with parts."""
        module, options = self.module, self.conditions.options
        if self.takes_rows:
            module = run(name_symbols, run(take_rows, module, options), options.entry_form)
        return run(name_symbols, run(take_parts, module, parts), options.entry_form) if parts else module

    def by_rows(self, module: ir.Module, segments: tuple[Segment, ...], run: Runner) -> ir.Module:
        """The module with segments in loops over rows, and names in C for the kernels that were made for them."""
        if not segments:
            return module
        return run(name_symbols, run(fuse_rows, module, segments), self.conditions.options.entry_form)

    def trial(self, parts: tuple[Part, ...], segments: tuple[Segment, ...]) -> Trial:
        """What comes of parts and segments, which is found out once."""
        key = (parts, tuple((segment.first, segment.end) for segment in segments))
        if key not in self.trials:
            module = self.by_rows(self.with_parts(parts, self.run), segments, self.run)
            self.trials[key] = store(module, self.run, self.conditions, node_budget=self.node_budget)
        return self.trials[key]

    def tried(self, parts: tuple[Part, ...], cut: Cut) -> _Tried | None:
        """What comes of parts; None if rows have to be taken from the input, and no segment can take them."""
        plain = _Tried(self.trial(parts, ()), parts, ())
        if cut is Cut.NONE:
            return plain
        segments = self.segments(parts, everywhere=cut is Cut.EVERYWHERE)
        if not segments:
            return None if self.takes_rows else plain
        by_rows = _Tried(self.trial(parts, segments), parts, segments)
        is_taken = self.takes_rows or cut is Cut.EVERYWHERE or by_rows.trial.is_smaller_than(plain.trial)
        return by_rows if is_taken else plain

    def alive(self, parts: tuple[Part, ...]) -> Alive:
        """What is alive while the module with parts runs, without segments; sizes of pools do not change it."""
        module, trial = self.with_parts(parts, self.run), self.trial(parts, ())
        find = partial(alive_of, module, trial.stored.timeline, trial.stored.workspace)
        return self.run.answer(find, alive_of, module, trial.stored.module)

    def segments(self, parts: tuple[Part, ...], *, everywhere: bool) -> tuple[Segment, ...]:
        """Those of the cut that lowers the peak, or of the one everywhere; sizes of pools change neither."""
        module = self.with_parts(parts, self.run)
        how = taken_rows(module) if self.takes_rows else None, everywhere
        find = partial(_segments, module, self.alive(parts), *how)
        return self.run.answer(find, _segments, module, self.trial(parts, ()).stored.module, *how)


def _segments(module: ir.Module, alive: Alive, taken: str | None, everywhere: bool) -> tuple[Segment, ...]:
    program = read_rows(module, taken)
    return choose_segments(program, alive, everywhere=everywhere)


def _halves(parts: tuple[Part, ...]) -> Iterator[tuple[Part, ...]]:
    """Two halves of parts of several steps, the first one last; those of one step belong together."""
    steps = list(dict.fromkeys(part.step for part in parts))
    if len(steps) > 1:
        first = set(steps[: len(steps) // 2])
        yield tuple(part for part in parts if part.step not in first)
        yield tuple(part for part in parts if part.step in first)


@dataclass(frozen=True, slots=True)
class _Placed:
    """A module whose scratch is on the stack, whatever limit that has, or in the entry.

    Attributes:
        aligned: The module before that, its alignments joined.
        above: What runs above the entry.
        stack: What the stacks need.
    """

    module: ir.Module
    aligned: ir.Module
    above: tuple[Above, ...]
    stack: tuple[StackUse, ...]


@dataclass(frozen=True, slots=True)
class _Decided:
    """A module at stage STORED, but for its arenas.

    Attributes:
        requests_memory: Whether there is scratch that is requested at run time.
    """

    module: ir.Module
    requests_memory: bool


def store(
    module: ir.Module, run: Runner, conditions: Conditions, *, node_budget: int = DEFAULT_NODE_BUDGET
) -> Trial:
    """Decides every allocation of a lowered module, and plans what goes to pools; whether it fits is in the trial.

    Storage is remembered by what it reads: limits of stacks where they are exceeded, places of inputs and outputs,
    pins, and sizes of pools where arenas for requests are made. Sizes of pools reach the planner alone otherwise, so a
    search that tries many of them costs plans and no passes.

    Raises:
        CompileError: The conditions contradict each other or the module.
    """
    target, options = conditions.target, conditions.options
    run = replace(run, target=run.same(without_limits(target)))
    run.begin("storage")  # stack or pool, for each allocation
    how = options.io, options.entry_form
    placed = run.answer(partial(_placed, module, run, *how), _placed, module, run.target, *how)
    on_stack = placed.module
    if any(use.excess_bytes for use in limited(placed.stack, target)):
        on_stack = run(place_scratch, placed.aligned, replace(target, pools=()), placed.above)
    pins = options.pins
    decided = run.answer(partial(_decided, on_stack, run, pins), _decided, on_stack, run.target, pins)
    run.begin("plan")  # offsets
    how = target if decided.requests_memory else run.target, placed.above
    stored = run.answer(partial(_stored, decided.module, run, *how), _stored, decided.module, *how)
    parameter_problem = limit_parameters(stored.parameters, stored.module, target)
    parameters = _solved(parameter_problem, run, options.solver, node_budget)
    workspace_problem = limit_workspace(stored.workspace, target)
    # Beside parameters without a plan the workspace need not be small: any plan will do.
    budgets = (node_budget,) if parameters.has_plan else (min(REMEDY_NODES, node_budget), node_budget)
    workspace = _solved(workspace_problem, run, options.solver, *budgets)
    stack = limited(stored.stack, target)
    stored = replace(stored, stack=stack, workspace=workspace_problem, parameters=parameter_problem)
    return Trial(conditions, stored, workspace, end_with_lines(stored.module, target, parameters))


def _solved(problem: Problem, run: Runner, solver: str, *node_budgets: int) -> Solution:
    """What the planner makes of it with the first budget that settles whether there is a plan, or else the last.

    Why there is none is for whoever refuses it to ask (`refuse.py`).
    """
    solution = Solution(Status.UNKNOWN)
    for node_budget in node_budgets:
        find = partial(solve, problem, solver=solver, node_budget=node_budget, explain=False)
        solution = run.answer(find, solve, problem, solver, node_budget)
        if solution.status is not Status.UNKNOWN:
            break
    return solution


def _placed(module: ir.Module, run: Runner, io: ir.Io, entry_form: ir.Form) -> _Placed:
    """The module whose scratch is on the stack where that may have it; no pool is looked at yet."""
    check_scopes(module, run.target)
    check_addresses(module, run.target)
    above = above_steps(module, run.target, io, entry_form)
    if io is ir.Io.WORKSPACE:
        module = run(place_io, module)
    machine = replace(run.target, pools=())
    aligned = run(join_alignments, module, machine)
    placed = run(place_scratch, aligned, machine, above)
    return _Placed(placed, aligned, above, stack_uses(placed, run.target, above))


def _decided(module: ir.Module, run: Runner, pins: tuple[Pin, ...]) -> _Decided:
    """The pools that each buffer may go to."""
    module = run(pin_buffers, module, run.target, pins)
    module = run(attach_candidates, module, run.target)
    module = run(own_lines, module, run.target)
    requests = (True for entry in module.entries for _ in requests_by_call(entry, module))
    return _Decided(module, any(requests))


def _stored(module: ir.Module, run: Runner, sized: Target, above: tuple[Above, ...]) -> Stored:
    """The module with arenas, which pools of these sizes have room for, and the problems."""
    module, target = run(make_arenas, own_names(module), sized), run.target  # scratch has names by now
    timeline = read_clock(module, target)
    overlaps = find_overlaps(module, timeline, target)
    return Stored(
        module,
        timeline,
        stack_uses(module, target, above),
        overlaps,
        build_workspace_problem(module, timeline, target, overlaps),
        build_parameter_problem(module, target),
    )


def above_steps(module: ir.Module, target: Target, io: ir.Io, entry_form: ir.Form) -> tuple[Above, ...]:
    """The functions of the C that run above those with the steps."""
    calling = form_of(io).calling
    if calling is not None:
        return calling_entries(module, target, calling)
    return packed_entries(module, target) if entry_form is ir.Form.PACKED else ()
