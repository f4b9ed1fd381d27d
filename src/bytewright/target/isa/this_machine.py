"""The machine at hand: which instruction sets it runs, and what it lacks for others.

Linux says in /proc/cpuinfo what its processors have and the system lets programs use. Where that cannot be read, the
machine counts as having nothing beyond its architecture.
"""

import platform
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from bytewright.target.isa.isa import Isa

_CPUINFO = Path("/proc/cpuinfo")
_PROCESSORS = {"amd64": "x86_64", "arm64": "aarch64"}  # as other systems call them


@dataclass(frozen=True, slots=True)
class Machine:
    """A machine that runs programs.

    Attributes:
        processor: Its architecture, as `uname -m` says it on Linux.
        flags: What all its processors have, by Linux's names.
    """

    processor: str
    flags: frozenset[str] = frozenset()

    def executes(self, isa: Isa) -> bool:
        """Whether it is of the architecture, so that code for the instruction set is its own."""
        return isa.processor == self.processor

    def lacks(self, isa: Isa) -> tuple[str, ...]:
        """What its processors do not have of what code for an instruction set of its architecture needs."""
        return tuple(flag for flag in isa.processor_flags if flag not in self.flags)


@cache
def this_machine() -> Machine:
    """The machine at hand."""
    name = platform.machine().lower()
    try:
        text = _CPUINFO.read_text(encoding="utf-8", errors="replace")
    except OSError:
        text = ""
    return Machine(_PROCESSORS.get(name, name), read_flags(text))


def read_flags(cpuinfo: str) -> frozenset[str]:
    """What all processors of a /proc/cpuinfo have: `flags` on x86, `Features` on Arm, letters of `isa` on RISC-V."""
    lists = [line.split() for line in re.findall(r"^(?:flags|Features)\s*:(.*)$", cpuinfo, re.MULTILINE)]
    names = re.findall(r"^isa\s*:\s*rv[0-9]+([a-z]+)_?(\w*)$", cpuinfo, re.MULTILINE)
    lists += [[*letters, *others.split("_")] for letters, others in names]
    return frozenset.intersection(*map(frozenset, lists)) if lists else frozenset()
