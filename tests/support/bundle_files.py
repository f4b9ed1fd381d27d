"""Files of a bundle that nobody compiled: what writing, replacing and checking the folder needs of one, and no more."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path

from bytewright.record.plan_file import SCHEMA, hash_document, hash_files


def sealed(files: Mapping[str, bytes], model: str = "m") -> dict[str, bytes]:
    """The files with a plan.json that lists them."""
    document = {"schema": SCHEMA, "model": model}
    document["plan_hash"] = hash_document(document)
    document["files"] = {path: hashlib.sha256(content).hexdigest() for path, content in files.items()}
    document["files_hash"] = hash_files(document)
    return dict(sorted({**files, "plan.json": json.dumps(document).encode()}.items()))


def tree(folder: Path) -> dict[str, bytes | str]:
    """Everything in a folder: contents of files, where links lead, and "/" for folders."""
    found: dict[str, bytes | str] = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_symlink():
            found[name] = str(path.readlink())
        elif path.is_dir():
            found[name] = "/"
        else:
            found[name] = path.read_bytes() if path.is_file() else "special"
    return found


def with_folders(files: Mapping[str, bytes]) -> dict[str, bytes | str]:
    """What `tree` says of a folder that holds these files alone."""
    folders = {str(parent) for path in files for parent in Path(path).parents if parent.name}
    return dict(sorted({**files, **dict.fromkeys(folders, "/")}.items()))
