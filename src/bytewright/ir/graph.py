"""The graph: functions of operators over tensors, in SSA form.

Names are unique in a module and survive passes, so dumps of consecutive passes differ only in what changed.
What an operator means (its types and its numpy reference) stands in `bytewright.ops`; here an operator is any
descriptor that keeps the contract of `Operation`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from bytewright.ir.data import TensorData
from bytewright.ir.types import Symbol, TensorType
from bytewright.ir.where import Where

Array = NDArray[np.generic]
OMIT_DEFAULT = {"omit_default": True}
"""Of an attribute that texts leave out where it has its default."""


class Operation:
    """Contract of an operator descriptor: a frozen dataclass whose fields are its attributes.

    Abstract, as are classes between it and several operators; nothing derives from an operator.
    """

    __slots__ = ()
    name: ClassVar[str]
    # Whether the result is the operand's memory under another type.
    is_view: ClassVar[bool] = False
    # The operand in whose place the kernel makes the result; None if it is made elsewhere.
    updates: ClassVar[int | None] = None
    # Whether its attribute `count` is an extent that the run finds out, which the last result, i32 [1], says.
    counts: ClassVar[bool] = False
    operand_names: ClassVar[tuple[str, ...]] = ("input",)
    """What the first operands are called; the others go by their positions."""

    @property
    def isa(self) -> str | None:
        """The instruction set that it was compiled for already; None: it is compiled for whatever runs C."""
        return None

    def infer(self, inputs: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        """Types of the results.

        Raises:
            ValueError: The operands' types do not fit; the message says which and why.
        """
        raise NotImplementedError

    def evaluate(self, inputs: tuple[Array, ...]) -> tuple[Array, ...]:
        """The numpy reference: results of the operator, exact for integers."""
        raise NotImplementedError

    def with_batch(self, batch: Symbol) -> Operation:
        """The operator on operands whose leading extent is `batch` where it was 1: shapes that it states change too."""
        del batch
        return self

    def num_macs(self, inputs: tuple[TensorType, ...], results: tuple[TensorType, ...]) -> int:
        """Multiply-accumulates of tensors with each other, of one sample if the batch is open; 0 of all other sums."""
        del inputs, results
        return 0

    def work_per_element(self, inputs: tuple[TensorType, ...]) -> int:
        """Steps that one element of the result takes, roughly."""
        del inputs
        return 1


class CopyOperation(Operation):
    """Abstract: an operator whose one result is its operand in memory of its own, at another place.

    It belongs to no device: whichever reaches both memories may carry it out, and `by` names it in the end.
    """

    __slots__ = ()
    by: str | None


@dataclass(frozen=True, slots=True)
class Signature:
    """What a function takes and gives: types without places."""

    parameters: tuple[TensorType, ...]
    results: tuple[TensorType, ...]


@dataclass(frozen=True, slots=True)
class Turns:
    """How an operator that runs functions is carried out.

    Attributes:
        callee: The function that runs.
        arguments: What it is given the first time; after that, its own results.
        num_turns: How often it runs; where it is 0, the arguments are the results.
    """

    callee: str
    arguments: tuple[Array, ...]
    num_turns: int


class ControlOperation(Operation):
    """Abstract: an operator that runs functions of its module, which it names.

    What it takes and gives is therefore the module's to say: `infer` and `evaluate` have no answer. Its last operands
    are the functions' arguments; those before are its own to read.
    """

    __slots__ = ()
    # Whether what a function gives is what it takes the next time.
    carries_values: ClassVar[bool] = False

    @property
    def callees(self) -> tuple[str, ...]:
        """The functions that it names, in the order of its attributes."""
        raise NotImplementedError

    def infer_from(
        self, callees: tuple[Signature, ...], inputs: tuple[TensorType, ...]
    ) -> tuple[TensorType, ...]:
        """Types of the results, given what the functions are that it names.

        Raises:
            ValueError: The operands' types and those of the functions do not fit; the message says which and why.
        """
        raise NotImplementedError

    def turns(self, inputs: tuple[Array, ...]) -> Turns:
        """Which function runs on which of the operands, and how often."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class Quantization:
    """Affine quantisation of a tensor at the model's border: real = scale * (q - zero_point).

    Documentation only: the arithmetic is in the operators' attributes.
    """

    scale: float
    zero_point: int


@dataclass(frozen=True, slots=True)
class Value:
    """A tensor in the graph, defined once.

    Attributes:
        reason: Why it is at its place, for people; None where nothing was asked.
    """

    name: str
    type: TensorType
    quantization: Quantization | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Constant:
    """A named tensor whose values are known at compile time."""

    name: str
    data: TensorData


@dataclass(frozen=True, slots=True)
class Node:
    """One operator applied to named operands."""

    operation: Operation
    inputs: tuple[str, ...]
    outputs: tuple[Value, ...]
    where: Where

    def num_macs(self, types: Mapping[str, TensorType]) -> int:
        """Multiply-accumulates of one sample, with the types of all that it names."""
        operands = tuple(types[name] for name in self.inputs)
        return self.operation.num_macs(operands, tuple(value.type for value in self.outputs))


@dataclass(frozen=True, slots=True)
class Counted:
    """An extent that a run finds out: the data decides it.

    Attributes:
        value: The result of an operator, i32 [1], that says how large it is.
        extent: What it is called, and the most that there is room for.
        is_checked: Whether data may ask for more.
    """

    value: str
    extent: Symbol
    is_checked: bool


def counted_extent(operation: Operation) -> Symbol | None:
    """The extent that an operator finds out, where types have it by its name."""
    count = getattr(operation, "count", None) if operation.counts else None
    return count if isinstance(count, Symbol) else None


@dataclass(frozen=True, slots=True)
class Function:
    """A graph function: parameters, nodes in an order that respects definitions, names of results."""

    name: str
    parameters: tuple[Value, ...]
    nodes: tuple[Node, ...]
    results: tuple[str, ...]


def function_types(function: Function) -> dict[str, TensorType]:
    """Type of every name that a function defines."""
    types = {value.name: value.type for value in function.parameters}
    types.update((value.name, value.type) for node in function.nodes for value in node.outputs)
    return types


def value_types(function: Function, constants: tuple[Constant, ...]) -> dict[str, TensorType]:
    """Type of every name that the function's nodes may use."""
    return {constant.name: constant.data.type for constant in constants} | function_types(function)
