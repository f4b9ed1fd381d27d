"""Items are told apart as far as their ties go, as colours of vertices are refined, and by nothing else."""

from __future__ import annotations

from collections import Counter
from random import Random
from time import process_time

from hypothesis import given
from hypothesis import strategies as st

from bytewright.place.refine_partition import refine_partition

Edge = tuple[int, str, int]


def told_apart(first: list[bytes], edges: list[Edge]) -> list[int]:
    ties: list[list[tuple[str, int]]] = [[] for _ in first]
    for source, word, sink in edges:
        ties[source].append((f"to {word}", sink))
        ties[sink].append((f"from {word}", source))
    return refine_partition(first, ties)


def refined(first: list[bytes], edges: list[Edge]) -> list[object]:
    """The same by definition: a colour takes in those around it, as often as there are items."""
    colours: list[object] = list(first)
    for _ in first:
        around = [Counter[object]() for _ in first]
        for source, word, sink in edges:
            around[source]["to", word, colours[sink]] += 1
            around[sink]["from", word, colours[source]] += 1
        both = [(own, frozenset(counts.items())) for own, counts in zip(colours, around, strict=True)]
        numbers = {colour: number for number, colour in enumerate(dict.fromkeys(both))}
        colours = [numbers[colour] for colour in both]
    return colours


def drawn(random: Random) -> tuple[list[bytes], list[Edge]]:
    """Few words and few ties, often several of one kind between two items, and an item with itself."""
    items = range(random.randint(1, 14))
    first = [random.choice((b"a", b"a", b"a", b"b")) for _ in items]
    count = random.randint(0, 2 * len(items))
    edges = [(random.choice(items), random.choice("ppq"), random.choice(items)) for _ in range(count)]
    return first, edges


def partition(classes: list[int] | list[object]) -> set[frozenset[int]]:
    return {frozenset(i for i, other in enumerate(classes) if other == one) for one in classes}


@given(st.integers(0, 1 << 32))
def test_it_goes_as_far_as_colours_do(seed: int) -> None:
    first, edges = drawn(Random(seed))
    assert partition(told_apart(first, edges)) == partition(refined(first, edges))


@given(st.integers(0, 1 << 32))
def test_numbers_follow_the_items_in_any_order(seed: int) -> None:
    random = Random(seed)
    first, edges = drawn(random)
    new = random.sample(range(len(first)), len(first))
    other = [b""] * len(first)
    for item, key in enumerate(first):
        other[new[item]] = key
    moved = [(new[source], word, new[sink]) for source, word, sink in edges]
    found = told_apart(other, random.sample(moved, len(moved)))
    assert [found[new[item]] for item in range(len(first))] == told_apart(first, edges)


def test_a_long_chain_of_equal_items_is_told_apart_at_once() -> None:
    """Each item only by how far it is from both ends; measured at 0.4 s of processor time."""
    count = 20_000
    begin = process_time()
    found = told_apart([b""] * count, [(item, "next", item + 1) for item in range(count - 1)])
    assert process_time() - begin < 10
    assert len(set(found)) == count
