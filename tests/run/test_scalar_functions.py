"""Functions of scalars in C and in the evaluator: both equal the references in `ops.arithmetic`, at the edges too."""

from __future__ import annotations

import operator
import subprocess
import sys
from pathlib import Path

import numpy as np

import bytewright
from bytewright.ir.scalar_functions import MATH_FUNCTIONS, SCALAR_FUNCTIONS
from bytewright.ops.arithmetic import fixedpoint16, rescale
from bytewright.ops.arithmetic.dynamic import dynamic_scale, dynamic_zero_point
from support.evaluate.evaluate import Evaluator
from support.parsing import parse_module

TOP = 2**31 - 1
EDGES = np.array([0, 1, 2, 3, 5, 2**29, 2**30 - 1, 2**30, TOP])
X = np.unique(np.concatenate([EDGES, -EDGES, [-TOP - 1], np.random.default_rng(1).integers(-TOP, TOP, 300)]))
SHORT = X[np.abs(X) < 2**30]
SMALL = np.arange(-300, 301)
GATES = np.arange(-(2**15), 2**15, 37)
RANGES = SMALL.astype(np.float32), SMALL.astype(np.float32) * np.float32(-0.7)


def divided(total: np.ndarray, count: int) -> np.ndarray:
    """Half away from zero."""
    return np.sign(total) * ((np.abs(total) + count // 2) // count)


def powers(bases: np.ndarray | int, exponents: np.ndarray | int) -> np.ndarray:
    """Saturated; an exponent below zero is taken for zero."""
    pairs = zip(*(each.tolist() for each in np.broadcast_arrays(bases, exponents)), strict=True)
    return np.array([min(max(base ** max(exponent, 0), -TOP - 1), TOP) for base, exponent in pairs])


def rounded_up(values: np.ndarray, shift: int) -> np.ndarray:
    """Divided by 2^shift, half up."""
    return np.floor(values / 2.0**shift + 0.5).astype(np.int64)


def nearest(values: np.ndarray, scale: float, offset: float | np.ndarray) -> np.ndarray:
    """Of values * scale + offset, all in float32 and rounded to it once, the integer; ties to even."""
    wide = values.astype(np.float32).astype(np.longdouble) * scale + offset
    return np.rint(wide.astype(np.float32)).astype(np.int64)


SCALE = 1.25 * 2.0**-20
BELOW, ABOVE = -3.515625, -3.484375


def halves(numbers: list[int]) -> tuple[np.ndarray, np.ndarray]:
    """The lower and the upper 32 bits of numbers modulo 2^64."""
    wrapped = np.array([number % 2**64 for number in numbers], np.uint64)
    return wrapped.astype(np.int32), (wrapped >> np.uint64(32)).astype(np.int32)


# A factor with which x is almost as long as 64 bits are, and one that is longer than 32.
LONG, OTHER = 2**32 - 1, -(2**62) - 3
WRAPPING = {
    name: halves([function(int(x) * LONG, OTHER) for x in X])
    for name, function in (
        ("wrapping_add_64", operator.add),
        ("wrapping_subtract_64", operator.sub),
        ("wrapping_multiply_64", operator.mul),
    )
}


# The call on `x`, the values that it is for, and what it gives.
CASES = [
    (f"high_multiply_wide(x[i], {TOP})", X, rescale.high_multiply(X, TOP)),
    ("high_multiply(x[i], 1500000001)", SHORT, rescale.high_multiply(SHORT, 1500000001)),
    *(
        (f"double_round_wide(x[i], {TOP - 7}, {s})", X, rescale.double_round(X, TOP - 7, 0, s))
        for s in (0, 1, 31)
    ),
    *(
        (f"double_round(x[i], 1073741825, {s})", SHORT, rescale.double_round(SHORT, 2**30 + 1, 0, s))
        for s in (1, 7, 31)
    ),
    *(
        (f"double_round_up(x[i], {TOP}, {s})", X, rounded_up(rescale.high_multiply(X, TOP), s))
        for s in (0, 1, 31)
    ),
    *((f"single_round(x[i], {TOP}, {s})", X, rescale.single_round(X, TOP, 31 + s)) for s in (0, 30)),
    *((f"scale_half_up(x[i], 32767, {s})", X, rescale.single_round(X, 32767, s)) for s in (15, 46)),
    *(
        (f"scale_high(x[i], {29000 << 16}, {s})", SHORT, rescale.single_round(SHORT, 29000, 15 + s))
        for s in (1, 7, 30)
    ),
    ("scale_half_up_wide(i64(x[i]) * 65535:i64, 32767, 31)", X, rescale.single_round(X * 65535, 32767, 31)),
    (
        "real_round_wide(i64(x[i]) * 65536:i64, 0.00000762939453125:f64, -100.0:f64, 100.0:f64)",
        X,
        rescale.real_round(np.clip(X, -200, 200), 0.5),
    ),
    ("scale_linear(x[i], 1500000001, -77:i64, 40)", X, (X * 1500000001 - 77) >> 40),
    (
        f"scale_symmetric(x[i], 1500000001, -77, {2**40}:i64, 9)",
        X[1:],
        np.sign(X[1:]) * ((np.abs(X[1:]) * 1500000001 + (np.abs(X[1:]) * -77 >> 32) + 2**40) >> 41),
    ),
    ("real_round(x[i], 0.5:f64, -100.0:f64, 100.0:f64)", X, rescale.real_round(np.clip(X, -200, 200), 0.5)),
    (f"float_round(x[i], {SCALE}:f32, {ABOVE}:f32)", X, nearest(X, SCALE, ABOVE)),
    (f"float_round(x[i], 0.5:f32, {ABOVE}:f32)", SHORT, nearest(SHORT, 0.5, ABOVE)),
    ("float_round(x[i], 0.5:f32, 1.0:f32)", SMALL, nearest(SMALL, 0.5, 1.0)),
    (
        f"float_round_signed(x[i], 0.5:f32, {ABOVE}:f32, {BELOW}:f32)",
        SMALL,
        nearest(SMALL, 0.5, np.where(SMALL < 0, BELOW, ABOVE)),
    ),
    (
        f"float_sum(x[i], x[i] * -3, 0.5:f32, {SCALE}:f32, {ABOVE}:f32)",
        SMALL,
        nearest(SMALL, 0.5, (SMALL * -3.0 * SCALE + ABOVE).astype(np.float32)),
    ),
    # Of ranges from below zero to above it, and of such as hold nothing but zero.
    (
        "i32(dynamic_scale(f32(x[i]), f32(x[i]) * -0.7:f32) * 1048576.0:f32)",
        SMALL,
        (dynamic_scale(*RANGES) * np.float32(2**20)).astype(np.int64),
    ),
    ("dynamic_zero_point(f32(x[i]), f32(x[i]) * -0.7:f32)", SMALL, dynamic_zero_point(*RANGES)),
    ("logistic_15(x[i])", GATES, fixedpoint16.logistic(GATES)),
    *((f"tanh_15(x[i], {bits})", GATES, fixedpoint16.tanh(GATES, bits)) for bits in (0, 3, 6)),
    *((f"integer_power(x[i], {e})", SMALL, powers(SMALL, e)) for e in (0, 1, 3, 4, 31)),
    *((f"integer_power({base}, x[i])", SMALL, powers(base, SMALL)) for base in (-2, -1, 0, 1, 2, 3, TOP)),
    ("integer_power(x[i], 2)", X, powers(X, 2)),
    ("bit_length_32(i64(x[i]) - -2147483648:i64)", X, np.array([(int(x) + TOP + 1).bit_length() for x in X])),
    *((f"nibble(x[i] & 255, {number})", SHORT, (SHORT >> 4 * (number % 2) & 15) - 8) for number in (0, 6, 7)),
    ("divide_round(x[i], 7)", SHORT, divided(SHORT, 7)),
    ("divide_round(x[i], 8)", SHORT, divided(SHORT, 8)),
    (f"i32(multiply_q31(i64(x[i]), {TOP}:i64))", X, rescale.high_multiply(X, TOP)),
    *((f"i32({name}(i64(x[i]) * {LONG}:i64, {OTHER}:i64))", X, low) for name, (low, _) in WRAPPING.items()),
    *(
        (f"i32({name}(i64(x[i]) * {LONG}:i64, {OTHER}:i64) >> 32:i64)", X, high)
        for name, (_, high) in WRAPPING.items()
    ),
    ("i32(floor_quotient(f32(x[i]), 7.0:f32))", SMALL, SMALL // 7),
    ("i32(floor_remainder(f32(x[i]), -7.0:f32))", SMALL, SMALL % -7),
    ("i32(shift_round(i64(x[i]), 3:i64))", X, np.floor(X / 8 + 0.5).astype(np.int64)),
]


def test_c_and_evaluator_equal_the_references(tmp_path: Path) -> None:
    called = " ".join(call for call, _, _ in CASES)
    assert all(
        f"{name}(" in called for name in SCALAR_FUNCTIONS if name not in {f.name for f in MATH_FUNCTIONS}
    )
    kernels, calls = "", ""
    for number, (call, values, _) in enumerate(CASES):
        parameters = f"x : buffer<{len(values)}xi32> r, y : buffer<{len(values)}xi32> w"
        kernels += f"kernel m_{number}({parameters}) on cpu {{\n  for i : i32 in 0 .. {len(values)} {{\n"
        kernels += f"    y[i] = {call}\n  }}\n}}\n"
        calls += f"  call_extern m_{number}(&x{number}, &y{number})\n"
    ports = [
        f"{p}{n} : buffer<{len(v)}xi32> {a}" for p, a in ("xr", "yw") for n, (_, v, _) in enumerate(CASES)
    ]
    text = f"module m\n\n{kernels}\nentry main({', '.join(ports)}) on cpu {{\n{calls}}}\n"
    (tmp_path / "m.bw").write_text(text)
    inputs = [values.astype(np.int32) for _, values, _ in CASES]
    in_c = bytewright.compile(tmp_path / "m.bw").run(*inputs)
    evaluated = Evaluator(parse_module(text, {}, {})).run("main", {f"x{n}": x for n, x in enumerate(inputs)})
    for number, (call, _, expected) in enumerate(CASES):
        assert np.array_equal(evaluated[f"y{number}"], expected), call
        assert np.array_equal(in_c[number], expected), call


def test_comments_of_generated_c_are_not_lost_with_the_docstrings() -> None:
    """`python -OO` has no docstrings; C without comments would be another file for the same model."""
    command = [sys.executable, "-OO", "-c", "import bytewright.ir.scalar_functions"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "InternalError: _high_multiply_wide has no docstring" in done.stderr
