"""Every way to change one place of a plan.json, and bundles that were changed so with all of their hashes made anew.

A leaf is a value of JSON that is no object and no list; an element of a list counts with its place, and so does a whole
object or list, which may go. What is written then looks as if the compiler itself had made it.
"""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bytewright.record.plan_file import hash_document, hash_files

Path_ = tuple[str | int, ...]
# Computed from everything else: what is changed there is what `make_consistent` makes anew.
HASHES = frozenset({"plan_hash", "files_hash", "files"})


@dataclass(frozen=True)
class Mutation:
    """A change of one place."""

    path: Path_
    what: str
    value: Any = None
    is_removal: bool = False

    @property
    def pattern(self) -> str:
        """The path without numbers of elements: `buffers[].place.kind`."""
        text = ""
        for part in self.path:
            text += "[]" if isinstance(part, int) else f".{part}"
        return text.removeprefix(".")

    def __str__(self) -> str:
        text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in self.path)
        return f"{text.removeprefix('.')} {self.what}"

    def applied(self, document: dict[str, Any]) -> dict[str, Any]:
        """The document with the change; what lies beside the place is shared with it."""
        changed = copy.copy(document)
        inside: Any = changed
        for part in self.path[:-1]:
            inside[part] = copy.copy(inside[part])
            inside = inside[part]
        if self.is_removal:
            del inside[self.path[-1]]
        else:
            inside[self.path[-1]] = self.value
        return changed


def places(value: Any, path: Path_ = ()) -> Iterator[tuple[Path_, Any]]:
    """Every place of a document but the whole, with what is there."""
    if path:
        yield path, value
    match value:
        case dict():
            for key, inner in value.items():
                yield from places(inner, (*path, key))
        case list():
            for index, inner in enumerate(value):
                yield from places(inner, (*path, index))
        case _:
            pass


def mutations(document: dict[str, Any]) -> Iterator[Mutation]:
    """All changes of one place each: removed, of another type, and other values that look right."""
    names = _names(document)
    for path, value in places(document):
        if path[0] in HASHES:
            continue
        yield Mutation(path, "removed", is_removal=True)
        for other in _others(path, value, names):
            if other != value or type(other) is not type(value):
                text = json.dumps(other)
                yield Mutation(path, f"{json.dumps(value)[:40]} -> {text[:40]}", other)


def _names(document: dict[str, Any]) -> Sequence[str]:
    """Names of buffers, pools and devices: each looks right wherever another one stands."""
    of = (document["buffers"][0]["name"], document["buffers"][-1]["name"])
    return (*of, *(pool["name"] for pool in document["pools"]), document["steps"][0]["device"])


def _others(path: Path_, value: Any, names: Sequence[str]) -> Iterator[Any]:
    match value:
        case bool():
            yield from (not value, int(value), None)
        case int():
            yield from (value + 1, value - 1, 0, 2 * value + 64, str(value), None)
        case float():
            yield from (value * 2, None, "1.0")
        case str():
            yield from (f"{value}x", "", 1, None)
            known = _ALTERNATIVES.get(str(path[-1])) or (names if value in names else ())
            yield from known
        case None:
            yield from (0, 1, "", names[0], [])
        case list():
            yield from ([], None, {})
            if value:
                yield [*value, value[0]]
                yield value[::-1]
        case dict():
            yield from (None, [])
        case _:
            raise AssertionError(value)


_ALTERNATIVES = {
    "kind": ("planned", "constant", "stack", "arena", "caller", "c", "copy", "context"),
    "role": ("tensor", "scratch", "input", "output", "arena", "parameter", "workspace", "parameters"),
    "dtype": ("i8", "i16", "i32", "f32", "bool"),
    "io": ("caller", "workspace", "rows"),
    "provider": ("caller", "compiler"),
    "load": ("linker", "copy"),
    "access": ("r", "w", "rw"),
}


def write_consistently(folder: Path, files: dict[str, bytes], document: dict[str, Any]) -> None:
    """Puts a document in the place of a bundle's plan.json, as if all of the bundle had been written for it."""
    document = copy.copy(document)
    if isinstance(document.get("files"), dict):
        document["files"] = dict(document["files"])
    old = json.loads(files["plan.json"])["plan_hash"]
    new = hash_document(document)
    if "plan_hash" in document:
        document["plan_hash"] = new
    for path, content in files.items():
        if path == "plan.json":
            continue
        changed = content.replace(old.encode(), new.encode())
        if (folder / path).read_bytes() != changed:
            (folder / path).write_bytes(changed)
        if isinstance(document.get("files"), dict):
            document["files"][path] = hashlib.sha256(changed).hexdigest()
    document["files_hash"] = hash_files(document)
    (folder / "plan.json").write_text(json.dumps(document), encoding="utf-8")
