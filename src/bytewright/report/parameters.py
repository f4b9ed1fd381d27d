"""Constants by the layer that reads them, and by the memory that it reads them from."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from bytewright.base.frozen_mapping import FrozenMapping
from bytewright.record.buffers import PlaceKind
from bytewright.record.plan import Plan
from bytewright.show.view import Block, Chart, Field, Table, table_of

_MOST_SHOWN = 10


@dataclass(frozen=True, slots=True)
class LayerParameters:
    """Constants that a step is the first to read.

    Attributes:
        step: None for those that no step reads, as first values of a state.
        layer: Its operators.
        by_memory: Bytes by memory.
        buffers: The names of the constants, largest first.
    """

    step: int | None
    layer: str
    by_memory: Mapping[str, int]
    buffers: tuple[str, ...]

    @property
    def size_bytes(self) -> int:
        """All of them."""
        return sum(self.by_memory.values())


def parameters_by_layer(plan: Plan) -> tuple[LayerParameters, ...]:
    """Layers with constants of their own, in the order of the steps; what several read counts for the first."""
    left = {b.name: b for b in plan.buffers.values() if b.place.kind is PlaceKind.CONSTANT}
    found: list[LayerParameters] = []

    def add(step: int | None, layer: str, names: tuple[str, ...]) -> None:
        own = [left.pop(name) for name in dict.fromkeys(names) if name in left]
        by_memory: dict[str, int] = defaultdict(int)
        for buffer in own:
            by_memory[plan.pools[buffer.place.name].memory] += buffer.size_bytes
        if own:
            largest = sorted(own, key=lambda buffer: (-buffer.size_bytes, buffer.name))
            names = tuple(buffer.name for buffer in largest)
            found.append(LayerParameters(step, layer, FrozenMapping(by_memory), names))

    for step in plan.steps:
        add(step.index, " + ".join(step.operators) or step.kernel, step.touched)
    add(None, "no layer", tuple(left))
    return tuple(found)


def parameter_sections(plan: Plan) -> tuple[Chart | Table, ...]:
    """A picture of them over the steps, and a table with the largest first; nothing of a plan without any."""
    found = parameters_by_layer(plan)
    memories = [m.name for m in plan.hardware.memories if any(m.name in each.by_memory for each in found)]
    return (_chart(plan, found, memories), _table(found, memories)) if found else ()


def _chart(plan: Plan, found: tuple[LayerParameters, ...], memories: list[str]) -> Chart:
    blocks: list[Block] = []
    position_of = {step.index: number for number, step in enumerate(plan.steps)}
    for each in found:
        if each.step is None:
            continue
        begin, position = 0, position_of[each.step]
        for memory in memories:
            size = each.by_memory.get(memory, 0)
            if size:
                summary = f"{size} B in {memory}, step {each.step}"
                known = (("what", f"parameters, {', '.join(each.buffers)}"),)
                blocks.append(
                    Block(each.layer, position, position + 1, begin, begin + size, memory, summary, known)
                )
                begin += size
    series = [0] * len(plan.steps)
    for block in blocks:
        series[int(block.first)] = max(series[int(block.first)], block.end)
    title = f"Parameters by layer: {plan.parameter_bytes} B in {' and '.join(memories)}"
    return Chart(
        "parameters",
        title,
        tuple(series),
        blocks=tuple(blocks),
        levels=(("most", max(series)),),
        is_low=True,
        is_picture=True,
    )


def _table(found: tuple[LayerParameters, ...], memories: list[str]) -> Table:
    ordered = sorted(found, key=lambda each: -each.size_bytes)
    return table_of(
        f"Parameters by layer ({min(_MOST_SHOWN, len(ordered))} of {len(ordered)})",
        "parameters",
        ordered,
        Field("step", "step", lambda each: each.step, is_number=True),
        Field("layer", "layer", lambda each: each.layer),
        *(_of_memory(memory) for memory in memories),
        Field(None, "memories", lambda each: each.by_memory),
        Field(None, "buffers", lambda each: each.buffers),
        none="",
        most_rows=_MOST_SHOWN,
    )


def _of_memory(memory: str) -> Field[LayerParameters]:
    return Field(memory, None, lambda each: each.by_memory.get(memory, 0), is_number=True)
