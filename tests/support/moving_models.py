"""Models that put together and take apart by PACK, UNPACK, SPLIT_V and GATHER, in int8."""

from __future__ import annotations

import numpy as np

from support.part_models import Draft, Shape
from support.random_models import RandomModel


class Moves(Draft):
    """A draft with more operators that move bytes."""

    def _moved(self, kind: str, sources: list[int], shapes: list[Shape], **options: int) -> list[int]:
        results = [self.tensor(shape) for shape in shapes]
        self.builder.operator(kind, sources, results, **options)
        return results

    def pack(self, axis: int, *sources: int) -> int:
        """Tensors of one shape, along an axis that they do not have."""
        shape = self.shapes[sources[0]]
        whole = (*shape[:axis], len(sources), *shape[axis:])
        return self._moved("PACK", list(sources), [whole], values_count=len(sources), axis=axis)[0]

    def unpack(self, axis: int, source: int) -> list[int]:
        """Every index of an axis."""
        shape = self.shapes[source]
        part = (*shape[:axis], *shape[axis + 1 :])
        return self._moved("UNPACK", [source], [part] * shape[axis], num=shape[axis], axis=axis)

    def split(self, axis: int, source: int, *sizes: int) -> list[int]:
        """Parts of an axis."""
        shape = self.shapes[source]
        parts: list[Shape] = [(*shape[:axis], size, *shape[axis + 1 :]) for size in sizes]
        number = np.array(axis, np.int32)
        axis_tensor = self.builder.tensor(f"scalar_{next(self.numbers)}", [], "int32", data=number)
        operands = [source, self._integers(sizes), axis_tensor]
        return self._moved("SPLIT_V", operands, parts, num_splits=len(sizes))

    def gather(self, axis: int, source: int, *indices: int) -> int:
        """Elements of an axis."""
        shape = self.shapes[source]
        taken = (*shape[:axis], len(indices), *shape[axis + 1 :])
        return self._moved("GATHER", [source, self._integers(indices)], [taken], axis=axis)[0]


def packed() -> RandomModel:
    """Three convolutions of an image, packed, and a layer that reads them all."""
    draft = Moves()
    image = draft.input((1, 6, 5, 4))
    joined = draft.pack(1, *(draft.conv(image, 4) for _ in range(3)))
    return draft.model(draft.dense(joined, 5), story="packed")


def unrolled(steps: int = 5) -> RandomModel:
    """A recurrent layer unrolled over time: frames are unpacked, a state goes from step to step, results are packed."""
    draft = Moves()
    frames = draft.reshape(draft.dense(draft.input((1, 12)), steps * 6), (1, steps, 6))
    state, results = draft.dense(draft.input((1, 4)), 8), list[int]()
    for frame in draft.unpack(1, frames):
        own, other = draft.split(1, draft.dense(frame, 16), 8, 8)
        state = draft.add(draft.add(own, draft.dense(state, 8)), other)
        results.append(state)
    whole = draft.pack(1, *results)
    return draft.model(whole, draft.gather(1, whole, steps - 1), story="unrolled")


def random_moves(seed: int) -> RandomModel:
    """A network over rows of numbers that moves at least as much as it computes."""
    generator, draft = np.random.default_rng(seed), Moves(seed)

    def between(low: int, high: int) -> int:
        return int(generator.integers(low, high + 1))

    def length(value: int) -> int:
        return draft.shapes[value][1]

    known = [draft.input((1, between(2, 9)))]
    steps: list[str] = []
    for _ in range(between(4, 9)):
        value = known[between(max(0, len(known) - 3), len(known) - 1)]
        step = str(generator.choice(["compute", "pack", "unpack", "split", "gather"]))
        steps.append(step)
        match step:
            case "compute":
                known.append(draft.dense(value, between(2, 16)))
            case "pack":
                like = [other for other in known if length(other) == length(value)]
                chosen = [like[between(0, len(like) - 1)] for _ in range(between(1, 3))]
                whole = draft.pack(between(0, 2), *chosen)
                known.append(draft.reshape(whole, (1, len(chosen) * length(value))))
            case "unpack":
                parts = between(1, min(4, length(value)))
                cut = (
                    draft.split(1, value, length(value) // parts * parts, length(value) % parts)[0]
                    if (length(value) % parts)
                    else value
                )
                rows = draft.reshape(cut, (parts, 1, length(value) // parts))
                known += draft.unpack(0, rows)
            case "split":
                first = between(1, length(value) - 1) if length(value) > 1 else 0
                known += draft.split(1, value, first, length(value) - first) if first else [value]
            case _:
                first = between(0, length(value) - 1)
                count = between(1, length(value) - first)
                known.append(draft.gather(1, value, *range(first, first + count)))
    made = [value for value in known if value not in draft.inputs]
    results = list(dict.fromkeys([made[-1], *(v for v in made if generator.random() < 0.2)]))[:3]
    return draft.model(*results, story=f"moves seed={seed} {' '.join(steps)}")
