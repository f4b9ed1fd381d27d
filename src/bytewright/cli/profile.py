"""`bytewright profile`: what each step of a run costs, on this machine or on an emulated board."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Unpack

import click

from bytewright.cli import what_runs
from bytewright.cli.formats import picture_options, say
from bytewright.cli.measured import split_flags
from bytewright.cli.option_types import PATH, cflags_option
from bytewright.cli.progress import shown_progress
from bytewright.cli.write_files import write_files
from bytewright.execute.options import MOST_PROFILED


@click.command(short_help="Say what each step of a run costs.")
@click.argument("source", metavar="DIR|MODEL", type=PATH)
@what_runs.input_option
@what_runs.machine_options(
    "This machine, by a clock; the target's board in QEMU, by instructions; or a board, by its counter of cycles.",
    "Inferences to run. Shown is the one with the median time; in QEMU the last.  [default: 31; QEMU 2, a board 3]",
    MOST_PROFILED,
)
@cflags_option()
@what_runs.build_options
@click.option(
    "--trace", type=PATH, metavar="FILE", help="Also write a trace for chrome://tracing or Perfetto."
)
@picture_options
def profile(cflags: str, trace: Path | None, **asked: Unpack[what_runs.Asked]) -> None:
    """Say what each step of an inference costs: of DIR, a bundle, or of MODEL, which is compiled for the occasion.

    A step is a call of a kernel. In QEMU its instructions are counted, exactly, and its loads and stores by memory; on
    the host a clock is read between the kernels, on a board its counter of cycles. What is left is the run's own, and
    all lines make up the total.
    """
    from bytewright.execute.build import BuildOptions
    from bytewright.execute.profile.measure import profile_bundle
    from bytewright.execute.profile.trace import trace_document
    from bytewright.execute.profile.view import profile_view
    from bytewright.execute.tools import TIMEOUT_SECONDS
    from bytewright.report.report_view import pictures_of

    flags = split_flags(cflags)
    given, on = what_runs.inputs_of(asked), asked["on"]
    options = BuildOptions(flags=flags, sources=asked["sources"], compiler=asked["compiler"])
    with (
        what_runs.bundle_of(asked, lambda plan: what_runs.inputs_in_order(plan, given)) as (
            directory,
            inputs,
        ),
        shown_progress(f"profiling {asked['source'].name} on {on}"),
    ):
        found = profile_bundle(
            directory,
            inputs,
            seed=asked["seed"],
            on=on,
            repeat=asked["repeat"],
            options=options,
            timeout_seconds=asked["timeout"] or TIMEOUT_SECONDS,
        )
    if trace is not None:
        write_files([(trace, json.dumps(trace_document(found)) + "\n")], what_runs.files_of(asked))
    view = profile_view(found)
    say(replace(view, sections=(*view.sections, *pictures_of(found.plan))))
