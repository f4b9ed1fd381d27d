"""What stands where a bundle is to be written: a bundle of ours, files of others, and what is in the way.

Only reads. A file is ours if a plan.json of the folder lists it with the digest that it has; plan.json is ours if
both of its hashes hold. A compile that was killed while it replaced files one by one has left a folder
`.bytewright-...` with the lists of the old bundle and of the new one: what either lists is ours as well, so that the
next compile can end the work.
"""

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from bytewright.bundle.folder import FileList, digest_of, foreign_entries, read_file_list
from bytewright.diagnostics import CompileError, compile_error
from bytewright.record.plan_file import PLAN_FILE

WORK_PREFIX = ".bytewright-"
NEW, OLD = "new", "old"  # the two bundles in a folder of work
_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Standing:
    """What may be replaced.

    Attributes:
        directory: The folder, links followed; it may not exist yet.
        digests: Path -> the digest that it has now, of all files that may be replaced or removed.
        has_foreign: Whether there is anything else in the folder.
        leftovers: Folders of work that killed compiles have left in it.
    """

    directory: Path
    digests: dict[str, str]
    has_foreign: bool
    leftovers: tuple[Path, ...]


def refused(directory: Path, reason: str, help_text: str | None = None) -> CompileError:
    """The error for a folder that cannot be written."""
    help_text = help_text or "name a new or empty folder, or an older bundle"
    return compile_error("BW206", f"'{directory}' {reason}", help=help_text)


def look_at(directory: Path, new_paths: Iterable[str], *, force: bool) -> Standing:
    """What is in the way is refused here, before anything is written.

    Raises:
        CompileError: BW206 if it is no folder, or holds other things but no bundle, or a bundle that was edited (unless
            forced to), or has something else where a file must be.
        OSError: It cannot be read.
    """
    folder = _resolved(directory)
    if not folder.exists():
        return Standing(folder, {}, False, ())
    if not folder.is_dir():
        raise refused(directory, "is not a folder")
    leftovers = tuple(p for p in sorted(folder.glob(f"{WORK_PREFIX}*")) if p.is_dir() and not p.is_symlink())
    current = read_file_list(folder)
    sealed = [found for left in leftovers for _, found in sealed_lists(left)]
    if current is None and not sealed and next(folder.iterdir(), None) is not None:
        raise refused(directory, "is not empty and holds no bundle")
    digests, edited = _own_files(folder, filter(None, (current, *sealed)))
    if edited and not force:
        raise refused(
            directory,
            f"holds a bundle that was edited since: {_listed(list(edited))}",
            "--force overwrites what was edited; or name another folder",
        )
    digests |= edited
    blocking = [path for path in new_paths if _is_blocked(folder, path, digests)]
    if blocking:
        raise refused(
            directory,
            f"holds something else where files of the bundle must be: {_listed(blocking)}",
            "move it away, or name another folder",
        )
    return Standing(folder, digests, bool(foreign_entries(folder, digests)), leftovers)


def sealed_lists(left: Path) -> list[tuple[str, FileList]]:
    """What a folder of work says of the bundles in it."""
    lists = [(kind, read_file_list(left / kind)) for kind in (NEW, OLD)]
    return [(kind, found) for kind, found in lists if found is not None and found.is_sealed]


def _resolved(directory: Path) -> Path:
    """The folder that is meant: a link to one is followed, one that leads nowhere is refused."""
    if directory.is_symlink() and not directory.exists():
        raise refused(directory, "is a symbolic link that leads to no folder", "name a folder")
    resolved = Path(os.path.realpath(directory))
    if any(folder.is_symlink() for folder in resolved.parents):
        raise refused(directory, "leads through symbolic links in a circle", "name a folder")
    return resolved


def _own_files(folder: Path, lists: Iterable[FileList]) -> tuple[dict[str, str], dict[str, str]]:
    """Digests of the files that are as one of the lists says, and of those that are listed and have others."""
    allowed: dict[str, set[str]] = {}
    for found in lists:
        for path, digest in found.digests.items():
            allowed.setdefault(path, set()).add(digest)
        allowed.setdefault(PLAN_FILE, set()).update({found.plan_digest} if found.is_sealed else ())
    own: dict[str, str] = {}
    edited: dict[str, str] = {}
    for path, digests in allowed.items():
        digest = None if has_link_above(folder, path) else digest_of(folder / path)
        if digest is not None:
            (own if digest in digests else edited)[path] = digest
    return own, edited


def has_link_above(folder: Path, path: str) -> bool:
    """Whether a folder on the way to a file is none, but a link or a file."""
    parents = (folder / parent for parent in Path(path).parents if parent.name)
    return any(parent.is_symlink() or (parent.exists() and not parent.is_dir()) for parent in parents)


def _is_blocked(folder: Path, path: str, own: dict[str, str]) -> bool:
    return has_link_above(folder, path) or (path not in own and os.path.lexists(folder / path))


def _listed(paths: list[str]) -> str:
    rest = f" and {len(paths) - _SHOWN} more" if len(paths) > _SHOWN else ""
    return ", ".join(paths[:_SHOWN]) + rest
