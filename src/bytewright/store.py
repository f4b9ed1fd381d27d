"""From a lowered module to a place for every buffer: storage and planner, tried with what could save memory.

Two things change which buffers there are before any of them is placed: parts of others, which spare copies, and
segments of steps that run together row by row. Whether they pay is for the planner to say, so plans are compared.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from bytewright import ir
from bytewright.codegen.name_symbols import name_symbols
from bytewright.ir.analyses.clock import read_clock
from bytewright.ir.analyses.stack import Above, packed_entry, pushing_entry, stack_uses
from bytewright.ir.walk import allocations
from bytewright.options import Options, Rows
from bytewright.place.attach_candidates import attach_candidates
from bytewright.place.check_addresses import check_addresses
from bytewright.place.check_scopes import check_scopes
from bytewright.plan.request import DEFAULT_NODE_BUDGET
from bytewright.plan.solve import solve
from bytewright.record.plan import PlannedPart
from bytewright.remedy.describe_segments import describe_segments
from bytewright.remedy.trial import Conditions, Trial
from bytewright.run_passes import Runner
from bytewright.storage.build_problem import build_parameter_problem, build_workspace_problem
from bytewright.storage.end_with_lines import end_with_lines
from bytewright.storage.find_overlaps import find_overlaps
from bytewright.storage.find_parts import Part, find_parts, places_of
from bytewright.storage.join_alignments import join_alignments
from bytewright.storage.make_arenas import make_arenas
from bytewright.storage.own_lines import own_lines
from bytewright.storage.pin_buffers import pin_buffers
from bytewright.storage.place_io import place_io
from bytewright.storage.place_scratch import place_scratch
from bytewright.storage.rows.alive import alive_of
from bytewright.storage.rows.choose_segments import choose_segments
from bytewright.storage.rows.fuse_rows import fuse_rows
from bytewright.storage.rows.segment import Segment
from bytewright.storage.rows.steps import read_rows
from bytewright.storage.rows.take_rows import refusal, take_rows, taken_rows
from bytewright.storage.take_parts import take_parts
from bytewright.target.model import Target

# How often parts are tried: all at once first, then halves of those that did not pay.
MOST_TRIES = 12


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

    Parts are taken where the workspaces need no more with them; segments where they need less, or as was asked.

    Args:
        module: Lowered.
        run: Carries out the passes.
        conditions: What to store it for.
        is_program: Whether its steps are what somebody wrote, copies included, and no model's.
        node_budget: What the planner may spend.

    Raises:
        CompileError: The conditions contradict each other or the module.
    """
    # Whoever is shown passes is shown those of the result alone.
    search = _Search(module, replace(run, after_pass=None), conditions, is_program, node_budget)
    best = search.best()
    parts = search.planned(best.parts)
    if run.after_pass is None:
        return replace(best.trial, parts=parts)
    seen = replace(run, progress=None)
    changed = search.by_rows(search.with_parts(best.parts, seen), best.segments, seen)
    shown = store(changed, seen, conditions, node_budget=node_budget)
    plain = best.trial.plain_workspace_bytes
    return replace(shown, segments=best.trial.segments, plain_workspace_bytes=plain, parts=parts)


@dataclass(slots=True)
class _Search:
    """One search; whoever follows progress is told of the first trial alone."""

    module: ir.Module
    run: Runner
    conditions: Conditions
    is_program: bool
    node_budget: int

    def best(self) -> _Tried:
        """The smallest of what is tried."""
        best = self.tried(())
        self.run = replace(self.run, progress=None)
        if best is None:
            raise refusal(self.module, "no layers at its front keep fewer rows than all")
        pending = [self.parts()]
        for _ in range(MOST_TRIES):
            if not pending or not pending[-1]:
                break
            own = pending.pop()
            tried = self.tried((*best.parts, *own))
            if tried is not None and not best.trial.is_smaller_than(tried.trial):
                best = tried
            else:
                pending.extend(_halves(own))
        return best

    def parts(self) -> tuple[Part, ...]:
        """All that could be parts. The rows that the application hands over stay in a ring of their own."""
        if self.is_program:
            return ()
        module, options = self.with_parts((), self.run), self.conditions.options
        ring = taken_rows(module) if options.io is ir.Io.ROWS else None
        found = find_parts(module, self.conditions.target, options.pins)
        return tuple(part for part in found if ring not in (part.name, part.within))

    def planned(self, parts: tuple[Part, ...]) -> dict[str, tuple[PlannedPart, ...]]:
        """What the plan says of parts, by the names of the buffers that hold them."""
        buffers = {allocation.buffer.name: allocation.buffer for allocation in allocations(self.module.main)}
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
        if options.io is ir.Io.ROWS:
            module = run(name_symbols, run(take_rows, module, options), options.entry_form)
        return run(name_symbols, run(take_parts, module, parts), options.entry_form) if parts else module

    def by_rows(self, module: ir.Module, segments: tuple[Segment, ...], run: Runner) -> ir.Module:
        """The module with segments in loops over rows, and names in C for the kernels that were made for them."""
        if not segments:
            return module
        return run(name_symbols, run(fuse_rows, module, segments), self.conditions.options.entry_form)

    def tried(self, parts: tuple[Part, ...]) -> _Tried | None:
        """What comes of parts; None if rows have to be taken from the input, and no segment can take them."""
        options = self.conditions.options
        module = self.with_parts(parts, self.run)
        trial = store(module, self.run, self.conditions, node_budget=self.node_budget)
        if options.rows is Rows.OFF:
            return _Tried(trial, parts, ())
        takes_rows, quiet = options.io is ir.Io.ROWS, replace(self.run, progress=None)
        alive = alive_of(module.main, trial.timeline, trial.workspace_problem)
        program = read_rows(module, taken_rows(module) if takes_rows else None)
        segments = choose_segments(program, alive, everywhere=options.rows is Rows.MAX)
        if not segments:
            return None if takes_rows else _Tried(trial, parts, ())
        fused = self.by_rows(module, segments, quiet)
        by_rows = store(fused, quiet, self.conditions, node_budget=self.node_budget)
        if takes_rows or options.rows is Rows.MAX or by_rows.is_smaller_than(trial):
            described = describe_segments(by_rows, fused.main, segments, trial, alive)
            return _Tried(described, parts, segments)
        return _Tried(trial, parts, ())


def _halves(parts: tuple[Part, ...]) -> Iterator[tuple[Part, ...]]:
    """Two halves of parts of several steps, the first one last; those of one step belong together."""
    steps = list(dict.fromkeys(part.step for part in parts))
    if len(steps) > 1:
        first = set(steps[: len(steps) // 2])
        yield tuple(part for part in parts if part.step not in first)
        yield tuple(part for part in parts if part.step in first)


def store(
    module: ir.Module, run: Runner, conditions: Conditions, *, node_budget: int = DEFAULT_NODE_BUDGET
) -> Trial:
    """Decides every allocation of a lowered module, and plans what goes to pools; whether it fits is in the trial.

    Raises:
        CompileError: The conditions contradict each other or the module.
    """
    target, options = conditions.target, conditions.options
    run = replace(run, target=target)
    run.begin("storage")  # stack or pool, for each allocation
    check_scopes(module, target)
    check_addresses(module, target)
    if options.io is ir.Io.WORKSPACE:
        module = run(place_io, module)
    module = run(join_alignments, module, target)
    above = above_steps(module, target, options)
    module = run(place_scratch, module, target, above)
    module = run(pin_buffers, module, target, options.pins)
    module = run(attach_candidates, module, target)
    module = run(own_lines, module, target)
    module = run(make_arenas, module, target)
    timeline = read_clock(module, target)
    stack = stack_uses(module, target, above)
    run.begin("plan")  # offsets
    overlaps = find_overlaps(module, timeline, target)
    workspace_problem = build_workspace_problem(module, timeline, target, overlaps)
    workspace = solve(workspace_problem, solver=options.solver, node_budget=node_budget)
    parameter_problem = build_parameter_problem(module, target)
    parameters = solve(parameter_problem, solver=options.solver, node_budget=node_budget)
    parameters = end_with_lines(module, target, parameters)
    return Trial(
        conditions,
        module,
        timeline,
        stack,
        overlaps,
        workspace_problem,
        workspace,
        parameter_problem,
        parameters,
    )


def above_steps(module: ir.Module, target: Target, options: Options) -> Above | None:
    """The function of the C that runs above the one with the steps, if there is one."""
    if options.io is ir.Io.ROWS:
        return pushing_entry(module, target)
    return packed_entry(module, target) if options.entry_form is ir.Form.PACKED else None
