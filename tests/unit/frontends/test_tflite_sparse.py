"""Sparse constants: dense when they are read, whatever the order of levels, as LiteRT makes them."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from ai_edge_litert import schema_py_generated as schema
from flatbuffers import Builder
from numpy.typing import NDArray

from bytewright.diagnostics import CompileError
from bytewright.frontends.tflite import import_content
from support.evaluation import evaluate_function
from support.reference import LiteRt
from support.tiers import THOROUGH
from tflite_writer import OPTIONAL, ModelBuilder

Array = NDArray[Any]
SEEDS = range(200) if THOROUGH else range(24)


def levels_of(
    array: Array, order: list[int], blocked: list[int], sides: list[int], compressed: list[bool]
) -> Any:
    """SparsityParameters of an array, and the values that it keeps: a node for what has a value that is not zero."""
    rank = array.ndim
    block = dict(zip(blocked, sides, strict=True))
    cut = array.reshape(
        [part for axis, n in enumerate(array.shape) for part in (n // block.get(axis, 1), block.get(axis, 1))]
    )
    places = [2 * axis for axis in range(rank)] + [2 * axis + 1 for axis in blocked]
    spare = [2 * axis + 1 for axis in range(rank) if axis not in block]
    tree = cut.transpose([places[at] for at in order] + spare).reshape(
        [cut.shape[places[at]] for at in order]
    )
    found = schema.SparsityParametersT()
    found.traversalOrder, found.blockMap, found.dimMetadata = order, blocked, []
    nodes: list[tuple[int, ...]] = [()]
    for level, is_compressed in enumerate(compressed):
        data, extent = schema.DimensionMetadataT(), tree.shape[level]
        children = [
            [n for n in range(extent) if not is_compressed or tree[(*node, n)].any()] for node in nodes
        ]
        data.format = int(is_compressed)
        if is_compressed:
            data.arraySegmentsType, data.arraySegments = _vector(np.cumsum([0, *map(len, children)]))
            data.arrayIndicesType, data.arrayIndices = _vector(
                np.array([n for each in children for n in each], int)
            )
        else:
            data.denseSize = extent
        found.dimMetadata.append(data)
        nodes = [(*node, n) for node, each in zip(nodes, children, strict=True) for n in each]
    return found, np.array([tree[node] for node in nodes], array.dtype)


def _vector(values: Array) -> tuple[int, Any]:
    """The narrowest of the schema's three vectors of indices."""
    kinds = schema.SparseIndexVector
    made: Any
    for bits, kind, made in (
        (8, kinds.Uint8Vector, schema.Uint8VectorT()),
        (16, kinds.Uint16Vector, schema.Uint16VectorT()),
        (32, kinds.Int32Vector, schema.Int32VectorT()),
    ):
        if values.max(initial=0) < 1 << bits:
            made.values = values.astype(f"u{bits // 8}" if bits < 32 else np.int32)
            return kind, made
    raise AssertionError


def with_sparse(content: bytes, name: str, sparsity: Any, values: Array) -> bytes:
    """The file with a tensor stored sparsely."""
    model: Any = schema.ModelT.InitFromObj(schema.Model.GetRootAs(content))
    (tensor,) = (each for each in model.subgraphs[0].tensors if each.name == name.encode())
    tensor.sparsity = sparsity
    model.buffers[tensor.buffer].data = np.frombuffer(values.tobytes(), np.uint8)
    builder = Builder(1024)
    builder.Finish(model.Pack(builder), b"TFL3")
    return bytes(builder.Output())


def densified(array: Array, *, is_half: bool = False) -> bytes:
    """x + DENSIFY(w), or with a DEQUANTIZE of float16 between."""
    builder = ModelBuilder()
    affine: dict[str, Any] = {"scale": 0.5} if array.dtype == np.int8 else {}
    dtype = "float32" if is_half else str(array.dtype)
    x, y = (builder.tensor(name, array.shape, dtype, **affine) for name in "xy")
    sparse = builder.constant("w", array, **affine)
    dense = builder.tensor("dense", array.shape, str(array.dtype), **affine)
    builder.operator("DENSIFY", [sparse], [dense])
    if is_half:
        real = builder.tensor("real", array.shape, "float32")
        builder.operator("DEQUANTIZE", [dense], [real])
        dense = real
    builder.operator("ADD", [x, dense], [y])
    return builder.build([x], [y])


def run(content: bytes, x: Array) -> Array:
    module = import_content(content, "sparse.tflite")
    return evaluate_function(module.graph, module.constants, (x,))[module.graph.results[0]]


@pytest.mark.parametrize("seed", SEEDS)
def test_levels_in_any_order(seed: int) -> None:
    random = np.random.default_rng(seed)
    dtype = [np.float32, np.int8, np.float16][seed % 3]
    rank = int(random.integers(1, 5))
    sides = random.integers(1, 4, rank)
    shape = tuple(int(side * n) for side, n in zip(sides, random.integers(1, 5, rank), strict=True))
    values = random.integers(-20, 21, shape) * (random.random(shape) < random.choice([0, 0.1, 0.5, 1]))
    blocked = [axis for axis in range(rank) if random.integers(0, 2)]
    order = [*random.permutation(rank).tolist(), *range(rank, rank + len(blocked))]
    compressed = [bool(at < rank and random.integers(0, 2)) for at in order]
    array = values.astype(dtype)
    sparsity, kept = levels_of(array, order, blocked, [int(sides[axis]) for axis in blocked], compressed)
    content = with_sparse(densified(array, is_half=dtype is np.float16), "w", sparsity, kept)
    x = random.integers(-20, 21, shape).astype(np.int8 if dtype is np.int8 else np.float32)
    np.testing.assert_array_equal(run(content, x), LiteRt(content).run(x)[0])


def _order(sparsity: Any) -> None:
    sparsity.traversalOrder = [0, 0, 2]


def _order_of_blocks(sparsity: Any) -> None:
    sparsity.traversalOrder, sparsity.blockMap = [0, 1, 3, 2], [0, 1]
    sparsity.dimMetadata.append(sparsity.dimMetadata[2])


def _blocks_of_no_axis(sparsity: Any) -> None:
    sparsity.blockMap = [2]


def _blocks_turned(sparsity: Any) -> None:
    sparsity.traversalOrder, sparsity.blockMap = [0, 1, 2, 3], [1, 0]
    sparsity.dimMetadata.append(sparsity.dimMetadata[2])


def _side(sparsity: Any) -> None:
    sparsity.dimMetadata[2].denseSize = 3


def _extent(sparsity: Any) -> None:
    sparsity.dimMetadata[0].denseSize = 3


def _segments(sparsity: Any) -> None:
    sparsity.dimMetadata[1].arraySegments.values = np.array([0, 2, 1, 4], np.uint8)


def _index(sparsity: Any) -> None:
    sparsity.dimMetadata[1].arrayIndices.values = np.array([0, 1, 2, 0], np.uint8)


def _none(sparsity: Any) -> None:
    sparsity.dimMetadata[1].arrayIndices = None


def _levels(sparsity: Any) -> None:
    del sparsity.dimMetadata[2]


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (_order, "levels [0, 0, 2] for 2 axes"),
        (_order_of_blocks, "levels [0, 1, 3, 2] for 2 axes"),
        (_blocks_of_no_axis, "blocks [2]"),
        (_blocks_turned, "blocks [1, 0]"),
        (_side, "blocks of 3 along 4"),
        (_extent, "3 indices along 4"),
        (_segments, "segments that do not follow each other"),
        (_index, "an index beyond 2"),
        (_none, "a level without segments or indices"),
        (_levels, "levels [0, 1, 2] for 2 axes"),
    ],
)
def test_damaged_levels(damage: Any, said: str) -> None:
    array = np.eye(4, dtype=np.float32)
    sparsity, kept = levels_of(array, [0, 1, 2], [1], [2], [False, True, False])
    content = with_sparse(densified(array), "w", sparsity, kept)
    assert run(content, np.zeros((4, 4), np.float32)).tolist() == array.tolist()
    damage(sparsity)
    with pytest.raises(CompileError, match=re.escape(said)) as caught:
        import_content(with_sparse(densified(array), "w", sparsity, kept), "sparse.tflite")
    assert caught.value.diagnostics[0].code == "BW103"
    sparsity, kept = levels_of(array, [0, 1], [], [], [False, True])
    with pytest.raises(CompileError, match="4 values in 12 bytes"):
        import_content(with_sparse(densified(array), "w", sparsity, kept[:3]), "sparse.tflite")


def test_weights_of_four_bits_are_refused_by_name() -> None:
    builder = ModelBuilder()
    x, y = builder.tensor("x", (1, 8), "float32"), builder.tensor("y", (1, 4), "float32")
    weights = np.tile(np.arange(-4, 4, dtype=np.int8), (4, 1))
    w = builder.tensor("w", weights.shape, "int4", scale=0.5, data=weights)
    builder.operator("FULLY_CONNECTED", [x, w, OPTIONAL], [y])
    sparsity, _ = levels_of(weights, [0, 1], [], [], [False, True])
    content = with_sparse(builder.build([x], [y]), "w", sparsity, np.zeros(14, np.int8))
    with pytest.raises(CompileError, match=re.escape("tensor 2 ('w') is sparse")) as caught:
        import_content(content, "sparse.tflite")
    assert caught.value.diagnostics[0].code == "BW107"
