"""`bytewright explain`: why a buffer is where it is."""

import json
from pathlib import Path

import click

from bytewright.inspect.check import verified_plan
from bytewright.report import explain as explanations


@click.command(short_help="Say why a buffer is where it is.")
@click.argument("directory", metavar="DIR", type=click.Path(path_type=Path))
@click.argument("buffer", metavar="BUFFER")
@click.option("--json", "as_json", is_flag=True, help="Print JSON and nothing else.")
def explain(directory: Path, buffer: str, as_json: bool) -> None:
    """Say what BUFFER of the bundle DIR is, who uses it, where it lies, what lies beside it, and why.

    `bytewright report DIR` shows names of buffers.
    """
    plan = verified_plan(directory)
    explanation = explanations.explain(plan, buffer)
    if as_json:
        click.echo(json.dumps(explanations.explanation_document(explanation), indent=1))
    else:
        click.echo("\n".join(explanations.explanation_lines(plan, explanation)))
