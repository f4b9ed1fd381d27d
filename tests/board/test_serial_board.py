"""`--on serial:PORT` with the UART of an emulated board: the C that Arm's compiler makes, and its counter of cycles.

What the counter must say follows from QEMU: with `-icount shift=5` an instruction takes 32 ns, and SysTick of this
board counts at 25 MHz. docs/serial.md, whose commands a test runs, has the program.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Generator
from pathlib import Path

import numpy as np
import pytest

from bytewright.execute.description import read_bundle
from bytewright.execute.machine import SerialPort
from bytewright.execute.profile.measure import profile_bundle
from bytewright.execute.run import run_batch, run_bundle
from bytewright.execute.serial.source import serial_files
from support.c_program import LANGUAGE, run_command
from support.digits_bundle import write_digits

pytestmark = pytest.mark.board
ROOT = Path(__file__).resolve().parents[2]
NANOSECONDS, MEGAHERTZ = 32, 25
CORE = ("-mcpu=cortex-m4", "-mthumb", "-mfloat-abi=hard", "-mfpu=fpv4-sp-d16")


@pytest.fixture(scope="module")
def digits(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_digits(tmp_path_factory.mktemp("serial") / "digits", "mps2-an386")


@pytest.fixture(scope="module")
def port(digits: Path) -> Generator[SerialPort, None, None]:
    """The board of the document, with a clock between its kernels."""
    folder = digits.parent
    document = (ROOT / "docs" / "serial.md").read_text(encoding="utf-8")
    for name, text in re.findall(
        r"^```\w+\n/\* ([\w.]+) \*/\n(.*?)^```$", document, re.MULTILINE | re.DOTALL
    ):
        (folder / name).write_text(text)
    for name, text in serial_files(read_bundle(digits)).items():
        (folder / name).write_text(text)
    warnings = ("-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Wconversion", "-Werror")
    linking = ("-nostartfiles", "-Wl,--gc-sections,--no-warn-rwx-segments", "-T", "board.ld", "-lm")
    flags = [*CORE, *LANGUAGE, "-O2", "-ffunction-sections", f"-I{digits / 'include'}", "-I."]
    run_command(["arm-none-eabi-gcc", *flags, *warnings, "-c", "digits_serial.c"], folder)
    sources = ["main.c", "digits_serial.o", *(digits / "src").glob("*.c")]
    command = [
        "arm-none-eabi-gcc",
        *flags,
        "-include",
        "digits_serial_steps.h",
        *sources,
        *linking,
        "-o",
        "app.elf",
    ]
    run_command(command, folder)
    emulator = [
        "qemu-system-arm",
        "-M",
        "mps2-an386",
        "-display",
        "none",
        "-monitor",
        "none",
        "-icount",
        "shift=5",
    ]
    process = subprocess.Popen(
        [*emulator, "-serial", "pty", "-kernel", "app.elf"], cwd=folder, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    yield SerialPort(process.stdout.readline().split()[4])
    process.kill()
    process.wait()


def test_outputs_are_those_of_the_emulated_board_and_cycles_follow_its_instructions(
    digits: Path, port: SerialPort
) -> None:
    own, emulated = (run_bundle(digits, seed=3, on=on) for on in (port, "qemu"))
    np.testing.assert_array_equal(own.outputs[0], emulated.outputs[0])
    assert own.cycles is not None
    assert emulated.instructions is not None
    per_instruction = NANOSECONDS * MEGAHERTZ / 1000
    assert own.cycles == pytest.approx(per_instruction * emulated.instructions, rel=0.01)


def test_steps_have_the_cycles_of_their_instructions(digits: Path, port: SerialPort) -> None:
    own, emulated = (profile_bundle(digits, seed=3, on=on, repeat=1) for on in (port, "qemu"))
    per_instruction = NANOSECONDS * MEGAHERTZ / 1000
    for step, counted in zip(own.steps, emulated.steps, strict=True):
        assert step.cost.amount == pytest.approx(per_instruction * counted.cost.amount, rel=0.05, abs=200)


def test_one_job_has_many_samples(digits: Path, port: SerialPort) -> None:
    random = np.random.default_rng(1)
    batch = [[random.integers(-128, 128, (1, 8, 8, 1)).astype(np.int8)] for _ in range(8)]
    own, here = (run_batch(digits, batch, on=on).outputs for on in (port, "host"))
    for first, second in zip(own, here, strict=True):
        np.testing.assert_array_equal(first[0], second[0])
