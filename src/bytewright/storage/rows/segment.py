"""Segments: runs of steps that go through their tensors together, row by row, and the rings that they need."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bytewright.storage.rows.schedule import Link, Maker, Schedule, schedule_of
from bytewright.storage.rows.steps import RowProgram, RowStep

MAX_STEPS = 20


@dataclass(frozen=True, slots=True)
class Segment:
    """Steps `[first, end)` of an entry, with the order in which they make rows.

    Attributes:
        rings: Rows to keep of each tensor that is read nowhere else, by name.
    """

    first: int
    end: int
    schedule: Schedule
    rings: Mapping[str, int]

    @property
    def num_steps(self) -> int:
        """How many steps run together."""
        return self.end - self.first


def segment_of(program: RowProgram, first: int, end: int) -> Segment | None:
    """The segment of some steps; None if they cannot run together, or if no tensor becomes smaller."""
    numbers = range(first, end)
    if not program.steps.keys() >= set(numbers) or not program.barriers.isdisjoint(numbers[1:]):
        return None
    steps = [program.steps[number] for number in numbers]
    made_by = {step.output.name: position for position, step in enumerate(steps)}
    if not _goes_by_rows(steps, made_by):
        return None
    makers: list[Maker] = []
    inner: list[str] = []
    for step in steps:
        tensor = program.tensors.get(step.output.name)
        stays = tensor is not None and first <= tensor.readers[0] and tensor.readers[-1] < end
        makers.append(Maker(step.num_rows, tensor.row_bytes if tensor is not None and stays else 0))
        if stays:
            inner.append(step.output.name)
    links = [
        Link(made_by[name], position, window)
        for position, step in enumerate(steps)
        for name, window in step.reads.items()
        if name in made_by
    ]
    schedule = schedule_of(makers, links)
    if schedule is None:
        return None
    rings = {name: schedule.ring_rows[made_by[name]] for name in inner}
    if first == 0 and program.taken is not None:
        # Its rows come from outside: nothing may run more often, and it is a ring even where that has all rows.
        comes_first = program.taken in rings and schedule.rates[0] == max(schedule.rates)
        # Other devices are in use when all of them are there.
        comes_first = comes_first and len({step.kernel.device for step in steps}) == 1
    else:
        comes_first = True
    smaller = {
        name: rows
        for name, rows in rings.items()
        if rows < steps[made_by[name]].num_rows or name == program.taken
    }
    return Segment(first, end, schedule, smaller) if smaller and comes_first else None


def _goes_by_rows(steps: Sequence[RowStep], made_by: Mapping[str, int]) -> bool:
    """Whether what one step makes, others read by windows of the same rows and after it, and nobody else makes."""
    if len(made_by) < len(steps):
        return False
    for position, step in enumerate(steps):
        if not made_by.keys().isdisjoint(step.others):
            return False
        for name, axis in step.axes.items():
            maker = made_by.get(name)
            if maker is not None and (maker >= position or steps[maker].axis != axis):
                return False
    return True
