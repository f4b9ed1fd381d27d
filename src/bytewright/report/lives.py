"""Of which steps a buffer is: those that it is alive in, and those that use it. Each is said with its word.

It is alive from the first step that needs its bytes to the last one: a ring, and what a loop works in, for the whole
loop. It is used in the steps whose calls touch it.
"""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Sequence

from bytewright.record.buffers import BufferRole, PlaceKind, PlannedBuffer
from bytewright.record.plan import Plan
from bytewright.report.memory import spans_of

_MOST_SPANS = 4


class Lives:
    """The steps of a plan's buffers, looked up once for all of them."""

    def __init__(self, plan: Plan) -> None:
        self._begins = [step.ticks[0] for step in plan.steps]
        self._ends = [step.ticks[1] for step in plan.steps]
        self._by_buffer: dict[str, list[int]] = defaultdict(list)
        self._by_kernel: dict[str, list[int]] = defaultdict(list)
        for step in plan.steps:
            self._by_kernel[step.kernel].append(step.index)
            for name in step.touched:
                self._by_buffer[name].append(step.index)

    def alive(self, buffer: PlannedBuffer) -> range | None:
        """The steps that it is alive in; None for what lives inside of calls."""
        if buffer.live is None:
            return None
        first, end = buffer.live
        return range(bisect_right(self._ends, first), bisect_left(self._begins, end))

    def used(self, buffer: PlannedBuffer) -> tuple[int, ...]:
        """The steps whose calls touch it; of an array of a kernel those that call the kernel."""
        if buffer.place.kind is PlaceKind.STACK:
            return tuple(self._by_kernel.get(buffer.name.partition("/")[0], ()))
        return tuple(self._by_buffer.get(buffer.name, ()))

    def document(self, buffer: PlannedBuffer) -> dict[str, object]:
        """The first and the last step that it is alive in, and all that use it, for programs."""
        alive = self.alive(buffer)
        return {
            "alive_steps": (alive[0], alive[-1]) if alive else None,
            "used_steps": self.used(buffer),
        }

    def alive_text(self, buffer: PlannedBuffer) -> str:
        """`in steps 0..2`, or what is said of those that no step limits."""
        steps = self.alive(buffer)
        if steps is None:
            return "inside the kernel, for one call"
        if buffer.place.kind is PlaceKind.CONSTANT or buffer.role is BufferRole.STATE:
            return "always"
        return f"in {steps_text(steps)}"

    def used_text(self, buffer: PlannedBuffer) -> str:
        """`in steps 0, 2`."""
        return f"in {steps_text(self.used(buffer))}"


def steps_text(steps: Sequence[int]) -> str:
    """`step 3`, `steps 0, 2..5`, or `no step`; of many that do not follow each other the first few."""
    spans = spans_of(steps)
    texts = [str(first) if first == end - 1 else f"{first}..{end - 1}" for first, end in spans[:_MOST_SPANS]]
    if spans[_MOST_SPANS:]:
        num_more = sum(end - first for first, end in spans[_MOST_SPANS:])
        texts.append(f"and {num_more} more up to {steps[-1]}")
    return f"{'step' if len(steps) == 1 else 'steps'} {', '.join(texts)}" if texts else "no step"
