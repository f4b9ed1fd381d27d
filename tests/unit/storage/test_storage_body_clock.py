"""Ticks go into the bodies of calls: what is needed there when, and how few bytes that takes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bytewright.compiler import pipeline
from bytewright.compiler.pipeline import Planned
from bytewright.ir.analyses.body_clock import BodyClock, body_clocks
from bytewright.ir.border import Io
from bytewright.ir.prim import For
from bytewright.ir.walk import walk_statements
from bytewright.options import Options
from bytewright.storage.place_scratch import place_scratch
from bytewright.target.model import Target
from bytewright.target.options import Overrides, apply_overrides
from bytewright.target.registry import load_target
from support.ir_program import read_module

HOST = load_target("host")
NO_STACK = apply_overrides(HOST, Overrides(max_stack_alloca_size=0))
BIG = 100_000
NO_CALLS = "entry main() on cpu { }\n"


def clock(parameters: str, body: str, others: str = "", target: Target = NO_STACK) -> BodyClock:
    """The clock of one kernel, after its scratch became parameters."""
    module = read_module(f"module m\n{others}\nkernel k({parameters}) on cpu {{\n{body}}}\n{NO_CALLS}")
    return body_clocks(place_scratch(module, target), target)["k"]


def i8(name: str, access: str, size: int = 8, role: str = "activation") -> str:
    return f'{name} : buffer<{size}xi8, "global", align=1> {access} {role}'


X_Y = f"{i8('x', 'r')}, {i8('y', 'w')}"
COPY = "for {i} : i32 in 0 .. 8 {{ {to}[{i}] = {frm}[{i}] }}\n"
SCRATCH = 'allocate {name} : buffer<8xi8, "global.workspace", align=1>\n'


def copy(frm: str, to: str, i: str) -> str:
    return COPY.format(frm=frm, to=to, i=i)


def scratch(name: str) -> str:
    return SCRATCH.format(name=name)


def test_one_nest_is_one_tick() -> None:
    assert clock(X_Y, copy("x", "y", "i")) == BodyClock(1, ((0, 1), (0, 1)))


def test_what_is_copied_first_dies_first() -> None:
    body = scratch("s") + copy("x", "s", "i") + copy("s", "y", "j")
    assert clock(X_Y, body) == BodyClock(2, ((0, 1), (1, 2), (0, 2)))


def test_what_is_never_touched_is_needed_never() -> None:
    two = f"{X_Y}, {i8('unused', 'r')}, n : i32"
    assert clock(two, copy("x", "y", "i")).intervals == ((0, 1), (0, 1), None, None)


def test_both_branches_take_time_one_after_the_other() -> None:
    body = scratch("s") + "if n < 1 {\n" + copy("x", "s", "i") + "} else {\n" + copy("x", "y", "j") + "}\n"
    assert clock(f"{X_Y}, n : i32", body).intervals == ((0, 2), (1, 2), None, (0, 1))


def test_a_result_written_in_one_branch_lives_from_there() -> None:
    body = (
        scratch("s")
        + copy("x", "s", "i")
        + "if n < 1 {\n"
        + copy("s", "y", "j")
        + "}\n"
        + copy("s", "z", "k")
    )
    found = clock(f"{X_Y}, {i8('z', 'w')}, n : i32", body)
    assert found.intervals == ((0, 1), (1, 2), (2, 3), None, (0, 3))


def test_partial_writes_live_from_the_first() -> None:
    body = scratch("s") + copy("x", "s", "i") + copy("s", "y", "j")
    assert clock(X_Y, body).intervals == ((0, 1), (1, 2), (0, 2))
    assert clock(X_Y, "y[0] = 1:i8\n" + body).intervals == ((0, 1), (0, 1), (0, 1))


def test_what_a_loop_uses_is_needed_for_the_whole_loop() -> None:
    body = scratch("s") + "for t : i32 in 0 .. 2 {\n" + copy("x", "s", "i") + copy("s", "y", "j") + "}\n"
    assert clock(X_Y, body) == BodyClock(1, ((0, 1), (0, 1), (0, 1)))


def test_what_is_allocated_in_a_loop_is_not() -> None:
    """Two arrays of one turn: the first is copied to the result before the second one is made."""
    body = (
        "for t : i32 in 0 .. 2 {\n"
        + "{"
        + scratch("a")
        + copy("x", "a", "i")
        + copy("a", "y", "j")
        + "}\n"
        + "{"
        + scratch("b")
        + copy("x", "b", "k")
        + copy("b", "y", "l")
        + "}\n"
        + "}\n"
    )
    assert clock(X_Y, body) == BodyClock(2, ((0, 2), (0, 2), (0, 1), (1, 2)))


def test_what_is_allocated_in_an_inner_loop_lives_for_one_turn_of_the_outer_one_too() -> None:
    body = (
        "for t : i32 in 0 .. 2 {\n"
        + "for u : i32 in 0 .. 2 {"
        + scratch("a")
        + copy("x", "a", "i")
        + copy("a", "y", "j")
        + "}\n"
        + "for v : i32 in 0 .. 2 {"
        + scratch("b")
        + copy("x", "b", "k")
        + copy("b", "y", "l")
        + "}\n"
        + "}\n"
    )
    assert clock(X_Y, body).intervals == ((0, 2), (0, 2), (0, 1), (1, 2))


def test_loops_say_what_is_private_to_their_turns() -> None:
    body = (
        scratch("s")
        + copy("x", "s", "h")
        + "for t : i32 in 0 .. 2 {\n"
        + scratch("a")
        + copy("s", "a", "i")
        + copy("a", "y", "j")
        + "}\n"
    )
    module = read_module(f"module m\nkernel k({X_Y}) on cpu {{\n{body}}}\n{NO_CALLS}")
    (kernel,) = place_scratch(module, NO_STACK).kernels
    private = {
        s.variable.name: [b.name for b in s.private]
        for s in walk_statements(kernel.body)
        if isinstance(s, For)
    }
    assert private == {"h": [], "t": ["a"], "i": [], "j": []}


def test_a_view_counts_as_what_it_shows_where_it_is_read() -> None:
    body = (
        scratch("s")
        + 'view v : buffer<8xi8, "global", align=1> = &x if n < 1 else &w\n'
        + copy("x", "s", "i")
        + copy("s", "y", "j")
        + copy("v", "y", "k")
    )
    found = clock(f"{X_Y}, {i8('w', 'r')}, n : i32", body)
    assert found.intervals == ((0, 2), (0, 2), (1, 2), None, (0, 1))


def test_the_bound_of_a_loop_is_read_before_each_turn() -> None:
    """The scratch is private to the turns, yet may not have the bytes of `n`."""
    text = 'n : buffer<1xi32, "global", align=4> r activation'
    body = "for t : i32 in 0 .. n[0] {\n" + scratch("s") + copy("x", "s", "i") + copy("s", "y", "j") + "}\n"
    assert clock(f"{X_Y}, {text}", body).intervals == ((0, 1), (0, 1), (0, 1), (0, 1))


def test_a_condition_is_read_before_the_branches() -> None:
    text = 'n : buffer<1xi32, "global", align=4> r activation'
    body = scratch("s") + "if n[0] < 1 {\n" + copy("x", "s", "i") + copy("s", "y", "j") + "}\n"
    assert clock(f"{X_Y}, {text}", body).intervals == ((1, 2), (2, 3), (0, 1), (1, 3))


INNER = f"kernel inner({X_Y}) on cpu {{\n{scratch('s') + copy('x', 's', 'i') + copy('s', 'y', 'j')}}}\n"


def test_callees_stand_where_they_are_called() -> None:
    body = "call_extern inner(&x, &y)\n" + copy("y", "z", "i")
    found = clock(f"{X_Y}, {i8('z', 'w')}", body, INNER)
    assert found.intervals == ((0, 1), (1, 3), (2, 3), (0, 2))


def test_calls_of_one_body_have_scratch_of_their_own() -> None:
    body = scratch("t") + "call_extern inner(&x, &t)\ncall_extern inner(&t, &y)\n"
    found = clock(X_Y, body, INNER)
    assert found == BodyClock(4, ((0, 1), (3, 4), (1, 3), (0, 2), (2, 4)))


def test_to_any_depth() -> None:
    outer = f"kernel outer({X_Y}) on cpu {{\n{scratch('t')}call_extern inner(&x, &t)\ncall_extern inner(&t, &y)\n}}\n"
    body = scratch("u") + "call_extern outer(&x, &u)\ncall_extern inner(&u, &y)\n"
    found = clock(X_Y, body, INNER + outer)
    assert found.num_ticks == 6
    assert found.intervals[:3] == ((0, 1), (5, 6), (3, 5))
    assert sorted(interval for interval in found.intervals[3:] if interval) == [
        (0, 2),
        (1, 3),
        (2, 4),
        (4, 6),
    ]


def test_an_opaque_call_needs_all_it_is_given() -> None:
    found = clock(X_Y, scratch("s") + copy("x", "s", "i") + "call_extern elsewhere(&s, &y)\n")
    assert found.intervals == ((0, 1), (1, 2), (0, 2))


def test_a_device_that_runs_no_c_promises_no_order() -> None:
    module = read_module(
        f"module m\nkernel k({X_Y}, {i8('s', 'rw', role='scratch')}) on cpu "
        f"{{\n{copy('x', 's', 'i') + copy('s', 'y', 'j')}}}\n"
    )
    assert body_clocks(module, HOST)["k"].intervals == ((0, 1), (1, 2), (0, 2))
    device = replace(HOST.default_device, contexts=())
    target = replace(HOST, devices=(device,))
    assert body_clocks(module, target)["k"] == BodyClock(1, ((0, 1), (0, 1), (0, 1)))


# Bytes


def planned(text: str, io: Io = Io.CALLER) -> Planned:
    return pipeline.plan_model(read_module(text), NO_STACK, Options(io=io))


def top(result: Planned) -> int:
    """The workspace, which is proved to be the smallest."""
    (use,) = result.trial.workspace.pools
    assert use.optimal
    return use.top_bytes


def model(kernels: str, call: str, ports: str = X_Y) -> str:
    """A module of one input and one output whose entry makes one call."""
    return (
        "module m\ninput %x : tensor<8xi8>\noutput %y : tensor<8xi8>\n"
        f"{kernels}entry main({ports}) on cpu {{\n{call}\n}}\n"
    )


def big_block(name: str, size: int = BIG) -> str:
    """Fills scratch from the input, and the result from it."""
    return (
        f'{{\nallocate {name} : buffer<{size}xi8, "global.workspace", align=1>\n'
        f"for {name}i : i32 in 0 .. {size} {{ {name}[{name}i] = x[0] }}\n"
        f"for {name}j : i32 in 0 .. 8 {{ y[{name}j] = {name}[{name}j] }}\n}}\n"
    )


def kernel(name: str, body: str) -> str:
    return f"kernel {name}({X_Y}) on cpu {{\n{body}}}\n"


def test_two_callees_in_turn_inside_one_kernel_share_their_scratch() -> None:
    calls = scratch("t") + "call_extern a(&x, &t)\ncall_extern b(&t, &y)\n"
    kernels = kernel("a", big_block("s")) + kernel("b", big_block("s")) + kernel("outer", calls)
    assert top(planned(model(kernels, "call_extern outer(&x, &y)"))) == BIG + 8


def test_one_callee_called_twice_shares_with_what_is_between() -> None:
    calls = "call_extern a(&x, &y)\n" + big_block("t") + "call_extern a(&x, &y)\n"
    kernels = kernel("a", big_block("s")) + kernel("outer", calls)
    assert top(planned(model(kernels, "call_extern outer(&x, &y)"))) == BIG


@pytest.mark.parametrize("loop", ["{{\n{}}}\n", "for n : i32 in 0 .. 3 {{\n{}}}\n"])
def test_two_blocks_in_sequence_share_their_scratch(loop: str) -> None:
    body = loop.format(big_block("s") + big_block("t"))
    assert top(planned(model(kernel("k", body), "call_extern k(&x, &y)"))) == BIG


def test_loops_inside_kernels_widen() -> None:
    """Both arrays are the kernel's, so what one turn leaves in them the next may read."""
    turns = "for n : i32 in 0 .. 3 {\n" + copy("s", "t", "i") + copy("t", "s", "j") + "}\n"
    body = (
        scratch("s") + scratch("t") + copy("x", "s", "h") + copy("x", "t", "k") + turns + copy("s", "y", "l")
    )
    assert top(planned(model(kernel("k", body), "call_extern k(&x, &y)"))) == 16 + 8


CONVOLUTION = """
module m
input %x : tensor<224x224x6xi8>
output %y : tensor<112x112x64xi8>
kernel conv(
    x : buffer<224x224x6xi8, "global", align=1> r activation,
    y : buffer<112x112x64xi8, "global", align=1> w activation
) on cpu {
  allocate padded : buffer<229x229x6xi8, "global.workspace", align=1>
  for a : i32 in 0 .. 229 { for b : i32 in 0 .. 229 { for c : i32 in 0 .. 6 { padded[a, b, c] = 0:i8 } } }
  for d : i32 in 0 .. 224 { for e : i32 in 0 .. 224 { for f : i32 in 0 .. 6 {
    padded[d + 2, e + 2, f] = x[d, e, f]
  } } }
  for r : i32 in 0 .. 112 { for q : i32 in 0 .. 112 {
    allocate acc : buffer<64xi32, "global.workspace", align=4>
    for m : i32 in 0 .. 64 { acc[m] = 0 }
    for u : i32 in 0 .. 7 { for v : i32 in 0 .. 7 { for w : i32 in 0 .. 6 { for n : i32 in 0 .. 64 {
      acc[n] = acc[n] + i32(padded[2 * r + u, 2 * q + v, w])
    } } } }
    for o : i32 in 0 .. 64 { y[r, q, o] = i8(acc[o]) }
  } }
}
entry main(
    x : buffer<224x224x6xi8, "global", align=1> r activation,
    y : buffer<112x112x64xi8, "global", align=1> w activation
) on cpu {
  call_extern conv(&x, &y)
}
"""


def test_an_input_dies_inside_the_call_that_copies_it() -> None:
    """A padded copy of 314646 B, an accumulator of 256 B and an output of 802816 B; the input of 301056 B has died."""
    result = planned(CONVOLUTION, Io.WORKSPACE)
    assert top(result) == 314_646 + 256 + 802_816 == 1_117_718
    sizes = {live.buffer.name: (live.lower, live.upper) for live in result.trial.stored.timeline.buffers}
    assert sizes == {"x": (0, 2), "y": (2, 4), "y/padded": (1, 3), "y/acc": (2, 3)}
