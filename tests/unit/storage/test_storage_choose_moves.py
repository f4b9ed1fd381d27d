"""Which arrays leave the stack, against all subsets tried one by one."""

from __future__ import annotations

from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from bytewright.storage.choose_moves import Array, Demand, choose_moves


def cheapest_by_trial(demands: list[Demand]) -> tuple[int, int]:
    """Bytes and number of the best of all subsets."""
    sizes = {array: size for demand in demands for array, size in demand.arrays.items()}
    return min(
        (sum(sizes[a] for a in chosen), number)
        for number in range(len(sizes) + 1)
        for chosen in combinations(sorted(sizes), number)
        if all(meets(demand, chosen) for demand in demands)
    )


def meets(demand: Demand, chosen: tuple[Array, ...] | frozenset[Array]) -> bool:
    return sum(size for array, size in demand.arrays.items() if array in chosen) >= demand.needed_bytes


@st.composite
def demand_lists(draw: st.DrawFn) -> list[Demand]:
    """Paths that share arrays of a few sizes, each of which can be met."""
    num_arrays = draw(st.integers(1, 9))
    sizes = {("k", f"a{i}"): draw(st.sampled_from((1, 2, 3, 8, 64, 65, 100, 900))) for i in range(num_arrays)}
    demands: list[Demand] = []
    for _ in range(draw(st.integers(1, 4))):
        arrays = draw(st.lists(st.sampled_from(sorted(sizes)), min_size=1, unique=True))
        own = {array: sizes[array] for array in arrays}
        demands.append(Demand(own, draw(st.integers(1, sum(own.values()))), "because"))
    return demands


@given(demand_lists())
def test_no_subset_that_suffices_has_fewer_bytes(demands: list[Demand]) -> None:
    chosen = choose_moves(demands)
    sizes = {array: size for demand in demands for array, size in demand.arrays.items()}
    assert all(meets(demand, chosen) for demand in demands)
    assert (sum(sizes[array] for array in chosen), len(chosen)) == cheapest_by_trial(demands)


def test_fewer_bytes_come_before_fewer_arrays() -> None:
    arrays = {("k", "a"): 64, ("k", "b"): 64, ("k", "c"): 129}
    assert choose_moves([Demand(arrays, 128, "")]) == {("k", "a"), ("k", "b")}
    assert choose_moves([Demand({**arrays, ("k", "d"): 128}, 128, "")]) == {("k", "d")}


def test_a_hundred_arrays_are_no_matter() -> None:
    """Powers of two would have 2^100 subsets; what a path still lacks has 5000 values."""
    arrays = {("k", f"a{i:03}"): 1 + 7 * i for i in range(100)}
    chosen = choose_moves([Demand(arrays, 5000, "")])
    assert sum(arrays[array] for array in chosen) == 5000
