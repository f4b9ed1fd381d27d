"""Random networks whose tensors are of several types: islands, states, branches and loops between all other nodes.

`mixed_network(seed)` draws one after the other from a table of kinds, each with the condition under which it may
follow a tensor. What rounds, compares, cancels or saturates floats (QUANTIZE, hybrid layers, TOPK_V2, SOFTMAX) follows
only floats that are the same in every implementation, to the last bit: their last bit would be a step of the result.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from support import random_layers, random_parts, random_subgraphs
from support.random_models import RandomModel
from support.random_networks import NODE_KINDS, Affine, Network, NodeKind, Tensor

_MOST_ELEMENTS = 1500
_QUANTISED = ("int8", "int16", "uint8")
_BEGINNINGS = ("int8", "int8", "float32", "int16")
# To which types each is quantised, by both references or by LiteRT.
_QUANTIZE = {
    "float32": ("int8", "int8", "int16", "uint8"),
    "int8": ("int8", "int16", "uint8"),
    "int16": ("int8", "int16", "int32"),
    "uint8": ("int8", "uint8"),
}
# Of exact floats they give exact ones: one rounding, or none.
_EXACT = frozenset(
    (
        "ABS",
        "ADD",
        "CONCATENATION",
        "DEQUANTIZE",
        "DILATE",
        "EXPAND_DIMS",
        "GATHER",
        "LEAKY_RELU",
        "MAXIMUM",
        "MATRIX_DIAG",
        "MATRIX_SET_DIAG",
        "MAX_POOL_2D",
        "MINIMUM",
        "MUL",
        "NEG",
        "PAD",
        "RELU",
        "RELU6",
        "RELU_N1_TO_1",
        "RESHAPE",
        "RESIZE_NEAREST_NEIGHBOR",
        "REVERSE_SEQUENCE",
        "REVERSE_V2",
        "SELECT_V2",
        "SLICE",
        "SPARSE_TO_DENSE",
        "SPLIT",
        "SQUEEZE",
        "STABLEHLO_ADD",
        "STABLEHLO_MAXIMUM",
        "STABLEHLO_MINIMUM",
        "STABLEHLO_MULTIPLY",
        "STABLEHLO_PAD",
        "STRIDED_SLICE",
        "SUB",
        "TILE",
        "TRANSPOSE",
        "NON_MAX_SUPPRESSION_V4",
        "NON_MAX_SUPPRESSION_V5",
        "TOPK_V2",
        "UNSORTED_SEGMENT_MAX",
        "UNSORTED_SEGMENT_MIN",
        "IF",
        "WHILE",
        "READ_VARIABLE",
    )
)
_HYBRID = frozenset(
    (
        "CONV_2D",
        "DEPTHWISE_CONV_2D",
        "FULLY_CONNECTED",
        "BATCH_MATMUL",
        "TRANSPOSE_CONV",
    )
)


class Mixed(Network):
    """A model under construction, with tensors of several types.

    Attributes:
        inexact: Indices of floats that differ between implementations.
        has_flow: Operators that run subgraphs may be drawn, and none whose results LiteRT's default kernels round
            otherwise: its reference kernels have no such operators.
    """

    def __init__(self, seed: int, dtype: str, *, has_flow: bool) -> None:
        super().__init__(seed, dtype)
        self.inexact: set[int] = set()
        self.has_flow = has_flow

    def is_exact(self, tensor: Tensor) -> bool:
        """Whether every implementation gives the same bits."""
        return tensor.index not in self.inexact

    def dtype_of(self, index: int) -> str:
        return self.builder._tensors[index].dtype

    def affine_of(self, dtype: str) -> Affine:
        """A quantisation of a type."""
        before, self.dtype = self.dtype, dtype
        scale, zero_point = self.affine()
        self.dtype = before
        return (scale * 2.0**-20, 0) if dtype == "int32" else (scale, zero_point)

    def tensor(self, shape: Sequence[int], affine: Affine, name: str = "", dtype: str = "") -> Tensor:
        dtype = dtype or self.dtype
        if dtype == self.dtype != "uint8":
            return super().tensor(shape, affine, name)
        is_scaled = dtype in _QUANTISED or affine[0]
        keywords: dict[str, Any] = {"scale": affine[0], "zero_point": affine[1]} if is_scaled else {}
        index = self.builder.tensor(name or f"tensor_{len(self.tensors)}", shape, dtype, **keywords)
        made = Tensor(index, tuple(int(extent) for extent in shape), affine, dtype)
        self.tensors.append(made)
        return made

    def operator(self, kind: str, sources: Sequence[int], results: Sequence[Tensor], **options: Any) -> None:
        super().operator(kind, sources, results, **options)
        is_hybrid = kind in _HYBRID and any(self.dtype_of(each) in ("int4", "int8") for each in sources)
        if (kind not in _EXACT and not is_hybrid) or self.inexact.intersection(sources):
            self.inexact.update(result.index for result in results if result.dtype == "float32")

    # Weights

    def integer_weights(self, weights: NDArray[Any], scales: Sequence[float], axis: int) -> int:
        """Of int8, or, under int8, of int4."""
        if not self.is_int8 or self.chance(0.6):
            return super().integer_weights(weights, scales, axis)
        return self.builder.tensor(
            "weights", weights.shape, "int4", data=weights >> 4, scale=scales, quantized_dimension=axis
        )

    def float_weights(self, kind: str, weights: NDArray[Any], channels: int, axis: int) -> int:
        """Of float32, or widened from float16; int8 and int4 where what they round is exact."""
        form = self.one_of(["float32", "float16", "int8", "int8", "int4"])
        if form == "int4" and kind in ("DEPTHWISE_CONV_2D", "TRANSPOSE_CONV"):
            form = "int8"
        if form == "float16" or (form != "float32" and not self.is_hybrid):
            stored = self.builder.constant("stored", weights.astype(np.float16))
            wide = self.builder.tensor("wide", weights.shape, "float32")
            self.builder.operator("DEQUANTIZE", [stored], [wide], version=3)
            return wide
        if form == "float32":
            return self.builder.constant("weights", weights)
        count = self.one_of([1, channels]) if kind == "FULLY_CONNECTED" else channels
        scales = self.generator.uniform(2.0**-5, 2.0**-3, count).astype(np.float32)
        values = np.round(weights * 8) if form == "int8" else np.clip(np.round(weights * 4), -7, 7)
        return self.builder.tensor(
            "weights", weights.shape, form, data=values, scale=scales, quantized_dimension=axis
        )


def quantize(network: Mixed, source: Tensor) -> Tensor:
    dtype = network.one_of(_QUANTIZE[source.dtype])
    affine = network.affine_of(dtype)
    if dtype == "int32":  # a finer scale takes values beyond 32 bits, which is refused
        affine = (source.affine[0] / network.one_of([0.3, 1.0, 7.5, 3e4]), 0)
    result = network.tensor(source.shape, affine, dtype=dtype)
    network.operator("QUANTIZE", [source.index], [result])
    return result


def dequantize(network: Mixed, source: Tensor) -> Tensor:
    result = network.tensor(source.shape, (0.0, 0), dtype="float32")
    network.operator("DEQUANTIZE", [source.index], [result])
    return result


def _cast(network: Mixed, source: Tensor) -> Tensor:
    result = network.tensor(source.shape, (0.0, 0), dtype="float32")
    network.operator("CAST", [source.index], [result])
    return result


def _is_number(_network: Mixed, source: Tensor) -> bool:
    return source.dtype in (*_QUANTISED, "float32")


def may_be_rounded(network: Mixed, source: Tensor) -> bool:
    return source.dtype in _QUANTIZE and network.is_exact(source) and not network.has_flow


def may_be_dequantised(_network: Mixed, source: Tensor) -> bool:
    return source.dtype in _QUANTISED


def _is_int32(_network: Mixed, source: Tensor) -> bool:
    return source.dtype == "int32"


_ROUNDED_OTHERWISE = (
    *(Network.convolution, Network.fully_connected, Network.pool, Network.mean, Network.softmax, Network.pad),
    *(Network.unary, Network.binary),  # QUANTIZE, and MUL far beyond its range
)
# Which keep a small difference of floats small; others may cancel, clip or saturate them.
_STEADY = (
    *(Network.mean, Network.reshape, Network.transpose, Network.slice, Network.split, Network.concatenation),
)


def within_types(kind: NodeKind) -> NodeKind:
    """A kind of networks of one type, after tensors of any of them."""

    def may_be_drawn(network: Mixed, source: Tensor) -> bool:
        is_right = not (network.has_flow and kind.make in _ROUNDED_OTHERWISE)
        is_steady = network.is_exact(source) or kind.make in _STEADY
        return is_right and is_steady and _is_number(network, source) and kind.may_be_drawn(network, source)

    return NodeKind(kind.make, may_be_drawn)


KINDS = (
    *map(within_types, NODE_KINDS),
    *(NodeKind(quantize, may_be_rounded),) * 6,
    *(NodeKind(dequantize, may_be_dequantised),) * 4,
    *(NodeKind(_cast, _is_int32),) * 4,
    *random_layers.KINDS,
    *random_parts.KINDS,
    *random_subgraphs.KINDS,
)
"""Of networks of several types. Who stands here twice is drawn twice as often."""


def mixed_network(seed: int, *, size: int = 8) -> RandomModel:
    """A network of about `size` nodes, with one to four results."""
    network = begun(seed, (*_BEGINNINGS, "uint8"), has_flow=seed % 5 == 4)
    extents = [network.one_of([1, 1, 2]), *(network.between(1, 8) for _ in range(2)), network.between(1, 10)]
    first = network.input(extents if network.chance(0.6) else (extents[0], extents[1], extents[3]))
    if network.chance(0.3):
        network.input(first.shape)
    return drawn(network, first, KINDS, network.between(2, size))


def begun(seed: int, dtypes: Sequence[str] = _BEGINNINGS, *, has_flow: bool = False) -> Mixed:
    """A network without any node, whose inputs are of one of these types."""
    dtype = np.random.default_rng(seed).choice(dtypes)
    return Mixed(seed, str(dtype), has_flow=has_flow)


def drawn(network: Mixed, first: Tensor, kinds: Sequence[NodeKind], count: int) -> RandomModel:
    """The network with so many nodes of some kinds after an input."""
    recent = first
    for _ in range(count):
        network.dtype = recent.dtype
        network.is_hybrid = network.is_exact(recent)
        fitting = [kind for kind in kinds if kind.may_be_drawn(network, recent)]
        made = network.one_of(fitting).make(network, recent) if fitting else None
        if made is not None:
            recent = made if network.chance(0.85) else network.one_of(network.tensors)
        if int(np.prod(recent.shape)) > _MOST_ELEMENTS or not recent.shape:
            recent = first
    if len(network.tensors) == len(network.inputs):
        network.dtype = first.dtype
        network.unary(first)
    return network.finish(_results(network))


def _results(network: Mixed) -> list[int]:
    """The last tensor, and a few others; none of them a second time, and none of complex numbers."""
    real = [tensor for tensor in network.tensors if tensor.dtype != "complex64"]
    made = [tensor.index for tensor in real if tensor not in network.inputs]
    extra = [network.one_of(real).index for _ in range(network.below(3))]
    return list(dict.fromkeys([made[-1], *extra]))
