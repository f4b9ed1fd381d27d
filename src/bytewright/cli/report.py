"""`bytewright report`: how a bundle uses its memories, and what grew from one to the next."""

from pathlib import Path

import click

from bytewright.cli.option_types import PATH, echo_json, json_option
from bytewright.inspect.check import verified_plan
from bytewright.report.compare import compare, comparison_document
from bytewright.report.console import standard_output
from bytewright.report.document import report_document
from bytewright.report.tables import print_comparison, print_report


@click.command(short_help="Show how a bundle uses its memories.")
@click.argument("directory", metavar="DIR", type=PATH)
@click.argument("new", metavar="[NEW]", required=False, type=PATH)
@json_option
def report(directory: Path, new: Path | None, as_json: bool) -> None:
    """Show pools, stack, memory over time, the largest buffers and the steps of DIR, a bundle.

    All figures are bytes. The lower bound of a pool is proved: no plan with these buffers in it needs less.
    With NEW, a second bundle, show what differs between the two instead.
    """
    plan = verified_plan(directory)
    if new is not None:
        newer = verified_plan(new)
        if as_json:
            echo_json(comparison_document(compare(plan, newer)))
        else:
            print_comparison(plan, newer, standard_output())
    elif as_json:
        echo_json(report_document(plan))
    else:
        print_report(plan, standard_output())
