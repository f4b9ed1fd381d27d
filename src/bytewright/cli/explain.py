"""`bytewright explain`: why a buffer is where it is."""

from pathlib import Path

import click

from bytewright.cli.option_types import PATH, echo_json, json_option
from bytewright.inspect.check import verified_plan
from bytewright.report import explain as explanations


@click.command(short_help="Say why a buffer is where it is.")
@click.argument("directory", metavar="DIR", type=PATH)
@click.argument("buffer", metavar="BUFFER")
@json_option
def explain(directory: Path, buffer: str, as_json: bool) -> None:
    """Say what BUFFER of the bundle DIR is, who uses it, where it lies, what lies beside it, and why.

    `bytewright report DIR` shows names of buffers.
    """
    plan = verified_plan(directory)
    explanation = explanations.explain(plan, buffer)
    if as_json:
        echo_json(explanations.explanation_document(explanation))
    else:
        click.echo("\n".join(explanations.explanation_lines(plan, explanation)))
