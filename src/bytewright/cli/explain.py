"""`bytewright explain`: why a buffer is where it is, and what made a kernel."""

from pathlib import Path

import click

from bytewright.cli.formats import format_options, say
from bytewright.cli.option_types import PATH
from bytewright.inspect.check import verified_plan
from bytewright.report.explain import explain as explained
from bytewright.report.explain import explanation_view
from bytewright.report.explain_kernel import kernel_view, steps_of_kernel


@click.command(short_help="Say why a buffer is where it is, or what made a kernel.")
@click.argument("directory", metavar="DIR", type=PATH)
@click.argument("name", metavar="BUFFER|KERNEL")
@format_options
def explain(directory: Path, name: str) -> None:
    """Say what BUFFER of the bundle DIR is, who uses it, where it lies, what lies beside it, and why.

    Of a KERNEL, say which template made it, why better ones did not take it, and which steps call it.

    `bytewright report DIR` shows names of buffers and kernels.
    """
    plan = verified_plan(directory)
    steps = () if name in plan.buffers else steps_of_kernel(plan, name)
    say(kernel_view(plan, steps) if steps else explanation_view(plan, explained(plan, name)))
