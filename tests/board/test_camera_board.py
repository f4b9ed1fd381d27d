"""The camera example on the board, where lines come by interrupts, and `make demo-camera` as a user sees it.

QEMU's clock counts instructions, so that interrupts come after the same instruction each time.
"""

from __future__ import annotations

import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

import bytewright
from support.reference import LiteRt
from support.shared_models import new_folder

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "camera"
sys.path.insert(0, str(EXAMPLE))

from build_reader import build_for_board, run_on_board, scores_of  # noqa: E402
from recording import demonstration, events, held_out, photograph, square_of  # noqa: E402

MODEL = EXAMPLE / "reader.tflite"


@cache
def image() -> Path:
    folder = new_folder()
    bytewright.compile(MODEL, target="mps3-an547", io="rows").write(folder / "rows")
    build_for_board(folder / "rows", folder / "reader.elf", ("-O2", "-Werror", "-Wl,--fatal-warnings"))
    return folder / "reader.elf"


@pytest.mark.parametrize("shift", [1, 2, 5, 6])
def test_what_the_board_reads_is_what_litert_reads(shift: int, tmp_path: Path) -> None:
    """Also where it is too slow for the camera: then frames are dropped, and none is read wrongly."""
    frames = [photograph(digit, number) for number, digit in enumerate(held_out()[0][:20])]
    printed = run_on_board(
        image(), [event for frame in frames for event in events(frame)], tmp_path, shift
    ).splitlines()
    reference = LiteRt(MODEL)
    found = scores_of("\n".join(printed))
    for number, scores in found.items():
        assert scores == [int(s) + 128 for s in reference.run(square_of(frames[number - 1]))[0].ravel()]
    dropped = [line for line in printed if "dropped" in line]
    assert len(found) + len(dropped) == len(frames)
    assert all("error -16: lines are missing" in line for line in dropped)
    is_fast = shift <= 2
    assert (not dropped) == is_fast
    assert (printed[-1] == "lines lost: 0, outside of frames: 0") == is_fast


def test_lines_too_many_do_not_stand_for_lines_that_were_lost(tmp_path: Path) -> None:
    """A slow processor loses the first lines of every second frame, which has more than it should; none is read."""
    whole = events(photograph(held_out()[0][1], 1))
    long = [whole[:1] + num_lines * whole[60:61] + whole[1:] for num_lines in range(30, 80)]
    printed = run_on_board(image(), [e for frame in long for e in [*whole, *frame]], tmp_path, 5).splitlines()
    assert len(printed) == 101
    assert all("scores" in line for line in printed[:-1:2])
    assert all("error -16: lines are missing" in line for line in printed[1:-1:2])


def test_the_same_frames_and_errors_as_on_this_machine(tmp_path: Path) -> None:
    frames, _, recording, readable = demonstration()
    reference = LiteRt(MODEL)
    printed = run_on_board(image(), recording, tmp_path)
    found = scores_of(printed)
    assert list(found) == readable
    for number, scores in found.items():
        assert scores == [int(s) + 128 for s in reference.run(square_of(frames[number]))[0].ravel()]
    assert "frame 2: dropped, error -16" in printed
    assert "frame 4: dropped, error -15" in printed


def test_no_memory_of_the_image_could_hold_a_frame() -> None:
    """What changes, the heap and the stack apart, is far smaller than 120 x 120."""
    shown = subprocess.run(
        ["arm-none-eabi-size", "-A", str(image())], capture_output=True, text=True, timeout=60, check=True
    ).stdout
    sizes = {
        words[0]: int(words[1])
        for line in shown.splitlines()
        if (words := line.split()) and words[0][0] == "."
    }
    assert sizes[".dtcm"] == 1600
    assert sizes[".dtcm"] + sizes[".data"] + sizes[".bss"] < 3 * 1024


def test_the_demo_shows_what_the_readme_says() -> None:
    done = subprocess.run(
        [sys.executable, str(EXAMPLE / "demo.py")], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    lines = done.stdout.splitlines()
    assert len(lines) < 60
    assert max(map(len, lines)) <= 80
    assert "  frame 3: 3, scores 0 0 0 150 0 8 0 0 1 96" in lines
    assert "This machine says the same." in lines
    assert "All scores are the same as those of the build for whole frames." in lines
    table = [re.fullmatch(r"(\w.*\S) {2,}([0-9,]+) {2,}([0-9,]+)", line) for line in lines]
    rows = [(row[1], row[2].replace(",", ""), row[3].replace(",", "")) for row in table if row]
    assert len(rows) == 5
    readme = (EXAMPLE / "README.md").read_text(encoding="utf-8")
    assert all(f"| {' | '.join(row)} |" in readme for row in rows)
    # The project's README says what it comes to.
    *_, (_, whole, by_rows) = rows
    text = (EXAMPLE.parents[1] / "README.md").read_text(encoding="utf-8")
    assert f"which needs {by_rows} bytes of RAM for the model and its lines, in place of {whole}." in text


def test_a_missing_program_is_named_by_its_debian_package(tmp_path: Path) -> None:
    for program in ("cc", "as", "ld", "qemu-system-arm"):
        (tmp_path / program).symlink_to(Path("/usr/bin") / program)
    done = subprocess.run(
        [sys.executable, str(EXAMPLE / "demo.py")],
        capture_output=True,
        text=True,
        timeout=120,
        env={"PATH": str(tmp_path)},
        check=False,
    )
    assert done.returncode == 5
    assert "apt-get install gcc-arm-none-eabi " in done.stderr
    assert "Traceback" not in done.stderr
