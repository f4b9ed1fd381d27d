"""The functions of `<model>.c` that take the place of the run where the input comes row by row.

    begin         checks, and what the steps do before the first row
    push_rows     a pass of the loops over rows for each row
    finish        the passes that are left, and the steps behind the loops, of which some are other devices'

The entry's nest of loops over rows is one function, `run_row`, which runs one pass of the innermost loop and what ends
with it. Where the application stands is in the context: how many rows there were, and where the outputs go.
"""

import re
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from math import prod

from bytewright import ir
from bytewright.codegen.arena import write_arena_resets
from bytewright.codegen.checks import any_is_null, write_overlap_check, write_run_checks, write_size_checks
from bytewright.codegen.entry_code import EntryCode, write_bases
from bytewright.codegen.expressions import memory_type
from bytewright.codegen.form import FormInC, StepFunctions
from bytewright.codegen.hand_over import write_hook_checks, write_run_on_devices
from bytewright.codegen.overlaps import MemorySpan, SpanTable, table_while_running
from bytewright.codegen.ports import described, run_head
from bytewright.codegen.run_contracts import (
    beside_hooks,
    errors_of_a_run,
    returns,
    what_devices_do,
    what_drivers_are_apart_from,
    what_is_shared,
    what_sizes_mean,
)
from bytewright.codegen.state import failure_contract
from bytewright.codegen.steps import StepWriter
from bytewright.codegen.writer import INDENT, Writer
from bytewright.diagnostics import InternalError
from bytewright.ir.analyses.row_loops import RowLoops, row_loops
from bytewright.ir.rewrite import Rewriting, rewrite_function
from bytewright.record.entries import PlannedTensor
from bytewright.record.names import BOUND, Names
from bytewright.record.plan import Plan


def _image_of(plan: Plan) -> PlannedTensor:
    """The input that comes row by row."""
    if plan.image is None:
        raise InternalError(f"model '{plan.model}' takes no rows")
    return plan.image


def _num_rows(plan: Plan, names: Names) -> str:
    """`KWS_INPUT_IMAGE_ROWS`: how many rows that has."""
    image = _image_of(plan)
    return names.tensor(ir.Border.INPUT, image, next(iter(image.pieces)))


def _begin_head(plan: Plan, names: Names) -> str:
    return run_head(plan, names, names.begin, plan.begin_arguments)


def _run_row_head(plan: Plan, names: Names) -> str:
    rows = f"const {memory_type(_image_of(plan).dtype)} *rows"
    return f"static int32_t {_run_row(names)}({names.context_type} *context, {rows}, int32_t row)"


def _push_rows_head(plan: Plan, names: Names) -> str:
    rows = f"const {memory_type(_image_of(plan).dtype)} *rows"
    return f"int32_t {names.functions['push_rows']}({names.context_type} *context, {rows}, int32_t num_rows)"


def _finish_head(plan: Plan, names: Names) -> str:
    return run_head(plan, names, names.end, _end_arguments(plan))


def _end_arguments(plan: Plan) -> tuple[str, ...]:
    return ("context", *(("devices",) if plan.devices else ()))


def _run_row(names: Names) -> str:
    """The function for one row, which only the file calls."""
    return names.step_functions[0]


class ByRows(FormInC):
    """Such an entry."""

    about_tensors = " The input comes row by row: so many rows, of so many bytes each."
    errors = (
        ("NOT_BEGUN", "rows were pushed, or a run finished, that was not begun"),
        ("ROWS", "fewer rows than none were pushed, or more than the input has left"),
        ("INCOMPLETE", "a run was finished before it had all rows"),
    )

    def given(self, module: ir.Module) -> ir.Module:
        """The module whose kernel that takes a row is given that row alone, in place of the whole input."""
        found = row_loops(module.main)
        one = ir.RingRows(found.axis, 1)

        def changed(kernel: ir.PrimFunc) -> ir.PrimFunc:
            if kernel.name != found.take.callee:
                return kernel
            image = kernel.buffer_parameters[0].name
            rows = Rewriting(buffer=lambda b: replace(b, rows=one) if b.name == image else b)
            return rewrite_function(kernel, rows)

        return replace(module, kernels=tuple(map(changed, module.kernels)))

    def tables(self, plan: Plan, names: Names) -> tuple[SpanTable, ...]:
        """Of the rows, and of what the drivers are in."""
        return (_rows_table(plan, names), *([_drivers_table(plan, names)] if plan.devices else []))

    def write_prototypes(self, writer: Writer, plan: Plan, names: Names) -> None:
        """The functions that stand for the run."""
        image = _image_of(plan)
        own = errors_of_a_run(plan)
        of_steps = [error for error in own if error in ("NO_MEMORY", "ORDER", "EXTERNAL")]
        of_sizes = [BOUND] if plan.checked_sizes else []
        of_devices = ["OVERLAP", "RANGE", "DEVICE"] if plan.devices else []
        of_rows = ["ALIGN"] if image.dtype.size_bytes > 1 else []
        of_outputs = ["ALIGN"] if any(tensor.dtype.size_bytes > 1 for tensor in plan.outputs) else []
        used = f"At most {names.stack_size} bytes of stack are used"
        writer.prototype(
            "Begins an inference, whatever the one before came to. Outputs and workspaces share no bytes with each "
            "other, with parameters, with the context, or with what the argument points to; they belong to the "
            f"inference until it is finished.\n{used}.\n{what_is_shared(plan)}\n"
            f"{returns(names, [*_without(own, 'ALIGN', 'DEVICE', BOUND, *of_steps), *of_outputs, *of_steps])}",
            _begin_head(plan, names),
        )
        writer.prototype(
            f"Takes the next rows of input '{image.c_name}', {described(image)}, from the top: {image.row_bytes} bytes "
            f"each, {_num_rows(plan, names)} in all, in as many calls as the application likes. Computes what they let "
            "be computed; the rows need not be kept. They share no bytes with outputs, workspaces and context.\n"
            f"{used}. An error of the rows changes nothing: others may be pushed.\n"
            f"{returns(names, ['NULL', 'NOT_BEGUN', 'ROWS', *of_rows, 'OVERLAP', 'RANGE', *of_steps])}",
            _push_rows_head(plan, names),
        )
        writer.prototype(
            "Computes the rest, when all rows were pushed; the outputs are there afterwards.\n"
            f"{what_drivers_are_apart_from(plan)}{what_sizes_mean(plan, names)}"
            f"{what_devices_do(plan)}{failure_contract(plan)}{used}{beside_hooks(plan)}.\n"
            f"{returns(names, ['NULL', 'NOT_BEGUN', 'INCOMPLETE', *of_steps, *of_devices, *of_sizes])}",
            _finish_head(plan, names),
        )

    def write_first(self, writer: Writer, plan: Plan, names: Names, steps: StepFunctions) -> None:
        """One row, the begin, and the one that takes rows."""
        steps.write_first(writer)
        _write_push_rows(writer, plan, names)

    def write_last(self, writer: Writer, plan: Plan, names: Names, steps: StepFunctions) -> None:
        """The end, and the steps behind the rows where these are apart."""
        del plan, names
        steps.write_last(writer)

    def calls(
        self, plan: Plan, names: Names, given: Mapping[str, str], inputs: Sequence[str]
    ) -> tuple[str, ...]:
        """The begin, all rows at once, and the end."""
        (image,) = inputs
        begin, end = (given[a] for a in plan.begin_arguments), (given[a] for a in _end_arguments(plan))
        return (
            f"{names.begin}({', '.join(begin)})",
            f"{names.functions['push_rows']}({given['context']}, {image}, {_num_rows(plan, names)})",
            f"{names.end}({', '.join(end)})",
        )

    def step_functions(self, code: EntryCode) -> StepFunctions:
        """All but the one that takes rows."""
        return _Steps(code)

    def frames(self, plan: Plan, names: Names) -> Mapping[str, tuple[Writer, Writer]]:
        """Heads and checks of those."""
        found = {name: (Writer(), Writer()) for name in (*names.step_functions, names.end)}
        fronts = {name: front for name, (front, _) in found.items()}
        fronts[_run_row(names)].line(f"{_run_row_head(plan, names)} {{")
        fronts[names.begin].line(f"{_begin_head(plan, names)} {{")
        write_run_checks(fronts[names.begin], plan, names)
        if plan.devices:
            fronts[names.steps].line(f"static {run_head(plan, names, names.steps)} {{")
        fronts[names.end].line(f"{_finish_head(plan, names)} {{")
        _write_finish_checks(fronts[names.end], plan, names)
        for name, (_, end) in found.items():
            if name == names.end and plan.devices:
                end.line("context->is_begun = 0;")
                write_run_on_devices(end, plan, names)
            else:
                if name == (names.steps if plan.devices else names.end):
                    write_size_checks(end, plan, names)
                end.line(f"return {names.ok};")
            end.line("}")
        return found


def _without(errors: Sequence[str], *left_out: str) -> list[str]:
    return [error for error in errors if error not in left_out]


def _rows_table(plan: Plan, names: Names) -> SpanTable:
    """What `<model>_push_rows` compares: the rows, and whatever changes while they are read."""
    image = _image_of(plan)
    given = {"rows": f"const {memory_type(image.dtype)} *", "num_rows": "int32_t "}
    rows = MemorySpan("rows", f"(size_t)num_rows * {image.row_bytes}u")
    return table_while_running(plan, names, plan.form.tables[0], given, rows)


def _drivers_table(plan: Plan, names: Names) -> SpanTable:
    """What `<model>_finish` compares: the structure of the drivers, and whatever changes while it is read."""
    drivers = MemorySpan("devices", "sizeof *devices")
    given = {"devices": f"const {names.devices_type} *"}
    return table_while_running(plan, names, plan.form.tables[1], given, drivers)


def _write_push_rows(writer: Writer, plan: Plan, names: Names) -> None:
    """The function that takes rows."""
    image = _image_of(plan)
    row_elements = image.row_bytes // image.dtype.size_bytes
    with writer.block(_push_rows_head(plan, names)):
        writer.refuse(any_is_null(("context", "rows")), names.error("NULL"))
        writer.refuse("context->is_begun == 0", names.error("NOT_BEGUN"))
        left = f"({_num_rows(plan, names)} - context->num_rows)"
        writer.refuse(f"(num_rows < 0) || (num_rows > {left})", names.error("ROWS"))
        if image.dtype.size_bytes > 1:
            natural = f"sizeof({memory_type(image.dtype)})"
            writer.refuse(f"((uintptr_t)rows % (uintptr_t){natural}) != 0u", names.error("ALIGN"))
        writer.refuse("num_rows == 0", names.ok)
        write_overlap_check(writer, names, _rows_table(plan, names))
        with writer.block("for (int32_t pushed = 0; pushed < num_rows; ++pushed)"):
            _write_pass(writer, names, f"rows + ((size_t)pushed * {row_elements}u)", "context->num_rows")
            writer.line("++context->num_rows;")
        writer.line(f"return {names.ok};")
    writer.line()


def _write_pass(writer: Writer, names: Names, rows: str, row: str) -> None:
    """One pass of the loops over rows; what fails ends all that was begun."""
    writer.line(f"const int32_t status = {_run_row(names)}(context, {rows}, {row});")
    with writer.block(f"if (status != {names.ok})"):
        writer.line("context->is_begun = 0;")
        writer.line("return status;")


def _write_finish_checks(writer: Writer, plan: Plan, names: Names) -> None:
    """What the function at the end checks before it computes anything."""
    pointers = ("context", "devices") if plan.devices else ("context",)
    writer.refuse(any_is_null(pointers), names.error("NULL"))
    writer.refuse("context->is_begun == 0", names.error("NOT_BEGUN"))
    writer.refuse(f"context->num_rows < {_num_rows(plan, names)}", names.error("INCOMPLETE"))
    if plan.devices:
        write_overlap_check(writer, names, _drivers_table(plan, names))
        write_hook_checks(writer, plan, names)


Writes = Callable[[Writer], None]


class _Steps:
    """Those that have steps, in the order in which they call each other: all but `push_rows`, between the two parts."""

    def __init__(self, code: EntryCode) -> None:
        self.code, self.plan, self.names = code, code.plan, code.names
        self.writer = Writer()  # of the file, when there is one
        self.steps = StepWriter(self.writer, code)
        self.loops: RowLoops = row_loops(self.steps.in_c(code.module.main))

    def write_first(self, writer: Writer) -> None:
        """One row, and the begin."""
        self.writer = writer
        self._run_row()
        self._begin()

    def write_last(self, writer: Writer) -> None:
        """The steps behind the rows, and the end."""
        self.writer = writer
        if self.plan.devices:
            self._run_steps()
        self._finish()

    # One row

    def _run_row(self) -> None:
        self.writer.comment(
            f"What comes with row {self.loops.first_row} to {self.loops.end_row - 1} of the input, which has "
            f"{self.loops.num_rows}: behind the row itself all that needs no further one. Without a row there is none."
        )
        with self._function(_run_row_head(self.plan, self.names)):
            self._places_of_loops()
            self._level(len(self.loops.loops) - 1)
            self.steps.writer.line(f"return {self.names.ok};")

    def _places_of_loops(self) -> None:
        """The variables of the loops, from the number of the pass."""
        first, turns = self.loops.first_row, self.loops.turns
        self.steps.writer.line(f"const int32_t pass = row{f' + {-first}' if first else ''};")
        for position, loop in enumerate(self.loops.loops):
            inner = prod(turns[position + 1 :])
            value = f"pass / {inner}" if inner > 1 else "pass"
            value += f" % {turns[position]}" if position else ""
            self.steps.writer.line(f"const int32_t {loop.variable.name} = {value};")

    def _level(self, position: int) -> None:
        """The statements of a loop, and behind its last turn those of the loop around it."""
        statements = self.loops.loops[position].body.statements
        is_innermost = position == len(self.loops.loops) - 1
        self.steps.sequence(ir.Seq(statements if is_innermost else statements[1:]))
        if position:
            last = self.loops.turns[position] - 1
            with self.steps.writer.block(f"if ({self.loops.loops[position].variable.name} == {last})"):
                self._level(position - 1)

    # Functions of the interface

    def _begin(self) -> None:
        names, first = self.names, self.loops.first_row

        def write_checks(writer: Writer) -> None:
            write_run_checks(writer, self.plan, names)

        with self._function(_begin_head(self.plan, names), write_checks):
            writer = self.steps.writer
            write_arena_resets(writer, self.plan, names)
            writer.line("context->outputs = *outputs;")
            writer.line("context->num_rows = 0;")
            writer.line("context->is_begun = 1;")
            if first:
                self._passes(f"{first}", "0")
            writer.line(f"return {names.ok};")

    def _run_steps(self) -> None:
        """What is behind the loops, where devices are taken into use around it."""
        self.writer.comment("The steps behind the rows, while all devices are in use.")
        with self._function(f"static {run_head(self.plan, self.names, self.names.steps)}"):
            self._after()

    def _after(self) -> None:
        self.steps.sequence(ir.Seq(self.loops.after))
        self.steps.end()
        write_size_checks(self.steps.writer, self.plan, self.names)
        self.steps.writer.line(f"return {self.names.ok};")

    def _finish(self) -> None:
        names = self.names

        def write_checks(writer: Writer) -> None:
            _write_finish_checks(writer, self.plan, names)

        with self._function(_finish_head(self.plan, names), write_checks):
            writer = self.steps.writer
            if self.loops.num_rows < self.loops.end_row:
                self._passes(_num_rows(self.plan, names), f"{self.loops.end_row}")
            writer.line("context->is_begun = 0;")
            if self.plan.devices:
                write_run_on_devices(writer, self.plan, names)
            else:
                self._after()

    def _passes(self, begin: str, end: str) -> None:
        """A loop over passes that take no row."""
        writer = self.steps.writer
        with writer.block(f"for (int32_t row = {begin}; row < {end}; ++row)"):
            _write_pass(writer, self.names, "NULL", "row")

    @contextmanager
    def _function(self, head: str, write_checks: Writes | None = None) -> Generator[None, None, None]:
        """A function whose body is written by the steps' writer, behind the variables that the body names.

        Args:
            head: Of it.
            write_checks: Writes what comes before the variables, which are read from the context.
        """
        body, variables = Writer(), Writer()
        self.steps.writer = body
        with body.indented():
            yield
        with variables.indented():
            write_bases(variables, self.plan, self.names)
            self.code.write_arguments(variables)
            if "*outputs" not in head:
                variables.line(f"const {self.names.outputs_type} *const outputs = &context->outputs;")
        self.writer.wrapped(f"{head} {{")
        if write_checks is not None:
            with self.writer.indented():
                write_checks(self.writer)
        if "*devices" in head:
            named = set(_NAME.findall(variables.text() + body.text()))
            for name in (name for name in self.plan.run_arguments if name not in named):
                self.writer.line(f"{INDENT}(void){name};")
        self.writer.lines(self._named(variables.text(), body.text()))
        self.writer.lines(body.text())
        self.writer.line("}")
        self.writer.line()

    def _named(self, declarations: str, text: str) -> str:
        """Those of the declarations, a line each, whose variables a text names; the macro of steps may have no text."""
        text = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
        macro = re.compile(rf"{self.names.step}\([^;]*;")
        passed = set(_NAME.findall(" ".join(macro.findall(text))))
        if self.names.step_workspaces in passed:
            passed |= {self.names.base(pool) for pool in self.plan.workspaces}
        used = set(_NAME.findall(macro.sub("", text)))
        lines: list[str] = []
        for line in declarations.splitlines():
            name = _VARIABLE.search(line)
            if name is None or name[1] not in used | passed:
                continue
            lines.append(line)
            if name[1] not in used:
                lines.append(f"{INDENT}(void){name[1]};")
        return "\n".join(lines)


_NAME = re.compile(r"(?<!->)\b\w+")  # no member
_VARIABLE = re.compile(r"(\w+)(?:\[\d+\])?(?: = .*)?;$")  # that a line declares
