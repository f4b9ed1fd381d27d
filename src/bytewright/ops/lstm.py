"""LSTM layers over a sequence: hidden state and cell go in, and come out for the next sequence.

For each step t, with gates i, f, g, o in this order:

    a = W[gate] x[t] + R[gate] h + bias[gate]
    c = sigmoid(a[f]) * c + sigmoid(a[i]) * tanh(a[g])        within the clip
    h = y[t] = sigmoid(a[o]) * tanh(c)

The last y is the hidden state that comes out, so it is no result of its own.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from bytewright import ir
from bytewright.ops.arithmetic import fixedpoint16
from bytewright.ops.arithmetic.dynamic import quantize_rows
from bytewright.ops.arithmetic.interpolation import sigmoid_int16, sigmoid_scale
from bytewright.ops.arithmetic.multiplier import Multiplier
from bytewright.ops.arithmetic.rescale import Int64, double_round_by, rounding_shift_right, single_round
from bytewright.ops.checks import WIDE, require, require_count, require_dtype

GATES = ("input", "forget", "cell", "output")
INPUT, FORGET, CELL, OUTPUT = range(4)
_FLOAT_OPERANDS = ("input", "hidden", "cell", "weights", "recurrent", "bias")
_HYBRID_OPERANDS = ("gates", "hidden", "cell", "recurrent", "scales")
_INTEGER_OPERANDS = ("input", "hidden", "cell", "weights", "recurrent", "bias", "recurrent_bias")


def _num_macs(inputs: tuple[ir.TensorType, ...], results: tuple[ir.TensorType, ...]) -> int:
    """Each step of each sample has the products of all gates, with the input and with the state before."""
    weights, recurrent = (inputs[_FLOAT_OPERANDS.index(name)] for name in ("weights", "recurrent"))
    units = recurrent.fixed_shape[-1]
    return (weights.num_elements + recurrent.num_elements) * results[0].sample_elements // units


def _inferred(
    inputs: tuple[ir.TensorType, ...],
    data: ir.DType,
    weight: ir.DType,
    cell: ir.DType,
    sums: tuple[ir.DType, ...],
) -> tuple[ir.TensorType, ...]:
    """Y [N,T,C] and the cell [N,C], of x [N,T,I], hidden and cell [N,C], weights [4,C,I] and [4,C,C], biases [4,C]."""
    source, hidden, state, weights, recurrent, *biases = inputs
    for operand, dtype in zip(inputs, (data, data, cell, weight, weight), strict=False):
        require_dtype(operand, (dtype,), "an operand")
    require(len(source.shape) == 3, f"the input has {len(source.shape)} axes, not 3")
    samples, steps, depth = source.shape
    require(
        len(weights.shape) == 3 and weights.shape[0] == len(GATES), "the weights are not those of 4 gates"
    )
    units = weights.shape[1]
    require(hidden.shape == state.shape == (samples, units), "hidden state and cell are not one of each unit")
    require(weights.shape == (len(GATES), units, depth), "the weights are not of the input's depth")
    require(recurrent.shape == (len(GATES), units, units), "the recurrent weights are not of the units")
    for bias in biases:
        require_dtype(bias, sums, "a bias")
        require(bias.shape == (len(GATES), units), "a bias is not one of each gate and unit")
    return ir.TensorType((samples, steps, units), data), ir.TensorType((samples, units), cell)


@dataclass(frozen=True, slots=True)
class TflLstm(ir.Operation):
    """x f32 [N,T,I], hidden and cell f32 [N,C], weights f32 [4,C,I], [4,C,C], bias f32 [4,C] -> y f32 [N,T,C], cell.

    Attributes:
        cell_clip: The greatest magnitude of the cell; 0 for none.
    """

    name: ClassVar[str] = "tfl_lstm"
    operand_names: ClassVar[tuple[str, ...]] = _FLOAT_OPERANDS
    cell_clip: float = 0.0

    def infer(self, inputs: tuple[ir.TensorType, ...]) -> tuple[ir.TensorType, ...]:
        """Y and the cell."""
        require_count(inputs, len(_FLOAT_OPERANDS))
        return _inferred(inputs, ir.DType.F32, ir.DType.F32, ir.DType.F32, (ir.DType.F32,))

    def num_macs(self, inputs: tuple[ir.TensorType, ...], results: tuple[ir.TensorType, ...]) -> int:
        """Those of all steps."""
        return _num_macs(inputs, results)

    def evaluate(self, inputs: tuple[ir.Array, ...]) -> tuple[ir.Array, ...]:
        """In float64, rounded once a step."""
        source, hidden, cell, weights, recurrent, bias = (operand.astype(np.float64) for operand in inputs)
        results: list[ir.Array] = []
        for step in range(source.shape[1]):
            gates = bias[:, None] + source[:, step] @ weights.swapaxes(1, 2) + _recurrent(hidden, recurrent)
            result, cell = _stepped(gates, cell, self.cell_clip)
            results.append(result)
            hidden = result.astype(np.float64)
        return np.stack(results, axis=1), cell.astype(np.float32)


def _stepped(gates: NDArray[Any], cell: NDArray[Any], clip: float) -> tuple[ir.Array, ir.Array]:
    """Results of a step, f32, and the cell, f64, which has been rounded to float32."""
    opened = 1.0 / (1.0 + np.exp(-gates))
    cell = opened[FORGET] * cell + opened[INPUT] * np.tanh(gates[CELL])
    cell = np.clip(cell, -clip, clip) if clip else cell
    cell = cell.astype(np.float32).astype(np.float64)
    return (opened[OUTPUT] * np.tanh(cell)).astype(np.float32), cell


@dataclass(frozen=True, slots=True)
class TflHybridLstm(ir.Operation):
    """gates f32 [N,T,4C], hidden and cell f32 [N,C], recurrent i8 [4,C,C], scales f32 [4] -> y f32 [N,T,C], cell.

    The gates hold their sums over the input, and the bias. The hidden state is quantised at each step, a sample by its
    own range, and what it adds is of integers: f32(sum * f32(its scale * the gate's)).

    Attributes:
        is_symmetric: Whether the zero point of the hidden state is 0; else it follows from the range.
        cell_clip: The greatest magnitude of the cell; 0 for none.
    """

    name: ClassVar[str] = "tfl_hybrid_lstm"
    operand_names: ClassVar[tuple[str, ...]] = _HYBRID_OPERANDS
    is_symmetric: bool
    cell_clip: float = 0.0

    def infer(self, inputs: tuple[ir.TensorType, ...]) -> tuple[ir.TensorType, ...]:
        """Y and the cell."""
        require_count(inputs, len(_HYBRID_OPERANDS))
        types = (ir.DType.F32, ir.DType.F32, ir.DType.F32, ir.DType.I8, ir.DType.F32)
        for operand, dtype, role in zip(inputs, types, _HYBRID_OPERANDS, strict=True):
            require_dtype(operand, (dtype,), f"the operand {role}")
        gates, hidden, cell, recurrent, scales = inputs
        require(len(gates.shape) == 3, f"the gates have {len(gates.shape)} axes, not 3")
        samples, steps, sums = gates.shape
        require(
            len(hidden.shape) == 2 and hidden.shape[0] == samples, "the hidden state is not one of each unit"
        )
        units = hidden.shape[1]
        require(hidden.shape == cell.shape, "hidden state and cell are not one of each unit")
        require(recurrent.shape == (len(GATES), units, units), "the recurrent weights are not of the units")
        require(
            sums == recurrent.num_elements // recurrent.fixed_shape[2], "the gates are not those of the units"
        )
        require(scales.shape == (len(GATES),), "there is no scale of each gate")
        return ir.TensorType((samples, steps, units), ir.DType.F32), ir.TensorType(cell.shape, ir.DType.F32)

    def evaluate(self, inputs: tuple[ir.Array, ...]) -> tuple[ir.Array, ...]:
        """The sums exact, the rest in float64, rounded once a step."""
        given, hidden, cell, _, scales = (operand.astype(np.float32) for operand in inputs)
        recurrent = inputs[3].astype(np.int64)
        by_gate = given.reshape(*given.shape[:2], len(GATES), -1).transpose(1, 2, 0, 3)
        results: list[ir.Array] = []
        for gates in by_gate:
            steps, scale = quantize_rows(hidden, is_symmetric=self.is_symmetric)
            added = _recurrent(steps, recurrent).astype(np.float32)
            added *= scale * scales[:, np.newaxis, np.newaxis]
            result, cell = _stepped(
                (gates + added).astype(np.float64), cell.astype(np.float64), self.cell_clip
            )
            results.append(result)
            hidden = result.astype(np.float32)
        return np.stack(results, axis=1), cell.astype(np.float32)


@dataclass(frozen=True, slots=True)
class TflQuantizedLstm(ir.Operation):
    """x i8 [N,T,I], hidden i8 and cell i16 [N,C], weights i8, biases i32 [4,C] -> y i8 [N,T,C], cell i16 [N,C].

    Or x, hidden and y i16, and biases i64 where 32 bits do not hold them. Biases hold what zero points add to the sums.
    Sums become Q3.12, gates Q0.15, the cell is in units of 2^cell_exponent. All of it is in docs/numerics.md.

    Attributes:
        input_multipliers, recurrent_multipliers: From the sums of each gate to Q3.12; of i16 they have 16 bits, and
            round once.
        hidden_multiplier: From a product of two numbers in Q0.15 to y.
        hidden_zero_point: Of y.
        cell_exponent: At least -15, at most -9.
        cell_clip: The greatest magnitude of the cell; 0 for none.
        is_by_table: Whether gates are read from a table, with lines between its entries, both their sums saturate at 16
            bits, and what is added to the cell is rounded twice, as TensorFlow Lite Micro does it; of i16 always.
    """

    name: ClassVar[str] = "tfl_quantized_lstm"
    operand_names: ClassVar[tuple[str, ...]] = _INTEGER_OPERANDS
    input_multipliers: tuple[Multiplier, ...]
    recurrent_multipliers: tuple[Multiplier, ...]
    hidden_multiplier: Multiplier
    hidden_zero_point: int
    cell_exponent: int
    cell_clip: int = 0
    is_by_table: bool = False

    @property
    def cell_bits(self) -> int:
        """Integer bits of the cell."""
        return 15 + self.cell_exponent

    @property
    def product_shift(self) -> int:
        """From a product of two numbers in Q0.15 to the cell."""
        return 30 + self.cell_exponent

    def infer(self, inputs: tuple[ir.TensorType, ...]) -> tuple[ir.TensorType, ...]:
        """Y and the cell."""
        require_count(inputs, len(_INTEGER_OPERANDS))
        multipliers = (self.input_multipliers, self.recurrent_multipliers)
        require(all(len(each) == len(GATES) for each in multipliers), "there is no multiplier of each gate")
        require(0 <= self.cell_bits <= 6, f"a cell in units of 2^{self.cell_exponent}")
        require(0 <= self.cell_clip <= fixedpoint16.HIGH, f"the cell's clip {self.cell_clip}")
        data = ir.DType.I16 if inputs[0].dtype is ir.DType.I16 else ir.DType.I8
        require(self.is_by_table or data is ir.DType.I8, "gates of an i16 input come from a table")
        return _inferred(inputs, data, ir.DType.I8, ir.DType.I16, WIDE)

    def num_macs(self, inputs: tuple[ir.TensorType, ...], results: tuple[ir.TensorType, ...]) -> int:
        """Those of all steps."""
        return _num_macs(inputs, results)

    def evaluate(self, inputs: tuple[ir.Array, ...]) -> tuple[ir.Array, ...]:
        """Exact."""
        source, hidden, cell, weights, recurrent, bias, recurrent_bias = (
            operand.astype(np.int64) for operand in inputs
        )
        data = inputs[0].dtype
        bounds = (ir.DType.I8 if data == np.int8 else ir.DType.I16).bounds
        results: list[ir.Array] = []
        for step in range(source.shape[1]):
            sums = bias[:, None] + source[:, step] @ weights.swapaxes(1, 2)
            gates = fixedpoint16.saturate(_scaled(sums, self.input_multipliers, data))
            sums = recurrent_bias[:, None] + _recurrent(hidden, recurrent)
            added = _scaled(sums, self.recurrent_multipliers, data)
            added = fixedpoint16.saturate(added) if self.is_by_table else added
            gates = fixedpoint16.saturate(gates + added)
            opened = self._logistic(gates)
            candidate = self._tanh(gates[CELL], fixedpoint16.GATE_BITS)
            kept = self._divided(opened[FORGET] * cell, 15)
            cell = fixedpoint16.saturate(kept + self._divided(opened[INPUT] * candidate, self.product_shift))
            if self.cell_clip:
                cell = np.clip(cell, -self.cell_clip, self.cell_clip)
            product = opened[OUTPUT] * self._tanh(cell, self.cell_bits)
            hidden = double_round_by(product, self.hidden_multiplier) + self.hidden_zero_point
            hidden = np.clip(hidden, *bounds)
            results.append(hidden.astype(data))
        return np.stack(results, axis=1), cell.astype(np.int16)

    def _logistic(self, gates: Int64) -> Int64:
        if self.is_by_table:
            return sigmoid_int16(gates, *sigmoid_scale(fixedpoint16.GATE_BITS), is_tanh=False)
        return fixedpoint16.logistic(gates)

    def _tanh(self, values: Int64, integer_bits: int) -> Int64:
        if self.is_by_table:
            return sigmoid_int16(values, *sigmoid_scale(integer_bits), is_tanh=True)
        return fixedpoint16.tanh(values, integer_bits)

    def _divided(self, product: Int64, shift: int) -> Int64:
        """By 2^shift."""
        if self.is_by_table:
            return double_round_by(product, power_of_two(-shift))
        return rounding_shift_right(product, shift)


def power_of_two(exponent: int) -> Multiplier:
    """The factor 2^exponent."""
    return Multiplier(1 << 30, exponent + 1)


def _recurrent(hidden: NDArray[Any], weights: NDArray[Any]) -> NDArray[Any]:
    """The sums of each gate over the hidden state."""
    return hidden @ weights.swapaxes(1, 2)


def _scaled(sums: Int64, multipliers: tuple[Multiplier, ...], data: np.dtype[Any]) -> Int64:
    """The sums of each gate, by its own multiplier."""
    scaled = double_round_by if data == np.int8 else _rounded_once
    return np.stack([scaled(own, each) for own, each in zip(sums, multipliers, strict=True)])


def _rounded_once(values: Int64, multiplier: Multiplier) -> Int64:
    return single_round(values, multiplier.multiplier, 31 - multiplier.exponent)


OPERATIONS = (TflHybridLstm, TflLstm, TflQuantizedLstm)
