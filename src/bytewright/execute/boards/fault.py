"""Faults of a board in words."""

from collections.abc import Sequence

from bytewright.diagnostics import CompileError
from bytewright.execute.boards.counts import AddressRange
from bytewright.execute.tools import failure

# Configurable Fault Status Register, Armv7-M and Armv8-M Architecture Reference Manuals.
_CFSR_BITS: dict[int, str] = {
    0: "execution from a region that forbids it",
    1: "a data access that the memory protection unit forbids",
    3: "memory protection fault on exception return",
    4: "memory protection fault on exception entry",
    5: "memory protection fault while saving floating-point state",
    8: "bus error on an instruction fetch",
    9: "precise bus error",
    10: "imprecise bus error",
    11: "bus error on exception return",
    12: "bus error on exception entry",
    13: "bus error while saving floating-point state",
    16: "undefined instruction",
    17: "invalid execution state",
    18: "invalid exception return",
    19: "no coprocessor or floating-point unit",
    20: "stack overflow",
    24: "unaligned access",
    25: "division by zero",
}
_MMFAR_VALID = 1 << 7
_BFAR_VALID = 1 << 15
_STACK_OVERFLOW = 1 << 20

_NEAR_BYTES = 64 << 10
"""A stray address nearer to an array than this is described by its distance from it."""


def describe_address(address: int, arrays: Sequence[AddressRange], memories: Sequence[AddressRange]) -> str:
    """What an address is to a user: a byte of an array, or its memory and how far it is from an array."""
    inside = [array for array in arrays if array.first <= address <= array.last]
    if inside:
        return f"byte {address - inside[0].first} of {inside[0].name}"
    memory = next((memory for memory in memories if memory.first <= address <= memory.last), None)
    where = f"in {memory.name}" if memory else "in no memory of the target"
    distances = [(max(array.first - address, address - array.last), array) for array in arrays]
    distance, nearest = min(distances, key=lambda entry: entry[0], default=(_NEAR_BYTES, None))
    if nearest is None or distance >= _NEAR_BYTES:
        return where
    side = "past the last" if address > nearest.last else "before the first"
    return f"{where}, {distance} B {side} byte of {nearest.name}"


def fault_reasons(facts: dict[str, int]) -> list[str]:
    """What the fault status says, in words."""
    cfsr = facts.get("fault_cfsr", 0)
    reasons = [text for bit, text in _CFSR_BITS.items() if cfsr >> bit & 1] or ["an unexpected exception"]
    if facts.get("fault_below_stack") == 1 and not cfsr & _STACK_OVERFLOW:
        reasons = [_CFSR_BITS[20], *reasons]
    return reasons


def has_stray_address(facts: dict[str, int]) -> bool:
    """Whether memory protection stopped an access to an address that is known."""
    return bool(facts.get("fault_cfsr", 0) & _MMFAR_VALID)


def fault_notes(facts: dict[str, int], function: str | None, stack_bytes: int, place: str = "") -> list[str]:
    """Where a fault was, and the registers. `place` says what lies at the address that memory protection forbids."""
    cfsr = facts.get("fault_cfsr", 0)
    notes: list[str] = []
    if cfsr & _BFAR_VALID:
        notes.append(f"address {facts['fault_bfar']:#010x} (BFAR)")
    if cfsr & _MMFAR_VALID:
        notes.append(f"address {facts['fault_mmfar']:#010x} (MMFAR){f': {place}' if place else ''}")
    if "fault_pc" in facts:
        place = f" in {function}" if function else ""
        notes.append(f"at {facts['fault_pc']:#010x} (PC){place}, called from {facts['fault_lr']:#010x} (LR)")
    if cfsr & _STACK_OVERFLOW or facts.get("fault_below_stack") == 1:
        notes.append(_stack_note(stack_bytes))
    registers = ("cfsr", "hfsr", "sfsr", "icsr")
    notes.append(", ".join(f"{name.upper()} {facts.get(f'fault_{name}', 0):#010x}" for name in registers))
    return notes


def fault_error(
    board_name: str,
    model: str,
    facts: dict[str, int],
    function: str | None,
    stack_bytes: int,
    place: str = "",
) -> CompileError:
    """The error for a run that ended in a fault: what happened, where, and the registers.

    `place` says what lies at the address that the memory protection unit forbids.
    """
    notes = fault_notes(facts, function, stack_bytes, place)
    reasons = ", ".join(fault_reasons(facts))
    return failure(f"model '{model}' faulted on {board_name}: {reasons}", "\n".join(notes))


def stack_error(board_name: str, model: str, stack_bytes: int) -> CompileError:
    """The error for a run that ended well but wrote below its stack."""
    return failure(f"model '{model}' faulted on {board_name}: {_CFSR_BITS[20]}", _stack_note(stack_bytes))


def _stack_note(stack_bytes: int) -> str:
    return f"the model has a stack of {stack_bytes} B, as the target says"
