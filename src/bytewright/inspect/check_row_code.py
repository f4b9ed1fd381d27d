"""Whether the C of steps that run by rows is the plan's: the rows that calls ask for, and how kernels find them.

A kernel that is given a ring must find each row in its slot: wherever its C reaches into the ring, what depends on the
row stands under `% rows`, with the ring's own number of rows; and it must leave out rows that its output does not have.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache

from bytewright.c_names import unique_name
from bytewright.inspect.read_c import CallText, JobText, split_arguments
from bytewright.inspect.read_flow import read_form
from bytewright.ir.analyses.affine import Form
from bytewright.ir.analyses.rows import ROW_BEGIN, ROW_END
from bytewright.record.names import ROWS, Names
from bytewright.record.plan import Plan, PlannedStep
from bytewright.record.row_calls import asked_rows

_CONSTANT = re.compile(r"^ *(?:static )?const (?:u?int\d+_t|bool) (\w+) =\s+([^;]+);$", re.MULTILINE)
_ROW_LOOP = re.compile(r"for \(int32_t (\w+) = ([^;]+); \1 < ([^;]+); \+\+\1\)")
_VIEW = re.compile(r"^ *(?:const )?\w+ \*const (\w+) =\s+([^;]+);$", re.MULTILINE)
_ENDS = re.compile(r"\s*(?::|;)")  # where a pointer is taken as it is
_INSTRUCTION = re.compile(r"^static inline \w+ (\w+)\(", re.MULTILINE)
_PASSED = re.compile(r"\s*[,)]")
_NAME = re.compile(r"[A-Za-z_]\w*")
_TOKEN = re.compile(r"[A-Za-z_]\w*|[{}]")
_DECLARED = re.compile(r"(?:u?int\d+_t|bool|float|double) (?:\*const |\*)?(\w+)(?= =|\[|;)")


def differences_of_rows(
    path: str,
    plan: Plan,
    names: Names,
    calls: Sequence[CallText],
    kernels: str,
    known: Mapping[str, Form],
) -> Iterator[str]:
    """What differs, one sentence each.

    Args:
        path: The file with the calls, as messages call it.
        plan: The plan.
        names: The names of its bundle.
        calls: One for each step.
        kernels: The text of the files with the kernels.
        known: What names of numbers stand for in the plan.
    """
    asked_by = cache(lambda: asked_rows(plan))  # goes through all calls: only where the C leaves it open
    for written, step in zip(calls, plan.steps, strict=True):
        if step.rows is None:
            continue
        call = written if written.job is None else _as_plain_call(written, written.job, step, kernels)
        image = ROWS if names.takes_rows else None  # an address, as all others that are no sums
        forms = [read_form(argument, known) for argument in call.arguments if argument != image]
        asked = [form.written for form in forms if form is not None]
        planned = [step.rows.begin, step.rows.end]
        if asked != planned:
            yield (f"{path}, step {step.index} asks for rows {_range(asked)}, in the plan {_range(planned)}")
        if kernels:  # or the file is missed already
            yield from _differences_of_kernel(plan, names, step, call, kernels, asked_by)


def _as_plain_call(call: CallText, job: JobText, step: PlannedStep, kernels: str) -> CallText:
    """The call that a job is on its device: its kernel's parameters with the spans and the numbers, in their order."""
    parameters, _ = _function(kernels, step.kernel)
    spans, numbers = iter(job.spans), iter(job.scalars)
    arguments: list[str] = []
    for parameter in parameters:
        if parameter in {ROW_BEGIN, ROW_END}:
            arguments.append(next(numbers, ""))
            continue
        span = next(spans, None)
        arguments.append("" if span is None else f"&({span.address})")  # no number
    return replace(call, arguments=tuple(arguments))


def _range(ends: Sequence[int | str | None]) -> str:
    return " to ".join(f"'{end}'" for end in ends) or "none"


def _differences_of_kernel(
    plan: Plan,
    names: Names,
    step: PlannedStep,
    call: CallText,
    kernels: str,
    asked_by: Callable[[], Mapping[int, tuple[int, int]]],
) -> Iterator[str]:
    """Of one call: how its kernel goes about each ring that it is given, and about rows that do not exist."""
    device = plan.devices.get(step.device)
    front = f"{names.kernels_source if device is None else names.device_source(device)}, {step.kernel}"
    parameters, body = _function(kernels, step.kernel)
    if len(parameters) != len(call.arguments):
        yield f"{front} has {len(parameters)} parameters, step {step.index} passes {len(call.arguments)}"
        return
    body = _told_apart(re.sub(r"/\*.*?\*/", "", body, flags=re.DOTALL))
    constants = dict(_CONSTANT.findall(body))
    rows, moving = _row_variables(body, constants)
    instructions = frozenset(_INSTRUCTION.findall(kernels))
    num_rows = 0 if step.rows is None else step.rows.num_rows
    is_within = all(_is_within(ends, constants, num_rows) for ends in rows.values())
    if not is_within:
        asked = asked_by().get(step.index)
        is_within = all(_is_within(ends, constants, num_rows, asked) for ends in rows.values())
    if not rows or not is_within:
        yield f"{front} does not leave out rows that are not among the {num_rows} of its output"
    for name in step.touched:
        buffer = plan.buffers.get(name)
        if buffer is None or buffer.ring is None:
            continue
        ring, at = buffer.ring, re.compile(rf"\b{re.escape(names.argument(buffer))}\b")
        given = [
            parameter for parameter, text in zip(parameters, call.arguments, strict=True) if at.search(text)
        ]
        for parameter in given:
            if not _keeps_to_ring(body, parameter, ring.num_rows, moving, constants, instructions):
                yield f"{front} reaches rows of its {parameter} otherwise than in the {ring.num_rows} slots of a ring"


def _function(text: str, name: str) -> tuple[list[str], str]:
    """The names of a function's parameters, and its body; nothing for one that is not there."""
    found = re.search(
        rf"^(?:static )?void {name}\(([^)]*)\)\s*\{{\n(.*?)^\}}", text, re.MULTILINE | re.DOTALL
    )
    if found is None:
        return [], ""
    return [parameter.split()[-1].lstrip("*") for parameter in split_arguments(found[1])], found[2]


def _told_apart(body: str) -> str:
    """The same with another name for what is declared under a name that was declared before."""
    used, scopes, taken = set(_NAME.findall(body)), [dict[str, str]()], set[str]()
    opened, declared = False, -1  # whether a loop has begun its scope; where a name that is declared stands

    def renamed(token: re.Match[str]) -> str:
        nonlocal opened, declared
        text = token[0]
        if text == "for" or (text == "{" and not opened):
            scopes.append({})
        elif text == "}" and len(scopes) > 1:
            scopes.pop()
        opened = text == "for" or (opened and text != "{")
        found = _DECLARED.match(body, token.start())
        declared = found.start(1) if found else declared
        if token.start() == declared:
            scopes[-1][text] = unique_name(text, used) if text in taken else text
            taken.add(text)
        return next((scope[text] for scope in reversed(scopes) if text in scope), text)

    return _TOKEN.sub(renamed, body)


def _row_variables(
    body: str, constants: Mapping[str, str]
) -> tuple[dict[str, tuple[str, str]], frozenset[str]]:
    """The variables of loops over the rows that were asked for, each with its ends, and all that moves with a row."""
    loops = {
        variable: (begin, end)
        for variable, begin, end in _ROW_LOOP.findall(body)
        if "row_begin" in _expanded(begin, constants) and "row_end" in _expanded(end, constants)
    }
    return loops, frozenset({*loops, "row_begin", "row_end"})


def _expanded(text: str, constants: Mapping[str, str], depth: int = 0) -> frozenset[str]:
    """All names that a text depends on, with what constants stand for."""
    found: set[str] = set()
    for name in _NAME.findall(text):
        found.add(name)
        if name in constants and depth < len(constants):
            found |= _expanded(constants[name], {k: v for k, v in constants.items() if k != name}, depth + 1)
    return frozenset(found)


def _is_within(
    ends: tuple[str, str],
    constants: Mapping[str, str],
    num_rows: int,
    asked: tuple[int, int] | None = None,
) -> bool:
    """Whether the ends of a loop over rows keep to the rows of the output, or to fewer.

    An end that is what the calls ask for does if all of them ask for rows that there are.
    """
    low, high = (_kept(_bounds(end, constants), word) for end, word in zip(ends, ("max", "min"), strict=True))
    low += [] if asked is None else [asked[0]]
    high += [] if asked is None else [asked[1]]
    return bool(low and high) and max(low) >= 0 and min(high) <= num_rows


def _kept(text: str, word: str) -> list[int]:
    """The numbers that a bound is kept within by functions of a name."""
    call, numbers = re.compile(rf"\b{word}_i32\([^()]*, (-?\d+)\)"), list[int]()
    while (found := call.search(text)) is not None:
        numbers.append(int(found[1]))
        text = f"{text[: found.start()]}_{text[found.end() :]}"
    return numbers


def _bounds(text: str, constants: Mapping[str, str]) -> str:
    """The text of a bound, and of what it is made of."""
    texts = [text]
    for known in texts:
        texts += [constants[name] for name in _NAME.findall(known) if constants.get(name, known) not in texts]
    return " ".join(texts)


def _keeps_to_ring(
    body: str,
    parameter: str,
    num_rows: int,
    moving: frozenset[str],
    constants: Mapping[str, str],
    instructions: frozenset[str],
) -> bool:
    """Whether a kernel touches a ring, and each time in the slot of a row.

    Every index of the ring, and of what points into it, moves with the row under the ring's modulo alone, and on the
    way to what is touched there is such an index. A ring of one row has no modulo: nothing moves with the row there,
    and a pointer may be taken as it is. An instruction is given pointers, from which on it touches a few elements of a
    row.
    """
    views = [(found[1], *found.span(2)) for found in _VIEW.finditer(body)]
    in_slot = {parameter: num_rows == 1}
    for view, begin, end in views:
        sources = [name for name in in_slot if name in _NAME.findall(body[begin:end])]
        if sources and view not in in_slot:
            in_slot[view] = all(
                in_slot[name] or _has_slot(body[begin:end], num_rows, constants) for name in sources
            )
    touches: list[bool] = []
    for found in re.finditer(rf"\b(?:{'|'.join(map(re.escape, in_slot))})\b", body):
        rest, is_in_slot = body[found.end() :], in_slot[found[0]]
        is_of_view = any(begin <= found.start() < end for _, begin, end in views)
        if rest.startswith("["):
            index = _bracketed(body, found.end())
            if _moves(index, num_rows, moving, constants):
                return False
            is_in_slot = is_in_slot or _has_slot(index, num_rows, constants)
        elif body[: found.start()].endswith("*const "):
            continue  # declared there
        elif not (_is_passed_to(instructions, body, found) or (is_of_view and _ENDS.match(rest))):
            return False  # passed on otherwise, or computed with
        if not is_of_view:
            touches.append(is_in_slot)
    return bool(touches) and all(touches)


def _is_passed_to(functions: frozenset[str], body: str, found: re.Match[str]) -> bool:
    """Whether a name stands alone as an argument of one of some functions."""
    return bool(_PASSED.match(body, found.end())) and _called_at(body, found.start()) in functions


def _has_slot(text: str, num_rows: int, constants: Mapping[str, str]) -> bool:
    """Whether something in a number stands under the ring's modulo."""
    if re.search(rf"% {num_rows}\b", text):
        return True
    return any(
        _has_slot(constants[name], num_rows, {key: value for key, value in constants.items() if key != name})
        for name in _NAME.findall(text)
        if name in constants
    )


def _called_at(text: str, position: int) -> str:
    """The function in whose parentheses a position stands."""
    depth = 0
    for begin in range(position - 1, -1, -1):
        depth += (text[begin] == ")") - (text[begin] == "(")
        if depth < 0:
            found = re.search(r"(\w+)$", text[:begin])
            return found[1] if found else ""
    return ""


def _bracketed(text: str, begin: int) -> str:
    """What stands between the bracket at a position and the one that closes it."""
    depth = 0
    for position in range(begin, len(text)):
        depth += (text[position] == "[") - (text[position] == "]")
        if not depth:
            return text[begin + 1 : position]
    return text[begin + 1 :]


def _moves(text: str, num_rows: int, moving: frozenset[str], constants: Mapping[str, str]) -> bool:
    """Whether a number depends on the row, but for what stands under the modulo."""
    plain = _without_slots(text, num_rows)
    for name in _NAME.findall(plain):
        others = {key: value for key, value in constants.items() if key != name}
        if name in moving or (name in constants and _moves(constants[name], num_rows, moving, others)):
            return True
    return False


def _without_slots(text: str, num_rows: int) -> str:
    """The text without what stands before `% rows`: a name, or what is in parentheses."""
    while True:
        found = re.search(rf"(\w+|\)) % {num_rows}\b", text)
        if found is None:
            return text
        begin = found.start()
        if found[1] == ")":
            depth = 0
            for begin in range(found.start(), -1, -1):
                depth += (text[begin] == ")") - (text[begin] == "(")
                if not depth:
                    break
        text = f"{text[:begin]}0{text[found.end() :]}"
