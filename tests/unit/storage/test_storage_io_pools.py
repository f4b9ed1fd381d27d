"""`[[io]]` pools hold the planned inputs and outputs, and nothing else; their sizes are limits."""

from __future__ import annotations

from pathlib import Path

import pytest

import bytewright
from bytewright.diagnostics import CompileError
from bytewright.inspect.check import check_bundle
from bytewright.target import Target, dump_toml, load_target, load_text
from support.digits_bundle import DIGITS

IO = '\n[[io]]\nname = "{name}"\nmemory = "{memory}"\nsize = {size}\n'


def target(*pools: tuple[str, str, int]) -> Target:
    text = dump_toml(load_target("mps3-an547"))
    return load_text(text + "".join(IO.format(name=n, memory=m, size=s) for n, m, s in pools), "board.toml")


def test_inputs_and_outputs_are_in_the_pools_for_them_and_nothing_else_is(tmp_path: Path) -> None:
    model = bytewright.compile(
        DIGITS, target=target(("frames", "dtcm", 64), ("results", "sram", 16)), io="workspace"
    )
    places = {
        buffer.name: buffer.place.name
        for buffer in model.plan.buffers.values()
        if buffer.role in ("input", "output")
    }
    assert set(places.values()) <= {"frames", "results"}
    assert len(places) == 2
    others = [
        b
        for b in model.plan.buffers.values()
        if b.place.name in ("frames", "results") and b.name not in places
    ]
    assert others == []
    assert check_bundle(model.write(tmp_path / "out")).num_buffers > 0


def test_an_io_pool_is_a_hard_limit() -> None:
    with pytest.raises(CompileError) as caught:
        bytewright.compile(DIGITS, target=target(("frames", "dtcm", 8)), io="workspace")
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code == "BW301"
    assert "frames  8B, " in str(diagnostic.notes) or "frames" in diagnostic.message
    exact = bytewright.compile(DIGITS, target=target(("frames", "dtcm", 80)), io="workspace")
    assert 64 <= exact.plan.pools["frames"].used_bytes <= 80


def test_the_help_works_when_followed() -> None:
    with pytest.raises(CompileError) as caught:
        bytewright.compile(DIGITS, target=target(("frames", "dtcm", 8)), io="workspace")
    option = (caught.value.diagnostics[0].help or "").split()
    assert option[0] == "--resize"
    resized = bytewright.compile(
        DIGITS, target=target(("frames", "dtcm", 8)), io="workspace", resize=option[1]
    )
    assert resized.plan.pools["frames"].used_bytes >= 64


@pytest.mark.slow
def test_a_pin_to_an_io_pool() -> None:
    two = target(("frames", "dtcm", 128), ("results", "sram", 128))
    name = next(
        b.name
        for b in bytewright.compile(DIGITS, target=two, io="workspace").plan.buffers.values()
        if b.role == "input"
    )
    plan = bytewright.compile(DIGITS, target=two, io="workspace", pins=f"{name}=results").plan
    assert plan.buffers[name].place.name == "results"
    for arguments in ({"pins": f"{name}=results"}, {"pins": "conv2d_0/out=results"}):
        with pytest.raises(CompileError) as caught:
            bytewright.compile(DIGITS, target=two, **arguments)  # type: ignore[arg-type]
        assert "is for inputs and outputs" in str(caught.value)
    with pytest.raises(CompileError) as caught:
        bytewright.compile(DIGITS, target=two, io="workspace", pins="conv2d_0/out=results")
    assert "is for inputs and outputs alone" in str(caught.value)
    with pytest.raises(CompileError) as caught:
        bytewright.compile(DIGITS, target=two, io="workspace", pins=f"{name}=isram")
    assert "is not for inputs and outputs" in str(caught.value)


def test_io_pools_are_not_used_where_the_application_brings_inputs_and_outputs() -> None:
    plain, lent = (
        bytewright.compile(DIGITS, target=t) for t in (load_target("mps3-an547"), target(("f", "dtcm", 8)))
    )
    assert list(plain.plan.pools) == list(lent.plan.pools)
    assert plain.plan.workspace_bytes == lent.plan.workspace_bytes


def test_a_list_of_workspaces_leaves_io_pools_alone() -> None:
    plan = bytewright.compile(
        DIGITS, target=target(("frames", "dtcm", 128)), io="workspace", workspace="isram=64KiB"
    ).plan
    assert [pool.name for pool in plan.pools.values() if pool.role == "workspace"] == ["isram", "frames"]


@pytest.mark.run
def test_a_model_with_io_pools_runs() -> None:
    import numpy as np

    images = np.load(DIGITS.parent / "heldout.npz")["images"][:1]
    model = bytewright.compile(DIGITS, target=target(("frames", "dtcm", 128)), io="workspace")
    assert np.array_equal(model.run(images), bytewright.compile(DIGITS).run(images))
