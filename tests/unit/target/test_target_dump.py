import json
from itertools import permutations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from target_descriptions import descriptions

from bytewright.diagnostics import CompileError
from bytewright.target import (
    BUILTIN_TARGETS,
    Memory,
    Target,
    dump,
    dump_toml,
    load_description,
    load_target,
    load_text,
)


@given(descriptions())
def test_what_is_dumped_loads_as_an_equal_target(description: dict[str, object]) -> None:
    target = load_description(description)
    assert load_description(dump(target)) == target
    assert load_text(json.dumps(dump(target), sort_keys=False), "x.json") == target
    assert load_text(dump_toml(target), "x.toml") == target


@given(descriptions())
def test_every_pool_of_a_limited_memory_has_a_size_and_all_fit(description: dict[str, object]) -> None:
    target = load_description(description)
    for memory in target.memories:
        if memory.size_bytes is None:
            continue
        assert all(pool.size_bytes for pool in target.pools_in(memory.name))
        assert all(pool.size_bytes for pool in target.pools_loaded_from(memory.name))
        assert _fits(target, memory, more_bytes=0)
        if any(pool.takes_remainder for pool in target.pools_in(memory.name)):
            assert not _fits(target, memory, more_bytes=1)


def _fits(target: Target, memory: Memory, more_bytes: int) -> bool:
    """Whether some order of what lies in a memory fits, by trying all of them; `more_bytes` for the open pool."""
    parts = [
        ((pool.size_bytes or 0) + more_bytes * pool.takes_remainder, pool.alignment)
        for pool in target.pools_in(memory.name)
    ]
    parts += [
        (context.max_stack_size_bytes or context.stack_reserve_bytes, 8)
        for context in target.contexts
        if context.memory == memory.name
    ]
    parts += [
        (p.size_bytes or 0, 1 if p.is_copied else p.alignment) for p in target.pools_loaded_from(memory.name)
    ]
    ends: list[int] = []
    assume(len(parts) <= 7)
    for order in permutations(parts):
        end = 0
        for size_bytes, alignment in order:
            end = -(-end // alignment) * alignment + size_bytes
        ends.append(end)
    return min(ends) <= (memory.size_bytes or 0)


@pytest.mark.parametrize("name", BUILTIN_TARGETS)
def test_built_in_targets_survive(name: str) -> None:
    target = load_target(name)
    assert load_text(json.dumps(dump(target)), "x.json") == target
    assert load_text(dump_toml(target), "x.toml") == target


def test_a_dump_is_resolved_and_has_integers() -> None:
    values = dump(load_target("mps3-an547"))
    workspace = values["workspace"]
    assert workspace == [
        {
            "name": "dtcm",
            "memory": "dtcm",
            "size": 65536,
            "alignment": 16,
            "provider": "caller",
            "devices": ["cpu"],
        },
        {
            "name": "isram",
            "memory": "isram",
            "size": 4 << 20,
            "remainder": True,
            "alignment": 16,
            "provider": "caller",
            "devices": ["cpu"],
        },
    ]


def test_toml_is_for_people() -> None:
    lines = dump_toml(load_target("mps3-an547")).splitlines()
    assert "base = 0x20000000" in lines
    assert 'size = "64KiB"' in lines
    assert "[memory.dtcm]" in lines
    assert "[[parameters]]" in lines


_JUNK = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-2, 2**70),
    st.floats(),
    st.sampled_from(["", "dtcm", "stack", "64KiB", "unlimited", "r", "\x00", "a\nb"]),
    st.just([]),
    st.just([[]]),
    st.just({}),
    st.just({"": 1}),
)


@given(descriptions(), st.data())
def test_a_damaged_description_is_loaded_or_refused_never_a_crash(
    description: dict[str, object], data: st.DataObject
) -> None:
    damaged = dump(load_description(description))
    place: object = damaged
    while True:
        assert isinstance(place, dict | list)
        key = data.draw(st.sampled_from(sorted(place) if isinstance(place, dict) else range(len(place))))
        inner = place[key]
        if not isinstance(inner, dict | list) or not inner or data.draw(st.integers(0, 4)) == 0:
            break
        place = inner
    if isinstance(place, dict) and data.draw(st.booleans()):
        del place[key]
    else:
        place[key] = data.draw(_JUNK)
    target, codes = None, {"BW202"}
    try:
        target = load_description(damaged)
    except CompileError as error:
        codes = {diagnostic.code for diagnostic in error.diagnostics}
    if target is None:
        assert codes == {"BW202"}
    else:
        assert load_description(dump(target)) == target
        assert load_text(dump_toml(target), "x.toml") == target
