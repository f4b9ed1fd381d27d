"""plan.json says of every buffer where it is, how long it lives, and why."""

from __future__ import annotations

import json
from typing import Any

from bytewright.ir.builder import BodyBuilder, region
from bytewright.ir.module import Module
from bytewright.ir.prim import PrimFunc
from bytewright.ir.scope import LOCAL, WORKSPACE
from bytewright.ir.storage import Storage
from bytewright.record.plan_file import SCHEMA, document_of, hash_document
from bytewright.target.load import load_description
from bytewright.target.options import Overrides, apply_overrides, parse_pool_option
from bytewright.target.registry import load_target
from support.hand_built import WHERE, add_kernel, constant, module_of, planned, reverse_kernel, tensor

SIZE = 48
TARGET = apply_overrides(
    load_target("mps3-an547"),
    Overrides(workspace=(parse_pool_option("dtcm=64"), parse_pool_option("isram=1KiB"))),
)


def hand_built() -> Module:
    """x -> (scratch in the workspace) -> a -> (private scratch) -> b -> + constants -> y."""
    kernels = [reverse_kernel("m_one", SIZE), reverse_kernel("m_two", SIZE, LOCAL), add_kernel("m_add", SIZE)]
    item = constant("three/addend", range(SIZE))
    body = BodyBuilder(("x", "y"))
    first, last = tensor("x", SIZE), tensor("y", SIZE)
    a, b = (
        body.allocate(tensor("one/out", SIZE), Storage(WORKSPACE)),
        body.allocate(tensor("two/out", SIZE), Storage(WORKSPACE)),
    )
    body.call("m_one", region(first), region(a), operators=("0 (REVERSE)",), where=WHERE)
    body.call("m_two", region(a), region(b), operators=("1 (REVERSE)", "2 (RELU)"), where=WHERE)
    body.call("m_add", region(b), region(item.buffer), region(last), operators=("3 (ADD)",), where=WHERE)
    return module_of("m", kernels, body.finish(), first, last, [item])


def document() -> dict[str, Any]:
    return document_of(planned(hand_built(), TARGET).plan)


def buffers() -> dict[str, dict[str, Any]]:
    return {buffer["name"]: buffer for buffer in document()["buffers"]}


def test_the_head() -> None:
    found = document()
    assert (found["schema"], found["model"], found["target"], found["numerics"], found["io"]) == (
        SCHEMA,
        "m",
        "mps3-an547",
        "ir",
        "caller",
    )
    assert load_description(found["target_description"]) == TARGET


def test_pools_with_capacity_use_and_bound() -> None:
    pools = {pool["name"]: pool for pool in document()["pools"]}
    assert list(pools) == ["dtcm", "isram", "flash"]
    assert [pools[name]["capacity_bytes"] for name in pools] == [64, 1024, 8 << 20]
    assert [pools[name]["role"] for name in pools] == ["workspace", "workspace", "parameters"]
    assert [pools[name]["provider"] for name in pools] == ["caller", "caller", "generated"]
    assert pools["dtcm"]["used_bytes"] <= 64
    assert sum(pools[name]["used_bytes"] for name in ("dtcm", "isram")) == 2 * SIZE
    assert all(pool["lower_bound_bytes"] <= pool["used_bytes"] for pool in pools.values())
    assert all(
        pool["optimal"] == (pool["lower_bound_bytes"] == pool["used_bytes"]) for pool in pools.values()
    )
    assert pools["flash"]["used_bytes"] == SIZE
    assert pools["flash"]["section"] == ".flash"


def test_every_buffer_has_a_role_and_a_place() -> None:
    found = buffers()
    assert {name: (b["role"], b["place"]["kind"], b["size_bytes"]) for name, b in found.items()} == {
        "x": ("input", "caller", SIZE),
        "y": ("output", "caller", SIZE),
        "one/out": ("tensor", "planned", SIZE),
        "one/scratch0": ("scratch", "planned", SIZE),
        "two/out": ("tensor", "planned", SIZE),
        "m_two/scratch0": ("scratch", "stack", SIZE),
        "three/addend": ("parameter", "constant", SIZE),
    }
    for buffer in found.values():
        if buffer["place"]["kind"] == "planned":
            assert buffer["place"]["name"] in buffer["candidates"]
            assert buffer["scope"] == f"global.{buffer['place']['name']}"
            assert buffer["place"]["offset"] % buffer["alignment"] == 0
    assert found["m_two/scratch0"]["place"] == {"kind": "stack", "name": "cpu", "offset": None}
    assert found["three/addend"]["place"] == {"kind": "constant", "name": "flash", "offset": 0}


def test_lifetimes_and_steps() -> None:
    found = buffers()
    assert {name: (b["live"], b["first_step"], b["last_step"]) for name, b in found.items()} == {
        "x": ([0, 2], 0, 0),
        "y": ([9, 11], 2, 2),
        "one/out": ([2, 6], 0, 1),
        "one/scratch0": ([1, 3], 0, 0),
        "two/out": ([6, 10], 1, 2),
        "m_two/scratch0": (None, None, None),
        "three/addend": ([0, 11], 2, 2),
    }
    assert [(s["index"], s["ticks"], s["kernel"], s["operators"]) for s in document()["steps"]] == [
        (0, [0, 4], "m_one", ["0 (REVERSE)"]),
        (1, [4, 8], "m_two", ["1 (REVERSE)", "2 (RELU)"]),
        (2, [8, 11], "m_add", ["3 (ADD)"]),
    ]


def test_steps_say_what_they_read_and_write() -> None:
    assert [(s["reads"], s["writes"], s["scratch"]) for s in document()["steps"]] == [
        (["x"], ["one/out"], ["one/scratch0"]),
        (["one/out"], ["two/out"], []),
        (["two/out", "three/addend"], ["y"], []),
    ]


def test_steps_say_when_they_need_what_they_touch() -> None:
    """The first two copy their input to scratch in one tick of the body, and from it in the other."""
    assert [s["alive"] for s in document()["steps"]] == [
        {"x": [1, 2], "one/out": [2, 3], "one/scratch0": [1, 3]},
        {"one/out": [5, 6], "two/out": [6, 7]},
        {"two/out": [9, 10], "three/addend": [9, 10], "y": [9, 10]},
    ]


def test_every_buffer_has_a_reason() -> None:
    found = buffers()
    assert all(buffer["reason"] for buffer in found.values())
    assert "over max-stack-alloca-size" in found["one/scratch0"]["reason"]
    assert f"plan: {found['one/scratch0']['place']['name']}" in found["one/scratch0"]["reason"]
    assert "private" in found["m_two/scratch0"]["reason"]
    assert "caller" in found["x"]["reason"]


def test_the_stack() -> None:
    stack = document()["stack"]["cpu"]
    device = TARGET.default_device
    assert stack["planned_bytes"] == SIZE
    assert stack["size_bytes"] == SIZE + 2 * device.stack_allowance_per_call_bytes
    assert stack["limit_bytes"] == device.contexts[0].available_stack_bytes
    assert stack["path"] == ["main", "m_two"]


def test_the_hash_covers_the_plan_and_json_keeps_it() -> None:
    found = document()
    assert found["plan_hash"] == hash_document(found)
    assert hash_document(json.loads(json.dumps(found))) == found["plan_hash"]
    found["buffers"][2]["place"]["offset"] += 16
    assert hash_document(found) != found["plan_hash"]


def test_the_same_module_gives_the_same_document() -> None:
    assert document() == document()


def test_an_array_of_a_kernel_never_has_the_name_of_a_tensor() -> None:
    """Both are lists of names with slashes: the kernel `one` has an array `out`, and the entry a tensor `one/out`."""
    kernels = [reverse_kernel("m_one", SIZE, LOCAL), reverse_kernel("m_two", SIZE)]
    (array,) = [name for name in (b["name"] for b in chain_document(kernels, "one/out")) if "m_one/" in name]
    found = [b["name"] for b in chain_document(kernels, array)]
    assert sorted(found) == sorted({*found})
    assert {array, f"{array}_"} <= {*found}


def chain_document(kernels: list[PrimFunc], name: str) -> list[dict[str, Any]]:
    """The buffers of x -> m_one -> the named tensor -> m_two -> y."""
    body = BodyBuilder(("x", "y"))
    first, last = tensor("x", SIZE), tensor("y", SIZE)
    between = body.allocate(tensor(name, SIZE), Storage(WORKSPACE))
    body.call("m_one", region(first), region(between), operators=("0",), where=WHERE)
    body.call("m_two", region(between), region(last), operators=("1",), where=WHERE)
    module = module_of("m", kernels, body.finish(), first, last, [])
    return document_of(planned(module, TARGET).plan)["buffers"]
