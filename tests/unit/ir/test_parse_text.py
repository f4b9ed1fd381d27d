"""IR as a person writes it: comments, what may be left out, constants by name and by value, places in the text."""

from __future__ import annotations

import numpy as np
import pytest

from bytewright.ir.analyses.depth import MAX_DEPTH
from bytewright.ir.data import TensorData
from bytewright.ir.prim import Access, BufferParameter, For, If, ParameterRole, Seq
from bytewright.ir.text.modules import ParsedModule, module_data, parse_text, print_module
from bytewright.ir.text.reader import Constants, ParseError
from bytewright.ir.types import DType
from bytewright.ops.registry import OPERATIONS

BY_HAND = """\
# A comment before the module.
module hand  # and behind a word

constant w : buffer<3xi16, "global"> = data<3xi16> [1, -2, 3]

kernel k(
    x : buffer<4xf32> r,         # aligned to its elements, an activation
    "for" : buffer<4xf32, align=16> w activation,
    gain : f32
) on cpu {
  for i : i32 in 0 .. 4 {
    if i < 1 { "for"[i] = x[i] * gain }
    else if i < 2 { "for"[i] = 0:f32 }
    else { "for"[i] = x[i] }
  }
}
"""


def read(text: str, **named: np.ndarray) -> ParsedModule:
    by_name = {name: TensorData.from_array(array, _DTYPES[array.dtype.str]) for name, array in named.items()}
    return parse_text(text, Constants(by_name=by_name), OPERATIONS)


_DTYPES = {dtype.numpy.str: dtype for dtype in DType}


def refusal(text: str, **named: np.ndarray) -> ParseError:
    with pytest.raises(ParseError) as caught:
        read(text, **named)
    return caught.value


def test_comments_defaults_and_values_are_read():
    module = read(BY_HAND).module
    assert module.constant_buffers[0].data.array.tolist() == [1, -2, 3]
    assert module.constant_buffers[0].buffer.alignment == 2
    source, result = module.kernels[0].buffer_parameters
    assert (source.buffer.alignment, source.access, source.role) == (4, Access.READ, ParameterRole.ACTIVATION)
    assert (result.buffer.alignment, result.buffer.name) == (16, "for")
    text = print_module(module)
    assert print_module(parse_text(text, Constants(module_data(module)), OPERATIONS).module) == text


def test_nodes_know_where_they_stand():
    parsed = read(BY_HAND)
    kernel = parsed.module.kernels[0]
    loop = kernel.body.statements[0]
    assert isinstance(loop, For)
    branch = loop.body.statements[0]
    assert isinstance(branch, If)
    assert isinstance(branch.otherwise, Seq)
    places = {
        "constant": parsed.place_of(parsed.module.constant_buffers[0]),
        "kernel": parsed.place_of(kernel),
        "parameter": parsed.place_of(kernel.parameters[1]),
        "scalar": parsed.place_of(kernel.parameters[2]),
        "loop": parsed.place_of(loop),
        "branch": parsed.place_of(branch),
        "second branch": parsed.place_of(branch.otherwise.statements[0]),
        "store": parsed.place_of(branch.then.statements[0]),
    }
    assert {name: str(place) for name, place in places.items()} == {
        "constant": "line 4, column 1",
        "kernel": "line 6, column 8",
        "parameter": "line 8, column 5",
        "scalar": "line 9, column 5",
        "loop": "line 11, column 3",
        "branch": "line 12, column 5",
        "second branch": "line 13, column 10",
        "store": "line 12, column 16",
    }
    assert parsed.place_of(BufferParameter(kernel.buffer_parameters[0].buffer, Access.READ)) is None


def test_constants_by_name_are_what_the_text_says():
    text = 'module m\nconstant w : buffer<2x2xi8, "global"> = data<2x2xi8> "weights/1"'
    weights = np.array([[1, 2], [3, 4]], np.int8)
    by_name = {"weights/1": TensorData.from_array(weights, DType.I8)}
    parsed = parse_text(text, Constants(by_name=by_name), {})
    assert np.array_equal(parsed.module.constant_buffers[0].data.array, weights)
    other = {"weights/1": TensorData.from_array(weights.reshape(4), DType.I8)}
    with pytest.raises(
        ParseError, match=r"line 2, column 54: 'weights/1' is tensor<4xi8>, not tensor<2x2xi8>"
    ):
        parse_text(text, Constants(by_name=other), {})


def test_a_digest_of_other_bytes_is_refused():
    data = TensorData.from_array(np.zeros(4, np.int8), DType.I8)
    text = f"module m\nconstant w : buffer<4xi16> = data<4xi16> {data.digest}"
    with pytest.raises(ParseError, match=r"tensor<4xi16> has 8 B, the bytes of \w+ are 4"):
        parse_text(text, Constants({data.digest: data}), {})


def body(text: str) -> str:
    """A module whose one statement stands in line 2 from column 1 on."""
    return (
        f"module m kernel k(x : buffer<4xi32> r, y : buffer<4xi32> w, n : i32, f : f32) on cpu {{\n{text}\n}}"
    )


@pytest.mark.parametrize(
    ("text", "place", "reason", "help_text"),
    [
        ("y[0] = z", "2:8", "no variable 'z' is defined here", None),
        ("y[0] = nn", "2:8", "no variable 'nn' is defined here", "did you mean 'n'?"),
        ("y[0] = n/n", "2:8", "no variable 'n/n' is defined here", "a division has spaces: n / n"),
        ("y[0] = x", "2:8", "'x' is a buffer", "an element of it is x[...], its address &x"),
        ("n[0] = 1", "2:1", "'n' is a variable, not a buffer", None),
        ("xx[0] = 1", "2:1", "no buffer 'xx' is defined here", "did you mean 'x'?"),
        ("k(&x)", "2:1", "'k' is no statement", "a call is written call_extern k(...)"),
        ("while 1", "2:1", "no statement begins with 'while'", "there are for, if, let, allocate, view"),
        ("y[0] = 1.5", "2:8", "1.5 is no i32", "1.5:f32"),
        ("y[0] = 1.5:i16", "2:8", "1.5 is no i16", None),
        ("y[0] = 300:i8", "2:8", "300 is no i8, which is -128 to 127", None),
        ("y[0] = 2147483648", "2:8", "2147483648 is no i32", None),
        ("y[0] = cbrtf(f)", "2:8", "'cbrtf' of 1 operands does not exist", "there are expf, tanhf"),
        ("let in : i32 = 1", "2:5", "'in' is a word of the language", 'as a name, write "in"'),
        ("for i : i32 in 0 .. 4 {", "1:86", "this block does not end", "close it with '}'"),
        ("allocate a : buffer<4xi8, scope=1>", "2:27", "expected a scope in quotes", None),
        ('allocate a : buffer<4xi8, "local.x">', "2:27", "scope 'local.x': 'local' takes no tag", None),
        ("allocate a : buffer<4xi8> {b=1.5}", "2:28", "annotation 'b' is a whole number, a text", None),
        ("allocate a : buffer<4xi8> {b=true}", "2:28", "annotation 'b' is a whole number, a text", None),
        ("allocate a : buffer<4xi8> {b=1, b=2}", "2:33", "'b' stands twice", None),
        ("call_extern k(&x) {operator=1}", "2:19", "a call has no attribute 'operator'", None),
        ('call_extern k(&x) {operators="a"}', "2:19", "operators is a tuple of texts", None),
        (
            'call_extern k(&x) {touched_by=("cpu",)}',
            "2:19",
            "touched_by is a tuple of devices for each",
            None,
        ),
        ('call_extern k(&x) @ "\\q"', "2:21", "this text in quotes has an escape", None),
        ('call_extern k(&x) @ "\\ud800"', "2:21", "this text in quotes has an escape", None),
        ("y[0] = " + "9" * 5000, "2:8", "a number has at most 400 digits, not 5000", None),
        ("y[0] = " + "(" * 9999, None, f"this is more than {MAX_DEPTH} levels deep", None),
        ("y[0] = 0" + " + n" * 9999, None, f"this is more than {MAX_DEPTH} levels deep", None),
        ("y[0] = " + "i32(" * 9999, None, f"this is more than {MAX_DEPTH} levels deep", None),
        ("{" * 9999, None, f"this is more than {MAX_DEPTH} levels deep", None),
        ("if n < 1 {} " + "else if n < 1 {} " * 9999, None, f"more than {MAX_DEPTH} levels deep", None),
        ("allocate a : buffer<4xi8> {b=" + "(" * 9999, None, f"more than {MAX_DEPTH} levels deep", None),
    ],
)
def test_a_mistake_in_a_statement_has_its_place_and_says_what_to_write(
    text: str, place: str | None, reason: str, help_text: str | None
):
    error = refusal(body(text))
    assert reason in error.reason
    assert help_text is None or help_text in (error.help or "")
    if place is not None:
        assert f"{error.position.line}:{error.position.column}" == place


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("constant w : buffer<4xi8> = data<4xi8> [1, 2, 3]", "tensor<4xi8> has 4 elements, 3 are given"),
        ("constant w : buffer<4xi8> = data<4xi8> [1, 2, 3, 128]", "128 is no i8"),
        ("constant w : buffer<1xi8> = data<1xi8> [1.5]", "1.5 is no i8"),
        ("constant w : buffer<1xbool> = data<1xbool> [2]", "expected 'false'"),
        ("constant w : buffer<4xi8> = data<n[1..4]xi8> [1]", "the extents of a constant are numbers"),
        ("constant w : buffer<(4*n[1..4]+2)/2xi8> = data<4xi8> [1]", "is not in lowest terms"),
        ('constant w : buffer<4xi8> = data<4xi8> "w"', "no constant with the name 'w' was given"),
        ("constant w : buffer<4xi8> = data<4xi8> 0123456789ab", "no constant with the digest 0123456789ab"),
        ("constant w : buffer<4xi8> = data<4xi8> 012", "expected a digest, a name in quotes, or '['"),
        (f"constant w : buffer<{'9' * 5000}xi8> = 1", "a number has at most"),
        (
            "func f(%x : tensor<1xi8>) -> (%y) { %y : tensor<1xi8> = clamp(%x) {minimum=0} }",
            "needs the attribute",
        ),
        (
            "func f(%x : tensor<1xi8>) -> (%y) { %y : tensor<1xi8> = clamp(%x) {minimum=(), maximum=1} }",
            "'minimum' of 'Clamp' is int | float, not ()",
        ),
        (
            "func f() -> () { () = clamp() {low=1} }",
            "'Clamp' has no attribute 'low'; its attributes are minimum",
        ),
        ("kernel k(a : buffer<1xi8> r) on cpu noalias(a) {}", "noalias is for a pair of parameters, not 1"),
        (
            "entry e() on cpu {} kernel k() on cpu {}",
            "expected ports, constants, functions, instructions, kernels and entries",
        ),
    ],
)
def test_a_mistake_in_a_module_is_refused(text: str, reason: str):
    assert reason in refusal(f"module m\n{text}").reason


def test_booleans_and_floats_are_written_by_value():
    text = "module m constant b : buffer<2xbool> = data<2xbool> [true, false] "
    text += "constant f : buffer<3xf32> = data<3xf32> [0.1, -inf, 3]"
    constants = read(text).module.constant_buffers
    assert constants[0].data.array.tolist() == [True, False]
    assert constants[1].data.array.tolist() == [np.float32(0.1), -np.inf, 3.0]


def test_the_deepest_text_that_is_read_prints_and_is_read_again():
    text = body("y[0] = 0" + " + n" * (MAX_DEPTH - 2))
    module = read(text).module
    assert read(print_module(module)).module == module
