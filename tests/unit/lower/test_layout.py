"""Packed weights, read as kernels read them: each step of each vector meets the weights of its channels."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from bytewright.lower.kernels.layout import End, Layout


def tiles(extent: int, size: int, end: End) -> list[list[int | None]]:
    """The elements of each tile of an axis; None where a zero is."""
    found: list[list[int | None]] = []
    for first in range(0, extent, size):
        start = first if first + size <= extent or end is End.ZEROS else extent - size
        members = range(start, start + size)
        found.append([i if i < extent and (end is not End.OVERLAP or i >= first) else None for i in members])
    return found


@pytest.mark.parametrize("seed", range(40))
def test_every_element_is_where_it_is_read(seed: int) -> None:
    random = np.random.default_rng(seed)
    lanes, vectors, group, runs = (int(random.integers(1, 6)) for _ in range(4))
    ends = [list(End)[int(random.integers(3))] for _ in range(2)]
    num_channels = int(random.integers(1 if ends[0] is End.ZEROS else lanes, 20))
    length = int(random.integers(1 if ends[1] is End.ZEROS else group, 20))
    weights = random.integers(-128, 128, (num_channels, runs * length)).astype(np.int8)
    by_element = bool(random.integers(2))
    layout = Layout(lanes, vectors, group, *ends, by_element=by_element)
    packed = layout.pack(weights, runs)
    expected: list[int] = []
    of_channels = tiles(num_channels, lanes, ends[0])
    for block in range(0, len(of_channels), vectors):
        for run in range(runs):
            for step in tiles(length, group, ends[1]):
                for channels in of_channels[block : block + vectors]:
                    pairs = list(product(channels, step))
                    if by_element:
                        pairs = [(channel, k) for k, channel in product(step, channels)]
                    for channel, k in pairs:
                        is_zero = channel is None or k is None
                        expected.append(0 if is_zero else int(weights[channel, run * length + k]))
    assert packed.tolist() == expected
    assert packed.dtype == weights.dtype
