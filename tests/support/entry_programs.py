"""Programs of several entries over states that they share, and what their runs compute, by numpy."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

# A frame goes into a ring of three, halved; what is in the ring is looked at by another entry, whenever that is.
WAKE = """\
module wake

input %frame : tensor<4xi8>
output %loudest : tensor<1xi8>
output %count : tensor<1xi32>
state %ring : tensor<3x4xi8> = data<3x4xi8> [9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]
state %pushed : tensor<1xi32>

kernel wake_halve(frame : buffer<4xi8> r activation, halved : buffer<4xi8> w activation) on cpu {
  for c : i32 in 0 .. 4 {
    halved[c] = i8(i32(frame[c]) >> 1)
  }
}

kernel wake_push(
    frame : buffer<4xi8> r activation,
    ring : buffer<3x4xi8> rw activation,
    pushed : buffer<1xi32> rw activation
) on cpu {
  for c : i32 in 0 .. 4 {
    ring[pushed[0] % 3, c] = frame[c]
  }
  pushed[0] = pushed[0] + 1
}

kernel wake_sums(ring : buffer<3x4xi8> r activation, sums : buffer<4xi32> w activation) on cpu {
  for c : i32 in 0 .. 4 {
    sums[c] = 0
    for f : i32 in 0 .. 3 {
      sums[c] = sums[c] + i32(ring[f, c])
    }
  }
}

kernel wake_best(sums : buffer<4xi32> r activation, best : buffer<1xi8> w activation) on cpu {
  best[0] = i8(0)
  for c : i32 in 1 .. 4 {
    if sums[c] > sums[i32(best[0])] {
      best[0] = i8(c)
    }
  }
}

kernel wake_count(pushed : buffer<1xi32> r activation, count : buffer<1xi32> w activation) on cpu {
  count[0] = pushed[0]
}

entry push(frame : buffer<4xi8> r activation) on cpu {
  allocate ring : buffer<3x4xi8> {io="state"}
  allocate pushed : buffer<1xi32> {io="state"}
  allocate t : buffer<4xi8>
  call_extern wake_halve(&frame, &t)
  call_extern wake_push(&t, &ring, &pushed)
}

entry classify(loudest : buffer<1xi8> w activation, count : buffer<1xi32> w activation) on cpu {
  allocate ring : buffer<3x4xi8> {io="state"}
  allocate pushed : buffer<1xi32> {io="state"}
  allocate t : buffer<4xi32>
  call_extern wake_sums(&ring, &t)
  call_extern wake_best(&t, &loudest)
  call_extern wake_count(&pushed, &count)
}
"""
WAKE_BEGINS = np.array([[9, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]], np.int64)


def classified(frames: Sequence[Array]) -> tuple[Array, Array]:
    """What `classify` gives when these frames were pushed."""
    ring = WAKE_BEGINS.copy()
    for number, frame in enumerate(frames):
        ring[number % 3] = frame.astype(np.int64) >> 1
    return np.array([ring.sum(axis=0).argmax()], np.int8), np.array([len(frames)], np.int32)


# Two entries that hand work to a second core.
DUO = """\
module duo

input %x : tensor<8xi8>
input %z : tensor<8xi8>
output %y : tensor<8xi8>
output %w : tensor<8xi8>
state %s : tensor<8xi8> = data<8xi8> [1, 2, 3, 4, 5, 6, 7, 8]

kernel duo_mix(a : buffer<8xi8> r activation, s : buffer<8xi8> rw activation) on cpu {
  for c : i32 in 0 .. 8 { s[c] = i8((i32(a[c]) + i32(s[c])) >> 1) }
}
kernel duo_halve(a : buffer<8xi8> r activation, b : buffer<8xi8> w activation) on core1 {
  for c : i32 in 0 .. 8 { b[c] = i8(i32(a[c]) >> 1) }
}
kernel duo_add(a : buffer<8xi8> r activation, s : buffer<8xi8> r activation, b : buffer<8xi8> w activation) on cpu {
  for c : i32 in 0 .. 8 { b[c] = i8((i32(a[c]) + i32(s[c])) >> 1) }
}
entry put(x : buffer<8xi8> r activation, y : buffer<8xi8> w activation) on cpu {
  allocate s : buffer<8xi8> {io="state"}
  allocate t : buffer<8xi8>
  call_extern duo_halve(&x, &t)
  for turn : i32 in 0 .. 2 {
    call_extern duo_mix(&t, &s)
  }
  call_extern duo_halve(&t, &y)
}
entry get(z : buffer<8xi8> r activation, w : buffer<8xi8> w activation) on cpu {
  allocate s : buffer<8xi8> {io="state"}
  allocate t : buffer<8xi8>
  allocate u : buffer<8xi8>
  call_extern duo_halve(&z, &u)
  call_extern duo_add(&u, &s, &t)
  call_extern duo_halve(&t, &w)
}
"""


def duo(calls: Sequence[tuple[str, Array]]) -> list[Array]:
    """What each call of it gives."""
    kept, given = np.arange(1, 9), list[Array]()
    for name, array in calls:
        half = array.astype(np.int64) >> 1
        if name == "put":
            for _ in range(2):
                kept = (half + kept) >> 1
            given.append((half >> 1).astype(np.int8))
        else:
            given.append(((half + kept) >> 2).astype(np.int8))
    return given


# Entries whose runs are given how many rows there are: of two inputs, and of one; `n` is a number of either.
OPEN = """\
module o

input %a : tensor<n[1..4]x3xi32>
input %b : tensor<n[1..4]x3xi32>
input %c : tensor<m[1..5]x3xi32>
output %x : tensor<n[1..4]x3xi32>
output %y : tensor<m[1..5]x3xi32>
state %s : tensor<3xi32>

kernel o_twice(b : buffer<n[1..4]x3xi32> r, x : buffer<n[1..4]x3xi32> w, n : i32) on cpu {
  allocate t : buffer<n[1..4]x3xi32>
  for i : i32 in 0 .. n { for j : i32 in 0 .. 3 { t[i, j] = b[i, j] * 2 } }
  for k : i32 in 0 .. n { for l : i32 in 0 .. 3 { x[k, l] = t[k, l] } }
}
kernel o_put(
    a : buffer<n[1..4]x3xi32> r, t : buffer<n[1..4]x3xi32> r, s : buffer<3xi32> rw, x : buffer<n[1..4]x3xi32> w, n : i32
) on cpu {
  for i : i32 in 0 .. n { for j : i32 in 0 .. 3 {
    s[j] = s[j] + a[i, j] + t[i, j]
    x[i, j] = s[j]
  } }
}
kernel o_get(c : buffer<m[1..5]x3xi32> r, s : buffer<3xi32> r, y : buffer<m[1..5]x3xi32> w, m : i32) on cpu {
  for i : i32 in 0 .. m { for j : i32 in 0 .. 3 { y[i, j] = c[i, j] + s[j] } }
}
entry put(
    a : buffer<n[1..4]x3xi32> r, b : buffer<n[1..4]x3xi32> r, x : buffer<n[1..4]x3xi32> w, n : i32
) on cpu {
  allocate s : buffer<3xi32> {io="state"}
  allocate t : buffer<n[1..4]x3xi32>
  call_extern o_twice(&b, &t, n)
  call_extern o_put(&a, &t, &s, &x, n)
}
entry get(c : buffer<m[1..5]x3xi32> r, y : buffer<m[1..5]x3xi32> w, m : i32) on cpu {
  allocate s : buffer<3xi32> {io="state"}
  call_extern o_get(&c, &s, &y, m)
}
"""


def opened(calls: Sequence[tuple[str, Sequence[Array]]]) -> list[Array]:
    """What each call of it gives."""
    kept, given = np.zeros(3, np.int32), list[Array]()
    for name, arrays in calls:
        if name == "put":
            sums = kept + np.cumsum(arrays[0] + 2 * arrays[1], axis=0, dtype=np.int32)
            kept = sums[-1]
            given.append(sums)
        else:
            given.append(arrays[0] + kept)
    return given


def opened_calls(seed: int, count: int) -> list[tuple[str, list[Array]]]:
    """Either entry, each time with another number of rows."""
    draw = np.random.default_rng(seed)
    found: list[tuple[str, list[Array]]] = []
    for _ in range(count):
        name, num_inputs, most = (("put", 2, 4), ("get", 1, 5))[draw.integers(2)]
        rows = draw.integers(1, most + 1)
        found.append((name, [draw.integers(-99, 99, (rows, 3)).astype(np.int32) for _ in range(num_inputs)]))
    return found


@dataclass(frozen=True, slots=True)
class _Step:
    """`out[i] = (ka * a[i % len(a)] + kb * b[i % len(b)] + k) % 251`; `out` may be a state that `b` is, too."""

    out: str
    a: str
    b: str
    factors: tuple[int, int, int]

    def computed(self, values: Mapping[str, Array], size: int) -> Array:
        index = np.arange(size)
        a, b = (values[name][index % len(values[name])] for name in (self.a, self.b))
        return (self.factors[0] * a + self.factors[1] * b + self.factors[2]) % 251


@dataclass(slots=True)
class _Entry:
    name: str
    inputs: list[str] = field(default_factory=list[str])
    outputs: list[str] = field(default_factory=list[str])
    tensors: list[str] = field(default_factory=list[str])
    steps: list[_Step] = field(default_factory=list[_Step])


@dataclass(slots=True)
class EntryProgram:
    """A random program: its text, and what its entries do to states and give back."""

    states: dict[str, Array]
    entries: list[_Entry]
    sizes: dict[tuple[str, str], int]  # by entry and buffer; states have no entry

    def size(self, entry: _Entry, name: str) -> int:
        return self.sizes["" if name in self.states else entry.name, name]

    def alone(self, name: str) -> EntryProgram:
        """The same with one entry."""
        return EntryProgram(self.states, [e for e in self.entries if e.name == name], self.sizes)

    def text(self) -> str:
        lines = ["module r", ""]
        for side, names in (("input", "inputs"), ("output", "outputs")):
            for entry in self.entries:
                lines += [f"{side} %{n} : tensor<{self.size(entry, n)}xi32>" for n in getattr(entry, names)]
        for name, begin in self.states.items():
            listed = ", ".join(map(str, begin))
            lines.append(f"state %{name} : tensor<{len(begin)}xi32> = data<{len(begin)}xi32> [{listed}]")
        for entry in self.entries:
            lines += self._kernels(entry)
        for entry in self.entries:
            lines += self._entry(entry)
        return "\n".join(lines) + "\n"

    def _kernels(self, entry: _Entry) -> list[str]:
        lines: list[str] = []
        for number, step in enumerate(entry.steps):
            given = [("a", step.a, "r"), ("b", step.b, "r"), ("out", step.out, "w")]
            if step.out == step.b:
                given = [("a", step.a, "r"), ("out", step.out, "rw")]
            parameters = ", ".join(
                f"{name} : buffer<{self.size(entry, buffer)}xi32> {access} activation"
                for name, buffer, access in given
            )
            a = f"a[i % {self.size(entry, step.a)}]"
            b = "out[i]" if step.out == step.b else f"b[i % {self.size(entry, step.b)}]"
            ka, kb, k = step.factors
            size, made = self.size(entry, step.out), "scratch" if number % 2 and step.out != step.b else "out"
            lines.append(f"kernel r_{entry.name}_{number}({parameters}) on cpu {{")
            lines += [f"  allocate scratch : buffer<{size}xi32>"] if made != "out" else []
            lines += [
                f"  for i : i32 in 0 .. {size} {{",
                f"    {made}[i] = ({ka} * {a} + {kb} * {b} + {k}) % 251",
                "  }",
            ]
            lines += [f"  for j : i32 in 0 .. {size} {{ out[j] = scratch[j] }}"] if made != "out" else []
            lines.append("}")
        return lines

    def _entry(self, entry: _Entry) -> list[str]:
        ports = [(n, "r") for n in entry.inputs] + [(n, "w") for n in entry.outputs]
        given = ", ".join(f"{n} : buffer<{self.size(entry, n)}xi32> {a} activation" for n, a in ports)
        lines = [f"entry {entry.name}({given}) on cpu {{"]
        lines += [f'  allocate {n} : buffer<{len(b)}xi32> {{io="state"}}' for n, b in self.states.items()]
        lines += [f"  allocate {n} : buffer<{self.size(entry, n)}xi32>" for n in entry.tensors]
        for number, step in enumerate(entry.steps):
            names = (step.a, step.out) if step.out == step.b else (step.a, step.b, step.out)
            lines.append(f"  call_extern r_{entry.name}_{number}({', '.join(f'&{n}' for n in names)})")
        return [*lines, "}"]

    def run(self, kept: dict[str, Array], name: str, inputs: Sequence[Array]) -> tuple[Array, ...]:
        """What a run of an entry gives; the states that are kept become what it leaves."""
        entry = next(entry for entry in self.entries if entry.name == name)
        values = {n: array.astype(np.int64) for n, array in zip(entry.inputs, inputs, strict=True)} | kept
        for step in entry.steps:
            values[step.out] = step.computed(values, self.size(entry, step.out))
        kept.update({name: values[name] for name in self.states})
        return tuple(values[n].astype(np.int32) for n in entry.outputs)

    def calls(self, random: Random, count: int) -> list[tuple[str, list[Array]]]:
        """Entries in any order, each with inputs."""
        draw = np.random.default_rng(random.getrandbits(32))
        found: list[tuple[str, list[Array]]] = []
        for _ in range(count):
            entry = random.choice(self.entries)
            arrays = [draw.integers(0, 251, self.size(entry, n)).astype(np.int32) for n in entry.inputs]
            found.append((entry.name, arrays))
        return found

    def begun(self) -> dict[str, Array]:
        """The states before the first run."""
        return {name: begin.astype(np.int64) for name, begin in self.states.items()}


def random_entry_program(seed: int) -> EntryProgram:
    """Two or three entries, of which some have no inputs, no outputs, or only touch some of the states."""
    random = Random(seed)
    draw: Callable[[], int] = lambda: random.randint(1, 24)  # noqa: E731
    states = {
        f"s{number}": np.array([random.randint(0, 250) for _ in range(draw())])
        for number in range(random.randint(1, 3))
    }
    program = EntryProgram(states, [], {("", name): len(begin) for name, begin in states.items()})
    for number in range(random.randint(2, 3)):
        entry = _Entry(f"e{number}", [f"x{n}" for n in range(random.randint(0, 2))])
        sources = [*entry.inputs, *random.sample(list(states), random.randint(1, len(states)))]
        program.sizes |= {(entry.name, name): draw() for name in entry.inputs}
        for index in range(random.randint(1, 5)):
            factors = (random.randint(0, 9), random.randint(0, 9), random.randint(0, 99))
            a, b = random.choice(sources), random.choice(sources)
            if b in states and a != b and random.random() < 0.5:
                entry.steps.append(_Step(b, a, b, factors))
                continue
            is_output = random.random() < 0.4
            out = f"{'y' if is_output else 't'}{index}"
            (entry.outputs if is_output else entry.tensors).append(out)
            program.sizes[entry.name, out] = draw()
            entry.steps.append(_Step(out, a, b, factors))
            if not is_output:
                sources.append(out)
        program.entries.append(entry)
    return program
