"""Rows of a program on its way in: a ring keeps what is still to be read, and outputs get all of their rows.

A ring is a tensor that the entry allocates for itself. Each kernel that is given one goes through it by rows
(`analyses/rows.py`), so the calls of the entry say in numbers which rows they make and need, and are carried out one by
one (`analyses/row_replay.py`). `check` judges a bundle in the same way; this is said to whoever wrote the program.
"""

from collections.abc import Iterator

from bytewright import ir
from bytewright.ir.analyses.arguments import buffer_arguments
from bytewright.ir.analyses.row_program import RowProgram, row_program
from bytewright.ir.analyses.row_replay import RowFault, replay
from bytewright.ir.analyses.rows import row_windows
from bytewright.ir.verify.violation import UNWRITTEN, Violation
from bytewright.ir.walk import statements_of

_ELSEWHERE = "leave out ring=, or make it an allocation of the entry"
_FOLLOWED = (
    "loops and rows of calls as sums of loop variables with numbers for ends, such as `for turn : i32 in 0 .. 9 { call "
    "k(&t, &y, turn, turn + 1) }`"
)
MOST_SIZES = 64  # of a ring that are tried for a help


def row_violations(module: ir.Module) -> tuple[Violation, ...]:
    """What is wrong with the rows of a program that keeps to all other rules."""
    found = [*_of_definitions(module)]
    found = found or [*_of_calls(module)]
    return tuple(found or _of_replay(module))


def _of_definitions(module: ir.Module) -> Iterator[Violation]:
    """Only what the entry allocates is a ring, and what kernels are given of it."""
    for constant in module.constant_buffers:
        if constant.buffer.rows is not None:
            yield Violation(None, constant, f"constant '{constant.buffer.name}' is a ring", "leave out ring=")
    for function in (*module.kernels, module.main):
        is_entry = function is module.main
        for parameter in function.buffer_parameters:
            is_scratch = parameter.role is ir.ParameterRole.SCRATCH
            if parameter.buffer.rows is not None and (is_entry or is_scratch):
                what = "whose rows the application counts" if is_entry else "which is scratch"
                text = f"'{parameter.name}' of '{function.name}' is a ring, {what}"
                yield Violation(function, parameter, text, _ELSEWHERE)
        for statement in statements_of(function):
            if not isinstance(statement, ir.Allocate | ir.View) or statement.buffer.rows is None:
                continue
            name = statement.buffer.name
            if isinstance(statement, ir.View):
                yield Violation(function, statement, f"view '{name}' is a ring", "leave out ring=")
            elif not is_entry:
                text = f"'{name}' is a ring, which kernel '{function.name}' has for itself"
                yield Violation(function, statement, text, _ELSEWHERE)
            elif ir.border_of(statement) is not None:
                text = f"'{name}' is a ring, whose rows the application counts"
                yield Violation(function, statement, text, _ELSEWHERE)


def _of_calls(module: ir.Module) -> Iterator[Violation]:
    """What is given a ring knows how many rows it keeps, and goes through it row by row."""
    kernels = {kernel.name: kernel for kernel in module.kernels}
    for function in (*module.kernels, module.main):
        for call in (s for s in statements_of(function) if isinstance(s, ir.Call)):
            kernel = kernels.get(call.callee)
            given = [] if kernel is None else buffer_arguments(kernel, call)
            if kernel is None:
                rings = [a.buffer for a in call.arguments if isinstance(a, ir.Region) and a.buffer.rows]
                given += [(None, ir.Region(buffer, ())) for buffer in rings]
            for parameter, region in given:
                if region.buffer.rows is None and (parameter is None or parameter.buffer.rows is None):
                    continue
                fault = _fault_of_argument(kernel, parameter, region)
                if fault is not None:
                    yield Violation(function, call, *fault)


def _fault_of_argument(
    kernel: ir.PrimFunc | None, parameter: ir.BufferParameter | None, region: ir.Region
) -> tuple[str, str] | None:
    """What is wrong with a ring that is passed, or with what is passed for one; and what to do."""
    buffer, ring = region.buffer, region.buffer.rows
    if kernel is None or parameter is None:
        return f"ring '{buffer.name}' is passed to what is no kernel of the module", "leave out ring="
    what = f"'{buffer.name}' is passed to '{parameter.name}' of '{kernel.name}'"
    if ring != parameter.buffer.rows:
        described = [_described(rows) for rows in (ring, parameter.buffer.rows)]
        return f"{what}: {described[0]}, {described[1]} is asked for", "the same ring= at both, or at neither"
    if region.indices:
        return f"{what} from an element on, but is a ring", f"&{buffer.name}"
    access = row_windows(kernel)
    if access is None or ring is None or access.axes.get(parameter.name) != ring.axis:
        return f"ring {what}, which does not go through it row by row", _form(
            parameter.buffer, access is None
        )
    if (buffer.shape, buffer.dtype) != (parameter.buffer.shape, parameter.buffer.dtype):
        return f"ring {what}, which has another shape or type", "the same shape and type"
    return None


def _described(rows: ir.RingRows | None) -> str:
    return "no ring" if rows is None else f"a ring of {rows.num_rows} rows"


def _form(buffer: ir.Buffer, is_of_kernel: bool) -> str:
    """The form of kernels that is understood."""
    of_kernel = (
        "a kernel of rows has one output and the numbers row_begin and row_end, and stores row r of the output alone "
        "in each of its loops `for r : i32 in max(row_begin, 0) .. min(row_end, ROWS)`; "
    )
    rows = ir.upper_bound(buffer.shape[0 if buffer.rows is None else buffer.rows.axis])
    row = f"r * STRIDE + NUMBER, at will within max(..., 0) or min(..., {rows - 1})"
    return f"{of_kernel if is_of_kernel else ''}of '{buffer.name}' it reads or writes rows {row}"


def _of_replay(module: ir.Module) -> Iterator[Violation]:
    """Rows that are read before they are made, that a ring keeps no longer, or that an output never gets."""
    program = row_program(module)
    outputs, states = (
        [buffer.name for buffer in ir.border_buffers(module.main, border)]
        for border in (ir.Border.OUTPUT, ir.Border.STATE)
    )
    for fault in replay(program.nodes, program.slots, outputs, states=states):
        call = program.calls[fault.step]
        if fault.last is not None:
            text = f"which rows the calls from '{call.callee}' on make cannot be followed"
            yield Violation(module.main, call, text, _FOLLOWED, code=UNWRITTEN)
            continue
        which = "" if fault.call is None else f", the {_ordinal(fault.call + 1)} time that it is called"
        text = f"'{call.callee}' {fault.text}{which}"
        yield Violation(module.main, call, text, _help(fault, program, outputs), code=UNWRITTEN)


def _ordinal(number: int) -> str:
    suffix = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{suffix}"


def _help(fault: RowFault, program: RowProgram, outputs: list[str]) -> str:
    """What to change."""
    name = fault.buffer or ""
    if fault.is_lost and name in program.slots:
        slots = program.slots[name]
        for size in range(slots + 1, slots + 1 + MOST_SIZES):
            found = replay(program.nodes, {**program.slots, name: size}, outputs)
            if not any(other.buffer == name and other.is_lost for other in found):
                return f"keep {size} rows of '{name}', or all"
        return f"leave out the ring= of '{name}', so that all rows are kept"
    if fault.call is None:
        return f"as many turns as make all rows of '{name}'"
    return f"make the rows of '{name}' before they are read"
