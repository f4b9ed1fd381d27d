"""`bytewright compile`: a model becomes a bundle."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from bytewright.cli.model_options import ModelOptions, model_options
from bytewright.cli.option_types import PATH, echo_json, parsed_by
from bytewright.cli.print_after import Printer, PrintOption, parse_print_option
from bytewright.cli.progress import shown_progress
from bytewright.cli.summary import plan_summary

if TYPE_CHECKING:
    from bytewright.compiler.pipeline import Compiled
    from bytewright.options import Package


@click.command("compile", short_help="Compile a model into a folder of C.")
@click.argument("model", type=PATH)
@click.option(
    "-o",
    "--output",
    "directory",
    type=PATH,
    metavar="DIR",
    help="The bundle's folder: new, empty, or an older bundle, which is replaced; other files in it stay.",
)
@click.option("--force", is_flag=True, help="Replace an older bundle even if its files were edited.")
@model_options()
@click.option(
    "--print-after",
    "prints",
    callback=parsed_by(parse_print_option),
    multiple=True,
    metavar="PASS[=FILE.bw]",
    help="Print the module after a pass, or after all of them (all[=DIR]); -o may then be left out.",
)
@click.option("--json", "as_json", is_flag=True, help="Print what plan.json holds, and nothing else.")
def compile_command(
    model: Path,
    directory: Path | None,
    force: bool,
    options: ModelOptions,
    prints: tuple[PrintOption, ...],
    as_json: bool,
) -> None:
    """Compile MODEL, a .tflite file or a .bw file of IR text, into a folder of plain C99.

    Sizes are limits: what does not fit is refused, with the bytes that are missing. Nothing is written then.
    """
    from bytewright.bundle.write import write_bundle
    from bytewright.compiler.pipeline import compile_model

    to_stdout = any(item.file is None for item in prints)
    if directory is None and not prints:
        raise click.UsageError("Missing option '-o' / '--output'.")
    if as_json and to_stdout:
        raise click.UsageError("--json is for a program to read: give --print-after a file, PASS=FILE.bw")
    printer = Printer(prints, kept=(model, options.compiling.constants or model.with_suffix(".npz")))
    with shown_progress(f"compiling {model.name}") as progress, printer:
        compiled = compile_model(
            model,
            options.target(),
            options.compiling,
            progress=progress,
            after_pass=printer.after_pass if prints else None,
        )
        if directory is not None:
            write_bundle(compiled.files, directory, force=force)
    if as_json:
        echo_json(compiled.document)
    elif directory is not None:
        click.echo(_summary(compiled, directory, options.compiling.package), err=to_stdout)


def _summary(compiled: Compiled, directory: Path, package: Package | None) -> str:
    """What was made, what it needs, which inputs and outputs could not keep their names, and what comes next."""
    from bytewright.record.placed_sections import include_line

    plan = compiled.plan
    extents = f", each run with {plan.extents_text}" if plan.symbols else ""
    head = f"{directory}: model '{plan.model}' for {plan.target}, {plan.arithmetic_text}{extents}"
    borders = (("input", compiled.module.inputs), ("output", compiled.module.outputs))
    renamed = [
        f"  {border} '{port.stated}' is called '{port.name}' in C: another {border} has its name"
        for border, ports in borders
        for port in ports
        if port.stated is not None
    ]
    included = include_line(plan, directory)
    next_steps = [
        *([f"  {included}"] if included else []),
        *(
            [f"  package {package.value}: {directory / 'README.md'} says how it comes into a project"]
            if package
            else []
        ),
    ]
    return "\n".join([head, *plan_summary(plan), *renamed, *next_steps])
