"""Requirements on storage scopes: a constraint goes in, a place comes out, and the generated C shows it."""

from __future__ import annotations

import platform
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bytewright.bundle.write import write_bundle
from bytewright.codegen.generate import generate_c
from bytewright.codegen.kernels import kernels_source
from bytewright.compiler.pipeline import compile_model
from bytewright.diagnostics import CompileError, InternalError
from bytewright.execute.build import BuildOptions
from bytewright.execute.run import run_batch
from bytewright.frontends.tflite import import_tflite
from bytewright.ir.analyses.stack import stack_refusals, stack_uses
from bytewright.ir.module import Module
from bytewright.ir.prim import Allocate
from bytewright.ir.rewrite import Rewriting, rewrite_sequence
from bytewright.ir.scope import GLOBAL, LOCAL, STACK, WORKSPACE, Scope, pool_scope
from bytewright.ir.storage import Storage
from bytewright.ir.types import VirtualDevice
from bytewright.lower.fold_pad import fold_pad
from bytewright.lower.lower_graph import lower_graph
from bytewright.ops.arithmetic.numerics import Numerics
from bytewright.place.plan_devices import plan_devices
from bytewright.record.names import Names, names_of
from bytewright.storage.place_scratch import place_scratch
from bytewright.target.model import UNLIMITED, Target, Unlimited
from bytewright.target.options import Overrides, apply_overrides
from bytewright.target.registry import load_target
from support.c_program import run_command
from support.hand_built import allocations, chain, constant, files_of, planned, reverse_kernel

DIGITS = Path(__file__).resolve().parents[2] / "examples" / "digits" / "digits.tflite"
LIMIT = 64
SANITIZED = BuildOptions(flags=("-O0",), sanitize=True)


def host(limit: int | Unlimited) -> Target:
    return apply_overrides(load_target("host"), Overrides(max_stack_alloca_size=limit))


def reversing(size_bytes: int, scope: Scope | None, num_kernels: int = 3) -> Module:
    return chain("m", [reverse_kernel("m_reverse", size_bytes, scope)] * num_kernels, size_bytes)


def lowered(model: Path, target: Target) -> Module:
    module = import_tflite(model, name=None, numerics=Numerics.LITERT_REF)
    return lower_graph(fold_pad(plan_devices(module, target)), target)


def run(module: Module, target: Target, folder: Path, size_bytes: int) -> np.ndarray[Any, Any]:
    """The output for a ramp, from a sanitized build."""
    write_bundle(files_of(module, target), folder)
    x = np.arange(size_bytes).astype(np.int8)
    return run_batch(folder, [[x]], options=SANITIZED).outputs[0][0]


@pytest.mark.parametrize("target", ["host", "mps3-an547"])
def test_s1_lowering_names_constraints_and_no_mechanism(target: str) -> None:
    """Before the storage stage no allocation has been given a place."""
    module = lowered(DIGITS, load_target(target))
    scopes = {a.scope for a in allocations(module.main.body)}
    scopes |= {a.scope for kernel in module.kernels for a in allocations(kernel.body)}
    assert scopes <= {GLOBAL, WORKSPACE, LOCAL, None}
    assert WORKSPACE in scopes
    assert all(a.storage.offset is None for a in allocations(module.main.body))


@pytest.mark.run
@pytest.mark.parametrize(
    ("size_bytes", "on_stack"),
    [(LIMIT - 1, True), (LIMIT, True), (LIMIT + 1, False)],
    ids=["N-1", "N", "N+1"],
)
def test_s1_stack_or_workspace_is_chosen_from_what_the_scope_allows(
    tmp_path: Path, size_bytes: int, on_stack: bool
) -> None:
    """Round the limit the same kernel keeps its scratch or gets it; the bytes that it computes are the same."""
    module = reversing(size_bytes, GLOBAL)
    result = planned(module, host(LIMIT))
    scratch = [name for name in result.trial.workspace.placement_of if "scratch" in name]
    assert (scratch == []) == on_stack
    assert stack_uses(result.module, host(LIMIT))[0].planned_bytes == (size_bytes if on_stack else 0)
    expected = np.arange(size_bytes).astype(np.int8)[::-1]
    np.testing.assert_array_equal(run(module, host(LIMIT), tmp_path / "limit", size_bytes), expected)
    np.testing.assert_array_equal(run(module, host(0), tmp_path / "none", size_bytes), expected)
    np.testing.assert_array_equal(run(module, host(UNLIMITED), tmp_path / "all", size_bytes), expected)


@pytest.mark.run
@pytest.mark.parametrize("scope", [None, GLOBAL, WORKSPACE, STACK, LOCAL, pool_scope("ram")], ids=str)
def test_s1_every_scope_gives_the_same_bytes(tmp_path: Path, scope: Scope | None) -> None:
    expected = np.arange(LIMIT).astype(np.int8)[::-1]
    np.testing.assert_array_equal(
        run(reversing(LIMIT, scope), load_target("host"), tmp_path / "out", LIMIT), expected
    )


def local_arrays(source: str) -> set[tuple[str, str, int]]:
    """(type, name, elements) of the arrays that functions declare; types that hold a vector are none."""
    source = re.sub(r"^typedef struct \{$.*?^\}", "", source, flags=re.MULTILINE | re.DOTALL)
    return {
        (kind, name, int(size))
        for kind, name, size in re.findall(r"^    +(\w+) (\w+)\[(\d+)\];$", source, re.MULTILINE)
    }


@pytest.mark.parametrize("target", ["host", "mps3-an547", "generic-cortex-m"])
def test_s7_private_scratch_is_a_local_array_with_constant_bounds(target: str) -> None:
    source = files_of(reversing(40, LOCAL), load_target(target))["src/m_kernels.c"].decode()
    assert local_arrays(source) == {("int8_t", "scratch0", 40)}


def test_s7_unmarked_scratch_is_a_local_array_within_the_limit() -> None:
    for scope in (GLOBAL, None):
        module = reversing(LIMIT, scope)
        within = files_of(module, host(LIMIT))["src/m_kernels.c"].decode()
        assert local_arrays(within) == {("int8_t", "scratch0", LIMIT)}
        over = files_of(module, host(LIMIT - 1))["src/m_kernels.c"].decode()
        assert local_arrays(over) == set()
        assert "int8_t *restrict scratch0" in over


@pytest.mark.parametrize("target", ["host", "mps3-an547"])
def test_s7_a_compiled_model_shows_it(target: str) -> None:
    compiled = compile_model(DIGITS, load_target(target))
    arrays = local_arrays(compiled.files["src/digits_kernels.c"].decode())
    on_stack = [b for b in compiled.document["buffers"] if b["place"]["kind"] == "stack"]
    assert {name for _, name, _ in arrays} == {b["name"].rpartition("/")[2] for b in on_stack}
    assert len(arrays) > 0
    assert max(b["size_bytes"] for b in on_stack) <= 128


@pytest.mark.run
def test_s7_the_c_compiler_promotes_it_to_registers(tmp_path: Path) -> None:
    """The compiler's own report: the frame is that of a kernel without the array, unless the array is volatile."""
    # Otherwise a leaf function on x86-64 reports no frame for its first 128 bytes.
    flags = ["-mno-red-zone"] if platform.machine() == "x86_64" else []
    frames: list[int] = []
    for num_scratch, array in ((0, ""), (1, "int8_t scratch0[4]"), (1, "volatile int8_t scratch0[4]")):
        module = chain("m", [reverse_kernel("m_reverse", 4, LOCAL, num_scratch)], 4)
        files = files_of(module, load_target("mps3-an547"))
        source = files["src/m_kernels.c"].decode().replace("int8_t scratch0[4]", array)
        (tmp_path / "m_kernels.h").write_bytes(files["src/m_kernels.h"])
        (tmp_path / "m_kernels.c").write_text(source)
        run_command(["gcc", "-std=c99", "-O3", *flags, "-fstack-usage", "-c", "m_kernels.c"], tmp_path)
        name, frame_bytes, _ = (tmp_path / "m_kernels.su").read_text().split("\t")
        assert name.endswith("m_reverse")
        frames.append(int(frame_bytes))
    without, promoted, kept = frames
    assert promoted == without
    assert kept > without


UNDECIDED = [None, GLOBAL, WORKSPACE, pool_scope("ram"), pool_scope("nowhere")]


@pytest.mark.parametrize("scope", UNDECIDED, ids=str)
def test_s17_emission_refuses_an_allocation_that_was_not_decided(scope: Scope | None) -> None:
    """Codegen itself, without the verifier before it: no scope of a kernel's array but stack and local."""
    module = reversing(8, scope)
    with pytest.raises(InternalError, match=r"storage of 'scratch0' .* was not decided"):
        kernels_source(module, Names(module.name))
    for decided in (STACK, LOCAL):
        assert "scratch0[8]" in kernels_source(reversing(8, decided), Names("m"))


def emit(module: Module) -> None:
    """Generates C for a module, with the plan of its original."""
    original = planned(reversing(8, LOCAL), load_target("host"))
    generate_c(module, original.plan, names_of(original.plan), original.contents)


def with_entry_allocations(module: Module, change: Any) -> Module:
    entry = module.main

    def rewrite(statement: Any) -> tuple[Any, ...]:
        return (change(statement),) if isinstance(statement, Allocate) else (statement,)

    return replace(
        module,
        entries=(replace(entry, body=rewrite_sequence(entry.body, Rewriting(statement=rewrite))),),
    )


def test_s17_emission_refuses_a_tensor_without_offset_or_pool() -> None:
    module = planned(reversing(8, LOCAL), load_target("host")).module
    emit(module)
    without_offset = with_entry_allocations(module, lambda a: replace(a, storage=Storage()))
    with pytest.raises(InternalError, match="has no offset"):
        emit(without_offset)

    def widen(allocation: Allocate) -> Allocate:
        is_tensor = allocation.buffer.name.startswith("t")
        storage = replace(allocation.storage, scope=WORKSPACE)
        return replace(allocation, storage=storage) if is_tensor else allocation

    with pytest.raises(InternalError, match="was not decided"):
        emit(with_entry_allocations(module, widen))


def test_s17_emission_refuses_a_constant_without_offset() -> None:
    module = planned(reversing(8, LOCAL), load_target("host")).module
    with pytest.raises(InternalError, match="constant 'c' has no offset"):
        emit(replace(module, constant_buffers=(constant("c", range(8)),)))


@pytest.mark.parametrize("target", ["host", "mps3-an547"])
def test_s21_intermediate_tensors_start_in_the_workspace(target: str) -> None:
    entry = lowered(DIGITS, load_target(target)).main
    found = allocations(entry.body)
    assert len(found) > 2
    assert {a.scope for a in found} == {WORKSPACE}


def test_s21_no_tensor_becomes_a_local_array_whatever_the_limit() -> None:
    """Some tensors of the digits model are a few bytes only."""
    document = compile_model(DIGITS, host(UNLIMITED)).document
    tensors = [b for b in document["buffers"] if b["role"] == "tensor"]
    assert min(b["size_bytes"] for b in tensors) < 1024
    assert {b["place"]["kind"] for b in tensors} == {"planned"}


def test_s21_a_tensor_keeps_the_pool_that_placement_gave_it() -> None:
    target = load_target("mps3-an547")
    module = import_tflite(DIGITS, name=None, numerics=Numerics.LITERT_REF)
    graph = plan_devices(module, target).graph
    nodes = list(graph.nodes)
    for index, node in enumerate(nodes):
        values = tuple(
            replace(v, type=replace(v.type, place=VirtualDevice("cpu", target.name, pool_scope("isram"))))
            for v in node.outputs
        )
        nodes[index] = replace(node, outputs=values)
    placed = replace(module, functions=(replace(plan_devices(module, target).graph, nodes=tuple(nodes)),))
    found = allocations(lower_graph(fold_pad(placed), target).main.body)
    assert len(found) > 2
    assert {a.scope for a in found} == {pool_scope("isram")}
    trial = planned(lower_graph(fold_pad(placed), target), target).trial
    pools = {p.buffer: p.pool for p in trial.workspace.placements}
    assert pools.keys() >= {a.buffer.name for a in found}
    assert {pools[a.buffer.name] for a in found} == {"isram"}


def test_s24_what_is_too_large_to_be_private_is_an_error_and_no_move() -> None:
    target = load_target("host")
    assert place_scratch(reversing(128, LOCAL), target).kernels[0].buffer_parameters[2:] == ()
    with pytest.raises(CompileError) as caught:
        place_scratch(reversing(129, LOCAL), target)
    assert caught.value.diagnostics[0].code == "BW302"
    assert "private ('local')" in caught.value.diagnostics[0].message


def test_s24_private_arrays_count_towards_the_stack() -> None:
    board = load_target("mps3-an547")
    module = reversing(100, LOCAL)
    use = stack_uses(place_scratch(module, board), board)[0]
    assert use.planned_bytes == 100
    tight = apply_overrides(
        board,
        Overrides(max_stack_size=use.size_bytes + board.default_device.contexts[0].stack_reserve_bytes - 1),
    )
    placed = place_scratch(module, tight)
    (diagnostic,) = stack_refusals(stack_uses(placed, tight), placed, tight)
    assert diagnostic.code == "BW302"
    assert "1 B too few" in diagnostic.message


@pytest.mark.parametrize("target", ["host", "mps3-an547"])
def test_s24_private_arrays_stay_inside_their_function(target: str) -> None:
    """In the generated C a private array is no parameter of any kernel and no buffer of the plan's pools."""
    compiled = compile_model(DIGITS, load_target(target))
    header = compiled.files["src/digits_kernels.h"].decode()
    private = [b for b in compiled.document["buffers"] if b["scope"] == "local"]
    assert private
    for buffer in private:
        assert buffer["place"] == {"kind": "stack", "name": "cpu", "offset": None}
        kernel, _, name = buffer["name"].rpartition("/")
        (declaration,) = re.findall(rf"^void {kernel}\([^;]*\);$", header, re.MULTILINE)
        assert not re.search(rf"\b{name}\b", declaration)
