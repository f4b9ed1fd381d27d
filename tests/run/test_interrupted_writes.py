"""A bundle that is being replaced is whole, the old one or the new one, whichever file-system call is the last.

Each call of the C library that reaches the file system is interrupted in turn: the process is killed there, the call
fails, or from there on the disk is full. BYTEWRIGHT_TESTS=thorough does all of it in every scene. Run as a program,
this file is what is interrupted.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from bytewright.bundle.write import write_bundle
from bytewright.cli.write_files import write_files
from support.bundle_files import sealed, with_folders
from support.interrupted import FAIL_ONCE, FULL, KILL, Outcome, Tree, interruptions, run_interrupted
from support.tiers import THOROUGH

OLD = sealed({"include/m.h": b"old\n" * 9, "src/m.c": b"old source\n", "src/deep/gone.c": b"gone\n"})
NEW = sealed({"include/m.h": b"new\n" * 9, "src/m.c": b"new source\n", "runtime/more.c": b"more\n"})
FOREIGN = {"notes.txt": b"mine", "src/mine.c": b"int mine;"}
MODES = {"kill": (KILL, 0), "error": (FAIL_ONCE, errno.EIO), "full": (FULL, errno.ENOSPC)}
# Name -> what is in the folder before, beside the old bundle; whether there is one; whether one works in the folder.
SCENES: dict[str, tuple[Mapping[str, bytes], bool, bool]] = {
    "new": ({}, False, False),
    "alone": ({}, True, False),
    "shared": (FOREIGN, True, False),
    "worked in": ({}, True, True),
}


ALL = [(scene, mode) for scene in SCENES for mode in MODES]
SAMPLE = [("new", "kill"), ("alone", "kill"), ("shared", "kill"), ("alone", "full"), ("shared", "full")]


@pytest.mark.parametrize(("scene", "mode"), ALL if THOROUGH else SAMPLE)
def test_one_of_the_two_bundles_is_whole_whatever_call_is_the_last(
    tmp_path: Path, scene: str, mode: str
) -> None:
    run_interrupted(Path(__file__), scene, mode, folder=tmp_path)


@pytest.mark.parametrize("mode", MODES)
def test_each_file_that_a_command_writes_is_the_old_one_or_the_new_one(tmp_path: Path, mode: str) -> None:
    run_interrupted(Path(__file__), "files", mode, folder=tmp_path)


def _main_of_files(mode_name: str) -> None:
    scene = Path("scene").absolute()
    first, second, fresh = (scene / name for name in ("first.csv", "second.svg", "fresh.csv"))
    mode, number = MODES[mode_name]

    def prepare() -> None:
        first.write_bytes(b"old")
        second.symlink_to("real.svg")
        (scene / "real.svg").write_bytes(b"old")

    def work() -> None:
        write_files([(first, b"new"), (second, b"new"), (fresh, b"new")])

    old: Tree = {"first.csv": b"old", "real.svg": b"old", "second.svg": "real.svg"}
    new: Tree = {"first.csv": b"new", "fresh.csv": b"new", "real.svg": b"new", "second.svg": "real.svg"}
    outcomes = list(interruptions(scene, prepare, work, mode, number))
    assert len(outcomes) > 15, len(outcomes)
    for outcome in outcomes:
        left = {path: what for path, what in outcome.left.items() if not path.startswith(".bytewright-")}
        if outcome.ending == "killed":
            assert {*old} <= {*left} <= {*new}, left
            assert all(what in (old.get(path), new[path]) for path, what in left.items()), left
        else:
            assert left == (new if outcome.ending == "done" else old), outcome


def _main(scene_name: str, mode_name: str) -> None:
    foreign, has_old, works_there = SCENES[scene_name]
    scene = Path("scene").absolute()
    out = scene / "deep" / "out"
    mode, number = MODES[mode_name]

    def prepare() -> None:
        if has_old:
            write_bundle(OLD, out)
        for path, content in foreign.items():
            (out / path).write_bytes(content)

    def work() -> None:
        if works_there:
            os.chdir(out)
        write_bundle(NEW, out)

    old = with_folders({f"deep/out/{path}": content for path, content in {**OLD, **foreign}.items()})
    new = with_folders({f"deep/out/{path}": content for path, content in {**NEW, **foreign}.items()})
    judge = _judge(old if has_old else {}, new, one_by_one=bool(foreign) or works_there)
    outcomes = list(interruptions(scene, prepare, work, mode, number))
    assert len(outcomes) > 20, len(outcomes)
    endings = {outcome.ending for outcome in outcomes}
    assert endings <= ({"killed"} if mode == KILL else {"refused", "done"}), endings
    for outcome in outcomes:
        try:
            judge(outcome)
        except AssertionError:
            print(outcome.call, outcome.ending, *sorted(outcome.left), sep="\n  ")
            raise


def _judge(old: Tree, new: Tree, *, one_by_one: bool) -> Callable[[Outcome], None]:
    def judge(outcome: Outcome) -> None:
        work = {path: what for path, what in outcome.left.items() if "/.bytewright-" in f"/{path}"}
        rest = {path: what for path, what in outcome.left.items() if path not in work}
        foreign = {path: old[path] for path in old if path.removeprefix("deep/out/") in FOREIGN}
        assert all(rest.get(path) == what for path, what in foreign.items())
        if one_by_one and (outcome.ending == "killed" or _is_written(rest, new, old)):
            both_are_kept = _kept(work, old, "old") and _kept(work, new, "new")
            assert _is(rest, old) or both_are_kept or _is_written(rest, new, old)
        else:
            assert _is(rest, old) or _is(rest, new)
        assert outcome.ending != "done" or _is(rest, new)
        if outcome.again is None:
            return
        again = {path: what for path, what in outcome.again.items() if "/.bytewright-" not in f"/{path}"}
        assert _is(again, new)
        remains = [path for path in outcome.again if path not in again]
        assert not remains or set(remains) <= set(work), remains

    return judge


def _is(found: Tree, wanted: Tree) -> bool:
    """Whether all files are these; an empty folder more or less is no difference."""
    return {p: what for p, what in found.items() if what != "/"} == {
        p: what for p, what in wanted.items() if what != "/"
    }


def _is_written(found: Tree, new: Tree, old: Tree) -> bool:
    """Whether the new bundle is there, with nothing else but what is still to be removed of the old one."""
    return {**found, **new} == found and _is(
        {p: w for p, w in found.items() if old.get(p) != w or p in new}, new
    )


def _kept(work: Tree, bundle: Tree, kind: str) -> bool:
    """Whether a folder of work holds the whole bundle."""
    wanted = {
        path.removeprefix("deep/out/"): what
        for path, what in bundle.items()
        if isinstance(what, bytes) and path.removeprefix("deep/out/") not in FOREIGN
    }
    found = {path.partition(f"/{kind}/")[2]: what for path, what in work.items() if f"/{kind}/" in path}
    return all(found.get(path) == what for path, what in wanted.items())


def test_the_judge_objects() -> None:
    """The test above can fail: a folder with a file of each is neither the old bundle nor the new one."""
    old = with_folders({"deep/out/a": b"1", "deep/out/b": b"1"})
    new = with_folders({"deep/out/a": b"2", "deep/out/b": b"2"})
    mixed = {**old, "deep/out/a": b"2"}
    for one_by_one in (False, True):
        with pytest.raises(AssertionError):
            _judge(old, new, one_by_one=one_by_one)(Outcome(1, "killed", mixed, new))
    _judge(old, new, one_by_one=False)(Outcome(1, "killed", old, new))
    with pytest.raises(AssertionError):
        _judge(old, new, one_by_one=False)(Outcome(1, "refused", old, mixed))


if __name__ == "__main__":
    if sys.argv[1] == "files":
        _main_of_files(sys.argv[2])
    else:
        _main(*sys.argv[1:])
