"""Collects one kernel while its template writes it: parameters, constants, body, and the call's arguments."""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bytewright import ir
from bytewright.ir.builder import BodyBuilder, Index, as_expr
from bytewright.ir.drop_unused import drop_unused
from bytewright.ir.walk import free_buffers, free_variables
from bytewright.ir.where import Where
from bytewright.options import Optimize
from bytewright.target.isa.style import KernelStyle

# Scratch up to this size is asked for by name as `local`: registers or stack, on every target.
MAX_LOCAL_SCRATCH_BYTES = 64
# The axis of rows in [N, H, W, C].
ROWS = 1


@dataclass(frozen=True, slots=True)
class TensorArgument:
    """The caller passes the tensor of this name."""

    name: str


@dataclass(frozen=True, slots=True)
class ConstantArgument:
    """The caller passes a constant."""

    data: ir.TensorData
    hint: str


@dataclass(frozen=True, slots=True)
class ScalarArgument:
    """The caller passes a number."""

    value: ir.Expr


Argument = TensorArgument | ConstantArgument | ScalarArgument


@dataclass(frozen=True, slots=True)
class LoweredKernel:
    """A kernel and what its one caller passes, parameter by parameter.

    Attributes:
        touched_by: Where a function of the application declares it: the devices that touch each argument.
    """

    function: ir.PrimFunc
    arguments: tuple[Argument, ...]
    touched_by: tuple[tuple[str, ...], ...] | None = None


class KernelBuilder:
    """Parameters are in the order outputs last, so that calls read like assignments do: inputs, constants, outputs.

    Args:
        name: The kernel's C symbol.
        style: What the device's instruction set suggests.
        where: The operator that the kernel comes from.
        device: The device that executes the kernel.
        symbols: Extents known only at run time; the kernel takes the values of those that its operands have.
        shared: Constants of all kernels so far, each once, so that kernels share the bytes of equal ones.
        optimize: What the kernel may trade.
    """

    def __init__(
        self,
        name: str,
        style: KernelStyle,
        where: Where,
        device: str,
        symbols: tuple[ir.Symbol, ...],
        shared: dict[ir.TensorData, ir.TensorData],
        optimize: Optimize = Optimize.BALANCED,
    ) -> None:
        self.name = name
        self.style = style
        self.where = where
        self.device = device
        self.symbols = symbols
        self.optimize = optimize
        # Which template of an instruction set makes it, and what is to say of that, for people.
        self.template = ""
        self.remarks: list[str] = []
        # Given a `Point` and a rescale, the element in a form of the instruction set, or None if it has none for it.
        self.rescale_form: Callable[[Any, Any], Any] | None = None
        self._shared = shared
        self.body = BodyBuilder(("row_begin", "row_end", *(symbol.name for symbol in symbols)))
        self._inputs: list[tuple[ir.BufferParameter, Argument]] = []
        self._constants: list[tuple[ir.BufferParameter, ConstantArgument]] = []
        self._outputs: list[tuple[ir.BufferParameter, Argument]] = []
        self._rows: list[tuple[ir.ScalarParameter, Argument]] = []

    def input(self, name: str, type_: ir.TensorType) -> ir.Buffer:
        """The parameter through which the kernel reads a tensor; the same one for the same name and shape."""
        for parameter, argument in self._inputs:
            if argument == TensorArgument(name) and parameter.buffer.shape == type_.shape:
                return parameter.buffer
        parameter = self._parameter("input", type_.shape, type_.dtype, ir.Access.READ)
        self._inputs.append((parameter, TensorArgument(name)))
        return parameter.buffer

    def output(self, name: str, type_: ir.TensorType) -> ir.Buffer:
        """The parameter through which the kernel writes its result."""
        parameter = self._parameter("output", type_.shape, type_.dtype, ir.Access.WRITE)
        self._outputs.append((parameter, TensorArgument(name)))
        return parameter.buffer

    def updated(self, output: ir.Buffer) -> ir.Buffer:
        """The parameter of a result, which the kernel finds as another kernel left it."""
        position = next(i for i, (p, _) in enumerate(self._outputs) if p.buffer == output)
        parameter, argument = self._outputs[position]
        self._outputs[position] = (replace(parameter, access=ir.Access.READ_WRITE), argument)
        return output

    def constant(
        self, hint: str, values: NDArray[np.generic], dtype: ir.DType, alignment: int = 1
    ) -> ir.Buffer:
        """A parameter for an array that is known at compile time; equal arrays share one parameter.

        Its address is a multiple of `alignment`, or of the size of an element.
        """
        data = ir.TensorData.from_array(values, dtype)
        data = self._shared.setdefault(data, data)
        for parameter, argument in self._constants:
            if argument.data == data and parameter.buffer.alignment >= alignment:
                return parameter.buffer
        parameter = self._parameter(
            hint, data.shape, dtype, ir.Access.READ, ir.ParameterRole.PARAMETER, alignment
        )
        self._constants.append((parameter, ConstantArgument(data, hint)))
        return parameter.buffer

    def scratch(self, hint: str, shape: tuple[int, ...], dtype: ir.DType, alignment: int = 1) -> ir.Buffer:
        """Scratch for the innermost open block: small arrays are `local`, others `global`, placed by storage."""
        size_bytes = int(np.prod(shape)) * dtype.size_bytes
        scope = ir.LOCAL if size_bytes <= MAX_LOCAL_SCRATCH_BYTES else ir.GLOBAL
        return self.body.allocate(
            ir.Buffer(hint, shape, dtype, max(dtype.size_bytes, alignment)), ir.Storage(scope)
        )

    @contextmanager
    def rows(
        self, num_rows: int, begin: Index = 0, end: Index | None = None
    ) -> Generator[ir.Expr, None, None]:
        """A loop over the output rows of `[begin, end)` that the caller asks for.

        Kernels of more than one row take `row_begin` and `row_end`, so that a caller may run them in pieces.
        """
        end = num_rows if end is None else end
        if num_rows == 1:
            yield ir.const(0)
            return
        first, last = self._row_parameters(num_rows)
        whole = (begin, end) == (0, num_rows)
        lower = first if whole else self.body.let("first", ir.maximum(first, as_expr(begin)))
        upper = last if whole else self.body.let("last", ir.minimum(last, as_expr(end)))
        with self.body.for_("y", lower, upper) as y:
            yield y

    def _row_parameters(self, num_rows: int) -> tuple[ir.Var, ir.Var]:
        first, last = ir.Var("row_begin", ir.DType.I32), ir.Var("row_end", ir.DType.I32)
        if not self._rows:
            self._rows = [
                (ir.ScalarParameter(first), ScalarArgument(ir.const(0))),
                (ir.ScalarParameter(last), ScalarArgument(ir.const(num_rows))),
            ]
        return first, last

    def _open_rows(self, parameter: ir.Parameter, argument: Argument) -> tuple[ir.Parameter, Argument]:
        """Of the end of rows: that of those which the output has in a run."""
        is_end = self._rows and parameter == self._rows[1][0]
        shapes = (output.buffer.shape for output, _ in self._outputs)
        rows = next((shape[ROWS] for shape in shapes if len(shape) == 4), 0) if is_end else 0
        return parameter, argument if isinstance(rows, int) else ScalarArgument(ir.extent_expr(rows))

    def _parameter(
        self,
        hint: str,
        shape: tuple[ir.Extent, ...],
        dtype: ir.DType,
        access: ir.Access,
        role: ir.ParameterRole = ir.ParameterRole.ACTIVATION,
        alignment: int = 1,
    ) -> ir.BufferParameter:
        buffer = ir.Buffer(self.body.unique_name(hint), shape, dtype, max(alignment, dtype.size_bytes))
        return ir.BufferParameter(buffer, access, role, ir.GLOBAL)

    def finish(self) -> LoweredKernel:
        """The kernel with the arguments of its call; operands that have no effect are not passed."""
        body = drop_unused(self.body.finish())
        used = {*(v.name for v in free_variables(body)), *(b.name for b in free_buffers(body))}
        pairs: list[tuple[ir.Parameter, Argument]] = [
            pair
            for pair in (*self._inputs, *self._constants, *self._outputs, *self._rows)
            if pair[0].name in used
        ]
        shapes = [pair[0].buffer.shape for pair in pairs if isinstance(pair[0], ir.BufferParameter)]
        pairs = [self._open_rows(*pair) for pair in pairs]
        for symbol in self.symbols:
            is_in_shapes = any(ir.symbol_in(extent) == symbol for shape in shapes for extent in shape)
            if is_in_shapes or symbol.name in used:
                variable = ir.Var(symbol.name, ir.DType.I32)
                pairs.append((ir.ScalarParameter(variable), ScalarArgument(variable)))
        parameters: tuple[ir.Parameter, ...] = tuple(parameter for parameter, _ in pairs)
        function = ir.PrimFunc(
            self.name,
            parameters,
            body,
            device=self.device,
            where=self.where,
            template=self.template,
            remarks=tuple(self.remarks),
        )
        return LoweredKernel(function, tuple(argument for _, argument in pairs))
