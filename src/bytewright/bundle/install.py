"""Puts the files of a bundle into a folder, so that at every moment the old bundle is whole, or the new one.

There are three ways, the first that is possible is taken:

1. Into a folder that does not exist or is empty: the new bundle is written beside it and renamed.
2. In place of a bundle that has the folder to itself: the new one is written beside it, and the two folders are
   exchanged in one step. The files of the old one are removed then.
3. Into a folder with other files in it, the one that somebody works in, or where the system cannot do either (a mount
   point, say): both bundles are complete in a folder of work inside (the old one by links) before the first file is
   replaced, plan.json comes last, and a failure puts the old files back. A compile that is killed there leaves the
   folder of work, from which the next one knows what is ours.

Nothing is removed but files with digests that were looked at before, and folders that are empty.
"""

import ctypes
import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

from bytewright.bundle.folder import digest_of
from bytewright.bundle.standing import NEW, OLD, WORK_PREFIX, Standing, has_link_above, refused, sealed_lists
from bytewright.diagnostics import CompileError
from bytewright.record.plan_file import PLAN_FILE

Files = Mapping[str, bytes]


def install(files: Files, standing: Standing) -> None:
    """Writes the files; those that were there and are ours go.

    Raises:
        CompileError: BW206: what was there before could not be removed.
        OSError: Nothing was changed.
    """
    directory = standing.directory
    created = _make_parents(directory)
    try:
        if standing.has_foreign or _is_worked_in(directory) or not _install_beside(files, standing):
            _install_inside(files, standing)
    except BaseException:
        for folder in created:
            with suppress(OSError):
                folder.rmdir()
        raise


def _install_beside(files: Files, standing: Standing) -> bool:
    """The first two ways; False if the system cannot."""
    directory = standing.directory
    try:
        work = Path(tempfile.mkdtemp(prefix=WORK_PREFIX, dir=directory.parent))
    except OSError:
        return False
    fresh = work / NEW
    identity = None
    try:
        _write_all(files, fresh)
        if directory.exists():
            shutil.copymode(directory, fresh)
        identity = _identity(fresh)
        return _rename_empty(fresh, directory) if not standing.digests else _exchange(fresh, directory)
    finally:
        if identity is None or _identity(fresh) == identity:  # what lies there was made here
            shutil.rmtree(work, ignore_errors=True)
        else:
            _discard(work, {f"{NEW}/{path}": digest for path, digest in standing.digests.items()}, directory)


def _rename_empty(fresh: Path, directory: Path) -> bool:
    try:
        os.rename(fresh, directory)
    except OSError:  # a mount point; or no longer empty, which the other way sees
        return False
    return True


def _discard(work: Path, digests: Mapping[str, str], directory: Path) -> None:
    """Removes the old bundle, and says so where something is left of it."""
    _remove_files(work, digests)
    if work.exists():
        raise _unremoved(directory, work)


def _unremoved(directory: Path, where: Path) -> CompileError:
    return refused(
        directory,
        f"is written, but what could not be removed of what was there before is in '{where}'",
        "look at it, and remove it",
    )


def _install_inside(files: Files, standing: Standing) -> None:
    """The third way."""
    directory = standing.directory
    directory.mkdir(exist_ok=True)
    work = Path(tempfile.mkdtemp(prefix=WORK_PREFIX, dir=directory))
    moves = [*(path for path in sorted(files) if path != PLAN_FILE), PLAN_FILE]
    made: list[Path] = []
    try:
        _write_all(files, work / NEW)
        for path in standing.digests:
            _link(directory / path, work / OLD / path)
        for path in moves:
            _replace(work / NEW / path, directory, path, standing, made)
    except BaseException:
        _put_back(files, standing, work, made)
        raise
    gone = {path: digest for path, digest in standing.digests.items() if path not in files}
    _remove_files(directory, gone)
    if any(os.path.lexists(directory / path) for path in gone):
        # The folder of work stays: its lists know them.
        raise _unremoved(directory, directory)
    _remove_work(work, files, standing.digests)
    for left in standing.leftovers:
        _remove_listed(left)


def _replace(source: Path, directory: Path, path: str, standing: Standing, made: list[Path]) -> None:
    """Puts one file into its place, where nothing stands that was not looked at."""
    target = directory / path
    for folder in reversed([p for p in target.parents if p != directory and directory in p.parents]):
        if not folder.exists():
            folder.mkdir()
            made.append(folder)
    if has_link_above(directory, path) or digest_of(target) != standing.digests.get(path):
        raise refused(directory, f"was changed while it was written: {path}")
    if path in standing.digests:
        moving = source.parent / f".{source.name}"
        _link(source, moving)
        os.replace(moving, target)
    else:
        _link(source, target)


def _put_back(files: Files, standing: Standing, work: Path, made: list[Path]) -> None:
    """Makes the folder what it was; if even that fails, the folder of work stays, with the old bundle in it."""
    directory = standing.directory
    for path in files:
        written = directory / path
        with suppress(OSError):
            is_new = digest_of(written) == sha256(files[path]).hexdigest()
            if is_new and path not in standing.digests and not has_link_above(directory, path):
                written.unlink()
    for path, digest in standing.digests.items():
        with suppress(OSError):
            if digest_of(directory / path) != digest and (work / OLD / path).exists():
                os.replace(work / OLD / path, directory / path)
    for folder in reversed(made):
        with suppress(OSError):
            folder.rmdir()
    with suppress(OSError):
        if all(digest_of(directory / path) == digest for path, digest in standing.digests.items()):
            shutil.rmtree(work, ignore_errors=True)


def _remove_work(work: Path, files: Files, digests: Mapping[str, str]) -> None:
    """The lists go last: as long as anything is left, they say whose it is."""
    fresh = {f"{NEW}/{path}": sha256(content).hexdigest() for path, content in files.items()}
    old = {f"{OLD}/{path}": digest for path, digest in digests.items()}
    _remove_files(work, fresh | old)


def _remove_listed(left: Path) -> None:
    """Of what a killed compile left, all that its own lists name."""
    digests: dict[str, str] = {}
    for kind, found in sealed_lists(left):
        digests |= {f"{kind}/{path}": digest for path, digest in found.digests.items()}
        digests[f"{kind}/{PLAN_FILE}"] = found.plan_digest
    _remove_files(left, digests)


def _remove_files(folder: Path, digests: Mapping[str, str]) -> None:
    """Removes files that have these digests, lists last, and then the folders that they leave empty."""
    for path in sorted(digests, key=lambda path: (path.endswith(PLAN_FILE), path)):
        with suppress(OSError):
            if not has_link_above(folder, path) and digest_of(folder / path) == digests[path]:
                (folder / path).unlink()
    parents = {Path(), *(parent for path in digests for parent in Path(path).parents)}
    for parent in sorted(parents, key=lambda parent: (-len(parent.parts), parent)):
        with suppress(OSError):  # it holds something else
            (folder / parent).rmdir()


def _write_all(files: Files, folder: Path) -> None:
    folder.mkdir()
    for path, content in files.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)


def _link(source: Path, target: Path) -> None:
    """A second name for a file, or a copy where the file system has none; never over a file that is there."""
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.link(source, target, follow_symlinks=False)
    except FileExistsError:
        raise
    except OSError:
        with source.open("rb") as stream, target.open("xb") as copy:
            shutil.copyfileobj(stream, copy)


def _make_parents(directory: Path) -> list[Path]:
    """Makes the folders above; returns those that were made, the innermost first."""
    missing: list[Path] = []
    parent = directory.parent
    while not parent.exists():
        missing.append(parent)
        parent = parent.parent
    directory.parent.mkdir(parents=True, exist_ok=True)
    return missing


def _is_worked_in(directory: Path) -> bool:
    """Whether it is the current folder or one above it, which must not become another folder of the same name."""
    try:
        current = Path.cwd().resolve()
    except OSError:
        return False
    return directory == current or directory in current.parents


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        status = path.lstat()
    except OSError:
        return None
    return (status.st_dev, status.st_ino) if stat.S_ISDIR(status.st_mode) else None


_AT_CURRENT = {"linux": -100, "darwin": -2}
_EXCHANGE = 2  # RENAME_EXCHANGE of Linux, RENAME_SWAP of macOS


def _exchange(first: Path, second: Path) -> bool:
    """Lets two folders change places in one step; False if the system or the file system cannot."""
    library = ctypes.CDLL(None, use_errno=True)
    call = getattr(library, "renameat2" if sys.platform == "linux" else "renameatx_np", None)
    if call is None or sys.platform not in _AT_CURRENT:
        return False
    here = _AT_CURRENT[sys.platform]
    return call(here, os.fsencode(first), here, os.fsencode(second), ctypes.c_uint(_EXCHANGE)) == 0
