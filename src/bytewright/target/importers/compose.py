"""The text of a target file from the memories of a board: what was read, and what had to be assumed.

A linker script or a devicetree says where memories are, not what the compiler may use of them. Defaults fill the
gap, and each stands in the file with a comment, for the user to change:

- Every memory that can be written lends what its stack leaves as a workspace pool, in the source's order, with
  instruction memories last.
- Parameters go into the memory that the source prefers for the program, else into the first read-only one.
- The stack lies where the source puts it, else in the first writable memory that is large enough.
- What a byte costs is nowhere read: it is as the user says, else guesses stand beside memories as comments.
- Of memories that overlap, which are views or parts of one another, only the preferred or first one is kept.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from bytewright.base.c_names import is_reserved
from bytewright.target.check import FORBIDDEN_POOL_NAMES
from bytewright.target.importers.board import FoundBoard, FoundMemory, refusal
from bytewright.target.importers.costs import Cost, given_costs, proposed_costs
from bytewright.target.isa.find import ASSUMED_ISA, find_isa, isa_note
from bytewright.target.isa.isa import Isa
from bytewright.target.mistake import shown
from bytewright.target.model import DEFAULT_ALIGNMENT
from bytewright.target.size import format_size

_DEFAULT_STACK_BYTES = 8 * 1024
_LEAST_STACK_MEMORY_BYTES = 1024
_STACK_PART = 4  # at most a quarter of its memory
_RESERVE_PART = 8  # of the stack, for interrupts and linked libraries


@dataclass(frozen=True, slots=True)
class _Pool:
    name: str
    memory: FoundMemory
    size_bytes: int | None
    comment: str


@dataclass(frozen=True, slots=True)
class _Stack:
    memory: FoundMemory
    size_bytes: int
    comment: str
    size_comment: str = "assumed; the startup code knows"


def compose(
    board: FoundBoard, source: str, isa: str | None, name: str | None, costs: Sequence[Cost] = ()
) -> tuple[str, tuple[str, ...]]:
    """Decides pools and stack, and writes the file: its text, and the remarks in it.

    Raises:
        CompileError: BW202 for a board on which nothing can be written, BW204 for a cost of no memory.
    """
    chosen_isa = isa or board.isa or ASSUMED_ISA
    known_isa = find_isa(chosen_isa)
    if known_isa is None:
        message = f"the processor is a {shown(chosen_isa)}, which is no known instruction set"
        raise refusal(message, source, isa_note(), help_text="say which one is nearest with --isa NAME")
    reached, unreached = _within_reach(board.memories, known_isa)
    memories, dropped = _without_overlaps(reached)
    known = given_costs(costs, memories)
    proposed = {} if known else proposed_costs(memories)
    remarks = (*board.remarks, *unreached, *dropped)
    stack = _choose_stack(board, memories, source)
    parameters = _choose_parameters(memories, stack)
    workspaces = _choose_workspaces(memories, stack, parameters)
    reason = "given with --isa" if isa else "" if board.isa else "assumed; --isa NAME says which"
    lines = [
        f"# Imported from {_one_line(source)}. Addresses, sizes and access were read there; stack and pools are",
        "# defaults: the program and its data need their part of each memory too, so give `size` its limits.",
        *(f"# {_one_line(remark)}" for remark in remarks),
        f'name = "{_target_name(name or board.name)}"',
    ]
    if board.description:
        lines.append(f"description = {_quoted(board.description)}")
    if known_isa.is_micro:
        lines.append('tags = ["micro"]')
    for memory in memories:
        lines += ["", *_memory_lines(memory)]
        if memory.name in known:
            lines += known[memory.name].lines()
        if memory.name in proposed:
            guesses = [f"# {line}" for line in proposed[memory.name].lines()]
            lines += [_commented(guesses[0], "a guess: other memory is tightly coupled"), *guesses[1:]]
    lines += ["", *_device_lines(chosen_isa, reason, memories, stack)]
    for pool in workspaces:
        lines += ["", *_pool_lines("workspace", pool)]
    lines += ["", *_pool_lines("parameters", parameters)]
    for library in known_isa.libraries[:1]:
        comment = f"what functions of {library.source} need; others differ"
        lines += ["", "[stack]", _commented(f'libraries = "{library.name}"', comment)]
    if proposed:
        words = " ".join(f"--cost {cost}" for cost in proposed.values())
        remarks = (
            *remarks,
            f"a byte costs the same in all memories; with tightly coupled ones a guess is {words}",
        )
    return "\n".join(lines) + "\n", remarks


def _within_reach(memories: Sequence[FoundMemory], isa: Isa) -> tuple[list[FoundMemory], list[str]]:
    """The memories whose every byte the processor can address."""
    kept = [memory for memory in memories if memory.end <= 1 << isa.address_bits]
    why = f"it ends behind the last {isa.address_bits}-bit address"
    return kept, [_left_out(memory, why) for memory in memories if memory not in kept]


def _without_overlaps(memories: Sequence[FoundMemory]) -> tuple[list[FoundMemory], list[str]]:
    kept: list[FoundMemory] = []
    remarks: list[str] = []
    for memory in sorted(memories, key=lambda memory: not memory.is_preferred):  # stable: else as found
        other = next((k for k in kept if memory.base < k.end and k.base < memory.end), None)
        if other is None:
            kept.append(memory)
            continue
        shared_bytes = min(memory.end, other.end) - max(memory.base, other.base)
        remarks.append(_left_out(memory, f"it shares {shared_bytes} B with {other.name}"))
    return [memory for memory in memories if memory in kept], remarks


def _left_out(memory: FoundMemory, why: str) -> str:
    return f"{memory.name} ({memory.base:#010x}, {memory.size_bytes} B, {memory.where}) is left out: {why}"


def _choose_stack(board: FoundBoard, memories: Sequence[FoundMemory], source: str) -> _Stack:
    writable = [memory for memory in memories if memory.is_writable]
    roomy = [memory for memory in writable if memory.size_bytes >= _LEAST_STACK_MEMORY_BYTES]
    if not roomy:
        found = ", ".join(f"{m.name} {m.size_bytes} B {m.access.value}" for m in memories)
        message = f"no memory can be written and has {_LEAST_STACK_MEMORY_BYTES} B or more, so none can hold the stack"
        raise refusal(message, memories[0].where if memories else source, f"memories: {found}")
    memory, comment = roomy[0], "the first that can be written"
    for candidate in roomy:
        if board.stack_memory is not None and candidate.name == board.stack_memory[0]:
            memory, comment = candidate, board.stack_memory[1]
    if board.stack_bytes is not None:
        size_bytes, size_comment = board.stack_bytes
        if size_bytes > memory.size_bytes:
            message = (
                f"the stack has {size_bytes} B ({size_comment}), but {memory.name} has {memory.size_bytes} B"
            )
            raise refusal(message, memory.where)
        return _Stack(memory, size_bytes, comment, size_comment)
    limit_bytes = memory.size_bytes // _STACK_PART // DEFAULT_ALIGNMENT * DEFAULT_ALIGNMENT
    return _Stack(memory, min(_DEFAULT_STACK_BYTES, limit_bytes), comment)


def _choose_parameters(memories: Sequence[FoundMemory], stack: _Stack) -> _Pool:
    """The pool of the constants; without read-only memory, half of the last writable one."""
    read_only = [memory for memory in memories if not memory.is_writable]
    if read_only:
        memory = next((memory for memory in read_only if memory.is_preferred), read_only[0])
        return _Pool(_pool_name(memory, memories), memory, None, "")
    memory = [memory for memory in memories if memory.size_bytes >= _LEAST_STACK_MEMORY_BYTES][-1]
    left_bytes = memory.size_bytes - (stack.size_bytes if memory is stack.memory else 0)
    size_bytes = left_bytes // 2 // DEFAULT_ALIGNMENT * DEFAULT_ALIGNMENT
    comment = "no memory is read-only: half of what the stack leaves"
    return _Pool(_pool_name(memory, memories, "_rodata"), memory, size_bytes, comment)


def _choose_workspaces(memories: Sequence[FoundMemory], stack: _Stack, parameters: _Pool) -> list[_Pool]:
    def lent_bytes(memory: FoundMemory) -> int:
        own_stack_bytes = stack.size_bytes if memory is stack.memory else 0
        constants_bytes = (parameters.size_bytes or 0) if memory is parameters.memory else 0
        return memory.size_bytes - own_stack_bytes - constants_bytes

    lenders = [memory for memory in memories if memory.is_writable and lent_bytes(memory) > 0]
    lenders.sort(key=lambda memory: "itcm" in memory.name)  # stable: else as found
    return [_Pool(_pool_name(memory, memories), memory, None, "") for memory in lenders]


def _pool_name(memory: FoundMemory, memories: Sequence[FoundMemory], suffix: str = "") -> str:
    """The memory's name, unless no pool may be called so; never that of another memory."""
    name = memory.name
    if name in FORBIDDEN_POOL_NAMES or is_reserved(name):
        suffix = f"_memory{suffix}"
    others = [other.name for other in memories if other is not memory]
    while f"{name}{suffix}" in others:
        suffix = f"_memory{suffix}"
    return f"{name}{suffix}"


def _memory_lines(memory: FoundMemory) -> list[str]:
    lines = [
        f"[memory.{memory.name}]".ljust(32) + f"# {_one_line(memory.origin)}, {_one_line(memory.where)}",
        f"base = {memory.base:#010x}",
        f'size = "{format_size(memory.size_bytes)}"',
    ]
    if not memory.is_writable:
        lines.append('access = "r"')
    if memory.section is not None:
        lines.append(f'section = "{memory.section}"')
    if memory.region is not None:
        lines.append(f'region = "{memory.region}"')
    return lines


def _device_lines(isa: str, reason: str, memories: Sequence[FoundMemory], stack: _Stack) -> list[str]:
    reserve = format_size(stack.size_bytes // _RESERVE_PART)
    reach = ", ".join(f'"{memory.name}"' for memory in memories)
    return [
        "[device.cpu]",
        _commented(f'isa = "{isa}"', reason),
        f"reach = [{reach}]",
        _commented(f'stack = "{stack.memory.name}"', stack.comment),
        _commented(f'max-stack-size = "{format_size(stack.size_bytes)}"', stack.size_comment),
        _commented(f'stack-reserve = "{reserve}"', "interrupts, linked libraries; assumed"),
    ]


def _pool_lines(role: str, pool: _Pool) -> list[str]:
    lines = [f"[[{role}]]", f'name = "{pool.name}"', f'memory = "{pool.memory.name}"']
    if pool.size_bytes is not None:
        lines.append(_commented(f'size = "{format_size(pool.size_bytes)}"', pool.comment))
    base_alignment = pool.memory.base & -pool.memory.base
    if 0 < base_alignment < DEFAULT_ALIGNMENT:
        lines.append(_commented(f"alignment = {base_alignment}", f"as {pool.memory.name} is"))
    return lines


def _target_name(foreign: str) -> str:
    """A name of a target: letters, digits, `_`, `.` and `-`, a letter or digit first."""
    return re.sub(r"[^A-Za-z0-9_.-]", "-", foreign).lstrip("_.-") or "board"


def _commented(line: str, comment: str) -> str:
    return f"{line:<31} # {_one_line(comment)}" if comment else line


def _one_line(text: str) -> str:
    """The text without control characters, which TOML's comments may not hold."""
    return "".join(c if c.isprintable() else "?" for c in text)


def _quoted(text: str) -> str:
    return '"' + _one_line(text).replace("\\", "\\\\").replace('"', '\\"') + '"'
