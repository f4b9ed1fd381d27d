"""`bytewright plan MODEL`: where a model's buffers would lie on a target, without the C."""

import csv
import io
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

import click

from bytewright.cli.formats import asked_pages
from bytewright.cli.model_options import ModelOptions
from bytewright.cli.option_types import echo_json
from bytewright.cli.progress import shown_progress
from bytewright.cli.summary import plan_summary
from bytewright.cli.write_files import write_files
from bytewright.record.buffers import PlannedBuffer
from bytewright.record.plan import Plan
from bytewright.record.plan_file import document_of
from bytewright.show.view import View

_COLUMNS = ("id", "lower", "upper", "size", "alignment", "kind", "place", "offset")


def write_plan(
    path: Path | None, table: Callable[[], str], view: Callable[[], View], read: Iterable[Path]
) -> None:
    """Writes what is asked for besides: a table of the buffers, and pages.

    Raises:
        CompileError: BW206; then nothing is written.
    """
    write_files([*([(path, table())] if path is not None else []), *asked_pages(view)], read)


def plan_model(model: Path, options: ModelOptions, output: Path | None, as_json: bool) -> None:
    """Plans a model and shows pools, stack and buffers.

    Raises:
        CompileError: The model is wrong or does not fit; nothing is written then.
    """
    from bytewright.compiler.pipeline import plan_model as plan
    from bytewright.compiler.run_passes import Runner
    from bytewright.report.report_view import report_view

    with shown_progress(f"planning {model.name}") as progress:
        target = options.target()
        planned = plan(model, target, options.compiling, Runner(target, progress))
    made = planned.plan
    write_plan(output, partial(_table, made), partial(report_view, made), [model])
    if as_json:
        echo_json(document_of(made))
    else:
        click.echo(_text(made))


def _text(plan: Plan) -> str:
    lines = [f"model '{plan.model}' for {plan.target}", *plan_summary(plan)]
    if not plan.buffers:
        return "\n".join(lines)
    width = max(len(name) for name in plan.buffers)
    lines.append(f"buffers, {plan.num_buffers_text}")
    for buffer in plan.buffers.values():
        size = f"{buffer.size_bytes} B"
        alive = "" if buffer.live is None else f"ticks {buffer.live[0]}..{buffer.live[1]}"
        lines.append(f"  {buffer.name:{width}}  {size:>12}  {_place(buffer):24}  {alive}".rstrip())
    return "\n".join(lines)


def _place(buffer: PlannedBuffer) -> str:
    place = buffer.place
    if place.offset is None:
        return f"{place.kind} {place.name}"
    return f"{place.name}+{place.offset}"


def _table(plan: Plan) -> str:
    """CSV that the planner reads too: every buffer with a lifetime, and where it lies."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(_COLUMNS)
    for buffer in plan.buffers.values():
        if buffer.live is not None:
            place = buffer.place
            sizes = (buffer.size_bytes, buffer.alignment)
            writer.writerow((buffer.name, *buffer.live, *sizes, place.kind, place.name, place.offset))
    return stream.getvalue()
