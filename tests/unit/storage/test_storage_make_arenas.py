"""Arenas: which scratch is requested at run time, from which arena, and how large that is."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bytewright.compiler.pipeline import plan_model
from bytewright.compiler.run_passes import Runner
from bytewright.compiler.store import store
from bytewright.compiler.trial import Conditions
from bytewright.diagnostics import CompileError
from bytewright.ir.analyses.clock import read_clock
from bytewright.ir.analyses.stack import stack_uses
from bytewright.ir.builder import BodyBuilder, region
from bytewright.ir.expr import Buffer
from bytewright.ir.module import Module
from bytewright.ir.prim import Allocate
from bytewright.ir.scope import WORKSPACE, pool_scope
from bytewright.ir.storage import Storage
from bytewright.ir.types import DType, Symbol
from bytewright.ir.verify.stages import Stage, find_violations, verify
from bytewright.ir.walk import walk_statements
from bytewright.options import Options, Pin
from bytewright.storage.build_problem import build_workspace_problem
from bytewright.storage.make_arenas import make_arenas, top_bytes
from bytewright.storage.place_io import place_io
from bytewright.target import load_text
from bytewright.target.model import Target
from bytewright.target.registry import load_target
from support.hand_built import WHERE, chain, module_of, reverse_kernel, stored
from support.open_scratch import ROWS, Scratch, open_chain, open_kernel, outer_kernel, rows_of, value_of

HOST = load_target("host")
SMALL, WIDE = Scratch(), Scratch(5, DType.I32, 64)
POOLS = """
name = "three"
default-device = "cpu"
[memory.a]
size = "64KiB"
[memory.b]
size = "64KiB"
[memory.c]
size = "64KiB"
[memory.flash]
size = "64KiB"
access = "r"
[device.cpu]
isa = "cortex-m55"
reach = ["a", "b", "c", "flash"]
stack = "a"
[device.npu]
isa = "npu"
reach = ["b", "c"]
[[workspace]]
name = "a"
memory = "a"
[[workspace]]
name = "b"
memory = "b"
[[workspace]]
name = "c"
memory = "c"
[[parameters]]
name = "flash"
memory = "flash"
"""


def three_memories(memory: str = "", more: str = "") -> Target:
    """The target, with more lines about memory `b`, and at its end."""
    text = POOLS.replace("[memory.b]\n", f"[memory.b]\n{memory}\n")
    return load_text(text + more, "three.toml")


def with_arenas(module: Module, target: Target = HOST) -> Module:
    attached = stored(module, target)
    made = make_arenas(attached, target)
    verify(made, Stage.STORED, target, attached, "make_arenas")
    return made


def allocations(module: Module) -> dict[str, Allocate]:
    return {s.buffer.name: s for s in walk_statements(module.main.body) if isinstance(s, Allocate)}


def arenas(module: Module) -> dict[str, tuple[int, int, tuple[str, ...]]]:
    """Size, alignment and requests of each arena."""
    found = allocations(module)
    names = dict.fromkeys(a.storage.arena for a in found.values() if a.storage.arena is not None)
    return {
        name: (
            found[name].buffer.shape[0],  # type: ignore[misc]
            found[name].buffer.alignment,
            tuple(a.buffer.name for a in found.values() if a.storage.arena == name),
        )
        for name in names
    }


def test_a_module_without_open_scratch_stays_as_it_is() -> None:
    module = stored(chain("m", [reverse_kernel("k", 8, WORKSPACE)] * 2, 8), HOST)
    assert make_arenas(module, HOST) == module


def test_calls_share_an_arena_as_large_as_the_largest_of_them_needs() -> None:
    module = with_arenas(open_chain("m", [open_kernel("k", [SMALL, WIDE]), open_kernel("l", [WIDE, SMALL])]))
    requests = ("t0/scratch0", "t0/scratch1", "y/scratch0", "y/scratch1")
    # 8 rows: 8 B, padded to 64, and 160 B of the other; the other way round there is no padding.
    assert arenas(module) == {"arena": (64 + 160, 64, requests)}
    arena = allocations(module)["arena"]
    assert module.main.body.statements[0] == arena
    assert arena.buffer.dtype is DType.I8
    assert arena.storage.candidates == ("ram",)
    listed = ", ".join(requests)
    assert arena.storage.provenance == (
        f"make_arenas: holds what is requested at run time: {listed}, at most 224 B at once",
    )


def test_the_provenance_of_an_arena_counts_what_it_does_not_name() -> None:
    made = with_arenas(open_chain("m", [open_kernel("k", [SMALL] * 3)] * 2))
    (reason,) = allocations(made)["arena"].storage.provenance
    assert "t0/scratch0, t0/scratch1, t0/scratch2, y/scratch0 and 2 more, at most" in reason


@given(
    st.lists(st.tuples(st.integers(1, 40), st.sampled_from([1, 2, 16, 64, 4096])), min_size=1, max_size=6),
    st.integers(1, 9),
)
def test_the_upper_bounds_are_the_worst_case(shapes: list[tuple[int, int]], rows: int) -> None:
    """Sizes and padding grow with the extents, so no run needs more than one of the largest extents."""

    def top(extent: int | Symbol) -> int:
        return top_bytes(tuple(Buffer("b", (extent, w), DType.I8, a) for w, a in shapes))

    assert top(rows) <= top(9) == top(Symbol("rows", 1, 9))


def test_names_of_the_model_are_not_taken() -> None:
    module = open_chain("m", [open_kernel("k", [SMALL])] * 2)
    body = BodyBuilder(("x", "y", "rows"))
    middle = body.allocate(rows_of("arena"), Storage(WORKSPACE))
    body.call("k", region(rows_of("x")), region(middle), value_of(ROWS))
    body.call("k", region(middle), region(rows_of("y")), value_of(ROWS))
    entry = replace(module.main, body=body.finish())
    assert list(arenas(with_arenas(replace(module, entries=(entry,))))) == ["arena_2"]


def test_a_call_with_a_constant_extent_has_scratch_of_constant_size() -> None:
    source, result = (Buffer(name, (8,), DType.I8, 16) for name in ("x", "y"))
    body = BodyBuilder(("x", "y"))
    body.call("k", region(source), region(result), 5, where=WHERE)
    module = module_of("m", [open_kernel("k", [WIDE])], body.finish(), source, result)
    made = with_arenas(module)
    assert arenas(made) == {}
    scratch = allocations(made)["y/scratch0"]
    assert scratch.buffer.shape == (5, 5)
    assert "place_scratch: 'k' is called with rows = 5" in scratch.storage.provenance


def test_scratch_of_nested_calls_has_the_entrys_symbol() -> None:
    inner = open_kernel("inner", [WIDE])
    made = with_arenas(open_chain("m", [outer_kernel("outer", [inner, inner])], [inner]))
    # Both calls need the same, one after the other, so it is requested once: 160 B after the 8 B between them.
    assert arenas(made) == {"arena": (64 + 160, 64, ("y/between0", "y/inner_scratch0"))}
    reasons = allocations(made)["y/inner_scratch0"].storage.provenance
    assert "share_requests: serves y/inner_scratch0_1 in turn" in reasons
    assert {a.buffer.shape[0] for a in allocations(made).values() if a.storage.arena} == {ROWS}


def test_nested_calls_with_other_extents_have_scratch_of_their_own() -> None:
    inner = open_kernel("inner", [SMALL])
    source, result = (rows_of(name, Symbol("rows", 4, 8)) for name in ("source", "result"))
    body = BodyBuilder(("source", "result", "rows"))
    for extent in (value_of(ROWS), 3, value_of(ROWS), 4, 3):
        body.call("inner", region(source), region(result), extent)
    with body.for_("i", 2, 5) as i:
        body.call("inner", region(source), region(result), i)
    outer = replace(outer_kernel("outer", [inner], rows=Symbol("rows", 4, 8)), body=body.finish())
    made = with_arenas(open_chain("m", [outer], [inner], Symbol("rows", 4, 8)))
    shapes = {name: a.buffer.shape for name, a in allocations(made).items() if name != "arena"}
    assert shapes == {
        "y/inner_scratch0": (Symbol("rows", 4, 8), 1),  # for the first call and the third
        "y/inner_scratch0_1": (3, 1),
        "y/inner_scratch0_3": (4, 1),
        "y/inner_scratch0_4": (3, 1),
        "y/inner_scratch0_5": (4, 1),  # in the loop, where 4 is the largest
    }
    assert [a.storage.arena for a in allocations(made).values()] == [None, "arena", None, None, None, None]


def test_tensors_of_open_size_are_planned_at_their_upper_bound() -> None:
    made = with_arenas(open_chain("m", [open_kernel("k", [SMALL])] * 2))
    assert allocations(made)["t0/out"].storage.arena is None
    problem = build_workspace_problem(made, read_clock(made, HOST), HOST)
    assert {b.name: b.size_bytes for b in problem.buffers} == {"arena": 8, "t0/out": 8}


def test_scratch_that_several_calls_use_is_no_request() -> None:
    """It has to hold its bytes, or may, from one call to the next."""
    kernel = stored(open_chain("m", [open_kernel("k", [SMALL])]), HOST).kernels[0]
    body = BodyBuilder(("x", "y", "rows"))
    shared = body.allocate(Buffer("shared", (ROWS, 1), DType.I8, 16), Storage(WORKSPACE))
    middle = body.allocate(rows_of("t"), Storage(WORKSPACE))
    body.call("k", region(rows_of("x")), region(middle), value_of(ROWS), region(shared))
    body.call("k", region(middle), region(rows_of("y")), value_of(ROWS), region(shared))
    scalars = [value_of(ROWS)]
    module = module_of("m", [kernel], body.finish(), rows_of("x"), rows_of("y"), scalars=scalars)
    assert arenas(with_arenas(module)) == {}


# Pools


def three_pools(*scopes: str | None) -> Module:
    """One call with an array of scratch for each pool."""
    scratch = [Scratch(scope=WORKSPACE if s is None else pool_scope(s)) for s in scopes]
    return open_chain("m", [open_kernel("k", scratch)])


@pytest.mark.parametrize(
    ("scopes", "expected"),
    [
        ((None, None), [("a", "b", "c")]),
        (("b", "b"), [("b",)]),
        (("a", "b"), [("a",), ("b",)]),
        ((None, "b"), [("b",)]),
        (("b", None), [("b",)]),
        (("a", None, "b"), [("a",), ("b",)]),  # the second shares with the first
        ((None, "c", "a"), [("c",), ("a",)]),
    ],
)
def test_requests_that_could_meet_in_a_pool_share_an_arena(
    scopes: tuple[str | None, ...], expected: list[tuple[str, ...]]
) -> None:
    made = with_arenas(three_pools(*scopes), three_memories())
    found = allocations(made)
    assert [found[name].storage.candidates for name in arenas(made)] == expected
    pools = [pool for candidates in expected for pool in candidates]
    assert len(set(pools)) == len(pools)  # so no two arenas end in one pool
    for request in found.values():
        if request.storage.arena is not None:
            assert request.storage.candidates == found[request.storage.arena].storage.candidates
            assert request.scope == found[request.storage.arena].scope


def test_a_request_says_why_it_may_not_go_where_it_could() -> None:
    made = with_arenas(three_pools(None, "b"), three_memories())
    reasons = allocations(made)["y/scratch0"].storage.provenance
    assert reasons[-1] == "make_arenas: requested from 'arena' around its call: {b}"
    assert allocations(made)["y/scratch1"].storage.provenance[-1].endswith("around its call")


def test_an_arena_is_touched_by_whoever_touches_what_it_serves() -> None:
    target = three_memories()
    body = BodyBuilder(("x", "y", "rows"))
    middle = body.allocate(rows_of("t"), Storage(WORKSPACE))
    body.call("k", region(rows_of("x")), region(middle), value_of(ROWS))
    body.call("n", region(middle), region(rows_of("y")), value_of(ROWS))
    kernels = [open_kernel("k", [SMALL]), open_kernel("n", [SMALL], device="npu")]
    first, last = (rows_of(name) for name in ("x", "y"))
    module = module_of("m", kernels, body.finish(), first, last, scalars=[value_of(ROWS)])
    made = with_arenas(place_io(module), target)
    live = {b.buffer.name: b for b in read_clock(made, target).buffers}
    assert live["arena"].devices == ("cpu", "npu")
    assert allocations(made)["arena"].storage.candidates == ("b", "c")


# Time, cost, stack


def test_an_arena_lives_from_the_first_body_that_requests_to_the_last() -> None:
    plain = open_kernel("p", [])
    kernels = [plain, open_kernel("k", [SMALL]), plain, open_kernel("l", [WIDE]), plain]
    made = with_arenas(open_chain("m", kernels))
    timeline = read_clock(made, HOST)
    live = {b.buffer.name: (b.lower, b.upper) for b in timeline.buffers}
    assert live["arena"] == (4, 13)  # bodies of two ticks, from 4 and from 11 on
    assert (live["t1/scratch0"], live["t3/scratch0"]) == ((4, 6), (11, 13))
    assert [step.index for step in timeline.steps if "arena" in step.touched] == [1, 3]


def test_an_arena_lives_through_a_loop_that_requests_from_it() -> None:
    body = BodyBuilder(("x", "y", "rows"))
    body.call("p", region(rows_of("x")), region(rows_of("y")), value_of(ROWS))
    with body.for_("i", 0, 3):
        body.call("p", region(rows_of("x")), region(rows_of("y")), value_of(ROWS))
        body.call("k", region(rows_of("x")), region(rows_of("y")), value_of(ROWS))
    kernels = [open_kernel("p", []), open_kernel("k", [SMALL])]
    module = module_of("m", kernels, body.finish(), rows_of("x"), rows_of("y"), scalars=[value_of(ROWS)])
    live = {b.buffer.name: (b.lower, b.upper) for b in read_clock(with_arenas(module), HOST).buffers}
    assert live["arena"] == (3, 10)
    assert live["y/scratch0"] == (7, 9)


def test_an_arena_costs_what_its_requests_cost() -> None:
    """The bytes that its requests read and write count for it, so it competes for fast memory like a tensor."""
    target = three_memories("read-cost = 3")
    kernel = open_kernel("k", [Scratch(scope=WORKSPACE)])
    made = with_arenas(open_chain("m", [kernel]), target)
    problem = build_workspace_problem(made, read_clock(made, target), target)
    (buffer,) = problem.buffers
    # 8 rows, each written once and read once.
    assert [(c.pool, c.cost) for c in buffer.candidates] == [
        ("a", 16),
        ("b", 8 * 3 + 8 * 2),
        ("c", 8 * 4 + 8 * 3),
    ]


@pytest.mark.parametrize("declared", [None, 100, 5000])
def test_the_pair_of_the_application_counts_with_its_declared_stack(declared: int | None) -> None:
    line = "" if declared is None else f"[stack.external]\nm_backend_alloc_workspace = {declared}\n"
    target = three_memories(more=line)
    trial = store(open_chain("m", [open_kernel("k", [SMALL])]), Runner(target), Conditions(target))
    allowance = target.default_device.stack_allowance_per_call_bytes
    assert 100 < allowance < 5000
    (use,) = stack_uses(trial.stored.module, target)
    assert use.size_bytes == allowance + max(allowance, declared or 0)
    assert use.path == ("main", "k" if declared != 5000 else "m_backend_alloc_workspace")


@pytest.mark.parametrize("small_first", [True, False])
def test_a_large_request_is_not_forced_into_a_small_pool_that_another_one_names(small_first: bool) -> None:
    few = load_text(
        POOLS.replace('memory = "a"\n[[workspace]]', 'memory = "a"\nsize = 100\n[[workspace]]'), "few.toml"
    )
    small, large = Scratch(scope=pool_scope("a")), replace(WIDE, scope=WORKSPACE)
    kernels = [open_kernel("k", [small]), open_kernel("l", [large])]
    planned = plan_model(open_chain("m", kernels if small_first else kernels[::-1]), few)
    found = allocations(planned.module)
    pools = {found[name].scope: num_bytes for name, (num_bytes, _, _) in arenas(planned.module).items()}
    assert pools == {pool_scope("a"): 8, pool_scope("b"): 160}
    assert find_violations(planned.module, Stage.PLANNED, few) == ()


# Refusals


def test_an_arena_that_does_not_fit_is_refused_with_its_size() -> None:
    few = load_text(POOLS.replace('memory = "b"', 'memory = "b"\nsize = 100'), "three.toml")
    module = open_chain("m", [open_kernel("k", [replace(WIDE, scope=pool_scope("b"))])])
    with pytest.raises(CompileError) as caught:
        plan_model(module, few)
    assert "'arena' (160 B, alive in step 0, used in step 0)" in str(caught.value)
    assert caught.value.diagnostics[0].help == "--resize b=160"


def test_requests_are_pinned_by_name_and_take_the_arena_with_them() -> None:
    target = three_memories()
    planned = plan_model(three_pools(None, None), target, Options(pins=(Pin("y/scratch1", "c"),)))
    found = allocations(planned.module)
    assert {a.scope for a in found.values()} == {pool_scope("c")}
    assert found["arena"].storage.offset == 0
    assert found["y/scratch0"].storage.offset is None
