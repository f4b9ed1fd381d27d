"""What a clock between the kernels wrote, into memory or over a line: harness/step_clock.c says how."""

import numpy as np

from bytewright.execute.result import TimedRun

STEPS_FILE = "steps.bin"
_BEGINS, _ENDS = -1, -2


def read_timed_runs(content: bytes) -> tuple[TimedRun, ...]:
    """The runs in the order in which they were.

    Raises:
        ValueError: It is not what a clock writes.
    """
    words: list[int] = np.frombuffer(content, "<i8").tolist()
    runs: list[TimedRun] = []
    began_at: int | None = None
    marks: list[tuple[int, int]] = []
    for what, when in zip(words[::2], words[1::2], strict=True):
        if (what == _BEGINS) != (began_at is None):
            raise ValueError("a run neither begins nor ends where one must")
        if what == _BEGINS:
            began_at, marks = when, []
        elif what == _ENDS and began_at is not None:
            runs.append(TimedRun(began_at, when, tuple(marks)))
            began_at = None
        else:
            marks.append((what, when))
    return tuple(runs)
