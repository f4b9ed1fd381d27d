"""What a plan needs, in a few lines: for commands that made one."""

from bytewright.record.plan import Plan
from bytewright.target.size import format_size


def plan_summary(plan: Plan) -> list[str]:
    """A line for each pool that holds a byte, for each stack, for frames, and for what constant channels saved."""
    lines: list[str] = []
    for pool in (pool for pool in plan.pools.values() if pool.used_bytes):
        evidence = "optimal" if pool.optimal else f"lower bound {pool.lower_bound_bytes} B"
        facts = ", ".join(fact for fact in (evidence, pool.loading) if fact)
        lines.append(f"  {pool.role} {pool.name}: {pool.used_bytes} B{_limit(pool.capacity_bytes)}, {facts}")
    for context, stack in plan.stack.items():
        lines.append(f"  stack {context}: {stack.size_bytes} B{_limit(stack.limit_bytes)}")
    if plan.stream is not None:
        lines.append(f"  frame by frame: {plan.stream.text}")
    if plan.narrowed is not None:
        lines.append(f"  constant channels: {plan.narrowed.text}")
    return lines


def _limit(size_bytes: int | None) -> str:
    return "" if size_bytes is None else f" of {format_size(size_bytes)}"
