"""Requirements S6, S14, S15, S18, S20, P1 to P4, P6 and U2: what the user describes, and what passes make of it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bytewright.bundle.write import write_bundle
from bytewright.compiler.pipeline import Compiled, compile_model
from bytewright.diagnostics import CompileError, InternalError
from bytewright.execute.host import HostModel
from bytewright.execute.run import run_batch
from bytewright.ir.border import Io
from bytewright.ir.expr import Var, const
from bytewright.ir.module import Module
from bytewright.ir.prim import Allocate, Call, For, LoopKind, Seq, Statement
from bytewright.ir.rewrite import Rewriting, rewrite_sequence
from bytewright.ir.scope import STACK, parse_scope
from bytewright.ir.types import DType
from bytewright.ir.walk import walk_statements
from bytewright.options import Options, Pin
from bytewright.scopes.attach_candidates import attach_candidates
from bytewright.storage.place_scratch import place_scratch
from bytewright.target import Overrides, Target, apply_overrides, dump, load_target, load_text
from bytewright.target.options import parse_pool_option
from support.hand_built import chain, reverse_kernel
from support.ir_programs import CONSTANT, parsed, text_of

DIGITS = Path(__file__).parents[2] / "examples" / "digits" / "digits.tflite"
TWO_DEVICES = """
name = "two"
default-device = "cpu"
[memory.near]
size = "64KiB"
[memory.shared]
size = "64KiB"
[memory.far]
size = "64KiB"
[device.cpu]
isa = "cortex-m55"
reach = ["near", "shared"]
stack = "near"
max-stack-size = "4KiB"
max-stack-alloca-size = 1024
[device.dsp]
isa = "cortex-m4"
reach = ["shared", "far"]
stack = "far"
max-stack-size = "1KiB"
[[workspace]]
name = "near"
memory = "near"
size = "32KiB"
[[workspace]]
name = "shared"
memory = "shared"
[[workspace]]
name = "far"
memory = "far"
size = "32KiB"
[[parameters]]
name = "constants"
memory = "near"
size = "16KiB"
"""


def _pools(*workspace: str, parameters: tuple[str, ...] = ()) -> Target:
    overrides = Overrides(
        workspace=tuple(parse_pool_option(text) for text in workspace),
        parameters=tuple(parse_pool_option(text) for text in parameters),
    )
    return apply_overrides(load_target("mps3-an547"), overrides)


def _allocations(compiled: Compiled) -> dict[str, Allocate]:
    statements = walk_statements(compiled.module.main.body)
    return {s.buffer.name: s for s in statements if isinstance(s, Allocate)}


def _places(compiled: Compiled) -> dict[str, str]:
    return {buffer["name"]: buffer["place"]["name"] for buffer in compiled.document["buffers"]}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("globalfoo", "ranks are global, shared, warp, local"),
        ("global.flash", "the target has workspace, stack, dtcm"),
        ("local.dtcm", "'local' takes no tag"),
    ],
)
def test_s6_ranks_and_tags_are_closed_sets(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse_scope(text, frozenset({"dtcm"}))
    assert str(parse_scope("global.dtcm", frozenset({"dtcm"}))) == "global.dtcm"


def test_s14_a_shared_memory_is_described_once() -> None:
    target = load_text(TWO_DEVICES, "two.toml")
    assert [d.name for d in target.devices_reaching("shared")] == ["cpu", "dsp"]
    assert [m.name for m in target.memories].count("shared") == 1
    assert not target.device("cpu").reaches("far")


def test_s15_what_another_device_touches_goes_where_both_reach() -> None:
    """The narrowing stands in the IR before storage is decided, and a stack is out of the question."""
    target = load_text(TWO_DEVICES, "two.toml")
    kernels = [
        reverse_kernel("two_k0", 64),
        reverse_kernel("two_k1", 64, device="dsp"),
        reverse_kernel("two_k2", 64),
    ]
    module = attach_candidates(place_scratch(chain("two", kernels, 64), target), target)
    allocations = {s.buffer.name: s for s in walk_statements(module.main.body) if isinstance(s, Allocate)}
    handed_over = [allocations["t0/out"], allocations["t1/out"]]
    assert [s.storage.candidates for s in handed_over] == [("shared",), ("shared",)]
    assert all(str(s.scope) == "global.shared" for s in handed_over)
    assert all("touched by cpu, dsp" in s.storage.provenance[-1] for s in handed_over)
    assert not any(s.scope == STACK for s in allocations.values())


def test_s15_devices_without_a_common_memory_are_named() -> None:
    text = TWO_DEVICES.replace('reach = ["shared", "far"]', 'reach = ["far"]')
    target = load_text(text, "two.toml")
    kernels = [
        reverse_kernel(f"two_k{i}", 64, device=device) for i, device in enumerate(("cpu", "dsp", "cpu"))
    ]
    with pytest.raises(CompileError, match="BW301") as caught:
        attach_candidates(place_scratch(chain("two", kernels, 64), target), target)
    assert "near  is in memory 'near', which device 'dsp' does not reach" in str(caught.value)
    assert "far  is in memory 'far', which device 'cpu' does not reach" in str(caught.value)


@pytest.mark.parametrize("name", ["host", "mps3-an547", "mps2-an500", "mps2-an386", "generic-cortex-m"])
def test_s18_a_board_needs_no_other_option_and_prints_as_a_file(name: str, tmp_path: Path) -> None:
    target = load_target(name)
    assert compile_model(DIGITS, target).document["target"] == name
    path = tmp_path / "printed.json"
    path.write_text(json.dumps(dump(target)))
    assert load_target(str(path)) == target


def test_s18_the_reserve_is_subtracted_and_options_override() -> None:
    board = load_target("mps3-an547")
    stack = board.default_device.contexts[0]
    assert stack.max_stack_size_bytes is not None
    assert stack.available_stack_bytes == stack.max_stack_size_bytes - stack.stack_reserve_bytes
    changed = apply_overrides(board, Overrides(max_stack_size=4096))
    assert changed.default_device.contexts[0].available_stack_bytes == 4096 - stack.stack_reserve_bytes


def test_s20_one_compiled_model_runs_in_arenas_at_several_addresses(tmp_path: Path) -> None:
    """The library is built once; each context that it opens has arenas of its own."""
    write_bundle(compile_model(DIGITS, load_target("host")).files, tmp_path / "bundle")
    model = HostModel.build(tmp_path / "bundle")
    images = [np.random.default_rng(seed).integers(-128, 128, (1, 8, 8, 1), np.int8) for seed in range(2)]
    contexts = [model.open(), model.open()]
    results = [[context.run([image])[0][0] for image in images] for context in contexts]
    np.testing.assert_array_equal(results[0], results[1])
    assert not np.array_equal(results[0][0], results[0][1])


ANNOTATED = text_of(
    'allocate t : buffer<8xi8> {mine=("t",)}\n  call_extern m_halve(&x, &t)\n  call_extern m_work(&t, &w, &y)',
    constants=CONSTANT.replace(" = data", ' {mine=("w",)} = data'),
    kernels="""
kernel m_inner(output : buffer<8xi8, "global"> rw) on cpu {
  allocate deep : buffer<8xi8> {mine=("deep",), candidate_memory_pools=("ram",)}
  for c : i32 in 0 .. 8 { deep[c] = output[c] }
  for c2 : i32 in 0 .. 8 { output[c2] = deep[c2] }
}
kernel m_work(
    input : buffer<8xi8, "global"> r, by : buffer<8xi8, "global"> r, output : buffer<8xi8, "global"> w
) on cpu {
  allocate small : buffer<8xi8, "local"> {mine=("small",)}
  allocate large : buffer<2048xi8> {mine=("large",)}
  for c : i32 in 0 .. 8 { small[c] = input[c] large[c] = by[c] }
  for c2 : i32 in 0 .. 8 { output[c2] = i8((i32(small[c2]) + i32(large[c2])) >> 1) }
  call_extern m_inner(&output)
}
""",
)


@pytest.mark.parametrize("overrides", [Overrides(), Overrides(use_backend_alloc_workspace=True)])
@pytest.mark.parametrize("io", [Io.CALLER, Io.WORKSPACE])
@pytest.mark.parametrize("pins", [(), (Pin("*large", "ram"), Pin("w", "rodata"), Pin("t", "ram", offset=64))])
def test_p1_passes_keep_annotations_that_they_do_not_own(
    overrides: Overrides, io: Io, pins: tuple[Pin, ...]
) -> None:
    seen: dict[str, set[str]] = {}

    def look(name: str, module: Module) -> None:
        functions = (*module.kernels, *module.entries)
        defined = [s for f in functions for s in walk_statements(f.body) if isinstance(s, Allocate)]
        for definition in (*defined, *module.constant_buffers):
            own = definition.buffer.name.rpartition("/")[2].rpartition("_")[2]
            if own in ("t", "w", "deep", "small", "large"):
                assert definition.annotations == (("mine", (own,)),), name
                seen.setdefault(name, set()).add(own)

    options = Options(overrides, io=io, pins=pins)
    compile_model(parsed(ANNOTATED), load_target("host"), options, after_pass=look)
    assert set(seen) >= {"place_scratch", "pin_buffers", "attach_candidates", "make_arenas", "apply_solution"}
    assert all(names == {"t", "w", "deep", "small", "large"} for names in seen.values())


def test_p2_candidates_are_in_order_and_narrower_lists_hold() -> None:
    compiled = compile_model(DIGITS, _pools("isram=8KiB", "dtcm=8KiB"))
    assert {s.storage.candidates for s in _allocations(compiled).values()} == {("isram", "dtcm")}
    pinned = compile_model(
        DIGITS, _pools("isram=8KiB", "dtcm=8KiB"), Options(pins=(Pin("conv2d_0/out", "dtcm"),))
    )
    assert _allocations(pinned)["conv2d_0/out"].storage.candidates == ("dtcm",)


def test_p3_the_final_pool_is_in_the_ir_and_in_the_plan() -> None:
    compiled = compile_model(DIGITS, _pools("dtcm=1KiB", "isram"))
    places = _places(compiled)
    for name, allocation in _allocations(compiled).items():
        assert allocation.scope is not None
        assert allocation.scope.pool == places[name]
    assert {"dtcm", "isram"} <= set(places.values())


def test_p4_several_pools_and_what_their_memory_has_left() -> None:
    target = _pools("fast=4KiB@dtcm", "rest@isram", parameters=("flash=32KiB", "ddr=1KiB"))
    assert [pool.name for pool in target.workspace_pools] == ["fast", "rest"]
    assert target.pool("rest").size_bytes == target.memory("isram").size_bytes
    assert [pool.name for pool in target.parameter_pools] == ["flash", "ddr"]
    with pytest.raises(CompileError, match="BW204"):
        _pools("nowhere=4KiB")


def test_p4_a_pool_that_no_device_reaches_is_refused() -> None:
    text = TWO_DEVICES.replace('reach = ["shared", "far"]', 'reach = ["shared"]').replace(
        'stack = "far"', 'stack = "shared"'
    )
    with pytest.raises(CompileError, match="BW202") as caught:
        load_text(text, "two.toml")
    assert "far" in str(caught.value)


def test_p6_constants_split_over_pools_and_stay_exact(tmp_path: Path) -> None:
    target = _pools("dtcm", parameters=("itcm=2KiB", "flash"))
    compiled = compile_model(DIGITS, target, Options(pins=(Pin("fully_connected*weights", "flash"),)))
    places = _places(compiled)
    constants = {b["name"] for b in compiled.document["buffers"] if b["role"] == "parameter"}
    assert {places[name] for name in constants} == {"itcm", "flash"}
    assert {
        places[name] for name in constants if name.startswith("fully_connected") and "weights" in name
    } == {"flash"}
    write_bundle(compiled.files, tmp_path / "split")
    write_bundle(compile_model(DIGITS, load_target("host")).files, tmp_path / "whole")
    batch = [[np.random.default_rng(seed).integers(-128, 128, (1, 8, 8, 1), np.int8)] for seed in range(8)]
    split, whole = (run_batch(tmp_path / name, batch).outputs for name in ("split", "whole"))
    np.testing.assert_array_equal(split, whole)


def test_u2_scratch_inside_a_parallel_loop_is_refused() -> None:
    """No kernel asks for it today; a plan that shared it between threads must not come out."""
    target = _pools("dtcm")
    module = chain("par", [reverse_kernel("par_k0", 64, scope=parse_scope("global.workspace"))], 64)

    def parallel(statement: Statement) -> tuple[Statement, ...]:
        if not isinstance(statement, Call):
            return (statement,)
        loop = For(Var("thread", DType.I32), const(0), const(2), Seq((statement,)), LoopKind.PARALLEL)
        return (loop,)

    body = rewrite_sequence(module.main.body, Rewriting(statement=parallel))
    module = replace(module, entries=(replace(module.main, body=body),))
    with pytest.raises((CompileError, InternalError), match="parallel loop"):
        attach_candidates(place_scratch(module, target), target)
