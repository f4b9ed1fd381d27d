"""`make demo-camera`: digits read from a camera's lines, on this machine and on an emulated Cortex-M55.

Compiles the model for rows and for whole frames, lets the C program of this folder read a recording, compares its
scores with those of the build that is given whole frames, and shows what each of the two needs.
The C and the recording stay in build/camera/ for a look.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np
from build_reader import BOARD, build_for_board, build_for_host, run_here, run_on_board, scores_of
from recording import WIDTH, Frame, demonstration, square_of
from rich.console import Console
from rich.table import Table

import bytewright
from bytewright.diagnostics import CompileError
from bytewright.execute.run import run_batch
from bytewright.model import CompiledModel

HERE = Path(__file__).resolve().parent
MODEL = HERE / "reader.tflite"
OUTPUT = HERE.parents[1] / "build" / "camera"
BRIGHTNESS = "@%#*+=-:. "
NUM_LINE_BUFFERS = 2


def compiled(io: str, folder: Path) -> CompiledModel:
    """The model for the board, written to a folder."""
    model = bytewright.compile(MODEL, target=BOARD.name, io=io)
    model.write(folder)
    return model


def whole_frame_scores(bundle: Path, frames: list[Frame], readable: list[int]) -> dict[int, list[int]]:
    """What the build for whole frames says of the frames that came as they should."""
    result = run_batch(bundle, [[square_of(frames[number])] for number in readable])
    scores = (outputs[0][0].astype(int) + 128 for outputs in result.outputs)
    return {number: list(values) for number, values in zip(readable, scores, strict=True)}


def picture(frame: Frame) -> str:
    """A frame in characters, each of which is a block of 4 x 8 pixels."""
    means = frame.reshape(frame.shape[0] // 8, 8, WIDTH // 4, 4).mean(axis=(1, 3))
    steps = np.minimum(means.astype(int) * len(BRIGHTNESS) // 256, len(BRIGHTNESS) - 1)
    return "\n".join("  " + "".join(BRIGHTNESS[step] for step in row) for row in steps)


def needs(whole: CompiledModel, rows: CompiledModel) -> Table:
    """The RAM of both builds on the board."""
    image = rows.plan.image
    assert image is not None
    columns = [
        (whole, whole.plan.inputs[0].size_bytes),
        (rows, image.row_bytes),
    ]
    lines = {
        "camera: two line buffers": [NUM_LINE_BUFFERS * WIDTH for _ in columns],
        "the model's input": [input_bytes for _, input_bytes in columns],
        "the model's workspace": [model.plan.workspace_bytes for model, _ in columns],
        "the model's stack, at most": [
            next(iter(model.plan.stack.values())).size_bytes for model, _ in columns
        ],
    }
    table = Table(box=None, pad_edge=False, padding=(0, 2))
    table.add_column("RAM in bytes, mps3-an547")
    table.add_column("whole frames", justify="right")
    table.add_column("line by line", justify="right")
    for name, values in {
        **lines,
        "together": [sum(column) for column in zip(*lines.values(), strict=True)],
    }.items():
        table.add_row(name, *(f"{value:,}" for value in values))
    return table


def main() -> int:
    """Runs the demo; returns the exit status."""
    console = Console(highlight=False)
    frames, _, recording, readable = demonstration()
    try:
        with console.status("compiling, building, and running here and in QEMU"):
            whole, rows = (compiled(io, OUTPUT / io) for io in ("caller", "rows"))
            expected = whole_frame_scores(OUTPUT / "caller", frames, readable)
            build_for_host(OUTPUT / "rows", OUTPUT / "reader")
            here = run_here(OUTPUT / "reader", recording, OUTPUT)
            build_for_board(OUTPUT / "rows", OUTPUT / "reader.elf")
            there = run_on_board(OUTPUT / "reader.elf", recording, OUTPUT)
    except CompileError as error:
        print(error, file=sys.stderr)
        return int(error.exit_code)
    console.print(f"\nFrame {readable[-1]} of the recording:\n\n{picture(frames[readable[-1]])}\n")
    console.print(
        f"What the program on the Cortex-M55 says of {len(frames)} frames, which came line by line:\n"
    )
    console.print("\n".join(f"  {line}" for line in there.splitlines()), soft_wrap=True)
    console.print()
    console.print(needs(whole, rows))
    same = here == there and scores_of(there) == expected
    how = "the same as" if same else "DIFFERENT FROM"
    console.print("\nThis machine says " + ("the same." if here == there else f"SOMETHING ELSE:\n{here}"))
    console.print(f"All scores are {how} those of the build for whole frames.")
    console.print(f"\nThe C is in {os.path.relpath(OUTPUT / 'rows')}", soft_wrap=True)
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
