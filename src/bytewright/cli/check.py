"""`bytewright check`: a bundle is proved again."""

from __future__ import annotations

import json
from pathlib import Path

import click

from bytewright.inspect.check import check_bundle


@click.command(short_help="Prove a bundle again.")
@click.argument("directory", metavar="DIR", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print JSON and nothing else.")
def check(directory: Path, as_json: bool) -> None:
    """Prove the bundle DIR again: that its plan is a plan, and that its files are what the plan says.

    The exit status is 4 if anything does not verify, and the errors list what.
    """
    verdict = check_bundle(directory)
    plan = verdict.plan
    if as_json:
        document = {
            "model": plan.model,
            "verified": True,
            "plan_hash": plan.plan_hash,
            "num_buffers": verdict.num_buffers,
            "num_steps": verdict.num_steps,
            "num_files": verdict.num_files,
            "parameter_bytes": verdict.parameter_bytes,
        }
        click.echo(json.dumps(document, indent=1))
        return
    click.echo(f"{plan.model}: verified, plan {plan.plan_hash[:12]}")
    click.echo(
        f"  {verdict.num_buffers} buffers: in bounds, aligned, and no two that live at once share a byte"
    )
    click.echo(f"  {verdict.num_steps} steps: the C touches what the plan says, while it is alive")
    click.echo(f"  {verdict.num_files} files: unchanged; sizes and offsets are those of the plan")
    click.echo(f"  {verdict.parameter_bytes} B of parameters: those of the plan")
