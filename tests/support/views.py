"""Views as the tests read them."""

import io
from typing import Any

from rich.console import Console

from bytewright.record.buffers import PlannedBuffer
from bytewright.record.plan import Plan
from bytewright.report.compare import Side, comparison_view
from bytewright.report.explain import explain, explanation_view
from bytewright.report.find_named import find_named
from bytewright.report.report_view import report_view
from bytewright.show.as_json import document_of
from bytewright.show.as_text import print_view
from bytewright.show.view import View


def text_of(view: View, width: int = 1000) -> str:
    """What people are shown."""
    stream = io.StringIO()
    print_view(view, Console(file=stream, width=width, highlight=False))
    return stream.getvalue()


def report_text(plan: Plan, width: int = 100) -> str:
    """The report of a plan for people."""
    return text_of(report_view(plan), width)


def report_document(plan: Plan) -> dict[str, Any]:
    """The report of a plan for programs."""
    return document_of(report_view(plan))


def comparison_document(old: Plan, new: Plan) -> dict[str, Any]:
    """What differs between two plans, for programs."""
    return document_of(comparison_view(Side(old), Side(new)))


def explanation_lines(plan: Plan, name: str) -> list[str]:
    """The explanation of a buffer for people."""
    return text_of(_explanation(plan, name)).splitlines()


def explanation_document(plan: Plan, name: str) -> dict[str, Any]:
    """The explanation of a buffer for programs."""
    return document_of(_explanation(plan, name))


def _explanation(plan: Plan, name: str) -> View:
    found = find_named(plan, name)
    assert isinstance(found, PlannedBuffer)
    return explanation_view(plan, explain(plan, found))
