"""Products of two tensors whose columns fill vectors, or do not."""

from __future__ import annotations

from math import sqrt
from typing import Any

import numpy as np

from support.random_models import RandomModel
from tflite_writer import ModelBuilder


def random_product(seed: int, dtype: str) -> RandomModel:
    """A BATCH_MATMUL of matrices as they are or transposed, with axes before them that may be broadcast."""
    random = np.random.default_rng(seed)
    height = int(random.integers(1, 8))
    depth = int(random.choice([1, 2, 3, 4, 5, 7, 8, 16, 21, 40]))
    width = int(random.choice([3, 4, 8, 16, 17, 33, 40, 64, 75]))
    adj_x, adj_y = bool(random.integers(2)), bool(random.integers(2))
    outer = [[], [2], [2, 3]][int(random.integers(3))]
    first = (*outer, *((depth, height) if adj_x else (height, depth)))
    second = (*(outer[1:] if random.integers(2) else outer), *((width, depth) if adj_y else (depth, width)))
    builder = ModelBuilder()

    def tensor(name: str, shape: tuple[int, ...], scale: float) -> int:
        how: dict[str, Any] = {}
        if dtype != "float32":
            zero_point = (
                0 if dtype == "int16" else int(random.choice([-128, 0, 127, random.integers(-128, 128)]))
            )
            how = {"scale": scale / (256 if dtype == "int16" else 1), "zero_point": zero_point}
        return builder.tensor(name, shape, dtype, **how)

    x, y = tensor("x", first, 0.05), tensor("y", second, 0.03)
    result = tensor("z", (*outer, height, width), 0.05 * sqrt(depth))
    builder.operator("BATCH_MATMUL", [x, y], [result], adj_x=adj_x, adj_y=adj_y)
    facts = f"product {seed}: {first} by {second}, {adj_x=} {adj_y=}"
    return RandomModel(builder.build([x, y], [result]), facts, (first, second), dtype)
