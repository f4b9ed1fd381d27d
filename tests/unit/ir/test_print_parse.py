"""Printing and parsing: inverse to each other on any tree, readable on a real one, exact on what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bytewright.diagnostics import InternalError
from bytewright.ir.builder import BodyBuilder, load, region
from bytewright.ir.data import TensorData
from bytewright.ir.expr import (
    Binary,
    BinaryOperator,
    Buffer,
    Const,
    Expr,
    Load,
    Select,
    Var,
    cast,
    const,
    minimum,
)
from bytewright.ir.graph import Constant, Function, Node, Quantization, Value
from bytewright.ir.module import ConstantBuffer, Module, Port
from bytewright.ir.prim import (
    Access,
    Allocate,
    BufferParameter,
    Call,
    If,
    LoopKind,
    ParameterRole,
    PrimFunc,
    Region,
    ScalarParameter,
    Seq,
    Store,
    View,
)
from bytewright.ir.scope import GLOBAL, pool_scope
from bytewright.ir.storage import Storage
from bytewright.ir.text.expressions import format_expression
from bytewright.ir.text.graphs import print_function
from bytewright.ir.text.modules import module_data, print_module
from bytewright.ir.text.notation import format_value, wrapped
from bytewright.ir.text.primfuncs import print_primfunc
from bytewright.ir.text.reader import ParseError
from bytewright.ir.types import DType, TensorType, VirtualDevice
from bytewright.ir.where import Where
from support.ir_strategies import OPERATIONS, Plain, expressions, modules, primfuncs
from support.parsing import parse_expression, parse_module, parse_primfunc

X, Y, B = Var("x", DType.I32), Var("y", DType.I32), Var("b", DType.BOOL)
A = Buffer("a", (4, 8), DType.I8)
relaxed = settings(max_examples=80, deadline=None, suppress_health_check=list(HealthCheck))


@given(expressions((X, Y, B), (A,)))
@settings(max_examples=300, deadline=None)
def test_expressions_survive_the_text(expression: Expr):
    text = format_expression(expression)
    parsed = parse_expression(text, (X, Y, B), (A,))
    assert parsed == expression
    assert format_expression(parsed) == text


@given(primfuncs())
@relaxed
def test_primfuncs_survive_the_text(function: PrimFunc):
    text = print_primfunc(function)
    parsed = parse_primfunc(text)
    assert parsed == function
    assert print_primfunc(parsed) == text


@given(modules())
@relaxed
def test_modules_survive_the_text(module: Module):
    text = print_module(module)
    parsed = parse_module(text, module_data(module), OPERATIONS)
    assert parsed == module
    assert print_module(parsed) == text


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        ((X + Y) * 2, "(x + y) * 2"),
        (X + Y * 2, "x + y * 2"),
        (Binary(BinaryOperator.SUB, X, Binary(BinaryOperator.SUB, Y, X)), "x - (y - x)"),
        (X - Y - X, "x - y - x"),
        (Binary(BinaryOperator.SUB, X, Const(-5, DType.I32)), "x - -5"),
        (minimum(X + 1, Y), "min(x + 1, y)"),
        (cast(X, DType.I64) * 3, "i64(x) * 3:i64"),
        (Const(0.1, DType.F32), "0.1:f32"),
        (Const(float("-inf"), DType.F64), "-inf:f64"),
        (Select(X < 3, load(A, X, 0), const(1, DType.I8)), "select(x < 3, a[x, 0], 1:i8)"),
    ],
)
def test_text_of_expressions(expression: Expr, text: str):
    assert format_expression(expression) == text
    assert parse_expression(text, (X, Y), (A,)) == expression


def test_nan_is_written_and_read():
    assert format_expression(Const(float("nan"), DType.F32)) == "nan:f32"
    parsed = parse_expression("nan:f32")
    assert isinstance(parsed, Const)
    assert np.isnan(parsed.value)


def mixed_module() -> Module:
    """A graph function and a kernel with an entry, small enough to read."""
    weights = TensorData.from_array(np.arange(8, dtype=np.int8), DType.I8)
    where = Where("m.tflite", "3 (CONV_2D)", "conv")
    placed = TensorType((1, 8), DType.I8, VirtualDevice("cpu", None, pool_scope("sram")))
    node = Node(Plain(), ("x", "weights"), (Value("conv_1", placed),), where)
    quantized = Value("x", TensorType((1, 8), DType.I8), Quantization(0.5, -3))
    function = Function("graph", (quantized,), (node,), ("conv_1",))
    source, target = Buffer("source", (8,), DType.I8), Buffer("target", (8,), DType.I8, 4)
    rows = Var("rows", DType.I32)
    b = BodyBuilder(("source", "target", "rows"))
    with b.for_("i", 0, rows, LoopKind.UNROLLED) as i:
        b.store(target, i, load(source, i))
    with b.if_(rows < 3):
        b.let("t", rows + 1)
    with b.else_():
        b.view("v", region(source, 2), DType.I8, 4)
    kernel = PrimFunc(
        "copy",
        (
            BufferParameter(source, Access.READ, ParameterRole.PARAMETER, scope=GLOBAL),
            ScalarParameter(rows),
            BufferParameter(target, Access.WRITE, scope=GLOBAL),
        ),
        b.finish(),
        noalias=(("source", "target"),),
        where=where,
    )
    table = Buffer("conv/weights", (8,), DType.I8)
    b = BodyBuilder()
    result = b.allocate(Buffer("conv_1", (8,), DType.I8, 16), Storage(pool_scope("sram"), offset=64))
    b.call("copy", region(table), 8, region(result), operators=("3 (CONV_2D)",), where=where)
    return Module(
        "m",
        functions=(function,),
        constants=(Constant("weights", weights),),
        kernels=(kernel,),
        entries=(PrimFunc("main", (), b.finish()),),
        constant_buffers=(ConstantBuffer(table, weights, Storage(pool_scope("flash"))),),
        inputs=(Port("x", TensorType((1, 8), DType.I8), Quantization(0.5, -3)),),
    )


MIXED = """module m

input %x : tensor<1x8xi8> quant(0.5, -3)

constant %weights = data<8xi8> 8a851ff82ee7

constant conv/weights : buffer<8xi8, "global.flash", align=1> = data<8xi8> 8a851ff82ee7

func graph(%x : tensor<1x8xi8> quant(0.5, -3)) -> (%conv_1) {
  %conv_1 : tensor<1x8xi8, @cpu "global.sram"> = plain(%x, %weights)
      @ "m.tflite, operator 3 (CONV_2D), tensor 'conv'"
}

kernel copy(
    source : buffer<8xi8, "global", align=1> r parameter,
    rows : i32,
    target : buffer<8xi8, "global", align=4> w activation
) on cpu noalias(source, target) @ "m.tflite, operator 3 (CONV_2D), tensor 'conv'" {
  for i : i32 in 0 .. rows unrolled {
    target[i] = source[i]
  }
  if rows < 3 {
    let t : i32 = rows + 1
  } else {
    view v : buffer<4xi8, "global", align=1> = &source[2]
  }
}

entry main() on cpu {
  allocate conv_1 : buffer<8xi8, "global.sram", align=16> {pool_offset=64}
  call_extern copy(&conv/weights, 8, &conv_1) {operators=("3 (CONV_2D)",)}
      @ "m.tflite, operator 3 (CONV_2D), tensor 'conv'"
}
"""


def test_text_of_a_mixed_module():
    assert print_module(mixed_module()) == MIXED
    assert parse_module(MIXED, module_data(mixed_module()), OPERATIONS) == mixed_module()


def test_layout_means_nothing():
    squeezed = " ".join(MIXED.split())
    assert parse_module(squeezed, module_data(mixed_module()), OPERATIONS) == mixed_module()


def test_weights_never_appear():
    secret = np.array([101, 103, 107, 109] * 4, np.int8)
    module = Module("m", constants=(Constant("w", TensorData.from_array(secret, DType.I8)),))
    assert "101" not in print_module(module)
    assert TensorData.from_array(secret, DType.I8).digest in print_module(module)


def test_equal_bytes_of_different_types_stay_apart():
    zeros = (TensorData.from_array(np.zeros(8), DType.I8), TensorData.from_array(np.zeros(2), DType.I32))
    module = Module("m", constants=tuple(Constant(f"z{i}", data) for i, data in enumerate(zeros)))
    assert len(module_data(module)) == 1
    assert parse_module(print_module(module), module_data(module), {}) == module


def test_notes_stand_under_their_lines():
    module = mixed_module()
    loop = module.kernels[0].body.statements[0]
    assert "  for i : i32 in 0 .. rows unrolled {\n  ^ too long\n    target" in print_primfunc(
        module.kernels[0], notes={id(loop): ["too long"]}
    )
    node = module.functions[0].nodes[0]
    assert "tensor 'conv'\"\n  ^ one\n  ^ two\n}" in print_function(
        module.functions[0], {id(node): ["one", "two"]}
    )


@given(
    st.lists(
        st.text(alphabet='ab", \\', min_size=1, max_size=40).map(lambda t: t.replace('"', "")), max_size=9
    )
)
def test_wrapping_keeps_the_words_and_the_length(words: list[str]):
    text = " ".join(["word", *words]).rstrip()
    lines = wrapped(text, "  ")
    assert " ".join(" ".join(lines).split()) == " ".join(text.split())
    assert all(len(line) <= 110 for line in lines)


def test_quotes_are_not_broken():
    lines = wrapped('first "' + "long text " * 20 + '" last', "")
    assert any(line.count('"') == 2 for line in lines)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x + ghost", "line 1, column 5: no variable 'ghost' is defined here"),
        ("a[x, 0", r"expected '\]', found the end of the text"),
        ("select(x, y)", "column 1: 'select' of 2 operands does not exist"),
        ("x y", "expected the end, found 'y'"),
        ("ghost[0]", "no buffer 'ghost' is defined here"),
        ("", "expected a name"),
    ],
)
def test_what_is_no_expression_is_refused(text: str, message: str):
    with pytest.raises(ParseError, match=message):
        parse_expression(text, (X, Y), (A,))


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("= plain(", "= fancy(", "line 10, column .*'fancy' is no operator"),
        (
            "8a851ff82ee7",
            "8a851ff82ee8",
            "line 5, column .*no constant with the digest 8a851ff82ee8 was given",
        ),
        ("rows : i32", "rows : i33", "an element type"),
        ("r parameter", "q parameter", "an access \\(r, w, rw\\), found 'q"),
        ("\nentry", "\nfunc", "functions, instructions, kernels and entries, in this order"),
        ('"global.flash"', '"globalfoo"', "there is no rank 'globalfoo'"),
    ],
)
def test_what_is_no_module_is_refused(before: str, after: str, message: str):
    with pytest.raises(ParseError, match=message):
        parse_module(MIXED.replace(before, after), module_data(mixed_module()), OPERATIONS)


def test_attributes_of_unknown_kinds_are_refused():
    with pytest.raises(InternalError, match="a value of type list cannot be an attribute"):
        format_value([1])


def test_a_block_after_a_statement_is_not_taken_for_its_attributes():
    """Braces follow a call or an allocation in both cases."""
    inner = Buffer("s", (2,), DType.I8)
    stores = (
        Store(inner, (const(0),), const(1, DType.I8)),
        Allocate(Buffer("t", (2,), DType.I8), Storage(GLOBAL)),
    )
    blocks = [Seq(()), Seq((Seq(()),)), *(Seq((store,)) for store in stores), Seq((Call("f", ()),))]
    for block in blocks:
        for before in (Call("g", ()), Call("g", (), operators=("0 (ADD)",))):
            body = Seq((Allocate(inner, Storage(GLOBAL)), block, before, block, before))
            module = Module("m", kernels=(PrimFunc("k", (), body),))
            assert parse_module(print_module(module), {}, {}) == module


@pytest.mark.parametrize("has_condition", [False, True])
def test_a_branch_after_a_view_is_not_taken_for_its_condition(has_condition: bool):
    """An `if` follows a view in both cases, and an `else` both."""
    inner, shown = Buffer("s", (2,), DType.I8), Buffer("v", (1,), DType.I8)
    condition = Binary(BinaryOperator.LT, cast(Load(shown, (const(0),)), DType.I32), const(3))
    stores = [Seq((Store(inner, (const(0),), const(value, DType.I8)),)) for value in (1, 2)]
    before = Binary(BinaryOperator.LT, cast(Load(inner, (const(0),)), DType.I32), const(3))
    view = View(shown, Region(inner), before, Region(inner)) if has_condition else View(shown, Region(inner))
    body = Seq((Allocate(inner, Storage(GLOBAL)), view, If(condition, *stores)))
    module = Module("m", kernels=(PrimFunc("k", (), body),))
    assert parse_module(print_module(module), {}, {}) == module
