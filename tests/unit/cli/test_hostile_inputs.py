"""Inputs that are no files, or claim what they do not have: each is refused at once, with a code, and none hangs."""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

from bytewright.cli.main import bytewright
from bytewright.execute.tensors import array_from_npy
from support import tiers
from support.digits_bundle import DIGITS, write_digits

THOROUGH = 20 if tiers.THOROUGH else 1


def invoke(*arguments: object) -> Result:
    return CliRunner().invoke(bytewright, [str(argument) for argument in arguments])


@pytest.fixture(params=["pipe", "device", "folder", "nothing", "circle"])
def no_file(tmp_path: Path, request: pytest.FixtureRequest) -> str:
    path = tmp_path / "no-file.tflite"
    match request.param:
        case "pipe":
            os.mkfifo(path)
        case "device":
            return "/dev/zero"
        case "folder":
            path.mkdir()
        case "circle":
            path.symlink_to(path.name)
        case _:
            pass
    return str(path)


@pytest.mark.parametrize(
    "command",
    [
        ("compile", "@", "-o", "out"),
        ("compile", DIGITS, "-o", "out", "--target", "./@"),
        ("run", "@"),
        ("run", "bundle", "--input", "@"),
        ("plan", "@"),
        ("report", "@"),
        ("report", "bundle", "@"),
        ("explain", "@", "x"),
        ("check", "@"),
        ("check", "bundle", "--elf", "@"),
        ("targets", "./@"),
        ("targets", "import", "@"),
    ],
    ids=lambda command: " ".join(str(word) for word in command if word is not DIGITS),
)
def test_what_is_no_file_is_refused_everywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, no_file: str, command: tuple[object, ...]
) -> None:
    monkeypatch.chdir(tmp_path)
    write_digits(tmp_path / "bundle", "host")
    words = [no_file if word in ("@", "./@") else word for word in command]
    result = invoke(*words)
    assert result.exit_code in (1, 2), (result.exit_code, result.stderr)
    assert result.stdout == ""
    assert "internal error" not in result.stderr


@pytest.mark.parametrize("name", ["model.bw", "constants.npz"])
def test_a_text_or_its_constants_as_a_pipe_are_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "model.bw").write_text("module @empty {\n}\n")
    (tmp_path / name).unlink(missing_ok=True)
    os.mkfifo(tmp_path / name)
    result = invoke("plan", tmp_path / "model.bw")
    assert result.exit_code == 1
    assert "error[BW101]" in result.stderr
    assert "it is not a regular file" in result.stderr


@pytest.mark.parametrize("path", ["plan.json", "include/digits.h", "src/digits.c"])
@pytest.mark.parametrize("kind", ["pipe", "folder", "device"])
@pytest.mark.parametrize("command", [("check",), ("run",), ("report",), ("check", "--stack")])
def test_a_bundle_with_something_else_in_place_of_a_file(
    tmp_path: Path, path: str, kind: str, command: tuple[str, ...]
) -> None:
    out = write_digits(tmp_path / "bundle", "host")
    (out / path).unlink()
    if kind == "pipe":
        os.mkfifo(out / path)
    elif kind == "folder":
        (out / path).mkdir()
    else:
        (out / path).symlink_to("/dev/zero")
    result = invoke(command[0], out, *command[1:])
    expected = (0,) if command[0] == "report" and path != "plan.json" else (1, 4, 5)
    assert result.exit_code in expected, (result.exit_code, result.stderr)


def npy(header: str, data: bytes = b"") -> bytes:
    text = header.encode()
    text += b" " * (-(len(text) + 11) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + data


HEADERS = [
    "{'descr': '|i1', 'fortran_order': False, 'shape': (10995116277760,), }",
    "{'descr': '|i1', 'fortran_order': False, 'shape': (4611686018427387904, 4), }",
    "{'descr': '|i1', 'fortran_order': False, 'shape': (99999999999999999999999,), }",
    "{'descr': '|i1', 'fortran_order': False, 'shape': (-1,), }",
    "{'descr': '|i1', 'fortran_order': False, 'shape': (True,), }",
    "{'descr': '|O', 'fortran_order': False, 'shape': (1,), }",
    "{'descr': '<i99', 'fortran_order': False, 'shape': (1,), }",
    "{'descr': [('a', '<i4')], 'fortran_order': False, 'shape': (1,), }",
    "{'descr': {}, 'fortran_order': False, 'shape': (1,), }",
    "{'descr': '|V0', 'fortran_order': False, 'shape': (1000000000000,), }",
    "{'descr': '|i1', 'shape': (1,), }",
    "(" * 3000,
    "[" + "1," * 4000 + "]",
    "{'descr': '|i1', 'fortran_order': False, 'shape': (1,), }\\0",
    "",
]


@pytest.mark.parametrize("header", HEADERS, ids=lambda header: str(header)[:60])
def test_headers_that_claim_what_is_not_there(tmp_path: Path, header: str) -> None:
    (tmp_path / "x.npy").write_bytes(npy(header, b"\0\0\0\0"))
    result = invoke("run", write_digits(tmp_path / "bundle", "host"), "--input", tmp_path / "x.npy")
    assert result.exit_code == 1, result.stderr
    assert result.stderr.startswith("error[BW205]: ")


def test_damaged_arrays_never_end_in_anything_but_a_value_error() -> None:
    generator = random.Random(7)
    sound = npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }", bytes(24))
    assert array_from_npy(sound).shape == (2, 3)
    for _ in range(300 * THOROUGH):
        damaged = bytearray(sound)
        for _ in range(generator.randint(1, 4)):
            damaged[generator.randrange(len(damaged))] = generator.choice(
                b"\0\xff(){}[]'9,:-|<OVb" + bytes(range(256))
            )
        try:
            array: Any = array_from_npy(bytes(damaged[: generator.randint(0, 2 * len(damaged))]))
        except ValueError:
            continue
        assert array.nbytes <= len(damaged)


def test_several_arrays_in_a_file_are_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", a=np.zeros(3), b=np.zeros(3))
    with pytest.raises(ValueError, match="several arrays"):
        array_from_npy((tmp_path / "x.npz").read_bytes())


@pytest.mark.parametrize("repeat", ["1000000000000", "99999999999999999999", "1e12", "1000001", "0", "-1"])
def test_repetitions_have_a_limit(tmp_path: Path, repeat: str) -> None:
    assert invoke("run", write_digits(tmp_path / "bundle", "host"), "--repeat", repeat).exit_code == 2


def test_a_temporary_folder_that_cannot_be_written_is_no_bug(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = write_digits(tmp_path / "bundle", "host")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "missing"))
    for command in (("run", out), ("run", DIGITS), ("check", out, "--stack"), ("run", out, "--paranoid")):
        result = invoke(*command)
        assert result.exit_code == 5, (command, result.stderr)
        assert "error[BW502]" in result.stderr
