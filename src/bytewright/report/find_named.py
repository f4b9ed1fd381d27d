"""What is meant by a name: a buffer or a kernel of a plan, under any name that the model or an output has for it.

The nearest way to read the name that names anything decides: whole, shortened as outputs shorten it, as the beginning
of one, or as a pattern. Brackets of a pattern are first taken as they are, because tensors have some in their names.
"""

import difflib
import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from unicodedata import normalize

from bytewright.diagnostics import CompileError, Diagnostic
from bytewright.record.buffers import PlannedBuffer
from bytewright.record.entries import PlannedStep
from bytewright.record.plan import Plan
from bytewright.target.mistake import did_you_mean, shown

_MOST_SUGGESTIONS = 3
_MOST_CANDIDATES = 6
_CUT = "..."


@dataclass(frozen=True, slots=True)
class Kernel:
    """A kernel, and the steps that call it."""

    name: str
    steps: tuple[PlannedStep, ...]


def find_named(plan: Plan, name: str) -> PlannedBuffer | Kernel:
    """The buffer or kernel that a name means.

    Raises:
        CompileError: BW204 if there is none, with names that look like it, or if there are several, with some of them.
    """
    if name in plan.buffers:
        return plan.buffers[name]
    called = _steps_by_kernel(plan)
    if name in called:
        return Kernel(name, called[name])
    things = _things_by_name(plan)
    for matches in _readings(normalize("NFC", name)):
        found = dict.fromkeys(thing for known in things if matches(known) for thing in things[known])
        if len(found) > 1:
            raise CompileError(_several(plan, name, list(found)))
        for thing in found:
            return plan.buffers[thing] if thing in plan.buffers else Kernel(thing, called[thing])
    raise CompileError(_unknown(plan, name, list(things)))


def _steps_by_kernel(plan: Plan) -> dict[str, tuple[PlannedStep, ...]]:
    found: dict[str, list[PlannedStep]] = defaultdict(list)
    for step in plan.steps:
        found[step.kernel].append(step)
    return {kernel: tuple(steps) for kernel, steps in found.items()}


def _things_by_name(plan: Plan) -> dict[str, list[str]]:
    """Names as the plan, the model's file and outputs have them, each with the buffers and kernels that have it."""
    found: dict[str, list[str]] = defaultdict(list)
    for buffer in plan.buffers.values():
        tensors = (buffer.tensor, *(part.tensor for part in buffer.parts))
        for name in (buffer.name, *(part.name for part in buffer.parts), *filter(None, tensors)):
            found[normalize("NFC", name)].append(buffer.name)
    for step in plan.steps:
        short = step.kernel.removeprefix(f"{plan.model}_")
        for name in (step.kernel, short, *step.operators, " + ".join(step.operators)):
            if step.kernel not in found[name]:
                found[name].append(step.kernel)
    return found


def _readings(name: str) -> Iterator[Callable[[str], bool]]:
    """Ways to read a name that is written, the nearest first."""
    yield lambda known: known == name
    if not name:
        return
    begin, cut, end = name.strip("'").partition(_CUT)
    if cut:
        yield lambda known: len(known) > len(begin + end) and known.startswith(begin) and known.endswith(end)
    yield lambda known: known.startswith(name)
    if re.search(r"[*?]", name):
        plain = name.replace("[", "[[]")
        yield lambda known: fnmatchcase(known, plain)
    if re.search(r"\[.+\]", name):
        yield lambda known: fnmatchcase(known, name)


def _several(plan: Plan, name: str, found: list[str]) -> Diagnostic:
    """Which ones, the first few, each with what the model's file calls it."""
    notes = [_described(plan, thing) for thing in found[:_MOST_CANDIDATES]]
    rest = len(found) - len(notes)
    return Diagnostic(
        "BW204",
        f"{shown(name)} may be any of {len(found)} buffers and kernels of model '{plan.model}'",
        (*notes, *([f"and {rest} more"] if rest else [])),
        did_you_mean(found[:_MOST_SUGGESTIONS]),
    )


def _described(plan: Plan, thing: str) -> str:
    tensor = plan.buffers[thing].tensor if thing in plan.buffers else None
    kind = "" if thing in plan.buffers else "kernel "
    return f"{kind}'{thing}'{f': {tensor!r}' if tensor not in (None, thing) else ''}"


def _unknown(plan: Plan, name: str, names: list[str]) -> Diagnostic:
    names = list(filter(None, names))
    part_of = [candidate for candidate in names if name and name in candidate]
    close = list(dict.fromkeys([*difflib.get_close_matches(name, names, n=3), *part_of]))[:_MOST_SUGGESTIONS]
    such_as = f"it has buffers, {plan.num_buffers_text}, such as {', '.join(map(repr, names[:3]))}"
    return Diagnostic(
        "BW204",
        f"model '{plan.model}' has no buffer {shown(name)}",
        notes=() if close else (such_as,),
        help=did_you_mean(close) or "`bytewright report DIR --json` lists all buffers",
    )
