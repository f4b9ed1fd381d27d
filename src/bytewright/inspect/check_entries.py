"""Whether the entries of a plan are some: each has steps, ticks, inputs and outputs of its own, and none is left over.

What is between two runs is nothing but states and parameters: every other buffer lives in the ticks of one entry.
"""

from collections import Counter
from collections.abc import Iterable, Iterator

from bytewright import ir
from bytewright.base.c_names import is_c_name
from bytewright.record.buffers import BufferRole
from bytewright.record.entries import ONE_ENTRY, PlannedEntry
from bytewright.record.plan import Plan

_OF_ALL = (BufferRole.STATE, BufferRole.PARAMETER)


def faults_of_entries(plan: Plan) -> Iterator[str]:
    """Entries that are stated and are none, one sentence each."""
    stated = plan.stated_entries
    if len(stated) == 1:
        yield f"the plan states one entry, '{stated[0].name}', which is '{ONE_ENTRY}' then and not stated"
    if stated and not plan.form.is_one_call:
        yield f"{len(stated)} entries are stated, and an image by rows"
    given = dict.fromkeys(name for entry in stated for name in entry.extents)
    if stated and list(given) != [symbol.name for symbol in plan.symbols]:
        yield f"the extents of the entries are {_listed(given)}, not those of the model in their order"
    for name, count in Counter(entry.name for entry in stated).items():
        if count > 1 or not is_c_name(name):
            yield f"{count} entries are called '{name}', which names one function in C"
    step = tick = 0
    for entry in stated:
        if entry.steps[0] != step or not step <= entry.steps[1] <= len(plan.steps):
            yield f"entry '{entry.name}' has the steps {_span(entry.steps)}, after {step} of {len(plan.steps)}"
        elif entry.ticks != (tick, _end(plan, entry, tick)):
            yield f"entry '{entry.name}' has the ticks {_span(entry.ticks)}, its steps others"
        step, tick = entry.steps[1], entry.ticks[1]
    if stated and step != len(plan.steps):
        yield f"{len(plan.steps) - step} steps are of no entry"
    for side in ir.SIDES:
        own = [
            name for entry in stated for name in (entry.inputs if side is ir.Border.INPUT else entry.outputs)
        ]
        if stated and own != [tensor.name for tensor in plan.tensors(side)]:
            yield f"the {side.value}s of the entries are {_listed(own)}, not those of the model in their order"


def faults_of_lives_between(plan: Plan) -> Iterator[str]:
    """Buffers that live in several entries, and in plans of several inputs and outputs of others than their own."""
    if not plan.stated_entries:
        return
    for buffer in plan.buffers.values():
        if buffer.live is None or buffer.role in _OF_ALL:
            continue
        lower, upper = buffer.live
        if not any(entry.ticks[0] <= lower and upper <= entry.ticks[1] for entry in plan.entries):
            yield f"'{buffer.name}' lives from {lower} to {upper}, which no entry has for itself"


def _end(plan: Plan, entry: PlannedEntry, begin: int) -> int:
    """Where the ticks of an entry end: behind its last step, or branch, of those that no later step has."""
    first, end = entry.steps
    later = plan.steps[end].ticks[0] if end < len(plan.steps) else None
    ends = [step.ticks[1] for step in plan.steps[first:end]]
    ends += [c.tick + 1 for c in plan.conditions if entry.ticks[0] <= c.tick < entry.ticks[1]]
    last = max((begin + 1, *ends))
    return last if later is None or last <= later else -1


def _span(span: tuple[int, int]) -> str:
    return f"{span[0]} to {span[1]}"


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"'{name}'" for name in names) or "none"
