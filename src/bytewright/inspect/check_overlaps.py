"""Whether two buffers may share bytes as plan.json says: they meet in one step, which reads the one, writes the other.

How near they may come follows from the kernel's body, which only the compiler has; that the offsets keep to what is
stated is for the validator, which is given these contracts.
"""

from collections.abc import Iterator

from bytewright.plan.problem import Contract
from bytewright.record.buffers import BufferRole, PlaceKind
from bytewright.record.entries import PlannedOverlap, PlannedStep
from bytewright.record.plan import Plan


def contracts_in(plan: Plan, kind: PlaceKind) -> tuple[Contract, ...]:
    """The contracts between buffers that have places of a kind."""
    return tuple(
        Contract(pair.source, pair.output, pair.below_bytes, pair.above_bytes)
        for step in plan.steps
        for pair in step.overlaps
        if {plan.buffers[name].place.kind for name in (pair.source, pair.output)} == {kind}
    )


def faults_of_overlaps(plan: Plan) -> Iterator[str]:
    """Pairs that may overlap and cannot, one sentence each."""
    for step in plan.steps:
        for pair in step.overlaps:
            what = f"step {step.index} lets '{pair.output}' overlap '{pair.source}'"
            if pair.source not in step.reads or pair.source in (*step.writes, *step.scratch):
                yield f"{what}, which is no buffer that it only reads"
            elif pair.output not in step.writes or pair.output in (*step.reads, *step.scratch):
                yield f"{what}, and does not only write it"
            elif step.device != plan.device.name and not _may_share_lines(plan, pair):
                yield f"{what}, and not one device alone touches the cache lines that they have to themselves"
            elif not _meet_in(plan, step, pair):
                yield f"{what}, and they coexist in other steps too"
            elif not _is_within(plan, pair):
                yield f"{what}, {pair.below_bytes} B below it or {pair.above_bytes} B above, where they are apart"
        device = plan.hardware.find_device(step.device)
        if step.overlaps and (device is None or not device.runs_c):
            yield f"step {step.index} lets buffers overlap on '{step.device}', whose order nothing is known of"


def _is_within(plan: Plan, pair: PlannedOverlap) -> bool:
    """Whether neither distance is negative, or more than what keeps the two apart anyway."""
    source, output = plan.buffers[pair.source], plan.buffers[pair.output]
    return 0 <= pair.below_bytes <= output.size_bytes and 0 <= pair.above_bytes <= source.size_bytes


def _meet_in(plan: Plan, step: PlannedStep, pair: PlannedOverlap) -> bool:
    """Whether two buffers coexist in a step alone, and in each turn of a loop around it anew.

    An output of the model is needed after the last step, and an input before the first.
    """
    source, output = plan.buffers[pair.source], plan.buffers[pair.output]
    around = [loop for loop in plan.loops if loop.has_step(step.index)]
    return (
        source.live is not None
        and output.live is not None
        and source.live[1] <= step.ticks[1]
        and output.live[0] >= step.ticks[0]
        and source.role is not BufferRole.OUTPUT
        and output.role is not BufferRole.INPUT
        and all({source.name, output.name} <= set(loop.inside) for loop in around)
    )


def _may_share_lines(plan: Plan, pair: PlannedOverlap) -> bool:
    """Whether lines that both have are no other device's: they are written back as a whole."""
    names = (pair.source, pair.output)
    if not any(plan.buffers[name].line_bytes for name in names):
        return True
    devices = {device for name in names for device in plan.buffers[name].devices}
    devices |= {step.device for step in plan.steps if any(name in step.touched for name in names)}
    return len(devices) == 1
