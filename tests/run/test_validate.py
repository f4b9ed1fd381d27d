"""`validate`: outputs beside the references', parameters beside the model's, and the first layer that differs."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

import bytewright
from bytewright.cli.main import bytewright as command
from bytewright.record.buffers import BufferRole
from bytewright.record.plan_file import read_plan
from support.digits_bundle import DIGITS, change_file, write_digits
from support.reference import LiteRt
from support.shared_models import KWS, VWW, model_path, random_inputs

STATE = Path(__file__).resolve().parents[1] / "data" / "state"
HELDOUT = DIGITS.parent / "heldout.npz"
DATA = ("--data", str(HELDOUT), "--labels", "labels")


def validate(*arguments: str | Path) -> Result:
    return CliRunner().invoke(command, ["validate", *map(str, arguments)])


def document(result: Result) -> dict[str, Any]:
    return json.loads(result.stdout)


def answers(images: np.ndarray) -> list[int]:
    reference = LiteRt(DIGITS)
    return [int(reference.run(image[np.newaxis])[0].argmax()) for image in images]


@pytest.mark.parametrize("reference", ["litert-ref", "tflm"])
def test_a_model_is_exact_and_as_right_as_its_reference(reference: str) -> None:
    result = validate(DIGITS, *DATA, "--samples", "100", "--reference", reference, "--json")
    assert result.exit_code == 0, result.stderr
    found = document(result)
    with np.load(HELDOUT) as stored:
        right = sum(
            a == b for a, b in zip(answers(stored["images"][:100]), stored["labels"][:100], strict=True)
        )
    assert (found["verified"], found["num_samples"]) == (True, 100)
    assert (found["num_right"], found["reference"]["num_right"]) == (right, right)
    assert found["reference"] | {"num_right": 0} == {
        "name": reference,
        "num_samples": 100,
        "num_exact": 100,
        "first_different": None,
        "worst": 0.0,
        "num_same_answers": 100,
        "num_right": 0,
    }
    assert found["parameters"]["num_bytes"] > 7000
    assert found["parameters"]["wrong"] == []


def test_a_thousand_samples_of_kws_take_less_than_ten_seconds(tmp_path: Path) -> None:
    inputs = [image for (image,) in random_inputs(KWS, 1000, seed=1)]
    np.save(tmp_path / "x.npy", np.concatenate(inputs))
    before = process_time()
    result = validate(model_path(KWS), "--data", tmp_path / "x.npy", "--also", "litert-default", "--json")
    assert process_time() - before < 10
    found = document(result)
    assert found["reference"]["num_exact"] == 1000
    (beside,) = found["others"]  # the default is no reference: it is off in many samples
    assert beside["name"] == "litert-default"
    assert beside["num_exact"] < 900
    assert beside["worst"] > 5


def flipped(directory: Path, buffer: str, element: int) -> str:
    """Flips the lowest bit of a byte of a constant, in every file that holds its pool; the pool."""
    plan = read_plan(directory)
    place = plan.buffers[buffer].place
    index = (place.offset or 0) + element
    for path in directory.rglob(f"*{place.name}*.inc"):
        text = path.read_text(encoding="utf-8")
        at = list(re.finditer(r"\d+", text))[index]
        path.write_text(f"{text[: at.start()]}{int(at[0]) ^ 1}{text[at.end() :]}", encoding="utf-8")
    for path in directory.rglob(f"*{place.name}*.bin"):
        content = bytearray(path.read_bytes())
        content[index] ^= 1
        path.write_bytes(content)
    return place.name


@pytest.mark.parametrize("target", ["mps3-an547", "host", "mps2-an386"])
def test_one_flipped_bit_of_a_weight_is_found_and_named(target: str, tmp_path: Path) -> None:
    bytewright.compile(DIGITS, target=target).write(tmp_path / "digits")
    plan = read_plan(tmp_path / "digits")
    weights = [b for b in plan.buffers_of(BufferRole.PARAMETER) if b.name.endswith("/weights")]
    assert len(weights) == 5
    chosen = weights[1]
    pool = flipped(tmp_path / "digits", chosen.name, 21)
    result = validate(tmp_path / "digits", *DATA, "--samples", "5", "--model", DIGITS)
    assert result.exit_code == 4
    assert f"'{chosen.name}' of " in result.stderr
    assert f"tensor '{chosen.tensor}'" in result.stderr
    assert f"1 B differ in include/digits_{pool}_parameters.inc" in result.stderr


def test_a_flipped_bit_is_found_in_a_blob_too(tmp_path: Path) -> None:
    directory = write_digits(tmp_path / "digits", "host", caller_parameters=True)
    pool = flipped(directory, "conv2d_0/weights", 3)
    result = validate(directory, *DATA, "--samples", "5", "--model", DIGITS)
    assert result.exit_code == 4
    assert f"1 B differ in parameters/{pool}.bin" in result.stderr
    blob = directory / "parameters" / f"{pool}.bin"
    blob.write_bytes(
        b"nothing!" + blob.read_bytes()[8:]
    )  # now the C refuses it, and the bit is named all the same
    result = validate(directory, *DATA, "--samples", "5", "--model", DIGITS)
    assert f"1 B differ in parameters/{pool}.bin" in result.stderr
    assert "error[BW402]" in result.stderr


@pytest.mark.parametrize("rows", ["auto", "off"])
def test_a_wrong_kernel_is_named_by_its_layer(rows: str, tmp_path: Path) -> None:
    bytewright.compile(DIGITS, rows=rows).write(tmp_path / "digits")
    kernels = (tmp_path / "digits/src/digits_kernels.c").read_text(encoding="utf-8")
    begin = kernels.index("void digits_depthwise_conv2d_1")
    old = "const int32_t iy2 = y + 1;"
    assert old in kernels[begin:]
    wrong = kernels[:begin] + kernels[begin:].replace(old, "const int32_t iy2 = y;", 1)
    change_file(tmp_path / "digits", "src/digits_kernels.c", kernels, wrong)
    result = validate(tmp_path / "digits", *DATA, "--samples", "20", "--model", DIGITS)
    assert result.exit_code == 4
    assert re.search(
        r"the first tensor that differs is 'depthwise' of 1 \(DEPTHWISE_CONV_2D\)", result.stderr
    )
    assert "error[BW406]" in result.stderr


@pytest.mark.parametrize("target", ["mps3-an547", "host"])
def test_layers_by_rows_and_without_dead_channels_are_exact(target: str, tmp_path: Path) -> None:
    ((image,),) = random_inputs(VWW, 1, seed=3)
    np.save(tmp_path / "x.npy", image)
    bytewright.compile(model_path(VWW), target=target).write(tmp_path / "vww")
    found = document(
        validate(
            tmp_path / "vww", "--data", tmp_path / "x.npy", "--model", model_path(VWW), "--layers", "--json"
        )
    )
    layers = found["layers"]
    assert len(layers) >= 29
    assert not any(layer["num_different"] for layer in layers)
    plan = read_plan(tmp_path / "vww")
    by_rows = {b.tensor for b in plan.buffers.values() if b.ring is not None}
    narrowed = {b.tensor for b in plan.buffers.values() if b.shape_before is not None}
    compared = {layer["tensor"] for layer in layers}
    assert len(by_rows & compared) > 5
    assert len(narrowed & compared) > 10


def test_tensors_are_written_on_request(tmp_path: Path) -> None:
    result = validate(DIGITS, *DATA, "--samples", "2", "--tensors", tmp_path / "out")
    assert result.exit_code == 0, result.stderr
    reference = LiteRt(DIGITS, keep_all_tensors=True)
    with np.load(HELDOUT) as stored:
        reference.run(stored["images"][:1])
    for kind in ("own", "reference"):
        (path,) = (tmp_path / "out").glob(f"*_depthwise.{kind}.npy")
        np.testing.assert_array_equal(np.load(path), reference.tensor("depthwise"))
    (tmp_path / "file").write_text("", encoding="utf-8")
    assert validate(DIGITS, *DATA, "--tensors", tmp_path / "file").exit_code == 1


@pytest.mark.parametrize("option", [("--layers",), ("--tensors", "out")])
def test_tensors_that_nobody_has_are_refused(option: tuple[str, ...], tmp_path: Path) -> None:
    """And not left out without a word: TensorFlow Lite Micro keeps none, and boards give none."""
    words = [*DATA, "--samples", "2", *(tmp_path / word if word == "out" else word for word in option)]
    refused = validate(DIGITS, *words, "--reference", "tflm")
    assert refused.exit_code == 1
    assert "this is tflm, on host" in refused.stderr
    refused = validate(DIGITS, *words, "--on", "qemu")
    assert refused.exit_code == 2
    assert f"{option[0]} looks between the kernels on this machine alone" in refused.stderr
    assert not (tmp_path / "out").exists()


def test_outputs_of_a_file_are_a_reference(tmp_path: Path) -> None:
    reference = LiteRt(DIGITS)
    with np.load(HELDOUT) as stored:
        images = stored["images"][:8]
    outputs = np.stack([np.array(reference.run(image[np.newaxis])[0]) for image in images])
    np.save(tmp_path / "x.npy", images)
    np.save(tmp_path / "y.npy", outputs)
    directory = write_digits(tmp_path / "digits", "host")
    arguments = (directory, "--data", tmp_path / "x.npy", "--reference", tmp_path / "y.npy")
    assert validate(*arguments).exit_code == 0
    outputs[5, 0, 2] += 3
    np.save(tmp_path / "y.npy", outputs)
    result = validate(*arguments)
    assert result.exit_code == 4
    assert "1 of 8 samples differ" in result.stderr
    assert "the first is number 5, by 3 at most" in result.stderr
    np.save(tmp_path / "y.npy", outputs[:7])
    result = validate(*arguments)
    assert (result.exit_code, "of 8 samples" in result.stderr) == (1, True)


def test_floats_are_the_same_samples(tmp_path: Path) -> None:
    with np.load(HELDOUT) as stored:
        np.save(tmp_path / "x.npy", stored["images"][:10].astype(np.float64) * 0.0625)
    result = validate(DIGITS, "--data", tmp_path / "x.npy")
    assert result.exit_code == 0
    assert "floats quantised, round(x / 0.0625) + 0 as int8" in result.stdout


def test_a_bundle_needs_its_model(tmp_path: Path) -> None:
    directory = write_digits(tmp_path / "digits", "host")
    result = validate(directory, *DATA)
    assert result.exit_code == 1
    assert "help: --model digits.tflite" in result.stderr
    result = validate(directory, *DATA, "--model", model_path(KWS))
    assert result.exit_code == 1
    assert "is not the file that the bundle was compiled from" in result.stderr


@pytest.mark.parametrize(
    ("module", "arguments", "package"),
    [
        ("ai_edge_litert.interpreter", (), "ai-edge-litert"),
        ("tflite_micro.python.tflite_micro.runtime", ("--reference", "tflm"), "tflite-micro"),
    ],
)
def test_a_reference_that_is_not_installed_is_an_error_with_help(
    module: str, arguments: tuple[str, ...], package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    result = validate(DIGITS, *DATA, *arguments)
    assert result.exit_code == 5
    assert f"help: install it: pip install {package}; or give the outputs" in result.stderr


def test_from_python(tmp_path: Path) -> None:
    model = bytewright.compile(DIGITS)
    with np.load(HELDOUT) as stored:
        images, labels = stored["images"][:30], stored["labels"][:30]
    outputs = model.run(images)
    assert isinstance(outputs, np.ndarray)
    reference = LiteRt(DIGITS)
    np.testing.assert_array_equal(
        outputs, np.concatenate([reference.run(image[np.newaxis])[0] for image in images])
    )
    found = model.validate(images, labels=labels)
    found.require()
    assert repr(found) == "Validation('digits' for host: exact, 30 samples on host)"
    assert "30 of 30 samples exact" in (found._repr_html_() or "")
    assert found.reference.num_exact == 30
    assert found.num_right == sum(a == b for a, b in zip(answers(images), labels, strict=True))
    with pytest.raises(ValueError, match="give a reference"):
        bytewright.CompiledModel(model.plan, model.files).validate(images)
    other = DIGITS.read_bytes() + b" "
    (tmp_path / "digits.tflite").write_bytes(DIGITS.read_bytes())
    moved = bytewright.compile(tmp_path / "digits.tflite")
    (tmp_path / "digits.tflite").write_bytes(other)
    with pytest.raises(bytewright.CompileError, match="is not the file that the bundle was compiled from"):
        moved.validate(images)


def test_runs_over_the_first_axis_of_an_open_batch() -> None:
    model = bytewright.compile(DIGITS, batch_max=4)
    with np.load(HELDOUT) as stored:
        images = stored["images"][:10]
    outputs = model.run(images)
    assert isinstance(outputs, np.ndarray)
    reference = LiteRt(DIGITS)
    np.testing.assert_array_equal(
        outputs, np.concatenate([reference.run(image[np.newaxis])[0] for image in images])
    )
    with pytest.raises(bytewright.CompileError):
        model.run(images[:0])


@pytest.mark.parametrize("name", ["average", "lstm"])
def test_samples_of_a_model_that_keeps_something_are_one_stream(name: str, tmp_path: Path) -> None:
    model = STATE / f"{name}.tflite"
    port = bytewright.compile(model).plan.inputs[0]
    samples = np.random.default_rng(3).standard_normal((4, *port.shape[1:])).astype(np.float32)
    np.save(tmp_path / "x.npy", samples)
    result = validate(model, "--data", tmp_path / "x.npy", "--layers", "--json")
    assert result.exit_code == 0, result.stderr
    assert document(result)["reference"]["num_exact"] == 4
