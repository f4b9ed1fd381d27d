"""LSTM layers over a sequence, in one direction or both, whose hidden state and cell survive runs.

Both references keep them, of every layer. Of the cell that Keras has: four gates, no peepholes, no projection, no layer
normalisation.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bytewright import ir
from bytewright.frontends.tflite.accumulator import (
    MOST_OF_64_BITS,
    Reach,
    reduced_multiplier,
    require_reach,
)
from bytewright.frontends.tflite.conversion import Conversion
from bytewright.frontends.tflite.elementwise import emit_sum
from bytewright.frontends.tflite.graph_builder import Kept, Operand
from bytewright.frontends.tflite.hybrid import expanded, hybrid_product
from bytewright.frontends.tflite.model import TensorRecord
from bytewright.frontends.tflite.options import activation_name
from bytewright.frontends.tflite.shape import emit_joined, emit_slice
from bytewright.ops.arithmetic.fixedpoint16 import HIGH, LOW
from bytewright.ops.arithmetic.multiplier import (
    Affine,
    Multiplier,
    convolution_scale,
    quantize_multiplier,
    single,
    single_quotient,
)
from bytewright.ops.arithmetic.numerics import Numerics
from bytewright.ops.lstm import GATES, TflHybridLstm, TflLstm, TflQuantizedLstm


@dataclass(frozen=True, slots=True)
class _Slots:
    """Positions of the operands of one layer; of each kind the first.

    Attributes:
        side: What a layer of two is called.
        absent: By what operands would be: the first, and how many.
    """

    weights: int
    recurrent: int
    biases: int
    hidden: int
    cell: int
    absent: Mapping[str, tuple[int, int]]
    side: str = ""

    @property
    def constants(self) -> tuple[tuple[int, str], ...]:
        """What each gate has beside its bias."""
        return (self.weights, "weights"), (self.recurrent, "recurrent weights")


@dataclass(frozen=True, slots=True)
class _Options:
    """Where an operator's table has what both have."""

    is_time_major: bool
    zero_points: int


_COUNTS = (20, 24)
_ONE = _Slots(
    *(1, 5, 12, 18, 19),
    {"peepholes": (9, 3), "a projection": (16, 2), "layer normalisation": (20, 4)},
)
_FORWARD = _Slots(
    *(1, 5, 12, 35, 36),
    {"peepholes": (9, 3), "a projection": (16, 2), "an auxiliary input": (39, 1), "its weights": (40, 4)},
    "forward_",
)
_BACKWARD = _Slots(
    *(18, 22, 29, 37, 38),
    {"peepholes": (26, 3), "a projection": (33, 2), "its weights": (44, 4)},
    "backward_",
)
_EFFECTIVE_HIDDEN = 4  # among the intermediates
# What gates are before their activation is Q3.12, after it Q0.15.
_GATE_SCALE, _OPENED_SCALE = 2.0**-12, 2.0**-15


def convert_lstm(at: Conversion) -> None:
    """UNIDIRECTIONAL_SEQUENCE_LSTM; its last results are the hidden state of the next run."""
    at.require_counts(_COUNTS)
    _require_plain(at, _ONE)
    at.require(not at.options.boolean(5), "recurrent weights that are diagonals are not supported")
    options = _Options(at.options.boolean(3), 4)
    sequence = _by_sample(at, options)
    at.define(_by_step(at, options, _layer(at, _ONE, options, sequence)))


def convert_bidirectional_lstm(at: Conversion) -> None:
    """BIDIRECTIONAL_SEQUENCE_LSTM: a layer forwards, and one that reads the input from its end."""
    merges = at.options.boolean(3)
    at.require_counts((48,), outputs=1 if merges else 2)
    _require_plain(at, _FORWARD)
    _require_plain(at, _BACKWARD)
    options = _Options(at.options.integer(4, "B", 1) != 0, 5)
    sequence = _by_sample(at, options)
    forth = _layer(at, _FORWARD, options, sequence)
    back = _turned(at, _layer(at, _BACKWARD, options, _turned(at, sequence)))
    units = [at.type_of(side).fixed_shape[2] for side in (forth, back)]
    at.require(units[0] == units[1], f"{units[0]} units forwards and {units[1]} backwards")
    results = [emit_joined(at, 2, [forth, back], "joined")] if merges else [forth, back]
    for position, result in enumerate(results):
        at.define(_by_step(at, options, result), position)


def _require_plain(at: Conversion, slots: _Slots) -> None:
    """The cell that Keras has."""
    for what, (first, count) in slots.absent.items():
        present = any(at.is_present(position) for position in range(first, first + count))
        at.require(not present, f"{what} of an LSTM cell are not supported")
    at.require(at.is_present(slots.weights), "an LSTM cell without an input gate is not supported")
    activation = activation_name(at, 0)
    at.require(activation == "TANH", f"the activation is {activation}, not TANH")
    at.require(at.options.real(2) == 0, "a clip of a projection that is not there")


def _by_sample(at: Conversion, options: _Options) -> str:
    """The input [N,T,I]."""
    source = at.activation_operand(0, "input")
    at.require(len(source.shape) == 3, f"the input has {len(source.shape)} axes, not 3")
    sequence = at.value_of(source)
    return at.transpose(sequence, (1, 0, 2), "by_sample") if options.is_time_major else sequence


def _by_step(at: Conversion, options: _Options, results: str) -> str:
    return at.transpose(results, (1, 0, 2), "by_step") if options.is_time_major else results


def _turned(at: Conversion, sequence: str) -> str:
    """The steps from the last to the first."""
    shape = at.type_of(sequence).fixed_shape
    return emit_slice(at, sequence, (0, shape[1] - 1, 0), shape, (1, -1, 1), ((1, 1),))


def _layer(at: Conversion, slots: _Slots, options: _Options, sequence: str) -> str:
    """Results [N,T,C] of a sequence [N,T,I]."""
    samples, steps, _ = at.type_of(sequence).fixed_shape
    units = at.operand(slots.weights, "input gate's weights").shape[0]
    hidden, cell = (
        _state(at, position, f"{slots.side}{what}", (samples, units))
        for position, what in ((slots.hidden, "hidden"), (slots.cell, "cell"))
    )
    if at.type_of(sequence).dtype is ir.DType.F32:
        results, changed = _float_layer(at, slots, options, sequence, (hidden.current, cell.current))
    else:
        results, changed = _quantized_layer(at, slots, sequence, hidden, cell)
    last = at.slice(results, (0, steps - 1, 0), (samples, 1, units), "last")
    at.keep(hidden, at.reshape(last, (samples, units), "hidden"))
    at.keep(cell, changed)
    return results


def _state(at: Conversion, position: int, what: str, shape: tuple[int, ...]) -> Kept:
    """The hidden state or the cell: a variable of the file."""
    tensor = at.graph.model.tensors[at.operator.inputs[position]]
    stated = what.replace("_", " ")
    at.require(tensor.is_variable, f"the {stated} state is no variable")
    at.require(tensor.shape == shape, f"the {stated} state is {list(tensor.shape)}, not {list(shape)}")
    dtype = {"FLOAT32": ir.DType.F32, "INT8": ir.DType.I8, "INT16": ir.DType.I16}.get(tensor.element_type)
    if dtype is None:
        at.fail(f"the {stated} state is {tensor.element_type}", code="BW105", tensor=tensor)
    zero_point = tensor.quantization.zero_points[0] if dtype is ir.DType.I8 else 0
    initial = ir.TensorData.from_array(np.full(shape, zero_point, dtype.numpy), dtype)
    name = f"lstm_{at.operator.index}_{what}"
    return at.graph.keep(tensor.index, name, tensor, ir.TensorType(shape, dtype), initial)


def _gates(at: Conversion, first: int, role: str) -> tuple[list[Operand], NDArray[np.generic]]:
    """The constants of the four gates, and all of them as one."""
    found = [
        at.constant_operand(first + number, f"{name} gate's {role}") for number, name in enumerate(GATES)
    ]
    operands = [operand for operand, _ in found]
    at.require(len({operand.shape for operand in operands}) == 1, f"the gates' {role} have different shapes")
    at.require(len({operand.dtype for operand in operands}) == 1, f"the gates' {role} have different types")
    return operands, np.stack([array for _, array in found])


def _float_layer(
    at: Conversion, slots: _Slots, options: _Options, sequence: str, state: tuple[str, str]
) -> tuple[str, str]:
    """Results and cell of a layer of floats; of integer weights, by LiteRT's hybrid kernel."""
    pairs = [_expanded_gates(at, *_gates(at, first, role)) for first, role in slots.constants]
    biases, bias = _gates(at, slots.biases, "bias")
    at.require(biases[0].is_float, f"the bias are {biases[0].tensor.element_type} under floats")
    kinds = {operands[0].dtype for operands, _ in pairs}
    at.require(len(kinds) == 1, "weights and recurrent weights are of two types")
    clip = single(at.options.real(1))
    if kinds == {ir.DType.F32}:
        names = ("weights", "recurrent_weights", "bias")
        values = (pairs[0][1], pairs[1][1], bias)
        constants = [at.constant(*each, ir.DType.F32) for each in zip(names, values, strict=True)]
        return _emitted(at, TflLstm(clip), (sequence, *state, *constants))
    at.require(kinds == {ir.DType.I8}, f"the weights are {pairs[0][0][0].tensor.element_type} under floats")
    (over_input, over_hidden), units = pairs, bias.shape[1]
    scales = [_scales(at, operands) for operands, _ in pairs]
    matrix = over_input[1].reshape(bias.size, -1)
    product = hybrid_product(at, sequence, matrix, np.repeat(scales[0], units).tolist(), options.zero_points)
    sums = emit_sum(at, product, at.constant("bias", bias.reshape(-1), ir.DType.F32))
    shape = (*at.type_of(sequence).fixed_shape[:2], bias.size)
    operands = (
        at.reshape(sums, shape, "gates"),
        *state,
        at.constant("recurrent_weights", over_hidden[1], ir.DType.I8),
        at.constant("recurrent_scales", np.array(scales[1], np.float32), ir.DType.F32),
    )
    return _emitted(at, TflHybridLstm(not at.options.boolean(options.zero_points), clip), operands)


def _expanded_gates(
    at: Conversion, operands: list[Operand], values: NDArray[Any]
) -> tuple[list[Operand], NDArray[Any]]:
    """In floats, where that is asked for."""
    pairs = [expanded(at, *each) for each in zip(operands, values, strict=True)]
    return [operand for operand, _ in pairs], np.stack([array for _, array in pairs])


def _scales(at: Conversion, gates: Sequence[Operand]) -> list[float]:
    """One of each gate."""
    return [at.weight_scales(operand.tensor, 1, 0)[0] for operand in gates]


def _quantized_layer(
    at: Conversion, slots: _Slots, sequence: str, hidden: Kept, cell: Kept
) -> tuple[str, str]:
    """Results and cell of a layer in int8 or int16."""
    tensors, source = at.graph.model.tensors, at.operand(0, "input")
    state, cell_tensor = (tensors[at.operator.inputs[position]] for position in (slots.hidden, slots.cell))
    at.require(hidden.parameter.type.dtype is source.dtype, f"the hidden state is {state.element_type}")
    at.require(cell.parameter.type.dtype is ir.DType.I16, f"the cell is {cell_tensor.element_type}")
    given, before = at.affine(source.tensor), at.affine(state)
    multipliers: list[list[Multiplier]] = []
    constants: list[str] = []
    biases: list[NDArray[np.int64]] = []
    weights: list[NDArray[np.generic]] = []
    for (first, role), affine in zip(slots.constants, (given, before), strict=True):
        operands, values = _gates(at, first, role)
        at.require(operands[0].dtype is ir.DType.I8, f"the {role} are {operands[0].tensor.element_type}")
        multipliers.append(_multipliers(at, operands, affine))
        weights.append(values)
        biases.append(-affine.zero_point * values.astype(np.int64).sum(axis=2))
        constants.append(at.constant(role.replace(" ", "_"), values, ir.DType.I8))
    operands, values = _gates(at, slots.biases, "bias")
    is_wide = source.dtype is ir.DType.I16
    bias_type = ir.DType.I64 if is_wide else ir.DType.I32
    at.require(operands[0].dtype is bias_type, f"the bias is {operands[0].tensor.element_type}")
    biases[0] = biases[0] + values.astype(np.int64)
    for name, bias in zip(("bias", "recurrent_bias"), biases, strict=True):
        is_short = bool((np.abs(bias) < 2**31).all())
        at.require(is_short or is_wide, "a bias with what zero points add leaves 32 bits")
        constants.append(at.constant(name, bias, ir.DType.I32 if is_short else bias_type))
    over_input, over_hidden = (
        tuple(_reduced(at, own, values, bias, given.bounds)) if is_wide else tuple(own)
        for own, values, bias in zip(multipliers, weights, biases, strict=True)
    )
    after, hidden_factor = _hidden_scale(at, before)
    exponent, clip = _cell_form(at, cell_tensor)
    operation = TflQuantizedLstm(
        over_input,
        over_hidden,
        hidden_factor,
        after.zero_point,
        exponent,
        clip,
        is_by_table=at.numerics is Numerics.TFLM,
    )
    return _emitted(at, operation, (sequence, hidden.current, cell.current, *constants))


def _emitted(at: Conversion, operation: ir.Operation, operands: tuple[str, ...]) -> tuple[str, str]:
    results, cell = at.emit_all(operation, operands, ("results", "cell"))
    return results, cell


def _multipliers(at: Conversion, gates: Sequence[Operand], affine: Affine) -> list[Multiplier]:
    """From the sums of each gate to Q3.12: the product of scales is one of float32 in LiteRT."""
    found: list[Multiplier] = []
    for scale in _scales(at, gates):
        factor = convolution_scale(affine.scale, scale, _GATE_SCALE)
        factor = factor if at.numerics is Numerics.TFLM else single(factor)
        found.append(quantize_multiplier(factor))
    return found


def _reduced(
    at: Conversion,
    multipliers: Sequence[Multiplier],
    weights: NDArray[np.generic],
    biases: NDArray[np.int64],
    bounds: tuple[int, int],
) -> list[Multiplier]:
    """Those of 16 bits, of sums that the reference keeps in 64."""
    found: list[Multiplier] = []
    for multiplier, own, bias in zip(multipliers, weights, biases, strict=True):
        most = np.abs(own.astype(np.int64)).sum(axis=1) * -bounds[0] + np.abs(bias)
        reach = Reach(most, most)
        require_reach(at, reach, MOST_OF_64_BITS)
        found.append(reduced_multiplier(at, multiplier, int(most.max())))
    return found


def _hidden_scale(at: Conversion, state: Affine) -> tuple[Affine, Multiplier]:
    """How results are quantised, and the factor from a product of two gates to them.

    For LiteRT an intermediate says it, for TensorFlow Lite Micro the state, and for neither the tensor of the results.
    """
    if at.numerics is Numerics.TFLM:
        return state, quantize_multiplier(_OPENED_SCALE * _OPENED_SCALE / single(state.scale))
    after = _intermediate(at)
    return after, quantize_multiplier(single_quotient(_OPENED_SCALE * _OPENED_SCALE, after.scale))


def _intermediate(at: Conversion) -> Affine:
    """What the intermediate says."""
    intermediates = at.operator.intermediates
    at.require(len(intermediates) > _EFFECTIVE_HIDDEN, "the scale of the hidden state is missing")
    return at.affine(at.graph.model.tensors[intermediates[_EFFECTIVE_HIDDEN]])


def _cell_form(at: Conversion, cell: TensorRecord) -> tuple[int, int]:
    """The exponent of the cell's scale, which must be a power of two, and its clip."""
    record = cell.quantization
    at.require(len(record.scales) == 1 and record.scales[0] > 0, "the cell has no scale")
    at.require(record.zero_points[0] == 0, "the cell has a zero point that is not 0")
    significand, exponent = math.frexp(record.scales[0])
    at.require(significand == 0.5, f"the cell's scale {record.scales[0]} is no power of two")
    clip = single(at.options.real(1))
    most = int(min(max(single_quotient(clip, record.scales[0]), LOW), HIGH)) if clip > 0 else 0
    return exponent - 1, most
