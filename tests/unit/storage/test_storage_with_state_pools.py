"""Pools for states where the target has none: in memories that all reach who touch a state, the entry's device too."""

from __future__ import annotations

from pathlib import Path

import pytest

from bytewright.compiler.pipeline import compile_model
from bytewright.diagnostics import CompileError
from bytewright.ir.border import Io
from bytewright.options import Options
from bytewright.target import load_text
from bytewright.target.model import Role
from support.parsing import parse_module
from support.parted_states import APART, keeping

GRAPH = """
module kept

input %x : tensor<8xf32>
output %y : tensor<8xf32>
state %s : tensor<8xf32>

func main(%a : tensor<8xf32>, %s : tensor<8xf32>) -> (%r, %n) {
  %t : tensor<8xf32> = on_device(%s) {device="core1", scope="global.left", fixed=false, free=false}
  %n : tensor<8xf32> = add(%a, %t)
  %o : tensor<8xf32> = on_device(%n) {device="core1", scope=none, fixed=false, free=false}
  %r : tensor<8xf32> = add(%o, %o)
}
"""


def kept(text: str, target: str = APART) -> dict[str, tuple[str, str]]:
    """Pool and memory of each state."""
    plan = compile_model(parse_module(text, {}, {}), load_text(target, "apart.toml")).plan
    pools = [plan.buffers[state.buffer].place.name for state in plan.states]
    return {
        state.name: (pool, plan.pools[pool].memory) for state, pool in zip(plan.states, pools, strict=True)
    }


def test_all_are_in_the_first_memory_that_all_reach() -> None:
    assert kept(keeping(("cpu", "a"), ("cpu", "b"))) == {"a": ("kept", "near"), "b": ("kept", "near")}
    assert kept(keeping(("cpu", "a"), ("core2", "b"))) == {"a": ("kept", "right"), "b": ("kept", "right")}


def test_what_cannot_be_together_has_a_pool_in_each_memory() -> None:
    found = kept(keeping(("core2", "a"), ("cpu", "b"), ("core1", "c"), ("core2", "d")))
    assert found == {
        "a": ("kept", "right"),
        "b": ("kept_1", "near"),
        "c": ("kept_2", "left"),
        "d": ("kept", "right"),
    }


def test_a_memory_without_room_is_passed_over() -> None:
    small = APART.replace('[memory.near]\nsize = "64KiB"', '[memory.near]\nsize = "24600"')
    assert kept(keeping(("cpu", "a")), small) == {"a": ("kept", "left")}


def test_a_state_of_two_that_share_no_memory_is_copied_for_one_and_back() -> None:
    plan = compile_model(
        parse_module(keeping(("core1", "a"), ("core2", "a")), {}, {}), load_text(APART, "apart.toml")
    ).plan
    moved = [(step.device, step.reads, step.writes) for step in plan.steps if "a" in step.touched]
    assert [(device, "a" in reads, "a" in writes) for device, reads, writes in moved] == [
        ("core1", True, True),
        ("cpu", True, False),
        ("cpu", False, True),
        ("cpu", True, False),  # the output
    ]
    assert plan.pools[plan.buffers["a"].place.name].memory == "left"


def test_state_pools_of_the_target_decide_who_is_given_a_copy() -> None:
    text = keeping(("core1", "a"), ("core2", "a"))
    for memory in ("left", "right", "near"):
        pool = f'[[state]]\nname = "own"\nmemory = "{memory}"\n'
        assert kept(text, APART + pool) == {"a": ("own", memory)}


def test_what_a_kernel_asks_for_is_asked_of_a_copy() -> None:
    text = keeping(("cpu", "a")).replace("s : buffer<8xi32> rw", 's : buffer<8xi32, "global.left"> rw')
    assert kept(text) == {"a": ("kept", "near")}


@pytest.mark.parametrize("io", [Io.CALLER, Io.WORKSPACE])
@pytest.mark.parametrize("memory", ["near", "left", None])
def test_a_state_of_a_graph_that_is_wanted_in_a_pool_is_copied_there(
    io: Io, memory: str | None, tmp_path: Path
) -> None:
    (tmp_path / "kept.bw").write_text(GRAPH)
    own = "" if memory is None else f'[[state]]\nname = "own"\nmemory = "{memory}"\n'
    plan = compile_model(tmp_path / "kept.bw", load_text(APART + own, "apart.toml"), Options(io=io)).plan
    kept = plan.pools[plan.buffers["s"].place.name]
    assert (kept.role, kept.memory) == (Role.STATE, memory or "left")


def test_a_state_that_has_no_place_is_refused_with_what_each_memory_lacks() -> None:
    full = APART.replace('[memory.right]\nsize = "64KiB"', "[memory.right]\nsize = 20488")
    with pytest.raises(CompileError) as caught:
        kept(keeping(("core2", "a")), full)
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code == "BW301"
    assert diagnostic.message == (
        "state 'a' of 32 B has room in no memory of a workspace that all reach who touch it"
    )
    touches = "kernel 'keep_on_core2' of device 'core2' touches it"
    assert diagnostic.notes == (
        f"near  is not reached by 'core2': {touches}",
        f"left  is not reached by 'core2': {touches}",
        "right  24 B too few beside stacks and pools",
    )
    assert "[[state]]" in (diagnostic.help or "")
