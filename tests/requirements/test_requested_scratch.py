"""Requirement S11: with `use-backend-alloc-workspace`, scratch of constant size that nothing plans is requested too.

The programs are those of `arena_cases.py` whose kernels work on eight rows, so every size is constant. What is
requested, what is planned and how large arenas are follows by hand from the scopes; what comes out, numpy says.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from bytewright.bundle.write import write_bundle
from bytewright.compiler.pipeline import compile_model
from bytewright.compiler.run_passes import Runner
from bytewright.compiler.store import store
from bytewright.compiler.trial import Conditions
from bytewright.execute.build import BuildOptions
from bytewright.execute.description import read_bundle
from bytewright.execute.paranoid import run_paranoid
from bytewright.execute.run import run_batch
from bytewright.inspect.check import check_bundle
from bytewright.inspect.stack.check_stack import check_stack
from bytewright.inspect.stack.compile_call_graphs import compile_call_graphs
from bytewright.ir.border import Io
from bytewright.ir.scope import GLOBAL, LOCAL, STACK, WORKSPACE, Scope, pool_scope
from bytewright.options import Options, Pin
from bytewright.target import load_text
from bytewright.target.model import Target
from bytewright.target.options import Overrides, apply_overrides
from bytewright.target.registry import load_target
from support.arena_cases import (
    BACKEND,
    CASES,
    FIXED_CASES,
    HOST,
    case_of,
    compiled,
    expected_of,
    outputs_shown,
    own_pair,
    values_of,
    written,
)
from support.evaluate.evaluate import Evaluator
from support.hand_built import allocations, chain, reverse_kernel
from support.shared_models import AD01, model_path

TWO_DEVICES = """
name = "two"
default-device = "cpu"
[memory.ram]
size = "64KiB"
[memory.flash]
size = "64KiB"
access = "r"
[device.cpu]
isa = "host"
reach = ["ram", "flash"]
stack = "ram"
[device.dsp]
isa = "host"
reach = ["ram", "flash"]
stack = "ram"
use-backend-alloc-workspace = true
[[workspace]]
name = "ram"
memory = "ram"
[[parameters]]
name = "flash"
memory = "flash"
"""
BUILD = BuildOptions(flags=("-O0",), sanitize=True, compiler="gcc")
# Requests in their order, as `size, alignment`, and the bytes of the arena: by hand, for eight rows.
REQUESTS = {
    "fixed_one": ([(8, 16)], 8),
    "fixed_several": ([(8, 16), (48, 16), (96, 64), (96, 64), (8, 16)], 64 + 96),
    # Within `outer`, what lies between kernels is read before the next is written, and `inner` and `leaf` each run
    # twice in turn: one request for each kind. Then `leaf` on its own.
    "fixed_nested": ([(8, 16), (96, 64), (16, 16), (16, 16)], 64 + 96 + 16),
    "fixed_some": ([(40, 16)], 40),
    "fixed_beside": ([(224, 16), (96, 64)], 224),
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "bundle"


def requests_of(name: str) -> list[tuple[int, int]]:
    buffers = compiled(name).plan.buffers.values()
    return [(b.size_bytes, b.alignment) for b in buffers if b.place.kind == "arena"]


@pytest.mark.parametrize("name", FIXED_CASES)
def test_s11_what_nothing_plans_is_requested_and_what_names_a_pool_is_planned(name: str) -> None:
    requests, arena_bytes = REQUESTS[name]
    buffers = compiled(name).plan.buffers
    assert sorted(requests_of(name)) == sorted(requests)
    assert {b.place.kind for b in buffers.values() if b.role == "tensor"} <= {"planned"}
    assert buffers["arena"].size_bytes == arena_bytes
    if name == "fixed_some":
        planned = {key for key, b in buffers.items() if b.role == "scratch" and b.place.kind == "planned"}
        assert planned == {"t0/scratch0", "t0/scratch1", "y/scratch0", "y/scratch1"}


@pytest.mark.parametrize("name", FIXED_CASES)
def test_s11_without_the_option_the_same_programs_request_nothing_of_constant_size(name: str) -> None:
    case = case_of(name)
    made = compile_model(case.module, HOST)
    kinds = {b.place.kind for b in made.plan.buffers.values() if b.role == "scratch"}
    assert kinds <= ({"arena"} if name == "fixed_beside" else {"planned", "stack"})
    off = apply_overrides(HOST, Overrides(use_backend_alloc_workspace=False))
    assert made.files == compile_model(case.module, off).files
    result = Evaluator(compiled(name).module).run("main", {"x": values_of(8), "rows": 8})["y"]
    assert result.tolist() == expected_of(case, 8)


@pytest.mark.run
@pytest.mark.parametrize("name", FIXED_CASES)
def test_s11_the_applications_pair_serves_scratch_of_constant_size(
    name: str, folder: Path, tmp_path: Path
) -> None:
    """From blocks of exactly the requested sizes; each request is refused in turn, too."""
    total = len(REQUESTS[name][0])
    main = f"""
    SHOW("set", prepare());
    for (int k = 1; k <= {total}; ++k) {{
        forget();
        refused_at = k;
        printf("error.%d %d\\n", k, (int)(run(8) == @M@_ERROR_NO_MEMORY));
        printf("requests.%d %d\\n", k, requests);
        printf("releases.%d %d\\n", k, releases);
        printf("faults.%d %d\\n", k, live + disordered);
    }}
    forget();
    SHOW("run", run(8));
    SHOW("all", requests);
    SHOW("faults", live + disordered + (requests != releases));
    show_outputs("y", 8);
"""
    shown = own_pair(name, folder, tmp_path / "program", main)
    assert outputs_shown(shown, "y", 8) == expected_of(case_of(name), 8)
    assert {key: shown.pop(key) for key in ("set", "run", "all", "faults")} == {
        "set": 0,
        "run": 0,
        "all": total,
        "faults": 0,
    }
    assert shown == {
        key: value
        for k in range(1, total + 1)
        for key, value in {
            f"error.{k}": 1,
            f"requests.{k}": k,
            f"releases.{k}": k - 1,
            f"faults.{k}": 0,
        }.items()
    }


@pytest.mark.run
@pytest.mark.parametrize("name", FIXED_CASES)
def test_s11_the_bundles_pair_serves_scratch_of_constant_size(name: str, folder: Path) -> None:
    """From a workspace that is exactly as large as stated, with its stack proved."""
    written(name, folder)
    plan, bundle = check_bundle(folder).plan, read_bundle(folder)
    check_stack(plan, lambda flags: compile_call_graphs(bundle, flags))
    result = run_batch(folder, [[values_of(8)]], options=BUILD, repeat=2)
    assert result.outputs[0][0].tolist() == expected_of(case_of(name), 8)
    run_paranoid(folder, [values_of(8)], options=BUILD)


@pytest.mark.parametrize("scope", [None, GLOBAL, WORKSPACE, pool_scope("ram"), LOCAL])
def test_s11_kernels_whose_scratch_is_constant_in_itself(scope: Scope | None) -> None:
    """Three calls of kernels with two arrays each, of 40 B; the second is aligned to 16."""
    module = chain("m", [reverse_kernel("m_r", 40, scope, num_scratch=2)] * 3, 40)
    made = compile_model(module, BACKEND)
    plan, source = made.plan, made.files["src/m.c"].decode()
    is_requested = scope in (None, GLOBAL)
    assert source.count("m_backend_alloc_workspace(") == (6 if is_requested else 0)
    assert source.count("m_backend_free_workspace(") == (6 if is_requested else 0)
    assert ("src/m_backend.c" in made.files) == is_requested
    assert ("arena" in plan.buffers) == is_requested
    if is_requested:
        assert plan.buffers["arena"].size_bytes == 48 + 40
        assert "requested from 'arena' around its call, as use-backend-alloc-workspace asks" in (
            plan.buffers["t0/scratch0"].reason
        )
    else:
        assert made.files["src/m_kernels.c"] == compile_model(module, off_stack()).files["src/m_kernels.c"]


def off_stack() -> Target:
    """Without the attribute, and nothing that is `global` on the stack."""
    return apply_overrides(HOST, Overrides(max_stack_alloca_size=0))


def test_s11_the_attribute_is_the_devices_that_runs_the_kernel() -> None:
    target = load_text(TWO_DEVICES, "two.toml")
    kernels = [reverse_kernel("m_cpu", 8, device="cpu"), reverse_kernel("m_dsp", 8, device="dsp")]
    module = store(
        chain("m", kernels, 8), Runner(target), Conditions(target, Options(io=Io.WORKSPACE))
    ).stored.module
    found = {
        a.buffer.name: a for function in (*module.kernels, module.main) for a in allocations(function.body)
    }
    assert found["scratch0"].scope == STACK  # of m_cpu
    assert (found["y/scratch0"].storage.arena, found["t0/out"].storage.arena) == ("arena", None)


def test_s11_a_pin_asks_for_a_static_plan() -> None:
    module = case_of("fixed_several").module
    everywhere = compile_model(module, BACKEND, Options(pins=(Pin("*/scratch*", "ram"),))).plan
    assert {b.place.kind for b in everywhere.buffers.values() if b.role == "scratch"} == {"planned"}
    pins = (Pin("t1/scratch*", "ram"), Pin("t0/scratch1", "ram", offset=256))
    one = compile_model(module, BACKEND, Options(pins=pins)).plan
    assert one.buffers["t0/scratch1"].place.offset == 256
    assert {key for key, b in one.buffers.items() if b.place.kind == "arena"} == {
        "t0/scratch0",
        "t0/scratch2",
    }


def test_s11_sizes_known_at_run_time_are_requested_with_the_option_as_without() -> None:
    for name in ("one", "several", "nested"):
        made = compile_model(CASES[name].module, BACKEND)
        assert made.plan.buffers == compiled(name).plan.buffers


def test_s11_a_model_without_such_scratch_is_the_same_bundle(folder: Path) -> None:
    """But for the attribute in the target that plan.json holds, and for the hash of that."""
    board = load_target("mps3-an547")
    backend = apply_overrides(board, Overrides(use_backend_alloc_workspace=True))
    one, other = (compile_model(model_path(AD01), target) for target in (board, backend))
    assert list(one.files) == list(other.files)
    assert one.files["src/ad01_int8_kernels.c"] == other.files["src/ad01_int8_kernels.c"]
    assert one.plan.buffers == other.plan.buffers
    write_bundle(other.files, folder)
    check_bundle(folder)
