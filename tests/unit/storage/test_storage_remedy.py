"""Help for what no model's file can ask for: kernels written by hand, on two devices, with scopes that name places.

Options of a help line go through the parser of the command line, lines for the target file into its text; then the same
module is stored and planned again, and must fit.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from bytewright.cli.main import load_command
from bytewright.compiler import pipeline
from bytewright.compiler.pipeline import Planned
from bytewright.diagnostics import CompileError, Diagnostic
from bytewright.ir.border import Border
from bytewright.ir.module import Module
from bytewright.ir.prim import PrimFunc
from bytewright.ir.scope import GLOBAL, LOCAL, STACK, WORKSPACE, Scope, pool_scope
from bytewright.options import options_of
from bytewright.target import dump_toml, load_target, load_text
from support.apply_help import help_lines, with_help, with_target_lines
from support.hand_built import allocations, chain, reverse_kernel

ROOT = Path(__file__).resolve().parents[3]
TWO_DEVICES = """\
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
stack-reserve = 500
[device.npu]
isa = "ethos-u55"
reach = ["rom", { memory = "shared", base = 0x80000000 }]
[[workspace]]
name = "own"
memory = "own"
size = "16KiB"
[[parameters]]
name = "rom"
memory = "rom"
"""
COMMON = '[[workspace]]\nname = "common"\nmemory = "shared"\n[[parameters]]'
SIZE = 1000


def planned(module: Module, file: str, options: Sequence[str] = ()) -> Planned:
    """The module planned for a target file with options of the command line."""
    values = load_command("compile").make_context("compile", ["model", "-o", "out", *options]).params
    given = {name: value for name, value in values.items() if value is not None}
    return pipeline.plan_model(module, load_text(file, "board.toml"), options_of(given))


def refusal(module: Module, file: str, options: Sequence[str] = ()) -> CompileError:
    with pytest.raises(CompileError) as caught:
        planned(module, file, options)
    return caught.value


def one_refusal(module: Module, file: str, options: Sequence[str] = ()) -> Diagnostic:
    (diagnostic,) = refusal(module, file, options).diagnostics
    return diagnostic


def reversing(scope: Scope | None, size_bytes: int = SIZE, device: str = "cpu", calls: int = 1) -> Module:
    kernel: PrimFunc = reverse_kernel("m_reverse", size_bytes, scope, device=device)
    return chain("m", [kernel] * calls, size_bytes)


def pool_of(result: Planned, name: str) -> str | None:
    found = [a.scope for a in allocations(result.module.main.body) if a.buffer.name == name]
    return None if found[0] is None else found[0].pool


def test_a_stack_that_scopes_ask_for_by_name() -> None:
    """Two levels of allowance, the array and the reserve."""
    module = reversing(STACK, 6000)
    diagnostic = one_refusal(module, TWO_DEVICES)
    need = 2 * 256 + 6000
    assert diagnostic.code == "BW302"
    assert diagnostic.message == (
        f"the stack of 'cpu' needs {need} B; its limit is 4096 B, "
        f"of which 500 B are its reserve: {need - 3596} B too few"
    )
    assert diagnostic.notes == (
        "worst path, arrays + allowance: main 0 B + 256 B -> m_reverse 6000 B + 256 B",
    )
    assert diagnostic.help == f"--max-stack-size {need + 500}"
    options = with_help((), diagnostic.render())
    assert planned(module, TWO_DEVICES, options).trial.stored.stack[0].size_bytes == need
    assert refusal(module, TWO_DEVICES, ("--max-stack-size", str(need + 499))).exit_code == 3


@pytest.mark.parametrize("alignment", [1, 8, 16, 64])
def test_the_path_of_a_refusal_adds_up(alignment: int) -> None:
    """Also where an array is aligned to more than a stack is."""
    kernel = reverse_kernel("m_reverse", 6000, STACK, num_scratch=2, alignment=alignment)
    diagnostic = one_refusal(chain("m", [kernel] * 2, 6000), TWO_DEVICES)
    need = re.search(r"needs (\d+) B", diagnostic.message)
    assert need is not None
    assert sum(map(int, re.findall(r"(\d+) B", diagnostic.notes[0]))) == int(need[1])


def test_one_limit_is_enough_for_every_context() -> None:
    """The option sets all stacks, so it must not take from one what another one is too small for."""
    file = TWO_DEVICES.replace(
        'isa = "ethos-u55"', 'isa = "ethos-u55"\nstack = "shared"\nmax-stack-size = 600'
    )
    file = file.replace("[[parameters]]", COMMON)
    kernels = [
        reverse_kernel("m_far", 200, STACK, device="npu"),
        reverse_kernel("m_near", 200, STACK, num_scratch=12),
    ]
    module, options = chain("m", kernels, 200), ("--io", "workspace")
    diagnostic = one_refusal(module, file, options)
    assert diagnostic.message == "the stack of 'npu' needs 712 B; its limit is 600 B: 112 B too few"
    assert diagnostic.notes == ("worst path, arrays + allowance: m_npu_execute 256 B -> m_far 200 B + 256 B",)
    hand_overs = 6 * 12 + 2 * 256  # spans on the entry's stack, and two levels of calls
    assert diagnostic.help == f"--max-stack-size {2 * 256 + hand_overs + 2400 + 500}"
    result = planned(module, file, with_help(options, diagnostic.render()))
    assert [use.size_bytes for use in result.trial.stored.stack] == [2 * 256 + hand_overs + 2400, 712]
    file = file.replace('max-stack-size = "4KiB"', "max-stack-size = 3995")
    diagnostic = refusal(module, file, options).diagnostics[0]
    assert (
        diagnostic.message
        == "the stack of 'cpu' needs 3496 B; its limit is 3995 B, of which 500 B are its reserve: 1 B too few"
    )
    assert diagnostic.notes == (
        f"worst path, arrays + allowance: main 0 B + 256 B + {hand_overs} B to hand work over"
        " -> m_near 2400 B + 256 B",
    )


def test_what_two_devices_touch_gets_a_pool_that_both_reach() -> None:
    module = chain("m", [reverse_kernel("m_a", 8), reverse_kernel("m_b", 8, num_scratch=0, device="npu")], 8)
    options = ("--io", "workspace")
    error = refusal(module, TWO_DEVICES, options)
    messages = [diagnostic.message for diagnostic in error.diagnostics]
    assert "'t0/out' cannot be placed in any workspace pool" in messages
    notes = error.diagnostics[messages.index("'t0/out' cannot be placed in any workspace pool")].notes
    assert "own  is in memory 'own', which device 'npu' does not reach" in notes
    assert "'npu' reaches: rom, shared" in notes
    advised = with_help(options, str(error))
    assert (advised[2], advised[3]) == ("--workspace", "own=16KiB")
    assert pool_of(planned(module, TWO_DEVICES, advised), "t0/out") == "shared"


def test_where_no_memory_is_reached_by_both_the_target_file_must_say_so() -> None:
    file = TWO_DEVICES.replace('["own", "shared", "rom"]', '["own", "rom"]')
    module = chain("m", [reverse_kernel("m_a", 8), reverse_kernel("m_b", 8, num_scratch=0, device="npu")], 8)
    error = refusal(module, file, ("--io", "workspace"))
    line = 'in the target file: [device.npu] reach = ["rom", { memory = "shared", base = 0x80000000 }, "own"]'
    assert help_lines(str(error)) == [line]
    edited = with_target_lines(file, str(error))
    assert pool_of(planned(module, edited, ("--io", "workspace")), "t0/out") == "own"


def test_a_pool_that_is_lent_to_one_device_is_lent_to_the_other_too() -> None:
    file = TWO_DEVICES.replace('["own", "shared", "rom"]', '["own", "rom"]').replace(
        'size = "16KiB"', 'size = "16KiB"\ndevices = ["cpu"]'
    )
    file = file.replace("[device.npu]", '[device.dsp]\nisa = "hifi4"\nreach = ["own"]\n[device.npu]')
    module = chain("m", [reverse_kernel("m_a", 8), reverse_kernel("m_b", 8, num_scratch=0, device="npu")], 8)
    error = refusal(module, file, ("--io", "workspace"))
    assert '[[workspace]] own devices = ["cpu", "npu"]' in str(error)
    edited = with_target_lines(file, str(error))
    assert pool_of(planned(module, edited, ("--io", "workspace")), "t0/out") == "own"


def test_outputs_that_another_device_writes_need_no_workspace() -> None:
    """The application is told where its arrays may be (`test_caller_memories.py`); a workspace would do as well."""
    file = TWO_DEVICES.replace(
        "[[parameters]]", '[[workspace]]\nname = "common"\nmemory = "shared"\n[[parameters]]'
    )
    module = reversing(WORKSPACE, 8, device="npu")
    plan = planned(module, file).plan
    assert plan.caller_memories(Border.OUTPUT, plan.outputs[0]) == ("shared",)
    assert pool_of(planned(module, file, ("--io", "workspace")), "y") == "common"


def test_a_scope_that_names_no_pool_gets_one() -> None:
    module = reversing(pool_scope("tcm"), 64)
    diagnostic = one_refusal(module, TWO_DEVICES)
    assert diagnostic.code == "BW209"
    assert diagnostic.notes == (
        "it is the scope of 'scratch0' of kernel 'm_reverse'",
        "tags: workspace, stack, own, rom",
    )
    assert diagnostic.help == "--workspace own=16KiB --workspace tcm=64B@own"
    result = planned(module, TWO_DEVICES, with_help((), diagnostic.render()))
    assert pool_of(result, "y/scratch0") == "tcm"


def test_a_scope_of_another_device_gets_a_pool_where_that_device_reaches() -> None:
    """What the kernel's device reaches counts, and not what that of the entry does."""
    file = (
        TWO_DEVICES.replace("[[parameters]]", COMMON)
        .replace('[memory.shared]\nsize = "64KiB"', '[memory.shared]\nsize = "2KiB"')
        .replace("[memory.rom]", '[memory.near]\nsize = "2KiB"\n[memory.rom]')
        .replace('reach = ["rom", {', 'reach = ["rom", "near", {')
    )
    module = reversing(pool_scope("tcm"), device="npu", calls=2)
    options = ("--io", "workspace")
    error = refusal(module, file, options)
    assert help_lines(str(error)) == [
        "--workspace own=16KiB --workspace common@shared --workspace tcm=1000B@near"
    ]
    assert pool_of(planned(module, file, with_help(options, str(error))), "t0/scratch0") == "tcm"


def test_an_unknown_scope_hides_no_other_mistake() -> None:
    """What comes before storage takes the tag for one that exists, and looks at the rest."""
    module = reversing(pool_scope("tcm"), 64, device="nowhere")
    diagnostic = one_refusal(module, TWO_DEVICES)
    assert diagnostic.code == "BW113"
    assert "has no device 'nowhere'" in diagnostic.message


def test_the_example_of_a_scope_that_names_no_pool() -> None:
    host = dump_toml(load_target("host"))
    diagnostic = one_refusal(reversing(pool_scope("tcm"), 64), host)
    assert f"```\n{diagnostic.render()}\n```" in (ROOT / "docs" / "errors.md").read_text(encoding="utf-8")
    assert planned(
        reversing(pool_scope("tcm"), 64), host, with_help((), diagnostic.render())
    ).trial.workspace.has_plan


def test_the_option_that_keeps_scratch_off_the_stack_can_be_taken_back() -> None:
    module = reversing(STACK, 64)
    for file, options in (
        (TWO_DEVICES, ("--use-backend-alloc-workspace",)),
        (TWO_DEVICES.replace("stack-reserve", "use-backend-alloc-workspace = true\nstack-reserve"), ()),
    ):
        diagnostic = one_refusal(module, file, options)
        assert "use-backend-alloc-workspace, which keeps every allocation off the stack" in diagnostic.message
        assert (
            planned(module, file, with_help(options, diagnostic.render())).trial.stored.stack[0].planned_bytes
            == 64
        )


def test_private_arrays_are_mended_for_all_kernels_at_once() -> None:
    kernels = [reverse_kernel("m_a", 200, LOCAL), reverse_kernel("m_b", 200, LOCAL, num_scratch=2)]
    module = chain("m", kernels, 200)
    error = refusal(module, TWO_DEVICES)
    assert [d.code for d in error.diagnostics] == ["BW302"] * 3
    assert help_lines(str(error)) == ["in the target file: [device.cpu] max-local-size = 200"]
    assert (
        planned(module, with_target_lines(TWO_DEVICES, str(error))).trial.stored.stack[0].planned_bytes == 400
    )


@pytest.mark.parametrize("scope", [STACK, GLOBAL, None])
def test_what_no_option_can_mend_says_what_to_change(scope: Scope | None) -> None:
    """A kernel that asks for a stack where there is none; a tensor too large for all memories together."""
    if scope is STACK:
        diagnostic = one_refusal(reversing(STACK, 8, device="npu"), TWO_DEVICES)
        assert diagnostic.help == "in the kernel: use the scope global or global.workspace for it"
        return
    diagnostic = one_refusal(reversing(scope, 200 << 10, calls=2), TWO_DEVICES)
    # The tensor between the calls, and the scratch of the call that writes it: too much for a stack of 4 KiB.
    need, capacity = 2 * (200 << 10), 16 << 10
    assert diagnostic.message == (
        f"pool 'own' has {capacity} B, at least {need} B are needed at step 0: {need - capacity} B too few"
    )
    assert any(
        "'t0/out' (204800 B, alive in steps 0..1, used in steps 0..1)" in note for note in diagnostic.notes
    )
    assert diagnostic.help is not None
    assert diagnostic.help.startswith(
        "no option helps: all that device 'cpu' reaches (own, shared, rom) was tried"
    )
