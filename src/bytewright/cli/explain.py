"""`bytewright explain`: why a buffer is where it is, and what made a kernel."""

from pathlib import Path

import click

from bytewright.cli.option_types import PATH, echo_json, json_option
from bytewright.inspect.check import verified_plan
from bytewright.report import explain as explanations
from bytewright.report.explain_kernel import kernel_document, kernel_lines, steps_of_kernel


@click.command(short_help="Say why a buffer is where it is, or what made a kernel.")
@click.argument("directory", metavar="DIR", type=PATH)
@click.argument("name", metavar="BUFFER|KERNEL")
@json_option
def explain(directory: Path, name: str, as_json: bool) -> None:
    """Say what BUFFER of the bundle DIR is, who uses it, where it lies, what lies beside it, and why.

    Of a KERNEL, say which template made it, why better ones did not take it, and which steps call it.

    `bytewright report DIR` shows names of buffers and kernels.
    """
    plan = verified_plan(directory)
    steps = () if name in plan.buffers else steps_of_kernel(plan, name)
    if steps:
        if as_json:
            echo_json(kernel_document(steps))
        else:
            click.echo("\n".join(kernel_lines(plan, steps)))
        return
    explanation = explanations.explain(plan, name)
    if as_json:
        echo_json(explanations.explanation_document(explanation))
    else:
        click.echo("\n".join(explanations.explanation_lines(plan, explanation)))
