"""Sparse constants, as the dense ones that they stand for.

What is stored is a tree (SparsityParameters in the schema, after Kjolstad et al., The Tensor Algebra Compiler, OOPSLA
2017): a level for each axis, in the order of traversal, and then one for each axis that is cut into blocks. A node of a
dense level has a child for each index; one of a compressed level has those between two segments. Values are its leaves.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bytewright.frontends.tflite.flatbuffer import DamagedError, Table

_INDEX_TYPES = {1: "<i4", 2: "<u2", 3: "<u1"}
_COMPRESSED = 1
# Bytes that a byte of the file's budget pays for: fewer than one element in hundreds is hardly ever stored alone.
_GROWTH = 16
_Integers = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class _Level:
    """One level; the extent is that of its axis, or of a block along it."""

    axis: int
    is_block: bool
    extent: int
    compressed: tuple[_Integers, _Integers] | None


def dense_values(sparsity: Table, values: memoryview, shape: tuple[int, ...], element_bytes: int) -> bytes:
    """The values of all elements, zeros where none is stored.

    Args:
        sparsity: The table SparsityParameters.
        values: Those that are stored.
        shape: Of the tensor.
        element_bytes: Size of an element.

    Raises:
        DamagedError: The levels are not those of such a tensor.
    """
    sparsity.file.charge(prod(shape) * element_bytes // _GROWTH)
    levels = _levels(sparsity, shape)
    indices = _leaves(levels, prod(shape))
    places = [np.zeros(len(values) // element_bytes, np.int64) for _ in shape]
    for level, found in zip(levels, indices, strict=True):
        _require(len(found) * element_bytes == len(values), f"{len(found)} values in {len(values)} bytes")
        places[level.axis] = places[level.axis] * (level.extent if level.is_block else 1) + found
    dense = np.zeros(shape, np.dtype((np.void, element_bytes)))
    dense[tuple(places)] = np.frombuffer(values, dense.dtype)
    return dense.tobytes()


def _levels(sparsity: Table, shape: tuple[int, ...]) -> list[_Level]:
    order, blocked = sparsity.numbers(0, "<i4"), sparsity.numbers(1, "<i4")
    tables, rank = sparsity.tables(2), len(shape)
    axes = (*range(rank), *blocked)
    # LiteRT takes blocks for those of ascending axes whatever is stated, and finds other values where they are not.
    is_order = sorted(order[:rank]) == [*range(rank)] and order[rank:] == (*range(rank, len(axes)),)
    _require(is_order and len(tables) == len(order), f"levels {list(order)} for {rank} axes")
    is_ascending = all(a < b for a, b in zip((-1, *blocked), (*blocked, rank), strict=True))
    _require(is_ascending, f"blocks {list(blocked)}")
    sides = {axes[at]: table.integer(1) for at, table in zip(order[rank:], tables[rank:], strict=True)}
    for axis, side in sides.items():
        _require(side > 0 and shape[axis] % side == 0, f"blocks of {side} along {shape[axis]}")
    levels: list[_Level] = []
    for at, table in zip(order, tables, strict=True):
        axis, is_block = axes[at], at >= rank
        side = sides.get(axis, 1)
        extent = side if is_block else shape[axis] // side
        compressed = None
        if table.integer(0, "b") == _COMPRESSED:
            _require(not is_block, "a block with holes")
            compressed = (_numbers(table, 2), _numbers(table, 4))
        else:
            _require(table.integer(1) == extent, f"{table.integer(1)} indices along {extent}")
        levels.append(_Level(axis, is_block, extent, compressed))
    return levels


def _numbers(table: Table, slot: int) -> _Integers:
    """A vector of the union SparseIndexVector."""
    kind, vector = _INDEX_TYPES.get(table.integer(slot, "B")), table.table(slot + 1)
    if kind is None or vector is None:
        raise DamagedError("a sparse tensor has a level without segments or indices")
    return np.array(vector.numbers(0, kind), np.int64)


def _leaves(levels: list[_Level], most: int) -> list[_Integers]:
    """The index of each leaf in each level."""
    found: list[Any] = []
    count = 1
    for level in levels:
        if level.compressed is None:
            _require(count * level.extent <= most, "more values than elements")
            children, own = np.full(count, level.extent), np.tile(np.arange(level.extent), count)
        else:
            segments, own = level.compressed
            children = np.diff(segments)
            is_whole = len(segments) == count + 1 and segments[0] == 0 and segments[-1] == len(own)
            _require(is_whole and bool((children >= 0).all()), "segments that do not follow each other")
            _require(bool(((own >= 0) & (own < level.extent)).all()), f"an index beyond {level.extent}")
        found = [*(np.repeat(each, children) for each in found), own]
        count = len(own)
    return found


def _require(holds: bool, what: str) -> None:
    if not holds:
        raise DamagedError(f"a sparse tensor has {what}")
