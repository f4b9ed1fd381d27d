"""Samples: how arrays and files become the inputs of inferences, and what is refused."""

from __future__ import annotations

import errno
import io
import os
import re
import sys
import warnings
import wave
import zipfile
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import bytewright
from bytewright.diagnostics import CompileError
from bytewright.ir.types import DType
from bytewright.record.plan import Plan
from bytewright.validate.references import StoredOutputs
from bytewright.validate.samples import Samples, read_outputs, read_samples, samples_of
from support.digits_bundle import digits_plan, two_by_two

PLAN = digits_plan("host")  # one input, int8[1, 8, 8, 1], of scale 0.0625 and zero point 0; ten classes
IMAGES = np.random.default_rng(0).integers(-128, 128, (5, 8, 8, 1)).astype(np.int8)


def two_inputs(folder: Path) -> Plan:
    """The plan of a model with two inputs and two outputs."""
    (folder / "two.tflite").write_bytes(two_by_two())
    return bytewright.compile(folder / "two.tflite").plan


def refusal(error: pytest.ExceptionInfo[CompileError]) -> str:
    (diagnostic,) = error.value.diagnostics
    assert diagnostic.code == "BW205"
    return diagnostic.message


@pytest.mark.parametrize(
    ("array", "number"),
    [(IMAGES, 5), (IMAGES[:, np.newaxis], 5), (IMAGES[0], 1), (IMAGES[:1], 1)],
    ids=["no batch axis", "batch axis", "one without both", "one"],
)
def test_the_first_axis_counts_samples(array: np.ndarray, number: int) -> None:
    found = samples_of(PLAN, [array])
    assert len(found.batch) == found.num_given == number
    assert found.remarks == ()
    for index, (image,) in enumerate(found.batch):
        assert image.shape == (1, 8, 8, 1)
        np.testing.assert_array_equal(image[0], IMAGES[index])


def test_floats_are_quantised_by_the_scale_of_the_input() -> None:
    steps = np.array([-128.0, -127.5, -0.5, 0.49, 0.5, 1.5, 2.5, 126.5, 127.5, 9000.0] + [0.0] * 54)
    found = samples_of(PLAN, [(steps * 0.0625).reshape(1, 8, 8, 1)])
    wanted = [-128, -128, -1, 0, 1, 2, 3, 127, 127, 127]  # half away from zero, then clamped
    assert found.batch[0][0].reshape(-1)[:10].tolist() == wanted
    (remark,) = found.remarks
    assert "round(x / 0.0625) + 0" in remark


def test_what_is_just_below_a_half_is_rounded_down() -> None:
    below = np.nextafter(np.array([0.5, 1.5, -0.5, -2.5], np.float32), np.float32(0))
    images = np.zeros((1, 8, 8, 1), np.float32)
    images.reshape(-1)[:4] = below * np.float32(0.0625)  # exact
    assert samples_of(PLAN, [images]).batch[0][0].reshape(-1)[:4].tolist() == [0, 1, 0, -2]


@pytest.mark.parametrize(
    ("array", "text"),
    [
        (
            np.zeros((3, 9, 8, 1), np.int8),
            r"a sample of input 'image' is \[1, 8, 8, 1\], the array is int8\[3, 9",
        ),
        (np.zeros((3, 8, 8, 1), np.uint8), "input 'image' must be int8, the samples are uint8"),
        (np.full((1, 8, 8, 1), np.nan), "samples hold infinities or NaN"),
        (np.zeros((0, 8, 8, 1), np.int8), "there are no samples"),
    ],
)
def test_what_does_not_fit_is_refused(array: np.ndarray, text: str) -> None:
    with pytest.raises(CompileError) as error:
        samples_of(PLAN, [array])
    assert re.search(text, refusal(error))


@pytest.mark.parametrize(
    ("labels", "text"),
    [
        (np.zeros(4, int), r"one for each of 5 samples, not int64\[4\]"),
        (np.zeros(5), r"labels must be integers, one for each of 5 samples, not float64\[5\]"),
        (np.array([0, 1, 2, 3, 10]), "labels are 0 to 10, output 'probabilities' has the classes 0 to 9"),
        (np.array([0, 1, 2, 3, -1]), "labels are -1 to 3"),
    ],
)
def test_labels_that_do_not_match_are_refused(labels: np.ndarray, text: str) -> None:
    with pytest.raises(CompileError, match=text) as error:
        samples_of(PLAN, [IMAGES], labels)
    assert error.value.diagnostics[0].help is not None


def test_inputs_have_the_same_number_of_samples(tmp_path: Path) -> None:
    plan = two_inputs(tmp_path)
    with pytest.raises(CompileError, match="5 of 'left', 4 of 'right'"):
        samples_of(plan, [np.zeros((5, 4), np.float32), np.zeros((4, 4), np.float32)])
    with pytest.raises(CompileError, match="has 2 inputs, 1 were given"):
        samples_of(plan, [np.zeros((5, 4), np.float32)])


def read(folder: Path, *names: str, labels: str | None = None, limit: int | None = None) -> Samples:
    return read_samples(PLAN, [(None, folder / name) for name in names], labels, limit)


def test_an_archive_has_inputs_and_labels(tmp_path: Path) -> None:
    np.savez(tmp_path / "all.npz", images=IMAGES, labels=np.arange(5))
    found = read(tmp_path, "all.npz", labels="labels", limit=3)
    assert (len(found.batch), found.num_given) == (3, 5)
    assert found.labels is not None
    assert found.labels.tolist() == [0, 1, 2]
    with pytest.raises(CompileError) as error:
        read(tmp_path, "all.npz")  # which of the two is the input?
    assert error.value.diagnostics[0].help == "--labels labels"


def test_a_folder_has_a_file_for_each_sample_in_the_order_of_names(tmp_path: Path) -> None:
    for index in (3, 0, 2, 1):
        np.save(tmp_path / f"{index}.npy", IMAGES[index])
    (tmp_path / "README").write_text("not a sample", encoding="utf-8")
    found = read_samples(PLAN, [(None, tmp_path)])
    assert [image.tobytes() for (image,) in found.batch] == [image.tobytes() for image in IMAGES[:4]]
    np.save(tmp_path / "9.npy", IMAGES[0][:7])
    with pytest.raises(CompileError) as error:
        read_samples(PLAN, [(None, tmp_path)])
    assert "'0.npy' is int8[8, 8, 1], '9.npy' int8[7, 8, 1]" in refusal(error)


def test_recordings_are_taken_as_they_are(tmp_path: Path) -> None:
    frames = np.arange(64, dtype="<i2")
    with wave.open(str(tmp_path / "a.wav"), "wb") as recording:
        recording.setnchannels(1)
        recording.setsampwidth(2)
        recording.setframerate(16000)
        recording.writeframes(frames.tobytes())
    with pytest.raises(CompileError) as error:  # 16 bits are not 8, and nobody guesses how to make them so
        read_samples(PLAN, [(None, tmp_path / "a.wav")])
    assert "the array is int16[64]" in refusal(error)


def test_pictures_are_taken_as_they_are(tmp_path: Path) -> None:
    pictures = pytest.importorskip("PIL.Image", reason="Pillow is not installed")
    pictures.fromarray(np.arange(64, dtype=np.uint8).reshape(8, 8)).save(tmp_path / "a.png")
    with pytest.raises(CompileError) as error:
        read_samples(PLAN, [(None, tmp_path / "a.png")])
    assert "input 'image' must be int8, the samples are uint8" in refusal(error)


@pytest.mark.parametrize("name", ["a.npy", "a.npz", "a.png", "a.wav", "missing.npy", "nothing"])
def test_what_cannot_be_read_is_one_error(name: str, tmp_path: Path) -> None:
    if name == "a.png":
        pytest.importorskip("PIL.Image", reason="Pillow is not installed")
    if name.startswith("a."):
        (tmp_path / name).write_bytes(b"PK\x03\x04 nothing of the kind")
    elif name == "nothing":
        (tmp_path / name).mkdir()
    with pytest.raises(CompileError) as error:
        read(tmp_path, name)
    assert name in refusal(error)


def test_without_pillow_pictures_say_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "PIL.Image", None)
    (tmp_path / "a.png").write_bytes(b"\x89PNG")
    with pytest.raises(CompileError) as error:
        read(tmp_path, "a.png")
    (diagnostic,) = error.value.diagnostics
    assert (diagnostic.code, diagnostic.help) == ("BW501", 'install it: pip install "bytewright[validate]"')


def test_outputs_of_a_file_are_those_of_the_model(tmp_path: Path) -> None:
    plan = two_inputs(tmp_path)
    with pytest.raises(CompileError, match="has 2 outputs: give them in a"):
        read_outputs(plan, tmp_path / "one.npy")
    np.savez(tmp_path / "some.npz", total=np.zeros(4))
    with pytest.raises(CompileError, match="has no array 'difference'"):
        read_outputs(plan, tmp_path / "some.npz")


def recording(path: Path, frames: int = 64, rate: int = 16000, cut: int = 0) -> None:
    with wave.open(str(path), "wb") as stored:
        stored.setnchannels(1)
        stored.setsampwidth(2)
        stored.setframerate(rate)
        stored.writeframes(bytes(2 * frames))
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size - cut)


def of_type(dtype: str) -> Plan:
    """The plan with an input of another type, without a scale."""
    own = next(each for each in DType if each.numpy == dtype)
    tensor = replace(PLAN.inputs[0], dtype=own, scale=None, zero_point=None)
    return replace(PLAN, inputs=(tensor,))


@pytest.mark.parametrize("dtype", ["int16", "int32", "float32"])
def test_the_byte_order_of_a_file_does_not_matter(dtype: str, tmp_path: Path) -> None:
    images = IMAGES.astype(dtype) * 3
    np.save(tmp_path / "x.npy", images.astype(images.dtype.newbyteorder(">")))
    found = read_samples(of_type(dtype), [(None, tmp_path / "x.npy")])
    assert found.remarks == ()
    np.testing.assert_array_equal(np.concatenate([image for (image,) in found.batch]), images)
    assert samples_of(of_type(dtype), [images.astype(images.dtype.newbyteorder(">"))]).remarks == ()


@pytest.mark.parametrize("plan", [PLAN, of_type("float32")])
@pytest.mark.filterwarnings("error")
def test_a_number_that_rounding_would_make_infinite_is_refused(plan: Plan) -> None:
    images = IMAGES.astype(np.float64)
    images[2, 3, 3, 0] = -1e300
    with pytest.raises(CompileError, match=r"samples hold 1e\+300, which no float32 can be"):
        samples_of(plan, [images])


def test_objects_of_python_are_not_read_and_only_what_is_asked_for_is(tmp_path: Path) -> None:
    class Trap:
        def __reduce__(self) -> tuple[object, tuple[str]]:
            return (Path.touch, (tmp_path / "executed",))  # type: ignore[return-value]

    objects = np.array([Trap()], dtype=object)
    np.save(tmp_path / "x.npy", objects, allow_pickle=True)
    np.savez(tmp_path / "x.npz", image=objects)
    for name in ("x.npy", "x.npz"):
        with pytest.raises(CompileError, match="it holds objects of Python, which are code and are not read"):
            read(tmp_path, name)
    np.savez(tmp_path / "beside.npz", image=IMAGES, names=objects)
    assert len(read(tmp_path, "beside.npz").batch) == 5
    assert not (tmp_path / "executed").exists()


def test_an_array_that_an_archive_has_twice_is_refused(tmp_path: Path) -> None:
    content = io.BytesIO()
    np.save(content, IMAGES)
    with zipfile.ZipFile(tmp_path / "x.npz", "w") as archive, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        archive.writestr("image.npy", content.getvalue())
        archive.writestr("image.npy", content.getvalue())
    with pytest.raises(CompileError, match=re.escape("it has 'image.npy' twice")):
        read(tmp_path, "x.npz")


@pytest.mark.parametrize("kind", ["npy", "npz", "png", "wav"])
def test_damage_of_any_byte_is_an_error_or_another_sample(kind: str, tmp_path: Path) -> None:
    """Readers of files trip over damage in many ways: none of them is a bug of ours."""
    path = tmp_path / f"x.{kind}"
    if kind == "png":
        pictures = pytest.importorskip("PIL.Image", reason="Pillow is not installed")
        pictures.fromarray(np.arange(64, dtype=np.uint8).reshape(8, 8)).save(path)
    elif kind == "wav":
        recording(path)
    elif kind == "npz":
        np.savez_compressed(path, image=IMAGES)
    else:
        np.save(path, IMAGES)
    whole = path.read_bytes()
    random = np.random.default_rng(5)
    for _ in range(150):
        content = bytearray(whole)
        for place in random.integers(0, min(len(content), 400), random.integers(1, 4)):
            content[place] = random.integers(0, 256)
        path.write_bytes(content[: random.integers(1, 2 * len(content))])
        with suppress(CompileError):
            read(tmp_path, path.name)


def test_pictures_that_are_more_than_pixels_are_refused(tmp_path: Path) -> None:
    pictures = pytest.importorskip("PIL.Image", reason="Pillow is not installed")
    grey = pictures.new("L", (8, 8))
    palette = pictures.new("P", (8, 8))
    palette.putpalette([255, 0, 0] * 256)
    palette.save(tmp_path / "palette.png")
    grey.save(tmp_path / "moves.png", save_all=True, append_images=[pictures.new("L", (8, 8), 9)])
    grey.save(tmp_path / "a.jpg")
    (tmp_path / "a.jpg").rename(tmp_path / "jpeg.png")
    pictures.new("RGBA", (8, 8)).save(tmp_path / "alpha.png")
    for name, reason in (
        ("palette.png", "its pixels are numbers of a palette"),
        ("moves.png", "it holds 2 pictures"),
        ("jpeg.png", "it is no PNG picture"),
        ("alpha.png", r"the array is uint8\[8, 8, 4\]"),
    ):
        with pytest.raises(CompileError, match=reason):
            read(tmp_path, name)


def test_recordings_are_whole_and_of_one_rate_which_is_said(tmp_path: Path) -> None:
    recording(tmp_path / "cut.wav", cut=20)
    with pytest.raises(CompileError, match="it ends after 108 B of 64 frames of 2 B"):
        read(tmp_path, "cut.wav")
    (tmp_path / "both").mkdir()
    recording(tmp_path / "both" / "a.wav")
    tensor = replace(of_type("int16").inputs[0], shape=(1, 64), extents=(1, 64))
    plan = replace(PLAN, inputs=(tensor,))
    found = read_samples(plan, [(None, tmp_path / "both")])
    assert found.remarks == (f"'{tmp_path / 'both'}': 16000 frames a second, as recorded",)
    recording(tmp_path / "both" / "b.wav", rate=8000)
    with pytest.raises(CompileError) as error:
        read_samples(plan, [(None, tmp_path / "both")])
    assert "'a.wav' is int16[64] at 16000 Hz, 'b.wav' int16[64] at 8000 Hz" in refusal(error)


def test_files_whose_order_is_not_clear_go_with_no_labels(tmp_path: Path) -> None:
    folder = tmp_path / "images"
    folder.mkdir()
    np.save(tmp_path / "labels.npy", np.arange(3))
    for number in (1, 2, 10):
        np.save(folder / f"s{number}.npy", IMAGES[0])
    assert len(read(tmp_path, "images").batch) == 3
    for how in ({"labels": str(tmp_path / "labels.npy")}, {"is_paired": True}):
        with pytest.raises(CompileError) as error:
            read_samples(PLAN, [(None, folder)], **how)  # type: ignore[arg-type]
        assert "'s10.npy' comes before 's2.npy' by name, and behind it by number" in refusal(error)
    for number in (1, 2):
        (folder / f"s{number}.npy").rename(folder / f"s0{number}.npy")
    assert read(tmp_path, "images", labels=str(tmp_path / "labels.npy")).labels is not None


def test_a_folder_that_cannot_be_read_is_said_to_be_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(CompileError, match=r"BW205.*cannot read 'x{300}': File name too long"):
        read_samples(PLAN, [(None, Path("x" * 300))])

    def refuse(path: Path) -> list[Path]:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))

    monkeypatch.setattr(Path, "iterdir", refuse)
    with pytest.raises(CompileError, match=r"cannot read '.*': Permission denied"):
        read_samples(PLAN, [(None, tmp_path)])


@pytest.mark.parametrize("shape", [(10, 5), (1, 50), (5, 2, 5)])
def test_outputs_of_a_file_in_another_layout_are_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(CompileError, match=re.escape(f"it holds int8{list(shape)}")):
        StoredOutputs("y.npy", PLAN, [np.zeros(shape, np.int8)], 5)
    assert StoredOutputs("y.npy", PLAN, [np.zeros((5, 10), np.int8)], 5).run(4, [])[0].shape == (1, 10)
