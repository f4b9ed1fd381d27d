"""Channels that no input can change, or that nobody reads, by layer: for whoever trains the network again.

It is exact, whatever the input: these channels are no part of the C, and its outputs are the same bit for bit. So a
network that never had them would be no worse, and quicker to train.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from bytewright.record.buffers import PlannedBuffer
from bytewright.record.entries import PlannedStep
from bytewright.record.plan import Plan
from bytewright.report.memory import span_text, spans_of
from bytewright.report.places import written_by
from bytewright.show.view import Fact, Facts, Field, Table, table_of

_MOST_SPANS = 6


@dataclass(frozen=True, slots=True)
class DeadChannels:
    """What a layer has that never matters.

    Attributes:
        num_channels: Of its result, in the model.
        constant: Those of them that have one value whatever the input, in order,
        unread: and those that nothing reads, though they change.
        weight_bytes: Of all of its weights in the model.
        dead_bytes: Of those among them that no result depends on.
    """

    step: int
    layer: str
    tensor: str
    num_channels: int
    constant: tuple[int, ...]
    unread: tuple[int, ...]
    weight_bytes: int
    dead_bytes: int

    @property
    def share(self) -> float | None:
        """Of the weights, in per cent; None where it has none."""
        return _percent(self.dead_bytes, self.weight_bytes)


def dead_channels(plan: Plan) -> tuple[DeadChannels, ...]:
    """The layers that have any, or weights for those of other layers, in the order of the steps."""
    found = (_of_step(plan, step) for step in plan.steps)
    return tuple(each for each in found if each.constant or each.unread or each.dead_bytes)


def _of_step(plan: Plan, step: PlannedStep) -> DeadChannels:
    written = written_by(plan, step)
    result = next((buffer for buffer in written if buffer.shape_before), written[0] if written else None)
    num_channels, constant, unread = (0, (), ()) if result is None else _channels(result)
    work = step.work
    before, now = (0, 0) if work is None else (work.weight_bytes_before, work.weight_bytes)
    return DeadChannels(
        step.index,
        " + ".join(step.operators) or step.kernel,
        "" if result is None else result.tensor or result.name,
        num_channels,
        constant,
        unread,
        before,
        before - now,
    )


def _channels(buffer: PlannedBuffer) -> tuple[int, tuple[int, ...], tuple[int, ...]]:
    """How many there are in the model, which are constant, and which nobody reads."""
    shape = buffer.shape_before or buffer.shape or ()
    count = shape[-1] if shape else 0
    if buffer.shape_before is None:
        return count, (), ()
    gone = sorted({*range(count)} - {*buffer.kept_channels} - {*buffer.constant_channels})
    return count, buffer.constant_channels, tuple(gone)


def dead_channel_sections(plan: Plan) -> tuple[Facts | Table, ...]:
    """The advice, and the table behind it; nothing of a plan that lost none."""
    found, work = dead_channels(plan), plan.narrowed
    if not found or work is None:
        return ()
    dead = work.weight_bytes_before - work.weight_bytes
    share = _percent(dead, work.weight_bytes_before)
    advice = (
        f"to train again: exact; {share} % of these weights never matter, "
        f"in {len(found)} layer{'s' if len(found) > 1 else ''}"
    )
    table = table_of(
        "Channels that never matter, whatever the input",
        "dead_channels",
        found,
        Field("step", "step", lambda each: each.step, is_number=True),
        Field("layer", "layer", lambda each: each.layer),
        Field(None, "tensor", lambda each: each.tensor),
        Field("channels", "num_channels", lambda each: each.num_channels, is_number=True),
        Field("constant", None, lambda each: len(each.constant), is_number=True),
        Field("unread", None, lambda each: len(each.unread), is_number=True),
        Field("weights", "weight_bytes", lambda each: each.weight_bytes, is_number=True),
        Field("never matter", "dead_weight_bytes", lambda each: each.dead_bytes, is_number=True),
        Field("%", "dead_percent", lambda each: each.share, is_number=True),
        Field("which", None, lambda each: _numbers((*each.constant, *each.unread))),
        Field(None, "constant", lambda each: each.constant),
        Field(None, "unread", lambda each: each.unread),
        none="",
    )
    return (Facts((Fact((advice,)),)), table)


def _percent(part: int, whole: int) -> float | None:
    """In tenths, rounded down: all of it is said of nothing less."""
    return 1000 * part // whole / 10 if whole else None


def _numbers(channels: Iterable[int]) -> str:
    """`0, 3..7`, the first few spans of them."""
    spans = spans_of(sorted(channels))
    rest = ["..."] if len(spans) > _MOST_SPANS else []
    return ", ".join([*map(span_text, spans[:_MOST_SPANS]), *rest])
