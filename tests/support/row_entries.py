"""Random programs of several entries over states, whose steps make rows, and what their runs compute, by numpy.

A step reads one or two tensors, inputs or states of its entry: a window of rows for each row that it makes, or all of
it. States are written at the end of an entry, whole or row by row. Nothing of Bytewright takes part in what is
expected.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
CHANNELS = 3
PRIME = 1009


@dataclass(frozen=True, slots=True)
class Window:
    """Rows `stride * y + first + k * dilation` for `k` below `taps`, as far as they exist; all rows without taps."""

    source: str
    stride: int
    taps: int
    dilation: int
    first: int

    def rows(self, y: int, count: int) -> list[int]:
        if not self.taps:
            return list(range(count))
        asked = (self.stride * y + k * self.dilation + self.first for k in range(self.taps))
        return [row for row in asked if 0 <= row < count]

    def text(self, operand: int, count: int) -> str:
        q = f"q{operand}"
        add = f"sum[] = (sum[] * 3 + in{operand}[0, {q}, c]) % {PRIME}"
        if not self.taps:
            return f"for {q} : i32 in 0 .. {count} {{ {add} }}"
        row = f"y * {self.stride} + k{operand} * {self.dilation} + {self.first}"
        inside = f"if 0 <= {q} && {q} < {count} {{ {add} }}"
        return f"for k{operand} : i32 in 0 .. {self.taps} {{ let {q} : i32 = {row} {inside} }}"


@dataclass(frozen=True, slots=True)
class RowStep:
    """Makes `out` of windows, row by row, or without rows in its interface."""

    out: str
    windows: tuple[Window, ...]
    constant: int
    has_rows: bool

    def kernel(self, name: str, rows: dict[str, int]) -> str:
        given = "".join(
            f"in{i} : buffer<1x{rows[w.source]}x{CHANNELS}xi32> r, " for i, w in enumerate(self.windows)
        )
        ends, count = ("row_begin", "row_end"), rows[self.out]
        numbers = "".join(f", {end} : i32" for end in ends) if self.has_rows else ""
        begin, end = ends if self.has_rows else ("0", str(count))
        reads = " ".join(w.text(i, rows[w.source]) for i, w in enumerate(self.windows))
        return (
            f"kernel {name}({given}output : buffer<1x{count}x{CHANNELS}xi32> w{numbers}) on cpu {{ for y : i32 in "
            f"{begin} .. {end} {{ allocate sum : buffer<i32> for c : i32 in 0 .. {CHANNELS} {{ sum[] = c + "
            f"{self.constant} {reads} output[0, y, c] = sum[] }} }} }}"
        )

    def call(self, name: str, rows: dict[str, int]) -> str:
        given = ", ".join(f"&{each}" for each in (*(w.source for w in self.windows), self.out))
        return f"call_extern {name}({given}{f', 0, {rows[self.out]}' if self.has_rows else ''})"

    def computed(self, values: dict[str, Array], count: int) -> Array:
        made = np.zeros((1, count, CHANNELS), np.int64)
        for y in range(count):
            total = np.arange(CHANNELS) + self.constant
            for window in self.windows:
                source = values[window.source]
                for row in window.rows(y, source.shape[1]):
                    total = (total * 3 + source[0, row]) % PRIME
            made[0, y] = total
        return made


@dataclass(slots=True)
class RowEntry:
    """An entry: its buffers with their rows, states aside, and its steps."""

    name: str
    inputs: list[str] = field(default_factory=list[str])
    outputs: list[str] = field(default_factory=list[str])
    tensors: list[str] = field(default_factory=list[str])
    rows: dict[str, int] = field(default_factory=dict[str, int])
    steps: list[RowStep] = field(default_factory=list[RowStep])


@dataclass(slots=True)
class RowEntries:
    """A random program: its text, and what its entries do to states and give back."""

    states: dict[str, Array]
    entries: list[RowEntry]

    def alone(self, name: str) -> RowEntries:
        """The same with one entry."""
        return RowEntries(self.states, [entry for entry in self.entries if entry.name == name])

    def text(self) -> str:
        lines = ["module r"]
        for side in ("input", "output"):
            for entry in self.entries:
                lines += [f"{side} %{n} : {self._tensor(entry, n)}" for n in getattr(entry, f"{side}s")]
        for name, begin in self.states.items():
            listed = ", ".join(map(str, begin.ravel()))
            kind = "x".join(map(str, (*begin.shape, "i32")))
            lines.append(f"state %{name} : tensor<{kind}> = data<{kind}> [{listed}]")
        for entry in self.entries:
            lines += [
                step.kernel(f"r_{entry.name}_{n}", self.rows(entry)) for n, step in enumerate(entry.steps)
            ]
        for entry in self.entries:
            ports = [(n, "r") for n in entry.inputs] + [(n, "w") for n in entry.outputs]
            given = ", ".join(f"{n} : {self._buffer(entry, n)} {access}" for n, access in ports)
            lines.append(f"entry {entry.name}({given}) on cpu {{")
            for name in self.states:
                lines.append(f'  allocate {name} : {self._buffer(entry, name)} {{io="state"}}')
            lines += [f"  allocate {name} : {self._buffer(entry, name)}" for name in entry.tensors]
            lines += [
                f"  {s.call(f'r_{entry.name}_{n}', self.rows(entry))}" for n, s in enumerate(entry.steps)
            ]
            lines.append("}")
        return "\n".join(lines) + "\n"

    def rows(self, entry: RowEntry) -> dict[str, int]:
        return entry.rows | {name: begin.shape[1] for name, begin in self.states.items()}

    def _buffer(self, entry: RowEntry, name: str) -> str:
        return f"buffer<1x{self.rows(entry)[name]}x{CHANNELS}xi32>"

    def _tensor(self, entry: RowEntry, name: str) -> str:
        return self._buffer(entry, name).replace("buffer", "tensor")

    def run(self, kept: dict[str, Array], name: str, inputs: Sequence[Array]) -> list[Array]:
        """What a run of an entry gives; the states that are kept become what it leaves."""
        entry = next(entry for entry in self.entries if entry.name == name)
        values = {n: array.astype(np.int64) for n, array in zip(entry.inputs, inputs, strict=True)} | kept
        for step in entry.steps:
            values[step.out] = step.computed(values, self.rows(entry)[step.out])
        kept.update({state: values[state] for state in self.states})
        return [values[n].astype(np.int32) for n in entry.outputs]

    def calls(self, random: Random, count: int) -> list[tuple[str, list[Array]]]:
        """Entries in any order, each with inputs."""
        draw = np.random.default_rng(random.getrandbits(32))
        found: list[tuple[str, list[Array]]] = []
        for _ in range(count):
            entry = random.choice(self.entries)
            shapes = [(1, entry.rows[name], CHANNELS) for name in entry.inputs]
            found.append((entry.name, [draw.integers(0, PRIME, shape).astype(np.int32) for shape in shapes]))
        return found

    def begun(self) -> dict[str, Array]:
        """The states before the first run."""
        return {name: begin.astype(np.int64) for name, begin in self.states.items()}


def random_row_entries(seed: int, num_steps: int = 6) -> RowEntries:
    """Two or three entries of chains, of which some have no inputs or outputs, and which call their tensors alike."""
    random = Random(seed)
    states = {
        f"s{number}": np.array([random.randrange(PRIME) for _ in range(rows * CHANNELS)]).reshape(1, rows, -1)
        for number in range(random.randint(1, 2))
        for rows in (random.randint(2, 12),)
    }
    program = RowEntries(states, [])
    for number in range(random.randint(2, 3)):
        entry = RowEntry(f"e{number}", [f"x{n}" for n in range(random.randint(0, 1))])
        entry.rows = {name: random.randint(4, 16) for name in entry.inputs}
        rows = program.rows(entry)
        sources = list(rows)

        def window(source: str, paces: Sequence[int] = (1, 1, 1, 2)) -> Window:
            taps = 0 if random.random() < 0.08 else random.randint(1, 3)
            return Window(source, random.choice(paces), taps, random.randint(1, 2), random.randint(-2, 1))

        for index in range(random.randint(3, num_steps)):
            first = window(sources[-1] if index and random.random() < 0.8 else random.choice(sources))
            windows = [first]
            if random.random() < 0.3 and len(sources) > 1:
                other = random.choice([source for source in sources if source != first.source])
                windows.append(window(other, (first.stride,)))
            is_output = random.random() < 0.15
            out = f"{'y' if is_output else 't'}{index}"
            (entry.outputs if is_output else entry.tensors).append(out)
            entry.rows[out] = max(1, -(-rows[first.source] // first.stride) + random.choice((0, 0, 0, 1)))
            rows[out] = entry.rows[out]
            entry.steps.append(RowStep(out, tuple(windows), random.randint(1, 9), random.random() < 0.9))
            sources.append(out)
        for name in random.sample(list(states), random.randint(0, len(states))):
            source = random.choice([source for source in sources if source != name])
            entry.steps.append(RowStep(name, (window(source),), random.randint(1, 9), random.random() < 0.5))
        program.entries.append(entry)
    return program


def two_chains(rows: int = 16) -> RowEntries:
    """Two entries, each a chain of three windows of three rows; the second reads a state in its first as well."""
    program = RowEntries({"s0": np.arange(rows * CHANNELS).reshape(1, rows, CHANNELS)}, [])
    for number, name in enumerate(("left", "right")):
        entry = RowEntry(name, ["x"], ["y"], ["t0", "t1"], dict.fromkeys(("x", "t0", "t1", "y"), rows))
        for source, out in (("x", "t0"), ("t0", "t1"), ("t1", "y")):
            windows = [Window(source, 1, 3, 1, -1)]
            if number and out == "t0":
                windows.append(Window("s0", 1, 1, 1, 0))
            entry.steps.append(RowStep(out, tuple(windows), len(entry.steps) + 1, True))
        entry.steps.append(RowStep("s0", (Window("x", 1, 1, 1, 0),), 5, True))
        program.entries.append(entry)
    return program
