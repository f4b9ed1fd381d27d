"""Why a model does not fit: by how many bytes, at which step, because of which buffers, and what would help.

The help is found by trying: each pool in turn is given as much as the planner then uses, and what is printed was
planned with success.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from bytewright.diagnostics import CompileError, Diagnostic
from bytewright.plan.problem import Buffer, Problem
from bytewright.plan.solution import Shortage, Solution, Status
from bytewright.storage.clock import Timeline
from bytewright.target.model import Role, Target
from bytewright.target.options import Overrides, ResizeOption, apply_overrides
from bytewright.target.size import format_size

Solve = Callable[[Problem], Solution]
MAX_BUFFERS_SHOWN = 6


def refuse(
    problem: Problem, solution: Solution, timeline: Timeline | None, target: Target, solve: Solve
) -> CompileError:
    """The error for a problem that has no plan.

    Args:
        problem: What was asked for.
        solution: The planner's answer, without a plan.
        timeline: Tells steps from ticks; None for parameters, which are alive always.
        target: The target, for what its memories could still give.
        solve: Solves a problem, as the compile would.
    """
    help_text = _working_option(problem, target, solve)
    if solution.status is not Status.INFEASIBLE:
        diagnostic = solution.diagnose()
        return CompileError(replace(diagnostic, help=help_text or diagnostic.help))
    conflict = [buffer for buffer in problem.buffers if buffer.name in set(solution.infeasible_set)]
    notes = [_pool_note(shortage, timeline) for shortage in solution.shortages]
    if len(conflict) == 1:
        message = f"{_described(conflict[0], timeline)} cannot be placed"
    else:
        total = sum(buffer.size_bytes for buffer in conflict)
        message = f"{len(conflict)} buffers, {total} B, cannot be placed together"
        largest = sorted(conflict, key=lambda buffer: (-buffer.size_bytes, buffer.name))
        notes.extend(_described(buffer, timeline) for buffer in largest[:MAX_BUFFERS_SHOWN])
        if len(largest) > MAX_BUFFERS_SHOWN:
            notes.append(f"and {len(largest) - MAX_BUFFERS_SHOWN} more")
        if solution.irreducible:
            notes.append("without any one of them the others can be placed")
    return CompileError(Diagnostic("BW301", message, tuple(notes), help_text))


def _described(buffer: Buffer, timeline: Timeline | None) -> str:
    """`'conv2d_3/out' (36864 B, steps 4..6)`."""
    if timeline is None:
        return f"'{buffer.name}' ({buffer.size_bytes} B)"
    first, last = timeline.steps_alive(buffer.name)
    steps = f"step {first}" if first == last else f"steps {first}..{last}"
    return f"'{buffer.name}' ({buffer.size_bytes} B, {steps})"


def _pool_note(shortage: Shortage, timeline: Timeline | None) -> str:
    missing = shortage.needed_bytes - shortage.capacity_bytes
    step = _step_at(timeline, shortage.tick)
    when = "" if step is None else f" at step {step}"
    text = f"{shortage.pool}  {format_size(shortage.capacity_bytes)}, {shortage.needed_bytes} B needed{when}"
    return f"{text}: {missing} B too few" if missing > 0 else text


def _step_at(timeline: Timeline | None, tick: int | None) -> int | None:
    if timeline is None or tick is None:
        return None
    return next((step.index for step in timeline.steps if step.ticks[0] <= tick < step.ticks[1]), None)


def _working_option(problem: Problem, target: Target, solve: Solve) -> str | None:
    """`--resize POOL=SIZE` for the pool that needs the fewest bytes more, if the hardware has them."""
    best: tuple[int, str] | None = None
    for pool in problem.pools:
        if pool.capacity_bytes is None:
            continue
        pools = tuple(replace(p, capacity_bytes=None) if p is pool else p for p in problem.pools)
        solution = solve(replace(problem, pools=pools))
        if not solution.has_plan:
            continue
        needed = solution.use_of[pool.name].top_bytes
        more = needed - pool.capacity_bytes
        if _is_possible(target, pool.name, needed) and (best is None or more < best[0]):
            best = (more, f"--resize {pool.name}={needed}")
    return best[1] if best else _other_memory(problem, target)


def _is_possible(target: Target, pool: str, size_bytes: int) -> bool:
    try:
        apply_overrides(target, Overrides(resize=(ResizeOption(pool, size_bytes),)))
    except CompileError:
        return False
    return True


def _other_memory(problem: Problem, target: Target) -> str | None:
    """A memory without a pool of the role that would hold everything, as one more option."""
    roles = {target.pool(pool.name).role for pool in problem.pools}
    role = Role.PARAMETERS if Role.PARAMETERS in roles else Role.WORKSPACE
    total = sum(buffer.size_bytes for buffer in problem.buffers)
    for memory in target.memories:
        reached = target.default_device.reaches(memory.name)
        large = memory.size_bytes is None or memory.size_bytes >= total
        if (
            reached
            and large
            and (memory.is_writable or role is Role.PARAMETERS)
            and not target.pools_in(memory.name)
        ):
            option = "workspace" if role is Role.WORKSPACE else "parameters"
            return f"--{option} {memory.name}"
    return None
