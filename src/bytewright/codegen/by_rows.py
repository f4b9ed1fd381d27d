"""The functions of `<model>.c` that take the place of the run where the input comes row by row.

    begin         checks, and what the steps do before the first row
    push_rows     a pass of the loops over rows for each row
    finish        the passes that are left, and the steps behind the loops, of which some are other devices'

The entry's nest of loops over rows is one function, `run_row`, which runs one pass of the innermost loop and what ends
with it. Where the application stands is in the context: how many rows there were, and where the outputs go.
"""

import re
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import replace
from math import prod

from bytewright import ir
from bytewright.codegen.arena import write_arena_resets
from bytewright.codegen.checks import any_is_null, write_overlap_check, write_run_checks
from bytewright.codegen.entry_code import EntryCode, write_bases
from bytewright.codegen.expressions import memory_type
from bytewright.codegen.hand_over import write_hook_checks, write_run_on_devices
from bytewright.codegen.overlaps import drivers_table, rows_table
from bytewright.codegen.ports import devices_argument, run_head, strict_alignments
from bytewright.codegen.steps import StepWriter
from bytewright.codegen.writer import INDENT, Writer
from bytewright.diagnostics import InternalError
from bytewright.ir.analyses.row_loops import RowLoops, row_loops
from bytewright.ir.rewrite import Rewriting, rewrite_function
from bytewright.naming.symbols import RUN_ROW
from bytewright.record.entries import PlannedTensor
from bytewright.record.names import Names
from bytewright.record.plan import Plan


def image_of(plan: Plan) -> PlannedTensor:
    """The input that comes row by row."""
    if plan.image is None:
        raise InternalError(f"model '{plan.model}' takes no rows")
    return plan.image


def with_a_row_of_input(module: ir.Module) -> ir.Module:
    """The module whose kernel that takes a row is given that row alone, in place of the whole input."""
    found = row_loops(module.main)
    one = ir.RingRows(found.axis, 1)

    def changed(kernel: ir.PrimFunc) -> ir.PrimFunc:
        if kernel.name != found.take.callee:
            return kernel
        image = kernel.buffer_parameters[0].name
        return rewrite_function(
            kernel,
            Rewriting(buffer=lambda buffer: replace(buffer, rows=one) if buffer.name == image else buffer),
        )

    return replace(module, kernels=tuple(map(changed, module.kernels)))


def begin_head(plan: Plan, names: Names) -> str:
    """The head of the function."""
    return run_head(plan, names, names.begin)


def run_row_head(plan: Plan, names: Names) -> str:
    """The head of the function for one row, which only this file calls."""
    rows = f"const {memory_type(image_of(plan).dtype)} *rows"
    return f"static int32_t {RUN_ROW}({names.context_type} *context, {rows}, int32_t row)"


def push_rows_head(plan: Plan, names: Names) -> str:
    """The head of the function."""
    rows = f"const {memory_type(image_of(plan).dtype)} *rows"
    return f"int32_t {names.push_rows}({names.context_type} *context, {rows}, int32_t num_rows)"


def finish_head(plan: Plan, names: Names) -> str:
    """The head of the function."""
    return f"int32_t {names.finish}({names.context_type} *context{devices_argument(plan, names)})"


def write_push_rows(writer: Writer, plan: Plan, names: Names) -> None:
    """The function that takes rows."""
    image = image_of(plan)
    row_elements = image.row_bytes // image.dtype.size_bytes
    with writer.block(push_rows_head(plan, names)):
        writer.refuse(any_is_null(("context", "rows")), names.error("NULL"))
        writer.refuse("context->is_begun == 0", names.error("NOT_BEGUN"))
        left = f"({names.input_rows(image)} - context->num_rows)"
        writer.refuse(f"(num_rows < 0) || (num_rows > {left})", names.error("ROWS"))
        if image.dtype.size_bytes > 1:
            natural = f"sizeof({memory_type(image.dtype)})"
            writer.refuse(f"((uintptr_t)rows % (uintptr_t){natural}) != 0u", names.error("ALIGN"))
        writer.refuse("num_rows == 0", names.ok)
        write_overlap_check(writer, names, rows_table(plan, names))
        with writer.block("for (int32_t pushed = 0; pushed < num_rows; ++pushed)"):
            _write_pass(writer, names, f"rows + ((size_t)pushed * {row_elements}u)", "context->num_rows")
            writer.line("++context->num_rows;")
        writer.line(f"return {names.ok};")
    writer.line()


def _write_pass(writer: Writer, names: Names, rows: str, row: str) -> None:
    """One pass of the loops over rows; what fails ends all that was begun."""
    writer.line(f"const int32_t status = {RUN_ROW}(context, {rows}, {row});")
    with writer.block(f"if (status != {names.ok})"):
        writer.line("context->is_begun = 0;")
        writer.line("return status;")


def write_finish_checks(writer: Writer, plan: Plan, names: Names) -> None:
    """What the function at the end checks before it computes anything."""
    pointers = ("context", "devices") if plan.devices else ("context",)
    writer.refuse(any_is_null(pointers), names.error("NULL"))
    writer.refuse("context->is_begun == 0", names.error("NOT_BEGUN"))
    writer.refuse(f"context->num_rows < {names.input_rows(image_of(plan))}", names.error("INCOMPLETE"))
    if plan.devices:
        write_overlap_check(writer, names, drivers_table(plan, names))
        write_hook_checks(writer, plan, names)


Writes = Callable[[Writer], None]


class RowFunctions:
    """Writes them, in the order in which they call each other."""

    def __init__(self, writer: Writer, code: EntryCode) -> None:
        self.writer, self.code, self.plan, self.names = writer, code, code.plan, code.names
        self.steps = StepWriter(writer, code)
        self.loops: RowLoops = row_loops(self.steps.in_c(code.module.main))
        self.image = image_of(code.plan)

    def write_first(self) -> None:
        """Those before `push_rows`."""
        self._run_row()
        self._begin()

    def write_last(self) -> None:
        """Those behind it."""
        if self.plan.devices:
            self._run_steps()
        self._finish()

    # One row

    def _run_row(self) -> None:
        self.writer.comment(
            f"What comes with row {self.loops.first_row} to {self.loops.end_row - 1} of the input, which has "
            f"{self.loops.num_rows}: behind the row itself all that needs no further one. Without a row there is none."
        )
        with self._function(run_row_head(self.plan, self.names)):
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
            write_run_checks(writer, self.plan, names, strict_alignments(self.plan))

        with self._function(begin_head(self.plan, names), write_checks):
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
        self.steps.writer.line(f"return {self.names.ok};")

    def _finish(self) -> None:
        names = self.names

        def write_checks(writer: Writer) -> None:
            write_finish_checks(writer, self.plan, names)

        with self._function(finish_head(self.plan, names), write_checks):
            writer = self.steps.writer
            if self.loops.num_rows < self.loops.end_row:
                self._passes(names.input_rows(self.image), f"{self.loops.end_row}")
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
        file_writer, self.steps.writer = self.steps.writer, body
        with body.indented():
            yield
        self.steps.writer = file_writer
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
