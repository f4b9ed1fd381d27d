"""`bytewright plan MODEL`: where a model's buffers would lie on a target, without the C."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from bytewright.cli.model_options import ModelOptions
from bytewright.cli.progress import shown_progress
from bytewright.cli.summary import plan_summary
from bytewright.cli.write_files import write_files
from bytewright.record.plan import Plan, PlannedBuffer
from bytewright.record.plan_file import document_of

if TYPE_CHECKING:
    from bytewright.remedy.trial import Trial

_COLUMNS = ("id", "lower", "upper", "size", "alignment", "kind", "place", "offset")


@dataclass(frozen=True, slots=True)
class ModelPlanFiles:
    """What is written besides: a table of the buffers, and a drawing of the workspace."""

    table: Path | None
    svg: Path | None


def plan_model(model: Path, options: ModelOptions, files: ModelPlanFiles, as_json: bool) -> None:
    """Plans a model and shows pools, stack and buffers.

    Raises:
        CompileError: The model is wrong or does not fit; nothing is written then.
    """
    from bytewright.pipeline import plan_model as plan
    from bytewright.run_passes import Runner

    with shown_progress(f"planning {model.name}") as progress:
        target = options.target()
        planned = plan(model, target, options.compiling, Runner(target, progress))
    made = planned.plan
    wanted: list[tuple[Path, str]] = []
    if files.table is not None:
        wanted.append((files.table, _table(made)))
    if files.svg is not None:
        wanted.append((files.svg, _drawing(planned.trial)))
    write_files(wanted, [model])
    click.echo(json.dumps(document_of(made), indent=1) if as_json else _text(made))


def _text(plan: Plan) -> str:
    lines = [f"model '{plan.model}' for {plan.target}", *plan_summary(plan)]
    if not plan.buffers:
        return "\n".join(lines)
    width = max(len(name) for name in plan.buffers)
    lines.append("buffers")
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
            offset = "" if place.offset is None else place.offset
            row = (
                buffer.name,
                *buffer.live,
                buffer.size_bytes,
                buffer.alignment,
                place.kind,
                place.name,
                offset,
            )
            writer.writerow(row)
    return stream.getvalue()


def _drawing(trial: Trial) -> str:
    from bytewright.plan.drawing import draw

    return draw(trial.workspace_problem, trial.workspace)
