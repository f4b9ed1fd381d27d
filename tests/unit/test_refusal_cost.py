"""What a refusal costs: passes of storage once for each question, and none where the constants alone are too many.

A search tries dozens of conditions. What storage reads of them is few: so a refusal is a compile and some plans.

Counts do not depend on the machine.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from bytewright import ir
from bytewright.compiler import run_passes, store
from bytewright.compiler.pipeline import Planned, plan_model
from bytewright.diagnostics import CompileError, Diagnostic
from bytewright.options import Options
from bytewright.target.load import load_text
from bytewright.target.model import Target
from bytewright.target.options import Overrides, parse_pool_option
from bytewright.target.registry import load_target
from support.costly_models import heavy, layers
from support.digits_bundle import DIGITS
from support.row_models import Layer, chain

NUM_LAYERS, SIZE = 4, 64
CONSTANT_BYTES = NUM_LAYERS * (SIZE * SIZE + 4 * SIZE)  # weights, and the sums that stand for zero points
MEMORIES = """\
name = "tight"
tags = ["micro"]
[memory.ram]
size = {ram}
[memory.more]
size = {more}
[memory.flash]
size = 8192
access = "r"
[device.cpu]
isa = "cortex-m"
reach = ["ram", "more", "flash"]
stack = "ram"
max-stack-size = 1024
[[workspace]]
name = "ram"
memory = "ram"
size = 256
[[parameters]]
name = "flash"
memory = "flash"
"""


@pytest.fixture
def work(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often each pass ran and was verified, and the planner, and the nodes that it might visit."""
    counted: Counter[str] = Counter()
    verify, solve = run_passes.verify, store.solve

    def counting_verify(module: Any, stage: Any, target: Any, previous: Any, name: str) -> None:
        counted[name] += 1
        verify(module, stage, target, previous, name)

    def counting_solve(*arguments: Any, **named: Any) -> Any:
        counted["solve"] += 1
        counted["nodes"] += named["node_budget"]
        return solve(*arguments, **named)

    monkeypatch.setattr(run_passes, "verify", counting_verify)
    monkeypatch.setattr(store, "solve", counting_solve)
    return counted


def target_of(ram: int, more: int) -> Target:
    return load_text(MEMORIES.format(ram=ram, more=more), "tight.toml")


def refused(model: Path, target: Target, options: Options = Options()) -> Diagnostic:  # noqa: B008
    with pytest.raises(CompileError) as caught:
        plan_model(model, target, options)
    (diagnostic,) = caught.value.diagnostics
    return diagnostic


@pytest.fixture
def weights(tmp_path: Path) -> Path:
    path = tmp_path / "weights.tflite"
    path.write_bytes(heavy(NUM_LAYERS * SIZE * SIZE, NUM_LAYERS))
    return path


def test_constants_beyond_all_memories_are_refused_before_anything_is_stored(
    weights: Path, work: Counter[str]
) -> None:
    lacking = CONSTANT_BYTES - 8192 - 1
    diagnostic = refused(weights, target_of(2048, lacking - 2048))
    assert diagnostic.code == "BW301"
    missing = CONSTANT_BYTES - 8192
    assert diagnostic.message == (
        f"pool 'flash' has 8192 B, at least {CONSTANT_BYTES} B are needed: {missing} B too few"
    )
    assert diagnostic.help == (
        f"no option helps: all memories (ram, more, flash) have {CONSTANT_BYTES - 1} B together; "
        "take a smaller model, or a target with more memory"
    )
    assert not {"place_scratch", "attach_candidates", "solve"} & work.keys()
    assert work["lower_graph"] == 1


def test_constants_that_fill_all_memories_are_tried(weights: Path, work: Counter[str]) -> None:
    diagnostic = refused(weights, target_of(2048, CONSTANT_BYTES - 8192 - 2048))
    assert "no option helps: all that device 'cpu' reaches (ram, more, flash) was tried" in str(
        diagnostic.help
    )
    assert work["solve"] > 0


def test_what_has_too_few_bytes_for_the_constants_is_not_tried(weights: Path, work: Counter[str]) -> None:
    """Of the memories that could have pools, one holds them: it alone is stored for, with all of them together."""
    diagnostic = refused(weights, target_of(2048, 1 << 20))
    assert diagnostic.help == f"--parameters flash --parameters more={(CONSTANT_BYTES - 8192) // 1024}KiB"
    assert work["attach_candidates"] == 3


@pytest.mark.parametrize("model", ["digits", "layers"])
def test_a_refusal_costs_a_few_plans_more_than_a_compile(
    model: str, work: Counter[str], tmp_path: Path
) -> None:
    path = DIGITS
    if model == "layers":
        path = tmp_path / "layers.tflite"
        path.write_bytes(layers(100))
    target = load_target("host")
    assert isinstance(plan_model(path, target), Planned)
    compiled = +work
    work.clear()
    tight = Options(overrides=Overrides(workspace=(parse_pool_option("ram=100"),)))
    assert str(refused(path, target, tight).help).startswith("--resize ram=")
    for name in ("place_scratch", "attach_candidates", "make_arenas", "fuse_rows"):
        assert work[name] == compiled[name], name
    assert work["solve"] <= compiled["solve"] + 8
    assert work.total() - work["nodes"] <= compiled.total() - compiled["nodes"] + 9


def function_calls(act: Callable[[], object]) -> int:
    """Of Python."""
    count = 0

    def watch(_frame: FrameType, event: str, _argument: object) -> None:
        nonlocal count
        count += event == "call"

    sys.setprofile(watch)
    try:
        act()
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.parametrize("model", ["layers", "digits", "by rows"])
def test_a_refusal_costs_little_more_than_a_compile(model: str, tmp_path: Path) -> None:
    """Where nothing but sizes was remembered it was 2.1, 3.4 and 3.5 compiles; it is 1.02, 0.92 and 0.96."""
    path, target = tmp_path / "model.tflite", load_target("host")
    write = {"layers": lambda: layers(50), "digits": DIGITS.read_bytes, "by rows": rows_model}
    path.write_bytes(write[model]())
    io = ir.Io.WORKSPACE if model == "by rows" else ir.Io.CALLER
    plan_model(path, target, Options(io=io))  # what Python finds out once
    compiled = function_calls(lambda: plan_model(path, target, Options(io=io)))
    tight = Options(overrides=Overrides(workspace=(parse_pool_option("ram=100"),)), io=io)
    assert function_calls(lambda: refused(path, target, tight)) < 1.1 * compiled


def rows_model() -> bytes:
    kinds = (Layer(3, channels=8), Layer(3, channels=6, stride=2), Layer(3, channels=2))
    return chain((16, 12, 4), *kinds, tail=True).content
