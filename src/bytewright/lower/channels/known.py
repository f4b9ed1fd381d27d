"""Which channels of which values are constant, whatever the model is given: found by one walk through a function.

A channel whose weights are all zero is its bias, and every operator of one channel makes a constant of a constant: what
it makes is computed by its numpy reference. In the padding of a convolution stands its zero point, so a constant input
gives a constant only if it is that, or if no window reaches the padding.

Of floats, the product of a weight of zero and a value that is not known is not known: the value may be infinite. A
known zero adds nothing to any sum, if the weight is finite. Arithmetic beyond that is left alone.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bytewright import ir
from bytewright.lower.channels.links import Links
from bytewright.lower.channels.weighted import Weighted
from bytewright.lower.elements import ELEMENTS
from bytewright.ops.convolution import Conv2d, DepthwiseConv2d
from bytewright.ops.data import Concat, Gather, Identity, Pad, Reshape, Slice, Tile, Transpose
from bytewright.ops.elementwise import Clamp
from bytewright.ops.placement import DeviceCopy
from bytewright.ops.pooling import MaxPool2d, ReduceMax, ReduceMin, ReduceSum, TflAveragePool2d, TflMean
from bytewright.ops.quantization import TflDequantize, TflQuantize
from bytewright.ops.resize import TflResizeBilinear, TflResizeNearest

Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of the channels of a value.

    Attributes:
        is_constant: For each channel.
        values: For each channel its one value; of one that is not constant, anything.
    """

    is_constant: Mask
    values: ir.Array


@dataclass(frozen=True, slots=True)
class _At:
    """An operator, with what is known of its operands.

    Attributes:
        operands: None for one of which nothing is known.
        constants: Those that are constants of the graph, as arrays.
        types: Of the operands.
        result: The type of its one result.
        weighted: What it does as a convolution, if it is one.
    """

    node: ir.Node
    operands: tuple[Known | None, ...]
    constants: tuple[ir.Array | None, ...]
    types: tuple[ir.TensorType, ...]
    result: ir.TensorType
    links: Links
    weighted: Weighted | None


def known_channels(
    function: ir.Function,
    constants: Mapping[str, ir.Array],
    types: Mapping[str, ir.TensorType],
    links: Mapping[int, Links],
    weighteds: Mapping[int, Weighted],
) -> dict[str, Known]:
    """What is known, by the names of values and constants; nothing of those that are left out.

    Args:
        function: Its parameters are not known.
        constants: Of the module, by name.
        types: Of everything that the function names.
        links: Of the nodes that may be looked at, by position.
        weighteds: Those of them that are convolutions.
    """
    found: dict[str, Known] = {}

    def of(name: str) -> Known | None:
        if name not in found and name in constants and constants[name].size:
            found[name] = _of_constant(constants[name])
        return found.get(name)

    for position, node in enumerate(function.nodes):
        rule = _RULES.get(type(node.operation))
        if rule is None or position not in links:
            continue
        weighted = weighteds.get(position)
        operands = (of(node.inputs[0]),) if weighted else tuple(map(of, node.inputs))
        is_source = weighted is not None or isinstance(node.operation, Pad)
        if not is_source and all(known is None for known in operands):
            continue
        at = _At(
            node,
            operands,
            tuple(map(constants.get, node.inputs)),
            tuple(types[name] for name in node.inputs),
            node.outputs[0].type,
            links[position],
            weighted,
        )
        known = rule(at)
        if known is not None and known.is_constant.any():
            found[node.outputs[0].name] = known
    return found


def nothing_known(type_: ir.TensorType) -> Known:
    """Of a value of this type."""
    count = type_.fixed_shape[-1]
    return Known(np.zeros(count, bool), np.zeros(count, type_.dtype.numpy))


def _of_constant(array: ir.Array) -> Known:
    rows = array.reshape(-1, array.shape[-1] if array.shape else 1)
    return Known((rows == rows[0]).all(axis=0), rows[0])


def _convolved(at: _At) -> Known | None:
    """A sum is constant where every product is: of a weight of zero, or of a constant."""
    weighted = at.weighted
    if weighted is None:
        return None
    input_ = at.operands[0] or nothing_known(at.types[0])
    staying = weighted.unknown(input_.is_constant, input_.values)
    is_constant = weighted.constant_sums(staying)
    if weighted.is_float:
        return Known(is_constant, np.add(weighted.bias, np.float32(0)))
    total = np.add(weighted.bias, weighted.added(~staying, input_.values))
    return Known(is_constant, total.astype(np.int32))


def _elementwise(at: _At) -> Known | None:
    """By the numpy reference, on the channels that are constant in every operand."""
    count = at.result.fixed_shape[-1]
    num_operands = ELEMENTS[type(at.node.operation)].num_operands
    is_float = any(type_.dtype is ir.DType.F32 for type_ in at.types)
    if is_float and not isinstance(at.node.operation, Clamp | TflDequantize | TflQuantize):
        return None
    own = at.operands[:num_operands]
    if any(known is None for known in own):
        return None
    each = [known for known in own if known is not None]
    is_constant = np.logical_and.reduce([np.broadcast_to(known.is_constant, count) for known in each])
    operands = [np.broadcast_to(known.values, count) for known in each]
    others = at.constants[num_operands:]
    if any(other is None for other in others):
        return None
    values = np.zeros(count, at.result.dtype.numpy)
    chosen = np.flatnonzero(is_constant)
    try:
        values[chosen] = _evaluated(at.node.operation, operands, others, chosen)
    except OverflowError:  # a channel that no run can have; what is known of the others is found one by one
        is_constant = is_constant.copy()
        for channel in chosen:
            try:
                values[[channel]] = _evaluated(at.node.operation, operands, others, np.array([channel]))
            except OverflowError:
                is_constant[channel] = False
    return Known(is_constant, values)


def _evaluated(
    operation: ir.Operation,
    operands: list[ir.Array],
    others: tuple[ir.Array | None, ...],
    channels: NDArray[np.intp],
) -> ir.Array:
    """The operator on some channels; what it has for each channel beside its operands is cut to these."""
    count = operands[0].size
    by_channel = not isinstance(operation, _BY_VALUE)
    parts = [
        array[channels] if by_channel and array.shape == (count,) else array
        for array in others
        if array is not None
    ]
    return operation.evaluate((*(operand[channels] for operand in operands), *parts))[0]


def _moved(at: _At) -> Known | None:
    """Through the links: a channel of the result is constant if all that it is made of is, and the same."""
    count = at.result.fixed_shape[-1]
    is_constant = np.ones(count, bool)
    values = np.zeros(count, at.result.dtype.numpy)
    is_seen = np.zeros(count, bool)
    for link in at.links:
        known = at.operands[link.operand]
        if known is None:
            is_constant[link.given] = False
            is_seen[link.given] = True
            continue
        given, taken = link.given, link.taken
        first = given[~is_seen[given]]
        values[first] = known.values[taken[~is_seen[given]]]
        is_seen[given] = True
        np.logical_and.at(
            is_constant, given, known.is_constant[taken] & (known.values[taken] == values[given])
        )
    return Known(is_constant & is_seen, values)


def _padded(at: _At) -> Known | None:
    """What is put around other axes than the channels must be the constant; channels that are added are constant."""
    operation = at.node.operation
    if not isinstance(operation, Pad):
        return None
    count = at.result.fixed_shape[-1]
    values = np.full(count, operation.value, at.result.dtype.numpy)
    is_constant = np.ones(count, bool)
    (link,) = at.links
    known = at.operands[0]
    if known is None:
        is_constant[link.given] = False
        return Known(is_constant, values)
    fits = known.is_constant
    if any((*operation.before[:-1], *operation.after[:-1])):
        fits = fits & (known.values == values[0])
    is_constant[link.given] = fits
    values[link.given] = known.values
    return Known(is_constant, values)


def _pooled(at: _At) -> Known | None:
    """What a window of equal values gives, or a mean of some; of floats, a mean or sum of zeros."""
    known = at.operands[0]
    if known is None:
        return None
    operation = at.node.operation
    if at.result.dtype is ir.DType.F32 and not isinstance(operation, MaxPool2d | ReduceMax | ReduceMin):
        return Known(known.is_constant & (known.values == 0), known.values)
    if not isinstance(operation, TflMean | ReduceSum):
        return known
    axes = operation.axes
    if not all(isinstance(at.types[0].shape[axis], int) for axis in axes):
        return None  # the same elements in another number may be another result
    chosen = np.flatnonzero(known.is_constant)
    extents = at.types[0].fixed_shape[:-1]
    whole = tuple(extent if axis in axes else 1 for axis, extent in enumerate(extents))
    (reduced,) = operation.evaluate((np.broadcast_to(known.values[chosen], (*whole, chosen.size)),))
    values = np.zeros(known.values.size, at.result.dtype.numpy)
    values[chosen] = reduced.reshape(-1)
    return Known(known.is_constant, values)


# What these read beside their operands is not one value for each channel.
_BY_VALUE = tuple(kind for kind in ELEMENTS if kind.name == "table")
_RULES: dict[type[ir.Operation], Callable[[Any], Known | None]] = {
    **dict.fromkeys(ELEMENTS, _elementwise),
    Concat: _moved,
    Conv2d: _convolved,
    DepthwiseConv2d: _convolved,
    DeviceCopy: _moved,
    Gather: _moved,
    Identity: _moved,
    MaxPool2d: _pooled,
    Pad: _padded,
    ReduceMax: _pooled,
    ReduceMin: _pooled,
    ReduceSum: _pooled,
    Reshape: _moved,
    Slice: _moved,
    TflAveragePool2d: _pooled,
    TflMean: _pooled,
    TflResizeBilinear: _pooled,
    TflResizeNearest: _moved,
    Tile: _moved,
    Transpose: _moved,
}
