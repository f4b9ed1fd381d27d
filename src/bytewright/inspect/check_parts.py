"""Whether each call of the C is given the plan's buffers, in order, from where the plan says that they begin."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest

from pycparser import c_ast

from bytewright.inspect.c_nodes import LONG, spell, type_name
from bytewright.inspect.c_numbers import Numbers
from bytewright.inspect.read_entry import CallText, Place, read_place
from bytewright.record.buffers import PlaceKind, PlannedBuffer
from bytewright.record.entries import PlannedStep
from bytewright.record.names import MAX_NAMED, Names
from bytewright.record.plan import Plan

# By numpy's names; of others `int8_t` and the like. In memory a truth value is a byte.
_C_TYPES = {"bool": "uint8_t", "float32": "float", "float64": "double"}


def differences_of_marks(
    path: str, plan: Plan, names: Names, end: int, marks: Sequence[tuple[int, str]]
) -> Iterator[str]:
    """The macros between steps: before each step one with its number, and one after the last with the number `end`."""
    watched = [names.base(pool) for pool in plan.workspaces if plan.buffers_in(pool.name)]
    given = ", ".join((watched if len(watched) <= MAX_NAMED else [names.step_workspaces]) or ["NULL"])
    numbers = [*(step.index for step in plan.steps), end]
    expected = [(place, f"{names.step}({number}, {given})") for place, number in enumerate(numbers)]
    for actual, wanted in zip_longest(marks, expected):
        if actual != wanted:
            texts = [
                "nothing" if each is None else f"{each[1]} behind {each[0]} steps"
                for each in (actual, wanted)
            ]
            yield f"{path} has {texts[0]}, the plan asks for {texts[1]}"
            return


def differences_of_arguments(
    call: CallText,
    plan: Plan,
    names: Names,
    step: PlannedStep,
    buffers: Mapping[str, PlannedBuffer],
    known: Numbers,
) -> Iterator[str]:
    """What one call is given otherwise than the plan says.

    Args:
        call: As it was read.
        plan: Of the bundle.
        names: Of the bundle.
        step: The call in the plan.
        buffers: What the step touches, by what the C calls it.
        known: What names of numbers stand for in the plan.
    """
    if call.names != frozenset(buffers):
        yield f"plan and call differ in {', '.join(sorted(call.names ^ frozenset(buffers)))}"
        return
    packed = len(call.arguments) if call.is_packed else 0
    if (call.is_packed, packed) != (step.is_packed, step.num_packed_arguments):
        yield f"it passes {packed} arguments in arrays, by the plan {step.num_packed_arguments}"
    given: list[str] = []
    passed: list[tuple[str, bool]] = []  # by a cast, and whether only to be read
    numbers: list[c_ast.Node] = []
    starts = [*step.starts] or [0] * len(step.arguments)
    for argument in call.arguments:
        place = read_place(argument, names)
        if place is None and spell(argument) in buffers:  # rows that are pushed have no other name
            place = Place("", spell(argument), None, None)
        buffer = None if place is None else buffers.get(place.name)
        if place is not None and buffer is not None:
            start = starts[len(given)] if len(given) < len(starts) else None
            given.append(buffer.name)
            if place.element is not None:
                passed.append((buffer.name, place.is_const))
            yield from _differences_of_place(place, plan, names, buffer)
            if (0 if place.index is None else known.text(place.index)) != start:
                yield f"'{buffer.name}' is passed from '{spell(argument)}' on, by the plan from element {start}"
            yield from _faults_of_start(start, buffer)
        elif any(name in spell(argument) for name in buffers):
            yield f"'{spell(argument)}' is no address as it is generated"
        else:
            numbers.append(argument)
    if tuple(given) != step.arguments:
        yield f"it is given {_listed(given)}, by the plan {_listed(step.arguments)}"
    yield from _differences_of_access(step, passed)
    yield from _differences_of_numbers(step, numbers, known)


def _listed(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names)) or "no buffer"


def _differences_of_numbers(step: PlannedStep, given: Sequence[c_ast.Node], known: Numbers) -> Iterator[str]:
    """What is passed by value is what the plan says."""
    planned = step.scalars if step.rows is None else (step.rows.begin, step.rows.end)
    if len(given) != len(planned):
        yield f"it is given {len(given)} numbers, by the plan {len(planned)}"
        return
    for node, number in zip(given, planned, strict=True):
        if known.passed(node) != number and known.passed(_packed(step, node)) != number:
            yield f"it is given the number '{spell(node)}', by the plan '{number}'"


def _packed(step: PlannedStep, node: c_ast.Node) -> c_ast.Node:
    """What an array has as a wider number, or as the pointer in a context, where a call is passed those."""
    match node:
        case c_ast.StructRef(name=inner, field=c_ast.ID(name="self"), type=".") if step.is_packed:
            return inner
        case c_ast.Cast(to_type=to, expr=inner) if step.is_packed and type_name(to) in {LONG, "double"}:
            return inner
        case _:
            return node


def _differences_of_access(step: PlannedStep, passed: Sequence[tuple[str, bool]]) -> Iterator[str]:
    """What is passed as const is read, and nothing else is written or worked in."""
    for name in dict.fromkeys(name for name, _ in passed):
        if (name, True) in passed and name not in step.reads:
            yield f"'{name}' is passed to be read, and by the plan it is not"
        if ((name, False) in passed) != (name in (*step.writes, *step.scratch)):
            yield f"'{name}' is{' not' * ((name, False) not in passed)} passed to be written, against the plan"


def _differences_of_place(place: Place, plan: Plan, names: Names, buffer: PlannedBuffer) -> Iterator[str]:
    """The base is that of its pool, and the type that of its elements."""
    address = names.argument(buffer)
    if buffer.place.kind in (PlaceKind.PLANNED, PlaceKind.CONSTANT) and buffer.place.name in plan.pools:
        address = f"{names.base(plan.pools[buffer.place.name])} + {address}"
    if place.address != address:
        yield f"'{buffer.name}' is passed as '{place.address}', not as '{address}'"
    known = "" if buffer.dtype is None else buffer.dtype.numpy.name
    if place.element is not None and known and place.element != _C_TYPES.get(known, f"{known}_t"):
        yield f"'{buffer.name}' of {known} is passed as '{place.element}'"


def _faults_of_start(start: int | str | None, buffer: PlannedBuffer) -> Iterator[str]:
    """What begins from a byte on is in its buffer, and the first of a part if that has any."""
    if not isinstance(start, int) or buffer.dtype is None:
        return
    first = start * buffer.dtype.size_bytes
    starts = {0, *(part.offset_bytes for part in buffer.parts)}
    if not 0 <= first < max(buffer.size_bytes, 1) or (buffer.parts and first not in starts):
        yield f"'{buffer.name}' is passed from byte {first} on, where no part of it lies"
