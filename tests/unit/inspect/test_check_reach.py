"""Kernels stay inside what calls give them: what `check` says of it, held against running the very loops."""

from __future__ import annotations

import itertools
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bytewright.bundle.write import write_bundle
from bytewright.compiler.pipeline import Compiled, compile_model
from bytewright.diagnostics import CompileError
from bytewright.inspect.c_ranges import Range, Scope, exactly
from bytewright.inspect.c_reach import Frame, Reach, UnreadableError, whole
from bytewright.inspect.c_source import CSource
from bytewright.inspect.check import check_bundle
from bytewright.options import options_of_text
from bytewright.target import load_target
from support.digits_bundle import DIGITS, change_file

KERNELS = "src/digits_kernels.c"
MAXIMUM = "static inline int32_t max_i32(int32_t first, int32_t second) { return (first < second) ? second : first; }"


def reach_of(body: str, size_bytes: int, most_turns: int = 1 << 12, parameters: str = "int8_t *out") -> Reach:
    """What a function does to `out`, an array of so many bytes."""
    source = CSource(f"{MAXIMUM} void f({parameters}) {{ {body} }}")
    function = source.function("f")
    assert function is not None
    reach = Reach(source.function, most_turns)
    reach.call(function, [(whole("out", exactly(size_bytes)),)], [], Frame(Scope(source.function)))
    return reach


@cache
def portable() -> Compiled:
    return compile_model(DIGITS, load_target("host"), options_of_text(["--kernels portable"], Path()))


FACTORS = st.integers(-3, 3)


@given(
    ends=st.tuples(st.integers(1, 5), st.integers(1, 5)),
    factors=st.tuples(FACTORS, FACTORS, st.integers(-2, 6)),
    inner=st.tuples(FACTORS, st.integers(-2, 3)),
    guard=st.tuples(FACTORS, FACTORS, st.integers(-4, 4)),
    modulus=st.integers(1, 4),
    size=st.integers(1, 20),
    most_turns=st.sampled_from([1, 8, 1 << 12]),
)
@settings(max_examples=40, deadline=None)
def test_what_is_said_of_a_loop_is_what_it_does(
    ends: tuple[int, int],
    factors: tuple[int, int, int],
    inner: tuple[int, int],
    guard: tuple[int, int, int],
    modulus: int,
    size: int,
    most_turns: int,
) -> None:
    """No turn is outside of what is proved, one is of what is called outside, and turn by turn nothing is left open."""
    touched = [
        a * y + b * x + c + (y % modulus)
        for y in range(ends[0])
        for x in range(max(inner[0] * y + inner[1], 0), ends[1])
        if guard[0] * y + guard[1] * x < guard[2]
        for a, b, c in (factors,)
    ]
    body = (
        f"for (int32_t y = 0; y < {ends[0]}; ++y) {{"
        f"const int32_t first = max_i32(({inner[0]} * y) + ({inner[1]}), 0);"
        f"for (int32_t x = first; x < {ends[1]}; ++x) {{"
        f"const bool inside = (({guard[0]} * y) + ({guard[1]} * x)) < ({guard[2]});"
        f"if (inside) {{ out[({factors[0]} * y) + ({factors[1]} * x) + ({factors[2]}) + (y % {modulus})] = 0; }} }} }}"
    )
    reach, is_inside = reach_of(body, size, most_turns), all(0 <= index < size for index in touched)
    if reach.outside:
        assert not is_inside
    elif reach.open:
        assert most_turns < ends[0] * ends[1]
    else:
        assert is_inside


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("for (int32_t i = 7; i >= 0; --i) { out[i] = 0; }", "inside"),
        ("for (int32_t i = 7; i > -2; --i) { out[i] = 0; }", "outside"),
        ("for (int32_t i = 0; i < 12; i += 4) { out[i - i / 8] = 0; }", "inside"),
        ("for (int32_t i = 0; i < 9; i += 4) { out[i] = 0; }", "outside"),
        ("int16_t *const wide = (int16_t *)(void *)out; wide[3] = 0;", "inside"),
        ("int16_t *const wide = (int16_t *)(void *)out; wide[4] = 0;", "outside"),
        ("int16_t *const wide = (int16_t *)(void *)&out[1]; wide[3] = 0;", "outside"),
        ("out[out[0] & 7] = 0;", "inside"),
        ("out[(uint8_t)out[0] / 32] = 0;", "inside"),
        ("out[out[0]] = 0;", "open"),
        ("int32_t n = 0; for (int32_t i = 0; i < 99; ++i) { if (n < 8) { out[n] = 0; n += 1; } }", "inside"),
        ("int32_t n = 0; for (int32_t i = 0; i < 99; ++i) { if (n < 8) { n += 1; out[n] = 0; } }", "open"),
        ("int32_t n = 0; if (n < 8) { for (int32_t i = 0; i < 9; ++i) { out[n] = 0; n += 1; } }", "open"),
        ("int32_t n = 0; const bool few = n < 8; n += 9; if (few) { out[n] = 0; }", "open"),
        ("if (out[0] > 0) { out[8] = 0; }", "open"),
        ("const uint32_t i = 1u; if (-1 < i) { out[0] = 0; } else { out[8] = 0; }", "open"),
        ("const uint8_t i = (uint8_t)(255 + 1); out[i] = 0;", "open"),
        ("const int32_t i = 2147483647; out[(i + 1) - 2147483647] = 0;", "open"),
        ("for (int32_t i = 0; i < 8; ++i) { return; }", "unread"),
        ("out[max_i32(0)] = 0;", "open"),
        ("out[INT64_C()] = 0;", "open"),
        ("out[(true ? -1 : 1u) + 1] = 0;", "open"),
        ("out[(true ? 3 : 1u) + 1] = 0;", "inside"),
        ("if (INT32_MIN < 5u) { out[0] = 0; } else { out[8] = 0; }", "open"),
        ("if (-1 < 0xFFFFFFFF) { out[0] = 0; } else { out[8] = 0; }", "open"),
        ("out[(0xFFFFFFFF + 9) - 4294967300] = 0;", "outside"),
        ("out[128 + (char)out[0]] = 0;", "open"),
        ("const int32_t i = 2048; out[(i >> 40)] = 0;", "open"),
        ("const int8_t two[2] = { out[7], out[0] }; out[0] = two[1];", "inside"),
        ("const int8_t two[2] = { out[8], 0 }; out[0] = two[1];", "outside"),
        ("const int8_t two[2] = { 0, other(out) }; out[0] = two[1];", "unread"),
        ("const int8_t two[2] = { [1] = out[8] }; out[0] = two[1];", "unread"),
        ("for (int32_t i = 7; i >= 0u; --i) { out[i] = 0; }", "unread"),
        ("for (int32_t i = 0; i < (1u << 31); ++i) { out[0] = 0; }", "unread"),
        ("for (int32_t i = 2147483640; i <= 2147483647; ++i) { out[i - 2147483640] = 0; }", "unread"),
        ("for (int32_t i = 0; i < 2147483646; i += 1000000000) { out[i / 1000000000] = 0; }", "unread"),
        ("for (int32_t i = INT64_C(4294967296); i < 9; ++i) { out[8] = 0; }", "open"),
        ("int8_t n = 0; for (int32_t i = 0; i < 200; ++i) { if (n < 8) { out[n] = 0; } n += 1; }", "open"),
        ("int8_t n = 0; for (int32_t i = 0; i < 99; ++i) { if (n < 8) { out[n] = 0; } n += 1; }", "inside"),
        ("int8_t n = 200; n += 1; if (n < 8) { out[n] = 0; }", "open"),
        ("f(out);", "unread"),
        ("out += 1; out[7] = 0;", "unread"),
        ("while (out[0]) { out[0] = 0; }", "unread"),
        ("for (int32_t i = 0; i < 8; ++i) { i += 8; out[i] = 0; }", "unread"),
        ("other((uintptr_t)out);", "unread"),
        ("*(int8_t *)(uintptr_t)8 = 0;", "unread"),
        ("int8_t **const twice = (int8_t **)out; twice[7] = 0;", "unread"),
    ],
)
def test_what_is_said_of_forms(body: str, said: str) -> None:
    """Of an array of 8 bytes. What is open is at least not called proved."""
    try:
        reach = reach_of(body, 8)
    except (UnreadableError, RecursionError):
        assert said == "unread"
        return
    assert ("outside" if reach.outside else "open" if reach.open else "inside") == said


def test_kernels_of_a_right_bundle_are_proved_but_where_data_decides(tmp_path: Path) -> None:
    write_bundle(portable().files, tmp_path)
    verdict = check_bundle(tmp_path)
    assert (verdict.num_kernels, verdict.num_proved_kernels) == (7, 6)  # but for the table of SOFTMAX


@pytest.mark.parametrize(
    "head", ["...", "void", "int32_t *first, ...", "int32_t (*first)(void), int32_t second"]
)
def test_functions_with_other_parameters_are_no_bug(head: str) -> None:
    text = (
        f"int32_t max_i32({head}) {{ return other; }} void f(int8_t *out) {{ out[max_i32(out[0], 1)] = 0; }}"
    )
    source = CSource(text.replace("(...)", "(int32_t first, ...)"))
    function = source.function("f")
    assert function is not None
    reach = Reach(source.function, 1)
    reach.call(function, [(whole("out", exactly(8)),)], [], Frame(Scope(source.function)))
    assert reach.open


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        ("x < 8; ++x", "x < 9; ++x", "'output[pixel + channel]' is not in the 384 B of 'conv2d_0/out'"),
        ("channel < 16", "channel < 17", "'bias[channel]' is not in the 64 B of 'conv2d_0/bias'"),
        ("int8_t patch[10]", "int8_t patch[9]", "'patch[9]' is not in the 9 B of 'patch'"),
        ("(ix < 8)", "(ix < 9)", "'tap[0]' is not in the 64 B of 'image'"),
        ("weights[c + 128]", "weights[c + 129]", "'weights[c + 129]' is not in the 144 B of"),
    ],
)
def test_a_kernel_that_reaches_further_is_found_when_all_digests_are_renewed(
    old: str, new: str, what: str, tmp_path: Path
) -> None:
    write_bundle(portable().files, tmp_path)
    change_file(tmp_path, KERNELS, old, new)
    with pytest.raises(CompileError) as caught:
        check_bundle(tmp_path)
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code == "BW402"
    assert any(what in note for note in diagnostic.notes), diagnostic.notes


def test_arrays_of_the_caller_are_as_large_as_the_run_says(tmp_path: Path) -> None:
    options = options_of_text(["--kernels portable", "--batch-max 3"], Path())
    write_bundle(compile_model(DIGITS, load_target("host"), options).files, tmp_path)
    assert check_bundle(tmp_path).num_proved_kernels == 6
    change_file(tmp_path, KERNELS, "n < batch", "n < 3")  # of the first kernel, which reads the input
    with pytest.raises(CompileError, match="are not what its plan says") as caught:
        check_bundle(tmp_path)
    (diagnostic,) = caught.value.diagnostics
    assert any("of 'image'" in note for note in diagnostic.notes), diagnostic.notes


def test_a_kernel_that_is_not_read_any_more_is_not_counted(tmp_path: Path) -> None:
    """Nothing but the number says so, and not `plan_hash`."""
    write_bundle(portable().files, tmp_path)
    change_file(tmp_path, KERNELS, "channel < 16; ++channel", "channel < (16 | 0); ++channel")
    verdict = check_bundle(tmp_path)
    assert verdict.num_proved_kernels == 5
    assert verdict.plan.plan_hash == portable().plan.plan_hash


def computed(operator: str, a: int, b: int) -> int | None:
    """What C computes, where it is defined and generated code has it."""
    match operator:
        case "/" | "%":
            quotient = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1) if b else None
            return None if quotient is None else quotient if operator == "/" else a - b * quotient
        case ">>" | "<<":
            return None if b < 0 else a >> b if operator == ">>" else a << b
        case _:
            return {"+": a + b, "-": a - b, "*": a * b, "&": a & b}[operator]


def test_ranges_of_all_operators_hold_for_each_number() -> None:
    """Each operation on two ranges, against all pairs of numbers in them, as C computes them."""
    sides = [(-5, -2), (-3, 4), (0, 6), (3, 3)]
    for operator, (one, other) in itertools.product(
        ("+", "-", "*", "/", "%", ">>", "<<", "&"), itertools.product(sides, sides)
    ):
        scope = Scope(lambda _: None)
        for name, (low, high) in (("a", one), ("b", other)):
            bounds = np.array((low, high), dtype=np.int64)
            scope.define(name, "int32_t", Range(bounds[0], bounds[1]))
        function = CSource(f"void f(void) {{ g(a {operator} b); }}").function("f")
        assert function is not None
        found = scope.range_of(function.body.block_items[0].args.exprs[0])
        assert found is not None
        pairs = itertools.product(range(one[0], one[1] + 1), range(other[0], other[1] + 1))
        values = [value for a, b in pairs if (value := computed(operator, a, b)) is not None]
        assert all(found.low <= value <= found.high for value in values), (operator, one, other)
