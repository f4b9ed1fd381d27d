"""Who runs when: a lane for each device over the steps of a run, with what is lent to it and what is copied.

One device needs no lanes: there is nothing to show then.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from bytewright.record.entries import PlannedStep
from bytewright.record.plan import Plan

COPY = "device_copy"  # what a step is called that only moves bytes from one memory to another


@dataclass(frozen=True, slots=True)
class Lane:
    """What one device does in a run.

    Attributes:
        steps: The steps that it carries out, copies included.
        copies: Those of them that only copy.
        read_bytes: Of the buffers that its steps read, each counted for each step.
        written_bytes: The same of what they write.
        copied_bytes: What its copies move; of a block that may be a part, and is then all of the other buffer.
    """

    device: str
    steps: tuple[int, ...]
    copies: tuple[int, ...]
    read_bytes: int
    written_bytes: int
    copied_bytes: int


def lanes(plan: Plan) -> tuple[Lane, ...]:
    """A lane for each device that carries out a step, the entry's first; none if that is the only one."""
    devices = tuple(dict.fromkeys((plan.device.name, *(step.device for step in plan.steps))))
    return tuple(_lane(plan, device) for device in devices) if len(devices) > 1 else ()


def _lane(plan: Plan, device: str) -> Lane:
    steps = [step for step in plan.steps if step.device == device]
    copies = [step for step in steps if is_copy(step)]

    def total(names: Sequence[tuple[str, ...]]) -> int:
        return sum(plan.buffers[name].size_bytes for of_step in names for name in of_step)

    return Lane(
        device,
        tuple(step.index for step in steps),
        tuple(step.index for step in copies),
        total([step.reads for step in steps]),
        total([step.writes for step in steps]),
        sum(min(total([step.reads]), total([step.writes])) for step in copies),
    )


def is_copy(step: PlannedStep) -> bool:
    """Whether the step only copies bytes from one memory to another."""
    return bool(step.operators) and all(operator.startswith(COPY) for operator in step.operators)
