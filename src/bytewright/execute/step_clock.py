"""What the clock between the kernels wrote: harness/step_clock.c says how."""

from pathlib import Path

import numpy as np

from bytewright.execute.result import TimedRun


def read_timed_runs(path: Path) -> tuple[TimedRun, ...]:
    """The runs in the order in which they were."""
    words: list[int] = np.fromfile(path, np.int64).tolist()
    runs: list[TimedRun] = []
    position = 0
    while position < len(words):
        num_marks, began_at, ended_at = words[position : position + 3]
        position += 3
        marks = words[position : position + 2 * num_marks]
        position += 2 * num_marks
        runs.append(TimedRun(began_at, ended_at, tuple(zip(marks[::2], marks[1::2], strict=True))))
    return tuple(runs)
