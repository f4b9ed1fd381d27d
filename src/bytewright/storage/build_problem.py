"""The planning problems of a module: one over the clock for the workspace, one without time for the parameters."""

from __future__ import annotations

from bytewright.diagnostics import Collector
from bytewright.ir.address import size_bytes
from bytewright.ir.module import Module
from bytewright.plan import problem as plan
from bytewright.storage.candidates import candidate_pools
from bytewright.storage.clock import Timeline
from bytewright.target.model import PARAMETER_HEADER_BYTES, Pool, Provider, Target


def build_workspace_problem(timeline: Timeline, target: Target) -> plan.Problem:
    """Every allocation of the entry, kernels' scratch included.

    Raises:
        CompileError: BW301 for buffers that no pool may hold, all at once.
    """
    collector = Collector()
    buffers: list[plan.Buffer] = []
    for live in timeline.buffers:
        if live.allocation is None:
            continue
        with collector.catch():
            candidates = tuple(plan.Candidate(pool.name) for pool in candidate_pools(live, target))
            buffers.append(
                plan.Buffer(
                    live.buffer.name,
                    size_bytes(live.buffer),
                    ((live.lower, live.upper),),
                    live.buffer.alignment,
                    candidates=candidates,
                )
            )
    collector.stop_if_any()
    return plan.Problem(tuple(buffers), tuple(_pool(pool) for pool in target.workspace_pools))


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
        plan.Buffer(constant.buffer.name, len(constant.data.content), ((0, 1),), constant.buffer.alignment)
        for constant in module.constant_buffers
    )
    return plan.Problem((*headers, *buffers), tuple(_pool(pool) for pool in target.parameter_pools))


def _pool(pool: Pool) -> plan.Pool:
    """Offsets count from the pool's start, which the caller or the linker aligns; no more is known of it."""
    return plan.Pool(pool.name, pool.size_bytes)
