"""`bytewright run`, `CompiledModel.run` and the command line as a process of its own."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

import bytewright as package
from bytewright.cli.main import bytewright
from support.digits_bundle import DIGITS, change_file, float_rows, two_by_two, unsupported, write_digits
from support.reference import run_litert


def invoke(*arguments: object) -> Result:
    return CliRunner().invoke(bytewright, [str(argument) for argument in arguments])


@pytest.fixture(scope="module")
def digits(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_digits(tmp_path_factory.mktemp("cli") / "digits")


@pytest.fixture(scope="module")
def image() -> Any:
    with np.load(DIGITS.parent / "heldout.npz") as stored:
        return stored["images"][:1]


@pytest.fixture
def two(tmp_path: Path) -> Path:
    (tmp_path / "two.tflite").write_bytes(two_by_two())
    return tmp_path / "two.tflite"


def saved(folder: Path, *arrays: Any) -> list[Path]:
    paths = [folder / f"x{index}.npy" for index in range(len(arrays))]
    for path, array in zip(paths, arrays, strict=True):
        np.save(path, array)
    return paths


def test_a_bundle_runs_from_a_file_to_a_file(digits: Path, image: Any, tmp_path: Path) -> None:
    (x,) = saved(tmp_path, image)
    result = invoke("run", digits, "--input", x, "--output", tmp_path / "y.npy")
    assert (result.exit_code, result.stderr) == (0, "")
    expected = run_litert(DIGITS.read_bytes(), [image])[0]
    np.testing.assert_array_equal(np.load(tmp_path / "y.npy"), expected)
    assert "microseconds" in result.stdout
    assert "B of workspace" in result.stdout


def test_json_has_the_documented_keys_and_nothing_else_is_printed(
    digits: Path, image: Any, tmp_path: Path
) -> None:
    (x,) = saved(tmp_path, image)
    result = invoke("run", digits, "--input", x, "--json")
    assert result.stderr == ""
    document = json.loads(result.stdout)
    assert list(document) == [
        "outputs",
        "target",
        "on",
        "instructions",
        "cycles",
        "microseconds",
        "workspace_bytes",
        "stack_bytes",
        "ram_bytes",
        "devices",
        "stand_in",
        "num_resent_frames",
    ]
    assert (document["devices"], document["stand_in"]) == ([], None)
    assert document["outputs"] == [run_litert(DIGITS.read_bytes(), [image])[0].tolist()]
    assert (document["target"], document["on"]) == ("mps3-an547", "host")
    assert document["microseconds"] > 0
    assert document["instructions"] is None
    assert document["stack_bytes"] is None


def test_a_seed_repeats_and_the_default_is_zero(two: Path) -> None:
    def outputs(*options: object) -> Any:
        return json.loads(invoke("run", two, "--json", *options).stdout)["outputs"]

    assert outputs() == outputs("--seed", 0, "--repeat", 3)
    assert outputs() != outputs("--seed", 1)


def test_a_model_runs_without_leaving_anything(two: Path, tmp_path: Path) -> None:
    x0, x1 = saved(tmp_path, *float_rows([1, 2, 3, 4], [10, 20, 30, float("inf")]))
    before = sorted(tmp_path.iterdir())
    result = invoke("run", two, "--input", x0, "--input", x1, "--json")
    assert result.exit_code == 0, result.stderr
    document = json.loads(result.stdout)
    assert document["outputs"] == [[[11, 22, 33, None]], [[-9, -18, -27, None]]]
    assert document["target"] == "host"
    assert sorted(tmp_path.iterdir()) == before
    assert "total: float32[1, 4]" in invoke("run", two).stdout


def test_outputs_go_to_their_files_in_order(two: Path, tmp_path: Path) -> None:
    x0, x1 = saved(tmp_path, *float_rows([1, 2, 3, 4], [1, 1, 1, 1]))
    files = [tmp_path / "total", tmp_path / "difference.npy"]
    inputs = ("--input", x0, "--input", x1)
    result = invoke("run", two, *inputs, "--output", files[0], "--output", files[1])
    assert result.exit_code == 0, result.stderr
    assert np.load(files[0]).tolist() == [[2, 3, 4, 5]]
    assert np.load(files[1]).tolist() == [[0, 1, 2, 3]]


def test_outputs_are_written_all_or_none(two: Path, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    before = sorted(tmp_path.iterdir())
    for bad in (tmp_path / "missing" / "y.npy", tmp_path / "folder"):
        result = invoke("run", two, "--output", tmp_path / "total.npy", "--output", bad, "--json")
        assert (result.exit_code, result.stdout) == (1, "")
        assert "error[BW206]" in result.stderr
    assert sorted(tmp_path.iterdir()) == before


def test_a_wrong_number_of_outputs_is_refused_before_running(two: Path, tmp_path: Path) -> None:
    result = invoke("run", two, "--output", tmp_path / "y.npy")
    assert result.exit_code == 1
    assert "error[BW205]" in result.stderr
    assert "has 2 outputs, 1 files were named" in result.stderr
    assert "'total', 'difference'" in result.stderr


def test_inputs_that_are_wrong_are_refused(digits: Path, image: Any, tmp_path: Path) -> None:
    (tmp_path / "text.npy").write_text("no array")
    (tmp_path / "empty.npy").write_bytes(b"")
    np.savez(tmp_path / "many.npz", image)
    np.save(tmp_path / "objects.npy", np.array([{}]), allow_pickle=True)
    np.save(tmp_path / "float.npy", image.astype(np.float32))
    np.save(tmp_path / "fine.npy", image)
    for names in (
        ["missing.npy"],
        ["text.npy"],
        ["empty.npy"],
        ["many.npz"],
        ["objects.npy"],
        ["float.npy"],
        ["fine.npy", "fine.npy"],
    ):
        options = [word for name in names for word in ("--input", tmp_path / name)]
        result = invoke("run", digits, *options)
        assert (result.exit_code, result.stdout) == (1, ""), names
        assert result.stderr.startswith("error[BW205]"), names


@pytest.mark.parametrize(
    "options", [("--seed", "-1"), ("--repeat", "0"), ("--on", "moon"), ("--seed", "1", "--input", "x.npy")]
)
def test_options_that_cannot_be_are_usage_errors(digits: Path, options: tuple[str, ...]) -> None:
    assert invoke("run", digits, *options).exit_code == 2


def test_a_source_that_cannot_be_run_is_one_error(tmp_path: Path) -> None:
    (tmp_path / "bad.tflite").write_bytes(unsupported())
    (tmp_path / "empty.tflite").write_bytes(b"")
    for source, code in (
        (tmp_path, "BW207"),
        (tmp_path / "missing", "BW101"),
        (tmp_path / "empty.tflite", "BW101"),
        (tmp_path / "bad.tflite", "BW104"),
    ):
        result = invoke("run", source)
        assert (result.exit_code, result.stdout) == (1, "")
        assert result.stderr.startswith(f"error[{code}]")
        assert result.stderr.count("error[") == 1


def test_c_that_does_not_compile_is_a_tool_that_failed(tmp_path: Path) -> None:
    folder = write_digits(tmp_path / "digits")
    change_file(folder, "src/digits.c", "return DIGITS_OK;", "return DIGITS_FINE;")
    result = invoke("run", folder)
    assert (result.exit_code, result.stdout) == (5, "")
    assert "error[BW502]" in result.stderr


def test_a_missing_compiler_is_a_missing_tool(digits: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("CC", raising=False)
    result = invoke("run", digits)
    assert result.exit_code == 5
    assert "error[BW501]" in result.stderr


# --- from Python


def test_a_compiled_model_runs_again_and_again(image: Any) -> None:
    model = package.compile(DIGITS, target="mps3-an547", provider=["flash=caller"])
    for array in (image, np.zeros_like(image), image):
        output = model.run(array)
        assert isinstance(output, np.ndarray)
        np.testing.assert_array_equal(output, run_litert(DIGITS.read_bytes(), [array])[0])


def test_several_outputs_are_a_tuple(two: Path) -> None:
    outputs = package.compile(two).run(*float_rows([1, 2, 3, 4], [1, 1, 1, 1]))
    assert isinstance(outputs, tuple)
    assert [output.tolist() for output in outputs] == [[[2, 3, 4, 5]], [[0, 1, 2, 3]]]


def test_inputs_in_python_are_checked(image: Any) -> None:
    model = package.compile(DIGITS)
    for inputs in ((), (image, image), (image.astype(np.float32),), (image[0],)):
        with pytest.raises(package.CompileError) as caught:
            model.run(*inputs)
        assert caught.value.diagnostics[0].code == "BW205"


# --- as a process


def process(arguments: list[object], **options: Any) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "bytewright", *(str(argument) for argument in arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, **options)


def test_a_process_writes_json_to_one_stream_and_errors_to_the_other(digits: Path, tmp_path: Path) -> None:
    done = process(["compile", DIGITS, "-o", tmp_path / "out", "--json"])
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["model"] == "digits"
    done = process(["explain", digits, "nothing", "--json"])
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("error[BW204]")


@pytest.mark.parametrize("words", [("report", "--json"), ("report", "--no-code"), ("run",)])
def test_a_reader_that_stops_early_causes_no_traceback(words: tuple[str, ...], digits: Path) -> None:
    """Whatever prints: the JSON, the console of tables, or lines while there is a folder to build in."""
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "bytewright", words[0], str(digits), *words[1:]]
    done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, timeout=120, check=False)
    os.close(writer)
    assert (done.returncode, done.stderr) == (141, b"")


@pytest.mark.parametrize("words", [("report", "--no-code"), ("run", "--json")])
def test_output_that_cannot_be_written_is_no_bug(words: tuple[str, ...], digits: Path) -> None:
    command = [sys.executable, "-m", "bytewright", words[0], str(digits), *words[1:]]
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            command, stdout=full, stderr=subprocess.PIPE, text=True, timeout=120, check=False
        )
    first, *rest = done.stderr.splitlines()
    assert (done.returncode, first) == (
        1,
        "error[BW206]: cannot write standard output: No space left on device",
    )
    assert [json.loads(line)["exit_status"] for line in rest] == ([1] if "--json" in words else [])


@pytest.mark.parametrize("encoding", ["ascii", "utf-8"])
def test_the_report_suits_the_encoding_of_its_output(digits: Path, encoding: str) -> None:
    done = process(["report", digits], env={**os.environ, "PYTHONIOENCODING": encoding, "NO_COLOR": "1"})
    assert (done.returncode, done.stderr) == (0, "")
    assert ("#" in done.stdout) == (encoding == "ascii")
    assert "\x1b" not in done.stdout
