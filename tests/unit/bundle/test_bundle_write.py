"""Bundles are written whole or not at all."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

import pytest

from bytewright.bundle.write import write_bundle
from bytewright.diagnostics import CompileError, Diagnostic
from bytewright.target.registry import load_target
from support.hand_built import chain, files_of, reverse_kernel

FILES = {"plan.json": b"{}", "src/m.c": b"int m;\n", "include/m.h": b"\n"}


def content(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def refusal(files: dict[str, bytes], folder: Path) -> Diagnostic:
    with pytest.raises(CompileError) as caught:
        write_bundle(files, folder)
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code == "BW206"
    return diagnostic


@pytest.mark.parametrize("exists", [False, True])
def test_all_files_are_written(tmp_path: Path, exists: bool) -> None:
    folder = tmp_path / "deep" / "out"
    if exists:
        folder.mkdir(parents=True)
    write_bundle(FILES, folder)
    assert content(folder) == FILES
    assert os.listdir(folder.parent) == ["out"]


def test_an_older_bundle_is_replaced_with_everything_in_it(tmp_path: Path) -> None:
    write_bundle({**FILES, "src/gone.c": b""}, tmp_path / "out")
    write_bundle(FILES, tmp_path / "out")
    assert content(tmp_path / "out") == FILES


def test_a_folder_of_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("years of work")
    diagnostic = refusal(FILES, tmp_path)
    assert "is not empty and holds no bundle" in diagnostic.message
    assert content(tmp_path) == {"thesis.txt": b"years of work"}


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("")
    assert "is not a folder" in refusal(FILES, tmp_path / "out").message


def test_a_failure_leaves_what_was_there(tmp_path: Path) -> None:
    write_bundle(FILES, tmp_path / "out")
    clashing = {**FILES, "src": b"a file where a folder must be"}
    assert "cannot be written" in refusal(clashing, tmp_path / "out").message
    assert content(tmp_path / "out") == FILES
    assert os.listdir(tmp_path) == ["out"]


def test_a_parent_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert "cannot be written" in refusal(FILES, tmp_path / "file" / "out").message


def test_the_files_of_a_bundle() -> None:
    files = files_of(chain("m", [reverse_kernel("m_k", 8)] * 2, 8), load_target("host"))
    assert list(files) == sorted(files)
    assert set(files) >= {
        "CMakeLists.txt",
        "include/m.h",
        "plan.json",
        "src/m.c",
        "src/m_kernels.c",
        "src/m_kernels.h",
        "src/m_parameters.c",
    }
    document = json.loads(files["plan.json"])
    assert document["files"] == {
        path: hashlib.sha256(data).hexdigest() for path, data in files.items() if path != "plan.json"
    }
    assert "target_link_libraries" not in files["CMakeLists.txt"].decode()
