"""States that are updated where they are: by which graphs, and by which not; `tests/run` runs them."""

from __future__ import annotations

from pathlib import Path

import pytest

from bytewright.compiler.pipeline import Compiled, compile_model
from bytewright.options import Options, Pin
from bytewright.record.plan import Plan
from bytewright.target import load_text
from bytewright.target.registry import load_target
from support.two_devices import TARGET as CORES

HEAD = """
module kept

input %x : tensor<4x4xf32>
output %y : tensor<4x4xf32>
"""
STATE = "state %s : tensor<4x4xf32>\n"
MAIN = "func main(%a : tensor<4x4xf32>, %s : tensor<4x4xf32>) -> (%r, %n) {\n"


def compiled(folder: Path, *lines: str, target: str = "host", options: Options | None = None) -> Compiled:
    """A graph of an input `a` and a state `s`: its output is `r`, and the state becomes `n`."""
    text = HEAD + STATE + MAIN + "".join(f"  {line}\n" for line in lines) + "}\n"
    (folder / "kept.bw").write_text(text.replace("T =", ": tensor<4x4xf32> ="))
    hardware = load_text(CORES, "cores.toml") if target == "cores" else load_target(target)
    return compile_model(folder / "kept.bw", hardware, options or Options())


def updates(plan: Plan) -> list[int]:
    """The steps that read a state and write it."""
    states = {state.buffer for state in plan.states}
    return [step.index for step in plan.steps if states & {*step.reads} & {*step.writes}]


ADD, DOUBLE = "%n T = add(%a, %s)", "%r T = add(%n, %n)"


def test_a_sum_is_written_over_what_it_was(tmp_path: Path) -> None:
    found = compiled(tmp_path, ADD, DOUBLE)
    assert [(step.reads, step.writes) for step in found.plan.steps] == [
        (("a", "s"), ("s",)),
        (("s",), ("r",)),
    ]
    assert not any(pool.used_bytes for pool in found.plan.workspaces if pool.name == "ram")
    assert "update_in_place: what it becomes, 'n', is written over it" in found.plan.buffers["s"].reason
    header = found.files["include/kept.h"].decode()
    assert "A run that fails leaves the state as it was." in header


@pytest.mark.parametrize(
    "lines",
    [
        (ADD, DOUBLE),
        ("%n T = add(%s, %s)", DOUBLE),
        ("%m T = mul(%s, %a)", "%n T = add(%m, %s)", DOUBLE),
        ("%r T = mul(%s, %a)", ADD),
    ],
    ids=["a sum", "twice the state", "read by two", "read before"],
)
def test_what_is_computed_byte_by_byte_is_written_over_it(tmp_path: Path, lines: tuple[str, ...]) -> None:
    plan = compiled(tmp_path, *lines).plan
    assert len(updates(plan)) == 1
    assert not any("identity" in step.kernel for step in plan.steps)


@pytest.mark.parametrize(
    "lines",
    [
        (ADD, "%m T = mul(%s, %n)", "%r T = add(%m, %n)"),
        ("%n T = transpose(%s) {permutation=(1, 0)}", "%r T = add(%n, %a)"),
        ("%m T = transpose(%s) {permutation=(1, 0)}", "%n T = add(%m, %s)", DOUBLE),
    ],
    ids=["read afterwards", "turned", "read where it was turned"],
)
def test_what_needs_the_old_bytes_longer_is_copied(tmp_path: Path, lines: tuple[str, ...]) -> None:
    plan = compiled(tmp_path, *lines).plan
    assert not updates(plan)
    assert [step.writes for step in plan.steps].count(("s",)) == 1


def test_what_has_a_place_of_its_own_stays_there(tmp_path: Path) -> None:
    pinned = compiled(
        tmp_path, ADD, DOUBLE, target="mps3-an547", options=Options(pins=(Pin("n", "dtcm"),))
    ).plan
    assert not updates(pinned)
    assert pinned.buffers["n"].place.name == "dtcm"


def test_what_another_core_touches_stays_where_that_reaches(tmp_path: Path) -> None:
    on = '%m T = on_device(%n) {device="core1", scope=none, fixed=false, free=false}'
    plan = compiled(tmp_path, ADD, on, "%r T = add(%m, %m)", target="cores").plan
    assert not updates(plan)


ARMS = """
func then(%b : tensor<4x4xf32>, %p : tensor<4x4xf32>) -> (%m) {{ {} }}
func otherwise(%c : tensor<4x4xf32>, %q : tensor<4x4xf32>) -> (%q) {{}}
"""
BRANCH = (
    "%f : tensor<1xbool> = greater(%k, %l)",
    '%n T = cond_if(%f, %a, %s) {then_branch="then", else_branch="otherwise"}',
)


@pytest.mark.parametrize(("operation", "is_in_place"), [("add(%b, %p)", True), ("transpose(%p)", False)])
def test_a_branch_writes_over_it_and_another_leaves_it(
    tmp_path: Path, operation: str, is_in_place: bool
) -> None:
    turned = "" if is_in_place else " {permutation=(1, 0)}"
    head = HEAD.replace("output", "input %k : tensor<1xf32>\ninput %l : tensor<1xf32>\noutput")
    main = MAIN.replace("%s :", "%k : tensor<1xf32>, %l : tensor<1xf32>, %s :")
    lines = "".join(f"  {line}\n" for line in (*BRANCH, "%r T = add(%n, %a)"))
    text = head + STATE + ARMS.format(f"%m T = {operation}{turned}") + main + lines + "}\n"
    (tmp_path / "kept.bw").write_text(text.replace("T =", ": tensor<4x4xf32> ="))
    found = compile_model(tmp_path / "kept.bw", load_target("host"), Options())
    assert len(updates(found.plan)) == is_in_place
    assert len(found.plan.steps) == (3 if is_in_place else 4)
    assert "} else {" not in found.files["src/kept.c"].decode().split("int32_t kept_run(")[1]


@pytest.mark.parametrize("is_updated_first", [True, False])
def test_the_header_says_what_a_run_that_fails_does_to_it(tmp_path: Path, is_updated_first: bool) -> None:
    job = ("%m T = mul(%a, %a)", '%r T = on_device(%m) {device="core1", scope=none, fixed=false, free=false}')
    own = (ADD, '%c T = on_device(%n) {device="cpu", scope=none, fixed=false, free=false}')
    lines = (*own, *job) if is_updated_first else (*job, *own)
    found = compiled(tmp_path, *lines, target="cores")
    assert updates(found.plan) == [0 if is_updated_first else 1]
    header = " ".join(found.files["include/kept.h"].decode().split())
    assert ("may have changed the state" in header) == is_updated_first
    assert ("A run that fails leaves the state as it was." in header) != is_updated_first


def test_an_output_that_is_the_state_is_copied_from_it(tmp_path: Path) -> None:
    plan = compiled(tmp_path, ADD, "%r T = identity(%n)").plan
    assert [(step.reads, step.writes) for step in plan.steps] == [
        (("a", "s"), ("s",)),
        (("s",), ("r",)),
    ]


def test_two_states_that_become_each_other_are_copied(tmp_path: Path) -> None:
    text = HEAD + STATE + STATE.replace("%s", "%t") + MAIN.replace(") ->", ", %t : tensor<4x4xf32>) ->")
    text = text.replace("(%r, %n)", "(%r, %n, %m)")
    for line in ("%n T = add(%a, %t)", "%m T = add(%a, %s)", "%r T = add(%n, %m)"):
        text += f"  {line}\n"
    (tmp_path / "kept.bw").write_text(text.replace("T =", ": tensor<4x4xf32> =") + "}\n")
    plan = compile_model(tmp_path / "kept.bw", load_target("host")).plan
    assert not updates(plan)
