"""Bundles are written whole or not at all, and nothing is replaced or removed but files that a bundle lists."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

import pytest

from bytewright.bundle import install
from bytewright.bundle.write import write_bundle
from bytewright.diagnostics import CompileError, Diagnostic
from bytewright.record.plan_file import hash_files
from bytewright.target.registry import load_target
from support.bundle_files import sealed, tree, with_folders
from support.hand_built import chain, files_of, reverse_kernel

FILES = sealed({"src/m.c": b"int m;\n", "include/m.h": b"\n"})
OLDER = sealed({"src/m.c": b"int n;\n", "include/m.h": b"\n", "runtime/deep/gone.c": b""})


def refusal(files: dict[str, bytes], folder: Path, *, force: bool = False) -> Diagnostic:
    """Of a write that must leave everything round the folder as it is."""
    around = folder.parent
    while not around.exists():
        around = around.parent
    before = tree(around)
    with pytest.raises(CompileError) as caught:
        write_bundle(files, folder, force=force)
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code == "BW206"
    assert tree(around) == before
    return diagnostic


@pytest.fixture(params=["exchanged", "one by one"])
def out(tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that is replaced at once, and one in which each file is, as a system without exchange does it."""
    if request.param == "one by one":

        def cannot(*folders: Path) -> bool:
            return not folders

        monkeypatch.setattr(install, "_exchange", cannot)
        monkeypatch.setattr(install, "_rename_empty", cannot)
    return tmp_path / "out"


@pytest.mark.parametrize("exists", [False, True])
def test_all_files_are_written(tmp_path: Path, exists: bool) -> None:
    folder = tmp_path / "deep" / "out"
    if exists:
        folder.mkdir(parents=True)
    write_bundle(FILES, folder)
    assert tree(folder) == with_folders(FILES)
    assert os.listdir(folder.parent) == ["out"]


def test_an_older_bundle_is_replaced_with_everything_in_it(out: Path) -> None:
    write_bundle(OLDER, out)
    write_bundle(FILES, out)
    assert tree(out) == with_folders(FILES)
    assert os.listdir(out.parent) == ["out"]


def test_a_bundle_with_deleted_files_is_replaced(out: Path) -> None:
    write_bundle(OLDER, out)
    (out / "src" / "m.c").unlink()
    write_bundle(FILES, out)
    assert tree(out) == with_folders(FILES)


def test_files_of_others_in_a_bundle_stay(out: Path) -> None:
    write_bundle(OLDER, out)
    foreign = {
        "notes.txt": b"mine",
        "src/mine.c": b"int mine;",
        "runtime/deep/mine.c": b"",
        ".git/HEAD": b"ref",
    }
    for path, content in foreign.items():
        (out / path).parent.mkdir(exist_ok=True)
        (out / path).write_bytes(content)
    (out / "empty").mkdir()
    (out / "include" / "link.h").symlink_to("m.h")
    inode = (out / "notes.txt").stat().st_ino
    write_bundle(FILES, out)
    assert tree(out) == with_folders({**FILES, **foreign}) | {"empty": "/", "include/link.h": "m.h"}
    assert (out / "notes.txt").stat().st_ino == inode
    assert os.listdir(out.parent) == ["out"]


@pytest.mark.parametrize(
    "plan",
    [
        b"{}",
        b"[]",
        b"not json",
        b"",
        b'{"schema": 1, "steps": []}',
        b'{"schema": 1, "plan_hash": "x", "files": {"../thesis.txt": "' + b"0" * 64 + b'"}}',
        b'{"schema": 1, "plan_hash": "x", "files": {"/etc/passwd": "' + b"0" * 64 + b'"}}',
        b'{"schema": 1, "plan_hash": "x", "files": {"thesis.txt": 3}}',
        b'{"schema": 1, "plan_hash": "x", "files": ["thesis.txt"]}',
        b"[" * 100_000,
    ],
)
@pytest.mark.parametrize("force", [False, True])
def test_a_plan_of_something_else_makes_no_bundle(tmp_path: Path, plan: bytes, force: bool) -> None:
    folder = tmp_path / "repository"
    (folder / ".git").mkdir(parents=True)
    (folder / ".git" / "HEAD").write_text("ref")
    (folder / "thesis.txt").write_text("years of work")
    (folder / "plan.json").write_bytes(plan)
    assert "is not empty and holds no bundle" in refusal(FILES, folder, force=force).message


@pytest.mark.parametrize("special", ["folder", "link", "pipe"])
def test_a_plan_that_is_no_file_makes_no_bundle(tmp_path: Path, special: str) -> None:
    folder = tmp_path / "out"
    write_bundle(FILES, folder)
    plan = folder / "plan.json"
    plan.rename(tmp_path / "plan.json")
    if special == "folder":
        plan.mkdir()
    elif special == "link":
        plan.symlink_to(tmp_path / "plan.json")
    else:
        os.mkfifo(plan)
    assert "is not empty and holds no bundle" in refusal(FILES, folder).message


def test_an_edited_bundle_needs_force(out: Path) -> None:
    write_bundle(OLDER, out)
    (out / "src" / "m.c").write_text("/* an evening's work */")
    diagnostic = refusal(FILES, out)
    assert diagnostic.message == f"'{out}' holds a bundle that was edited since: src/m.c"
    assert diagnostic.help == "--force overwrites what was edited; or name another folder"
    write_bundle(FILES, out, force=True)
    assert tree(out) == with_folders(FILES)


def test_force_removes_what_is_edited_and_listed_and_nothing_else(out: Path) -> None:
    write_bundle(OLDER, out)
    (out / "runtime" / "deep" / "gone.c").write_text("edited")
    (out / "src" / "mine.c").write_text("mine")
    write_bundle(FILES, out, force=True)
    assert tree(out) == with_folders({**FILES, "src/mine.c": b"mine"})


def test_an_edited_plan_needs_force(out: Path) -> None:
    write_bundle(FILES, out)
    document = json.loads((out / "plan.json").read_text())
    document["model"] = "other"
    (out / "plan.json").write_text(json.dumps(document))
    assert "was edited since: plan.json" in refusal(FILES, out).message


def test_a_list_with_a_stranger_on_it_needs_force(out: Path) -> None:
    """A digest that is right is not enough: the list itself must be the one that was written."""
    write_bundle(OLDER, out)
    (out / "notes.txt").write_text("mine")
    document = json.loads((out / "plan.json").read_text())
    document["files"]["notes.txt"] = hashlib.sha256(b"mine").hexdigest()
    (out / "plan.json").write_text(json.dumps(document))
    assert "was edited since: plan.json" in refusal(FILES, out).message
    document["files_hash"] = hash_files(document | {"plan_hash": "another plan"})
    (out / "plan.json").write_text(json.dumps(document))
    assert "was edited since: plan.json" in refusal(FILES, out).message


@pytest.mark.parametrize("blocking", ["file", "folder", "link", "dangling"])
@pytest.mark.parametrize("force", [False, True])
def test_something_else_in_the_way_is_an_error(out: Path, blocking: str, force: bool) -> None:
    write_bundle(sealed({"src/m.c": b"int m;\n"}), out)
    place = out / "include" / "m.h"
    place.parent.mkdir()
    if blocking == "file":
        place.write_bytes(b"\n")  # even if it says the same
    elif blocking == "folder":
        place.mkdir()
    else:
        place.symlink_to("../src/m.c" if blocking == "link" else "nowhere")
    diagnostic = refusal(FILES, out, force=force)
    assert (
        diagnostic.message == f"'{out}' holds something else where files of the bundle must be: include/m.h"
    )
    assert diagnostic.help == "move it away, or name another folder"


@pytest.mark.parametrize("force", [False, True])
@pytest.mark.parametrize("kind", ["link", "file"])
def test_a_folder_of_the_bundle_that_is_none_is_in_the_way(out: Path, force: bool, kind: str) -> None:
    write_bundle(FILES, out)
    (out / "src").rename(out.parent / "mine")
    if kind == "link":
        (out / "src").symlink_to(out.parent / "mine")
    else:
        (out / "src").write_text("mine")
    assert (
        "something else where files of the bundle must be: src/m.c"
        in refusal(FILES, out, force=force).message
    )


def test_a_file_that_was_made_a_link_is_in_the_way(out: Path) -> None:
    write_bundle(FILES, out)
    (out / "src" / "m.c").rename(out.parent / "m.c")
    (out / "src" / "m.c").symlink_to(out.parent / "m.c")
    assert "something else" in refusal(FILES, out, force=True).message


def test_a_link_to_a_folder_is_followed(out: Path) -> None:
    real = out.parent / "real"
    write_bundle(OLDER, real)
    out.symlink_to("real")
    write_bundle(FILES, out)
    assert out.is_symlink()
    assert tree(real) == with_folders(FILES)
    assert sorted(os.listdir(out.parent)) == ["out", "real"]


@pytest.mark.parametrize("leads_to", ["nowhere", "out", "file"])
def test_a_link_that_leads_to_no_folder_is_refused(tmp_path: Path, leads_to: str) -> None:
    (tmp_path / "file").write_text("mine")
    (tmp_path / "out").symlink_to(leads_to)
    refusal(FILES, tmp_path / "out")


def test_a_path_through_links_in_a_circle_is_refused(tmp_path: Path) -> None:
    (tmp_path / "out").symlink_to("out")
    assert (
        "leads through symbolic links in a circle" in refusal(FILES, tmp_path / "out" / "deep" / "er").message
    )


def test_a_folder_of_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "thesis.txt").write_text("years of work")
    diagnostic = refusal(FILES, tmp_path / "out")
    assert "is not empty and holds no bundle" in diagnostic.message


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("")
    assert "is not a folder" in refusal(FILES, tmp_path / "out").message


def test_a_failure_leaves_what_was_there(out: Path) -> None:
    write_bundle(OLDER, out)
    clashing = {**FILES, "include": b"a file where a folder must be"}
    refusal(clashing, out)
    assert os.listdir(out.parent) == ["out"]


def test_a_failure_makes_no_folders(tmp_path: Path) -> None:
    clashing = {"include/m.h": b"", "include": b"a file where a folder must be"}
    assert "cannot be written" in refusal(clashing, tmp_path / "deep" / "deeper" / "out").message


def test_a_parent_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert "cannot be written" in refusal(FILES, tmp_path / "file" / "out").message


@pytest.mark.parametrize("below", ["", "src"])
def test_the_folder_that_one_works_in_stays_the_same_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, below: str
) -> None:
    write_bundle(OLDER, tmp_path / "out")
    monkeypatch.chdir(tmp_path / "out" / below)
    inode = (tmp_path / "out").stat().st_ino
    write_bundle(FILES, Path(".") if not below else Path(".."))
    assert (tmp_path / "out").stat().st_ino == inode
    assert tree(tmp_path / "out") == with_folders(FILES)


def test_the_mode_of_the_folder_stays(out: Path) -> None:
    write_bundle(OLDER, out)
    out.chmod(0o750)
    write_bundle(FILES, out)
    assert out.stat().st_mode & 0o777 == 0o750


def test_a_file_that_appears_while_the_bundle_is_written_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the look and the exchange: it is not removed with the old bundle, and one hears where it is."""
    out = tmp_path / "out"
    write_bundle(OLDER, out)
    exchange = install._exchange  # pyright: ignore[reportPrivateUsage]

    def late(first: Path, second: Path) -> bool:
        (out / "late.txt").write_text("mine")
        return exchange(first, second)

    monkeypatch.setattr(install, "_exchange", late)
    with pytest.raises(CompileError) as caught:
        write_bundle(FILES, out)
    assert tree(out) == with_folders(FILES)
    (work,) = tmp_path.glob(".bytewright-*")
    assert tree(work) == with_folders({"new/late.txt": b"mine"})
    assert f"could not be removed of what was there before is in '{work}'" in str(caught.value)


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
    assert document["files_hash"] == hash_files(document)
    assert "target_link_libraries" not in files["CMakeLists.txt"].decode()
