"""What an importer found on a board, before pools and stacks are decided."""

import re
from dataclasses import dataclass

from bytewright.base.c_names import unique_name
from bytewright.diagnostics import CompileError, compile_error
from bytewright.target.model import MemoryAccess


@dataclass(frozen=True, slots=True)
class FoundMemory:
    """A memory as the source describes it.

    Attributes:
        name: A valid name of a memory, unique on the board.
        base: Its first address.
        size_bytes: More than zero.
        access: What running code may do with it.
        section: The linker section that places an array in it; `None` leaves that to the linker.
        region: What the linker script calls it, if there is one.
        origin: What the source calls it, and with which properties, for a comment.
        where: File and line.
        is_preferred: The source names it as the memory for data or code; it wins where memories overlap.
    """

    name: str
    base: int
    size_bytes: int
    access: MemoryAccess
    section: str | None
    origin: str
    where: str
    is_preferred: bool = False
    region: str | None = None

    @property
    def is_writable(self) -> bool:
        """Whether running code may write it."""
        return self.access is MemoryAccess.READ_WRITE

    @property
    def end(self) -> int:
        """The address behind its last byte."""
        return self.base + self.size_bytes


@dataclass(frozen=True, slots=True)
class FoundBoard:
    """A board as the source describes it.

    Attributes:
        name: As the source has it, for the target, unless the user gives another.
        description: One line for people; may be empty.
        isa: The processor's instruction set, if the source says.
        memories: In the source's order.
        stack_memory: The name of the memory that holds the stack, if the source says, with how it says so.
        stack_bytes: The size of the stack, if the source says, with how it says so.
        remarks: What was left out or decided, for comments and for the user.
    """

    name: str
    description: str
    isa: str | None
    memories: tuple[FoundMemory, ...]
    stack_memory: tuple[str, str] | None = None
    remarks: tuple[str, ...] = ()
    stack_bytes: tuple[int, str] | None = None


def refusal(message: str, where: str, *notes: str, help_text: str | None = None) -> CompileError:
    """BW202: the source is not valid, or says nothing that a target can be made of."""
    return compile_error("BW202", message, notes, help_text, where)


def memory_name(foreign: str, taken: set[str]) -> str:
    """A lower-case name of a memory, a C identifier, different from those taken, to which it is added."""
    text = re.sub(r"[^a-z0-9_]", "_", foreign.lower())
    text = text if re.match("[a-z]", text) else f"m_{text.lstrip('_')}"
    return unique_name(text, taken, first=2)
