"""The loops of a plan whose input comes row by row, as the C has them: one pass a row, and arms in place of inner ends.

`run_row` runs one pass of the innermost of the loops that begin with the first step. What stands behind an inner loop
is in an arm there, of the passes that end this loop.
"""

import re
from collections.abc import Iterator, Mapping, Sequence

from bytewright.ir.analyses.affine import Form
from bytewright.ir.analyses.clock import Branch, Loop, outer_first
from bytewright.record.plan import Plan

_PLACE = re.compile(r"^ +const int32_t (\w+) = pass(?: / (\d+))?(?: % (\d+))?;$", re.MULTILINE)


def loops_in_c(plan: Plan) -> list[Loop]:
    """The plan's loops that are loops in C too, outer ones first."""
    nest = nest_of_rows(plan)
    return [loop for loop in outer_first(plan.loops) if loop not in nest]


def branches_in_c(plan: Plan) -> list[Branch]:
    """The branches of the C, outer ones first: those of the ends of loops over rows, and the plan's."""
    nest = nest_of_rows(plan)
    end = nest[0].steps[1] + 1 if nest else 0
    arms = [
        Branch(
            None,
            f"{inner.variable} == {_num_turns(inner) - 1}",
            (inner.steps[1] + 1, end),
            (end, end),
            0,
        )
        for inner in reversed(nest[1:])
    ]
    return [*arms, *plan.branches]


def nest_of_rows(plan: Plan) -> list[Loop]:
    """The loops over rows, the outermost first; none where the input does not come row by row."""
    return [] if plan.image is None else [loop for loop in outer_first(plan.loops) if loop.steps[0] == 0]


def places_of_rows(plan: Plan, body: str) -> Mapping[str, Form]:
    """What the variables of these loops are called in C, and in the plan."""
    nest = nest_of_rows(plan)
    return {
        text[0]: Form(0, ((loop.variable, 1),))
        for text, loop in zip(_PLACE.findall(body), nest, strict=False)
        if loop.variable is not None
    }


def differences_of_passes(path: str, plan: Plan, body: str) -> Iterator[str]:
    """Passes that are counted otherwise than the plan's loops."""
    nest = nest_of_rows(plan)
    if not nest:
        return
    stated = [(int(inner or 1), turns) for _, inner, turns in _PLACE.findall(body)]
    inner, expected = 1, list[tuple[int, str]]()
    for position, loop in reversed(list(enumerate(nest))):
        expected.insert(0, (inner, str(_num_turns(loop)) if position else ""))
        inner *= _num_turns(loop)
    if stated != expected:
        yield f"{path}: the passes of {_listed(nest)} are counted as {stated}, in the plan {expected}"


def _num_turns(loop: Loop) -> int:
    return loop.end if isinstance(loop.end, int) else 0


def _listed(nest: Sequence[Loop]) -> str:
    return ", ".join(f"'{loop.variable}'" for loop in nest)
