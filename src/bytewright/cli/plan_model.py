"""`bytewright plan MODEL`: where a model's buffers would lie on a target, without the C."""

import csv
import io
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import click

from bytewright.cli.model_options import ModelOptions
from bytewright.cli.option_types import echo_json
from bytewright.cli.progress import shown_progress
from bytewright.cli.summary import plan_summary
from bytewright.cli.write_files import write_files
from bytewright.plan.drawing import draw
from bytewright.plan.problem import Problem
from bytewright.plan.solution import Solution
from bytewright.record.plan import Plan, PlannedBuffer
from bytewright.record.plan_file import document_of

_COLUMNS = ("id", "lower", "upper", "size", "alignment", "kind", "place", "offset")


@dataclass(frozen=True, slots=True)
class PlanFiles:
    """What is written besides: a table of the buffers, and a drawing of the plan."""

    table: Path | None
    svg: Path | None

    def write(self, read: Path, table: Callable[[], str], problem: Problem, solution: Solution) -> None:
        """Writes those that were asked for, beside the file that was read."""
        contents: list[tuple[Path, str]] = []
        if self.table is not None:
            contents.append((self.table, table()))
        if self.svg is not None:
            contents.append((self.svg, draw(problem, solution)))
        write_files(contents, [read])


def plan_model(model: Path, options: ModelOptions, files: PlanFiles, as_json: bool) -> None:
    """Plans a model and shows pools, stack and buffers.

    Raises:
        CompileError: The model is wrong or does not fit; nothing is written then.
    """
    from bytewright.compiler.pipeline import plan_model as plan
    from bytewright.compiler.run_passes import Runner

    with shown_progress(f"planning {model.name}") as progress:
        target = options.target()
        planned = plan(model, target, options.compiling, Runner(target, progress))
    made, trial = planned.plan, planned.trial
    files.write(model, partial(_table, made), trial.stored.workspace, trial.workspace)
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
