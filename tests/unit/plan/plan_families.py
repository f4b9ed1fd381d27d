"""Generated planning problems that nobody tuned the search for, and the graphs of real networks.

Everything is a function of a seed, so that a figure in the documentation can be reproduced.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

from bytewright.plan.problem import Buffer, Pool, Problem

MODELS = Path(__file__).parents[4] / "shared" / "models"


def _problem(rows: list[tuple[int, int, int]], alignments: list[int] | None = None) -> Problem:
    buffers = tuple(
        Buffer(str(k), size, ((lower, upper),), alignment=alignments[k] if alignments else 1)
        for k, (lower, upper, size) in enumerate(rows)
    )
    return Problem(buffers, (Pool("p"),))


def dense(seed: int) -> Problem:
    """500 buffers, some 60 alive at any time."""
    rng = random.Random(seed)
    rows = []
    for _ in range(500):
        lower = rng.randrange(200)
        rows.append((lower, min(lower + rng.randint(1, 50), 200), 16 * rng.randint(1, 1024)))
    return _problem(rows)


def sparse(seed: int) -> Problem:
    """1000 buffers, some 4 alive at any time."""
    rng = random.Random(seed)
    rows = []
    for _ in range(1000):
        lower = rng.randrange(2000)
        rows.append((lower, lower + rng.randint(1, 15), 16 * rng.randint(1, 1024)))
    return _problem(rows)


def chain(seed: int) -> Problem:
    """2000 layers: each output lives to the next layer, every seventh skips ahead up to 40, and there is scratch."""
    rng = random.Random(seed)
    rows = []
    for k in range(2000):
        reach = rng.randint(2, 40) if k % 7 == 0 else 2
        rows.append((2 * k, 2 * k + 2 * reach - 1, 64 * rng.randint(1, 512)))
        if k % 3 == 0:
            rows.append((2 * k, 2 * k + 1, 16 * rng.randint(1, 256)))
    return _problem(rows)


def equal(seed: int) -> Problem:
    """800 buffers of three sizes."""
    rng = random.Random(seed)
    rows = []
    for _ in range(800):
        lower = rng.randrange(400)
        rows.append((lower, lower + rng.randint(1, 30), rng.choice([256, 384, 1024])))
    return _problem(rows)


def aligned(seed: int) -> Problem:
    """500 buffers of odd sizes with alignments of 1 to 256."""
    rng = random.Random(seed)
    rows, alignments = [], []
    for _ in range(500):
        lower = rng.randrange(300)
        rows.append((lower, lower + rng.randint(1, 24), rng.randint(1, 4000)))
        alignments.append(1 << rng.randint(0, 8))
    return _problem(rows, alignments)


def large(seed: int) -> Problem:
    """5000 buffers, lives of 16 on average, sizes over three magnitudes."""
    rng = random.Random(seed)
    rows = []
    for _ in range(5000):
        length = 1
        while rng.random() > 1 / 16:
            length += 1
        lower = rng.randrange(5000)
        rows.append((lower, lower + length, int(16 * 1000 ** rng.random())))
    return _problem(rows)


def cut(seed: int) -> Problem:
    """200 buffers cut out of a full rectangle: the optimum is its height, and no byte may ever be wasted."""
    rng = random.Random(seed)
    pieces = [(0, 1 << 16, 0, 1 << 16)]  # time from, to; address from, to
    while len(pieces) < 200:
        k = max(range(len(pieces)), key=lambda i: _area(pieces[i]) * rng.random())
        left, right, bottom, top = pieces.pop(k)
        if rng.random() < 0.5:
            middle = rng.randint(left + (right - left) // 4, right - (right - left) // 4)
            pieces += [(left, middle, bottom, top), (middle, right, bottom, top)]
        else:
            middle = rng.randint(bottom + (top - bottom) // 4, top - (top - bottom) // 4)
            pieces += [(left, right, bottom, middle), (left, right, middle, top)]
        pieces = [piece for piece in pieces if _area(piece)]
    rng.shuffle(pieces)
    return _problem([(left, right, top - bottom) for left, right, bottom, top in pieces])


def _area(piece: tuple[int, int, int, int]) -> int:
    left, right, bottom, top = piece
    return (right - left) * (top - bottom)


FAMILIES: dict[str, Callable[[int], Problem]] = {
    "dense": dense,
    "sparse": sparse,
    "chain": chain,
    "equal": equal,
    "aligned": aligned,
    "large": large,
    "cut": cut,
}


def network(path: Path) -> Problem:
    """The activations of a TFLite model's first subgraph, each alive from its writer to its last reader."""
    import numpy as np
    import tflite

    dtype_bytes = {"FLOAT32": 4, "INT8": 1, "UINT8": 1, "INT16": 2, "INT32": 4, "INT64": 8, "BOOL": 1}
    names = {getattr(tflite.TensorType, name): size for name, size in dtype_bytes.items()}
    model = tflite.Model.GetRootAs(path.read_bytes(), 0)
    graph = model.Subgraphs(0)
    num_steps = graph.OperatorsLength()
    first = {int(t): 0 for t in graph.InputsAsNumpy()}
    last: dict[int, int] = dict.fromkeys(first, 0)
    for step in range(num_steps):
        operator = graph.Operators(step)
        for tensor in operator.OutputsAsNumpy():
            first.setdefault(int(tensor), step)
            last[int(tensor)] = step
        for tensor in operator.InputsAsNumpy():
            if int(tensor) in first:
                last[int(tensor)] = step
    for tensor in graph.OutputsAsNumpy():
        last[int(tensor)] = num_steps
    buffers = []
    for tensor, begin in sorted(first.items()):
        shape = graph.Tensors(tensor).ShapeAsNumpy()
        size = int(np.prod(shape)) * names[graph.Tensors(tensor).Type()]
        buffers.append(Buffer(str(tensor), size, ((begin, last[tensor] + 1),), alignment=16))
    return Problem(tuple(buffers), (Pool("p"),))
