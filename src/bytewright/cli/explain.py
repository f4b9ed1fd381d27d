"""`bytewright explain`: why a buffer is where it is, and what made a kernel."""

from pathlib import Path

import click

from bytewright.cli.formats import format_options, say
from bytewright.cli.option_types import PATH
from bytewright.inspect.check import verified_plan
from bytewright.report.explain import explain as explained
from bytewright.report.explain import explanation_view
from bytewright.report.explain_kernel import kernel_view
from bytewright.report.find_named import Kernel, find_named


@click.command(short_help="Say why a buffer is where it is, or what made a kernel.")
@click.argument("directory", metavar="DIR", type=PATH)
@click.argument("name", metavar="NAME")
@format_options
def explain(directory: Path, name: str) -> None:
    """Say what a buffer of the bundle DIR is, who uses it, where it lies, what lies beside it, and why.

    Of a kernel, say which template made it, why better ones did not take it, and which steps call it.

    NAME is that of a buffer or kernel, or what the model's file calls a tensor, or an operator as reports have it;
    also the beginning of one, its two ends around "...", or a pattern with * and ?.
    """
    plan = verified_plan(directory)
    found = find_named(plan, name)
    if isinstance(found, Kernel):
        say(kernel_view(plan, found.steps))
    else:
        say(explanation_view(plan, explained(plan, found)))
