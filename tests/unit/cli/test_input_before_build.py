"""`run` and `profile` look at their input before C is generated and before any C compiler runs."""

from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

from bytewright.cli.main import bytewright
from bytewright.compiler import pipeline
from bytewright.diagnostics import CompileError
from bytewright.execute.run import run_bundle
from support.digits_bundle import DIGITS, write_digits

WRONG = ("missing", "shape", "type", "text", "two", "unknown")
NO_COMPILER = ("--compiler", "false")


def options_for(what: str, folder: Path) -> list[str]:
    """The options that give a wrong input."""
    path = folder / f"{what}.npy"
    array = np.zeros((1, 8, 8, 1), np.int8)
    match what:
        case "shape":
            np.save(path, array[:, :7])
        case "type":
            np.save(path, array.astype(np.float32))
        case "text":
            path.write_text("no array", encoding="utf-8")
        case "two" | "unknown" | "fine":
            np.save(path, array)
        case _:
            pass
    option = ["--input", f"nobody={path}" if what == "unknown" else f"{path}"]
    return option * (2 if what == "two" else 1)


def invoke(*arguments: object) -> Result:
    return CliRunner().invoke(bytewright, [str(argument) for argument in arguments])


@pytest.mark.parametrize("command", [("run",), ("run", "--paranoid"), ("profile",)])
def test_a_wrong_input_of_a_bundle_is_refused_before_it_is_built(
    command: tuple[str, ...], tmp_path: Path
) -> None:
    bundle = write_digits(tmp_path / "bundle", "host")
    for what in WRONG:
        result = invoke(*command, bundle, *options_for(what, tmp_path), *NO_COMPILER)
        assert (result.exit_code, result.stdout) == (1, ""), what
        assert result.stderr.startswith("error[BW205]"), (what, result.stderr)
    built = invoke(*command, bundle, *options_for("fine", tmp_path), *NO_COMPILER)
    assert built.exit_code != 0, "what stands for the compiler makes nothing"
    assert "BW205" not in built.stderr


@pytest.mark.parametrize("command", ["run", "profile"])
def test_a_wrong_input_of_a_model_is_refused_before_c_is_generated(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_c(*_: object) -> None:
        pytest.fail("C is generated")

    monkeypatch.setattr(pipeline, "generate_c", no_c)
    for what in WRONG:
        result = invoke(command, DIGITS, *options_for(what, tmp_path))
        assert (result.exit_code, result.stdout) == (1, ""), what
        assert result.stderr.startswith("error[BW205]"), (what, result.stderr)


def test_a_wrong_output_of_a_model_is_refused_before_c_is_generated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_c(*_: object) -> None:
        pytest.fail("C is generated")

    monkeypatch.setattr(pipeline, "generate_c", no_c)
    result = invoke("run", DIGITS, "--output", f"nobody={tmp_path / 'y.npy'}")
    assert result.stderr.startswith("error[BW205]: there is no output 'nobody'")


def test_python_refuses_a_wrong_input_before_it_builds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CC", "false")
    bundle = write_digits(tmp_path / "bundle", "host")
    with pytest.raises(CompileError) as caught:
        run_bundle(bundle, [np.zeros((1, 8, 8, 1), np.float32)])
    assert caught.value.diagnostics[0].code == "BW205"
