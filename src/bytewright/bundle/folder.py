"""Which files of a folder are a bundle's own: those that its plan.json lists, with the digests that it lists.

Whoever replaces a bundle, checks or builds it decides by this list alone. The list is sealed: `files_hash` covers it
and the plan's hash, so that a file that is struck off it is missed. All versions list and seal alike, so a bundle of
another one is a bundle. Everything else in the folder is foreign, whatever it is called, and links are foreign even
where they lead to what is listed.
"""

import hashlib
import os
import re
import stat
from collections.abc import Generator, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from bytewright.record.plan_file import (
    PLAN_FILE,
    SCHEMA,
    hash_document,
    hash_files,
    parse_document,
    schema_of,
)

_DIGEST = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class FileList:
    """What a bundle's plan.json says of the folder.

    Attributes:
        digests: Path in the folder, with slashes -> sha256 of every file but plan.json.
        is_sealed: Whether plan and list are those that the two hashes of plan.json are of; of another version, that
            `files_hash` is of, which covers all: what the plan's hash leaves out is not the same in all versions.
        plan_digest: sha256 of plan.json itself.
    """

    digests: Mapping[str, str]
    is_sealed: bool
    plan_digest: str


def read_file_list(directory: Path) -> FileList | None:
    """The list of a folder's plan.json; None if that is no plan.json that Bytewright wrote."""
    path = directory / PLAN_FILE
    if not _is_regular(path):
        return None
    try:
        content = path.read_bytes()
        document = parse_document(content)
    except (OSError, ValueError):
        return None
    schema, digests, plan_hash = schema_of(document), document.get("files"), document.get("plan_hash")
    if schema is None or not isinstance(plan_hash, str) or not isinstance(digests, dict):
        return None
    listed = cast("dict[str, object]", digests)
    are_digests = all(isinstance(digest, str) and _DIGEST.fullmatch(digest) for digest in listed.values())
    if not are_digests or not all(map(is_inside, listed)):
        return None
    files = cast("dict[str, str]", listed)
    is_whole = schema != SCHEMA or plan_hash == hash_document(document)
    is_sealed = is_whole and document.get("files_hash") == hash_files(document)
    return FileList(files, is_sealed, hashlib.sha256(content).hexdigest())


def is_inside(path: str) -> bool:
    """Whether this is the plain path of a file in the folder, and not that of plan.json."""
    parts = path.split("/")
    plain = all(part not in ("", ".", "..") and not set(part) & {"\0", "\\"} for part in parts)
    return plain and path != PLAN_FILE


def digest_of(path: Path) -> str | None:
    """sha256 of a regular file that is no link; None for everything else.

    Raises:
        OSError: It is one, and cannot be read.
    """
    if not _is_regular(path):
        return None
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def foreign_entries(directory: Path, listed: Iterable[str]) -> list[str]:
    """What is in the folder and not listed: files, links, and folders that hold nothing listed, with a slash.

    Raises:
        OSError: A folder cannot be read.
    """
    files = set(listed)
    folders = {"/".join(name.split("/")[:depth]) for name in files for depth in range(1, name.count("/") + 1)}
    return list(_walk(directory, "", files, folders))


def _walk(directory: Path, prefix: str, files: set[str], folders: set[str]) -> Generator[str, None, None]:
    with os.scandir(directory / prefix) as entries:
        found = sorted(entries, key=lambda entry: entry.name)
    for entry in found:
        name = prefix + entry.name
        if entry.is_dir(follow_symlinks=False):
            if name in folders:
                yield from _walk(directory, f"{name}/", files, folders)
            else:
                yield f"{name}/"
        elif name not in files or not entry.is_file(follow_symlinks=False):
            yield name


def _is_regular(path: Path) -> bool:
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except (OSError, ValueError):
        return False
