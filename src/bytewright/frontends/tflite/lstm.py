"""UNIDIRECTIONAL_SEQUENCE_LSTM in float32, int8 and int16, whose hidden state and cell survive runs.

Both references keep them, of every layer. Of the cell that Keras has: four gates, no peepholes, no projection, no layer
normalisation.
"""

import math
from collections.abc import Sequence

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
from bytewright.frontends.tflite.graph_builder import Kept, Operand
from bytewright.frontends.tflite.model import TensorRecord
from bytewright.frontends.tflite.options import activation_name
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
from bytewright.ops.lstm import GATES, TflLstm, TflQuantizedLstm

_WEIGHTS, _RECURRENT, _PEEPHOLES, _BIASES, _PROJECTION, _HIDDEN, _CELL, _NORMALISATION = (
    *(1, 5, 9, 12, 16, 18, 19, 20),
)
_COUNTS = (20, 24)
_UNSUPPORTED = {
    _PEEPHOLES: ("peepholes", 3),
    _PROJECTION: ("a projection", 2),
    _NORMALISATION: ("layer normalisation", 4),
}
_EFFECTIVE_HIDDEN = 4  # among the intermediates
# What gates are before their activation is Q3.12, after it Q0.15.
_GATE_SCALE, _OPENED_SCALE = 2.0**-12, 2.0**-15


def convert_lstm(at: Conversion) -> None:
    """The layer; its last results are the hidden state of the next run."""
    at.require_counts(_COUNTS)
    for first, (what, count) in _UNSUPPORTED.items():
        present = any(at.is_present(position) for position in range(first, first + count))
        at.require(not present, f"{what} of an LSTM cell are not supported")
    at.require(at.is_present(_WEIGHTS), "an LSTM cell without an input gate is not supported")
    activation = activation_name(at, 0)
    at.require(activation == "TANH", f"the activation is {activation}, not TANH")
    at.require(at.options.real(2) == 0, "a clip of a projection that is not there")
    at.require(not at.options.boolean(5), "recurrent weights that are diagonals are not supported")
    source = at.activation_operand(0, "input")
    at.require(len(source.shape) == 3, f"the input has {len(source.shape)} axes, not 3")
    is_time_major = at.options.boolean(3)
    samples = source.shape[1 if is_time_major else 0]
    sequence = at.value_of(source)
    if is_time_major:
        sequence = at.transpose(sequence, (1, 0, 2), "by_sample")
    units = at.operand(_WEIGHTS, "input gate's weights").shape[0]
    hidden, cell = (
        _state(at, position, what, (samples, units))
        for position, what in ((_HIDDEN, "hidden"), (_CELL, "cell"))
    )
    if source.is_float:
        results, changed = _float_layer(at, sequence, hidden, cell)
    else:
        results, changed = _quantized_layer(at, source, sequence, hidden, cell)
    steps = at.type_of(results).fixed_shape[1]
    last = at.slice(results, (0, steps - 1, 0), (samples, 1, units), "last")
    at.keep(hidden, at.reshape(last, (samples, units), "hidden"))
    at.keep(cell, changed)
    at.define(at.transpose(results, (1, 0, 2), "by_step") if is_time_major else results)


def _state(at: Conversion, position: int, what: str, shape: tuple[int, ...]) -> Kept:
    """The hidden state or the cell: a variable of the file."""
    tensor = at.graph.model.tensors[at.operator.inputs[position]]
    at.require(tensor.is_variable, f"the {what} state is no variable")
    at.require(tensor.shape == shape, f"the {what} state is {list(tensor.shape)}, not {list(shape)}")
    dtype = {"FLOAT32": ir.DType.F32, "INT8": ir.DType.I8, "INT16": ir.DType.I16}.get(tensor.element_type)
    if dtype is None:
        at.fail(f"the {what} state is {tensor.element_type}", code="BW105", tensor=tensor)
    zero_point = tensor.quantization.zero_points[0] if dtype is ir.DType.I8 else 0
    initial = ir.TensorData.from_array(np.full(shape, zero_point, dtype.numpy), dtype)
    stated = f"lstm_{at.operator.index}_{what}"
    return at.graph.keep(tensor.index, stated, tensor, ir.TensorType(shape, dtype), initial)


def _gates(at: Conversion, first: int, role: str) -> tuple[list[Operand], NDArray[np.generic]]:
    """The constants of the four gates, and all of them as one."""
    found = [
        at.constant_operand(first + number, f"{name} gate's {role}") for number, name in enumerate(GATES)
    ]
    operands = [operand for operand, _ in found]
    at.require(len({operand.shape for operand in operands}) == 1, f"the gates' {role} have different shapes")
    at.require(len({operand.dtype for operand in operands}) == 1, f"the gates' {role} have different types")
    return operands, np.stack([array for _, array in found])


def _float_layer(at: Conversion, sequence: str, hidden: Kept, cell: Kept) -> tuple[str, str]:
    """Results and cell of a layer in float32."""
    constants: list[str] = []
    for first, role in ((_WEIGHTS, "weights"), (_RECURRENT, "recurrent weights"), (_BIASES, "bias")):
        operands, values = _gates(at, first, role)
        at.require(operands[0].is_float, f"the {role} are {operands[0].tensor.element_type} under floats")
        constants.append(at.constant(role.replace(" ", "_"), values, ir.DType.F32))
    operation = TflLstm(single(at.options.real(1)))
    return _emitted(at, operation, (sequence, hidden.current, cell.current, *constants))


def _quantized_layer(
    at: Conversion, source: Operand, sequence: str, hidden: Kept, cell: Kept
) -> tuple[str, str]:
    """Results and cell of a layer in int8 or int16."""
    tensors = at.graph.model.tensors
    state, cell_tensor = (tensors[at.operator.inputs[position]] for position in (_HIDDEN, _CELL))
    at.require(hidden.parameter.type.dtype is source.dtype, f"the hidden state is {state.element_type}")
    at.require(cell.parameter.type.dtype is ir.DType.I16, f"the cell is {cell_tensor.element_type}")
    given, before = at.affine(source.tensor), at.affine(state)
    multipliers: list[list[Multiplier]] = []
    constants: list[str] = []
    biases: list[NDArray[np.int64]] = []
    weights: list[NDArray[np.generic]] = []
    for first, role, affine in (
        (_WEIGHTS, "weights", given),
        (_RECURRENT, "recurrent weights", before),
    ):
        operands, values = _gates(at, first, role)
        at.require(operands[0].dtype is ir.DType.I8, f"the {role} are {operands[0].tensor.element_type}")
        multipliers.append(_multipliers(at, operands, affine))
        weights.append(values)
        biases.append(-affine.zero_point * values.astype(np.int64).sum(axis=2))
        constants.append(at.constant(role.replace(" ", "_"), values, ir.DType.I8))
    operands, values = _gates(at, _BIASES, "bias")
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
    for operand in gates:
        (scale,) = at.weight_scales(operand.tensor, 1, 0)
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
