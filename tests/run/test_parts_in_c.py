"""Slices and concatenations that cost nothing: the C equals LiteRT under sanitizers, and no plan is larger for it.

BYTEWRIGHT_TESTS=thorough takes four times as many networks.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from bytewright.bundle.write import write_bundle
from bytewright.compiler import store
from bytewright.compiler.pipeline import Compiled, compile_model
from bytewright.execute.paranoid import run_paranoid
from bytewright.inspect.check import check_bundle
from bytewright.ir.border import Io
from bytewright.options import Options
from bytewright.target.registry import load_target
from support.against_reference import assert_equals_reference
from support.compilers import QUICK
from support.many_models import SANITIZERS
from support.part_models import branches, detector, padded, random_parts
from support.random_models import RandomModel
from support.tiers import TIMES, some

SANITIZED = ("-O0", *SANITIZERS)


def compiled(model: RandomModel, folder: Path, io: Io = Io.CALLER) -> Compiled:
    path = folder / "model.tflite"
    path.write_bytes(model.content)
    return compile_model(path, load_target("host"), Options(io=io))


def used_bytes(compiled: Compiled) -> int:
    return sum(pool["used_bytes"] for pool in compiled.document["pools"] if pool["role"] == "workspace")


@pytest.mark.run
@pytest.mark.slow
@pytest.mark.parametrize(
    ("first", "target", "io", "flags"),
    [
        pytest.param(0, "host", Io.CALLER, SANITIZED, id="caller"),
        pytest.param(10_000, "host", Io.WORKSPACE, SANITIZED, id="workspace"),
        pytest.param(20_000, "mps3-an547", Io.CALLER, SANITIZED, id="kernels-of-the-board"),
        pytest.param(30_000, "host", Io.CALLER, ("-O3", "-march=native"), id="fastest"),
    ],
)
def test_networks_that_move_bytes(
    first: int, target: str, io: Io, flags: tuple[str, ...], tmp_path: Path
) -> None:
    seeds = some(range(first, first + 25 * TIMES), every=2)
    models = [detector(), branches(), padded(), *map(random_parts, seeds)]
    for begin in range(0, len(models), 28):
        part = models[begin : begin + 28]
        assert_equals_reference(part, tmp_path / str(begin), target=target, flags=flags, io=io, every=5)


def test_no_plan_is_larger_for_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    models = [detector(), branches(), padded(), *map(random_parts, some(range(60 * TIMES), every=5))]
    with_parts = [compiled(model, tmp_path) for model in models]
    monkeypatch.setattr(store, "find_parts", lambda *_: ())
    without = [compiled(model, tmp_path) for model in models]
    pairs = [(used_bytes(one), used_bytes(other)) for one, other in zip(with_parts, without, strict=True)]
    assert all(one <= other for one, other in pairs)
    assert pairs[0] == (528, 1312)  # the boxes and classes of a detector are written where they are wanted
    assert sum(one < other for one, other in pairs) > len(pairs) / 6
    steps = [
        (len(one.document["steps"]), len(other.document["steps"]))
        for one, other in zip(with_parts, without, strict=True)
    ]
    assert sum(one < other for one, other in steps) > len(steps) / 5


@pytest.mark.run
@pytest.mark.slow
@pytest.mark.parametrize("io", [Io.CALLER, Io.WORKSPACE])
def test_bundles_with_parts_hold(io: Io, tmp_path: Path) -> None:
    for number, model in enumerate([detector(), padded(), *map(random_parts, range(8))]):
        folder = tmp_path / str(number)
        folder.mkdir()
        made = compiled(model, folder, io)
        write_bundle(made.files, folder / "bundle")
        check_bundle(folder / "bundle")
        if number < 5:
            run_paranoid(folder / "bundle", options=QUICK, seed=number)
