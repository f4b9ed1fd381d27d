"""The tables of `make bench`: Bytewright's figures with their ratios to the best peer's; bold where a peer is ahead."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

# TensorFlow Lite Micro with CMSIS-NN on the same emulated cores, the second inference, on the M55 by the better of gcc
# and clang, on the M4 by gcc: figures of the project's design notes, which `make bench` does not measure again.
STATED_PEERS = {
    "mps3-an547": {"kws": 1_730_599, "vww": 6_265_491, "ResNet8": 4_588_919, "ad01": 64_280},
    "mps2-an386": {"kws": 7_845_352, "vww": 24_720_564, "ResNet8": 29_877_198, "ad01": 582_355},
}
# XNNPACK where AVX-512 is hidden from it: the peer of targets that do not use it, and of no other.
WITHOUT_AVX512 = "XNNPACK, AVX2"
TARGETS_WITHOUT_AVX512 = ("x86-64-v3",)
CORES = {"mps3-an547": "Cortex-M55", "mps2-an386": "Cortex-M4"}


@dataclass(frozen=True, slots=True)
class BoardRun:
    """Of a model on a board, by compiler; RAM is that of the plan."""

    instructions: Mapping[str, int]
    flash_bytes: Mapping[str, int]
    ram_bytes: int


@dataclass(frozen=True, slots=True)
class Row:
    """One model's figures; times in microseconds.

    Attributes:
        name: As the benchmarks call it.
        is_float: Whether its tensors are float32.
        times: Bytewright's on this machine, by target; empty if they were not taken.
        peers: Those of other runtimes.
        boards: By board; empty if they were not run.
        compile_seconds: For `host`.
    """

    name: str
    is_float: bool
    times: Mapping[str, float]
    peers: Mapping[str, float]
    boards: Mapping[str, BoardRun]
    compile_seconds: float


def tables(rows: Sequence[Row]) -> str:
    """All tables as Markdown, those that have rows."""
    parts: list[str] = []
    for title, is_float in (("int8", False), ("float32", True)):
        chosen = [row for row in rows if row.is_float is is_float]
        timed = [row for row in chosen if row.times]
        if timed:
            parts += [f"{title} on this machine, microseconds of one inference:", _host_table(timed)]
        counted = [row for row in chosen if row.boards]
        if counted:
            parts += [f"{title} on emulated boards, instructions of one inference:", _board_table(counted)]
    return "\n\n".join(parts)


def _host_table(rows: Sequence[Row]) -> str:
    targets, peers = list(rows[0].times), list(rows[0].peers)
    lines = [
        _line(["model", *peers, *(f"`{target}`" for target in targets), "compile, s"]),
        _rule(2 + len(peers) + len(targets)),
    ]
    for row in rows:
        own = [
            beside(row.times[target], _best_peer(row.peers, target), f"{row.times[target]:.1f}")
            for target in targets
        ]
        lines.append(
            _line(
                [row.name, *(f"{row.peers[peer]:.1f}" for peer in peers), *own, f"{row.compile_seconds:.2f}"]
            )
        )
    return "\n".join(lines)


def _best_peer(peers: Mapping[str, float], target: str) -> float:
    """The least time of the peers that may use what the target may."""
    other = "XNNPACK" if target in TARGETS_WITHOUT_AVX512 and WITHOUT_AVX512 in peers else WITHOUT_AVX512
    return min(time for label, time in peers.items() if label != other)


def _board_table(rows: Sequence[Row]) -> str:
    boards = list(rows[0].boards)
    stated = [board for board in boards if any(row.name in STATED_PEERS[board] for row in rows)]
    head = ["model"]
    for board in boards:
        core = CORES[board]
        head += [f"CMSIS-NN, {core}"] if board in stated else []
        head += [f"{core}, {compiler}" for compiler in rows[0].boards[board].instructions]
    lines = [_line([*head, "RAM on M55, B", "flash on M55, B"]), _rule(len(head) + 2)]
    for row in rows:
        cells = [row.name]
        for board in boards:
            peer = STATED_PEERS[board].get(row.name)
            if board in stated:
                cells.append("-" if peer is None else f"{peer:,}")
            cells += [beside(count, peer, f"{count:,}") for count in row.boards[board].instructions.values()]
        first = row.boards[boards[0]]
        cells += [f"{first.ram_bytes:,}", " / ".join(f"{size:,}" for size in first.flash_bytes.values())]
        lines.append(_line(cells))
    return "\n".join(lines)


def beside(figure: float, peer: float | None, text: str) -> str:
    """A figure with its ratio to a peer's, where there is one; bold where the peer is ahead."""
    if peer is None:
        return text
    shown = f"{text} ({figure / peer:.2f})"
    return f"**{shown}**" if figure > peer else shown


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _rule(num_columns: int) -> str:
    return "|---" * num_columns + "|"
