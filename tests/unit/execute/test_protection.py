"""Regions of memory protection: disjoint, in granules of 32 bytes, as many as there are, and never too generous."""

import struct
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bytewright.diagnostics import CompileError
from bytewright.execute.boards.protection import (
    ProtectedRegion,
    Rights,
    access_at,
    disjoint_regions,
    fitted_regions,
    region_words,
)

READ, WRITE, EXECUTE = Rights.READ, Rights.WRITE, Rights.EXECUTE
SPANS = st.lists(
    st.tuples(st.integers(0, 2000), st.integers(0, 300), st.sampled_from(Rights)).map(
        lambda drawn: (drawn[0], drawn[0] + drawn[1], drawn[2])
    ),
    max_size=12,
)


def test_an_array_is_cut_out_of_its_section() -> None:
    assert disjoint_regions([(0x100, 0x200, READ), (0x120, 0x141, WRITE)]) == (
        ProtectedRegion(0x100, 0x120, READ),
        ProtectedRegion(0x120, 0x160, WRITE),
        ProtectedRegion(0x160, 0x200, READ),
    )


def test_neighbours_of_one_right_are_one_region() -> None:
    assert disjoint_regions([(0x100, 0x110, WRITE), (0x110, 0x130, WRITE)]) == (
        ProtectedRegion(0x100, 0x140, WRITE),
    )


def granule_rights(spans: list[tuple[int, int, Rights]], granule: int) -> set[Rights]:
    """By definition: the rights of the bytes of a granule."""
    first = granule * 32
    return {access for begin, end, access in spans if begin < end and begin < first + 32 and end > first}


@given(SPANS)
def test_each_granule_has_the_strongest_right_of_its_bytes(spans: list[tuple[int, int, Rights]]) -> None:
    regions = disjoint_regions(spans)
    for before, after in pairwise(regions):
        assert before.end < after.first or (before.end == after.first and before.access != after.access)
    for granule in range(2400 // 32):
        rights = granule_rights(spans, granule)
        expected = next((right for right in (WRITE, EXECUTE, READ) if right in rights), None)
        assert access_at(regions, granule * 32 + 7) == expected


@given(SPANS, st.integers(1, 8))
def test_fewer_regions_never_let_a_run_write_more(
    spans: list[tuple[int, int, Rights]], num_regions: int
) -> None:
    exact = disjoint_regions(spans)
    try:
        regions = fitted_regions(spans, num_regions, "a run", "help")
    except CompileError:
        assert len(exact) > num_regions
        return
    assert len(regions) <= num_regions
    for address in range(0, 2400, 32):
        before, after = access_at(exact, address), access_at(regions, address)
        assert after == before or (before is None and after is READ)
    assert len(exact) > num_regions or regions == exact


def test_the_smallest_gap_is_given_up_first() -> None:
    spans = [(0x000, 0x020, READ), (0x100, 0x120, READ), (0x140, 0x160, READ), (0x200, 0x220, WRITE)]
    assert fitted_regions(spans, 3, "a run", "help") == (
        ProtectedRegion(0x000, 0x020, READ),
        ProtectedRegion(0x100, 0x160, READ),
        ProtectedRegion(0x200, 0x220, WRITE),
    )


def test_too_many_arrays_are_refused() -> None:
    spans = [(0x100 * index, 0x100 * index + 0x20, WRITE) for index in range(17)]
    with pytest.raises(CompileError) as caught:
        fitted_regions(spans, 16, "a run on mps3-an547", "--workspace dtcm")
    (diagnostic,) = caught.value.diagnostics
    assert (diagnostic.code, diagnostic.message, diagnostic.help) == (
        "BW204",
        "a run on mps3-an547 needs 17 regions of memory protection, the board has 16",
        "--workspace dtcm",
    )


def test_the_registers() -> None:
    """RBAR: base, AP[2:1] in bits 2 and 1, XN in bit 0. RLAR: the last granule, enable in bit 0."""
    regions = (
        ProtectedRegion(0x10000400, 0x10000800, EXECUTE),
        ProtectedRegion(0x20000000, 0x20000020, WRITE),
        ProtectedRegion(0x28000000, 0x28000040, READ),
    )
    assert struct.unpack("<8I", region_words(regions, 4)) == (
        *(0x10000400 | 0b110, 0x100007E0 | 1),
        *(0x20000000 | 0b011, 0x20000000 | 1),
        *(0x28000000 | 0b111, 0x28000020 | 1),
        *(0, 0),
    )
