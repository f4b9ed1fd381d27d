"""What a byte of each memory costs, which no linker script and no devicetree says: given by the user, or proposed.

Beside memory that is coupled tightly to the processor, the others are slower. By how much is not known here, so what is
proposed are guesses, those of the built-in targets, and they stand in the target file as comments.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from bytewright.base.option import OptionSyntaxError, two_sides
from bytewright.diagnostics import compile_error
from bytewright.target.importers.board import FoundMemory
from bytewright.target.load import MAX_COST
from bytewright.target.mistake import closest, listing

_FORM = "MEMORY=READ[/WRITE], such as flash=5/1"
_COSTS = re.compile(r"([0-9]{1,7})(?:/([0-9]{1,7}))?", re.ASCII)
_TIGHTLY_COUPLED = re.compile("tcm|ccm")  # as vendors name it
_READ_ONLY, _WRITABLE = (4, 1), (2, 2)


@dataclass(frozen=True, slots=True)
class Cost:
    """`MEMORY=READ[/WRITE]`: what reading and writing a byte costs, relative to the other memories."""

    memory: str
    read: int
    write: int = 1

    def __str__(self) -> str:
        return f"{self.memory}={self.read}{'' if self.write == 1 else f'/{self.write}'}"

    def lines(self) -> Iterator[str]:
        """The lines of the memory's table; none for a cost of 1, which is the default."""
        for key, value in (("read-cost", self.read), ("write-cost", self.write)):
            if value != 1:
                yield f"{key} = {value}"


def parse_cost(text: str) -> Cost:
    """Parses the value of `--cost`.

    Raises:
        OptionSyntaxError: Another form, or a number that is not from 1 to `MAX_COST`.
    """
    memory, numbers = two_sides(text, _FORM)
    match = _COSTS.fullmatch(numbers)
    if match is None:
        raise OptionSyntaxError(f"{text!r} is not {_FORM}")
    read, write = int(match[1]), int(match[2] or 1)
    if not (1 <= read <= MAX_COST and 1 <= write <= MAX_COST):
        raise OptionSyntaxError(f"{text!r}: a cost is an integer from 1 to {MAX_COST}")
    return Cost(memory, read, write)


def given_costs(costs: Sequence[Cost], memories: Sequence[FoundMemory]) -> Mapping[str, Cost]:
    """The user's costs by the memory's name; the source's own name for it will do, and the last of two counts.

    Raises:
        CompileError: BW204 for a memory that is not there.
    """
    names = {name: memory.name for memory in memories for name in (memory.region, memory.name) if name}
    for cost in costs:
        if cost.memory not in names:
            own = [memory.name for memory in memories]
            message = f"there is no memory '{cost.memory}'"
            help_text = closest(cost.memory, own)
            raise compile_error("BW204", message, (listing("memories", own),), help_text, f"--cost {cost}")
    return {names[cost.memory]: cost for cost in costs}


def proposed_costs(memories: Sequence[FoundMemory]) -> Mapping[str, Cost]:
    """A guess by name for each memory that is slower than one beside it; none where none is known to be faster."""
    slower = [memory for memory in memories if not _TIGHTLY_COUPLED.search(memory.name)]
    if len(slower) == len(memories):
        return {}
    return {
        memory.name: Cost(memory.name, *(_WRITABLE if memory.is_writable else _READ_ONLY))
        for memory in slower
    }
