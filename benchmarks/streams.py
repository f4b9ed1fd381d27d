"""`make bench-streams`: what networks over 98 frames take as a whole and frame by frame, on emulated boards.

The whole is computed with each window's frames given again, its tensors whole, as is usual, and row by row.
Instructions are those of the last of three runs, and exact. The table goes to standard output, and with `--write`
between the marks in docs/benchmarks.md.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "benchmarks"), str(ROOT / "tools"), str(ROOT / "tests")]

from common import show  # noqa: E402

import bytewright  # noqa: E402
from bytewright.execute.run import run_batch  # noqa: E402
from bytewright.record.plan import Plan  # noqa: E402
from support.streamed_nets import keyword_net, temporal_net  # noqa: E402

BOARDS = {"mps3-an547": "M55", "mps2-an386": "M4"}
FRAMES = 98
NETWORKS = {
    "DS-CNN, 98 frames of 10": (keyword_net(FRAMES), 1),
    "temporal convolutions, 98 frames of 40": (temporal_net(FRAMES), 2),
}
WAYS: dict[str, dict[str, Any]] = {"whole, tensors whole": {"rows": "off"}, "whole, by rows": {}}
HEAD = (
    "| network | | frames a run | multiply-accumulates | workspace + state on M55, B | on M4, B | M55 | M4 |"
)


def main() -> int:
    """Runs the benchmark."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--write", action="store_true", help="put the table into docs/benchmarks.md")
    arguments = parser.parse_args()
    lines = [HEAD, "|---" * 8 + "|"]
    for name, (content, axis) in NETWORKS.items():
        of_stream = {board: _measured(content, board, {"stream": str(axis)}) for board in BOARDS}
        stream = next(iter(of_stream.values()))[0].stream
        assert stream is not None
        for way, options in WAYS.items():
            found = [_measured(content, board, options) for board in BOARDS]
            lines.append(_line([name, way, f"{FRAMES}", f"{stream.macs_before:,}"], found))
        cells = [name, "frame by frame", f"{stream.num_new}", f"{stream.macs:,}"]
        lines.append(_line(cells, list(of_stream.values())))
    show("\n".join(lines), "streams", write=arguments.write)
    return 0


def _measured(content: bytes, board: str, options: dict[str, Any]) -> tuple[Plan, int]:
    """The plan, and the instructions of a run."""
    with tempfile.TemporaryDirectory() as temporary:
        path = Path(temporary) / "net.tflite"
        path.write_bytes(content)
        model = bytewright.compile(path, target=board, **options)
        folder, plan = model.write(Path(temporary) / "bundle"), model.plan
        frames = np.zeros([int(extent) for extent in plan.inputs[0].shape], np.int8)
        run = run_batch(folder, [[frames]] * 3, on="qemu", keep_state=True)
    assert run.instructions is not None
    return plan, run.instructions[-1]


def _line(cells: Sequence[str], found: Sequence[tuple[Plan, int]]) -> str:
    memory = [f"{plan.workspace_bytes:,} + {plan.state_bytes:,}" for plan, _ in found]
    return f"| {' | '.join([*cells, *memory, *(f'{count:,}' for _, count in found)])} |"


if __name__ == "__main__":
    sys.exit(main())
