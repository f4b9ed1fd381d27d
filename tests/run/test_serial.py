"""`--on serial:PORT`: a board that runs the bundle, one that runs another, and lines that damage, lose or stop."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import tflite
from click.testing import CliRunner, Result

import bytewright
from bytewright.cli.main import bytewright as command
from bytewright.execute.description import read_bundle
from bytewright.execute.machine import SerialPort
from bytewright.execute.run import run_batch, run_bundle
from bytewright.execute.serial.source import serial_files
from support.c_program import LANGUAGE, WARNINGS, run_command
from support.digits_bundle import DIGITS, change_file, write_digits
from support.entry_programs import WAKE, classified
from support.reference import LiteRt
from support.serial_board import behind_a_line, serial_program
from support.state_programs import ACCUMULATOR, accumulated

pytestmark = pytest.mark.run
HELDOUT = DIGITS.parent / "heldout.npz"


def invoke(*arguments: object) -> Result:
    return CliRunner().invoke(command, [str(argument) for argument in arguments])


@pytest.fixture(scope="module")
def digits(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_digits(tmp_path_factory.mktemp("serial") / "digits", "host")


@pytest.fixture(scope="module")
def program(digits: Path) -> Path:
    return serial_program(digits, digits.parent / "program")


def images(count: int) -> list[list[np.ndarray]]:
    with np.load(HELDOUT) as stored:
        return [[image[np.newaxis]] for image in stored["images"][:count]]


def wanted(batch: list[list[np.ndarray]]) -> list[np.ndarray]:
    reference = LiteRt(DIGITS)
    return [reference.run(*inputs)[0] for inputs in batch]


def assert_exact(address: str, digits: Path, batch: list[list[np.ndarray]]) -> int:
    """Runs a batch; how many frames were sent again."""
    result = run_batch(digits, batch, on=SerialPort(address), timeout_seconds=20)
    for (own,), reference in zip(result.outputs, wanted(batch), strict=True):
        np.testing.assert_array_equal(own, reference)
    return result.num_resent_frames


def test_outputs_are_those_of_the_reference_and_cycles_those_of_the_counter(
    digits: Path, program: Path
) -> None:
    with behind_a_line([program]) as address:
        assert assert_exact(address, digits, images(20)) == 0
        result = run_bundle(digits, images(1)[0], on=SerialPort(address), repeat=3)
        assert (result.details.cycles, result.instructions, result.microseconds) == ((7, 7, 7), None, None)
        shown = invoke("run", digits, "--on", f"serial:{address}")
        assert shown.exit_code == 0, shown.stderr
        assert "\n7 cycles, by the core's counter\n" in shown.stdout
        assert f"target host, run on serial:{address}\n" in shown.stdout
        found = json.loads(invoke("run", digits, "--on", f"serial:{address}", "--json").stdout)
        here = json.loads(invoke("run", digits, "--json").stdout)
        assert found["outputs"] == here["outputs"]
        assert (found["cycles"], here["cycles"], found["on"]) == (7, None, f"serial:{address}")


def test_samples_are_validated_in_one_job(digits: Path, program: Path) -> None:
    data = ("--data", HELDOUT, "--labels", "labels", "--samples", 40, "--model", DIGITS)
    with behind_a_line([program]) as address:
        result = invoke("validate", digits, *data, "--on", f"serial:{address}", "--json")
        assert result.exit_code == 0, result.stderr
        found = json.loads(result.stdout)
        assert (found["reference"]["num_exact"], found["num_right"], found["on"]) == (
            40,
            40,
            f"serial:{address}",
        )
        refused = invoke("validate", digits, *data, "--on", f"serial:{address}", "--layers")
        assert refused.exit_code == 2


def test_one_bit_in_any_place_is_found_and_sent_again(digits: Path, program: Path) -> None:
    """In both directions of a whole conversation, between its begin and its end: outputs stay exact."""
    num_bytes = {True: 0, False: 0}

    def count(to_board: bool, before: int, data: bytes) -> bytes:
        num_bytes[to_board] = before + len(data)
        return data

    with behind_a_line([program], count) as address:
        assert assert_exact(address, digits, images(3)) == 0
    assert min(num_bytes.values()) > 100
    for to_board, total in num_bytes.items():
        for place in range(70, total - 25, 83):

            def flip(
                goes_to_board: bool, before: int, data: bytes, at: tuple[bool, int] = (to_board, place)
            ) -> bytes:
                if goes_to_board is not at[0] or not before <= at[1] < before + len(data):
                    return data
                index = at[1] - before
                return data[:index] + bytes([data[index] ^ 1 << at[1] % 8]) + data[index + 1 :]

            with behind_a_line([program], flip) as address:
                assert assert_exact(address, digits, images(3)) >= 1


def test_a_frame_that_is_lost_is_asked_for_again(digits: Path, program: Path) -> None:
    lost: list[bytes] = []

    def lose(to_board: bool, before: int, data: bytes) -> bytes:
        if to_board and before > 150 and not lost:
            lost.append(data)
            return b""
        return data

    with behind_a_line([program], lose) as address:
        assert assert_exact(address, digits, images(3)) >= 1
    assert lost


def test_a_line_that_damages_everything_is_refused(digits: Path, program: Path) -> None:
    def damage(to_board: bool, before: int, data: bytes) -> bytes:
        return data if to_board or before < 60 else bytes(byte ^ 4 if byte > 8 else byte for byte in data)

    with behind_a_line([program], damage) as address:
        result = invoke("run", digits, "--on", f"serial:{address}")
    assert result.exit_code == 5
    assert "error[BW507]: of the frames over" in result.stderr
    assert "17 in a row were damaged or lost" in result.stderr


def test_a_board_with_another_plan_is_refused_by_both_hashes(
    digits: Path, program: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    assert invoke("compile", DIGITS, "-o", other, "--io", "workspace").exit_code == 0
    hashes = [read_bundle(folder).plan.plan_hash for folder in (digits, other)]
    assert hashes[0] != hashes[1]
    with behind_a_line([program]) as address:
        result = invoke("run", other, "--on", f"serial:{address}")
        assert result.exit_code == 4
        assert f"error[BW407]: the board on '{address}' runs plan {hashes[0][:12]}" in result.stderr
        assert f"board:  {hashes[0]}" in result.stderr
        assert f"bundle: {hashes[1]}" in result.stderr
        assert_exact(address, digits, images(1))  # the board goes on


def test_other_weights_are_another_plan(tmp_path: Path) -> None:
    """A board with the network of another training is told apart."""
    content = DIGITS.read_bytes()
    model = tflite.Model.GetRootAs(content)
    buffers = (model.Buffers(index).DataAsNumpy() for index in range(model.BuffersLength()))
    weights = max((buffer for buffer in buffers if isinstance(buffer, np.ndarray)), key=len).tobytes()
    changed = bytearray(content)
    changed[content.index(weights)] ^= 1
    (tmp_path / "new.tflite").write_bytes(changed)
    old, new = (bytewright.compile(path, name="digits").plan for path in (DIGITS, tmp_path / "new.tflite"))
    assert [step.kernel for step in old.steps] == [step.kernel for step in new.steps]
    assert old.plan_hash != new.plan_hash


def test_a_port_without_a_board(digits: Path) -> None:
    with behind_a_line(["sleep", "60"]) as address:
        result = invoke("run", digits, "--on", f"serial:{address},9600", "--timeout", "0.3")
        assert result.exit_code == 5
        silent = f"error[BW506]: no board answers on '{address}' at 9600 baud within 0.3 s: nothing came"
        assert silent in result.stderr
    with behind_a_line(["yes", "a board with another program"]) as address:
        result = invoke("run", digits, "--on", f"serial:{address}", "--timeout", "0.3")
        assert "B came, and none of them are such an answer" in result.stderr
    for port, reason in (
        ("/dev/nowhere", "No such file or directory"),
        ("ftp://board", "protocol 'ftp' not known"),
    ):
        result = invoke("run", digits, "--on", f"serial:{port}")
        assert result.exit_code == 5
        assert f"error[BW506]: the serial port '{port}' cannot be opened: " in result.stderr
        assert reason in result.stderr


def test_a_board_that_stops_in_the_middle(digits: Path, program: Path) -> None:
    def stop(to_board: bool, before: int, data: bytes) -> bytes:
        return data if to_board or before < 150 else b""

    with behind_a_line([program], stop) as address:
        result = invoke("run", digits, "--on", f"serial:{address}", "--timeout", "1.5")
        assert result.exit_code == 5
        assert f"error[BW506]: the board on '{address}' stopped: nothing came for 1.5 s" in result.stderr
        assert "its last request was " in result.stderr


def test_a_board_that_is_unplugged(digits: Path, program: Path) -> None:
    ends_early = ["sh", "-c", f"dd bs=1 count=60 2>/dev/null | {program}"]
    with behind_a_line(ends_early) as address:
        result = invoke("run", digits, "--on", f"serial:{address}", "--timeout", "2")
    assert result.exit_code == 5
    assert f"error[BW506]: the serial port '{address}' was cut: " in result.stderr


def test_a_host_that_left_in_the_middle_is_forgotten(digits: Path, program: Path) -> None:
    with behind_a_line([program]) as address:
        leave = f"""
import os
from pathlib import Path
from bytewright.execute.machine import SerialPort
from bytewright.execute.serial import conversation
from bytewright.execute.run import run_bundle
answer = conversation.Conversation.answer
def answer_twice(self, content=b""):
    answer(self, content)
    if self._sequence == 4:
        os._exit(9)
conversation.Conversation.answer = answer_twice
run_bundle({str(digits)!r}, on=SerialPort({address!r}))
"""
        assert subprocess.run([sys.executable, "-c", leave], check=False).returncode == 9
        assert_exact(address, digits, images(2))


def test_other_text_on_the_line_is_no_frame(digits: Path, program: Path) -> None:
    with behind_a_line(["sh", "-c", f"echo Booting v1.2; exec {program}"]) as address:
        assert_exact(address, digits, images(2))


def test_inputs_are_checked_before_the_port_is_opened(digits: Path, tmp_path: Path) -> None:
    np.save(tmp_path / "wrong.npy", np.zeros((1, 4), np.int8))
    result = invoke("run", digits, "--on", "serial:/dev/nowhere", "--input", tmp_path / "wrong.npy")
    assert result.exit_code == 1
    assert "error[BW205]" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("run", "{d}", "--on", "serial:"), "is not host, qemu, serial:PORT or serial:PORT,BAUD"),
        (("run", "{d}", "--on", "serial:x,0"), "is not host, qemu, serial:PORT or serial:PORT,BAUD"),
        (("run", "{d}", "--on", "board"), "is not host, qemu, serial:PORT or serial:PORT,BAUD"),
        (("run", "{d}", "--on", "serial:x", "--compiler", "gcc"), "leave out --compiler"),
        (("profile", "{d}", "--on", "serial:x", "--source", "a.c"), "leave out --source"),
        (("run", DIGITS, "--on", "serial:x"), "give --target, or its bundle"),
        (("run", "{d}", "--on", "serial:x", "--paranoid"), "a paranoid run is of a build of its own"),
        (("run", "{d}", "--timeout", "0"), "not in the range"),
    ],
)
def test_what_cannot_be_asked_of_a_board(arguments: tuple[object, ...], reason: str, digits: Path) -> None:
    result = invoke(*(str(argument).replace("{d}", str(digits)) for argument in arguments))
    assert result.exit_code in (1, 2)
    assert reason in " ".join(result.stderr.split())


def test_without_pyserial_it_says_what_to_install(digits: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "serial", None)
    result = invoke("run", digits, "--on", "serial:/dev/ttyACM0")
    assert result.exit_code == 5
    assert 'help: install it: pip install "bytewright[serial]"' in result.stderr


def test_steps_are_measured_by_the_counter(digits: Path, program: Path, tmp_path: Path) -> None:
    timed = serial_program(digits, tmp_path / "timed", has_steps=True)
    with behind_a_line([timed]) as address:
        found = json.loads(invoke("profile", digits, "--on", f"serial:{address}", "--json").stdout)
        steps = found["steps"]
        assert (found["unit"], found["repetitions"]) == ("cycles", 3)
        assert [step["cycles"] for step in steps] == [7] * len(read_bundle(digits).plan.steps)
        assert found["total"][0]["cycles"] == 7 * (
            len(steps) + 2
        )  # before the first step, and behind the last
        shown = invoke("profile", digits, "--on", f"serial:{address}").stdout
        assert shown.startswith(
            f"digits for host: cycles of the inference with the median time, of 3 on serial:{address}"
        )
    with behind_a_line([program]) as address:
        result = invoke("profile", digits, "--on", f"serial:{address}")
        assert "error[BW204]" in result.stderr
        assert "compile src/digits.c with -include digits_serial_steps.h" in result.stderr
    uncounted = serial_program(digits, tmp_path / "uncounted", cycles="-1", has_steps=True)
    with behind_a_line([uncounted]) as address:
        assert run_bundle(digits, on=SerialPort(address)).cycles is None
        assert "has no counter of cycles" in invoke("profile", digits, "--on", f"serial:{address}").stderr


def test_state_is_kept_and_entries_are_chosen(tmp_path: Path) -> None:
    (tmp_path / "acc.bw").write_text(ACCUMULATOR)
    bytewright.compile(tmp_path / "acc.bw").write(tmp_path / "acc")
    given = [np.arange(8, dtype=np.int32) + number for number in range(4)]
    with behind_a_line([serial_program(tmp_path / "acc", tmp_path / "p")]) as address:
        port = SerialPort(address)
        kept = run_batch(tmp_path / "acc", [[array] for array in given], on=port, keep_state=True)
        alone = run_batch(tmp_path / "acc", [[array] for array in given], on=port)
    for (found,), reference in zip(kept.outputs, accumulated(given), strict=True):
        np.testing.assert_array_equal(found, reference)
    for (found,), array in zip(alone.outputs, given, strict=True):
        np.testing.assert_array_equal(found, accumulated([array])[0])

    (tmp_path / "wake.bw").write_text(WAKE)
    bytewright.compile(tmp_path / "wake.bw").write(tmp_path / "wake")
    frames = [np.arange(4, dtype=np.int8) * 7 - number for number in range(3)]
    with behind_a_line([serial_program(tmp_path / "wake", tmp_path / "q")]) as address:
        pushes = [*[[frame] for frame in frames], []]
        entries = ["push", "push", "push", "classify"]
        result = run_batch(
            tmp_path / "wake", pushes, on=SerialPort(address), keep_state=True, entries=entries
        )
    for value, reference in zip(result.outputs[-1], classified(frames), strict=True):
        np.testing.assert_array_equal(value, reference)


def test_several_inputs_caller_parameters_and_planned_borders(tmp_path: Path) -> None:
    for number, options in enumerate(({}, {"io": "workspace"}, {"batch_max": 3})):
        folder = tmp_path / f"b{number}"
        bytewright.compile(DIGITS, **options).write(folder)  # type: ignore[arg-type]
        batch = images(2)
        with behind_a_line([serial_program(folder, tmp_path / f"p{number}")]) as address:
            assert_exact(address, folder, batch)
    folder = write_digits(tmp_path / "caller", "mps3-an547", caller_parameters=True)
    text = serial_files(read_bundle(folder))["digits_serial.c"]
    assert "#include DIGITS_FLASH_PARAMETERS_INITIALIZER" in text


def test_two_models_in_one_program(digits: Path, program: Path, tmp_path: Path) -> None:
    bytewright.compile(DIGITS, name="others").write(tmp_path / "others")
    serial_program(tmp_path / "others", tmp_path / "p")
    command = ["gcc", *LANGUAGE, *WARNINGS, "-r", "-o", "both.o"]
    for folder, place in ((digits, program.parent), (tmp_path / "others", tmp_path / "p")):
        command += [f"-I{folder / 'include'}", f"-I{place}", str(next(place.glob("*_serial.c")))]
        command += map(str, (folder / "src").glob("*.c"))
    run_command(command, tmp_path)


def test_the_header_is_c_and_c_plus_plus_and_work_of_devices_is_refused(tmp_path: Path) -> None:
    folder = write_digits(tmp_path / "digits", "mps2-an386")
    assert invoke("serial", folder, "-o", tmp_path / "new" / "serial").exit_code == 0
    include = f"-I{tmp_path / 'new' / 'serial'}"
    assert "harness" not in (tmp_path / "new" / "serial" / "digits_serial.h").read_text()
    (tmp_path / "main.cpp").write_text('#include "digits_serial.h"\ndigits_serial_line line;\n')
    run_command(["g++", "-Wall", "-Wextra", "-Werror", include, "-fsyntax-only", "main.cpp"], tmp_path)
    plan_before = (folder / "plan.json").read_bytes()
    assert invoke("serial", folder, "-o", folder / "plan.json").exit_code == 1
    assert (folder / "plan.json").read_bytes() == plan_before
    both = tmp_path / "both"
    assert (
        invoke(
            "compile", DIGITS, "-o", both, "--target", "mps2-an521", "--on", "DEPTHWISE_CONV_2D=core1"
        ).exit_code
        == 0
    )
    result = invoke("serial", both, "-o", tmp_path / "none")
    assert (
        "error[BW204]: model 'digits' has work for core1, whose driver no serial line reaches"
        in result.stderr
    )
    assert not (tmp_path / "none").exists()


def test_a_model_may_stand_in_place_of_its_bundle(tmp_path: Path) -> None:
    bytewright.compile(DIGITS).write(tmp_path / "digits")
    with behind_a_line([serial_program(tmp_path / "digits", tmp_path / "p")]) as address:
        machine = ("--on", f"serial:{address}")
        result = invoke("run", DIGITS, *machine, "--target", "host", "--json")
        assert result.exit_code == 0, result.stderr
        assert (
            json.loads(result.stdout)["outputs"]
            == json.loads(invoke("run", DIGITS, "--json").stdout)["outputs"]
        )
        assert "error[BW407]" in invoke("run", DIGITS, *machine, "--target", "mps2-an386").stderr


def test_samples_of_a_model_that_remembers_are_one_stream(tmp_path: Path) -> None:
    model = Path(__file__).resolve().parents[1] / "data" / "state" / "average.tflite"
    compiled = bytewright.compile(model)
    compiled.write(tmp_path / "average")
    shape = compiled.plan.inputs[0].shape[1:]
    np.save(tmp_path / "x.npy", np.random.default_rng(3).standard_normal((4, *shape)).astype(np.float32))
    asked = ("validate", tmp_path / "average", "--model", model, "--data", tmp_path / "x.npy", "--json")
    with behind_a_line([serial_program(tmp_path / "average", tmp_path / "p")]) as address:
        result = invoke(*asked, "--on", f"serial:{address}")
    assert result.exit_code == 0, result.stderr
    assert json.loads(result.stdout)["reference"]["num_exact"] == 4


def test_a_board_whose_kernel_is_wrong_is_found_by_its_outputs(digits: Path, tmp_path: Path) -> None:
    """The plan's hash is that of the bundle: what the board's compiler was given is not."""
    wrong = write_digits(tmp_path / "digits", "host")
    old = "const int32_t iy2 = y + 1;"
    change_file(wrong, "src/digits_kernels.c", old, old.replace(" + 1", ""))
    data = ("--data", HELDOUT, "--labels", "labels", "--samples", 10, "--model", DIGITS)
    with behind_a_line([serial_program(wrong, tmp_path / "p")]) as address:
        result = invoke("validate", digits, *data, "--on", f"serial:{address}")
    assert result.exit_code == 4
    assert "of 10 samples differ from litert-ref" in result.stderr
