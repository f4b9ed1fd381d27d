"""`bytewright report`: how a bundle uses its memories, and what grew from one to the next; or how a model would."""

from __future__ import annotations

from pathlib import Path

import click

from bytewright.cli.formats import picture_options, say
from bytewright.cli.measured import Building, code_of
from bytewright.cli.model_options import ModelOptions, given_model_options, model_options
from bytewright.cli.option_types import PATH
from bytewright.cli.progress import shown_progress
from bytewright.diagnostics import CompileError
from bytewright.inspect.check import verified_plan
from bytewright.report.compare import Side, comparison_view
from bytewright.report.report_view import report_view

_DOES_NOT_FIT = {"BW301", "BW302"}


@click.command(short_help="Show how a bundle or a model uses memories.")
@click.argument("source", metavar="DIR|MODEL", type=PATH)
@click.argument("new", metavar="[NEW]", required=False, type=PATH)
@click.option(
    "--code/--no-code",
    "with_code",
    default=True,
    help="Compile the C once to know its size; what was compiled is kept.  [default: --code]",
)
@click.option("--cflags", default="-O2", show_default=True, help="How the application compiles.")
@click.option(
    "--compiler",
    metavar="gcc|clang|COMMAND",
    help="The C compiler, of this machine or of the board.  [default: $CC or cc here, gcc for boards]",
)
@model_options(of_c=False)
@picture_options
@click.pass_context
def report(
    context: click.Context,
    source: Path,
    new: Path | None,
    with_code: bool,
    cflags: str,
    compiler: str | None,
    options: ModelOptions,
) -> None:
    """Show pools, stack, memory over time, the largest buffers and the steps of DIR, a bundle, or of MODEL.

    All figures are bytes. The lower bound of a pool is proved: no plan with these buffers in it needs less.
    With NEW, a second bundle, show what differs between the two instead. A MODEL, which the options of compile are
    for, that does not fit is shown as it would be without limits, with the limits drawn in; the exit status is 3.
    """
    building = Building.asked(cflags, compiler, with_code=with_code)
    if source.is_file():
        if new is not None:
            raise click.UsageError("a model is compared with nothing: compile it into a bundle")
        _report_model(source, options, building)
        return
    given = given_model_options(context, besides=())
    if given:
        raise click.UsageError(f"{given[0]} is for a model: a bundle is compiled from one already")
    old = _side(source, building)
    say(report_view(old.plan, old.code) if new is None else comparison_view(old, _side(new, building)))


def _side(directory: Path, building: Building) -> Side:
    return Side(verified_plan(directory), str(directory), code_of(directory, building))


def _report_model(model: Path, options: ModelOptions, building: Building) -> None:
    """The same of a model that is planned for the occasion.

    Raises:
        CompileError: It does not fit, or is refused.
    """
    from bytewright.bundle.write import write_bundle
    from bytewright.compiler.beyond import plan_beyond
    from bytewright.compiler.pipeline import compile_planned, plan_model
    from bytewright.compiler.run_passes import Runner
    from bytewright.execute.tools import build_folder

    refusal, code = None, None
    with shown_progress(f"planning {model.name}") as progress:
        target = options.target()
        run = Runner(target, progress)
        try:
            planned = plan_model(model, target, options.compiling, run=run)
            plan = planned.plan
            if building.with_code:
                with build_folder() as folder:
                    write_bundle(compile_planned(planned, options.compiling, run).files, folder / "bundle")
                    code = code_of(folder / "bundle", building)
        except CompileError as error:
            if any(diagnostic.code not in _DOES_NOT_FIT for diagnostic in error.diagnostics):
                raise
            plan, refusal = plan_beyond(model, target, options.compiling), error
    say(report_view(plan, code))
    if refusal is not None:
        raise refusal
