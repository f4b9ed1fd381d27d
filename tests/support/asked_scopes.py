"""Random scopes in random programs of kernels, and what must hold once placement ran again; judged from the text alone.

The programs are those of `random_entries`: an entry with loops, branches and parts of buffers, and what it computes by
numpy. Each call may go to a kernel that states scopes of its own, to one that passes on to such a kernel, through a
view where it reads, and what the entry allocates may have a scope too.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from random import Random

from bytewright.target import Target, load_text
from support.random_entries import KERNELS, random_entry

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
_PARAMETER = re.compile(r"(\w+) : buffer<4xi16> ([rw])")
_CALL = re.compile(r"call_extern (r_\w+)\(")


def pools() -> Target:
    """A target with several workspace pools that one device reaches."""
    return load_text(TARGET, "pools.toml")


@dataclass(slots=True)
class _Kernels:
    """Kernels of one program that ask for places, each written when it is first called."""

    random: Random
    often: float
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
        _, parameters, body = next(m.groups() for m in _KERNEL.finditer(KERNELS) if m[1] == name)
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
        for name, access in re.findall(r"(\w+) : buffer<[^>]*> ([rw])", stated):
            if access == "r" and self.random.random() < 0.5:
                scope = f", {scopes[name]}" if name in scopes else ""
                lines.append(f"  view {name}_seen : buffer<4xi16{scope}> = &{name}[0]")
                arguments.append(f"&{name}_seen")
            else:
                arguments.append(f"&{name}")
        arguments += re.findall(r"(\w+) : i32", parameters)
        call = f"  call_extern {callee}({', '.join(arguments)})"
        self.texts.append(
            f"kernel {own}({stated}) on cpu {{\n"
            + "\n".join([*lines, *[call] * self.random.choice([1, 1, 2])])
            + "\n}"
        )
        return own


def asking_program(seed: int) -> tuple[str, str]:
    """The text of a module whose kernels ask for places, and the body of a Python function that does the same."""
    text, python = random_entry(seed)
    random = Random(seed)
    kernels = _Kernels(random, random.choice((0.15, 0.4, 0.7)), [])
    head, entry = text.split("entry main", 1)
    entry = _CALL.sub(lambda match: f"call_extern {kernels.asking(match[1])}(", entry)
    for name in "tuv":
        scope = kernels.scope()
        if scope is not None:
            entry = entry.replace(f"{name} : buffer<24xi16>", f'{name} : buffer<24xi16, "global.{scope}">')
    return "\n".join([head, *kernels.texts, "entry main" + entry]), python
