"""The loops of a plan whose input comes row by row, as the C has them: one pass a row, and arms in place of inner ends.

`run_row` runs one pass of the innermost of the loops that begin with the first step. What stands behind an inner loop
is in an arm there, of the passes that end this loop. The application's rows are pushed through it one by one; the
passes before the first row run when an image begins, those after the last one when it is finished.
"""

from collections.abc import Iterator, Mapping, Sequence

from pycparser import c_ast

from bytewright import ir
from bytewright.inspect.c_nodes import expression, form_of, integer_of, loop_of, plain_name, spell, statement
from bytewright.inspect.c_source import CSource, descend
from bytewright.ir.analyses.affine import Form
from bytewright.ir.analyses.clock import Branch, Loop, outer_first
from bytewright.record.entries import PlannedTensor
from bytewright.record.names import Names
from bytewright.record.plan import Plan


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


def places_of_rows(plan: Plan, constants: Mapping[str, c_ast.Node]) -> Mapping[str, Form]:
    """What the variables of these loops are called in C, and in the plan."""
    return {
        name: Form(0, ((loop.variable, 1),))
        for name, loop in zip(_places(constants), nest_of_rows(plan), strict=False)
        if loop.variable is not None
    }


def _places(constants: Mapping[str, c_ast.Node]) -> dict[str, tuple[int, str]]:
    """The numbers that a pass stands for, as `pass / 4 % 2`: what it is divided by, and the turns of the loop."""
    found: dict[str, tuple[int, str]] = {}
    for name, value in constants.items():
        inner, turns, node = 1, "", value
        if isinstance(node, c_ast.BinaryOp) and node.op == "%":
            turns, node = spell(node.right), node.left
        if isinstance(node, c_ast.BinaryOp) and node.op == "/":
            inner, node = integer_of(node.right) or 0, node.left
        if isinstance(node, c_ast.ID) and node.name == "pass":
            found[name] = (inner, turns)
    return found


def differences_of_passes(
    path: str, plan: Plan, names: Names, source: CSource, constants: Mapping[str, c_ast.Node]
) -> Iterator[str]:
    """Passes that are counted otherwise than the plan's loops, and rows that are not pushed one by one."""
    nest, image = nest_of_rows(plan), plan.image
    if not nest or image is None:
        return
    stated = list(_places(constants).values())
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
    form = form_of(constants["pass"], {}) if "pass" in constants else None
    begins = [form.constant] if form is not None and form.terms == (("row", 1),) else []
    if begins != [-first]:
        yield f"{path}, {names.step_functions[0]}: row 0 comes with pass {_words(begins)}, in the plan with {-first}"
    yield from _differences_of_rowless(path, names, names.begin, source, [(f"{first}", "0")] if first else [])
    end, rows = first + inner, names.tensor(ir.Border.INPUT, image, next(iter(image.pieces)))
    after = [(rows, f"{end}")] if image.num_rows < end else []
    yield from _differences_of_rowless(path, names, names.end, source, after)
    if not _has(source, names.begin, "context->num_rows = 0;"):
        yield f"{path}, {names.begin} does not begin with row 0"
    push_rows = names.functions["push_rows"]
    if not _has(source, push_rows, _pushing(image, names)):
        yield f"{path}, {push_rows} does not pass on rows of {image.row_bytes} B one by one"


def _first_row(plan: Plan, nest: Sequence[Loop]) -> int | None:
    """The row that the first pass takes: 0, or less where it takes none."""
    rows = plan.steps[0].rows
    variables = {loop.variable: Form(0, ((loop.variable, 1),)) for loop in nest if loop.variable is not None}
    form = None if rows is None or rows.begin is None else form_of(expression(str(rows.begin)), variables)
    return None if form is None else form.constant


def _differences_of_rowless(
    path: str, names: Names, function: str, source: CSource, expected: list[tuple[str, str]]
) -> Iterator[str]:
    """Passes that take no row, if a function runs others."""
    stated: list[tuple[str, str]] = []
    for node in _nodes(source, function):
        loop = loop_of(node)
        if loop is not None and plain_name(loop[0]) == "row":
            ends = (spell(loop[1]), spell(loop[2]))
            head = f"for (int32_t row = {ends[0]}; row < {ends[1]}; ++row)"
            is_passing = spell(node) == spell(statement(f"{head} {{ {_passing('NULL', 'row', names)} }}"))
            stated += [ends] if is_passing else []
    if stated != expected:
        listed = [[f"{begin} to {end}" for begin, end in passes] for passes in (stated, expected)]
        yield f"{path}, {function} runs passes {_words(listed[0])} without a row, in the plan {_words(listed[1])}"


def _pushing(image: PlannedTensor, names: Names) -> str:
    """The loop over the rows that the application pushes."""
    row = f"rows + ((size_t)pushed * {image.row_bytes // image.dtype.size_bytes}u)"
    passing = _passing(row, "context->num_rows", names)
    return f"for (int32_t pushed = 0; pushed < num_rows; ++pushed) {{ {passing} ++context->num_rows; }}"


def _passing(rows: str, row: str, names: Names) -> str:
    """One pass; what fails ends all that was begun."""
    refusal = f"if (status != {names.ok}) {{ context->is_begun = 0; return status; }}"
    return f"const int32_t status = {names.step_functions[0]}(context, {rows}, {row}); {refusal}"


def _has(source: CSource, function: str, text: str) -> bool:
    """Whether a function has a statement."""
    expected = spell(statement(text))
    return any(spell(node) == expected for node in _nodes(source, function))


def _nodes(source: CSource, function: str) -> Iterator[c_ast.Node]:
    """What is in a function that may be a statement by itself."""
    found = source.function(function)
    nodes = [] if found is None else descend(found.body)
    return (node for node in nodes if isinstance(node, c_ast.For | c_ast.Assignment))


def _words(values: Sequence[object]) -> str:
    return ", ".join(map(str, values)) or "none"


def _num_turns(loop: Loop) -> int:
    return loop.end if isinstance(loop.end, int) else 0


def _listed(nest: Sequence[Loop]) -> str:
    return ", ".join(f"'{loop.variable}'" for loop in nest)
