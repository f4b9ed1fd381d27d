"""Kinds of nodes of `random_mixed` with an operator that networks of one type do not have.

Recurrent layers, spectra, detections, convolutions of groups and of volumes, products of tensors, and choices.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from support.random_networks import Affine, Network, NodeKind, Tensor
from support.recurrent_models import LstmWriter
from tflite_writer import OPTIONAL, ModelBuilder

if TYPE_CHECKING:
    from support.random_mixed import Mixed

Array = NDArray[Any]
_FLOAT: Affine = (0.0, 0)
_OF_STEPS = 0.03  # four steps of values of 8 bits


# What several kinds need


def reshaped(network: Mixed, source: Tensor, shape: Sequence[int]) -> Tensor:
    if tuple(shape) == source.shape:
        return source
    result = network.tensor(shape, source.affine)
    network.operator("RESHAPE", [source.index, network.integers(shape)], [result], new_shape=list(shape))
    return result


def _first_of(network: Mixed, source: Tensor, begin: int, count: int) -> Tensor:
    """Elements of a flat tensor."""
    result = network.tensor((count,), source.affine)
    operands = [source.index, network.integers([begin]), network.integers([count])]
    network.operator("SLICE", operands, [result])
    return result


def _spread(network: Mixed, source: Tensor, products: float, *factors: float) -> Affine:
    """A quantisation for sums of so many products."""
    if not network.is_quantised:
        return source.affine
    reach = float(np.sqrt(products)) * network.one_of([70.0, 200.0])
    scale = source.affine[0] * prod(factors) * reach
    return float(np.float32(scale)), network.zero_point()


# Recurrent layers


@dataclass(frozen=True)
class _Tensors:
    """Tensors of a recurrent layer, added to a network."""

    builder: ModelBuilder

    def tensor(
        self,
        shape: tuple[int, ...],
        dtype: str,
        affine: Affine | None = None,
        values: Array | None = None,
        *,
        is_variable: bool = False,
    ) -> int:
        keywords: dict[str, Any] = {} if affine is None else {"scale": affine[0], "zero_point": affine[1]}
        return self.builder.tensor("lstm", shape, dtype, data=values, is_variable=is_variable, **keywords)


def _sequence(network: Mixed, source: Tensor) -> Tensor:
    """A tensor of samples, steps and elements."""
    first, *middle, last = source.shape if len(source.shape) > 1 else (1, *source.shape)
    return reshaped(network, source, (first, prod(middle), last))


def _float_form(network: Mixed) -> str:
    return network.one_of(["float32", "hybrid"]) if network.is_hybrid else "float32"


def _recurrent_form(network: Mixed) -> str:
    """A hidden state that is quantised at each step may come to lie at a tie, which a last bit moves by a step."""
    form = _float_form(network)
    if form == "hybrid":
        network.tolerance = _OF_STEPS
    return form


def _lstm(network: Mixed, source: Tensor) -> Tensor:
    """UNIDIRECTIONAL_SEQUENCE_LSTM of floats, of int8 weights under them, or of int8."""
    x, units = _sequence(network, source), network.between(1, 9)
    is_time_major = network.chance(0.3)
    samples, depth = x.shape[1 if is_time_major else 0], x.shape[2]
    form = "int8" if source.dtype == "int8" else _recurrent_form(network)
    at = LstmWriter(_Tensors(network.builder), network.generator, form)
    over_input, over_hidden, biases = at.constants(depth, units)
    hidden, cell = at.affine(0.004, 0.02), None if at.is_float else (2.0 ** network.between(-15, -9), 0)
    states = at.states(samples, units, hidden, cell)
    effective = at.affine(0.004, 0.02)
    result = network.tensor((*x.shape[:2], units), effective or _FLOAT)
    between = [at.writer.tensor((0,), "float32") for _ in range(4)]
    between += [at.writer.tensor((0,), "int8", effective)]
    none = [OPTIONAL] * 3
    operands = [
        x.index,
        *over_input,
        *over_hidden,
        *none,
        *biases,
        OPTIONAL,
        OPTIONAL,
        *states,
        *none,
        OPTIONAL,
    ]
    network.operator(
        "UNIDIRECTIONAL_SEQUENCE_LSTM",
        operands,
        [result],
        intermediates=() if at.is_float else between,
        activation="TANH",
        cell_clip=network.one_of([0.0, 0.75, 10.0]),
        time_major=is_time_major,
        asymmetric_quantize_inputs=network.chance(0.5),
    )
    return result


def _both_ways(network: Mixed, source: Tensor) -> Tensor:
    """BIDIRECTIONAL_SEQUENCE_LSTM."""
    x, units = _sequence(network, source), network.between(1, 7)
    is_time_major = network.chance(0.5)
    samples, depth = x.shape[1 if is_time_major else 0], x.shape[2]
    # LiteRT overwrites tensors of its own where it joins results of several samples that come first.
    merges = network.chance(0.5) and (is_time_major or samples == 1)
    at = LstmWriter(_Tensors(network.builder), network.generator, _recurrent_form(network))
    operands = [x.index]
    for _ in range(2):
        over_input, over_hidden, biases = at.constants(depth, units)
        operands += [*over_input, *over_hidden, *[OPTIONAL] * 3, *biases, OPTIONAL, OPTIONAL]
    operands += [*at.states(samples, units), *at.states(samples, units), *[OPTIONAL] * 9]
    widths = [2 * units] if merges else [units, units]
    results = [network.tensor((*x.shape[:2], width), _FLOAT) for width in widths]
    network.operator(
        "BIDIRECTIONAL_SEQUENCE_LSTM",
        operands,
        results,
        activation="TANH",
        cell_clip=network.one_of([0.0, 0.75]),
        merge_outputs=merges,
        time_major=is_time_major,
        asymmetric_quantize_inputs=network.chance(0.5),
    )
    return network.one_of(results)


def _svdf(network: Mixed, source: Tensor) -> Tensor:
    """SVDF of floats, or of int8 features and times under them."""
    depth = source.shape[-1]
    x = reshaped(network, source, (prod(source.shape[:-1]), depth))
    samples, units, rank, frames = (
        x.shape[0],
        network.between(1, 5),
        network.between(1, 3),
        network.between(1, 9),
    )
    filters, is_hybrid = units * rank, _float_form(network) == "hybrid"

    def weights(shape: tuple[int, int]) -> int:
        values = network.values(shape)
        if not is_hybrid:
            return network.builder.constant("weights", values)
        return network.builder.constant("weights", np.round(values * 8).astype(np.int8), scale=0.0625)

    features, time = weights((filters, depth)), weights((filters, frames))
    bias = network.builder.constant("bias", network.values((units,)))
    state = network.builder.tensor("state", (samples, filters * frames), "float32", is_variable=True)
    result = network.tensor((samples, units), _FLOAT)
    network.operator(
        "SVDF",
        [x.index, features, time, bias, state],
        [result],
        rank=rank,
        activation=network.one_of(["NONE", "RELU"]),
        asymmetric_quantize_inputs=network.chance(0.5),
    )
    return result


# Spectra and detections


def spectrum(network: Mixed, source: Tensor) -> Tensor:
    """RFFT2D of the last two axes, moved as complex numbers or not, and floats of it."""
    lengths = (network.one_of([1, 1, 2, 4]), network.one_of([4, 8, 16]))
    shape = [*source.shape[:-2], lengths[0], lengths[1] // 2 + 1]
    found = network.tensor(shape, _FLOAT, dtype="complex64")
    network.operator("RFFT2D", [source.index, network.integers(lengths)], [found])
    if network.chance(0.4):
        shape = [prod(shape[:-1]), shape[-1]]
        moved = network.tensor(shape, _FLOAT, dtype="complex64")
        network.operator("RESHAPE", [found.index, network.integers(shape)], [moved], new_shape=shape)
        found = moved
    network.dtype = "float32"
    results = [network.tensor(shape, _FLOAT) for _ in range(network.between(1, 2))]
    for result in results:
        network.operator(network.one_of(["COMPLEX_ABS", "REAL", "IMAG", "CAST"]), [found.index], [result])
    return results[-1]


def _suppression(network: Mixed, source: Tensor) -> Tensor:
    """NON_MAX_SUPPRESSION_V4 or V5 of boxes whose scores differ: LiteRT leaves the order of equal ones open."""
    count = min(12, prod(source.shape) // 4)
    flat = reshaped(network, source, (prod(source.shape),))
    boxes = reshaped(network, _first_of(network, flat, 0, 4 * count), (count, 4))
    order = network.generator.permutation(count).astype(np.float32) / count
    scores, kept = network.builder.constant("scores", order), network.between(1, count + 2)
    is_soft = network.chance(0.5)
    numbers = [network.one_of([0.0, 0.3, 0.5, 1.0]), network.one_of([-1.0, 0.1, 0.5])]
    numbers += [network.one_of([0.0, 0.4])] if is_soft else []
    given = [network.builder.constant("number", np.array(each, np.float32)) for each in numbers]
    most = network.builder.constant("most", np.array(kept, np.int32))
    places = network.tensor((kept,), _FLOAT, dtype="int32")
    likely = [network.tensor((kept,), _FLOAT)] if is_soft else []
    number = network.tensor((), _FLOAT, dtype="int32")
    kind = f"NON_MAX_SUPPRESSION_V{5 if is_soft else 4}"
    network.operator(kind, [boxes.index, scores, most, *given], [places, *likely, number])
    return network.one_of([places, *likely])


# Windows and products


def _of_groups(network: Mixed, source: Tensor) -> Tensor | None:
    """CONV_2D whose kernels see a part of the channels each."""
    batch, height, width, depth = source.shape
    divisors = [count for count in range(2, depth + 1) if depth % count == 0]
    if not divisors:
        return None
    groups = network.one_of(divisors)
    channels, size = groups * network.between(1, 3), network.between(1, 3)
    weights = network.weights((channels, size, size, depth // groups))
    shape = (batch, height, width, channels)
    return network.weighted("CONV_2D", source, weights, shape, channels, 0, padding="SAME")


def _volumes(network: Mixed, source: Tensor) -> Tensor:
    """CONV_3D, of samples as frames."""
    batch, height, width, depth = source.shape
    x = reshaped(network, source, (1, *source.shape))
    channels, kernel = network.between(1, 5), [network.between(1, 3) for _ in range(3)]
    weights = network.builder.constant("weights", network.values((*kernel, depth, channels)))
    bias = network.builder.constant("bias", network.values((channels,)))
    result = network.tensor((1, batch, height, width, channels), _FLOAT)
    activation = network.one_of(["NONE", "RELU"])
    network.operator("CONV_3D", [x.index, weights, bias], [result], padding="SAME", activation=activation)
    return reshaped(network, result, result.shape[1:])


def _transposed(network: Mixed, source: Tensor) -> Tensor | None:
    """TRANSPOSE_CONV with a bias."""
    batch, height, width, depth = source.shape
    channels, size, step = network.between(1, 6), network.between(1, 3), network.between(1, 2)
    shape = (batch, height * step, width * step, channels)
    if size < step:
        return None
    weights = network.weights((channels, size, size, depth))
    options = {"padding": "SAME", "stride_h": step, "stride_w": step}
    stated = network.integers(shape)
    if network.is_quantised:
        scale = float(np.float32(network.generator.uniform(2.0**-9, 2.0**-5)))
        scales = [scale] * (1 if network.is_uint8 else channels)
        kernel = Network.integer_weights(network, weights, scales, 0)  # never of int4
        bias = network.generator.integers(-(1 << 12), 1 << 12, channels)
        kind = np.int64 if network.is_int16 else np.int32
        offset = network.builder.constant(
            "bias", bias.astype(kind), scale=[source.affine[0] * each for each in scales]
        )
        result = network.tensor(shape, _spread(network, source, depth * size, scale))
    else:
        kernel = network.float_weights("TRANSPOSE_CONV", weights, channels, 0)
        offset, result = (
            network.builder.constant("bias", network.values((channels,))),
            network.tensor(shape, _FLOAT),
        )
    network.operator("TRANSPOSE_CONV", [stated, kernel, source.index, offset], [result], **options)
    return result


def product_with_itself(network: Mixed, source: Tensor) -> Tensor:
    """BATCH_MATMUL of a tensor with itself, so that both operands are computed: int16 with int16 too."""
    *lead, _, width = source.shape
    height = source.shape[-2]
    is_first = network.chance(0.5)
    side, depth = (width, height) if is_first else (height, width)
    result = network.tensor((*lead, side, side), _spread(network, source, depth, source.affine[0]))
    options = {"adj_x": is_first, "adj_y": not is_first}
    network.operator("BATCH_MATMUL", [source.index, source.index], [result], **options)
    return result


def _resize(network: Mixed, source: Tensor) -> Tensor:
    batch, height, width, depth = source.shape
    size = [
        network.one_of([2 * height, height, network.between(1, 9)]),
        network.one_of([2 * width, 3, width]),
    ]
    mode = network.one_of(["", "align_corners", "half_pixel_centers"])
    result = network.tensor((batch, *size, depth), source.affine)
    kind = network.one_of(["RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR"])
    options = {mode: True} if mode else {}
    network.operator(kind, [source.index, network.integers(size)], [result], **options)
    return result


# Choices


def _gather(network: Mixed, source: Tensor) -> Tensor:
    axis = network.below(len(source.shape))
    places = network.generator.integers(0, source.shape[axis], network.between(1, 4))
    shape = (*source.shape[:axis], len(places), *source.shape[axis + 1 :])
    result = network.tensor(shape, source.affine)
    network.operator("GATHER", [source.index, network.integers(places)], [result], axis=axis)
    return result


def greatest(network: Mixed, source: Tensor) -> Tensor:
    """TOPK_V2 of the last axis."""
    shape = (*source.shape[:-1], network.between(1, source.shape[-1]))
    values, places = network.tensor(shape, source.affine), network.tensor(shape, _FLOAT, dtype="int32")
    count = network.builder.constant("count", np.array(shape[-1], np.int32))
    network.operator("TOPK_V2", [source.index, count], [values, places])
    return network.one_of([values, places])


def choice(network: Mixed, source: Tensor) -> Tensor:
    """SELECT_V2 by a comparison with a constant."""
    truth = network.tensor(source.shape, _FLOAT, dtype="bool")
    affine = (min(source.affine[0], 0.9), source.affine[1])
    kind = network.one_of(["GREATER", "LESS_EQUAL", "NOT_EQUAL"])
    network.operator(kind, [source.index, network.constant(source.shape[-1:], affine).index], [truth])
    other = network.constant(source.shape[-1:], source.affine)
    result = network.tensor(source.shape, source.affine)
    network.operator("SELECT_V2", [truth.index, source.index, other.index], [result])
    return result


def _extreme(network: Mixed, source: Tensor) -> Tensor:
    """REDUCE_MAX or REDUCE_MIN over one axis."""
    axis = network.below(len(source.shape))
    shape = [1 if each == axis else extent for each, extent in enumerate(source.shape)]
    result = network.tensor(shape, source.affine)
    kind = network.one_of(["REDUCE_MAX", "REDUCE_MIN"])
    network.operator(kind, [source.index, network.integers([axis])], [result], keep_dims=True)
    return result


# Conditions


def after(
    *dtypes: str, least_rank: int = 1, rank: int = 0, exact: bool = False, with_flow: bool = False
) -> Callable[[Mixed, Tensor], bool]:
    """After tensors of these types; of so many axes, and of floats that are exact, where that is asked."""

    def may_be_drawn(network: Mixed, source: Tensor) -> bool:
        fits = len(source.shape) == rank if rank else len(source.shape) >= least_rank
        allowed = (with_flow or not network.has_flow) and (not exact or network.is_exact(source))
        return fits and allowed and source.dtype in dtypes

    return may_be_drawn


def _has_boxes(network: Mixed, source: Tensor) -> bool:
    return after("float32", exact=True)(network, source) and prod(source.shape) >= 4


def has_small_products(network: Mixed, source: Tensor) -> bool:
    """LiteRT ends the process where a sum's operands are 2^19 times as coarse as its result."""
    return after(*_NUMBERS, least_rank=2, exact=True)(network, source) and source.affine[0] < 0.1


def has_low_scales(network: Mixed, source: Tensor) -> bool:
    """Comparisons of integers want scales below 1."""
    return (
        after("int8", "uint8", "float32", exact=True, with_flow=True)(network, source)
        and source.affine[0] < 1
    )


_NUMBERS = ("int8", "int16", "float32")
_WITH_UINT8 = (*_NUMBERS, "uint8")
KINDS = (
    *(NodeKind(_lstm, after("int8", "float32", least_rank=2, exact=True)),) * 2,
    *(NodeKind(_both_ways, after("float32", least_rank=2, exact=True)),) * 2,
    NodeKind(_svdf, after("float32", least_rank=2, exact=True)),
    *(NodeKind(spectrum, after("float32", least_rank=2, exact=True)),) * 2,
    *(NodeKind(_suppression, _has_boxes),) * 2,
    *(NodeKind(_of_groups, after("int8", "uint8", "float32", rank=4, exact=True)),) * 3,
    NodeKind(_volumes, after("float32", rank=4, exact=True)),
    *(NodeKind(_transposed, after(*_WITH_UINT8, rank=4, exact=True)),) * 2,
    NodeKind(product_with_itself, has_small_products),
    *(NodeKind(_resize, after(*_WITH_UINT8, rank=4)),) * 2,
    NodeKind(_gather, after(*_WITH_UINT8, with_flow=True)),
    NodeKind(greatest, after(*_WITH_UINT8, exact=True, with_flow=True)),
    NodeKind(choice, has_low_scales),
    NodeKind(_extreme, after("int8", "uint8", "float32", with_flow=True)),
)
