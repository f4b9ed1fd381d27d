"""The loops of a plan whose input comes row by row, as the C has them: one pass a row, and arms in place of inner ends.

`run_row` runs one pass of the innermost of the loops that begin with the first step. What stands behind an inner loop
is in an arm there, of the passes that end this loop. The application's rows are pushed through it one by one; the
passes before the first row run when an image begins, those after the last one when it is finished.
"""

import re
from collections.abc import Iterator, Mapping, Sequence

from bytewright.inspect.read_c import body_of
from bytewright.inspect.read_flow import read_form
from bytewright.ir.analyses.affine import Form
from bytewright.ir.analyses.clock import Branch, Loop, outer_first
from bytewright.record.names import RUN_ROW, Names
from bytewright.record.plan import Plan, PlannedTensor

_PLACE = re.compile(r"^ +const int32_t (\w+) = pass(?: / (\d+))?(?: % (\d+))?;$", re.MULTILINE)
_FIRST_PASS = re.compile(r"const int32_t pass = row(?: \+ (\d+))?;")
# A loop over passes without a row, and its ends.
_PASSES = re.compile(
    r"for \(int32_t row = ([^;]+); row < ([^;]+); \+\+row\) \{ "
    rf"const int32_t status = {RUN_ROW}\(context, NULL, row\);"
)


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


def differences_of_passes(path: str, plan: Plan, names: Names, source: str) -> Iterator[str]:
    """Passes that are counted otherwise than the plan's loops, and rows that are not pushed one by one."""
    nest, image = nest_of_rows(plan), plan.image
    if not nest or image is None:
        return
    stated = [(int(inner or 1), turns) for _, inner, turns in _PLACE.findall(body_of(source, RUN_ROW))]
    inner, expected = 1, list[tuple[int, str]]()
    for position, loop in reversed(list(enumerate(nest))):
        expected.insert(0, (inner, str(_num_turns(loop)) if position else ""))
        inner *= _num_turns(loop)
    if stated != expected:
        yield f"{path}: the passes of {_listed(nest)} are counted as {stated}, in the plan {expected}"
    first = _first_row(plan, nest)
    if first is None:
        yield f"{path}: which row the first pass takes is not known"
        return
    begins = [int(number or 0) for number in _FIRST_PASS.findall(body_of(source, RUN_ROW))]
    if begins != [-first]:
        yield f"{path}, {RUN_ROW}: row 0 comes with pass {_words(begins)}, in the plan with {-first}"
    yield from _differences_of_rowless(path, names.begin, source, [(f"{first}", "0")] if first else [])
    end, rows = first + inner, names.input_rows(image)
    after = [(rows, f"{end}")] if image.num_rows < end else []
    yield from _differences_of_rowless(path, names.finish, source, after)
    if "context->num_rows = 0;" not in _on_one_line(source, names.begin):
        yield f"{path}, {names.begin} does not begin with row 0"
    if _pushing(image, names) not in _on_one_line(source, names.push_rows):
        yield f"{path}, {names.push_rows} does not pass on rows of {image.row_bytes} B one by one"


def _first_row(plan: Plan, nest: Sequence[Loop]) -> int | None:
    """The row that the first pass takes: 0, or less where it takes none."""
    rows = plan.steps[0].rows
    variables = {loop.variable: Form(0, ((loop.variable, 1),)) for loop in nest if loop.variable is not None}
    form = None if rows is None or rows.begin is None else read_form(str(rows.begin), variables)
    return None if form is None else form.constant


def _differences_of_rowless(
    path: str, function: str, source: str, expected: list[tuple[str, str]]
) -> Iterator[str]:
    """Passes that take no row, if a function runs others."""
    stated: list[tuple[str, str]] = _PASSES.findall(_on_one_line(source, function))
    if stated != expected:
        ends = [[f"{begin} to {end}" for begin, end in passes] for passes in (stated, expected)]
        yield f"{path}, {function} runs passes {_words(ends[0])} without a row, in the plan {_words(ends[1])}"


def _pushing(image: PlannedTensor, names: Names) -> str:
    """The loop over the rows that the application pushes."""
    row = f"rows + ((size_t)pushed * {image.row_bytes // image.dtype.size_bytes}u)"
    return (
        "for (int32_t pushed = 0; pushed < num_rows; ++pushed) { "
        f"const int32_t status = {RUN_ROW}(context, {row}, context->num_rows); "
        f"if (status != {names.ok}) {{ context->is_begun = 0; return status; }} ++context->num_rows; }}"
    )


def _on_one_line(source: str, function: str) -> str:
    return " ".join(body_of(source, function).split())


def _words(values: Sequence[object]) -> str:
    return ", ".join(map(str, values)) or "none"


def _num_turns(loop: Loop) -> int:
    return loop.end if isinstance(loop.end, int) else 0


def _listed(nest: Sequence[Loop]) -> str:
    return ", ".join(f"'{loop.variable}'" for loop in nest)
