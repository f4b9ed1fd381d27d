"""`make demo` as a user sees it, and the shipped example on the board against LiteRT."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import bytewright
from bytewright.execute.run import run_batch
from support.reference import LiteRt

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "digits"


def run_demo(environment: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(EXAMPLE / "demo.py")],
        capture_output=True,
        text=True,
        timeout=120,
        env=environment,
        check=False,
    )


def test_the_board_equals_litert(tmp_path: Path) -> None:
    model = bytewright.compile(EXAMPLE / "digits.tflite", target="mps3-an547")
    model.write(tmp_path / "digits")
    with np.load(EXAMPLE / "heldout.npz") as stored:
        images = stored["images"][-60:, np.newaxis]
    result = run_batch(tmp_path / "digits", [[image] for image in images], on="qemu")
    reference = LiteRt(EXAMPLE / "digits.tflite")
    expected = np.stack([reference.run(image)[0] for image in images])
    np.testing.assert_array_equal(np.stack([outputs[0] for outputs in result.outputs]), expected)
    # `sum` as a whole, three rows of `stem` and one of `depthwise`.
    assert result.workspace_bytes == 1536


def test_the_demo_shows_what_it_promises() -> None:
    done = run_demo()
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    lines = done.stdout.splitlines()
    assert len(lines) < 60
    assert max(len(line) for line in lines) <= 80
    assert "The Cortex-M55 reads this as 5" in done.stdout
    assert "@@" in done.stdout
    assert re.search(r"35[0-9] of 360 \(9[0-9.]+%\) +3[56] of 36 \([0-9.]+%\)", done.stdout)
    assert re.search(r"one inference .* [0-9]{2,3},[0-9]{3} instructions", done.stdout)
    assert re.search(r"RAM: together +1,[0-9]{3} B", done.stdout)
    assert re.search(r"flash: code and weights +1[0-9],[0-9]{3} B", done.stdout)
    assert re.search(r"dtcm: 1536 B .* at the peak \(steps 0..2\)", done.stdout)
    assert "Both give the same bytes" in done.stdout


@pytest.mark.parametrize(
    ("programs", "package"),
    [
        ((), "gcc"),
        (("cc", "as", "ld"), "qemu-system-arm"),
        (("cc", "as", "ld", "qemu-system-arm"), "gcc-arm-none-eabi"),
    ],
)
def test_what_is_missing_is_named_by_its_debian_package(
    tmp_path: Path, programs: tuple[str, ...], package: str
) -> None:
    for program in programs:
        (tmp_path / program).symlink_to(Path("/usr/bin") / program)
    done = run_demo({"PATH": str(tmp_path)})
    assert done.returncode == 5
    assert f"apt-get install {package} " in done.stderr
    assert "Traceback" not in done.stderr
