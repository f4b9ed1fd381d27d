"""The forms of entries that C is written for."""

from collections.abc import Mapping

from bytewright import ir
from bytewright.base.frozen_mapping import FrozenMapping
from bytewright.codegen.by_rows import ByRows
from bytewright.codegen.form import FormInC
from bytewright.codegen.whole import Whole
from bytewright.naming.entry_forms import ROWS, RUN, EntryForm
from bytewright.record.plan import Plan

FORMS: Mapping[EntryForm, FormInC] = FrozenMapping({RUN: Whole(), ROWS: ByRows()})


def form_of(plan: Plan) -> FormInC:
    """The form of the entry of a plan."""
    return FORMS[plan.form]


def as_given(module: ir.Module, plan: Plan) -> ir.Module:
    """The module with kernels as its entries call them."""
    return form_of(plan).given(module)
