"""`make demo`: from digits.tflite to C, run on this machine and on an emulated Cortex-M55.

Compiles the model twice, lets both programs read handwritten digits that training never saw, and shows what
they cost: bytes of RAM and flash, instructions, and the memory in use over the course of an inference.
The C stays in build/digits/ for a look.
"""

from __future__ import annotations

import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table
from rich.text import Text

import bytewright
from bytewright.diagnostics import CompileError
from bytewright.execute.result import BatchResult
from bytewright.execute.run import run_batch
from bytewright.model import CompiledModel
from bytewright.record.plan import Plan
from bytewright.report.memory import use_over_time, used_workspaces
from bytewright.report.report_view import pool_charts
from bytewright.show.as_text import print_section

Array = NDArray[Any]

HERE = Path(__file__).resolve().parent
MODEL = HERE / "digits.tflite"
HELD_OUT = HERE / "heldout.npz"
OUTPUT = HERE.parents[1] / "build" / "digits"
BOARD = "mps3-an547"
NUM_ON_BOARD = 36

INK = " .:-=+*#%@"
LARGEST_PIXEL = 16
BAR_LENGTH = 30


@dataclass(frozen=True, slots=True, eq=False)
class Run:
    """What one of the two programs answered, and how it was made."""

    model: CompiledModel
    compile_seconds: float
    result: BatchResult

    @property
    def probabilities(self) -> Array:
        """One row for each digit, 0 to 1."""
        stored = np.stack([outputs[0][0] for outputs in self.result.outputs])
        return (stored.astype(np.float64) + 128) / 256


def compile_and_run(target: str, on: Literal["host", "qemu"], images: Array) -> Run:
    """Compiles the model for `target`, writes the bundle and classifies the images with it."""
    folder = OUTPUT / target
    start = time.perf_counter()
    model = bytewright.compile(MODEL, target=target)
    seconds = time.perf_counter() - start
    model.write(folder)
    result = run_batch(folder, [[image[np.newaxis]] for image in images], on=on)
    return Run(model, seconds, result)


def least_certain(probabilities: Array, labels: Array) -> int:
    """The digit whose answer is right by the smallest margin."""
    right = probabilities.argmax(axis=1) == labels
    ranked = np.sort(probabilities, axis=1)
    return int(np.argmin(np.where(right, ranked[:, -1] - ranked[:, -2], 2.0)))


def picture(image: Array, probabilities: Array) -> Text:
    """The digit in characters, and beside it the probability of each answer."""
    rows = ["".join(2 * INK[(len(INK) - 1) * int(pixel) // LARGEST_PIXEL] for pixel in row) for row in image]
    left = ["+" + 16 * "-" + "+", *(f"|{row}|" for row in rows), "+" + 16 * "-" + "+"]
    answer = int(probabilities.argmax())
    text = Text()
    for digit, line in enumerate(left):
        share = float(probabilities[digit])
        bar = "#" * round(BAR_LENGTH * share)
        style = "bold green" if digit == answer else "dim"
        text.append(f"  {line}    ")
        text.append(f"{digit} {share:7.1%} {bar}".rstrip(), style=style)
        text.append("\n")
    text.right_crop(1)
    return text


def figures(host: Run, board: Run, labels: Array) -> Table:
    """Both programs side by side."""
    table = Table(box=None, pad_edge=False, padding=(0, 2))
    table.add_column("")
    table.add_column("this machine", justify="right")
    table.add_column("Cortex-M55 in QEMU", justify="right")
    shares: list[str] = []
    for run in (host, board):
        answers = run.probabilities.argmax(axis=1)
        num_right = int(np.count_nonzero(answers == labels[: len(answers)]))
        shares.append(f"{num_right} of {len(answers)} ({num_right / len(answers):.1%})")
    table.add_row("held-out digits read right", *shares)
    table.add_row("compiled in", *(f"{run.compile_seconds:.2f} s" for run in (host, board)))
    microseconds = float(np.median(host.result.microseconds))
    instructions = int(np.median(board.result.instructions))
    table.add_row("one inference", f"{microseconds:,.1f} microseconds", f"{instructions:,} instructions")
    stack_bytes = board.result.stack_bytes or 0
    table.add_row(
        "RAM: workspace", f"{host.result.workspace_bytes:,} B", f"{board.result.workspace_bytes:,} B"
    )
    table.add_row("RAM: stack, measured", "", f"{stack_bytes:,} B")
    table.add_row(
        "RAM: together", "", f"{board.result.workspace_bytes + stack_bytes:,} B"
    )  # parameters lie in flash
    table.add_row("flash: code and weights", "", f"{board.result.flash_bytes or 0:,} B")
    return table


def alive_at_peak(plan: Plan) -> list[str]:
    """The buffers that make the board's workspace as large as it is, with their offsets."""
    names: list[str] = []
    for pool in used_workspaces(plan):
        begin, end = plan.steps[use_over_time(plan, pool).peak_steps[0]].ticks
        for buffer in plan.buffers_in(pool.name):
            lower, upper = buffer.live or (begin, end)
            if lower < end and begin < upper:
                names.append(f"{buffer.name} +{buffer.place.offset}")
    return names


def main() -> int:
    """Runs the demo; returns the exit status."""
    console = Console(highlight=False)
    with np.load(HELD_OUT) as stored:
        images, labels = stored["images"], stored["labels"]
    try:
        with console.status("compiling for this machine and reading 360 digits"):
            host = compile_and_run("host", "host", images)
        with console.status(f"compiling for {BOARD} and reading {NUM_ON_BOARD} digits in QEMU"):
            board = compile_and_run(BOARD, "qemu", images[:NUM_ON_BOARD])
    except CompileError as error:
        print(error, file=sys.stderr)
        return int(error.exit_code)

    shown = least_certain(board.probabilities, labels[:NUM_ON_BOARD])
    answer = int(board.probabilities[shown].argmax())
    console.print(f"\nThe Cortex-M55 reads this as [bold green]{answer}[/], its closest call:\n")
    console.print(picture(images[shown, :, :, 0], board.probabilities[shown]))
    console.print()
    console.print(figures(host, board, labels))
    same = np.array_equal(host.probabilities[:NUM_ON_BOARD], board.probabilities)
    console.print(
        f"\nBoth give {'the same bytes' if same else 'DIFFERENT BYTES'} for these {NUM_ON_BOARD} digits."
    )

    console.print("\nThe board's workspace over the steps of one inference:", end="")
    for chart in pool_charts(board.model.plan):
        print_section(chart, console)
    console.print(f"Alive then: {', '.join(alive_at_peak(board.model.plan))}")
    console.print(f"\nThe C is in {os.path.relpath(OUTPUT / BOARD)}", soft_wrap=True)
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
