"""Carries out a sweep: here, or in whatever threads, processes or machines an executor has."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, as_completed
from contextlib import nullcontext
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

from bytewright.sweeps.evaluate import Result, evaluate, group_key
from bytewright.sweeps.grid import Configuration, Sweep, sweep_of
from bytewright.sweeps.pareto import OBJECTIVES, pareto
from bytewright.sweeps.record import Record
from bytewright.target.model import Target

PIECE = 16  # configurations that are handed over, recorded and synced together
Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class SweepResults:
    """What a sweep found, in the order of its configurations.

    Attributes:
        results: A mapping for each configuration (docs/sweeps.md has the keys).
    """

    results: tuple[Result, ...]

    def pareto(self, *objectives: str) -> tuple[Result, ...]:
        """Those that fit and that no other one of the same model is better than in all objectives.

        Args:
            objectives: Keys of results that shall be small; else RAM, parameters, and instructions where measured.
        """
        return pareto(self.results, objectives or OBJECTIVES)


def sweep(
    model: str | PathLike[str] | Sequence[str | PathLike[str]],
    grid: Mapping[str, object],
    executor: Executor | None = None,
    *,
    record: str | PathLike[str] | None = None,
    measure: bool = False,
) -> SweepResults:
    """Compiles models for every target and every choice of options, up to the plan.

    Args:
        model: A file, or several.
        grid: By the name of an argument of `bytewright.compile`, the values to try: `{"target": ["host", "board.toml"],
            "workspace": ["ram=16KiB", "ram=32KiB"]}`; `resize POOL` has sizes of one pool.
        executor: Any of `concurrent.futures`, or Dask's; None for this thread. Models and target files must be where
            its workers look for them.
        record: A file of JSON lines that results are appended to, and taken from when the sweep goes on.
        measure: Whether each that fits is also run on its board in QEMU.

    Raises:
        bytewright.diagnostics.CompileError: The grid is malformed, or the record cannot be written. A configuration
            that is refused is a result.
    """
    models = [Path(each) for each in ([model] if isinstance(model, str | PathLike) else model)]
    choices = dict(grid)
    targets = choices.pop("target", ["host"])
    if not isinstance(targets, list | tuple):
        targets = [targets]
    named = [each if isinstance(each, Target) else str(each) for each in targets]
    found = sweep_of(models, named, choices, measure=measure)
    return run_sweep(found, executor, None if record is None else Path(record))


def run_sweep(
    asked: Sweep,
    executor: Executor | None = None,
    record: Path | None = None,
    progress: Progress | None = None,
) -> SweepResults:
    """The results of all configurations, of which those in the record are not found again.

    Raises:
        CompileError: BW206 or BW606 for the record.
        BrokenExecutor: Workers ended; what they had found is in the record.
    """
    with nullcontext() if record is None else Record(record) as kept:
        found: dict[str, Result] = {} if kept is None else dict(kept.found)
        pieces = list(_pieces([each for each in asked.configurations if each.key not in found]))
        total = len(asked.configurations)
        num_found = total - sum(map(len, pieces))
        for results in _results(pieces, asked.measure, executor):
            found |= {result["key"]: result for result in results}
            if kept is not None:
                kept.add(results)
            if progress is not None:
                num_found += len(results)
                progress(num_found, total)
    return SweepResults(tuple(found[each.key] for each in asked.configurations))


def _pieces(configurations: Sequence[Configuration]) -> Iterator[list[Configuration]]:
    """Configurations of one group each, a few at a time."""
    groups: dict[object, list[Configuration]] = {}
    for each in configurations:
        groups.setdefault(group_key(each), []).append(each)
    for group in groups.values():
        for first in range(0, len(group), PIECE):
            yield group[first : first + PIECE]


def _results(
    pieces: Sequence[Sequence[Configuration]], measure: bool, executor: Executor | None
) -> Iterator[Sequence[Result]]:
    if executor is None:
        yield from (evaluate(piece, measure) for piece in pieces)
        return
    pending = [executor.submit(evaluate, piece, measure) for piece in pieces]
    failed: BaseException | None = None
    try:
        for done in as_completed(pending):
            if (error := done.exception()) is None:
                yield done.result()
            else:
                failed = failed or error  # what others find is kept
    finally:
        for future in pending:
            future.cancel()
    if failed is not None:
        raise failed
