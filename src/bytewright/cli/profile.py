"""`bytewright profile`: what each step of a run costs, on this machine or on an emulated board."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, cast

import click

from bytewright.cli.option_types import PATH, NamedFile, echo_json, json_option
from bytewright.cli.progress import shown_progress
from bytewright.cli.what_runs import (
    bundle_of,
    compiler_option,
    input_option,
    inputs_in_order,
    inputs_of,
    seed_option,
    signature_option,
    sources_option,
)
from bytewright.cli.write_files import write_files

if TYPE_CHECKING:
    from bytewright.execute.result import Machine


@click.command(short_help="Say what each step of a run costs.")
@click.argument("source", metavar="DIR|MODEL", type=PATH)
@input_option
@seed_option
@click.option(
    "--on",
    type=click.Choice(["host", "qemu"]),
    default="host",
    help="This machine, by a clock; or the target's board in QEMU, by instructions.  [default: host]",
)
@click.option(
    "--repeat",
    type=click.IntRange(1, 10_000),
    metavar="N",
    help="Inferences to run. Shown is the one with the median time; in QEMU the last.  [default: 31; in QEMU 2]",
)
@click.option("--cflags", default="-O2", show_default=True, help="How the application compiles.")
@signature_option
@sources_option
@compiler_option
@click.option(
    "--trace", type=PATH, metavar="FILE", help="Also write a trace for chrome://tracing or Perfetto."
)
@json_option
def profile(
    source: Path,
    input_files: tuple[NamedFile, ...],
    seed: int | None,
    on: str,
    repeat: int | None,
    cflags: str,
    signature: str | None,
    sources: tuple[Path, ...],
    compiler: str | None,
    trace: Path | None,
    as_json: bool,
) -> None:
    """Say what each step of an inference costs: of DIR, a bundle, or of MODEL, which is compiled for the occasion.

    A step is a call of a kernel. In QEMU its instructions are counted, exactly, and its loads and stores by memory; on
    the host a clock is read between the kernels. What is left is the run's own, and all lines make up the total.
    """
    from bytewright.execute.build import BuildOptions
    from bytewright.execute.profile.document import profile_document
    from bytewright.execute.profile.measure import profile_bundle
    from bytewright.execute.profile.table import profile_text
    from bytewright.execute.profile.trace import trace_document

    try:
        options = BuildOptions(flags=tuple(shlex.split(cflags)), sources=sources, compiler=compiler)
    except ValueError as error:
        raise click.BadParameter(f"{cflags!r} is no command line: {error}", param_hint="--cflags") from error
    given = inputs_of(input_files, seed)
    place = cast("Machine", on)
    with (
        bundle_of(source, on, signature, lambda plan: inputs_in_order(plan, given)) as (directory, inputs),
        shown_progress(f"profiling {source.name} on {on}"),
    ):
        found = profile_bundle(directory, inputs, seed=seed, on=place, repeat=repeat, options=options)
    if trace is not None:
        write_files(
            [(trace, json.dumps(trace_document(found)) + "\n")],
            [source, *(file.path for file in input_files)],
        )
    if as_json:
        echo_json(profile_document(found))
    else:
        click.echo(profile_text(found))
