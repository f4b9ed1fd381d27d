"""What MVE's kernels are told of weights: the order in which they are read, and taps that may be summed in 16 bits."""

from __future__ import annotations

import numpy as np
import pytest

from bytewright import ir
from bytewright.lower.isa.mve.dot_products import CHANNELS, Chunks, num_blocks, packed_weights
from bytewright.lower.isa.mve.tap_sums import Taps, channels_of_vectors, packed_taps, tap_groups


@pytest.mark.parametrize(("channels", "depth"), [(1, 4), (6, 7), (5, 9), (4, 16), (9, 27), (3, 48), (2, 100)])
def test_packed_weights_give_the_dot_products(channels: int, depth: int) -> None:
    random = np.random.default_rng(depth)
    weights, x = random.integers(-128, 128, (channels, depth)), random.integers(-128, 128, depth)
    chunks = Chunks(depth)
    packed = packed_weights(weights).reshape(
        num_blocks(channels), len(chunks.offsets), CHANNELS, chunks.width
    )
    read = np.stack([x[first : first + chunks.width] for first in chunks.offsets])
    sums = np.einsum("bnjk,nk->bj", packed, read).reshape(-1)
    assert np.array_equal(sums[:channels], weights @ x)
    assert not sums[channels:].any()
    assert max(chunks.offsets) + chunks.width == depth


@pytest.mark.parametrize("seed", range(30))
def test_groups_of_taps_stay_within_16_bits(seed: int) -> None:
    random = np.random.default_rng(seed)
    channels, taps = int(random.integers(1, 40)), int(random.integers(1, 26))
    weights = np.clip(random.normal(0, random.uniform(5, 90), (channels, taps)), -128, 127).astype(np.int8)
    groups = tap_groups(weights)
    assert sorted(tap for group in groups for tap in group) == list(range(taps))
    for group in groups:
        own = weights[:, group].astype(np.int64)
        highest = np.where(own > 0, 127 * own, -128 * own).sum(axis=1).max()
        lowest = np.where(own > 0, -128 * own, 127 * own).sum(axis=1).min()
        assert len(group) == 1 or -(2**15) <= lowest <= highest < 2**15


def test_two_products_of_least_bytes_are_too_many() -> None:
    # One is 2^14, and two are 2^15; of 127 there may be two.
    assert tap_groups(np.array([[-128, -128, 0]])) == ((0, 2), (1,))
    assert tap_groups(np.array([[127, 0, -127]])) == ((0, 1, 2),)


@pytest.mark.parametrize(("element", "lanes"), [(ir.DType.I8, 16), (ir.DType.I16, 8)])
@pytest.mark.parametrize("channels", [16, 21, 48, 50])
def test_packed_taps_and_channels_are_in_one_order(channels: int, element: ir.DType, lanes: int) -> None:
    weights = np.arange(channels)[:, None] * 10 + np.arange(3)
    taps = Taps(1, ((0, 0), (0, channels), (0, 2 * channels)), ((2, 0), (1,)), element=element)
    packed = packed_taps(weights, taps).reshape(-1, 3, lanes)
    assert [packed[0, i, 5] for i in range(3)] == [52, 50, 51]
    assert packed[-1, 0, lanes - 1] == (channels - 1) * 10 + 2
    vectors = channels_of_vectors(channels, element).reshape(-1, lanes)
    assert [sorted(block) for block in vectors.tolist()] == [sorted(b) for b in (packed[:, 1] // 10).tolist()]
