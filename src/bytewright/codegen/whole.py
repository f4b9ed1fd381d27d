"""An entry that is one function: it is given inputs and outputs, and runs all steps."""

import re
from collections.abc import Mapping, Sequence

from bytewright.codegen.checks import write_run_checks, write_size_checks
from bytewright.codegen.entry_code import EntryCode, write_variables_of_plan
from bytewright.codegen.form import FormInC, StepFunctions
from bytewright.codegen.hand_over import write_hook_checks, write_run_on_devices
from bytewright.codegen.ports import run_head
from bytewright.codegen.run_contracts import (
    beside_hooks,
    errors_of_a_run,
    returns,
    what_devices_do,
    what_ends_loops,
    what_extents_mean,
    what_is_shared,
    what_runs,
    what_sizes_mean,
)
from bytewright.codegen.state import failure_contract
from bytewright.codegen.steps import StepWriter
from bytewright.codegen.writer import Writer
from bytewright.record.names import Names
from bytewright.record.plan import Plan


class Whole(FormInC):
    """Such an entry. Devices, where some take part, are taken into use around a function of its own with the steps."""

    def write_prototypes(self, writer: Writer, plan: Plan, names: Names) -> None:
        """The function that runs it."""
        if plan.io_in_workspace:
            contract = (
                f"{what_runs(plan)} on the inputs in the workspace, which it may overwrite: write them before each "
                "run.\nOutputs hold until the next run, or until inputs are written: the two may share bytes.\n"
            )
        else:
            what = (
                "Outputs and workspaces share no bytes with each other, with inputs, with parameters, or with what the "
                "arguments point to"
            )
            contract = f"{what_runs(plan)}. {what}. Inputs are not changed.\n"
        writer.prototype(
            f"{contract}{what_extents_mean(plan, names)}{what_sizes_mean(plan, names)}{what_ends_loops(plan)}"
            f"{what_devices_do(plan)}"
            f"{failure_contract(plan)}"
            f"At most {names.stack_size} bytes of stack are used{beside_hooks(plan)}.\n"
            f"{what_is_shared(plan)}\n{returns(names, errors_of_a_run(plan))}",
            run_head(plan, names),
        )

    def write_first(self, writer: Writer, plan: Plan, names: Names, steps: StepFunctions) -> None:
        """None."""
        del plan, names
        steps.write_first(writer)

    def write_last(self, writer: Writer, plan: Plan, names: Names, steps: StepFunctions) -> None:
        """The function, and the one with the steps where that is another."""
        steps.write_last(writer)
        if plan.devices:
            with writer.block(run_head(plan, names)):
                write_run_checks(writer, plan, names)
                write_hook_checks(writer, plan, names)
                write_run_on_devices(writer, plan, names)

    def calls(
        self, plan: Plan, names: Names, given: Mapping[str, str], inputs: Sequence[str]
    ) -> tuple[str, ...]:
        """The one."""
        del inputs
        return (f"{names.run}({', '.join(given[argument] for argument in plan.run_arguments)})",)

    def step_functions(self, code: EntryCode) -> StepFunctions:
        """The one with the steps."""
        return _Steps(code)

    def frames(self, plan: Plan, names: Names) -> Mapping[str, tuple[Writer, Writer]]:
        """Head, checks and variables of that one."""
        front, end = Writer(), Writer()
        if plan.devices:
            front.line(f"static {run_head(plan, names, names.run_steps)} {{")
        else:
            front.line(f"{run_head(plan, names)} {{")
            write_run_checks(front, plan, names)
            write_variables_of_plan(front, plan, names)
        write_size_checks(end, plan, names)
        end.line(f"return {names.ok};")
        end.line("}")
        return {names.steps: (front, end)}


class _Steps:
    """The function with the steps, which is the entry or, where devices are taken into use around it, another one."""

    def __init__(self, code: EntryCode) -> None:
        self.code, self.plan, self.names = code, code.plan, code.names

    def write_first(self, writer: Writer) -> None:
        """Nothing: all steps are in one function."""

    def write_last(self, writer: Writer) -> None:
        """The function, with all of them."""
        if self.plan.devices:
            self._write_apart(writer)
            return
        with writer.block(run_head(self.plan, self.names)):
            write_run_checks(writer, self.plan, self.names)
            self._write_steps(writer)

    def _write_apart(self, writer: Writer) -> None:
        writer.comment("The steps, while all devices are in use.")
        body = Writer()
        with body.indented():
            self._write_steps(body)
        used = set(re.findall(r"\w+", body.text()))
        writer.wrapped(f"static {run_head(self.plan, self.names, self.names.run_steps)} {{")
        with writer.indented():
            for name in self.plan.run_arguments:
                if name not in used:
                    writer.line(f"(void){name};")
        writer.lines(body.text())
        writer.line("}")
        writer.line()

    def _write_steps(self, writer: Writer) -> None:
        """The steps, behind what they name."""
        write_variables_of_plan(writer, self.plan, self.names)
        self.code.write_arguments(writer)
        StepWriter(writer, self.code).entry(self.code.module.main)
        write_size_checks(writer, self.plan, self.names)
        writer.line(f"return {self.names.ok};")
