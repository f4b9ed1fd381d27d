"""`bytewright report`: how a bundle uses its memories, and what grew from one to the next; or how a model would."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import click

from bytewright.cli.formats import picture_options, say
from bytewright.cli.measured import AUTO, Measuring, measured, split_flags
from bytewright.cli.model_options import ModelOptions, given_model_options, model_options
from bytewright.cli.option_types import PATH, cflags_option, compiler_option, sources_option
from bytewright.cli.progress import shown_progress
from bytewright.diagnostics import CompileError
from bytewright.inspect.check import verified_plan
from bytewright.report.compare import Side, comparison_view
from bytewright.report.layers import COLUMNS, CSV_COLUMNS, layers_table, layers_view, require_column
from bytewright.report.report_view import pictures_of, report_view
from bytewright.show.spreadsheet import csv_text

_DOES_NOT_FIT = {"BW301", "BW302"}


@click.command(short_help="Show how a bundle or a model uses memories.")
@click.argument("source", metavar="DIR|MODEL", type=PATH)
@click.argument("new", metavar="[NEW]", required=False, type=PATH)
@click.option("--layers", is_flag=True, help="Show a table of layers: what each computes, keeps and costs.")
@click.option(
    "--sort",
    metavar="COLUMN",
    help=f"Of the layers: {', '.join(COLUMNS)}. Numbers are sorted with the largest first.  [default: step]",
)
@click.option(
    "--csv", "table", type=PATH, metavar="FILE|-", help="Write the layers as CSV, and print nothing."
)
@click.option("--profile", "with_profile", is_flag=True, help="Run it, and show what each layer costs.")
@click.option(
    "--profile-on",
    type=click.Choice(["host", "qemu"]),
    help="Where that is run.  [default: qemu for bare machines, else host]",
)
@sources_option(", for --profile")
@click.option(
    "--code/--no-code",
    "with_code",
    default=True,
    help="Compile the C once to know its size; what was compiled is kept.  [default: --code]",
)
@cflags_option()
@compiler_option()
@model_options(of_c=False)
@picture_options
@click.pass_context
def report(
    context: click.Context,
    source: Path,
    new: Path | None,
    layers: bool,
    sort: str | None,
    table: Path | None,
    with_profile: bool,
    profile_on: str | None,
    sources: tuple[Path, ...],
    with_code: bool,
    cflags: str,
    compiler: str | None,
    options: ModelOptions,
) -> None:
    """Show pools, stack, memory over time, the largest buffers and the steps of DIR, a bundle, or of MODEL.

    All sizes are bytes. The lower bound of a pool is proved: no plan with these buffers in it needs less.
    With NEW, a second bundle, show what differs between the two instead. A MODEL, which the options of compile are
    for, that does not fit is shown as it would be without limits, with the limits drawn in; the exit status is 3.
    """
    if new is not None and (sort is not None or table is not None):
        raise click.UsageError("--sort and --csv are of the layers of one bundle")
    is_measured = with_profile or profile_on is not None
    has_layers = layers or sort is not None or table is not None or (is_measured and new is None)
    require_column(sort or COLUMNS[0], is_measured=is_measured)
    measuring = Measuring(
        split_flags(cflags),
        compiler,
        with_code=with_code and not has_layers,
        profile_on=(profile_on or AUTO) if is_measured else None,
        sources=sources,
    )
    refusal = None
    if source.is_file():
        if new is not None:
            raise click.UsageError("a model is compared with nothing: compile it into a bundle")
        old, refusal = _model(source, options, measuring)
    else:
        given = given_model_options(context, besides=())
        if given:
            raise click.UsageError(f"{given[0]} is for a model: a bundle is compiled from one already")
        old = measured(source, verified_plan(source), str(source), measuring)
    if new is not None:
        say(
            comparison_view(
                old, measured(new, verified_plan(new), str(new), measuring), has_layers=has_layers
            )
        )
    elif has_layers:
        # What does not fit was not run, so nothing can be sorted by what that costs.
        column = sort if sort is not None and (refusal is None or not is_measured) else COLUMNS[0]
        _say_layers(old, column, table)
    else:
        say(report_view(old.plan, old.code))
    if refusal is not None:
        raise refusal


def _say_layers(side: Side, column: str, path: Path | None) -> None:
    """The layers, which a page has the pictures of the plan with."""
    view = layers_view(side.plan, side.costs, column)
    besides = {} if path is None else {"table": (path, csv_text(layers_table(view), CSV_COLUMNS))}
    say(replace(view, sections=(*view.sections, *pictures_of(side.plan))), besides=besides)


def _model(model: Path, options: ModelOptions, measuring: Measuring) -> tuple[Side, CompileError | None]:
    """A model that is planned for the occasion; where it does not fit, as it would be, and why it is not.

    Raises:
        CompileError: It is refused for another reason.
    """
    from bytewright.bundle.write import write_bundle
    from bytewright.compiler.beyond import plan_beyond
    from bytewright.compiler.pipeline import compile_planned, plan_model
    from bytewright.compiler.run_passes import Runner
    from bytewright.execute.tools import build_folder

    with shown_progress(f"planning {model.name}") as progress:
        target, name = options.target(), str(model)
        run = Runner(target, progress)
        try:
            planned = plan_model(model, target, options.compiling, run=run)
        except CompileError as error:
            if any(diagnostic.code not in _DOES_NOT_FIT for diagnostic in error.diagnostics):
                raise
            return Side(plan_beyond(model, target, options.compiling), name), error
        if not measuring.needs_c:
            return Side(planned.plan, name), None
        compiled = compile_planned(planned, options.compiling, run)
    with build_folder() as folder:
        write_bundle(compiled.files, folder / "bundle")
        return measured(folder / "bundle", planned.plan, name, measuring), None
