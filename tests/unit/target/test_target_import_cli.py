"""`bytewright targets import`: options, files, and the other forms of `targets` beside it."""

import re
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from bytewright.cli.main import bytewright
from bytewright.cli.targets import targets
from bytewright.target import BUILTIN_TARGETS, load_file

pytestmark = pytest.mark.skipif(
    shutil.which("arm-none-eabi-ld") is None, reason="arm-none-eabi-ld is not installed"
)

SCRIPT = """SIZE = 256K;
INCLUDE ram.ld
MEMORY
{
  FLASH (rx) : ORIGIN = 0, LENGTH = SIZE
  EMPTY (rx) : ORIGIN = 0, LENGTH = 0
}
"""


def _run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(bytewright, ["targets", *map(str, arguments)])


@pytest.fixture
def script(tmp_path: Path) -> Path:
    (tmp_path / "include").mkdir()
    text = "MEMORY { RAM (rw) : ORIGIN = 0x20000000, LENGTH = RAM_SIZE }\n"
    (tmp_path / "include" / "ram.ld").write_text(text, encoding="utf-8")
    path = tmp_path / "app.ld"
    path.write_text(SCRIPT, encoding="utf-8")
    return path


def test_a_target_file_is_written(script: Path, tmp_path: Path) -> None:
    output = tmp_path / "board.toml"
    options = ("--isa", "cortex-m4", "--name", "board", "-I", tmp_path / "include", "-D", "RAM_SIZE=32K")
    result = _run("import", script, "-o", output, *options)
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr == "note: EMPTY is left out: its length is 0\n"
    target = load_file(output)
    assert (target.name, target.default_device.isa.name) == ("board", "cortex-m4")
    assert target.memory("ram").size_bytes == 32768
    assert _run(output).exit_code == 0


def test_without_output_the_text_is_printed(script: Path, tmp_path: Path) -> None:
    result = _run("import", script, "-I", tmp_path / "include", "-D", "RAM_SIZE=32K")
    assert result.stdout.startswith(f"# Imported from {script}.")


def test_a_broken_script_ends_with_its_line_and_status_1(script: Path, tmp_path: Path) -> None:
    result = _run("import", script, "-I", tmp_path / "include", "-o", tmp_path / "board.toml")
    assert result.exit_code == 1
    assert f"  --> {tmp_path / 'include' / 'ram.ld'}:1\n" in result.stderr
    assert not (tmp_path / "board.toml").exists()


def test_an_output_that_cannot_be_written(script: Path, tmp_path: Path) -> None:
    options = ("-I", tmp_path / "include", "-D", "RAM_SIZE=32K", "-o", tmp_path / "none" / "board.toml")
    result = _run("import", script, *options)
    assert result.exit_code == 1
    assert "error[BW206]" in result.stderr


@pytest.mark.parametrize(
    "options", [("-D", "SIZE"), ("-D", "A=b c"), ("--isa", "cortex m4"), ("--isa", ""), ("--cost", "flash=0")]
)
def test_malformed_options_are_usage_errors(script: Path, options: tuple[str, ...]) -> None:
    assert _run("import", script, *options).exit_code == 2


def test_any_other_first_word_is_a_target() -> None:
    for name in ("imports", "show"):
        result = _run(name)
        assert result.exit_code == 1
        assert f"there is no target '{name}'" in result.stderr
    for name in BUILTIN_TARGETS:
        assert _run(name, "--json").stdout == _run("--json", name).stdout
    assert _run("mps3-an547", "--debug").exit_code == 0
    assert _run("host", "more").exit_code == 2


def test_help_names_both_forms() -> None:
    text = " ".join(_run("-h").stdout.split())
    assert "[NAME|FILE | import FILE -o TOML]" in text
    assert "-D, --define NAME=VALUE" in _run("import", "-h").stdout


def test_the_documents_example_is_what_comes_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    document = (Path(__file__).parents[3] / "docs" / "targets.md").read_text(encoding="utf-8")
    (example,) = re.findall(
        r"```ld\n(.*?)```\nbecomes, with `--isa cortex-m7`,\n\n```\n(.*?)```", document, re.DOTALL
    )
    (tmp_path / "app.ld").write_text(example[0], encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert _run("import", "app.ld", "--isa", "cortex-m7").stdout == example[1]


def test_the_document_names_every_option() -> None:
    document = (Path(__file__).parents[3] / "docs" / "targets.md").read_text(encoding="utf-8")
    for parameter in targets.commands["import"].params:
        for option in parameter.opts:
            if option.startswith("-") and option != "--debug":
                assert f"`{option}" in document, option
