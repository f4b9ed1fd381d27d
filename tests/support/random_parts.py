"""Kinds of nodes of `random_mixed` that deal out elements by their numbers, spread them, or hold them against limits.

Segments, diagonals, sequences in reverse, places in zeros, buckets, angles, and the operators of StableHLO.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from support.random_layers import after, reshaped
from support.random_networks import Affine, NodeKind, Tensor

if TYPE_CHECKING:
    from support.random_mixed import Mixed

_FLOAT: Affine = (0.0, 0)
_MOST_AXES = 4


def _like(network: Mixed, source: Tensor, shape: tuple[int, ...]) -> Tensor:
    return network.tensor(shape, source.affine, dtype=source.dtype)


def _constant(network: Mixed, source: Tensor, shape: tuple[int, ...]) -> int:
    """Random values of a tensor's type and quantisation."""
    if source.dtype == "float32":
        values = (network.generator.integers(-16, 17, shape) / 8).astype(np.float32)
    else:
        low, high = {"uint8": (0, 256), "int16": (-32768, 32768)}.get(source.dtype, (-128, 128))
        values = network.generator.integers(low, high, shape).astype(source.dtype)
    is_scaled = source.dtype in ("int8", "int16", "uint8")
    keywords: dict[str, Any] = (
        {"scale": source.affine[0], "zero_point": source.affine[1]} if is_scaled else {}
    )
    return network.builder.constant("constant", values, **keywords)


def _peer(network: Mixed, source: Tensor) -> int:
    """Another tensor of the same type, shape and quantisation, or a constant."""
    fitting = [
        each.index
        for each in network.tensors
        if (each.dtype, each.shape, each.affine) == (source.dtype, source.shape, source.affine)
        and network.is_exact(each)
    ]
    return network.one_of(fitting) if network.chance(0.6) else _constant(network, source, source.shape)


# Places


def _of_segments(network: Mixed, source: Tensor) -> Tensor:
    """UNSORTED_SEGMENT of a kind: rows by constant numbers; greatest and least have some row in each segment."""
    kind = network.one_of(["MAX", "MIN", "PROD", "SUM"])
    rows = source.shape[0]
    count = network.between(1, rows if kind in ("MAX", "MIN") else rows + 2)
    numbers = network.generator.integers(-1, count, rows)
    if kind in ("MAX", "MIN"):
        numbers[:count] = range(count)
    operands = [source.index, network.integers(numbers), network.integers(count)]
    result = _like(network, source, (count, *source.shape[1:]))
    network.operator(f"UNSORTED_SEGMENT_{kind}", operands, [result])
    return result


def _of_runs(network: Mixed, source: Tensor) -> Tensor:
    """SEGMENT_SUM: numbers that begin at 0 and grow."""
    steps = network.generator.integers(0, 2, source.shape[0])
    numbers = np.cumsum(steps) - steps[0]
    result = _like(network, source, (int(numbers[-1]) + 1, *source.shape[1:]))
    network.operator("SEGMENT_SUM", [source.index, network.integers(numbers)], [result])
    return result


def _scattered(network: Mixed, source: Tensor) -> Tensor:
    """SPARSE_TO_DENSE of all elements; several may have one place."""
    values = reshaped(network, source, (prod(source.shape),))
    shape = tuple(network.between(1, 5) for _ in range(network.between(1, _MOST_AXES)))
    places = network.generator.integers(0, shape, (values.shape[0], len(shape)))
    operands = [
        network.integers(places),
        network.integers(shape),
        values.index,
        _constant(network, source, ()),
    ]
    result = _like(network, source, shape)
    network.operator("SPARSE_TO_DENSE", operands, [result])
    return result


def _backwards(network: Mixed, source: Tensor) -> Tensor:
    """REVERSE_SEQUENCE by constant lengths."""
    steps, samples = (int(axis) for axis in network.generator.permutation(len(source.shape))[:2])
    lengths = network.integers(network.generator.integers(0, source.shape[steps] + 1, source.shape[samples]))
    result = _like(network, source, source.shape)
    network.operator("REVERSE_SEQUENCE", [source.index, lengths], [result], seq_dim=steps, batch_dim=samples)
    return result


# Spaces between


def _diagonal(network: Mixed, source: Tensor) -> Tensor:
    """MATRIX_DIAG, or MATRIX_SET_DIAG of a constant."""
    if len(source.shape) > 1 and (len(source.shape) == _MOST_AXES or network.chance(0.5)):
        result = _like(network, source, source.shape)
        values = _constant(network, source, (*source.shape[:-2], min(source.shape[-2:])))
        network.operator("MATRIX_SET_DIAG", [source.index, values], [result])
        return result
    result = _like(network, source, source.shape + source.shape[-1:])
    network.operator("MATRIX_DIAG", [source.index], [result])
    return result


def _spread(network: Mixed, source: Tensor) -> Tensor:
    """DILATE, or STABLEHLO_PAD, which also puts elements around, or cuts some off."""
    steps: list[int] = [network.one_of([1, 1, 2, 3]) for _ in source.shape]
    shape = [(extent - 1) * step + 1 for extent, step in zip(source.shape, steps, strict=True)]
    value = _constant(network, source, ())
    if network.chance(0.5):
        result = _like(network, source, tuple(shape))
        network.operator("DILATE", [source.index, network.integers(steps), value], [result])
        return result
    before, behind = ([network.between(-(extent > 2), 2) for extent in shape] for _ in range(2))
    sums = zip(shape, before, behind, strict=True)
    result = _like(network, source, tuple(map(sum, sums)))
    between = [step - 1 for step in steps]
    options = {"edge_padding_low": before, "edge_padding_high": behind, "interior_padding": between}
    network.operator("STABLEHLO_PAD", [source.index, value], [result], **options)
    return result


def _volumes_back(network: Mixed, source: Tensor) -> Tensor:
    """CONV_3D_TRANSPOSE, of samples as frames."""
    batch, *rest, depth = source.shape
    x = reshaped(network, source, (1, *source.shape))
    strides, channels = [network.between(1, 2) for _ in range(3)], network.between(1, 4)
    kernel = [network.between(step, 3) for step in strides]
    shape = (1, *(extent * step for extent, step in zip((batch, *rest), strides, strict=True)), channels)
    weights = network.builder.constant("weights", network.values((*kernel, channels, depth)))
    result = network.tensor(shape, _FLOAT)
    options = dict(zip(("stride_d", "stride_h", "stride_w"), strides, strict=True))
    operands = [network.integers(shape), weights, x.index]
    network.operator("CONV_3D_TRANSPOSE", operands, [result], padding="SAME", **options)
    return reshaped(network, result, result.shape[1:])


# Numbers


def _alike(network: Mixed, source: Tensor) -> Tensor:
    """What StableHLO computes of two tensors of one shape."""
    kind = network.one_of(["ADD", "MAXIMUM", "MINIMUM", "MULTIPLY"])
    other, result = _peer(network, source), _like(network, source, source.shape)
    network.operator(f"STABLEHLO_{kind}", [source.index, other], [result])
    return result


def _angle(network: Mixed, source: Tensor) -> Tensor:
    other, result = _peer(network, source), _like(network, source, source.shape)
    network.operator("ATAN2", [source.index, other], [result])
    return result


def _buckets(network: Mixed, source: Tensor) -> Tensor:
    limits = np.sort(network.generator.integers(-30, 31, network.between(1, 9)) / 4).tolist()
    result = network.tensor(source.shape, _FLOAT, dtype="int32")
    network.operator("BUCKETIZE", [source.index], [result], boundaries=limits)
    return result


def _steps_of_a_range(network: Mixed, source: Tensor) -> Tensor:
    result = _like(network, source, source.shape)
    low, high, bits = -network.between(0, 40) / 8, network.between(1, 40) / 8, network.between(2, 16)
    network.operator("FAKE_QUANT", [source.index], [result], min=low, max=high, num_bits=bits)
    return result


def _local_response(network: Mixed, source: Tensor) -> Tensor:
    result = _like(network, source, source.shape)
    options = {"radius": network.between(0, 4), "bias": network.one_of([0.5, 2.0])}
    options |= {"alpha": network.one_of([0.25, 1.0]), "beta": network.one_of([0.5, 0.75, 1.0])}
    network.operator("LOCAL_RESPONSE_NORMALIZATION", [source.index], [result], **options)
    return result


# Conditions


def _of_default_kernels(*dtypes: str, rank: int = 0) -> Callable[[Mixed, Tensor], bool]:
    """In networks whose witness is LiteRT's default kernels: its reference kernels lack the operator."""
    fits = after(*dtypes, rank=rank, exact=True, with_flow=True)

    def may_be_drawn(network: Mixed, source: Tensor) -> bool:
        return network.has_flow and fits(network, source)

    return may_be_drawn


def _has_room_for_diagonals(network: Mixed, source: Tensor) -> bool:
    is_type = after("int8", "int16", "float32", "int32", with_flow=True)(network, source)
    return is_type and len(source.shape) <= _MOST_AXES and source.shape[-1] <= 12


_MOVED = ("int8", "float32", "int32", "uint8")
_COUNTED = after("float32", "int32", exact=True, with_flow=True)
KINDS = (
    *(NodeKind(_of_segments, _COUNTED),) * 2,
    NodeKind(_of_runs, _of_default_kernels("float32", "int32")),
    NodeKind(_scattered, after(*_MOVED, with_flow=True)),
    NodeKind(_backwards, after("int16", "float32", "int32", least_rank=2, with_flow=True)),
    *(NodeKind(_diagonal, _has_room_for_diagonals),) * 2,
    *(NodeKind(_spread, after(*_MOVED, "int16", with_flow=True)),) * 2,
    NodeKind(_volumes_back, after("float32", rank=4, exact=True)),
    *(NodeKind(_alike, _COUNTED),) * 2,
    NodeKind(_angle, after("float32", exact=True)),
    NodeKind(_buckets, _COUNTED),
    NodeKind(_steps_of_a_range, after("float32", exact=True)),
    NodeKind(_local_response, _of_default_kernels("float32", rank=4)),
)
