"""Element-wise operators as expressions: what a kernel computes on each element before it is stored.

The expression for one element of the group's output expands the operators of the group, takes the anchor's
result from the template, and loads everything else.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import numpy as np

from bytewright.diagnostics import InternalError
from bytewright.ir.builder import load
from bytewright.ir.expr import (
    Buffer,
    Const,
    Expr,
    MathCall,
    MathFunction,
    Var,
    cast,
    clamp,
    const,
    maximum,
    minimum,
    select,
)
from bytewright.ir.graph import Array, Constant, Node
from bytewright.ir.types import DType, TensorType
from bytewright.ir.walk import expression_depth
from bytewright.lower.fuse import Group
from bytewright.lower.kernel import KernelBuilder
from bytewright.lower.rescale import ScaleOperands, double_round, linear, single_round, split_exponents
from bytewright.lower.scalar import Scalar, clamped, element, require_i32
from bytewright.ops.arithmetic.fit import LinearRescale, fit_linear
from bytewright.ops.arithmetic.float32 import LOGISTIC_IS_EXP_BELOW
from bytewright.ops.arithmetic.numerics import Rounding
from bytewright.ops.arithmetic.rescale import real_round
from bytewright.ops.elementwise import (
    Add,
    Clamp,
    Mul,
    Sigmoid,
    Sub,
    Table,
    Tanh,
    TflDequantize,
    TflHardSwish,
    TflLeakyRelu,
    TflQuantize,
)
from bytewright.ops.rescale import Rescale, TflRealRescale

Coordinates = tuple[Expr, ...]
# Of an expression that goes on into the next operator; what is deeper gets a name. C99 grants 63 levels.
_MAX_DEPTH = 24
I32, F32 = DType.I32, DType.F32


class Epilogue:
    """Expressions for the output of one group.

    Args:
        kernel: The kernel under construction.
        group: The operators.
        types: Types of all tensors of the graph.
        constants: The graph's constants by name.
    """

    def __init__(
        self,
        kernel: KernelBuilder,
        group: Group,
        types: Mapping[str, TensorType],
        constants: Mapping[str, Constant],
    ) -> None:
        self.kernel = kernel
        self.group = group
        self.types = types
        self.constants = constants
        self._producer = {node.outputs[0].name: node for node in group.elementwise}
        self._fits: dict[tuple[float, tuple[int, int], tuple[int, int]], LinearRescale | None] = {}
        self._num_uses = Counter(name for node in group.elementwise for name in node.inputs)
        self.output: Buffer = kernel.output(group.output.name, types[group.output.name])

    def store(self, coordinates: Coordinates, anchor: Scalar | None = None) -> None:
        """Stores the element of the output at these coordinates, where the anchor's element is `anchor`."""
        values: dict[str, Scalar] = {}
        if self.group.anchor is not None:
            if anchor is None:
                raise InternalError("the template gave no value for the anchor")
            values[self.group.anchor.outputs[0].name] = anchor
        self._compute(coordinates, values)
        value = values[self.group.output.name]
        self.kernel.body.store(self.output, coordinates, cast(value.expr, self.output.dtype))

    def array(self, name: str) -> Array:
        """The values of an operand that is a constant."""
        return self.constants[name].data.array

    def _compute(self, coordinates: Coordinates, values: dict[str, Scalar]) -> None:
        """One element of every tensor that the group reads or computes, operands first, in the order of their use."""
        pending = [self.group.output.name]
        while pending:
            name = pending[-1]
            node = self._producer.get(name)
            missing = [] if node is None else [o for o in _elementwise_operands(node) if o not in values]
            if name not in values and not missing:
                values[name] = self._value(name, coordinates, values)
            if missing:
                pending.append(missing[0])
            else:
                pending.pop()

    def _value(self, name: str, coordinates: Coordinates, values: Mapping[str, Scalar]) -> Scalar:
        """One element of a tensor whose operands are computed."""
        type_ = self.types[name]
        own = _broadcast(coordinates, type_)
        node = self._producer.get(name)
        if node is not None:
            return self._named(name, self._apply(node, own, values))
        if name in self.constants:
            return self._constant(name, own)
        return element(load(self.kernel.input(name, type_), *own))

    def _named(self, name: str, value: Scalar) -> Scalar:
        """The value under a name where it is used twice, so that the text does not double, or nests deeply."""
        if isinstance(value.expr, Const | Var):
            return value
        if self._num_uses[name] < 2 and expression_depth(value.expr) <= _MAX_DEPTH:
            return value
        return Scalar(self.kernel.body.let("element", value.expr), value.low, value.high)

    def _constant(self, name: str, coordinates: Coordinates) -> Scalar:
        array = self.array(name)
        dtype = self.types[name].dtype
        if array.size == 1:
            number = array.reshape(-1)[0].item()
            return (
                Scalar(const(number, I32), number, number)
                if dtype.is_integer
                else Scalar(const(number, dtype))
            )
        loaded = element(load(self.kernel.constant("operand", array, dtype), *coordinates))
        if not dtype.is_integer:
            return loaded
        return Scalar(loaded.expr, int(array.min()), int(array.max()))

    def _apply(self, node: Node, coordinates: Coordinates, values: Mapping[str, Scalar]) -> Scalar:
        operation = node.operation
        operands = [values[name] for name in _elementwise_operands(node)]
        if isinstance(operation, Rescale | TflRealRescale):
            return self._rescaled(node, operation, operands[0], coordinates)
        if isinstance(operation, Table):
            table = self.array(node.inputs[1])
            entry = load(self.kernel.constant("table", table, DType.I8), operands[0].expr + 128)
            return Scalar(cast(entry, I32), int(table.min()), int(table.max()))
        if self.types[node.inputs[0]].dtype is F32:
            return self._float(node, operands)
        return self._integer(node, operands)

    def _integer(self, node: Node, operands: list[Scalar]) -> Scalar:
        match node.operation:
            case Clamp(minimum=low, maximum=high):
                return clamped(operands[0], int(low), int(high))
            case Add():
                first, second = operands
                low, high = first.low + second.low, first.high + second.high
                result = first.expr + second.expr
            case Sub():
                first, second = operands
                low, high = first.low - second.high, first.high - second.low
                result = first.expr - second.expr
            case Mul():
                first, second = operands
                corners = [x * y for x in (first.low, first.high) for y in (second.low, second.high)]
                low, high = min(corners), max(corners)
                result = first.expr * second.expr
            case TflDequantize(scale=scale, zero_point=zero_point):
                return Scalar(cast(operands[0].expr - zero_point, F32) * scale)
            case _:
                raise InternalError(f"no integer expression for '{node.operation.name}'")
        require_i32(low, high, "the result", node.where)
        return Scalar(result, low, high)

    def _float(self, node: Node, operands: list[Scalar]) -> Scalar:
        x = operands[0].expr
        match node.operation:
            case Clamp(minimum=low, maximum=high):
                lower = maximum(x, low) if low > float("-inf") else x
                return Scalar(minimum(lower, high) if high < float("inf") else lower)
            case Add():
                return Scalar(x + operands[1].expr)
            case Sub():
                return Scalar(x - operands[1].expr)
            case Mul():
                return Scalar(x * operands[1].expr)
            case Sigmoid():
                return self._sigmoid(x)
            case Tanh():
                return Scalar(MathCall(MathFunction.TANH, x))
            case TflHardSwish():
                bound = self.kernel.body.let("value", x)
                return Scalar(bound * clamp(bound + 3.0, 0.0, 6.0) * float(np.float32(1 / 6)))
            case TflLeakyRelu(alpha=alpha):
                bound = self.kernel.body.let("value", x)
                return Scalar(select(bound > 0.0, bound, bound * float(np.float32(alpha))))
            case TflQuantize(scale=scale, zero_point=zero_point):
                return self._quantized(x, scale, zero_point)
            case _:
                raise InternalError(f"no float expression for '{node.operation.name}'")

    def _sigmoid(self, x: Expr) -> Scalar:
        """1 / (1 + exp(-x)) with an exponential that never overflows; below -9 it is exp(x) itself, as in LiteRT."""
        body = self.kernel.body
        bound = body.let("value", x)
        decay = body.let("decay", MathCall(MathFunction.EXP, select(bound < 0.0, bound, 0.0 - bound)))
        quotient = select(bound < 0.0, decay, const(1.0, F32)) / (decay + 1.0)
        return Scalar(select(bound < LOGISTIC_IS_EXP_BELOW, decay, quotient))

    def _quantized(self, x: Expr, scale: float, zero_point: int) -> Scalar:
        """roundf(x / scale) + zero point, saturated in float first so that the conversion is defined.

        The bound is the first operand of the maximum, which is what is left where the other is not a number.
        """
        rounded = MathCall(MathFunction.ROUND, x / const(scale, F32))
        above = maximum(const(-256.0 - zero_point, F32), rounded)
        limited = self.kernel.body.let("rounded", minimum(above, 256.0 - zero_point))
        return clamped(Scalar(cast(limited, I32) + zero_point, -256, 256), -128, 127)

    def _rescaled(
        self, node: Node, operation: Rescale | TflRealRescale, value: Scalar, coordinates: Coordinates
    ) -> Scalar:
        body = self.kernel.body
        low, high = operation.dtype.bounds
        if isinstance(operation, TflRealRescale):
            scaled = self._real_rescaled(node, operation, value, coordinates)
        else:
            if operation.input_zero_point:
                zero_point = operation.input_zero_point
                value = Scalar(value.expr - zero_point, value.low - zero_point, value.high - zero_point)
            if operation.left_shift:
                value = self._times_power(value, operation.left_shift, node)
            multipliers, exponents = (self.array(name) for name in node.inputs[1:])
            if (multipliers == 2**30).all() and (exponents == 1).all():
                scaled = value
            else:
                scale = self._scale_operands(multipliers, exponents, coordinates)
                rounding = double_round if operation.rounding is Rounding.DOUBLE_ROUND else single_round
                scaled = rounding(body, value, scale, node.where)
        zero_point = operation.output_zero_point
        if zero_point and scaled.magnitude >= 2**30:
            # The sum might leave 32 bits; what is cut off here saturates anyway.
            scaled = clamped(scaled, -(2**30), 2**30)
        shifted = Scalar(scaled.expr + zero_point, scaled.low + zero_point, scaled.high + zero_point)
        return clamped(shifted, low, high)

    def _times_power(self, value: Scalar, bits: int, node: Node) -> Scalar:
        low, high = value.low << bits, value.high << bits
        require_i32(low, high, f"the operand, times 2^{bits},", node.where)
        return Scalar(value.expr * (1 << bits), low, high)

    def _scale_operands(
        self, multipliers: Array, exponents: Array, coordinates: Coordinates
    ) -> ScaleOperands:
        shifts, lefts = split_exponents(exponents)
        shifts = np.where(multipliers == 0, shifts.max(initial=0), shifts)
        left = None if (lefts == 1).all() else self._per_channel("left", lefts, I32, coordinates)
        return ScaleOperands(
            multiplier=self._per_channel("multiplier", multipliers, I32, coordinates),
            shift=self._per_channel("shift", shifts, DType.I8, coordinates),
            left=left,
            shifts=frozenset(int(shift) for shift in shifts),
            left_bits=int(lefts.max()).bit_length() - 1,
            ratio=float((multipliers.astype(np.float64) / 2.0 ** (31 + shifts)).max()),
        )

    def _per_channel(self, hint: str, values: Array, dtype: DType, coordinates: Coordinates) -> Expr:
        """The value of the channel at hand, as I32 or I64: a number where all channels agree."""
        wide = DType.I64 if dtype is DType.I64 else I32
        if (values == values.reshape(-1)[0]).all():
            return const(int(values.reshape(-1)[0]), wide)
        loaded = load(self.kernel.constant(hint, values, dtype), coordinates[-1])
        return self.kernel.body.let(hint, cast(loaded, wide)) if dtype is DType.I8 else cast(loaded, wide)

    def _real_rescaled(
        self, node: Node, operation: TflRealRescale, value: Scalar, coordinates: Coordinates
    ) -> Scalar:
        """Double-precision scaling as integers: an equal linear form for every accumulator that can occur."""
        scales = self.array(node.inputs[1]).reshape(-1)
        zero_point = operation.output_zero_point
        low, high = (bound - zero_point for bound in operation.dtype.bounds)
        found = [self._fit(float(s), (value.low, value.high), (low, high)) for s in scales]
        fits = [fit for fit in found if fit is not None]
        if len(fits) < len(found):
            return self._scaled_in_double(scales, value, (low, high), coordinates)
        columns = [
            np.array([getattr(fit, name) for fit in fits]) for name in ("multiplier", "addend", "shift")
        ]
        multiplier, addend, shift = (
            self._per_channel(hint, values, dtype, coordinates)
            for hint, values, dtype in zip(
                ("multiplier", "addend", "shift"), columns, (I32, DType.I64, DType.I8), strict=True
            )
        )
        bounds = [
            (bound * int(m) + int(a)) >> int(s)
            for bound in (value.low, value.high)
            for m, a, s in zip(*columns, strict=True)
        ]
        require_i32(min(bounds), max(bounds), "the scaled accumulator", node.where)
        return linear(value, multiplier, addend, shift, min(bounds), max(bounds))

    def _fit(
        self, scale: float, accumulators: tuple[int, int], outputs: tuple[int, int]
    ) -> LinearRescale | None:
        """The linear form of a scale, looked for once in a kernel, however many elements its text stores."""
        key = (scale, accumulators, outputs)
        if key not in self._fits:
            self._fits[key] = _fit(scale, accumulators, outputs)
        return self._fits[key]

    def _scaled_in_double(
        self, scales: Array, value: Scalar, outputs: tuple[int, int], coordinates: Coordinates
    ) -> Scalar:
        """REAL_ROUND as it is defined, for scales with ties that double precision rounds this way and that.

        Such a scale is next to 1/n for an even n. Truncation and the subtraction after it are exact.
        """
        body = self.kernel.body
        if (scales == scales[0]).all():
            scale: Expr = const(scales[0].item(), DType.F64)
        else:
            scale = load(self.kernel.constant("scale", scales, DType.F64), coordinates[-1])
        low, high = outputs[0] - 1, outputs[1] + 1
        real = clamp(cast(value.expr, DType.F64) * scale, float(low), float(high))
        scaled = body.let("scaled", real)
        whole = body.let("whole", cast(scaled, I32))
        rest = body.let("rest", scaled - cast(whole, DType.F64))
        rounded = whole + select(rest >= 0.5, const(1), const(0)) - select(rest <= -0.5, const(1), const(0))
        return Scalar(rounded, low, high)


def _elementwise_operands(node: Node) -> tuple[str, ...]:
    """The operands of which an element is needed; the others are read as a whole, when the kernel is written."""
    return node.inputs[:1] if isinstance(node.operation, Rescale | TflRealRescale | Table) else node.inputs


def _fit(scale: float, accumulators: tuple[int, int], outputs: tuple[int, int]) -> LinearRescale | None:
    fit = fit_linear(lambda values: real_round(values, scale), accumulators, outputs)
    return fit if fit is not None and fit.multiplier < 2**31 else None


def _broadcast(coordinates: Coordinates, type_: TensorType) -> Coordinates:
    """Coordinates of an operand: aligned to the right, zero along axes of one element."""
    rank = len(type_.shape)
    own = coordinates[len(coordinates) - rank :] if rank else ()
    return tuple(const(0) if extent == 1 else index for index, extent in zip(own, type_.shape, strict=True))
