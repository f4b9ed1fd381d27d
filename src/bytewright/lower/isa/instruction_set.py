"""What an instruction set brings to lowering: its templates, and the lanes of its vectors."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from bytewright import ir
from bytewright.lower.isa.lookup import ByteLookup
from bytewright.lower.isa.vector_unit import VectorUnit
from bytewright.lower.kernels.context import Template


@dataclass(frozen=True, slots=True)
class Fields:
    """Elements that are words of several fields.

    Attributes:
        bits: Of a field.
        low, high: Bounds of a field.
    """

    bits: int
    low: int
    high: int


Operands = tuple[int, int] | Fields
"""What elements of an operand may be: their bounds, or what they are words of."""


@dataclass(frozen=True, slots=True)
class IsaTemplate:
    """A way to write the kernel of an operator with instructions.

    Attributes:
        name: For people: `mve.conv2d`.
        write: Takes the template and the operator's own descriptor.
        declines: Takes the same; why it does not take this operator, in a few words, or None if it does. It writes
            nothing to the kernel.
        by_columns: Whether it takes several columns of a row at once, so that rows of an open extent that are one
            column wide are to be its columns.
    """

    name: str
    write: Callable[[Template, Any], None]
    declines: Callable[[Template, Any], str | None]
    by_columns: bool = False


@dataclass(frozen=True, slots=True)
class InstructionSet:
    """The kernels for cores that have some features.

    Attributes:
        name: Of its folder.
        features: What a core needs, as `features` of `target/isa` has it.
        templates: For each operator, the best first.
        instructions: All records of it, so that each can be tried alone.
        operands: What operands of instructions may be, by instruction and parameter, where that is neither all of their
            type nor, of 32 bits, less than 2^30: values for which the body does not overflow and is the text.
        unit: Its vectors, for element-wise operators; None if they are left to the C compiler.
        lookup: How it looks bytes up in a table; None likewise.
    """

    name: str
    features: frozenset[str]
    templates: Mapping[type[ir.Operation], tuple[IsaTemplate, ...]]
    instructions: tuple[ir.Instruction, ...]
    operands: Mapping[tuple[str, str], Operands] = field(default_factory=dict[tuple[str, str], Operands])
    unit: VectorUnit | None = None
    lookup: ByteLookup | None = None
