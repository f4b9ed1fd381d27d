"""Expressions as C: what a compiler makes of the text is what the expression means."""

from __future__ import annotations

import ctypes
import re
import subprocess
from pathlib import Path

import numpy as np
import pytest

from bytewright.codegen.expressions import C_TYPES, c_element, c_expression, c_stored
from bytewright.codegen.kernels import kernels_header, kernels_source
from bytewright.ir.expr import (
    TRUE,
    Buffer,
    Cast,
    Const,
    Expr,
    Load,
    RingRows,
    Var,
    cast,
    const,
    minimum,
    select,
)
from bytewright.ir.module import Module
from bytewright.ir.prim import Access, BufferParameter, PrimFunc, ScalarParameter, Seq, Store
from bytewright.ir.scalar_functions import EXP
from bytewright.ir.scope import GLOBAL
from bytewright.ir.types import DType
from bytewright.naming.operator_functions import FUNCTIONS
from bytewright.record.names import Names
from support.evaluation import run_primfunc
from support.random_expressions import RESULTS, STORED, Expressions, Valued

I8, U8, I16, I32, I64, F32, F64 = DType.I8, DType.U8, DType.I16, DType.I32, DType.I64, DType.F32, DType.F64
FLAGS = ("-std=c99", "-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-ffp-contract=off")
X, Y = Var("x", I32), Var("y", I32)
NUM_EXPRESSIONS = 250


def target(dtype: DType, count: int) -> Buffer:
    return Buffer(f"to_{dtype.value}", (count,), dtype, dtype.size_bytes)


def function_of(source: Expressions, drawn: dict[DType, list[Valued]]) -> PrimFunc:
    """Stores every expression to its place in the array of its type."""
    stores = tuple(
        Store(target(dtype, len(values)), (Const(number, I32),), valued.expr)
        for dtype, values in drawn.items()
        for number, valued in enumerate(values)
    )
    reads = tuple(BufferParameter(source.buffer(dtype), Access.READ, scope=GLOBAL) for dtype in STORED)
    writes = tuple(
        BufferParameter(target(dtype, len(drawn[dtype])), Access.WRITE, scope=GLOBAL) for dtype in RESULTS
    )
    scalars = tuple(ScalarParameter(Var(name, I32)) for name in source.variables)
    return PrimFunc("m_f", (*reads, *writes, *scalars), Seq(stores))


def run_c(
    function: PrimFunc, source: Expressions, counts: dict[DType, int], folder: Path
) -> dict[str, np.ndarray]:
    """Compiles the function and calls it."""
    module = Module("m", kernels=(function,))
    (folder / "m_kernels.h").write_text(kernels_header(module, Names("m")), encoding="utf-8")
    (folder / "m_kernels.c").write_text(kernels_source(module, Names("m")), encoding="utf-8")
    library = folder / "m.so"
    command = ["gcc", *FLAGS, "-O1", "-shared", "-fPIC", "-o", str(library)]
    done = subprocess.run(
        [*command, str(folder / "m_kernels.c"), "-lm"], check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[:3000]
    # Random constants make comparisons that are always true; nothing else may be worth a warning.
    kinds = set(re.findall(r"\[(-W[a-z0-9=-]+)\]", done.stderr))
    assert kinds <= {"-Wtype-limits", "-Wbool-compare", "-Wtautological-compare"}, done.stderr[:3000]
    outputs = {target(d, n).name: np.zeros(n, d.numpy) for d, n in counts.items()}
    inputs = [np.ascontiguousarray(source.data[dtype]) for dtype in STORED]
    pointers = [array.ctypes.data_as(ctypes.c_void_p) for array in (*inputs, *outputs.values())]
    ctypes.CDLL(str(library)).m_f(*pointers, *(ctypes.c_int32(v) for v in source.variables.values()))
    return outputs


@pytest.mark.parametrize("seed", [0, *(pytest.param(n, marks=pytest.mark.slow) for n in range(1, 4))])
def test_c_and_the_evaluator_agree_on_random_expressions(seed: int, tmp_path: Path) -> None:
    source = Expressions(seed)
    drawn = {
        dtype: [source.draw(dtype, 1 + number % 5) for number in range(NUM_EXPRESSIONS)] for dtype in RESULTS
    }
    function = function_of(source, drawn)
    arguments = {source.buffer(d).name: source.data[d].reshape(4, -1) for d in STORED}
    meant = run_primfunc(function, {**arguments, **source.variables})
    compiled = run_c(function, source, dict.fromkeys(RESULTS, NUM_EXPRESSIONS), tmp_path)
    for dtype in RESULTS:
        name = target(dtype, NUM_EXPRESSIONS).name
        for number, valued in enumerate(drawn[dtype]):
            text = c_expression(valued.expr)
            assert meant[name][number] == valued.value, text
            assert compiled[name][number] == valued.value, text


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        (X + Y * 2, "x + (y * 2)"),
        ((X + Y) * 2, "(x + y) * 2"),
        (X - (Y - 1), "x - (y - 1)"),
        (X - Y - 1, "x - y - 1"),
        (X % 3 * Y, "(x % 3) * y"),
        (X * (Y % 3), "x * (y % 3)"),
        ((X << 2) + 1, "(x << 2) + 1"),
        (X + 1 >> 2, "(x + 1) >> 2"),
        (X & Y + 1, "x & (y + 1)"),
        (minimum(X, Y + 1), "min_i32(x, y + 1)"),
        (select(X < Y, X, Y) + 1, "((x < y) ? x : y) + 1"),
        (cast(X + Y, I8), "(int8_t)(x + y)"),
        (cast(X, I64) * 3, "(int64_t)x * INT64_C(3)"),
        (X - const(-5), "x + 5"),
        (X * -5, "x * -5"),
        (const(-(2**31)), "INT32_MIN"),
        (const(-(2**63), I64), "INT64_MIN"),
        (const(-7, I64), "-INT64_C(7)"),
        (EXP(cast(X, F32)), "expf((float)x)"),
        (cast(cast(X, I64) >> 31, I32), "(int32_t)((int64_t)x >> 31)"),
    ],
)
def test_texts(expression: Expr, text: str) -> None:
    assert c_expression(expression) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.5, "0.5f"),
        (1.0, "1.0f"),
        (-2.5, "-2.5f"),
        (1e-30, "1e-30f"),
        (float(np.float32(0.1)), "0.1f"),
        (float(np.float32(1 / 3)), "0.33333334f"),
        (3.4028234663852886e38, "3.4028235e+38f"),
        (-0.0, "-0.0f"),
        (float("inf"), "INFINITY"),
        (float("-inf"), "-INFINITY"),
        (1e39, "INFINITY"),
        (float("nan"), "NAN"),
        (-float("nan"), "-NAN"),
    ],
)
def test_float_constants_are_the_shortest_that_read_back(value: float, text: str) -> None:
    assert c_expression(const(value, F32)) == text
    with np.errstate(over="ignore"):
        expected = np.float32(value)
    found = text if "N" in text else text.removesuffix("f")
    assert np.float32(found).tobytes() == expected.tobytes()


def test_floats_round_trip() -> None:
    generator = np.random.default_rng(9)
    bits = generator.integers(0, 2**32, 3000, dtype=np.uint64).astype(np.uint32)
    for value in bits.view(np.float32):
        if np.isfinite(value):
            assert np.float32(c_expression(const(float(value), F32)).removesuffix("f")) == value
    for value in generator.normal(size=300) * 10.0 ** generator.integers(-300, 300, 300):
        assert float(c_expression(const(float(value), F64))) == value


def test_elements() -> None:
    matrix = Buffer("m", (3, 4), I8, 1)
    ring = Buffer("r", (1, 9, 4), I8, 1, RingRows(1, 3))
    scalar = Buffer("s", (), I8, 1)
    assert c_element(matrix, (X, Y)) == "m[(x * 4) + y]"
    assert c_element(matrix, (const(2), const(1))) == "m[9]"
    assert c_element(ring, (const(0), X, Y)) == "r[((x % 3) * 4) + y]"
    assert c_element(scalar, ()) == "s"
    assert c_element(Buffer("p", (1,), I8, 1), (const(0),)) == "p[0]"


def test_truth_values() -> None:
    in_memory, variable = Buffer("m", (3,), DType.BOOL, 1), Buffer("v", (), DType.BOOL, 1)
    assert c_expression(Load(in_memory, (X,))) == "m[x] != 0"
    assert c_expression(Load(variable, ())) == "v"
    assert c_stored(in_memory, X < Y) == "(uint8_t)((x < y) ? 1 : 0)"
    assert c_stored(in_memory, TRUE) == "1"
    assert c_stored(variable, X < Y) == "x < y"
    assert c_expression(Cast(X, DType.BOOL)) == "x != 0"
    assert c_expression(Cast(X < Y, I32)) == "x < y"
    assert c_expression(TRUE) == "1"


def test_every_type_has_a_c_type_of_its_width() -> None:
    assert set(C_TYPES) == set(DType)
    assert FUNCTIONS["min_i64"].result_type is I64
