"""The bytes of a pool as blocks: where each of its buffers lies, while it lives, and what is known of it."""

from collections import defaultdict

from bytewright.record.plan import BufferRole, Plan, PlannedBuffer, PlannedPool
from bytewright.report.places import place_text, steps_text
from bytewright.report.rows import rows_text
from bytewright.show.view import Block

_RING = "ring"


def blocks_of(plan: Plan, pool: PlannedPool) -> tuple[Block, ...]:
    """The blocks of a pool by time; of what is requested at run time, its arena is one."""
    makers: dict[str, str] = {}
    contracts: dict[str, list[str]] = defaultdict(list)
    for step in plan.steps:
        for name in step.writes:
            makers.setdefault(name, " + ".join(step.operators) or step.kernel)
        for pair in step.overlaps:
            contracts[pair.output].append(f"may overlap {pair.source}; {pair.text}")
    found: list[Block] = []
    for buffer in plan.buffers_in(pool.name):
        begin = buffer.place.offset
        if begin is None:
            continue
        first, last = buffer.first_step or 0, buffer.last_step
        kind = _RING if buffer.ring else str(buffer.role)
        lines = (
            *_lines(buffer, kind),
            *([f"by {makers[buffer.name]}"] if buffer.name in makers else []),
            *buffer.reason.split("; "),
            *contracts[buffer.name],
        )
        until = len(plan.steps) - 1 if last is None else last
        found.append(Block(buffer.name, first, until, begin, begin + buffer.size_bytes, kind, lines))
    return tuple(sorted(found, key=lambda block: (block.first, block.last, block.begin, block.name)))


def _lines(buffer: PlannedBuffer, kind: str) -> list[str]:
    what = "" if kind == BufferRole.TENSOR else f"{kind}, "
    lines = [f"{what}{place_text(buffer)}, {buffer.size_bytes} B, steps {steps_text(buffer)}"]
    return [*lines, f"rows {rows_text(buffer)}"] if buffer.ring else lines
