"""`bytewright report`: how a bundle uses its memories, and what grew from one to the next."""

from pathlib import Path

import click

from bytewright.cli.formats import format_options, say
from bytewright.cli.option_types import PATH
from bytewright.inspect.check import verified_plan
from bytewright.report.compare import comparison_view
from bytewright.report.report_view import report_view


@click.command(short_help="Show how a bundle uses its memories.")
@click.argument("directory", metavar="DIR", type=PATH)
@click.argument("new", metavar="[NEW]", required=False, type=PATH)
@format_options
def report(directory: Path, new: Path | None) -> None:
    """Show pools, stack, memory over time, the largest buffers and the steps of DIR, a bundle.

    All figures are bytes. The lower bound of a pool is proved: no plan with these buffers in it needs less.
    With NEW, a second bundle, show what differs between the two instead.
    """
    plan = verified_plan(directory)
    say(report_view(plan) if new is None else comparison_view(plan, verified_plan(new)))
