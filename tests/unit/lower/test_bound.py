"""Operators that functions of the application compute: patterns, the file, facts, and what is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import bytewright
from bytewright.base.option import OptionSyntaxError
from bytewright.diagnostics import CompileError, Diagnostic
from bytewright.frontends.tflite import import_tflite
from bytewright.graph.bound.find_bound import find_bound
from bytewright.graph.bound.formula import FormulaError, Record, parse_formula
from bytewright.ir.operators import model_operators
from bytewright.ir.text.modules import parse_text
from bytewright.ir.text.reader import Constants
from bytewright.ops.registry import OPERATIONS
from bytewright.options import KernelBinding, parse_kernel_option
from bytewright.target import Target, load_target

ROOT = Path(__file__).resolve().parents[3]
DIGITS = ROOT / "examples" / "digits" / "digits.tflite"
CONV = """\
[kernel.dsp_conv]
stack = 64
arguments = [{ input = 0 }, { constant = "weights" }, { constant = "bias" }, { output = 0 }]
"""
ADD = """\
[kernel.dsp_add]
stack = 64
arguments = [{ input = 1, name = "second" }, { input = 0, name = "first" }, { output = 0 }]
"""


def compiled(folder: Path, text: str, *kernels: str, target: str | Target = "host", **options: object):
    (folder / "dsp.toml").write_text(text)
    return bytewright.compile(
        DIGITS,
        target=target,
        kernels=kernels,
        kernel_file=folder / "dsp.toml",
        **options,  # type: ignore[arg-type]
    )


def refused(
    folder: Path, text: str, *kernels: str, target: str | Target = "host", **options: object
) -> tuple[Diagnostic, ...]:
    with pytest.raises(CompileError) as caught:
        compiled(folder, text, *kernels, target=target, **options)
    return caught.value.diagnostics


def steps(model: bytewright.CompiledModel) -> dict[str, tuple[str, ...]]:
    """The operators of each step that calls a function of the application, by the step's first operator."""
    return {
        step.operators[0]: (step.kernel, *step.operators)
        for step in model.plan.steps
        if "dsp_" in step.kernel
    }


# Patterns


@pytest.mark.parametrize(
    ("pattern", "operators"),
    [
        ("CONV_2D", [0, 2, 4]),
        ("conv2d_*", [0, 2, 4]),
        ("conv2d_2", [2]),
        ("conv2d_2/out", [2]),
        ("*CONV_2D", [0, 1, 2, 4]),
        ("conv2d", []),
    ],
)
def test_a_pattern_matches_names_and_kinds(pattern: str, operators: list[int]):
    function = import_tflite(DIGITS).functions[-1]
    matching = [o.where.operator for o in model_operators(function) if o.matches(pattern)]
    assert [int((operator or "").split()[0]) for operator in matching] == operators


def test_each_operator_that_matches_is_a_call_and_nothing_joins_it(tmp_path: Path):
    model = compiled(tmp_path, CONV, "CONV_2D=dsp_conv")
    found = steps(model)
    assert {calls[0] for calls in found.values()} == {"dsp_conv"}
    assert [calls[1:] for calls in found.values()] == [("0 (CONV_2D)",), ("2 (CONV_2D)",), ("4 (CONV_2D)",)]
    assert model.plan.externals == ("dsp_conv",)


def test_an_operator_of_two_tensors_gets_them_by_position(tmp_path: Path):
    model = compiled(tmp_path, ADD, "ADD=dsp_add")
    step = next(step for step in model.plan.steps if step.kernel == "dsp_add")
    assert step.reads == ("conv2d_2/out", "conv2d_0/out")
    source = model.write(tmp_path / "out") / "src" / "digits.c"
    call = source.read_text().partition("dsp_add(")[2].partition(";")[0]
    assert call.index("CONV2D_2__OUT") < call.index("CONV2D_0__OUT") < call.index("ADD_3__OUT")


@pytest.mark.parametrize(
    ("kernel", "help_line"),
    [
        ("CONV2D=dsp_conv", "did you mean 'CONV_2D'"),
        ("conv_2d=dsp_conv", "did you mean 'CONV_2D'"),
        ("CONV_2D=dsp_con", "did you mean 'dsp_conv'"),
    ],
)
def test_what_does_not_exist_is_refused_with_what_may_be_meant(tmp_path: Path, kernel: str, help_line: str):
    (error,) = refused(tmp_path, CONV, kernel)
    assert (error.code, (error.help or "").startswith(help_line)) == ("BW761", True), error.help


def test_a_function_needs_a_file():
    with pytest.raises(CompileError) as caught:
        bytewright.compile(DIGITS, kernels="CONV_2D=dsp_conv")
    (error,) = caught.value.diagnostics
    assert (error.code, error.help) == ("BW761", "--kernel-file FILE.toml")


def test_devices_are_those_of_the_target(tmp_path: Path):
    for line in ('device = "npu"', 'touched-by = ["npu"]'):
        (error,) = refused(tmp_path, CONV + line, "CONV_2D=dsp_conv")
        assert (error.code, error.where) == ("BW761", f"{tmp_path}/dsp.toml:1, key kernel.dsp_conv")
        assert "the device 'npu', which target 'host' does not have" in error.message


def test_an_operator_is_bound_once(tmp_path: Path):
    (error,) = refused(tmp_path, CONV, "CONV_2D=dsp_conv", "conv2d_2=dsp_conv")
    assert error.code == "BW762"
    assert "--kernel 'conv2d_2=dsp_conv' and --kernel 'CONV_2D=dsp_conv' both bind" in error.message


def test_a_reshape_computes_nothing(tmp_path: Path):
    (error,) = refused(tmp_path, CONV, "RESHAPE=dsp_conv")
    assert (error.code, "computes nothing that is read" in error.message) == ("BW762", True)


def test_a_program_has_no_operators(tmp_path: Path):
    (tmp_path / "dsp.toml").write_text(CONV)
    program = tmp_path / "m.bw"
    program.write_text(
        "module m kernel k(x : buffer<4xi8> r, y : buffer<4xi8> w) on cpu { for i : i32 in 0 .. 4 { y[i] = x[i] } } "
        "entry main(x : buffer<4xi8> r, y : buffer<4xi8> w) on cpu { call_extern k(&x, &y) }"
    )
    with pytest.raises(CompileError) as caught:
        bytewright.compile(program, kernels="k=dsp_conv", kernel_file=tmp_path / "dsp.toml")
    (error,) = caught.value.diagnostics
    assert (error.code, error.help) == ("BW762", "in the program: extern SYMBOL(...), and call it")


def test_operators_of_a_function_that_others_run_are_not_bound(tmp_path: Path):
    (tmp_path / "dsp.toml").write_text(
        "[kernel.dsp_clamp]\nstack = 0\narguments = [{ input = 0 }, { output = 0 }]\n"
    )
    text = (
        "module m input %x : tensor<4xi8> output %z : tensor<4xi8>\n"
        "func inner(%a : tensor<4xi8>) -> (%b) { %b : tensor<4xi8> = clamp(%a) {minimum=0, maximum=5} }\n"
        'func main(%x : tensor<4xi8>) -> (%z) { %y : tensor<4xi8> = call(%x) {callee="inner"}\n'
        "%z : tensor<4xi8> = clamp(%y) {minimum=1, maximum=4} }\n"
    )
    module, host = parse_text(text, Constants(), OPERATIONS).module, load_target("host")
    with pytest.raises(CompileError, match="binds 'b' of function 'inner', which others run"):
        find_bound(module, host, (KernelBinding("clamp", "dsp_clamp"),), tmp_path / "dsp.toml")
    assert {*find_bound(module, host, (KernelBinding("z", "dsp_clamp"),), tmp_path / "dsp.toml")} == {"z"}


@pytest.mark.parametrize("text", ["CONV_2D", "=dsp_conv", "CONV_2D="])
def test_the_option_has_a_form(text: str):
    with pytest.raises(OptionSyntaxError, match="is not PATTERN=SYMBOL"):
        parse_kernel_option(text)
    assert parse_kernel_option("a=b=c") == KernelBinding("a=b", "c")


# Regions


REGION = (
    CONV.replace("stack = 64", 'stack = 64\ntakes = "region"')
    .replace('"weights"', '"conv2d.weights"')
    .replace('"bias"', '"conv2d.bias"')
)


def test_connected_operators_are_one_call_and_others_calls_of_their_own(tmp_path: Path):
    model = compiled(tmp_path, REGION, "*conv2d_[124]=dsp_conv")
    assert list(steps(model).values()) == [
        ("dsp_conv", "1 (DEPTHWISE_CONV_2D)", "2 (CONV_2D)"),
        ("dsp_conv", "4 (CONV_2D)"),
    ]
    assert "depthwise_conv2d_1/out" not in model.plan.buffers


def test_a_region_may_join_what_forks(tmp_path: Path):
    model = compiled(tmp_path, REGION.replace("conv2d.", "conv2d[1]."), "*_[0-3]=dsp_conv")
    (calls,) = steps(model).values()
    assert len(calls) == 5
    assert [name for name in model.plan.steps[0].reads if "/" not in name] == ["image"]
    assert model.plan.steps[0].writes == ("add_3/out",)


def test_a_region_has_one_result(tmp_path: Path):
    (error,) = refused(tmp_path, REGION, "*CONV_2D=dsp_conv")
    assert error.code == "BW762"
    assert "which has 2 results ('conv2d_0/out', 'conv2d_2/out')" in error.message


# The file


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("stack = 64", "stacks = 64", "unknown key 'stacks'"),
        ("stack = 64", 'takes = "all"', "'takes' is 'all', which is neither 'operator' nor 'region'"),
        ("stack = 64", 'requires = ["stride ="]', "'stride =' is no formula"),
        ("stack = 64", "requires = [\"__import__('os')\"]", "is no formula: it has '__import__('os')'"),
        ("stack = 64", 'requires = ["[1 for _ in (1,)]"]', "is no formula"),
        ("stack = 64", 'requires = ["stride ** 2 > 1"]', "is no formula"),
        ("stack = 64", 'requires = ["min(stride) > 1"]', "is no formula: it has 'min(stride)'"),
        ("stack = 64", f'requires = ["{"-" * 50}1"]', "a formula has 51 levels, 50 are the most"),
        ("{ output = 0 }", "{ output = 1 }", "'output' is 1, but the largest allowed is 0"),
        (", { output = 0 }", "", "0 arguments are the output, and an operator has one"),
        ("{ input = 0 }", "{ input = 0 }, { input = 0 }", "2 arguments are input 0"),
        ("{ input = 0 }", '{ input = 0, name = "bias" }', "2 arguments are called 'bias'"),
        ("{ input = 0 }", "{ input = 0, output = 0 }", "this one has 'input' and 'output'"),
        ("{ input = 0 }", '{ name = "x" }', "this one has none of them"),
        (
            "{ input = 0 }",
            '{ input = 0, name = "int" }',
            "a parameter of a C function cannot be called 'int'",
        ),
        ("{ input = 0 }", '{ input = 0 }, { scalar = "-stride[0]" }', "cannot be called '-stride[0]'"),
        ("{ input = 0 }", "{ input = 0, align = 3 }", "'align' is 3, which is no power of two"),
        ("{ input = 0 }", '{ input = 0, scope = "global.stack" }', "'global.stack' cannot be passed"),
        ("{ input = 0 }", '{ input = 0, scope = "flash" }', "there is no rank 'flash'"),
        ("{ input = 0 }", '{ input = 0 }, { scalar = 1, name = "n", type = "i8" }', "'i8' is no type here"),
        ('constant = "bias"', 'constant = "bias", axes = [0, 0]', "'axes' is no order of axes"),
        ("[kernel.dsp_conv]", "[kernel.dsp-conv]", "a C function cannot be called 'dsp-conv'"),
        ("[kernel.dsp_conv]", "[kernels.dsp_conv]", "the key 'kernel' is missing"),
        ("[kernel.dsp_conv]", "[kernel.dsp_conv", "not valid TOML"),
    ],
)
def test_a_mistake_in_the_file_has_its_line(tmp_path: Path, before: str, after: str, message: str):
    assert before in CONV
    errors = refused(tmp_path, CONV.replace(before, after), "CONV_2D=dsp_conv")
    assert {error.code for error in errors} == {"BW760"}
    assert any(message in error.message for error in errors), errors
    assert all("dsp.toml" in (error.where or "") for error in errors)


def test_a_file_that_is_not_there(tmp_path: Path):
    with pytest.raises(CompileError, match=r"error\[BW760\]: cannot read"):
        bytewright.compile(DIGITS, kernels="CONV_2D=dsp_conv", kernel_file=tmp_path / "none.toml")


# What a function takes


@pytest.mark.parametrize(
    ("kernel", "before", "after", "message"),
    [
        (
            "CONV_2D",
            "stack = 64",
            'requires = ["stride == (1, 1)"]',
            "the function requires stride == (1, 1)",
        ),
        ("ADD", "stack = 64", "", "it reads 2 tensors, the function is given input 0"),
        ("SOFTMAX", "stack = 64", "", "the operator has no 'weights'"),
        ("CONV_2D", "stack = 64", 'requires = ["strides == 1"]', "the operator has no 'strides'"),
        ("CONV_2D", "stack = 64", 'requires = ["conv2d.strides == 1"]', "conv2d has no 'strides'"),
        ("CONV_2D", "stack = 64", 'requires = ["stride[2] == 1"]', "'stride[2]': there are 2 elements"),
        ("CONV_2D", "stack = 64", 'requires = ["1 // padding[0] == 1"]', "division or modulo by zero"),
        ("CONV_2D", "stack = 64", 'let = { input = "1" }', "'let' gives the name 'input'"),
        ("CONV_2D", "{ input = 0 }", '{ input = 0 }, { scalar = "stride", name = "s" }', "which is no i32"),
        (
            "CONV_2D",
            "{ input = 0 }",
            '{ input = 0 }, { scalar = "40000", name = "s", type = "i16" }',
            "'40000' is 40000, which i16 does not hold",
        ),
        ("CONV_2D", '"bias" }', '"bias", type = "i8" }', "'bias' has values that i8 does not hold"),
        ("CONV_2D", '"bias" }', '"bias", axes = [1, 0] }', "'bias' has 1 axes, the function states 2"),
        ("CONV_2D", '"bias" }', '"stride" }', "'stride' is (1, 1), which is no constant"),
        ("CONV_2D", '"weights" }', '"weights", per-channel = true }', "neither 1 nor 16"),
        (
            "CONV_2D",
            "{ output = 0 }]",
            '{ output = 0 }]\nscratch = [{ name = "s", type = "i32", bytes = "2 * 3" }]',
            "scratch 's' of 6 B is no array of i32",
        ),
        (
            "CONV_2D",
            "{ output = 0 }]",
            '{ output = 0 }]\nscratch = [{ name = "s", bytes = "rounding" }]',
            "'rounding' is 'DOUBLE_ROUND', not a whole number",
        ),
    ],
)
def test_what_it_does_not_take_is_refused(tmp_path: Path, kernel: str, before: str, after: str, message: str):
    assert CONV.count(before) == 1
    errors = refused(tmp_path, CONV.replace(before, after), f"{kernel}=dsp_conv")
    assert {error.code for error in errors} == {"BW763"}
    assert message in errors[0].message, errors[0].message
    assert f"({kernel})" in (errors[0].where or "")


def test_a_requirement_is_refused_with_the_facts(tmp_path: Path):
    (error,) = refused(
        tmp_path,
        CONV.replace("stack = 64", 'requires = ["stride == (1, 1) and weights.shape[1] < max(5, 4)"]'),
        "CONV_2D=dsp_conv",
    )
    assert "'conv2d_4/out'" in error.message
    assert error.notes[:2] == ("stride is (2, 2)", "weights.shape[1] is 3")


def test_a_scratch_of_nothing_has_an_element_and_is_planned(tmp_path: Path):
    text = CONV + 'scratch = [{ name = "s", type = "i64", bytes = 0, align = 32 }]'
    model = compiled(tmp_path, text, "conv2d_2=dsp_conv")
    (scratch,) = [b for b in model.plan.buffers.values() if b.role == "scratch" and b.name.endswith("/s")]
    assert (scratch.size_bytes, scratch.alignment, scratch.place.kind.value) == (8, 32, "planned")


# Places

TWO_FUNCTIONS = CONV.replace("{ output = 0 }", '{ output = 0, scope = "global.SCOPE" }') + CONV.replace(
    "dsp_conv", "dsp_depthwise"
).replace("{ input = 0 }", '{ input = 0, scope = "global.isram" }')


def test_tensors_constants_and_scratch_lie_where_it_asks(tmp_path: Path):
    text = CONV.replace("{ output = 0 }", '{ output = 0, scope = "global.isram", align = 64 }')
    text += 'scratch = [{ name = "s", bytes = 256, scope = "global.isram" }]'
    model = compiled(tmp_path, text, "conv2d_2=dsp_conv", target="mps3-an547")
    output = model.plan.buffers["conv2d_2/out"]
    assert (output.place.name, output.alignment) == ("isram", 64)
    assert "'output' of 'dsp_conv' in 2 (CONV_2D) asks for global.isram" in output.reason
    assert model.plan.buffers["conv2d_4/out"].place.name == "dtcm"
    assert [b.place.name for b in model.plan.buffers.values() if b.name.endswith("/s")] == ["isram"]


def test_functions_that_ask_for_different_places_get_a_copy(tmp_path: Path):
    kernels = ("conv2d_0=dsp_conv", "DEPTHWISE_CONV_2D=dsp_depthwise")
    model = compiled(tmp_path, TWO_FUNCTIONS.replace("SCOPE", "dtcm"), *kernels, target="mps3-an547")
    tensor, copy = (model.plan.buffers[f"conv2d_0/out{suffix}"] for suffix in ("", "_in_isram"))
    assert (tensor.place.name, copy.place.name) == ("dtcm", "isram")
    assert "'output' of 'dsp_conv' in 0 (CONV_2D) asks for global.dtcm" in tensor.reason
    assert "a copy of 'conv2d_0/out', which is in global.dtcm" in copy.reason
    assert "'input' of 'dsp_depthwise' in 1 (DEPTHWISE_CONV_2D) asks for global.isram" in copy.reason
    steps = [step.operators for step in model.plan.steps]
    assert steps.index(("device_copy for 1 (DEPTHWISE_CONV_2D)",)) == 1
    model = compiled(tmp_path, TWO_FUNCTIONS.replace("SCOPE", "isram"), *kernels, target="mps3-an547")
    assert model.plan.buffers["conv2d_0/out"].place.name == "isram"


def test_a_scope_that_the_target_does_not_have(tmp_path: Path):
    text = CONV.replace("{ input = 0 }", '{ input = 0, scope = "global.dtcn" }')
    (error,) = refused(tmp_path, text, "conv2d_2=dsp_conv", target="mps3-an547")
    assert (error.code, "scope 'global.dtcn' names neither a pool nor a tag" in error.message) == (
        "BW209",
        True,
    )


# Formulas


FACTS = {"a": 7, "b": (2, 3), "name": "text", "x": Record("x", {"shape": (1, 4)}, (5, 6))}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a * 2 - -1", 15),
        ("a // 2 + a % 4", 6),
        ("b[1] + x.shape[-1]", 7),
        ("b == (2, 3) and not a < 7", True),
        ("1 < a <= 7 or missing", True),
        ("max(a, b[0]) + min(1, 2)", 8),
        ("name == 'text'", True),
        ("x[1]", 6),
        ("2.5 * 2", 5.0),
    ],
)
def test_formulas_have_values(text: str, value: object):
    assert parse_formula(text).value(FACTS) == value


@pytest.mark.parametrize(
    "text",
    [
        "a +",
        "lambda: 1",
        "a.b.c()",
        "f(1)",
        "{}",
        "[1]",
        "f'{a}'",
        "a if b else 1",
        "x := 1",
        "a" * 501,
        "(" * 400,
    ],
)
def test_what_is_no_formula_is_refused(text: str):
    with pytest.raises(FormulaError):
        parse_formula(text)


@pytest.mark.parametrize(
    "text",
    ["missing", "x.missing", "b[5]", "b['a']", "a.shape", "a[0]", "1 // 0", "-name", "a < name", "b + 1"],
)
def test_what_has_no_value_is_refused(text: str):
    with pytest.raises(FormulaError):
        parse_formula(text).value(FACTS)


def test_facts_of_a_formula_are_told_once():
    assert parse_formula("a < b[0] or a > max(a, 3)").facts_used(FACTS) == ["a is 7", "b[0] is 2"]


def test_the_constant_of_a_function_has_its_layout_and_type(tmp_path: Path):
    """The arrays that end in the parameter pool, against numpy's."""
    text = CONV.replace('"weights" }', '"weights", axes = [1, 2, 3, 0], type = "i16" }').replace(
        "{ output = 0 }",
        '{ values = ["stride[0]", "-input_zero_point", "weights[3]"], name = "table" }, { output = 0 }',
    )
    model = compiled(tmp_path, text, "conv2d_0=dsp_conv")
    weights = next(c.data.array for c in import_tflite(DIGITS).constants if c.name == "conv2d_0/weights")
    folder = model.write(tmp_path / "out")
    pool = b"".join(path.read_bytes() for path in (folder / "include").glob("*.bin"))
    numbers = [
        int(n)
        for path in (folder / "include").glob("*.inc")
        for n in path.read_text().replace("\n", "").split(",")
        if n
    ]
    content = pool or bytes(numbers)
    buffers = {b.name: b for b in model.plan.buffers.values() if b.name.startswith("dsp_conv/")}
    found = {name.partition("/")[2]: content[b.place.offset :][: b.size_bytes] for name, b in buffers.items()}  # type: ignore[index]
    assert found["weights"] == weights.transpose(1, 2, 3, 0).astype("<i2").tobytes()
    assert np.frombuffer(found["table"], "<i4").tolist() == [1, 0, int(weights.reshape(-1)[3])]
