"""`bytewright run`: one inference of a bundle or a model, on this machine or on an emulated board."""

from __future__ import annotations

import io
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack, cast

import click

from bytewright.cli import what_runs
from bytewright.cli.option_types import PATH, NamedFile, json_option, named_file
from bytewright.cli.progress import shown_progress
from bytewright.cli.write_files import write_files
from bytewright.diagnostics import compile_error
from bytewright.execute.options import MOST_RUNS

if TYPE_CHECKING:
    from bytewright.execute.description import Bundle
    from bytewright.execute.options import RunOptions
    from bytewright.execute.result import RunResult
    from bytewright.execute.tensors import Array
    from bytewright.record.plan import Plan


@click.command(short_help="Run a bundle or a model.")
@click.argument("source", metavar="DIR|MODEL", type=PATH)
@what_runs.input_option
@click.option(
    "--output",
    "output_files",
    type=named_file,
    multiple=True,
    metavar="[NAME=]Y.npy",
    help="Where to write an output, by its name or in the model's order.",
)
@what_runs.machine_options(
    "This machine, the target's board or processor in QEMU, or a board on a serial line.",
    "Inferences to run and time.  [default: 1]",
    MOST_RUNS,
    default=1,
)
@what_runs.build_options
@click.option(
    "--entry",
    metavar="NAME",
    help="Of several entries the one to run.  [default: each once, in their order]",
)
@click.option(
    "--paranoid",
    is_flag=True,
    help="Also run it with dead bytes poisoned, and watch every byte of the workspaces.",
)
@json_option
def run(
    output_files: tuple[NamedFile, ...],
    entry: str | None,
    paranoid: bool,
    as_json: bool,
    **asked: Unpack[what_runs.Asked],
) -> None:
    """Run one inference of DIR, a bundle, or of MODEL, which is compiled for the occasion.

    A model is compiled for --target, else for the host, or for mps3-an547 with --on qemu. A bundle for a board also
    runs on the host. In QEMU, targets that are no board there run on one of their core: memories are moved into those
    of the board, as the first line says. A board on a serial line has a program of its own (`bytewright serial`).
    With --paranoid the exit status is 4 if a step changes bytes that are not its own, or reads dead ones.
    """
    from bytewright.execute.build import BuildOptions
    from bytewright.execute.description import read_bundle
    from bytewright.execute.paranoid import run_paranoid
    from bytewright.execute.run import run_bundle
    from bytewright.execute.tensors import seen_by
    from bytewright.execute.tools import TIMEOUT_SECONDS

    given, on = what_runs.inputs_of(asked), asked["on"]

    def admit(plan: Plan) -> tuple[list[Array] | None, list[Path]]:
        seen = seen_by(plan, entry)
        return what_runs.inputs_in_order(seen, given), _output_paths(seen, output_files)

    with what_runs.bundle_of(asked, admit) as (directory, (inputs, output_paths)):
        bundle = read_bundle(directory)
        with shown_progress(f"running {asked['source'].name} on {on}"):
            options = BuildOptions(sources=asked["sources"], compiler=asked["compiler"])
            how: RunOptions = {"on": on, "repeat": asked["repeat"] or 1, "options": options}
            how["entries"] = None if entry is None else [entry]
            how["timeout_seconds"] = asked["timeout"] or TIMEOUT_SECONDS
            watched = run_paranoid(directory, inputs, seed=asked["seed"], **how) if paranoid else None
            result = watched.result if watched else run_bundle(directory, inputs, seed=asked["seed"], **how)
    if output_paths:
        contents = [(path, _npy(array)) for path, array in zip(output_paths, result.outputs, strict=True)]
        write_files(contents, what_runs.files_of(asked))
    if as_json:
        click.echo(json.dumps(_document(result, bundle)))
        return
    click.echo(_summary(result, bundle, seen_by(bundle.plan, entry)))
    if watched is not None:
        click.echo(
            f"paranoid: {watched.num_steps} steps, {watched.watched_bytes} B of workspace and guards watched: "
            "each step changed nothing but its own, and no dead byte is read"
        )


def _output_paths(plan: Plan, files: Sequence[NamedFile]) -> list[Path]:
    """Where each output goes, in the model's order, if anywhere; before anything runs, so that a mistake costs no time.

    Raises:
        CompileError: BW205.
    """
    from bytewright.execute.by_name import in_order

    own = [tensor.name for tensor in plan.outputs]
    paths = in_order(own, [(file.name, file.path) for file in files], "output")
    if files and len(files) != len(plan.outputs):
        names = ", ".join(f"'{tensor.name}'" for tensor in plan.outputs)
        raise compile_error(
            "BW205",
            f"model '{plan.model}' has {len(plan.outputs)} outputs, {len(files)} files were named",
            notes=(f"in this order: {names}",),
        )
    return paths


def _npy(array: Array) -> bytes:
    import numpy as np

    stream = io.BytesIO()
    np.save(stream, array)
    return stream.getvalue()


def _document(result: RunResult, bundle: Bundle) -> dict[str, Any]:
    figures = ("instructions", "cycles", "microseconds", "workspace_bytes", "stack_bytes")
    return {
        "outputs": [_plain(output.tolist()) for output in result.outputs],
        "target": result.target,
        "on": str(result.on),
        **{name: getattr(result, name) for name in figures},
        "ram_bytes": _ram_bytes(result, bundle),
        "devices": [
            {"name": device.name, "instructions": device.instructions[-1], "stack_bytes": device.stack_bytes}
            for device in result.details.devices
        ],
        "stand_in": None if result.details.stand_in is None else result.details.stand_in.document,
        "num_resent_frames": result.details.num_resent_frames,
    }


def _ram_bytes(result: RunResult, bundle: Bundle) -> int | None:
    """Workspace, stacks as measured, and parameters in memory that can be written; None where nothing was measured."""
    if result.stack_bytes is None:
        return None
    stack_bytes = result.stack_bytes + sum(device.stack_bytes for device in result.details.devices)
    return result.workspace_bytes + stack_bytes + bundle.plan.ram_parameter_bytes


def _plain(value: Any) -> Any:
    """Nested lists as JSON can hold them: it knows neither infinities nor NaN."""
    if isinstance(value, list):
        return [_plain(item) for item in cast("list[Any]", value)]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _summary(result: RunResult, bundle: Bundle, seen: Plan) -> str:
    import numpy as np

    stand_in = result.details.stand_in
    lines = [] if stand_in is None else [f"on {stand_in.text}"]
    for tensor, array in zip(seen.outputs, result.outputs, strict=True):
        text = np.array2string(array, threshold=64, edgeitems=4, max_line_width=100, separator=" ")
        lines.append(f"{tensor.name}: {tensor.dtype.numpy}{list(array.shape)}")
        lines.extend(f"  {line}" for line in text.splitlines())
    lines.append(f"target {result.target}, run on {result.on}")
    if result.microseconds is not None:
        lines.append(f"{result.microseconds:.1f} microseconds")
    if result.instructions is not None:
        on = f" on {bundle.plan.device.name}" if result.details.devices else ""
        lines.append(f"{result.instructions} instructions{on}")
        lines += [
            f"{device.instructions[-1]} instructions on {device.name}" for device in result.details.devices
        ]
    if result.cycles is not None:
        lines.append(f"{result.cycles} cycles, by the core's counter")
    if result.details.num_resent_frames:
        lines.append(f"frames that were damaged or lost, and sent again: {result.details.num_resent_frames}")
    lines.append(f"{result.workspace_bytes} B of workspace")
    if result.stack_bytes is not None:
        lines.append(f"{result.stack_bytes} B of stack, measured")
        for device in result.details.devices:
            lines.append(f"{device.stack_bytes} B of stack on {device.name}, measured")
        lines.append(f"{_ram_bytes(result, bundle)} B of RAM with it")
    return "\n".join(lines)
