"""LSTM layers: step after step, unit after unit, four sums over the input and four over the last step's results.

The hidden state is copied beside the results, since a step writes them while its later units still read the old ones.
The cell is copied to where it comes out, and changed there.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from bytewright import ir
from bytewright.ir.builder import BodyBuilder, load
from bytewright.ir.scalar_functions import LOGISTIC_15, TANH, TANH_15
from bytewright.lower.kernels.context import Template, counted
from bytewright.lower.rescale import double_round, fixed_scale
from bytewright.lower.scalar import Scalar, clamped, require_i32
from bytewright.lower.sigmoid import sigmoid
from bytewright.ops.arithmetic.fixedpoint16 import GATE_BITS
from bytewright.ops.arithmetic.multiplier import Multiplier
from bytewright.ops.lstm import CELL, FORGET, GATES, INPUT, OUTPUT, TflLstm, TflQuantizedLstm

I8, I16, I32, F32 = ir.DType.I8, ir.DType.I16, ir.DType.I32, ir.DType.F32
_HIDDEN, _CELL, _WEIGHTS, _RECURRENT, _BIAS, _RECURRENT_BIAS = range(1, 7)
_GREATEST_INPUT = 128


@dataclass(frozen=True, slots=True)
class _Unit:
    """One unit in one step.

    Attributes:
        sums: Over the input and over the hidden state, gate by gate; of floats the whole in the first of them.
        cell: The cell before the step.
    """

    sums: tuple[tuple[ir.Expr, ...], tuple[ir.Expr, ...]]
    cell: ir.Expr


_WriteUnit = Callable[[_Unit], tuple[ir.Expr, ir.Expr]]


def lower_lstm(template: Template, operation: TflLstm) -> None:
    """Writes the kernel of a layer in float32."""

    def write(unit: _Unit) -> tuple[ir.Expr, ir.Expr]:
        body = template.body
        gates = [body.let(f"{name}_gate", value) for name, value in zip(GATES, unit.sums[0], strict=True)]
        kept = body.let("kept", sigmoid(body, gates[FORGET])[0] * unit.cell)
        added = body.let("added", sigmoid(body, gates[INPUT])[0] * TANH(gates[CELL]))
        cell: ir.Expr = kept + added
        if operation.cell_clip:
            cell = ir.minimum(ir.maximum(cell, -operation.cell_clip), operation.cell_clip)
        cell = body.let("next_cell", cell)
        return sigmoid(body, gates[OUTPUT])[0] * TANH(cell), cell

    _Layer(template).write(write)


def lower_quantized_lstm(template: Template, operation: TflQuantizedLstm) -> None:
    """Writes the kernel of a layer in int8, whose cell is int16."""
    layer = _Layer(template)
    input_reach, recurrent_reach = layer.reach(_WEIGHTS, _BIAS), layer.reach(_RECURRENT, _RECURRENT_BIAS)

    def gate(number: int, unit: _Unit) -> ir.Expr:
        """What a gate is before its activation, in Q3.12."""
        over_input, over_hidden = (sums[number] for sums in unit.sums)
        first = layer.scaled(over_input, input_reach[number], operation.input_multipliers[number])
        first = _narrow(first)
        second = layer.scaled(over_hidden, recurrent_reach[number], operation.recurrent_multipliers[number])
        both = Scalar(first.expr + second.expr, first.low + second.low, first.high + second.high)
        return template.body.let(f"{GATES[number]}_gate", _narrow(both).expr)

    def write(unit: _Unit) -> tuple[ir.Expr, ir.Expr]:
        body = template.body
        gates = [gate(number, unit) for number in range(len(GATES))]
        kept = _divided(body, "kept", LOGISTIC_15(gates[FORGET]) * ir.cast(unit.cell, I32), 15)
        candidate = LOGISTIC_15(gates[INPUT]) * TANH_15(gates[CELL], GATE_BITS)
        added = _divided(body, "added", candidate, operation.product_shift)
        most = operation.cell_clip or -I16.bounds[0]
        low, high = max(-most, I16.bounds[0]), min(most, I16.bounds[1])
        cell = body.let("next_cell", ir.minimum(ir.maximum(kept + added, low), high))
        product = body.let("product", LOGISTIC_15(gates[OUTPUT]) * TANH_15(cell, operation.cell_bits))
        hidden = layer.scaled(product, 1 << 30, operation.hidden_multiplier)
        zero_point = operation.hidden_zero_point
        shifted = Scalar(hidden.expr + zero_point, hidden.low + zero_point, hidden.high + zero_point)
        return clamped(shifted, *I8.bounds).expr, cell

    layer.write(write)


def _narrow(value: Scalar) -> Scalar:
    return clamped(value, *I16.bounds)


def _divided(body: BodyBuilder, name: str, value: ir.Expr, shift: int) -> ir.Expr:
    """Of a product of two 16-bit numbers, divided by 2^shift, rounded half away from zero."""
    product = body.let(f"{name}_product", value)
    return body.let(name, (product + (product >> 31) + (1 << (shift - 1))) >> shift)


class _Layer:
    """The loops of a layer, and its memory."""

    def __init__(self, template: Template) -> None:
        self.template, self.body = template, template.body
        self.samples, self.steps, self.depth = template.type(0).shape
        self.units = template.type(_WEIGHTS).fixed_shape[1]
        self.dtype = template.type(0).dtype
        self.sum_type = self.dtype if self.dtype is F32 else I32
        self.input, self.hidden, self.cell = (template.input(number) for number in (0, _HIDDEN, _CELL))
        self.weights, self.recurrent = (template.input(number) for number in (_WEIGHTS, _RECURRENT))
        biases = range(_BIAS, len(template.anchor.inputs))
        self.biases = [template.input(number) for number in biases]
        self.output, self.next_cell = template.epilogue.output, template.output(1)

    def reach(self, weights: int, bias: int) -> list[int]:
        """The greatest magnitude of the sums of each gate, proved to fit 32 bits."""
        magnitudes = np.abs(self.template.constant(weights).astype(np.int64)).sum(axis=2) * _GREATEST_INPUT
        magnitudes += np.abs(self.template.constant(bias).astype(np.int64))
        found = [int(most) for most in magnitudes.max(axis=1)]
        require_i32(-max(found), max(found), "a sum of a gate", self.template.anchor.where)
        return found

    def scaled(self, value: ir.Expr, reach: int, multiplier: Multiplier) -> Scalar:
        """A value of a magnitude, by a multiplier, as TensorFlow Lite does."""
        scale = fixed_scale(multiplier.multiplier, multiplier.exponent)
        found = double_round(Scalar(value, -reach, reach), scale, self.template.anchor.where)
        return Scalar(self.body.let("scaled", found.expr), found.low, found.high)

    def write(self, write_unit: _WriteUnit) -> None:
        """Writes all, with what a unit becomes: its result, and its cell."""
        body = self.body
        with counted(body, "n", self.samples) as n:
            before = self.template.kernel.scratch("before", (self.units,), self.dtype)
            body.note("the state that comes in")
            with body.for_("unit", 0, self.units) as unit:
                body.store(before, unit, load(self.hidden, n, unit))
                body.store(self.next_cell, (n, unit), load(self.cell, n, unit))
            with counted(body, "t", self.steps) as t:
                with body.for_("unit", 0, self.units) as unit:
                    cell = body.let("cell", load(self.next_cell, n, unit))
                    result, changed = write_unit(_Unit(self._sums(n, t, unit, before), cell))
                    body.store(self.next_cell, (n, unit), ir.cast(changed, self.next_cell.dtype))
                    body.store(self.output, (n, t, unit), ir.cast(result, self.dtype))
                if self.steps != 1:
                    with body.for_("unit", 0, self.units) as unit:
                        body.store(before, unit, load(self.output, n, t, unit))

    def _sums(
        self, n: ir.Expr, t: ir.Expr, unit: ir.Expr, before: ir.Buffer
    ) -> tuple[tuple[ir.Expr, ...], tuple[ir.Expr, ...]]:
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
            self.body.scalar(f"{name}{number}", self.sum_type, load(bias, number, unit))
            for number in range(len(GATES))
        ]

    def _add(
        self, sums: list[ir.Buffer], weights: ir.Buffer, unit: ir.Expr, k: ir.Expr, value: ir.Expr
    ) -> None:
        for number, total in enumerate(sums):
            weight = ir.cast(load(weights, number, unit, k), self.sum_type)
            self.body.add_to(total, (), value * weight)
