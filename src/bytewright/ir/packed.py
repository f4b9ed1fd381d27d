"""The packed form of functions: all arguments in an array of values of eight bytes, beside an array of type codes.

The packed form of a kernel is a C function of its own that unpacks the arguments and calls the kernel; the kernel is
the same whoever calls it. A runtime finds every function under one type, and what it adds of its own stays with it.
"""

from enum import StrEnum

from bytewright.ir.module import Module
from bytewright.ir.prim import Call, CallKind, PrimFunc
from bytewright.ir.walk import calls

PACKED_END = "_packed"
VALUE_BYTES = 8
CODE_BYTES = 4


class Form(StrEnum):
    """How a function of the C is given its arguments: as they are, or packed."""

    PLAIN = "plain"
    PACKED = "packed"


def packed_name(model: str, kernel: PrimFunc) -> str:
    """The C function that is the packed form of a kernel; one of the application's is under the model's name too."""
    return packed_stem(model, kernel) + PACKED_END


def packed_stem(model: str, kernel: PrimFunc) -> str:
    """What that name begins with, which no other kernel may be called."""
    return kernel.name if kernel.external is None else f"{model}_extern_{kernel.symbol}"


def packed_entry_names(module: Module) -> tuple[str, ...]:
    """The C functions that are the packed forms of the entries: of the run, or of each where there are several."""
    several = len(module.entries) > 1
    names = (entry.name if several else "run" for entry in module.entries)
    return tuple(f"{module.name}_{name}{PACKED_END}" for name in names)


def packed_calls(function: PrimFunc) -> tuple[Call, ...]:
    """The calls of a function that pack what they pass, in order."""
    return tuple(call for call in calls(function) if call.kind is CallKind.CPACKED)


def most_packed_arguments(function: PrimFunc) -> int:
    """How many arguments a packed call of a function passes at most; 0 without one."""
    return max((len(call.arguments) for call in packed_calls(function)), default=0)


def packed_bytes(num_arguments: int) -> int:
    """Bytes of the two arrays that hold so many arguments; a function has one pair for all of its packed calls."""
    return num_arguments * (VALUE_BYTES + CODE_BYTES)
