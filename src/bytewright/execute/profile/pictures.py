"""What each step costs as pictures: a bar for each, of a device or of several on top of each other."""

from collections import defaultdict
from collections.abc import Callable, Iterator

from bytewright.execute.profile.result import Cost, Profile, StepCost, Unit
from bytewright.show.view import Block, Chart


def cost_charts(profile: Profile) -> tuple[Chart, ...]:
    """Instructions and estimated cycles; or microseconds, where a clock was read."""
    if profile.unit is not Unit.INSTRUCTIONS:
        return (_chart(profile, "Time", "us", lambda cost: round(cost.amount / 1000)),)
    return (
        _chart(profile, "Instructions", "", lambda cost: cost.amount),
        _chart(profile, "Cycles, estimated", "", lambda cost: profile.cycles(cost) or 0),
    )


def _chart(profile: Profile, what: str, unit: str, amount_of: Callable[[Cost], int]) -> Chart:
    totals: dict[int, int] = defaultdict(int)
    blocks: list[Block] = []
    for line in profile.steps:
        begin, amount = totals[line.step], amount_of(line.cost)
        totals[line.step] += amount
        step = profile.plan.steps[line.step]
        layer = " + ".join(step.operators) or step.kernel
        known = tuple(_known(profile, line))
        summary = f"{amount} {unit}".rstrip() + f", step {line.step}"
        end = begin + amount
        blocks.append(Block(layer, line.step, line.step + 1, begin, end, line.device, summary, known))
    series = tuple(totals[number] for number in range(len(profile.plan.steps)))
    devices = [device.total for device in profile.devices]
    whole = f"{sum(map(amount_of, devices))} {unit}".rstrip()
    return Chart(
        what,
        f"{what} by step: {whole} in all",
        series,
        blocks=tuple(blocks),
        levels=(("most", max(series, default=0)),),
        unit=unit,
        kinds=tuple(dict.fromkeys(line.device for line in profile.steps)),
        is_low=True,
        is_picture=True,
    )


def _known(profile: Profile, line: StepCost) -> Iterator[tuple[str, str]]:
    yield "kernel", profile.plan.steps[line.step].kernel.removeprefix(f"{profile.plan.model}_")
    if line.num_calls != 1:
        yield "calls", str(line.num_calls)
    for word, found in (("reads", line.cost.read_bytes), ("writes", line.cost.written_bytes)):
        for memory, num_bytes in found.items():
            yield word, f"{num_bytes} B in {memory}"
