"""Which instructions functions use."""

from collections.abc import Iterable

from bytewright.ir.prim import Instruction, InstructionCall, PrimFunc
from bytewright.ir.remember import remembered
from bytewright.ir.walk import statements_of


def instructions_of(functions: Iterable[PrimFunc]) -> tuple[Instruction, ...]:
    """Each once, in the order of the text."""
    return tuple(dict.fromkeys(instruction for function in functions for instruction in _used(function)))


@remembered
def _used(function: PrimFunc) -> tuple[Instruction, ...]:
    calls = (s for s in statements_of(function) if isinstance(s, InstructionCall))
    return tuple(dict.fromkeys(call.instruction for call in calls))
