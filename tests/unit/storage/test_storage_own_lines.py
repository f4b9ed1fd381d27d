"""What devices ask of what they touch: alignments, cache lines for themselves, padded pools; and who proves it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bytewright.base.frozen_mapping import FrozenMapping
from bytewright.compiler.pipeline import Planned, plan_model
from bytewright.diagnostics import CompileError
from bytewright.inspect.check_plan import faults_of_plan
from bytewright.ir.border import Io
from bytewright.ir.text.modules import print_module
from bytewright.ir.walk import allocations
from bytewright.options import Options, Pin
from bytewright.record.buffers import PlannedBuffer
from bytewright.record.plan import Plan
from bytewright.record.plan_file import document_of
from bytewright.target.load import load_text
from bytewright.target.model import Target
from support.ir_program import read_module
from support.parsing import parse_module

TARGET = """
name = "pair"
default-device = "cpu"
tags = ["micro"]
[memory.tcm]
base = 0x20000000
size = "16KiB"
[memory.sram]
base = 0x30000000
size = "64KiB"
[memory.flash]
base = 0x00000000
size = "64KiB"
access = "r"
[device.cpu]
isa = "cortex-m55"
reach = ["tcm", "sram", "flash"]
stack = "tcm"
max-stack-size = "2KiB"
[device.core1]
isa = "cortex-m33"
reach = [{ memory = "sram", base = 0x80000000, coherent = COHERENT }, "flash"]
stack = "sram"
max-stack-size = "1KiB"
cache-line = 32
touch-alignment = TOUCH
max-stack-alloca-size = ALLOCA
use-backend-alloc-workspace = BACKEND
[[workspace]]
name = "tcm"
memory = "tcm"
size = "4KiB"
[[workspace]]
name = "sram"
memory = "sram"
size = "8KiB"
[[parameters]]
name = "fast"
memory = "sram"
size = FAST
load = "copy"
from = "flash"
[[parameters]]
name = "flash"
memory = "flash"
"""


def target(
    coherent: bool = False, touch: int = 16, alloca: int = 0, backend: bool = False, fast: int = 1024
) -> Target:
    values = {"COHERENT": coherent, "TOUCH": touch, "ALLOCA": alloca, "BACKEND": backend, "FAST": fast}
    text = TARGET
    for word, value in values.items():
        text = text.replace(f"= {word}", f"= {str(value).lower()}")
    return load_text(text, "pair.toml")


def parameter(name: str, access: str, role: str = "activation") -> str:
    return f'{name} : buffer<10xi8, "global", align=1> {access} {role}'


ENTRY = (
    "call_extern m_b(&x, &t)\ncall_extern m_a(&t, &w, &u)\ncall_extern m_b(&u, &v)\ncall_extern m_b(&v, &y)"
)


def program(entry: str = ENTRY, scratch: str = '"global"') -> str:
    tensors = "\n".join(f'allocate {n} : buffer<10xi8, "global.workspace", align=1>' for n in "tuv")
    ports = f"{parameter('x', 'r')}, {parameter('y', 'w')}"
    return f"""module m
input %x : tensor<10xi8>
output %y : tensor<10xi8>
constant w : buffer<10xi8, "global", align=1> = data<10xi8> [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]
kernel m_a({parameter("x", "r")}, {parameter("w", "r", "parameter")}, {parameter("y", "w")}) on core1 {{
  allocate s : buffer<10xi8, {scratch}, align=1>
  for i : i32 in 0 .. 10 {{ s[i] = x[i] }}
  for j : i32 in 0 .. 10 {{ y[j] = i8(i32(s[9 - j]) + i32(w[j])) }}
}}
kernel m_b({ports}) on cpu {{ for i : i32 in 0 .. 10 {{ y[i] = x[i] }} }}
entry main({ports}) on cpu {{
{tensors}
{entry}
}}
"""


def planned(on: Target, text: str | None = None, options: Options | None = None) -> Planned:
    return plan_model(read_module(text or program()), on, options or Options())


def sizes(plan: Plan, *names: str) -> list[tuple[int, int, int]]:
    """Of each: its own bytes, what it takes, and its alignment."""
    found = [plan.buffers[name] for name in names]
    return [(b.size_bytes, b.extent_bytes, b.alignment) for b in found]


def test_what_another_device_touches_has_its_lines() -> None:
    plan = planned(target()).plan
    assert sizes(plan, "t", "u", "u/s") == [(10, 32, 32)] * 3
    assert sizes(plan, "v", "x", "y") == [(10, 10, 1)] * 3
    assert (plan.pools["sram"].used_bytes, plan.pools["sram"].alignment) == (
        64,
        32,
    )  # scratch beside t, then u
    assert faults_of_plan(plan) == []
    assert "core1' touches it and sees memory 'sram' without coherence" in plan.buffers["u"].reason
    assert "device 'core1' touches it, which asks for an alignment of 16" in plan.buffers["t"].reason


def test_a_coherent_device_asks_for_its_alignment_alone() -> None:
    plan = planned(target(coherent=True)).plan
    assert sizes(plan, "t", "u", "u/s", "w") == [(10, 10, 16)] * 4
    assert sizes(plan, "v", "x", "y") == [(10, 10, 1)] * 3
    assert plan.pools["sram"].used_bytes == 26
    assert faults_of_plan(plan) == []
    assert "line_bytes" not in str(document_of(plan))


def test_scratch_is_aligned_for_the_device_that_is_lent_it() -> None:
    plan = planned(target(coherent=True, touch=64)).plan
    assert plan.buffers["u/s"].alignment == 64
    assert (
        "place_scratch: device 'core1' touches it, which asks for an alignment of 64"
        in plan.buffers["u/s"].reason
    )


def test_one_device_is_as_it_was() -> None:
    """Nothing of the second device, which nobody uses, is in the plan."""
    text = program(ENTRY).replace("on core1", "on cpu")
    head, rest = TARGET.split("[device.core1]")
    alone = head + rest[rest.index("[[workspace]]") :].replace("FAST", "1024")
    plain = planned(load_text(alone, "alone.toml"), text)
    beside = planned(target(), text)
    assert plain.module == beside.module
    assert dict(plain.plan.buffers) == dict(beside.plan.buffers)
    assert "line_bytes" not in str(document_of(plain.plan))
    assert "lines=" not in print_module(plain.module)


def test_a_part_that_a_device_is_lent_begins_at_a_multiple() -> None:
    entry = ENTRY.replace("&t, &w", "&t[4], &w")
    text = program(entry).replace("t : buffer<10xi8", "t : buffer<20xi8").replace("&x, &t)", "&x, &t[4])")
    with pytest.raises(CompileError, match="begins at a multiple of 4 B, where 16 B are asked for"):
        planned(target(), text)
    assert faults_of_plan(planned(target(), text.replace("&t[4]", "&t[0]")).plan) == []
    assert planned(target(touch=4), text).plan.buffers["t"].alignment == 32


def test_inputs_and_outputs_of_the_application_are_padded_too() -> None:
    """In a memory that all reach; the plan says how many bytes are theirs."""
    both = target()
    cpu, core1 = both.devices
    stacks = tuple(replace(context, memory="sram") for context in cpu.contexts)
    cpu = replace(cpu, reach=cpu.reach[1:], contexts=stacks)
    everywhere = replace(both, devices=(cpu, core1), pools=both.pools[1:])
    plan = planned(everywhere, program("call_extern m_a(&x, &w, &y)")).plan
    assert sizes(plan, "x", "y") == [(10, 32, 32)] * 2
    assert (plan.caller_alignment, plan.caller_line_bytes) == (32, 32)
    assert "it has its lines of 32 B to itself" in plan.buffers["x"].reason
    assert faults_of_plan(plan) == []
    inside = planned(everywhere, program("call_extern m_a(&x, &w, &y)"), Options(io=Io.WORKSPACE)).plan
    assert sizes(inside, "x", "y") == [(10, 32, 32)] * 2
    assert faults_of_plan(inside) == []


def test_parameter_pools_end_with_a_line_and_constants_are_not_padded() -> None:
    plan = planned(target()).plan
    assert sizes(plan, "w") == [(10, 10, 16)]
    assert (plan.pools["fast"].used_bytes, plan.pools["fast"].alignment) == (32, 32)
    in_flash = planned(target(), options=Options(pins=(Pin("w", "flash"),))).plan
    assert (in_flash.pools["flash"].used_bytes, in_flash.pools["fast"].used_bytes) == (10, 0)
    assert len(planned(target()).contents["fast"]) == 32
    assert faults_of_plan(in_flash) == []


def test_a_parameter_pool_that_is_no_whole_line_has_room_for_fewer() -> None:
    assert planned(target(fast=33)).plan.pools["fast"].used_bytes == 32
    assert planned(target(fast=31)).plan.buffers["w"].place.name == "flash"
    assert planned(target(fast=31, coherent=True)).plan.buffers["w"].place.name == "fast"


def test_what_is_requested_at_run_time_is_requested_in_lines() -> None:
    plan = planned(target(backend=True)).plan
    (arena, _), *others = plan.arenas
    assert not others
    assert sizes(plan, "u/s", arena.name) == [(10, 32, 32), (32, 32, 32)]
    assert faults_of_plan(plan) == []


def test_the_text_of_the_ir_keeps_the_lines() -> None:
    module = planned(target()).module
    text = print_module(module)
    assert text.count("align=32, lines=32>") == 3
    data = {constant.data.digest: constant.data for constant in module.constant_buffers}
    assert print_module(parse_module(text, data, {})) == text
    assert [a.buffer.line_bytes for a in allocations(module.main)] == [32, 32, 0, 32]


def test_plan_json_keeps_the_lines() -> None:
    plan = planned(target()).plan
    assert {b["name"]: b.get("line_bytes") for b in document_of(plan)["buffers"]}["u"] == 32


def changed(plan: Plan, name: str, **values: object) -> Plan:
    buffer: PlannedBuffer = replace(plan.buffers[name], **values)
    return replace(plan, buffers=FrozenMapping({**plan.buffers, name: buffer}))


def test_check_derives_the_lines_again() -> None:
    """From the devices and the target: what the plan says of lines is compared, and does not help."""
    plan = planned(target()).plan
    assert any(
        "'u' has lines of 0 B to itself, it needs those of 32 B" in f
        for f in faults_of_plan(changed(plan, "u", line_bytes=0))
    )
    assert any(
        "aligned to 16, and has lines of 32 B" in f for f in faults_of_plan(changed(plan, "u", alignment=16))
    )
    assert any("'core1' asks for 16" in f for f in faults_of_plan(changed(plan, "w", alignment=8)))
    shared = next(b for b in plan.buffers.values() if b.name == "u/s")
    near = changed(plan, "u/s", place=replace(shared.place, offset=16), alignment=16, line_bytes=0)
    assert any("share bytes" in fault for fault in faults_of_plan(near))
    pools = FrozenMapping(
        {**plan.pools, "fast": replace(plan.pools["fast"], used_bytes=10, lower_bound_bytes=10)}
    )
    assert any(
        "not whole lines of 32 B" in f or "its buffers end at 32" in f
        for f in faults_of_plan(replace(plan, pools=pools))
    )


def test_a_stack_slot_lies_on_the_stack_of_its_device() -> None:
    """And has no lines: nobody else reaches it, and it is gone before the device hands back."""
    plan = planned(target(alloca=64)).plan
    slot = plan.buffers["m_a/s"]
    assert (slot.place.name, slot.line_bytes, slot.alignment) == ("core1", 0, 1)
    assert plan.stack["cpu"].path == ("main", "m_b")
    # beside run and kernel: two calls for handing over, and eight spans of 12 B
    assert (plan.stack["cpu"].planned_bytes, plan.stack["cpu"].size_bytes) == (0, 4 * 256 + 8 * 12)
    assert plan.stack["core1"].path == ("m_core1_execute", "m_a")
    assert (plan.stack["core1"].planned_bytes, plan.stack["core1"].size_bytes) == (10, 2 * 256 + 10)
    assert faults_of_plan(plan) == []


def test_the_limit_of_a_second_stack_names_its_path() -> None:
    text = program(scratch='"global.stack"').replace("s : buffer<10xi8", "s : buffer<600xi8")
    with pytest.raises(CompileError) as error:
        planned(target(), text)
    assert "the stack of 'core1' needs 1112 B; its limit is 1024 B: 88 B too few" in str(error.value)
    assert "m_core1_execute 256 B -> m_a 600 B + 256 B" in str(error.value)
    moved = planned(target(alloca=1024), text.replace('"global.stack"', '"global"')).plan
    assert moved.buffers["u/s"].place.name == "sram"
    assert "600 B of the stack" not in moved.buffers["t"].reason


def test_a_stack_slot_is_lent_to_nobody() -> None:
    text = program().replace(
        'allocate u : buffer<10xi8, "global.workspace"', 'allocate u : buffer<10xi8, "global.stack"'
    )
    with pytest.raises(CompileError):
        planned(target(), text)
