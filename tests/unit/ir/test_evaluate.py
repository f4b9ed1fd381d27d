"""The evaluator: agrees with numpy, and refuses everything that C leaves undefined."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bytewright.diagnostics import InternalError
from bytewright.ir.builder import BodyBuilder, load, region
from bytewright.ir.data import TensorData
from bytewright.ir.expr import (
    BinaryOperator,
    Buffer,
    Cast,
    Const,
    Expr,
    Load,
    RingRows,
    ScalarFunction,
    Var,
    binary,
    both,
    cast,
    clamp,
    const,
    equal,
    maximum,
    minimum,
    select,
)
from bytewright.ir.module import ConstantBuffer, Module
from bytewright.ir.prim import (
    Access,
    BufferParameter,
    For,
    LoopKind,
    ParameterRole,
    PrimFunc,
    ScalarParameter,
    Seq,
)
from bytewright.ir.rewrite import expand_unrolled
from bytewright.ir.scalar_functions import EXP, FLOOR, ROUND, SQRT, TANH
from bytewright.ir.scope import LOCAL, WORKSPACE, pool_scope
from bytewright.ir.storage import Storage
from bytewright.ir.types import DType, Symbol
from support.evaluate.evaluate import Evaluator
from support.evaluation import run_primfunc


def compute(build: Callable[..., Expr], dtype: DType, *values: tuple[DType, int | float]) -> object:
    """One expression over scalar parameters, run."""
    variables = [Var(f"p{i}", kind) for i, (kind, _) in enumerate(values)]
    out = Buffer("out", (1,), dtype)
    b = BodyBuilder()
    b.store(out, 0, build(*variables))
    parameters = (BufferParameter(out, Access.WRITE), *(ScalarParameter(v) for v in variables))
    arguments = {f"p{i}": value for i, (_, value) in enumerate(values)}
    return run_primfunc(PrimFunc("f", parameters, b.finish()), arguments)["out"][0]


def function(b: BodyBuilder, *parameters: BufferParameter | ScalarParameter) -> PrimFunc:
    return PrimFunc("f", parameters, b.finish())


I8_SPACE = [(DType.I8, low) for low in range(-128, 128)]


def conv_3x3(unrolled: bool) -> PrimFunc:
    """A padded 3x3 convolution, int8 to int32, with the accumulators in scalars."""
    source = Buffer("source", (8, 8, 8), DType.I8)
    weights = Buffer("weights", (8, 3, 3, 8), DType.I8)
    target = Buffer("target", (8, 8, 8), DType.I32, 4)
    kind = LoopKind.UNROLLED if unrolled else LoopKind.SERIAL
    b = BodyBuilder()
    with b.for_("y", 0, 8) as y, b.for_("x", 0, 8) as x, b.for_("o", 0, 8) as o:
        total = b.scalar("total", DType.I32, 0)
        with b.for_("ky", 0, 3, kind) as ky, b.for_("kx", 0, 3, kind) as kx:
            row, column = b.let("row", y + ky - 1), b.let("column", x + kx - 1)
            inside = both(both(row >= 0, row < 8), both(column >= 0, column < 8))
            with b.if_(inside), b.for_("c", 0, 8) as c:
                product = cast(load(source, row, column, c), DType.I32) * cast(
                    load(weights, o, ky, kx, c), DType.I32
                )
                b.add_to(total, (), product)
        b.store(target, (y, x, o), load(total))
    return PrimFunc(
        "conv",
        (
            BufferParameter(source, Access.READ, scope=WORKSPACE),
            BufferParameter(weights, Access.READ, ParameterRole.PARAMETER),
            BufferParameter(target, Access.WRITE, scope=WORKSPACE),
        ),
        expand_unrolled(b.finish()),
    )


@pytest.mark.parametrize("unrolled", [False, True])
def test_convolution_agrees_with_numpy_in_less_than_a_second(unrolled: bool):
    random = np.random.default_rng(1)
    source = random.integers(-128, 128, (8, 8, 8), np.int8)
    weights = random.integers(-128, 128, (8, 3, 3, 8), np.int8)
    started = time.process_time()
    got = run_primfunc(conv_3x3(unrolled), {"source": source, "weights": weights})["target"]
    assert time.process_time() - started < 1.0
    padded = np.pad(source.astype(np.int32), ((1, 1), (1, 1), (0, 0)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(0, 1))
    expected = np.einsum("yxckl,oklc->yxo", windows, weights.astype(np.int32))
    assert np.array_equal(got, expected)


@given(st.integers(-(2**31), 2**31 - 1), st.integers(-(2**31), 2**31 - 1))
@settings(max_examples=60, deadline=None)
def test_integer_operators_agree_with_exact_integers(a: int, b: int):
    operators: dict[BinaryOperator, int | None] = {
        BinaryOperator.ADD: a + b,
        BinaryOperator.SUB: a - b,
        BinaryOperator.MUL: a * b,
        BinaryOperator.MIN: min(a, b),
        BinaryOperator.MAX: max(a, b),
        BinaryOperator.AND: a & b,
        BinaryOperator.DIV: None if b == 0 else int(np.fix(np.longdouble(a) / np.longdouble(b))),
        BinaryOperator.MOD: None if b == 0 else int(np.fmod(np.int64(a), np.int64(b))),
    }
    for operator, exact in operators.items():

        def run(operator: BinaryOperator = operator) -> object:
            i32 = DType.I32
            return compute(lambda x, y: binary(operator, x, y), i32, (i32, a), (i32, b))

        if exact is None or not -(2**31) <= exact < 2**31:
            with pytest.raises(InternalError, match=r"overflows i32|by zero"):
                run()
        else:
            assert run() == exact


@pytest.mark.parametrize("dtype", [DType.I16, DType.I32, DType.I64])
def test_overflow_by_one_is_refused_and_the_bound_is_not(dtype: DType):
    low, high = dtype.bounds
    assert compute(lambda x: x + 1, dtype, (dtype, high - 1)) == high
    with pytest.raises(InternalError, match=rf"'\+' overflows {dtype.value} with {high + 1}"):
        compute(lambda x: x + 1, dtype, (dtype, high))
    with pytest.raises(InternalError, match="'-' overflows"):
        compute(lambda x: x - 1, dtype, (dtype, low))
    with pytest.raises(InternalError, match="'/' overflows"):
        compute(lambda x, y: binary(BinaryOperator.DIV, x, y), dtype, (dtype, low), (dtype, -1))
    with pytest.raises(InternalError, match="'<<' overflows"):
        compute(lambda x: x << 1, dtype, (dtype, high))


def test_narrow_integers_have_no_arithmetic():
    i8 = DType.I8
    with pytest.raises(InternalError, match="'min' is not defined on i8"):
        compute(minimum, i8, (i8, 1), (i8, 2))


@pytest.mark.parametrize("amount", [-1, 32, 33])
def test_shift_out_of_range_is_refused(amount: int):
    i32 = DType.I32
    with pytest.raises(InternalError, match=f"shift by {amount} of 32 bits"):
        compute(lambda x, y: x >> y, i32, (i32, -8), (i32, amount))


def test_a_negative_value_is_not_shifted_left():
    i32 = DType.I32
    with pytest.raises(InternalError, match="-3 is shifted left"):
        compute(lambda x, y: x << y, i32, (i32, -3), (i32, 2))
    assert compute(lambda x, y: x << y, i32, (i32, 3), (i32, 2)) == 12


def test_right_shift_is_arithmetic():
    assert compute(lambda x: x >> 1, DType.I32, (DType.I32, -7)) == -4


@pytest.mark.parametrize("divide", [lambda x, y: x // y, lambda x, y: x % y])
def test_division_by_zero_is_refused(divide: Callable[..., Expr]):
    with pytest.raises(InternalError, match="division of 5 by zero"):
        compute(divide, DType.I32, (DType.I32, 5), (DType.I32, 0))


@given(st.integers(-(2**63), 2**63 - 1), st.sampled_from([DType.I8, DType.U8, DType.I16, DType.I32]))
@settings(max_examples=60, deadline=None)
def test_casts_of_integers_wrap(value: int, dtype: DType):
    expected = np.array(value, np.int64).astype(dtype.numpy)
    assert compute(lambda x: Cast(x, dtype), dtype, (DType.I64, value)) == expected


@given(st.integers(-(2**63), 2**63 - 1))
@settings(max_examples=60, deadline=None)
def test_cast_of_i64_to_f32_rounds_once(value: int):
    assert compute(lambda x: Cast(x, DType.F32), DType.F32, (DType.I64, value)) == np.float32(np.int64(value))


def test_cast_of_i64_to_f32_where_rounding_twice_is_wrong():
    value = 2**54 + 2**30 + 1  # a double drops the last bit, then the tie goes to even
    assert np.float32(float(value)) != np.float32(np.int64(value))
    assert compute(lambda x: Cast(x, DType.F32), DType.F32, (DType.I64, value)) == np.float32(np.int64(value))


def test_casts_of_floats_truncate_or_refuse():
    assert compute(lambda x: Cast(x, DType.I8), DType.I8, (DType.F32, -127.9)) == -127
    assert compute(lambda x: Cast(x, DType.BOOL), DType.BOOL, (DType.F32, 0.5)) == True  # noqa: E712
    assert compute(lambda x: Cast(x > 1.0, DType.I32), DType.I32, (DType.F32, 1.5)) == 1
    for value in (200.0, float("nan"), float("inf")):
        with pytest.raises(InternalError, match="does not fit i8"):
            compute(lambda x: Cast(x, DType.I8), DType.I8, (DType.F32, value))


floats = st.floats(width=32, allow_nan=False)


@given(floats, floats)
@settings(max_examples=80, deadline=None)
def test_f32_is_rounded_at_every_operation(a: float, b: float):
    x, y = np.float32(a), np.float32(b)
    with np.errstate(all="ignore"):
        expected = (x * y + x) / y - y
    got = compute(lambda p, q: (p * q + p) / q - q, DType.F32, (DType.F32, a), (DType.F32, b))
    assert np.array_equal(np.float32(got), expected, equal_nan=True)  # type: ignore[arg-type]


def test_f64_keeps_its_precision():
    assert compute(lambda x: x + 1e-12, DType.F64, (DType.F64, 1.0)) == 1.0 + 1e-12


@pytest.mark.parametrize(
    ("mathematical", "value", "expected"),
    [
        (EXP, 1.0, np.float32(np.exp(np.float64(1.0)))),
        (EXP, 200.0, np.float32(np.inf)),
        (TANH, 0.5, np.float32(np.tanh(np.float64(0.5)))),
        (SQRT, 2.0, np.sqrt(np.float32(2.0))),
        (ROUND, -2.5, np.float32(-3.0)),
        (ROUND, 0.49999997, np.float32(0.0)),
        (FLOOR, -0.5, np.float32(-1.0)),
    ],
)
def test_math_functions(mathematical: ScalarFunction, value: float, expected: np.float32):
    got = compute(mathematical, DType.F32, (DType.F32, value))
    assert got == expected


def test_select_and_logic_evaluate_only_what_is_chosen():
    table = Buffer("table", (4,), DType.I32)
    out = Buffer("out", (2,), DType.I32)
    n = Var("n", DType.I32)
    b = BodyBuilder()
    b.store(out, 0, select(n < 4, load(table, n), const(-1)))
    b.store(out, 1, Cast(both(n < 4, equal(load(table, n), 12)), DType.I32))
    f = function(
        b, BufferParameter(table, Access.READ), BufferParameter(out, Access.WRITE), ScalarParameter(n)
    )
    values = np.array([10, 11, 12, 13], np.int32)
    assert run_primfunc(f, {"table": values, "n": 2})["out"].tolist() == [12, 1]
    assert run_primfunc(f, {"table": values, "n": 9})["out"].tolist() == [-1, 0]


def test_clamp_and_choice_of_branches():
    out = Buffer("out", (1,), DType.I32)
    n = Var("n", DType.I32)
    b = BodyBuilder()
    with b.if_(n < 0):
        b.store(out, 0, clamp(n, -5, 5))
    with b.else_():
        b.store(out, 0, maximum(n, 100))
    f = function(b, BufferParameter(out, Access.WRITE), ScalarParameter(n))
    assert [run_primfunc(f, {"n": v})["out"][0] for v in (-9, -3, 7, 200)] == [-5, -3, 100, 200]


@pytest.mark.parametrize(("index", "axis"), [((0, 4), 1), ((2, 0), 0), ((-1, 0), 0), ((0, -1), 1)])
def test_index_outside_its_axis_is_refused_even_inside_the_buffer(index: tuple[int, int], axis: int):
    a = Buffer("a", (2, 4), DType.I32)
    y, x = Var("y", DType.I32), Var("x", DType.I32)
    scalars = (ScalarParameter(y), ScalarParameter(x))
    values = {"y": index[0], "x": index[1]}
    b = BodyBuilder()
    b.store(a, (y, x), 1)
    message = f"index {index[axis]} of 'a' is outside axis {axis} of extent {a.shape[axis]}"
    with pytest.raises(InternalError, match=message):
        run_primfunc(function(b, BufferParameter(a, Access.WRITE), *scalars), values)
    out = Buffer("out", (1,), DType.I32)
    b = BodyBuilder()
    b.store(out, 0, load(a, y, x))
    f = function(b, BufferParameter(a, Access.READ), BufferParameter(out, Access.WRITE), *scalars)
    with pytest.raises(InternalError, match=message):
        run_primfunc(f, {"a": np.zeros((2, 4), np.int32), **values})


@pytest.mark.parametrize("shape", [(), (3,)])
def test_read_of_memory_that_nothing_wrote_is_refused(shape: tuple[int, ...]):
    out = Buffer("out", (1,), DType.I32)
    b = BodyBuilder()
    scratch = b.allocate(Buffer("scratch", shape, DType.I32), Storage(LOCAL))
    indices = tuple(1 for _ in shape)
    b.store(out, 0, load(scratch, *indices) if shape else Load(scratch, ()))
    with pytest.raises(InternalError, match="of 'scratch' is read before it is written"):
        run_primfunc(function(b, BufferParameter(out, Access.WRITE)), {})


def test_allocation_in_a_loop_starts_unwritten_each_time():
    out = Buffer("out", (2,), DType.I32)
    b = BodyBuilder()
    with b.for_("i", 0, 2) as i:
        scratch = b.allocate(Buffer("scratch", (1,), DType.I32), Storage(LOCAL))
        with b.if_(i < 1):
            b.store(scratch, 0, 7)
        b.store(out, i, load(scratch, 0))
    with pytest.raises(InternalError, match="element 0 of 'scratch'"):
        run_primfunc(function(b, BufferParameter(out, Access.WRITE)), {})


def test_element_left_unwritten_is_refused_unless_allowed():
    out = Buffer("out", (3,), DType.I16)
    b = BodyBuilder()
    b.store(out, 0, const(1, DType.I16))
    f = function(b, BufferParameter(out, Access.WRITE))
    with pytest.raises(InternalError, match="leaves element 1 of 3 of 'out' unwritten"):
        run_primfunc(f, {})
    assert Evaluator(Module("m"), (f,)).run("f", {}, require_complete=False)["out"][0] == 1


def test_store_to_what_is_only_read_is_refused():
    a = Buffer("a", (1,), DType.I32)
    b = BodyBuilder()
    b.store(a, 0, 1)
    callee = PrimFunc("g", (BufferParameter(a, Access.READ),), b.finish())
    outer = BodyBuilder()
    outer.call("g", region(a))
    caller = PrimFunc("f", (BufferParameter(a, Access.READ_WRITE),), outer.finish())
    evaluator = Evaluator(Module("m", kernels=(callee,), entries=(caller,)))
    with pytest.raises(InternalError, match="read-only"):
        evaluator.run("f", {"a": np.zeros(1, np.int32)})


def add_rows() -> PrimFunc:
    """target[i] = source[i] + bias for a row of 4."""
    source, target = Buffer("source", (4,), DType.I32), Buffer("target", (4,), DType.I32)
    bias = Var("bias", DType.I32)
    b = BodyBuilder()
    with b.for_("i", 0, 4) as i:
        b.store(target, i, load(source, i) + bias)
    return PrimFunc(
        "add",
        (
            BufferParameter(source, Access.READ),
            ScalarParameter(bias),
            BufferParameter(target, Access.WRITE),
        ),
        b.finish(),
    )


def test_calls_pass_regions_as_pointers():
    source, target = Buffer("x", (3, 4), DType.I32), Buffer("y", (3, 4), DType.I32)
    b = BodyBuilder()
    with b.for_("r", 0, 3) as r:
        b.call("add", region(source, r, 0), r * 100, region(target, 2 - r, 0))
    main = PrimFunc(
        "main",
        (
            BufferParameter(source, Access.READ, scope=WORKSPACE),
            BufferParameter(target, Access.WRITE, scope=WORKSPACE),
        ),
        b.finish(),
    )
    evaluator = Evaluator(Module("m", kernels=(add_rows(),), entries=(main,)))
    x = np.arange(12, dtype=np.int32).reshape(3, 4)
    expected = (x + np.array([[0], [100], [200]]))[::-1]
    assert np.array_equal(evaluator.run("main", {"x": x})["y"], expected)


def test_pointer_with_too_few_elements_behind_it_is_refused():
    x, y = Buffer("x", (3, 4), DType.I32), Buffer("y", (4,), DType.I32)
    b = BodyBuilder()
    b.call("add", region(x, 2, 1), 0, region(y))
    main = PrimFunc("main", (BufferParameter(x, Access.READ), BufferParameter(y, Access.WRITE)), b.finish())
    evaluator = Evaluator(Module("m", kernels=(add_rows(),), entries=(main,)))
    with pytest.raises(InternalError, match="passes elements from 9 of 12 to 'source', which has 4"):
        evaluator.run("main", {"x": np.zeros((3, 4), np.int32)})


def test_call_of_unknown_function_is_refused():
    b = BodyBuilder()
    b.call("nothing")
    with pytest.raises(InternalError, match="calls 'nothing', which is not a function of the module"):
        run_primfunc(function(b), {})


def test_constants_of_the_module_are_read_by_name():
    table = Buffer("table", (4,), DType.I16)
    data = TensorData.from_array(np.array([5, 6, 7, 8], np.int16), DType.I16)
    out = Buffer("out", (1,), DType.I16)
    b = BodyBuilder()
    b.store(out, 0, load(table, 2))
    main = PrimFunc("main", (BufferParameter(out, Access.WRITE),), b.finish())
    module = Module("m", entries=(main,), constant_buffers=(ConstantBuffer(table, data),))
    assert Evaluator(module).run("main", {})["out"].tolist() == [7]


def test_views_choose_their_source_and_are_checked():
    a, zeros, out = (Buffer(n, s, DType.I8) for n, s in (("a", (2, 3)), ("zeros", (3,)), ("out", (3,))))
    row = Var("row", DType.I32)
    b = BodyBuilder()
    inside = both(row >= 0, row < 2)
    tap = b.view("tap", region(a, row, 0), DType.I8, 3, inside, region(zeros))
    with b.for_("c", 0, 3) as c:
        b.store(out, c, load(tap, c))
    f = function(
        b,
        BufferParameter(a, Access.READ),
        BufferParameter(zeros, Access.READ),
        BufferParameter(out, Access.WRITE),
        ScalarParameter(row),
    )
    arrays = {"a": np.arange(6, dtype=np.int8).reshape(2, 3), "zeros": np.full(3, 9, np.int8)}
    assert run_primfunc(f, {**arrays, "row": 1})["out"].tolist() == [3, 4, 5]
    assert run_primfunc(f, {**arrays, "row": -1})["out"].tolist() == [9, 9, 9]
    b = BodyBuilder()
    b.view("tap", region(a, 1, 1), DType.I8, 3)
    with pytest.raises(InternalError, match="view 'tap' of 3 elements starts at element 4 of 6"):
        run_primfunc(function(b, BufferParameter(a, Access.READ)), {"a": arrays["a"]})


def test_ring_keeps_the_last_rows():
    ring = Buffer("ring", (6, 2), DType.I32, rows=RingRows(0, 2))
    out = Buffer("out", (2, 2), DType.I32)
    b = BodyBuilder()
    rows = b.allocate(ring)
    with b.for_("y", 0, 6) as y, b.for_("x", 0, 2) as x:
        b.store(rows, (y, x), y * 10 + x)
    with b.for_("y", 0, 2) as y, b.for_("x", 0, 2) as x:
        b.store(out, (y, x), load(rows, y, x))  # slots 0 and 1 hold rows 4 and 5 by now
    result = run_primfunc(function(b, BufferParameter(out, Access.WRITE)), {})["out"]
    assert result.tolist() == [[40, 41], [50, 51]]


def test_what_another_buffer_wrote_over_is_not_read():
    out = Buffer("out", (2,), DType.I32)

    def run(second_offset: int) -> list[int]:
        b = BodyBuilder()
        first = b.allocate(Buffer("first", (2,), DType.I32), Storage(pool_scope("sram"), offset=0))
        second = b.allocate(
            Buffer("second", (2,), DType.I32), Storage(pool_scope("sram"), offset=second_offset)
        )
        for index in range(2):
            b.store(first, index, 5)
        for index in range(2):
            b.store(second, index, 6)
        for index in range(2):
            b.store(out, index, load(first, index))
        return run_primfunc(function(b, BufferParameter(out, Access.WRITE)), {})["out"].tolist()

    assert run(8) == [5, 5]
    with pytest.raises(InternalError, match="element 1 of 'first' is read before it is written"):
        run(4)


def test_private_scratch_holds_nothing_of_the_turn_before():
    """Two loops that differ in nothing but what the second one says of its scratch."""
    scratch, out = Buffer("scratch", (4,), DType.I32), Buffer("out", (4,), DType.I32)
    b = BodyBuilder(("scratch", "out"))
    with b.for_("i", 0, 4) as i:
        with b.if_(i < 1):
            b.store(scratch, 0, 7)
        b.store(out, i, load(scratch, 0))
    kept = function(
        b,
        BufferParameter(scratch, Access.READ_WRITE, ParameterRole.SCRATCH),
        BufferParameter(out, Access.WRITE),
    )
    assert run_primfunc(kept, {})["out"].tolist() == [7, 7, 7, 7]
    (loop,) = kept.body.statements
    assert isinstance(loop, For)
    private = replace(kept, body=Seq((replace(loop, private=(scratch,)),)))
    with pytest.raises(InternalError, match="element 0 of 'scratch' is read before it is written"):
        run_primfunc(private, {})


def test_symbolic_extents_come_from_scalar_parameters():
    n = Symbol("n", 1, 8)
    a, out = Buffer("a", (2, n), DType.I32), Buffer("out", (1,), DType.I32)
    b = BodyBuilder()
    b.store(out, 0, load(a, 1, 0))
    f = function(
        b,
        BufferParameter(a, Access.READ),
        BufferParameter(out, Access.WRITE),
        ScalarParameter(Var("n", DType.I32)),
    )
    a3 = np.arange(6, dtype=np.int32).reshape(2, 3)
    assert run_primfunc(f, {"a": a3, "n": 3})["out"].tolist() == [3]
    with pytest.raises(InternalError, match="9 is outside the extent"):
        run_primfunc(f, {"a": np.zeros((2, 9), np.int32), "n": 9})


def test_arguments_are_checked_and_not_changed():
    a = Buffer("a", (2,), DType.I32)
    b = BodyBuilder()
    b.add_to(a, 0, 1)
    f = function(b, BufferParameter(a, Access.READ_WRITE))
    given_array = np.array([1, 2], np.int32)
    assert run_primfunc(f, {"a": given_array})["a"].tolist() == [2, 2]
    assert given_array.tolist() == [1, 2]
    for wrong in ({}, {"a": np.zeros(3, np.int32)}, {"a": np.zeros(2, np.int8)}, {"a": given_array, "z": 1}):
        with pytest.raises(InternalError, match=r"'a'|'z'"):
            run_primfunc(f, wrong)


def test_long_sums_do_not_exceed_pythons_nesting():
    out, n = Buffer("out", (1,), DType.I32), Var("n", DType.I32)
    total: Expr = n
    for number in range(400):
        total = total + n * number
    b = BodyBuilder()
    b.store(out, 0, total)
    f = function(b, BufferParameter(out, Access.WRITE), ScalarParameter(n))
    assert run_primfunc(f, {"n": 3})["out"][0] == 3 + 3 * sum(range(400))


def test_variable_that_is_not_defined_is_refused():
    with pytest.raises(InternalError, match="variable 'ghost' is not defined"):
        compute(lambda: Var("ghost", DType.I32), DType.I32)


def test_boolean_constants_and_scalars():
    out = Buffer("out", (1,), DType.BOOL)
    b = BodyBuilder()
    flag = b.scalar("flag", DType.BOOL)
    b.store(flag, (), Const(1, DType.BOOL))
    b.store(out, 0, load(flag))
    assert run_primfunc(function(b, BufferParameter(out, Access.WRITE)), {})["out"].tolist() == [True]
