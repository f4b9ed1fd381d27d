"""`make bench-core-kernels`: what each operator and type takes on a Cortex-M4, beside a peer.

The peer is TensorFlow Lite Micro with CMSIS-NN. Each operator is a model of its own, and both are counted whole, in the
second run: Bytewright's entry and functions of the C library, and the peer's interpreter. `micro_build.py` says what
the peer is built from; without that its column is dashes. The table goes to standard output, and with `--write` between
the marks in docs/kernels.md.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "benchmarks"), str(ROOT / "tools"), str(ROOT / "tests")]

from common import show  # noqa: E402
from micro_board import MicroError, run_micro  # noqa: E402
from micro_build import sources  # noqa: E402
from model_tables import beside  # noqa: E402

import bytewright  # noqa: E402
from bytewright.execute.build import BuildOptions  # noqa: E402
from bytewright.execute.run import run_batch  # noqa: E402
from support.kernel_cells import CORE, TYPES, WORK, operators_of, templates_of, write_cells  # noqa: E402

DOCUMENT = ROOT / "docs" / "kernels.md"
BUILD = ROOT / "build" / "micro"
LEVEL = ("-O2",)
NUM_RUNS = 2


def main() -> int:
    """Runs the benchmark."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", help="beginnings of operators; all if none")
    parser.add_argument("--write", action="store_true", help="put the table into docs/kernels.md")
    arguments = parser.parse_args()
    lines = ["| operator | type | Cortex-M4 | CMSIS-NN | template |", "|---|---|---|---|---|"]
    for name in WORK:
        for kind in TYPES:
            if name in operators_of(kind) and name.startswith(tuple(arguments.names or [""])):
                lines.append(line(name, kind))
                print(lines[-1], file=sys.stderr, flush=True)
    show("\n".join(lines), "core kernels", write=arguments.write, document=DOCUMENT)
    return 0


def line(name: str, kind: str) -> str:
    """The row of an operator and a type."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        path = write_cells(kind, folder, [name])
        model = bytewright.compile(path, target=CORE)
        random = np.random.default_rng(1)
        inputs = [
            (
                random.integers(-100, 101, each.shape)
                if each.dtype.is_integer
                else random.normal(0, 1, each.shape)
            ).astype(each.dtype.numpy)
            for each in model.plan.inputs
        ]
        options = BuildOptions(flags=LEVEL)
        runs = [inputs] * NUM_RUNS
        own = run_batch(model.write(folder / "bundle"), runs, on="qemu", options=options).instructions
        assert own is not None
        peer = _of_peer(path.read_bytes(), runs, f"{name}, {kind}")
    cost = own[-1] / WORK[name]
    other = None if peer is None else peer / WORK[name]
    stated = "-" if other is None else f"{other:.2f}"
    template = templates_of(model.plan, [name])[name]
    return f"| {name} | {kind} | {beside(cost, other, f'{cost:.2f}')} | {stated} | {template} |"


def _of_peer(content: bytes, runs: list[list[np.ndarray]], where: str) -> int | None:
    """Instructions of the peer's last run; None where it is not built or does not run the model."""
    if sources() is None:
        return None
    try:
        return run_micro(CORE, content, runs, BUILD).instructions[-1]
    except MicroError as error:
        print(f"{where}: {error}", file=sys.stderr)
        return None


if __name__ == "__main__":
    sys.exit(main())
