"""The regions that core 1 opens for what it is lent: disjoint, and exactly what the protection of core 0 would have."""

from __future__ import annotations

import subprocess
from pathlib import Path

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from bytewright.execute.boards.protection import Rights, disjoint_regions
from bytewright.execute.build import harness_source
from bytewright.execute.tools import compile_c, find_host_compiler

pytestmark = pytest.mark.run

MAIN = """
#include <stdio.h>
#include <stdlib.h>
#include "second_core_regions.h"

int main(int argc, char **argv)
{
    struct region regions[64] = {{0u, 0u, 0u}};
    uint32_t num_regions = 1;

    for (int index = 1; index + 2 < argc; index += 3) {
        const uint32_t first = (uint32_t)strtoul(argv[index], NULL, 0);
        const uint32_t size_bytes = (uint32_t)strtoul(argv[index + 1], NULL, 0);
        const uint32_t rights = (uint32_t)strtoul(argv[index + 2], NULL, 0);
        num_regions = insert_region(regions, 1, num_regions, region_of(first, size_bytes, rights));
    }
    num_regions = separate(regions, 1, num_regions);
    for (uint32_t index = 1; index < num_regions; ++index) {
        printf("%u %u %u\\n", regions[index].first, regions[index].end, regions[index].rights);
    }
    return MAY_EXECUTE != 6;
}
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("regions")
    (folder / "second_core_regions.h").write_text(harness_source("boards", "second_core_regions.h"))
    (folder / "main.c").write_text(MAIN)
    warnings = ["-std=c99", "-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Werror"]
    compile_c(
        [*find_host_compiler(), *warnings, "main.c", "-o", "main"], directory=folder, what="the compiler"
    )
    return folder / "main"


@st.composite
def spans(draw: st.DrawFn) -> list[tuple[int, int, Rights]]:
    """Disjoint spans, near enough to share granules, in any order."""
    found: list[tuple[int, int, Rights]] = []
    address = draw(st.integers(0x1000, 0x1040))
    for _ in range(draw(st.integers(0, 8))):
        address += draw(st.integers(0, 40))
        size_bytes = draw(st.integers(0, 100))
        found.append((address, size_bytes, draw(st.sampled_from((Rights.READ, Rights.WRITE)))))
        address += size_bytes
    return draw(st.permutations(found))


def by_granule(regions: list[tuple[int, int, int]]) -> dict[int, int]:
    """The rights of each granule; none is in two regions."""
    found: dict[int, int] = {}
    for first, end, rights in regions:
        assert first < end
        for granule in range(first, end, 32):
            assert granule not in found
            found[granule] = rights
    return found


@settings(max_examples=100, deadline=None)
@given(lent=spans())
def test_regions_are_disjoint_and_open_what_is_lent(
    program: Path, lent: list[tuple[int, int, Rights]]
) -> None:
    arguments = [str(int(number)) for span in lent for number in span]
    output = subprocess.run([program, *arguments], capture_output=True, text=True, check=True).stdout
    regions = [(int(a), int(b), int(c)) for a, b, c in (line.split() for line in output.splitlines())]
    expected = disjoint_regions((first, first + size_bytes, rights) for first, size_bytes, rights in lent)
    assert by_granule(regions) == by_granule([(r.first, r.end, int(r.access)) for r in expected])
