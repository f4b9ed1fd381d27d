"""The camera example on this machine: its C is clean, its scores are LiteRT's, and each fault has its error code."""

from __future__ import annotations

import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import bytewright
from bytewright.diagnostics import CompileError
from support.reference import LiteRt
from support.shared_models import new_folder

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "camera"
sys.path.insert(0, str(EXAMPLE))

from build_reader import build_for_host, run_here, scores_of  # noqa: E402
from recording import HARD, Events, Frame, demonstration, events, held_out, photograph, square_of  # noqa: E402

MODEL = EXAMPLE / "reader.tflite"
STRICT = ("-Werror", "-O0", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
MISSING = "dropped, error -16: lines are missing"
TOO_LONG = "dropped, error -15: it had too many lines"
ANEW = "dropped, the next one began before it ended"


@cache
def program() -> Path:
    folder = new_folder()
    bytewright.compile(MODEL, target="mps3-an547", io="rows").write(folder / "rows")
    build_for_host(folder / "rows", folder / "reader", STRICT)
    return folder / "reader"


@cache
def frames() -> list[Frame]:
    """Of digits that are hard to read, so that the scores say much."""
    images, _ = held_out()
    return [photograph(images[number], number) for number in HARD]


@cache
def expected(number: int) -> list[int]:
    (output,) = LiteRt(MODEL).run(square_of(frames()[number]))
    return [int(score) + 128 for score in output.ravel()]


def said(number: int, position: int) -> str:
    """What the program prints of a frame that it reads."""
    scores = expected(number)
    return f"frame {position}: {int(np.argmax(scores))}, scores {' '.join(map(str, scores))}"


def read(recording: Events, folder: Path) -> list[str]:
    return run_here(program(), recording, folder).splitlines()


def test_the_demonstration(tmp_path: Path) -> None:
    _, labels, recording, readable = demonstration()
    lines = read(recording, tmp_path)
    assert readable == [1, 3, 6]
    assert [int(np.argmax(expected(number))) for number in readable] == list(labels[readable])
    assert lines == [
        said(1, 1),
        f"frame 2: {MISSING}",
        said(3, 3),
        f"frame 4: {TOO_LONG}",
        f"frame 5: {ANEW}",
        said(6, 6),
        "lines lost: 0, outside of frames: 42",
    ]


def test_pixels_of_every_brightness(tmp_path: Path) -> None:
    """Noise from black to white over half of a digit."""
    noisy = frames()[1].copy()
    noise = np.random.default_rng(8).integers(0, 256, noisy.shape).astype(np.uint8)
    noisy[::2] = noise[::2]
    noisy[0, 20:140] = np.linspace(0, 255, 120).astype(np.uint8)
    (output,) = LiteRt(MODEL).run(square_of(noisy))
    scores = [int(score) + 128 for score in output.ravel()]
    assert sum(0 < score < 255 for score in scores) > 2
    assert scores_of("\n".join(read(events(noisy), tmp_path))) == {1: scores}


def test_frames_that_come_as_they_should(tmp_path: Path) -> None:
    lines = read([event for frame in frames() for event in events(frame)], tmp_path)
    assert lines[:-1] == [said(number, number + 1) for number in range(len(frames()))]
    assert lines[-1] == "lines lost: 0, outside of frames: 0"


@pytest.mark.parametrize("missing", [0, 1, 59, 119])
def test_a_line_that_is_missing(missing: int, tmp_path: Path) -> None:
    broken = events(frames()[0])
    del broken[1 + missing]
    lines = read([*broken, *events(frames()[1])], tmp_path)
    assert lines == [f"frame 1: {MISSING}", said(1, 2), "lines lost: 0, outside of frames: 0"]


@pytest.mark.parametrize("twice", [0, 59, 119])
def test_a_line_too_many(twice: int, tmp_path: Path) -> None:
    long = events(frames()[0])
    long.insert(1 + twice, long[1 + twice])
    lines = read([*long, *events(frames()[1])], tmp_path)
    assert lines == [f"frame 1: {TOO_LONG}", said(1, 2), "lines lost: 0, outside of frames: 0"]


@pytest.mark.parametrize("num_lines", [0, 1, 70, 120])
def test_a_frame_that_begins_anew(num_lines: int, tmp_path: Path) -> None:
    """Even one that has all its lines is no frame without its end."""
    lines = read([*events(frames()[0])[: 1 + num_lines], *events(frames()[1])], tmp_path)
    assert lines == [f"frame 1: {ANEW}", said(1, 2), "lines lost: 0, outside of frames: 0"]


def test_lines_and_ends_outside_of_frames(tmp_path: Path) -> None:
    whole = events(frames()[0])
    lines = read([*whole[100:], *whole, *whole[5:10], *events(frames()[1])], tmp_path)
    # 21 lines and an end before the first frame, five lines behind it.
    assert lines == [said(0, 1), said(1, 2), "lines lost: 0, outside of frames: 27"]


def test_a_camera_that_stops(tmp_path: Path) -> None:
    lines = read(events(frames()[0])[:90], tmp_path)
    assert lines[0] == "frame 1: dropped, the camera stopped before it ended"
    assert read([], tmp_path) == ["lines lost: 0, outside of frames: 0"]


def test_no_camera(tmp_path: Path) -> None:
    done = subprocess.run([program()], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (1, "camera: error -1\n")


@pytest.mark.parametrize("seed", range(4))
def test_random_faults(seed: int, tmp_path: Path) -> None:
    """A frame is read if 120 lines came between its begin and its end, and then as LiteRT reads these lines."""
    random = np.random.default_rng(seed)
    recording: Events = []
    wanted: dict[int, list[int]] = {}
    for position in range(1, 16):
        number = int(random.integers(len(frames())))
        frame = events(frames()[number])
        match random.integers(4):
            case 0:
                del frame[int(random.integers(1, 121))]
            case 1:
                frame.insert(int(random.integers(1, 121)), frame[60])
            case 2:
                del frame[int(random.integers(2, 122)) :]
            case _:
                wanted[position] = expected(number)
        recording += frame
    assert 0 < len(wanted) < 15
    assert scores_of("\n".join(read(recording, tmp_path))) == wanted


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
@pytest.mark.parametrize("level", ["-O0", "-O3"])
def test_the_program_has_no_warnings(
    compiler: str, level: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CC", compiler)
    build_for_host(program().parent / "rows", tmp_path / "reader", ("-Werror", level))
    lines = run_here(tmp_path / "reader", events(frames()[0]), tmp_path).splitlines()
    assert lines[0] == said(0, 1)


@pytest.mark.parametrize(
    ("scale", "zero_point"),
    [pytest.param(0.0065, -100, id="fewer-steps"), pytest.param(0.003, -128, id="cut-off-at-white")],
)
def test_a_pixel_follows_scale_and_zero_point_of_the_header(
    scale: float, zero_point: int, tmp_path: Path
) -> None:
    """Those of another model, in the same header."""
    folder = tmp_path / "rows"
    bytewright.compile(MODEL, target="mps3-an547", io="rows").write(folder)
    path = folder / "include" / "reader.h"
    header = path.read_text(encoding="utf-8")
    for name, value in (("SCALE", f"{scale}f"), ("ZERO_POINT", f"({zero_point})")):
        header, count = re.subn(rf"(#define READER_INPUT_FRAME_{name}) .*", rf"\1 {value}", header)
        assert count == 1
    path.write_text(header, encoding="utf-8")
    build_for_host(folder, tmp_path / "reader", STRICT)
    reference = LiteRt(MODEL)
    wanted: dict[int, list[int]] = {}
    for position, frame in enumerate(frames(), start=1):
        stored = np.rint(frame[:, 20:140] / 255 / scale) + zero_point
        square = np.clip(stored, -128, 127).astype(np.int8)[np.newaxis, ..., np.newaxis]
        wanted[position] = [int(score) + 128 for score in reference.run(square)[0].ravel()]
    assert len({tuple(scores) for scores in wanted.values()}) > 3
    recording = [event for frame in frames() for event in events(frame)]
    assert scores_of(run_here(tmp_path / "reader", recording, tmp_path)) == wanted


def test_another_model_is_refused_when_the_program_is_compiled(tmp_path: Path) -> None:
    """One whose image has another number of rows, under the same names."""
    bytewright.compile(EXAMPLE.parent / "digits" / "digits.tflite", target="mps3-an547", io="rows").write(
        tmp_path / "digits"
    )
    header = (tmp_path / "digits" / "include" / "digits.h").read_text(encoding="utf-8")
    other = header.replace("DIGITS_", "READER_").replace("digits", "reader").replace("_IMAGE_", "_FRAME_")
    bytewright.compile(MODEL, target="mps3-an547", io="rows").write(tmp_path / "rows")
    (tmp_path / "rows" / "include" / "reader.h").write_text(other, encoding="utf-8")
    with pytest.raises(CompileError) as caught:
        build_for_host(tmp_path / "rows", tmp_path / "reader")
    assert "the model is for another camera" in str(caught.value)
