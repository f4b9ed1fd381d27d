"""LSTM layers: step after step, unit after unit, four sums over the input and four over the last step's results.

The hidden state is copied beside the results, since a step writes them while its later units still read the old ones.
The cell is copied to where it comes out, and changed there.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from bytewright import ir
from bytewright.ir.builder import BodyBuilder, load
from bytewright.ir.scalar_functions import (
    DYNAMIC_SCALE,
    DYNAMIC_ZERO_POINT,
    LOGISTIC_15,
    ROUND,
    TANH,
    TANH_15,
)
from bytewright.lower.interpolate import sigmoid_by_table
from bytewright.lower.kernels.context import Template, counted
from bytewright.lower.rescale import double_round, fixed_scale, half_up, high_half_up
from bytewright.lower.scalar import Scalar, clamped, require_i32
from bytewright.lower.sigmoid import sigmoid
from bytewright.ops.arithmetic.dynamic import SYMMETRIC_STEPS
from bytewright.ops.arithmetic.fixedpoint16 import GATE_BITS
from bytewright.ops.arithmetic.interpolation import sigmoid_scale
from bytewright.ops.arithmetic.multiplier import Multiplier
from bytewright.ops.lstm import (
    CELL,
    FORGET,
    GATES,
    INPUT,
    OUTPUT,
    TflHybridLstm,
    TflLstm,
    TflQuantizedLstm,
    power_of_two,
)

I8, I16, I32, I64, F32 = ir.DType.I8, ir.DType.I16, ir.DType.I32, ir.DType.I64, ir.DType.F32
_HIDDEN, _CELL, WEIGHTS, RECURRENT, BIAS, RECURRENT_BIAS = range(1, 7)
# Of a product of two numbers in Q0.15, the least of which is -32767 in one of them.
_MOST_PRODUCT = (1 << 30) - 1


@dataclass(frozen=True, slots=True)
class _Unit:
    """One unit in one step.

    Attributes:
        sums: Over the input and over the hidden state, gate by gate; of floats the whole in the first of them.
        cell: The cell before the step, of I32 or F32.
    """

    sums: tuple[tuple[ir.Expr, ...], tuple[ir.Expr, ...]]
    cell: ir.Expr


Sums = tuple[tuple[ir.Expr, ...], tuple[ir.Expr, ...]]
"""Of a unit's gates: over the input, and over the hidden state."""
_Cell = Callable[[_Unit], tuple[ir.Expr, ir.Expr]]
WriteUnit = Callable[[ir.Expr, Sums], None]
"""Writes what becomes of a unit, given its sums."""
GateSums = Callable[[ir.Expr, ir.Expr, ir.Buffer, WriteUnit], None]
"""Writes the units of a sample in a step, each with its sums, given the last step's results."""
MakeSums = Callable[[Template, ir.DType], GateSums]
"""Given the type of sums."""


class _ScalarSums:
    """Element after element."""

    def __init__(self, template: Template, sum_type: ir.DType) -> None:
        self.body, self.sum_type = template.body, sum_type
        _, _, self.depth = template.type(0).shape
        self.units = template.type(WEIGHTS).fixed_shape[1]
        self.input = template.input(0)
        self.weights, self.recurrent = (template.input(number) for number in (WEIGHTS, RECURRENT))
        self.biases = [template.input(number) for number in range(BIAS, len(template.anchor.inputs))]

    def __call__(self, n: ir.Expr, t: ir.Expr, before: ir.Buffer, write: WriteUnit) -> None:
        """One unit after another."""
        with self.body.for_("unit", 0, self.units) as unit:
            write(unit, self._of_unit(n, t, unit, before))

    def _of_unit(self, n: ir.Expr, t: ir.Expr, unit: ir.Expr, before: ir.Buffer) -> Sums:
        """The sums of a unit; those of floats go on over the hidden state."""
        over_input = self._begun(self.biases[0], "input_sum", unit)
        with counted(self.body, "k", self.depth) as k:
            value = self.body.let("value", ir.cast(load(self.input, n, t, k), self.sum_type))
            self._add(over_input, self.weights, unit, k, value)
        over_hidden = over_input if len(self.biases) == 1 else self._begun(self.biases[1], "hidden_sum", unit)
        with counted(self.body, "k", self.units) as k:
            value = self.body.let("value", ir.cast(load(before, k), self.sum_type))
            self._add(over_hidden, self.recurrent, unit, k, value)
        first, second = (tuple(load(total) for total in sums) for sums in (over_input, over_hidden))
        return first, second

    def _begun(self, bias: ir.Buffer, name: str, unit: ir.Expr) -> list[ir.Buffer]:
        return [
            self.body.scalar(
                f"{name}{number}", self.sum_type, ir.cast(load(bias, number, unit), self.sum_type)
            )
            for number in range(len(GATES))
        ]

    def _add(
        self, sums: list[ir.Buffer], weights: ir.Buffer, unit: ir.Expr, k: ir.Expr, value: ir.Expr
    ) -> None:
        for number, total in enumerate(sums):
            weight = ir.cast(load(weights, number, unit, k), self.sum_type)
            self.body.add_to(total, (), value * weight)


class _HybridSums:
    """Of floats, which begin with what the input gave; the last step's results are quantised by their own range."""

    def __init__(self, template: Template, *, is_symmetric: bool) -> None:
        self.body, self.is_symmetric = template.body, is_symmetric
        self.units = template.type(WEIGHTS).fixed_shape[1]
        self.gates, _, _, self.recurrent, self.scales = map(
            template.input, range(len(template.anchor.inputs))
        )
        self.steps = template.kernel.scratch("steps", (self.units,), I8)
        self.scale: ir.Expr = ir.const(1.0, F32)
        self.zero_point: ir.Expr = ir.const(0)

    def __call__(self, n: ir.Expr, t: ir.Expr, before: ir.Buffer, write: WriteUnit) -> None:
        """One unit after another, once the steps are there."""
        self._quantise(before)
        with self.body.for_("unit", 0, self.units) as unit:
            write(unit, self._of_unit(n, t, unit))

    def _quantise(self, before: ir.Buffer) -> None:
        """Finds the range of the results, and their steps."""
        body = self.body
        bounds = [body.scalar(name, F32, load(before, 0)) for name in ("least", "greatest")]
        with body.for_("unit", 0, self.units) as unit:
            for bound, extremum in zip(bounds, (ir.minimum, ir.maximum), strict=True):
                body.store(bound, (), extremum(load(bound), load(before, unit)))
        inverse = self._set_scale(*map(load, bounds))
        low, high = (
            body.let("low", ir.const(float(bound), F32) - ir.cast(self.zero_point, F32))
            for bound in I8.bounds
        )
        with body.for_("unit", 0, self.units) as unit:
            limited = ir.minimum(ir.maximum(low, ROUND(load(before, unit) * inverse)), high)
            body.store(self.steps, unit, ir.cast(ir.cast(limited, I32) + self.zero_point, I8))

    def _set_scale(self, least: ir.Expr, greatest: ir.Expr) -> ir.Expr:
        """Scale and zero point of the range; returns what values are multiplied with."""
        body = self.body
        if not self.is_symmetric:
            self.scale = body.let("scale", DYNAMIC_SCALE(least, greatest))
            self.zero_point = body.let("zero_point", DYNAMIC_ZERO_POINT(least, greatest))
            return body.let("inverse", ir.const(1.0, F32) / self.scale)
        most = ir.const(float(SYMMETRIC_STEPS), F32)
        reach = body.let("reach", ir.maximum(greatest, 0.0 - least))
        reach = body.let("reach", ir.select(reach > 0.0, reach, most))
        self.scale = body.let("scale", reach / most)
        return body.let("inverse", most / reach)

    def _of_unit(self, n: ir.Expr, t: ir.Expr, unit: ir.Expr) -> Sums:
        """What the input gave, and the scaled sums over the steps."""
        body, numbers = self.body, range(len(GATES))
        sums = [body.scalar(f"hidden_sum{number}", I32, 0) for number in numbers]
        with counted(body, "k", self.units) as k:
            value = body.let("value", ir.cast(load(self.steps, k), I32) - self.zero_point)
            for number, total in enumerate(sums):
                body.add_to(total, (), value * ir.cast(load(self.recurrent, number, unit, k), I32))
        gates: list[ir.Expr] = []
        for number, total in enumerate(sums):
            factor = body.let("factor", self.scale * load(self.scales, number))
            given = load(self.gates, n, t, unit + number * self.units)
            gates.append(given + ir.cast(load(total), F32) * factor)
        return tuple(gates), ()


def lower_lstm(template: Template, operation: TflLstm) -> None:
    """Writes the kernel of a layer in float32."""
    _Layer(template, F32, _ScalarSums).write_units(_float_unit(template.body, operation.cell_clip))


def lower_hybrid_lstm(template: Template, operation: TflHybridLstm) -> None:
    """Writes the kernel of a layer of floats with integer weights."""

    def make_sums(template: Template, sum_type: ir.DType) -> GateSums:
        del sum_type
        return _HybridSums(template, is_symmetric=operation.is_symmetric)

    _Layer(template, F32, make_sums).write_units(_float_unit(template.body, operation.cell_clip))


def _float_unit(body: BodyBuilder, clip: float) -> _Cell:
    """What a unit becomes of the sums of its gates."""

    def write(unit: _Unit) -> tuple[ir.Expr, ir.Expr]:
        gates = [body.let(f"{name}_gate", value) for name, value in zip(GATES, unit.sums[0], strict=True)]
        kept = body.let("kept", sigmoid(body, gates[FORGET]) * unit.cell)
        added = body.let("added", sigmoid(body, gates[INPUT]) * TANH(gates[CELL]))
        cell: ir.Expr = kept + added
        if clip:
            cell = ir.minimum(ir.maximum(cell, -clip), clip)
        cell = body.let("next_cell", cell)
        return sigmoid(body, gates[OUTPUT]) * TANH(cell), cell

    return write


def lower_quantized_lstm(
    template: Template,
    operation: TflQuantizedLstm,
    make_sums: MakeSums = _ScalarSums,
) -> None:
    """Writes the kernel of a layer in int8 or int16, whose cell is int16."""
    _QuantizedLayer(template, operation, make_sums).write()


def sum_type_of(template: Template, operation: TflQuantizedLstm) -> ir.DType:
    """The type of a layer's sums: of 64 bits where 32 are not proved to hold them."""
    greatest = max(map(max, _reaches(template)))
    return (
        I64 if operation.is_by_table and template.type(0).dtype is I16 and greatest > I32.bounds[1] else I32
    )


def _reaches(template: Template) -> list[list[int]]:
    return [_reach(template, *pair) for pair in ((WEIGHTS, BIAS), (RECURRENT, RECURRENT_BIAS))]


def _narrow(value: Scalar) -> Scalar:
    return clamped(value, *I16.bounds)


class _Layer:
    """The loops of a layer, and its memory."""

    def __init__(self, template: Template, sum_type: ir.DType, make_sums: MakeSums) -> None:
        self.template, self.body = template, template.body
        self.samples, self.steps, _ = template.type(0).shape
        self.units = template.type(WEIGHTS).fixed_shape[1]
        self.dtype = template.type(0).dtype
        self.cell_type = I32 if self.dtype.is_integer else self.dtype
        template.input(0)  # parameters are in the order of the operands
        self.hidden, self.cell = (template.input(number) for number in (_HIDDEN, _CELL))
        self.sums = make_sums(template, sum_type)
        self.output, self.next_cell = template.epilogue.output, template.output(1)

    def write_units(self, advance: _Cell) -> None:
        """Writes all, with what a unit becomes: its result, and its cell."""
        body = self.body
        with counted(body, "n", self.samples) as n:
            before = self.template.kernel.scratch("before", (self.units,), self.dtype)
            body.note("the state that comes in")
            with body.for_("unit", 0, self.units) as unit:
                body.store(before, unit, load(self.hidden, n, unit))
                body.store(self.next_cell, (n, unit), load(self.cell, n, unit))
            with counted(body, "t", self.steps) as t:

                def write(unit: ir.Expr, sums: Sums, t: ir.Expr = t) -> None:
                    cell = body.let("cell", ir.cast(load(self.next_cell, n, unit), self.cell_type))
                    result, changed = advance(_Unit(sums, cell))
                    body.store(self.next_cell, (n, unit), ir.cast(changed, self.next_cell.dtype))
                    body.store(self.output, (n, t, unit), ir.cast(result, self.dtype))

                self.sums(n, t, before, write)
                if self.steps != 1:
                    with body.for_("unit", 0, self.units) as unit:
                        body.store(before, unit, load(self.output, n, t, unit))


class _QuantizedLayer(_Layer):
    """Integers, whose sums have 32 bits where these are proved to hold them."""

    def __init__(
        self,
        template: Template,
        operation: TflQuantizedLstm,
        make_sums: MakeSums,
    ) -> None:
        self.operation, self.reaches = operation, _reaches(template)
        sum_type = sum_type_of(template, operation)
        if sum_type is I32:
            greatest = max(map(max, self.reaches))
            require_i32(-greatest, greatest, "a sum of a gate", template.anchor.where)
        super().__init__(template, sum_type, make_sums)

    def write(self) -> None:
        """Writes all."""
        self.write_units(self._unit)

    def _unit(self, unit: _Unit) -> tuple[ir.Expr, ir.Expr]:
        """Result and cell."""
        body, operation = self.body, self.operation
        gates = [self._gate(number, unit) for number in range(len(GATES))]
        kept = self._divided("kept", self._logistic(gates[FORGET]) * unit.cell, 15)
        candidate = self._logistic(gates[INPUT]) * self._tanh(gates[CELL], GATE_BITS)
        added = self._divided("added", candidate, operation.product_shift)
        most = operation.cell_clip or -I16.bounds[0]
        low, high = max(-most, I16.bounds[0]), min(most, I16.bounds[1])
        cell = body.let("next_cell", ir.minimum(ir.maximum(kept + added, low), high))
        opened = self._logistic(gates[OUTPUT]) * self._tanh(cell, operation.cell_bits)
        hidden = self._doubly_rounded(body.let("product", opened), _MOST_PRODUCT, operation.hidden_multiplier)
        zero_point = operation.hidden_zero_point
        shifted = Scalar(hidden.expr + zero_point, hidden.low + zero_point, hidden.high + zero_point)
        return clamped(shifted, *self.dtype.bounds).expr, cell

    def _gate(self, number: int, unit: _Unit) -> ir.Expr:
        """What a gate is before its activation, in Q3.12."""
        multipliers = self.operation.input_multipliers, self.operation.recurrent_multipliers
        first, second = (
            self._scaled(sums[number], reach[number], own[number])
            for sums, reach, own in zip(unit.sums, self.reaches, multipliers, strict=True)
        )
        first, second = _narrow(first), _narrow(second) if self.operation.is_by_table else second
        both = Scalar(first.expr + second.expr, first.low + second.low, first.high + second.high)
        return self.body.let(f"{GATES[number]}_gate", _narrow(both).expr)

    def _scaled(self, value: ir.Expr, reach: int, multiplier: Multiplier) -> Scalar:
        if self.dtype is I8:
            return self._doubly_rounded(value, reach, multiplier)
        factor, shift = multiplier.multiplier, 31 - multiplier.exponent
        sums, ratio = Scalar(value, -reach, reach), factor / 2.0**shift
        if value.dtype is I32 and reach < 1 << 30 and factor < 1 << 15 and 16 <= shift <= 45:
            found = high_half_up(sums, ir.const(factor << 16), ir.const(shift - 15), ratio)
        else:
            found = half_up(sums, ir.const(factor), ir.const(shift), ratio)
        return Scalar(self.body.let("scaled", found.expr), found.low, found.high)

    def _doubly_rounded(self, value: ir.Expr, reach: int, multiplier: Multiplier) -> Scalar:
        """A value of a magnitude, by a multiplier, as TensorFlow Lite does."""
        scale = fixed_scale(multiplier.multiplier, multiplier.exponent)
        found = double_round(Scalar(value, -reach, reach), scale, self.template.anchor.where)
        return Scalar(self.body.let("scaled", found.expr), found.low, found.high)

    def _divided(self, name: str, value: ir.Expr, shift: int) -> ir.Expr:
        """Of a product of two 16-bit numbers, divided by 2^shift, rounded half away from zero."""
        product = self.body.let(f"{name}_product", value)
        if self.operation.is_by_table:
            return self._doubly_rounded(product, _MOST_PRODUCT, power_of_two(-shift)).expr
        return self.body.let(name, (product + (product >> 31) + (1 << (shift - 1))) >> shift)

    def _logistic(self, gate: ir.Expr) -> ir.Expr:
        if not self.operation.is_by_table:
            return LOGISTIC_15(gate)
        found = sigmoid_by_table(self.template.kernel, gate, sigmoid_scale(GATE_BITS), is_tanh=False)
        return self.body.let("opened", found)

    def _tanh(self, value: ir.Expr, integer_bits: int) -> ir.Expr:
        if not self.operation.is_by_table:
            return TANH_15(value, integer_bits)
        found = sigmoid_by_table(self.template.kernel, value, sigmoid_scale(integer_bits), is_tanh=True)
        return self.body.let("bent", found)


def _reach(template: Template, weights: int, bias: int) -> list[int]:
    """The greatest magnitude of the sums of each gate."""
    most = -template.type(0).dtype.bounds[0]
    magnitudes = np.abs(template.constant(weights).astype(np.int64)).sum(axis=2) * most
    magnitudes += np.abs(template.constant(bias).astype(np.int64))
    return [int(greatest) for greatest in magnitudes.max(axis=1)]
