import json

import pytest
from hypothesis import given
from target_descriptions import descriptions

from bytewright.target import BUILTIN_TARGETS, dump, dump_toml, load_description, load_target, load_text


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
        sizes = [pool.size_bytes for pool in target.pools_in(memory.name)]
        assert all(sizes)
        stacks = [
            context.max_stack_size_bytes or context.stack_reserve_bytes
            for context in target.contexts
            if context.memory == memory.name
        ]
        total_bytes = sum(size or 0 for size in sizes) + sum(stacks)
        takes_all = any(pool.takes_remainder for pool in target.pools_in(memory.name))
        assert total_bytes == memory.size_bytes if takes_all else total_bytes <= memory.size_bytes


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
