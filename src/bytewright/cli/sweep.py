"""`bytewright sweep`: many models, targets and options, and which of them nothing beats."""

from __future__ import annotations

from collections.abc import Generator
from concurrent.futures import Executor, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path

import click

from bytewright.cli.formats import picture_options, say
from bytewright.cli.option_types import PATH
from bytewright.cli.progress import counted
from bytewright.diagnostics import compile_error


@click.command(short_help="Compile for many targets and options, and compare.")
@click.argument("sweep_file", metavar="SWEEP.toml", type=PATH)
@click.option(
    "-o",
    "--record",
    type=PATH,
    metavar="FILE.jsonl",
    help="A line for each result, appended and synced: the same command goes on from it.  [default: beside SWEEP.toml]",
)
@click.option("--jobs", type=click.IntRange(1, 256), metavar="N", help="Processes.  [default: 1]")
@click.option("--scheduler", metavar="ADDRESS", help="Of a Dask cluster, whose workers do the work.")
@picture_options
def sweep(sweep_file: Path, record: Path | None, jobs: int | None, scheduler: str | None) -> None:
    """Plan every model of SWEEP.toml for every target, every choice of options and every size of pools.

    What fits and what nothing beats is shown. Results do not depend on who finds them; those in the record are not
    found again. A configuration that does not fit is a result, and no error.
    """
    from bytewright.sweeps.grid import read_sweep
    from bytewright.sweeps.pareto import sweep_view
    from bytewright.sweeps.picture import points_of
    from bytewright.sweeps.sweep import run_sweep

    if jobs is not None and scheduler is not None:
        raise click.UsageError("--jobs is for processes of this machine: give either --jobs or --scheduler")
    asked = read_sweep(sweep_file)
    path = record or sweep_file.with_suffix(".jsonl")
    with _executor(jobs, scheduler, path) as executor, counted(sweep_file.name) as progress:
        found = run_sweep(asked, executor, path, progress)
    view = sweep_view(found.results)
    say(replace(view, sections=(points_of(found.results), *view.sections)), [path])


@contextmanager
def _executor(
    jobs: int | None, scheduler: str | None, record: Path
) -> Generator[Executor | None, None, None]:
    """Who carries the sweep out; None for this process.

    Raises:
        CompileError: BW501 without Dask, BW502 if there is no cluster, or workers end.
    """
    if scheduler is not None:
        with _cluster(scheduler) as executor:
            yield executor
    elif jobs is None or jobs == 1:
        yield None
    else:
        # Begun anew, since the planner's threads are not those of a copy.
        with ProcessPoolExecutor(jobs, get_context("spawn")) as executor:
            try:
                yield executor
            except BrokenProcessPool as error:
                message = "a process of the sweep ended before its work was done"
                help_text = f"what was found is in '{record}': the same command goes on from there"
                raise compile_error("BW502", message, help=help_text) from error


@contextmanager
def _cluster(address: str) -> Generator[Executor, None, None]:
    try:
        from distributed import Client
        from distributed.comm.addressing import get_address_host_port
    except ImportError as error:
        help_text = "pip install 'bytewright[dask]'"
        raise compile_error(
            "BW501", "the Python package 'distributed' is not installed", help=help_text
        ) from error
    try:
        get_address_host_port(
            address
        )  # a client of what is no address complains once more when it is collected
        client = Client(address, timeout="10s", set_as_default=False)
    except (OSError, ValueError) as error:
        raise compile_error("BW502", f"there is no Dask scheduler at '{address}': {error}") from error
    with client:
        yield client.get_executor()
