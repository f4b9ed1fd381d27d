"""`make bench-networks`: networks of many kinds beside TensorFlow Lite Micro with CMSIS-NN, on emulated boards.

Both have inputs and outputs in their own memory here. TensorFlow Lite Micro says itself, on the board, what it uses of
its arena; `micro_build.py` says what it is built from, and without that its columns are dashes. Instructions are those
of the last run, and exact. The table goes to standard output, and with `--write` between the marks in
docs/benchmarks.md.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "benchmarks"), str(ROOT / "tools"), str(ROOT / "tests")]

from common import show  # noqa: E402
from micro_board import MicroError, run_micro  # noqa: E402
from micro_build import VARIABLE, sources  # noqa: E402
from model_tables import beside  # noqa: E402

import bytewright  # noqa: E402
from bytewright.execute.run import run_batch  # noqa: E402
from support.against_reference import differences  # noqa: E402
from support.table_networks import NETWORKS, Network  # noqa: E402

BOARDS = {"mps3-an547": "M55", "mps2-an386": "M4"}
NUM_RUNS = 2  # on a board; a state has come by then
BUILD = ROOT / "build" / "micro"


@dataclass(frozen=True, slots=True)
class Figures:
    """Of a network on a board.

    Attributes:
        ram_bytes: Workspace, states, and the stack as promised; inputs and outputs are in the workspace.
        instructions: Of the last run.
        num_wrong: Runs whose outputs are not the reference's.
        micro_arena_bytes, micro_instructions: The peer's; None where it is not built.
    """

    ram_bytes: int
    instructions: int
    num_wrong: int
    micro_arena_bytes: int | None = None
    micro_instructions: int | None = None


def main() -> int:
    """Runs the benchmark."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", help=f"beginnings of {', '.join(NETWORKS)}; all if none")
    parser.add_argument("--write", action="store_true", help="put the table into docs/benchmarks.md")
    arguments = parser.parse_args()
    if sources() is None:
        print(f"{VARIABLE} names no sources of TensorFlow Lite Micro: its columns are empty", file=sys.stderr)
    chosen = [
        network
        for name, network in NETWORKS.items()
        if not arguments.names or name.startswith(tuple(arguments.names))
    ]
    lines = [header()]
    for network in chosen:
        lines.append(line(network, {board: figures(network, board) for board in BOARDS}))
        print(lines[-1], file=sys.stderr, flush=True)
    show("\n".join(lines), "networks", write=arguments.write)
    return 0


def figures(network: Network, board: str) -> Figures:
    """Both on one board."""
    with tempfile.TemporaryDirectory() as temporary:
        path = Path(temporary) / "net.tflite"
        path.write_bytes(network.content)
        model = bytewright.compile(path, target=board, io="workspace", **network.options)
        folder = model.write(Path(temporary) / "bundle")
        given = network.given[:NUM_RUNS]
        found = run_batch(folder, given, on="qemu", keep_state=True)
    assert found.instructions is not None
    wrong = [differences(own, wanted) for own, wanted in zip(found.outputs, network.wanted, strict=False)]
    own = Figures(model.plan.ram_bytes, found.instructions[-1], sum(map(bool, wrong)))
    if sources() is None:
        return own
    try:
        peer = run_micro(board, network.content, network.all_inputs[:NUM_RUNS], BUILD)
    except MicroError as error:
        print(f"{network.title}, {network.form}: {error}", file=sys.stderr)
        return own
    return Figures(own.ram_bytes, own.instructions, own.num_wrong, peer.arena_bytes, peer.instructions[-1])


def header() -> str:
    """The first two lines."""
    cells = ["network", "type", "witness", "runs that differ", "arena, B", "RAM, B"]
    for core in BOARDS.values():
        cells += [f"CMSIS-NN, {core}", core]
    return f"| {' | '.join(cells)} |\n{'|---' * len(cells)}|"


def line(network: Network, found: Mapping[str, Figures]) -> str:
    """A row: memory on the first board, instructions on each."""
    first, *_ = found.values()
    witness = "LiteRT" if network.numerics == "litert-ref" else "TFLM"
    cells = [network.title, network.form, witness, f"{sum(each.num_wrong for each in found.values())}"]
    cells += [_number(first.micro_arena_bytes)]
    cells += [beside(first.ram_bytes, first.micro_arena_bytes, f"{first.ram_bytes:,}")]
    for each in found.values():
        cells += [_number(each.micro_instructions)]
        cells += [beside(each.instructions, each.micro_instructions, f"{each.instructions:,}")]
    return f"| {' | '.join(cells)} |"


def _number(value: int | None) -> str:
    return "-" if value is None else f"{value:,}"


if __name__ == "__main__":
    sys.exit(main())
