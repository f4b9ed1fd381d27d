"""Which models may be given their input row by row, what the others are told, and the loops that take the rows."""

from __future__ import annotations

from math import prod
from pathlib import Path

import pytest

import bytewright
from bytewright import ir
from bytewright.compiler.pipeline import Planned, compile_model, plan_model
from bytewright.diagnostics import CompileError, InternalError
from bytewright.ir.analyses.row_loops import row_loops
from bytewright.options import Options, Rows, parse_on_option
from bytewright.target import load_target, load_text
from support.digits_bundle import DIGITS
from support.ir_program import read_module
from support.random_models import RandomModel
from support.row_models import Layer, chain
from tflite_writer import ModelBuilder

BY_ROWS = Options(io=ir.Io.ROWS)
TWO_CORES = """
name = "alike"
default-device = "cpu"
[memory.ram]
size = "64KiB"
[memory.flash]
size = "64KiB"
access = "r"
[device.cpu]
isa = "host"
reach = ["ram", "flash"]
stack = "ram"
[device.core1]
isa = "host"
reach = ["ram", "flash"]
stack = "ram"
max-stack-size = "8KiB"
[[workspace]]
name = "ram"
memory = "ram"
[[parameters]]
name = "flash"
memory = "flash"
"""


def planned(model: bytes, folder: Path, options: Options = BY_ROWS) -> Planned:
    path = folder / "m.tflite"
    path.write_bytes(model)
    return plan_model(path, load_target("host"), options)


def refused(model: bytes, folder: Path, options: Options = BY_ROWS) -> tuple[str, str | None]:
    """The reason and the help."""
    with pytest.raises(CompileError) as caught:
        planned(model, folder, options)
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code == "BW210"
    front, _, reason = diagnostic.message.partition("row by row: ")
    assert front == "model 'm' cannot be given its input "
    return reason, diagnostic.help


def two_inputs() -> bytes:
    builder = ModelBuilder()
    sides = [builder.tensor(f"side_{i}", (1, 6, 6, 2), "float32") for i in range(2)]
    result = builder.tensor("sum", (1, 6, 6, 2), "float32")
    builder.operator("ADD", sides, [result])
    return builder.build(sides, [result])


def of_one_operator(kind: str, **options: int | str) -> bytes:
    """An operator of an image of six rows, which makes one of them too."""
    builder = ModelBuilder()
    image = builder.tensor("image", (1, 6, 6, 2), "float32")
    result = builder.tensor("result", (1, 6, 6, 2), "float32")
    builder.operator(kind, [image], [result], **options)
    return builder.build([image], [result])


WINDOW = {"filter_height": 2, "filter_width": 2, "stride_h": 1, "stride_w": 1, "padding": "SAME"}


def test_a_model_of_two_inputs(tmp_path: Path) -> None:
    reason, help_text = refused(two_inputs(), tmp_path)
    assert reason == "it has 2 inputs, of which rows would have to come in turn"
    assert help_text == "--io caller"
    planned(two_inputs(), tmp_path, Options(io=ir.Io.CALLER))  # which the help says


def test_a_first_layer_that_needs_the_whole_image(tmp_path: Path) -> None:
    builder = ModelBuilder()
    image = builder.tensor("image", (1, 6, 6, 2), "float32")
    axes = builder.tensor("axes", (2,), "int32", data=[1, 2])
    result = builder.tensor("mean", (1, 2), "float32")
    builder.operator("MEAN", [image, axes], [result])
    reason, help_text = refused(builder.build([image], [result]), tmp_path)
    assert reason == "step '0 (MEAN)' reads it otherwise than by a window of rows that moves downwards"
    assert help_text == "--io caller"


def test_a_layer_alone_has_no_rows_to_keep_for_another(tmp_path: Path) -> None:
    """The segment may be one layer behind the copy: its window is what is kept."""
    model = of_one_operator("MAX_POOL_2D", **WINDOW)
    plan = planned(model, tmp_path).plan
    assert plan.workspace_bytes == 2 * 6 * 2 * 4  # two rows


def test_a_batch() -> None:
    with pytest.raises(CompileError) as caught:
        plan_model(DIGITS, load_target("host"), Options(io=ir.Io.ROWS, batch_max=3))
    assert caught.value.diagnostics[0].message.endswith(
        "a run is given 'batch', and rows are given of one image whose extents are fixed"
    )


@pytest.mark.parametrize(
    ("options", "help_text"),
    [
        pytest.param(Options(io=ir.Io.ROWS, rows=Rows.OFF), "--rows auto", id="off"),
        pytest.param(Options(io=ir.Io.ROWS, entry_form=ir.Form.PACKED), "--entry-form plain", id="packed"),
    ],
)
def test_options_that_do_not_go_with_it(options: Options, help_text: str) -> None:
    with pytest.raises(CompileError) as caught:
        plan_model(DIGITS, load_target("host"), options)
    (diagnostic,) = caught.value.diagnostics
    assert (diagnostic.code, diagnostic.help) == ("BW210", help_text)
    plan_model(DIGITS, load_target("host"), BY_ROWS)  # as the help says


def copies_rows(name: str, shape: tuple[int, int, int], axis: int, whole: str = "") -> str:
    """A kernel that copies rows along an axis, and may read all of another input besides."""
    extents = "x".join(map(str, shape))
    loops = [f"for i{i} : i32 in 0 .. {extent} {{" for i, extent in enumerate(shape)]
    loops[axis] = f"for i{axis} : i32 in row_begin .. row_end {{"
    more = f", {whole} : buffer<{extents}xi32> r" if whole else ""
    at, also = "[0, i1, i2]", f" + {whole}[0, 0, 0]" if whole else ""
    return (
        f"kernel {name}(s : buffer<{extents}xi32> r{more}, d : buffer<{extents}xi32> w, row_begin : i32, "
        f"row_end : i32) on cpu {{ {' '.join([loops[axis], loops[3 - axis]])} d{at} = s{at}{also} }} }} }} "
    )


def program(kernels: str, shape: tuple[int, int, int], outputs: str, body: str) -> ir.Module:
    kind = f"{'x'.join(map(str, shape))}xi32"
    ports = " ".join(f"output %{name} : tensor<{kind}>" for name in outputs)
    given = ", ".join(f"{name} : buffer<{kind}> w" for name in outputs)
    entry = f"entry main(x : buffer<{kind}> r, {given}) on cpu {{ {body} }}"
    return read_module(f"module m input %x : tensor<{kind}> {ports} {kernels} {entry}")


FILL = (
    "kernel m_fill(d : buffer<1x6x2xi32> w) on cpu "
    "{ for y : i32 in 0 .. 6 { for x : i32 in 0 .. 2 { d[0, y, x] = y } } } "
)
TALL, FLAT = (1, 6, 2), (1, 1, 6)
PROGRAMS = {
    "nothing reads it": program(FILL, TALL, "y", "call_extern m_fill(&y)"),
    "its readers do not agree about what its rows are": program(
        copies_rows("m_a", FLAT, 1) + copies_rows("m_b", FLAT, 2),
        FLAT,
        "yz",
        "call_extern m_a(&x, &y, 0, 1) call_extern m_b(&x, &z, 0, 6)",
    ),
    "it is read otherwise than by a window of rows that moves downwards": program(
        copies_rows("m_a", TALL, 1, "other"), TALL, "y", "call_extern m_a(&x, &x, &y, 0, 6)"
    ),
    "no layers at its front keep fewer rows than all": program(
        FILL + copies_rows("m_a", TALL, 1),
        TALL,
        "yz",
        "allocate t : buffer<1x6x2xi32> for i : i32 in 0 .. 2 { call_extern m_fill(&t) } "
        "call_extern m_a(&x, &y, 0, 6) call_extern m_a(&t, &z, 0, 6)",
    ),
}


@pytest.mark.parametrize("reason", PROGRAMS)
def test_programs_whose_input_has_to_be_whole(reason: str) -> None:
    with pytest.raises(CompileError) as caught:
        plan_model(PROGRAMS[reason], load_target("host"), BY_ROWS)
    (diagnostic,) = caught.value.diagnostics
    assert (diagnostic.code, diagnostic.help) == ("BW210", "--io caller")
    assert diagnostic.message == f"model 'm' cannot be given its input row by row: {reason}"
    plan_model(PROGRAMS[reason], load_target("host"), Options(io=ir.Io.CALLER))  # as the help says


def test_a_device_that_takes_part() -> None:
    """What reads the input is the CPU's, be it a copy for the device; or else the step is named, and the device."""
    loops = {}
    for on in ("DEPTHWISE_CONV_2D=core1", "*=core1"):
        plan = bytewright.compile(DIGITS, target="mps2-an521", on=[on], io="rows").plan
        loops[on] = [loop.steps for loop in plan.loops]
        first, last = loops[on][0]
        assert first == 0
        assert {step.device for step in plan.steps[: last + 1]} == {"cpu"}
        assert "core1" in {step.device for step in plan.steps[last + 1 :]}
    assert loops["*=core1"][0] == (0, 1)  # what takes a row, and what copies it to where the device reaches
    alike, on_core1 = load_text(TWO_CORES, "alike.toml"), (parse_on_option("*=core1"),)
    with pytest.raises(CompileError) as caught:
        compile_model(DIGITS, alike, Options(on=on_core1, io=ir.Io.ROWS))
    (diagnostic,) = caught.value.diagnostics
    assert (diagnostic.code, diagnostic.help) == ("BW210", "--io caller")
    assert diagnostic.message.endswith(
        "step '0 (CONV_2D)' runs on device 'core1' before the last row is read, and the devices beside 'cpu' are in "
        "use after that"
    )
    compile_model(DIGITS, alike, Options(on=on_core1))  # as the help says


@pytest.mark.parametrize(
    ("model", "inner_turns", "ring_rows"),
    [
        pytest.param(chain((9, 5, 3), Layer(3), Layer(3)), (), 3, id="stride-1"),
        pytest.param(chain((16, 4, 2), *[Layer(3, stride=2)] * 3), (2, 2, 2), 3, id="strides-2"),
        pytest.param(chain((13, 4, 2), Layer(3, stride=2), Layer(2, stride=3)), (3, 2), 3, id="strides-2-3"),
        pytest.param(chain((12, 6, 3), Layer(4, stride=4, padding="VALID"), Layer(3)), (4,), 4, id="patches"),
        pytest.param(chain((2, 4, 2), Layer(5), Layer(5)), (), 2, id="no-fewer-rows-than-all"),
    ],
)
def test_loops_take_each_row_once(
    model: RandomModel, inner_turns: tuple[int, ...], ring_rows: int, tmp_path: Path
) -> None:
    module = planned(model.content, tmp_path, Options(io=ir.Io.ROWS, rows=Rows.MAX)).module
    found = row_loops(module.main)
    assert found.turns[1:] == inner_turns
    assert found.first_row <= 0
    assert found.end_row >= found.num_rows == model.input_shapes[0][1]
    assert found.end_row - found.first_row == prod(found.turns)
    destination = found.take.arguments[1]
    assert isinstance(destination, ir.Region)
    assert destination.buffer.rows == ir.RingRows(1, ring_rows)


def test_an_entry_without_such_loops() -> None:
    module = plan_model(DIGITS, load_target("host"), Options(rows=Rows.OFF)).module
    with pytest.raises(InternalError, match="does not begin with loops over rows"):
        row_loops(module.main)


def test_who_is_shown_the_passes_gets_the_same() -> None:
    seen: list[str] = []
    compiled = compile_model(
        DIGITS, load_target("host"), BY_ROWS, after_pass=lambda name, _: seen.append(name)
    )
    assert compiled.plan.io is ir.Io.ROWS
    assert seen.index("take_rows") < seen.index("fuse_rows")
    assert compiled.files == compile_model(DIGITS, load_target("host"), BY_ROWS).files
