"""`--input-shape`: what a shape may say of an input, and what a file with open extents is refused with."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from pathlib import Path

import pytest

import bytewright
from bytewright.base.option import OptionSyntaxError
from bytewright.diagnostics import CompileError, Diagnostic
from bytewright.options import InputShape, options_of_text, options_text, read_arguments
from bytewright.options.forms import parse_input_shape_option
from tflite_writer import ModelBuilder

IMAGES = (-1, -1, -1, 3)


def sum_file(
    folder: Path, stated: tuple[int, ...] = IMAGES, names: Sequence[str] = ("image", "mask"), size: int = 1
) -> Path:
    """A file that adds its inputs, or the one that it has to itself; open extents have a size in the file."""
    builder = ModelBuilder()
    shape = tuple(size if extent < 0 else extent for extent in stated)
    inputs = [builder.tensor(name, shape, "float32", shape_signature=stated) for name in names]
    y = builder.tensor("y", shape, "float32", shape_signature=stated)
    builder.operator("ADD", [inputs[0], inputs[-1]], [y])
    file = folder / "m.tflite"
    file.write_bytes(builder.build(inputs, [y]))
    return file


def refused(file: Path, **options: object) -> Diagnostic:
    with pytest.raises(CompileError) as caught:
        bytewright.compile(file, **options)  # pyright: ignore[reportArgumentType]
    (found,) = caught.value.diagnostics
    return found


def advised(text: str | None) -> list[str]:
    return re.findall(r"--input-shape (\S+)", text or "")


@pytest.mark.parametrize("text", ["1x224x224x3", "x=1x?x3", "a=b=7", "?"])
def test_a_shape_is_written_as_it_is_read(text: str) -> None:
    assert str(parse_input_shape_option(text)) == text


@pytest.mark.parametrize(
    "text", ["", "x=", "=1x2", "1x0", "1x-1x3", "1,2,3", "1x2x", "x:1x2", "1x1234567890"]
)
def test_what_is_no_shape_is_said(text: str) -> None:
    with pytest.raises(OptionSyntaxError, match=re.escape(f"'{text}' is not [INPUT=]EXTENTxEXTENT...")):
        parse_input_shape_option(text)


def test_a_plan_has_shapes_as_options() -> None:
    options = read_arguments({"input_shapes": ["a=1x5", "b=?x5x3"]})
    assert options.input_shapes == (InputShape((1, 5), "a"), InputShape((None, 5, 3), "b"))
    texts = options_text(options)
    assert texts == ("--input-shape a=1x5", "--input-shape b=?x5x3")
    assert options_of_text(texts, Path()) == options


@pytest.mark.parametrize(
    ("stated", "size", "wanted"),
    [
        (IMAGES, 1, "1x224x224x3"),
        (IMAGES, 30, "30x30x30x3"),
        ((2, -1, 40), 1, "2x64x40"),
        ((-1, 9, -1, 3), 1, "1x9x224x3"),
    ],
)
def test_a_file_with_open_extents_is_compiled_as_its_refusal_says(
    tmp_path: Path, stated: tuple[int, ...], size: int, wanted: str
) -> None:
    file = sum_file(tmp_path, stated, size=size)
    found = refused(file)
    assert found.code == "BW106"
    shapes = advised(found.help)
    assert shapes == [f"image={wanted}", f"mask={wanted}"]
    plan = bytewright.compile(file, input_shapes=shapes).plan
    assert ["x".join(map(str, each.shape)) for each in (*plan.inputs, *plan.outputs)] == [wanted] * 3


def test_an_input_without_a_shape_is_still_asked_for(tmp_path: Path) -> None:
    found = refused(sum_file(tmp_path), input_shapes="mask=1x5x6x3")
    assert (found.code, found.notes) == ("BW106", (f"input tensor 0 ('image') has the shape {list(IMAGES)}",))
    assert advised(found.help) == ["image=1x224x224x3"]


def test_an_input_of_another_name_is_the_closest(tmp_path: Path) -> None:
    found = refused(sum_file(tmp_path), input_shapes="imgae=1x5x6x3")
    message = "--input-shape imgae=1x5x6x3 is of no input; the model has 'image', 'mask'"
    assert (found.code, found.message, found.help) == ("BW204", message, "did you mean 'image'?")


def test_of_several_inputs_one_must_be_named(tmp_path: Path) -> None:
    found = refused(sum_file(tmp_path), input_shapes="1x5x6x3")
    message = "--input-shape 1x5x6x3 says of no input that it is meant; the model has 'image', 'mask'"
    help_text = "name one of them: --input-shape [INPUT=]EXTENTxEXTENT..., as 1x224x224x3"
    assert (found.code, found.message, found.help) == ("BW204", message, help_text)


def test_an_input_has_one_shape(tmp_path: Path) -> None:
    found = refused(sum_file(tmp_path, names=["x"]), input_shapes=["x=1x5x6x3", "1x5x7x3"])
    message = "input 'x' has two shapes: --input-shape x=1x5x6x3 and 1x5x7x3"
    assert (found.code, found.message, found.help) == ("BW204", message, "give one of them")


@pytest.mark.parametrize(
    ("given", "message", "advice"),
    [
        (
            "1x5x6x4",
            "axis 3 of input 'x' has 3 elements in the file, whose shape is [-1, -1, -1, 3]",
            "1x5x6x3",
        ),
        ("5x6x3", "3 extents for input 'x', which has 4: [-1, -1, -1, 3]", "1x224x224x3"),
    ],
)
def test_a_shape_that_the_file_cannot_have_is_refused_with_one_that_it_can(
    tmp_path: Path, given: str, message: str, advice: str
) -> None:
    file = sum_file(tmp_path, names=["x"])
    found = refused(file, input_shapes=given)
    assert (found.code, found.message) == ("BW204", f"--input-shape {given}: {message}")
    assert found.help is not None
    flag, shape = shlex.split(found.help)
    assert (flag, shape) == ("--input-shape", advice)
    assert bytewright.compile(file, input_shapes=shape).plan.inputs[0].shape[3] == 3


def test_a_file_of_one_size_takes_that_alone(tmp_path: Path) -> None:
    file = sum_file(tmp_path, (1, 4, 3), names=["x"])
    without, given = bytewright.compile(file).plan, bytewright.compile(file, input_shapes="1x4x3").plan
    assert given.inputs == without.inputs
    found = refused(file, input_shapes="1x5x3")
    assert found.message.startswith("--input-shape 1x5x3: axis 1 of input 'x' has 4 elements in the file")


def test_beside_an_open_axis_a_shape_has_the_largest_extent(tmp_path: Path) -> None:
    file = sum_file(tmp_path, names=["x"])
    found = refused(file, input_shapes="1x5x6x3", open="1=rows:1..9")
    assert found.code == "BW204"
    assert found.message == "--input-shape 1x5x6x3: axis 1 has 5 elements, and --open 1=rows:1..9 up to 9"
    assert found.help == "--input-shape '1x?x6x3'"
    for shape in ("1x?x6x3", "1x9x6x3"):
        (given,) = bytewright.compile(file, input_shapes=shape, open="1=rows:1..9").plan.inputs
        assert given.shape == (1, 9, 6, 3)
    found = refused(file, open="1=rows:1..9")
    assert found.code == "BW106"
    assert advised(found.help) == ["x=1x9x224x3"]
    (given,) = bytewright.compile(file, input_shapes="x=1x9x224x3", open="1=rows:1..9").plan.inputs
    assert given.shape == (1, 9, 224, 3)


def test_a_batch_that_each_run_is_given_is_not_fixed(tmp_path: Path) -> None:
    file = sum_file(tmp_path, names=["x"])
    for shape in ("1x5x6x3", "?x5x6x3"):
        (given,) = bytewright.compile(file, input_shapes=shape, batch_max=4).plan.inputs
        assert given.shape == (4, 5, 6, 3)
    assert bytewright.compile(file, input_shapes="2x5x6x3").plan.inputs[0].shape == (2, 5, 6, 3)
    found = refused(file, input_shapes="2x5x6x3", batch_max=4)
    assert found.code == "BW111"


def test_text_has_no_inputs_that_are_open(tmp_path: Path) -> None:
    file = tmp_path / "m.bw"
    file.write_text("", encoding="utf-8")
    assert "whose inputs have the shapes that it says" in refused(file, input_shapes="1x2").message
