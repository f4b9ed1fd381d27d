"""The choice of segments against all cuts of small programs, and how much it looks at in long ones."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import Any

import numpy as np
import pytest

from bytewright import ir
from bytewright.ir.module import Module
from bytewright.ir.walk import calls, regions
from bytewright.storage.rows import choose_segments as searched
from bytewright.storage.rows.alive import Alive
from bytewright.storage.rows.choose_segments import choose_segments
from bytewright.storage.rows.segment import Segment, segment_of
from bytewright.storage.rows.steps import RowProgram, read_rows
from support.row_programs import RowText, row_program


def alive_in(module: Module, seed: int) -> Alive:
    """Every tensor from its first call to its last, the entry's parameters left out, and random scratch."""
    generator = np.random.default_rng(seed)
    uses: dict[str, tuple[int, int, int]] = {}
    given = {parameter.name for parameter in module.main.parameters}
    called = calls(module.main)
    for number, call in enumerate(called):
        for region in regions(call):
            name, size = region.buffer.name, prod(map(ir.upper_bound, region.buffer.shape)) * 4
            if name not in given:
                uses[name] = (size, uses.get(name, (0, number))[1], number)
    scratch = [int(generator.integers(0, 60)) for _ in called]
    peaks = [
        scratch[n] + sum(size for size, first, last in uses.values() if first <= n <= last)
        for n in range(len(called))
    ]
    return Alive(uses, peaks, scratch)


def all_cuts(program: RowProgram, begin: int = 0) -> Iterator[list[tuple[int, int, Segment | None]]]:
    """Every way to cut the steps from one on into steps alone and segments."""
    if begin == program.num_steps:
        yield []
        return
    for end in range(begin + 1, program.num_steps + 1):
        segment = segment_of(program, begin, end) if end - begin > 1 else None
        if end - begin == 1 or segment is not None:
            for rest in all_cuts(program, end):
                yield [(begin, end, segment), *rest]


def need(program: RowProgram, alive: Alive, first: int, end: int, segment: Segment | None) -> int:
    if segment is None:
        return alive.peaks[first]
    total = max(alive.scratch[first:end])
    for name, (size, begin, last) in alive.tensors.items():
        if name in segment.rings:
            maker = program.steps[program.tensors[name].maker]
            assert size % maker.num_rows == 0
            total += segment.rings[name] * size // maker.num_rows
        elif begin < end and last >= first:
            total += size
    return total


@pytest.mark.parametrize("everywhere", [False, True])
def test_the_choice_is_the_best_of_all_cuts(everywhere: bool) -> None:
    num_fused = 0
    for seed in range(80):
        module = row_program(seed, 6, odd=seed % 3 == 0).module
        program, alive = read_rows(module), alive_in(module, seed)
        ranked: list[tuple[Any, ...]] = []
        for cut in all_cuts(program):
            needs = [(need(program, alive, *piece), piece[1] - piece[0]) for piece in cut]
            fused = [size for _, size in needs if size > 1]
            peak, total = max(n for n, _ in needs), sum(n * size for n, size in needs)
            ranked.append((peak, total if everywhere else 0, len(fused), sum(fused)))
        chosen = choose_segments(program, alive, everywhere=everywhere)
        best = min(ranked)
        if best[0] >= max(alive.peaks) and not everywhere:
            assert not chosen
            continue
        assert cost_of(program, alive, chosen, everywhere) == best, seed
        num_fused += bool(chosen)
    assert num_fused > 20


def cost_of(
    program: RowProgram, alive: Alive, chosen: tuple[Segment, ...], everywhere: bool
) -> tuple[int, ...]:
    inside = {number for segment in chosen for number in range(segment.first, segment.end)}
    assert len(inside) == sum(segment.num_steps for segment in chosen), "segments are apart"
    needs = [(alive.peaks[n], 1) for n in range(program.num_steps) if n not in inside]
    needs += [(need(program, alive, s.first, s.end, s), s.num_steps) for s in chosen]
    total = sum(n * size for n, size in needs)
    return max(n for n, _ in needs), total if everywhere else 0, len(chosen), len(inside)


def test_no_steps() -> None:
    assert choose_segments(RowProgram(0, {}, {}, frozenset()), Alive({}, [], []), everywhere=True) == ()


# How much is looked at


def long_chain(num_steps: int, high: range) -> tuple[RowProgram, Alive]:
    """A chain of windows; the tensors that some steps make are larger than all others."""
    text = RowText()
    text.parameter("x", 40, "r")
    for number in range(num_steps - 1):
        text.allocate(f"t{number}", 40)
    text.parameter("y", 40, "w")
    names = ["x", *(f"t{number}" for number in range(num_steps - 1)), "y"]
    kernel = text.kernel(["x"], "t0", [text.window("x", 0, 1, 3, 1, -1)])
    text.statements += [text.call(kernel, [names[n]], names[n + 1]) for n in range(num_steps)]
    tensors = {f"t{n}": (4800 if n in high else 480, n, n + 1) for n in range(num_steps - 1)}
    peaks = [sum(size for size, a, b in tensors.values() if a <= n <= b) for n in range(num_steps)]
    return read_rows(text.module), Alive(tensors, peaks, [0] * num_steps)


def test_only_segments_near_the_peak_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    program, alive = long_chain(600, range(300, 302))
    looked: list[tuple[int, int]] = []

    def counting(program: RowProgram, first: int, end: int) -> Segment | None:
        looked.append((first, end))
        return segment_of(program, first, end)

    monkeypatch.setattr(searched, "segment_of", counting)
    chosen = choose_segments(program, alive)
    assert [(segment.first, segment.end) for segment in chosen] == [(300, 303)]
    assert len(looked) < 1000  # of 11,000
    assert sum(first > 310 for first, _ in looked) < 30
