"""Constants of int8 whose values all fit 4 bits, two in a byte: half the flash, for a shift and a mask at each load.

A byte holds the element of an even number in its lower half, each 8 more than it is, so that nothing is negative.
Kernels that hand a constant to an instruction or to another function keep it as it is.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from bytewright import ir
from bytewright.base.c_names import unique_name
from bytewright.ir.rewrite import Rewriting, rewrite_sequence
from bytewright.ir.scalar_functions import NIBBLE
from bytewright.ir.walk import names_in, statements_of
from bytewright.lower.kernel import ConstantArgument, LoweredKernel

# Fewer elements save less than the code that unpacks them takes.
FEWEST_ELEMENTS = 256
_OFFSET = 8


def fits_nibbles(data: ir.TensorData) -> bool:
    """Whether a constant is worth storing in 4 bits an element, and can be."""
    if data.dtype is not ir.DType.I8 or data.type.num_elements < FEWEST_ELEMENTS:
        return False
    values = data.array.astype(np.int8)
    return int(values.min()) >= -_OFFSET and int(values.max()) < _OFFSET


def pack_nibbles(kernel: LoweredKernel) -> LoweredKernel:
    """The kernel with such constants packed."""
    found = {
        parameter.buffer: argument
        for parameter, argument in zip(kernel.function.parameters, kernel.arguments, strict=True)
        if isinstance(parameter, ir.BufferParameter)
        and isinstance(argument, ConstantArgument)
        and fits_nibbles(argument.data)
    }
    packed = {
        buffer: ir.Buffer(buffer.name, ((ir.num_elements(buffer) + 1) // 2,), ir.DType.U8, 1)
        for buffer in found
        if _is_only_loaded(kernel.function, buffer)
    }
    if not packed:
        return kernel
    constants = {buffer: _packed(found[buffer].data.array) for buffer in packed}
    parameters: list[ir.Parameter] = []
    arguments = list(kernel.arguments)
    for number, parameter in enumerate(kernel.function.parameters):
        if isinstance(parameter, ir.BufferParameter) and parameter.buffer in packed:
            data = ir.TensorData.from_array(constants[parameter.buffer], ir.DType.U8)
            arguments[number] = replace(found[parameter.buffer], data=data)
            parameter = replace(parameter, buffer=packed[parameter.buffer])  # noqa: PLW2901
        parameters.append(parameter)
    unpacking = _Unpacking(packed, set(names_in(kernel.function)))
    rewriting = Rewriting(expression=unpacking.expression, statement=unpacking.statement)
    body = rewrite_sequence(kernel.function.body, rewriting)
    function = replace(kernel.function, parameters=tuple(parameters), body=body)
    return replace(kernel, function=function, arguments=tuple(arguments))


def _packed(values: NDArray[np.generic]) -> NDArray[np.uint8]:
    """Two elements a byte; behind an odd number of them a zero."""
    raised = (values.reshape(-1).astype(np.int16) + _OFFSET).astype(np.uint8)
    pairs = np.pad(raised, (0, raised.size % 2), constant_values=_OFFSET).reshape(-1, 2)
    return np.asarray(pairs[:, 0] | pairs[:, 1] << 4, np.uint8)


def _is_only_loaded(function: ir.PrimFunc, constant: ir.Buffer) -> bool:
    """Whether single elements of it are read and nothing else, those of views that always show it included."""
    names = {constant}
    for statement in statements_of(function):
        if (
            isinstance(statement, ir.View)
            and statement.condition is None
            and statement.source.buffer in names
        ):
            names.add(statement.buffer)
        elif not names.isdisjoint(region.buffer for region in _regions(statement)):
            return False
    return True


def _regions(statement: ir.Statement) -> Iterable[ir.Region]:
    """What a statement names as a whole."""
    match statement:
        case ir.View():
            return [region for region in (statement.source, statement.otherwise) if region is not None]
        case ir.Call() | ir.InstructionCall():
            return [argument for argument in statement.arguments if isinstance(argument, ir.Region)]
        case _:
            return ()


@dataclass(slots=True)
class _Unpacking:
    """The rewriting of a body.

    Attributes:
        packed: By the constants what holds them.
        names: Of the body, and those that it gets.
        views: By views of constants these, and the number of the first element that is seen.
    """

    packed: Mapping[ir.Buffer, ir.Buffer]
    names: set[str]
    views: dict[ir.Buffer, tuple[ir.Buffer, ir.Var]] = field(
        default_factory=dict[ir.Buffer, tuple[ir.Buffer, ir.Var]]
    )

    def expression(self, expression: ir.Expr) -> ir.Expr:
        """A load of an element becomes one of its byte."""
        if not isinstance(expression, ir.Load):
            return expression
        found = self._element(expression.buffer, expression.indices)
        if found is None:
            return expression
        buffer, number = found
        byte = ir.cast(ir.Load(buffer, (number >> 1,)), ir.DType.I32)
        return ir.cast(NIBBLE(byte, number), ir.DType.I8)

    def statement(self, statement: ir.Statement) -> tuple[ir.Statement, ...]:
        """A view becomes the number of its first element."""
        if not isinstance(statement, ir.View) or statement.condition is not None:
            return (statement,)
        found = self._element(statement.source.buffer, statement.source.indices)
        if found is None:
            return (statement,)
        buffer, number = found
        first = ir.Var(unique_name(f"{statement.buffer.name}_first", self.names), number.dtype)
        self.views[statement.buffer] = buffer, first
        return (ir.Let(first, number),)

    def _element(self, buffer: ir.Buffer, indices: tuple[ir.Expr, ...]) -> tuple[ir.Buffer, ir.Expr] | None:
        """Where an element of a constant, or of a view of one, lies: its number in what holds it."""
        if buffer in self.packed:
            return self.packed[buffer], ir.flat_index(buffer, indices or (ir.const(0),) * len(buffer.shape))
        if buffer in self.views:
            held, first = self.views[buffer]
            return held, first + ir.flat_index(buffer, indices or (ir.const(0),))
        return None
