"""Definite writes: what counts as written, to the element, through loops, branches, views, parts and calls."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bytewright.ir.analyses.affine import Form, mark, runs_of
from bytewright.ir.verify.admit import faults_of_program
from bytewright.target import load_target
from support.ir_programs import parsed

HOST = load_target("host")
FRAME = """
module m
input %x : tensor<8xi8>
output %y : tensor<8xi8>
constant c : buffer<8xi8, "global"> = data<8xi8> [1, 2, 3, 4, 5, 6, 7, 8]
kernel m_half(input : buffer<4xi8, "global"> r, output : buffer<4xi8, "global"> w) on cpu {
  for c : i32 in 0 .. 4 { output[c] = input[c] }
}
kernel m_even(input : buffer<8xi8, "global"> r, output : buffer<8xi8, "global"> w) on cpu {
  for c : i32 in 0 .. 4 { output[c * 2] = input[c * 2] }
}
kernel m_odd(input : buffer<8xi8, "global"> r, output : buffer<8xi8, "global"> rw) on cpu {
  for c : i32 in 0 .. 4 { output[c * 2 + 1] = input[c * 2 + 1] }
}
kernel m_next(both : buffer<8xi8, "global"> rw) on cpu {
  for c : i32 in 0 .. 7 { both[c + 1] = both[c] }
}
kernel m_upto(output : buffer<8xi8, "global"> w, count : i32) on cpu {
  for c : i32 in 0 .. count { output[c] = 0:i8 }
}
kernel m_test(input : buffer<8xi8, "global"> r, output : buffer<8xi8, "global"> w) on cpu {
  KERNEL
}
entry main(x : buffer<8xi8, "global"> r, y : buffer<8xi8, "global"> w) on cpu {
  allocate t : buffer<8xi8, "global.workspace">
  BODY
}
"""
ALL = "for c : i32 in 0 .. 8 { output[c] = input[c] }"


def faults(body: str = "call_extern m_test(&x, &y)", kernel: str = ALL) -> list[str]:
    text = FRAME.replace("KERNEL", kernel).replace("BODY", body)
    return [violation.text for violation in faults_of_program(parsed(text), HOST)]


TURNS = "for c : i32 in 0 .. 8 "
SCRATCH = 'allocate s : buffer<8xi8, "local"> '


# Entries whose output is written, and of which nothing is read too early.
COMPLETE = (
    "call_extern m_half(&x, &y) call_extern m_half(&x, &y[4])",
    "call_extern m_even(&x, &y) call_extern m_odd(&x, &y)",
    "for i : i32 in 0 .. 2 { call_extern m_half(&x[i * 4], &y[4 - i * 4]) }",
    "call_extern m_half(&x, &t[2]) call_extern m_half(&t[2], &y) call_extern m_half(&t[2], &y[4])",
    "call_extern m_upto(&t, 1) call_extern m_next(&t) call_extern m_test(&t, &y)",
    "for i : i32 in 0 .. 3 { if i < 1 { call_extern m_upto(&t, 8) } else { call_extern m_test(&t, &y) } }",
    "for i : i32 in 0 .. 9 { call_extern m_upto(&y, i) }",
)
INCOMPLETE = (
    ("call_extern m_half(&x, &y)", "output 'y' is not written by every run: element 4 of 8 and 3 more"),
    ("call_extern m_even(&x, &y)", "output 'y' is not written by every run: element 1 of 8 and 3 more"),
    ("call_extern m_upto(&y, 7)", "output 'y' is not written by every run: element 7 of 8"),
    (
        "call_extern m_half(&x, &y) call_extern m_half(&x, &y[3])",
        "output 'y' is not written by every run: element 7 of 8",
    ),
    (
        "call_extern m_half(&x, &t[2]) call_extern m_half(&t[1], &y) call_extern m_half(&x, &y[4])",
        "'t' is read by 'm_half' before it is written: element 1 of 8",
    ),
    (
        "call_extern m_half(&x, &t[1]) call_extern m_next(&t) call_extern m_test(&x, &y)",
        "'t' is read by 'm_next' before it is written: element 0 of 8",
    ),
    (
        "for i : i32 in 0 .. 3 { call_extern m_test(&t, &y) call_extern m_test(&x, &t) }",
        "'t' is read by 'm_test' before it is written: element 0 of 8 and 7 more",
    ),
    (
        "for i : i32 in 0 .. 0 { call_extern m_test(&x, &y) }",
        "output 'y' is not written by every run: element 0 of 8 and 7 more",
    ),
    (
        "for i : i32 in 0 .. 2 { call_extern m_half(&x[i * 5], &y[i * 4]) }",
        "element 8 of 'x' does not exist; it has 8",
    ),
    (
        "for i : i32 in 0 .. 3 { call_extern m_half(&x, &y[i * 4]) }",
        "element 11 of 'y' does not exist; it has 8",
    ),
    (
        "for i : i32 in 0 .. 3 { let at : i32 = i * 4 call_extern m_half(&x, &y[at]) }",
        "element 11 of 'y' does not exist; it has 8",
    ),
    (
        "call_extern m_test(&x, &y) call_extern m_half(&x, &y[-1])",
        "element -1 of 'y' does not exist; it has 8",
    ),
    (
        "call_extern m_test(&x, &y) for i : i32 in 0 .. 2 { call_extern m_even(&c[i * 4], &y) }",
        "element 11 of 'c' does not exist; it has 8",
    ),
)
# Kernels that write their output, and read nothing too early.
WRITING = (
    TURNS + "{ if (c & 1) == 0 { output[c] = 1:i8 } else { output[c] = 2:i8 } }",
    TURNS + "{ if c % 2 == 0 { output[c] = 1:i8 output[c + 1] = 2:i8 } }",
    "for a : i32 in 0 .. 3 { for b : i32 in 0 .. 4 { if a * 4 + b < 8 { output[a * 4 + b] = 1:i8 } } }",
    "for c : i32 in 0 .. 8 { if c < 4 { output[c] = 1:i8 } else { output[c] = 2:i8 } }",
    TURNS + "{ if i32(input[c]) < 3 { output[c] = 1:i8 } else { output[c] = 2:i8 } }",
    "for a : i32 in 0 .. 2 { for b : i32 in 0 .. 4 { output[a * 4 + b] = input[b] } }",
    "for a : i32 in 0 .. 4 { for b : i32 in 0 .. 2 { output[b * 4 + a] = input[b] } }",
    "for c : i32 in 0 .. 8 { let at : i32 = 7 - c output[at] = input[c] }",
    TURNS + '{ allocate s : buffer<i32, "local"> s[] = i32(input[c]) output[c] = i8(s[]) }',
    "output[0] = 1:i8 for c : i32 in 1 .. 8 { output[c] = input[c] }",
    'for c : i32 in 0 .. 8 { view v : buffer<1xi8, "global"> = &input[c] if c < 4 else &input output[c] = v[0] }',
    SCRATCH + TURNS + "{ s[c] = input[c] } for d : i32 in 0 .. 8 { output[d] = s[7 - d] }",
    SCRATCH + "s[0] = 1:i8 " + TURNS + "{ output[c] = select(c < 1, s[0], s[min(c, 0)]) }",
    SCRATCH + TURNS + "{ if c > 0 { output[c] = s[c - 1] } else { output[c] = 0:i8 } s[c] = input[c] }",
    "for c : i32 in 0 .. 8 { output[i32(input[c]) & 7] = 1:i8 }",
)
# Elements that do not exist, whatever else happens: of constants, behind a condition, at an index that is no sum.
OUTSIDE = (
    ("output[0] = c[8]", "element 8 of 'c'"),
    (TURNS + "{ output[c] = select(i32(input[c]) < 3, 1:i8, input[8]) }", "element 8 of 'input'"),
    ("if i32(input[0]) < 3 { output[8] = 1:i8 }", "element 8 of 'output'"),
    ("for i : i32 in 0 .. 4 { output[8 + i % 3] = 1:i8 }", "element 8 of 'output'"),
    ("for i : i32 in 0 .. 4 { output[0] = input[-1 - i % 3] }", "element -1 of 'input'"),
)
NOT_WRITING = (
    ("if i32(input[0]) < 3 { for c : i32 in 0 .. 8 { output[c] = 1:i8 } }", "output 'y' is not written"),
    ("for c : i32 in 0 .. 8 { if i32(input[c]) < 3 { output[c] = 1:i8 } }", "output 'y' is not written"),
    (
        TURNS + "{ if c < 4 { output[c] = input[c] } }",
        "output 'y' is not written by every run: element 4 of 8 and 3 more",
    ),
    (
        TURNS + "{ if (c & 1) == 0 { output[c] = 1:i8 } }",
        "output 'y' is not written by every run: element 1 of 8 and 3",
    ),
    (
        TURNS + "{ let o : i32 = c % 3 if o < 1 { output[c] = 1:i8 } }",
        "output 'y' is not written by every run: element 1 ",
    ),
    (
        "for a : i32 in 0 .. 2 { for b : i32 in 0 .. 4 { if a + b < 4 { output[a * 4 + b] = 1:i8 } } }",
        "output 'y' is not written by every run: element 7 of 8",
    ),
    ("for c : i32 in 0 .. 8 { if c < 8 { } else { output[c] = 1:i8 } }", "output 'y' is not written"),
    (
        f'allocate s : buffer<8xi8, "local"> {ALL} output[0] = s[3]',
        "'s' is read before it is written: element 3 of 8",
    ),
    (
        SCRATCH + "for k : i32 in 0 .. 7 { s[k] = input[k] } " + TURNS + "{ output[c] = s[c] }",
        "'s' is read before it is written: element 7 of 8",
    ),
    (
        'allocate s : buffer<i32, "local"> for c : i32 in 0 .. 8 { s[] = s[] + 1 output[c] = i8(s[]) }',
        "'s' is read before it is written: element 0 of 1",
    ),
    (f"{ALL} output[0] = i8(i32(output[0]) + 1)", None),
    (f"output[7] = output[0] {ALL}", "'output' is read before it is written: element 0 of 8"),
    (
        f'allocate s : buffer<8xi8, "local"> {ALL} if i32(input[0]) < 3 {{ output[0] = s[2] }}',
        "'s' is read before it is written: element 2 of 8",
    ),
    (
        f'allocate s : buffer<8xi8, "local"> {ALL} output[0] = s[i32(input[0]) & 7]',
        "'s' is read before it is written",
    ),
    (
        f'allocate s : buffer<8xi8, "local"> view v : buffer<4xi8, "local"> = &s[4] {ALL} output[0] = v[1]',
        "'s' is read before it is written: element 5 of 8",
    ),
)


@pytest.mark.parametrize("body", COMPLETE)
def test_what_is_written_may_be_read(body: str) -> None:
    assert faults(body) == []


@pytest.mark.parametrize(("body", "text"), INCOMPLETE)
def test_what_is_missing_is_named(body: str, text: str) -> None:
    assert faults(body)[:1] == [text]


@pytest.mark.parametrize("kernel", WRITING)
def test_kernels_that_write_their_output(kernel: str) -> None:
    assert faults(kernel=kernel) == []


@pytest.mark.parametrize(("kernel", "text"), OUTSIDE)
def test_elements_that_do_not_exist(kernel: str, text: str) -> None:
    found = faults(kernel=kernel)
    assert any(one.startswith(f"{text} does not exist") for one in found), found


@pytest.mark.parametrize(("kernel", "text"), NOT_WRITING)
def test_kernels_that_do_not(kernel: str, text: str | None) -> None:
    found = faults(kernel=kernel)
    assert (not found) if text is None else any(one.startswith(text) for one in found), found


def test_of_too_many_turns_either_side_counts() -> None:
    few, many = (
        faults(kernel=f"for c : i32 in 0 .. {count} {{ if c < 4 {{ output[min(c, 7)] = input[0] }} }}")
        for count in (1000, 1_000_000)
    )
    assert few == ["output 'y' is not written by every run: element 4 of 8 and 3 more"]
    assert many == []


def test_what_is_wrong_below_two_calls_is_named() -> None:
    """Also where the outer kernel is looked at before the inner one is known."""
    inner = FRAME.replace(
        "kernel m_test(",
        """kernel m_inner(output : buffer<8xi8, "global"> w) on cpu {
          allocate s : buffer<8xi8, "local">
          for c : i32 in 0 .. 8 { output[c] = s[c] }
        }
        kernel m_outer(output : buffer<8xi8, "global"> w) on cpu { call_extern m_inner(&output) }
        kernel m_test(""",
    ).replace("KERNEL", "call_extern m_outer(&output)")
    found = faults_of_program(parsed(inner.replace("BODY", "call_extern m_test(&x, &y)")), HOST)
    assert [violation.text for violation in found] == [
        "'s' is read before it is written: element 0 of 8",  # in the first turn
        "'s' is read before it is written: element 0 of 8 and 7 more",
    ]


@given(
    st.integers(-5, 5),
    st.lists(st.tuples(st.integers(-6, 6), st.integers(-3, 3), st.integers(0, 4)), max_size=4),
    st.integers(1, 4),
)
def test_runs_are_the_elements_one_by_one(
    constant: int, terms: list[tuple[int, int, int]], length: int
) -> None:
    """Against every combination of the variables' values, tried one after the other."""
    ranges = {f"v{i}": (low, low + extent) for i, (_, low, extent) in enumerate(terms)}
    form = Form(constant, tuple((f"v{i}", factor) for i, (factor, _, _) in enumerate(terms) if factor))
    values = {constant}
    for factor, low, extent in terms:
        values = {value + factor * turn for value in values for turn in range(low, low + extent + 1)}
    expected = {value + more for value in values for more in range(length)}
    runs = runs_of(form, ranges, length)
    assert runs is not None
    assert (runs.first, runs.last) == (min(expected), max(expected))
    mask = np.zeros(40, np.bool_)
    mark(mask, runs)
    assert set(np.flatnonzero(mask).tolist()) == {value for value in expected if 0 <= value < 40}
