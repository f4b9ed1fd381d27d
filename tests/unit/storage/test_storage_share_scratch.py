"""Kernels are given a bounded number of scratch buffers; what shares one never loses a value."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np
import pytest

from bytewright.compiler.pipeline import compile_model, plan_model
from bytewright.diagnostics import CompileError, InternalError
from bytewright.ir.module import Module
from bytewright.ir.prim import BufferParameter, Call, ParameterRole, PrimFunc, Region
from bytewright.ir.walk import walk_statements
from bytewright.storage import share_scratch
from bytewright.storage.place_scratch import place_scratch
from bytewright.storage.share_scratch import MAX_PARAMETERS, MAX_SCRATCH
from bytewright.target.options import Overrides, apply_overrides
from bytewright.target.registry import load_target
from support.evaluate.evaluate import Evaluator
from support.ir_program import expected_outputs, read_module
from support.nested_calls import LENGTH, at_once, called_in_two_loops, called_twice, in_turn, of_many_sizes
from support.random_storage import ir_text, least_workspace, random_program
from support.tiers import THOROUGH

HOST = load_target("host")
NUM_PROGRAMS = 400 if THOROUGH else 90
NUMPY_OF = {"i8": "int8", "i16": "int16", "i32": "int32"}
PORT = '{} : buffer<8xi32, "global", align=4> {} activation'
X_Y = f"{PORT.format('x', 'r')}, {PORT.format('y', 'w')}"
BYTES = 'buffer<8xi32, "global.workspace", align=4>'
NO_STACK = apply_overrides(HOST, Overrides(max_stack_alloca_size=0))


def scratch_of(kernel: PrimFunc) -> list[str]:
    return [p.buffer.name for p in kernel.buffer_parameters if p.role is ParameterRole.SCRATCH]


def most_scratch(module: Module) -> int:
    return max(len(scratch_of(kernel)) for kernel in module.kernels)


def values(module: Module, inputs: list[np.ndarray]) -> list[bytes]:
    name = module.inputs[0].name
    return [value.tobytes() for value in Evaluator(module).run("main", {name: inputs[0]}).values()]


def is_wrong(text: str, dtype: str = "int32", length: int = LENGTH) -> bool:
    """Whether the planned module gives other values than the one that was written, or loses any on the way."""
    module = read_module(text)
    inputs: list[np.ndarray] = [np.arange(3, 3 + length).astype(dtype)]
    try:
        found = values(plan_model(module, NO_STACK).module, inputs)
    except InternalError:
        return True
    return found != [value.tobytes() for value in expected_outputs(module, inputs)]


def test_as_many_as_the_limit_have_parameters_of_their_own() -> None:
    """Six kernels, of which each but the first has one and calls the one before twice: 1, 3, 7, 15, 31."""
    placed = place_scratch(read_module(called_twice(6)), HOST)
    assert [len(scratch_of(kernel)) for kernel in placed.kernels] == [0, 1, 3, 7, 15, 31]
    (call,) = (s for s in walk_statements(placed.main.body) if isinstance(s, Call))
    names = [a.buffer.name for a in call.arguments if isinstance(a, Region)]
    assert len(set(names)) == len(names) == 2 + 31 < 2 + MAX_SCRATCH


@pytest.mark.parametrize("program", [called_twice, called_in_two_loops, in_turn])
def test_more_share(program: Callable[[int], str]) -> None:
    placed = place_scratch(read_module(program(60)), HOST)
    assert MAX_SCRATCH <= most_scratch(placed) <= 60
    reasons = [
        line
        for live in plan_model(read_module(program(60)), HOST).trial.stored.timeline.buffers
        if live.allocation
        for line in live.allocation.storage.provenance
        if "share_scratch: serves" in line
    ]
    assert reasons


def test_chains_in_turn_take_the_bytes_of_the_two_that_meet() -> None:
    for levels in (10, 60):
        (pool,) = plan_model(read_module(in_turn(levels)), HOST).trial.workspace.pools
        assert pool.top_bytes == 2 * LENGTH * 4


@pytest.mark.parametrize(
    "text",
    [called_twice(8), called_in_two_loops(8), in_turn(45), at_once(45)],
    ids=["twice", "loops", "turn", "once"],
)
def test_values_stay(text: str) -> None:
    assert not is_wrong(text)


def test_random_programs_keep_their_values_and_never_take_less_than_they_must(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With so low a limit that all share that may; those in which nothing does are left out."""
    monkeypatch.setattr(share_scratch, "MAX_SCRATCH", 0)
    sharing: list[str] = []
    original = share_scratch._with_shared

    def watched(kernel: PrimFunc, num_others: int, groups: Sequence[share_scratch._Shared]) -> PrimFunc:
        sharing.append(kernel.name)
        return original(kernel, num_others, groups)

    monkeypatch.setattr(share_scratch, "_with_shared", watched)
    num_programs = 0
    for seed in range(NUM_PROGRAMS):
        program = random_program(seed)
        text, dtype = ir_text(program), NUMPY_OF[program.source.dtype]
        sharing.clear()
        place_scratch(read_module(text), NO_STACK)
        if not sharing:
            continue
        num_programs += 1
        assert not is_wrong(text, dtype, program.source.length), seed
        planned = plan_model(read_module(text), NO_STACK)
        least = least_workspace(program, False, len(planned.trial.workspace.placement_of))
        assert least is None or sum(pool.top_bytes for pool in planned.trial.workspace.pools) >= least
    assert num_programs >= NUM_PROGRAMS // 30


def test_sharing_can_cost_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the documentation says: the scratch of two calls keeps its address while another array is needed."""
    inner = (
        f"kernel a({X_Y}) on cpu {{\nallocate s : {BYTES}\nfor i : i32 in 0 .. 8 {{ s[i] = x[i] }}\n"
        "for j : i32 in 0 .. 8 { y[j] = s[j] }\n}\n"
    )
    between = (
        f"allocate t : {BYTES.replace('8x', '9x')}\nfor i : i32 in 0 .. 8 {{ t[i] = y[i] }}\n"
        "for j : i32 in 0 .. 8 { z[j] = t[j] }\n"
    )
    outer = (
        f"kernel outer({X_Y}, {PORT.format('z', 'w')}) on cpu {{\ncall_extern a(&x, &y)\n{between}"
        "call_extern a(&z, &y)\n}\n"
    )
    ports = "input %x : tensor<8xi32>\noutput %y : tensor<8xi32>\noutput %z : tensor<8xi32>\n"
    entry = f"entry main({X_Y}, {PORT.format('z', 'w')}) on cpu {{\ncall_extern outer(&x, &y, &z)\n}}\n"
    text = f"module m\n{ports}{inner}{outer}{entry}"

    def top() -> int:
        (pool,) = plan_model(read_module(text), NO_STACK).trial.workspace.pools
        return pool.top_bytes

    assert top() == 9 * 4
    monkeypatch.setattr(share_scratch, "MAX_SCRATCH", 2)
    assert top() == (8 + 9) * 4


def test_what_meets_must_not_share(monkeypatch: pytest.MonkeyPatch) -> None:
    def all_of_them(indices: Sequence[int], groups: object) -> list[tuple[int, int, int]]:
        del groups
        return [(before, after, 0) for before, after in pairwise(indices)]

    monkeypatch.setattr(share_scratch, "_links", all_of_them)
    assert is_wrong(at_once(45))


@pytest.mark.slow
def test_scratch_that_is_there_at_once_is_refused_beyond_what_c_promises() -> None:
    """Two other parameters, and one for each level but the first."""
    fits = place_scratch(read_module(at_once(MAX_PARAMETERS - 1)), HOST)
    assert len(fits.kernels[-1].parameters) == MAX_PARAMETERS == 127
    for text in (at_once(MAX_PARAMETERS), of_many_sizes(200)):
        with pytest.raises(CompileError) as caught:
            compile_model(read_module(text), HOST)
        (diagnostic,) = caught.value.diagnostics
        assert diagnostic.code == "BW303"
        assert "kernel 'm_126' would have 128 parameters, 126 of them scratch" in diagnostic.message


def test_its_help_works() -> None:
    placed = place_scratch(read_module(at_once(MAX_PARAMETERS, "global.stack")), HOST)
    assert most_scratch(placed) == 0


def test_an_operator_of_more_operands_keeps_its_scratch() -> None:
    """It is over the limit by itself, and compilers take it."""
    ports = ", ".join(f'x{n} : buffer<8xi32, "global", align=4> r activation' for n in range(130))
    body = 'allocate s : buffer<8xi32, "global.workspace", align=4>\nfor i : i32 in 0 .. 8 { s[i] = x0[i] }\n'
    text = f"module m\nkernel k({ports}) on cpu {{\n{body}}}\nentry main() on cpu {{ }}\n"
    (kernel,) = place_scratch(read_module(text), HOST).kernels
    assert scratch_of(kernel) == ["s"]
    assert all(isinstance(parameter, BufferParameter) for parameter in kernel.parameters)
