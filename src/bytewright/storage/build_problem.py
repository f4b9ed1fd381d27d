"""The planning problems of a module: one over the clock for the workspace, one without time for the parameters.

What it costs to have a buffer in a pool is counted, not guessed: the bytes that one inference reads and writes of it,
times the memory's cost per byte, which counts as at least one more than that of the pool preferred before it. So
where the preferred pool is too small for all, it gets the buffers that are touched most per byte.

Sizes are those of buffers with the rest of their last cache line, where they have lines of their own (`own_lines.py`).
Offsets count from the pool's start, which the caller or the linker aligns; no more is known of it.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from bytewright import ir
from bytewright.diagnostics import CompileError, Diagnostic, InternalError, compile_error
from bytewright.ir.analyses.clock import Timeline
from bytewright.ir.analyses.lines import parameter_lines
from bytewright.ir.analyses.traffic import Traffic, TrafficByName, entry_traffic
from bytewright.ir.definitions import Definition
from bytewright.ir.remember import Remembered
from bytewright.plan import problem as plan
from bytewright.storage.find_overlaps import Overlap, planned_buffers
from bytewright.target.model import PARAMETER_HEADER_BYTES, Provider, Target

# What one inference moves of a buffer, beyond which it counts as that: no machine would end, and sums stay in 64 bits.
MAX_TRAFFIC_BYTES = 1 << 40


def build_workspace_problem(
    module: ir.Module, timeline: Timeline, target: Target, overlaps: Iterable[Overlap] = ()
) -> plan.Problem:
    """Every allocation of the entry, kernels' scratch included, with the candidates that it carries.

    What is requested at run time lies in its arena, which has all of its traffic. What `overlaps` names may share
    bytes as its kernels allow. An input that is only copied to a block of another device, or an output that is only
    copied from one, costs nothing where it may be a part of the block's bytes.
    """
    traffic = _traffic(module)
    for request in (live.allocation for live in timeline.buffers):
        if request is not None and request.storage.arena is not None:
            _refuse_offset(request)
            own = traffic.get(request.buffer.name, Traffic())
            traffic[request.storage.arena] = traffic.get(request.storage.arena, Traffic()) + own
    overlaps, free = tuple(overlaps), dict[str, tuple[str, ...]]()
    for name, block in _copied_to_blocks(timeline, overlaps):
        free[name] = block.storage.candidates or ()
    buffers = tuple(
        _without_cost(
            _buffer(allocation, ir.extent_bytes(live.buffer), (live.lower, live.upper), traffic, target),
            free.get(live.buffer.name, ()),
        )
        for live, allocation in planned_buffers(timeline, target)
    )
    return _problem(buffers, _workspace_pools(target), tuple(overlap.contract for overlap in overlaps))


def limit_workspace(problem: plan.Problem, target: Target) -> plan.Problem:
    """The problem of the workspace with the capacities that a target's pools have, which may be others."""
    return _problem(problem.buffers, _workspace_pools(target), problem.contracts)


def _workspace_pools(target: Target) -> tuple[plan.Pool, ...]:
    """Those of what the entry allocates: workspaces, and what survives runs."""
    return tuple(plan.Pool(pool.name, target.capacity_bytes(pool)) for pool in target.entry_pools)


def _copied_to_blocks(timeline: Timeline, overlaps: tuple[Overlap, ...]) -> Iterator[tuple[str, ir.Allocate]]:
    """Inputs and outputs that the entry's device alone touches, in one step, and what other devices have of them."""
    live, steps = {found.buffer.name: found for found in timeline.buffers}, timeline.steps_touching()
    for overlap in overlaps:
        for name, other in ((overlap.source, overlap.output), (overlap.output, overlap.source)):
            allocation, block = live[name].allocation, live[other].allocation
            devices = [{touch.device for touch in live[each].touches} for each in (name, other)]
            is_copied = steps[name] == (overlap.step, overlap.step) and devices[0] < devices[1]
            if (
                allocation is not None
                and allocation.storage.border is not None
                and block is not None
                and is_copied
            ):
                yield name, block


def _without_cost(buffer: plan.Buffer, pools: tuple[str, ...]) -> plan.Buffer:
    """A buffer that costs nothing in some pools."""
    if not pools:
        return buffer
    priced = (replace(each, cost=0) if each.pool in pools else each for each in buffer.candidates)
    return replace(buffer, candidates=tuple(priced))


def _buffer(
    definition: Definition, num_bytes: int, live: tuple[int, int], traffic: TrafficByName, target: Target
) -> plan.Buffer:
    """What is defined so, with its candidates and their costs."""
    buffer, storage = definition.buffer, definition.storage
    if storage.candidates is None:
        raise InternalError(f"'{buffer.name}' has no candidate pools")
    priced = _priced(storage.candidates, traffic.get(buffer.name, Traffic()), target)
    offset = storage.pinned_offset
    return plan.Buffer(
        buffer.name, num_bytes, (live,), buffer.alignment, fixed_offset=offset, candidates=priced
    )


def _refuse_offset(request: ir.Allocate) -> None:
    """What is requested at run time lies where its arena has room."""
    offset = request.storage.pinned_offset
    if offset is not None:
        message = f"'{request.buffer.name}' cannot be pinned to offset {offset}: it is requested at run time"
        raise compile_error("BW204", message, help="pin it to a pool, without an offset")


# Of an entry that was last asked about, with the kernels that it had.
_TRAFFIC: Remembered[tuple[tuple[ir.PrimFunc, ...], TrafficByName]] = Remembered()


def _traffic(module: ir.Module) -> TrafficByName:
    """Found out once for both problems; a copy, which the caller may add to."""
    total: TrafficByName = {}
    for entry in module.entries:
        known = _TRAFFIC.get(entry)
        if known is None or known[0] is not module.kernels:
            found = entry_traffic(entry, {kernel.name: kernel for kernel in module.kernels})
            known = (module.kernels, found)
            _TRAFFIC.put(entry, known)
        for name, traffic in known[1].items():
            total[name] = total.get(name, Traffic()) + traffic
    return total


def _priced(pools: tuple[str, ...], traffic: Traffic, target: Target) -> tuple[plan.Candidate, ...]:
    """The candidates with their costs, in bytes of the cheapest memory; no pool is cheaper than one before it."""
    candidates: list[plan.Candidate] = []
    read_cost = write_cost = 0
    read_bytes, written_bytes = (
        min(n, MAX_TRAFFIC_BYTES) for n in (traffic.read_bytes, traffic.written_bytes)
    )
    for name in pools:
        memory = target.memory_of(name)
        read_cost = max(memory.read_cost, read_cost + 1)
        write_cost = max(memory.write_cost, write_cost + 1)
        cost = read_bytes * read_cost + written_bytes * write_cost
        candidates.append(plan.Candidate(name, cost))
    return tuple(candidates)


def build_parameter_problem(module: ir.Module, target: Target) -> plan.Problem:
    """Every constant: all live at all times. A pool from the caller begins with a header."""
    headers = tuple(
        plan.Buffer(
            f"header of {pool.name}",
            PARAMETER_HEADER_BYTES,
            ((0, 1),),
            fixed_offset=0,
            candidates=(plan.Candidate(pool.name),),
        )
        for pool in target.parameter_pools
        if pool.provider is Provider.CALLER
    )
    traffic = _traffic(module)
    buffers = tuple(
        _buffer(constant, len(constant.data.content), (0, 1), traffic, target)
        for constant in planned_constants(module, target)
    )
    return _problem((*headers, *buffers), _parameter_pools(module, target))


def planned_constants(module: ir.Module, target: Target) -> Iterator[ir.ConstantBuffer]:
    """Those that parameter pools hold, whole and each for itself; storage adds none and takes none away."""
    return (
        constant for constant in module.constant_buffers if ir.lowering_pass(constant.scope, target) is None
    )


def limit_parameters(problem: plan.Problem, module: ir.Module, target: Target) -> plan.Problem:
    """The problem of the module's parameters with the capacities that a target's pools have, which may be others."""
    return _problem(problem.buffers, _parameter_pools(module, target))


def _problem(
    buffers: tuple[plan.Buffer, ...],
    pools: tuple[plan.Pool, ...],
    contracts: tuple[plan.Contract, ...] = (),
) -> plan.Problem:
    """The problem; offsets of pins that no plan can keep are the user's mistake, and no fault of a problem."""
    try:
        return plan.Problem(buffers, pools, contracts)
    except CompileError as error:
        if any(diagnostic.code != "BW603" for diagnostic in error.diagnostics):
            raise
        raise CompileError(
            Diagnostic("BW204", f"pins to offsets contradict each other: {diagnostic.message}")
            for diagnostic in error.diagnostics
        ) from None


def _parameter_pools(module: ir.Module, target: Target) -> tuple[plan.Pool, ...]:
    """The pools, some of which may have to end with a cache line, and then have whole lines of room."""
    lines = parameter_lines(module, target)
    pools: list[plan.Pool] = []
    for pool in target.parameter_pools:
        line_bytes, capacity = lines.get(pool.name, 1), target.capacity_bytes(pool)
        pools.append(plan.Pool(pool.name, None if capacity is None else capacity // line_bytes * line_bytes))
    return tuple(pools)
