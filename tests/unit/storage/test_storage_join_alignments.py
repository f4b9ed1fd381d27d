"""Alignments join: the strictest of type, definition and every use, through calls and views, to any depth."""

from __future__ import annotations

import pytest

from bytewright.compiler.pipeline import plan_model
from bytewright.diagnostics import CompileError, InternalError
from bytewright.ir.analyses.stack import stack_uses
from bytewright.ir.border import Io
from bytewright.ir.module import Module
from bytewright.ir.prim import Allocate, View
from bytewright.ir.verify.stages import Stage, verify
from bytewright.ir.walk import walk_statements
from bytewright.options import Options
from bytewright.storage.join_alignments import join_alignments
from bytewright.target.options import Overrides, apply_overrides
from bytewright.target.registry import load_target
from support.ir_program import read_module

HOST = load_target("host")
NO_STACK = apply_overrides(HOST, Overrides(max_stack_alloca_size=0))


def buffer(name: str, access: str = "", align: int = 1, shape: str = "8xi8", role: str = "activation") -> str:
    text = f'{name} : buffer<{shape}, "global", align={align}>'
    return f"{text} {access} {role}" if access else text


def kernel(name: str, parameters: str, body: str) -> str:
    return f"kernel {name}({parameters}) on cpu {{\n{body}\n}}\n"


def module(kernels: str, body: str, x: str = "", y: str = "") -> Module:
    ports = "input %x : tensor<8xi8>\noutput %y : tensor<8xi8>\n"
    parameters = f"{x or buffer('x', 'r')}, {y or buffer('y', 'w')}"
    return read_module(f"module m\n{ports}{kernels}entry main({parameters}) on cpu {{\n{body}\n}}\n")


def alignments(found: Module) -> dict[str, int]:
    """By name, of everything that the functions define; kernels' names before those of what is theirs."""
    result: dict[str, int] = {}
    for function in (*found.kernels, *found.entries):
        defined = [p.buffer for p in function.buffer_parameters]
        defined += [s.buffer for s in walk_statements(function.body) if isinstance(s, Allocate | View)]
        prefix = "" if function in found.entries else f"{function.name}."
        result |= {f"{prefix}{b.name}": b.alignment for b in defined}
    return result


COPY = "for i : i32 in 0 .. 8 { y[i] = x[i] }"
STRICT = kernel("strict", f"{buffer('x', 'r', 64)}, {buffer('y', 'w', 32)}", COPY)


def test_a_parameter_binds_its_argument() -> None:
    tensor = 'allocate t : buffer<8xi8, "global.workspace", align=1>\n'
    found = alignments(
        join_alignments(
            module(STRICT, f"{tensor}call_extern strict(&x, &t)\ncall_extern strict(&t, &y)"), HOST
        )
    )
    assert found == {"strict.x": 64, "strict.y": 32, "x": 64, "y": 32, "t": 64}


def test_to_any_depth() -> None:
    plain = f"{buffer('x', 'r')}, {buffer('y', 'w')}"
    outer = kernel("outer", plain, "call_extern strict(&x, &y)") + kernel(
        "outermost", plain, "call_extern outer(&x, &y)"
    )
    found = alignments(join_alignments(module(STRICT + outer, "call_extern outermost(&x, &y)"), HOST))
    assert (found["outer.x"], found["outermost.x"], found["x"], found["y"]) == (64, 64, 64, 32)


def test_a_view_passes_on_what_is_asked_of_it() -> None:
    body = (
        'view v : buffer<8xi8, "global", align=1> = &x\n'
        'view w : buffer<8xi8, "global", align=1> = &v if n < 1 else &y\n'
        "call_extern strict(&w, &y)"
    )
    viewing = kernel("viewing", f"{buffer('x', 'r')}, {buffer('y', 'rw')}, n : i32", body)
    found = alignments(join_alignments(module(STRICT + viewing, "call_extern viewing(&x, &y, 0)"), HOST))
    assert [found[f"viewing.{name}"] for name in "xyvw"] == [64, 64, 64, 64]
    assert (found["x"], found["y"]) == (64, 64)


@pytest.mark.parametrize(("dtype", "natural"), [("i8", 1), ("i16", 2), ("i32", 4), ("i64", 8), ("f32", 4)])
def test_a_type_binds_its_buffers(dtype: str, natural: int) -> None:
    """Beside five bytes, where an offset of five would do for what it says."""
    body = (
        f'allocate five : buffer<5xi8, "global.workspace", align=1>\n'
        f'allocate t : buffer<3x{dtype}, "global.workspace", align=1>\n'
        "call_extern fill(&x, &five, &t)\ncall_extern drain(&five, &t, &y)"
    )
    fill = kernel(
        "fill",
        f"{buffer('x', 'r')}, {buffer('a', 'w', 1, '5xi8')}, {buffer('b', 'w', 1, f'3x{dtype}')}",
        f"for i : i32 in 0 .. 5 {{ a[i] = x[i] }}\nfor j : i32 in 0 .. 3 {{ b[j] = {dtype}(j) }}",
    )
    drain = kernel(
        "drain",
        f"{buffer('a', 'r', 1, '5xi8')}, {buffer('b', 'r', 1, f'3x{dtype}')}, {buffer('y', 'w')}",
        "for i : i32 in 0 .. 8 { y[i] = i8(i32(a[i % 5]) + i32(b[i % 3])) }",
    )
    places = plan_model(module(fill + drain, body), NO_STACK).trial.workspace.placement_of
    assert places["t"].offset % natural == 0


@pytest.mark.parametrize(
    ("first", "is_possible"), [("0", True), ("64", True), ("i * 64", True), ("32", False), ("i", False)]
)
def test_a_part_has_to_begin_at_a_multiple(first: str, is_possible: bool) -> None:
    passing = kernel(
        "passing",
        f"{buffer('x', 'r', 1, '256xi8')}, {buffer('y', 'w')}",
        f"for i : i32 in 0 .. 2 {{ call_extern strict(&x[{first}], &y) }}",
    )
    text = (
        'allocate t : buffer<256xi8, "global.workspace", align=1>\n'
        "call_extern spread(&x, &t)\ncall_extern passing(&t, &y)"
    )
    spread = kernel(
        "spread",
        f"{buffer('x', 'r')}, {buffer('y', 'w', 1, '256xi8')}",
        "for i : i32 in 0 .. 256 { y[i] = x[i % 8] }",
    )
    program = module(STRICT + passing + spread, text)
    if is_possible:
        assert alignments(join_alignments(program, HOST))["t"] == 64
        return
    with pytest.raises(CompileError) as caught:
        join_alignments(program, HOST)
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code == "BW301"
    found = 32 if first == "32" else 1
    assert diagnostic.message == (
        f"'passing' gives 'strict' a part of 'x' that begins at a multiple of {found} B, where 64 B are asked for"
    )


def test_the_workspace_keeps_what_was_joined() -> None:
    tensor = 'allocate t : buffer<8xi8, "global.workspace", align=1>\n'
    program = module(STRICT, f"{tensor}call_extern strict(&x, &t)\ncall_extern strict(&t, &y)")
    for io in (Io.CALLER, Io.WORKSPACE):
        planned = plan_model(program, NO_STACK, Options(io=io))
        assert all(
            place.offset % 64 == 0 or name == "y"
            for name, place in planned.trial.workspace.placement_of.items()
        )
        assert [pool.alignment for pool in planned.trial.workspace.pools] == [64]


def test_a_plan_that_forgot_an_alignment_does_not_verify() -> None:
    tensor = 'allocate t : buffer<8xi8, "global.workspace", align=1> {candidate_memory_pools=("ram",)}\n'
    program = module(STRICT, f"{tensor}call_extern strict(&x, &t)\ncall_extern strict(&t, &y)")
    verify(join_alignments(program, HOST), Stage.STORED, HOST)
    with pytest.raises(InternalError, match="'t' is aligned to 1, 'x' of 'strict' asks for 64"):
        verify(program, Stage.STORED, HOST)


def test_constants_join_too() -> None:
    weights = 'constant w : buffer<8xi8, "global"> = data<8xi8> [1, 2, 3, 4, 5, 6, 7, 8]\n'
    program = module(weights + STRICT, "call_extern strict(&w, &y)")
    (constant,) = join_alignments(program, HOST).constant_buffers
    assert constant.buffer.alignment == 64
    planned = plan_model(program, NO_STACK)
    assert [pool.alignment for pool in planned.trial.parameters.pools if pool.top_bytes] == [64]


def test_joining_twice_changes_nothing() -> None:
    once = join_alignments(module(STRICT, "call_extern strict(&x, &y)"), HOST)
    assert join_alignments(once, HOST) == once


def test_the_stack_has_room_to_align_arrays() -> None:
    loops = "for i : i32 in 0 .. 8 {{ s[i] = x[i] }}\nfor j : i32 in 0 .. 8 {{ y[j] = s[j] }}"
    body = f'allocate s : buffer<8xi8, "{{}}", align={{}}>\n{loops}'
    sizes = [
        stack_uses(
            plan_model(
                module(
                    kernel(
                        "k", f"{buffer('x', 'r')}, {buffer('y', 'w')}", body.format("global.stack", alignment)
                    ),
                    "call_extern k(&x, &y)",
                ),
                HOST,
            ).module,
            HOST,
        )[0]
        for alignment in (1, 8, 256)
    ]
    assert [size.planned_bytes for size in sizes] == [8, 8, 8]
    assert sizes[0].size_bytes == sizes[1].size_bytes == sizes[2].size_bytes - 256
