"""U1: one plan covers the entry's tensors and every kernel's scratch, over one clock."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from bytewright.bundle.write import write_bundle
from bytewright.compiler.pipeline import compile_model
from bytewright.execute.build import BuildOptions
from bytewright.execute.run import run_batch
from bytewright.ir.analyses.clock import read_clock
from bytewright.ir.builder import BodyBuilder, region
from bytewright.ir.module import Module
from bytewright.ir.scope import WORKSPACE
from bytewright.ir.storage import Storage
from bytewright.plan.solve import solve
from bytewright.storage.build_problem import build_workspace_problem
from bytewright.target.model import Target
from bytewright.target.options import Overrides, apply_overrides
from bytewright.target.registry import load_target
from support.hand_built import WHERE, chain, files_of, module_of, planned, reverse_kernel, stored, tensor
from support.with_plan import with_plan

DIGITS = Path(__file__).resolve().parents[2] / "examples" / "digits" / "digits.tflite"
SIZE = 64


def no_stack() -> Target:
    return apply_overrides(load_target("host"), Overrides(max_stack_alloca_size=0))


def test_u1_tensors_and_scratch_are_in_one_problem() -> None:
    module = stored(chain("m", [reverse_kernel("m_k", SIZE, num_scratch=2)] * 3, SIZE), no_stack())
    problem = build_workspace_problem(module, read_clock(module, no_stack()), no_stack())
    assert sorted(buffer.name for buffer in problem.buffers) == [
        "t0/out",
        "t0/scratch0",
        "t0/scratch1",
        "t1/out",
        "t1/scratch0",
        "t1/scratch1",
        "y/scratch0",
        "y/scratch1",
    ]


def test_u1_scratch_uses_what_tensors_leave_at_its_tick() -> None:
    """Each call copies its input to one scratch array, that to the other, and that to the result: two at a time."""
    result = planned(chain("m", [reverse_kernel("m_k", SIZE, num_scratch=2)] * 3, SIZE), no_stack())
    (use,) = result.trial.workspace.pools
    assert use.top_bytes == use.lower_bound_bytes == 2 * SIZE
    places = result.trial.workspace.placement_of
    names = ("t0/out", "t1/scratch0", "t1/scratch1", "t1/out")
    assert [places[name].offset for name in names] in ([0, SIZE, 0, SIZE], [SIZE, 0, SIZE, 0])


def test_u1_a_kernel_shared_by_calls_has_scratch_at_an_offset_for_each() -> None:
    """Sizes that make one offset for all calls impossible without waste."""
    kernel = reverse_kernel("m_k", SIZE)
    body = BodyBuilder(("x", "y"))
    first, last = tensor("x", SIZE), tensor("y", SIZE)
    a, b, c = (body.allocate(tensor(f"{name}/out", SIZE), Storage(WORKSPACE)) for name in "abc")
    for source, result in ((first, a), (a, b), (b, c), (c, last)):
        body.call("m_k", region(source), region(result), where=WHERE)
    result = planned(module_of("m", [kernel], body.finish(), first, last), no_stack())
    assert len(result.module.kernels) == 1
    scratch = [name for name in result.trial.workspace.placement_of if "scratch" in name]
    assert len(scratch) == 4
    (use,) = result.trial.workspace.pools
    assert use.top_bytes == 2 * SIZE


@pytest.mark.run
@pytest.mark.parametrize("num_scratch", [1, 3])
def test_u1_the_planned_program_computes_what_it_should(tmp_path: Path, num_scratch: int) -> None:
    """Scratch and tensors share the arena's bytes; an overlap would show in the output."""
    module = chain("m", [reverse_kernel("m_k", SIZE, num_scratch=num_scratch)] * 5, SIZE)
    write_bundle(files_of(module, no_stack()), tmp_path / "out")
    x = np.random.default_rng(5).integers(-128, 128, SIZE).astype(np.int8)
    options = BuildOptions(flags=("-O0",), sanitize=True)
    (output,) = run_batch(tmp_path / "out", [[x]], options=options).outputs[0]
    np.testing.assert_array_equal(output, x[::-1])


def looped() -> Module:
    """`held` is read at the start of each turn and written at its end; `passing` is used between the two."""
    kernel = reverse_kernel("m_k", SIZE, num_scratch=0)
    body = BodyBuilder(("x", "y"))
    first, last = tensor("x", SIZE), tensor("y", SIZE)
    held, passing = (
        body.allocate(tensor("held", SIZE), Storage(WORKSPACE)),
        body.allocate(tensor("passing", SIZE), Storage(WORKSPACE)),
    )
    body.call("m_k", region(first), region(held), where=WHERE)
    with body.for_("turn", 0, 3):
        inner = body.allocate(tensor("inner", SIZE), Storage(WORKSPACE))
        body.call("m_k", region(held), region(inner), where=WHERE)
        body.call("m_k", region(inner), region(passing), where=WHERE)
        body.call("m_k", region(passing), region(held), where=WHERE)
    body.call("m_k", region(held), region(last), where=WHERE)
    return module_of("m", [kernel], body.finish(), first, last)


def test_u1_loops_are_widened() -> None:
    """In one turn `passing` and `inner` are apart for a while, but over the turns `passing` lives throughout."""
    module = stored(looped(), no_stack())
    timeline = read_clock(module, no_stack())
    lifetimes = {live.buffer.name: (live.lower, live.upper) for live in timeline.buffers}
    assert lifetimes["passing"] == (3, 12)
    assert lifetimes["held"] == (1, 14)
    assert lifetimes["inner"] == (4, 8)
    solution = with_plan(solve(build_workspace_problem(module, timeline, no_stack())))
    assert sorted(solution.placement_of[name].offset for name in ("held", "passing", "inner")) == [0, 64, 128]


@pytest.mark.parametrize("target", ["host", "mps3-an547"])
def test_u1_a_models_plan_covers_every_step(target: str) -> None:
    """Everything that a step touches is in the plan and alive at that step."""
    document = compile_model(DIGITS, load_target(target)).document
    buffers = {buffer["name"]: buffer for buffer in document["buffers"]}
    end = 0
    for step in document["steps"]:
        first, last = step["ticks"]
        assert (first, last >= first + 3) == (end, True)
        end = last
        assert sorted(step["alive"]) == sorted({*step["reads"], *step["writes"], *step["scratch"]})
        for name, (lower, upper) in step["alive"].items():
            assert first < lower < upper < last  # within the body
            assert buffers[name]["live"][0] <= lower < upper <= buffers[name]["live"][1]


def test_u1_scratch_that_asks_for_the_workspace_is_planned_on_every_target() -> None:
    for name in ("host", "mps3-an547", "generic-cortex-m"):
        module = chain("m", [reverse_kernel("m_k", SIZE, WORKSPACE)] * 2, SIZE)
        result = planned(module, load_target(name))
        assert sorted(result.trial.workspace.placement_of) == ["t0/out", "t0/scratch0", "y/scratch0"]
