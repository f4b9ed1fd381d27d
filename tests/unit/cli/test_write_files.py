"""Files that commands write: all or none, through links, never over an input or a device."""

from __future__ import annotations

import errno
import os
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner

from bytewright.cli import write_files as module
from bytewright.cli.main import bytewright
from bytewright.cli.write_files import write_files
from bytewright.diagnostics import CompileError
from support.bundle_files import tree

BUFFERS = "id,lower,upper,size\na,0,2,64\nb,1,3,32\n"
SCRIPT = (
    "MEMORY { FLASH (rx) : ORIGIN = 0x0, LENGTH = 64K\n RAM (rwx) : ORIGIN = 0x20000000, LENGTH = 16K }\n"
)


def refusals(contents: list[tuple[Path, bytes]], read: list[Path] | None = None) -> list[str]:
    """What is said of a write that must leave the folders of its files as they are."""
    folders = {path.parent for path, _ in contents if path.parent.is_dir()}
    before = {folder: tree(folder) for folder in folders}
    with pytest.raises(CompileError) as caught:
        write_files(contents, read or [])
    assert {folder: tree(folder) for folder in folders} == before
    assert {diagnostic.code for diagnostic in caught.value.diagnostics} == {"BW206"}
    return [diagnostic.message for diagnostic in caught.value.diagnostics]


def test_files_are_written_and_nothing_else_is_left(tmp_path: Path) -> None:
    (tmp_path / "old").write_text("old")
    (tmp_path / "old").chmod(0o640)
    write_files([(tmp_path / "old", b"new"), (tmp_path / "fresh", b"\0fresh")])
    assert tree(tmp_path) == {"fresh": b"\0fresh", "old": b"new"}
    assert (tmp_path / "old").stat().st_mode & 0o777 == 0o640


def test_a_link_is_followed(tmp_path: Path) -> None:
    (tmp_path / "real").write_text("old")
    (tmp_path / "link").symlink_to("real")
    (tmp_path / "dangling").symlink_to("made")
    write_files([(tmp_path / "link", b"new"), (tmp_path / "dangling", b"new")])
    assert tree(tmp_path) == {"dangling": "made", "link": "real", "made": b"new", "real": b"new"}


def test_the_help_for_a_folder_that_is_missing_works(tmp_path: Path) -> None:
    path = tmp_path / "my pages" / "new" / "page.html"
    with pytest.raises(CompileError, match="BW206") as caught:
        write_files([(path, b"page")])
    subprocess.run(caught.value.diagnostics[0].help or "", shell=True, check=True)
    write_files([(path, b"page")])
    assert path.read_bytes() == b"page"
    with pytest.raises(CompileError, match="BW206") as caught:
        write_files([(path / "page.html", b"page")])  # nothing lies in a file
    assert caught.value.diagnostics[0].help is None


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    (tmp_path / "circle").symlink_to("circle")
    names = ["pipe", "folder", "circle", "missing/file"]
    messages = refusals([(tmp_path / "fine", b""), *((tmp_path / name, b"") for name in names)])
    assert len(messages) == len(names)
    assert messages[0] == f"cannot write '{tmp_path / 'pipe'}': it is not a regular file"
    assert messages[2] == f"cannot write '{tmp_path / 'circle'}': {os.strerror(errno.ELOOP)}"


def test_a_file_is_named_once_and_is_no_input(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("one")
    assert "it is named twice" in refusals([(tmp_path / "one", b"1"), (tmp_path / "link", b"2")])[0]
    (tmp_path / "one").write_text("precious")
    assert "also an input" in refusals([(tmp_path / "link", b"2")], [tmp_path / "one"])[0]


def test_a_move_that_fails_takes_back_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "one").write_text("old")
    replace = os.replace

    def fails_for_three(source: Path, destination: Path) -> None:
        if destination.name == "three":
            raise PermissionError(1, "Operation not permitted", str(source), None, str(destination))
        replace(source, destination)

    monkeypatch.setattr(module.os, "replace", fails_for_three)
    messages = refusals([(tmp_path / name, b"new") for name in ("one", "two", "three")])
    assert messages == [f"cannot write '{tmp_path / 'three'}': Operation not permitted"]


@pytest.mark.parametrize(
    "arguments",
    [
        ("plan", "in", "-o", "in"),
        ("plan", "in", "--svg", "in"),
        ("plan", "in", "-o", "x", "--svg", "x"),
        ("plan", "in", "-o", "pipe"),
        ("targets", "import", "in", "--isa", "cortex-m4", "-o", "in"),
        ("targets", "import", "in", "--isa", "cortex-m4", "-o", "pipe"),
    ],
)
def test_no_command_writes_over_what_it_reads_or_over_what_is_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("in").write_text(BUFFERS if arguments[0] == "plan" else SCRIPT)
    os.mkfifo("pipe")
    before = tree(tmp_path)
    result = CliRunner().invoke(bytewright, arguments)
    assert (result.exit_code, tree(tmp_path)) == (1, before), result.stderr
    assert "error[BW206]" in result.stderr
