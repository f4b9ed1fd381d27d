"""What is alive where pools need most, in the words of the model: tensors, their bytes, and who computes them.

Buffers are said with what the model's file calls them, beside their names in the plan; steps with their operators.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bytewright import ir
from bytewright.compiler.shortfall import Shortfall
from bytewright.ir.analyses.clock import Timeline
from bytewright.plan.problem import Buffer, Problem
from bytewright.record.rows import ring_of
from bytewright.report.lives import steps_text
from bytewright.target.model import Role

MAX_BUFFERS_SHOWN = 8
_MOST_LARGER = 3


@dataclass(frozen=True, slots=True)
class Words:
    """What is said of the buffers of one problem.

    Attributes:
        timeline: Tells steps from ticks; None before the module is stored.
        role: Of their pools. Parameters live always.
    """

    module: ir.Module
    timeline: Timeline | None
    role: Role

    @property
    def is_constant(self) -> bool:
        """Whether they are parameters."""
        return self.role is Role.PARAMETERS

    def described(self, buffer: Buffer) -> str:
        """`'conv2d_3/out' (36864 B, alive in steps 4..6, used in steps 4, 6), of 3 (CONV_2D): 'model/conv3/Relu'`."""
        facts = [f"{buffer.size_bytes} B"]
        used = self._used(buffer.name)
        if self.timeline is not None and not self.is_constant:
            facts += self._rows(buffer.name)
            alive = self.timeline.steps_alive(buffer.name)
            facts.append(f"alive in {steps_text(range(alive[0], alive[1] + 1))}")
            facts.append(f"used in {steps_text(used)}")
        text = f"'{buffer.name}' ({', '.join(facts)})"
        text += f", of {self.operators(used[0])}" if used and self.operators(used[0]) else ""
        source = self.module.sources.get(buffer.name)
        return text if source is None or source.name == buffer.name else f"{text}: '{source.name}'"

    def _rows(self, name: str) -> list[str]:
        """`3 of 48 rows`, of a ring."""
        buffers = () if self.timeline is None else self.timeline.buffers
        rings = (ring_of(live.buffer) for live in buffers if live.buffer.name == name)
        return [f"{ring.num_rows} of {ring.tensor_rows} rows" for ring in rings if ring is not None]

    def _used(self, name: str) -> list[int]:
        """The steps whose calls touch a buffer."""
        steps = () if self.timeline is None else self.timeline.steps
        return [step.index for step in steps if name in step.touched]

    def operators(self, step: int) -> str:
        """Those of the model that a step computes: `3 (CONV_2D) + 4 (RELU)`."""
        return "" if self.timeline is None else " + ".join(self.timeline.steps[step].call.operators)

    def step_at(self, tick: int) -> int | None:
        """The step that a tick is of; None for parameters, and between steps."""
        if self.timeline is None or self.is_constant:
            return None
        return next((s.index for s in self.timeline.steps if s.ticks[0] <= tick < s.ticks[1]), None)

    def when(self, tick: int | None) -> str:
        """` at step 3`, of several entries with the name; nothing for what is in no step."""
        step = None if tick is None else self.step_at(tick)
        if step is None or self.timeline is None:
            return ""
        entries = self.module.entries
        entry = f" of entry '{entries[self.timeline.entry_of(step)].name}'" if len(entries) > 1 else ""
        return f" at step {step}{entry}"

    def larger_than_pools(self, problem: Problem) -> Iterator[str]:
        """The buffers for which every pool that may hold them is too small, whatever else is there."""
        found: list[tuple[int, str]] = []
        for buffer in problem.buffers:
            pools = [problem.pool_of_name[candidate.pool] for candidate in problem.candidates_of(buffer)]
            largest = max((pool.capacity_bytes or 0 for pool in pools), default=buffer.size_bytes)
            if largest < buffer.size_bytes and all(pool.capacity_bytes is not None for pool in pools):
                sizes = ", ".join(f"{pool.name} {pool.capacity_bytes} B" for pool in pools)
                text = (
                    f"'{buffer.name}' alone needs {buffer.size_bytes} B, and no pool for it has that: {sizes}"
                )
                found.append((-buffer.size_bytes, text))
        yield from (text for _, text in sorted(found)[:_MOST_LARGER])

    def largest(self, buffers: Sequence[Buffer]) -> Iterator[str]:
        """The largest buffers, how many others there are, and what those take."""
        by_size = sorted(buffers, key=lambda buffer: (-buffer.size_bytes, buffer.name))
        yield from (self.described(buffer) for buffer in by_size[:MAX_BUFFERS_SHOWN])
        rest = by_size[MAX_BUFFERS_SHOWN:]
        if rest:
            yield f"and {len(rest)} more, {sum(buffer.size_bytes for buffer in rest)} B"

    def at_peak(self, whole: Shortfall, buffers: Sequence[Buffer]) -> Iterator[str]:
        """What is alive together where the pools need most."""
        names = set(whole.buffers)
        alive = [buffer for buffer in buffers if buffer.name in names]
        step = self.step_at(whole.tick)
        operators = "" if step is None else self.operators(step)
        where = "" if step is None else f"alive in step {step}{operators and f', {operators}'}: "
        total_bytes = sum(buffer.size_bytes for buffer in alive)
        shared_bytes = total_bytes - whole.needed_bytes
        noun = f"{'parameter' if self.is_constant else 'buffer'}{'s' if len(alive) > 1 else ''}"
        what = f"{len(alive)} {noun}, {total_bytes} B"
        yield f"{where}{what}{f', of which {shared_bytes} B may be shared' if shared_bytes else ''}"
        yield from self.largest(alive)
