"""Random scopes in random programs of kernels, and what must hold once placement ran again; judged from the text alone.

The programs are those of `random_entries`: an entry with loops, branches and parts of buffers, and what it computes by
numpy. Each call may go to a kernel that states scopes of its own, to one that passes on to such a kernel, through a
view where it reads, and what the entry allocates may have a scope too.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from random import Random

import numpy as np
from numpy.typing import NDArray

from bytewright.target import Target, load_text
from support.random_entries import random_entry

POOLS = ("near", "far", "wide")
TARGET = """
name = "pools"
default-device = "cpu"
[memory.ram]
size = "1MiB"
[memory.flash]
size = "64KiB"
access = "r"
[device.cpu]
isa = "host"
reach = ["ram", "flash"]
stack = "ram"
max-stack-size = "8KiB"
[[parameters]]
name = "flash"
memory = "flash"
""" + "".join(f'[[workspace]]\nname = "{pool}"\nmemory = "ram"\nsize = "16KiB"\n' for pool in POOLS)
_KERNEL = re.compile(r"^kernel (\w+)\(([^)]*)\) on cpu \{\n(.*?)^\}$", re.MULTILINE | re.DOTALL)
_PARAMETER = re.compile(r"(\w+) : buffer<4xi16> ([rw]+)")
_CALL = re.compile(r"call_extern (r_\w+)\(")


def pools() -> Target:
    """A target with several workspace pools that one device reaches."""
    return load_text(TARGET, "pools.toml")


@dataclass(slots=True)
class _Kernels:
    """Kernels of one program that ask for places, each written when it is first called."""

    random: Random
    often: float
    plain: str
    texts: list[str]
    num: int = 0

    def scope(self) -> str | None:
        return (
            self.random.choice([*POOLS[:2], *POOLS, "workspace"])
            if self.random.random() < self.often
            else None
        )

    def asking(self, name: str) -> str:
        """Another kernel that does the same and asks for places, itself or for one that it calls."""
        if self.random.random() < 0.3:
            return name
        _, parameters, body = next(m.groups() for m in _KERNEL.finditer(self.plain) if m[1] == name)
        self.num += 1
        own = f"{name}_at{self.num}"
        self.texts.append(f"kernel {own}({self.stated(parameters)}) on cpu {{\n{body}}}")
        for _ in range(0 if "n : i32" in parameters else self.random.choice([0, 0, 1, 2])):
            own = self.passing(own, parameters)
        return own

    def stated(self, parameters: str) -> str:
        def state(match: re.Match[str]) -> str:
            scope = self.scope()
            return match[0] if scope is None else f'{match[1]} : buffer<4xi16, "global.{scope}"> {match[2]}'

        return _PARAMETER.sub(state, parameters)

    def passing(self, callee: str, parameters: str) -> str:
        """A kernel that passes all that it is given on, some of it through views, some of it twice."""
        self.num += 1
        own, lines, arguments = f"r_passes{self.num}", list[str](), list[str]()
        stated = self.stated(parameters)
        scopes = dict(re.findall(r'(\w+) : buffer<4xi16, ("[\w.]+")>', stated))
        for name, access in re.findall(r"(\w+) : buffer<[^>]*> ([rw]+)", stated):
            if access == "r" and self.random.random() < 0.5:
                scope = f", {scopes[name]}" if name in scopes else ""
                lines.append(f"  view {name}_seen : buffer<4xi16{scope}> = &{name}[0]")
                arguments.append(f"&{name}_seen")
            else:
                arguments.append(f"&{name}")
        arguments += re.findall(r"(\w+) : i32", parameters)
        call = f"  call_extern {callee}({', '.join(arguments)})"
        times = 1 if "> rw" in parameters else self.random.choice([1, 1, 2])
        self.texts.append(
            f"kernel {own}({stated}) on cpu {{\n" + "\n".join([*lines, *[call] * times]) + "\n}"
        )
        return own


def _asking(head: str, entry: str, random: Random, buffers: str) -> str:
    """The program whose calls go to kernels that ask for places, and whose allocations may be in one."""
    kernels = _Kernels(random, random.choice((0.15, 0.4, 0.7)), head, [])
    entry = _CALL.sub(lambda match: f"call_extern {kernels.asking(match[1])}(", entry)
    for name in buffers:
        scope = kernels.scope()
        if scope is not None:
            entry = re.sub(
                rf"allocate {name} : buffer<(\d+)xi16>",
                rf'allocate {name} : buffer<\1xi16, "global.{scope}">',
                entry,
            )
    return "\n".join([head, *kernels.texts, entry])


def asking_program(seed: int) -> tuple[str, str]:
    """The text of a module whose kernels ask for places, and the body of a Python function that does the same."""
    text, python = random_entry(seed)
    head, entry = text.split("entry main", 1)
    return _asking(head, "entry main" + entry, Random(seed), "tuv"), python


# Few values, used often: kernels of whole buffers; one writes a half, and one changes what it is given.
_REUSING = """
module r
input %x : tensor<4xi16>
output %y : tensor<4xi16>
kernel r_mix(a : buffer<4xi16> r, b : buffer<4xi16> r, out : buffer<4xi16> w) on cpu {
  for c : i32 in 0 .. 4 { out[c] = i16((i32(a[c]) + i32(b[c]) * 3 + c) % 97) }
}
kernel r_set(out : buffer<4xi16> w, value : i32) on cpu {
  for c : i32 in 0 .. 4 { out[c] = i16(value + c) }
}
kernel r_half(out : buffer<4xi16> w, value : i32) on cpu {
  for c : i32 in 0 .. 2 { out[c] = i16(value) }
}
kernel r_turn(a : buffer<4xi16> rw) on cpu {
  for c : i32 in 0 .. 4 { a[c] = i16((i32(a[c]) * 5 + 1) % 97) }
}
"""


@dataclass(slots=True)
class _Reusing:
    """An entry of whole buffers, as lines of text and of Python."""

    random: Random
    lines: list[str]
    python: list[str]
    turns: int = 0

    def line(self, text: str, python: str, depth: int) -> None:
        self.lines.append("  " * depth + text)
        self.python.append("  " * depth + python)

    def call(self, depth: int) -> None:
        random = self.random
        out, number = random.choice("ttuy"), random.randrange(90)
        a, b = random.choice("xttu"), random.choice("xtu")
        text, python = random.choice(
            [
                (f"r_mix(&{a}, &{b}, &{out})", f"{out}[:] = ({a} + {b} * 3 + range(4)) % 97"),
                (f"r_mix(&{a}, &{b}, &{out})", f"{out}[:] = ({a} + {b} * 3 + range(4)) % 97"),
                (f"r_set(&{out}, {number})", f"{out}[:] = {number} + np.arange(4)"),
                (f"r_half(&{out}, {number})", f"{out}[:2] = {number}"),
                (f"r_turn(&{out})", f"{out}[:] = ({out} * 5 + 1) % 97"),
            ]
        )
        if "r_mix" in text and out in (a, b):
            text, python = f"r_mix(&{a}, &{b}, &w)", f"w[:] = ({a} + {b} * 3 + range(4)) % 97"
        self.line(f"call_extern {text}", python, depth)

    def block(self, depth: int, nesting: int) -> None:
        for _ in range(self.random.randrange(2, 5)):
            kinds = ["call", "call", "call", "for", *["if"] * (depth > 1)]
            kind = self.random.choice(kinds) if nesting else "call"
            if kind == "call":
                self.call(depth)
                continue
            if kind == "for":
                self.turns += 1
                name, end = f"turn{self.turns}", self.random.choice([0, *[2, 3] * 4])
                self.line(f"for {name} : i32 in 0 .. {end} {{", f"for {name} in range(0, {end}):", depth)
                self.block(depth + 1, nesting - 1)
            else:
                turn, number = self.random.randrange(self.turns + 1), self.random.choice([0, 1, 1, 1, 1])
                name = f"turn{turn}" if self.is_inside(turn, depth) else "3"
                self.line(f"if {name} < {number} {{", f"if {name} < {number}:", depth)
                self.block(depth + 1, nesting - 1)
                if self.random.random() < 0.5:
                    self.line("} else {", "else:", depth)
                    self.block(depth + 1, nesting - 1)
            self.lines.append("  " * depth + "}")

    def is_inside(self, turn: int, depth: int) -> bool:
        """Whether a loop is open here."""
        head = next((n for n, line in enumerate(self.lines) if f"for turn{turn} " in line), None)
        if head is None:
            return False
        level = len(self.lines[head]) - len(self.lines[head].lstrip())
        return 2 * depth > level and all(
            len(line) - len(line.lstrip()) > level for line in self.lines[head + 1 :]
        )


def reusing_program(seed: int) -> tuple[str, str]:
    """Another such program, in which few values are used often."""
    random = Random(seed)
    entry = _Reusing(random, [], [])
    for number, name in enumerate("tuwy"):
        if name != "y":
            entry.lines.append(f"  allocate {name} : buffer<4xi16>")
        entry.line(f"call_extern r_set(&{name}, {number})", f"{name}[:] = {number} + np.arange(4)", 1)
    entry.block(1, 3)
    entry.line("call_extern r_mix(&t, &u, &w)", "w[:] = (t + u * 3 + range(4)) % 97", 1)
    entry.line("call_extern r_mix(&w, &x, &y)", "y[:] = (w + x * 3 + range(4)) % 97", 1)
    head = "entry main(x : buffer<4xi16> r, y : buffer<4xi16> w) on cpu {"
    text = _asking(_REUSING, "\n".join([head, *entry.lines, "}"]), random, "tuw")
    return text, "\n".join(entry.python)


def expected_of_reusing(python: str, x: NDArray[np.int16]) -> NDArray[np.int16]:
    """What such a program gives for `y`."""
    buffers = {name: np.zeros(4, np.int16) for name in "tuwy"}
    exec("if True:\n" + python, {"np": np, "x": x, **buffers})
    return buffers["y"]
