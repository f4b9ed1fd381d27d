"""Random entries with nested loops, branches, names and parts of buffers, and what they compute, by numpy.

An entry is a tree of statements over four buffers of the workspace, an input and an output. Its text is printed and it
is carried out by the same tree, with numpy arrays for buffers and Python's own arithmetic for indices and conditions.
Nothing of
Bytewright takes part in that.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.int16]
PART = 4
NUM_ELEMENTS = 24
KERNELS = """
module r
input %x : tensor<24xi16>
output %y : tensor<24xi16>
kernel r_add(a : buffer<4xi16> r, b : buffer<4xi16> r, out : buffer<4xi16> w) on cpu {
  for c : i32 in 0 .. 4 { out[c] = i16(i32(a[c]) + i32(b[c])) }
}
kernel r_fill(out : buffer<4xi16> w, value : i32) on cpu {
  for c : i32 in 0 .. 4 { out[c] = i16(value + c) }
}
kernel r_planned(a : buffer<4xi16> r, out : buffer<4xi16> w) on cpu {
  allocate s : buffer<32xi16, "global.workspace">
  for c : i32 in 0 .. 32 { s[c] = i16(i32(a[c % 4]) * (c - 5)) }
  for d : i32 in 0 .. 4 { out[d] = i16(i32(s[d + 28]) - i32(s[d])) }
}
kernel r_requested(a : buffer<4xi16> r, out : buffer<4xi16> w, n : i32) on cpu {
  allocate s : buffer<n[1..9]x4xi16>
  for row : i32 in 0 .. n { for c : i32 in 0 .. 4 { s[row, c] = i16(i32(a[c]) + c * row) } }
  for d : i32 in 0 .. 4 { out[d] = i16(i32(s[n - 1, d]) * 3) }
}
"""


def _planned(a: Array) -> Array:
    return a * np.int16(28)


def _requested(a: Array, n: int) -> Array:
    return ((a.astype(np.int32) + np.arange(PART) * (n - 1)) * 3).astype(np.int16)


def _filled(value: int) -> Array:
    return (np.arange(PART) + value).astype(np.int16)


@dataclass(slots=True)
class RandomEntry:
    """Lines of text, and the same as a program of Python, built side by side."""

    random: Random
    lines: list[str] = field(default_factory=list[str])
    python: list[str] = field(default_factory=list[str])
    variables: list[tuple[str, int]] = field(default_factory=list[tuple[str, int]])
    num_names: int = 0

    def fresh(self, stem: str) -> str:
        self.num_names += 1
        return f"{stem}{self.num_names}"

    def expression(self, most: int) -> str:
        """A number from 0 to `most`, of whatever is in sight."""
        random = self.random
        terms = [(f"{name} * {factor}", top * factor) for name, top in self.variables for factor in (1, 2, 4)]
        chosen = random.sample(terms, min(len(terms), random.randrange(3)))
        text = " + ".join([*(text for text, _ in chosen), str(random.randrange(min(most, 8) + 1))])
        form = random.choice(["min({}, {})", "{1} - min({0}, {1})", "max(min({}, {}), 0)"])
        return form.format(text, most)

    def condition(self) -> str:
        first, second = self.expression(9), self.expression(9)
        return self.random.choice(
            ["{} < {}", "{} == {}", "{0} < {1} && {1} < 7", "{0} == 3 || {1} < 2"]
        ).format(first, second)

    def line(self, text: str, python: str, depth: int) -> None:
        self.lines.append("  " * depth + text)
        self.python.append("  " * depth + python)

    def call(self, depth: int) -> None:
        random = self.random
        target, *sources = random.sample(["t", "u", "v", "y"], 3)
        sources = [random.choice([source, "x"]) for source in sources]
        (out, a, b), n = (self.expression(NUM_ELEMENTS - PART) for _ in range(3)), self.expression(8)
        to, first, second = f"{target}[{out}]", f"{sources[0]}[{a}]", f"{sources[1]}[{b}]"
        parts = [
            f"{name}[(o := {at}) : o + 4]" for name, at in ((target, out), (sources[0], a), (sources[1], b))
        ]
        text, python = random.choice(
            [
                (f"r_add(&{first}, &{second}, &{to})", f"{parts[1]} + {parts[2]}"),
                (f"r_fill(&{to}, {n})", f"filled({n})"),
                (f"r_planned(&{first}, &{to})", f"planned({parts[1]})"),
                (f"r_requested(&{first}, &{to}, {n} + 1)", f"requested({parts[1]}, {n} + 1)"),
            ]
        )
        self.line(f"call_extern {text}", f"{parts[0]} = {python}", depth)

    def block(self, depth: int, nesting: int) -> None:
        outer = len(self.variables)
        for _ in range(self.random.randrange(1, 4)):
            self.statement(depth, nesting)
        del self.variables[outer:]

    def statement(self, depth: int, nesting: int) -> None:
        random = self.random
        kind = random.choice(["call", "let", "for", "for", "if"]) if nesting else "call"
        if kind == "call":
            self.call(depth)
        elif kind == "let":
            name, value = self.fresh("name"), self.expression(6)
            self.line(f"let {name} : i32 = {value}", f"{name} = {value}", depth)
            self.variables.append((name, 6))
            self.line(
                f"call_extern r_fill(&y[{name}], {name})", f"y[{name} : {name} + 4] = filled({name})", depth
            )
        elif kind == "for":
            name, begin, end = self.fresh("turn"), random.randrange(2), random.randrange(1, 4)
            unrolled = random.choice(["", "", " unrolled"])
            self.line(
                f"for {name} : i32 in {begin} .. {end}{unrolled} {{",
                f"for {name} in range({begin}, {end}):",
                depth,
            )
            self.variables.append((name, 3))
            self.block(depth + 1, nesting - 1)
            self.variables.pop()
            self.lines.append("  " * depth + "}")
        else:
            condition = self.condition()
            self.line(
                f"if {condition} {{", f"if {condition}:".replace("&&", "and").replace("||", "or"), depth
            )
            self.block(depth + 1, nesting - 1)
            self.line("} else {", "else:", depth)
            self.block(depth + 1, nesting - 1)
            self.lines.append("  " * depth + "}")


def random_entry(seed: int) -> tuple[str, str]:
    """The text of a module, and the body of a Python function that does the same."""
    entry = RandomEntry(Random(seed))
    for name in ("t", "u", "v"):
        entry.lines.append(f"  allocate {name} : buffer<{NUM_ELEMENTS}xi16>")
    for number, name in enumerate(("t", "u", "v", "y")):
        at, value = f"at_{name} * {PART}", f"at_{name} + {number}"
        entry.line(f"for at_{name} : i32 in 0 .. 6 {{", f"for at_{name} in range(6):", 1)
        entry.line(
            f"call_extern r_fill(&{name}[{at}], {value})", f"{name}[{at} : {at} + 4] = filled({value})", 2
        )
        entry.lines.append("  }")
    for _ in range(4):
        entry.statement(1, 3)
    head = "entry main(x : buffer<24xi16> r, y : buffer<24xi16> w) on cpu {"
    return "\n".join([KERNELS, head, *entry.lines, "}"]), "\n".join(entry.python)


def expected(python: str, x: Array) -> Array:
    """What the Python function gives for `y`."""
    buffers = {name: np.zeros(NUM_ELEMENTS, np.int16) for name in ("t", "u", "v", "y")}
    names = {"x": x, "filled": _filled, "planned": _planned, "requested": _requested, **buffers}
    exec("if True:\n" + python, names)
    return buffers["y"]
