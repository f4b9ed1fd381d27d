"""Programs on their way in: each rule that one may break is an error with a code and a place."""

from __future__ import annotations

import pytest

from bytewright.compiler.pipeline import compile_model, plan_model
from bytewright.diagnostics import CODES, CompileError
from bytewright.ir.verify.admit import MOST_SHOWN
from bytewright.target import load_target
from support.ir_programs import CALL, CONSTANT, NAMED, TENSOR, THROUGH, parsed, text_of

HOST = load_target("host")
OUTER = """
kernel m_outer(input : buffer<8xi8, "global"> r, output : buffer<8xi8, "global"> w) on cpu { BODY }
"""


def outer(body: str) -> str:
    return text_of("call_extern m_outer(&x, &y)", kernels=OUTER.replace("BODY", body))


def tensor(**annotations: str) -> str:
    """A program whose tensor is annotated."""
    marks = ", ".join(f"{key}={value}" for key, value in annotations.items())
    return text_of(f"{TENSOR} {{{marks}}}\n{THROUGH}")


# What a program says -> the code, and what is said of it.
REFUSED: dict[str, tuple[str, str, str]] = {
    "arguments": (text_of("call_extern m_halve(&x)"), "BW113", "'m_halve' takes 2 arguments, 1 are given"),
    "written input": (text_of("call_extern m_halve(&y, &x)"), "BW113", "only to be read"),
    "unknown pool": (
        tensor(candidate_memory_pools='("tcm",)'),
        "BW113",
        "candidate pool 'tcm' of 't' does not exist in target 'host'",
    ),
    "pools that are a number": (tensor(candidate_memory_pools="3"), "BW113", "is not a list of pools"),
    "offset": (tensor(pool_offset="64"), "BW113", "'t' has a pool_offset before planning"),
    "arena": (tensor(arena='"q"'), "BW113", "'t' is requested from 'q', which is not allocated here"),
    "io": (tensor(io='"input"'), "BW113", "'t' is an input of the model that the entry allocates"),
    "vast alignment": (
        text_of(inside='allocate s : buffer<8xi8, "global", align=1099511627776>'),
        "BW113",
        "'s' has alignment 1099511627776; C compilers give at most 268435456",
    ),
    "shared": (
        text_of(inside='allocate s : buffer<8xi8, "shared">'),
        "BW113",
        "'s': rank 'shared' does not exist on device 'cpu', whose ranks are global, local",
    ),
    "local in the entry": (
        text_of('allocate l : buffer<8xi8, "local">'),
        "BW113",
        "'l' of the entry has scope 'local', but is passed to kernels",
    ),
    "local passed on": (
        outer(
            'allocate l : buffer<8xi8, "local"> call_extern m_halve(&input, &l) call_extern m_halve(&l, &output)'
        ),
        "BW113",
        "'l' is local and cannot be passed to 'm_halve'",
    ),
    "two scopes in a tuple of pools": (
        tensor(candidate_memory_pools='("global", "local")'),
        "BW113",
        "candidate pool 'local' of 't' does not exist in target 'host'",
    ),
    "alignment": (text_of(TENSOR.replace("16", "3") + THROUGH), "BW113", "alignment 3, not a power of two"),
    "twice": (text_of(TENSOR.replace(" t ", " x ") + CALL), "BW113", "'x' is defined twice in 'main'"),
    "no entry": (
        text_of().partition("entry")[0],
        "BW113",
        "the module has no entry; a program has one at least",
    ),
    "two entries, the ports of one": (
        text_of() + text_of().partition("entry main")[2].join(("entry other", "")),
        "BW113",
        "the module states 0 inputs, its entry has 1",
    ),
    "entry called": (text_of(inside="call_extern main(&input, &output)"), "BW113", "entry 'main' is called"),
    "recursion": (
        text_of(inside="call_extern m_halve(&input, &output)"),
        "BW113",
        "'m_halve' does not stand before its caller 'm_halve'",
    ),
    "state": (
        text_of()
        .replace("module m", "module m\n")
        .replace("output %y : tensor<8xi8>", "output %y : tensor<8xi8>\nstate %s : tensor<8xi8>"),
        "BW113",
        "the module has 1 states, and allocates 0",
    ),
    "ports": (
        text_of().replace("output %y : tensor<8xi8>", ""),
        "BW113",
        "states 0 outputs, its entry has 1",
    ),
    "type of a port": (
        text_of().replace("output %y : tensor<8xi8>", "output %y : tensor<9xi8>"),
        "BW113",
        "output 'y' is 9xi8, 'y' of the entry is 8xi8",
    ),
    "access": (
        text_of().replace('y : buffer<8xi8, "global"> w', 'y : buffer<8xi8, "global"> rw'),
        "BW113",
        "read and written",
    ),
    "role": (
        text_of().replace('y : buffer<8xi8, "global"> w', 'y : buffer<8xi8, "global"> w scratch'),
        "BW113",
        "is a scratch",
    ),
    "scalar": (
        text_of().replace('y : buffer<8xi8, "global"> w', 'y : buffer<8xi8, "global"> w, n : f32'),
        "BW113",
        "scalar 'n' of the entry",
    ),
    "noalias": (text_of(device="cpu noalias(input, zz)"), "BW113", "noalias(input, zz)"),
    "name of a constant": (
        text_of(constants=CONSTANT.replace(" w ", " x ")),
        "BW113",
        "constant 'x' has the name of a buffer of the entry",
    ),
    "constant in a workspace": (
        text_of(
            "call_extern m_named(&y)",
            constants=CONSTANT.replace('"global"', '"global.workspace"'),
            kernels=NAMED,
        ),
        "BW113",
        "constant 'w' has scope 'global.workspace', but constants lie in parameter pools",
    ),
    "local constant": (
        text_of("call_extern m_named(&y)", constants=CONSTANT.replace('"global"', '"local"'), kernels=NAMED),
        "BW113",
        "constant 'w' has scope 'local'",
    ),
    "written constant": (
        text_of(f"call_extern m_halve(&x, &w)\n{CALL}", constants=CONSTANT),
        "BW113",
        "only to be read",
    ),
    "store": (
        text_of(f"{CALL}\n  y[0] = 1:i8"),
        "BW113",
        "the entry stores to memory itself; it only calls kernels",
    ),
    "load": (text_of(f"let a : i8 = x[0]\n{CALL}"), "BW113", "the entry reads memory itself"),
    "view": (
        text_of(f'view v : buffer<8xi8, "global"> = &x\n{CALL}'),
        "BW113",
        "the entry makes a view of memory itself",
    ),
    "parallel": (
        text_of(f"for i : i32 in 0 .. 2 parallel {{ {CALL} }}"),
        "BW113",
        "the loop over 'i' in the entry is parallel",
    ),
    "vast unrolling": (
        text_of(inside="for q : i32 in 0 .. 1000000000 unrolled { let z : i32 = q }"),
        "BW113",
        "the loop over 'q' unrolls to 2000000000 statements, more than 16384",
    ),
    "unknown bound": (
        text_of(inside="for q : i32 in 0 .. 3 { for r : i32 in 0 .. q unrolled { let z : i32 = r } }"),
        "BW113",
        "unrolled loop over 'r' has a bound that is not constant",
    ),
    "element": (
        text_of(inside="let z : i8 = input[8]"),
        "BW113",
        "element 8 of 'input' does not exist; it has 8",
    ),
    "stored element": (
        text_of(inside="output[8] = 1:i8"),
        "BW113",
        "element 8 of 'output' does not exist; it has 8",
    ),
    "elements of a loop": (
        text_of(inside="for i : i32 in 0 .. 5 { output[i * 2] = 1:i8 }"),
        "BW113",
        "element 8 of 'output' does not exist; it has 8",
    ),
    "zero": (text_of(inside="let z : i32 = 1 / 0"), "BW113", "'/' divides by the constant 0"),
    "shift": (text_of(inside="let z : i32 = 1 << 32"), "BW113", "'<<' shifts i32 by 32 bits"),
    "device": (text_of(device="npu"), "BW113", "target 'host' has no device 'npu'"),
    "opaque": (text_of("call_extern driver(&x, &y)"), "BW116", "there is no kernel 'driver'"),
    "opaque in a kernel": (
        text_of(inside="call_extern driver(&input)"),
        "BW116",
        "there is no kernel 'driver'",
    ),
    "cpacked": (
        outer("call_cpacked m_halve(&input, &output)"),
        "BW116",
        "called by call_cpacked in a kernel, which returns nothing",
    ),
    "packed": (
        text_of("call_packed m_halve(&x, &y)"),
        "BW116",
        "called by call_packed, but no registry is given to a run",
    ),
    "packed in a kernel": (outer("call_packed m_halve(&input, &output)"), "BW116", "called by call_packed"),
    "unwritten tensor": (
        text_of(f"{TENSOR}\n  call_extern m_halve(&t, &y)"),
        "BW115",
        "'t' is read by 'm_halve' before it is written: element 0 of 8 and 7 more",
    ),
    "unwritten output": (
        text_of(f"{TENSOR}\n  call_extern m_halve(&x, &t)"),
        "BW115",
        "output 'y' is not written by every run: element 0 of 8 and 7 more",
    ),
}


def test_a_program_is_planned_that_no_c_can_be_written_for_yet() -> None:
    """What an opaque call does is not known, so it may read and write everything that it is given."""
    (step,) = plan_model(parsed(REFUSED["opaque"][0]), HOST).plan.steps
    assert (step.kernel, step.reads, step.writes) == ("driver", ("x", "y"), ("x", "y"))


@pytest.mark.parametrize("name", REFUSED)
def test_what_breaks_a_rule_is_refused(name: str) -> None:
    text, code, message = REFUSED[name]
    with pytest.raises(CompileError) as caught:
        compile_model(parsed(text), HOST)
    found = [(d.code, d.message) for d in caught.value.diagnostics]
    assert any(known == code and message in said for known, said in found), found
    assert all(d.where is not None and d.where.startswith("module 'm'") for d in caught.value.diagnostics)
    assert code in CODES


# What is legal and was a bug once.
COMPILED = {
    "unused constant": text_of(constants=CONSTANT),
    "unused tensor": text_of(f"{TENSOR}\n{CALL}"),
    "unused kernel": text_of(kernels=NAMED.replace("w[c]", "1:i8")),
    "unused scratch": text_of(inside='allocate s : buffer<9999xi8, "global">'),
    "constant of a kernel": text_of("call_extern m_named(&y)", constants=CONSTANT, kernels=NAMED),
    "constant of an inner kernel": text_of(
        "call_extern m_outer(&x, &y)",
        constants=CONSTANT,
        kernels=NAMED + OUTER.replace("BODY", "call_extern m_named(&output)"),
    ),
    "constant of a kernel that nobody calls": text_of(constants=CONSTANT, kernels=NAMED),
    "block": text_of(f"{{ {TENSOR}\n{THROUGH} }}"),
    "name": text_of(f"let a : i32 = 3\n{CALL}"),
    "loop": text_of(f"for i : i32 in 0 .. 3 {{ {CALL} }}"),
    "branch": text_of(f"let a : i32 = 3\n if a < 4 {{ {CALL} }} else {{ {CALL} }}"),
    "data in a bound": text_of(inside="for q : i32 in 0 .. i32(input[0]) { output[0] = 1:i8 }"),
}


@pytest.mark.parametrize("name", COMPILED)
def test_what_is_legal_compiles(name: str) -> None:
    assert "src/m.c" in compile_model(parsed(COMPILED[name]), HOST).files


def test_the_place_of_a_mistake_is_its_function_and_statement() -> None:
    with pytest.raises(CompileError) as caught:
        plan_model(parsed(REFUSED["arguments"][0]), HOST)
    assert [d.where for d in caught.value.diagnostics] == [
        "module 'm', entry 'main', call_extern m_halve(&x)"
    ]


def test_of_many_mistakes_the_first_are_shown_and_the_rest_counted() -> None:
    body = "\n".join(f"call_extern m_halve(&x, {number})" for number in range(MOST_SHOWN + 5))
    with pytest.raises(CompileError) as caught:
        plan_model(parsed(text_of(f"{body}\n{CALL}")), HOST)
    assert len(caught.value.diagnostics) == MOST_SHOWN
    assert caught.value.diagnostics[-1].notes == ("and 5 more mistakes",)
