"""The bytes of a pool as blocks: where each of its buffers lies, while it lives, and what is known of it."""

from collections import defaultdict
from collections.abc import Iterator, Sequence

from bytewright.record.buffers import PlannedBuffer, PlannedPool
from bytewright.record.plan import Plan
from bytewright.report.lives import Lives
from bytewright.report.places import place_text
from bytewright.report.rows import rows_text
from bytewright.show.view import Block

_RING = "ring"
# A look each: plain or hatched, and of a colour.
KINDS = ("tensor", _RING, "scratch", "arena", "input", "state", "output")
_MOST_STEPS = 4


def positions_of(plan: Plan) -> tuple[float, ...]:
    """Where each tick, and the end of the clock, is on an axis of steps: a step is one long, whatever its ticks."""
    found = [0.0] * (plan.num_ticks + 1)
    done = 0
    for number, step in enumerate(plan.steps):
        first, end = step.ticks
        for tick in range(done, end):
            found[tick] = number + max(tick - first, 0) / max(end - first, 1)
        done = max(done, end)
    found[done:] = [float(len(plan.steps))] * (len(found) - done)
    return tuple(found)


def blocks_of(plan: Plan, pool: PlannedPool, peak_tick: int) -> tuple[Block, ...]:
    """The blocks of a pool by time; of what is requested at run time, its arena is one."""
    positions, story = positions_of(plan), _Story(plan)
    found: list[Block] = []
    for buffer in plan.buffers_in(pool.name):
        begin = buffer.place.offset
        if begin is None:
            continue
        first, end = buffer.live or (0, plan.num_ticks)
        kind = _RING if buffer.ring else str(buffer.role)
        found.append(
            Block(
                buffer.name,
                positions[first],
                positions[end],
                begin,
                begin + buffer.size_bytes,
                kind,
                f"{buffer.size_bytes} B at {place_text(buffer)}, alive {story.lives.alive_text(buffer)}",
                tuple(story.of(buffer, kind)),
                first <= peak_tick < end,
            )
        )
    return tuple(sorted(found, key=lambda block: (block.first, block.until, block.begin, block.name)))


class _Story:
    """What a plan knows of its buffers, looked up once for all of them."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self.lives = Lives(plan)
        self._makers: dict[str, list[int]] = defaultdict(list)
        self._readers: dict[str, list[int]] = defaultdict(list)
        self._workers: dict[str, list[int]] = defaultdict(list)
        self._contracts: dict[str, list[str]] = defaultdict(list)
        for number, step in enumerate(plan.steps):
            for names, found in (
                (step.writes, self._makers),
                (step.reads, self._readers),
                (step.scratch, self._workers),
            ):
                for name in names:
                    found[name].append(number)
            for pair in step.overlaps:
                self._contracts[pair.output].append(f"may overlap {pair.source}; {pair.text}")
                self._contracts[pair.source].append(f"{pair.output} may overlap it; {pair.text}")

    def of(self, buffer: PlannedBuffer, kind: str) -> Iterator[tuple[str, str]]:
        """Words and what is to say, such as `("kernel", "conv2d_0_rows")`."""
        yield "what", " ".join([kind, *_type_of(buffer)])
        if buffer.tensor is not None and buffer.tensor != buffer.name:
            yield "tensor", buffer.tensor
        for head, found in (
            ("made by", self._makers),
            ("scratch of", self._workers),
            ("read by", self._readers),
        ):
            yield from self._steps(head, found.get(buffer.name, ()))
        yield "used", self.lives.used_text(buffer)
        if buffer.line_bytes:
            yield "lines", f"has cache lines of {buffer.line_bytes} B to itself"
        for part in buffer.parts:
            last = part.offset_bytes + part.size_bytes
            yield "holds", f"{part.name}, bytes {part.offset_bytes} to {last}: nothing is copied"
        if buffer.ring is not None:
            yield "rows", f"keeps {rows_text(buffer)}, {buffer.ring.tensor_bytes} B if it were whole"
        for reason in buffer.reason.split("; "):
            yield "because", reason
        for contract in self._contracts.get(buffer.name, ()):
            yield "contract", contract

    def _steps(self, head: str, numbers: Sequence[int]) -> Iterator[tuple[str, str]]:
        """The layer and the kernel of each step, those of the first few."""
        for number in numbers[:_MOST_STEPS]:
            step = self._plan.steps[number]
            layer = " + ".join(step.operators) or "no layer"
            kernel = step.kernel.removeprefix(f"{self._plan.model}_")
            yield head, f"{layer}, kernel {kernel} (step {step.index})"
        if len(numbers) > _MOST_STEPS:
            yield head, f"{len(numbers) - _MOST_STEPS} more steps"


def _type_of(buffer: PlannedBuffer) -> list[str]:
    """`int8 1x48x48x8`, as far as it is known."""
    shape = "x".join(map(str, buffer.shape)) if buffer.shape else ""
    return [text for text in (buffer.dtype.value if buffer.dtype is not None else "", shape) if text]
