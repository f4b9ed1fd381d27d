"""The planning problems of a module: one over the clock for the workspace, one without time for the parameters."""

from __future__ import annotations

from bytewright.diagnostics import InternalError
from bytewright.ir.address import size_bytes
from bytewright.ir.expr import Buffer
from bytewright.ir.module import Module
from bytewright.ir.prim import CANDIDATE_POOLS, Allocate
from bytewright.plan import problem as plan
from bytewright.storage.clock import Timeline
from bytewright.target.model import PARAMETER_HEADER_BYTES, Pool, Provider, Target


def build_workspace_problem(timeline: Timeline, target: Target) -> plan.Problem:
    """Every allocation of the entry, kernels' scratch included, with the candidates that it carries."""
    buffers = tuple(
        plan.Buffer(
            live.buffer.name,
            size_bytes(live.buffer),
            ((live.lower, live.upper),),
            live.buffer.alignment,
            candidates=tuple(plan.Candidate(pool) for pool in _candidates(live.allocation)),
        )
        for live in timeline.buffers
        if live.allocation is not None
    )
    return plan.Problem(buffers, tuple(_pool(pool) for pool in target.workspace_pools))


def _candidates(allocation: Allocate) -> tuple[str, ...]:
    pools = allocation.annotation(CANDIDATE_POOLS)
    if not isinstance(pools, tuple):
        raise InternalError(f"'{allocation.buffer.name}' has no candidate pools")
    return pools


def build_parameter_problem(module: Module, target: Target) -> plan.Problem:
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
    buffers = tuple(
        plan.Buffer(
            constant.buffer.name,
            len(constant.data.content),
            ((0, 1),),
            constant.buffer.alignment,
            candidates=_pinned(constant.buffer),
        )
        for constant in module.constant_buffers
    )
    return plan.Problem((*headers, *buffers), tuple(_pool(pool) for pool in target.parameter_pools))


def _pinned(buffer: Buffer) -> tuple[plan.Candidate, ...]:
    """The pool that the scope names; none for a free choice among all."""
    pool = buffer.scope.pool if buffer.scope is not None else None
    return (plan.Candidate(pool),) if pool is not None else ()


def _pool(pool: Pool) -> plan.Pool:
    """Offsets count from the pool's start, which the caller or the linker aligns; no more is known of it."""
    return plan.Pool(pool.name, pool.size_bytes)
