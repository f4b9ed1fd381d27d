"""Modules of several entries: what is decided of a buffer stays in its entry, and every entry counts for the stack."""

from __future__ import annotations

from dataclasses import replace

from bytewright.ir.analyses.stack import stack_uses
from bytewright.ir.module import Module
from bytewright.ir.scope import pool_scope
from bytewright.ir.walk import allocations
from bytewright.options import Pin
from bytewright.scopes.attach_candidates import attach_candidates
from bytewright.storage.make_arenas import make_arenas
from bytewright.storage.pin_buffers import pin_buffers
from bytewright.storage.place_scratch import place_scratch
from bytewright.target import load_target
from support.ir_programs import CONSTANT, parsed, text_of

HOST = load_target("host")
WORK = """
kernel m_work(input : buffer<8xi8, "global"> r, output : buffer<8xi8, "global"> w) on cpu {
  allocate large : buffer<512xi8, "global.stack">
  for a : i32 in 0 .. 8 { large[a] = input[a] }
  for b : i32 in 0 .. 8 { output[b] = large[b] }
}
"""
SECOND = """
entry second(x : buffer<8xi8, "global"> r, y : buffer<8xi8, "global"> w) on cpu {
  allocate t : buffer<8xi8> {candidate_memory_pools=("other", "ram")}
  call_extern m_work(&w, &t)
  call_extern m_halve(&t, &y)
}
"""


def two_entries() -> Module:
    body = "allocate t : buffer<8xi8>\n  call_extern m_halve(&x, &t)\n  call_extern m_halve(&t, &y)"
    return parsed(text_of(body, constants=CONSTANT, kernels=WORK) + SECOND)


def test_buffers_of_one_name_are_decided_in_each_entry() -> None:
    ram = HOST.pool("ram")
    target = replace(HOST, pools=(*HOST.pools, replace(ram, name="other")))
    module = attach_candidates(place_scratch(two_entries(), target), target)
    found = [allocations(entry)[0].storage.candidates for entry in module.entries]
    assert found == [("ram", "other"), ("other", "ram")]
    pinned = make_arenas(pin_buffers(module, target, (Pin("t", "other"), Pin("w", "rodata"))), target)
    assert [allocations(entry)[0].scope for entry in pinned.entries] == [pool_scope("other")] * 2
    (constant,) = pinned.constant_buffers
    assert constant.scope == pool_scope("rodata")
    passed = pinned.entries[1].body.statements[1].arguments[0].buffer  # type: ignore[union-attr]
    assert passed == constant.buffer


def test_the_stack_is_that_of_the_deepest_entry() -> None:
    uses = stack_uses(place_scratch(two_entries(), HOST), HOST)
    assert uses[0].path == ("second", "m_work")
    assert uses[0].planned_bytes == 512
