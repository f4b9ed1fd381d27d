"""Requirements on the stack: what goes there, what never does, the limits to the byte, and the compiler's own figures.

Modules built by hand have a call path three deep: the entry calls a kernel that calls a kernel, each with scratch. They
go the whole way to C, are proved by `check`, and run.
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bytewright.bundle.write import write_bundle
from bytewright.codegen.generate import generate_c
from bytewright.codegen.kernels import kernels_source
from bytewright.compiler import pipeline
from bytewright.diagnostics import CompileError, InternalError
from bytewright.execute.description import read_bundle
from bytewright.execute.run import run_bundle
from bytewright.inspect.check import check_bundle
from bytewright.inspect.stack.check_stack import StackProof, check_stack
from bytewright.inspect.stack.compile_call_graphs import compile_call_graphs
from bytewright.ir.analyses.clock import read_clock
from bytewright.ir.analyses.stack import stack_refusals, stack_uses
from bytewright.ir.builder import BodyBuilder, load, region
from bytewright.ir.expr import Buffer, Var
from bytewright.ir.module import Module
from bytewright.ir.prim import (
    Access,
    Allocate,
    BufferParameter,
    For,
    LoopKind,
    PrimFunc,
    Region,
    ScalarParameter,
    Seq,
    Statement,
)
from bytewright.ir.rewrite import Rewriting, rewrite_sequence
from bytewright.ir.scope import GLOBAL, LOCAL, STACK, WORKSPACE, Scope, pool_scope
from bytewright.ir.storage import Storage
from bytewright.ir.text.modules import print_module
from bytewright.ir.types import DType, Symbol
from bytewright.ir.verify.stages import Stage, find_violations
from bytewright.ir.walk import walk_statements
from bytewright.options import Pin
from bytewright.plan.solve import solve
from bytewright.record.names import Names, names_of
from bytewright.scopes.attach_candidates import attach_candidates
from bytewright.storage.apply_solution import apply_solution
from bytewright.storage.build_problem import build_parameter_problem, build_workspace_problem
from bytewright.storage.pin_buffers import pin_buffers
from bytewright.storage.place_scratch import place_scratch
from bytewright.target.load import load_text
from bytewright.target.model import UNLIMITED, Target, Unlimited
from bytewright.target.options import Overrides, apply_overrides, parse_max_stack_alloca_size
from bytewright.target.registry import load_target
from support.hand_built import (
    WHERE,
    allocations,
    chain,
    files_of,
    module_of,
    planned,
    reverse_kernel,
    stored,
    tensor,
)
from support.shared_models import AD01, BOARD, FLOAT, HOST, INT8, KWS, RESNET8, VWW, model_path, new_folder
from support.with_plan import with_plan

N = 64
Places = dict[str, Scope | None]


def target_of(
    limit: int | Unlimited = N,
    *,
    name: str = HOST,
    backend: bool = False,
    max_stack: int | None = None,
) -> Target:
    overrides = Overrides(
        max_stack_alloca_size=limit, use_backend_alloc_workspace=backend, max_stack_size=max_stack
    )
    return apply_overrides(load_target(name), overrides)


def outer_kernel(callee: str, size_bytes: int, scope: Scope | None, device: str = "cpu") -> PrimFunc:
    """Copies its input to scratch, and lets the callee write its result from there."""
    source, result = (Buffer(name, (size_bytes,), DType.I8, 1) for name in ("source", "result"))
    body = BodyBuilder(("source", "result"))
    scratch = body.allocate(Buffer("scratch0", (size_bytes,), DType.I8, 1), Storage(scope))
    with body.for_("i", 0, size_bytes) as i:
        body.store(scratch, i, load(source, i))
    body.call(callee, region(scratch), region(result), where=WHERE)
    parameters = (
        BufferParameter(source, Access.READ, scope=GLOBAL),
        BufferParameter(result, Access.WRITE, scope=GLOBAL),
    )
    return PrimFunc("m_outer", parameters, body.finish(), device=device, where=WHERE)


def three_deep(size_bytes: int, outer: Scope | None, inner: Scope | None) -> Module:
    """Entry -> m_outer -> m_inner, whose parameters are `global`; the output is the input backwards."""
    kernels = [
        reverse_kernel("m_inner", size_bytes, inner),
        outer_kernel("m_inner", size_bytes, outer),
    ]
    first, last = tensor("x", size_bytes), tensor("y", size_bytes)
    body = BodyBuilder(("x", "y"))
    body.call("m_outer", region(first), region(last), operators=("0 (REVERSE)",), where=WHERE)
    return module_of("m", kernels, body.finish(), first, last)


def places(module: Module, target: Target) -> Places:
    """Where each scratch buffer ends, planned: the kernel's name or that of the tensor, and the scope."""
    result = planned(module, target).module
    bodies = {**{kernel.name: kernel.body for kernel in result.kernels}, "main": result.main.body}
    return {
        f"{name}:{allocation.buffer.name}": allocation.scope
        for name, body in bodies.items()
        for allocation in allocations(body)
    }


def local_arrays(module: Module, target: Target) -> list[tuple[str, int]]:
    """Local arrays of the generated kernels: function and bytes."""
    text = kernels_source(planned(module, target).module, Names("m"))
    found: list[tuple[str, int]] = []
    function = ""
    for line in text.splitlines():
        if head := re.match(r"void (\w+)\(", line):
            function = head[1]
        if array := re.match(r"\s+int8_t \w+\[(\d+)\];", line):
            found.append((function, int(array[1])))
    return found


def proved_run(module: Module, target: Target, folder: Path) -> StackProof:
    """The module as C: checked, its stack proved, and run once; its output is its input backwards."""
    write_bundle(files_of(module, target), folder)
    plan = check_bundle(folder).plan
    bundle = read_bundle(folder)
    proof = check_stack(plan, lambda flags: compile_call_graphs(bundle, flags))
    values = np.arange(bundle.plan.inputs[0].size_bytes).astype(np.int8)
    result = run_bundle(folder, [values])
    np.testing.assert_array_equal(result.outputs[0], values[::-1])
    return proof


def refusal(module: Module, target: Target) -> str:
    """What a module is refused with, before any C is written."""
    with pytest.raises(CompileError) as caught:
        planned(module, target)
    assert caught.value.exit_code == 3
    return str(caught.value)


# --- S2: global


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        (target_of(N), {"m_outer:scratch0": STACK, "m_inner:scratch0": STACK}),
        (
            target_of(N - 1),
            {"main:y/m_inner_scratch0": pool_scope("ram"), "main:y/scratch0": pool_scope("ram")},
        ),
        (
            target_of(UNLIMITED, backend=True),
            {
                "main:arena": pool_scope("ram"),
                "main:y/m_inner_scratch0": pool_scope("ram"),
                "main:y/scratch0": pool_scope("ram"),
            },
        ),
    ],
    ids=["stack", "workspace", "backend"],
)
def test_s2_global_is_decided_visibly_and_every_choice_gives_the_same_bytes(
    tmp_path: Path, target: Target, expected: Places
) -> None:
    module = three_deep(N, GLOBAL, GLOBAL)
    assert places(module, target) == expected
    printed = print_module(planned(module, target).module)
    for scope in expected.values():
        assert f'scratch0 : buffer<{N}xi8, "{scope}"' in printed
    proved_run(module, target, tmp_path)


def test_s2_a_choice_of_pools_gives_the_same_bytes(tmp_path: Path) -> None:
    target = load_text(TWO_POOLS, "two.toml")
    for index, scope in enumerate((WORKSPACE, pool_scope("fast"), pool_scope("slow"))):
        proved_run(three_deep(N, scope, GLOBAL), target, tmp_path / str(index))


# --- S3, S4, S5: scopes with a tag


@pytest.mark.parametrize("size_bytes", [1, N, 5000])
def test_s3_global_workspace_is_never_a_local_array(tmp_path: Path, size_bytes: int) -> None:
    module, target = three_deep(size_bytes, WORKSPACE, WORKSPACE), target_of(UNLIMITED)
    assert local_arrays(module, target) == []
    proof = proved_run(module, target, tmp_path)
    assert proof.stack.planned_bytes == 0


@pytest.mark.parametrize("size_bytes", [1, N, 5000])
@pytest.mark.parametrize("name", [HOST, BOARD])
def test_s4_global_stack_is_always_a_local_array(name: str, size_bytes: int) -> None:
    target = target_of(0, name=name, max_stack=None if name == HOST else 1 << 15)
    arrays = local_arrays(three_deep(size_bytes, STACK, STACK), target)
    assert arrays == [("m_inner", size_bytes), ("m_outer", size_bytes)]


def test_s4_or_the_compile_says_why_it_cannot() -> None:
    symbolic = dynamic(STACK)
    assert "known only at run time" in refusal(symbolic, target_of())
    assert "use-backend-alloc-workspace" in refusal(three_deep(8, STACK, None), target_of(backend=True))
    two = load_text(TWO_DEVICES, "two.toml")
    assert "device 'dsp' touches it" in refusal(on_two_devices(outer=STACK), two)
    silent = reverse_kernel("m_npu", 8, STACK, device="npu")
    assert "device 'npu' has no stack" in refusal(chain("m", [silent], 8), two)
    in_entry = chain("m", [reverse_kernel("m_r", 8)] * 2, 8, scope=STACK)
    assert "'t0/out' of the entry asks for global.stack" in refusal(in_entry, target_of())


TWO_POOLS = """
name = "two"
[memory.fast]
size = "1KiB"
[memory.slow]
size = "4KiB"
[memory.rom]
size = "unlimited"
access = "r"
[device.cpu]
isa = "host"
reach = ["fast", "slow", "rom"]
stack = "slow"
max-stack-size = "3KiB"
max-stack-alloca-size = 64
stack-allowance-per-call = 256
[[workspace]]
name = "fast"
memory = "fast"
[[workspace]]
name = "slow"
memory = "slow"
[[parameters]]
name = "rom"
memory = "rom"
[stack.external]
memcpy = 64
memset = 64
[scope-tag.unified]
lowered-by = "lower_unified"
"""


@pytest.mark.parametrize("pool", ["fast", "slow"])
@pytest.mark.parametrize("scope_of", ["kernel", "callee", "tensor"])
def test_s5_a_named_pool_is_where_it_ends(pool: str, scope_of: str) -> None:
    target, scope = load_text(TWO_POOLS, "two.toml"), pool_scope(pool)
    if scope_of == "tensor":
        found = places(chain("m", [reverse_kernel("m_r", 8, GLOBAL)] * 2, 8, scope=scope), target)
        assert found["main:t0/out"] == scope
        return
    outer, inner = (scope, STACK) if scope_of == "kernel" else (STACK, scope)
    found = places(three_deep(N, outer, inner), target)
    assert [s for name, s in found.items() if name.startswith("main:")] == [scope]


@pytest.mark.parametrize(("size_bytes", "missing"), [(1024, None), (1025, 1), (3000, 1976)])
def test_s5_what_does_not_fit_there_fails_by_how_many_bytes(size_bytes: int, missing: int | None) -> None:
    """The other pool would have the room, and is not asked."""
    target = load_text(TWO_POOLS, "two.toml")
    module = chain("m", [reverse_kernel("m_r", size_bytes, pool_scope("fast"))], size_bytes)
    if missing is None:
        assert planned(module, target).trial.workspace.has_plan
        return
    with pytest.raises(CompileError) as caught:
        planned(module, target)
    assert caught.value.exit_code == 3
    assert f"'fast' has 1024 B, at least {size_bytes} B are needed at step 0: {missing} B too few" in str(
        caught.value
    )


# --- S8, S9: sizes


def dynamic(scope: Scope | None) -> Module:
    """A kernel whose scratch has as many elements, up to 8, as its scalar parameter says."""
    source, result = (Buffer(name, (8,), DType.I8, 1) for name in ("source", "result"))
    rows = Symbol("rows", 1, 8)
    body = BodyBuilder(("source", "result", "rows"))
    scratch = body.allocate(Buffer("scratch0", (rows,), DType.I8, 1), Storage(scope))
    with body.for_("i", 0, Var("rows", DType.I32)) as i:
        body.store(scratch, i, load(source, i))
        body.store(result, i, load(scratch, i))
    parameters = (
        BufferParameter(source, Access.READ, scope=GLOBAL),
        BufferParameter(result, Access.WRITE, scope=GLOBAL),
        ScalarParameter(Var("rows", DType.I32)),
    )
    kernel = PrimFunc("m_dynamic", parameters, body.finish(), where=WHERE)
    entry = BodyBuilder(("x", "y"))
    first, last = tensor("x", 8), tensor("y", 8)
    entry.call("m_dynamic", region(first), region(last), 8, where=WHERE)
    return module_of("m", [kernel], entry.finish(), first, last)


@pytest.mark.parametrize("limit", [0, N, UNLIMITED])
def test_s8_a_size_known_at_run_time_goes_to_the_workspace(limit: int | Unlimited) -> None:
    module = place_scratch(dynamic(GLOBAL), target_of(limit))
    assert allocations(module.kernels[0].body) == []
    assert [a.scope for a in allocations(module.main.body)] == [WORKSPACE]


def test_s8_sizes_are_counted_in_64_bits() -> None:
    kernel = reverse_kernel("m_r", 8, LOCAL)
    matrix = Allocate(Buffer("huge", (70_000, 70_000), DType.I8, 1), Storage(GLOBAL))  # more than 2^32 bytes
    module = chain("m", [replace(kernel, body=Seq((matrix, *kernel.body.statements)))], 8)
    placed = stored(module, target_of())
    problem = build_workspace_problem(placed, read_clock(placed, target_of()), target_of())
    assert [buffer.size_bytes for buffer in problem.buffers] == [4_900_000_000]
    bounded = target_of(UNLIMITED, max_stack=1 << 20)
    assert [a.scope for a in allocations(place_scratch(module, bounded).main.body)] == [WORKSPACE]
    unlimited = target_of(UNLIMITED)
    assert stack_uses(place_scratch(module, unlimited), unlimited)[0].planned_bytes == 4_900_000_008


@pytest.mark.parametrize("limit", [N - 1, N, N + 1])
@pytest.mark.parametrize("scope", [GLOBAL, None])
def test_s9_a_limit_of_n_admits_n_bytes(tmp_path: Path, scope: Scope | None, limit: int) -> None:
    module, target = three_deep(N, scope, scope), target_of(limit)
    arrays = local_arrays(module, target)
    assert arrays == ([("m_inner", N), ("m_outer", N)] if limit >= N else [])
    proof = proved_run(module, target, tmp_path)
    assert proof.stack.planned_bytes == sum(size for _, size in arrays)


def test_s9_the_default_follows_the_kind_of_target() -> None:
    assert load_target(HOST).default_device.max_stack_alloca_size_bytes == 1024
    assert local_arrays(three_deep(1024, None, None), load_target(HOST)) != []
    assert local_arrays(three_deep(1025, None, None), load_target(HOST)) == []
    for name in (BOARD, "mps2-an500", "mps2-an386", "generic-cortex-m"):
        assert load_target(name).default_device.max_stack_alloca_size_bytes == 0
        assert local_arrays(three_deep(1, None, None), load_target(name)) == []
    assert parse_max_stack_alloca_size("unlimited") is UNLIMITED
    assert local_arrays(three_deep(1 << 20, None, None), target_of(UNLIMITED)) != []


def test_s9_what_was_asked_for_by_name_answers_to_other_limits() -> None:
    assert local_arrays(three_deep(4000, STACK, STACK), target_of(0)) == [
        ("m_inner", 4000),
        ("m_outer", 4000),
    ]
    assert local_arrays(three_deep(128, WORKSPACE, LOCAL), target_of(0)) == [("m_inner", 128)]
    assert "admits 128 B" in refusal(three_deep(129, WORKSPACE, LOCAL), target_of(UNLIMITED))


# --- S10, S11: limits of the whole

ALLOWANCE = load_target(HOST).default_device.stack_allowance_per_call_bytes


def test_s10_the_limit_is_of_the_whole_path_and_exact(tmp_path: Path) -> None:
    module, total = three_deep(N, GLOBAL, GLOBAL), 2 * N + 3 * ALLOWANCE
    exact = target_of(N, max_stack=total)
    proof = proved_run(module, exact, tmp_path / "exact")
    assert (proof.stack.planned_bytes, proof.stack.size_bytes, proof.stack.limit_bytes) == (
        2 * N,
        total,
        total,
    )
    tight = target_of(N, max_stack=total - 1)
    proof = proved_run(module, tight, tmp_path / "tight")
    assert (proof.stack.planned_bytes, proof.stack.size_bytes) == (N, total - N)


def test_s10_what_cannot_move_fails_with_path_and_sums() -> None:
    module, total = three_deep(N, STACK, LOCAL), 2 * N + 3 * ALLOWANCE
    assert planned(module, target_of(max_stack=total)).trial.stored.stack[0].size_bytes == total
    text = refusal(module, target_of(max_stack=total - 1))
    assert f"needs {total} B; its limit is {total - 1} B: 1 B too few" in text
    path = f"main 0 B + {ALLOWANCE} B -> m_outer {N} B + {ALLOWANCE} B -> m_inner {N} B + {ALLOWANCE} B"
    assert path in text
    assert f"help: --max-stack-size {total}" in text
    mixed = three_deep(N, STACK, GLOBAL)  # the callee's array may move, its caller's may not
    assert local_arrays(mixed, target_of(N, max_stack=total - 1)) == [("m_outer", N)]


def test_s11_the_backend_workspace_serves_every_global_allocation(tmp_path: Path) -> None:
    target = target_of(UNLIMITED, backend=True)
    for index, scope in enumerate((None, GLOBAL, WORKSPACE)):
        module = three_deep(N, scope, scope)
        assert local_arrays(module, target) == []
        assert proved_run(module, target, tmp_path / str(index)).stack.planned_bytes == 0
    text = refusal(three_deep(N, GLOBAL, STACK), target)
    assert "global.stack" in text
    assert "use-backend-alloc-workspace" in text


# --- S12: the compiler's figures


@cache
def compiled_folder(name: str, target: Target) -> Path:
    folder = new_folder() / "bundle"
    write_bundle(pipeline.compile_model(model_path(name), target).files, folder)
    return folder


def proof_of(name: str, target: Target) -> StackProof:
    folder = compiled_folder(name, target)
    plan, bundle = check_bundle(folder).plan, read_bundle(folder)
    proof = check_stack(plan, lambda flags: compile_call_graphs(bundle, flags))
    header = (folder / "include" / f"{plan.model}.h").read_text(encoding="utf-8")
    assert f"#define {plan.model.upper()}_STACK_PLANNED_BYTES {proof.stack.planned_bytes}\n" in header
    assert f"#define {plan.model.upper()}_STACK_SIZE {proof.stack.size_bytes}\n" in header
    # Arrays that the compiler keeps in registers are counted where they are in memory.
    in_memory = (proof.in_memory or proof.measured).total_bytes
    assert proof.stack.planned_bytes <= in_memory
    assert 0 < proof.measured.total_bytes <= proof.stack.size_bytes
    assert proof.stack.limit_bytes is None or proof.stack.size_bytes <= proof.stack.limit_bytes
    return proof


@pytest.mark.parametrize("name", [*INT8, *FLOAT])
def test_s12_every_model_on_the_host(name: str) -> None:
    proof_of(name, load_target(HOST))


@pytest.mark.parametrize("name", [RESNET8, AD01, "pretrainedResnet"])
def test_s12_models_on_the_board(name: str) -> None:
    proof = proof_of(name, load_target(BOARD))
    assert proof.stack.limit_bytes == 7 * 1024
    assert proof.in_memory is None  # what the compiler reports holds the planned arrays


@pytest.mark.parametrize("limit", ["0", "256", "1024", "unlimited"])
@pytest.mark.parametrize("name", [KWS, VWW])
def test_s12_planned_reported_and_measured_agree_for_every_limit(name: str, limit: str) -> None:
    """The depth that a run reaches on the emulated board is at most what the compiler reports."""
    target = target_of(parse_max_stack_alloca_size(limit), name=BOARD)
    proof = proof_of(name, target)
    deepest = run_bundle(compiled_folder(name, target), seed=1, on="qemu").stack_bytes
    assert deepest is not None
    assert 0 < deepest <= proof.measured.total_bytes <= proof.stack.size_bytes <= 7 * 1024


@pytest.mark.parametrize("size_bytes", [N - 1, N, N + 1])
def test_s12_a_path_three_deep_on_the_board(tmp_path: Path, size_bytes: int) -> None:
    target = target_of(N, name=BOARD)
    module = three_deep(size_bytes, GLOBAL, GLOBAL)
    proof = proved_run(module, target, tmp_path)
    assert proof.stack.planned_bytes == (2 * size_bytes if size_bytes <= N else 0)
    deepest = run_bundle(tmp_path, seed=1, on="qemu").stack_bytes
    assert deepest is not None
    assert proof.stack.planned_bytes <= deepest <= proof.measured.total_bytes <= proof.stack.size_bytes


# --- S13: contexts

TWO_DEVICES = """
name = "gateway"
tags = ["micro"]
[memory.own]
size = "64KiB"
[memory.shared]
size = "64KiB"
[memory.rom]
size = "64KiB"
access = "r"
[device.cpu]
isa = "cortex-m4"
reach = ["own", "shared", "rom"]
stack = "own"
max-stack-size = "4KiB"
max-stack-alloca-size = 512
stack-allowance-per-call = 100
[device.dsp]
isa = "hifi4"
reach = ["shared", "rom"]
max-stack-alloca-size = 512
stack-allowance-per-call = 200
stack = "shared"
[device.dsp.context.thread0]
max-stack-size = "1KiB"
[device.dsp.context.thread1]
max-stack-size = 800
stack-reserve = 100
[device.npu]
isa = "ethos-u55"
reach = ["shared", "rom"]
[[workspace]]
name = "own"
memory = "own"
size = "16KiB"
[[workspace]]
name = "shared"
memory = "shared"
size = "16KiB"
[[parameters]]
name = "rom"
memory = "rom"
"""


def on_two_devices(
    size_bytes: int = 200, inner: Scope | None = GLOBAL, outer: Scope | None = GLOBAL
) -> Module:
    """Entry and m_outer on the CPU, m_inner on the DSP."""
    kernels = [
        reverse_kernel("m_inner", size_bytes, inner, device="dsp"),
        outer_kernel("m_inner", size_bytes, outer),
    ]
    first, last = tensor("x", size_bytes), tensor("y", size_bytes)
    body = BodyBuilder(("x", "y"))
    body.call("m_outer", region(first), region(last), where=WHERE)
    return module_of("m", kernels, body.finish(), first, last)


def test_s13_each_context_has_a_budget_of_its_own() -> None:
    target = load_text(TWO_DEVICES, "gateway.toml")
    uses = {use.context: use for use in stack_uses(place_scratch(on_two_devices(), target), target)}
    assert list(uses) == ["cpu", "dsp.thread0", "dsp.thread1"]
    # The CPU's array is passed to the DSP, so it is not on the CPU's stack; the DSP's begins a path of its own.
    assert (uses["cpu"].planned_bytes, uses["cpu"].size_bytes) == (0, 2 * 100)
    assert uses["cpu"].path == ("main", "m_outer")
    assert (uses["dsp.thread0"].planned_bytes, uses["dsp.thread0"].size_bytes) == (200, 200 + 2 * 200)
    assert uses["dsp.thread1"].path == ("m_dsp_execute", "m_inner")
    assert [use.limit_bytes for use in uses.values()] == [4096, 1024, 700]


def test_s13_the_smallest_budget_that_may_run_a_kernel_holds() -> None:
    """300 B of arrays and two allowances of 200 B are thread1's limit; thread0 would have room for more."""
    target = load_text(TWO_DEVICES, "gateway.toml")
    assert stack_uses(place_scratch(on_two_devices(300), target), target)[2].planned_bytes == 300
    moved = stack_uses(place_scratch(on_two_devices(301), target), target)
    assert [use.planned_bytes for use in moved] == [0, 0, 0]
    refused = place_scratch(on_two_devices(301, inner=STACK), target)
    (diagnostic,) = stack_refusals(stack_uses(refused, target), refused, target)
    limit = "its limit is 800 B, of which 100 B are its reserve: 1 B too few"
    assert f"the stack of 'dsp.thread1' needs 701 B; {limit}" in diagnostic.message
    assert "m_dsp_execute 200 B -> m_inner 301 B + 200 B" in diagnostic.notes[0]


def test_s13_what_another_device_touches_is_not_on_the_stack() -> None:
    target = load_text(TWO_DEVICES, "gateway.toml")
    placed = place_scratch(on_two_devices(8), target)
    (moved,) = [a for a in allocations(placed.main.body) if a.buffer.name == "y/scratch0"]
    assert moved.scope == WORKSPACE
    assert any("device 'dsp' touches it" in line for line in moved.storage.provenance)
    assert [a.scope for a in allocations(placed.kernels[0].body)] == [STACK]


# --- S22: kernels and scopes


@pytest.mark.parametrize(
    ("scope", "expected"),
    [
        (None, "fast"),
        (GLOBAL, "fast"),
        (WORKSPACE, "fast"),
        (pool_scope("fast"), "fast"),
        (pool_scope("slow"), "slow"),
    ],
)
def test_s22_kernels_and_the_entry_follow_the_same_rules(scope: Scope | None, expected: str) -> None:
    """Larger than any local array may be: what a scope means in a kernel, it means in the entry."""
    target, size_bytes = load_text(TWO_POOLS, "two.toml"), 100
    in_kernel = places(chain("m", [reverse_kernel("m_r", size_bytes, scope)], size_bytes), target)
    assert in_kernel == {"main:y/scratch0": pool_scope(expected)}
    in_callee = places(three_deep(size_bytes, STACK, scope), target)
    assert in_callee["main:y/m_inner_scratch0"] == pool_scope(expected)
    kernels = [reverse_kernel("m_r", size_bytes, STACK)] * 2
    in_entry = places(chain("m", kernels, size_bytes, scope=scope or GLOBAL), target)
    assert in_entry["main:t0/out"] == pool_scope(expected)


def test_s22_a_kernel_need_name_no_scope() -> None:
    target = target_of(N)
    for size_bytes in (N, N + 1):
        unmarked = places(three_deep(size_bytes, None, None), target)
        assert unmarked == places(three_deep(size_bytes, GLOBAL, GLOBAL), target)


def test_s22_scratch_that_threads_would_share_is_refused() -> None:
    kernel = reverse_kernel("m_r", 8, STACK)
    scratch = Buffer("own", (4,), DType.I8, 1)
    loop = For(
        Var("t", DType.I32),
        Var("n", DType.I32),
        Var("n", DType.I32),
        Seq((Allocate(scratch, Storage(WORKSPACE)),)),
        LoopKind.PARALLEL,
    )
    threaded = replace(kernel, body=Seq((*kernel.body.statements, loop)))
    with pytest.raises(CompileError) as caught:
        place_scratch(chain("m", [threaded], 8), target_of())
    assert "inside a parallel loop" in str(caught.value)


# --- S23: tags that a pass lowers

UNIFIED = pool_scope("unified")


def after_every_pass(module: Module, target: Target) -> Module:
    """All of the storage stage, and the plan, written into the module."""
    module = place_scratch(module, target)
    module = pin_buffers(module, target, (Pin("t0*", "fast"),))
    module = attach_candidates(module, target)
    workspace = with_plan(solve(build_workspace_problem(module, read_clock(module, target), target)))
    parameters = with_plan(solve(build_parameter_problem(module, target)))
    return apply_solution(module, workspace, parameters)


def tagged(where: str) -> Module:
    """The tag on a kernel's scratch, or on a tensor of the entry."""
    if where == "kernel":
        return chain("m", [reverse_kernel("m_r", 8, UNIFIED), reverse_kernel("m_s", 8, WORKSPACE)], 8)
    module = chain("m", [reverse_kernel("m_r", 8, STACK)] * 3, 8)
    body = retagged(module.main.body, "t1/out", WORKSPACE, UNIFIED)
    return replace(module, entries=(replace(module.main, body=body),))


def retagged(body: Seq, name: str, before: Scope, after: Scope) -> Seq:
    def change(statement: Statement) -> tuple[Statement, ...]:
        if isinstance(statement, Allocate) and (statement.buffer.name, statement.scope) == (name, before):
            statement = replace(statement, storage=replace(statement.storage, scope=after))
        return (statement,)

    return rewrite_sequence(body, Rewriting(statement=change))


def find_allocation(module: Module, where: str) -> Allocate:
    body: Statement = module.kernels[0].body if where == "kernel" else module.main.body
    name = "scratch0" if where == "kernel" else "t1/out"
    (found,) = [s for s in walk_statements(body) if isinstance(s, Allocate) and s.buffer.name == name]
    return found


@pytest.mark.parametrize("where", ["kernel", "entry"])
def test_s23_a_tag_that_a_pass_lowers_is_left_alone_and_refused_at_emission(where: str) -> None:
    target = load_text(TWO_POOLS, "two.toml")
    module = tagged(where)
    assert find_violations(module, Stage.LOWERED, target) == ()
    result = after_every_pass(module, target)
    assert find_allocation(result, where) == find_allocation(module, where)
    violations = [v.text for v in find_violations(result, Stage.PLANNED, target)]
    assert any("scope 'global.unified' was left over by pass 'lower_unified'" in text for text in violations)
    original = planned(lowered_by_its_pass(module, where), target)
    plan, names = original.plan, names_of(original.plan)
    with pytest.raises(InternalError, match=r"scratch0|t1/out"):
        generate_c(result, plan, names, original.contents)


def lowered_by_its_pass(module: Module, where: str) -> Module:
    """What the pass `lower_unified` of a target would do: here, into the workspace."""
    if where == "kernel":
        first, *others = module.kernels
        body = retagged(first.body, "scratch0", UNIFIED, pool_scope("fast"))
        return replace(module, kernels=(replace(first, body=body), *others))
    body = retagged(module.main.body, "t1/out", UNIFIED, pool_scope("fast"))
    return replace(module, entries=(replace(module.main, body=body),))


@pytest.mark.parametrize("where", ["kernel", "entry"])
def test_s23_once_lowered_it_is_like_any_other(tmp_path: Path, where: str) -> None:
    target = load_text(TWO_POOLS, "two.toml")
    write_bundle(files_of(lowered_by_its_pass(tagged(where), where), target), tmp_path)
    values: np.ndarray[Any, Any] = np.arange(8).astype(np.int8)
    times = 2 if where == "kernel" else 3
    expected = values if times % 2 == 0 else values[::-1]
    np.testing.assert_array_equal(run_bundle(tmp_path, [values]).outputs[0], expected)


# --- what makes a path three deep correct C


def test_a_callee_is_restrict_only_where_its_callers_know() -> None:
    """`m_inner` gets an array of its caller's and a parameter, then two views of one array."""
    result = planned(three_deep(N, STACK, GLOBAL), target_of()).module
    assert ("source", "result") in result.kernels[0].noalias
    source, result_buffer = (Buffer(name, (8,), DType.I8, 1) for name in ("source", "result"))
    body = BodyBuilder(("source", "result"))
    with body.for_("i", 0, 8) as i:
        body.store(result_buffer, i, load(source, i))
    body.call("m_inner", Region(result_buffer), Region(result_buffer), where=WHERE)
    parameters = (
        BufferParameter(source, Access.READ, scope=GLOBAL),
        BufferParameter(result_buffer, Access.READ_WRITE, scope=GLOBAL),
    )
    both = PrimFunc("m_outer", parameters, body.finish(), where=WHERE)
    first, last = tensor("x", 8), tensor("y", 8)
    entry = BodyBuilder(("x", "y"))
    entry.call("m_outer", region(first), region(last), where=WHERE)
    aliased = module_of("m", [reverse_kernel("m_inner", 8, STACK), both], entry.finish(), first, last)
    assert ("source", "result") not in planned(aliased, target_of()).module.kernels[0].noalias
