"""Where an output may lie over an input that dies: the contracts that the planner is given, and what they rest on.

A pair has a contract where the two coexist in one step alone, in which a kernel of ours reads the one and writes the
other: the distances are those of its body (`ir/analyses/overlap.py`), run upwards or downwards (`ir/downwards.py`).
Which way a step runs is decided after planning (`choose_ways.py`), so a contract offers the nearer side of both. Only
one way can be taken, though: where several inputs of a step die, one is chosen before: that which serves what pins say
of them, and of equals that in which they can share most.

Left out, and kept apart: inputs and outputs of the model while the application may touch them, which is before the
first step and after the last; what an opaque function or a device without code of ours touches, since nothing is
known of its order; what has cache lines of its own, since lines are cleaned and dropped as a whole, unless one device
alone touches both or the step is the entry's own; what is requested at run time; and pairs of different types that C
may assume to be apart, none of which consists of characters. Of a step with very many inputs that die, the largest
ones count.
"""

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from bytewright import ir
from bytewright.ir.analyses.arguments import buffer_arguments, scalar_arguments
from bytewright.ir.analyses.clock import LiveBuffer, Loop, Step, Timeline
from bytewright.ir.analyses.overlap import Distances, Given, overlap_distances
from bytewright.ir.analyses.ranges import range_of
from bytewright.ir.analyses.rows import ROW_END
from bytewright.ir.downwards import run_downwards
from bytewright.ir.remember import Remembered
from bytewright.ir.symbols import symbols_of
from bytewright.plan.problem import Contract
from bytewright.target.model import Target

# The parameters that a buffer is passed for, and the byte of it that each begins at, where that is known.
Passed = list[tuple[ir.BufferParameter, int | None]]
_CHARACTERS = (ir.DType.I8, ir.DType.U8)
# Inputs of one step that may be overlapped: for each of them the kernel is gone through, which may be as long as many.
MOST_SOURCES = 16


class Direction(StrEnum):
    """How a kernel runs through its rows and pixels."""

    UP = "up"
    DOWN = "down"


@dataclass(frozen=True, slots=True)
class Overlap:
    """An input of a step that dies there, and an output that is born there.

    Attributes:
        step: The step's number.
        source: The buffer that is read.
        output: The buffer that is written.
        distances: What each way needs, of those that the step may be run in.
    """

    step: int
    source: str
    output: str
    distances: Mapping[Direction, Distances]

    @property
    def contract(self) -> Contract:
        """What the planner may do: the nearer side of every way."""
        below = min(distances.below_bytes for distances in self.distances.values())
        above = min(distances.above_bytes for distances in self.distances.values())
        return Contract(self.source, self.output, below, above)

    def most_shared(self, way: Direction, live: Mapping[str, LiveBuffer]) -> int:
        """How many bytes the two have in common at most if the step runs that way; 0 if it cannot."""
        needed = self.distances.get(way)
        if needed is None:
            return 0
        sizes = (ir.size_bytes(live[name].buffer) for name in (self.source, self.output))
        return Contract(self.source, self.output, needed.below_bytes, needed.above_bytes).most_shared(*sizes)

    def allows(self, way: Direction, distance: int) -> bool:
        """Whether the output may begin so many bytes above the input, or below it if negative."""
        needed = self.distances.get(way)
        return needed is not None and (distance <= -needed.below_bytes or distance >= needed.above_bytes)


def planned_buffers(timeline: Timeline, target: Target) -> Iterator[tuple[LiveBuffer, ir.Allocate]]:
    """What the planner places of the entry's buffers: what it allocates, and does not request at run time."""
    for live in timeline.buffers:
        allocation = live.allocation
        if (
            allocation is not None
            and allocation.storage.arena is None
            and ir.lowering_pass(allocation.scope, target) is None
        ):
            yield live, allocation


def find_overlaps(module: ir.Module, timeline: Timeline, target: Target) -> tuple[Overlap, ...]:
    """All pairs of a module at stage STORED that may overlap, in the order of the steps."""
    live = {found.buffer.name: found for found, _ in planned_buffers(timeline, target)}
    kernels = {kernel.name: kernel for kernel in module.kernels}
    return tuple(
        overlap
        for step in timeline.steps
        for overlap in _of_step(step, live, timeline.loops, kernels, target)
    )


def _of_step(
    step: Step,
    live: Mapping[str, LiveBuffer],
    loops: tuple[Loop, ...],
    kernels: Mapping[str, ir.PrimFunc],
    target: Target,
) -> list[Overlap]:
    kernel = kernel_in_order(step.call, kernels, target)
    if kernel is None:
        return []
    passed = passed_by(kernel, step.call)
    around = [loop for loop in loops if loop.has_step(step.index)]
    own = {n: p for n, p in passed.items() if n in live and all(n in loop.inside for loop in around)}
    sources = _largest([name for name in own if _dies_in(step, live[name], own[name])], live)
    outputs = [name for name in own if _is_born_in(step, live[name], own[name])]
    scalars = scalars_of(kernel, step.call)
    ways = {
        (source, output): _within(
            distances_between(kernel, own[source], own[output], scalars, kernels), live[source], live[output]
        )
        for source in sources
        for output in outputs
        if live[source].upper > live[output].lower
        and _may_alias(own[source], own[output])
        and _may_share_lines(live[source], live[output], kernel.device == target.default_device_name)
    }
    found = [Overlap(step.index, *pair, distances) for pair, distances in ways.items() if distances]
    found = found if len(found) == 1 else _in_one_way(found, live)
    return [overlap for overlap in found if any(overlap.most_shared(way, live) for way in Direction)]


def kernel_in_order(call: ir.Call, kernels: Mapping[str, ir.PrimFunc], target: Target) -> ir.PrimFunc | None:
    """The kernel that a call runs, if it is one of ours, of whose order all is known."""
    kernel = kernels.get(call.callee)
    if kernel is None or kernel.is_opaque or kernel.job is not None:
        return None
    if call.kind is not ir.CallKind.EXTERN:  # another function may be called by that name
        return None
    return kernel if target.device(kernel.device).runs_c else None


def passed_by(kernel: ir.PrimFunc, call: ir.Call) -> dict[str, Passed]:
    """What each buffer of a call is passed for, by name."""
    passed: dict[str, Passed] = {}
    for parameter, region in buffer_arguments(kernel, call):
        passed.setdefault(region.buffer.name, []).append((parameter, _first_byte(region)))
    return passed


def _dies_in(step: Step, source: LiveBuffer, passed: Passed) -> bool:
    """Whether a step only reads a buffer, which nobody needs afterwards."""
    return (
        is_all(passed, ir.Access.READ)
        and source.upper <= step.ticks[1]
        and _border_of(source) is not ir.Border.OUTPUT
    )


def _is_born_in(step: Step, output: LiveBuffer, passed: Passed) -> bool:
    """Whether a step only writes a buffer, which nobody needs before."""
    return (
        is_all(passed, ir.Access.WRITE)
        and output.lower >= step.ticks[0]
        and _border_of(output) is not ir.Border.INPUT
    )


def _may_share_lines(source: LiveBuffer, output: LiveBuffer, is_on_entry: bool) -> bool:
    """Whether a cache line that both had is written back and dropped by one device at a time.

    A step of the entry's device is no job: what it reads was dropped from the cache before, and what it writes is
    written back after it, when nobody needs the other one any more. A driver may do both for a job in any order.
    """
    if is_on_entry or not (source.buffer.line_bytes or output.buffer.line_bytes):
        return True
    return len({touch.device for live in (source, output) for touch in live.touches}) == 1


def _largest(names: list[str], live: Mapping[str, LiveBuffer]) -> list[str]:
    """The largest of the buffers, in their order."""
    by_size = sorted(names, key=lambda name: -ir.size_bytes(live[name].buffer))
    kept = frozenset(by_size[:MOST_SOURCES])
    return [name for name in names if name in kept]


def _border_of(live: LiveBuffer) -> ir.Border | None:
    return None if live.allocation is None else live.allocation.storage.border


def _first_byte(region: ir.Region) -> int | None:
    """Where a region begins in its buffer; None if a loop decides."""
    index = ir.region_index(region)
    return int(index.value) * region.buffer.dtype.size_bytes if isinstance(index, ir.Const) else None


def is_all(passed: Passed, access: ir.Access) -> bool:
    """Whether a buffer is passed for activations alone, all of the same access, and it is known where they begin."""
    return all(
        parameter.access is access and parameter.role is ir.ParameterRole.ACTIVATION and first is not None
        for parameter, first in passed
    )


def _may_alias(first: Passed, second: Passed) -> bool:
    """Whether a C compiler has to think that the two may be the same memory."""
    types = [{parameter.buffer.dtype for parameter, _ in passed} for passed in (first, second)]
    return all(a is b or a in _CHARACTERS or b in _CHARACTERS for a in types[0] for b in types[1])


def scalars_of(kernel: ir.PrimFunc, call: ir.Call) -> dict[str, int]:
    """The scalar parameters of a kernel that a call gives whole numbers, and extents and ends at their greatest."""
    symbols, passed = symbols_of(kernel), list(scalar_arguments(kernel, call))
    found = {name: symbol.upper for name, symbol in symbols.items()}
    given = {
        argument.name: (symbols[parameter.name].lower, symbols[parameter.name].upper)
        for parameter, argument in passed
        if isinstance(argument, ir.Var) and parameter.name in symbols
    }
    for parameter, argument in passed:
        if isinstance(argument, ir.Const) and parameter.variable.dtype.is_integer:
            found[parameter.name] = int(argument.value)
        elif parameter.name == ROW_END and (known := range_of(argument, given)) is not None:
            found[parameter.name] = known[1]
    return found


def _within(
    distances: Mapping[Direction, Distances], source: LiveBuffer, output: LiveBuffer
) -> dict[Direction, Distances]:
    """The distances, none of which is more than what keeps the two apart anyway.

    Of an open extent they may be: what is read for the largest is counted for each.
    """
    most = Distances(ir.size_bytes(output.buffer), ir.size_bytes(source.buffer))
    return {
        way: Distances(min(each.below_bytes, most.below_bytes), min(each.above_bytes, most.above_bytes))
        for way, each in distances.items()
    }


_known: Remembered[dict[Hashable, dict[Direction, Distances]]] = Remembered()


def distances_between(
    kernel: ir.PrimFunc,
    source: Passed,
    output: Passed,
    scalars: Mapping[str, int],
    kernels: Mapping[str, ir.PrimFunc],
) -> dict[Direction, Distances]:
    """What each way needs in which the kernel can run."""
    given = {p.name: Given(False, first or 0) for p, first in source}
    given |= {p.name: Given(True, first or 0) for p, first in output}
    key = (tuple(given.items()), tuple(scalars.items()))
    known = _known.get(kernel)
    if known is None:
        _known.put(kernel, known := {})
    if key not in known:
        bodies = {Direction.UP: kernel, Direction.DOWN: run_downwards(kernel, scalars)}
        found = {
            way: overlap_distances(body, given, scalars, kernels)
            for way, body in bodies.items()
            if body is not None
        }
        known[key] = {way: distances for way, distances in found.items() if distances is not None}
    return known[key]


def _in_one_way(overlaps: list[Overlap], live: Mapping[str, LiveBuffer]) -> list[Overlap]:
    """The pairs of one step with the distances of one way alone.

    It is that which allows most of the distances that pins ask for, of these the one in which pairs share most,
    and of equals upwards.
    """

    def worth(way: Direction) -> tuple[int, int]:
        refused = sum(_is_pinned_against(overlap, way, live) for overlap in overlaps)
        return -refused, sum(overlap.most_shared(way, live) for overlap in overlaps)

    way = max(Direction, key=worth)  # the first of equals
    return [replace(o, distances={way: o.distances[way]}) for o in overlaps if way in o.distances]


def _is_pinned_against(overlap: Overlap, way: Direction, live: Mapping[str, LiveBuffer]) -> bool:
    """Whether both buffers have their places already, where the step cannot have them if it runs that way."""
    source, output = live[overlap.source], live[overlap.output]
    offsets = _pinned_offset(source, output), _pinned_offset(output, source)
    if offsets[0] is None or offsets[1] is None:
        return False
    distance = offsets[1] - offsets[0]
    is_apart = distance >= ir.size_bytes(source.buffer) or -distance >= ir.size_bytes(output.buffer)
    return not is_apart and not overlap.allows(way, distance)


def _pinned_offset(live: LiveBuffer, other: LiveBuffer) -> int | None:
    """Where a buffer begins, if it is pinned to an offset of the only pool that it and another one can be in."""
    storages = [each.allocation.storage for each in (live, other) if each.allocation is not None]
    if len({storage.candidates for storage in storages}) != 1 or len(storages[0].candidates or ()) != 1:
        return None
    return storages[0].pinned_offset
