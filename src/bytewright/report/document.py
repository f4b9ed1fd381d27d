"""The report for programs: everything that the tables show, as JSON."""

from dataclasses import asdict
from typing import Any

from bytewright.record.codec import encode
from bytewright.record.plan import Plan, PlannedBuffer
from bytewright.report.by_memory import use_by_memory
from bytewright.report.lanes import lanes
from bytewright.report.memory import use_over_time
from bytewright.report.rows import calls_of, rows_text
from bytewright.target.model import Role


def report_document(plan: Plan) -> dict[str, Any]:
    """Figures of the whole, pools with their use by step, stacks, buffers largest first, and steps."""
    figures = ("ram_bytes", "workspace_bytes", "stack_bytes", "parameter_bytes", "ram_parameter_bytes")
    buffer_facts = ("name", "role", "size_bytes", "place", "first_step", "last_step")
    return {
        **members(plan, "model", "target", "numerics"),
        "symbols": [encode(symbol) for symbol in plan.symbols],
        **members(plan, "plan_hash", *figures),
        **({"state_bytes": plan.state_bytes, "states": encode(plan)["states"]} if plan.states else {}),
        **({} if plan.narrowed is None else {"narrowed": encode(plan.narrowed)}),
        "pools": [_pool(plan, name) for name in plan.pools],
        "memories": [{**asdict(use), "free_bytes": use.free_bytes} for use in use_by_memory(plan)],
        "stack": {context: encode(stack) for context, stack in plan.stack.items()},
        "segments": [{**encode(segment), "num_calls": calls_of(plan, segment)} for segment in plan.segments],
        "num_buffers": plan.num_buffers,
        "buffers": [
            {**facts(buffer, *buffer_facts), "rows": rows_text(buffer)} for buffer in largest_first(plan)
        ],
        "lanes": [asdict(lane) for lane in lanes(plan)],
        "steps": [
            {
                **facts(step, "index", "kernel", "device", "operators"),
                "when": list(plan.surroundings(step.index)),
            }
            for step in plan.steps
        ],
    }


def largest_first(plan: Plan) -> list[PlannedBuffer]:
    """All buffers, largest first, and by name where sizes are equal."""
    return sorted(plan.buffers.values(), key=lambda buffer: (-buffer.size_bytes, buffer.name))


def members(record: object, *names: str) -> dict[str, Any]:
    """Some of the members of a record, texts and numbers."""
    return {name: getattr(record, name) for name in names}


def facts(record: object, *names: str) -> dict[str, Any]:
    """Some of the members that plan.json has of a record."""
    document = encode(record)
    return {name: document[name] for name in names}


def _pool(plan: Plan, name: str) -> dict[str, Any]:
    pool = plan.pools[name]
    sizes = ("capacity_bytes", "used_bytes", "lower_bound_bytes")
    document = facts(pool, "name", "memory", "role", "provider", *sizes)
    document |= {"gap_bytes": pool.used_bytes - pool.lower_bound_bytes, "optimal": pool.optimal}
    if pool.obtained_by is not None:
        document["obtained_by"] = pool.obtained_by
    if pool.role is Role.PARAMETERS:
        document |= {"load": pool.load, "load_memory": pool.load_memory}
    if pool.role is Role.WORKSPACE:
        document |= facts(use_over_time(plan, pool), "live_bytes", "peak_bytes", "peak_steps")
    return document
