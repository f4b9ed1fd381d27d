"""What each form of an entry has in the C beside the functions that are it: a record a form.

The functions themselves are written in `entry.py`, and their prototypes in `header.py`, by tables of the same forms.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from bytewright.base.frozen_mapping import FrozenMapping
from bytewright.codegen.overlaps import SpanTable, drivers_table, rows_table
from bytewright.record.entries import EntryForm
from bytewright.record.names import Names
from bytewright.record.plan import Plan


def _nothing(*_: object) -> tuple[()]:
    return ()


@dataclass(frozen=True, slots=True)
class FormInC:
    """A form.

    Attributes:
        about_tensors: What the header says of inputs and outputs besides, behind a space.
        errors: Those that its functions alone return, with what they mean.
        members: What the context keeps for it.
        tables: What its functions compare besides the run's.
        when_set: What new workspaces end.
    """

    about_tensors: str = ""
    errors: tuple[tuple[str, str], ...] = ()
    members: Callable[[Names], tuple[str, ...]] = _nothing
    tables: Callable[[Plan, Names], tuple[SpanTable, ...]] = _nothing
    when_set: tuple[str, ...] = ()


def _members_of_rows(names: Names) -> tuple[str, ...]:
    return (f"{names.outputs_type} outputs;", "int32_t num_rows;", "int32_t is_begun;")


def _tables_of_rows(plan: Plan, names: Names) -> tuple[SpanTable, ...]:
    return (rows_table(plan, names), *([drivers_table(plan, names)] if plan.devices else []))


FORMS: Mapping[EntryForm, FormInC] = FrozenMapping(
    {
        EntryForm.RUN: FormInC(),
        EntryForm.ROWS: FormInC(
            about_tensors=" The input comes row by row: so many rows, of so many bytes each.",
            errors=(
                ("NOT_BEGUN", "rows were pushed, or a run finished, that was not begun"),
                ("ROWS", "fewer rows than none were pushed, or more than the input has left"),
                ("INCOMPLETE", "a run was finished before it had all rows"),
            ),
            members=_members_of_rows,
            tables=_tables_of_rows,
            when_set=("context->is_begun = 0;",),
        ),
    }
)
