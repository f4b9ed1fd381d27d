"""Whether the entry's loops and branches are those of the plan: around which steps, how often, and on what."""

from collections.abc import Iterator

from pycparser import c_ast

from bytewright.inspect.c_nodes import LongForm, definitions_of, spell
from bytewright.inspect.c_numbers import Numbers
from bytewright.inspect.check_row_loops import branches_in_c, loops_in_c, places_of_rows
from bytewright.inspect.read_entry import Entry, read_place
from bytewright.ir.analyses.affine import Form
from bytewright.ir.analyses.clock import Branch
from bytewright.record.buffers import PlaceKind
from bytewright.record.names import Names
from bytewright.record.plan import Plan


def faults_of_branches(plan: Plan) -> Iterator[str]:
    """Arms of steps that do not exist or do not follow each other, and branches on what is no condition of the plan."""
    for branch in plan.branches:
        first, second = branch.then
        if (
            not 0 <= first <= second <= branch.otherwise[1] <= len(plan.steps)
            or second != branch.otherwise[0]
        ):
            yield f"{_named(branch)} has {_arms(branch.then, branch.otherwise)}, which do not follow each other"
        if branch.buffer is not None and branch.compared is not None:
            yield f"{_named(branch)} is on numbers as well: ({branch.compared})"
    on_buffers = [branch for branch in plan.branches if branch.buffer is not None]
    stated = [(condition.buffer, _step_after(plan, condition.tick)) for condition in plan.conditions]
    if [(branch.buffer, branch.then[0]) for branch in on_buffers] != stated:
        yield f"{len(on_buffers)} branches are on buffers, and they are not the {len(stated)} conditions in order"
    for branch, condition in zip(on_buffers, plan.conditions, strict=False):
        around = _loop_around(plan, branch)
        if branch.then[0] < branch.otherwise[1] and condition.loop != around:
            yield f"{_named(branch)} is {_in_loop(around)}, its condition {_in_loop(condition.loop)}"


def _loop_around(plan: Plan, branch: Branch) -> tuple[int, int] | None:
    """The steps of the innermost loop that a branch with steps is in; loops inside its arms may have the same steps."""
    first, last = branch.then[0], branch.otherwise[1] - 1
    around = [loop.steps for loop in plan.loops if loop.has_step(first) and loop.has_step(last)]
    outer = sorted(around, key=lambda steps: steps[0] - steps[1])[: branch.num_loops]
    return outer[-1] if outer else None


def _in_loop(steps: tuple[int, int] | None) -> str:
    return "in no loop" if steps is None else f"in the loop of steps {steps[0]} to {steps[1]}"


def _step_after(plan: Plan, tick: int) -> int:
    """How many steps are over in a tick."""
    return sum(step.ticks[1] <= tick for step in plan.steps)


def numbers_of(entry: Entry, plan: Plan, names: Names) -> Numbers:
    """What the names of numbers in the C stand for in the plan."""
    variables = {
        text.variable: (LongForm if text.is_long else Form)(0, ((loop.variable, 1),))
        for text, loop in zip(entry.loops, loops_in_c(plan), strict=False)
        if loop.variable is not None
    }
    found = definitions_of(entry.constants, {**variables, **places_of_rows(plan, entry.constants)})
    contexts = {names.device_context(device): device for device in plan.devices}
    return Numbers(*found, {symbol.name: symbol for symbol in plan.symbols}, contexts)


def differences_of_flow(path: str, plan: Plan, names: Names, entry: Entry, known: Numbers) -> Iterator[str]:
    """Loops and branches that are not the plan's."""
    loops, branches = loops_in_c(plan), branches_in_c(plan)
    if [text.steps for text in entry.loops] != [loop.steps for loop in loops]:
        written = [
            ", ".join(f"{first} to {last}" for first, last in steps) or "none"
            for steps in ([text.steps for text in entry.loops], [loop.steps for loop in loops])
        ]
        yield f"{path} has loops of steps {written[0]}; in the plan {written[1]}"
    else:
        for text, loop in zip(entry.loops, loops, strict=True):
            turns = tuple(map(known.without_extents.text, text.ends or ())) or (None, None)
            if loop.variable is not None and turns != (loop.begin, loop.end):
                yield (
                    f"{path}: the loop of steps {loop.steps[0]} to {loop.steps[1]} runs from {_text(turns[0])} to "
                    f"{_text(turns[1])}, in the plan from {_text(loop.begin)} to {_text(loop.end)}"
                )
    if len(entry.branches) != len(branches):
        yield f"{path} has {len(entry.branches)} branches, the plan {len(branches)}"
        return
    for text, branch in zip(entry.branches, branches, strict=True):
        if (text.then, text.otherwise) != (branch.then, branch.otherwise):
            yield (
                f"{path}: {_named(branch)} has {_arms(text.then, text.otherwise)}, in the plan "
                f"{_arms(branch.then, branch.otherwise)}"
            )
        if text.num_loops != branch.num_loops:
            yield f"{path}: {_named(branch)} is in {text.num_loops} loops, in the plan in {branch.num_loops}"
        if not _is_on(text.condition, branch, plan, names, known):
            yield f"{path}: {_named(branch)} is on '{spell(text.condition)}'"


def _is_on(condition: c_ast.Node, branch: Branch, plan: Plan, names: Names, known: Numbers) -> bool:
    """Whether the C of a condition is that of a branch."""
    if branch.buffer is None:
        return known.without_extents.compared(condition) == branch.compared
    buffer, found = plan.buffers.get(branch.buffer), None
    match condition:
        case c_ast.BinaryOp(
            op="!=", left=c_ast.UnaryOp(op="*", expr=address), right=c_ast.Constant(value="0")
        ):
            found = read_place(address, names)
        case _:
            pass
    if buffer is None or found is None:
        return False
    expected = names.argument(buffer)
    if buffer.place.kind is not PlaceKind.CALLER:
        expected = f"{names.base(plan.pools[buffer.place.name])} + {expected}"
    return found.index is None and found.address == expected


def _named(branch: Branch) -> str:
    return f"the branch on {branch.text}"


def _arms(then: tuple[int, int], otherwise: tuple[int, int]) -> str:
    """`the arms 3..5 and none`."""
    first, second = (f"{begin}..{end - 1}" if begin < end else "none" for begin, end in (then, otherwise))
    return f"the arms {first} and {second}"


def _text(number: int | str | None) -> str:
    return "what changes otherwise" if number is None else str(number)
