"""The report for programs: everything that the tables show, as JSON."""

from __future__ import annotations

from typing import Any

from bytewright.record.plan import Plan, PlannedBuffer
from bytewright.report.by_memory import use_by_memory
from bytewright.report.memory import use_over_time
from bytewright.target.model import Role


def report_document(plan: Plan) -> dict[str, Any]:
    """Figures of the whole, pools with their use by step, stacks, buffers largest first, and steps."""
    return {
        "model": plan.model,
        "target": plan.target,
        "numerics": plan.numerics,
        "symbols": [
            {"name": symbol.name, "lower": symbol.lower, "upper": symbol.upper} for symbol in plan.symbols
        ],
        "plan_hash": plan.plan_hash,
        "ram_bytes": plan.ram_bytes,
        "workspace_bytes": plan.workspace_bytes,
        "stack_bytes": plan.stack_bytes,
        "parameter_bytes": plan.parameter_bytes,
        "ram_parameter_bytes": plan.ram_parameter_bytes,
        "pools": [_pool(plan, name) for name in plan.pools],
        "memories": [
            {
                "name": use.memory,
                "size_bytes": use.size_bytes,
                "workspace_bytes": use.workspace_bytes,
                "parameter_bytes": use.parameter_bytes,
                "stack_bytes": use.stack_bytes,
                "free_bytes": use.free_bytes,
            }
            for use in use_by_memory(plan)
        ],
        "stack": {
            context: {
                "planned_bytes": stack.planned_bytes,
                "size_bytes": stack.size_bytes,
                "limit_bytes": stack.limit_bytes,
                "path": list(stack.path),
            }
            for context, stack in plan.stack.items()
        },
        "buffers": [buffer_document(buffer) for buffer in largest_first(plan)],
        "steps": [
            {
                "index": step.index,
                "kernel": step.kernel,
                "device": step.device,
                "operators": list(step.operators),
            }
            for step in plan.steps
        ],
    }


def largest_first(plan: Plan) -> list[PlannedBuffer]:
    """All buffers, largest first, and by name where sizes are equal."""
    return sorted(plan.buffers.values(), key=lambda buffer: (-buffer.size_bytes, buffer.name))


def buffer_document(buffer: PlannedBuffer) -> dict[str, Any]:
    """One buffer."""
    return {
        "name": buffer.name,
        "role": buffer.role,
        "size_bytes": buffer.size_bytes,
        "place": {
            "kind": buffer.place.kind,
            "name": buffer.place.name,
            "offset": buffer.place.offset,
        },
        "first_step": buffer.first_step,
        "last_step": buffer.last_step,
    }


def _pool(plan: Plan, name: str) -> dict[str, Any]:
    pool = plan.pools[name]
    document: dict[str, Any] = {
        "name": pool.name,
        "memory": pool.memory,
        "role": pool.role,
        "provider": pool.provider,
        "capacity_bytes": pool.capacity_bytes,
        "used_bytes": pool.used_bytes,
        "lower_bound_bytes": pool.lower_bound_bytes,
        "gap_bytes": pool.used_bytes - pool.lower_bound_bytes,
        "optimal": pool.optimal,
    }
    if pool.role is Role.PARAMETERS:
        document |= {"load": pool.load, "load_memory": pool.load_memory}
    if pool.role is Role.WORKSPACE:
        use = use_over_time(plan, pool)
        document |= {
            "live_bytes": list(use.live_bytes),
            "peak_bytes": use.peak_bytes,
            "peak_steps": list(use.peak_steps),
        }
    return document
