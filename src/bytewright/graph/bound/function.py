"""What the user says of a C function that computes operators: the contract behind `--kernel PATTERN=SYMBOL`."""

from collections.abc import Mapping
from dataclasses import dataclass

from bytewright import ir
from bytewright.graph.bound.formula import Formula
from bytewright.ir.where import Where
from bytewright.options import KernelBinding


@dataclass(frozen=True, slots=True)
class Memory:
    """What is asked of the memory of an argument or of scratch.

    Attributes:
        scope: The places that the function takes it in; None for any.
        touched_by: The devices that touch it; None where that is not declared.
    """

    alignment: int = 1
    scope: ir.Scope | None = None
    touched_by: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class InputArgument:
    """The address of a tensor that the operator reads, by its position among them."""

    name: str
    position: int
    memory: Memory


@dataclass(frozen=True, slots=True)
class OutputArgument:
    """The address of the operator's result."""

    name: str
    memory: Memory


@dataclass(frozen=True, slots=True)
class ConstantArgument:
    """The address of a constant of the operator.

    Attributes:
        constant: Which.
        axes: The order of its axes; empty for the graph's.
        per_channel: One value is repeated for each channel of the result.
        dtype: The type of its elements; None for the graph's.
    """

    name: str
    constant: Formula
    axes: tuple[int, ...]
    per_channel: bool
    dtype: ir.DType | None
    memory: Memory


@dataclass(frozen=True, slots=True)
class ValuesArgument:
    """The address of an array of numbers, such as a table of sizes."""

    name: str
    values: tuple[Formula, ...]
    dtype: ir.DType
    memory: Memory


@dataclass(frozen=True, slots=True)
class ScalarArgument:
    """A number."""

    name: str
    value: Formula
    dtype: ir.DType


FunctionArgument = InputArgument | OutputArgument | ConstantArgument | ValuesArgument | ScalarArgument


@dataclass(frozen=True, slots=True)
class Scratch:
    """Memory that the function works in, passed behind the arguments.

    Attributes:
        size_bytes: Of which depends on the operator; at least one element is given.
    """

    name: str
    size_bytes: Formula
    dtype: ir.DType
    memory: Memory


@dataclass(frozen=True, slots=True)
class ApplicationFunction:
    """A C function of the application that computes operators.

    Attributes:
        symbol: Its name in C.
        where: Where it is described: file and line.
        takes_region: It computes all connected operators that a pattern matches, in one call; else one operator.
        lets: Names for formulas, each of which the later ones may use.
        requires: What must hold of an operator that it is bound to.
        device: Which executes it; None for where the operator is placed.
        stack_bytes: Of the stack, with all that it calls; None if the target says.
    """

    symbol: str
    where: str
    arguments: tuple[FunctionArgument, ...]
    scratch: tuple[Scratch, ...] = ()
    takes_region: bool = False
    lets: tuple[tuple[str, Formula], ...] = ()
    requires: tuple[Formula, ...] = ()
    device: str | None = None
    stack_bytes: int | None = None
    returns_status: bool = False


@dataclass(frozen=True, slots=True)
class Bound:
    """Operators that one call of a function of the application computes.

    Attributes:
        binding: What asks for it.
        values: What their graph operators compute, by name.
        where: The last of them.
    """

    function: ApplicationFunction
    binding: KernelBinding
    values: frozenset[str]
    where: Where


# Name of a value -> what computes it.
BoundValues = Mapping[str, Bound]
