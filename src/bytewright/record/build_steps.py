"""The steps of a plan, from the calls of the entries."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from math import prod

from bytewright import ir
from bytewright.base.frozen_mapping import FrozenMapping
from bytewright.diagnostics import InternalError
from bytewright.ir.analyses.affine import Definitions
from bytewright.ir.analyses.arguments import buffer_arguments, scalar_arguments
from bytewright.ir.analyses.clock import Step, Timeline
from bytewright.ir.analyses.number_texts import NumberTexts, context_text, scaled
from bytewright.ir.analyses.row_program import rows_of_call
from bytewright.ir.walk import statements_of
from bytewright.plan.solution import Solution
from bytewright.record.entries import PlannedOverlap, PlannedSpan, PlannedStep
from bytewright.storage.choose_ways import ways_of
from bytewright.storage.find_overlaps import Direction, Overlap


def planned_steps(
    module: ir.Module,
    timeline: Timeline,
    symbols: Iterable[ir.Symbol],
    overlaps: tuple[Overlap, ...],
    workspace: Solution,
) -> tuple[PlannedStep, ...]:
    """All steps.

    Args:
        module: At stage PLANNED.
        timeline: Its clock.
        symbols: The extents that runs are given.
        overlaps: What may share bytes,
        workspace: and where the solution put that.
    """
    return _with_overlaps(_steps(module, timeline, symbols), overlaps, workspace)


def arena_of_requests(timeline: Timeline) -> dict[str, str]:
    """What is requested at run time, and the arena of each."""
    return {
        live.buffer.name: live.allocation.storage.arena
        for live in timeline.buffers
        if live.allocation is not None and live.allocation.storage.arena is not None
    }


def _steps(module: ir.Module, timeline: Timeline, symbols: Iterable[ir.Symbol]) -> Iterable[PlannedStep]:
    extents = {symbol.name: symbol for symbol in symbols}
    kernels = {kernel.name: kernel for kernel in module.kernels}
    arena_of = arena_of_requests(timeline)
    numbers_of = [_numbers(entry) for entry in module.entries]
    for step in timeline.steps:
        numbers = numbers_of[timeline.entry_of(step.index)]
        texts = NumberTexts(numbers, extents)
        kernel = kernels.get(step.call.callee)
        reads, writes, scratch = _accesses(step, kernel, arena_of)
        job = None if kernel is None or kernel.device == module.entry_device else kernel
        rows = rows_of_call(kernel, step.call, numbers)
        arguments = () if job is not None else tuple(region.buffer.name for region in _regions(step.call))
        yield PlannedStep(
            step.index,
            step.ticks,
            step.call.callee if kernel is None else kernel.symbol,
            step.device,
            step.call.operators,
            reads,
            writes,
            scratch,
            FrozenMapping(dict(step.needed)),
            is_packed := step.call.kind is ir.CallKind.CPACKED,
            len(step.call.arguments) if is_packed else 0,
            () if job is None else _spans(job, step.call, texts),
            _scalars(kernel, step.call, texts, is_job=job is not None)
            if job is not None or rows is None
            else (),
            arguments,
            () if job is not None else _starts(step.call, texts),
            rows=rows,
            template="" if kernel is None else kernel.template,
            remarks=() if kernel is None else kernel.remarks,
            work=step.call.work,
        )


def _with_overlaps(
    steps: Iterable[PlannedStep], overlaps: tuple[Overlap, ...], workspace: Solution
) -> tuple[PlannedStep, ...]:
    """The steps with the way that each runs, and what may share bytes because of it."""
    ways = ways_of(overlaps, workspace)

    def found(step: PlannedStep) -> PlannedStep:
        way = ways.get(step.index, (Direction.UP,))[0]
        pairs = tuple(
            PlannedOverlap(overlap.source, overlap.output, needed.below_bytes, needed.above_bytes)
            for overlap in overlaps
            if overlap.step == step.index and (needed := overlap.distances.get(way)) is not None
        )
        return replace(step, overlaps=pairs, runs_down=way is Direction.DOWN) if pairs else step

    return tuple(map(found, steps))


def _numbers(entry: ir.PrimFunc) -> Definitions:
    """What the numbers stand for that the entry has names for."""
    numbers = Definitions()
    for statement in statements_of(entry):
        if isinstance(statement, ir.Let):
            numbers.define(statement.variable, statement.value)
    return numbers


def _scalars(
    kernel: ir.PrimFunc | None, call: ir.Call, texts: NumberTexts, *, is_job: bool
) -> tuple[int | str, ...]:
    """What a kernel or an opaque function is given by value; a job that is none of C's has none."""
    if kernel is not None and kernel.job is not None:
        return ()
    found: list[int | str] = []
    for given in call.arguments:
        match given:
            case ir.ContextArgument():
                found.append(context_text(given.device))
            case ir.Region():
                pass
            case _:
                found.append(_known(texts.text(ir.cast(given, ir.DType.I32) if is_job else given)))
    return tuple(found)


def _regions(call: ir.Call) -> list[ir.Region]:
    return [argument for argument in call.arguments if isinstance(argument, ir.Region)]


def _starts(call: ir.Call, texts: NumberTexts) -> tuple[int | str, ...]:
    """The element of each buffer from which on a call is given it; none if each is 0."""
    starts = tuple(_known(texts.text(ir.region_index(region))) for region in _regions(call))
    return starts if any(starts) else ()


def _known(text: int | str | None) -> int | str:
    if text is None:
        raise InternalError("the entry passes what it reads of memory")
    return text


def _spans(kernel: ir.PrimFunc, call: ir.Call, texts: NumberTexts) -> tuple[PlannedSpan, ...]:
    """What a job consists of: for each parameter as many bytes as it asks for, and a copy's destination first."""
    largest: dict[str, int] = {}
    for parameter, argument in scalar_arguments(kernel, call):
        if isinstance(argument, ir.Const):
            largest[parameter.variable.name] = int(argument.value)
        elif isinstance(argument, ir.Var) and argument.name in texts.extents:
            largest[parameter.variable.name] = texts.extents[argument.name].upper
    spans: list[PlannedSpan] = []
    for parameter, region in buffer_arguments(kernel, call):
        index, shape = ir.region_index(region), ir.storage_shape(parameter.buffer)
        form, element_bytes = texts.names.form(index), region.buffer.dtype.size_bytes
        offset = (
            scaled(_known(texts.text(index)), element_bytes)
            if form is None
            else form.times(element_bytes).written
        )
        counts = [_largest(extent, largest) for extent in shape]
        known = [count for count in counts if count is not None]
        size_bytes = prod(known) * parameter.buffer.dtype.size_bytes if len(known) == len(counts) else None
        spans.append(PlannedSpan(region.buffer.name, offset, size_bytes, parameter.access))
    return tuple(reversed(spans) if kernel.job is ir.Job.COPY else spans)


def _largest(extent: ir.Extent, of_symbols: Mapping[str, int]) -> int | None:
    """The extent where its symbol has the value given; None if that is not known."""
    symbol = ir.symbol_in(extent)
    value = 0 if symbol is None else of_symbols.get(symbol.name)
    return None if value is None else ir.extent_at(extent, value)


def _accesses(
    step: Step, kernel: ir.PrimFunc | None, arena_of: dict[str, str]
) -> tuple[tuple[str, ...], ...]:
    """What the step reads, writes, and uses as scratch, arenas included: what the lifetimes follow from.

    An opaque call, of no kernel, may do all with what it is given.
    """
    if kernel is None:
        names = tuple(dict.fromkeys(a.buffer.name for a in step.call.arguments if isinstance(a, ir.Region)))
        return names, names, ()
    reads: list[str] = []
    writes: list[str] = []
    scratch: list[str] = []
    for parameter, argument in buffer_arguments(kernel, step.call):
        name = argument.buffer.name
        if parameter.role is ir.ParameterRole.SCRATCH:
            scratch += [name, arena_of[name]] if name in arena_of else [name]
            continue
        if parameter.access is not ir.Access.WRITE:
            reads.append(name)
        if parameter.access is not ir.Access.READ:
            writes.append(name)
    return tuple(tuple(dict.fromkeys(names)) for names in (reads, writes, scratch))
