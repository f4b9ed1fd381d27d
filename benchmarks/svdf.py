"""`make bench-svdf`: what the wake word's SVDF layers keep, and what a run costs, by the products that they may add.

Inputs that are kept in place of frames are fewer bytes, and more instructions (docs/state.md). Instructions are those
of the last of two runs on emulated boards, and exact. The table goes to standard output, and with `--write` between the
marks in docs/benchmarks.md.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from dataclasses import replace
from math import inf
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "benchmarks"), str(ROOT / "tools"), str(ROOT / "tests")]

from common import show  # noqa: E402

import bytewright  # noqa: E402
from bytewright.execute.run import run_batch  # noqa: E402
from bytewright.target.model import Role, Target  # noqa: E402
from bytewright.target.registry import load_target  # noqa: E402
from support.wake_word import FEATURES, wake_word_net  # noqa: E402

BOARDS = {"mps3-an547": "M55", "mps2-an386": "M4"}
SHARES = (0.0, 0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 5.0, inf)
NUM_RUNS = 2


def main() -> int:
    """Runs the benchmark."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--write", action="store_true", help="put the table into docs/benchmarks.md")
    arguments = parser.parse_args()
    cells = ["products added", *(f"state + workspace on {core}, B | {core}" for core in BOARDS.values())]
    lines = [f"| {' | '.join(cells)} |", "|---" * (1 + 2 * len(BOARDS)) + "|"]
    for share in SHARES:
        found = [_measured(load_target(board), share) for board in BOARDS]
        said = "as many as save anything" if share == inf else f"{share:g}"
        lines.append(f"| {said} | {' | '.join(found)} |")
    show("\n".join(lines), "svdf", write=arguments.write)
    return 0


def _measured(target: Target, share: float) -> str:
    """Memory and instructions where layers may add this share of their products."""
    cpu = target.default_device
    is_default = share == cpu.isa.style.recomputed
    changed = replace(cpu, isa=replace(cpu.isa, style=replace(cpu.isa.style, recomputed=share)))
    devices = tuple(changed if each is cpu else each for each in target.devices)
    random = np.random.default_rng(1)
    frame = random.integers(-128, 128, (1, FEATURES)).astype(np.int8)
    with tempfile.TemporaryDirectory() as temporary:
        path = Path(temporary) / "net.tflite"
        path.write_bytes(wake_word_net())
        model = bytewright.compile(path, target=replace(target, devices=devices), io="workspace")
        found = run_batch(
            model.write(Path(temporary) / "bundle"), [[frame]] * NUM_RUNS, on="qemu", keep_state=True
        )
    assert found.instructions is not None
    state, workspace = (
        sum(pool.used_bytes for pool in model.plan.pools.values() if pool.role is role)
        for role in (Role.STATE, Role.WORKSPACE)
    )
    text = f"{state:,} + {workspace:,} | {found.instructions[-1]:,}"
    return " | ".join(f"**{cell}**" for cell in text.split(" | ")) if is_default else text


if __name__ == "__main__":
    sys.exit(main())
