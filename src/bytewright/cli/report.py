"""`bytewright report`: how a bundle uses its memories, and what grew from one to the next; or how a model would."""

from pathlib import Path

import click

from bytewright.cli.formats import picture_options, say
from bytewright.cli.option_types import PATH
from bytewright.cli.progress import shown_progress
from bytewright.diagnostics import CompileError
from bytewright.inspect.check import verified_plan
from bytewright.report.compare import comparison_view
from bytewright.report.report_view import report_view

_DOES_NOT_FIT = {"BW301", "BW302"}


@click.command(short_help="Show how a bundle or a model uses memories.")
@click.argument("source", metavar="DIR|MODEL", type=PATH)
@click.argument("new", metavar="[NEW]", required=False, type=PATH)
@click.option("--target", metavar="NAME|FILE", help="Of a MODEL: what to plan it for.  [default: host]")
@picture_options
def report(source: Path, new: Path | None, target: str | None) -> None:
    """Show pools, stack, memory over time, the largest buffers and the steps of DIR, a bundle, or of MODEL.

    All figures are bytes. The lower bound of a pool is proved: no plan with these buffers in it needs less.
    With NEW, a second bundle, show what differs between the two instead. A MODEL that does not fit is shown as it would
    be without limits, with the limits drawn in; the exit status is 3.
    """
    if source.is_dir() and target is not None:
        raise click.UsageError("--target is for a model: a bundle is compiled from one already")
    if source.is_file():
        if new is not None:
            raise click.UsageError("a model is compared with nothing: compile it into a bundle")
        _report_model(source, target or "host")
        return
    plan = verified_plan(source)
    say(report_view(plan) if new is None else comparison_view(plan, verified_plan(new)))


def _report_model(model: Path, target_name: str) -> None:
    """The same of a model that is planned for the occasion.

    Raises:
        CompileError: It does not fit, or is refused.
    """
    from bytewright.compiler.beyond import plan_beyond
    from bytewright.compiler.pipeline import plan_model
    from bytewright.compiler.run_passes import Runner
    from bytewright.target import load_target

    with shown_progress(f"planning {model.name}") as progress:
        target = load_target(target_name)
        refusal = None
        try:
            plan = plan_model(model, target, run=Runner(target, progress)).plan
        except CompileError as error:
            if any(diagnostic.code not in _DOES_NOT_FIT for diagnostic in error.diagnostics):
                raise
            plan, refusal = plan_beyond(model, target), error
    say(report_view(plan))
    if refusal is not None:
        raise refusal
