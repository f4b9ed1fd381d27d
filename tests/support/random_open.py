"""Random networks along an axis of rows, of several types each: row by row, or by windows that slide over rows.

The first are for runs that are given their number of rows, the others for runs that are given new rows alone.
"""

from __future__ import annotations

from support.random_layers import (
    after,
    choice,
    greatest,
    has_low_scales,
    has_small_products,
    product_with_itself,
    reshaped,
    spectrum,
)
from support.random_mixed import (
    Mixed,
    begun,
    dequantize,
    drawn,
    may_be_dequantised,
    may_be_rounded,
    quantize,
    within_types,
)
from support.random_models import RandomModel
from support.random_networks import Network, NodeKind, Tensor

ROWS = 1
"""The axis that is open: inputs are samples, rows, and channels."""


def _dense(network: Mixed, source: Tensor) -> Tensor:
    """FULLY_CONNECTED of each row."""
    depth, channels = source.shape[-1], network.between(1, 12)
    shape = (*source.shape[:-1], channels)
    weights = network.weights((channels, depth))
    return network.weighted("FULLY_CONNECTED", source, weights, shape, channels, 0, keep_num_dims=True)


def _joined(network: Mixed, source: Tensor) -> Tensor:
    """CONCATENATION of channels."""
    peers = [t for t in network.peers() if t.shape[:-1] == source.shape[:-1] and t.affine == source.affine]
    operands = [source, *(network.one_of(peers) for _ in range(network.between(1, 2)))]
    result = network.tensor((*source.shape[:-1], sum(t.shape[-1] for t in operands)), source.affine)
    network.operator("CONCATENATION", [t.index for t in operands], [result], axis=-1)
    return result


def _part(network: Mixed, source: Tensor) -> Tensor:
    """STRIDED_SLICE of channels; of other axes all that there is."""
    first = network.below(source.shape[-1])
    count = network.between(1, source.shape[-1] - first)
    result = network.tensor((*source.shape[:-1], count), source.affine)
    places = ([0, 0, first], [0, 0, first + count], [1, 1, 1])
    operands = [source.index, *map(network.integers, places)]
    network.operator("STRIDED_SLICE", operands, [result], begin_mask=3, end_mask=3)
    return result


def _of_row(network: Mixed, source: Tensor) -> Tensor:
    """A reduction of the channels of each row."""
    kind = network.one_of(["MEAN", "REDUCE_MAX", "REDUCE_MIN"] if source.dtype != "int16" else ["MEAN"])
    result = network.tensor((*source.shape[:-1], 1), source.affine)
    network.operator(kind, [source.index, network.integers([-1])], [result], keep_dims=True)
    return result


def _window(network: Mixed, source: Tensor) -> Tensor | None:
    """CONV_2D or DEPTHWISE_CONV_2D over rows, without padding."""
    samples, rows, depth = source.shape
    size, step = network.between(1, 3), network.one_of([1, 1, 1, 2])
    if rows <= size:
        return None
    image, count = reshaped(network, source, (samples, 1, rows, depth)), (rows - size) // step + 1
    options = {"padding": "VALID", "stride_h": step, "stride_w": step}
    if network.chance(0.3):
        weights, channels, kind, axis = network.weights((1, 1, size, depth)), depth, "DEPTHWISE_CONV_2D", 3
        options["depth_multiplier"] = 1
    else:
        channels, kind, axis = network.between(1, 6), "CONV_2D", 0
        weights = network.weights((channels, 1, size, depth))
    shape = (samples, 1, count, channels)
    result = network.weighted(kind, image, weights, shape, channels, axis, **options)
    return reshaped(network, result, (samples, count, channels))


_NUMBERS = ("int8", "int16", "float32")
KINDS = (
    *(NodeKind(_dense, after(*_NUMBERS, rank=3, exact=True)),) * 4,
    *(NodeKind(make, after(*_NUMBERS, rank=3)) for make in (_joined, _part, _of_row)),
    *(within_types(NodeKind(make, after(*_NUMBERS))) for make in (Network.unary, Network.softmax)),
    *(within_types(NodeKind(Network.binary, after(*_NUMBERS))),) * 2,
    *(NodeKind(quantize, may_be_rounded),) * 3,
    *(NodeKind(dequantize, may_be_dequantised),) * 2,
    NodeKind(choice, has_low_scales),
    NodeKind(greatest, after(*_NUMBERS, exact=True)),
    NodeKind(spectrum, after("float32", least_rank=2, exact=True)),
)


def _rows_in_steps(network: Mixed, source: Tensor) -> Tensor:
    """STRIDED_SLICE of rows: some of them, in order or backwards, or the last one."""
    samples, rows, depth = source.shape
    step, first = network.one_of([(2, None), (3, None), (-1, None), (-2, None), (1, -1)])
    count = len(range(rows)[first::step])
    result = network.tensor((samples, count, depth), source.affine)
    operands = [source.index, *map(network.integers, ([0, first or 0, 0], [0, 0, 0], [1, step, 1]))]
    network.operator("STRIDED_SLICE", operands, [result], begin_mask=5 | (first is None) << 1, end_mask=7)
    return result


def _rows_twice(network: Mixed, source: Tensor) -> Tensor:
    """CONCATENATION of rows with those of a tensor like it."""
    samples, rows, depth = source.shape
    peers = [t for t in network.peers() if t.shape == source.shape and t.affine == source.affine]
    result = network.tensor((samples, 2 * rows, depth), source.affine)
    operands = [source.index, network.one_of([source, *peers]).index]
    network.operator("CONCATENATION", operands, [result], axis=1)
    return result


_ACROSS = (
    *(NodeKind(_rows_in_steps, after(*_NUMBERS, rank=3)),) * 4,
    *(NodeKind(_rows_twice, after(*_NUMBERS, rank=3)),) * 2,
    *(NodeKind(product_with_itself, has_small_products),) * 3,
    *(within_types(NodeKind(Network.softmax, after(*_NUMBERS))),) * 2,
)


def across_network(seed: int) -> RandomModel:
    """A network of one input, some operators of which go along rows."""
    network = begun(seed)
    first = network.input((1, network.between(4, 9), network.between(1, 12)))
    return drawn(network, first, (*KINDS, *_ACROSS), network.between(2, 7))


def open_network(seed: int) -> RandomModel:
    """A network of one input, most of which have rows that are computed each by itself."""
    network = begun(seed)
    first = network.input((1, network.between(2, 9), network.between(1, 12)))
    return drawn(network, first, KINDS, network.between(1, 7))


def sliding_network(seed: int) -> RandomModel:
    """A network of one input, most of which look at rows through windows."""
    network = begun(seed)
    first = network.input((1, network.between(6, 14), network.between(1, 8)))
    windows = (NodeKind(_window, after(*_NUMBERS, rank=3, exact=True)),) * 8
    return drawn(network, first, (*KINDS, *windows), network.between(2, 7))
