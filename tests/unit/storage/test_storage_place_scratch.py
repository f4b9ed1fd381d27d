"""Stack, workspace or pool for kernels' scratch: the decisions, and each refusal."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bytewright.compiler.pipeline import plan_model
from bytewright.diagnostics import CompileError, Diagnostic
from bytewright.ir.analyses.stack import stack_uses
from bytewright.ir.builder import BodyBuilder, load, region
from bytewright.ir.definitions import buffer_scopes
from bytewright.ir.expr import Buffer, Var
from bytewright.ir.module import Module
from bytewright.ir.prim import (
    Access,
    Allocate,
    BufferParameter,
    LoopKind,
    ParameterRole,
    PrimFunc,
    ScalarParameter,
    Statement,
)
from bytewright.ir.rewrite import Rewriting, rewrite_sequence
from bytewright.ir.scope import GLOBAL, LOCAL, STACK, WORKSPACE, Scope, pool_scope
from bytewright.ir.storage import Storage
from bytewright.ir.types import DType, Symbol
from bytewright.storage.place_scratch import place_scratch
from bytewright.target.model import UNLIMITED, Target, Unlimited
from bytewright.target.options import Overrides, apply_overrides
from bytewright.target.registry import load_target
from support.hand_built import WHERE, allocations, chain, module_of, reverse_kernel, stored, tensor

LIMIT = 64


def target_of(
    limit: int | Unlimited = LIMIT, *, backend: bool = False, max_stack: int | None = None
) -> Target:
    overrides = Overrides(
        max_stack_alloca_size=limit, use_backend_alloc_workspace=backend, max_stack_size=max_stack
    )
    return apply_overrides(load_target("host"), overrides)


def decided(module: Module, target: Target) -> dict[str, Scope | None]:
    """Scope of every scratch buffer: those of the kernels, and those that moved to the entry."""
    placed = place_scratch(module, target)
    bodies = [*(kernel.body for kernel in placed.kernels), placed.main.body]
    found = [a for body in bodies for a in allocations(body)]
    return {a.buffer.name: a.scope for a in found if "scratch" in a.buffer.name}


def one(size_bytes: int, scope: Scope | None) -> Module:
    return chain("m", [reverse_kernel("k", size_bytes, scope)], size_bytes)


def refusal(module: Module, target: Target) -> Diagnostic:
    with pytest.raises(CompileError) as caught:
        place_scratch(module, target)
    (diagnostic,) = caught.value.diagnostics
    return diagnostic


@pytest.mark.parametrize(
    ("size_bytes", "limit", "on_stack"),
    [
        (LIMIT - 1, LIMIT, True),
        (LIMIT, LIMIT, True),
        (LIMIT + 1, LIMIT, False),
        (1, 0, False),
        (1 << 20, UNLIMITED, True),
    ],
)
@pytest.mark.parametrize("scope", [GLOBAL, None])
def test_global_goes_to_the_stack_within_the_limit(
    scope: Scope | None, size_bytes: int, limit: int | Unlimited, on_stack: bool
) -> None:
    expected = {"scratch0": STACK} if on_stack else {"y/scratch0": WORKSPACE}
    assert decided(one(size_bytes, scope), target_of(limit)) == expected


@pytest.mark.parametrize("size_bytes", [1, LIMIT, 4096])
def test_workspace_and_named_pools_never_go_to_the_stack(size_bytes: int) -> None:
    target = target_of(UNLIMITED)
    assert decided(one(size_bytes, WORKSPACE), target) == {"y/scratch0": WORKSPACE}
    assert decided(one(size_bytes, pool_scope("ram")), target) == {"y/scratch0": pool_scope("ram")}


def test_local_and_stack_do_not_answer_to_the_limit() -> None:
    assert decided(one(100, LOCAL), target_of(0)) == {"scratch0": LOCAL}
    assert decided(one(4096, STACK), target_of(0)) == {"scratch0": STACK}


def test_the_backend_workspace_overrides_the_limit() -> None:
    assert decided(one(8, GLOBAL), target_of(UNLIMITED, backend=True)) == {"y/scratch0": WORKSPACE}
    assert decided(one(8, LOCAL), target_of(0, backend=True)) == {"scratch0": LOCAL}


def test_scratch_becomes_a_parameter_and_an_allocation_at_each_call() -> None:
    module = chain("m", [reverse_kernel("k", 8, WORKSPACE, num_scratch=2)] * 3, 8)
    placed = stored(module, target_of())
    (kernel,) = placed.kernels
    assert [p.buffer.name for p in kernel.buffer_parameters] == ["source", "result", "scratch0", "scratch1"]
    assert [p.role for p in kernel.buffer_parameters[2:]] == [ParameterRole.SCRATCH] * 2
    assert allocations(kernel.body) == []
    names = [a.buffer.name for a in allocations(placed.main.body)]
    assert [name for name in names if "scratch" in name] == [
        f"{stem}/scratch{index}" for stem in ("t0", "t1", "y") for index in range(2)
    ]


def test_calls_whose_results_have_names_of_one_stem_get_scratch_of_their_own() -> None:
    kernels = [reverse_kernel("k", 8, WORKSPACE)] * 3
    placed = stored(chain("m", kernels, 8, tensor_names=("split/0", "split/1")), target_of())
    names = [a.buffer.name for a in allocations(placed.main.body)]
    assert len(set(names)) == len(names) == 2 + 3


def test_the_module_given_is_not_changed_and_placing_again_decides_nothing_else() -> None:
    module, target = one(LIMIT, GLOBAL), target_of()
    before = str(module)
    placed = place_scratch(module, target)
    assert str(module) == before
    again = place_scratch(placed, target_of(0))
    assert [a.buffer for a in allocations(again.kernels[0].body)] == [
        a.buffer for a in allocations(placed.kernels[0].body)
    ]


def test_the_reason_is_kept() -> None:
    placed = place_scratch(one(LIMIT, GLOBAL), target_of())
    assert any(
        "64 B, within max-stack-alloca-size" in r
        for r in allocations(placed.kernels[0].body)[0].storage.provenance
    )
    moved = place_scratch(one(LIMIT + 1, GLOBAL), target_of())
    assert any(
        "65 B, over max-stack-alloca-size" in r for r in allocations(moved.main.body)[0].storage.provenance
    )


def test_private_storage_that_is_too_large_is_refused() -> None:
    assert decided(one(128, LOCAL), target_of()) == {"scratch0": LOCAL}
    diagnostic = refusal(one(129, LOCAL), target_of())
    assert diagnostic.code == "BW302"
    assert "'scratch0' of kernel 'k' is private ('local') and takes 129 B" in diagnostic.message
    assert "admits 128 B" in diagnostic.message
    assert "max-local-size = 129" in (diagnostic.help or "")


def dynamic(scope: Scope) -> Module:
    """A kernel whose scratch has as many elements as its scalar parameter says."""
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
    kernel = PrimFunc("k", parameters, body.finish(), where=WHERE)
    entry = BodyBuilder(("x", "y"))
    first, last = tensor("x", 8), tensor("y", 8)
    entry.call("k", region(first), region(last), 4, where=WHERE)
    return module_of("m", [kernel], entry.finish(), first, last)


def test_scratch_of_a_size_known_at_run_time_goes_to_the_workspace() -> None:
    assert decided(dynamic(GLOBAL), target_of(UNLIMITED)) == {"y/scratch0": WORKSPACE}


@pytest.mark.parametrize(
    ("scope", "words"),
    [(STACK, "known only at run time"), (LOCAL, "of constant size")],
    ids=["stack", "local"],
)
def test_arrays_on_the_stack_have_constant_size(scope: Scope, words: str) -> None:
    diagnostic = refusal(dynamic(scope), target_of(UNLIMITED))
    assert diagnostic.code == "BW302"
    assert words in diagnostic.message


def test_the_stack_by_name_contradicts_the_backend_workspace() -> None:
    diagnostic = refusal(one(8, STACK), target_of(backend=True))
    assert diagnostic.code == "BW302"
    assert "global.stack" in diagnostic.message
    assert "use-backend-alloc-workspace" in diagnostic.message


def test_what_may_move_makes_room_on_the_stack() -> None:
    """Two calls deep: beside their allowance 100 B are left for arrays."""
    kernels = [reverse_kernel("small", 60), reverse_kernel("large", 64, num_scratch=2)]
    body = BodyBuilder(("x", "y"))
    first, last = tensor("x", 64), tensor("y", 64)
    body.call("small", region(first), region(last), where=WHERE)
    body.call("large", region(first), region(last), where=WHERE)
    module = module_of("m", kernels, body.finish(), first, last)
    roomy = target_of()
    tight = target_of(max_stack=2 * roomy.default_device.stack_allowance_per_call_bytes + 100)
    assert stack_uses(place_scratch(module, roomy), roomy)[0].planned_bytes == 128
    placed = place_scratch(module, tight)
    use = stack_uses(placed, tight)[0]
    assert use.excess_bytes == 0
    assert use.planned_bytes == 64
    moved = allocations(placed.main.body)
    assert [a.buffer.shape for a in moved] == [(64,)]
    assert moved[0].scope == WORKSPACE


def with_arrays(*sizes: int) -> Module:
    """One call of a kernel with local arrays of these sizes."""
    source, result = (Buffer(name, (8,), DType.I8, 1) for name in ("source", "result"))
    body = BodyBuilder(("source", "result"))
    with body.for_("i", 0, 8) as i:
        body.store(result, i, 0)
    for index, size in enumerate(sizes):
        array = body.allocate(Buffer(f"a{index}", (size,), DType.I8, 1), Storage(GLOBAL))
        body.store(array, 0, load(source, 0))
        body.store(result, index, load(array, 0))
    parameters = (
        BufferParameter(source, Access.READ, scope=GLOBAL),
        BufferParameter(result, Access.WRITE, scope=GLOBAL),
    )
    return chain("m", [PrimFunc("k", parameters, body.finish(), where=WHERE)], 8)


def test_as_few_bytes_move_as_suffice() -> None:
    """Of 200 and 900 B with room for 1000 the 200 move, and the plan fits a pool that would not hold the 900."""
    allowance_bytes = target_of().default_device.stack_allowance_per_call_bytes
    tight = target_of(1024, max_stack=2 * allowance_bytes + 1000)
    placed = place_scratch(with_arrays(200, 900), tight)
    (moved,) = allocations(placed.main.body)
    assert moved.buffer.shape == (200,)
    text = (
        "of the stack of 'cpu', 100 B more than its limit; of its arrays 200 B move, the fewest that suffice"
    )
    assert any(text in line and "main -> k would take" in line for line in moved.storage.provenance)
    assert stack_uses(placed, tight)[0].planned_bytes == 900
    pool = replace(tight.workspace_pools[0], size_bytes=300)
    plan_model(with_arrays(200, 900), replace(tight, pools=(pool, *tight.parameter_pools)))


def test_an_array_of_each_thread_does_not_move_where_another_one_suffices() -> None:
    source, result = (Buffer(name, (8,), DType.I8, 1) for name in ("source", "result"))
    body = BodyBuilder(("source", "result"))
    array = body.allocate(Buffer("outside", (80,), DType.I8, 1), Storage(GLOBAL))
    body.store(array, 0, load(source, 0))
    with body.for_("i", 0, 8, LoopKind.PARALLEL) as i:
        inner = body.allocate(Buffer("inner", (60,), DType.I8, 1), Storage(GLOBAL))
        body.store(inner, 0, load(array, 0))
        body.store(result, i, load(inner, 0))
    parameters = (
        BufferParameter(source, Access.READ, scope=GLOBAL),
        BufferParameter(result, Access.WRITE, scope=GLOBAL),
    )
    module = chain("m", [PrimFunc("k", parameters, body.finish(), where=WHERE)], 8)
    tight = target_of(max_stack=2 * target_of().default_device.stack_allowance_per_call_bytes + 100)
    assert [a.buffer.name for a in allocations(place_scratch(module, tight).main.body)] == ["y/outside"]


@pytest.mark.parametrize(("limit", "expected"), [(LIMIT, STACK), (0, WORKSPACE)])
def test_a_view_of_scratch_has_the_scope_that_the_scratch_gets(limit: int, expected: Scope) -> None:
    source, result = (Buffer(name, (8,), DType.I8, 1) for name in ("source", "result"))
    body = BodyBuilder(("source", "result"))
    scratch = body.allocate(Buffer("scratch0", (8,), DType.I8, 1), Storage(GLOBAL))
    with body.for_("i", 0, 8) as i:
        body.store(scratch, i, load(source, i))
    whole = body.view("whole", region(scratch), DType.I8, 8)
    half = body.view("half", region(whole, 4), DType.I8, 4)
    with body.for_("j", 0, 4) as j:
        body.store(result, j, load(half, j))
    parameters = (
        BufferParameter(source, Access.READ, scope=GLOBAL),
        BufferParameter(result, Access.WRITE, scope=GLOBAL),
    )
    kernel = PrimFunc("k", parameters, body.finish(), where=WHERE)
    (placed,) = stored(chain("m", [kernel], 8), target_of(limit)).kernels
    scopes = buffer_scopes(placed, {})
    assert [scopes[name] for name in ("whole", "half")] == [expected, expected]


def with_candidates(scope: Scope | None) -> Module:
    module = one(8, scope)
    (kernel,) = module.kernels

    def annotate(statement: Statement) -> tuple[Statement, ...]:
        if isinstance(statement, Allocate):
            statement = replace(statement, storage=Storage(scope, candidates=("ram",)))
        return (statement,)

    body = rewrite_sequence(kernel.body, Rewriting(statement=annotate))
    return replace(module, kernels=(replace(kernel, body=body),))


@pytest.mark.parametrize("scope", [None, GLOBAL, WORKSPACE])
def test_a_list_of_pools_leaves_no_stack(scope: Scope | None) -> None:
    """Although the array is within every limit of the stack."""
    placed = place_scratch(with_candidates(scope), target_of())
    (moved,) = allocations(placed.main.body)
    assert moved.scope == WORKSPACE
    assert moved.storage.candidates == ("ram",)
    reason = "place_scratch: its candidate pools are ram, and no stack is one"
    assert (reason in moved.storage.provenance) is (scope != WORKSPACE)


def test_a_list_of_pools_contradicts_the_stack_by_name() -> None:
    diagnostic = refusal(with_candidates(STACK), target_of())
    assert diagnostic.code == "BW302"
    assert "asks for global.stack, and its candidate_memory_pools are ram" in diagnostic.message
